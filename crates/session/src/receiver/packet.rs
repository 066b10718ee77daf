//! A packet of an incoming stream.

use crate::frames::FramePart;
use weir_units::{DataSize, Ecn, Timestamp};

/// One RTP packet, as read from a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub sequence: u16,
    /// Transport-wide sequence number, where feedback goes by it and the packet has it.
    pub transport: Option<u16>,
    pub rtp_timestamp: u32,
    pub marker: bool,
    /// Header, extensions, payload and padding.
    pub size: DataSize,
    /// Payload without header, extensions and padding.
    pub payload: DataSize,
    pub is_padding: bool,
    pub abs_send_time: Option<u32>,
    pub ecn: Ecn,
}

impl Incoming {
    /// What frames are distinguished by; nothing for padding.
    pub(super) fn frame(&self) -> Option<FramePart> {
        (!self.is_padding).then_some(self.part())
    }
    pub(super) fn part(&self) -> FramePart {
        FramePart { rtp_timestamp: self.rtp_timestamp, marker: self.marker }
    }
}

/// How a packet arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Transport-wide sequence number, where feedback goes by it and the packet has it.
    pub transport: Option<u16>,
    pub ecn: Ecn,
    pub now: Timestamp,
}

/// A jump of sequence numbers.
#[derive(Clone, Copy)]
pub(super) struct Jump {
    /// The highest before it.
    pub before: u64,
    /// The first behind it.
    pub sequence: u64,
}
