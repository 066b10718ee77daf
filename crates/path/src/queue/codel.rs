//! CoDel, controlled delay (RFC 8289): drops or marks at the head when packets have waited too long for too long.

use super::discipline::{self, Definition, Setup};
use super::fifo::{Fifo, Room, held_in_fifo};
use super::parameter::parameters;
use super::queued::{Ledger, Queued};
use crate::stats::DropReason;
use weir_units::{TimeDelta, Timestamp};

/// Number of intervals after the last drop within which a queue that exceeds its target again resumes at its last drop
/// rate (RFC 8289, section 5.5).
const RESUME_WITHIN: i64 = 16;

parameters! {
    /// Parameters of CoDel.
    pub struct Config {
        /// Acceptable persistent sojourn time; 5 to 10 % of the interval (RFC 8289, section 4.3).
        target: TimeDelta = TimeDelta::from_millis(5), TimeDelta::from_micros(1) => TimeDelta::from_secs(10);
        /// Time for which sojourn times must exceed the target before a packet is dropped, and from the first drop to
        /// the second: about the longest round-trip time (RFC 8289, section 4.2).
        interval: TimeDelta = TimeDelta::from_millis(100), TimeDelta::from_micros(10) => TimeDelta::from_secs(100);
        /// Whether packets of ECN-capable flows are marked rather than dropped (RFC 8289, section 1; on as in
        /// RFC 8290, section 5.2.6).
        ecn: bool = true;
    }
}

impl Definition for Config {
    const NAME: &'static str = "codel";
    const SUMMARY: &'static str = "drops at the head, at an increasing rate, while packets wait longer than a target";
    const SOURCE: &'static str = "RFC 8289";
    type Queue<P> = Queue<P>;
    fn queue<P>(&self, setup: Setup) -> Queue<P> {
        Queue { config: *self, room: setup.room, controlled: Controlled::default(), dequeued: Timestamp::ZERO }
    }
}

/// A queue under CoDel.
#[derive(Clone, Debug)]
pub struct Queue<P> {
    config: Config,
    room: Room,
    controlled: Controlled<P>,
    /// Time of the last dequeue.
    dequeued: Timestamp,
}

/// A FIFO under CoDel's control law, also one of many. Its state has the names of RFC 8289, section 5.2.
#[derive(Clone, Debug)]
pub(super) struct Controlled<P> {
    pub(super) fifo: Fifo<P>,
    /// Size of the largest packet so far, used as the MTU (section 4.1).
    largest: u32,
    /// When sojourn times will have exceeded the target for an interval, while they do.
    first_above: Option<Timestamp>,
    /// In drop state, when to drop next; afterwards, when the next drop would have been.
    drop_next: Timestamp,
    /// Drops since drop state was entered, or the count with which it was resumed.
    count: u32,
    /// The count when drop state was last entered.
    last_count: u32,
    /// Whether it is in drop state.
    dropping: bool,
}

impl<P> Default for Controlled<P> {
    fn default() -> Self {
        Self {
            fifo: Fifo::default(),
            largest: 0,
            first_above: None,
            drop_next: Timestamp::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }
}

/// A packet from the head, and whether it may be dropped.
struct Head<P> {
    packet: Queued<P>,
    may_drop: bool,
}

/// The parameters, and what a dequeue acts on.
struct Turn<'a, P> {
    config: &'a Config,
    now: Timestamp,
    ledger: &'a mut Ledger<P>,
}

impl<P> Turn<'_, P> {
    /// The time of the drop after one at `t` (`control_law` in section 5.6).
    fn control_law(&self, t: Timestamp, count: u32) -> Timestamp {
        t + self.config.interval.mul_f64(1.0 / libm::sqrt(f64::from(count)))
    }

    /// Marks the packet, which is then sent, or drops it.
    fn mark_or_drop(&mut self, mut packet: Queued<P>) -> Option<Queued<P>> {
        if self.config.ecn && self.ledger.mark(&mut packet) {
            return Some(packet);
        }
        self.ledger.discard(self.now, DropReason::Aqm, packet);
        None
    }
}

impl<P> Controlled<P> {
    /// Appends a packet.
    #[inline]
    pub(super) fn push(&mut self, packet: Queued<P>) {
        self.largest = self.largest.max(packet.bytes());
        self.fifo.push(packet);
    }

    /// The packet to send, after the drops and marks that are due (`deque` in section 5.5); `None` if none is left.
    // Out of line, so that it does not burden links under drop tail.
    #[inline(never)]
    pub(super) fn dequeue(&mut self, config: &Config, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        let mut turn = Turn { config, now, ledger };
        match self.take(&turn)? {
            head if self.dropping => self.go_on(&mut turn, head),
            head if head.may_drop => self.enter(&mut turn, head.packet),
            head => Some(head.packet),
        }
    }

    /// The earliest time of a drop, if sojourn times exceed the target; otherwise an interval has to pass first.
    #[inline]
    pub(super) fn next_drop(&self) -> Option<Timestamp> {
        if self.dropping { Some(self.drop_next) } else { self.first_above }
    }

    /// The next packet; it may be dropped if sojourn times have exceeded the target for an interval (`dodequeue` in
    /// section 5.6).
    fn take(&mut self, turn: &Turn<'_, P>) -> Option<Head<P>> {
        let Some(packet) = self.fifo.pop() else {
            (self.first_above, self.dropping) = (None, false);
            return None;
        };
        let sojourn = turn.now - packet.arrived();
        let mut may_drop = false;
        if sojourn < turn.config.target || self.fifo.bytes() <= u64::from(self.largest) {
            self.first_above = None;
        } else {
            let first_above = *self.first_above.get_or_insert(turn.now + turn.config.interval);
            may_drop = turn.now >= first_above;
        }
        Some(Head { packet, may_drop })
    }

    /// Enters drop state with a first drop.
    fn enter(&mut self, turn: &mut Turn<'_, P>, packet: Queued<P>) -> Option<Queued<P>> {
        let sent = turn.mark_or_drop(packet).or_else(|| self.take(turn).map(|head| head.packet));
        self.dropping = true;
        let drops = self.count.saturating_sub(self.last_count);
        let is_recent = turn.now - self.drop_next < turn.config.interval * RESUME_WITHIN;
        self.count = if drops > 1 && is_recent { drops } else { 1 };
        self.last_count = self.count;
        self.drop_next = turn.control_law(turn.now, self.count);
        sent
    }

    /// Performs the drops due in drop state, and leaves it once the queue no longer exceeds its target.
    fn go_on(&mut self, turn: &mut Turn<'_, P>, mut head: Head<P>) -> Option<Queued<P>> {
        while head.may_drop {
            if turn.now < self.drop_next {
                return Some(head.packet);
            }
            self.count = self.count.saturating_add(1);
            let marked = turn.mark_or_drop(head.packet);
            if marked.is_some() {
                self.drop_next = turn.control_law(self.drop_next, self.count);
                return marked;
            }
            head = self.take(turn)?;
            if head.may_drop {
                self.drop_next = turn.control_law(self.drop_next, self.count);
            }
        }
        self.dropping = false;
        Some(head.packet)
    }
}

impl<P> discipline::Queue<P> for Queue<P> {
    #[inline]
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, _: &mut Ledger<P>) -> Result<(), DropReason> {
        if self.room.is_exceeded(now, &self.controlled.fifo, packet) { Err(DropReason::Queue) } else { Ok(()) }
    }

    #[inline]
    fn put(&mut self, packet: Queued<P>) {
        self.controlled.push(packet);
    }

    #[inline]
    fn dequeue(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        self.dequeued = now;
        self.controlled.dequeue(&self.config, now, ledger)
    }

    held_in_fifo!(controlled.fifo);

    #[inline]
    fn next_drop(&self) -> Option<Timestamp> {
        // The first sojourn time above the target starts an interval.
        Some(self.controlled.next_drop().unwrap_or(self.dequeued + self.config.interval))
    }
}

#[cfg(test)]
mod tests;
