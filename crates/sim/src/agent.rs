//! Agents: the senders and receivers of a simulation.

use crate::packet::Packet;
use weir_units::Timestamp;

/// An end of a flow: a sans-IO state machine that the simulator drives.
///
/// After every event (start, packet, timeout) the simulator calls [`Self::poll_transmit`] until it returns `false`,
/// then [`Self::poll_timeout`]; not if the agent is silent or settled. Time never goes back.
pub trait Agent {
    /// Starts the agent; called once, before anything else.
    fn on_start(&mut self, now: Timestamp) {
        let _ = now;
    }
    /// A packet has been received.
    fn on_packet(&mut self, now: Timestamp, packet: &Packet);
    /// The time of [`Self::poll_timeout`] has come.
    fn on_timeout(&mut self, now: Timestamp);
    /// When to call [`Self::on_timeout`] next; after `on_timeout(now)` it is later than `now`.
    fn poll_timeout(&mut self) -> Option<Timestamp>;
    /// Whether it only receives, and never sends or sets a timeout: then neither is polled. Called once, when the agent
    /// is added.
    fn is_silent(&self) -> bool {
        false
    }
    /// Whether the last call left nothing to send before the timeout. After a packet received it left the timeout as it was, too: then
    /// neither is polled, unless the timeout is due.
    fn is_settled(&self) -> bool {
        false
    }
    /// Fills in `packet`, which is blank with `sent` at `now`; returns whether there is anything to send.
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool;
}
