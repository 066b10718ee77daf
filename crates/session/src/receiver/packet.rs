//! A packet of an incoming stream.

use crate::frames::FramePart;
use weir_units::{DataSize, Ecn, Timestamp};

/// One RTP packet parsed from a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub sequence: u16,
    /// Transport-wide sequence number, if feedback uses it and the packet has it.
    pub transport: Option<u16>,
    pub rtp_timestamp: u32,
    pub marker: bool,
    /// Size of header, extensions, payload and padding.
    pub size: DataSize,
    /// Size of the payload without header, extensions and padding.
    pub payload: DataSize,
    /// Whether it has no media: padding, or a repair packet in RED.
    pub is_padding: bool,
    pub is_repair: bool,
    pub abs_send_time: Option<u32>,
    pub ecn: Ecn,
}

impl Incoming {
    /// What distinguishes frames; `None` for padding.
    pub(super) fn frame(&self) -> Option<FramePart> {
        (!self.is_padding).then_some(self.part())
    }
    pub(super) fn part(&self) -> FramePart {
        FramePart { rtp_timestamp: self.rtp_timestamp, marker: self.marker }
    }
}

/// The arrival of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Transport-wide sequence number, if feedback uses it and the packet has it.
    pub transport: Option<u16>,
    pub ecn: Ecn,
    pub now: Timestamp,
}

/// A jump of sequence numbers.
#[derive(Clone, Copy)]
pub(super) struct Jump {
    /// The highest number before the jump.
    pub before: u64,
    /// The first number after it.
    pub sequence: u64,
}
