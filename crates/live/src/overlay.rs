//! Overlays of distribution trees in real time: a focus, a root or a node on a UDP socket.
//!
//! Each end runs on one thread, its caller's. Control messages and media go by the same socket and are not encrypted:
//! tickets and tokens protect against those who cannot read them only, so that an overlay belongs on a network that is
//! trusted, or inside a tunnel.

use crate::clock::Clock;
use crate::udp::{Received as Arrived, UdpPort};
use std::io;
use std::time::Duration;
use weir_session::overlay::{Delivered, Focus, Node, Outgoing, Received};
use weir_units::{TimeDelta, Timestamp};

/// Longest sleep, after which the application is asked whether to stop.
const MAX_WAIT: TimeDelta = TimeDelta::from_millis(50);
/// Most batches received before timers are run.
const MAX_BATCHES: u32 = 8;

/// An application at an end of an overlay.
pub trait OverlayApplication {
    /// Whether the end is to stop at once; it then sends nothing more.
    fn stops(&mut self, now: Timestamp) -> bool;
    /// A node has received a packet: its bytes are an RTP packet whose subflow number is that of the last hop.
    fn on_packet(&mut self, packet: &Delivered, bytes: &[u8], now: Timestamp) {
        let _ = (packet, bytes, now);
    }
    /// After each turn: an application may send packets at the root ([`Node::send`]), or leave. Returns when it wants the
    /// next turn at the latest.
    fn on_turn(&mut self, node: &mut Node, now: Timestamp) -> Option<Timestamp> {
        let _ = (node, now);
        None
    }
}

/// A focus, or a node.
trait End {
    fn handle_datagram(&mut self, datagram: &Arrived<'_>, now: Timestamp);
    fn handle_timeout(&mut self, now: Timestamp);
    fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp>;
    fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Outgoing>;
    /// The application's turn.
    fn turn(&mut self, application: &mut dyn OverlayApplication, now: Timestamp) -> Option<Timestamp>;
}

impl End for Focus {
    fn handle_datagram(&mut self, datagram: &Arrived<'_>, now: Timestamp) {
        Self::handle_datagram(self, datagram.from, datagram.bytes, now);
    }
    fn handle_timeout(&mut self, now: Timestamp) {
        Self::handle_timeout(self, now);
    }
    fn poll_timeout(&mut self, _: Timestamp) -> Option<Timestamp> {
        Self::poll_timeout(self)
    }
    fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Outgoing> {
        Self::poll_transmit(self, now, out)
    }
    fn turn(&mut self, _: &mut dyn OverlayApplication, _: Timestamp) -> Option<Timestamp> {
        None
    }
}

impl End for Node {
    fn handle_datagram(&mut self, datagram: &Arrived<'_>, now: Timestamp) {
        let Arrived { from, bytes, ecn, .. } = *datagram;
        Self::handle_datagram(self, &Received { from, bytes, payload: 0, ecn }, now);
    }
    fn handle_timeout(&mut self, now: Timestamp) {
        Self::handle_timeout(self, now);
    }
    fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        Self::poll_timeout(self, now)
    }
    fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Outgoing> {
        Self::poll_transmit(self, now, out)
    }
    fn turn(&mut self, application: &mut dyn OverlayApplication, now: Timestamp) -> Option<Timestamp> {
        while let Some(packet) = self.poll_delivered() {
            if let Some((bytes, _)) = self.packet(packet.sequence) {
                application.on_packet(&packet, bytes, now);
            }
        }
        application.on_turn(self, now)
    }
}

/// Runs a focus until the application stops it.
///
/// # Errors
/// The socket fails.
pub fn run_focus(
    port: &mut UdpPort,
    focus: &mut Focus,
    clock: &Clock,
    application: &mut dyn OverlayApplication,
) -> io::Result<()> {
    run(port, focus, clock, application)
}

/// Runs a node, or the root, until the application stops it.
///
/// # Errors
/// The socket fails.
pub fn run_node(
    port: &mut UdpPort,
    node: &mut Node,
    clock: &Clock,
    application: &mut dyn OverlayApplication,
) -> io::Result<()> {
    run(port, node, clock, application)
}

fn run(
    port: &mut UdpPort,
    end: &mut dyn End,
    clock: &Clock,
    application: &mut dyn OverlayApplication,
) -> io::Result<()> {
    let mut out = Vec::new();
    loop {
        for _ in 0..MAX_BATCHES {
            let count = match port.receive() {
                Ok(count) => count,
                // ICMP's report of a neighbour that has gone; its silence is noticed anyway.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(e) => return Err(e),
            };
            let reading = clock.reading();
            for k in 0..count {
                if let Some(datagram) = port.datagram(k) {
                    end.handle_datagram(&datagram, reading.arrival(datagram.kernel_time).min(reading.now));
                }
            }
            if count == 0 {
                break;
            }
        }
        let now = clock.now();
        if application.stops(now) {
            return Ok(());
        }
        end.handle_timeout(now);
        let wanted = end.turn(application, now);
        loop {
            out.clear();
            let Some(datagram) = end.poll_transmit(now, &mut out) else { break };
            port.send(datagram.to, datagram.ecn, &out);
        }
        port.flush();
        let next = [end.poll_timeout(now), wanted].into_iter().flatten().fold(now + MAX_WAIT, Timestamp::min);
        let wait = next.saturating_since(clock.now()).max(TimeDelta::ZERO);
        port.wait(Duration::from_nanos(wait.as_nanos().unsigned_abs()), None)?;
    }
}
