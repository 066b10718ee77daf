use crate::capacity::Capacity;
use crate::ecn_faults::EcnFaults;
use crate::error::ConfigError;
use crate::impairment::{Jitter, Loss, Model, Reordering, Variation};
use crate::limit::Limit;
use crate::members::Members;
use crate::position::LossPosition;
use crate::queue::Discipline;
use crate::radio::Radio;
use crate::token_bucket::TokenBucket;
use weir_units::{DataRate, TimeDelta, Timestamp};

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
    /// Random loss of packets.
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
    /// Impairments that change in time.
    pub variation: Variation,
    /// Changes of the ECN field that no router should make.
    pub ecn: Option<EcnFaults>,
    /// A token bucket before the queue; packets for which it has too few tokens are dropped.
    pub policer: Option<TokenBucket>,
    /// A token bucket behind the queue: packets wait until it has tokens, and are then transmitted at the capacity. Its
    /// rate converts a queue limit in time. An unlimited capacity gives a link of its rate.
    pub shaper: Option<TokenBucket>,
    /// The link layer of a radio link, which transmits in place of the link's own transmitter. The capacity is then the rate
    /// of its medium. There can be no shaper.
    pub radio: Option<Radio>,
    /// Properties of the flows, for disciplines by class and for radio links with separate stations.
    pub members: Members,
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
            variation: Variation::default(),
            ecn: None,
            policer: None,
            shaper: None,
            radio: None,
            members: Members::default(),
        }
    }

    /// Checks every field. Errors: the first invalid one.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.delay.is_negative() {
            return Err(ConfigError::new("delay", self.delay, "zero or a positive time"));
        }
        self.limit.check("limit")?;
        self.discipline.check()?;
        if let Some(shaper) = self.shaper {
            shaper.check(["shaper.rate", "shaper.burst"])?;
        }
        if let Some(radio) = &self.radio {
            radio.check(&self.capacity)?;
            if let Some(shaper) = &self.shaper {
                return Err(ConfigError::new("shaper", shaper.rate, "none on a radio link: put it on a link before"));
            }
        }
        self.model().check()
    }

    /// The rate at which packets leave the queue if it is full: the capacity, and on a radio link what one station gets of
    /// it ([`Radio::sustained`]).
    pub fn sustained(&self) -> Capacity {
        self.radio.as_ref().map_or_else(|| self.capacity.clone(), |radio| radio.seen(&self.capacity))
    }

    /// The rate that this link's flows together get at a time if their stations have full queues. On a radio link other users
    /// and stations take their turns, in number as at this time; see [`Radio::shared`].
    pub fn shared_at(&self, at: Timestamp) -> DataRate {
        let rate = self.capacity.rate_at(at);
        match (&self.radio, &self.capacity) {
            (Some(radio), Capacity::Constant(_) | Capacity::Schedule(_)) => {
                radio.shared(rate, at, self.members.stations())
            }
            _ => rate,
        }
    }

    /// Whether other users come and go, so that [`Self::shared_at`] changes while the rate does not.
    pub fn has_changing_users(&self) -> bool {
        self.radio.as_ref().is_some_and(Radio::has_changing_users)
    }

    /// Its part that few links have.
    pub(crate) fn model(&self) -> Model {
        let Self { loss, jitter, reordering, duplication, ecn, policer, .. } = *self;
        Model { loss, jitter, reordering, duplication, ecn, variation: self.variation.clone(), policer }
    }
}
