//! A received RTP packet.

use crate::datagram::{Datagram, Kind};
use crate::frames::FramePart;
use crate::observer::Seen;
use core::net::SocketAddr;
use weir_units::{DataSize, Ecn, PathId, Timestamp};
use weir_wire::fec::Octets;
use weir_wire::rtp::PacketView;

/// An RTP packet on its way in: its datagram, parsed, and how it arrived.
#[derive(Clone, Copy)]
pub(crate) struct ReceivedPacket<'a> {
    pub now: Timestamp,
    pub datagram: Datagram<'a>,
    /// Where the datagram came from, for observers.
    pub source: Option<&'a SocketAddr>,
    /// The datagram's bytes as RTP.
    pub rtp: PacketView<'a>,
    /// Padding is media that is only padding; repair is in RED here.
    pub kind: Kind,
    /// Whether it was lost, and rebuilt from other packets.
    pub is_recovered: bool,
    /// Size of header, extensions, payload and padding, as received.
    pub size: DataSize,
    /// Index of the path on which it arrived.
    pub path: usize,
    /// Its number there, if feedback uses it and the packet has it.
    pub path_sequence: Option<u16>,
    /// When it was sent, if the controller's receiver half uses it and the packet has it.
    pub abs_send_time: Option<u32>,
}

impl<'a> ReceivedPacket<'a> {
    /// A packet rebuilt from others, with this number of zeros after `bytes`.
    pub(crate) fn recovered(rtp: PacketView<'a>, bytes: &'a [u8], zeros: u32, now: Timestamp) -> Self {
        let datagram = Datagram { path: PathId::FIRST, bytes, payload: zeros, ecn: Ecn::NotEct };
        let is_padding = rtp.padding_bit() && zeros == 0;
        Self {
            now,
            datagram,
            source: None,
            rtp,
            kind: if is_padding { Kind::Padding } else { Kind::Media },
            is_recovered: true,
            size: datagram.size(),
            path: 0,
            path_sequence: None,
            abs_send_time: None,
        }
    }

    /// The payload, without padding.
    pub(crate) fn payload(&self) -> Octets<'a> {
        Octets { bytes: self.rtp.payload(), zeros: self.datagram.payload }
    }
    pub(crate) fn payload_size(&self) -> DataSize {
        DataSize::from_bytes(self.rtp.payload().len() as u64 + u64::from(self.datagram.payload))
    }
    /// Whether it has a part of a frame.
    pub(crate) fn has_media(&self) -> bool {
        self.kind == Kind::Media
    }
    /// Returns the timestamp and the marker, which distinguish frames; `None` without media.
    pub(crate) fn frame(&self) -> Option<FramePart> {
        self.has_media().then_some(self.part())
    }
    pub(crate) fn part(&self) -> FramePart {
        FramePart { rtp_timestamp: self.rtp.timestamp(), marker: self.rtp.marker() }
    }
    /// The same for observers.
    pub(crate) fn seen(&self) -> Seen<'a> {
        let Datagram { bytes, payload, .. } = self.datagram;
        Seen { now: self.now, bytes, payload, source: self.source.copied() }
    }
}

/// A jump of sequence numbers.
#[derive(Clone, Copy)]
pub(crate) struct Jump {
    /// The highest number before the jump.
    pub before: u64,
    /// The first number after it.
    pub sequence: u64,
}
