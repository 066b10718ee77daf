//! What travels: a packet and the parts of it that agents read.

use crate::tcp_segment::TcpSegment;
use weir_units::{DataSize, Ecn, PathId, Timestamp};

/// A packet on its way from one agent to another.
#[derive(Debug)]
// Fields in this order: what each packet needs lies together, so that few cache lines are touched where calls are many.
#[repr(C)]
pub struct Packet {
    /// Real bytes of the datagram's beginning (RTP header and extensions, whole RTCP packets). The buffer is
    /// reused from packet to packet, so filling it allocates nothing in steady state.
    pub bytes: Vec<u8>,
    /// Bytes on the wire, with all headers: what links count.
    pub size: DataSize,
    /// When the sending agent let it go.
    pub sent: Timestamp,
    /// Bytes of media that follow [`Self::bytes`] and are carried as a length only.
    pub payload: u32,
    /// The ECN field, as the path has left it so far.
    pub ecn: Ecn,
    /// Which of the sending agent's routes it takes; the receiving agent reads which one it took.
    pub path: PathId,
    /// What simulated protocols read.
    pub body: Body,
}

/// The part of a packet that simulated protocols read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Body {
    /// Nothing but a size, and what [`Packet::bytes`] holds.
    #[default]
    Raw,
    /// A TCP segment.
    Tcp(TcpSegment),
    /// A DCCP packet in UDP (RFC 6773): [`Packet::bytes`] begins with its header.
    Dccp {
        /// Bytes of its header and options; what follows is the application's.
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
    }
}

impl Packet {
    /// A packet of nothing.
    pub const fn blank() -> Self {
        Self {
            size: DataSize::ZERO,
            ecn: Ecn::NotEct,
            path: PathId::FIRST,
            sent: Timestamp::ZERO,
            body: Body::Raw,
            bytes: Vec::new(),
            payload: 0,
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
    }
}
