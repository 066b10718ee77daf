//! Radio links: what a link layer that shares a medium does between the queue and the receiver.
//!
//! A [`Radio`] replaces the link's transmitter. Its rate is the link's capacity; how much of it packets get follows from
//! the model, and [`Radio::sustained`] is that rate in the long run.
//!
//! A radio takes the place of a link's transmitter. Its transmissions are carried out lazily too, when a packet
//! arrives or the link is popped; what is not received stays in its window, so that packets leave in order. Queues of
//! stations are one variant of a link's queue, which is chosen where the discipline is: other links have no check for
//! it. A Wi-Fi medium shared by stations is one link that both directions cross.

mod cellular;
mod wifi;

pub use cellular::Cellular;
pub use wifi::{Others, Wifi};

use crate::capacity::Capacity;
use crate::error::ConfigError;
use crate::queue::{Ledger, Queued, Stations};
use crate::schedule::{Schedule, Step};
use std::collections::VecDeque;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Packet size for which sustained rates are given, with headers: RTP payloads of 1,000 bytes in UDP and IPv4.
pub(crate) const NOMINAL_BYTES: u32 = 1_040;

/// A kind of radio link.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Radio {
    /// IEEE 802.11: stations contend for one medium.
    Wifi(Wifi),
    /// LTE or NR: a base station schedules slots.
    Cellular(Cellular),
}

impl Radio {
    /// Checks every field, and that the link's capacity is one that the model can use. Errors: the first invalid one.
    pub(crate) fn check(&self, capacity: &Capacity) -> Result<(), ConfigError> {
        let least = match self {
            Self::Wifi(w) => {
                w.check()?;
                wifi::LEAST_RATE
            }
            Self::Cellular(c) => {
                c.check()?;
                cellular::LEAST_RATE
            }
        };
        let rates: Vec<DataRate> = match capacity {
            Capacity::Constant(rate) => vec![*rate],
            Capacity::Schedule(s) => s.steps().iter().map(|s| s.rate).collect(),
            Capacity::Unlimited => {
                return Err(ConfigError::new("rate", "unlimited", "a rate, steps of rates or a trace of rates"));
            }
            Capacity::Opportunities(_) => {
                let expected = "rates: recorded opportunities already contain the radio's scheduling";
                return Err(ConfigError::new("rate", "a mahimahi trace", expected));
            }
        };
        match rates.into_iter().find(|&r| r > DataRate::ZERO && r < least) {
            Some(low) => Err(ConfigError::new("rate", low, format!("zero, or at least {least} on this radio"))),
            None => Ok(()),
        }
    }

    /// Whether each station has queues of its own.
    pub(crate) fn separates_stations(&self) -> bool {
        match self {
            Self::Wifi(w) => w.separate,
            Self::Cellular(c) => c.separate,
        }
    }

    /// The rate at which one station with full queues sends packets of 1,040 bytes if the medium's rate is `rate`, on
    /// average. Other stations that [`Self`] itself states are taken into account.
    pub fn sustained(&self, rate: DataRate) -> DataRate {
        match self {
            Self::Wifi(w) => w.sustained(rate),
            Self::Cellular(c) => c.sustained(rate),
        }
    }

    /// The rate at a time that the stations of a link's flows get together, all of them with full queues: that of one station
    /// ([`Self::sustained`]) or, where each flow has its own, of so many stations.
    pub fn shared(&self, rate: DataRate, at: Timestamp, stations: usize) -> DataRate {
        let stations = if self.separates_stations() { stations.max(1) } else { 1 };
        match self {
            Self::Wifi(w) => w.shared(rate, stations),
            Self::Cellular(c) => c.shared(rate, at, stations),
        }
    }

    /// Whether the number of other users changes.
    pub fn has_changing_users(&self) -> bool {
        matches!(self, Self::Cellular(c) if c.users.values().len() > 1)
    }

    /// A link's capacity as seen by its queue: each rate as sustained.
    pub(crate) fn seen(&self, capacity: &Capacity) -> Capacity {
        match capacity {
            Capacity::Constant(rate) => Capacity::Constant(self.sustained(*rate)),
            Capacity::Schedule(s) => {
                let steps = s.steps().iter().map(|s| Step { at: s.at, rate: self.sustained(s.rate) }).collect();
                Schedule::new(steps, s.period()).map_or_else(|_| capacity.clone(), Capacity::Schedule)
            }
            Capacity::Unlimited | Capacity::Opportunities(_) => capacity.clone(),
        }
    }
}

/// A packet whose transmission is over.
#[derive(Clone, Debug)]
pub(crate) struct Sent<P> {
    pub(crate) packet: Queued<P>,
    /// When its first transmission began, and when it was delivered to the receiver's network layer, or given up.
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) lost: bool,
}

/// The state of a radio link: sans-IO as the link. It is asked for its next transmission and then carries it out.
#[derive(Clone, Debug)]
pub(crate) enum Air<P> {
    Wifi(wifi::Medium<P>),
    Cellular(cellular::Cell<P>),
}

impl<P> Air<P> {
    /// An unused medium whose rate is `capacity`; `queues` is the number of queues in front.
    pub(crate) fn new(radio: &Radio, capacity: &Capacity, queues: usize, seed: u64) -> Self {
        match radio {
            Radio::Wifi(w) => Self::Wifi(wifi::Medium::new(w, capacity, queues, seed)),
            Radio::Cellular(c) => Self::Cellular(cellular::Cell::new(c, capacity, queues, seed)),
        }
    }

    /// A packet will be put into this queue.
    pub(crate) fn on_arrival(&mut self, now: Timestamp, queue: usize, stations: &Stations<P>) {
        match self {
            Self::Wifi(m) => m.on_arrival(now, queue, stations),
            Self::Cellular(c) => c.on_arrival(now, queue, stations),
        }
    }

    /// When the next transmission begins; `Timestamp::MAX` for never, `None` if nothing waits for one.
    pub(crate) fn next_start(&mut self, stations: &Stations<P>) -> Option<Timestamp> {
        match self {
            Self::Wifi(m) => m.next_start(stations),
            Self::Cellular(c) => c.next_start(stations),
        }
    }

    /// Carries out the transmission that begins at `start`, the last result of [`Self::next_start`].
    pub(crate) fn transmit(
        &mut self,
        start: Timestamp,
        stations: &mut Stations<P>,
        ledger: &mut Ledger<P>,
        sent: &mut VecDeque<Sent<P>>,
    ) {
        match self {
            Self::Wifi(m) => m.transmit(start, stations, ledger, sent),
            Self::Cellular(c) => c.transmit(start, stations, ledger, sent),
        }
    }

    /// Packets taken out of the queues and not yet delivered or lost.
    pub(crate) fn packets(&self) -> usize {
        match self {
            Self::Wifi(m) => m.packets(),
            Self::Cellular(c) => c.packets(),
        }
    }
}

/// A medium's rate in time.
#[derive(Clone, Debug)]
struct Rates(Capacity);

impl Rates {
    fn at(&self, time: Timestamp) -> DataRate {
        self.0.rate_at(time)
    }

    /// The first time from `time` on at which the rate is above zero; `Timestamp::MAX` for never.
    fn next_above_zero(&self, time: Timestamp) -> Timestamp {
        match &self.0 {
            Capacity::Schedule(s) => s.next_above_zero(time),
            other if other.rate_at(time) > DataRate::ZERO => time,
            _ => Timestamp::MAX,
        }
    }
}

/// Rejects a count outside a range; `field` names it in the error.
fn check_count(field: &'static str, value: u32, least: u32, most: u32) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(field, value, format!("a number between {least} and {most}")))
}

/// Rejects a time outside a range; `field` names it in the error.
fn check_time(field: &'static str, value: TimeDelta, least: TimeDelta, most: TimeDelta) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(field, value, format!("a time between {least} and {most}")))
}
