//! The sliding-window random linear codes of FECFRAME (RFC 8681): the payload ID of repair packets, and the parameters of the
//! scheme.
//!
//! A repair packet is a repair FEC payload ID and repair symbols (section 4.1.3). RFC 8681 defines no RTP payload format;
//! here the ID is the payload header of packets of a repair stream, and one symbol follows. `docs/wire/rlc.md` has the
//! mapping: source packets are unchanged, without the explicit source FEC payload ID of section 4.1.2. A repair packet of some of its
//! window's packets has a mask besides, which RFC 8681 has not.

use super::Octets;
use crate::Error;

/// Bytes of a repair FEC payload ID.
pub const REPAIR_ID: usize = 8;
/// FEC encoding ID of the scheme over GF(2) (section 5.1.1.1).
pub const ENCODING_ID_GF2: u8 = 9;
/// FEC encoding ID of the scheme over GF(2^8) (section 4.1.1.1).
pub const ENCODING_ID_GF256: u8 = 10;
/// Most source symbols of a window, in 12 bits.
pub const MAX_SYMBOLS: u16 = 0xfff;

/// How a repair symbol was made (figure 8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepairId {
    /// Repair_Key: the seed of the coefficients.
    pub key: u16,
    /// DT, 0 to 15: `(DT + 1) / 16` of the coefficients are nonzero on average.
    pub density: u8,
    /// NSS: source symbols of the encoding window, 1 to [`MAX_SYMBOLS`].
    pub symbols: u16,
    /// FSS_ESI: the first of them.
    pub first: u32,
}

impl RepairId {
    /// The eight bytes; `None` if the density or the number of symbols is out of range.
    pub fn to_bytes(&self) -> Option<[u8; REPAIR_ID]> {
        let is_sound = self.density <= 15 && (1..=MAX_SYMBOLS).contains(&self.symbols);
        let [a, b] = self.key.to_be_bytes();
        let [c, d] = (u16::from(self.density) << 12 | self.symbols & MAX_SYMBOLS).to_be_bytes();
        let [e, f, g, h] = self.first.to_be_bytes();
        is_sound.then_some([a, b, c, d, e, f, g, h])
    }
    /// Parses the eight bytes.
    ///
    /// # Errors
    /// The window is empty.
    pub fn from_bytes([a, b, c, d, e, f, g, h]: [u8; REPAIR_ID]) -> Result<Self, Error> {
        let both = u16::from_be_bytes([c, d]);
        let (density, symbols) = ((both >> 12) as u8, both & MAX_SYMBOLS);
        if symbols == 0 {
            return Err(Error::Value { field: "NSS", offset: 2, value: 0, expected: "1 to 4095 source symbols" });
        }
        Ok(Self { key: u16::from_be_bytes([a, b]), density, symbols, first: u32::from_be_bytes([e, f, g, h]) })
    }
}

/// Appends a repair packet, the ID and one repair symbol, and returns the number of zeros that follow. `None`, with nothing
/// appended, if the ID is out of range.
#[must_use]
pub fn write_repair_into(id: &RepairId, symbol: Octets<'_>, out: &mut Vec<u8>) -> Option<u32> {
    let id = id.to_bytes()?;
    out.extend_from_slice(&id);
    out.extend_from_slice(symbol.bytes);
    Some(symbol.zeros)
}

/// Splits a repair packet into ID and repair symbol.
///
/// # Errors
/// It is shorter than an ID, or its window is empty.
pub fn parse_repair(packet: Octets<'_>) -> Result<(RepairId, Octets<'_>), Error> {
    let available = packet.bytes.len();
    let truncated = Error::Truncated { field: "repair FEC payload ID", offset: 0, needed: REPAIR_ID, available };
    let (id, symbol) = packet.bytes.split_first_chunk().ok_or(truncated)?;
    Ok((RepairId::from_bytes(*id)?, Octets { bytes: symbol, zeros: packet.zeros }))
}

/// The source symbols of its window that a repair packet combines: a bit for each, the first in the highest bit of the first octet.
///
/// An extension of RFC 8681, whose windows have no gaps; `docs/wire/rlc.md`, section 4.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SymbolMask<'a>(&'a [u8]);

impl<'a> SymbolMask<'a> {
    /// A mask of the window's `symbols`. The bits of its first and last symbol are set, those behind it are not.
    ///
    /// # Errors
    /// Another length, or bits that are not as said.
    pub fn new(bytes: &'a [u8], symbols: u16) -> Result<Self, Error> {
        let wrong = |value: u32, expected| {
            Err(Error::Value { field: "RLC mask", offset: REPAIR_ID, value: value.into(), expected })
        };
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
            return wrong(0, "an octet for eight symbols");
        };
        if bytes.len() != usize::from(symbols).div_ceil(8) {
            return wrong(bytes.len() as u32, "an octet for eight symbols");
        }
        let behind = (8 - symbols % 8) % 8;
        if first & 0x80 == 0 || u32::from(behind) != last.trailing_zeros() {
            return wrong(u32::from(*last), "the bits of the window's ends, and none behind");
        }
        Ok(Self(bytes))
    }
    /// The positions of the symbols in the window, from 0, in order.
    pub fn positions(&self) -> impl Iterator<Item = u16> + use<'a> {
        let bytes = self.0;
        (0..bytes.len() as u16 * 8).filter(move |i| bytes[usize::from(i / 8)] & (0x80 >> (i % 8)) != 0)
    }
}

/// Appends a repair packet of some of its window's symbols: the ID, the mask by the symbols' positions, and the repair symbol.
/// `None`, with nothing appended, if the ID is out of range, or the positions do not have the window's first and last, or others.
#[must_use]
pub fn write_masked_into(
    id: &RepairId,
    positions: impl Iterator<Item = u16>,
    symbol: Octets<'_>,
    out: &mut Vec<u8>,
) -> Option<u32> {
    let start = out.len();
    out.extend_from_slice(&id.to_bytes()?);
    out.resize(start + REPAIR_ID + usize::from(id.symbols).div_ceil(8), 0);
    let mask = &mut out[start + REPAIR_ID..];
    let mut is_inside = true;
    for position in positions {
        match mask.get_mut(usize::from(position / 8)) {
            Some(octet) => *octet |= 0x80 >> (position % 8),
            None => is_inside = false,
        }
    }
    if !is_inside || SymbolMask::new(mask, id.symbols).is_err() {
        out.truncate(start);
        return None;
    }
    out.extend_from_slice(symbol.bytes);
    Some(symbol.zeros)
}

/// Splits a repair packet of some of its window's symbols into ID, mask and repair symbol.
///
/// # Errors
/// As [`parse_repair`] and [`SymbolMask::new`]; or it is shorter than its mask.
pub fn parse_masked(packet: Octets<'_>) -> Result<(RepairId, SymbolMask<'_>, Octets<'_>), Error> {
    let (id, rest) = parse_repair(packet)?;
    let (available, needed) = (rest.bytes.len(), usize::from(id.symbols).div_ceil(8));
    let truncated = Error::Truncated { field: "RLC mask", offset: REPAIR_ID, needed, available };
    let (mask, symbol) = rest.bytes.split_at_checked(needed).ok_or(truncated)?;
    Ok((id, SymbolMask::new(mask, id.symbols)?, Octets { bytes: symbol, zeros: rest.zeros }))
}

/// Parameters that sender and receiver agree on (FEC scheme-specific information, section 4.1.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchemeInfo {
    /// Length of the symbols in bytes (E).
    pub symbol_length: u16,
    /// WSR: 255ths of the decoding window that the encoding window takes, by which ends may derive their sizes (appendix C);
    /// 0 if they do not.
    pub window_ratio: u8,
}

impl SchemeInfo {
    /// The opaque form (figure 4).
    pub const fn to_bytes(&self) -> [u8; 3] {
        let [a, b] = self.symbol_length.to_be_bytes();
        [a, b, self.window_ratio]
    }
    /// Parses the opaque form.
    pub const fn from_bytes([a, b, window_ratio]: [u8; 3]) -> Self {
        Self { symbol_length: u16::from_be_bytes([a, b]), window_ratio }
    }
    /// The form of SDP's `fssi` parameter (RFC 6364), as in `E:1400,WSR:191`.
    pub fn to_sdp(&self) -> String {
        format!("E:{},WSR:{}", self.symbol_length, self.window_ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;
    use proptest::prelude::*;

    #[test]
    fn the_format_of_figure_8() {
        let id = RepairId { key: 0x0102, density: 15, symbols: 0x034, first: 0x0506_0708 };
        let mut out = vec![];
        assert_eq!(write_repair_into(&id, Octets { bytes: &[9], zeros: 3 }, &mut out), Some(3));
        assert_eq!(out, hex("0102 f034 05060708 09"));
        assert_eq!(parse_repair(Octets { bytes: &out, zeros: 3 }), Ok((id, Octets { bytes: &[9], zeros: 3 })));
        // An empty symbol, of a window of empty strings.
        assert!(parse_repair(Octets::new(&out[..8])).is_ok_and(|(_, symbol)| symbol.is_empty()));
    }

    #[test]
    fn ranges_of_fields() {
        let id = RepairId { key: 1, density: 15, symbols: MAX_SYMBOLS, first: u32::MAX };
        assert_eq!(id.to_bytes().map(RepairId::from_bytes), Some(Ok(id)));
        for wrong in
            [RepairId { density: 16, ..id }, RepairId { symbols: 0, ..id }, RepairId { symbols: MAX_SYMBOLS + 1, ..id }]
        {
            let mut out = vec![];
            assert_eq!((write_repair_into(&wrong, Octets::default(), &mut out), out), (None, vec![]), "{wrong:?}");
        }
        assert!(matches!(
            parse_repair(Octets::new(&hex("0001 f000 00000000 11"))),
            Err(Error::Value { field: "NSS", .. })
        ));
        // Zeros carried as a length are no header.
        let short = Octets { bytes: &hex("0001 f001 0000"), zeros: 100 };
        assert!(matches!(parse_repair(short), Err(Error::Truncated { needed: 8, available: 6, .. })));
    }

    #[test]
    fn a_mask_names_the_symbols_of_a_window() {
        let id = RepairId { key: 0x0102, density: 15, symbols: 11, first: 9 };
        let symbol = Octets { bytes: &[9], zeros: 3 };
        let mut out = vec![];
        assert_eq!(write_masked_into(&id, [0, 3, 8, 10].into_iter(), symbol, &mut out), Some(3));
        assert_eq!(out, hex("0102 f00b 00000009 90a0 09"));
        let (read, mask, rest) = parse_masked(Octets { bytes: &out, zeros: 3 }).expect("what was written");
        assert_eq!((read, mask.positions().collect::<Vec<_>>(), rest), (id, vec![0, 3, 8, 10], symbol));
        // Without its first or last symbol, or beyond, a window is a shorter or longer one.
        for positions in [&[1, 10][..], &[0, 9], &[0, 10, 11], &[0, 10, 16], &[]] {
            let mut out = vec![7];
            assert_eq!((write_masked_into(&id, positions.iter().copied(), symbol, &mut out), out), (None, vec![7]));
        }
        for (bytes, is_short) in
            [("0102 f00b 00000009 90", true), ("0102 f00b 00000009 10a0", false), ("0102 f00b 00000009 90b0", false)]
        {
            let e = parse_masked(Octets::new(&hex(bytes))).expect_err(bytes);
            assert_eq!(matches!(e, Error::Truncated { field: "RLC mask", .. }), is_short, "{e}");
        }
    }

    #[test]
    fn scheme_information_is_that_of_figure_4() {
        let info = SchemeInfo { symbol_length: 1_400, window_ratio: 191 };
        assert_eq!(info.to_bytes().to_vec(), hex("0578 bf"));
        assert_eq!(SchemeInfo::from_bytes(info.to_bytes()), info);
        assert_eq!(info.to_sdp(), "E:1400,WSR:191");
    }

    proptest! {
        #[test]
        fn masks_that_are_read_are_written_again(bytes in proptest::collection::vec(any::<u8>(), 0..60), count in 1..300u16) {
            let mut bytes = bytes;
            if let [_, _, high, low, ..] = &mut bytes[..] {
                [*high, *low] = (0xf000 | count).to_be_bytes();
            }
            if let Ok((id, mask, symbol)) = parse_masked(Octets::new(&bytes)) {
                let mut out = vec![];
                prop_assert_eq!(write_masked_into(&id, mask.positions(), symbol, &mut out), Some(0));
                prop_assert_eq!(out, bytes);
            }
        }

        #[test]
        fn what_is_read_is_written_again(bytes in proptest::collection::vec(any::<u8>(), 0..40), zeros in 0..2_000_u32) {
            if let Ok((id, symbol)) = parse_repair(Octets { bytes: &bytes, zeros }) {
                let mut out = vec![];
                prop_assert_eq!(write_repair_into(&id, symbol, &mut out), Some(zeros));
                prop_assert_eq!(out, bytes);
            } else {
                prop_assert!(bytes.len() < REPAIR_ID || bytes[2] & 15 == 0 && bytes[3] == 0);
            }
        }
    }
}
