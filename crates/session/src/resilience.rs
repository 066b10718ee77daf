//! Error resilience beside the controller: what it takes of the rate.

use weir_units::{DataRate, TimeDelta, Timestamp};

/// Time over which one share is taken.
const WINDOW: TimeDelta = TimeDelta::from_millis(200);
/// Weight of a new share: a mean over about a second.
const WEIGHT: f64 = 0.25;
/// Least change of the share that the source is told, so that it is not asked anew for nothing.
const STEP: f64 = 0.01;
/// Most that resilience takes of the rate.
const MOST: f64 = 0.5;

/// The share of what is sent that goes to error resilience, and for which media makes room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    since: Timestamp,
    media: u64,
    extra: u64,
    mean: f64,
    /// The share that the source was told.
    told: f64,
}

impl Room {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { since: now, media: 0, extra: 0, mean: 0.0, told: 0.0 }
    }

    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u64, is_extra: bool) {
        *if is_extra { &mut self.extra } else { &mut self.media } += bytes;
    }

    /// Whether the source is to be told another rate.
    pub(crate) fn update(&mut self, now: Timestamp) -> bool {
        if now - self.since < WINDOW || self.media + self.extra == 0 {
            return false;
        }
        let share = self.extra as f64 / (self.media + self.extra) as f64;
        self.mean += WEIGHT * (share - self.mean);
        (self.since, self.media, self.extra) = (now, 0, 0);
        let changed = (self.mean - self.told).abs() > STEP;
        if changed {
            self.told = self.mean.min(MOST);
        }
        changed
    }

    /// What is left for media.
    pub(crate) fn within(&self, rate: DataRate) -> DataRate {
        DataRate::from_bps_f64(rate.as_bps_f64() * (1.0 - self.told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_makes_room_for_what_is_sent_beside_it_and_takes_it_back() {
        let rate = DataRate::from_mbps(1);
        let mut room = Room::new(Timestamp::ZERO);
        let mut run = |from: i64, to: i64, extra: u64| {
            for t in from..to {
                room.on_sent(800, false);
                room.on_sent(extra, true);
                room.update(Timestamp::from_millis(t * 10));
            }
            room.within(rate).as_kbps_f64()
        };
        assert_eq!(run(0, 500, 0), 1_000.0);
        // A fifth of what is sent.
        let left = run(500, 1_000, 200);
        assert!((790.0..815.0).contains(&left), "{left}");
        let left = run(1_000, 1_500, 0);
        assert!((985.0..=1_000.0).contains(&left), "{left}");
        assert_eq!(run(1_500, 2_000, 90_000), 500.0);
    }
}
