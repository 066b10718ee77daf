//! LTE and NR: a base station gives the users of a cell parts of each slot; transport blocks that are not decoded are
//! retransmitted by HARQ, and packets are delivered in order.

use super::{Rates, Sent, check_count, check_time};
use crate::capacity::Capacity;
use crate::checks::check_share;
use crate::error::ConfigError;
use crate::queue::{Ledger, Queued, Stations};
use crate::random::Random;
use crate::steps::Steps;
use std::collections::VecDeque;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Least rate of a cell, in order that the slots that one packet takes stay few.
pub(super) const LEAST_RATE: DataRate = DataRate::from_kbps(10);
/// Most rounds of retransmission by RLC: the greatest maxRetxThreshold (TS 36.331, section 6.3.2: t32).
const MAX_RLC_ROUNDS: u32 = 32;
/// Most users beside those of the scenario's flows.
const MAX_USERS: u32 = 1_000;

/// A cell of LTE, or of NR by its times, as seen by the packets of one direction.
///
/// In each slot the cell's rate, the link's capacity, is shared evenly by the users that have something to send: a
/// proportionally fair scheduler for users with the same channel. A user's packets in a slot are one transport block.
#[derive(Clone, PartialEq, Debug)]
pub struct Cellular {
    /// Length of a slot: 1 ms, the TTI of LTE (TS 36.211, section 4.1); 0.5 or 0.25 ms for NR with subcarriers of 30 or 60 kHz
    /// (TS 38.211, section 4.3.2).
    pub slot: TimeDelta,
    /// Other users, with full queues, in time.
    pub users: Steps<u32>,
    /// Share of transport blocks not decoded at first: 0.1, the target of link adaptation (TS 36.213, section 7.2.3; TS
    /// 38.214, section 5.2.2.1).
    pub error_rate: f64,
    /// Share of retransmissions not decoded. 0.01: soft combining adds about 3 dB, by which blocks with 10 % of errors fall
    /// below that; a value chosen here.
    pub retransmission_error_rate: f64,
    /// Time from a transmission to its retransmission: 8 ms, of FDD's 8 HARQ processes (TS 36.213, section 8; uplink HARQ is
    /// synchronous, TS 36.321, section 5.4.2).
    pub harq_delay: TimeDelta,
    /// Most retransmissions by HARQ: 3 (TS 36.331, section 6.3.2: maxHARQ-Tx counts transmissions, n4 here).
    pub harq_retransmissions: u32,
    /// Whether RLC retransmits what HARQ has given up (acknowledged mode, TS 36.322, section 5.2), as default bearers do;
    /// otherwise such packets are lost.
    pub acknowledged: bool,
    /// Time after which the receiver gives a missing block up and reports it (t-Reordering, TS 36.322, section 7.3: 35 ms in
    /// the default configuration, TS 36.331, section 9.2.1.2).
    pub reordering: TimeDelta,
    /// Uplink only: the interval between two opportunities for a scheduling request (TS 36.321, section 5.4.4; TS 36.213,
    /// section 10.1.5: 5 to 80 ms). A user without a grant waits for one. None on the downlink.
    pub request_interval: Option<TimeDelta>,
    /// Uplink only: time from the request to the transmission that it is granted: 8 ms, 4 ms to the grant and 4 ms from
    /// there to the transmission (TS 36.213, section 8.0).
    pub grant_delay: TimeDelta,
    /// Whether each station is a user with a bearer, and so a queue, of its own; otherwise all flows are one user's.
    pub separate: bool,
}

impl Default for Cellular {
    fn default() -> Self {
        Self {
            slot: TimeDelta::from_millis(1),
            users: Steps::constant(0),
            error_rate: 0.1,
            retransmission_error_rate: 0.01,
            harq_delay: TimeDelta::from_millis(8),
            harq_retransmissions: 3,
            acknowledged: true,
            reordering: TimeDelta::from_millis(35),
            request_interval: None,
            grant_delay: TimeDelta::from_millis(8),
            separate: false,
        }
    }
}

impl Cellular {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let (us, ms) = (TimeDelta::from_micros, TimeDelta::from_millis);
        check_time("cellular.slot", self.slot, us(125), ms(10))?;
        self.users.values().iter().try_for_each(|&n| check_count("cellular.users", n, 0, MAX_USERS))?;
        check_share("cellular.error_rate", self.error_rate)?;
        check_share("cellular.retransmission_error_rate", self.retransmission_error_rate)?;
        check_time("cellular.harq_delay", self.harq_delay, self.slot, ms(100))?;
        check_count("cellular.harq_retransmissions", self.harq_retransmissions, 0, 16)?;
        check_time("cellular.reordering", self.reordering, TimeDelta::ZERO, ms(1_000))?;
        if let Some(interval) = self.request_interval {
            check_time("cellular.request_interval", interval, self.slot, ms(1_000))?;
        }
        check_time("cellular.grant_delay", self.grant_delay, TimeDelta::ZERO, ms(1_000))
    }

    /// The cell's rate less retransmissions, and less what the users of the beginning take; where each flow has a bearer, of
    /// the whole cell.
    pub(super) fn sustained(&self, rate: DataRate) -> DataRate {
        let users = if self.separate { 0 } else { self.users.values()[0] };
        self.part(rate, 1.0 / f64::from(1 + users))
    }

    /// The rate that so many bearers with full queues get together beside the other users of a time.
    pub(super) fn shared(&self, rate: DataRate, at: Timestamp, bearers: usize) -> DataRate {
        let own = bearers as f64;
        self.part(rate, own / (own + f64::from(self.users.at(at))))
    }

    /// A share of the cell's rate less retransmissions.
    fn part(&self, rate: DataRate, share: f64) -> DataRate {
        let (first, again) = (self.error_rate, self.retransmission_error_rate);
        // One transmission, and with probability `first` as many more as a geometric number of failures, up to the limit.
        let most = self.harq_retransmissions;
        let extra: f64 = (0..most).map(|k| first * libm::pow(again, f64::from(k))).sum();
        DataRate::from_bps_f64(rate.as_bps_f64() / (1.0 + extra) * share)
    }
}

/// A packet that has begun its transmission.
#[derive(Clone, Debug)]
struct Segmented<P> {
    packet: Queued<P>,
    left: u32,
    start: Timestamp,
    /// When the last of its blocks so far is decoded, or given up.
    done: Timestamp,
    lost: bool,
}

/// A user's bearer.
#[derive(Clone, Debug)]
struct Bearer<P> {
    head: Option<Segmented<P>>,
    /// Part of a byte that the slots so far have left.
    fraction: f64,
    /// The first slot in which it may send.
    ready: i64,
    /// When the last packet was delivered.
    released: Timestamp,
    /// Slots of its retransmissions, in order, and their bytes.
    retransmissions: VecDeque<(i64, u32)>,
}

/// The state of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell<P> {
    config: Cellular,
    rates: Rates,
    random: Random,
    bearers: Vec<Bearer<P>>,
    /// The first slot not yet over.
    next: i64,
    /// Slots in which the last block is retransmitted.
    again: Vec<i64>,
}

/// Fate of a transport block.
struct Outcome {
    at: Timestamp,
    lost: bool,
}

impl<P> Cell<P> {
    pub(super) fn new(config: &Cellular, capacity: &Capacity, queues: usize, seed: u64) -> Self {
        let bearer = |_| Bearer {
            head: None,
            fraction: 0.0,
            ready: 0,
            released: Timestamp::ZERO,
            retransmissions: VecDeque::new(),
        };
        Self {
            config: config.clone(),
            rates: Rates(capacity.clone()),
            random: Random::new(seed ^ 0x5ce1_1a7e),
            bearers: (0..queues).map(bearer).collect(),
            next: 0,
            again: Vec::new(),
        }
    }

    fn slot_at(&self, time: Timestamp) -> i64 {
        time.as_nanos().max(0) / self.config.slot.as_nanos()
    }

    fn start_of(&self, slot: i64) -> Timestamp {
        Timestamp::from_nanos(slot.saturating_mul(self.config.slot.as_nanos()))
    }

    pub(super) fn on_arrival(&mut self, now: Timestamp, queue: usize, stations: &Stations<P>) {
        if self.bearers[queue].head.is_some() || stations.has_packets(queue) {
            return;
        }
        // The first slot that begins after the arrival.
        let mut ready = self.slot_at(now) + 1;
        if let Some(interval) = self.config.request_interval {
            let (now, interval) = (now.as_nanos().max(0), interval.as_nanos());
            let request = (now / interval + 1) * interval;
            ready = self.slot_at(Timestamp::from_nanos(request) + self.config.grant_delay).max(ready);
        }
        self.bearers[queue].ready = ready;
    }

    pub(super) fn next_start(&mut self, stations: &Stations<P>) -> Option<Timestamp> {
        let waits = |(i, b): (usize, &Bearer<P>)| (b.head.is_some() || stations.has_packets(i)).then_some(b.ready);
        let ready = self.bearers.iter().enumerate().filter_map(waits).min()?;
        let slot = ready.max(self.next);
        let start = self.start_of(slot);
        match self.rates.next_above_zero(start) {
            Timestamp::MAX => Some(Timestamp::MAX),
            at if at > start => Some(self.start_of(self.slot_at(at - TimeDelta::from_nanos(1)) + 1)),
            _ => Some(start),
        }
    }

    pub(super) fn transmit(
        &mut self,
        start: Timestamp,
        stations: &mut Stations<P>,
        ledger: &mut Ledger<P>,
        sent: &mut VecDeque<Sent<P>>,
    ) {
        let slot = self.slot_at(start);
        self.next = slot + 1;
        for bearer in &mut self.bearers {
            while bearer.retransmissions.front().is_some_and(|r| r.0 < slot) {
                bearer.retransmissions.pop_front();
            }
        }
        let is_active = |i: usize, b: &Bearer<P>| {
            let waits = b.head.is_some() || stations.has_packets(i);
            waits && b.ready <= slot || b.retransmissions.front().is_some_and(|r| r.0 == slot)
        };
        let active: Vec<usize> = (0..self.bearers.len()).filter(|&i| is_active(i, &self.bearers[i])).collect();
        let users = active.len() as f64 + f64::from(self.config.users.at(start));
        let bytes = self.rates.at(start).as_bps_f64() * self.config.slot.as_secs_f64() / 8.0 / users.max(1.0);
        for i in active {
            self.send(i, slot, bytes, stations, ledger, sent);
        }
    }

    /// Sends a user's transport block of a slot.
    fn send(
        &mut self,
        index: usize,
        slot: i64,
        bytes: f64,
        stations: &mut Stations<P>,
        ledger: &mut Ledger<P>,
        sent: &mut VecDeque<Sent<P>>,
    ) {
        let (start, end) = (self.start_of(slot), self.start_of(slot + 1));
        let mut room = self.bearers[index].fraction + bytes;
        let retransmissions = &mut self.bearers[index].retransmissions;
        while let Some(&(_, again)) = retransmissions.front().filter(|r| r.0 <= slot) {
            retransmissions.pop_front();
            room -= f64::from(again);
        }
        if room < 1.0 {
            // A retransmission of more than the slot's share defers what follows.
            self.bearers[index].fraction = room;
            return;
        }
        let mut block = 0u32;
        let mut outcome: Option<Outcome> = None;
        // The packets that end in this block, and the one that does not.
        while room >= 1.0 {
            let head = match self.bearers[index].head.take() {
                Some(head) => head,
                None => match stations.take(index, start, ledger) {
                    Some(packet) => {
                        Segmented { left: packet.bytes(), packet, start, done: Timestamp::ZERO, lost: false }
                    }
                    None => break,
                },
            };
            let result = match &outcome {
                Some(known) => known,
                None => outcome.insert(self.decode(end)),
            };
            let Segmented { packet, mut left, start, mut done, mut lost } = head;
            let used = f64::from(left).min(libm::floor(room)) as u32;
            (left, block, room) = (left - used, block + used, room - f64::from(used));
            (done, lost) = (done.max(result.at), lost || result.lost);
            let bearer = &mut self.bearers[index];
            if left > 0 {
                bearer.head = Some(Segmented { packet, left, start, done, lost });
                continue;
            }
            // In order: a packet waits for those before it.
            bearer.released = bearer.released.max(done);
            sent.push_back(Sent { packet, start, end: bearer.released, lost });
        }
        let bearer = &mut self.bearers[index];
        // Capacity of a slot that nobody needs is not kept for the next.
        bearer.fraction = if bearer.head.is_some() { room } else { 0.0 };
        if outcome.is_some() {
            for &next in &self.again {
                let place = bearer.retransmissions.partition_point(|r| r.0 <= next);
                bearer.retransmissions.insert(place, (next, block));
            }
        }
    }

    /// When a block whose first transmission ends at `end` is decoded.
    fn decode(&mut self, end: Timestamp) -> Outcome {
        let Cellular { error_rate, retransmission_error_rate, harq_delay, harq_retransmissions, .. } = self.config;
        let mut at = end;
        self.again.clear();
        for _ in 0..=MAX_RLC_ROUNDS {
            let mut fails = self.random.uniform() < error_rate;
            for _ in 0..harq_retransmissions {
                if !fails {
                    break;
                }
                at += harq_delay;
                self.again.push(self.slot_at(at) - 1);
                fails = self.random.uniform() < retransmission_error_rate;
            }
            if !fails {
                return Outcome { at, lost: false };
            }
            at += self.config.reordering;
            if !self.config.acknowledged {
                break;
            }
            // Sent once more as a new block.
            at += self.config.slot;
            self.again.push(self.slot_at(at) - 1);
        }
        Outcome { at, lost: true }
    }

    pub(super) fn packets(&self) -> usize {
        self.bearers.iter().filter(|b| b.head.is_some()).count()
    }
}

#[cfg(test)]
mod tests;
