//! From a file as written to a runnable scenario: defaults filled in, names looked up, values checked.

mod dccp;
mod ends;
pub(super) mod flow;
mod forecast;
mod multipath;
mod params;
mod preference;
mod receiver;
mod source;
mod streams;
mod traffic;
mod video;

use self::flow::{Flows, Hop};
use super::bottleneck;
use super::checks::{check_name, positive};
use super::error::InputError;
use super::link;
use super::members;
use super::model::*;
use super::radio;
use super::raw::*;
use super::request::Request;
use super::spanned::At;
use super::station::check_stations;
use super::suggest;
use super::traces::Traces;
use super::tree::Text;
use std::collections::BTreeSet;
use weir_units::TimeDelta;

const DEFAULT_SAMPLE: TimeDelta = TimeDelta::from_millis(100);
/// Points of a time series that a run may have.
const MAX_SAMPLES: i64 = 5_000_000;
const MAX_LINKS: usize = 1_000;

/// Fills in, looks up and checks one version of a file for one controller.
pub(super) fn resolve(
    text: &Text,
    raw: &RawScenario,
    traces: &mut Traces,
    request: &Request<'_>,
) -> Result<Scenario, InputError> {
    let duration = positive(text, &raw.duration)?;
    let sample_interval = raw.sample_interval.as_ref().map_or(Ok(DEFAULT_SAMPLE), |t| positive(text, t))?;
    if duration.as_nanos() / sample_interval.as_nanos() > MAX_SAMPLES {
        let span = raw.sample_interval.as_ref().unwrap_or(&raw.duration).span.clone();
        return Err(text.error(span, format!("this makes more than {MAX_SAMPLES} points of the time series")));
    }
    if let Some(runs) = raw.runs.as_ref().filter(|n| n.value == 0) {
        return Err(text.error(runs.span.clone(), "expected at least 1 run"));
    }
    let topology = match raw.topology {
        RawTopology::PointToPoint => Topology::PointToPoint,
        RawTopology::Dumbbell => Topology::Dumbbell,
        RawTopology::ParkingLot => Topology::ParkingLot,
        RawTopology::Network => Topology::Network,
    };
    let (hops, mut links) = resolve_links(text, raw, traces)?;
    let named = |name: &At<String>| {
        links.iter().position(|l| l.name == name.value).ok_or_else(|| {
            let known: Vec<&str> = links.iter().map(|l| l.name.as_str()).collect();
            text.error(name.span.clone(), format!("no link is named `{}`", name.value))
                .help(suggest::help(&name.value, &known))
        })
    };
    let named = raw.bottleneck.as_ref().map(named).transpose()?;
    let flows = Flows { text, raw, request, duration, hops: &hops }.resolve(traces)?;
    check_stations(text, &links, &flows)?;
    members::assign(text, &mut links, &flows)?;
    let bottleneck = named.unwrap_or_else(|| default_bottleneck(&links, &flows, duration, hops.len()));
    Ok(Scenario {
        name: request.name.into(),
        title: raw.title.clone(),
        doc: raw.doc.trim().into(),
        variant: request.variant.map(Into::into),
        controller: request.controller.map(Into::into),
        duration,
        seed: raw.seed.unwrap_or(1),
        runs: raw.runs.as_ref().map(|n| n.value),
        sample_interval,
        topology,
        links,
        bottleneck,
        has_named_bottleneck: named.is_some(),
        flows,
        windows: resolve_windows(text, raw, duration)?,
        burstiness: raw.burstiness,
    })
}

/// The link that limits the first flow, where there is a choice and it has a limit.
fn default_bottleneck(links: &[Link], flows: &[Flow], duration: TimeDelta, hops: usize) -> usize {
    if hops < 2 {
        return 0;
    }
    let means = bottleneck::mean_capacities(links, duration);
    let limiting = flows.first().and_then(|f| bottleneck::limiting_links(f, None, &means).first().copied());
    limiting.filter(|&l| means[l].is_some()).unwrap_or(0)
}

fn resolve_links(text: &Text, raw: &RawScenario, traces: &mut Traces) -> Result<(Vec<Hop>, Vec<Link>), InputError> {
    let whole = |message: String| InputError::whole(&text.file, message).field("links");
    let given = &raw.links.0;
    if given.is_empty() {
        return Err(whole("a scenario needs at least one link".into())
            .help("for example: [links.bottleneck] with rate = \"2 Mbps\" and delay = \"50 ms\""));
    }
    given.iter().try_for_each(|(_, raw)| link::check(text, raw))?;
    let several = matches!(raw.topology, RawTopology::ParkingLot | RawTopology::Network);
    if !several && given.len() > 1 {
        return Err(text
            .error(given[1].0.span.clone(), "only a parking lot or a network has more than one link")
            .help("use topology = \"parking-lot\" or \"network\", or describe the other direction in `reverse`"));
    }
    if given.len() > MAX_LINKS {
        return Err(whole(format!("more than {MAX_LINKS} links")));
    }
    let (mut hops, mut links) = (Vec::new(), Vec::new());
    for (name, raw) in raw.links.iter() {
        check_name(text, name)?;
        let [forward, reverse] = link::resolve(text, &name.value, raw, traces)?;
        let index = links.len();
        // A medium that stations share is one link in both directions.
        let back = if radio::is_shared(&forward.config) { index } else { index + 1 };
        links.extend([forward, reverse]);
        hops.push(Hop { name: name.value.clone(), forward: index, reverse: back });
    }
    Ok((hops, links))
}

fn resolve_windows(text: &Text, raw: &RawScenario, duration: TimeDelta) -> Result<Vec<Window>, InputError> {
    let mut seen = BTreeSet::new();
    let mut windows = Vec::new();
    for w in &raw.windows {
        let RawWindow { name, from, to } = &w.value;
        if !seen.insert(name) {
            return Err(text.error(w.span.clone(), format!("two windows are named \"{name}\"")));
        }
        if from.0 >= to.0 || to.0 > duration {
            let message = format!("expected `from` before `to`, and `to` no later than the run's end at {duration}");
            return Err(text.error(w.span.clone(), message));
        }
        windows.push(Window { name: name.clone(), from: from.0, to: to.0 });
    }
    Ok(windows)
}
