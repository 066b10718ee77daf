//! Competitive mode: a loss-based flow keeps the queue full whatever this flow does.
//!
//! It begins when the queue persists although this flow has cut its rate, and does not shrink, as it would if the flow
//! were alone. Then the rate is additive increase and multiplicative decrease on loss, as that flow's. It ends when the
//! queue has been short for a moment.

use super::super::config::CompeteConfig;
use super::super::quantity::{PACKET, Rate, Span, Time};

/// Share of the longest queue below which others have yielded as well.
const YIELDED: f64 = 0.75;
/// Time for which the rate of the last competition counts.
const MEMORY: Span = Span::secs(10.0);
/// Time after which the rate of the mode is tested.
const TEST_TIME: Span = Span::secs(0.15);
/// Share of what is sent in the mode that has to be served.
const TEST_SHARE: f64 = 0.4;
/// Ratio of what is sent in the mode and the rate of service before from which the test can tell whether the link serves more: a source
/// does not send each rate at once. Measured beside 1.05 (`docs/sluice-tried.md`).
const TEST_MORE: f64 = 1.2;
/// Greatest factor by which the rate of service has to rise in the test.
const TEST_GAIN: f64 = 1.5;
/// Time for which the mode stays off after a failed test; twice as long for each time that the service was found to be this
/// flow's own since the queue was short.
const BAN: Span = Span::secs(3.0);
/// The same in lengths of the test, at least: what was sent in it fills a queue of this flow's own, which is as long as the test took to
/// show it, and leaves no faster than the floor allows. Measured beside 4 (`docs/sluice-tried.md`).
const BAN_TESTS: f64 = 8.0;
/// Longest time for which the mode stays off.
const LONGEST_BAN: Span = Span::secs(24.0);
/// Weight of each message in the share before the queue grew: slow, so that the share before a cut is remembered.
const SETTLING: f64 = 0.05;
/// Time constant of the means of the rates served and sent.
const MEAN_TIME: Span = Span::secs(0.5);
/// Time in the mode after which these means are compared, beyond a round trip.
const COMPARED_AFTER: Span = Span::secs(0.5);
/// Share of the rate sent below which the service is this flow's own. One queue for several flows serves each at its
/// share of the arrivals, and flows that heed loss or delay keep the arrivals near the capacity.
const OWN_SERVICE: f64 = 0.75;
/// Least change of the rate sent between two decreases that shows whether the link's service follows it.
const LEAST_CHANGE: f64 = 0.1;
/// Least share of a change of the rate sent by which the service follows it, beside others.
const FOLLOWS: f64 = 0.2;
/// Most times that the service is counted as this flow's own.
const MOST_APART: i32 = 8;
/// Least round-trip time of the increase and of the interval between decreases.
const LEAST_RTT: Span = Span::secs(0.01);
/// Round-trip time from which the increase does not become slower: CUBIC does not heed a longer one either.
const MOST_RTT: Span = Span::secs(0.5);

/// The state of path and flow at one feedback message.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Pressure {
    /// Arrival of the message.
    pub(in super::super) now: Time,
    /// Standing queueing delay.
    pub(in super::super) queue: Span,
    /// Queueing delay wanted.
    pub(in super::super) wanted: Span,
    /// Longest queueing delay that flows of this kind want.
    pub(in super::super) most: Span,
    /// Round-trip time.
    pub(in super::super) rtt: Span,
    /// The share of the link that the rate is derived from.
    pub(in super::super) share: Rate,
    /// The rate at which the link served this flow, if known.
    pub(in super::super) served: Option<Rate>,
    /// The rate at which the packets served were sent, if known.
    pub(in super::super) sent: Option<Rate>,
    /// The rate at which the source did send them, if known: it meets the rate in the mean alone.
    pub(in super::super) source: Option<Rate>,
    /// Departure of the newest packet reported.
    pub(in super::super) departure: Time,
    /// Whether packets were lost.
    pub(in super::super) lost: bool,
}

/// Rates of one flow at both ends of the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    served: Rate,
    sent: Rate,
}

impl Pressure {
    /// The rates served and sent, if both are known and neither is zero.
    fn throughput(&self) -> Option<Throughput> {
        let (served, sent) = (self.served?, self.sent?);
        (sent > Rate::ZERO && served > Rate::ZERO).then_some(Throughput { served, sent })
    }
}

/// The least and the greatest rates since the last decrease.
#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    range: Option<(Throughput, Throughput)>,
}

impl Cycle {
    fn observe(&mut self, p: &Pressure) {
        let Some(t) = p.throughput() else { return };
        let (least, most) = self.range.unwrap_or((t, t));
        let least = Throughput { served: least.served.min(t.served), sent: least.sent.min(t.sent) };
        let most = Throughput { served: most.served.max(t.served), sent: most.sent.max(t.sent) };
        self.range = Some((least, most));
    }

    /// Whether the link served the same whatever was sent: this flow is alone on it.
    fn is_alone(&self) -> bool {
        let Some((least, most)) = self.range else { return false };
        let (sent, served) = (most.sent / least.sent - 1.0, most.served / least.served - 1.0);
        sent > LEAST_CHANGE && served < FOLLOWS * sent
    }
}

/// Watching for a queue that persists, while the mode is off.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    /// Departure from which the queue has been too long.
    pressed_since: Option<Time>,
    /// The longest queue since then.
    peak: Span,
    /// The share before the queue grew.
    settled: Rate,
    /// The mode stays off until then.
    banned_until: Time,
    /// How often the service was this flow's own since the queue was short.
    apart: i32,
    /// End and rate of the last competition.
    left: Option<(Time, Rate)>,
}

/// The mode while it is on.
#[derive(Clone, Copy, Debug, Default)]
struct Contest {
    rate: Rate,
    /// Begin of the mode.
    begun: Time,
    /// Mean rates at that time.
    begun_with: Throughput,
    test: Test,
    /// Time from which the queue has been short.
    calm_since: Option<Time>,
    cycle: Cycle,
}

/// The test whether the link gives more to a greater rate.
#[derive(Clone, Copy, Debug, Default)]
struct Test {
    /// Packets sent from here on show it.
    from: Time,
    /// The rate of service before, until it is passed.
    before: Option<Rate>,
}

impl Test {
    /// Whether packets of the mode show that the link does not serve more of more: this flow is alone on it. All that is
    /// compared is of the same packets, whatever the source makes of the rate, and however many of them were sent before the mode.
    fn fails(&mut self, p: &Pressure) -> bool {
        let (Some(served), Some(sent)) = (p.served, p.source) else { return false };
        let before = self.before.filter(|before| sent > TEST_MORE * *before);
        let gain = |before: Rate| libm::sqrt(sent / before).min(TEST_GAIN);
        let least = before.map_or(Rate::ZERO, |before| gain(before) * before);
        let fails = served < least.max(TEST_SHARE * sent);
        if before.is_some() && !fails {
            self.before = None;
        }
        fails
    }
}

/// The state of the mode.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Competition {
    watch: Watch,
    contest: Option<Contest>,
    /// Mean rates of late.
    lately: Throughput,
    /// Last decrease.
    cut_at: Time,
    updated: Time,
}

impl Competition {
    /// Whether the mode is on.
    pub(in super::super) fn is_on(&self) -> bool {
        self.contest.is_some()
    }

    /// Takes a message; the rate while competing.
    pub(in super::super) fn update(&mut self, p: &Pressure, c: &CompeteConfig) -> Option<Rate> {
        let elapsed = (p.now - self.updated).clamp(Span::ZERO, Span::secs(1.0));
        self.updated = p.now;
        if let Some(new) = p.throughput() {
            let weight = if self.lately.served > Rate::ZERO { libm::exp(-(elapsed / MEAN_TIME)) } else { 0.0 };
            let Throughput { served, sent } = self.lately;
            let (served, sent) = (new.served + weight * (served - new.served), new.sent + weight * (sent - new.sent));
            self.lately = Throughput { served, sent };
        }
        let is_long = p.queue > p.wanted + Span::from(c.margin);
        // A slower flow of this kind holds the queue that it wants.
        let is_anothers = is_long && p.queue > p.most + Span::from(c.margin);
        self.contest = match self.contest {
            Some(contest) => self.compete(contest, p, elapsed, is_long, c),
            None => self.watch(p, is_anothers, c),
        };
        self.contest.map(|contest| contest.rate)
    }

    /// Watches the queue; the mode if it begins.
    fn watch(&mut self, p: &Pressure, is_anothers: bool, c: &CompeteConfig) -> Option<Contest> {
        let w = &mut self.watch;
        if !is_anothers {
            w.apart = 0;
            w.pressed_since = None;
            w.settled = w.settled.positive().map_or(p.share, |settled| settled + SETTLING * (p.share - settled));
            return None;
        }
        // A queue of this flow's own falls, and so does one that others yield; a loss-based flow makes it longer.
        if w.pressed_since.is_none() || p.queue < YIELDED * w.peak {
            (w.pressed_since, w.peak) = (None, p.queue);
        }
        w.peak = w.peak.max(p.queue);
        // By departure: packets sent before the cut say nothing of it.
        let since = *w.pressed_since.get_or_insert(p.departure);
        let persists = p.departure - since > c.after.into();
        (persists && p.now > w.banned_until).then(|| self.begin(p, c))
    }

    fn begin(&self, p: &Pressure, c: &CompeteConfig) -> Contest {
        let again = self.watch.left.filter(|left| p.now - left.0 < MEMORY).map(|left| left.1);
        let rate = again.unwrap_or(c.share * self.watch.settled).max(p.share);
        Contest {
            rate,
            begun: p.now,
            begun_with: self.lately,
            test: Test { from: p.now + TEST_TIME, before: p.served.and_then(Rate::positive) },
            ..Contest::default()
        }
    }

    /// Keeps the mode off for a while, at least for a time: this flow is alone on the link.
    fn ban(&mut self, least: Span, now: Time) {
        let w = &mut self.watch;
        w.banned_until = now + (BAN * libm::exp2(f64::from(w.apart))).max(least).min(LONGEST_BAN);
        w.pressed_since = None;
    }

    /// Whether the link has served clearly less than was sent for a while, and no more of a greater rate: a queue that others
    /// fill would have grown for them too, and they would have heeded it.
    fn is_served_apart(&self, contest: &Contest, p: &Pressure) -> bool {
        let (now, before) = (self.lately, contest.begun_with);
        p.now - contest.begun > COMPARED_AFTER + p.rtt
            && now.served < OWN_SERVICE * now.sent
            && now.served / before.served - 1.0 < FOLLOWS * (now.sent / before.sent - 1.0)
    }

    /// A message in the mode; `None` if it ends.
    fn compete(
        &mut self,
        mut contest: Contest,
        p: &Pressure,
        elapsed: Span,
        is_long: bool,
        c: &CompeteConfig,
    ) -> Option<Contest> {
        if p.departure > contest.test.from {
            let is_first = contest.test.before.is_some();
            if contest.test.fails(p) {
                self.ban(if is_first { BAN_TESTS * (p.now - contest.begun) } else { BAN }, p.now);
                return None;
            }
            if self.is_served_apart(&contest, p) {
                self.watch.apart = (self.watch.apart + 1).min(MOST_APART);
                self.ban(BAN, p.now);
                return None;
            }
        }
        let rtt = p.rtt.max(LEAST_RTT);
        contest.cycle.observe(p);
        if p.lost && p.queue > p.wanted && p.now - self.cut_at > rtt {
            contest.rate *= c.decrease;
            self.cut_at = p.now;
            if core::mem::take(&mut contest.cycle).is_alone() {
                self.ban(BAN, p.now);
                return None;
            }
        } else {
            contest.rate += increase(c.increase, elapsed, rtt.min(MOST_RTT));
        }
        self.calm(contest, p, is_long, c)
    }

    /// Ends the mode, and remembers its rate, where the queue has been short for a while.
    fn calm(&mut self, mut contest: Contest, p: &Pressure, is_long: bool, c: &CompeteConfig) -> Option<Contest> {
        if is_long {
            contest.calm_since = None;
            return Some(contest);
        }
        let since = *contest.calm_since.get_or_insert(p.now);
        if p.now - since > c.calm.into() {
            self.watch.left = Some((p.now, contest.rate));
            self.watch.pressed_since = None;
            return None;
        }
        Some(contest)
    }
}

/// Growth in some time by so many packets per round trip in each round trip.
fn increase(packets: f64, elapsed: Span, rtt: Span) -> Rate {
    Rate::bps((packets * PACKET * elapsed.as_secs()).as_bits() / (rtt.as_secs() * rtt.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message every 50 ms; `of` makes it from the time and the rate in bit/s.
    fn drive(c: &mut Competition, from: f64, to: f64, mut of: impl FnMut(f64, Option<f64>) -> Pressure) -> Option<f64> {
        let mut rate = None;
        let mut at = from;
        while at < to {
            let p = of(at, rate);
            rate = update(c, &p);
            at += 0.05;
        }
        rate
    }

    fn update(c: &mut Competition, p: &Pressure) -> Option<f64> {
        c.update(p, &CompeteConfig::default()).map(Rate::as_bps)
    }

    /// A queue of `queue` s on a link that serves `served` bit/s of this flow.
    fn pressure(now: f64, queue: f64, served: f64) -> Pressure {
        let rate = Rate::bps(served);
        Pressure {
            now: Time::secs(now),
            queue: Span::secs(queue),
            wanted: Span::secs(0.015),
            most: Span::secs(0.04),
            rtt: Span::secs(0.1),
            share: rate,
            served: Some(rate),
            sent: Some(rate),
            source: Some(rate),
            departure: Time::secs(now - 0.1),
            lost: false,
        }
    }

    /// A message that says so while `sent` bit/s are sent.
    fn sending(sent: f64, p: Pressure) -> Pressure {
        let rate = Some(Rate::bps(sent));
        Pressure { sent: rate, source: rate, ..p }
    }

    /// The mode since time zero at a rate in bit/s.
    fn competing(rate: f64, updated: f64) -> Competition {
        let contest = Some(Contest { rate: Rate::bps(rate), ..Contest::default() });
        Competition { contest, updated: Time::secs(updated), ..Competition::default() }
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
    fn a_queue_that_others_of_this_kind_hold_or_yield_begins_nothing() {
        let mut c = Competition::default();
        assert_eq!(drive(&mut c, 0.0, 20.0, |t, _| pressure(t, 0.055, 1e6)), None, "40 ms and the margin");
        // After a common start: the queue shrinks for seconds, by a quarter in each.
        let yields = |t: f64, _| pressure(t, 0.2 * libm::exp(-0.3 * (t - 20.0)), 1e6);
        assert_eq!(drive(&mut c, 20.0, 30.0, yields), None);
        assert!(drive(&mut c, 30.0, 32.0, |t, _| pressure(t, 0.06, 1e6)).is_some(), "it stays");
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
            sending(rate.unwrap_or(0.25e6), pressure(t, 0.4, 0.25e6))
        });
        assert!((0.05..0.5).contains(&longest), "competed for {longest} s");
        assert!(!c.is_on());
        let until = c.watch.banned_until;
        assert!((Time::secs(13.9)..Time::secs(15.0)).contains(&until), "{until:?}");
    }

    #[test]
    fn a_test_that_takes_long_to_fail_keeps_the_mode_off_for_longer() {
        // A queue of this flow's own, 2 s long: what is sent shows after them.
        let mut c = Competition::default();
        drive(&mut c, 0.0, 10.0, |t, _| pressure(t, 0.012, 1e6));
        let late = |t: f64, rate: Option<f64>| {
            let departure = Time::secs(t - 2.0);
            sending(rate.unwrap_or(0.2e6), Pressure { departure, ..pressure(t, 2.0, 0.2e6) })
        };
        drive(&mut c, 12.0, 40.0, late);
        let until = c.watch.banned_until;
        assert!(!c.is_on() && until > Time::secs(40.0), "{until:?}");
        assert!(until - Time::secs(40.0) < LONGEST_BAN, "{until:?}");
    }

    #[test]
    fn a_source_that_sends_less_than_the_rate_neither_fails_nor_passes_the_test() {
        let rate = |mbps: f64| Some(Rate::bps(mbps * 1e6));
        let at = |served: f64, source: f64| Pressure {
            served: rate(served),
            source: rate(source),
            ..pressure(1.0, 0.2, 1e6)
        };
        let mut test = Test { from: Time::START, before: rate(0.5) };
        // Beside others, who take as much of what is sent as before: 0.45 of 0.5 Mbit/s is no fall of the service.
        assert!(!test.fails(&at(0.45, 0.5)) && test.before.is_some());
        assert!(Test { ..test }.fails(&at(0.5, 0.8)), "alone: 0.8 Mbit/s are sent, and no more is served");
        assert!(!test.fails(&at(0.7, 0.8)) && test.before.is_none());
        assert!(!test.fails(&at(0.5, 0.8)), "it is passed once");
        assert!(test.fails(&at(0.2, 0.8)), "but most of what is sent has to be served");
        assert!(!test.fails(&Pressure { source: None, ..at(0.2, 0.8) }));
    }

    #[test]
    fn it_increases_by_packets_a_round_trip_and_decreases_once_on_loss() {
        let mut c = competing(1e6, 1.0);
        let served = |t: f64, lost| Pressure { lost, ..pressure(t, 0.2, 1e6) };
        // 1.2 packets of 9,600 bits in each round trip of 0.1 s: 1.152 Mbit/s in a second.
        drive(&mut c, 1.05, 2.049, |t, _| served(t, false));
        let grown = c.contest.expect("competes").rate.as_bps();
        assert!((2.0e6..2.2e6).contains(&grown), "{grown}");
        let cut = update(&mut c, &served(2.1, true)).expect("competes");
        assert!((cut - 0.83 * grown).abs() < 1.0, "{cut}");
        let again = update(&mut c, &served(2.15, true)).expect("competes");
        assert!(again > cut, "not twice within a round trip: {again}");
    }

    #[test]
    fn a_link_that_serves_the_same_whatever_is_sent_ends_it_at_a_loss() {
        // From 0.45 to 0.55 Mbit/s in two seconds, then a loss.
        let sent = |t: f64| 0.45e6 + 0.05e6 * (t - 1.0);
        let run = |served: fn(f64) -> f64| {
            let mut c = competing(0.5e6, 1.0);
            let rtt = Span::secs(1.0);
            let rate = |t: f64| Some(Rate::bps(sent(t)));
            let at = |t: f64| Pressure { sent: rate(t), rtt, ..pressure(t, 0.9, served(sent(t))) };
            drive(&mut c, 1.05, 3.0, |t, _| at(t));
            assert!(c.is_on(), "nothing was lost yet");
            update(&mut c, &Pressure { lost: true, ..at(3.05) });
            c
        };
        let alone = run(|_| 0.5e6);
        assert!(!alone.is_on() && alone.watch.banned_until > Time::secs(6.0), "alone: {alone:?}");
        // Beside an equal flow, the rate served follows by half.
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
            sending(sent, pressure(t, queue, served(t)))
        });
        assert!(queue < 4.0, "{queue} s of queue");
        let between: Vec<f64> = begins.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(between.len() >= 2 && between.last() > Some(&(2.0 * BAN.as_secs())), "{begins:?}");
        // Beside a flow that heeds the queue, the rate served follows the rate sent.
        let mut c = competing(2e5, 0.0);
        let rate = Rate::bps(2e5);
        c.contest.as_mut().expect("on").begun_with = Throughput { served: rate, sent: rate };
        let beside = |t: f64, rate: Option<f64>| {
            let sent = rate.unwrap_or(2e5);
            sending(sent, pressure(t, 0.3, 0.9 * sent))
        };
        assert!(drive(&mut c, 0.05, 8.0, beside).is_some());
    }

    #[test]
    fn a_queue_that_stays_short_ends_it_and_the_rate_is_remembered() {
        let mut c = competing(1e6, 1.0);
        assert!(drive(&mut c, 1.0, 1.19, |t, _| pressure(t, 0.01, 1e6)).is_some());
        assert_eq!(drive(&mut c, 1.19, 1.5, |t, _| pressure(t, 0.01, 1e6)), None);
        assert!(c.watch.left.is_some_and(|(_, rate)| rate >= Rate::bps(1e6)));
        let mut again = None;
        drive(&mut c, 1.5, 3.2, |t, rate| {
            again = again.or(rate);
            Pressure { served: Some(Rate::bps(2e6)), ..pressure(t, 0.2, 5e5) }
        });
        assert!(again.is_some_and(|rate| rate >= 1e6), "begins at the rate of the last time: {again:?}");
    }
}
