//! X_recv and the set of its recent values (RFC 5348, sections 4.3, 6.2 and 8.2.2).

use weir_units::{DataRate, DataSize, RemoteTimestamp, TimeDelta, Timestamp};

/// Number of checkpoints of received bytes.
const CHECKPOINTS: usize = 32;
/// Checkpoints per measurement span.
const PER_SPAN: i64 = 8;
/// An arrival this much before another shows that the receiver's clock was set back: measurement restarts. 3 s, libwebrtc's
/// `kArrivalTimeOffsetThreshold`.
pub(crate) const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(3);
/// N: most values in X_recv_set (RFC 5348, section 8.2.2).
const SET: usize = 3;

#[derive(Clone, Copy, Debug, Default)]
struct Checkpoint {
    at: RemoteTimestamp,
    /// Bytes received until then.
    bytes: u64,
}

/// Measures the receive rate by the receiver's clock, over the last round-trip time or longer if feedback is less
/// frequent.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveRate {
    ring: [Checkpoint; CHECKPOINTS],
    count: u64,
    now: Checkpoint,
}

impl ReceiveRate {
    pub(crate) fn new() -> Self {
        Self { ring: [Checkpoint::default(); CHECKPOINTS], count: 0, now: Checkpoint::default() }
    }

    pub(crate) fn on_arrival(&mut self, at: RemoteTimestamp, size: DataSize, span: TimeDelta) {
        if self.count == 0 || self.now.at - at > CLOCK_JUMP {
            self.count = 0;
            self.now.at = at;
            self.mark();
        }
        self.now.at = self.now.at.max(at);
        self.now.bytes = self.now.bytes.saturating_add(size.as_bytes());
        if self.now.at - self.last().at >= span / PER_SPAN {
            self.mark();
        }
    }

    fn mark(&mut self) {
        self.ring[self.count as usize % CHECKPOINTS] = self.now;
        self.count += 1;
    }

    fn last(&self) -> Checkpoint {
        self.ring[(self.count - 1) as usize % CHECKPOINTS]
    }

    /// X_recv, measured back to the latest checkpoint at least `span` old, or the oldest.
    pub(crate) fn get(&self, span: TimeDelta) -> DataRate {
        let kept = self.count.min(CHECKPOINTS as u64);
        let mut from = self.now;
        for n in 1..=kept {
            from = self.ring[(self.count - n) as usize % CHECKPOINTS];
            if self.now.at - from.at >= span {
                break;
            }
        }
        let time = (self.now.at - from.at).max(span);
        let bytes = DataSize::from_bytes(self.now.bytes - from.bytes);
        DataRate::from_size_over(bytes, time).unwrap_or(DataRate::ZERO)
    }
}

/// X_recv_set. Rates in bit/s; initially infinite.
#[derive(Clone, Debug)]
pub struct ReceiveRateSet {
    values: [(f64, Timestamp); SET],
    count: usize,
}

impl ReceiveRateSet {
    /// The initial set: one infinite value.
    pub fn new(now: Timestamp) -> Self {
        Self { values: [(f64::INFINITY, now); SET], count: 1 }
    }

    /// The greatest value.
    pub fn max(&self) -> f64 {
        self.values[..self.count].iter().fold(0.0, |m, v| f64::max(m, v.0))
    }

    /// Replace X_recv_set by one value.
    pub fn replace(&mut self, value: f64, now: Timestamp) {
        (self.values[0], self.count) = ((value, now), 1);
    }

    /// Halve entries in X_recv_set.
    pub fn halve(&mut self) {
        self.values[..self.count].iter_mut().for_each(|v| v.0 /= 2.0);
    }

    /// Maximize X_recv_set(): one value, the greatest of all finite ones and the new.
    pub fn maximize(&mut self, value: f64, now: Timestamp) {
        let finite = self.values[..self.count].iter().filter(|v| v.0.is_finite());
        let greatest = finite.fold(value, |m, v| f64::max(m, v.0));
        self.replace(greatest, now);
    }

    /// Update X_recv_set(): the values of the last two round-trip times, at most three.
    pub fn update(&mut self, value: f64, now: Timestamp, rtt: TimeDelta) {
        let mut kept = [(0.0, now); SET];
        let mut n = 1;
        kept[0] = (value, now);
        for &v in &self.values[..self.count.min(SET - 1)] {
            if now - v.1 <= rtt * 2 {
                kept[n] = v;
                n += 1;
            }
        }
        (self.values, self.count) = (kept, n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(80);

    fn arrivals(r: &mut ReceiveRate, ms: core::ops::Range<i64>, step: usize) {
        for at in ms.step_by(step) {
            r.on_arrival(RemoteTimestamp::from_millis(at), DataSize::from_bytes(1_000), RTT);
        }
    }

    #[test]
    fn the_rate_is_that_of_the_last_round_trip() {
        let mut r = ReceiveRate::new();
        assert_eq!(r.get(RTT), DataRate::ZERO);
        arrivals(&mut r, 5_000..5_001, 1);
        // At least one packet per round-trip time, and no more for the first of them.
        assert_eq!(r.get(RTT), DataRate::from_kbps(100));
        arrivals(&mut r, 5_010..6_000, 10);
        assert_eq!(r.get(RTT), DataRate::from_kbps(800));
        arrivals(&mut r, 6_000..6_100, 5);
        assert_eq!(r.get(RTT), DataRate::from_kbps(1_600));
        arrivals(&mut r, 7_000..7_001, 1);
        // 905 ms of silence before it.
        assert!(r.get(RTT) < DataRate::from_kbps(20));
    }

    #[test]
    fn a_clock_set_back_does_not_stop_the_time() {
        let mut r = ReceiveRate::new();
        arrivals(&mut r, 700_000..702_000, 10);
        // Ten minutes back; an overtaken packet is no step.
        arrivals(&mut r, 102_000..104_000, 10);
        arrivals(&mut r, 103_000..103_001, 1);
        let rate = r.get(RTT).as_kbps_f64();
        assert!((790.0..=1_000.0).contains(&rate), "{rate}");
    }

    #[test]
    fn the_set_keeps_two_round_trips() {
        let at = Timestamp::from_millis;
        let mut s = ReceiveRateSet::new(at(0));
        s.update(100.0, at(80), RTT);
        assert_eq!(s.max(), f64::INFINITY, "the initial value holds for two round-trip times");
        s.update(200.0, at(160), RTT);
        s.update(150.0, at(161), RTT);
        assert_eq!(s.max(), 200.0);
        s.update(50.0, at(320), RTT);
        assert_eq!(s.max(), 200.0);
        s.update(40.0, at(322), RTT);
        assert_eq!(s.max(), 50.0);
        s.halve();
        assert_eq!(s.max(), 25.0);
    }

    #[test]
    fn maximising_keeps_the_greatest_and_drops_infinity() {
        let at = Timestamp::from_millis;
        let mut s = ReceiveRateSet::new(at(0));
        s.maximize(100.0, at(0));
        assert_eq!(s.max(), 100.0);
        s.maximize(60.0, at(1_000));
        assert_eq!(s.max(), 100.0);
        // The greatest value has the time of the last call.
        s.update(1.0, at(1_160), RTT);
        assert_eq!(s.max(), 100.0);
        s.replace(7.0, at(1_200));
        assert_eq!(s.max(), 7.0);
    }
}
