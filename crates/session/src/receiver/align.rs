//! Adaptive delays of the streams of one end follow each other, so that sound and pictures come out together.

use super::Receiver;
use super::stream::IncomingStream;
use weir_units::{TimeDelta, Timestamp};

/// Time between two comparisons of playout delays.
const ALIGN_INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// A stream of which nothing has come for so long holds up no other.
const SILENT: TimeDelta = TimeDelta::from_secs(1);

impl IncomingStream {
    /// Whether its playout goes by the sender's clock, and something of it has come lately.
    fn is_aligned(&self, now: Timestamp) -> bool {
        self.clock.report().is_some() && !self.from_fastest && !self.source.is_silent(SILENT, now)
    }
}

impl Receiver {
    /// Has adaptive delays follow each other: sound waits for pictures that need longer, and pictures wait for sound, so that
    /// what was captured together comes out together.
    pub(super) fn align(&mut self, now: Timestamp) {
        if !self.aligns || self.streams.len() < 2 || now < self.align_at {
            return;
        }
        self.align_at = now + ALIGN_INTERVAL;
        let longest = |delay: &dyn Fn(&IncomingStream) -> Option<TimeDelta>| {
            let all = self.streams.iter().filter(|s| s.is_aligned(now)).filter_map(delay);
            all.fold(TimeDelta::ZERO, TimeDelta::max)
        };
        let pictures = longest(&|s| s.playout.as_ref().map(|p| p.own_delay()));
        // Sound cannot be moved at will: what it has now counts, also on its way to less.
        let sound = longest(&|s| s.audio.as_ref().map(|a| a.delay()));
        for s in &mut self.streams {
            if let Some(audio) = &mut s.audio {
                audio.set_least_delay(pictures);
            }
            if let Some(playout) = &mut s.playout {
                playout.set_least_delay(pictures.max(sound), now);
            }
        }
    }
}
