use crate::capacity::{Capacity, Server};
use crate::config::LinkConfig;
use crate::error::ConfigError;
use crate::flight::{Flight, InFlight};
use crate::impairment::{Draw, Impairments, LossPosition};
use crate::queue::{AnyQueue, Discarded, Ledger, Queue, Queued, Room, Setup, Visit};
use crate::random::Random;
use crate::stats::{Action, DropReason, LinkStats};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// A packet for a link, and what the link reads of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<P> {
    /// The packet, which the link gives back as it is.
    pub item: P,
    /// Bytes on the wire. More than 4 GiB count as 4 GiB.
    pub size: DataSize,
    /// Its ECN field, which the link may mark.
    pub ecn: Ecn,
    /// The flow that it belongs to, for disciplines that tell flows apart; any number that its flow alone has.
    pub flow: u32,
}

/// Stands for the arrival of a packet where none waits.
const NOTHING: Timestamp = Timestamp::MAX;

/// What became of a packet that was given to a link.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum Verdict<P> {
    /// The link has it and will give it back by [`Link::pop`].
    Queued,
    /// Dropped at once; the packet comes back.
    Dropped(DropReason, P),
}

/// A packet at the far end of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery<P> {
    /// The packet.
    pub item: P,
    /// When it arrived.
    pub at: Timestamp,
    /// Its size.
    pub size: DataSize,
    /// Its ECN field, perhaps marked on the way.
    pub ecn: Ecn,
    /// How long it waited for its transmission to begin.
    pub queued_for: TimeDelta,
}

/// A packet that was lost inside the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dropped<P> {
    /// The packet.
    pub item: P,
    /// When it would have arrived, or was taken from the queue.
    pub at: Timestamp,
    /// Its size.
    pub size: DataSize,
    /// Why.
    pub reason: DropReason,
}

/// A packet that leaves the link, one way or the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure<P> {
    /// It arrives.
    Delivered(Delivery<P>),
    /// It is lost.
    Dropped(Dropped<P>),
}

/// One direction of a link: a queue, a transmitter and a way to the far end.
///
/// Packets wait in a queue until the transmitter is free, take their size at the capacity to leave it, then
/// travel for the propagation delay. Time may not go backwards: an earlier `now` counts as the latest seen.
/// At one instant a transmission ends, and the next begins, before a packet that comes at that instant is judged.
#[derive(Clone, Debug)]
pub struct Link<P> {
    queue: AnyQueue<P>,
    line: Line<P>,
}

/// What a link is beside its queue. Whatever needs both is compiled for each discipline, so that a call finds out once which
/// queue the link has.
#[derive(Clone, Debug)]
struct Line<P> {
    now: Timestamp,
    /// When the packet arrived that the queue looks at next, or one before it; [`NOTHING`] where none waits. Kept here
    /// since each packet asks for it several times.
    head: Timestamp,
    server: Server,
    delay: TimeDelta,
    impairments: Option<Box<Impairments>>,
    loss_position: LossPosition,
    /// Set where jitter holds packets in order: when the last one arrives.
    hold_behind: Option<Timestamp>,
    /// Whether the queue may drop packets that wait, and whether it may be passed by.
    drops_waiting: bool,
    may_pass_by: bool,
    flight: Flight<P>,
    ledger: Ledger<P>,
    capacity: Capacity,
}

impl<P: Clone> Link<P> {
    /// A link that nothing has passed yet; `seed` fixes every random draw. Errors: see [`LinkConfig::check`].
    pub fn new(config: &LinkConfig, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let overtaking = config.jitter.is_some_and(|j| j.may_reorder) || config.reordering.is_some();
        let held = config.jitter.is_some() && !overtaking;
        let room = Room::new(config.limit, config.capacity.clone());
        let queue = config.discipline.queue(Setup { room, random: Random::new(!seed) });
        let line = Line {
            now: Timestamp::ZERO,
            head: NOTHING,
            server: Server::new(&config.capacity),
            delay: config.delay,
            impairments: Impairments::new(config.random(), seed).map(Box::new),
            loss_position: config.loss_position,
            hold_behind: held.then_some(Timestamp::ZERO),
            drops_waiting: queue.next_drop().is_some(),
            may_pass_by: queue.may_be_passed_by(),
            flight: Flight::new(overtaking),
            ledger: Ledger::default(),
            capacity: config.capacity.clone(),
        };
        Ok(Self { queue, line })
    }

    /// Takes a packet in, or drops it.
    #[inline]
    pub fn push(&mut self, now: Timestamp, packet: Packet<P>) -> Verdict<P> {
        self.queue.visit(Push { line: &mut self.line, now, packet })
    }

    /// The earliest instant at which [`Self::pop`] may give something, or `None` if it never will as things are.
    ///
    /// Where packets may overtake each other, or the queue drops packets that have waited, the instant can be too
    /// early, and `pop` then gives nothing; it is never too late.
    #[inline]
    pub fn next_event(&mut self) -> Option<Timestamp> {
        let line = &mut self.line;
        let mut at = match (&line.flight, line.flight.next_at()) {
            // Behind a packet in flight that none overtakes, what waits comes later.
            (Flight::InOrder(_), Some(at)) => at,
            (_, at) => (line.next_start(Timestamp::ZERO) + line.delay).min(at.unwrap_or(Timestamp::MAX)),
        };
        if line.drops_waiting {
            at = at.min(self.next_drop());
        }
        (at < Timestamp::MAX).then_some(at)
    }

    /// The earliest instant at which a packet may be given back that the queue has dropped.
    fn next_drop(&mut self) -> Timestamp {
        let line = &mut self.line;
        let foreseen = self.queue.next_drop().map_or(Timestamp::MAX, |earliest| line.next_start(earliest));
        line.ledger.discarded.front().map_or(foreseen, |d| d.at.min(foreseen))
    }

    /// Whether a packet that is pushed may bring [`Self::next_event`] forward. Where not, each packet's events come
    /// after those of the packets before it.
    pub fn may_bring_forward(&self) -> bool {
        self.line.drops_waiting || matches!(self.line.flight, Flight::Sorted { .. })
    }

    /// The next packet that has left the link by `now`, in order of time.
    #[inline]
    pub fn pop(&mut self, now: Timestamp) -> Option<Departure<P>> {
        self.advance(now);
        let line = &mut self.line;
        if line.now == Timestamp::MAX {
            return None;
        }
        if line.drops_waiting
            && let Some(discarded) = line.pop_discarded()
        {
            return Some(discarded);
        }
        let InFlight { item, at, queued_for, bytes, ecn, lost } = line.flight.pop_due(line.now)?;
        let size = DataSize::from_bytes(u64::from(bytes));
        Some(match lost {
            None => {
                line.ledger.stats.delivered.add(bytes);
                Departure::Delivered(Delivery { item, at, size, ecn, queued_for })
            }
            Some(reason) => {
                line.ledger.stats.count(Action::Dropped(reason), bytes);
                Departure::Dropped(Dropped { item, at, size, reason })
            }
        })
    }

    /// Bytes that wait at `now`, without the packet in transmission.
    pub fn queue_size(&mut self, now: Timestamp) -> DataSize {
        self.advance(now);
        DataSize::from_bytes(self.queue.bytes())
    }

    /// Packets that wait at `now`, without the packet in transmission.
    pub fn queue_packets(&mut self, now: Timestamp) -> usize {
        self.advance(now);
        self.queue.packets()
    }

    /// How long a packet that came at `now` would wait for its transmission to begin if all that waits were sent, the
    /// rest of the present one included; [`TimeDelta::MAX`] where the capacity stays at zero.
    pub fn queue_delay(&mut self, now: Timestamp) -> TimeDelta {
        self.advance(now);
        let line = &mut self.line;
        match line.server.start_behind(line.now, DataSize::from_bytes(self.queue.bytes())) {
            Timestamp::MAX => TimeDelta::MAX,
            at => at - line.now,
        }
    }

    /// Packets inside the link: waiting, in transmission, on their way, or dropped and not yet given back.
    pub fn packets_inside(&self) -> usize {
        self.queue.packets() + self.line.flight.len() + self.line.ledger.discarded.len()
    }

    /// What has happened so far.
    pub fn stats(&self) -> LinkStats {
        self.line.ledger.stats
    }

    /// The capacity at an instant: see [`Capacity::rate_at`].
    pub fn capacity_at(&self, at: Timestamp) -> DataRate {
        self.line.capacity.rate_at(at)
    }

    /// Begins every transmission that is due by `now`.
    #[inline]
    fn advance(&mut self, now: Timestamp) {
        self.line.now = self.line.now.max(now);
        if self.line.head != NOTHING {
            self.queue.visit(Serve { line: &mut self.line });
        }
    }
}

/// [`Link::push`], for each discipline.
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
}

/// [`Line::serve`], for each discipline.
struct Serve<'a, P> {
    line: &'a mut Line<P>,
}

impl<P: Clone> Visit<P> for Serve<'_, P> {
    type Output = ();
    #[inline]
    fn visit<Q: Queue<P>>(self, queue: &mut Q) {
        self.line.serve(queue);
    }
}

impl<P: Clone> Line<P> {
    #[inline]
    fn push<Q: Queue<P>>(&mut self, queue: &mut Q, now: Timestamp, packet: Packet<P>) -> Verdict<P> {
        self.now = self.now.max(now);
        if self.head != NOTHING {
            self.serve(queue);
        }
        let Packet { item, size, ecn, flow } = packet;
        let bytes = u32::try_from(size.as_bytes()).unwrap_or(u32::MAX);
        self.ledger.stats.offered.add(bytes);
        let mut packet = Queued { item, arrived: self.now, bytes, flow, ecn, draw: Draw::default() };
        if let Some(impairments) = &mut self.impairments {
            packet.draw = impairments.draw();
            if packet.draw.lost && self.loss_position == LossPosition::Entry {
                return self.refuse(DropReason::RandomLoss, packet);
            }
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
                self.serve(queue);
            }
        }
        Verdict::Queued
    }

    /// The packet that the queue has dropped, if none has arrived before.
    fn pop_discarded(&mut self) -> Option<Departure<P>> {
        let arrival = self.flight.next_at().unwrap_or(Timestamp::MAX);
        let Discarded { item, at, bytes, reason } = self.ledger.discarded.pop_front_if(|d| d.at <= arrival)?;
        self.ledger.stats.count(Action::Dropped(reason), bytes);
        Some(Departure::Dropped(Dropped { item, at, size: DataSize::from_bytes(u64::from(bytes)), reason }))
    }

    #[inline]
    fn refuse(&mut self, reason: DropReason, packet: Queued<P>) -> Verdict<P> {
        self.ledger.stats.count(Action::Dropped(reason), packet.bytes);
        Verdict::Dropped(reason, packet.item)
    }

    /// When the next transmission begins, but not before `earliest`; `Timestamp::MAX` where nothing waits.
    #[inline]
    fn next_start(&mut self, earliest: Timestamp) -> Timestamp {
        match self.head {
            NOTHING => Timestamp::MAX,
            arrived => self.server.next_start(arrived).max(earliest),
        }
    }

    /// Begins every transmission that is due.
    #[inline]
    fn serve<Q: Queue<P>>(&mut self, queue: &mut Q) {
        while self.head != NOTHING {
            let start = self.server.next_start(self.head);
            if start > self.now {
                break;
            }
            let packet = queue.dequeue(start, &mut self.ledger);
            self.head = queue.head_arrival().unwrap_or(NOTHING);
            if let Some(packet) = packet {
                self.transmit(packet);
            }
        }
    }

    // Not a call, so that the packet is not moved to memory for it.
    #[inline(always)]
    fn transmit(&mut self, packet: Queued<P>) {
        let Queued { item, arrived, bytes, ecn, draw, .. } = packet;
        let (start, end) = self.server.serve(arrived, bytes);
        let mut at = end + self.delay;
        let mut lost = None;
        if self.impairments.is_some() {
            at += draw.extra;
            if let Some(last) = &mut self.hold_behind {
                at = at.max(*last + (end - start));
                *last = at;
            }
            lost = draw.lost.then_some(DropReason::RandomLoss);
        }
        let packet = InFlight { item, at, queued_for: start - arrived, bytes, ecn, lost };
        let copy = (draw.duplicated && !draw.lost && at < Timestamp::MAX).then(|| packet.clone());
        self.flight.push(packet);
        if let Some(copy) = copy {
            self.ledger.stats.duplicated.add(bytes);
            self.flight.push(copy);
        }
    }
}

#[cfg(test)]
mod tests;
