//! Selects the layers of a stream that are sent, by its share of the target.

use crate::{LayerId, LayerRates, Layering};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// A layer is added again only once the target exceeds its requirement by this factor for this time: libwebrtc's
/// `kDefaultVideoHysteresisFactor`, 1.2 (rtc_base/experiments/rate_control_settings, 2024), and the hold of the
/// allocation of a target to streams.
const MARGIN: f64 = 1.2;
const HOLD: TimeDelta = TimeDelta::from_secs(1);

/// Least and greatest useful rate of video of this size: those of the largest of libwebrtc's simulcast encodings
/// (video/config/simulcast.cc, `kSimulcastFormatsVP8`, 2024) with at most as many pixels.
pub fn useful_rates(width: u32, height: u32) -> (DataRate, DataRate) {
    const KBPS: [(u64, u64, u64); 6] = [
        (1_920 * 1_080, 800, 5_000),
        (1_280 * 720, 600, 2_500),
        (960 * 540, 350, 1_200),
        (640 * 360, 150, 700),
        (480 * 270, 150, 450),
        (0, 30, 200),
    ];
    let pixels = u64::from(width) * u64::from(height);
    let row = KBPS.iter().find(|r| pixels >= r.0).unwrap_or(&KBPS[5]);
    (DataRate::from_kbps(row.1), DataRate::from_kbps(row.2))
}

/// The layers of a stream that are sent: as the target falls, the upper spatial ones are dropped first, then the upper
/// temporal ones of the base. A layer is dropped at once, and added again with hysteresis. The remaining layers get the
/// whole target.
///
/// The spatial layers up to one require the sum of the least [`useful_rates`] of their sizes. Temporal layers require
/// their share ([`Layering::share_out`]) of the base's rate: below it, picture quality would suffer more than smooth
/// motion gains.
#[derive(Clone, Debug)]
pub struct LayerSelection {
    /// The choices, base layer first, and the least target for each.
    steps: Vec<(LayerId, DataRate)>,
    /// Index of the current choice.
    at: usize,
    /// Since when the next one has fitted with the margin.
    fits_since: Option<Timestamp>,
}

impl LayerSelection {
    /// All layers of a stream whose top layer has this size.
    pub fn new(layering: Layering, (width, height): (u32, u32)) -> Self {
        let base = layering.size_of(0, width, height);
        let base = useful_rates(base.0, base.1).0;
        let temporal = layering.temporal() - 1;
        let shares = Layering::new(1, layering.temporal()).unwrap_or_default().share_out(base);
        // The base layer is always sent.
        let mut steps: Vec<_> =
            (0..=temporal).map(|t| (LayerId::new(0, t), shares.up_to(LayerId::new(0, t)))).collect();
        let mut sum = base;
        for s in 1..layering.spatial() {
            let size = layering.size_of(s, width, height);
            sum += useful_rates(size.0, size.1).0;
            steps.push((LayerId::new(s, temporal), sum));
        }
        let at = steps.len() - 1;
        Self { steps, at, fits_since: None }
    }

    /// The highest layer that is sent.
    pub fn top(&self) -> LayerId {
        self.steps[self.at].0
    }
    /// The requirement of the base layer alone.
    pub fn least(&self) -> DataRate {
        self.steps[0].1
    }
    /// The target split over the layers that are sent.
    pub fn share_out(&self, target: DataRate) -> LayerRates {
        let top = self.top();
        Layering::new(top.spatial + 1, top.temporal + 1).unwrap_or_default().share_out(target)
    }

    /// Applies the target; returns whether the layers have changed. A target of zero is a pause and changes nothing.
    pub fn follow(&mut self, target: DataRate, now: Timestamp) -> bool {
        let before = self.at;
        if target == DataRate::ZERO {
            self.fits_since = None;
            return false;
        }
        while self.at > 0 && target < self.steps[self.at].1 {
            self.at -= 1;
            self.fits_since = None;
        }
        let fits =
            self.steps.get(self.at + 1).is_some_and(|(_, need)| target.as_bps_f64() >= need.as_bps_f64() * MARGIN);
        match self.fits_since.filter(|_| fits && self.at == before) {
            Some(since) if now.saturating_since(since) >= HOLD => {
                // One step per hold.
                self.at += 1;
                self.fits_since = None;
            }
            Some(_) => {}
            None => self.fits_since = fits.then_some(now),
        }
        self.at != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(n: u64) -> DataRate {
        DataRate::from_kbps(n)
    }

    #[test]
    fn larger_pictures_ask_for_more() {
        let of = |w, h| {
            let (least, most) = useful_rates(w, h);
            (least.as_kbps_f64() as u64, most.as_kbps_f64() as u64)
        };
        assert_eq!([of(160, 120), of(320, 240), of(640, 480)], [(30, 200), (30, 200), (150, 700)]);
        assert_eq!([of(1_280, 720), of(4_096, 4_096)], [(600, 2_500), (800, 5_000)]);
    }

    #[test]
    fn spatial_layers_go_first_then_temporal_ones() {
        let mut s = LayerSelection::new(Layering::new(2, 3).unwrap(), (640, 480));
        let at = Timestamp::from_millis;
        assert_eq!((s.top(), s.least()), (LayerId::new(1, 2), kbps(12)));
        // 320x240 requires 30 kbit/s, of which 40 and 60 % are its lower temporal layers; 640x480 requires 150 more.
        for (target, top, changes) in [
            (180, LayerId::new(1, 2), false),
            (179, LayerId::new(0, 2), true),
            (29, LayerId::new(0, 1), true),
            (17, LayerId::new(0, 0), true),
            (1, LayerId::new(0, 0), false),
        ] {
            assert_eq!((s.follow(kbps(target), at(0)), s.top()), (changes, top), "{target}");
        }
        assert_eq!(s.share_out(kbps(10)).get(LayerId::BASE), kbps(10));
    }

    #[test]
    fn layers_come_back_one_by_one_with_room_and_time() {
        let mut s = LayerSelection::new(Layering::new(2, 2).unwrap(), (640, 480));
        let at = Timestamp::from_millis;
        assert!(s.follow(kbps(10), at(0)));
        assert_eq!(s.top(), LayerId::new(0, 0));
        // 30 kbit/s is required, and a fifth more to add it again.
        assert!((1..=20).all(|n| !s.follow(kbps(35), at(n * 100))));
        assert!((20..30).all(|n| !s.follow(kbps(300), at(n * 100))));
        assert!(s.follow(kbps(300), at(3_000)));
        assert_eq!(s.top(), LayerId::new(0, 1));
        // A dip in between restarts the hold, as a pause does.
        assert!(!s.follow(kbps(300), at(3_100)) && !s.follow(kbps(200), at(3_900)) && !s.follow(kbps(300), at(4_000)));
        assert!(!s.follow(kbps(300), at(4_900)) && !s.follow(DataRate::ZERO, at(4_950)));
        assert!(!s.follow(kbps(300), at(5_000)) && !s.follow(kbps(300), at(5_900)) && s.follow(kbps(300), at(6_000)));
        assert_eq!(s.top(), LayerId::new(1, 1));
        let rates = s.share_out(kbps(300));
        assert_eq!(rates.total(), kbps(300));
        assert!((1..50).all(|n| !s.follow(kbps(181), at(6_000 + n * 100))));
    }
}
