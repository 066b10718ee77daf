//! How much of the allowed rate the source and the pacer use.

use super::super::history::RateHistory;
use super::super::quantity::{Bits, PACKET, Span, Time};
use super::Sample;

/// Time constant of the shares: measured beside 0.15 and 0.3 s (`docs/sluice-tried.md`).
const TIME: Span = Span::secs(0.1);
/// The same of the share that arrives, in loops, where it is longer: all that a loop holds is reckoned with that share.
const LOOPS: f64 = 0.25;
/// Time constant with which an excess is forgotten.
const EXCESS_TIME: Span = Span::secs(0.3);
/// Time constant of the mean deviation.
const BURST_TIME: Span = Span::secs(2.0);
/// Time constants of the share of time in which the source sends in bursts, and of the use that its share is divided by. After a stop of the
/// link what has waited looks like bursts for seconds: measured beside 10 s (`docs/sluice-tried.md`).
const LASTING_TIME: Span = Span::secs(5.0);
const LONG_TIME: Span = Span::secs(3.0);
/// Share of that time from which bursts are the source's own: after 15 s of them. Measured beside 0.8.
const LASTING: f64 = 0.95;
/// Greatest deviation of such a source: one with more sends now and then, as a shared screen does.
const MOST_LASTING: Span = Span::secs(0.05);
/// Greatest excess that counts as such.
const MOST_BURST: Span = Span::secs(0.2);
/// Greatest excess rate that is believed, of the rate.
const MOST_EXCESS: f64 = 100.0;
/// Factor to the mean rate before within which the rate counts as steady.
const STEADY: f64 = 1.25;
/// Time over which that mean is taken.
const STEADY_TIME: Span = Span::secs(0.15);

/// Sums over the last packets reported. A mean of ratios would not do: trains of packets bias it.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Usage {
    sent: Bits,
    allowed: Bits,
    /// Sums over a longer time.
    arrived: Bits,
    arrived_allowed: Bits,
    /// Data sent beyond the rate of late, as the time that it takes at the rate.
    excess: Span,
    burst: Span,
    /// Sums over seconds.
    long_sent: Bits,
    long_allowed: Bits,
    /// Share of the time of late in which the source has sent in bursts.
    lasting: f64,
}

/// Data of the packets that one message reports.
#[derive(Clone, Copy, Debug)]
struct Passed {
    /// Time in which they were sent.
    time: Span,
    sent: Bits,
    arrived: Bits,
    /// Data that the rate allowed in that time; more than zero.
    allowed: Bits,
    /// Whether the rate was steady before.
    is_steady: bool,
    /// Time until a change of the rate shows.
    loop_time: Span,
}

impl Usage {
    /// Takes a message. `newest` is the departure of the newest packet reported before it, `least` the deviation from which the source
    /// sends in bursts.
    pub(in super::super) fn observe(
        &mut self,
        sample: &Sample,
        (newest, least): (Time, Span),
        loop_time: Span,
        history: &RateHistory,
    ) {
        let allowed = history.bits(sample.last_departure) - history.bits(newest);
        if allowed > Bits::ZERO && sample.last_departure > newest {
            let time = sample.last_departure - newest;
            // Packets whose report was lost have been sent all the same, and fared as the others.
            let known = f64::from(sample.received) + f64::from(sample.lost);
            let all = 1.0 + f64::from(sample.unreported) / known;
            let (sent, arrived) = ((sample.size + f64::from(sample.lost) * PACKET) * all, sample.size * all);
            // Frames coded at another rate are no bursts of the source.
            let is_steady = history.mean(newest - STEADY_TIME, newest).is_some_and(|rate| {
                let before = rate * time;
                (before / STEADY..before * STEADY).contains(&allowed)
            });
            self.last(time, f64::from(u8::from(self.burst > least)));
            self.add(Passed { time, sent, arrived, allowed, is_steady, loop_time });
        }
    }

    /// Feedback was missing for long: what the link has held up since is no burst of the source.
    pub(in super::super) fn interrupt(&mut self) {
        self.lasting = 0.0;
    }

    /// The source has sent in bursts (1) or not (0) for this time.
    fn last(&mut self, time: Span, is_bursty: f64) {
        self.lasting += (1.0 - libm::exp(-(time / LASTING_TIME))) * (is_bursty - self.lasting);
    }

    fn add(&mut self, p: Passed) {
        let keep = libm::exp(-(p.time / LONG_TIME));
        self.long_sent = self.long_sent * keep + p.sent;
        self.long_allowed = self.long_allowed * keep + p.allowed;
        let keep = libm::exp(-(p.time / TIME));
        self.sent = self.sent * keep + p.sent;
        self.allowed = self.allowed * keep + p.allowed;
        let keep = libm::exp(-(p.time / TIME.max(LOOPS * p.loop_time)));
        self.arrived = self.arrived * keep + p.arrived;
        self.arrived_allowed = self.arrived_allowed * keep + p.allowed;
        if !p.is_steady {
            self.excess = Span::ZERO;
            return;
        }
        let more = (p.sent / p.allowed - 1.0).min(MOST_EXCESS) * p.time;
        self.excess = self.excess * libm::exp(-(p.time / EXCESS_TIME)) + more;
        let weight = 1.0 - libm::exp(-(p.time / BURST_TIME));
        self.burst += weight * (self.excess.abs().min(MOST_BURST) - self.burst);
    }

    /// Mean deviation of the data sent from the data allowed, as time at the rate.
    pub(in super::super) fn burst(&self) -> Span {
        self.burst
    }

    /// Whether the source has sent in bursts for long, up to now: by more than `least`.
    pub(in super::super) fn is_lasting(&self, least: Span) -> bool {
        self.burst > least && self.burst < MOST_LASTING && self.lasting > LASTING
    }

    /// Share of the rate that was sent in seconds, 0 to 2.
    pub(in super::super) fn sent_of_late(&self) -> f64 {
        share(self.long_sent, self.long_allowed)
    }

    /// Share of the rate that was sent, 0 to 2.
    pub(in super::super) fn sent(&self) -> f64 {
        share(self.sent, self.allowed)
    }

    /// Share of the rate that arrived, 0 to 2.
    pub(in super::super) fn arrived(&self) -> f64 {
        share(self.arrived, self.arrived_allowed)
    }
}

fn share(bits: Bits, allowed: Bits) -> f64 {
    if allowed > Bits::ZERO { (bits / allowed).min(2.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(u: &mut Usage, s: f64, sent: f64, arrived: f64, allowed: f64, is_steady: bool) {
        let [sent, arrived, allowed] = [sent, arrived, allowed].map(Bits::new);
        u.add(Passed { time: Span::secs(s), sent, arrived, allowed, is_steady, loop_time: Span::ZERO });
    }

    #[test]
    fn trains_of_packets_do_not_bias_the_share() {
        let mut u = Usage::default();
        assert_eq!((u.sent(), u.arrived()), (1.0, 1.0));
        // 500 kbit/s as two packets each 38.4 ms, 4 ms apart; one message each.
        for _ in 0..200 {
            add(&mut u, 0.004, 9_600.0, 9_600.0, 0.004 * 500e3, true);
            add(&mut u, 0.0344, 9_600.0, 4_800.0, 0.0344 * 500e3, true);
        }
        assert!((0.85..1.15).contains(&u.sent()) && (0.55..0.85).contains(&u.arrived()), "{u:?}");
    }

    #[test]
    fn a_limited_source_shows_within_a_tenth_of_a_second() {
        let mut u = Usage::default();
        (0..40).for_each(|_| add(&mut u, 0.025, 25e3, 25e3, 25e3, true));
        (0..4).for_each(|_| add(&mut u, 0.025, 1e3, 1e3, 25e3, true));
        assert!(u.sent() < 0.45 && u.sent_of_late() > 0.85, "{} {}", u.sent(), u.sent_of_late());
    }

    #[test]
    fn what_arrives_counts_for_a_quarter_of_a_long_loop() {
        let arrived = |loop_time: f64| {
            let mut u = Usage::default();
            let (time, allowed, loop_time) = (Span::secs(0.05), Bits::new(50e3), Span::secs(loop_time));
            for k in 0..80 {
                let bits = if k < 76 { allowed } else { 0.5 * allowed };
                u.add(Passed { time, sent: bits, arrived: bits, allowed, is_steady: true, loop_time });
            }
            [u.sent(), u.arrived()]
        };
        let [sent, short] = arrived(0.4);
        assert!((sent - short).abs() < 1e-9 && (0.55..0.6).contains(&short), "{short}");
        let [sent, long] = arrived(1.6);
        assert!((0.55..0.6).contains(&sent) && (0.78..0.83).contains(&long), "four messages of 50 ms in 0.4 s: {long}");
    }

    #[test]
    fn bursts_last_after_fifteen_seconds_of_them() {
        let (mut u, least) = (Usage { burst: Span::secs(0.02), ..Usage::default() }, Span::secs(0.011));
        (0..29).for_each(|_| u.last(Span::secs(0.5), 1.0));
        assert!(!u.is_lasting(least));
        (0..3).for_each(|_| u.last(Span::secs(0.5), 1.0));
        assert!(u.is_lasting(least) && !u.is_lasting(Span::secs(0.03)), "{u:?}");
        assert!(!Usage { burst: Span::secs(0.06), ..u }.is_lasting(least), "a shared screen");
        let mut held_up = u;
        held_up.interrupt();
        u.last(Span::secs(0.5), 0.0);
        assert!(!u.is_lasting(least) && !held_up.is_lasting(least));
    }

    #[test]
    fn bursts_are_deviations_from_a_steady_rate() {
        let (mut even, mut uneven, mut changing) = (Usage::default(), Usage::default(), Usage::default());
        for k in 0..400 {
            // 1 Mbit/s in messages of 50 ms; frames of 0.2 and 1.8 times their mean, in runs of four messages.
            let bits = if k % 8 < 4 { 10e3 } else { 90e3 };
            add(&mut even, 0.05, 50e3, 50e3, 50e3, true);
            add(&mut uneven, 0.05, bits, bits, 50e3, true);
            add(&mut changing, 0.05, bits, bits, 50e3, false);
        }
        assert!(even.burst() < Span::secs(1e-9) && changing.burst() < Span::secs(1e-9), "{even:?} {changing:?}");
        assert!((0.03..0.15).contains(&uneven.burst().as_secs()), "{uneven:?}");
    }
}
