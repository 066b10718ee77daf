//! What the recorder and a capture see of a run.

use super::{PacketSink, SentPacket};
use crate::metrics::{DropCause, Recorder};
use weir_path::DropReason;
use weir_sim::{AgentId, Body, Observer, Packet, Place};
use weir_units::{DataSize, Timestamp};

/// The flow of an agent, and whether it sends the flow's media or data.
#[derive(Clone, Copy)]
struct Role {
    flow: usize,
    forward: bool,
}

pub(crate) struct Watch<'a> {
    pub recorder: Recorder,
    sink: Option<PacketSink<'a>>,
    roles: Vec<Role>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(recorder: Recorder, sink: Option<PacketSink<'a>>) -> Self {
        Self { recorder, sink, roles: Vec::new() }
    }
    pub(crate) fn finish(self, end: Timestamp) -> crate::results::RunResult {
        self.recorder.finish(end)
    }

    /// The flow and the bytes that count, where the packet carries media or data rather than feedback.
    fn media(&self, from: AgentId, packet: &Packet) -> Option<(usize, DataSize)> {
        let role = self.roles.get(from.index()).filter(|r| r.forward)?;
        let size = match &packet.body {
            Body::Tcp(segment) if segment.len == 0 => return None,
            Body::Tcp(segment) => u64::from(segment.len),
            Body::Raw if packet.bytes.is_empty() => packet.size.as_bytes(),
            Body::Raw if weir_wire::kind_of(&packet.bytes) == Some(weir_wire::Kind::Rtcp) => return None,
            Body::Raw => packet.bytes.len() as u64 + u64::from(packet.payload),
        };
        Some((role.flow, DataSize::from_bytes(size)))
    }
}

/// An observer that learns which agent belongs to which flow.
pub(crate) trait Watching: Observer {
    /// Agents are told in the order in which the simulator numbers them.
    fn add_agent(&mut self, flow: usize, forward: bool) {
        let _ = (flow, forward);
    }
}

impl Watching for () {}

impl Watching for Watch<'_> {
    fn add_agent(&mut self, flow: usize, forward: bool) {
        self.roles.push(Role { flow, forward });
    }
}

impl Observer for Watch<'_> {
    fn on_sent(&mut self, now: Timestamp, from: AgentId, packet: &Packet) {
        if let Some((flow, size)) = self.media(from, packet) {
            self.recorder.sent(flow, now, size, packet.size);
        }
        if let Some(sink) = &mut self.sink
            && let Some(role) = self.roles.get(from.index())
            && !packet.bytes.is_empty()
        {
            let (bytes, payload) = (&packet.bytes[..], packet.payload);
            sink(&SentPacket { now, flow: role.flow, forward: role.forward, bytes, payload, ecn: packet.ecn });
        }
    }
    fn on_dropped(&mut self, now: Timestamp, place: Place, from: AgentId, packet: &Packet) {
        let cause = match place {
            Place::Link(_, DropReason::Queue) => DropCause::Queue,
            Place::Link(..) => DropCause::Channel,
            // The receiver has left: no loss of the path.
            Place::Agent(_) => return,
        };
        if let Some((flow, _)) = self.media(from, packet) {
            self.recorder.dropped(flow, now, cause);
        }
    }
    fn on_delivered(&mut self, now: Timestamp, _: AgentId, from: AgentId, packet: &Packet) {
        if let Some((flow, size)) = self.media(from, packet) {
            self.recorder.received(flow, now, packet.sent, size);
        }
    }
}
