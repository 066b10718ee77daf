//! Contention for the medium, transmissions, and the order of what is received.

use super::super::{Rates, Sent};
use super::ppdu::Ppdu;
use super::{Others, Wifi};
use crate::capacity::Capacity;
use crate::queue::{Ledger, Queued, Stations};
use crate::random::Random;
use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// Packets of one sender and receiver between the first one not acknowledged and the last one sent (802.11-2020, clause
/// 10.25.6: the size of a block acknowledgement's window).
const WINDOW: usize = 64;

/// The state of the medium.
#[derive(Clone, Debug)]
pub(crate) struct Medium<P> {
    config: Wifi,
    rates: Rates,
    random: Random,
    /// The stations of the flows (the access point first, if stations are separate), then the others.
    contenders: Vec<Contender>,
    /// Number of the stations of the flows.
    own: usize,
    lanes: Vec<Lane<P>>,
    /// From when on the medium has been idle for AIFS, so that backoff slots are counted.
    idle_from: Timestamp,
    /// Whether any of the flows' stations takes part in the contention; the others alone are not simulated.
    is_contended: bool,
}

/// A station.
#[derive(Clone, Debug)]
struct Contender {
    /// Backoff slots left at `idle_from`.
    slots: u32,
    /// Contention window.
    window: u32,
    /// From when on it has something to send; `Timestamp::MAX` for nothing.
    ready: Timestamp,
    /// The lane served last, among those of the access point.
    last_lane: usize,
}

/// Packets that a station sends to one receiver, and has not had acknowledged.
#[derive(Clone, Debug)]
struct Lane<P> {
    packets: VecDeque<Mpdu<P>>,
    /// How many of them are to be sent.
    unsent: usize,
    released: Timestamp,
}

#[derive(Clone, Debug)]
struct Mpdu<P> {
    packet: Queued<P>,
    start: Option<Timestamp>,
    retries: u32,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    ToSend,
    Received(Timestamp),
    Lost(Timestamp),
}

impl<P> Lane<P> {
    /// Passes on, in order, what is received or lost.
    fn release(&mut self, sent: &mut VecDeque<Sent<P>>) {
        while let Some(first) = self.packets.front() {
            let (at, lost) = match first.state {
                State::Received(at) => (at, false),
                State::Lost(at) => (at, true),
                State::ToSend => return,
            };
            let Some(first) = self.packets.pop_front() else { return };
            self.released = self.released.max(at);
            sent.push_back(Sent { packet: first.packet, start: first.start.unwrap_or(at), end: self.released, lost });
        }
    }
}

impl<P> Medium<P> {
    pub(in super::super) fn new(config: &Wifi, capacity: &Capacity, queues: usize, seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x8021_1a11);
        // Two queues a station, the access point's own included, which sends to all of them.
        let own = if config.separate { queues / 2 } else { 1 };
        let others = match config.others {
            Others::Saturated(n) => n as usize,
            Others::Load(share) => usize::from(share > 0.0),
        };
        let contender = |_| Contender { slots: 0, window: config.cw_min, ready: Timestamp::MAX, last_lane: 0 };
        let mut contenders: Vec<Contender> = (0..own + others).map(contender).collect();
        for other in &mut contenders[own..] {
            other.slots = random.up_to(config.cw_min);
            other.ready = Timestamp::ZERO;
        }
        let lane = |_| Lane { packets: VecDeque::new(), unsent: 0, released: Timestamp::ZERO };
        Self {
            config: config.clone(),
            rates: Rates(capacity.clone()),
            random,
            contenders,
            own,
            lanes: (0..queues).map(lane).collect(),
            idle_from: Timestamp::ZERO,
            is_contended: false,
        }
    }

    /// The station that serves a queue: even ones lead to stations and belong to the access point.
    fn contender_of(&self, queue: usize) -> usize {
        if self.config.separate && queue % 2 == 1 { queue / 2 } else { 0 }
    }

    fn lane_waits(&self, lane: usize, stations: &Stations<P>) -> bool {
        self.lanes[lane].unsent > 0 || (self.lanes[lane].packets.len() < WINDOW && stations.has_packets(lane))
    }

    pub(in super::super) fn on_arrival(&mut self, now: Timestamp, queue: usize, _: &Stations<P>) {
        if !self.is_contended {
            self.is_contended = true;
            self.join_others(now);
        }
        let station = self.contender_of(queue);
        let (busy, window) = (now < self.idle_from, self.contenders[station].window);
        let contender = &mut self.contenders[station];
        if contender.ready == Timestamp::MAX {
            contender.ready = now;
            // A station that finds the medium busy draws a backoff (802.11-2020, clause 10.3.4.2).
            if busy && contender.slots == 0 {
                contender.slots = self.random.up_to(window);
            }
        }
    }

    /// Activity of the others while no station of a flow had anything to send.
    fn join_others(&mut self, now: Timestamp) {
        if self.contenders.len() == self.own || now <= self.idle_from {
            return;
        }
        let rate = self.rates.at(now);
        let air_time = self.config.others_time(rate);
        let busy = match self.config.others {
            Others::Saturated(_) => 1.0,
            Others::Load(share) => share,
        };
        if self.random.uniform() < busy {
            // In the midst of a transmission.
            let rest = air_time.mul_f64(self.random.uniform());
            self.idle_from = now + rest + self.config.closing() + self.config.aifs();
        }
        for i in self.own..self.contenders.len() {
            self.contenders[i].slots = self.random.up_to(self.config.cw_min);
            self.contenders[i].ready = self.next_of_others(now);
        }
    }

    /// When another station has its next transmission ready, after one at `now`.
    fn next_of_others(&mut self, now: Timestamp) -> Timestamp {
        match self.config.others {
            Others::Saturated(_) => Timestamp::ZERO,
            Others::Load(share) => {
                let air_time = self.config.others_time(self.rates.at(now)) + self.config.closing();
                let mean = air_time.as_secs_f64() / share.max(1e-9);
                now + TimeDelta::from_secs_f64(self.random.exponential(mean))
            }
        }
    }

    /// Slots after `idle_from` in which a station begins to send, if it has anything.
    fn slot_of(&self, contender: &Contender) -> Option<i64> {
        if contender.ready == Timestamp::MAX {
            return None;
        }
        let slot = self.config.slot.as_nanos();
        let since = contender.ready.saturating_since(self.idle_from).as_nanos();
        Some(i64::from(contender.slots).max(since.saturating_add(slot - 1) / slot))
    }

    pub(in super::super) fn next_start(&mut self, _: &Stations<P>) -> Option<Timestamp> {
        if !self.is_contended {
            return None;
        }
        let first = self.contenders.iter().filter_map(|c| self.slot_of(c)).min()?;
        let start = self.idle_from + self.config.slot * first;
        // During an outage nothing is sent: the first in the contention sends when it is over.
        Some(self.rates.next_above_zero(start))
    }

    pub(in super::super) fn transmit(
        &mut self,
        start: Timestamp,
        stations: &mut Stations<P>,
        ledger: &mut Ledger<P>,
        sent: &mut VecDeque<Sent<P>>,
    ) {
        let slots: Vec<Option<i64>> = self.contenders.iter().map(|c| self.slot_of(c)).collect();
        let Some(first) = slots.iter().flatten().copied().min() else { return };
        let winners: Vec<usize> = (0..slots.len()).filter(|&i| slots[i] == Some(first)).collect();
        let passed = u32::try_from(first).unwrap_or(u32::MAX);
        for contender in &mut self.contenders {
            contender.slots = contender.slots.saturating_sub(passed);
        }
        let collides = winners.len() > 1;
        let mut end = start;
        for &i in &winners {
            end = end.max(if i < self.own {
                self.send(i, start, collides, stations, ledger, sent)
            } else {
                let air_time = self.config.others_time(self.rates.at(start));
                if !collides {
                    self.contenders[i].ready = self.next_of_others(self.contenders[i].ready.max(Timestamp::ZERO));
                }
                self.after(i, collides);
                start + air_time
            });
        }
        self.idle_from = end + self.config.closing() + self.config.aifs();
        for station in 0..self.own {
            let waits = self.lanes_of(station).any(|lane| self.lane_waits(lane, stations));
            let ready = self.contenders[station].ready;
            self.contenders[station].ready = if waits { ready.min(self.idle_from) } else { Timestamp::MAX };
        }
        self.is_contended = self.contenders[..self.own].iter().any(|c| c.ready < Timestamp::MAX);
    }

    /// The queues that a station serves.
    fn lanes_of(&self, station: usize) -> impl Iterator<Item = usize> + use<P> {
        let (first, step, last) = match (self.config.separate, station) {
            (false, _) => (0, 1, 1),
            (true, 0) => (0, 2, self.lanes.len()),
            (true, _) => (2 * station + 1, 1, 2 * station + 2),
        };
        (first..last).step_by(step)
    }

    /// A backoff after a transmission (802.11-2020, clauses 10.3.3 and 10.23.2.2).
    fn after(&mut self, station: usize, failed: bool) {
        let Wifi { cw_min, cw_max, .. } = self.config;
        let contender = &mut self.contenders[station];
        contender.window = if failed { (2 * contender.window + 1).min(cw_max) } else { cw_min };
        contender.slots = self.random.up_to(contender.window);
    }

    /// Sends an aggregate, and returns the end of its data.
    fn send(
        &mut self,
        station: usize,
        start: Timestamp,
        collides: bool,
        stations: &mut Stations<P>,
        ledger: &mut Ledger<P>,
        sent: &mut VecDeque<Sent<P>>,
    ) -> Timestamp {
        let rate = self.rates.at(start);
        let waiting: Vec<usize> = self.lanes_of(station).filter(|&lane| self.lane_waits(lane, stations)).collect();
        let last = self.contenders[station].last_lane;
        let Some(&lane) = waiting.iter().find(|&&l| l > last).or(waiting.first()) else {
            self.after(station, false);
            return start;
        };
        self.contenders[station].last_lane = lane;
        let whole = self.fill(lane, start, stations, ledger);
        if whole.packets() == 0 {
            // The discipline has dropped all that waited.
            self.after(station, false);
            return start;
        }
        let mut so_far = Ppdu::default();
        let mut received_any = false;
        for i in 0..self.lanes[lane].packets.len() {
            if so_far.packets() == whole.packets() {
                break;
            }
            if self.lanes[lane].packets[i].state != State::ToSend {
                continue;
            }
            so_far.add(self.lanes[lane].packets[i].packet.bytes());
            let at = start + so_far.received_after(&self.config, rate, whole);
            let fails = self.random.uniform() < self.config.error_rate || collides;
            let mpdu = &mut self.lanes[lane].packets[i];
            mpdu.start.get_or_insert(start);
            if !fails {
                (mpdu.state, received_any) = (State::Received(at), true);
            } else if mpdu.retries == self.config.retry_limit {
                mpdu.state = State::Lost(at);
            } else {
                mpdu.retries += 1;
                continue;
            }
            self.lanes[lane].unsent -= 1;
        }
        self.lanes[lane].release(sent);
        self.after(station, !received_any);
        start + whole.air_time(&self.config, rate)
    }

    /// Takes packets out of a queue until the aggregate is full, those to be retried first.
    fn fill(&mut self, lane: usize, start: Timestamp, stations: &mut Stations<P>, ledger: &mut Ledger<P>) -> Ppdu {
        let rate = self.rates.at(start);
        let mut ppdu = Ppdu::default();
        for mpdu in self.lanes[lane].packets.iter().filter(|m| m.state == State::ToSend) {
            if !ppdu.fits(&self.config, rate, mpdu.packet.bytes()) {
                return ppdu;
            }
            ppdu.add(mpdu.packet.bytes());
        }
        while ppdu.packets() < self.config.max_packets && self.lanes[lane].packets.len() < WINDOW {
            let Some(packet) = stations.take(lane, start, ledger) else { break };
            let bytes = packet.bytes();
            let lane = &mut self.lanes[lane];
            lane.packets.push_back(Mpdu { packet, start: None, retries: 0, state: State::ToSend });
            lane.unsent += 1;
            // One that does not fit is the first of the next aggregate.
            if !ppdu.fits(&self.config, rate, bytes) {
                break;
            }
            ppdu.add(bytes);
        }
        ppdu
    }

    pub(in super::super) fn packets(&self) -> usize {
        self.lanes.iter().map(|l| l.packets.len()).sum()
    }
}
