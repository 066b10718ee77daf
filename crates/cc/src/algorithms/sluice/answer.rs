//! Third stage: whether losses answer to this flow's rate, and the bound on the rate where they do.
//!
//! A policer drops what exceeds its rate and leaves no queue; what a channel loses by chance is a share of what is sent,
//! whatever that is. Both look alike until the rate changes. Where packets are lost without a queue, the rate is lowered for a
//! moment to less than what arrives: a policer then drops nothing, chance as much as before. What answers is this flow's own
//! doing, and the rate stays at what arrives; what does not is left to repair, and asked again later.

mod bound;
mod evidence;

use super::config::AnswerConfig;
use super::quantity::{Rate, Span, Time};
use super::sample::Sample;
use bound::LossBound;
pub(super) use bound::Used;
use evidence::{Counts, Evidence};

/// Standing queue beyond the one wanted from which losses are the queue's: its correction answers them.
const QUEUED: Span = Span::secs(0.05);
/// Longest interval until chance is asked again.
const LONGEST_INTERVAL: Span = Span::secs(64.0);
/// Least share lost that is tested where the bound has fallen to `FALLEN` of its greatest: so little alone would hold it low.
const LITTLE: f64 = 0.01;
const FALLEN: f64 = 0.75;
/// Share lost beyond which it is not taken for chance: among others' packets, a lower rate of one flow changes little.
const MOST_CHANCE: f64 = 0.4;
/// Share that may be taken for chance where losses have answered before, and from which all are.
const BOUNDED_CHANCE: (f64, f64) = (0.05, 0.06);
/// Time constant with which it is forgotten.
const CHANCE_MEMORY: Span = Span::secs(30.0);
/// Longest time that one message stands for.
const LONGEST: Span = Span::secs(0.5);
/// Factor on the chance known from which the share lost is tested again at once.
const MORE: f64 = 2.0;

/// The flow at one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Arrival of the message.
    pub(super) now: Time,
    /// Departure of the newest packet reported.
    pub(super) newest: Time,
    /// Standing queue beyond the one wanted.
    pub(super) excess: Span,
    /// Whether competitive mode is on: it answers losses itself.
    pub(super) is_competing: bool,
    /// The rate, and how much of it is sent.
    pub(super) used: Used,
}

/// Bound on the rate and its reason: this stage's result.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) enum Answer {
    /// No bound.
    #[default]
    Free,
    /// The rate is lowered to see whether losses answer.
    Trial(Rate),
    /// Losses have answered: the rate stays at what arrives.
    Own(Rate),
    /// Losses have not answered: the rate before the trial is right.
    Chance(Rate),
}

impl Answer {
    /// The greatest rate.
    pub(super) fn bound(self) -> Option<Rate> {
        match self {
            Self::Trial(rate) | Self::Own(rate) => Some(rate),
            Self::Free | Self::Chance(_) => None,
        }
    }
}

/// The rate lowered for a moment.
#[derive(Clone, Copy, Debug)]
struct Trial {
    rate: Rate,
    /// The rate before.
    before: Rate,
    /// The rate that arrived before.
    arrived: Rate,
    /// Packets sent from here on belong to it.
    from: Time,
    high: Counts,
    low: Counts,
}

/// The state of the stage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossAnswer {
    evidence: Evidence,
    trial: Option<Trial>,
    bound: Option<LossBound>,
    /// Share that is lost whatever is sent.
    chance: f64,
    updated: Time,
    /// Trials since losses have answered, and when the next is due.
    asked: i32,
    due: Time,
}

impl LossAnswer {
    /// Share that is lost whatever is sent, as far as it is known.
    pub(super) fn chance(&self) -> f64 {
        self.chance
    }

    /// Takes a message.
    pub(super) fn observe(&mut self, sample: &Sample, flow: &Flow, c: &AnswerConfig) -> Answer {
        let counts = Counts::of(sample);
        self.updated = self.updated.max(flow.now - LONGEST);
        if flow.is_competing {
            (self.trial, self.bound) = (None, None);
            self.evidence = Evidence::default();
            return Answer::Free;
        }
        let ended = match self.trial {
            Some(trial) => self.go_on(trial, sample, counts, flow, c),
            None => {
                self.watch(sample, counts, flow, c);
                None
            }
        };
        self.updated = flow.now;
        match (self.trial, self.bound, ended) {
            (Some(trial), ..) => Answer::Trial(trial.rate),
            (None, _, Some(before)) => Answer::Chance(before),
            (None, Some(bound), None) => Answer::Own(bound.rate()),
            (None, None, None) => Answer::Free,
        }
    }

    /// No trial is on: moves the bound, and begins a trial where enough is lost.
    fn watch(&mut self, sample: &Sample, counts: Counts, flow: &Flow, c: &AnswerConfig) {
        if let Some(bound) = &mut self.bound {
            let goes_on = bound.observe(counts, self.chance, flow, c);
            self.chance =
                self.chance.min(bound.least_share()) * libm::exp(-((flow.now - self.updated) / CHANCE_MEMORY));
            if !goes_on {
                self.bound = None;
            }
        }
        if flow.excess > QUEUED {
            self.evidence = Evidence::default();
            return;
        }
        let least = if self.bound.is_some() { LITTLE.min(c.share) } else { c.share };
        self.evidence.observe(sample, counts, least, c);
        let (high, share) = (self.evidence.counts(), self.evidence.counts().share());
        let is_more = share > MORE * self.chance;
        let has_fallen = self.bound.is_some_and(|b| b.fall() < FALLEN);
        if !self.evidence.is_enough(c) || (share < c.share && !has_fallen) {
            return;
        }
        if !is_more && flow.now < self.due {
            return;
        }
        let Some(arrived) = self.evidence.arrived() else { return };
        let (before, from) = (flow.used.rate, flow.now);
        let depth = if self.bound.is_some() { c.depth_bound } else { c.depth };
        let rate = (arrived * depth).min(before);
        self.trial = Some(Trial { rate, before, arrived, from, high, low: Counts::default() });
        self.evidence = Evidence::default();
    }

    /// A trial is on. The rate before it, if it ends and losses have not answered.
    fn go_on(
        &mut self,
        mut trial: Trial,
        sample: &Sample,
        counts: Counts,
        flow: &Flow,
        c: &AnswerConfig,
    ) -> Option<Rate> {
        if sample.begin < trial.from {
            return None;
        }
        trial.low += counts;
        let answers = trial.high.answer(trial.low);
        let is_long = trial.low.all() > 2.0 * trial.high.all();
        self.trial = Some(trial);
        let is_over = answers > c.certainty || answers < -c.doubt || is_long;
        if is_over && (answers > 0.0 || (trial.high + trial.low).share() > MOST_CHANCE) {
            self.trial = None;
            self.chance = if answers > 0.0 { self.chance.min(trial.low.least_share()) } else { 0.0 };
            self.asked = 0;
            self.due = flow.now + Span::from(c.interval);
            self.bound = Some(LossBound::at(trial.arrived, self.chance, flow.now));
            return None;
        }
        if is_over {
            self.trial = None;
            let interval = Span::from(c.interval) * libm::exp2(f64::from(self.asked));
            self.due = flow.now + interval.min(LONGEST_INTERVAL);
            self.asked = (self.asked + 1).min(8);
            let both = trial.high + trial.low;
            self.chance = both.share();
            // Beside others a trial tells little, and what they take for chance adds up: where losses have answered before, few
            // are left to chance, and for a while.
            if both.share() > BOUNDED_CHANCE.1 {
                self.bound = None;
            }
            if let Some(bound) = &mut self.bound {
                self.chance = both.least_share().min(BOUNDED_CHANCE.0);
                bound.free(trial.before, self.chance, flow.now);
                return None;
            }
            return Some(trial.before);
        }
        None
    }
}
