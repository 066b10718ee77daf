//! Competitive mode: a loss-based flow keeps the queue full whatever this flow does.
//!
//! It begins when the queue persists although this flow has cut its rate, and does not shrink, as it would if the flow
//! were alone. Then the rate is additive increase and multiplicative decrease on loss, as that flow's. It ends when the
//! queue has been short for a moment.

use super::Config;

/// Span over which a shrinking queue is recognised, s.
const TREND: f64 = 0.4;
/// Decrease in s/s from which the queue counts as shrinking.
const SHRINKING: f64 = 0.3;
/// Time for which the rate of the last competition counts, s.
const MEMORY: f64 = 10.0;
/// Time after which the rate of the mode is tested, s.
const TEST_TIME: f64 = 0.15;
/// Share of it that has to be served.
const TEST_SHARE: f64 = 0.4;
/// Greatest factor by which what is served has to rise.
const TEST_GAIN: f64 = 1.5;
/// Time for which the mode stays off after a failed test, s; twice as long for each time that the service was found to be this
/// flow's own since the queue was short ...
const BAN: f64 = 3.0;
/// ... up to this, s.
const LONGEST_BAN: f64 = 24.0;
/// Time constant of the means of what is served and sent, s.
const MEAN_TIME: f64 = 0.5;
/// Time in the mode after which they are compared, beyond a round trip, s.
const COMPARED_AFTER: f64 = 0.5;
/// Share of what is sent below which the service is this flow's own. One queue for several flows serves each at its
/// share of what arrives, and flows that heed loss or delay keep what arrives near the capacity.
const OWN_SERVICE: f64 = 0.75;
/// Least change of the rate sent between two decreases that shows whether the link's service follows it ...
const LEAST_CHANGE: f64 = 0.1;
/// ... and the least share of that change by which it does, beside others.
const FOLLOWS: f64 = 0.2;
/// Bits of a usual packet.
const PACKET_BITS: f64 = 9_600.0;

/// What one feedback message says of the competition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pressure {
    /// Its time, s.
    pub(super) now: f64,
    /// Standing queueing delay, s.
    pub(super) queue: f64,
    /// Queueing delay wanted, s.
    pub(super) wanted: f64,
    /// Round-trip time, s.
    pub(super) rtt: f64,
    /// The share of the link that the rate is derived from, bit/s.
    pub(super) reference: f64,
    /// The rate so far, bit/s.
    pub(super) rate: f64,
    /// What the link served of this flow, bit/s; NaN if unknown.
    pub(super) served: f64,
    /// The rate at which these packets were sent, bit/s.
    pub(super) sent: f64,
    /// Departure of the newest packet reported, s.
    pub(super) departure: f64,
    /// Whether packets were lost.
    pub(super) lost: bool,
}

/// What has been sent and served since the last decrease.
#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    /// Least and greatest rate sent, bit/s ...
    sent: Option<(f64, f64)>,
    /// ... and served.
    served: Option<(f64, f64)>,
}

impl Cycle {
    fn observe(&mut self, p: &Pressure) {
        let widen = |range: &mut Option<(f64, f64)>, v: f64| {
            let (least, most) = range.unwrap_or((v, v));
            *range = Some((least.min(v), most.max(v)));
        };
        if p.sent > 0.0 && p.served > 0.0 {
            widen(&mut self.sent, p.sent);
            widen(&mut self.served, p.served);
        }
    }

    /// Whether the link served the same whatever was sent: this flow is alone on it.
    fn is_alone(&self) -> bool {
        let (Some(sent), Some(served)) = (self.sent, self.served) else { return false };
        let (sent, served) = (sent.1 / sent.0 - 1.0, served.1 / served.0 - 1.0);
        sent > LEAST_CHANGE && served < FOLLOWS * sent
    }
}

/// The state of the mode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Competition {
    pressed_since: Option<f64>,
    /// The share before the queue grew.
    settled: f64,
    /// Time and length of the queue, for the trend.
    before: (f64, f64),
    /// The rate while competing.
    rate: Option<f64>,
    calm_since: Option<f64>,
    /// Packets sent from here on show whether the link gives more to a greater rate.
    test_from: f64,
    banned_until: f64,
    /// What the link has to serve then, bit/s.
    test_for: f64,
    /// How often the service was this flow's own since the queue was short.
    apart: i32,
    /// When the mode began, s.
    begun: f64,
    /// What was served and sent lately, bit/s ...
    lately: (f64, f64),
    /// ... and when the mode began.
    begun_with: (f64, f64),
    cut_at: f64,
    cycle: Cycle,
    left: Option<(f64, f64)>,
    updated: f64,
}

impl Competition {
    /// Whether the mode is on.
    pub(super) fn is_on(&self) -> bool {
        self.rate.is_some()
    }

    /// Takes a message; the rate in bit/s while competing.
    pub(super) fn update(&mut self, p: Pressure, c: &Config) -> Option<f64> {
        let elapsed = (p.now - self.updated).clamp(0.0, 1.0);
        self.updated = p.now;
        if p.sent > 0.0 && p.served > 0.0 {
            let kept = if self.lately.0 > 0.0 { libm::exp(-elapsed / MEAN_TIME) } else { 0.0 };
            let (served, sent) = self.lately;
            self.lately = (p.served + kept * (served - p.served), p.sent + kept * (sent - p.sent));
        }
        let margin = c.compete_margin.as_secs_f64();
        let is_long = p.queue > p.wanted + margin;
        if self.rate.is_some() {
            self.compete(p, elapsed, is_long, c);
        } else {
            self.watch(p, is_long, c);
        }
        self.rate
    }

    fn watch(&mut self, p: Pressure, is_long: bool, c: &Config) {
        if !is_long {
            self.apart = 0;
            self.pressed_since = None;
            // Slowly, so that the share before a cut is kept.
            self.settled =
                if self.settled > 0.0 { self.settled + 0.05 * (p.reference - self.settled) } else { p.reference };
            self.before = (p.departure, p.queue);
            return;
        }
        // By departure: what was sent before the cut says nothing of it.
        let since = self.pressed_since.get_or_insert(p.departure);
        let span = p.departure - self.before.0;
        if span >= TREND {
            // The clock stands still while the queue shrinks.
            if p.queue - self.before.1 < -SHRINKING * span {
                *since += span;
            }
            self.before = (p.departure, p.queue);
        }
        let since = *since;
        if p.departure - since > c.compete_after.as_secs_f64() && p.now > self.banned_until {
            self.test_from = p.now + TEST_TIME;
            let again = self.left.filter(|l| p.now - l.0 < MEMORY).map(|l| l.1);
            let rate = again.unwrap_or(c.compete_share * self.settled).max(p.reference);
            self.rate = Some(rate);
            let gain = libm::sqrt(rate / p.rate.max(1.0)).clamp(1.0, TEST_GAIN);
            self.test_for = if p.served > 0.0 { gain * p.served } else { 0.0 };
            self.calm_since = None;
            self.cycle = Cycle::default();
            (self.begun, self.begun_with) = (p.now, self.lately);
        }
    }

    /// Ends the mode for a while: this flow is alone on the link.
    fn end(&mut self, now: f64) {
        self.banned_until = now + (BAN * libm::exp2(f64::from(self.apart))).min(LONGEST_BAN);
        self.rate = None;
        self.pressed_since = None;
    }

    /// Whether the link has served clearly less than was sent for a while, and no more of a greater rate: a queue that others
    /// fill would have grown for them too, and they would have heeded it.
    fn is_served_apart(&self, p: &Pressure) -> bool {
        let ((served, sent), (served_before, sent_before)) = (self.lately, self.begun_with);
        p.now - self.begun > COMPARED_AFTER + p.rtt
            && served < OWN_SERVICE * sent
            && served / served_before - 1.0 < FOLLOWS * (sent / sent_before - 1.0)
    }

    fn compete(&mut self, p: Pressure, elapsed: f64, is_long: bool, c: &Config) {
        let Some(rate) = self.rate.as_mut() else { return };
        // Alone on a link that has become slow, a greater rate is not served.
        if p.departure > self.test_from && p.served < (TEST_SHARE * *rate).max(self.test_for) {
            self.end(p.now);
            return;
        }
        if p.departure > self.test_from {
            self.test_for = 0.0;
        }
        if p.departure > self.test_from && self.is_served_apart(&p) {
            self.apart = (self.apart + 1).min(8);
            self.end(p.now);
            return;
        }
        let Some(rate) = self.rate.as_mut() else { return };
        let rtt = p.rtt.max(0.01);
        self.cycle.observe(&p);
        if p.lost && p.queue > p.wanted && p.now - self.cut_at > rtt {
            *rate *= c.compete_decrease;
            self.cut_at = p.now;
            if core::mem::take(&mut self.cycle).is_alone() {
                self.end(p.now);
                return;
            }
        } else {
            // Beyond half a second, which CUBIC does not heed either.
            let round = rtt.min(0.5);
            *rate += c.compete_increase * PACKET_BITS * elapsed / (round * round);
        }
        if is_long {
            self.calm_since = None;
            return;
        }
        let since = *self.calm_since.get_or_insert(p.now);
        if p.now - since > c.compete_calm.as_secs_f64() {
            self.left = Some((p.now, *rate));
            self.rate = None;
            self.pressed_since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message every 50 ms; what a test varies is set by `of` from the time.
    fn drive(c: &mut Competition, from: f64, to: f64, mut of: impl FnMut(f64, Option<f64>) -> Pressure) -> Option<f64> {
        let mut rate = None;
        let mut at = from;
        while at < to {
            let p = of(at, rate);
            rate = c.update(p, &Config::default());
            at += 0.05;
        }
        rate
    }

    /// A queue of `queue` s on a link that serves `served` bit/s of this flow.
    fn pressure(now: f64, queue: f64, served: f64) -> Pressure {
        Pressure {
            now,
            queue,
            wanted: 0.015,
            rtt: 0.1,
            reference: served,
            rate: served,
            served,
            sent: served,
            departure: now - 0.1,
            lost: false,
        }
    }

    #[test]
    fn a_queue_that_persists_begins_the_mode_at_a_part_of_the_share_before() {
        let mut c = Competition::default();
        drive(&mut c, 0.0, 10.0, |t, _| pressure(t, 0.012, 1e6));
        // Beside TCP: the queue stays although this flow has cut its rate to a tenth.
        assert_eq!(drive(&mut c, 10.0, 11.1, |t, _| pressure(t, 0.2, 1e5)), None);
        let mut begun = None;
        drive(&mut c, 11.1, 11.4, |t, rate| {
            begun = begun.or(rate);
            pressure(t, 0.2, 1e5)
        });
        let begun = begun.expect("competes");
        assert!((0.43e6..0.48e6).contains(&begun), "{begun}");
    }

    #[test]
    fn a_short_queue_or_one_that_shrinks_begins_nothing() {
        let mut c = Competition::default();
        assert_eq!(drive(&mut c, 0.0, 60.0, |t, _| pressure(t, 0.03, 1e6)), None, "within the margin");
        // After a fall to a quarter: 1.2 s of queue, which shrinks by half of its time.
        let shrinking = |t: f64, _| pressure(t, (1.2 - 0.5 * (t - 60.0)).max(0.01), 2.5e5);
        assert_eq!(drive(&mut c, 60.0, 70.0, shrinking), None);
    }

    #[test]
    fn alone_on_a_slow_link_the_test_ends_a_false_alarm() {
        // The capacity has fallen from 2 Mbit/s to 0.25, and the queue does not shrink for long enough: a greater rate is not
        // served, so that the mode ends within its first round trips and does not come back at once.
        let mut c = Competition::default();
        drive(&mut c, 0.0, 10.0, |t, _| pressure(t, 0.012, 2e6));
        let mut on = 0.0;
        let mut longest = 0.0_f64;
        drive(&mut c, 10.0, 13.9, |t, rate| {
            on = if rate.is_some() { on + 0.05 } else { 0.0 };
            longest = longest.max(on);
            pressure(t, 0.4, 0.25e6)
        });
        assert!((0.05..0.5).contains(&longest), "competed for {longest} s");
        assert!(!c.is_on());
        assert!(c.banned_until > 13.9 && c.banned_until < 15.0, "{}", c.banned_until);
    }

    #[test]
    fn it_increases_by_packets_a_round_trip_and_decreases_once_on_loss() {
        let mut c = Competition { rate: Some(1e6), test_from: 0.0, updated: 1.0, ..Competition::default() };
        let served = |t: f64, lost| Pressure { lost, served: 1e6, ..pressure(t, 0.2, 1e6) };
        // 1.2 packets of 9,600 bits in each round trip of 0.1 s: 1.152 Mbit/s in a second.
        drive(&mut c, 1.05, 2.049, |t, _| served(t, false));
        let grown = c.rate.expect("competes");
        assert!((2.0e6..2.2e6).contains(&grown), "{grown}");
        let config = Config::default();
        let cut = c.update(served(2.1, true), &config).expect("competes");
        assert!((cut - 0.83 * grown).abs() < 1.0, "{cut}");
        let again = c.update(served(2.15, true), &config).expect("competes");
        assert!(again > cut, "not twice within a round trip: {again}");
    }

    #[test]
    fn a_link_that_serves_the_same_whatever_is_sent_ends_it_at_a_loss() {
        // From 0.45 to 0.55 Mbit/s in two seconds, then a loss.
        let sent = |t: f64| 0.45e6 + 0.05e6 * (t - 1.0);
        let run = |served: fn(f64) -> f64| {
            let mut c = Competition { rate: Some(0.5e6), test_from: 0.0, updated: 1.0, ..Competition::default() };
            let at = |t: f64| Pressure { sent: sent(t), rtt: 1.0, ..pressure(t, 0.9, served(sent(t))) };
            drive(&mut c, 1.05, 3.0, |t, _| at(t));
            assert!(c.is_on(), "nothing was lost yet");
            c.update(Pressure { lost: true, ..at(3.05) }, &Config::default());
            c
        };
        let alone = run(|_| 0.5e6);
        assert!(!alone.is_on() && alone.banned_until > 6.0, "alone: {alone:?}");
        // Beside an equal flow, what is served follows by half.
        let beside = run(|sent| 0.5e6 + 0.5 * (sent - 0.5e6));
        assert!(beside.is_on(), "beside another flow: {beside:?}");
    }

    #[test]
    fn a_service_of_its_own_that_falls_behind_ends_it_for_longer_each_time() {
        // A bearer of its own serves 0.2 Mbit/s and varies, so that the first test can pass; this flow sends no less: its queue stays.
        let served = |t: f64| 2e5 * (1.0 + 0.5 * (5.0 * t).sin());
        let mut c = Competition::default();
        drive(&mut c, 0.0, 10.0, |t, _| pressure(t, 0.012, 2e5));
        let (mut begins, mut was_on) = (vec![], false);
        let mut queue = 0.2;
        drive(&mut c, 10.0, 40.0, |t, rate| {
            if rate.is_some() && !was_on {
                begins.push(t);
            }
            was_on = rate.is_some();
            let sent = rate.unwrap_or(2e5).max(2e5);
            queue += 0.05 * (sent / 2e5 - 1.0);
            Pressure { sent, rate: sent, ..pressure(t, queue, served(t)) }
        });
        assert!(queue < 4.0, "{queue} s of queue");
        let between: Vec<f64> = begins.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(between.len() >= 2 && between.last() > Some(&(2.0 * BAN)), "{begins:?}");
        // Beside a flow that heeds the queue, what is served follows what is sent.
        let mut c = Competition { rate: Some(2e5), begun_with: (2e5, 2e5), ..Competition::default() };
        let beside = |t: f64, rate: Option<f64>| {
            let sent = rate.unwrap_or(2e5);
            Pressure { sent, rate: sent, ..pressure(t, 0.3, 0.9 * sent) }
        };
        assert!(drive(&mut c, 0.05, 8.0, beside).is_some());
    }

    #[test]
    fn a_queue_that_stays_short_ends_it_and_the_rate_is_remembered() {
        let mut c = Competition { rate: Some(1e6), updated: 1.0, ..Competition::default() };
        assert!(drive(&mut c, 1.0, 1.19, |t, _| pressure(t, 0.01, 1e6)).is_some());
        assert_eq!(drive(&mut c, 1.19, 1.5, |t, _| pressure(t, 0.01, 1e6)), None);
        assert!(c.left.is_some_and(|(_, rate)| rate >= 1e6));
        let mut again = None;
        drive(&mut c, 1.5, 3.2, |t, rate| {
            again = again.or(rate);
            Pressure { served: 2e6, ..pressure(t, 0.2, 5e5) }
        });
        assert!(again.is_some_and(|rate| rate >= 1e6), "begins at the rate of the last time: {again:?}");
    }
}
