use crate::capacity::Capacity;
use crate::error::ConfigError;
use crate::impairment::{Jitter, Loss, LossPosition, Model, Reordering};
use crate::limit::Limit;
use crate::queue::Discipline;
use weir_units::{DataRate, TimeDelta};

/// Everything that a link does to packets.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkConfig {
    /// Rate at which packets leave the queue.
    pub capacity: Capacity,
    /// Propagation delay, from the end of a packet's transmission to its arrival.
    pub delay: TimeDelta,
    /// Queue limit; packets beyond it are dropped under any discipline.
    pub limit: Limit,
    /// How the queue selects packets to drop or mark below the limit.
    pub discipline: Discipline,
    /// Which packets are lost at random.
    pub loss: Loss,
    /// Where they are lost.
    pub loss_position: LossPosition,
    /// Random delay at the end of the link.
    pub jitter: Option<Jitter>,
    /// Packets overtaken by others.
    pub reordering: Option<Reordering>,
    /// Share of packets duplicated, 0 to 1: the copy is made at the end of the link and arrives directly after the
    /// original.
    pub duplication: f64,
}

impl LinkConfig {
    /// A link of constant capacity and delay with an unlimited queue and no impairment.
    pub fn constant(rate: DataRate, delay: TimeDelta) -> Self {
        Self {
            capacity: Capacity::Constant(rate),
            delay,
            limit: Limit::Unlimited,
            discipline: Discipline::default(),
            loss: Loss::None,
            loss_position: LossPosition::Exit,
            jitter: None,
            reordering: None,
            duplication: 0.0,
        }
    }

    /// Checks every field. Errors: the first invalid one.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.delay.is_negative() {
            return Err(ConfigError::new("delay", self.delay, "zero or a positive time"));
        }
        self.limit.check("limit")?;
        self.discipline.check()?;
        self.random().check()
    }

    /// Its random parts.
    pub(crate) const fn random(&self) -> Model {
        let Self { loss, jitter, reordering, duplication, .. } = *self;
        Model { loss, jitter, reordering, duplication }
    }
}
