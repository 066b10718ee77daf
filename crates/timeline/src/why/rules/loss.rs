//! Loss without a queue: chance, bursts, a policer, an outage.

use super::cause;
use crate::why::Cause;
use crate::why::episodes::Span;
use crate::why::evidence::Evidence;

/// Least share and number of packets lost. Two percent is where GCC's loss controller stops growing
/// (draft-ietf-rmcat-gcc-02, section 6).
const LEAST_LOSS: f64 = 0.02;
const LEAST_LOST: u32 = 10;
/// Most delay of half seconds with loss, in ms: behind it packets were lost in a full queue.
const NO_QUEUE: f64 = 45.0;
/// A peak beyond this, in ms, leaves it open whether a queue was full.
const HIGH_PEAK: f64 = 200.0;
const OPEN: f64 = 0.4;
/// Packets lost in a row: at a chance of 25 % their mean is 1.33. Bursts of Gilbert's model have more.
const RANDOM_RUN: f64 = 1.5;
const BURST_RUN: f64 = 3.5;
/// Least time without any arrival, in s: two reports of 0.4 s missing.
const OUTAGE: f64 = 0.8;
/// Spread of the arrived rate in half seconds with loss, of a policer, as a share; and how far a clean half second may
/// exceed it by the policer's burst.
const POLICED_SPREAD: f64 = 0.13;
const POLICED_BURST: f64 = 1.6;

fn without_queue(e: &Evidence) -> bool {
    e.loss >= LEAST_LOSS && e.lost >= LEAST_LOST && e.lossy_delay < NO_QUEUE && e.dark_s < OUTAGE
}

/// Whether the rate that arrived is the same whatever was sent.
fn policed(e: &Evidence) -> bool {
    without_queue(e)
        && e.lossy_arrived.1 < POLICED_SPREAD
        && e.clean_arrived < POLICED_BURST * e.lossy_arrived.0
        && e.run < BURST_RUN * 2.0
}

fn lost(e: &Evidence) -> Vec<String> {
    vec![
        format!(
            "{:.1} % of packets lost, {:.1} in a row, at {:.0} ms of queue",
            e.loss * 100.0,
            e.run,
            e.lossy_delay.max(0.0)
        ),
        format!("{:.1} % before", e.loss_before * 100.0),
    ]
}

pub(super) fn outage(e: &Evidence, _: &Span) -> Option<Cause> {
    (e.dark_s >= OUTAGE).then(|| cause("outage", 0.9, vec![format!("nothing arrived for {:.1} s", e.dark_s)]))?
}

pub(super) fn random(e: &Evidence, _: &Span) -> Option<Cause> {
    let sure = if e.peak < HIGH_PEAK { 0.85 } else { OPEN };
    (without_queue(e) && !policed(e) && e.run < RANDOM_RUN).then(|| cause("random-loss", sure, lost(e)))?
}

pub(super) fn burst(e: &Evidence, _: &Span) -> Option<Cause> {
    let sure = if e.run >= BURST_RUN && e.peak < HIGH_PEAK { 0.85 } else { OPEN };
    (without_queue(e) && !policed(e) && e.run >= RANDOM_RUN).then(|| cause("burst-loss", sure, lost(e)))?
}

pub(super) fn policer(e: &Evidence, _: &Span) -> Option<Cause> {
    if !policed(e) {
        return None;
    }
    let mut evidence = lost(e);
    let (rate, spread) = e.lossy_arrived;
    evidence
        .push(format!("where packets are lost {rate:.0} kbit/s arrive, ±{:.0} %, whatever is sent", spread * 100.0));
    cause("policer", 0.85, evidence)
}
