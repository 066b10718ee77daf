use weir_units::{DataSize, TimeDelta, Timestamp};

/// Number of frame intervals averaged to detect a stall (W3C webrtc-stats, `freezeCount`: 30).
const AVERAGED: usize = 30;
/// Least number of intervals to detect a stall (libwebrtc, as of 2024: 5).
const LEAST_KNOWN: usize = 5;
/// Least excess of a stall over the mean interval (W3C webrtc-stats, `freezeCount`: 150 ms).
const LEAST_EXCESS: TimeDelta = TimeDelta::from_millis(150);

/// Statistics of playout.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct PlayoutStats {
    /// Packets received, without duplicates.
    pub packets: u64,
    /// Their payload bytes.
    pub size: DataSize,
    /// Packets from the lowest to the highest sequence number, without received padding-only ones.
    pub expected: u64,
    /// Duplicate packets.
    pub duplicates: u64,
    /// Packets rejected: older than those remembered, or with an implausible timestamp.
    pub unusable: u64,
    /// Packets received after their frame's deadline; they also count as received.
    pub discarded: u64,
    /// Their payload bytes.
    pub discarded_size: DataSize,
    /// Frames complete at their deadline.
    pub played: u64,
    /// Their payload bytes.
    pub played_size: DataSize,
    /// Frames complete only after it.
    pub late: u64,
    /// Frames received in part only.
    pub incomplete: u64,
    /// Delay from capture to the last packet's arrival, over the frames played.
    pub delay: DelayStats,
    /// Stalls: a frame is played at least max(3 d, d + 150 ms) after the previous one, d being the mean of the last 30
    /// such intervals (`freezeCount` of W3C webrtc-stats). A stall in progress is not counted.
    pub stalls: u64,
    /// Sum of those intervals (`totalFreezesDuration`).
    pub stall_time: TimeDelta,
    /// When the last frame was played.
    pub last_played: Option<Timestamp>,
}

impl PlayoutStats {
    /// Packets that have not arrived.
    pub fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.packets)
    }
    pub(super) fn count_missed(&mut self, whole: bool) {
        self.late += u64::from(whole);
        self.incomplete += u64::from(!whole);
    }
}

/// Moments of a delay.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct DelayStats {
    count: u64,
    sum_ms: f64,
    square_ms: f64,
    max: TimeDelta,
}

impl DelayStats {
    pub(crate) fn add(&mut self, delay: TimeDelta) {
        let ms = delay.as_millis_f64();
        self.count += 1;
        self.sum_ms += ms;
        self.square_ms += ms * ms;
        self.max = self.max.max(delay);
    }
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// The mean, or `None` without values.
    pub fn mean(&self) -> Option<TimeDelta> {
        (self.count > 0).then(|| TimeDelta::from_millis_f64(self.sum_ms / self.count as f64))
    }
    /// The standard deviation, or `None` without values.
    pub fn deviation(&self) -> Option<TimeDelta> {
        let n = self.count as f64;
        let variance = self.square_ms / n - (self.sum_ms / n) * (self.sum_ms / n);
        (self.count > 0).then(|| TimeDelta::from_millis_f64(libm::sqrt(variance.max(0.0))))
    }
    /// The largest.
    pub fn max(&self) -> Option<TimeDelta> {
        (self.count > 0).then_some(self.max)
    }
}

/// Detects stalls in the playout times of frames.
#[derive(Clone, Debug)]
pub(super) struct Stalls {
    intervals: [TimeDelta; AVERAGED],
    known: usize,
    next: usize,
    sum: TimeDelta,
    last: Option<Timestamp>,
    count: u64,
    time: TimeDelta,
}

impl Default for Stalls {
    fn default() -> Self {
        Self {
            intervals: [TimeDelta::ZERO; AVERAGED],
            known: 0,
            next: 0,
            sum: TimeDelta::ZERO,
            last: None,
            count: 0,
            time: TimeDelta::ZERO,
        }
    }
}

impl Stalls {
    pub(super) fn on_played(&mut self, at: Timestamp) {
        if let Some(last) = self.last {
            let interval = at.saturating_since(last);
            if self.known >= LEAST_KNOWN {
                // Both sides are multiplied by the number of intervals, which saves a division.
                let known = self.known as i64;
                if interval * known >= (self.sum * 3).max(self.sum + LEAST_EXCESS * known) {
                    self.count += 1;
                    self.time += interval;
                }
            }
            self.sum += interval - self.intervals[self.next];
            self.intervals[self.next] = interval;
            self.next = (self.next + 1) % AVERAGED;
            self.known = (self.known + 1).min(AVERAGED);
        }
        self.last = Some(at);
    }

    pub(super) fn read(&self) -> (u64, TimeDelta, Option<Timestamp>) {
        (self.count, self.time, self.last)
    }
}
