//! Impairments that few links have: random loss, jitter, reordering, duplication and ECN faults, drawn for each packet; changes of
//! these in time; a policer.

use crate::checks::{check_delay, check_share};
use crate::ecn_faults::{EcnDraw, EcnFaults};
use crate::error::ConfigError;
use crate::position::LossPosition;
use crate::random::Random;
use crate::steps::Steps;
use crate::token_bucket::{Bucket, TokenBucket};
use weir_units::{TimeDelta, Timestamp};

/// Random loss.
///
/// Drawn for every packet offered to the link, also for one that the queue then drops: a change of the queue does not
/// change which packets are lost at random.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Loss {
    /// No loss.
    None,
    /// Independent losses.
    Independent {
        /// Share of packets lost, 0 to 1.
        share: f64,
    },
    /// A chain of two states (Gilbert 1960, Elliott 1963).
    GilbertElliott(GilbertElliott),
}

/// The four parameters of a Gilbert-Elliott chain, all probabilities a packet.
///
/// A packet is lost according to the current state; then the chain moves. The first state is drawn from the chain's
/// stationary distribution, so that short runs are unbiased.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GilbertElliott {
    /// From good to bad.
    pub to_bad: f64,
    /// From bad to good.
    pub to_good: f64,
    /// Loss in the good state.
    pub loss_good: f64,
    /// Loss in the bad state.
    pub loss_bad: f64,
}

impl GilbertElliott {
    /// A chain that loses all packets in the bad state and none in the good one, with this share of packets lost in
    /// bursts of this mean length.
    pub fn bursts(share: f64, mean_run: f64) -> Self {
        let to_good = 1.0 / mean_run;
        Self { to_bad: to_good * share / (1.0 - share), to_good, loss_good: 0.0, loss_bad: 1.0 }
    }
    /// Share of packets in the bad state in the long run; 0 if the chain never moves.
    pub fn share_bad(&self) -> f64 {
        let sum = self.to_bad + self.to_good;
        if sum > 0.0 { self.to_bad / sum } else { 0.0 }
    }
    /// Share of packets lost in the long run.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.share_bad();
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }
}

/// Random delay added to each packet at the end of the link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Jitter {
    /// Its distribution.
    pub shape: JitterShape,
    /// Whether packets may be reordered (RFC 8868, section 4.5.1), or are held behind the previous one by their own
    /// transmission time (section 4.5.2).
    pub may_reorder: bool,
}

/// The distribution of a random delay.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum JitterShape {
    /// Uniform between zero and this.
    Uniform {
        /// The longest delay.
        max: TimeDelta,
    },
    /// A Gaussian truncated at `bound` standard deviations on both sides and shifted to begin at zero (RFC 8868,
    /// section 4.5.3, recommends 5 ms and 3): values beyond the bound are set to it.
    Normal {
        /// The standard deviation before truncation.
        deviation: TimeDelta,
        /// Standard deviations to either side; the mean delay is this many.
        bound: f64,
    },
}

/// A share of packets is held back, so that later ones overtake them. All others keep the order that they have without
/// it: that of sending, unless jitter may reorder.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reordering {
    /// Share of packets, 0 to 1.
    pub share: f64,
    /// For how long they are held back, from the time at which they would have arrived.
    pub extra: TimeDelta,
}

/// The random draws for one packet.
// In this order, since each packet has one: what is read of it at once was then written at once, and reading does not wait for
// stores.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub(crate) struct Draw {
    pub(crate) ecn: EcnDraw,
    pub(crate) lost: bool,
    pub(crate) duplicated: bool,
    /// Whether later packets overtake it, which then arrives [`Impairments::held_back_for`] later.
    pub(crate) held_back: bool,
    /// Jitter.
    pub(crate) extra: TimeDelta,
}

/// Impairments that change at given times. Each replaces its constant counterpart in [`crate::LinkConfig`].
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Variation {
    /// Random loss of packets, by the time at which they are offered. A Gilbert-Elliott chain begins in a state
    /// drawn at its first packet.
    pub loss: Option<Steps<Loss>>,
    /// Propagation delay, by the end of a packet's transmission. Where it decreases, packets overtake those sent before,
    /// as after a change of route, unless jitter keeps them in order.
    pub delay: Option<Steps<TimeDelta>>,
    /// Distribution of the jitter, by the time at which packets are offered. Needs a constant one, of which it replaces the
    /// shape.
    pub jitter: Option<Steps<JitterShape>>,
}

/// The part of a link's configuration that few links have.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Model {
    pub(crate) loss: Loss,
    pub(crate) jitter: Option<Jitter>,
    pub(crate) reordering: Option<Reordering>,
    pub(crate) duplication: f64,
    pub(crate) ecn: Option<EcnFaults>,
    pub(crate) variation: Variation,
    pub(crate) policer: Option<TokenBucket>,
}

impl Model {
    /// Rejects invalid shares and times.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        check_loss(&self.loss)?;
        if let Some(j) = self.jitter {
            check_shape(j.shape)?;
        }
        if let Some(r) = self.reordering {
            check_share("reordering.share", r.share)?;
            check_delay("reordering.extra", r.extra)?;
        }
        if let Some(faults) = self.ecn {
            faults.check()?;
        }
        if let Some(policer) = self.policer {
            policer.check(["policer.rate", "policer.burst"])?;
        }
        let Variation { loss, delay, jitter } = &self.variation;
        loss.iter().flat_map(Steps::values).try_for_each(check_loss)?;
        delay.iter().flat_map(Steps::values).try_for_each(|&d| check_delay("delay.steps", d))?;
        jitter.iter().flat_map(Steps::values).try_for_each(|&shape| check_shape(shape))?;
        if jitter.is_some() && self.jitter.is_none() {
            return Err(ConfigError::new("jitter", "absent", "a jitter whose distribution changes in steps"));
        }
        check_share("duplication", self.duplication)
    }

    /// Whether the link has none of this.
    fn is_empty(&self) -> bool {
        let Self { loss, jitter, reordering, duplication, ecn, variation, policer } = self;
        let constant = *loss == Loss::None && jitter.is_none() && reordering.is_none() && *duplication <= 0.0;
        constant && ecn.is_none() && policer.is_none() && *variation == Variation::default()
    }

    /// Whether packets may overtake each other.
    pub(crate) fn may_overtake(&self) -> bool {
        self.jitter.is_some_and(|j| j.may_reorder) || self.reordering.is_some() || self.variation.delay.is_some()
    }

    /// Whether jitter keeps packets in order.
    pub(crate) fn keeps_order(&self) -> bool {
        self.jitter.is_some_and(|j| !j.may_reorder)
    }
}

/// Draws what happens to each packet: a link's only random source besides its queue discipline.
///
/// For each offered packet, draws in this order, regardless of its outcome: loss, jitter, reordering, duplication, ECN
/// faults. What is not configured draws nothing. A change of the queue therefore does not change which packets the loss
/// model takes.
#[derive(Clone, Debug)]
pub(crate) struct Impairments {
    random: Random,
    model: Model,
    /// The loss in force, and for a chain whether it is in the bad state.
    loss: Loss,
    bad: bool,
    /// The share of packets lost if that, alike for all, is the only draw.
    only_loss: Option<f64>,
    policer: Option<Bucket>,
}

impl Impairments {
    /// The draws of a link, or `None` if it has no impairments.
    pub(crate) fn new(model: Model, seed: u64) -> Option<Self> {
        if model.is_empty() {
            return None;
        }
        let loss = model.variation.loss.as_ref().map_or(model.loss, |steps| steps.at(Timestamp::ZERO));
        let policer = model.policer.as_ref().map(Bucket::new);
        let mut impairments =
            Self { random: Random::new(seed), only_loss: only_loss(&model), model, loss, bad: false, policer };
        impairments.begin_loss();
        Some(impairments)
    }

    /// Draws the state in which a chain begins.
    fn begin_loss(&mut self) {
        self.bad = match self.loss {
            Loss::GilbertElliott(g) => self.random.uniform() < g.share_bad(),
            _ => false,
        };
    }

    #[inline]
    pub(crate) fn draw(&mut self, now: Timestamp) -> Draw {
        match self.only_loss {
            Some(share) => Draw { lost: self.random.uniform() < share, ..Draw::default() },
            None => self.draw_all(now),
        }
    }

    #[inline(never)]
    fn draw_all(&mut self, now: Timestamp) -> Draw {
        if let Some(steps) = &self.model.variation.loss
            && steps.at(now) != self.loss
        {
            self.loss = steps.at(now);
            self.begin_loss();
        }
        let random = &mut self.random;
        let mut draw = Draw::default();
        match self.loss {
            Loss::None => {}
            Loss::Independent { share } => draw.lost = random.uniform() < share,
            Loss::GilbertElliott(g) => {
                let (loss, leave) = if self.bad { (g.loss_bad, g.to_good) } else { (g.loss_good, g.to_bad) };
                draw.lost = random.uniform() < loss;
                self.bad ^= random.uniform() < leave;
            }
        }
        let shape = self.model.jitter.map(|j| j.shape);
        match self.model.variation.jitter.as_ref().map(|steps| steps.at(now)).or(shape) {
            None => {}
            Some(JitterShape::Uniform { max }) => draw.extra += max.mul_f64(random.uniform()),
            Some(JitterShape::Normal { deviation, bound }) => {
                draw.extra += deviation.mul_f64(bound + random.normal().clamp(-bound, bound));
            }
        }
        draw.held_back = self.model.reordering.is_some_and(|r| random.uniform() < r.share);
        draw.duplicated = self.model.duplication > 0.0 && random.uniform() < self.model.duplication;
        if let Some(faults) = &self.model.ecn {
            draw.ecn = faults.draw(random);
        }
        draw
    }

    /// How much later packets that are held back arrive.
    pub(crate) fn held_back_for(&self) -> TimeDelta {
        self.model.reordering.map_or(TimeDelta::ZERO, |r| r.extra)
    }

    /// Where ECN faults are made, if the link has any.
    pub(crate) fn ecn_position(&self) -> Option<LossPosition> {
        self.model.ecn.map(|faults| faults.position)
    }

    /// The propagation delay from a time on, if it changes.
    pub(crate) fn delay_at(&self, time: Timestamp) -> Option<TimeDelta> {
        self.model.variation.delay.as_ref().map(|steps| steps.at(time))
    }

    /// Whether the policer refuses a packet.
    pub(crate) fn is_policed(&mut self, now: Timestamp, bytes: u32) -> bool {
        self.policer.as_mut().is_some_and(|bucket| !bucket.take(now, bytes))
    }
}

/// The share of packets lost if a link has no other random impairment, and always this one.
fn only_loss(model: &Model) -> Option<f64> {
    let varies = model.variation.loss.is_some() || model.variation.jitter.is_some();
    let has_others =
        model.jitter.is_some() || model.reordering.is_some() || model.duplication > 0.0 || model.ecn.is_some();
    match model.loss {
        Loss::Independent { share } if !varies && !has_others => Some(share),
        _ => None,
    }
}

fn check_loss(loss: &Loss) -> Result<(), ConfigError> {
    match *loss {
        Loss::None => Ok(()),
        Loss::Independent { share } => check_share("loss.share", share),
        Loss::GilbertElliott(g) => {
            check_share("loss.to_bad", g.to_bad)?;
            check_share("loss.to_good", g.to_good)?;
            check_share("loss.loss_good", g.loss_good)?;
            check_share("loss.loss_bad", g.loss_bad)
        }
    }
}

fn check_shape(shape: JitterShape) -> Result<(), ConfigError> {
    match shape {
        JitterShape::Uniform { max } => check_delay("jitter.max", max),
        JitterShape::Normal { deviation, bound } => {
            check_delay("jitter.deviation", deviation)?;
            if !(bound > 0.0 && bound <= 10.0) {
                let expected = "a number of standard deviations above 0, 10 at most (RFC 8868: 3)";
                return Err(ConfigError::new("jitter.bound", bound, expected));
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkConfig;
    use weir_units::DataRate;

    const N: usize = 200_000;

    fn model(change: impl FnOnce(&mut Model)) -> Model {
        let mut model = LinkConfig::constant(DataRate::ZERO, TimeDelta::ZERO).model();
        change(&mut model);
        model
    }
    fn list(model: Model, seed: u64, n: usize) -> Vec<Draw> {
        model.check().expect("sound");
        let mut c = Impairments::new(model, seed).expect("random");
        (0..n as i64).map(|i| c.draw(Timestamp::from_millis(i))).collect()
    }
    fn draws(change: impl FnOnce(&mut Model)) -> Vec<Draw> {
        list(model(change), 7, N)
    }
    fn share(draws: &[Draw], f: impl Fn(&Draw) -> bool) -> f64 {
        draws.iter().filter(|d| f(d)).count() as f64 / draws.len() as f64
    }
    /// Mean length of loss bursts.
    fn run_length(draws: &[Draw]) -> f64 {
        let runs = draws.windows(2).filter(|w| w[0].lost && !w[1].lost).count();
        share(draws, |d| d.lost) * draws.len() as f64 / runs as f64
    }
    fn near(x: f64, expected: f64, tolerance: f64) {
        assert!((x - expected).abs() <= tolerance, "{x} is not within {tolerance} of {expected}");
    }

    #[test]
    fn loss_alone_is_drawn_as_beside_other_impairments() {
        let model = model(|c| c.loss = Loss::Independent { share: 0.05 });
        let mut all = Impairments::new(model.clone(), 7).expect("random");
        let drawn: Vec<_> = (0..1_000).map(|i| all.draw_all(Timestamp::from_millis(i))).collect();
        assert!((20..80).contains(&drawn.iter().filter(|d| d.lost).count()));
        assert_eq!(list(model, 7, 1_000), drawn);
    }

    #[test]
    fn independent_losses_come_alone() {
        let d = draws(|c| c.loss = Loss::Independent { share: 0.05 });
        // Four standard errors of a binomial share; bursts are geometric with mean 1 / (1 - p).
        near(share(&d, |d| d.lost), 0.05, 4.0 * (0.05 * 0.95 / N as f64).sqrt());
        near(run_length(&d), 1.0 / 0.95, 0.02);
    }

    #[test]
    fn bursts_have_their_share_and_length() {
        let g = GilbertElliott::bursts(0.03, 4.0);
        near(g.mean_loss(), 0.03, 1e-12);
        let d = draws(|c| c.loss = Loss::GilbertElliott(g));
        near(share(&d, |d| d.lost), 0.03, 0.003);
        near(run_length(&d), 4.0, 0.25);
    }

    #[test]
    fn four_parameters_give_the_chains_mean() {
        let g = GilbertElliott { to_bad: 0.02, to_good: 0.18, loss_good: 0.01, loss_bad: 0.5 };
        near(g.share_bad(), 0.1, 1e-12);
        let d = draws(|c| c.loss = Loss::GilbertElliott(g));
        near(share(&d, |d| d.lost), 0.1 * 0.5 + 0.9 * 0.01, 0.003);
    }

    #[test]
    fn jitter_has_its_moments() {
        let ms = |d: &Draw| d.extra.as_millis_f64();
        let moments = |d: &[Draw]| {
            let mean = d.iter().map(ms).sum::<f64>() / N as f64;
            (mean, (d.iter().map(|d| (ms(d) - mean).powi(2)).sum::<f64>() / N as f64).sqrt())
        };
        let max = TimeDelta::from_millis(12);
        let d = draws(|c| c.jitter = Some(Jitter { shape: JitterShape::Uniform { max }, may_reorder: true }));
        let (mean, std) = moments(&d);
        near(mean, 6.0, 0.05);
        near(std, 12.0 / 12f64.sqrt(), 0.05);
        let shape = JitterShape::Normal { deviation: TimeDelta::from_millis(5), bound: 3.0 };
        let d = draws(|c| c.jitter = Some(Jitter { shape, may_reorder: true }));
        let (mean, std) = moments(&d);
        near(mean, 15.0, 0.06);
        // Truncation at three deviations reduces the spread by 0.5 %.
        near(std, 4.97, 0.04);
        assert!(d.iter().all(|d| (0.0..=30.0).contains(&ms(d))));
    }

    #[test]
    fn shares_are_kept_and_seeds_differ() {
        let extra = TimeDelta::from_millis(20);
        let change = |c: &mut Model| {
            c.reordering = Some(Reordering { share: 0.1, extra });
            c.duplication = 0.02;
        };
        let d = draws(change);
        near(share(&d, |d| d.held_back), 0.1, 0.003);
        near(share(&d, |d| d.duplicated), 0.02, 0.0015);
        assert_eq!(d, draws(change));
        let lists = [1, 2].map(|seed| list(model(change), seed, 1_000));
        assert_ne!(lists[0], lists[1]);
    }

    #[test]
    fn loss_and_jitter_change_in_steps() {
        let secs = TimeDelta::from_secs;
        let burst = Loss::GilbertElliott(GilbertElliott { to_bad: 0.0, to_good: 0.0, loss_good: 0.0, loss_bad: 1.0 });
        let loss = vec![(secs(0), Loss::None), (secs(50), Loss::Independent { share: 0.2 }), (secs(100), burst)];
        let shape = |ms| JitterShape::Uniform { max: TimeDelta::from_millis(ms) };
        let d = draws(|m| {
            m.variation.loss = Some(Steps::new(loss, None).expect("sound"));
            m.jitter = Some(Jitter { shape: shape(1_000), may_reorder: false });
            m.variation.jitter =
                Some(Steps::new(vec![(secs(0), shape(10)), (secs(30), shape(0))], Some(secs(40))).expect("sound"));
        });
        // A draw a millisecond.
        let lost = |span: std::ops::Range<usize>| share(&d[span], |d| d.lost);
        assert_eq!((lost(0..50_000), lost(100_000..N)), (0.0, 0.0));
        near(lost(50_000..100_000), 0.2, 0.01);
        let extra = |span: std::ops::Range<usize>| d[span].iter().map(|d| d.extra.as_millis_f64()).fold(0.0, f64::max);
        for cycle in 0..5 {
            near(extra(40_000 * cycle..40_000 * cycle + 30_000), 10.0, 0.01);
            assert_eq!(extra(40_000 * cycle + 30_000..40_000 * (cycle + 1)), 0.0);
        }
        let shape = Steps::new(vec![(secs(0), shape(1))], None).expect("sound");
        assert_eq!(model(|m| m.variation.jitter = Some(shape)).check().expect_err("no jitter").field, "jitter");
        let loss = Steps::new(vec![(secs(0), Loss::Independent { share: 2.0 })], None).expect("in order");
        assert_eq!(model(|m| m.variation.loss = Some(loss)).check().expect_err("above 1").field, "loss.share");
    }

    #[test]
    fn shares_beyond_one_are_refused() {
        let refused = |share| model(|m| m.loss = Loss::Independent { share }).check();
        let message = refused(5.0).expect_err("5 % written as 5").to_string();
        assert_eq!(message, "link: loss.share is 5: expected a share between 0 and 1 (1 % is 0.01)");
        assert!(refused(f64::NAN).is_err());
    }
}
