//! Aligns the adaptive playout delays of one end's streams, so that audio and video are synchronous.

use super::Receiver;
use super::stream::IncomingStream;
use weir_units::{TimeDelta, Timestamp};

/// Interval at which playout delays are compared.
const ALIGN_INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// A stream silent for this long is ignored in the alignment.
const SILENT: TimeDelta = TimeDelta::from_secs(1);

impl IncomingStream {
    /// Whether its playout follows the sender's clock, and it has received something recently.
    fn is_aligned(&self, now: Timestamp) -> bool {
        let from_fastest = self.playout.as_ref().is_some_and(|p| p.is_from_fastest())
            || self.audio.as_ref().is_some_and(|a| a.is_from_fastest());
        self.clock.report().is_some() && !from_fastest && !self.source.is_silent(SILENT, now)
    }
}

impl Receiver {
    /// Aligns adaptive delays: audio waits for video with a longer delay, and video for audio, so that media captured
    /// together is played together.
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
        // The delay of audio cannot be changed at will: its current delay counts, even while it is being reduced.
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
