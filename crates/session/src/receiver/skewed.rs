//! Playout by the skew of a call's paths.

use crate::multipath::{SkewPlayout, SkewPlayoutConfig};
use weir_media::{AdaptivePlayout, Playout};
use weir_units::{PathId, TimeDelta, Timestamp};

/// A timestamp further than this from the first and the time since is not measured, and this many in succession are a
/// new stream: as in playout itself.
const PLAUSIBLE: TimeDelta = TimeDelta::from_secs(10);
const NEW_STREAM: u32 = 100;

/// Skews of the paths by a stream's packets.
#[derive(Debug)]
pub(crate) struct Skewed {
    pub config: SkewPlayoutConfig,
    clock_rate: u32,
    skew: SkewPlayout,
    /// The last RTP timestamp, as received and as time since the first.
    last: Option<(u32, i64)>,
    /// Arrival of the first packet.
    first: Timestamp,
    unbelieved: u32,
}

impl Skewed {
    pub(super) fn new(config: SkewPlayoutConfig, clock_rate: u32) -> Self {
        Self {
            config,
            clock_rate: clock_rate.max(1),
            skew: SkewPlayout::default(),
            last: None,
            first: Timestamp::ZERO,
            unbelieved: 0,
        }
    }

    /// Playout with the delay that skews have.
    pub(super) fn playout(&self) -> Playout {
        let SkewPlayoutConfig { margin, max, patience } = self.config;
        Playout::steered(AdaptivePlayout { min: margin, max, patience })
    }

    /// Skews are measured again, from the next packet.
    pub(super) fn restart(&mut self) {
        (self.skew, self.last, self.unbelieved) = (SkewPlayout::default(), None, 0);
    }

    /// A packet has arrived; returns the playout delay.
    pub(super) fn on_packet(&mut self, path: PathId, rtp_timestamp: u32, now: Timestamp) -> TimeDelta {
        let (before, ticks) = self.last.unwrap_or((rtp_timestamp, 0));
        if self.last.is_none() {
            self.first = now;
        }
        let ticks = ticks.saturating_add(i64::from(rtp_timestamp.wrapping_sub(before) as i32));
        let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(self.clock_rate);
        let media = TimeDelta::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        if ((now - self.first) - media).abs() <= PLAUSIBLE {
            (self.last, self.unbelieved) = (Some((rtp_timestamp, ticks)), 0);
            self.skew.on_packet(path, now, Timestamp::ZERO + media);
        } else {
            self.unbelieved += 1;
            if self.unbelieved >= NEW_STREAM {
                self.restart();
            }
        }
        self.skew.delay() + self.config.margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PathId = PathId::FIRST;
    const MARGIN: TimeDelta = TimeDelta::from_millis(40);

    fn skewed() -> Skewed {
        Skewed::new(SkewPlayoutConfig { margin: MARGIN, max: TimeDelta::from_millis(400), patience: None }, 90_000)
    }

    #[test]
    fn forged_timestamps_move_nothing_and_a_new_stream_is_measured_again() {
        let mut s = skewed();
        let at = |i: u32| Timestamp::from_millis(i64::from(i) * 10);
        for i in 0..500u32 {
            // The timestamps wrap.
            s.on_packet(A, (i * 900).wrapping_sub(90_000), at(i));
            if i % 10 == 5 {
                assert!(s.on_packet(A, (i * 900).wrapping_add(0x7000_0000), at(i)) <= MARGIN);
                assert!(s.on_packet(A, (i * 900).wrapping_sub(0x7000_0000), at(i)) <= MARGIN);
            }
        }
        // From here on all are 8 h earlier.
        let old = |i: u32| (i * 900).wrapping_sub(0x9a00_0000);
        let delays: Vec<_> = (500..700).map(|i| s.on_packet(A, old(i), at(i))).collect();
        assert!(delays.iter().all(|d| *d == MARGIN), "{delays:?}");
        // And one that is 100 ms later from then on raises the delay.
        let last = (700..2_000).map(|i| s.on_packet(A, old(i), at(i + 10))).last();
        assert!(last.is_some_and(|d| d > MARGIN + TimeDelta::from_millis(95)), "{last:?}");
    }
}
