//! Bounds of the rate in words: where those of a comparison differ, and what those do that nobody wrote.

use super::model::{RtpFlow, Scenario};
use std::fmt::Write as _;
use weir_path::Capacity;
use weir_session::allocation::MediaKind;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Seconds of a run at which the capacity is looked at.
const MOST_SECONDS: i64 = 10_000;

/// Floor and ceiling of a flow's rate.
type Bounds = (DataRate, DataRate);

/// Says which bounds which controllers have, if those of one scenario under several controllers differ; nothing else.
pub fn differing_limits<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Option<String> {
    let mut groups: Vec<(Vec<Bounds>, Vec<&str>)> = Vec::new();
    for scenario in scenarios {
        let Some(controller) = scenario.controller.as_deref() else { continue };
        let mut limits: Vec<_> = flows(scenario).map(|(_, rtp)| (rtp.floor, rtp.ceiling)).collect();
        limits.dedup();
        match groups.iter_mut().find(|g| g.0 == limits) {
            Some((_, controllers)) => controllers.push(controller),
            None => groups.push((limits, vec![controller])),
        }
    }
    if groups.len() < 2 {
        return None;
    }
    let words = |(limits, controllers): &(Vec<Bounds>, Vec<&str>)| {
        let spans: Vec<String> = limits.iter().map(|(floor, ceiling)| format!("{floor} to {ceiling}")).collect();
        format!("{}: {}", controllers.join(", "), spans.join(" and "))
    };
    let all: Vec<String> = groups.iter().map(words).collect();
    Some(format!("The scenario gives these controllers different bounds of the rate. {}.", all.join("; ")))
}

fn flows(scenario: &Scenario) -> impl Iterator<Item = (&str, &RtpFlow)> {
    scenario.flows.iter().filter_map(|f| Some((f.name.as_str(), f.rtp()?)))
}

/// Effects of bounds that nobody wrote: one line for each flow that they limit or share out.
pub(super) fn unwritten(scenario: &Scenario) -> Vec<String> {
    let link = most_capacity(scenario);
    flows(scenario).filter_map(|(name, rtp)| line(name, rtp, link)).collect()
}

/// The greatest capacity of the bottleneck at any second of the run; none if it is unlimited.
fn most_capacity(scenario: &Scenario) -> Option<DataRate> {
    let capacity = &scenario.links.get(scenario.bottleneck)?.config.capacity;
    let seconds = (scenario.duration.as_secs_f64() as i64).clamp(1, MOST_SECONDS);
    let at = |second| capacity.rate_at(Timestamp::ZERO + TimeDelta::from_secs(second));
    (!matches!(capacity, Capacity::Unlimited)).then(|| (0..seconds).map(at).max()).flatten()
}

fn line(name: &str, rtp: &RtpFlow, link: Option<DataRate>) -> Option<String> {
    let mut text = String::new();
    let ceiling = rtp.ceiling;
    let wanted = rtp.streams.iter().filter(|s| !s.has_default_most).fold(DataRate::ZERO, |sum, s| sum + s.demand.most);
    if rtp.has_default_ceiling && (wanted > ceiling || link.is_some_and(|l| l > ceiling)) {
        _ = write!(text, " `ceiling` is not written: {ceiling} at most");
        match link.filter(|l| *l > ceiling) {
            _ if wanted > ceiling => _ = write!(text, ", where its streams could use {wanted}"),
            Some(link) => _ = write!(text, ", where the link carries {link}"),
            None => {}
        }
        text.push('.');
    }
    for stream in rtp.streams.iter().filter(|s| s.has_default_most) {
        let why = if stream.demand.media == MediaKind::Audio { "what its codec can use" } else { "the flow's ceiling" };
        _ = write!(text, " `most` of stream {} is not written: {}, {why}.", stream.name, stream.demand.most);
    }
    (!text.is_empty()).then(|| format!("flow {name}:{text}"))
}
