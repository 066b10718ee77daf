//! The receiver's clock against this end's: its skew and its steps, by the delay of feedback.
//!
//! A clock that runs fast or is set forwards makes media look later and feedback look earlier by the same time, while a queue in front
//! of the media leaves the feedback's delay alone. Only the least delays count, as in V. Paxson, "On Calibrating Measurements of Packet Transit
//! Times" (SIGMETRICS 1998), section 4; the slope is the median of the slopes between them (H. Theil, 1950; P. Sen, 1968), which a
//! passing queue on the way back hardly moves.

use weir_units::{RemoteTimestamp, TimeDelta, Timestamp};

/// Time over which the least delay is taken, and how many such times are kept: two minutes.
const BUCKET: TimeDelta = TimeDelta::from_secs(5);
const BUCKETS: usize = 24;
/// Fewest of them that make a slope: half a minute.
const ENOUGH: usize = 6;
/// Greatest skew that is believed: RFC 5905, section 7.3, tolerates 500 ppm, against each of two clocks.
const MAX_SKEW: f64 = 1e-3;
/// Least skew that is removed: 2.4 ms in the two minutes.
const MIN_SKEW: f64 = 2e-5;
/// Least delays that differ from the line by more than this, in the median, are none of a clock.
const MAX_RESIDUAL_NS: f64 = 2e6;
/// Time during which an earlier skew is assumed to have been the same.
const SAME_SKEW: TimeDelta = TimeDelta::from_secs(600);
/// Least step of the clock: less is within what the holding time of feedback varies by.
const MIN_STEP_NS: i64 = 30_000_000;
/// Time after a step in which its size becomes exact, by less and less delayed feedback.
const SETTLES_IN: TimeDelta = TimeDelta::from_secs(2);

/// How far the receiver's clock has got ahead of this end's.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockOffset {
    buckets: [(f64, f64); BUCKETS],
    filled: usize,
    bucket: Option<Bucket>,
    began: Option<Timestamp>,
    /// Time gained in a second by skew, and gained so far by it alone, until `drifted_at`.
    skew: f64,
    drifted_ns: f64,
    drifted_at: Timestamp,
    /// Part of it that has been taken off at once.
    taken_ns: f64,
    stepped_ns: i64,
    /// [`Self::ahead_ns`], which changes with feedback and is read with each packet.
    ahead_ns: i64,
    step_at: Option<Timestamp>,
    /// Least delay of feedback since the last step back, without steps; the last delays of media and feedback.
    least_ns: Option<i64>,
    media_ns: Option<i64>,
    back_ns: Option<i64>,
}

/// The least delay of a time that has not ended.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    since: Timestamp,
    least_ns: i64,
    at: Timestamp,
}

impl ClockOffset {
    /// Takes the newest packet of a feedback message that has come at `now`.
    pub(crate) fn on_feedback(&mut self, now: Timestamp, departure: Timestamp, arrival: RemoteTimestamp) {
        let media = arrival.as_nanos().saturating_sub(departure.as_nanos());
        let back = now.as_nanos().saturating_sub(arrival.as_nanos());
        self.began.get_or_insert(now);
        let steady = back.saturating_add(self.stepped_ns);
        let jump = self.media_ns.replace(media).map_or(0, |before| media.saturating_sub(before));
        let sooner = self.back_ns.replace(back).map_or(0, |before| before.saturating_sub(back));
        let drop = self.least_ns.map_or(0, |least| least.saturating_sub(steady));
        let is_settling = self.step_at.is_some_and(|at| now - at < SETTLES_IN);
        // Media come later by as much as feedback comes sooner, or the other way round.
        let is_opposite = jump.signum() == sooner.signum() && mirrors(jump, sooner);
        if drop >= MIN_STEP_NS && is_opposite {
            self.stepped_ns = self.stepped_ns.saturating_add(drop);
            self.step_at = Some(now);
        } else if is_settling && drop > 0 {
            self.stepped_ns = self.stepped_ns.saturating_add(drop);
        } else if jump <= -MIN_STEP_NS && is_opposite {
            // Set back: the base delay follows by itself, but this minimum does not.
            self.least_ns = None;
            self.forget();
        }
        let steady = back.saturating_add(self.stepped_ns);
        self.least_ns = Some(self.least_ns.map_or(steady, |l| l.min(steady)));
        self.drift(steady, now);
    }

    /// Takes a round-trip time at an end that has no feedback but receives the media, with the delay of the newest packet. Its clock's skew
    /// alone follows from that, since the two are not of the same instant.
    pub(crate) fn on_round_trip(&mut self, now: Timestamp, rtt: TimeDelta, media: TimeDelta) {
        self.began.get_or_insert(now);
        self.drift((rtt - media).as_nanos(), now);
    }

    /// The delay of feedback without steps.
    fn drift(&mut self, steady: i64, now: Timestamp) {
        self.measure(steady, now);
        self.drifted_ns += self.skew * (now - self.drifted_at).as_nanos().max(0) as f64;
        self.drifted_at = now;
        self.ahead_ns = self.stepped_ns.saturating_add(self.drifted_ns as i64);
    }

    /// Nanoseconds by which the receiver's clock has got ahead, of those that can be told.
    #[inline]
    pub(crate) fn ahead_ns(&self) -> i64 {
        self.ahead_ns
    }

    fn forget(&mut self) {
        (self.filled, self.bucket) = (0, None);
    }

    fn measure(&mut self, steady: i64, now: Timestamp) {
        let Some(bucket) = &mut self.bucket else {
            self.bucket = Some(Bucket { since: now, least_ns: steady, at: now });
            return;
        };
        if steady < bucket.least_ns {
            (bucket.least_ns, bucket.at) = (steady, now);
        }
        if now - bucket.since < BUCKET {
            return;
        }
        let ended = core::mem::replace(bucket, Bucket { since: now, least_ns: steady, at: now });
        if self.filled == BUCKETS {
            self.buckets.rotate_left(1);
            self.filled -= 1;
        }
        self.buckets[self.filled] = ((ended.at - Timestamp::ZERO).as_nanos() as f64, ended.least_ns as f64);
        self.filled += 1;
        if let Some(skew) = self.slope() {
            self.turn(skew, now);
        }
    }

    /// The skew from now on. The time that a greater one has added before is taken off at once, since minima are of earlier times.
    fn turn(&mut self, skew: f64, now: Timestamp) {
        let more = skew - self.skew;
        let since = self.began.map_or(TimeDelta::ZERO, |b| now - b).min(SAME_SKEW);
        // A lower one gives back no more than that, so that estimates that vary add up to nothing.
        let change = (more * since.as_nanos() as f64).max(-self.taken_ns);
        self.taken_ns += change;
        self.drifted_ns += change;
        self.skew = skew;
    }

    /// The skew by the least delays; `None` where they are too few, or not on a line.
    fn slope(&self) -> Option<f64> {
        let points = &self.buckets[..self.filled];
        if points.len() < ENOUGH {
            return None;
        }
        let mut slopes = [0.0; BUCKETS * (BUCKETS - 1) / 2];
        let mut count = 0;
        for (i, a) in points.iter().enumerate() {
            for b in &points[i + 1..] {
                slopes[count] = (b.1 - a.1) / (b.0 - a.0).max(1.0);
                count += 1;
            }
        }
        let slope = median(&mut slopes[..count]);
        let mut rest = [0.0; BUCKETS];
        for (r, p) in rest.iter_mut().zip(points) {
            *r = p.1 - points[0].1 - slope * (p.0 - points[0].0);
        }
        let mut sorted = rest;
        let middle = median(&mut sorted[..points.len()]);
        rest[..points.len()].iter_mut().for_each(|r| *r = (*r - middle).abs());
        let residual = median(&mut rest[..points.len()]);
        let span = points[points.len() - 1].0 - points[0].0;
        let skew = -slope;
        let is_clear = skew.abs() >= MIN_SKEW && (slope * span).abs() >= 4.0 * residual;
        (residual <= MAX_RESIDUAL_NS && skew.abs() <= MAX_SKEW).then_some(if is_clear { skew } else { 0.0 })
    }
}

/// Whether one is half to twice the other.
fn mirrors(a: i64, b: i64) -> bool {
    let (a, b) = (a.saturating_abs(), b.saturating_abs());
    a / 2 <= b && b / 2 <= a
}

fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minute or more of feedback each 50 ms: a receiver's clock, and the delay of feedback in ms by time in ms.
    fn after(seconds: i64, clock: impl Fn(i64) -> f64, back: impl Fn(i64) -> f64) -> f64 {
        let mut offset = ClockOffset::default();
        for t in (0..seconds * 1_000).step_by(50) {
            let arrival = t as f64 + clock(t);
            let nanos = |ms: f64| (ms * 1e6) as i64;
            offset.on_feedback(
                Timestamp::from_nanos(nanos(t as f64 + back(t))),
                Timestamp::from_nanos(nanos(t as f64 - 30.0)),
                RemoteTimestamp::from_nanos(nanos(arrival) + 5_000_000_000),
            );
        }
        offset.ahead_ns() as f64 * 1e-6
    }

    fn back(t: i64) -> f64 {
        30.0 + (t / 50 * 7 % 11) as f64
    }

    #[test]
    fn skew_is_removed_to_the_millisecond() {
        for ppm in [100.0, 40.0, 300.0] {
            let drift = after(300, |t| t as f64 * ppm * 1e-6, back);
            let right = 300e3 * ppm * 1e-6;
            assert!((right - 1.0..right + 1.0).contains(&drift), "{ppm} ppm: {drift} ms");
        }
        // A slow clock is followed only from the time at which it is known.
        let slow = after(300, |t| t as f64 * -100e-6, back);
        assert!((-27.0..-22.0).contains(&slow), "{slow} ms");
    }

    #[test]
    fn half_an_hour_of_varying_estimates_adds_nothing() {
        let noisy = |t: i64| back(t) + (t / 5_000 * 7_919 % 13) as f64 * 0.4;
        let drift = after(1_800, |t| t as f64 * 100e-6, noisy);
        assert!((175.0..185.0).contains(&drift), "{drift} ms");
    }

    #[test]
    fn equal_clocks_stay_equal_beside_queues_on_the_way_back() {
        assert_eq!(after(300, |_| 0.0, back), 0.0);
        // From 100 s on a queue that stays, and one that comes and goes.
        assert_eq!(after(300, |_| 0.0, |t| back(t) + if t > 100_000 { 40.0 } else { 0.0 }), 0.0);
        let busy = after(300, |_| 0.0, |t| back(t) + (t / 1_000 * 37 % 90) as f64);
        assert!(busy.abs() < 3.0, "{busy} ms");
    }

    #[test]
    fn a_step_forwards_is_found_within_a_few_milliseconds() {
        for step in [50.0, 2_000.0, 15_000.0] {
            let found = after(60, |t| if t >= 30_000 { step } else { 0.0 }, back);
            assert!((step - 1.5..step + 1.5).contains(&found), "{step} ms: {found}");
        }
    }

    #[test]
    fn a_step_back_is_left_to_the_minimum_and_the_next_is_found() {
        assert_eq!(after(60, |t| if t >= 30_000 { -2_000.0 } else { 0.0 }, back), 0.0);
        let twice = after(90, |t| if (30_000..60_000).contains(&t) { -2_000.0 } else { 0.0 }, back);
        assert!((1_998.0..2_002.0).contains(&twice), "{twice}");
    }

    #[test]
    fn wild_times_stay_in_bounds() {
        let mut offset = ClockOffset::default();
        for (i, arrival) in [0, i64::MAX, i64::MIN, 5, i64::MAX, -1].into_iter().cycle().take(10_000).enumerate() {
            let now = Timestamp::from_millis(i as i64 * 100);
            offset.on_feedback(now, now, RemoteTimestamp::from_nanos(arrival));
            let _ = offset.ahead_ns();
        }
    }
}
