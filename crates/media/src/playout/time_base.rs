//! The time base of playout: what makes it move, since senders' clocks stop, jump and drift, and paths change.
//!
//! Lateness that lasts is no jitter. As NetEQ of libwebrtc takes delays relative to the fastest packet of the last two
//! seconds (`RelativeArrivalDelayTracker`), and its `TimestampExtrapolator` is reset after ten without packets,
//! capture times are taken to be later, so that the fastest of the late packets has no delay.

use super::adaptive::BaseDelay;
use super::{FrameInPlayout, Playout, ticks_to_time};
use crate::RTP_CLOCK_HZ;
use weir_units::{TimeDelta, Timestamp};

/// Packets out of range for this long, at least so many of them, are no jitter. Half of NetEQ's window of the fastest
/// packet would do; with a usual playout delay, media is back within a second.
const LASTING: TimeDelta = TimeDelta::from_millis(400);
const LEAST_PACKETS: u32 = 3;
/// After this time without packets there is nothing playing that a jump would disturb.
const SILENCE: TimeDelta = TimeDelta::from_secs(1);
/// A packet this much earlier than the fastest one shows that the timestamps have jumped.
const EARLY: TimeDelta = TimeDelta::from_secs(1);
/// Longer than any path: lateness by the sender's clock alone.
const NO_PATH: TimeDelta = TimeDelta::from_secs(10);
/// A timestamp further than this from the stream's last and from the clock is rejected.
const PLAUSIBLE: TimeDelta = TimeDelta::from_secs(10);
const PLAUSIBLE_TICKS: i64 = 10 * RTP_CLOCK_HZ as i64;
/// This many consecutive rejected packets are a new stream, however fast they come.
const NEW_STREAM: u32 = 100;
/// Earlier than any packet.
const NEVER: Timestamp = Timestamp::from_nanos(i64::MIN);

/// Packets in succession that do not fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    count: u32,
    since: Timestamp,
    /// The least delay among them.
    least: TimeDelta,
}

impl Run {
    pub(crate) const NONE: Self = Self { count: 0, since: NEVER, least: TimeDelta::ZERO };

    /// A further packet, with this delay; `silent` if nothing came before it for a while. Returns whether it lasts.
    pub(crate) fn lasts(&mut self, now: Timestamp, delay: TimeDelta, silent: bool) -> bool {
        if self.count == 0 {
            (self.since, self.least) = (now, delay);
        }
        self.count = self.count.saturating_add(1);
        self.least = self.least.min(delay);
        silent || (self.count >= LEAST_PACKETS && now.saturating_since(self.since) >= LASTING)
    }
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }
}

/// Capture times of a stream, as its packets have them.
#[derive(Clone, Debug)]
pub(crate) struct TimeBase {
    late: Run,
    /// Packets with implausible timestamps.
    pub(crate) unbelieved: Run,
    /// Arrival of the newest packet.
    heard: Timestamp,
    /// Whether capture times are known, by the sender's reports and a clock that both ends share.
    pub(crate) is_known: bool,
    /// Whether lateness that lasts is taken up although they are.
    pub(crate) follows: bool,
    /// By how much lateness has moved capture times later.
    pub(crate) taken: TimeDelta,
}

impl Default for TimeBase {
    fn default() -> Self {
        Self {
            late: Run::NONE,
            unbelieved: Run::NONE,
            heard: NEVER,
            is_known: false,
            follows: false,
            taken: TimeDelta::ZERO,
        }
    }
}

impl TimeBase {
    /// That of a new stream.
    pub(crate) fn renewed(&self) -> Self {
        Self { follows: self.follows, ..Self::default() }
    }

    /// Whether nothing has come for a while.
    pub(crate) fn is_silent(&self, now: Timestamp) -> bool {
        self.heard != NEVER && now.saturating_since(self.heard) >= SILENCE
    }

    /// The newest packet has arrived, `delay` after its capture. Returns the amount by which capture times move later
    /// if it and those before it are not in the range of playout.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Timestamp, delay: TimeDelta, is_late: bool) -> Option<TimeDelta> {
        if !is_late && delay >= -EARLY {
            self.heard = now;
            self.late.count = 0;
            return None;
        }
        self.on_stray(now, delay)
    }

    #[cold]
    fn on_stray(&mut self, now: Timestamp, delay: TimeDelta) -> Option<TimeDelta> {
        let silent = self.is_silent(now);
        self.heard = now;
        if self.is_known && !self.follows && (TimeDelta::ZERO..NO_PATH).contains(&delay) {
            // By the clock that both ends share it is the path that is late, which playout is to show.
            return None;
        }
        if !self.late.lasts(now, delay, silent) {
            return None;
        }
        let later = self.late.least;
        self.late.count = 0;
        self.taken = (self.taken + later).max(TimeDelta::ZERO);
        self.is_known = false;
        Some(later)
    }

    /// The newest packet came this long after its capture: if earlier than the fastest of those that were late, the lateness is over.
    /// Returns the amount by which capture times move later, which is negative.
    #[inline]
    pub(crate) fn on_earlier(&mut self, delay: TimeDelta) -> Option<TimeDelta> {
        if delay >= TimeDelta::ZERO || self.taken == TimeDelta::ZERO {
            return None;
        }
        let later = delay.max(-self.taken);
        self.taken += later;
        Some(later)
    }

    /// Capture times are reported by which the newest packet has this delay. Returns whether they count: not if they
    /// make everything late that plays now.
    pub(crate) fn accepts(&mut self, delay: TimeDelta, max: TimeDelta) -> bool {
        if self.follows && self.taken > TimeDelta::ZERO && delay > max {
            return false;
        }
        (self.is_known, self.taken) = (true, TimeDelta::ZERO);
        true
    }
    /// Arrival of the newest packet.
    pub(crate) const fn heard(&self) -> Timestamp {
        self.heard
    }
}

impl Playout {
    /// Sets the capture time of the frame with this timestamp, by the receiver's clock; open frames get the resulting
    /// deadlines. After lateness that lasted, only if the newest frame is in time by it.
    pub fn set_capture_time(&mut self, rtp_timestamp: u32, captured: Timestamp) {
        let ticks = self.unwrap(rtp_timestamp);
        let delay = self.base.heard().saturating_since(captured + ticks_to_time(self.ticks - ticks));
        if !self.base.accepts(delay, self.delay) {
            return;
        }
        let before = self.anchor.map_or(captured, |(t, at)| at + ticks_to_time(ticks - t));
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.synchronise(before - captured);
        }
        if self.anchor.is_none() {
            self.ticks = i64::from(rtp_timestamp);
        }
        self.anchor = Some((self.unwrap(rtp_timestamp), captured));
        self.set_deadlines();
    }

    /// Plays frames later if all of them have been late for a while, even if their capture times are known: for playout
    /// to somebody. Otherwise they are late as long as the path has become longer than the deadline.
    pub const fn follow_lateness(&mut self) {
        self.base.follows = true;
    }
    /// Whether capture times are relative to the fastest frame although they are known, since by those everything is late.
    pub fn is_from_fastest(&self) -> bool {
        self.base.taken > TimeDelta::ZERO
    }

    fn set_deadlines(&mut self) {
        let Some((t, captured)) = self.anchor else { return };
        for f in self.frames.iter_mut().skip(self.decided) {
            f.deadline = captured + ticks_to_time(f.ticks - t) + self.delay;
            f.is_from_capture = self.base.is_known;
        }
    }

    /// Capture times move later, or earlier if negative; the deadlines of open frames with them.
    pub(super) fn move_base(&mut self, later: TimeDelta) {
        if let Some((_, captured)) = &mut self.anchor {
            *captured += later;
        }
        self.frames.iter_mut().skip(self.decided).for_each(|f: &mut FrameInPlayout| f.deadline += later);
    }

    /// The first packet of a new frame has arrived: capture times follow what lasts.
    #[inline]
    pub(super) fn follow(&mut self, now: Timestamp, ticks: i64) {
        let delay = now - (self.deadline(ticks) - self.delay);
        if let Some(later) = self.base.on_packet(now, delay, delay > self.delay) {
            self.take_up(later, ticks);
        } else if self.adaptive.is_none()
            && !self.base.is_known
            && let Some(later) = self.base.on_earlier(delay).or_else(|| self.drift.on_packet(now, delay))
        {
            self.move_base(later);
        }
    }

    #[cold]
    fn take_up(&mut self, later: TimeDelta, ticks: i64) {
        let over = self.adaptive.as_ref().is_some_and(|a| a.is_over(ticks));
        let back = over || self.frames.back().is_some_and(|f| f.ticks >= ticks);
        if back {
            // The timestamps have jumped back: frames with later ones are not waited for.
            while !self.frames.is_empty() {
                self.drop_oldest();
            }
        }
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.forget_delays(back);
        }
        self.drift = Drift::default();
        self.move_base(later);
        self.moved += 1;
    }

    /// How often lateness that lasted, or a new stream, has moved capture times.
    pub const fn moves(&self) -> u64 {
        self.moved
    }

    pub(super) fn begin(&mut self, now: Timestamp, rtp_timestamp: u32) -> i64 {
        self.ticks = i64::from(rtp_timestamp);
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.restart();
        }
        self.base = self.base.renewed();
        self.drift = Drift::default();
        self.anchor = Some((self.ticks, now));
        self.moved += 1;
        self.ticks
    }

    /// Accepts the timestamp of a packet, or restarts after implausible ones that last.
    pub(super) fn believe(&mut self, now: Timestamp, ticks: i64, rtp_timestamp: u32) -> Option<i64> {
        let from_clock = || (self.deadline(ticks) - self.delay - now).abs();
        if (ticks - self.ticks).abs() > PLAUSIBLE_TICKS && from_clock() > PLAUSIBLE + self.delay {
            let silent = self.base.is_silent(now);
            if !self.base.unbelieved.lasts(now, TimeDelta::ZERO, silent) && self.base.unbelieved.count() < NEW_STREAM {
                self.stats.unusable += 1;
                return None;
            }
            while !self.frames.is_empty() {
                self.drop_oldest();
            }
            return Some(self.begin(now, rtp_timestamp));
        }
        self.base.unbelieved = Run::NONE;
        self.ticks = ticks;
        Some(ticks)
    }
}

/// Slots of the least delay, of which the least of the first ones is kept as the reference.
const REFERENCE_SLOTS: u32 = 6;
/// Length of a slot.
const SLOT: TimeDelta = TimeDelta::from_secs(5);
/// The most by which two clocks differ that keep NTP's bounds: 500 ppm (RFC 5905, section 11.3).
const MOST_SKEW: f64 = 500e-6;

/// Follows the least delay of the last minute where capture times are not known: sender's and receiver's clocks differ.
///
/// Later by at most 500 ppm of the time, so that what a queue adds is not taken for the clock's at once; earlier as soon
/// as it is seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drift {
    base: BaseDelay,
    /// The least delay of the slot.
    least: Option<TimeDelta>,
    ends: Timestamp,
    slots: u32,
    reference: TimeDelta,
}

impl Drift {
    /// A packet has arrived with this delay. Returns the amount by which capture times move later.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Timestamp, delay: TimeDelta) -> Option<TimeDelta> {
        match &mut self.least {
            Some(least) if now < self.ends => {
                *least = delay.min(*least);
                None
            }
            _ => self.end_slot(now, delay),
        }
    }

    #[cold]
    fn end_slot(&mut self, now: Timestamp, delay: TimeDelta) -> Option<TimeDelta> {
        let ended = self.least.replace(delay);
        self.ends = now + SLOT;
        let least = self.base.update(now, ended?);
        self.slots += 1;
        if self.slots <= REFERENCE_SLOTS {
            self.reference = least;
            return None;
        }
        let later = (least - self.reference).min(SLOT.mul_f64(MOST_SKEW));
        if later == TimeDelta::ZERO {
            return None;
        }
        self.base.shift(-later);
        self.least = Some(delay - later);
        Some(later)
    }
}
