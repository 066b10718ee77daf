//! RTCP packets, alone and in compounds (RFC 3550, section 6; RFC 5506).
//!
//! [`parse_compound`] accepts any sequence of packets, including the reduced-size ones of RFC 5506; [`check_compound`]
//! checks the rules of RFC 3550. Every type is one struct for both parsing and writing: its lists are bytes of the
//! packet or a slice to be written ([`List`]). Packets without a struct are kept as bytes in [`Packet::Other`], so that
//! all parsed packets can be written again.
//!
//! Reserved bits are written as zero, and padding is not part of a struct: see [`Packet::write_padded_into`].
//!
//! The crates `rtcp-types` and `rtp-types` are oracles in the tests, not dependencies: `rtcp-types` 0.3 takes padding
//! for feedback entries, loses a chunk whose SSRC begins with a zero octet, orders FIR entries by a randomly seeded
//! hash, allocates for every list, and has no TMMBR, TMMBN, REMB or CCFB.

mod app;
mod bye;
mod capacity;
pub mod ccfb;
mod control;
pub mod mprtcp;
mod nack;
pub mod overlay;
pub mod overlay_peers;
mod picture;
mod remb;
mod report;
mod resync;
mod sdes;
pub mod twcc;
pub mod xr;

pub use app::{App, NADA_NAME, NADU_NAME, NadaReport, Nadu, NaduEntry, OWD_NAME, OneWayDelayReport};
pub use bye::Bye;
pub use capacity::{CAPACITY_NAME, CapacityEntry, CapacityFault, CapacityVector, ShortRate, Tenths};
pub use control::{Fir, FirEntry, RateLimit, ScaledRate, Tmmbn, Tmmbr};
pub use mprtcp::Mprtcp;
pub use nack::{Nack, NackEntry, NackPacker};
pub use overlay::Overlay;
pub use picture::{Pli, Rpsi, Sli, SliEntry};
pub use remb::Remb;
pub use report::{ReceiverReport, ReportBlock, SenderInfo, SenderReport};
pub use resync::SrRequest;
pub use sdes::{Chunk as SdesChunk, Chunks as SdesChunks, Item as SdesItem, Items as SdesItems, Sdes, SdesType};
pub use xr::Xr;

use crate::read::{Reader, be16};
use crate::{Error, List};

/// Packet type of sender reports.
pub const SR: u8 = 200;
/// Packet type of receiver reports.
pub const RR: u8 = 201;
/// Packet type of source descriptions.
pub const SDES: u8 = 202;
/// Packet type of goodbyes.
pub const BYE: u8 = 203;
/// Packet type of application-defined packets.
pub const APP: u8 = 204;
/// Packet type of transport-layer feedback (RFC 4585).
pub const RTPFB: u8 = 205;
/// Packet type of payload-specific feedback (RFC 4585).
pub const PSFB: u8 = 206;
/// Packet type of extended reports (RFC 3611).
pub const XR: u8 = 207;
/// Packet type of multipath RTCP (draft-ietf-avtcore-mprtp-03, section 12.2).
pub const MPRTCP: u8 = 211;

/// Size of the longest packet that the length field allows.
pub const MAX_PACKET: usize = (u16::MAX as usize + 1) * 4;
/// Most entries that the 5-bit count field allows.
const MAX_COUNT: usize = 31;

/// One packet of a compound, framed by its common header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawPacket<'a> {
    bytes: &'a [u8],
    offset: usize,
    padding: u8,
}

impl<'a> RawPacket<'a> {
    /// The count, subtype or FMT field, 5 bits.
    pub const fn count(&self) -> u8 {
        self.bytes[0] & 0x1f
    }
    /// The packet type.
    pub const fn packet_type(&self) -> u8 {
        self.bytes[1]
    }
    /// All of its bytes.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// The bytes between the common header and the padding.
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[4..self.bytes.len() - usize::from(self.padding)]
    }
    /// Padding bytes at the end. RFC 3550 requires a multiple of four; libwebrtc's TWCC has 1 to 3.
    pub const fn padding(&self) -> u8 {
        self.padding
    }
    /// Its offset in the datagram.
    pub const fn offset(&self) -> usize {
        self.offset
    }
    fn reader(&self) -> Reader<'a> {
        Reader::new(self.body(), self.offset + 4)
    }
}

/// Iterator over the packets of a datagram, framed but not parsed. It ends after the first error.
#[derive(Clone, Copy, Debug)]
pub struct RawPackets<'a> {
    rest: &'a [u8],
    offset: usize,
}

/// The packets of a datagram by their common headers.
pub const fn raw_packets(datagram: &[u8]) -> RawPackets<'_> {
    RawPackets { rest: datagram, offset: 0 }
}

impl<'a> Iterator for RawPackets<'a> {
    type Item = Result<RawPacket<'a>, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (bytes, offset) = (self.rest, self.offset);
        self.rest = &[];
        Some(frame_first(bytes, offset).inspect(|packet| {
            self.rest = &bytes[packet.bytes.len()..];
            self.offset = offset + packet.bytes.len();
        }))
    }
}

fn frame_first(rest: &[u8], offset: usize) -> Result<RawPacket<'_>, Error> {
    let mut r = Reader::new(rest, offset);
    let header = r.take("RTCP common header", 4)?;
    if header[0] >> 6 != 2 {
        return Err(Error::Value { field: "RTCP version", offset, value: (header[0] >> 6).into(), expected: "2" });
    }
    let length = usize::from(be16(header, 2)) * 4;
    r.take("RTCP packet", length)?;
    let bytes = &rest[..4 + length];
    let padding = if header[0] & 0x20 != 0 { bytes[bytes.len() - 1] } else { 0 };
    if header[0] & 0x20 != 0 && (padding == 0 || usize::from(padding) > length) {
        return Err(Error::Value {
            field: "RTCP padding count",
            offset: offset + 3 + length,
            value: padding.into(),
            expected: "1 to the bytes after the common header",
        });
    }
    Ok(RawPacket { bytes, offset, padding })
}

/// Iterator over the packets of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a>(RawPackets<'a>);

/// The packets of a datagram, compound or of reduced size (RFC 5506).
///
/// A packet of valid length with invalid content is an error, after which parsing continues.
pub const fn parse_compound(datagram: &[u8]) -> Packets<'_> {
    Packets(raw_packets(datagram))
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.and_then(|raw| Packet::parse(&raw)))
    }
}

/// Checks the rules on compound packets of RFC 3550, sections 6.1 and A.2: lengths are consistent, an SR or RR comes
/// first, only the last packet is padded, and there is an SDES with a CNAME.
pub fn check_compound(datagram: &[u8]) -> Result<(), Error> {
    let mut cname = false;
    let mut padded = None;
    for (i, raw) in raw_packets(datagram).enumerate() {
        let raw = raw?;
        if i == 0 && !matches!(raw.packet_type(), SR | RR) {
            return Err(Error::Compound { rule: "the first packet is an SR or RR", offset: 0 });
        }
        if let Some(offset) = padded {
            return Err(Error::Compound { rule: "only the last packet is padded", offset });
        }
        if raw.padding() != 0 {
            padded = Some(raw.offset());
        }
        if raw.packet_type() == SDES {
            let sdes = Sdes::parse(&raw)?;
            cname |= sdes.chunks.iter().any(|c| c.items.iter().any(|i| i.kind == SdesType::CNAME));
        }
    }
    if cname { Ok(()) } else { Err(Error::Compound { rule: "there is an SDES with a CNAME", offset: 0 }) }
}

/// A packet of a known type, or the bytes of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Packet<'a> {
    /// Sender report.
    SenderReport(SenderReport<'a>),
    /// Receiver report.
    ReceiverReport(ReceiverReport<'a>),
    /// Source description.
    Sdes(Sdes<'a>),
    /// Goodbye.
    Bye(Bye<'a>),
    /// Application-defined.
    App(App<'a>),
    /// NADA's receiver-side report in an APP packet.
    Nada(NadaReport),
    /// One-way delay over a range of packets in an APP packet.
    OneWayDelay(OneWayDelayReport),
    /// State of the receiver's buffers in an APP packet.
    Nadu(Nadu<'a>),
    /// Capacity expected over time in an APP packet.
    Capacity(CapacityVector<'a>),
    /// Generic negative acknowledgement.
    Nack(Nack<'a>),
    /// Request for a lower bit rate.
    Tmmbr(Tmmbr<'a>),
    /// Notification of the bounding requests.
    Tmmbn(Tmmbn<'a>),
    /// Rapid resynchronisation request.
    SrRequest(SrRequest),
    /// Transport-wide congestion control feedback.
    Twcc(twcc::Feedback<'a>),
    /// Congestion control feedback.
    Ccfb(ccfb::Feedback<'a>),
    /// Picture loss indication.
    Pli(Pli),
    /// Slice loss indication.
    Sli(Sli<'a>),
    /// Reference picture selection indication.
    Rpsi(Rpsi<'a>),
    /// Full intra request.
    Fir(Fir<'a>),
    /// Receiver estimated maximum bit rate.
    Remb(Remb<'a>),
    /// Extended report.
    Xr(Xr<'a>),
    /// Reports on subflows, or the addresses for more of them.
    Mprtcp(Mprtcp<'a>),
    /// Any other packet type or feedback format.
    Other(RawPacket<'a>),
}

impl<'a> Packet<'a> {
    /// Parses a framed packet.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        Ok(match (raw.packet_type(), raw.count()) {
            (SR, _) => Self::SenderReport(SenderReport::parse(raw)?),
            (RR, _) => Self::ReceiverReport(ReceiverReport::parse(raw)?),
            (SDES, _) => Self::Sdes(Sdes::parse(raw)?),
            (BYE, _) => Self::Bye(Bye::parse(raw)?),
            (APP, _) => {
                let app = App::parse(raw)?;
                let known = NadaReport::from_app(&app).map(Self::Nada);
                let known = known.or_else(|| OneWayDelayReport::from_app(&app).map(Self::OneWayDelay));
                let known = known.or_else(|| Nadu::from_app(&app).map(Self::Nadu));
                known.or_else(|| CapacityVector::from_app(&app).map(Self::Capacity)).unwrap_or(Self::App(app))
            }
            (RTPFB, nack::FMT) => Self::Nack(Nack::parse(raw)?),
            (RTPFB, control::TMMBR_FMT) => Self::Tmmbr(Tmmbr::parse(raw)?),
            (RTPFB, control::TMMBN_FMT) => Self::Tmmbn(Tmmbn::parse(raw)?),
            (RTPFB, resync::FMT) if SrRequest::is_in(raw) => Self::SrRequest(SrRequest::parse(raw)?),
            (RTPFB, ccfb::FMT) => Self::Ccfb(ccfb::Feedback::parse(raw)?),
            (RTPFB, twcc::FMT) => Self::Twcc(twcc::Feedback::parse(raw)?),
            (PSFB, picture::PLI_FMT) => Self::Pli(Pli::parse(raw)?),
            (PSFB, picture::SLI_FMT) => Self::Sli(Sli::parse(raw)?),
            (PSFB, picture::RPSI_FMT) => Self::Rpsi(Rpsi::parse(raw)?),
            (PSFB, control::FIR_FMT) => Self::Fir(Fir::parse(raw)?),
            (PSFB, remb::FMT) if Remb::is_in(raw) => Self::Remb(Remb::parse(raw)?),
            (XR, _) => Self::Xr(Xr::parse(raw)?),
            (MPRTCP, _) => Self::Mprtcp(Mprtcp::parse(raw)?),
            _ => Self::Other(*raw),
        })
    }
    /// Appends the packet without padding (except for [`Packet::Other`], whose bytes are copied).
    pub fn write_into(&self, out: &mut Vec<u8>) {
        match self {
            Self::SenderReport(p) => p.write_into(out),
            Self::ReceiverReport(p) => p.write_into(out),
            Self::Sdes(p) => p.write_into(out),
            Self::Bye(p) => p.write_into(out),
            Self::App(p) => p.write_into(out),
            Self::Nada(p) => p.write_into(out),
            Self::OneWayDelay(p) => p.write_into(out),
            Self::Nadu(p) => p.write_into(out),
            Self::Capacity(p) => p.write_into(out),
            Self::Nack(p) => p.write_into(out),
            Self::Tmmbr(p) => p.write_into(out),
            Self::Tmmbn(p) => p.write_into(out),
            Self::SrRequest(p) => p.write_into(out),
            Self::Twcc(p) => p.write_into(out),
            Self::Ccfb(p) => p.write_into(out),
            Self::Pli(p) => p.write_into(out),
            Self::Sli(p) => p.write_into(out),
            Self::Rpsi(p) => p.write_into(out),
            Self::Fir(p) => p.write_into(out),
            Self::Remb(p) => p.write_into(out),
            Self::Xr(p) => p.write_into(out),
            Self::Mprtcp(p) => p.write_into(out),
            Self::Other(p) => out.extend_from_slice(p.as_bytes()),
        }
    }
    /// Appends the packet with `padding` bytes of padding, rounded up to fill the last word. Only the last packet of a
    /// compound may be padded (RFC 3550, section 6.4.1). [`Packet::Other`] keeps its own padding.
    pub fn write_padded_into(&self, padding: u8, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_into(out);
        if padding == 0 || matches!(self, Self::Other(_)) {
            return;
        }
        if let Self::Twcc(feedback) = self {
            out.truncate(out.len() - feedback.fill());
        }
        let words = (out.len() - start + usize::from(padding)).div_ceil(4).min(MAX_PACKET / 4);
        let padding = words * 4 - (out.len() - start);
        // Rounding up can exceed 255: a whole word less is then the maximum.
        let padding = if padding > 255 { padding - 4 } else { padding };
        crate::rtp::write_padding(out, padding as u8);
        if padding > 0 {
            out[start] |= 0x20;
        }
        set_length(out, start);
    }
}

/// Appends a packet with the content appended by `body`, fills its last word with zeros, and truncates it to the length
/// field's range (256 kB, exceeded only by huge lists of the caller).
fn frame(out: &mut Vec<u8>, count: u8, packet_type: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0x80 | count & 0x1f, packet_type, 0, 0]);
    body(out);
    out.resize(start + (out.len() - start).next_multiple_of(4).min(MAX_PACKET), 0);
    set_length(out, start);
}

/// Sets the length field of the packet that starts at `start` and ends `out`.
fn set_length(out: &mut [u8], start: usize) {
    debug_assert!(
        (out.len() - start).is_multiple_of(4) && out.len() - start <= MAX_PACKET,
        "an RTCP packet is whole words"
    );
    let words = ((out.len() - start) / 4 - 1) as u16;
    out[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
}

/// A list that fills the rest of a packet with whole entries.
fn read_list<'a, T: crate::Entry>(r: Reader<'a>, field: &'static str) -> Result<List<'a, T>, Error> {
    let extra = r.len() % T::SIZE;
    if extra != 0 {
        return Err(Error::Truncated {
            field,
            offset: r.offset() + r.len() - extra,
            needed: T::SIZE,
            available: extra,
        });
    }
    Ok(List::from_wire(r.rest()))
}

#[cfg(test)]
mod tests;
