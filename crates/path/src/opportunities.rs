use crate::error::ConfigError;
use crate::schedule::{Schedule, Step};
use std::sync::Arc;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Bytes of one delivery opportunity (mahimahi's `PACKET_SIZE`).
pub const OPPORTUNITY: DataSize = DataSize::from_bytes(1_500);
const OPPORTUNITY_BYTES: u32 = 1_500;
/// Window over which opportunities are counted to give a rate.
const RATE_WINDOW_MS: u32 = 100;
const NANOS_PER_MS: i64 = 1_000_000;

/// A capacity recorded as times at which 1,500 bytes may be sent, repeated forever (mahimahi's trace format).
///
/// As in mahimahi, an opportunity carries as many queued packets as fit and part of the next; the rest of it is lost,
/// and a packet that arrives at the time of an opportunity misses it. Cheap to clone.
#[derive(Clone, PartialEq, Debug)]
pub struct Opportunities(Arc<Table>);

#[derive(PartialEq, Debug)]
struct Table {
    ms: Vec<u32>,
    /// Length of a cycle: the time of the last opportunity.
    period: i64,
    rates: Schedule,
}

/// Position of a link in its opportunities.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    epoch: i64,
    index: usize,
    /// The opportunity in use and its remaining bytes.
    current: i64,
    left: u32,
}

impl Opportunities {
    /// Opportunities at these milliseconds from zero of the clock, in order; the last one ends the cycle. Errors: an
    /// empty list, decreasing times, or a last one at zero.
    pub fn new(ms: Vec<u32>) -> Result<Self, ConfigError> {
        let field = "capacity.opportunities";
        let Some(&last) = ms.last().filter(|&&t| t > 0) else {
            return Err(ConfigError::new(
                field,
                "empty or all zero",
                "a last opportunity after 0 ms, which ends the cycle",
            ));
        };
        if let Some(w) = ms.windows(2).find(|w| w[1] < w[0]) {
            return Err(ConfigError::new(field, w[1], "times in order"));
        }
        let rates = windowed_rates(&ms, last)?;
        Ok(Self(Arc::new(Table { ms, period: i64::from(last) * NANOS_PER_MS, rates })))
    }

    /// The opportunities of one cycle, in milliseconds.
    pub fn millis(&self) -> &[u32] {
        &self.0.ms
    }
    /// The length of a cycle.
    pub fn period(&self) -> TimeDelta {
        TimeDelta::from_nanos(self.0.period)
    }
    /// The mean rate over a cycle.
    pub fn mean_rate(&self) -> DataRate {
        DataRate::from_size_over(OPPORTUNITY * self.0.ms.len() as u64, self.period()).unwrap_or_default()
    }
    /// The rate over windows of 100 ms, from the start of the cycle; the last one is shorter.
    pub fn rates(&self) -> &Schedule {
        &self.0.rates
    }

    fn time(&self, p: &Place) -> i64 {
        p.epoch.saturating_add(i64::from(self.0.ms[p.index]) * NANOS_PER_MS)
    }

    fn step(&self, p: &mut Place) {
        p.index += 1;
        if p.index == self.0.ms.len() {
            p.index = 0;
            p.epoch = p.epoch.saturating_add(self.0.period);
        }
    }

    /// Skips opportunities that a packet that arrived at `arrived` cannot use.
    fn seek(&self, p: &mut Place, arrived: i64) {
        if arrived < p.current {
            return;
        }
        p.left = 0;
        if arrived - p.epoch >= self.0.period {
            let cycles = (arrived - p.epoch) / self.0.period;
            // The last opportunity of a cycle is at its end, the start of the next.
            let epoch = p.epoch + (cycles - 1) * self.0.period;
            if epoch > p.epoch {
                (p.epoch, p.index) = (epoch, 0);
            }
        }
        while self.time(p) <= arrived {
            let offset = (arrived - p.epoch) / NANOS_PER_MS;
            let skip = self.0.ms[p.index..].partition_point(|&ms| i64::from(ms) <= offset).max(1);
            p.index += skip - 1;
            self.step(p);
        }
    }

    /// When a packet that arrived at `arrived` and is at the head begins its transmission.
    #[inline]
    pub(crate) fn next_start(&self, p: &mut Place, arrived: Timestamp) -> Timestamp {
        self.seek(p, arrived.as_nanos());
        Timestamp::from_nanos(if p.left > 0 { p.current } else { self.time(p) })
    }

    /// Takes the bytes of a packet from the opportunities: returns when its transmission begins and ends.
    #[inline]
    pub(crate) fn serve(&self, p: &mut Place, arrived: Timestamp, bytes: u64) -> (Timestamp, Timestamp) {
        let start = self.next_start(p, arrived);
        let mut need = bytes;
        let cycle = self.0.ms.len() as u64 * u64::from(OPPORTUNITY_BYTES);
        if need > u64::from(p.left) + cycle {
            // Whole cycles are skipped at once, except for a remainder above zero that determines where in a cycle it
            // ends.
            need -= u64::from(p.left);
            p.left = 0;
            let whole = (need - 1) / cycle;
            need -= whole * cycle;
            let whole = i64::try_from(whole).unwrap_or(i64::MAX);
            p.epoch = p.epoch.saturating_add(whole.saturating_mul(self.0.period));
        }
        loop {
            if p.left == 0 {
                p.current = self.time(p);
                p.left = OPPORTUNITY_BYTES;
                self.step(p);
            }
            let used = need.min(u64::from(p.left));
            p.left -= used as u32;
            need -= used;
            if need == 0 {
                return (start, Timestamp::from_nanos(p.current));
            }
        }
    }
}

fn windowed_rates(ms: &[u32], last: u32) -> Result<Schedule, ConfigError> {
    let mut steps = Vec::with_capacity((last / RATE_WINDOW_MS) as usize + 1);
    let mut from = 0;
    for start in (0..last).step_by(RATE_WINDOW_MS as usize) {
        let end = start.saturating_add(RATE_WINDOW_MS).min(last);
        // The end of the cycle belongs to its last window.
        let count = ms[from..].partition_point(|&t| t < end || end == last);
        from += count;
        let bits = OPPORTUNITY.as_bits() * count as u64;
        let rate = DataRate::from_bps(bits * 1_000 / u64::from(end - start));
        steps.push(Step { at: TimeDelta::from_millis(i64::from(start)), rate });
    }
    Schedule::new(steps, Some(TimeDelta::from_millis(i64::from(last))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    #[test]
    fn an_opportunity_carries_1500_bytes_of_any_packets() {
        let o = Opportunities::new(vec![5, 5, 10, 20]).expect("sound");
        let mut p = Place::default();
        // 1,000 + 500 fill the first at 5 ms; 2,000 take the second at 5 ms and a third of the one at 10 ms.
        assert_eq!(o.serve(&mut p, ms(0), 1_000), (ms(5), ms(5)));
        assert_eq!(o.serve(&mut p, ms(0), 500), (ms(5), ms(5)));
        assert_eq!(o.serve(&mut p, ms(0), 2_000), (ms(5), ms(10)));
        // The rest of the one at 10 ms helps a packet that arrived before, not one that arrives then.
        let mut before = p;
        assert_eq!(o.serve(&mut before, ms(9), 1_000), (ms(10), ms(10)));
        assert_eq!(o.serve(&mut p, ms(10), 1_000), (ms(20), ms(20)));
        // The cycle restarts at 20 ms: 25, 25, 30, 40, 45, …
        assert_eq!(o.serve(&mut p, ms(20), 3_001), (ms(25), ms(30)));
        assert_eq!(o.serve(&mut p, ms(40), 1), (ms(45), ms(45)));
        assert_eq!(o.serve(&mut p, ms(40_000), 1), (ms(40_005), ms(40_005)));
    }

    #[test]
    fn a_rate_is_that_of_its_window() {
        let o = Opportunities::new(vec![0, 10, 99, 100, 150]).expect("sound");
        let at = |n| o.rates().rate_at(ms(n)).as_bps();
        // Three of 12,000 bits in 100 ms, then two in 50 ms.
        assert_eq!((at(0), at(99), at(100), at(149), at(150)), (360_000, 360_000, 480_000, 480_000, 360_000));
        assert_eq!(o.mean_rate().as_bps(), 400_000);
    }

    #[test]
    fn unusable_traces_are_refused() {
        for bad in [vec![], vec![0, 0], vec![5, 4]] {
            assert!(Opportunities::new(bad).is_err());
        }
    }

    proptest! {
        /// Mahimahi's own loop over single opportunities is the oracle.
        #[test]
        fn agrees_with_the_plain_loop(
            mut times in proptest::collection::vec(0u32..30, 1..8),
            packets in proptest::collection::vec((0i64..40, 1u64..4_000), 1..40),
        ) {
            times.sort_unstable();
            times.push(30);
            let o = Opportunities::new(times.clone()).expect("sound");
            let mut at = 0;
            let packets: Vec<_> = packets.iter().map(|&(gap, size)| { at += gap; (at, size) }).collect();
            let mut expected = vec![];
            let (mut next, mut left) = (0, packets[0].1);
            'outer: for cycle in 0.. {
                for &t in &times {
                    let now = 30 * cycle + i64::from(t);
                    let mut budget = 1_500;
                    while budget > 0 && packets[next].0 < now {
                        let used = left.min(budget);
                        left -= used;
                        budget -= used;
                        if left == 0 {
                            expected.push(ms(now));
                            next += 1;
                            if next == packets.len() {
                                break 'outer;
                            }
                            left = packets[next].1;
                        }
                    }
                }
            }
            let mut p = Place::default();
            let got: Vec<_> = packets.iter().map(|&(t, size)| o.serve(&mut p, ms(t), size).1).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
