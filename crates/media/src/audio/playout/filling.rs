//! Sound played without a packet: silence, audio recovered by forward error correction, or concealment.

use super::{AudioPlayout, AudioSlot, AudioSlotContent, IDLE_TICKS, ticks_to_time};
use weir_units::Timestamp;

/// The action at a time without a packet.
pub(super) enum Step {
    Slot(AudioSlot),
    Again,
    Idle,
}

impl AudioPlayout {
    /// Fills in at a time without a packet.
    pub(super) fn fill(&mut self, at: Timestamp, ticks: i64) -> Step {
        let front = self.waiting.front().map(|w| (w.ticks, w.sequence, w.has_fec));
        let follows = |sequence| self.last.is_some_and(|l| sequence == l.sequence + 1);
        let samples = match front {
            Some((t, ..)) => self.step.min(u32::try_from(t - ticks).unwrap_or(self.step)),
            None => self.step,
        };
        let length = ticks_to_time(samples.into());
        let paused = self.last.is_some_and(|l| l.silence);
        if let Some((_, sequence, _)) = front
            && (follows(sequence) || paused)
        {
            // A pause: time inserted for it already is not played again, and it may be shortened.
            let excess = self.delay - self.wanted();
            if !self.is_fixed() && excess >= length {
                self.delay -= length;
                self.next = Some(ticks + i64::from(samples));
                self.put_in = self.put_in.saturating_sub(samples.into());
                return Step::Again;
            }
            return self.fill_with(at, ticks, samples, AudioSlotContent::Silence);
        }
        match front {
            Some((t, sequence, has_fec)) => {
                if self.put_in >= u64::from(samples) {
                    // It was lost; the concealment played while waiting replaces it.
                    self.put_in -= u64::from(samples);
                    self.delay -= length;
                    self.next = Some(ticks + i64::from(samples));
                    return Step::Again;
                }
                let neighbour = t == ticks + i64::from(samples) && self.last.is_some_and(|l| l.sequence < sequence);
                if neighbour && has_fec && samples == self.step {
                    let payload = self.waiting.front().map(|w| w.payload.clone()).unwrap_or_default();
                    return self.fill_with(at, ticks, samples, AudioSlotContent::Recovered(payload));
                }
                if !self.is_fixed() && self.delay - self.wanted() >= length {
                    self.delay -= length;
                    self.next = Some(ticks + i64::from(samples));
                    self.stats.skipped_samples += u64::from(samples);
                    return Step::Again;
                }
                self.fill_with(at, ticks, samples, AudioSlotContent::Concealed)
            }
            None if self.filled >= IDLE_TICKS => {
                self.settle();
                (self.next, self.over) = (None, Some(ticks));
                Step::Idle
            }
            None if paused => self.fill_with(at, ticks, samples, AudioSlotContent::Silence),
            None if !self.is_fixed() && self.delay + length <= self.config.max => {
                // The packet may still arrive: wait for it.
                Step::Slot(self.put_in(at, ticks, samples))
            }
            None => self.fill_with(at, ticks, samples, AudioSlotContent::Concealed),
        }
    }

    /// Inserts concealment, which delays everything after it.
    pub(super) fn put_in(&mut self, at: Timestamp, ticks: i64, samples: u32) -> AudioSlot {
        self.delay += ticks_to_time(samples.into());
        self.filled += u64::from(samples);
        self.put_in += u64::from(samples);
        self.stats.concealed_samples += u64::from(samples);
        self.slot(at, ticks, samples, AudioSlotContent::Concealed)
    }

    pub(super) fn fill_with(&mut self, at: Timestamp, ticks: i64, samples: u32, content: AudioSlotContent) -> Step {
        let n = u64::from(samples);
        match content {
            AudioSlotContent::Recovered(_) => self.stats.recovered_samples += n,
            AudioSlotContent::Silence => {
                self.stats.silent_samples += n;
                (self.filled, self.silent) = (self.filled + n, self.silent + n);
            }
            _ => {
                self.stats.concealed_samples += n;
                self.filled += n;
            }
        }
        self.next = Some(ticks + i64::from(samples));
        Step::Slot(self.slot(at, ticks, samples, content))
    }

    pub(super) fn slot(&mut self, at: Timestamp, ticks: i64, samples: u32, content: AudioSlotContent) -> AudioSlot {
        self.end = Some(at + ticks_to_time(samples.into()));
        AudioSlot { at, rtp_timestamp: ticks as u32, samples, content }
    }
}
