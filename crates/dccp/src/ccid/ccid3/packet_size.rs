//! How TFRC counts with the size of packets: where CCID 3 and CCID 4 differ.

use core::fmt::Debug;
use weir_units::Timestamp;

/// What the size of packets means to the throughput equation and to their spacing.
pub trait PacketSize: Clone + Debug {
    /// Whether a loss interval of up to two round trips counts packets over losses (RFC 4828, section 4.4).
    const COUNTS_LOSSES_OF_SHORT_INTERVALS: bool;
    /// The segment of the throughput equation in bytes, for packets of this mean size.
    fn segment(&self, mean: f64) -> f64;
    /// When a packet that the rate lets leave at `at` may leave.
    fn earliest(&self, at: Timestamp) -> Timestamp;
    /// A data packet has left.
    fn on_sent(&mut self, now: Timestamp);
    /// The most that packets of this mean size may make, in bits a second, where there is such a bound.
    fn max_rate(&self, mean: f64) -> Option<f64>;
}

/// Packets count by their own size (RFC 5348).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AnySize;

impl PacketSize for AnySize {
    const COUNTS_LOSSES_OF_SHORT_INTERVALS: bool = false;

    fn segment(&self, mean: f64) -> f64 {
        mean
    }
    fn earliest(&self, at: Timestamp) -> Timestamp {
        at
    }
    fn on_sent(&mut self, _now: Timestamp) {}
    fn max_rate(&self, _mean: f64) -> Option<f64> {
        None
    }
}
