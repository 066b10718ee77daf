//! Delay that no queue of the call makes: a longer way, jitter, stalls of a radio.

use super::cause;
use crate::why::episodes::Span;
use crate::why::evidence::{Evidence, ROUGH, STANDING};
use crate::why::{Cause, EpisodeKind};

/// Most spread of the least delays behind a step, in ms and as a share of the step.
pub(super) const STEADY: f64 = 3.0;
pub(super) const STEADY_SHARE: f64 = 0.06;
/// Growth of the spread within half seconds, in ms, from which it is jitter.
const WIDER: f64 = 12.0;
/// Share of packets that arrive together, of jitter that keeps the order.
const CLUMPED: f64 = 0.1;
/// Most spread of the least delays under jitter, as a share of their growth, and most delay, in ms.
const JITTER_SHARE: f64 = 0.15;
const HIGH: f64 = 250.0;
/// Least differences of services under jitter: those of a link are even.
const UNEVEN: f64 = 0.25;
/// Most delay of jitter that is drawn packet by packet, in ms: beyond, a link stands still.
const HIGHEST: f64 = 400.0;
/// Least peaks, and their height in ms.
const LEAST_SPIKES: u32 = 2;
/// Logged estimate, over what was sent before, from which it limits nothing.
const ALLOWS: f64 = 1.2;
/// Least time without an arrival, as a share of the highest peak.
const STOOD: f64 = 0.5;
/// The same of a link that does nothing else.
const STILL: f64 = 0.75;
/// Time without an arrival that no jitter makes, in ms, and one that others' packets do not make either.
const STALLED: f64 = 100.0;
const LONG: f64 = 200.0;
/// Bits that the link would have served in the longest of them: four large packets.
const LONG_BITS: f64 = 48_000.0;

/// Least slope of a clock, in ms a second: ten times the 100 ppm that crystals keep to, and twice the 500 ppm at which
/// NTP slews (RFC 5905). How far the ways' slopes may differ, as a share, and what the line may leave, in ms.
const DRIFTS: f64 = 1.0;
const OPPOSED: f64 = 0.2;
const ON_LINE: f64 = 3.0;

pub(super) fn step(e: &Evidence, _: &Span) -> Option<Cause> {
    let (floor, spread) = e.step;
    let is = e.has_past
        && floor > STANDING
        && spread < STEADY.max(STEADY_SHARE * floor)
        && e.spread.1 < e.spread.0 + WIDER
        && e.loss < 0.01
        && (e.service.1 == 0.0 || e.fastest > 0.8 * e.service.0);
    let text = format!("the least delay rose by {floor:.0} ms and stayed (±{spread:.0} ms), whatever was sent");
    is.then(|| cause("delay-step", 0.85, vec![text]))?
}

pub(super) fn jitter(e: &Evidence, span: &Span) -> Option<Cause> {
    // An estimator that allows more than was sent lets nothing fall.
    if span.kind == EpisodeKind::Fall && e.estimate.is_some_and(|(_, now, _)| now > ALLOWS * span.before_kbps) {
        return None;
    }
    let wider = e.has_past && e.spread.1 > e.spread.0 + WIDER && e.foreign.1 > e.foreign.0 + WIDER / 2.0;
    let wider = wider && e.loss < 0.02 && e.dark_s < 0.5;
    let clumped = e.clumped.1 > e.clumped.0 + CLUMPED && e.standing_s == 0.0;
    let as_before = e.service.1 == 0.0 || e.service.1 > 0.8 * e.service.0;
    let rough = e.rough > ROUGH && e.peak < HIGHEST && (as_before || e.uneven >= UNEVEN);
    // One stall makes packets arrive together too.
    let stalled = e.spikes == 1 && e.gap >= STALLED.max(STOOD * e.peak);
    // A queue of the call's own, or of others, moves even the fastest packets; jitter leaves them where they are.
    let still = e.floor.1 < STEADY.max(JITTER_SHARE * e.floor.0) && e.service.1 > 0.8 * e.service.0 && e.peak < HIGH;
    if !wider || stalled || !(rough || clumped || still) {
        return None;
    }
    let spread = format!("delay spreads over {:.0} ms within half a second, {:.0} before", e.spread.1, e.spread.0);
    let why = if rough {
        format!("delays of frames differ as if drawn one by one ({:.1} of 2)", e.rough)
    } else if clumped {
        format!("{:.0} % of packets arrive together, {:.0} % before", e.clumped.1 * 100.0, e.clumped.0 * 100.0)
    } else {
        format!("the least delay is steady (±{:.0} ms), and packets are served at {:.0} kbit/s", e.floor.1, e.service.1)
    };
    cause(
        "jitter",
        if rough {
            0.86
        } else if clumped {
            0.8
        } else {
            0.7
        },
        vec![spread, why],
    )
}

/// Whether a link stands still again and again, and delay is what was sent meanwhile, or what is left of it as the next stall begins.
pub(super) fn stood_still(e: &Evidence) -> bool {
    // Where the receiver's host took packets together, it may have been this that stood still.
    let as_before = e.service.1 > 0.8 * e.service.0 && e.gap * e.service.1 > LONG_BITS && !e.taken_together();
    let again = e.gaps > LEAST_SPIKES as usize && e.gap >= LONG && as_before;
    (e.spikes > LEAST_SPIKES && e.gap >= STILL * e.peak) || again
}

pub(super) fn stalls(e: &Evidence, span: &Span) -> Option<Cause> {
    // A way that is longer for good has not been back.
    if step(e, span).is_some() {
        return None;
    }
    // A link that is slow for a time lets some packets pass all the time.
    let stood = e.gap >= STOOD * e.peak && (e.floor.0 < 2.0 * STANDING || stood_still(e));
    let is = e.spikes >= LEAST_SPIKES && stood && e.loss < 0.02 && e.peak > 120.0;
    let text = format!("{} times delay rose to {:.0} ms at most, and was back at once", e.spikes, e.peak);
    if !is && stood_still(e) && e.loss < 0.02 {
        let text = format!("{} times nothing arrived for {:.0} ms at most, and then as fast as before", e.gaps, e.gap);
        return cause("stalls", 0.85, vec![text]);
    }
    // Twice may be an accident, of the receiver's host too.
    is.then(|| cause("stalls", if e.spikes > LEAST_SPIKES { 0.88 } else { 0.45 }, vec![text]))?
}

/// No queue grows one way at the speed at which the other way gets shorter: one clock is faster than the other.
pub(super) fn clock_drift(e: &Evidence, _: &Span) -> Option<Cause> {
    let d = e.drift?;
    let is = d.there.abs() >= DRIFTS && (d.there + d.back).abs() < OPPOSED * d.there.abs() && d.wander < ON_LINE;
    let ways =
        format!("delay changed by {:.1} ms a second to the receiver and by {:.1} on the way back", d.there, d.back);
    let line = format!("on a line (±{:.1} ms), before and in it", d.wander);
    is.then(|| cause("clock-drift", 0.9, vec![ways, line]))?
}
