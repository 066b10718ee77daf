//! What sends and receives.

use crate::packet::Packet;
use weir_units::Timestamp;

/// An end of a flow: a sans-IO state machine that the simulator drives.
///
/// After every stimulus (start, packet, timeout) the simulator calls [`Self::poll_transmit`] until it says
/// no, then [`Self::poll_timeout`]. Times never go back.
pub trait Agent {
    /// The agent's life begins; called once, before anything else.
    fn on_start(&mut self, now: Timestamp) {
        let _ = now;
    }
    /// A packet has arrived.
    fn on_packet(&mut self, now: Timestamp, packet: &Packet);
    /// The instant that [`Self::poll_timeout`] gave has come.
    fn on_timeout(&mut self, now: Timestamp);
    /// When to call [`Self::on_timeout`] next; after `on_timeout(now)` it is later than `now`.
    fn poll_timeout(&mut self) -> Option<Timestamp>;
    /// Whether it only ever listens, never sends nor waits for a time: then it is asked for neither. Asked once, when
    /// it is added.
    fn is_silent(&self) -> bool {
        false
    }
    /// Fills `packet`, which comes blank with `sent` at `now`, and says whether there was anything to send.
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool;
}
