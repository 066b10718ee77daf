//! Datagrams received by an end of a call: authenticated, handled by the session, and attributed to their path.

use crate::call::CallError;
use crate::call::end::LiveEnd;
use crate::call::observer::{CallObserver, LivePacket};
use crate::call::routes::named_path;
use crate::call::stats::Part;
use crate::clock::Clock;
use crate::ice::Arrival;
use std::net::SocketAddr;
use weir_session::{Datagram, Outcome, Refusal};
use weir_units::{DataSize, PathId, Timestamp};
use weir_wire::kind_of;

/// Maximum batches received from one socket before timers are run again.
const MAX_BATCHES: u32 = 8;
/// Consecutive socket failures after which the call ends.
const MAX_FAILURES: u32 = 1_000;

/// Where a datagram came from that did not come from its path's address.
#[derive(Clone, Copy)]
struct Moved {
    path: PathId,
    port: usize,
    from: SocketAddr,
}

impl LiveEnd {
    /// Receives what is pending at one socket.
    pub(super) fn receive<O: CallObserver>(
        &mut self,
        port: usize,
        clock: &Clock,
        observer: &mut O,
    ) -> Result<(), CallError> {
        for _ in 0..MAX_BATCHES {
            self.cpu.enter(Part::Socket);
            let count = match self.ports[port].receive() {
                Ok(count) => count,
                Err(source) => {
                    self.counters.receive_errors += 1;
                    self.failures += 1;
                    if self.failures < MAX_FAILURES {
                        return Ok(());
                    }
                    return Err(CallError::Socket { what: "receiving".into(), source });
                }
            };
            self.failures = 0;
            let reading = clock.reading();
            let mut has_offers = false;
            for index in 0..count {
                let Some(d) = self.ports[port].datagram(index) else { continue };
                let at = reading.arrival(d.kernel_time).max(self.last_now);
                self.last_now = at;
                let passed_on;
                let (from, bytes) = match self.ice.as_mut().map(|ice| ice.handle_datagram(at, port, d.from, d.bytes)) {
                    Some(Arrival::Taken) => {
                        self.follow_ice(at);
                        continue;
                    }
                    Some(Arrival::Relayed { from, bytes, .. }) => {
                        passed_on = bytes;
                        (from, &passed_on[..])
                    }
                    _ => (d.from, d.bytes),
                };
                let mut route = self.routes.of_datagram(port, from);
                if route.is_none() && self.ice.is_some() && self.srtp.is_some() {
                    // Authentic, from a pair that is no longer or not yet selected.
                    route = self.routes.of_port(port).map(|path| (path, true));
                }
                let Some((path, is_known)) = route else {
                    self.counters.strangers += 1;
                    continue;
                };
                let over_dccp = self.carrier.is_dccp();
                let size = DataSize::from_bytes(bytes.len() as u64);
                let ecn = d.ecn;
                let opened;
                let bytes = match &mut self.srtp {
                    Some(srtp) if !over_dccp => {
                        if kind_of(bytes).is_none() {
                            self.counters.not_rtp += 1;
                            continue;
                        }
                        self.cpu.enter(Part::Srtp);
                        opened = srtp.open(bytes);
                        let Some(bytes) = &opened else {
                            self.liveness.on_unauthentic(at);
                            continue;
                        };
                        &bytes[..]
                    }
                    _ => bytes,
                };
                self.cpu.enter(Part::Session);
                let (bytes, outcome) = if over_dccp {
                    let Some(taken) = self.carrier.handle_dccp(at, bytes, ecn) else { continue };
                    taken
                } else {
                    let datagram = Datagram { path, ..Datagram::new(bytes, ecn) };
                    (bytes, self.carrier.handle_udp(at, &datagram, from))
                };
                if outcome == Outcome::Refused(Refusal::NotRtp) {
                    self.counters.not_rtp += 1;
                    continue;
                }
                self.counters.byes += u64::from(outcome.goodbyes());
                if outcome.is_of_call() {
                    self.liveness.on_packet(at);
                }
                if matches!(outcome, Outcome::Rtcp(r) if r.offers > 0) {
                    has_offers = true;
                }
                let packet = LivePacket { at, sent: false, bytes, size, ecn, is_rtp: outcome.is_rtp() };
                self.received.add(&packet);
                self.cpu.enter(Part::Observer);
                observer.on_packet(&packet);
                if over_dccp || is_known {
                    continue;
                }
                if !outcome.is_of_call() {
                    self.counters.strangers += 1;
                    continue;
                }
                let path = if self.routes.len() > 1 { named_path(bytes, self.subflow_id) } else { Some(path) };
                if let Some(path) = path {
                    self.on_moved(Moved { path, port, from }, at);
                }
            }
            if has_offers && self.ice.is_some() {
                self.on_ice_offers(self.last_now);
            } else if has_offers {
                self.on_offers(self.last_now);
            }
            if count < quinn_udp::BATCH_SIZE {
                break;
            }
        }
        Ok(())
    }

    /// A packet of the call came from another address than its path's. A call of one path follows at once; of several
    /// paths each follows once the address has answered a challenge.
    fn on_moved(&mut self, moved: Moved, now: Timestamp) {
        let Moved { path, port, from } = moved;
        if self.routes.len() == 1 {
            self.routes.follow(path, from);
            return;
        }
        let is_checked = self.routes.is_candidate(path, from);
        if is_checked && self.carrier.endpoint_mut().path_mut(path).is_some_and(|mut p| p.take_address_answer()) {
            self.routes.follow(path, from);
            self.counters.moves += 1;
            return;
        }
        if self.routes.on_moved(path, port, from, now) {
            self.challenge(path, port, from, now);
        }
    }
}
