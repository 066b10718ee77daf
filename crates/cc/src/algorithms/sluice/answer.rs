//! Third stage: whether losses answer to this flow's rate, and the bound on the rate where they do.
//!
//! A policer drops what exceeds its rate and leaves no queue; what a channel loses by chance is a share of what is sent,
//! whatever that is. Both look alike until the rate changes. Where packets are lost without a queue, the rate is lowered for a
//! moment to less than what arrives: a policer then drops nothing, chance as much as before. What answers is this flow's own
//! doing, and the rate stays at what arrives; what does not is left to repair, and asked again later.

mod bound;
mod dips;
mod evidence;

use super::config::AnswerConfig;
use super::quantity::{Rate, Span, Time};
use super::sample::Sample;
pub(super) use bound::Used;
use bound::{LossBound, Losses};
use evidence::{Counts, Evidence};

/// Standing queue beyond the one wanted from which losses are the queue's: its correction answers them.
pub(super) const QUEUED: Span = Span::secs(0.05);
/// Longest interval until chance is asked again.
const LONGEST_INTERVAL: Span = Span::secs(64.0);
/// Least share lost that is looked at where the bound has fallen: so little alone would hold it low.
const LITTLE: f64 = 0.003;
/// Share lost beyond which it is not taken for chance: among others' packets, a lower rate of one flow changes little.
const MOST_CHANCE: f64 = 0.4;
/// Time constants, the first and the longest, with which chance is forgotten where losses have answered before.
const CHANCE_MEMORY: Span = Span::secs(30.0);
const LONGEST_MEMORY: Span = Span::secs(240.0);
/// Time constant with which clusters of losses are forgotten.
const DISPERSION_MEMORY: Span = Span::secs(60.0);
/// Packets of a trial over those that had shown the loss, at most, and the logarithm of the ratio of likelihoods that makes a
/// verdict then.
const LONG: f64 = 3.0;
const UNDECIDED: f64 = 0.5;
/// Share that is taken for chance at most where losses have answered before: what several flows of one policer take for it adds up.
const BOUNDED_CHANCE: f64 = 0.05;
/// Longest time that one message stands for.
const LONGEST: Span = Span::secs(0.5);
/// Factor on the chance known from which the share lost is tested again at once.
const MORE: f64 = 2.0;

/// The share that is left of what is forgotten with a time constant.
fn forgotten(after: Span, constant: Span) -> f64 {
    libm::exp(-(after / constant))
}

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
    /// How clustered the losses were.
    dispersion: f64,
    high: Counts,
    /// Packets of the rate before since the last loss among them.
    after: Counts,
    low: Counts,
}

/// The state of the stage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossAnswer {
    evidence: Evidence,
    /// How clustered losses are, as far as it is remembered.
    dispersion: f64,
    trial: Option<Trial>,
    bound: Option<LossBound>,
    /// Share that is lost whatever is sent, and the time constant with which it is forgotten.
    chance: f64,
    memory: Span,
    /// Whether losses have answered since there was no bound.
    is_own: bool,
    updated: Time,
    /// Trials since losses have answered, and when the next is due.
    asked: i32,
    due: Time,
    /// Packets sent before say nothing.
    passed_over: Time,
}

impl LossAnswer {
    /// Share that is lost whatever is sent, as far as it is known.
    pub(super) fn chance(&self) -> f64 {
        self.chance
    }

    /// An outage ends at `now`: what was sent in it was lost at any rate.
    pub(super) fn pass_over(&mut self, now: Time) {
        self.passed_over = now;
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
            let (chance, dispersion, is_own) = (self.chance, self.dispersion, self.is_own);
            let losses = Losses { counts, begin: sample.begin, chance, dispersion, is_own };
            let goes_on = bound.observe(&losses, flow, c);
            if is_own && bound.refutes_chance(c.certainty) {
                self.chance = 0.0;
            }
            self.chance *= forgotten(flow.now - self.updated, self.memory);
            if !goes_on {
                (self.bound, self.is_own) = (None, false);
            }
        }
        if flow.excess > QUEUED || sample.begin < self.passed_over {
            self.evidence = Evidence::default();
            return;
        }
        let least = if self.bound.is_some() { LITTLE.min(c.share) } else { c.share };
        self.evidence.observe(sample, counts, least, c.losses, self.dispersion);
        self.dispersion = self
            .evidence
            .dispersion()
            .max(1.0 + (self.dispersion - 1.0) * forgotten(flow.now - self.updated, DISPERSION_MEMORY));
        let (high, share) = (self.evidence.counts(), self.evidence.counts().share());
        if self.bound.is_some() {
            return self.watch_bound(flow, c);
        }
        if share < c.share
            || !self.evidence.is_enough(c.losses, self.dispersion)
            || (share <= MORE * self.chance && flow.now < self.due)
        {
            return;
        }
        let Some(arrived) = self.evidence.arrived() else { return };
        let (before, from) = (flow.used.rate, flow.now);
        let rate = (arrived * c.depth).min(before);
        let dispersion = self.dispersion;
        let (after, low) = (Counts::default(), Counts::default());
        self.trial = Some(Trial { rate, before, arrived, from, dispersion, high, after, low });
        self.evidence = Evidence::default();
    }

    /// A bound is on: where it has fallen, losses that go on show whether they answer.
    fn watch_bound(&mut self, flow: &Flow, c: &AnswerConfig) {
        let Some(bound) = self.bound.as_mut().filter(|b| b.has_fallen()) else {
            self.evidence = Evidence::default();
            return;
        };
        let counts = self.evidence.counts();
        if !self.evidence.is_enough(c.losses, self.dispersion) {
            return;
        }
        if counts.share() > MOST_CHANCE {
            let rate = self.evidence.arrived().map_or(bound.rate(), |r| r.min(bound.rate()));
            *bound = LossBound::at(rate, flow.now);
        } else if bound.judge(counts.share()) {
            self.is_own = true;
        } else {
            // A little more than is seen: at less than is lost, the bound would fall again at once. It is forgotten, the later the more
            // often it has been seen.
            self.chance = counts.share().min(if self.is_own { BOUNDED_CHANCE } else { MOST_CHANCE });
            self.memory = (2.0 * self.memory).min(LONGEST_MEMORY);
            let back = if counts.share() > 2.0 * BOUNDED_CHANCE { 1.0 } else { 0.5 };
            bound.free(back, flow.now);
        }
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
            trial.after = if sample.lost > 0 { Counts::default() } else { trial.after + counts };
            // Losses that end while the rate is still the same are no policer's.
            let is_burst = trial.high.answer(trial.after) > c.certainty;
            self.trial = (!is_burst).then_some(trial);
            return is_burst.then_some(trial.before);
        }
        trial.low += counts;
        let answers = trial.high.answer(trial.low);
        let is_long = trial.low.all() > LONG * trial.high.all();
        self.trial = Some(trial);
        // Losses that come in clusters say less.
        let answers = answers / trial.dispersion;
        let is_over = answers > c.certainty || answers < -c.doubt || is_long;
        if !is_over {
            return None;
        }
        self.trial = None;
        let both = trial.high + trial.low;
        if answers > UNDECIDED || both.share() > MOST_CHANCE {
            self.take_as_own(&trial, flow, c);
            return None;
        }
        self.take_as_chance(&trial, flow, c)
    }

    /// Losses answer to the rate: it is bounded.
    fn take_as_own(&mut self, trial: &Trial, flow: &Flow, c: &AnswerConfig) {
        (self.chance, self.asked, self.memory, self.is_own) = (0.0, 0, CHANCE_MEMORY, true);
        self.due = flow.now + Span::from(c.interval);
        self.bound = Some(LossBound::at(trial.arrived, flow.now));
    }

    /// Losses do not answer. The rate before the trial, unless one is bounded.
    fn take_as_chance(&mut self, trial: &Trial, flow: &Flow, c: &AnswerConfig) -> Option<Rate> {
        let interval = Span::from(c.interval) * libm::exp2(f64::from(self.asked));
        self.due = flow.now + interval.min(LONGEST_INTERVAL);
        self.asked = (self.asked + 1).min(8);
        // Others may have made them too: what goes beyond is theirs or this flow's.
        self.chance = trial.low.most_share().min(MOST_CHANCE);
        self.memory = CHANCE_MEMORY;
        let mut bound = LossBound::at(trial.before, flow.now);
        bound.free(1.0, flow.now);
        self.bound = Some(bound);
        Some(trial.before)
    }
}
