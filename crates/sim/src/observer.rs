//! Observers of a run: hooks without cost if unused.

use crate::ids::{AgentId, LinkId};
use crate::packet::{Body, Packet};
use weir_path::DropReason;
use weir_units::{TimeDelta, Timestamp};

/// Where a packet was lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// In or at a link.
    Link(LinkId, DropReason),
    /// At an agent that has not started or has stopped, or without a route.
    Agent(AgentId),
}

/// Observes packets and timeouts. The default methods do nothing; `()` observes nothing, at no cost.
///
/// `from` is the agent that sent the packet, which identifies the flow.
pub trait Observer {
    /// An agent has sent a packet.
    fn on_sent(&mut self, now: Timestamp, from: AgentId, packet: &Packet) {
        let _ = (now, from, packet);
    }
    /// A link has accepted a packet.
    fn on_enqueued(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet) {
        let _ = (now, link, from, packet);
    }
    /// A packet has reached the end of a link, after waiting `queued_for` until its transmission.
    fn on_forwarded(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet, queued_for: TimeDelta) {
        let _ = (now, link, from, packet, queued_for);
    }
    /// A link has marked a packet CE; called before [`Self::on_forwarded`], and `packet` has the mark.
    fn on_marked(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet) {
        let _ = (now, link, from, packet);
    }
    /// A packet was lost.
    fn on_dropped(&mut self, now: Timestamp, place: Place, from: AgentId, packet: &Packet) {
        let _ = (now, place, from, packet);
    }
    /// A packet has reached its destination; called before the agent receives it.
    fn on_delivered(&mut self, now: Timestamp, to: AgentId, from: AgentId, packet: &Packet) {
        let _ = (now, to, from, packet);
    }
    /// An agent starts, or its timeout has come; called before the agent is.
    fn on_timeout(&mut self, now: Timestamp, agent: AgentId) {
        let _ = (now, agent);
    }
}

impl Observer for () {}

macro_rules! forward {
    ($self:ident, $($part:tt)+) => {
        fn on_sent(&mut $self, now: Timestamp, from: AgentId, packet: &Packet) {
            $($self.$part.on_sent(now, from, packet);)+
        }
        fn on_enqueued(&mut $self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet) {
            $($self.$part.on_enqueued(now, link, from, packet);)+
        }
        fn on_forwarded(&mut $self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet, queued_for: TimeDelta) {
            $($self.$part.on_forwarded(now, link, from, packet, queued_for);)+
        }
        fn on_marked(&mut $self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet) {
            $($self.$part.on_marked(now, link, from, packet);)+
        }
        fn on_dropped(&mut $self, now: Timestamp, place: Place, from: AgentId, packet: &Packet) {
            $($self.$part.on_dropped(now, place, from, packet);)+
        }
        fn on_delivered(&mut $self, now: Timestamp, to: AgentId, from: AgentId, packet: &Packet) {
            $($self.$part.on_delivered(now, to, from, packet);)+
        }
        fn on_timeout(&mut $self, now: Timestamp, agent: AgentId) {
            $($self.$part.on_timeout(now, agent);)+
        }
    };
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    forward!(self, 0 1);
}

/// A digest of everything that happens to all packets: equal digests show equal runs.
///
/// FNV-1a (64 bits) over times, places, flows, paths, sizes, ECN fields, TCP connections and sequence numbers, and bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamHash(u64);

impl Default for StreamHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl StreamHash {
    /// The digest so far.
    pub const fn value(&self) -> u64 {
        self.0
    }
    fn add(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    fn event(&mut self, kind: u64, now: Timestamp, place: usize, from: AgentId, packet: &Packet) {
        self.add(kind << 56 ^ (place as u64) << 28 ^ u64::from(from.0));
        self.add(now.as_nanos() as u64);
        self.add(packet.size.as_bytes() << 2 ^ u64::from(packet.path.number()) << 56 | u64::from(packet.ecn.bits()));
    }
}

impl Observer for StreamHash {
    fn on_sent(&mut self, now: Timestamp, from: AgentId, packet: &Packet) {
        self.event(1, now, 0, from, packet);
        if let Body::Tcp(s) = &packet.body {
            self.add(s.seq);
            self.add(s.ack);
            self.add(u64::from(s.connection));
        }
        for chunk in packet.bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }
    fn on_enqueued(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet) {
        self.event(2, now, link.index(), from, packet);
    }
    fn on_forwarded(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet, queued_for: TimeDelta) {
        self.event(3, now, link.index(), from, packet);
        self.add(queued_for.as_nanos() as u64);
    }
    fn on_dropped(&mut self, now: Timestamp, place: Place, from: AgentId, packet: &Packet) {
        let place = match place {
            Place::Link(link, _) => link.index(),
            Place::Agent(agent) => agent.index(),
        };
        self.event(4, now, place, from, packet);
    }
    fn on_delivered(&mut self, now: Timestamp, to: AgentId, from: AgentId, packet: &Packet) {
        self.event(5, now, to.index(), from, packet);
    }
}
