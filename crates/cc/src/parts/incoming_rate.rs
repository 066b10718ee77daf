//! Incoming rate at a receiver (R_hat of draft-ietf-rmcat-gcc-02, section 5.5), or from an encoder.

use weir_units::{DataSize, TimeDelta, Timestamp};

const BUCKETS: usize = 128;
/// Upper bound of a packet's size; larger ones are forged.
const MAX_PACKET: u64 = 1 << 16;

/// Bytes of the last window, in buckets of a 128th of it.
#[derive(Clone, Debug)]
pub(crate) struct IncomingRate {
    bytes: [u64; BUCKETS],
    /// Sum of all buckets.
    total: u64,
    bucket: TimeDelta,
    /// Number of the newest bucket, counted from zero of the clock.
    newest: i64,
    /// End of the newest bucket.
    newest_end: Timestamp,
    first: Option<Timestamp>,
}

impl IncomingRate {
    pub(crate) fn new(window: TimeDelta) -> Self {
        let bucket = (window / BUCKETS as i64).max(TimeDelta::from_nanos(1));
        Self { bytes: [0; BUCKETS], total: 0, bucket, newest: 0, newest_end: Timestamp::ZERO + bucket, first: None }
    }

    fn advance(&mut self, now: Timestamp) {
        if now < self.newest_end {
            return;
        }
        let number = now.as_nanos().div_euclid(self.bucket.as_nanos());
        if number - self.newest >= BUCKETS as i64 {
            (self.bytes, self.total) = ([0; BUCKETS], 0);
            self.first = None;
            self.newest = number;
        }
        while self.newest < number {
            self.newest += 1;
            let i = self.index();
            self.total -= core::mem::take(&mut self.bytes[i]);
        }
        self.newest_end = Timestamp::ZERO + self.bucket * self.newest.saturating_add(1);
    }

    fn index(&self) -> usize {
        self.newest.rem_euclid(BUCKETS as i64) as usize
    }

    /// Counts a packet.
    pub(crate) fn on_packet(&mut self, size: DataSize, now: Timestamp) {
        self.on_bytes(size.min(DataSize::from_bytes(MAX_PACKET)), now);
    }

    /// Counts locally produced bytes, up to 4 GiB at a time.
    pub(crate) fn on_bytes(&mut self, size: DataSize, now: Timestamp) {
        self.advance(now);
        self.first.get_or_insert(now);
        let i = self.index();
        let bytes = size.as_bytes().min(u64::from(u32::MAX));
        self.bytes[i] += bytes;
        self.total += bytes;
    }

    /// R_hat in bit/s; `None` until an eighth of a window has passed since a silence.
    pub(crate) fn bps(&mut self, now: Timestamp) -> Option<f64> {
        self.advance(now);
        let window = self.bucket * BUCKETS as i64;
        let span = now.saturating_since(self.first?).min(window);
        if span < window / 8 {
            return None;
        }
        // The newest bucket is only partly covered.
        let span = if span < window {
            span
        } else {
            window - self.bucket + (now - (Timestamp::ZERO + self.bucket * self.newest))
        };
        Some(self.total as f64 * 8.0 / span.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_over_the_window() {
        let mut r = IncomingRate::new(TimeDelta::from_secs(1));
        let at = Timestamp::from_millis;
        let kilobyte = DataSize::from_bytes(1_000);
        assert_eq!(r.bps(at(0)), None);
        r.on_packet(kilobyte, at(5_000));
        assert_eq!(r.bps(at(5_100)), None);
        (1..2_000).for_each(|k| r.on_packet(kilobyte, at(5_000 + 4 * k)));
        let bps = r.bps(at(12_996)).expect("a window");
        assert!((1.98e6..=2.02e6).contains(&bps), "{bps}");
        // Half of the window is silence.
        let bps = r.bps(at(13_496)).expect("a window");
        assert!((0.98e6..=1.02e6).contains(&bps), "{bps}");
        assert_eq!(r.bps(at(20_000)), None);
        r.on_packet(DataSize::from_bytes(u64::MAX), at(20_000));
        r.on_packet(kilobyte, at(20_500));
        assert!(r.bps(at(20_500)).expect("half a window").is_finite());
    }
}
