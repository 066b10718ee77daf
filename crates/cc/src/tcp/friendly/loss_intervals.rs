//! The loss event rate from loss intervals, with history discounting (RFC 5348, sections 5.3 to 5.5).

/// w_0 to w_7 (RFC 5348, section 5.4, for n = 8).
const WEIGHTS: [f64; N] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// n (RFC 5348, section 5.4: 8, at most 8 on the global Internet).
pub const N: usize = 8;
/// THRESHOLD: lower bound of discounting (RFC 5348, section 5.5).
const THRESHOLD: f64 = 0.25;

/// Loss intervals in packets, newest first.
#[derive(Clone, Debug)]
pub struct LossIntervals {
    /// I_1 to I_n and DF_1 to DF_n.
    closed: [(f64, f64); N],
    /// k: number of closed intervals.
    count: usize,
    /// First sequence number of I_0.
    start: u64,
}

impl LossIntervals {
    /// Without any intervals.
    pub fn new() -> Self {
        Self { closed: [(0.0, 1.0); N], count: 0, start: 0 }
    }

    /// Whether there has been no loss event.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A loss event starts with this packet and closes the interval before it. `given` replaces the interval's length,
    /// for the first event.
    pub fn on_event(&mut self, sequence: u64, given: Option<f64>, discounting: bool) {
        let interval = given.unwrap_or(sequence.saturating_sub(self.start) as f64);
        // The discount at the end of the closing interval applies to the earlier intervals and is kept with them.
        let discount = self.general_discount(interval, discounting);
        for (_, df) in &mut self.closed {
            *df *= discount;
        }
        self.closed.copy_within(..N - 1, 1);
        self.closed[0] = (interval.max(1.0), 1.0);
        self.count = (self.count + 1).min(N);
        self.start = sequence;
    }

    /// Weighted sum and weights of the closed intervals.
    fn closed_sum(&self) -> (f64, f64) {
        let closed = self.closed[..self.count].iter().zip(WEIGHTS);
        closed.fold((0.0, 0.0), |(i, w), (&(interval, df), weight)| (i + interval * weight * df, w + weight * df))
    }

    /// DF for an open interval of this length.
    fn general_discount(&self, open: f64, discounting: bool) -> f64 {
        let (intervals, weights) = self.closed_sum();
        if !discounting || self.count == 0 || open * weights <= 2.0 * intervals {
            return 1.0;
        }
        (2.0 * intervals / (weights * open)).max(THRESHOLD)
    }

    /// p, with the open interval up to the highest packet received; 0 before the first loss event, at most 1.
    pub fn loss_event_rate(&self, highest: u64, discounting: bool) -> f64 {
        let open = highest.saturating_add(1).saturating_sub(self.start) as f64;
        self.loss_event_rate_with(Some(open), discounting)
    }

    /// p, with or without an open interval of this many packets; 0 before the first loss event, at most 1.
    pub fn loss_event_rate_with(&self, open: Option<f64>, discounting: bool) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let (closed, weights) = self.closed_sum();
        let without = weights / closed;
        let Some(open) = open else { return without.min(1.0) };
        let discount = self.general_discount(open, discounting);
        let (mut with_open, mut weights_with_open) = (open * WEIGHTS[0], WEIGHTS[0]);
        // Of k intervals, I_0 to I_(k-1).
        for (&(interval, df), weight) in self.closed[..self.count - 1].iter().zip(&WEIGHTS[1..]) {
            with_open += interval * weight * df * discount;
            weights_with_open += weight * df * discount;
        }
        f64::min(weights_with_open / with_open, without).min(1.0)
    }
}

impl Default for LossIntervals {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-12, "{value} is not {expected}");
    }
    /// Loss events after these numbers of packets, oldest first; also returns the number of the last event's packet.
    fn history(intervals: &[u64], discounting: bool) -> (LossIntervals, u64) {
        let mut l = LossIntervals::new();
        let mut at = 1_000;
        for (k, &n) in intervals.iter().enumerate() {
            at += if k == 0 { 0 } else { n };
            l.on_event(at, (k == 0).then_some(n as f64), discounting);
        }
        (l, at)
    }

    #[test]
    fn no_event_no_rate() {
        assert_eq!(LossIntervals::new().loss_event_rate(5_000, true), 0.0);
    }

    #[test]
    fn the_first_interval_is_the_one_given() {
        let (l, at) = history(&[100], false);
        near(l.loss_event_rate(at, false), 0.01);
        near(l.loss_event_rate(at + 99, false), 0.01);
        // One interval only: k = 1, and I_0 replaces it once it is longer.
        near(l.loss_event_rate(at + 199, false), 0.005);
    }

    #[test]
    fn eight_intervals_are_weighted() {
        let (l, at) = history(&[1_000, 10, 20, 30, 40, 50, 60, 70, 80], false);
        // 80 + 70 + 60 + 50 + 0.8 * 40 + 0.6 * 30 + 0.4 * 20 + 0.2 * 10 = 320 over 6; the 1,000 have dropped out.
        near(l.loss_event_rate(at, false), 6.0 / 320.0);
        // With I_0 = 200 first: 200 + 80 + 70 + 60 + 0.8 * 50 + 0.6 * 40 + 0.4 * 30 + 0.2 * 20 = 490.
        near(l.loss_event_rate(at + 199, false), 6.0 / 490.0);
    }

    #[test]
    fn a_long_open_interval_discounts_the_others() {
        let (l, at) = history(&[50; 9], true);
        near(l.loss_event_rate(at + 99, true), 6.0 / (100.0 + 5.0 * 50.0));
        // I_0 = 200 > 2 * 50: DF = 0.5, so weights 1 + 0.5 * 5 over 200 + 0.5 * 250.
        near(l.loss_event_rate(at + 199, true), 3.5 / 325.0);
        // DF = 100 / 1,000 is limited to 0.25.
        near(l.loss_event_rate(at + 999, true), 2.25 / 1_062.5);
        near(l.loss_event_rate(at + 199, false), 6.0 / 450.0);
    }

    #[test]
    fn a_discount_stays_with_the_intervals_that_it_met() {
        let (mut l, at) = history(&[50; 9], true);
        l.on_event(at + 200, None, true);
        // I_1 = 200 in full, I_2 to I_8 = 50 by half: 200 + 0.5 * 50 * 5 over 1 + 0.5 * 5.
        near(l.loss_event_rate(at + 200, true), 3.5 / 325.0);
        l.on_event(at + 250, None, true);
        // 50 + 200 + 0.5 * 50 * (1 + 1 + 0.8 + 0.6 + 0.4 + 0.2) over 2 + 0.5 * 4.
        near(l.loss_event_rate(at + 250, true), 4.0 / 350.0);
    }

    #[test]
    fn the_rate_is_at_most_one() {
        let (l, at) = history(&[1; 9], true);
        assert_eq!(l.loss_event_rate(at, true), 1.0);
        let (l, _) = history(&[1; 9], true);
        assert_eq!(l.loss_event_rate(0, true), 1.0);
    }
}
