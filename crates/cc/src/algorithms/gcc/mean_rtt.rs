//! The round-trip time by which the rate is controlled.

use weir_units::TimeDelta;

/// Number of round-trip times averaged (libwebrtc, as of 2025: `kMaxFeedbackRttWindow`).
const RTT_WINDOW: usize = 32;

/// Mean of the last round-trip times.
#[derive(Clone, Debug)]
pub(super) struct MeanRtt {
    samples: [TimeDelta; RTT_WINDOW],
    next: usize,
    count: usize,
    sum: TimeDelta,
    last: TimeDelta,
}

impl MeanRtt {
    pub(super) fn new() -> Self {
        let z = TimeDelta::ZERO;
        Self { samples: [z; RTT_WINDOW], next: 0, count: 0, sum: z, last: z }
    }
    pub(super) fn add(&mut self, rtt: TimeDelta) {
        // An upper bound above any path's keeps the sum exact.
        let rtt = rtt.clamp(TimeDelta::ZERO, TimeDelta::from_secs(600));
        self.last = rtt;
        self.sum += rtt - self.samples[self.next];
        self.samples[self.next] = rtt;
        self.next = (self.next + 1) % RTT_WINDOW;
        self.count = (self.count + 1).min(RTT_WINDOW);
    }
    /// The last sample; zero before the first.
    pub(super) fn last(&self) -> TimeDelta {
        self.last
    }
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
    pub(super) fn mean(&self) -> TimeDelta {
        self.sum / self.count.max(1) as i64
    }
}
