//! The bound on the rate where losses are this flow's own: what arrives, and a little more.

use super::super::config::AnswerConfig;
use super::super::quantity::{Rate, Span, Time};
use super::Flow;
use super::dips::Dips;
use super::evidence::Counts;

/// Rate at which the share lost settles at `answer_lost`, and the least and greatest factor on it at other rates.
const REFERENCE: Rate = Rate::bps(1e6);
const SETTLED: (f64, f64) = (0.4, 2.0);
/// Packets over which the share lost beyond chance is averaged.
const MEMORY: f64 = 150.0;
/// Time without losses beyond chance in which growth becomes twice as fast, and from which the bound is lifted.
const CLEAR: Span = Span::secs(1.0);
const LIFTED: Span = Span::secs(10.0);
/// Share of the bound that is sent below which it is not known to be free.
const USED: f64 = 0.85;
/// Share of the greatest rate to which the bound falls before losses there have shown whether they answer, and from which it has fallen.
const LEAST_FALL: f64 = 0.7;
const FALLEN: f64 = 0.75;
/// Mean rate of the packets before the fall, over the greatest, and how many of them count.
const HIGH: f64 = 0.9;
const NEWEST: f64 = 100.0;
/// Least and greatest factor of a round: clusters of losses by chance do not lower the rate in the mean.
const FACTORS: (f64, f64) = (0.85, 1.5);
/// Ratio up to which a rate is the same, and the least number of losses at it that may have ended.
const SAME: f64 = 1.25;
const ENDED_LOSSES: f64 = 10.0;
/// Factor on the logarithm of the ratio of likelihoods: where flows share a policer, another's yielding ends losses too.
const ENDED_CERTAINTY: f64 = 2.0;

/// The rate in force and the share of it that is sent.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Used {
    pub(in super::super) rate: Rate,
    pub(in super::super) share: f64,
}

/// The losses of one message, and what is known of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub(super) counts: Counts,
    /// Departure of the message's first packet.
    pub(super) begin: Time,
    /// Share that is lost whatever is sent.
    pub(super) chance: f64,
    pub(super) dispersion: f64,
    /// Whether losses have answered.
    pub(super) is_own: bool,
}

/// The bound. Each round trip it falls by the share lost beyond chance, to what arrives, and grows by a share that is less at
/// higher rates, so that flows that lose alike meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossBound {
    rate: Rate,
    /// The greatest rate so far, and the newest packets from before the fall.
    most: Rate,
    high: Counts,
    round: Counts,
    /// Packets sent from here on end the round.
    from: Time,
    /// Mean share lost beyond chance.
    excess: f64,
    /// Since when there has been none, and the last round before.
    clear_since: Time,
    /// Packets at about this rate up to the last one lost, and at this or a greater one since then.
    same: Rate,
    lossy: Counts,
    clean: Counts,
    dips: Dips,
}

impl LossBound {
    /// A bound at a rate.
    pub(super) fn at(rate: Rate, now: Time) -> Self {
        Self {
            rate,
            most: rate,
            high: Counts::default(),
            round: Counts::default(),
            from: now,
            excess: 0.0,
            clear_since: now,
            same: rate,
            lossy: Counts::default(),
            clean: Counts::default(),
            dips: Dips::from(now),
        }
    }

    /// The greatest rate now: less in a dip.
    pub(super) fn rate(&self) -> Rate {
        self.rate * self.dips.factor()
    }

    /// Whether losses have ended in dips, so that none of them is chance.
    pub(super) fn refutes_chance(&self, certainty: f64) -> bool {
        self.dips.answer() > certainty
    }

    /// Whether the rate has fallen so far that losses show whether they answer.
    pub(super) fn has_fallen(&self) -> bool {
        self.rate <= FALLEN * self.most
    }

    /// Whether the share lost after the fall says that losses answer: it is nearer to what a policer would leave of the share before than to
    /// that share. The bound may fall further then.
    pub(super) fn judge(&mut self, share: f64) -> bool {
        let before = self.high.share();
        let left = (1.0 - (1.0 - before) * HIGH / LEAST_FALL).max(0.0);
        let answers = share < 0.5 * (before + left);
        if answers {
            (self.most, self.high) = (self.rate, Counts::default());
        }
        answers
    }

    /// Losses turned out to be chance: a share of the way back, and growth as fast as without losses.
    pub(super) fn free(&mut self, back: f64, now: Time) {
        *self = Self { clear_since: now - 2.0 * CLEAR, ..Self::at(self.rate + back * (self.most - self.rate), now) };
    }

    /// Takes a message. Whether the bound still holds.
    pub(super) fn observe(&mut self, losses: &Losses, flow: &Flow, c: &AnswerConfig) -> bool {
        let &Losses { counts, begin, chance, dispersion, is_own } = losses;
        self.round += counts;
        // In a dip the bound stands still: what is lost of a lower rate is not this one's.
        if is_own && self.dips.observe(counts, begin, flow.now, !self.has_fallen()) {
            (self.round, self.from) = (Counts::default(), flow.now);
            return true;
        }
        if self.has_ended(counts, dispersion, flow.used.rate, c) {
            return false;
        }
        if !self.has_fallen() {
            self.high = self.high.scaled(1.0 - (counts.all() / (NEWEST * dispersion)).min(1.0)) + counts;
        }
        if flow.newest < self.from || self.round.all() < 1.0 {
            return true;
        }
        let beyond = self.round.lost / self.round.all() - chance;
        self.excess += (1.0 - libm::exp(-self.round.all() / MEMORY)) * (beyond - self.excess);
        let settled = c.lost * (REFERENCE / self.rate).clamp(SETTLED.0, SETTLED.1);
        if self.excess > 0.5 * settled {
            self.clear_since = flow.now;
        }
        let is_used = flow.used.rate * flow.used.share > USED * self.rate;
        let clear = (flow.now - self.clear_since) / CLEAR;
        let growth = if is_used { (settled * (1.0 + clear * clear)).min(c.growth) } else { 0.0 };
        // The floor wins: what the application sends at least is not made up for later.
        self.rate = self.rate.max(flow.used.rate);
        let moved = self.rate * (1.0 + growth - beyond / dispersion).clamp(FACTORS.0, FACTORS.1);
        // So far down, a verdict comes first.
        self.rate = moved.max(self.rate.min(self.most * LEAST_FALL));
        self.most = self.most.max(self.rate);
        (self.round, self.from) = (Counts::default(), flow.now);
        flow.now - self.clear_since < LIFTED
    }

    /// Whether losses have ended at a rate that had them: a policer would take as many as before.
    fn has_ended(&mut self, counts: Counts, dispersion: f64, rate: Rate, c: &AnswerConfig) -> bool {
        // None of a greater rate says more.
        let is_greater = counts.lost > 0.0 && rate > SAME * self.same;
        if is_greater || rate * SAME < self.same {
            (self.same, self.lossy, self.clean) = (rate, Counts::default(), Counts::default());
        }
        if counts.lost > 0.0 {
            self.lossy = self.lossy.scaled(1.0 - ((counts + self.clean).all() / NEWEST).min(1.0)) + self.clean + counts;
            self.clean = Counts::default();
        } else {
            self.clean += counts;
        }
        self.lossy.lost > ENDED_LOSSES && self.lossy.answer(self.clean) / dispersion > ENDED_CERTAINTY * c.certainty
    }
}
