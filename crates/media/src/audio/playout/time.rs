//! Capture times of audio: what they are relative to, and what moves them.

use super::{AudioPlayout, ticks_to_time, time_to_ticks};
use crate::AUDIO_CLOCK_HZ;
use crate::playout::{BaseDelay, Delays, Drift, Run};
use weir_units::{TimeDelta, Timestamp};

/// Timestamps further than this from the playout position are rejected.
const PLAUSIBLE_TICKS: i64 = 10 * AUDIO_CLOCK_HZ as i64;
/// Reported capture times that differ from those before by so much are of another media clock. Chosen here: more than playout's delay in a
/// call.
const JUMP: TimeDelta = TimeDelta::from_secs(1);
/// This many consecutive rejected packets are a new stream, however fast they come.
const NEW_STREAM: u32 = 50;
/// Outside pauses a packet is dropped where the delay is too long by more than two of them, at most once in this time: one gap of
/// 20 ms a second.
const DROPS_APART: TimeDelta = TimeDelta::from_secs(1);
const DROP_EXCESS: i64 = 2;

impl AudioPlayout {
    /// Sets the capture time of the sample with this timestamp, by the receiver's clock. Current playout continues with
    /// the resulting delay; a fixed delay applies from now on. After lateness that lasted, only if the newest packet is in time by it.
    pub fn set_capture_time(&mut self, rtp_timestamp: u32, captured: Timestamp) {
        let ticks = self.unwrap(rtp_timestamp);
        let newest = self.newest.map_or(ticks, |n| n.1);
        let delay = self.time_base.heard().saturating_since(captured + ticks_to_time(newest - ticks));
        if !self.time_base.accepts(delay, self.config.max) {
            return;
        }
        let before = self.anchor.map_or(captured, |(t, at)| at + ticks_to_time(ticks - t));
        let earlier = before - captured;
        let mut captured = captured;
        if self.synchronised && earlier.abs() >= JUMP {
            let by = time_to_ticks(earlier);
            self.jump(by, newest);
            // In whole ticks, so that time goes on without a gap.
            captured = before - ticks_to_time(by);
        } else {
            self.delays.shift(earlier);
            if !self.is_fixed() {
                self.delay += earlier;
            }
        }
        self.anchor = Some((ticks, captured));
        self.synchronised = true;
    }

    /// The media clock stood still or jumped: playout goes on from the timestamps of now, of which `newest` is the last.
    #[cold]
    fn jump(&mut self, by: i64, newest: i64) {
        (self.next, self.over) = (self.next.map(|n| n + by), self.over.map(|o| o + by));
        let (next, before) = (self.next.unwrap_or(i64::MIN), self.waiting.len());
        self.waiting.retain(|w| (next..=newest).contains(&w.ticks));
        self.stats.late += (before - self.waiting.len()) as u64;
        self.delays = Delays::EMPTY;
    }

    /// Plays packets later if all of them have been late for a while, even if their capture times are known: for playout
    /// to somebody. Otherwise they are late as long as the path has become longer than the delay.
    pub const fn follow_lateness(&mut self) {
        self.time_base.follows = true;
    }
    /// Whether capture times are relative to the fastest packet although they are known, since by those everything is late.
    pub fn is_from_fastest(&self) -> bool {
        self.time_base.taken > TimeDelta::ZERO
    }

    /// Accepts a timestamp, or restarts after rejected ones that last.
    pub(super) fn believe(&mut self, now: Timestamp, ticks: i64) -> Option<i64> {
        let playing = self.next.is_some_and(|next| (ticks - next).abs() > PLAUSIBLE_TICKS);
        // While nothing plays time advances, but not backwards.
        let idle = self.over.is_some_and(|over| over - ticks > PLAUSIBLE_TICKS);
        if !playing && !idle {
            self.time_base.unbelieved = Run::NONE;
            return Some(ticks);
        }
        let silent = self.time_base.is_silent(now);
        let run = &mut self.time_base.unbelieved;
        if !run.lasts(now, TimeDelta::ZERO, silent) && run.count() < NEW_STREAM {
            return None;
        }
        let (stats, step, end, floor) = (self.stats, self.step, self.end, self.floor);
        let time_base = self.time_base.renewed();
        *self = Self { stats, step, end, floor, time_base, ..Self::new(self.config) };
        Some(ticks)
    }

    /// The newest packet has arrived, `delay` after its capture: capture times follow what lasts.
    #[inline]
    pub(super) fn follow(&mut self, now: Timestamp, delay: TimeDelta, ticks: i64) {
        let is_late = self.next.or(self.over).is_some_and(|next| ticks < next);
        if let Some(later) = self.time_base.on_packet(now, delay, is_late) {
            self.take_up(later, ticks);
        }
    }

    /// The position of playout stays where it is in time, while packets are played later; or earlier if negative.
    #[cold]
    fn take_up(&mut self, later: TimeDelta, ticks: i64) {
        let position = self.next.or(self.over).unwrap_or(ticks);
        let by = time_to_ticks(later).max(position - ticks);
        let (next, over) = (self.next.map(|n| n - by), self.over.map(|o| o - by));
        (self.next, self.over) = (next, over);
        let later = ticks_to_time(by);
        if !self.is_fixed() && later > TimeDelta::ZERO && self.delay + later <= self.config.max {
            // As after a pause in which the delay was too short.
            self.delay += later;
            return;
        }
        if let Some((_, captured)) = &mut self.anchor {
            *captured += later;
        }
        (self.base, self.delays, self.drift) = (BaseDelay::default(), Delays::EMPTY, Drift::default());
        self.synchronised = false;
        while self.waiting.front().is_some_and(|w| next.is_some_and(|next| w.ticks < next)) {
            self.waiting.pop_front();
            self.stats.late += 1;
        }
    }

    /// Measures a packet's delay.
    pub(super) fn measure(&mut self, now: Timestamp, delay: TimeDelta) {
        let later = match () {
            () if self.synchronised => TimeDelta::ZERO,
            () if self.is_fixed() => {
                let earlier = self.time_base.on_earlier(delay);
                earlier.or_else(|| self.drift.on_packet(now, delay)).unwrap_or(TimeDelta::ZERO)
            }
            () => self.base.update(now, delay),
        };
        if later != TimeDelta::ZERO {
            // Capture times are relative to the fastest packet: playout times do not change.
            self.delays.shift(-later);
            self.base.shift(-later);
            self.delay -= later;
            if let Some((_, at)) = &mut self.anchor {
                *at += later;
            }
        }
        if !self.is_fixed() {
            self.delays.push((delay - later).min(self.config.max));
        }
    }

    /// Whether the packet played at this time is dropped, since the delay is too long and there is no pause to shorten.
    pub(super) fn drops(&self, at: Timestamp, excess: TimeDelta, length: TimeDelta) -> bool {
        if self.is_fixed() {
            return excess >= length;
        }
        let apart = self.dropped.is_none_or(|last| at.saturating_since(last) >= DROPS_APART);
        excess >= length && (self.delay > self.config.max || (apart && excess > length * DROP_EXCESS))
    }
}
