//! The observer of a run: passes packets to the recorder and to a capture.

use super::captured::{Capture, CapturedPacket, Passage, WatchedLinks};
use super::first_packets::FirstPackets;
use super::path_meter::PathMeter;
use super::streams::REPAIR_PAYLOAD_TYPES;
use crate::metrics::{DropCause, Recorder};
use weir_path::DropReason;
use weir_sim::{AgentId, Body, LinkId, Observer, Packet, Place};
use weir_units::cold_path;
use weir_units::{DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

/// The flow of an agent, and whether it sends the flow's media or data.
#[derive(Clone, Copy)]
struct Role {
    flow: usize,
    forward: bool,
}

/// Passes a run's packets to the recorder and to a capture.
pub(crate) struct RunObserver<'a> {
    pub recorder: Recorder,
    capture: Option<Capture<'a>>,
    watched: WatchedLinks,
    roles: Vec<Role>,
    /// By flow.
    first_packets: Vec<FirstPackets>,
    /// Of flows over several paths, by flow.
    paths: Vec<Option<Box<PathMeter>>>,
    /// See [`Self::active`].
    active: Vec<u64>,
}

/// A packet's application data, or its beginning.
fn data(packet: &Packet) -> &[u8] {
    match packet.body {
        Body::Dccp { header } => packet.bytes.get(usize::from(header)..).unwrap_or(&[]),
        _ => &packet.bytes,
    }
}

/// Whether the packet is RTP with padding alone.
#[inline]
fn is_padding(packet: &Packet) -> bool {
    // The bit for padding of the RTP header (RFC 3550, section 5.1), which no media packet has.
    let data = data(packet);
    packet.payload == 0 && data.first().is_some_and(|b| b & 0xe0 == 0xa0) && has_no_payload(data)
}

#[cold]
fn has_no_payload(rtp: &[u8]) -> bool {
    PacketView::parse(rtp).is_ok_and(|p| p.padding() > 0 && p.payload().is_empty())
}

/// A packet with a flow's payload.
enum Carried {
    Media(usize, DataSize),
    Repair(usize, DataSize),
}

impl<'a> RunObserver<'a> {
    pub(crate) fn new(recorder: Recorder, capture: Option<Capture<'a>>) -> Self {
        let watched = WatchedLinks::default();
        Self {
            recorder,
            capture,
            watched,
            roles: Vec::new(),
            first_packets: Vec::new(),
            paths: Vec::new(),
            active: Vec::new(),
        }
    }
    /// The bottleneck and the link back beside it, for captures there.
    pub(crate) fn capture_at(&mut self, forward: Option<LinkId>, reverse: Option<LinkId>) {
        self.watched = WatchedLinks { forward, reverse };
    }
    #[inline]
    fn capture(&mut self, now: Timestamp, passage: Passage, from: AgentId, packet: &Packet) {
        if self.capture.is_some() {
            self.hand_over(now, passage, from, packet);
        }
    }
    #[cold]
    fn hand_over(&mut self, now: Timestamp, passage: Passage, from: AgentId, packet: &Packet) {
        let (Some(capture), Some(role)) = (&mut self.capture, self.roles.get(from.index())) else { return };
        let Some(at) = capture.at.seen(passage, role.forward, self.watched).filter(|_| !packet.bytes.is_empty()) else {
            return;
        };
        let (bytes, payload) = (&packet.bytes[..], packet.payload);
        let is_dccp = matches!(packet.body, Body::Dccp { .. });
        let (flow, forward, ecn) = (role.flow, role.forward, packet.ecn);
        (capture.sink)(&CapturedPacket { now, at, flow, forward, is_dccp, bytes, payload, ecn });
    }
    /// Flows whose sending agent has received something or run at a timeout since their bits were cleared, one bit each; for all
    /// flows.
    pub(crate) fn active(&mut self) -> &mut [u64] {
        &mut self.active
    }
    /// An agent may have changed.
    #[inline]
    pub(crate) fn on_run(&mut self, agent: AgentId) {
        if let Some(role) = self.roles.get(agent.index()).filter(|r| r.forward)
            && let Some(word) = self.active.get_mut(role.flow / 64)
        {
            *word |= 1 << (role.flow % 64);
        }
    }
    /// Frames of a flow whose first packet was lost on the path; with [`Self::needs_marker`] also those whose last one
    /// was, or was never sent.
    pub(crate) fn first_packets_lost(&self, flow: usize) -> u64 {
        self.first_packets.get(flow).map_or(0, FirstPackets::lost)
    }
    /// Measures the paths of a flow.
    pub(crate) fn measure_paths(&mut self, flow: usize, meter: PathMeter) {
        self.paths.resize_with(self.paths.len().max(flow + 1), || None);
        self.paths[flow] = Some(Box::new(meter));
    }
    /// Returns the measurements of a flow's paths, if it has several, with the recorder.
    pub(crate) fn paths_mut(&mut self, flow: usize) -> Option<(&mut PathMeter, &mut Recorder)> {
        Some((self.paths.get_mut(flow)?.as_deref_mut()?, &mut self.recorder))
    }
    /// Frames of a flow are lost without their marker bit as well.
    pub(crate) fn needs_marker(&mut self, flow: usize) {
        self.first_packets(flow).needs_marker();
    }
    fn first_packets(&mut self, flow: usize) -> &mut FirstPackets {
        if self.first_packets.len() <= flow {
            self.first_packets.resize_with(flow + 1, FirstPackets::default);
        }
        &mut self.first_packets[flow]
    }
    pub(crate) fn finish(self, end: Timestamp) -> crate::results::RunResult {
        self.recorder.finish(end)
    }

    /// The flow and the counted bytes, if the packet carries media or data rather than feedback.
    fn carried(&self, from: AgentId, packet: &Packet) -> Option<Carried> {
        let role = self.roles.get(from.index()).filter(|r| r.forward)?;
        let data = data(packet);
        let size = match &packet.body {
            Body::Dccp { .. } if data.is_empty() && packet.payload == 0 => return None,
            Body::Dccp { .. } if data.is_empty() => u64::from(packet.payload),
            Body::Tcp(segment) if segment.len == 0 => return None,
            Body::Tcp(segment) => u64::from(segment.len),
            Body::Raw if packet.bytes.is_empty() => packet.size.as_bytes(),
            _ if weir_wire::kind_of(data) == Some(weir_wire::DatagramKind::Rtcp) => return None,
            _ => data.len() as u64 + u64::from(packet.payload),
        };
        let size = DataSize::from_bytes(size);
        // The payload type distinguishes media from repair (RFC 3550, section 5.1).
        let repair = data.get(1).is_some_and(|b| REPAIR_PAYLOAD_TYPES.contains(&(b & 0x7f)));
        Some(if repair { Carried::Repair(role.flow, size) } else { Carried::Media(role.flow, size) })
    }

    /// Passes a packet of a flow over several paths to its meter; a copy of a media packet counts as repair.
    #[inline]
    fn on_path(
        &mut self,
        carried: Option<Carried>,
        mut pass: impl FnMut(&mut PathMeter, DataSize, bool) -> bool,
    ) -> Option<Carried> {
        let (flow, size, is_media) = match &carried {
            Some(Carried::Media(flow, size)) => (*flow, *size, true),
            Some(Carried::Repair(flow, size)) => (*flow, *size, false),
            None => return None,
        };
        let Some(Some(meter)) = self.paths.get_mut(flow) else { return carried };
        cold_path();
        if pass(meter, size, is_media) { Some(Carried::Repair(flow, size)) } else { carried }
    }
}

/// An observer that knows each agent's flow.
pub(crate) trait FlowObserver: Observer {
    /// Called for each agent, in the order of the simulator's ids.
    fn add_agent(&mut self, flow: usize, forward: bool) {
        let _ = (flow, forward);
    }
}

impl FlowObserver for RunObserver<'_> {
    fn add_agent(&mut self, flow: usize, forward: bool) {
        self.roles.push(Role { flow, forward });
        if self.active.len() <= flow / 64 {
            self.active.resize(flow / 64 + 1, 0);
        }
    }
}

impl Observer for RunObserver<'_> {
    fn on_sent(&mut self, now: Timestamp, from: AgentId, packet: &Packet) {
        let carried = self.carried(from, packet);
        match self.on_path(carried, |m, size, is_media| m.on_sent(packet.path, data(packet), size, is_media)) {
            Some(Carried::Media(flow, size)) => {
                self.recorder.sent(flow, now, size, packet.size);
                self.first_packets(flow).on_sent(data(packet));
            }
            Some(Carried::Repair(flow, size)) => self.recorder.repair_sent(flow, now, size, packet.size),
            None => {}
        }
        self.capture(now, Passage::Sent, from, packet);
    }
    #[inline]
    fn on_enqueued(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet) {
        self.capture(now, Passage::Enqueued(link), from, packet);
    }
    #[inline]
    fn on_forwarded(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet, _: TimeDelta) {
        self.capture(now, Passage::Forwarded(link), from, packet);
    }
    fn on_marked(&mut self, now: Timestamp, _: LinkId, from: AgentId, packet: &Packet) {
        if let Some(Carried::Media(flow, _)) = self.carried(from, packet).filter(|_| !packet.is_copy) {
            self.recorder.marked(flow, now);
        }
    }
    fn on_dropped(&mut self, now: Timestamp, place: Place, from: AgentId, packet: &Packet) {
        let cause = match place {
            Place::Link(_, DropReason::Queue) => DropCause::Queue,
            Place::Link(_, DropReason::Aqm | DropReason::Policer) => DropCause::Aqm,
            Place::Link(_, DropReason::RandomLoss) => DropCause::Channel,
            // The receiver has left: no loss of the path.
            Place::Agent(_) => return,
        };
        if packet.is_copy {
            return;
        }
        let carried = self.carried(from, packet);
        let carried = self.on_path(carried, |m, _, is_media| m.on_dropped(packet.path, data(packet), is_media));
        if let Some(Carried::Media(flow, _)) = carried {
            self.recorder.dropped(flow, now, cause);
            self.first_packets(flow).on_dropped(data(packet));
        }
    }
    fn on_timeout(&mut self, _: Timestamp, agent: AgentId) {
        self.on_run(agent);
    }
    fn on_delivered(&mut self, now: Timestamp, to: AgentId, from: AgentId, packet: &Packet) {
        self.on_run(to);
        // A packet counts once: what a link has duplicated is no goodput.
        let (times, carried) = ((packet.sent, now), self.carried(from, packet).filter(|_| !packet.is_copy));
        match self.on_path(carried, |m, size, is_media| m.on_received(packet.path, data(packet), size, is_media, times))
        {
            Some(Carried::Media(flow, size)) => {
                // Padding arrives, and is of no use.
                let size = if is_padding(packet) { DataSize::ZERO } else { size };
                self.recorder.received(flow, now, packet.sent, size);
                if packet.ecn == Ecn::Ce {
                    self.recorder.received_marked(flow);
                }
            }
            Some(Carried::Repair(flow, _)) => self.recorder.repair_received(flow, now),
            None => {}
        }
        self.capture(now, Passage::Delivered, from, packet);
    }
}
