//! Tambur: a streaming code over frames (Rudow and others, NSDI 2023), by the paper and the authors' repository
//! (Thesys-lab/tambur), of which nothing is copied.
//!
//! The repair packets of a frame are combinations of the frame, of the whole frame that was sent `delay` frames before, and of one half,
//! called V, of each frame between. After a burst of lost frames the first repair packets therefore have only the halves V as unknowns and
//! recover them; the other half, U, of a frame is recovered by those of the frame `delay` later. A code that has all
//! packets in all combinations needs more of them for the same burst and delay.
//!
//! Differences from the authors' program:
//! - It decides between two shares of repair by a learned model that is not published; its repository then uses the greater one,
//!   which is "Tambur-full-BW": one repair packet for two packets while losses are reported, none otherwise.
//! - A symbol here is a packet, not a stripe of 256 bytes, so that halves are whole packets and a share of small frames adds up over frames.
//! - Coefficients are random (RFC 8681), where it has a Cauchy matrix: one combination in 255 depends on others.

use super::policy::{FramePolicy, Network, Order, SentFrame};
use std::collections::VecDeque;
use weir_fec::Coverage;
use weir_units::{TimeDelta, Timestamp};

/// Repair packets for each packet, while there are losses: the table of quality reports in the authors' `sender_trace.cc` has 1/2.
const SHARE: (usize, usize) = (1, 2);
/// Time after the last report of a loss until repair ends: the authors' interval of feedback (`interval_ms_feedback`).
const AFTER_LOSS: TimeDelta = TimeDelta::from_secs(2);

/// Tambur's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tambur {
    /// Frames after a frame by which it is to be recovered (tau), 1 to 16. Default: 3, as in the paper's experiments.
    pub delay: u8,
}

impl Tambur {
    /// Most frames of delay.
    pub const MAX_DELAY: u8 = 16;

    pub(super) fn policy(self) -> TamburPolicy {
        let delay = usize::from(self.delay.clamp(1, Self::MAX_DELAY));
        TamburPolicy { delay, owed: 0 }
    }
}

impl Default for Tambur {
    fn default() -> Self {
        Self { delay: 3 }
    }
}

#[derive(Debug)]
pub(super) struct TamburPolicy {
    delay: usize,
    /// Parts of a repair packet not yet sent, of [`SHARE`]'s second number.
    owed: usize,
}

impl TamburPolicy {
    /// The packets of the combinations sent with the last frame.
    fn window(&self, frames: &VecDeque<SentFrame>) -> Option<Coverage> {
        let last = frames.back()?.packets.last()?;
        // Of frames beyond the span of a repair packet, the newer ones.
        let newest = frames.iter().rev().take(self.delay + 1);
        let reach = newest.take_while(|f| last - f.packets.first().unwrap_or(last) < Coverage::SPAN).count();
        let start = frames.len() - reach;
        let mut window = Coverage::new(frames.get(start)?.packets.first()?);
        for (frame, age) in frames.range(start..).zip((0..reach).rev()) {
            for (packet, i) in frame.packets.iter().zip(0..) {
                let is_v = i % 2 == 0;
                if is_v || age == 0 || age == self.delay {
                    window.insert(packet);
                }
            }
        }
        Some(window)
    }
}

impl FramePolicy for TamburPolicy {
    fn on_frame(
        &mut self,
        frames: &VecDeque<SentFrame>,
        network: &Network,
        now: Timestamp,
        order: &mut dyn FnMut(Order),
    ) {
        let is_lossy = network.since_loss(now).is_some_and(|since| since <= AFTER_LOSS);
        if !is_lossy {
            self.owed = 0;
            return;
        }
        // The frame that this one is the last chance for.
        let Some(due) = frames.len().checked_sub(self.delay + 1).and_then(|i| frames.get(i)) else { return };
        self.owed += due.packets.len() * SHARE.0;
        let count = self.owed / SHARE.1;
        self.owed %= SHARE.1;
        if let Some(packets) = self.window(frames) {
            order(Order { packets, count: count as u16 });
        }
    }
}
