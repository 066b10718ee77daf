//! The actual rate of a codec.

use crate::Frame;
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

const WINDOW: TimeDelta = TimeDelta::from_secs(1);

/// The rate of the frames of the last second.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateMeter {
    began: Option<Timestamp>,
    given: VecDeque<(Timestamp, DataSize)>,
}

impl RateMeter {
    pub(crate) fn add(&mut self, frame: &Frame) {
        self.began.get_or_insert(frame.captured);
        self.given.push_back((frame.captured, frame.size));
        while self.given.front().is_some_and(|f| frame.captured - f.0 >= WINDOW) {
            self.given.pop_front();
        }
    }

    /// Over the last second, or since the start.
    pub(crate) fn rate(&self, now: Timestamp, frame_interval: TimeDelta) -> DataRate {
        let recent = self.given.iter().filter(|f| now - f.0 <= WINDOW).map(|f| f.1).sum();
        // A frame covers the interval after it: a current frame counts in proportion.
        let span = self.began.map_or(WINDOW, |t| (now - t + frame_interval).min(WINDOW));
        DataRate::from_size_over(recent, span).unwrap_or(DataRate::ZERO)
    }
}
