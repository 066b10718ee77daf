//! Sixth stage: the rate on a busy link, on one with room, and during a drain.

pub(super) mod flight;
pub(super) mod foresight;
pub(super) mod limits;
mod notice;
pub(super) mod pacing;
mod recovery;

use super::answer::Answer;
use super::config::Config;
use super::history::RateHistory;
use super::mode::{Begun, Mode, SATURATED};
use super::path::{Served, View};
use super::quantity::{Rate, Span, Time};
use super::queue::Queue;
use super::steady;
use foresight::Foresight;
use pacing::Pacing;
use recovery::Recovery;

/// Greatest and least correction of the rate by the queue on a busy link.
const CORRECTION: (f64, f64) = (-1.0, 0.2);
/// Time in which the queue is corrected under L4S marks: the queue is shorter there, and others in it expect that.
const MARKED_TIME: Span = Span::secs(0.06);
/// Share of the rate below which a source that sends less has not measured more than it sent.
const HOLD_USED: f64 = 0.7;
/// Share of the rate below which the source does not use it, so that it does not grow.
const GROW_USED: f64 = 0.6;
/// Ratio of rate and reference up to which the rate of service is taken as the share.
const SIMILAR: f64 = 1.25;
/// Power of that ratio by which the share is not that of what was sent: 0 alone on the link, 1 beside many others. Measured beside 0.1,
/// 0.35 and 0.5 (`docs/sluice-tried.md`).
const REMEMBERED: f64 = 0.25;
/// Stalls from which clumps of packets show a rate that is too low or too high.
const UNEVEN: Span = Span::secs(0.003);
/// Least busy time that shows a rate of service for growth.
const SHOWN: Span = Span::secs(0.003);
/// Ratio of the rate of service and the rate from which growth is fast at once.
const ROOM: f64 = 1.8;
/// Factor of growth that a measured service rate does not limit, where the link serves evenly.
const EVEN_GROWTH: f64 = 1.03;
/// Share of the pacing rate from which a train of packets has not been slowed.
const UNSLOWED: f64 = 0.85;
/// Share of busy time below which packets do not wait.
const UNQUEUED: f64 = 0.5 * SATURATED;
/// Mean share of packets lost from which the rate does not exceed the rate at which the link is seen to serve.
const LOSING: f64 = 0.02;

/// Results of the stages before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation<'a> {
    /// Arrival of the message.
    pub(super) now: Time,
    /// Departure of the newest packet reported.
    pub(super) newest: Time,
    /// Feedback interval.
    pub(super) interval: Span,
    /// Share of the rate that the source sends.
    pub(super) used: f64,
    pub(super) view: &'a View,
    /// This flow's share of the link.
    pub(super) share: Rate,
    pub(super) queue: Queue,
    /// The queue expected if the link serves no less than is known of it, on paths on which that counts.
    pub(super) foreseen: Option<Span>,
    /// Whether the source has sent in bursts for long.
    pub(super) is_lasting: bool,
    /// Whether no queue has been seen yet.
    pub(super) is_starting: bool,
    /// Rate to which growth may lead at once: a device's announcement is known without dispersion.
    pub(super) hint: Option<Rate>,
    /// Bound on the rate by losses that answer to it.
    pub(super) answer: Option<Rate>,
}

/// The rate, and the reference that it is derived from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rates {
    pub(super) rate: Rate,
    pub(super) reference: Rate,
}

impl Rates {
    /// A rate that is its own reference.
    pub(super) fn same(rate: Rate) -> Self {
        Self { rate, reference: rate }
    }
}

/// The mode and the rates of it, if they change: the last stage's result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decision {
    pub(super) mode: Mode,
    pub(super) rates: Option<Rates>,
}

impl Decision {
    /// The decision as losses allow it; `now` are the rates in force.
    pub(super) fn heed(self, answer: Answer, now: Rates) -> Self {
        let mode = match answer {
            Answer::Free => return self,
            Answer::Trial(_) => Mode::Trial,
            Answer::Own(_) => Mode::Own,
            Answer::Chance(before) => {
                let is_free = matches!(self.mode, Mode::Start | Mode::Grow);
                let back = self.rates.map_or(now.rate, |r| r.rate).max(before);
                return if is_free { Self { rates: Some(Rates::same(back)), ..self } } else { self };
            }
        };
        let rates = self.rates.unwrap_or(now);
        match answer.bound() {
            Some(bound) if rates.rate >= bound => Self { mode, rates: Some(Rates::same(bound)) },
            _ => self,
        }
    }
}

/// This flow's share of a busy link that serves it at a rate, when the rate in `history` was sent.
///
/// Alone on the link, the rate of service is its capacity, whatever was sent. Beside others it follows the rate sent, so that each
/// change of the rate would come back a round trip later as a change of the share.
pub(super) fn share(served: Served, until: Time, history: &RateHistory) -> Rate {
    let (served, ratio) = (served.rate, history.ratio(served.since, until));
    if (1.0 / SIMILAR..=SIMILAR).contains(&ratio) {
        return served / libm::pow(ratio, REMEMBERED);
    }
    let proportional = served / ratio.max(1e-3);
    history.reference().max(served.min(proportional)).min(served.max(proportional))
}

/// Growth of the rate, and its way back after outages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    /// Rounds of growth since the rate was held.
    rounds: u32,
    /// Packets sent after this time show the effect of the last growth.
    grown_at: Time,
    recovery: Recovery,
    foresight: Foresight,
}

impl Growth {
    /// Rounds of growth since the rate was held.
    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The rate at which the link has served this flow while it was busy; zero if that is not known.
    pub(super) fn known(&self) -> Rate {
        self.recovery.known()
    }

    /// Whether a busy link serves much less than of late: the link may have become slower, or the path longer.
    pub(super) fn has_fallen(&self, share: Rate) -> bool {
        self.recovery.has_fallen(share)
    }

    /// Feedback is missing: growth starts again.
    pub(super) fn interrupt(&mut self) {
        (self.rounds, self.foresight) = (0, Foresight::default());
    }

    /// Competitive mode has ended: the queue has been short for a while, so that packets reported from now on show room.
    pub(super) fn resume(&mut self, newest: Time) {
        self.grown_at = newest;
    }

    /// The rate of competitive mode.
    pub(super) fn compete(&mut self, rate: Rate, now: Time) -> Decision {
        (self.rounds, self.grown_at, self.foresight) = (1, now, Foresight::default());
        Decision { mode: Mode::Compete, rates: Some(Rates::same(rate)) }
    }

    /// The rate of a drain.
    pub(super) fn drain(&mut self, share: Rate, drain: Begun) -> Decision {
        (self.grown_at, self.foresight) = (drain.until, Foresight::default());
        Decision { mode: Mode::Drain, rates: Some(Rates { rate: share * drain.sent, reference: share }) }
    }

    /// Time in which the queue is corrected.
    fn correction_time(s: &Situation<'_>, config: &Config) -> Span {
        let c = &config.correction;
        let time = if s.view.l4s.is_some() { MARKED_TIME } else { c.time.into() };
        let time = time + c.stalls * s.view.stall.max(s.view.jitter);
        // The rate holds until the next message: a faster correction goes too far.
        time.max(s.interval)
    }

    /// The rate on a busy link: the share of it, corrected by the queue. `rate` is the rate so far.
    pub(super) fn hold(&mut self, s: &Situation<'_>, rate: Rate, config: &Config) -> Decision {
        let (share, expected) = match foresight::of_short(s, self.has_fallen(s.share)) {
            Some(foreseen) => (s.share.max(self.known()), foreseen),
            None => (s.share, s.queue.expected),
        };
        let slower = if s.is_lasting { steady::SLOWER } else { 1.0 };
        let gain = (s.queue.wanted - expected) / (slower * Self::correction_time(s, config));
        let corrected = share * (1.0 + gain.clamp(CORRECTION.0, CORRECTION.1));
        if s.used < HOLD_USED && corrected > 0.5 * rate {
            return Decision { mode: Mode::Unused, rates: None };
        }
        self.recovery.observe(share, s.now);
        (self.rounds, self.grown_at, self.foresight) = (0, s.now, Foresight::default());
        let rates = Rates { rate: corrected.at_most(s.view.bound()), reference: share.at_most(s.view.bound()) };
        Decision { mode: Mode::Hold, rates: Some(rates) }
    }

    /// The rate on a link with room: one step per round of feedback. `newest` is the service in the newest busy time.
    pub(super) fn grow(&mut self, s: &Situation<'_>, rate: Rate, newest: Option<Served>, config: &Config) -> Decision {
        if s.used < GROW_USED {
            return Decision { mode: Mode::Unused, rates: None };
        }
        let mode = if s.is_starting { Mode::Start } else { Mode::Grow };
        let limit = self.foresight.limit(s, self.recovery.known(), Self::correction_time(s, config));
        if s.newest < self.grown_at {
            return Decision { mode, rates: limit.filter(|limit| limit.rate < rate) };
        }
        let shown = newest.filter(|served| served.busy > SHOWN).map(|served| served.rate);
        let factor = self.factor(s, rate, shown, config);
        // Marks answer sooner than dispersion.
        let shown = shown.filter(|_| s.view.l4s.is_none());
        let most = shown.map(|shown| self.most(s, rate, shown, config));
        let limit = limit.map(|limit| limit.rate);
        self.rounds += 1;
        self.grown_at = s.now;
        let towards = (rate * factor).max(self.recovery.towards(rate));
        let grown = towards.at_most(most).at_most(limit).at_least(s.hint).at_most(s.view.bound());
        Decision { mode, rates: Some(Rates::same(grown)) }
    }

    /// Factor of growth in this round. `shown` is the rate of service that packets' dispersion shows.
    fn factor(&self, s: &Situation<'_>, rate: Rate, shown: Option<Rate>, config: &Config) -> f64 {
        let c = &config.growth;
        let is_fast = s.is_starting || self.rounds > 0 || shown.is_some_and(|shown| shown > ROOM * rate);
        let factor = if is_fast { c.factor } else { c.first };
        let is_busy = s.view.stall > UNEVEN && s.view.busy >= SATURATED;
        if is_busy { factor.min(c.clumps) } else { factor }
    }

    /// Greatest rate by the rate of service that packets' dispersion shows.
    fn most(&self, s: &Situation<'_>, rate: Rate, shown: Rate, config: &Config) -> Rate {
        let c = &config.growth;
        // Clumps of packets show a rate that is too low or too high.
        let least = if s.view.stall > UNEVEN { c.uneven } else { EVEN_GROWTH };
        let pacing = self.pacing(rate, s.view, s.answer, s.is_starting).of_trains(&config.pacing);
        let shown = if shown > UNSLOWED * pacing { shown.max(pacing) } else { shown };
        // Packets dropped of each frame leave no queue: beyond the service rate, losses are of this rate.
        let least = if s.view.lost > LOSING { (0.5 * rate).at_least(s.view.capacity()) } else { rate * least };
        (c.share * shown).max(least)
    }

    /// The state by which a rate is paced. `answer` is the bound by losses.
    pub(super) fn pacing(&self, rate: Rate, view: &View, answer: Option<Rate>, is_starting: bool) -> Pacing {
        let &View { stall, marked, l4s, .. } = view;
        let is_policed = answer.is_some() && view.busy < UNQUEUED;
        Pacing { rate, is_starting, rounds: self.rounds, stall, marked, bound: answer, marks: l4s, is_policed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share where 1 Mbit/s are served after 1 s at a rate over a reference, both in Mbit/s.
    fn share_of(rate: f64, reference: f64) -> f64 {
        let mut history = RateHistory::new(Rate::bps(rate * 1e6));
        history.set(Rate::bps(rate * 1e6), Rate::bps(reference * 1e6), Time::START);
        let span = Span::secs(1.0);
        let served = Served { rate: Rate::bps(1e6), busy: span, sending: span, since: Time::START };
        share(served, Time::secs(1.0), &history).as_bps() / 1e6
    }

    #[test]
    fn the_share_follows_the_service_but_for_the_fourth_root_of_what_was_sent_of_the_reference() {
        assert!((share_of(1.0, 1.0) - 1.0).abs() < 1e-9);
        assert!((share_of(1.2, 1.0) - 1.2_f64.powf(-0.25)).abs() < 1e-9);
        assert!((share_of(0.9, 1.0) - 0.9_f64.powf(-0.25)).abs() < 1e-9);
        // In a drain: between what is served and what would be of the reference, the reference itself.
        assert!((share_of(0.6, 1.2) - 1.2).abs() < 1e-9);
    }
}
