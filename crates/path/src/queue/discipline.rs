//! The interface of queue disciplines.

use super::fifo::Room;
use super::parameter::Parameters;
use super::queued::{Ledger, Queued};
use crate::members::Members;
use crate::random::Random;
use crate::stats::DropReason;
use weir_units::Timestamp;

/// A link's queue under one discipline: it holds the packets and selects which to mark and to drop.
///
/// A link calls [`Self::admit`] for each arriving packet, [`Self::put`] for admitted ones, and [`Self::dequeue`] each
/// time that its transmitter is free, in order of time: `now` never goes back. A link serves its queue lazily, so calls
/// may be for past times, and `now` is the only clock. A discipline with a timer, such as PIE's update every 15 ms
/// (RFC 8033, section 4.2), catches up at each call.
pub trait Queue<P> {
    /// Decides on a packet that arrives at `now`: it is refused, or admitted and possibly marked. Queued packets are
    /// dropped by the ledger.
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, ledger: &mut Ledger<P>) -> Result<(), DropReason>;

    /// Queues the packet that was last admitted.
    fn put(&mut self, packet: Queued<P>);

    /// Returns the packet whose transmission begins at `now`. Earlier packets may be dropped by the ledger; if all are,
    /// nothing is left to send. Every call on a non-empty queue removes at least one packet.
    fn dequeue(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>>;

    /// Whether an admitted packet that finds an empty queue and a free transmitter may bypass the queue. The answer is
    /// constant.
    fn may_be_passed_by(&self) -> bool {
        false
    }

    /// Arrival of the packet that [`Self::dequeue`] will handle first, or of another queued one: the link only needs to
    /// know that something waits, since all packets queued together may begin their transmission at the same time.
    /// `None` if the queue is empty.
    fn head_arrival(&self) -> Option<Timestamp>;

    /// Packets queued.
    fn packets(&self) -> usize;

    /// Their bytes.
    fn bytes(&self) -> u64;

    /// The earliest time at which a queued packet may be dropped, so that the drop is processed at that time rather
    /// than at the next call. It may be too early, never too late. A discipline that only refuses packets on arrival
    /// always returns `None`; any other never does.
    #[inline]
    fn next_drop(&self) -> Option<Timestamp> {
        None
    }
}

/// Inputs of a discipline besides its parameters.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The queue limit.
    pub room: Room,
    /// Its random source, separate from the link's own.
    pub random: Random,
    /// Properties of the flows.
    pub members: Members,
}

/// A discipline's parameters, with its name and constructor.
pub trait Definition: Parameters {
    /// The name in scenario files and on the command line.
    const NAME: &'static str;
    /// Its description, in one line.
    const SUMMARY: &'static str;
    /// Its specification.
    const SOURCE: &'static str;
    /// The queue that runs.
    type Queue<P>: Queue<P>;
    /// Makes an empty queue.
    fn queue<P>(&self, setup: Setup) -> Self::Queue<P>;
}
