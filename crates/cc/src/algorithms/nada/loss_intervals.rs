//! The average loss interval (RFC 8698, section 4.2, after RFC 5348, sections 5.2 to 5.4).

use weir_units::TimeDelta;

/// Weights of RFC 5348, section 5.4, for n = 8.
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Packets between loss events, the open interval first.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossIntervals {
    intervals: [u32; WEIGHTS.len() + 1],
    closed: usize,
    event_start: TimeDelta,
}

impl LossIntervals {
    /// Counts a packet that arrived at `at` after `lost` missing ones. Losses less than `merge` after the first of an
    /// event belong to that event.
    pub(crate) fn on_packet(&mut self, lost: u32, at: TimeDelta, merge: TimeDelta) {
        let packets = lost.saturating_add(1);
        if lost > 0 && (self.closed == 0 || at - self.event_start > merge) {
            self.intervals.copy_within(..WEIGHTS.len(), 1);
            self.intervals[0] = packets;
            self.closed = (self.closed + 1).min(WEIGHTS.len());
            self.event_start = at;
        } else {
            self.intervals[0] = self.intervals[0].saturating_add(packets);
        }
    }

    /// Packets since the last loss event began; `None` before the first.
    pub(crate) fn open(&self) -> Option<f64> {
        (self.closed > 0).then(|| f64::from(self.intervals[0]))
    }

    /// loss_int in packets, at least 1. With `count_open` the open interval is included if that makes it longer.
    pub(crate) fn mean(&self, count_open: bool) -> Option<f64> {
        if self.closed == 0 {
            return None;
        }
        let weights = &WEIGHTS[..self.closed];
        let sum =
            |from: usize| -> f64 { weights.iter().zip(&self.intervals[from..]).map(|(w, &i)| w * f64::from(i)).sum() };
        let total = if count_open { sum(0).max(sum(1)) } else { sum(1) };
        Some((total / weights.iter().sum::<f64>()).max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MERGE: TimeDelta = TimeDelta::from_millis(100);

    fn run(l: &mut LossIntervals, start_ms: i64, packets: u32) {
        for _ in 0..packets {
            l.on_packet(0, TimeDelta::from_millis(start_ms), MERGE);
        }
    }

    #[test]
    fn averages_as_rfc_5348() {
        let mut l = LossIntervals::default();
        run(&mut l, 0, 50);
        assert_eq!((l.mean(true), l.open()), (None, None));
        l.on_packet(1, TimeDelta::from_millis(200), MERGE);
        assert_eq!((l.mean(true), l.open()), (Some(50.0), Some(2.0)));
        run(&mut l, 300, 18);
        l.on_packet(2, TimeDelta::from_millis(400), MERGE);
        // Closed: 20 and 50, each of weight 1.
        assert_eq!(l.mean(true), Some(35.0));
        run(&mut l, 500, 77);
        // The open 80 and the closed 20 give more than 20 and 50.
        assert_eq!((l.mean(true), l.mean(false), l.open()), (Some(50.0), Some(35.0), Some(80.0)));
    }

    #[test]
    fn weighs_eight_intervals() {
        let mut l = LossIntervals::default();
        run(&mut l, 0, 1_000);
        for (k, n) in [10u32, 20, 30, 40, 50, 60, 70, 80].into_iter().enumerate() {
            let at = 1_000 * (k as i64 + 1);
            l.on_packet(1, TimeDelta::from_millis(at), MERGE);
            run(&mut l, at, n - 2);
        }
        l.on_packet(1, TimeDelta::from_millis(60_000), MERGE);
        // 80 + 70 + 60 + 50 + 0.8 * 40 + 0.6 * 30 + 0.4 * 20 + 0.2 * 10 = 320 over 6; the 1,000 have dropped out.
        assert!((l.mean(true).expect("losses") - 320.0 / 6.0).abs() < 1e-9);
    }

    #[test]
    fn merges_losses_of_one_round_trip() {
        let mut l = LossIntervals::default();
        run(&mut l, 0, 10);
        l.on_packet(1, TimeDelta::from_millis(10), MERGE);
        l.on_packet(1, TimeDelta::from_millis(60), MERGE);
        assert_eq!((l.mean(true), l.open()), (Some(10.0), Some(4.0)));
        l.on_packet(1, TimeDelta::from_millis(111), MERGE);
        assert_eq!((l.mean(true), l.open()), (Some(7.0), Some(2.0)));
    }

    #[test]
    fn the_open_interval_keeps_a_loss_from_expiring() {
        let mut l = LossIntervals::default();
        for k in 0..9 {
            run(&mut l, 1_000 * k, 98);
            l.on_packet(1, TimeDelta::from_millis(1_000 * k + 500), MERGE);
        }
        run(&mut l, 10_000, 1_000_000);
        let open = l.open().expect("losses");
        assert!(open < 7.0 * l.mean(true).expect("losses"));
        assert!(open > 8.0 * l.mean(false).expect("losses"));
    }
}
