//! RTP packets (RFC 3550, section 5.1) with header extensions (RFC 8285).
//!
//! [`Header`] writes and [`PacketView`] parses. A payload may be absent, so that a simulated datagram can carry its
//! media as a length only; see [`PacketView::parse_header`] for one without padding too.

pub mod extension;
pub mod mprtp;
pub mod retransmission;

use crate::read::{Reader, be16, be32};
use crate::{Entries, Error, List};
use core::ops::Range;
use extension::{Element, Elements, ONE_BYTE, TWO_BYTE};
use weir_units::cold_path;

/// Bytes of the fixed header.
pub const FIXED_HEADER: usize = 12;
/// Most contributing sources in a header.
pub const MAX_CSRCS: usize = 15;

/// A header to write.
///
/// ```
/// use weir_wire::rtp::{Header, PacketView};
/// let header = Header { payload_type: 96, sequence: 7, ssrc: 1, transport_sequence: Some((5, 900)), ..Header::default() };
/// let mut out = Vec::new();
/// header.write_into(&mut out);
/// assert_eq!(PacketView::parse(&out)?.transport_sequence(5), Some(900));
/// # Ok::<(), weir_wire::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header<'a> {
    /// Payload type, 7 bits.
    pub payload_type: u8,
    /// Marker bit.
    pub marker: bool,
    /// Sequence number.
    pub sequence: u16,
    /// Media time, in units of the payload's clock.
    pub timestamp: u32,
    /// Synchronisation source.
    pub ssrc: u32,
    /// Contributing sources; at most fifteen are written.
    pub csrcs: &'a [u32],
    /// Local identifier (0 leaves the element out) and transport-wide sequence number.
    pub transport_sequence: Option<(u8, u16)>,
    /// Local identifier (0 leaves the element out) and absolute send time, 24 bits in units of 2^-18 s.
    pub abs_send_time: Option<(u8, u32)>,
    /// Local identifier (0 leaves the element out) and number in a subflow.
    pub subflow: Option<(u8, mprtp::SubflowNumber)>,
    /// Elements besides those above.
    pub elements: &'a [Element<'a>],
    /// Padding bytes that will follow the payload; sets the P bit if not 0. See [`write_padding`].
    pub padding: u8,
}

impl Header<'_> {
    /// Appends header and extensions; the caller appends, or only counts, payload and padding.
    ///
    /// Extensions use the one-byte form if all elements allow it, otherwise the two-byte form.
    // Not a call: where the fields are known to be absent, so is their code.
    #[inline(always)]
    pub fn write_into(&self, out: &mut Vec<u8>) {
        let csrcs = &self.csrcs[..self.csrcs.len().min(MAX_CSRCS)];
        // Fields, and below whole words: loading together bytes that were stored one by one would stall.
        let transport = match self.transport_sequence {
            Some((id, sequence)) if id != 0 => Some((id, sequence)),
            _ => None,
        };
        let send_time = match self.abs_send_time {
            Some((id, time)) if id != 0 => Some((id, time)),
            _ => None,
        };
        let subflow = match self.subflow {
            Some((id, number)) if id != 0 => Some((id, number.to_data())),
            _ => None,
        };
        let extended = transport.is_some() || send_time.is_some() || subflow.is_some() || !self.elements.is_empty();

        let first = 0x80 | u64::from(self.padding != 0) << 5 | u64::from(extended) << 4 | csrcs.len() as u64;
        let second = u64::from(self.marker) << 7 | u64::from(self.payload_type & 0x7f);
        let word = first << 56 | second << 48 | u64::from(self.sequence) << 32 | u64::from(self.timestamp);
        let fixed = |out: &mut Vec<u8>| {
            out.extend_from_slice(&word.to_be_bytes());
            out.extend_from_slice(&self.ssrc.to_be_bytes());
        };
        if !extended {
            fixed(out);
            csrcs.iter().for_each(|c| out.extend_from_slice(&c.to_be_bytes()));
            return;
        }
        let short = transport.is_none_or(|(id, _)| id < 15)
            && send_time.is_none_or(|(id, _)| id < 15)
            && subflow.is_none_or(|(id, _)| id < 15);
        if !(short && csrcs.is_empty() && self.elements.is_empty()) {
            cold_path();
            fixed(out);
            csrcs.iter().for_each(|c| out.extend_from_slice(&c.to_be_bytes()));
            self.write_extension(transport, send_time, subflow, out);
            return;
        }
        // The fixed header and the named elements in the one-byte form: in place, without a capacity check in between. A copy
        // would wait for the bytes stored one by one.
        let start = out.len();
        out.extend_from_slice(&[0; 32]);
        let Some(head) = out[start..].first_chunk_mut::<32>() else { return };
        head[..8].copy_from_slice(&word.to_be_bytes());
        head[8..12].copy_from_slice(&self.ssrc.to_be_bytes());
        head[12..14].copy_from_slice(&ONE_BYTE.to_be_bytes());
        let mut at = 16;
        if let Some((id, sequence)) = transport {
            let [a, b] = sequence.to_be_bytes();
            head[at..at + 3].copy_from_slice(&[id << 4 | 1, a, b]);
            at += 3;
        }
        if let Some((id, time)) = send_time {
            let [_, a, b, c] = time.to_be_bytes();
            head[at..at + 4].copy_from_slice(&[id << 4 | 2, a, b, c]);
            at += 4;
        }
        if let Some((id, data)) = subflow {
            head[at] = id << 4 | (mprtp::SUBFLOW_SIZE - 1) as u8;
            head[at + 1..at + 1 + mprtp::SUBFLOW_SIZE].copy_from_slice(&data);
            at += 1 + mprtp::SUBFLOW_SIZE;
        }
        let end = at.next_multiple_of(4);
        head[15] = ((end - 16) / 4) as u8;
        out.truncate(start + end);
    }

    /// The general form of the extension. By value, so that a header that does not need it can stay in registers.
    #[cold]
    #[inline(never)]
    fn write_extension(
        self,
        transport: Option<(u8, u16)>,
        send_time: Option<(u8, u32)>,
        subflow: Option<(u8, [u8; mprtp::SUBFLOW_SIZE])>,
        out: &mut Vec<u8>,
    ) {
        let transport = transport.map(|(id, sequence)| (id, sequence.to_be_bytes()));
        let send_time = send_time.map(|(id, time)| (id, time.to_be_bytes()));
        let named = transport.iter().filter_map(|(id, data)| Element::new(*id, data));
        let named = named.chain(send_time.iter().filter_map(|(id, data)| Element::new(*id, &data[1..])));
        let named = named.chain(subflow.iter().filter_map(|(id, data)| Element::new(*id, data)));
        let all = named.chain(self.elements.iter().copied());
        let short = all.clone().all(|e| e.is_short());

        let start = out.len();
        out.extend_from_slice(&if short { ONE_BYTE } else { TWO_BYTE }.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        for e in all {
            // The length field counts 32-bit words in 16 bits; what exceeds it is left out.
            if out.len() - start + 2 + e.data().len() > 65_535 * 4 {
                break;
            }
            match short {
                true => out.push(e.id() << 4 | (e.data().len() - 1) as u8),
                false => out.extend_from_slice(&[e.id(), e.data().len() as u8]),
            }
            out.extend_from_slice(e.data());
        }
        out.resize(start + (out.len() - start).next_multiple_of(4), 0);
        let words = ((out.len() - start) / 4 - 1) as u16;
        out[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
    }
}

/// Appends `n` bytes of padding, the last of which holds their count (RFC 3550, section 5.1).
pub fn write_padding(out: &mut Vec<u8>, n: u8) {
    if let Some(zeros) = n.checked_sub(1) {
        out.resize(out.len() + usize::from(zeros), 0);
        out.push(n);
    }
}

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    bytes: &'a [u8],
    payload: usize,
    padding: u8,
}

impl<'a> PacketView<'a> {
    /// Parses a whole packet; checks version, lengths and padding. An empty payload is valid.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut view = Self::parse_header(bytes)?;
        if bytes[0] & 0x20 != 0 {
            cold_path();
            let available = bytes.len() - view.payload;
            let padding = if available == 0 { 0 } else { bytes[bytes.len() - 1] };
            if padding == 0 || usize::from(padding) > available {
                return Err(Error::Value {
                    field: "RTP padding count",
                    offset: bytes.len() - 1,
                    value: padding.into(),
                    expected: "1 to the bytes after the header",
                });
            }
            view.padding = padding;
        }
        Ok(view)
    }

    /// Parses a header without its payload and padding, or with part of them only.
    ///
    /// [`PacketView::payload`] then returns the bytes present, and [`PacketView::padding`] 0.
    #[inline]
    pub fn parse_header(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes, 0);
        let fixed = reader.take("RTP fixed header", FIXED_HEADER)?;
        if fixed[0] >> 6 != 2 {
            cold_path();
            return Err(Error::Value { field: "RTP version", offset: 0, value: (fixed[0] >> 6).into(), expected: "2" });
        }
        reader.take("RTP CSRC list", usize::from(fixed[0] & 0xf) * 4)?;
        if fixed[0] & 0x10 != 0 {
            let words = be16(reader.take("RTP extension header", 4)?, 2);
            reader.take("RTP extension", usize::from(words) * 4)?;
        }
        Ok(Self { bytes, payload: reader.offset(), padding: 0 })
    }

    /// Payload type, 7 bits.
    pub const fn payload_type(&self) -> u8 {
        self.bytes[1] & 0x7f
    }
    /// Marker bit.
    pub const fn marker(&self) -> bool {
        self.bytes[1] & 0x80 != 0
    }
    /// Sequence number.
    #[inline]
    pub fn sequence(&self) -> u16 {
        be16(self.bytes, 2)
    }
    /// Media time, in units of the payload's clock.
    #[inline]
    pub fn timestamp(&self) -> u32 {
        be32(self.bytes, 4)
    }
    /// Synchronisation source.
    #[inline]
    pub fn ssrc(&self) -> u32 {
        be32(self.bytes, 8)
    }
    /// Contributing sources.
    pub fn csrcs(&self) -> Entries<'a, u32> {
        List::from_wire(&self.bytes[FIXED_HEADER..self.after_csrcs()]).iter()
    }
    /// The raw header extension: its "defined by profile" field and its data.
    #[inline]
    pub fn raw_extension(&self) -> Option<(u16, &'a [u8])> {
        let at = self.after_csrcs();
        (self.bytes[0] & 0x10 != 0).then(|| (be16(self.bytes, at), &self.bytes[at + 4..self.payload]))
    }
    /// The elements of the header extension.
    #[inline]
    pub fn extensions(&self) -> Elements<'a> {
        let (profile, data) = self.raw_extension().unwrap_or((0, &[]));
        Elements::new(profile, data)
    }
    /// The data of the first element with identifier `id`.
    #[inline]
    pub fn extension(&self, id: u8) -> Option<&'a [u8]> {
        self.extensions().find(|e| e.id() == id).map(|e| e.data())
    }
    /// Where the data of the first element with identifier `id` is in the packet.
    pub fn extension_range(&self, id: u8) -> Option<Range<usize>> {
        let mut elements = self.extensions();
        let element = elements.find(|e| e.id() == id)?;
        let end = self.payload - elements.left();
        Some(end - element.data().len()..end)
    }
    /// The transport-wide sequence number, signalled as element `id`.
    #[inline]
    pub fn transport_sequence(&self, id: u8) -> Option<u16> {
        // Where most senders have it: first, in the one-byte form, without contributing sources.
        if self.bytes[0] & 0x1f == 0x10
            && let [0xbe, 0xde, _, _, first, a, b, ..] = self.bytes[FIXED_HEADER..self.payload]
            && (1..15).contains(&id)
            && first == id << 4 | 1
        {
            return Some(u16::from_be_bytes([a, b]));
        }
        cold_path();
        self.extension(id).and_then(extension::read_transport_sequence)
    }
    /// The absolute send time, signalled as element `id`: 24 bits in units of 2^-18 s.
    #[inline]
    pub fn abs_send_time(&self, id: u8) -> Option<u32> {
        self.extension(id).and_then(extension::read_abs_send_time)
    }
    /// Offset of the payload.
    pub const fn header_len(&self) -> usize {
        self.payload
    }
    /// The payload without padding.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.payload..self.bytes.len() - usize::from(self.padding)]
    }
    /// Padding bytes after the payload.
    pub const fn padding(&self) -> u8 {
        self.padding
    }
    /// Whether the header announces padding.
    pub const fn padding_bit(&self) -> bool {
        self.bytes[0] & 0x20 != 0
    }

    fn after_csrcs(&self) -> usize {
        FIXED_HEADER + usize::from(self.bytes[0] & 0xf) * 4
    }
}

#[cfg(test)]
mod tests;
