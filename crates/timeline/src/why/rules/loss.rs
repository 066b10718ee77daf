//! Loss without a queue: chance, bursts, a policer, an outage.

use super::cause;
use crate::why::Cause;
use crate::why::episodes::Span;
use crate::why::evidence::Evidence;
use crate::why::policing::Bucket;

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
/// Most wrong predictions of a policer's bucket, as a share of the losses: no bucket predicts half of the losses by chance or in bursts.
const POLICED: f64 = 0.5;

/// Whether nothing arrived for a time, and most losses were in it: bursts of losses are many.
fn is_outage(e: &Evidence) -> bool {
    e.dark_s >= OUTAGE && 2 * e.dark_lost >= e.lost
}

fn without_queue(e: &Evidence) -> bool {
    e.loss >= LEAST_LOSS && e.lost >= LEAST_LOST && e.lossy_delay < NO_QUEUE && !is_outage(e)
}

/// The token bucket that explains the losses.
fn policed(e: &Evidence) -> Option<Bucket> {
    e.bucket.filter(|b| without_queue(e) && b.wrong < POLICED)
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
    is_outage(e).then(|| cause("outage", 0.9, vec![format!("nothing arrived for {:.1} s", e.dark_s)]))?
}

pub(super) fn random(e: &Evidence, _: &Span) -> Option<Cause> {
    let sure = if e.peak < HIGH_PEAK { 0.85 } else { OPEN };
    (without_queue(e) && policed(e).is_none() && e.run < RANDOM_RUN).then(|| cause("random-loss", sure, lost(e)))?
}

pub(super) fn burst(e: &Evidence, _: &Span) -> Option<Cause> {
    let sure = if e.run >= BURST_RUN && e.peak < HIGH_PEAK { 0.85 } else { OPEN };
    (without_queue(e) && policed(e).is_none() && e.run >= RANDOM_RUN).then(|| cause("burst-loss", sure, lost(e)))?
}

pub(super) fn policer(e: &Evidence, _: &Span) -> Option<Cause> {
    let b = policed(e)?;
    let mut evidence = lost(e);
    let (size, right) = (b.size * 1e-3, (1.0 - b.wrong) * 100.0);
    evidence.push(format!("a bucket of {size:.0} kB that fills at {:.0} kbit/s predicts {right:.0} % of them", b.kbps));
    cause("policer", 0.85, evidence)
}
