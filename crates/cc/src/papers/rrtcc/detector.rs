//! The over-use detector with its fixed threshold (section 3.4).

use super::config::Config;
use super::rate_control::Region;
use crate::parts::receiver_estimate::OveruseSignal;
use weir_units::Timestamp;

/// Compares the filtered delay variation with gamma_1.
#[derive(Clone, Debug)]
pub(super) struct Detector {
    previous: f64,
    above_since: Option<Timestamp>,
    above_frames: u32,
    signal: OveruseSignal,
}

impl Detector {
    pub(super) fn new() -> Self {
        Self { previous: 0.0, above_since: None, above_frames: 0, signal: OveruseSignal::Normal }
    }

    pub(super) fn signal(&self) -> OveruseSignal {
        self.signal
    }

    /// gamma_1 in ms, by region.
    pub(super) fn threshold(region: Region, config: &Config) -> f64 {
        let share = if region == Region::MaxUnknown { 1.0 } else { config.near_threshold };
        share * config.threshold.as_millis_f64()
    }

    /// Takes the offset in ms after the frame that arrived by `now`.
    pub(super) fn update(&mut self, offset: f64, region: Region, now: Timestamp, config: &Config) {
        let threshold = Self::threshold(region, config);
        if offset > threshold {
            let since = *self.above_since.get_or_insert(now);
            self.above_frames = self.above_frames.saturating_add(1);
            let lasted = now - since >= config.overuse_time && self.above_frames >= config.overuse_frames;
            if lasted && offset >= self.previous {
                self.signal = OveruseSignal::Overuse;
            }
        } else {
            (self.above_since, self.above_frames) = (None, 0);
            self.signal = if offset < -threshold { OveruseSignal::Underuse } else { OveruseSignal::Normal };
        }
        self.previous = offset;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(offsets: &[f64], spacing_ms: i64, region: Region) -> Vec<OveruseSignal> {
        // Share of libwebrtc.
        let (c, mut d) = (Config { near_threshold: 0.5, ..Config::default() }, Detector::new());
        let one = |(k, &o): (usize, &f64)| {
            d.update(o, region, Timestamp::from_millis(spacing_ms * k as i64), &c);
            d.signal()
        };
        offsets.iter().enumerate().map(one).collect()
    }

    #[test]
    fn over_use_must_last_and_not_fall() {
        use OveruseSignal::{Normal, Overuse, Underuse};
        let unknown = Region::MaxUnknown;
        assert_eq!(run(&[26.0, 27.0, 28.0, 24.0], 50, unknown), [Normal, Normal, Overuse, Normal]);
        // Two frames at least, and no decision on a falling offset.
        assert_eq!(run(&[24.0, 26.0, 26.0], 200, unknown), [Normal, Normal, Overuse]);
        assert_eq!(run(&[26.0, 30.0, 29.0, 29.0], 50, unknown), [Normal, Normal, Normal, Overuse]);
        assert_eq!(run(&[26.0, 20.0, 26.0, 26.0], 60, unknown), [Normal; 4]);
        assert_eq!(run(&[-24.0, -26.0, -24.0], 50, unknown), [Normal, Underuse, Normal]);
    }

    #[test]
    fn the_threshold_may_be_less_near_the_maximum_and_never_adapts() {
        let offsets = [13.0; 100];
        assert_eq!(run(&offsets, 50, Region::NearMax)[99], OveruseSignal::Overuse);
        assert_eq!(run(&offsets, 50, Region::AboveMax)[99], OveruseSignal::Overuse);
        assert_eq!(run(&offsets, 50, Region::MaxUnknown), [OveruseSignal::Normal; 100]);
        assert_eq!(run(&[12.0; 100], 50, Region::NearMax), [OveruseSignal::Normal; 100]);
    }
}
