//! A link: its queue, its transmitter or radio, and what happens to a packet on its way.
//!
//! Links compute departures when packets arrive. A queue in front of a known capacity needs no event for the end of a
//! transmission, so a hop costs one event; `path::Link` serves its queue lazily. A discipline that drops queued
//! packets states when the next drop may occur, and the link then has an event at that transmission, so that drops are
//! observed in time.

use crate::capacity::{Capacity, Server};
use crate::config::LinkConfig;
use crate::error::ConfigError;
use crate::flight::{Flight, InFlight};
use crate::impairment::{Draw, Impairments};
use crate::packet::{Delivery, Departure, Dropped, Packet, Verdict};
use crate::position::LossPosition;
use crate::queue::{AnyQueue, Discarded, Ledger, Queue, Queued, Room, Setup, Stations, Visit};
use crate::radio::Air;
use crate::random::Random;
use crate::stats::{Action, DropReason, LinkStats};
use crate::steps::Steps;
use weir_units::cold_path;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Arrival time if no packet is queued.
const NOTHING: Timestamp = Timestamp::MAX;

/// One direction of a link: a queue, a transmitter and a propagation delay.
///
/// Packets wait in a queue until the transmitter is free, are transmitted at the capacity, and propagate. Time must not
/// go back: an earlier `now` counts as the latest so far. At the same time a transmission ends, and the next begins,
/// before an arriving packet is handled.
#[derive(Clone, Debug)]
pub struct Link<P> {
    queue: AnyQueue<P>,
    line: Line<P>,
}

/// A link apart from its queue. Code that needs both is compiled for each discipline, so that a call determines once
/// which queue the link has.
#[derive(Clone, Debug)]
struct Line<P> {
    now: Timestamp,
    /// Arrival of a queued packet, or of one queued before; [`NOTHING`] if none is queued. Which one does not matter: a
    /// packet is only queued while the transmitter is busy until after its arrival. Cached, since each packet reads it
    /// several times.
    head: Timestamp,
    server: Server,
    /// The propagation delay; if it changes, the least one.
    delay: TimeDelta,
    impairments: Option<Box<Impairments>>,
    loss_position: LossPosition,
    /// If jitter keeps packets in order: when the last one arrives, or would without being held back.
    hold_behind: Option<Timestamp>,
    /// Whether the queue may drop queued packets, and whether it may be bypassed.
    drops_waiting: bool,
    may_pass_by: bool,
    flight: Flight<P>,
    ledger: Ledger<P>,
    capacity: Capacity,
    /// The medium of a radio link, which then serves the queue.
    air: Option<Box<Air<P>>>,
}

impl<P: Clone> Link<P> {
    /// A new link; `seed` determines all random draws. Errors: see [`LinkConfig::check`].
    pub fn new(config: &LinkConfig, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let model = config.model();
        let capacity = config.sustained();
        let shaped = config.shaper.map(|bucket| Capacity::Constant(bucket.rate));
        let room = Room::new(config.limit, shaped.unwrap_or_else(|| capacity.clone()));
        let setup = Setup { room, random: Random::new(!seed), members: config.members.clone() };
        let (queue, air) = match &config.radio {
            None => (config.discipline.queue(setup), None),
            Some(radio) => radio_link(radio, config, &setup, seed),
        };
        let server = Server::new(&capacity);
        let delays = config.variation.delay.as_ref().map_or(&[][..], Steps::values);
        let line = Line {
            now: Timestamp::ZERO,
            head: NOTHING,
            server: match &config.shaper {
                None => server,
                Some(bucket) => server.shaped(bucket),
            },
            delay: delays.iter().copied().min().unwrap_or(config.delay),
            loss_position: config.loss_position,
            hold_behind: model.keeps_order().then_some(Timestamp::ZERO),
            drops_waiting: queue.next_drop().is_some(),
            may_pass_by: queue.may_be_passed_by(),
            flight: Flight::new(model.may_overtake() || air.is_some()),
            impairments: Impairments::new(model, seed).map(Box::new),
            ledger: Ledger::default(),
            capacity,
            air,
        };
        Ok(Self { queue, line })
    }

    /// Accepts a packet, or drops it.
    #[inline]
    pub fn push(&mut self, now: Timestamp, packet: Packet<P>) -> Verdict<P> {
        self.queue.visit(Push { line: &mut self.line, now, packet })
    }

    /// The earliest time at which [`Self::pop`] may return something, or `None` for never.
    ///
    /// If packets may be reordered, or the queue drops queued packets, the time can be too early, and `pop` then
    /// returns nothing; it is never too late.
    #[inline(always)]
    pub fn next_event(&mut self) -> Option<Timestamp> {
        let line = &mut self.line;
        let mut at = match (&line.flight, line.flight.next_at()) {
            // Queued packets arrive after a packet in flight that is not overtaken.
            (Flight::InOrder(_), Some(at)) => at,
            (_, at) => (line.next_start(Timestamp::ZERO) + line.delay).min(at.unwrap_or(Timestamp::MAX)),
        };
        if line.drops_waiting {
            at = at.min(self.next_drop());
        }
        (at < Timestamp::MAX).then_some(at)
    }

    /// The earliest time at which a packet dropped by the queue may be returned.
    fn next_drop(&mut self) -> Timestamp {
        let line = &mut self.line;
        let foreseen = self.queue.next_drop().map_or(Timestamp::MAX, |earliest| line.next_start(earliest));
        line.ledger.discarded.front().map_or(foreseen, |d| d.at.min(foreseen))
    }

    /// Whether a pushed packet may make [`Self::next_event`] earlier. If not, each packet's events are after those of
    /// earlier packets.
    pub fn may_bring_forward(&self) -> bool {
        self.line.drops_waiting || matches!(self.line.flight, Flight::Sorted { .. })
    }

    /// The time that each packet takes from [`Self::push`] to [`Self::pop`] at the least, if both may be called apart: each with times
    /// that do not go back, those of `push` up to this much behind those of `pop` and as far as wished ahead of them. Zero if they may not,
    /// since what leaves the queue depends on the time at which it leaves.
    pub fn lookahead(&self) -> TimeDelta {
        if self.line.is_fixed() { self.line.delay } else { TimeDelta::ZERO }
    }

    /// The next packet that has left the link by `now`, in order of time.
    #[inline]
    pub fn pop(&mut self, now: Timestamp) -> Option<Departure<P>> {
        let mut now = now;
        let line = &mut self.line;
        if line.is_fixed() {
            // Packets that arrive by `now` have begun before; what is behind them is served when the next one is pushed.
            let may_be_first = match &line.flight {
                Flight::InOrder(_) => line.flight.next_at().is_none_or(|at| at > now),
                Flight::Sorted { .. } => true,
            };
            if line.head != NOTHING && may_be_first {
                let until = now - line.delay;
                self.queue.visit(Serve { line, until });
            }
        } else {
            self.advance(now);
            now = self.line.now;
        }
        let line = &mut self.line;
        if now == Timestamp::MAX {
            return None;
        }
        if line.drops_waiting
            && let Some(discarded) = line.pop_discarded()
        {
            return Some(discarded);
        }
        let InFlight { item, at, queued_for, bytes, ecn, lost } = line.flight.pop_due(now)?;
        let size = DataSize::from_bytes(u64::from(bytes));
        Some(match lost {
            None => {
                line.ledger.stats.delivered.add(bytes);
                Departure::Delivered(Delivery { item, at, size, ecn, queued_for })
            }
            Some(reason) => {
                cold_path();
                line.ledger.stats.count(Action::Dropped(reason), bytes);
                Departure::Dropped(Dropped { item, at, size, reason })
            }
        })
    }

    /// Whether no packet ever waits, since there is no limit of capacity.
    pub fn never_queues(&self) -> bool {
        self.line.air.is_none() && self.line.server.is_unlimited()
    }

    /// Bytes queued at `now` and the queueing delay then: [`Self::queue_size`] and [`Self::queue_delay`].
    #[inline]
    pub fn queue(&mut self, now: Timestamp) -> (DataSize, TimeDelta) {
        let line = &self.line;
        if line.head == NOTHING && line.air.is_none() && line.server.is_surely_free(line.now.max(now)) {
            return (DataSize::ZERO, TimeDelta::ZERO);
        }
        self.advance(now);
        (DataSize::from_bytes(self.queue.bytes()), self.delay_behind_queue())
    }

    /// Bytes queued at `now`, excluding the packet in transmission.
    pub fn queue_size(&mut self, now: Timestamp) -> DataSize {
        self.advance(now);
        DataSize::from_bytes(self.queue.bytes())
    }

    /// Packets queued at `now`, excluding the packet in transmission.
    pub fn queue_packets(&mut self, now: Timestamp) -> usize {
        self.advance(now);
        self.queue.packets()
    }

    /// Queueing delay of a packet that arrives at `now`, if everything queued were sent, including the rest of the
    /// current transmission; [`TimeDelta::MAX`] if the capacity stays at zero.
    pub fn queue_delay(&mut self, now: Timestamp) -> TimeDelta {
        self.advance(now);
        self.delay_behind_queue()
    }

    #[inline]
    fn delay_behind_queue(&mut self) -> TimeDelta {
        let line = &mut self.line;
        match line.server.start_behind(line.now, DataSize::from_bytes(self.queue.bytes())) {
            Timestamp::MAX => TimeDelta::MAX,
            at => at - line.now,
        }
    }

    /// Packets inside the link: queued, in transmission, in propagation, or dropped and not yet returned.
    pub fn packets_inside(&self) -> usize {
        let air = self.line.air.as_ref().map_or(0, |air| air.packets());
        self.queue.packets() + air + self.line.flight.len() + self.line.ledger.discarded.len()
    }

    /// The counters.
    pub fn stats(&self) -> LinkStats {
        self.line.ledger.stats
    }

    /// The capacity at a time: see [`Capacity::rate_at`].
    pub fn capacity_at(&self, at: Timestamp) -> DataRate {
        self.line.capacity.rate_at(at)
    }

    /// Begins every transmission due by `now`.
    #[inline]
    fn advance(&mut self, now: Timestamp) {
        self.line.now = self.line.now.max(now);
        if self.line.head != NOTHING {
            let until = self.line.now;
            self.queue.visit(Serve { line: &mut self.line, until });
        }
    }
}

/// [`Link::push`], compiled for each discipline.
struct Push<'a, P> {
    line: &'a mut Line<P>,
    now: Timestamp,
    packet: Packet<P>,
}

impl<P: Clone> Visit<P> for Push<'_, P> {
    type Output = Verdict<P>;
    #[inline]
    fn visit<Q: Queue<P>>(self, queue: &mut Q) -> Verdict<P> {
        self.line.push(queue, self.now, self.packet)
    }
    fn visit_stations(self, stations: &mut Stations<P>) -> Verdict<P> {
        self.line.push_to_station(stations, self.now, self.packet)
    }
}

/// [`Line::serve`], compiled for each discipline.
struct Serve<'a, P> {
    line: &'a mut Line<P>,
    until: Timestamp,
}

impl<P: Clone> Visit<P> for Serve<'_, P> {
    type Output = ();
    #[inline]
    fn visit<Q: Queue<P>>(self, queue: &mut Q) {
        if self.line.is_due(self.until) {
            self.line.serve(queue, self.until);
        }
    }
    fn visit_stations(self, stations: &mut Stations<P>) {
        self.line.serve_stations(stations);
    }
}

impl<P: Clone> Line<P> {
    #[inline]
    fn push<Q: Queue<P>>(&mut self, queue: &mut Q, now: Timestamp, packet: Packet<P>) -> Verdict<P> {
        self.now = self.now.max(now);
        if self.is_due(self.now) {
            self.serve(queue, self.now);
        }
        let mut packet = self.queued(packet);
        if let Some(reason) = self.impair(&mut packet) {
            return self.refuse(reason, packet);
        }
        if let Err(reason) = queue.admit(self.now, &mut packet, &mut self.ledger) {
            return self.refuse(reason, packet);
        }
        let is_idle = self.head == NOTHING && self.server.next_start(self.now) <= self.now;
        if is_idle && self.may_pass_by {
            self.transmit(packet);
        } else {
            queue.put(packet);
            if self.head == NOTHING {
                self.head = self.now;
            }
            if is_idle {
                self.serve(queue, self.now);
            }
        }
        Verdict::Queued
    }

    /// A packet as it arrives.
    // Not a call, as `transmit`; nor are the next two.
    #[inline(always)]
    fn queued(&mut self, packet: Packet<P>) -> Queued<P> {
        let Packet { item, size, ecn, flow } = packet;
        let bytes = u32::try_from(size.as_bytes()).unwrap_or(u32::MAX);
        self.ledger.stats.offered.add(bytes);
        Queued { item, arrived: self.now, bytes, flow, ecn, draw: Draw::default() }
    }

    /// Fate of a packet before the queue: why it is lost there, if it is.
    #[inline(always)]
    fn impair(&mut self, packet: &mut Queued<P>) -> Option<DropReason> {
        let impairments = self.impairments.as_mut()?;
        cold_path();
        packet.draw = impairments.draw(self.now);
        if packet.draw.lost && self.loss_position == LossPosition::Entry {
            return Some(DropReason::RandomLoss);
        }
        if impairments.is_policed(self.now, packet.bytes) {
            return Some(DropReason::Policer);
        }
        if impairments.ecn_position() == Some(LossPosition::Entry) {
            packet.draw.ecn.apply(&mut packet.ecn, packet.bytes, &mut self.ledger.stats);
        }
        None
    }

    /// The packet dropped by the queue, if none has arrived before.
    fn pop_discarded(&mut self) -> Option<Departure<P>> {
        let arrival = self.flight.next_at().unwrap_or(Timestamp::MAX);
        self.ledger.discarded.front().filter(|d| d.at <= arrival)?;
        let Discarded { item, at, bytes, reason } = self.ledger.discarded.pop_front()?;
        self.ledger.stats.count(Action::Dropped(reason), bytes);
        Some(Departure::Dropped(Dropped { item, at, size: DataSize::from_bytes(u64::from(bytes)), reason }))
    }

    #[cold]
    fn refuse(&mut self, reason: DropReason, packet: Queued<P>) -> Verdict<P> {
        self.ledger.stats.count(Action::Dropped(reason), packet.bytes);
        Verdict::Dropped(reason, packet.item)
    }

    /// When the next transmission begins, but not before `earliest`; `Timestamp::MAX` if nothing is queued.
    #[inline]
    fn next_start(&mut self, earliest: Timestamp) -> Timestamp {
        match self.head {
            NOTHING => Timestamp::MAX,
            arrived => self.server.next_start(arrived).max(earliest),
        }
    }

    /// Whether a packet's departure follows from the packets pushed before it alone.
    #[inline]
    fn is_fixed(&self) -> bool {
        !self.drops_waiting && self.air.is_none()
    }

    /// Whether the next transmission is due by `until`.
    #[inline]
    fn is_due(&mut self, until: Timestamp) -> bool {
        self.head != NOTHING && self.server.next_start(self.head) <= until
    }

    /// Begins every transmission that is due by `until`.
    #[inline(never)]
    fn serve<Q: Queue<P>>(&mut self, queue: &mut Q, until: Timestamp) {
        while self.head != NOTHING {
            let start = self.server.next_start(self.head);
            if start > until {
                break;
            }
            let packet = queue.dequeue(start, &mut self.ledger);
            self.head = queue.head_arrival().unwrap_or(NOTHING);
            if let Some(packet) = packet {
                self.transmit(packet);
            }
        }
    }

    // Not a call, so that the packet is not spilled to memory.
    #[inline(always)]
    fn transmit(&mut self, packet: Queued<P>) {
        let (start, end) = self.server.serve(packet.arrived, packet.bytes);
        self.launch(packet, start, end, false);
    }

    /// Sends a packet on its way after its transmission; `lost` if that has failed.
    #[inline(always)]
    fn launch(&mut self, packet: Queued<P>, start: Timestamp, end: Timestamp, lost: bool) {
        let Queued { item, arrived, bytes, mut ecn, draw, .. } = packet;
        let mut at = end + self.delay;
        let mut lost = lost.then_some(DropReason::RandomLoss);
        if let Some(impairments) = &self.impairments {
            cold_path();
            if let Some(delay) = impairments.delay_at(end) {
                at = end + delay;
            }
            at += draw.extra;
            if let Some(last) = &mut self.hold_behind {
                at = at.max(*last + (end - start));
                *last = at;
            }
            if draw.held_back {
                at += impairments.held_back_for();
            }
            if impairments.ecn_position() == Some(LossPosition::Exit) && !draw.lost {
                draw.ecn.apply(&mut ecn, bytes, &mut self.ledger.stats);
            }
            lost = lost.or(draw.lost.then_some(DropReason::RandomLoss));
        }
        let packet = InFlight { item, at, queued_for: start - arrived, bytes, ecn, lost };
        let copy = (draw.duplicated && lost.is_none() && at < Timestamp::MAX).then(|| packet.clone());
        self.flight.push(packet);
        if let Some(copy) = copy {
            cold_path();
            self.ledger.stats.duplicated.add(bytes);
            self.flight.push(copy);
        }
    }
}

mod stations;
use stations::radio_link;

#[cfg(test)]
mod tests;
