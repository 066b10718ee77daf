//! The observer of a live run: passes packets to the recorder and to captures.

use super::capture::Capture;
use super::network::hosts;
use weir_lab::metrics::{DropCause, Recorder};
use weir_lab::run::parts::{PathMeter, REPAIR_PAYLOAD_TYPES};
use weir_lab::scenario::{Flow, FlowKind, Scenario};
use weir_live::emulate::flow_of;
use weir_live::tun::Side;
use weir_path::DropReason;
use weir_sim::{AgentId, LinkId, Observer, Packet, Place};
use weir_units::{DataSize, Ecn, PathId, Timestamp};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Rtp,
    RtpOverDccp,
    Tcp,
    Udp,
    Dccp,
}

/// A packet's content relevant to its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Carried {
    Media(DataSize),
    Repair(DataSize),
}

/// Passes the emulator's packets to the recorder, as the simulator's observer does.
pub(super) struct LiveObserver {
    pub(super) recorder: Recorder,
    /// By flow, of those over several paths.
    pub(super) paths: Vec<Option<Box<PathMeter>>>,
    /// By flow.
    kinds: Vec<Kind>,
    /// The flow and path of each pair of hosts.
    hosts: Vec<(usize, PathId)>,
    captures: Vec<Capture>,
}

impl LiveObserver {
    pub(super) fn new(scenario: &Scenario, recorder: Recorder, captures: Vec<Capture>) -> Self {
        let kind = |k: &FlowKind| match k {
            FlowKind::Rtp(r) if r.dccp.is_some() => Kind::RtpOverDccp,
            FlowKind::Rtp(_) => Kind::Rtp,
            FlowKind::Tcp(_) => Kind::Tcp,
            FlowKind::Udp(_) => Kind::Udp,
            FlowKind::Dccp(_) => Kind::Dccp,
        };
        let meter = |f: &Flow| Some(Box::new(PathMeter::new(f.rtp()?.multipath.as_ref()?)));
        Self {
            recorder,
            paths: scenario.flows.iter().map(meter).collect(),
            kinds: scenario.flows.iter().map(|f| kind(&f.kind)).collect(),
            hosts: hosts(&scenario.flows),
            captures,
        }
    }

    /// The flow and the relevant content of the packet, if it carries media or data rather than feedback. A packet of a
    /// flow over several paths is passed to its meter; copies count as repair.
    fn carried(
        &mut self,
        from: AgentId,
        packet: &Packet,
        mut pass: impl FnMut(&mut PathMeter, PathId, &[u8], DataSize, bool) -> bool,
    ) -> Option<(usize, Carried)> {
        // A packet counts once: what a link has duplicated is no goodput.
        if packet.is_copy {
            return None;
        }
        let (host, side) = flow_of(from);
        let &(flow, path) = self.hosts.get(host).filter(|_| side == Side::Left)?;
        let carried = carried(*self.kinds.get(flow)?, &packet.bytes)?;
        let Some(Some(meter)) = self.paths.get_mut(flow) else { return Some((flow, carried)) };
        let (size, is_media) = match carried {
            Carried::Media(size) => (size, true),
            Carried::Repair(size) => (size, false),
        };
        let rtp = transport(&packet.bytes).and_then(|(_, datagram)| datagram.get(8..)).unwrap_or_default();
        let is_copy = pass(meter, path, rtp, size, is_media);
        Some((flow, if is_copy { Carried::Repair(size) } else { carried }))
    }
}

/// The transport header and everything after it, and the protocol number, of an IP packet without extension headers.
fn transport(ip: &[u8]) -> Option<(u8, &[u8])> {
    match ip.first()? >> 4 {
        4 => Some((*ip.get(9)?, ip.get(usize::from(ip[0] & 15) * 4..)?)),
        6 => Some((*ip.get(6)?, ip.get(40..)?)),
        _ => None,
    }
}

fn carried(kind: Kind, ip: &[u8]) -> Option<Carried> {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let size = |bytes: &[u8]| DataSize::from_bytes(bytes.len() as u64);
    match (kind, transport(ip)?) {
        (Kind::Tcp, (TCP, segment)) => {
            let payload = segment.get(usize::from(segment.get(12)? >> 4) * 4..)?;
            (!payload.is_empty()).then(|| Carried::Media(size(payload)))
        }
        // As for simulated sources: everything seen by a link.
        (Kind::Udp, (UDP, _)) => Some(Carried::Media(size(ip))),
        (Kind::Dccp, (UDP, datagram)) => {
            let packet = weir_dccp::packet::parse(datagram.get(8..)?, 0).ok()?;
            let counts = packet.header.packet_type.is_data() && !packet.data.is_empty();
            counts.then(|| Carried::Media(size(packet.data)))
        }
        (Kind::RtpOverDccp, (UDP, datagram)) => {
            let packet = weir_dccp::packet::parse(datagram.get(8..)?, 0).ok()?;
            if packet.header.packet_type.is_data() { media(packet.data) } else { None }
        }
        (Kind::Rtp, (UDP, datagram)) => media(datagram.get(8..)?),
        _ => None,
    }
}

fn media(rtp: &[u8]) -> Option<Carried> {
    if weir_wire::kind_of(rtp) != Some(weir_wire::DatagramKind::Rtp) {
        return None;
    }
    // The payload type distinguishes media from repair (RFC 3550, section 5.1).
    let repair = rtp.get(1).is_some_and(|b| REPAIR_PAYLOAD_TYPES.contains(&(b & 0x7f)));
    let size = DataSize::from_bytes(rtp.len() as u64);
    Some(if repair { Carried::Repair(size) } else { Carried::Media(size) })
}

impl Observer for LiveObserver {
    fn on_sent(&mut self, now: Timestamp, from: AgentId, packet: &Packet) {
        let pass = |m: &mut PathMeter, path, rtp: &[u8], size, is_media| m.on_sent(path, rtp, size, is_media);
        match self.carried(from, packet, pass) {
            Some((flow, Carried::Media(size))) => self.recorder.sent(flow, now, size, packet.size),
            Some((flow, Carried::Repair(size))) => self.recorder.repair_sent(flow, now, size, packet.size),
            None => {}
        }
        let (_, side) = flow_of(from);
        for capture in self.captures.iter_mut().filter(|c| c.at.sees_sent(side)) {
            capture.packet(now, &packet.bytes);
        }
    }
    fn on_marked(&mut self, now: Timestamp, _: LinkId, from: AgentId, packet: &Packet) {
        if let Some((flow, Carried::Media(_))) = self.carried(from, packet, |_, _, _, _, _| false) {
            self.recorder.marked(flow, now);
        }
    }
    fn on_dropped(&mut self, now: Timestamp, place: Place, from: AgentId, packet: &Packet) {
        let cause = match place {
            Place::Link(_, DropReason::Queue) => DropCause::Queue,
            Place::Link(_, DropReason::Aqm | DropReason::Policer) => DropCause::Aqm,
            Place::Link(_, DropReason::RandomLoss) => DropCause::Channel,
            Place::Agent(_) => return,
        };
        let pass = |m: &mut PathMeter, path, rtp: &[u8], _, is_media| m.on_dropped(path, rtp, is_media);
        if let Some((flow, Carried::Media(_))) = self.carried(from, packet, pass) {
            self.recorder.dropped(flow, now, cause);
        }
    }
    fn on_delivered(&mut self, now: Timestamp, _: AgentId, from: AgentId, packet: &Packet) {
        let times = (packet.sent, now);
        let pass =
            |m: &mut PathMeter, path, rtp: &[u8], size, is_media| m.on_received(path, rtp, size, is_media, times);
        match self.carried(from, packet, pass) {
            Some((flow, Carried::Media(size))) => {
                self.recorder.received(flow, now, packet.sent, size);
                if packet.ecn == Ecn::Ce {
                    self.recorder.received_marked(flow);
                }
            }
            Some((flow, Carried::Repair(_))) => self.recorder.repair_received(flow, now),
            None => {}
        }
        let (_, side) = flow_of(from);
        for capture in self.captures.iter_mut().filter(|c| c.at.sees_delivered(side)) {
            capture.packet(now, &packet.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4(protocol: u8, rest: &[u8]) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 1, 0, 1];
        p.extend_from_slice(rest);
        p
    }

    #[test]
    fn sizes_counted_of_a_packet() {
        let size = |n| DataSize::from_bytes(n);
        // A TCP header of 32 bytes, then data or none.
        let mut segment = vec![0; 32];
        segment[12] = 8 << 4;
        assert_eq!(carried(Kind::Tcp, &ipv4(6, &segment)), None);
        segment.extend([1; 100]);
        assert_eq!(carried(Kind::Tcp, &ipv4(6, &segment)), Some(Carried::Media(size(100))));
        assert_eq!(carried(Kind::Udp, &ipv4(17, &[0; 108])), Some(Carried::Media(size(128))));
        let rtp = |payload_type: u8| {
            let mut d = vec![0; 8];
            d.extend([0x80, payload_type, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9, 7, 7]);
            ipv4(17, &d)
        };
        assert_eq!(carried(Kind::Rtp, &rtp(96)), Some(Carried::Media(size(14))));
        assert_eq!(carried(Kind::Rtp, &rtp(REPAIR_PAYLOAD_TYPES[0])), Some(Carried::Repair(size(14))));
        // The same over DCCP: a Data packet with a 12-byte header; other types carry nothing.
        let dccp = |packet_type: u8, data: &[u8]| {
            let mut d = vec![0; 8];
            d.extend([0, 1, 0, 2, 3, 0, 0, 0, packet_type << 1, 0, 0, 9]);
            d.extend_from_slice(data);
            ipv4(17, &d)
        };
        let inside = &rtp(96)[28..];
        assert_eq!(carried(Kind::RtpOverDccp, &dccp(2, inside)), Some(Carried::Media(size(14))));
        assert_eq!(carried(Kind::RtpOverDccp, &dccp(2, &rtp(201)[28..])), None);
        assert_eq!(carried(Kind::Dccp, &dccp(2, &[1; 90])), Some(Carried::Media(size(90))));
        assert_eq!(carried(Kind::Dccp, &dccp(2, &[])), None);
        assert_eq!(carried(Kind::Dccp, &dccp(11, &[1; 90])), None, "a reserved type");
        // A receiver report is feedback.
        assert_eq!(carried(Kind::Rtp, &rtp(201)), None);
        for cut in 0..40 {
            let whole = ipv4(6, &segment);
            let _ = carried(Kind::Tcp, &whole[..cut]);
            let _ = carried(Kind::Rtp, &rtp(96)[..cut.min(42)]);
        }
    }
}
