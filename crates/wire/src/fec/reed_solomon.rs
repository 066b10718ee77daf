//! The simple Reed-Solomon scheme of FECFRAME (RFC 6865): payload IDs, which state the symbol and block of a packet,
//! and the ADU information on which the code operates.
//!
//! A source packet is an application data unit (ADU), here a whole RTP packet from its fixed header to its padding,
//! followed by an explicit source FEC payload ID (section 5.1.2; RFC 6363, section 5.3). It is therefore no longer a
//! valid RTP packet: a receiver without the scheme would take the six bytes for payload, or the last one for the
//! padding count. Such packets need a payload type of their own, or a session in which all receivers support the
//! scheme.
//!
//! A repair packet is a repair FEC payload ID and one repair symbol (section 5.1.3), alone in a datagram of a separate
//! flow (RFC 6363, section 5.5). RFC 6865 defines no RTP payload format for it, which RFC 6363, section 5.4.1, leaves
//! to each scheme; with an RTP header, the header precedes the ID.
//!
//! Neither ID carries n, the total number of symbols in a block, although RFC 6363 allows it: a receiver need not know
//! the number of repair symbols.

use super::Octets;
use crate::Error;

/// Bytes of a payload ID, source or repair.
pub const PAYLOAD_ID: usize = 6;
/// Bytes before the ADU in the ADU information (section 4.3).
pub const ADU_HEADER: usize = 3;
/// FEC encoding ID (section 5.1.1.1).
pub const ENCODING_ID: u8 = 8;

/// The field GF(2^m) of the code: m of 2 to 16 bits, 8 by default (section 7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field(u8);

impl Field {
    /// A field whose elements have `m` bits; `None` if that is not 2 to 16.
    pub const fn new(m: u8) -> Option<Self> {
        if 2 <= m && m <= 16 { Some(Self(m)) } else { None }
    }
    /// Bits of an element (m).
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// Most symbols of a block, source and repair: 2^m - 1 (section 4.2).
    pub const fn max_symbols(self) -> u16 {
        ((1u32 << self.0) - 1) as u16
    }
    /// The block number after `block`, wrapping at 2^(32 - m) (section 5.2).
    pub const fn next_block(self, block: u32) -> u32 {
        block.wrapping_add(1) & (u32::MAX >> self.0)
    }
}

impl Default for Field {
    fn default() -> Self {
        Self(8)
    }
}

/// The symbol carried by a packet (sections 5.1.2 and 5.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PayloadId {
    /// The source block (SBN), 32 - m bits.
    pub block: u32,
    /// The symbol (ESI), m bits: a source symbol if below `source_symbols`, else a repair symbol.
    pub symbol: u16,
    /// Source symbols in the block (k).
    pub source_symbols: u16,
}

impl PayloadId {
    /// Whether it is a source symbol.
    pub const fn is_source(&self) -> bool {
        self.symbol < self.source_symbols
    }
    const fn is_sound(&self, field: Field) -> bool {
        let most = field.max_symbols();
        self.block <= u32::MAX >> field.0
            && self.symbol < most
            && 0 < self.source_symbols
            && self.source_symbols <= most
    }
    /// The six bytes; `None` if out of range for `field`.
    pub fn to_bytes(&self, field: Field) -> Option<[u8; PAYLOAD_ID]> {
        let [a, b, c, d] = (self.block.checked_shl(field.0.into())? | u32::from(self.symbol)).to_be_bytes();
        let [e, f] = self.source_symbols.to_be_bytes();
        self.is_sound(field).then_some([a, b, c, d, e, f])
    }
    /// Parses the six bytes, at `offset` of the packet.
    fn read(bytes: [u8; PAYLOAD_ID], offset: usize, source: bool, field: Field) -> Result<Self, Error> {
        let [a, b, c, d, e, f] = bytes;
        let bits = u32::from_be_bytes([a, b, c, d]);
        let most = field.max_symbols();
        // The mask has m bits, so it fits.
        let symbol = (bits & u32::from(most)) as u16;
        let id = Self { block: bits >> field.0, symbol, source_symbols: u16::from_be_bytes([e, f]) };
        let wrong = |name, at, value: u16, expected| {
            Err(Error::Value { field: name, offset: offset + at, value: value.into(), expected })
        };
        if id.source_symbols == 0 || id.source_symbols > most {
            return wrong("source block length", 4, id.source_symbols, "1 to 2^m - 1");
        }
        if symbol >= most || id.is_source() != source {
            let expected = if source { "below the source block length" } else { "from it up to 2^m - 2" };
            return wrong("encoding symbol ID", 0, symbol, expected);
        }
        Ok(id)
    }
}

/// Appends a FEC source packet, `adu` and its payload ID, and returns the number of zeros carried as a length.
///
/// The zeros are between the bytes of the ADU and the ID, which is the end of `out`. `None`, with nothing appended, if
/// the ID is not that of a source symbol of this field.
#[must_use]
pub fn write_source_into(adu: Octets<'_>, id: &PayloadId, field: Field, out: &mut Vec<u8>) -> Option<u32> {
    let id = id.to_bytes(field).filter(|_| id.is_source())?;
    out.extend_from_slice(adu.bytes);
    out.extend_from_slice(&id);
    Some(adu.zeros)
}

/// Splits a FEC source packet into ADU and payload ID; `zeros` precede the ID, as in [`write_source_into`].
///
/// # Errors
/// If it is shorter than an ID, or the ID is not that of a source symbol.
pub fn parse_source(packet: Octets<'_>, field: Field) -> Result<(Octets<'_>, PayloadId), Error> {
    let available = packet.bytes.len();
    let truncated = Error::Truncated { field: "source FEC payload ID", offset: 0, needed: PAYLOAD_ID, available };
    let (adu, id) = packet.bytes.split_last_chunk().ok_or(truncated)?;
    let id = PayloadId::read(*id, packet.len() - PAYLOAD_ID, true, field)?;
    Ok((Octets { bytes: adu, zeros: packet.zeros }, id))
}

/// Appends a FEC repair packet, the payload ID and a repair symbol, and returns the number of zeros that follow.
/// `None`, with nothing appended, if the ID is not that of a repair symbol of this field.
#[must_use]
pub fn write_repair_into(id: &PayloadId, symbol: Octets<'_>, field: Field, out: &mut Vec<u8>) -> Option<u32> {
    let id = id.to_bytes(field).filter(|_| !id.is_source())?;
    out.extend_from_slice(&id);
    out.extend_from_slice(symbol.bytes);
    Some(symbol.zeros)
}

/// Splits a FEC repair packet into payload ID and repair symbol.
///
/// # Errors
/// If it is shorter than an ID, or the ID is not that of a repair symbol.
pub fn parse_repair(packet: Octets<'_>, field: Field) -> Result<(PayloadId, Octets<'_>), Error> {
    let available = packet.bytes.len();
    let truncated = Error::Truncated { field: "repair FEC payload ID", offset: 0, needed: PAYLOAD_ID, available };
    let (id, symbol) = packet.bytes.split_first_chunk().ok_or(truncated)?;
    Ok((PayloadId::read(*id, 0, false, field)?, Octets { bytes: symbol, zeros: packet.zeros }))
}

/// Appends the ADU information of `adu`, the string protected by the code, without its padding, and returns the number
/// of zeros that follow (section 4.3). The longest of a block determines the symbol length; shorter ones count as
/// followed by zeros. `None`, with nothing appended, if the ADU exceeds 65,535 bytes.
#[must_use]
pub fn protect_into(flow: u8, adu: Octets<'_>, out: &mut Vec<u8>) -> Option<u32> {
    let [a, b] = u16::try_from(adu.len()).ok()?.to_be_bytes();
    out.extend_from_slice(&[flow, a, b]);
    out.extend_from_slice(adu.bytes);
    Some(adu.zeros)
}

/// The flow and the ADU in recovered ADU information. The ADU is the whole RTP packet, including sequence number and
/// SSRC; it must be validated by [`PacketView`](crate::rtp::PacketView).
///
/// # Errors
/// If the information is shorter than its length field, or its padding is not zero. Offsets count from its start.
pub fn rebuild(information: Octets<'_>) -> Result<(u8, Octets<'_>), Error> {
    let available = information.len();
    let truncated = Error::Truncated { field: "ADU information", offset: 0, needed: ADU_HEADER, available };
    let ([flow, length @ ..], rest) = information.prefix::<ADU_HEADER>().ok_or(truncated)?;
    let length = usize::from(u16::from_be_bytes(length));
    let (adu, padding) = rest.take("ADU", ADU_HEADER, length)?;
    padding.expect_zeros("padding of ADU information", ADU_HEADER + length)?;
    Ok((flow, adu))
}

/// Parameters that sender and receiver of the scheme must agree on (FEC scheme-specific information, section 5.1.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchemeInfo {
    /// Length of the symbols in bytes, or its upper bound (E).
    pub symbol_length: u16,
    /// Whether every symbol has exactly that length (S).
    pub strict: bool,
    /// The field of the code (m).
    pub field: Field,
}

impl SchemeInfo {
    /// The opaque form (figure 3).
    pub fn to_bytes(&self) -> [u8; 3] {
        let [a, b] = self.symbol_length.to_be_bytes();
        [a, b, u8::from(self.strict) << 7 | self.field.0]
    }
    /// Parses the opaque form.
    ///
    /// # Errors
    /// If m is not 2 to 16.
    pub fn from_bytes([a, b, c]: [u8; 3]) -> Result<Self, Error> {
        let (m, symbol_length) = (c & 0x7f, u16::from_be_bytes([a, b]));
        let field =
            Field::new(m).ok_or(Error::Value { field: "m", offset: 2, value: m.into(), expected: "2 to 16" })?;
        Ok(Self { symbol_length, strict: c & 0x80 != 0, field })
    }
    /// The form of SDP's `fssi` parameter (RFC 6364), as in `E:1400,S:0,m:8`.
    pub fn to_sdp(&self) -> String {
        format!("E:{},S:{},m:{}", self.symbol_length, u8::from(self.strict), self.field.0)
    }
}

#[cfg(test)]
mod tests;
