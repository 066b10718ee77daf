//! Playout as early as jitter allows, up to a deadline.

use super::{FrameInPlayout, Playout};
use weir_units::{TimeDelta, Timestamp};

/// Number of frame delays remembered: 8.5 s at 30 frames per second.
const WINDOW: usize = 256;
/// The share of the frames in the window for which playout waits (NetEQ of libwebrtc, as of 2019: 0.95; 0.97 since).
const QUANTILE: f64 = 0.95;
/// The part of the difference to a late frame's delay by which playout is adjusted at once, and the part by which it
/// returns with each frame in time. Fast increase and slow decrease as in Ramjee et al. 1994, algorithm 2, which has
/// 1/4 and 1/500 for audio packets.
const UP: i64 = 4;
const DOWN: i64 = 64;
/// Earlier than any time.
const NEVER: Timestamp = Timestamp::from_nanos(i64::MIN);
/// The minimum delay is taken over about the last minute: clocks that drift by 100 ppm move by 6 ms in it, and a queue
/// that stands for a minute counts as part of the path.
const BASE_SLOTS: usize = 12;
const BASE_SLOT: TimeDelta = TimeDelta::from_secs(5);

/// How a playout delay adapts to the delays of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdaptivePlayout {
    /// The least delay from capture to playout.
    pub min: TimeDelta,
    /// The deadline: later packets are discarded.
    pub max: TimeDelta,
    /// How long an incomplete frame is awaited past its playout time, within `max`; `None` for as long as that. Without
    /// repair a short patience avoids a stall at each loss.
    pub patience: Option<TimeDelta>,
}

impl AdaptivePlayout {
    /// From no delay up to `max`, with unlimited patience.
    pub const fn up_to(max: TimeDelta) -> Self {
        Self { min: TimeDelta::ZERO, max, patience: None }
    }
}

/// The delays of the last frames, in order of time and of size.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    ring: [TimeDelta; WINDOW],
    sorted: [TimeDelta; WINDOW],
    len: usize,
    next: usize,
}

impl Delays {
    pub(crate) const EMPTY: Self =
        Self { ring: [TimeDelta::ZERO; WINDOW], sorted: [TimeDelta::ZERO; WINDOW], len: 0, next: 0 };

    pub(crate) fn push(&mut self, delay: TimeDelta) {
        if self.len == WINDOW {
            let oldest = self.sorted.partition_point(|d| *d < self.ring[self.next]);
            self.sorted.copy_within(oldest + 1.., oldest);
            self.len -= 1;
        }
        let place = self.sorted[..self.len].partition_point(|d| *d < delay);
        self.sorted.copy_within(place..self.len, place + 1);
        self.sorted[place] = delay;
        self.len += 1;
        self.ring[self.next] = delay;
        self.next = (self.next + 1) % WINDOW;
    }

    pub(crate) fn quantile(&self) -> TimeDelta {
        let index = libm::ceil(self.len as f64 * QUANTILE) as usize;
        self.sorted[..self.len].get(index.saturating_sub(1)).copied().unwrap_or(TimeDelta::ZERO)
    }

    pub(crate) fn shift(&mut self, by: TimeDelta) {
        self.ring.iter_mut().chain(&mut self.sorted).for_each(|d| *d += by);
    }
}

/// The minimum delay of the last minute, in slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct BaseDelay {
    slots: [Option<TimeDelta>; BASE_SLOTS],
    slot: usize,
    since: Timestamp,
}

impl BaseDelay {
    pub(crate) fn update(&mut self, now: Timestamp, delay: TimeDelta) -> TimeDelta {
        if self.slots[self.slot].is_none() {
            self.since = now;
        } else if now - self.since >= BASE_SLOT {
            self.since = now;
            self.slot = (self.slot + 1) % BASE_SLOTS;
            self.slots[self.slot] = None;
        }
        let slot = &mut self.slots[self.slot];
        *slot = Some(slot.map_or(delay, |least| least.min(delay)));
        self.slots.iter().flatten().copied().min().unwrap_or(delay)
    }

    pub(crate) fn shift(&mut self, by: TimeDelta) {
        self.slots.iter_mut().flatten().for_each(|d| *d += by);
    }
}

/// Additional state of adaptive playout.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    config: AdaptivePlayout,
    /// Current delay from capture to playout required by this stream.
    delay: TimeDelta,
    /// Least delay requested for streams beside it.
    floor: TimeDelta,
    delays: Delays,
    base: BaseDelay,
    /// Whether capture times are known; otherwise they are relative to the fastest frame.
    synchronised: bool,
    /// When the delay last changed, and when a frame was last decided.
    changed: Timestamp,
    last: Timestamp,
    /// The last frame decided.
    decided: Option<i64>,
    /// If the caller sets the delay: by how much more delays are counted since capture times have become known.
    steered: Option<TimeDelta>,
}

impl Adaptive {
    pub(super) fn new(config: AdaptivePlayout) -> Self {
        Self {
            config,
            delay: config.min,
            floor: TimeDelta::ZERO,
            delays: Delays::EMPTY,
            base: BaseDelay::default(),
            synchronised: false,
            changed: NEVER,
            last: NEVER,
            decided: None,
            steered: None,
        }
    }

    /// Current delay from capture to playout.
    pub(super) fn delay(&self) -> TimeDelta {
        self.delay.max(self.floor).min(self.config.max)
    }

    /// A new stream begins.
    pub(super) fn restart(&mut self) {
        let (last, floor, steered) = (self.last, self.floor, self.steered.map(|_| TimeDelta::ZERO));
        *self = Self { last, floor, steered, ..Self::new(self.config) };
    }

    /// Capture times have moved; with `back` the timestamps are reset too.
    pub(super) fn forget_delays(&mut self, back: bool) {
        let (last, decided, floor) = (self.last, self.decided.filter(|_| !back), self.floor);
        let steered = self.steered.map(|_| TimeDelta::ZERO);
        *self = Self { last, decided, floor, steered, ..Self::new(self.config) };
    }

    /// Whether the playout time of a frame at these ticks has passed.
    pub(super) fn is_over(&self, ticks: i64) -> bool {
        self.decided.is_some_and(|d| ticks <= d)
    }

    /// Capture times are known from now on, or have changed: delays grow by `by`.
    pub(super) fn synchronise(&mut self, by: TimeDelta) {
        self.synchronised = true;
        self.shift(by);
    }

    fn shift(&mut self, by: TimeDelta) {
        self.delays.shift(by);
        self.base.shift(by);
        self.steered = self.steered.map(|offset| offset + by);
        self.delay = self.clamp(self.delay + by);
    }

    fn clamp(&self, delay: TimeDelta) -> TimeDelta {
        delay.max(self.config.min).min(self.config.max)
    }

    /// A frame is complete with this delay from its capture. Returns the amount by which capture times move later.
    fn on_frame(&mut self, now: Timestamp, delay: TimeDelta) -> TimeDelta {
        if self.steered.is_some() {
            self.delays.push(delay.min(self.config.max));
            return TimeDelta::ZERO;
        }
        let later = if self.synchronised { TimeDelta::ZERO } else { self.base.update(now, delay) };
        if later != TimeDelta::ZERO {
            self.shift(-later);
        }
        // Beyond the deadline it makes no difference.
        let delay = (delay - later).min(self.config.max);
        self.delays.push(delay);
        let wanted = self.delays.quantile();
        let next = if self.delays.len == 1 {
            delay
        } else if delay > self.delay {
            self.delay + (delay - self.delay) / UP
        } else {
            self.delay - (self.delay - wanted).max(TimeDelta::ZERO) / DOWN
        };
        self.delay = self.clamp(next.max(wanted));
        self.changed = now;
        later
    }
}

impl Playout {
    /// Adaptive playout: a complete frame is played as soon as nineteen of the last twenty frames would have been
    /// complete; an incomplete one is awaited up to the deadline, which delays later frames. A late frame is played
    /// late, and also raises the delay for the following ones; the delay then falls slowly.
    ///
    /// Until [`Self::set_capture_time`] is called, delays are relative to the fastest frame of the last minute, which
    /// tolerates clock drift.
    pub fn adaptive(config: AdaptivePlayout) -> Self {
        let config = AdaptivePlayout { min: config.min.max(TimeDelta::ZERO).min(config.max), ..config };
        Self { adaptive: Some(Box::new(Adaptive::new(config))), ..Self::new(config.max) }
    }

    /// As [`Self::adaptive`], with the delay that [`Self::set_delay`] sets instead of one that follows the frames.
    pub fn steered(config: AdaptivePlayout) -> Self {
        let mut playout = Self::adaptive(config);
        if let Some(adaptive) = &mut playout.adaptive {
            adaptive.steered = Some(TimeDelta::ZERO);
        }
        playout
    }

    /// Sets the delay from capture to playout, within the bounds, as counted from the arrival of the first packet: what
    /// capture times that have become known since then change of it is added. No effect unless the playout is
    /// [`Self::steered`].
    pub fn set_delay(&mut self, delay: TimeDelta, now: Timestamp) {
        let Some(adaptive) = &mut self.adaptive else { return };
        let Some(offset) = adaptive.steered else { return };
        let delay = adaptive.clamp(delay + offset);
        if delay != adaptive.delay {
            // Frames due by the new delay are played now.
            (adaptive.delay, adaptive.changed) = (delay, now);
        }
    }

    /// Sets the least delay from capture to playout of an adaptive playout ([`AdaptivePlayout::min`]), up to the deadline: a greater one
    /// holds at once, after a smaller one the delay returns with the frames. No effect with a fixed or a steered delay.
    pub fn set_min_delay(&mut self, min: TimeDelta, now: Timestamp) {
        let Some(adaptive) = self.adaptive.as_mut().filter(|a| a.steered.is_none()) else { return };
        adaptive.config.min = min.max(TimeDelta::ZERO).min(adaptive.config.max);
        let delay = adaptive.clamp(adaptive.delay);
        if delay != adaptive.delay {
            (adaptive.delay, adaptive.changed) = (delay, now);
        }
    }

    /// Sets a lower bound of each frame's delay from capture, up to the deadline, regardless of the stream's own
    /// jitter: streams with a longer delay thus stay in synchrony. No effect with a fixed delay.
    pub fn set_least_delay(&mut self, least: TimeDelta, now: Timestamp) {
        if let Some(adaptive) = self.adaptive.as_mut().filter(|a| a.floor != least) {
            // Frames due by the new delay are played now.
            (adaptive.floor, adaptive.changed) = (least, now);
        }
    }
    /// Delay from capture to playout required by this stream's own jitter, without [`Self::set_least_delay`].
    pub fn own_delay(&self) -> TimeDelta {
        self.adaptive.as_ref().map_or(self.delay, |a| a.delay)
    }

    /// Checks a frame that has received a packet: if it is now complete, its delay counts.
    #[inline(never)]
    pub(super) fn measure(&mut self, now: Timestamp, index: usize) {
        let f = &self.frames[index];
        let Some(adaptive) = self.adaptive.as_mut().filter(|_| f.is_whole(&self.arrivals)) else { return };
        let later = adaptive.on_frame(now, f.last_arrival - (f.deadline - self.delay));
        if later != TimeDelta::ZERO {
            self.move_base(later);
        }
    }

    /// When an open frame is currently to be played or given up.
    pub(super) fn due(&self, adaptive: &Adaptive, f: &FrameInPlayout) -> Timestamp {
        let wanted = f.deadline - self.delay + adaptive.delay();
        // A packet missing before it may still arrive and be played first; for the very first packet this is known only
        // when the next frame has begun.
        let first = self.arrivals.is_lowest(f.lowest) && self.frames.len() == self.decided + 1;
        let ready = !first && f.is_whole(&self.arrivals) && self.arrivals.follows_a_packet(f.lowest);
        let at = match adaptive.config.patience {
            _ if ready => wanted.max(f.last_arrival).max(adaptive.changed),
            Some(patience) if adaptive.delays.len > 0 => (wanted + patience).max(adaptive.changed),
            _ => f.deadline,
        };
        // A frame that was complete in time stays so if the clock is set back afterwards.
        at.min(f.deadline.max(f.last_arrival)).max(adaptive.last)
    }

    /// When to give up a frame that arrives at its playout time: with the one after it, or at its deadline.
    pub(super) fn give_up_at_once(&mut self, index: usize, ticks: i64, deadline: Timestamp) -> Timestamp {
        if let Some(behind) = self.frames.get(index).filter(|_| index < self.decided) {
            return behind.at;
        }
        let Some(adaptive) = &mut self.adaptive else { return deadline };
        adaptive.last = adaptive.last.max(deadline);
        adaptive.decided = adaptive.decided.max(Some(ticks));
        adaptive.last
    }

    /// Settles the frames whose playout time has come, in order.
    #[inline(never)]
    pub(super) fn decide_adaptive(&mut self, now: Timestamp, at_deadline: bool) {
        while let (Some(f), Some(adaptive)) = (self.frames.get(self.decided), &self.adaptive) {
            let at = self.due(adaptive, f);
            if at > now || (at == now && !at_deadline) {
                break;
            }
            let whole = f.is_whole(&self.arrivals);
            let ticks = f.ticks;
            if let Some(adaptive) = &mut self.adaptive {
                (adaptive.last, adaptive.decided) = (at, Some(ticks));
            }
            self.settle(at, whole);
        }
    }
}

#[cfg(test)]
mod tests;
