use crate::capacity::Server;
use crate::chance::{Chance, Draw};
use crate::flight::{Flight, InFlight};
use crate::{Capacity, ConfigError, Discipline, DropReason, Limit, LinkConfig, LinkStats, LossPosition};
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

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

#[derive(Clone, Debug)]
struct Waiting<P> {
    item: P,
    arrived: Timestamp,
    bytes: u32,
    ecn: Ecn,
    draw: Draw,
}

/// One direction of a link: a queue, a transmitter and a way to the far end.
///
/// Packets wait in a queue until the transmitter is free, take their size at the capacity to leave it, then
/// travel for the propagation delay. Time may not go backwards: an earlier `now` counts as the latest seen.
/// At one instant a transmission ends, and the next begins, before a packet that comes at that instant is judged.
#[derive(Clone, Debug)]
pub struct Link<P> {
    delay: TimeDelta,
    limit: Limit,
    discipline: Discipline,
    mark_above: Option<Limit>,
    capacity: Capacity,
    server: Server,
    chance: Option<Box<Chance>>,
    loss_position: LossPosition,
    /// Set where jitter holds packets in order: when the last one arrives.
    hold_behind: Option<Timestamp>,
    waiting: VecDeque<Waiting<P>>,
    waiting_bytes: u64,
    flight: Flight<P>,
    now: Timestamp,
    stats: LinkStats,
}

impl<P: Clone> Link<P> {
    /// A link that nothing has passed yet; `seed` fixes every random draw. Errors: see [`LinkConfig::check`].
    pub fn new(config: &LinkConfig, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let overtaking = config.jitter.is_some_and(|j| j.may_reorder) || config.reordering.is_some();
        let held = config.jitter.is_some() && !overtaking;
        Ok(Self {
            delay: config.delay,
            limit: config.limit,
            discipline: config.discipline,
            mark_above: config.mark_above,
            capacity: config.capacity.clone(),
            server: Server::new(&config.capacity),
            chance: Chance::new(config, seed).map(Box::new),
            loss_position: config.loss_position,
            hold_behind: held.then_some(Timestamp::ZERO),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            flight: Flight::new(overtaking),
            now: Timestamp::ZERO,
            stats: LinkStats::default(),
        })
    }

    /// Takes a packet in, or drops it. A size above 4 GiB counts as 4 GiB.
    #[inline]
    pub fn push(&mut self, now: Timestamp, size: DataSize, ecn: Ecn, item: P) -> Verdict<P> {
        self.advance(now);
        let bytes = u32::try_from(size.as_bytes()).unwrap_or(u32::MAX);
        self.stats.offered.add(bytes);
        let mut packet = Waiting { item, arrived: self.now, bytes, ecn, draw: Draw::default() };
        if let Some(chance) = &mut self.chance {
            packet.draw = chance.draw();
            if packet.draw.lost && self.loss_position == LossPosition::Entry {
                self.stats.count_drop(DropReason::RandomLoss, bytes);
                return Verdict::Dropped(DropReason::RandomLoss, packet.item);
            }
        }
        if self.refuses(bytes) {
            self.stats.count_drop(DropReason::Queue, bytes);
            return Verdict::Dropped(DropReason::Queue, packet.item);
        }
        if let Some(threshold) = self.mark_above
            && ecn.is_capable()
            && ecn != Ecn::Ce
            && self.exceeds(threshold, bytes)
        {
            packet.ecn = Ecn::Ce;
            self.stats.marked.add(bytes);
        }
        if self.waiting.is_empty() && self.server.next_start(self.now) <= self.now {
            self.transmit(packet);
        } else {
            self.waiting_bytes += u64::from(bytes);
            self.waiting.push_back(packet);
        }
        Verdict::Queued
    }

    /// The earliest instant at which [`Self::pop`] may give something, or `None` where it never will as things are.
    ///
    /// Where packets may overtake each other the instant can be too early, and `pop` then gives nothing; it is
    /// never too late.
    #[inline]
    pub fn next_event(&mut self) -> Option<Timestamp> {
        let at = match (&self.flight, self.flight.next_at()) {
            (Flight::InOrder(_), Some(at)) => at,
            // The head of the queue may come before, or be all there is.
            (_, at) => match (at, self.waiting.front()) {
                (None, None) => return None,
                (Some(at), None) => at,
                (at, Some(w)) => (self.server.next_start(w.arrived) + self.delay).min(at.unwrap_or(Timestamp::MAX)),
            },
        };
        (at < Timestamp::MAX).then_some(at)
    }

    /// The next packet that has left the link by `now`, in order of time.
    #[inline]
    pub fn pop(&mut self, now: Timestamp) -> Option<Departure<P>> {
        self.advance(now);
        if self.now == Timestamp::MAX {
            return None;
        }
        let InFlight { item, at, queued_for, bytes, ecn, lost } = self.flight.pop_due(self.now)?;
        let size = DataSize::from_bytes(u64::from(bytes));
        Some(match lost {
            None => {
                self.stats.delivered.add(bytes);
                Departure::Delivered(Delivery { item, at, size, ecn, queued_for })
            }
            Some(reason) => {
                self.stats.count_drop(reason, bytes);
                Departure::Dropped(Dropped { item, at, size, reason })
            }
        })
    }

    /// Bytes that wait at `now`, without the packet in transmission.
    pub fn queue_size(&mut self, now: Timestamp) -> DataSize {
        self.advance(now);
        DataSize::from_bytes(self.waiting_bytes)
    }

    /// Packets that wait at `now`, without the packet in transmission.
    pub fn queue_packets(&mut self, now: Timestamp) -> usize {
        self.advance(now);
        self.waiting.len()
    }

    /// How long a packet that came at `now` would wait for its transmission to begin, the rest of the present one
    /// included; [`TimeDelta::MAX`] where the capacity stays at zero.
    pub fn queue_delay(&mut self, now: Timestamp) -> TimeDelta {
        self.advance(now);
        match self.server.start_behind(self.now, DataSize::from_bytes(self.waiting_bytes)) {
            Timestamp::MAX => TimeDelta::MAX,
            at => at - self.now,
        }
    }

    /// Packets inside the link: waiting, in transmission or on their way.
    pub fn packets_inside(&self) -> usize {
        self.waiting.len() + self.flight.len()
    }

    /// What has happened so far.
    pub fn stats(&self) -> LinkStats {
        self.stats
    }

    /// The capacity at an instant: see [`Capacity::rate_at`].
    pub fn capacity_at(&self, at: Timestamp) -> DataRate {
        self.capacity.rate_at(at)
    }

    /// Begins every transmission that is due by `now`.
    #[inline]
    fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        while let Some(head) = self.waiting.front() {
            if self.server.next_start(head.arrived) > self.now {
                break;
            }
            let Some(packet) = self.waiting.pop_front() else { break };
            self.waiting_bytes -= u64::from(packet.bytes);
            self.transmit(packet);
        }
    }

    #[inline]
    fn transmit(&mut self, packet: Waiting<P>) {
        let Waiting { item, arrived, bytes, ecn, draw } = packet;
        let (start, end) = self.server.serve(arrived, bytes);
        let mut at = end + self.delay;
        let mut lost = None;
        if self.chance.is_some() {
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
            self.stats.duplicated.add(bytes);
            self.flight.push(copy);
        }
    }

    /// Whether the discipline drops a packet that comes now. One that drops at the head does so in [`Self::advance`]
    /// and puts the packet in flight as lost.
    #[inline]
    fn refuses(&self, bytes: u32) -> bool {
        match self.discipline {
            Discipline::DropTail => self.exceeds(self.limit, bytes),
        }
    }

    /// Whether the queue with `bytes` more would hold more than `limit`.
    #[inline]
    fn exceeds(&self, limit: Limit, bytes: u32) -> bool {
        let after = self.waiting_bytes + u64::from(bytes);
        match limit {
            Limit::Unlimited => false,
            Limit::Size(s) => after > s.as_bytes(),
            Limit::Packets(n) => self.waiting.len() >= n as usize,
            Limit::Time(t) => {
                !self.waiting.is_empty() && after > self.capacity.above_zero_at(self.now).size_in(t).as_bytes()
            }
        }
    }
}

#[cfg(test)]
mod tests;
