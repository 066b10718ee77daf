//! The simple Reed-Solomon scheme of FECFRAME (RFC 6865): the numbers that tell which symbol of which block a packet
//! carries, and the ADU information that the code works on.
//!
//! A source packet is an application data unit (ADU), here a whole RTP packet from its fixed header to its padding,
//! followed by an explicit source FEC payload ID (section 5.1.2; RFC 6363, section 5.3). So a source packet is not the
//! RTP packet any more: a receiver without the scheme takes the six bytes for payload, or their last one for the
//! padding count. Such packets need a payload type of their own, or a session whose receivers all know the scheme.
//!
//! A repair packet is a repair FEC payload ID and one repair symbol (section 5.1.3), in a datagram of a flow of its own
//! with nothing else in it (RFC 6363, section 5.5). RFC 6865 defines no RTP payload format for them, which RFC 6363,
//! section 5.4.1, leaves to each scheme; one that wants an RTP header puts it in front of the ID.
//!
//! Neither ID carries n, the number of all symbols of a block, although RFC 6363 schemes may: how many repair symbols
//! there are a receiver need not know.

use super::Octets;
use crate::Error;

/// Bytes of a payload ID, source or repair.
pub const PAYLOAD_ID: usize = 6;
/// Bytes before the ADU in its ADU information (section 4.3).
pub const ADU_HEADER: usize = 3;
/// FEC encoding ID (section 5.1.1.1).
pub const ENCODING_ID: u8 = 8;

/// The field GF(2^m) of the code: m of 2 to 16 bits, 8 by default (section 7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field(u8);

impl Field {
    /// A field whose elements have `m` bits; `None` where that is not 2 to 16.
    pub const fn new(m: u8) -> Option<Self> {
        if 2 <= m && m <= 16 { Some(Self(m)) } else { None }
    }
    /// Bits of an element (m).
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// Most symbols of a block, source and repair together: 2^m - 1 (section 4.2).
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

/// Which symbol a packet carries (sections 5.1.2 and 5.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PayloadId {
    /// The source block (SBN), 32 - m bits.
    pub block: u32,
    /// The symbol (ESI), m bits: below `source_symbols` a source symbol, else a repair symbol.
    pub symbol: u16,
    /// Source symbols in the block (k).
    pub source_symbols: u16,
}

impl PayloadId {
    /// Whether it stands for a source symbol.
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
    /// The six bytes; `None` where `field` cannot tell it.
    pub fn to_bytes(&self, field: Field) -> Option<[u8; PAYLOAD_ID]> {
        let [a, b, c, d] = (self.block.checked_shl(field.0.into())? | u32::from(self.symbol)).to_be_bytes();
        let [e, f] = self.source_symbols.to_be_bytes();
        self.is_sound(field).then_some([a, b, c, d, e, f])
    }
    /// Reads the six bytes, which stand `offset` bytes into the packet.
    fn read(bytes: [u8; PAYLOAD_ID], offset: usize, source: bool, field: Field) -> Result<Self, Error> {
        let [a, b, c, d, e, f] = bytes;
        let bits = u32::from_be_bytes([a, b, c, d]);
        let most = field.max_symbols();
        // The mask is of m bits, so that it fits.
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

/// Appends a FEC source packet, `adu` and its payload ID, and gives the zeros that are not there.
///
/// Where there are some, they stand between the bytes of the ADU and the ID, which is then still the last thing in
/// `out`. `None`, and nothing is appended, where the ID is of no source symbol of this field.
#[must_use]
pub fn write_source_into(adu: Octets<'_>, id: &PayloadId, field: Field, out: &mut Vec<u8>) -> Option<u32> {
    let id = id.to_bytes(field).filter(|_| id.is_source())?;
    out.extend_from_slice(adu.bytes);
    out.extend_from_slice(&id);
    Some(adu.zeros)
}

/// Takes a FEC source packet apart into ADU and payload ID; `zeros` stand before the ID, as [`write_source_into`] has
/// them.
///
/// # Errors
/// Where there is no room for an ID, or it is of no source symbol.
pub fn parse_source(packet: Octets<'_>, field: Field) -> Result<(Octets<'_>, PayloadId), Error> {
    let available = packet.bytes.len();
    let truncated = Error::Truncated { field: "source FEC payload ID", offset: 0, needed: PAYLOAD_ID, available };
    let (adu, id) = packet.bytes.split_last_chunk().ok_or(truncated)?;
    let id = PayloadId::read(*id, packet.len() - PAYLOAD_ID, true, field)?;
    Ok((Octets { bytes: adu, zeros: packet.zeros }, id))
}

/// Appends a FEC repair packet, the payload ID and a repair symbol, and gives the zeros behind it. `None`, and nothing
/// is appended, where the ID is of no repair symbol of this field.
#[must_use]
pub fn write_repair_into(id: &PayloadId, symbol: Octets<'_>, field: Field, out: &mut Vec<u8>) -> Option<u32> {
    let id = id.to_bytes(field).filter(|_| !id.is_source())?;
    out.extend_from_slice(&id);
    out.extend_from_slice(symbol.bytes);
    Some(symbol.zeros)
}

/// Takes a FEC repair packet apart into payload ID and repair symbol.
///
/// # Errors
/// Where there is no room for an ID, or it is of no repair symbol.
pub fn parse_repair(packet: Octets<'_>, field: Field) -> Result<(PayloadId, Octets<'_>), Error> {
    let available = packet.bytes.len();
    let truncated = Error::Truncated { field: "repair FEC payload ID", offset: 0, needed: PAYLOAD_ID, available };
    let (id, symbol) = packet.bytes.split_first_chunk().ok_or(truncated)?;
    Ok((PayloadId::read(*id, 0, false, field)?, Octets { bytes: symbol, zeros: packet.zeros }))
}

/// Appends the ADU information of `adu`, the string that the code protects, without its padding, and gives the zeros
/// behind it (section 4.3). A block's longest makes the length of its symbols; shorter ones are taken as if zeros
/// followed. `None`, and nothing is appended, where the ADU has more than 65,535 bytes.
#[must_use]
pub fn protect_into(flow: u8, adu: Octets<'_>, out: &mut Vec<u8>) -> Option<u32> {
    let [a, b] = u16::try_from(adu.len()).ok()?.to_be_bytes();
    out.extend_from_slice(&[flow, a, b]);
    out.extend_from_slice(adu.bytes);
    Some(adu.zeros)
}

/// The flow and the ADU of recovered ADU information. The ADU is the whole RTP packet, sequence number and SSRC
/// included; whether it is a sound one is for [`PacketView`](crate::rtp::PacketView) to say.
///
/// # Errors
/// Where the information is shorter than its length says, or its padding is not zero. Offsets count from its start.
pub fn rebuild(information: Octets<'_>) -> Result<(u8, Octets<'_>), Error> {
    let available = information.len();
    let truncated = Error::Truncated { field: "ADU information", offset: 0, needed: ADU_HEADER, available };
    let ([flow, length @ ..], rest) = information.prefix::<ADU_HEADER>().ok_or(truncated)?;
    let length = usize::from(u16::from_be_bytes(length));
    let (adu, padding) = rest.take("ADU", ADU_HEADER, length)?;
    padding.expect_zeros("padding of ADU information", ADU_HEADER + length)?;
    Ok((flow, adu))
}

/// What the scheme's sender and receiver must agree upon (FEC scheme-specific information, section 5.1.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchemeInfo {
    /// Length of the symbols in bytes, or the most that it may be (E).
    pub symbol_length: u16,
    /// Whether every symbol has that length (S).
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
    /// Reads the opaque form.
    ///
    /// # Errors
    /// Where m is not 2 to 16.
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
