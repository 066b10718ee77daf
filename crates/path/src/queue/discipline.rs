//! What a queue discipline is.

use super::fifo::Room;
use super::parameter::Parameters;
use super::queued::{Ledger, Queued};
use crate::random::Random;
use crate::stats::DropReason;
use weir_units::Timestamp;

/// The queue of a link, under one discipline: it holds the packets and decides which of them to mark and to drop.
///
/// A link calls [`Self::admit`] for each packet that arrives, [`Self::put`] for those that are admitted, and
/// [`Self::dequeue`] each time that its transmitter is free, in order of time: `now` never goes back. Calls are made for instants that have passed, too, as a link serves
/// its queue when it is looked at, so `now` is the only clock. A discipline with a timer, such as PIE's update every
/// 15 ms (RFC 8033, section 4.2), catches up with it at each call.
pub trait Queue<P> {
    /// Decides on a packet that arrives at `now`: it is refused, or admitted and perhaps marked. Packets that are
    /// already inside are dropped by way of the ledger.
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, ledger: &mut Ledger<P>) -> Result<(), DropReason>;

    /// Takes in the packet that was admitted last.
    fn put(&mut self, packet: Queued<P>);

    /// Gives the packet whose transmission begins at `now`. Packets in front of it may go to the ledger; where
    /// all do, nothing is left to send. At least one packet leaves a queue that holds any.
    fn dequeue(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>>;

    /// Whether an admitted packet that finds none waiting and the transmitter free may be sent without being put and
    /// dequeued. The answer is always the same.
    fn may_be_passed_by(&self) -> bool {
        false
    }

    /// When the packet arrived that [`Self::dequeue`] will look at first; `None` if nothing waits.
    fn head_arrival(&self) -> Option<Timestamp>;

    /// Packets that wait.
    fn packets(&self) -> usize;

    /// Their bytes.
    fn bytes(&self) -> u64;

    /// The earliest instant at which a packet inside may be dropped, so that the drop is seen at that time rather
    /// than when the link is next looked at. It may be too early, never too late. A discipline that drops
    /// nothing but what it refuses on arrival says `None` at all times; any other never does.
    #[inline]
    fn next_drop(&self) -> Option<Timestamp> {
        None
    }
}

/// What a discipline is made of, beside its parameters.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How much may wait.
    pub room: Room,
    /// What its random draws come from, apart from the link's own.
    pub random: Random,
}

/// A discipline's parameters, by which it is known and made.
pub trait Definition: Parameters {
    /// The name in scenario files and on the command line.
    const NAME: &'static str;
    /// What it does, in a line.
    const SUMMARY: &'static str;
    /// Where it is specified.
    const SOURCE: &'static str;
    /// What runs.
    type Queue<P>: Queue<P>;
    /// Makes a queue that holds nothing yet.
    fn queue<P>(&self, setup: Setup) -> Self::Queue<P>;
}
