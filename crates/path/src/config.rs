use crate::chance;
use crate::{Capacity, ConfigError, Jitter, Loss, LossPosition, Reordering};
use weir_units::{DataRate, DataSize, TimeDelta};

/// An amount of waiting data: how much a queue holds, or from where on it marks.
///
/// What counts is what waits. The packet in transmission does not count, as in ns-3, where the device has taken
/// it out of its queue: a link with a queue of 75,000 bytes holds those and one packet more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// No limit.
    Unlimited,
    /// Bytes.
    Size(DataSize),
    /// Packets.
    Packets(u32),
    /// Bytes that pass in this time at the present capacity, or at the last one above zero during an outage.
    /// A packet that finds nothing waiting is taken in any case, so that a falling capacity cannot close the link.
    Time(TimeDelta),
}

/// How a queue chooses the packets that it drops or marks, within its limit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Discipline {
    /// First in, first out; drops what comes when it is full.
    #[default]
    DropTail,
}

/// Everything that a link does to packets.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkConfig {
    /// How fast packets leave the queue.
    pub capacity: Capacity,
    /// Propagation delay, from the end of a packet's transmission to its arrival.
    pub delay: TimeDelta,
    /// How much may wait; a packet that would exceed this is dropped, whatever the discipline.
    pub limit: Limit,
    /// How the queue chooses what to drop or mark before that.
    pub discipline: Discipline,
    /// Packets that are ECN-capable get the CE mark where the queue, this packet included, would exceed this.
    pub mark_above: Option<Limit>,
    /// Which packets are lost at random.
    pub loss: Loss,
    /// Where they are lost.
    pub loss_position: LossPosition,
    /// Random delay at the far end.
    pub jitter: Option<Jitter>,
    /// Packets that others overtake.
    pub reordering: Option<Reordering>,
    /// Share of packets that arrive twice, 0 to 1: the copy is made at the far end and arrives right behind.
    pub duplication: f64,
}

impl LinkConfig {
    /// A link of constant capacity and delay with an unlimited queue and no impairment.
    pub fn constant(rate: DataRate, delay: TimeDelta) -> Self {
        Self {
            capacity: Capacity::Constant(rate),
            delay,
            limit: Limit::Unlimited,
            discipline: Discipline::DropTail,
            mark_above: None,
            loss: Loss::None,
            loss_position: LossPosition::Exit,
            jitter: None,
            reordering: None,
            duplication: 0.0,
        }
    }

    /// Checks every field. Errors: the first one that cannot be used.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.delay.is_negative() {
            return Err(ConfigError::new("delay", self.delay, "zero or a positive time"));
        }
        check_limit("limit", self.limit)?;
        self.mark_above.map_or(Ok(()), |l| check_limit("mark_above", l))?;
        chance::check(self)
    }
}

fn check_limit(field: &'static str, limit: Limit) -> Result<(), ConfigError> {
    let positive = match limit {
        Limit::Unlimited => true,
        Limit::Size(s) => !s.is_zero(),
        Limit::Packets(n) => n > 0,
        Limit::Time(t) => t > TimeDelta::ZERO,
    };
    let none = "a positive amount, or unlimited";
    if positive { Ok(()) } else { Err(ConfigError::new(field, format_args!("{limit:?}"), none)) }
}
