//! The timing loop of the CCIDs' benches.

use cpu_time::ThreadTime;
use std::time::Duration;

/// One part of a round of a half-connection; returns the number of events.
pub(crate) type Part<D> = fn(&mut D) -> u64;

/// CPU time of this many events of part `timed` of a round; the clock is read once per batch and part.
pub(crate) fn time<D>(drives: &mut [D], parts: &[Part<D>], timed: usize, wanted: u64) -> Duration {
    let (mut took, mut events) = (Duration::ZERO, 0);
    while events < wanted {
        for (i, run) in parts.iter().enumerate() {
            let start = ThreadTime::now();
            let n: u64 = drives.iter_mut().map(run).sum();
            if i == timed {
                took += start.elapsed();
                events += n;
            }
        }
    }
    took.mul_f64(wanted as f64 / events as f64)
}
