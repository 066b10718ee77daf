//! Paths that have become longer: a delay that rises from one packet to the next and stays as it is.
//!
//! A queue grows packet by packet, by no more than what is sent beyond the link's rate, and changes with what is sent. A route, a relay or
//! a clock adds its whole difference to one packet and all that follow.

use weir_units::TimeDelta;
use weir_units::cold_path;

/// Least rise that is taken for a path.
const MIN_RISE: TimeDelta = TimeDelta::from_millis(10);
/// Least rise in ticks of the clocks where that is more, and the changes of the delay after which a tick is known.
const TICKS: i64 = 3;
const MIN_CHANGES: u8 = 20;
/// Changes up to this are of the feedback's own resolution: two units of RFC 8888's arrival times.
const RESOLUTION: TimeDelta = TimeDelta::from_millis(2);
/// Time over which the least delay is taken, and the fewest packets in it.
const BUCKET: TimeDelta = TimeDelta::from_millis(200);
const BUCKET_PACKETS: u32 = 3;
/// Buckets in a row that have to be alike after a rise, and those kept of the time before it.
const ALIKE: usize = 5;
const BEFORE: usize = 4;
/// Time after which a rise that has not settled is none of a path.
const SETTLES_IN: TimeDelta = TimeDelta::from_secs(4);
/// Greatest gap between packets that show a rise: in a longer one a queue of others may have built up.
const MAX_GAP: TimeDelta = TimeDelta::from_secs(1);
/// Share of packets lost after the rise from which a full queue is more likely.
const MAX_LOSS: f64 = 0.05;
/// Share of the packets sent before from which on less is sent.
const SENDS_LESS: f64 = 0.8;

/// Finds rises of the delay that are none of a queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct LongerPath {
    /// Delay of the last packet or, if it is less, of the one before; delay and time of the last one.
    last: Option<(TimeDelta, TimeDelta, TimeDelta)>,
    bucket: Option<Bucket>,
    /// The buckets before, newest last.
    past: [Past; ALIKE],
    filled: usize,
    rise: Option<Rise>,
    /// Least delay of all.
    lowest: Option<TimeDelta>,
    shift: TimeDelta,
    grain: Grain,
}

/// Granularity of the clocks by which delays are measured, as far as it matters: the least change of the delay.
#[derive(Clone, Copy, Debug)]
struct Grain {
    last: TimeDelta,
    least: TimeDelta,
    changes: u8,
}

impl Default for Grain {
    fn default() -> Self {
        Self { last: TimeDelta::ZERO, least: TimeDelta::MAX, changes: 0 }
    }
}

impl Grain {
    /// Takes a delay as measured.
    #[inline]
    fn look(&mut self, delay: TimeDelta) {
        if self.least < MIN_RISE / TICKS {
            return;
        }
        let change = (delay - self.last).abs();
        self.last = delay;
        if change > RESOLUTION {
            self.least = self.least.min(change);
            self.changes = self.changes.saturating_add(1);
        }
    }

    /// Least rise that is taken for a path: a queue seen by coarse clocks grows by a tick at a time.
    fn min_rise(&self) -> TimeDelta {
        if self.changes < MIN_CHANGES { MIN_RISE } else { MIN_RISE.max(self.least * TICKS) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    since: TimeDelta,
    least: TimeDelta,
    packets: u32,
}

/// A bucket that has ended.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    least: TimeDelta,
    /// Packets a second.
    rate: f64,
}

/// A delay that has risen from one packet to the next.
#[derive(Clone, Copy, Debug)]
struct Rise {
    at: TimeDelta,
    /// Least delay before.
    before: TimeDelta,
    /// Packets a second before.
    rate: f64,
    /// The difference to the packets just before.
    step: TimeDelta,
    received: u32,
    lost: u32,
}

impl LongerPath {
    /// Takes a delay at `at`, and returns it without what the path has become longer by.
    /// `measured` is the delay by the ends' clocks.
    pub(crate) fn correct(&mut self, delay: TimeDelta, measured: TimeDelta, at: TimeDelta) -> TimeDelta {
        self.grain.look(measured);
        let delay = delay - self.shift;
        let mut least = delay;
        if let Some((former_least, former, then)) = self.last {
            // Late packets come after ones sent later, and show no rise.
            if at < then {
                return delay;
            }
            if at - then <= MAX_GAP {
                least = former.min(delay);
                if delay - former_least >= MIN_RISE {
                    self.look_for_rise(delay, former_least, at);
                }
            }
        }
        self.last = Some((least, delay, at));
        let closes = self.fill(delay, at);
        if let Some(rise) = &mut self.rise {
            cold_path();
            rise.received = rise.received.saturating_add(1);
        }
        if closes {
            cold_path();
            self.close(at);
            self.judge(at);
        }
        delay
    }

    /// Packets have been lost.
    pub(crate) fn on_lost(&mut self, packets: u32) {
        if let Some(rise) = &mut self.rise {
            rise.lost = rise.lost.saturating_add(packets);
        }
    }

    /// A delay is above that of the packets before by [`MIN_RISE`] or more.
    #[inline(never)]
    fn look_for_rise(&mut self, delay: TimeDelta, last: TimeDelta, at: TimeDelta) {
        let step = delay - last;
        if step < self.grain.min_rise() || self.rise.is_some_and(|r| step < r.step * 2) {
            return;
        }
        let recent = self.past[..self.filled].iter().rev().take(BEFORE);
        let before = recent.clone().map(|p| p.least).chain(self.bucket.map(|b| b.least)).min().unwrap_or(last);
        let before = self.rise.map_or(before, |r| before.min(r.before));
        let rate = recent.map(|p| p.rate).fold(self.rise.map_or(0.0, |r| r.rate), f64::max);
        self.rise = Some(Rise { at, before, rate, step, received: 0, lost: 0 });
        (self.bucket, self.filled) = (None, 0);
    }

    /// Returns whether a bucket has ended.
    fn fill(&mut self, delay: TimeDelta, at: TimeDelta) -> bool {
        let bucket = self.bucket.get_or_insert(Bucket { since: at, least: delay, packets: 0 });
        bucket.least = bucket.least.min(delay);
        bucket.packets = bucket.packets.saturating_add(1);
        at - bucket.since >= BUCKET && bucket.packets >= BUCKET_PACKETS
    }

    /// Ends the current bucket.
    #[inline(never)]
    fn close(&mut self, at: TimeDelta) {
        let Some(bucket) = self.bucket.take() else { return };
        let age = at - bucket.since;
        if self.filled == ALIKE {
            self.past.rotate_left(1);
            self.filled -= 1;
        }
        let rate = f64::from(bucket.packets) / age.as_secs_f64().max(1e-3);
        self.past[self.filled] = Past { least: bucket.least, rate };
        self.lowest = Some(self.lowest.map_or(bucket.least, |l| l.min(bucket.least)));
        self.filled += 1;
    }

    fn judge(&mut self, at: TimeDelta) {
        let Some(rise) = self.rise else { return };
        let past = &self.past[..self.filled];
        let least = past.iter().map(|p| p.least).min().unwrap_or(rise.before);
        let most = past.iter().map(|p| p.least).max().unwrap_or(rise.before);
        let lasting = least - rise.before;
        let is_over = past.last().is_some_and(|p| p.least - rise.before < MIN_RISE / 2);
        if is_over || at - rise.at > SETTLES_IN {
            self.rise = None;
            return;
        }
        let is_flat = most - least <= (lasting / 8).max(TimeDelta::from_millis(3));
        let is_step = rise.step >= lasting * 2 / 3 && lasting >= self.grain.min_rise();
        let losses = f64::from(rise.lost) / (f64::from(rise.lost) + f64::from(rise.received)).max(1.0);
        if self.filled == ALIKE && is_flat && is_step && losses <= MAX_LOSS {
            // Where less is sent than before and nothing drains, the queue that was there before has drained too.
            let sends_less = past.last().is_some_and(|p| p.rate <= rise.rate * SENDS_LESS);
            let lowest = self.lowest.filter(|_| sends_less).unwrap_or(rise.before);
            self.shift += least - lowest.min(rise.before);
            (self.rise, self.bucket, self.filled, self.last) = (None, None, 0, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(t: f64) -> TimeDelta {
        TimeDelta::from_millis_f64(t)
    }

    /// The path's part found after packets every 10 ms with these delays by time in ms, some of which are lost.
    fn shift(seconds: i64, delay: impl Fn(i64) -> f64, is_lost: impl Fn(i64) -> bool) -> f64 {
        let mut path = LongerPath::default();
        for t in (0..seconds * 1_000).step_by(10) {
            if is_lost(t) {
                path.on_lost(1);
            } else {
                path.correct(ms(delay(t)), ms(delay(t)), ms(t as f64));
            }
        }
        path.shift.as_millis_f64()
    }

    #[test]
    fn a_delay_that_rises_at_once_and_stays_is_a_path() {
        for rise in [12.0, 20.0, 40.0, 100.0, 2_000.0] {
            let found = shift(20, |t| 30.0 + if t >= 10_000 { rise } else { 0.0 }, |_| false);
            assert!((rise - 0.1..rise + 0.1).contains(&found), "{rise}: {found}");
            let noisy = |t: i64| 30.0 + (t / 10 * 7 % 11) as f64 + if t >= 10_000 { rise } else { 0.0 };
            let found = if rise > 12.0 { shift(20, noisy, |_| false) } else { rise };
            assert!((rise - 3.0..rise + 3.0).contains(&found), "{rise} with noise: {found}");
        }
    }

    #[test]
    fn a_queue_seen_by_coarse_clocks_is_no_path() {
        for tick in [4, 16] {
            let by_ticks = |t: i64, delay: i64| ((t + delay) / tick * tick - t / tick * tick) as f64;
            // A queue that grows by 60 ms within 20 s, and a path that is longer by 100 ms.
            assert_eq!(shift(20, |t| by_ticks(t, 30 + t * 3 / 1_000), |_| false), 0.0, "{tick} ms");
            let found = shift(20, |t| by_ticks(t, if t < 10_000 { 30 } else { 130 }), |_| false);
            assert!((100.0 - tick as f64..=100.0 + tick as f64).contains(&found), "{tick} ms: {found}");
        }
    }

    #[test]
    fn it_is_found_within_one_and_a_half_seconds() {
        let late = |t: i64| 30.0 + if t >= 10_000 { 100.0 } else { 0.0 };
        let mut path = LongerPath::default();
        let found = (0..2_000)
            .map(|i| i * 10)
            .find(|&t| path.correct(ms(late(t)), ms(late(t)), ms(t as f64)) < ms(31.0) && t > 10_000);
        assert!((11_000..11_500).contains(&found.unwrap_or(0)), "{found:?}");
    }

    #[test]
    fn queues_are_none() {
        // One that grows by 4 ms each packet to 300 ms, loses, and stays full; one that drains.
        let full = |t: i64| 30.0 + ((t - 10_000) as f64 * 0.4).clamp(0.0, 300.0);
        assert_eq!(shift(30, full, |_| false), 0.0);
        // One that is there at once, as after a burst of others, but full.
        let jump = |t: i64| 30.0 + if t >= 10_000 { 300.0 } else { 0.0 };
        assert_eq!(shift(30, jump, |t| t >= 10_000 && t % 100 == 0), 0.0);
        // Stalls of 250 ms, a sawtooth, and jitter.
        assert_eq!(shift(30, |t| 30.0 + (250.0 - (t % 1_500) as f64).max(0.0), |_| false), 0.0);
        assert_eq!(shift(60, |t| 30.0 + ((t / 10) % 400) as f64 * 0.5, |_| false), 0.0);
        assert_eq!(shift(60, |t| 30.0 + (t / 10 * 17 % 61) as f64, |_| false), 0.0);
        // An equilibrium of 20 ms that is reached in a second.
        assert_eq!(shift(60, |t| 30.0 + (t as f64 * 0.02).min(20.0), |_| false), 0.0);
    }

    #[test]
    fn a_longer_path_after_an_interruption_is_found() {
        // 400 ms of nothing, then all that waited, then 60 ms more than before.
        let handover = |t: i64| match t - 10_000 {
            ..0 => 30.0,
            late => 90.0_f64.max(430.0 - late as f64),
        };
        let found = shift(20, handover, |_| false);
        assert!((59.0..61.0).contains(&found), "{found}");
    }
}
