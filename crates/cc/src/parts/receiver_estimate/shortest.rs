//! The shortest of the last departure intervals, whose reciprocal is the highest rate of frames or groups.

/// K, number of intervals of which the shortest is taken (libwebrtc: 60; the drafts give no number).
const HISTORY: usize = 60;
/// Upper bound of an interval, in ms.
const LONGEST: f64 = 1_000.0;

/// A ring of intervals in ms and the shortest of them.
#[derive(Clone, Debug)]
pub(crate) struct ShortestInterval {
    intervals: [f64; HISTORY],
    oldest: usize,
    shortest: f64,
}

impl ShortestInterval {
    pub(crate) fn new() -> Self {
        Self { intervals: [LONGEST; HISTORY], oldest: 0, shortest: LONGEST }
    }
    /// The shortest in ms, 0 to 1,000.
    pub(crate) fn get(&self) -> f64 {
        self.shortest
    }
    /// Takes the next interval in ms; returns whether the shortest has changed. The ring is searched only when the
    /// shortest drops out of it.
    pub(crate) fn update(&mut self, interval: f64) -> bool {
        let interval = interval.clamp(0.0, LONGEST);
        let dropped = core::mem::replace(&mut self.intervals[self.oldest], interval);
        self.oldest = (self.oldest + 1) % HISTORY;
        let before = self.shortest;
        if interval <= before {
            self.shortest = interval;
        } else if dropped <= before {
            self.shortest = self.intervals.iter().copied().fold(LONGEST, f64::min);
        }
        self.shortest != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_least_of_the_last_sixty() {
        let mut s = ShortestInterval::new();
        let all: Vec<f64> = (0..500u32).map(|k| f64::from(k.wrapping_mul(2_654_435_761) >> 20) / 3.0 - 10.0).collect();
        for (k, &interval) in all.iter().enumerate() {
            let before = s.get();
            let changed = s.update(interval);
            let of = all[(k + 1).saturating_sub(HISTORY)..=k].iter().map(|v| v.clamp(0.0, LONGEST));
            let least = of.fold(LONGEST, f64::min);
            assert_eq!((s.get(), changed), (least, least != before), "after {k}");
        }
    }
}
