//! How TFRC accounts for packet sizes: the difference between CCID 3 and CCID 4.

use core::fmt::Debug;
use weir_units::Timestamp;

/// The effect of packet sizes on the throughput equation and on packet spacing.
pub trait PacketSize: Clone + Debug {
    /// Whether a loss interval of up to two round trips counts packets over losses (RFC 4828, section 4.4).
    const COUNTS_LOSSES_OF_SHORT_INTERVALS: bool;
    /// The segment of the throughput equation in bytes, for packets of this mean size.
    fn segment(&self, mean: f64) -> f64;
    /// The earliest send time of a packet that the rate permits at `at`.
    fn earliest(&self, at: Timestamp) -> Timestamp;
    /// A data packet was sent.
    fn on_sent(&mut self, now: Timestamp);
    /// The maximum rate of packets of this mean size, in bits per second, if there is a bound.
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
