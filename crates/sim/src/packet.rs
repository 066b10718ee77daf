//! Packets and their parts read by agents.

use crate::ids::AgentId;
use crate::tcp_segment::TcpSegment;
use weir_units::{DataSize, Ecn, PathId, Timestamp};

/// A packet from one agent to another.
#[derive(Debug)]
// Field order: data used by each packet is adjacent, so that few cache lines are touched with many calls.
#[repr(C)]
pub struct Packet {
    /// Real bytes of the beginning of the datagram (RTP header and extensions, whole RTCP packets). The buffer is
    /// reused between packets, so filling it does not allocate in steady state.
    pub bytes: Vec<u8>,
    /// Size on the wire with all headers, as counted by links.
    pub size: DataSize,
    /// When the agent sent it.
    pub sent: Timestamp,
    /// Bytes of media after [`Self::bytes`], carried as a length only.
    pub payload: u32,
    /// The ECN field, as changed by the path so far.
    pub ecn: Ecn,
    /// The sending agent's path that it uses; the receiving agent can read it.
    pub path: PathId,
    /// Whether a link has made it of another packet, which arrives as well.
    pub is_copy: bool,
    /// The part read by simulated protocols.
    pub body: Body,
}

/// The part of a packet read by simulated protocols.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Body {
    /// Only a size and [`Packet::bytes`].
    #[default]
    Raw,
    /// A packet to a certain agent, whose way is over both ends' access links
    /// ([`Simulator::set_access`](crate::Simulator::set_access)) if the path has no route.
    Addressed {
        /// The agent that it is from, as its sender states.
        from: AgentId,
        /// The agent that it is for.
        to: AgentId,
    },
    /// A TCP segment.
    Tcp(TcpSegment),
    /// A DCCP packet in UDP (RFC 6773): [`Packet::bytes`] begins with its header.
    Dccp {
        /// Bytes of its header and options; the application's data follows.
        header: u16,
    },
}

impl Clone for Packet {
    fn clone(&self) -> Self {
        let mut copy = Self::blank();
        copy.clone_from(self);
        copy
    }
    /// Reuses the buffer.
    fn clone_from(&mut self, source: &Self) {
        self.size = source.size;
        self.ecn = source.ecn;
        self.path = source.path;
        self.sent = source.sent;
        self.body = source.body;
        self.bytes.clone_from(&source.bytes);
        self.payload = source.payload;
        self.is_copy = source.is_copy;
    }
}

impl Packet {
    /// An empty packet.
    pub const fn blank() -> Self {
        Self {
            size: DataSize::ZERO,
            ecn: Ecn::NotEct,
            path: PathId::FIRST,
            sent: Timestamp::ZERO,
            body: Body::Raw,
            bytes: Vec::new(),
            payload: 0,
            is_copy: false,
        }
    }

    /// Makes it blank again, keeping the buffer.
    pub fn reset(&mut self, now: Timestamp) {
        self.size = DataSize::ZERO;
        self.ecn = Ecn::NotEct;
        self.path = PathId::FIRST;
        self.sent = now;
        self.body = Body::Raw;
        self.bytes.clear();
        self.payload = 0;
        self.is_copy = false;
    }
}
