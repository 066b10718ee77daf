//! Rules: each gives a cause for the numbers around an episode, or nothing.

mod delay;
mod feedback;
mod loss;
mod queue;
mod sender;
mod told;

use super::Cause;
use super::episodes::Span;
use super::evidence::Evidence;
pub(super) use told::Signals;

/// Confidence in a new route where lost feedback, or an outage, is the reason for it.
pub(super) const CONSEQUENCE: f64 = 0.6;
/// Answers that arrive while nothing does at the other end, from which the old path is not gone.
pub(super) const HEARD: usize = 2;

/// A cause.
fn cause(name: &'static str, confidence: f64, evidence: Vec<String>) -> Option<Cause> {
    Some(Cause { name: name.into(), confidence, evidence })
}

/// The causes of an episode, in no order.
pub(super) fn causes(e: &Evidence, signals: &Signals, span: &Span) -> Vec<Cause> {
    let rules: [fn(&Evidence, &Span) -> Option<Cause>; 17] = [
        loss::outage,
        loss::random,
        loss::burst,
        loss::policer,
        queue::capacity_fell,
        queue::deep_queue,
        queue::cross_traffic,
        delay::step,
        delay::jitter,
        delay::stalls,
        delay::clock_drift,
        feedback::lost,
        feedback::late,
        sender::paused,
        sender::limited,
        sender::layer_paused,
        sender::asked,
    ];
    let mut found: Vec<Cause> = rules.iter().filter_map(|rule| rule(e, span)).collect();
    found.extend(signals.causes(span, sender::quiet(e)));
    // ICE takes another pair where it hears nothing, although packets arrive.
    let silent = found.iter().any(|c| c.name == "feedback-lost");
    // Or where nothing arrives over a path that is there.
    let there = e.dark_heard >= HEARD && found.iter().any(|c| c.name == "outage");
    let is_consequence = silent || there;
    found.iter_mut().filter(|c| is_consequence && c.name == "route-change").for_each(|c| c.confidence = CONSEQUENCE);
    found
}
