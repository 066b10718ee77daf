//! The agents of a run of layers.

use super::core_end::CoreEnd;
use super::message::Message;
use super::site::SiteEnd;
use weir_sim::{AgentId, Body, Packet};
use weir_units::Timestamp;

/// Any agent.
pub(super) enum Agent {
    Core(Box<CoreEnd>),
    Site(Box<SiteEnd>),
}

impl Agent {
    pub(super) fn site(&self) -> Option<&SiteEnd> {
        if let Self::Site(site) = self { Some(site) } else { None }
    }
    pub(super) fn core(&self) -> Option<&CoreEnd> {
        if let Self::Core(core) = self { Some(core) } else { None }
    }
}

impl weir_sim::Agent for Agent {
    fn on_start(&mut self, now: Timestamp) {
        self.on_timeout(now);
    }

    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        let Body::Addressed { from, .. } = packet.body else { return };
        let Some(message) = Message::read(&packet.bytes) else { return };
        match self {
            Self::Core(core) => core.on_message(from, message),
            Self::Site(site) => site.on_message(message, now),
        }
    }

    fn on_timeout(&mut self, now: Timestamp) {
        match self {
            Self::Core(core) => core.handle_timeout(now),
            Self::Site(site) => site.handle_timeout(now),
        }
    }

    fn poll_timeout(&mut self) -> Option<Timestamp> {
        match self {
            Self::Core(core) => core.next(),
            Self::Site(site) => site.next(),
        }
    }

    fn poll_transmit(&mut self, _: Timestamp, packet: &mut Packet) -> bool {
        let (from, out) = match self {
            Self::Core(core) => (AgentId::from_index(0), core.pop()),
            Self::Site(site) => (site.id(), site.pop()),
        };
        let Some(out) = out else { return false };
        out.message.write(&mut packet.bytes);
        packet.size = out.size;
        packet.body = Body::Addressed { from, to: out.to };
        true
    }
}
