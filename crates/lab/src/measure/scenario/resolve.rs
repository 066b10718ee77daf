//! From a file as written to a scenario ready to run: defaults filled in, names looked up, values checked.

use super::error::InputError;
use super::model::*;
use super::quantity::{Queue, Time};
use super::raw::*;
use super::raw_choice::*;
use super::request::Request;
use super::resolve_capacity::capacity;
use super::resolve_checks::{check_name, positive, positive_queue, probability};
use super::resolve_flow::{Flows, Hop};
use super::spanned::At;
use super::suggest;
use super::traces::Traces;
use super::tree::Text;
use std::collections::BTreeSet;
use std::ops::Range;
use weir_units::TimeDelta;

const DEFAULT_SAMPLE: TimeDelta = TimeDelta::from_millis(100);
const DEFAULT_QUEUE: QueueLimit = QueueLimit::Time(TimeDelta::from_millis(300));
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
    let (hops, links) = resolve_links(text, raw, traces)?;
    let bottleneck = match &raw.bottleneck {
        None => 0,
        Some(name) => links.iter().position(|l| l.name == name.value).ok_or_else(|| {
            let known: Vec<&str> = links.iter().map(|l| l.name.as_str()).collect();
            text.error(name.span.clone(), format!("no link is named `{}`", name.value))
                .help(suggest::help(&name.value, &known))
        })?,
    };
    let flows = Flows { text, raw, request, duration, hops: &hops }.resolve(traces)?;
    check_stations(text, &links, &flows)?;
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
        flows,
        windows: resolve_windows(text, raw, duration)?,
    })
}

fn resolve_links(text: &Text, raw: &RawScenario, traces: &mut Traces) -> Result<(Vec<Hop>, Vec<Link>), InputError> {
    let whole = |message: String| InputError::whole(&text.file, message).field("links");
    let given = &raw.links.0;
    if given.is_empty() {
        return Err(whole("a scenario needs at least one link".into())
            .help("for example: [links.bottleneck] with rate = \"2 Mbps\" and delay = \"50 ms\""));
    }
    let several = matches!(raw.topology, RawTopology::ParkingLot | RawTopology::Network);
    if !several && given.len() > 1 {
        return Err(text
            .error(given[1].0.span.clone(), "only a parking lot or a network has more than one link")
            .help("say topology = \"parking-lot\" or \"network\", or describe the other direction in `reverse`"));
    }
    if given.len() > MAX_LINKS {
        return Err(whole(format!("more than {MAX_LINKS} links")));
    }
    let (mut hops, mut links) = (Vec::new(), Vec::new());
    for (name, raw) in raw.links.iter() {
        check_name(text, name)?;
        let r = &raw.value;
        let span = &raw.span;
        let forward = Direction {
            capacity: Some(&r.rate),
            delay: r.delay.0,
            queue: &r.queue,
            ecn_threshold: &r.ecn_threshold,
            loss: &r.loss,
            loss_place: r.loss_place,
            jitter: &r.jitter,
            reorder: &r.reorder,
            duplicate: &r.duplicate,
            assist: &r.assist,
        };
        links.push(forward.resolve(text, name.value.clone(), span, traces)?);
        let empty = RawReverse::default();
        let b = r.reverse.as_ref().unwrap_or(&empty);
        let reverse = Direction {
            capacity: b.rate.as_ref(),
            delay: b.delay.unwrap_or(r.delay).0,
            queue: &b.queue,
            ecn_threshold: &b.ecn_threshold,
            loss: &b.loss,
            loss_place: b.loss_place,
            jitter: &b.jitter,
            reorder: &b.reorder,
            duplicate: &b.duplicate,
            assist: &b.assist,
        };
        links.push(reverse.resolve(text, format!("{}.reverse", name.value), span, traces)?);
        hops.push(Hop { name: name.value.clone(), forward: links.len() - 2, reverse: links.len() - 1 });
    }
    Ok((hops, links))
}

/// What both directions of a hop have.
struct Direction<'a> {
    capacity: Option<&'a At<RawCapacity>>,
    delay: TimeDelta,
    queue: &'a Option<At<Queue>>,
    ecn_threshold: &'a Option<At<Queue>>,
    loss: &'a Option<At<RawLoss>>,
    loss_place: RawLossPlace,
    jitter: &'a Option<At<RawJitter>>,
    reorder: &'a Option<At<RawReorder>>,
    duplicate: &'a Option<At<f64>>,
    assist: &'a Option<At<RawAssist>>,
}

impl Direction<'_> {
    fn resolve(&self, text: &Text, name: String, span: &Range<usize>, traces: &mut Traces) -> Result<Link, InputError> {
        let limit = |q: &Option<At<Queue>>| q.as_ref().map(|q| positive_queue(text, q)).transpose();
        let capacity = self.capacity.map_or(Ok(Capacity::Unlimited), |c| capacity(text, c, traces))?;
        let reorder = match self.reorder {
            None => None,
            Some(r) => Some(Reorder { probability: probability(text, &r.value.probability)?, delay: r.value.delay.0 }),
        };
        let link = Link {
            name,
            capacity,
            delay: self.delay,
            queue: limit(self.queue)?.unwrap_or(DEFAULT_QUEUE),
            ecn_threshold: limit(self.ecn_threshold)?,
            loss: self.loss.as_ref().map(|l| loss(text, l)).transpose()?,
            loss_place: match self.loss_place {
                RawLossPlace::Ingress => LossPlace::Ingress,
                RawLossPlace::Egress => LossPlace::Egress,
            },
            jitter: self.jitter.as_ref().map(|j| jitter(text, j)).transpose()?,
            reorder,
            duplicate: self.duplicate.as_ref().map_or(Ok(0.0), |p| probability(text, p))?,
            assist: self.assist.as_ref().map(|a| assist(text, &a.value)).transpose()?,
        };
        if let Some(a) = self.assist.as_ref().filter(|_| link.capacity == Capacity::Unlimited) {
            return Err(text.error(a.span.clone(), "an unlimited link has no capacity that could be told"));
        }
        if link.capacity == Capacity::Unlimited && link.ecn_threshold.is_some() {
            let at = self.ecn_threshold.as_ref().map_or(span.clone(), |e| e.span.clone());
            return Err(text.error(at, "an unlimited link has no queue that could be marked"));
        }
        link.config().check().map_err(|e| {
            let message = format!("{} is {}: expected {}", e.field, e.value, e.expected);
            text.error(span.clone(), message)
        })?;
        Ok(link)
    }
}

fn loss(text: &Text, raw: &At<RawLoss>) -> Result<Loss, InputError> {
    Ok(match &raw.value {
        &RawLoss::Independent(p) => {
            Loss::Independent { probability: probability(text, &At { value: p, span: raw.span.clone() })? }
        }
        RawLoss::GilbertElliott(g) => {
            let or = |p: &Option<At<f64>>, default| p.as_ref().map_or(Ok(default), |p| probability(text, p));
            Loss::GilbertElliott {
                good_to_bad: probability(text, &g.good_to_bad)?,
                bad_to_good: probability(text, &g.bad_to_good)?,
                loss_in_good: or(&g.loss_in_good, 0.0)?,
                loss_in_bad: or(&g.loss_in_bad, 1.0)?,
            }
        }
    })
}

fn jitter(text: &Text, raw: &At<RawJitter>) -> Result<Jitter, InputError> {
    let shape = match raw.value.sigma {
        None => JitterShape::Uniform,
        Some(sigma) if sigma.0 == TimeDelta::ZERO => {
            return Err(text.error(raw.span.clone(), "`sigma` must be above zero"));
        }
        Some(sigma) => JitterShape::Normal { sigma: sigma.0 },
    };
    Ok(Jitter { shape, max: raw.value.max.0, reordering: raw.value.reordering })
}

fn assist(text: &Text, raw: &RawAssist) -> Result<Assist, InputError> {
    let time = |t: &Option<At<Time>>| t.as_ref().map(|t| positive(text, t)).transpose();
    Ok(Assist {
        tells_sender: raw.tells != RawTells::Receiver,
        tells_receiver: raw.tells != RawTells::Sender,
        interval: time(&raw.interval)?.unwrap_or(TimeDelta::from_secs(1)),
        threshold: raw.threshold.as_ref().map_or(Ok(0.05), |p| probability(text, p))?,
        delay: raw.delay.map_or(TimeDelta::from_millis(20), |t| t.0),
        drain: time(&raw.drain)?,
    })
}

/// An end heeds one station.
fn check_stations(text: &Text, links: &[Link], flows: &[Flow]) -> Result<(), InputError> {
    for f in flows.iter().filter(|f| f.rtp().is_some()) {
        let told = |tells: fn(&Assist) -> bool| {
            f.forward.iter().filter(|l| links[**l].assist.is_some_and(|a| tells(&a))).count()
        };
        for (end, count) in [("sender", told(|a| a.tells_sender)), ("receiver", told(|a| a.tells_receiver))] {
            if count > 1 {
                let message = format!("{count} links on the way of `{}` tell its {end}; one may", f.name);
                return Err(InputError::whole(&text.file, message).field("links"));
            }
        }
    }
    Ok(())
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
