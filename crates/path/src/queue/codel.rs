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
        Queue {
            config: *self,
            room: setup.room,
            fifo: Fifo::default(),
            largest: 0,
            first_above: None,
            drop_next: Timestamp::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
            dequeued: Timestamp::ZERO,
        }
    }
}

/// A queue under CoDel. Its state has the names of RFC 8289, section 5.2.
#[derive(Clone, Debug)]
pub struct Queue<P> {
    config: Config,
    room: Room,
    fifo: Fifo<P>,
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
    /// Time of the last dequeue.
    dequeued: Timestamp,
}

/// A packet from the head, and whether it may be dropped.
struct Head<P> {
    packet: Queued<P>,
    may_drop: bool,
}

impl<P> Queue<P> {
    /// The next packet; it may be dropped if sojourn times have exceeded the target for an interval (`dodequeue` in
    /// section 5.6).
    fn take(&mut self, now: Timestamp) -> Option<Head<P>> {
        let Some(packet) = self.fifo.pop() else {
            (self.first_above, self.dropping) = (None, false);
            return None;
        };
        let sojourn = now - packet.arrived();
        let mut may_drop = false;
        if sojourn < self.config.target || self.fifo.bytes() <= u64::from(self.largest) {
            self.first_above = None;
        } else {
            let first_above = *self.first_above.get_or_insert(now + self.config.interval);
            may_drop = now >= first_above;
        }
        Some(Head { packet, may_drop })
    }

    /// The time of the drop after one at `t` (`control_law` in section 5.6).
    fn control_law(&self, t: Timestamp) -> Timestamp {
        t + self.config.interval.mul_f64(1.0 / libm::sqrt(f64::from(self.count)))
    }

    /// Marks the packet, which is then sent, or drops it.
    fn mark_or_drop(&self, now: Timestamp, mut packet: Queued<P>, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        if self.config.ecn && ledger.mark(&mut packet) {
            return Some(packet);
        }
        ledger.discard(now, DropReason::Aqm, packet);
        None
    }

    /// Enters drop state with a first drop.
    fn enter(&mut self, now: Timestamp, packet: Queued<P>, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        let sent = self.mark_or_drop(now, packet, ledger).or_else(|| self.take(now).map(|head| head.packet));
        self.dropping = true;
        let drops = self.count.saturating_sub(self.last_count);
        let is_recent = now - self.drop_next < self.config.interval * RESUME_WITHIN;
        self.count = if drops > 1 && is_recent { drops } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
        sent
    }

    /// Performs the drops due in drop state, and leaves it once the queue no longer exceeds its target.
    fn go_on(&mut self, now: Timestamp, mut head: Head<P>, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        while head.may_drop {
            if now < self.drop_next {
                return Some(head.packet);
            }
            self.count = self.count.saturating_add(1);
            let marked = self.mark_or_drop(now, head.packet, ledger);
            if marked.is_some() {
                self.drop_next = self.control_law(self.drop_next);
                return marked;
            }
            head = self.take(now)?;
            if head.may_drop {
                self.drop_next = self.control_law(self.drop_next);
            }
        }
        self.dropping = false;
        Some(head.packet)
    }
}

impl<P> discipline::Queue<P> for Queue<P> {
    #[inline]
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, _: &mut Ledger<P>) -> Result<(), DropReason> {
        if self.room.is_exceeded(now, &self.fifo, packet) { Err(DropReason::Queue) } else { Ok(()) }
    }

    #[inline]
    fn put(&mut self, packet: Queued<P>) {
        self.largest = self.largest.max(packet.bytes());
        self.fifo.push(packet);
    }

    // Out of line, so that it does not burden links under drop tail.
    #[inline(never)]
    fn dequeue(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        self.dequeued = now;
        match self.take(now)? {
            head if self.dropping => self.go_on(now, head, ledger),
            head if head.may_drop => self.enter(now, head.packet, ledger),
            head => Some(head.packet),
        }
    }

    held_in_fifo!();

    #[inline]
    fn next_drop(&self) -> Option<Timestamp> {
        Some(match self.first_above {
            _ if self.dropping => self.drop_next,
            Some(first_above) => first_above,
            // The first sojourn time above the target starts an interval.
            None => self.dequeued + self.config.interval,
        })
    }
}

#[cfg(test)]
mod tests;
