//! The bound on frames by losses and marks (*AIMD Logic Implementation*).

use super::config::Config;
use crate::parts::sent_frames::Frame;
use weir_units::Timestamp;

/// Weight of a frame's share of marks in the mean: Prague's.
const MARK_WEIGHT: f64 = 1.0 / 16.0;

/// CSIZE and what it depends on. Sizes are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    /// CSIZE; the greatest size before the first decrease.
    size: f64,
    /// Mean share of packets marked.
    marked: f64,
    lost_at: Option<Timestamp>,
    marked_at: Option<Timestamp>,
}

impl Congestion {
    /// Starts at the greatest size of a frame, MAX_TARGET.
    pub(super) fn new(greatest: f64) -> Self {
        Self { size: greatest, marked: 1.0, lost_at: None, marked_at: None }
    }

    /// The application has changed the greatest size.
    pub(super) fn on_greatest(&mut self, greatest: f64) {
        if self.lost_at.is_none() && self.marked_at.is_none() {
            self.size = greatest;
        }
    }

    /// CTARGET, where `most` is CMAX.
    pub(super) fn size(&self, most: f64) -> f64 {
        self.size.min(most)
    }

    /// CSLOPE: the slope at which frames of the estimate's size are paced at the bound's rate.
    pub(super) fn slope(&self, most: f64, send_share: f64) -> f64 {
        (1.0 - send_share * most / self.size(most)).max(0.0) / (1.0 - send_share)
    }

    pub(super) fn on_frame(&mut self, config: &Config, frame: &Frame, most: f64, now: Timestamp) {
        let share = f64::from(frame.marked) / f64::from(frame.packets.max(1));
        self.marked += MARK_WEIGHT * (share - self.marked);
        // Frames sent before the last decrease tell nothing of it.
        let after = |at: Option<Timestamp>| at.is_none_or(|t| t <= frame.departure);
        let is_after_loss = after(self.lost_at);
        if is_after_loss && frame.lost > 0 {
            self.decrease(most, config.decrease);
            self.lost_at = Some(now);
        } else if is_after_loss && after(self.marked_at) && frame.marked > 0 {
            self.decrease(most, 1.0 - self.marked * (1.0 - config.decrease));
            self.marked_at = Some(now);
        }
        if after(self.lost_at) && self.size < most {
            let step = if self.marked_at <= self.lost_at {
                config.increase.as_bytes() as f64
            } else {
                config.increase_marked.as_bytes() as f64 * (1.0 - share)
            };
            self.size = (self.size + step).min(most);
        }
    }

    /// No report for long (*Combined AIMD Congestion Control*): as a loss.
    pub(super) fn on_silence(&mut self, config: &Config, most: f64, now: Timestamp) {
        self.decrease(most, config.decrease);
        self.lost_at = Some(now);
    }

    fn decrease(&mut self, most: f64, factor: f64) {
        self.size = (self.size.min(most) * factor).max(1.0);
    }
}
