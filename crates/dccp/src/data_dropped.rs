//! Data Dropped: which packets' data did not reach the application, and why (RFC 4340, section 11.7).

use weir_units::Seq48;

/// Why data was dropped, 0 to 7 (RFC 4340, table 7); 4 to 6 are reserved. Congestion control treats all codes without a
/// rule of their own in section 11.7.2 as marks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DropCode(u8);

impl DropCode {
    /// The protocol forbade it, as by checksum coverage: no congestion.
    pub const PROTOCOL_CONSTRAINTS: Self = Self(0);
    /// The application no longer listens: the sender should send no more data.
    pub const APPLICATION_NOT_LISTENING: Self = Self(1);
    /// No room in a receive buffer: the sender should slow down by one packet per round trip for each.
    pub const RECEIVE_BUFFER: Self = Self(2);
    /// It was corrupt.
    pub const CORRUPT: Self = Self(3);
    /// It was corrupt, and was delivered all the same.
    pub const DELIVERED_CORRUPT: Self = Self(7);

    /// The code of these three bits.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 7)
    }
    /// Its three bits.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// Packets in a row that fared alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The newest of them.
    pub newest: Seq48,
    /// Number of packets: 1 to 128, or to 16 if their data was dropped.
    pub len: u64,
    /// Why their data was dropped; `None` for packets whose data, if received, was delivered.
    pub code: Option<DropCode>,
}

impl Block {
    /// The oldest of them.
    pub const fn oldest(&self) -> Seq48 {
        self.newest.sub(self.len - 1)
    }
}

const DROP: u8 = 0x80;
const MAX_NORMAL: u64 = 128;
const MAX_DROPPED: u64 = 16;

/// The blocks of the options on a packet that acknowledges `acknowledged`, newest first; the data of several options is
/// concatenated. Packets beyond them count as delivered.
pub fn blocks(acknowledged: Seq48, bytes: &[u8]) -> impl Iterator<Item = Block> + Clone + '_ {
    let mut newest = acknowledged;
    bytes.iter().map(move |&b| {
        let (len, code) = if b & DROP == 0 {
            (u64::from(b) + 1, None)
        } else {
            (u64::from(b & 0xf) + 1, Some(DropCode::from_bits(b >> 4)))
        };
        let block = Block { newest, len, code };
        newest = newest.sub(len);
        block
    })
}

/// Appends the next older packets to `out`, extending its last block if possible. At most `len` divided by 16 bytes are
/// added, so bound it.
pub fn push(out: &mut Vec<u8>, code: Option<DropCode>, mut len: u64) {
    let (kind, max) = match code {
        None => (0, MAX_NORMAL),
        Some(c) => (DROP | c.bits() << 4, MAX_DROPPED),
    };
    let mask = (max - 1) as u8;
    if let Some(last) = out.last_mut().filter(|b| **b & !mask == kind) {
        let more = len.min(u64::from(mask - (*last & mask)));
        *last += more as u8;
        len -= more;
    }
    while len > 0 {
        let run = len.min(max);
        out.push(kind | (run - 1) as u8);
        len -= run;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(acknowledged: u64, bytes: &[u8]) -> Vec<(u64, u64, Option<u8>)> {
        blocks(Seq48::new(acknowledged), bytes)
            .map(|b| (b.newest.get(), b.oldest().get(), b.code.map(DropCode::bits)))
            .collect()
    }

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 4340, section 11.7: acknowledgement number 100, blocks 0, 160, 3, 162. Its last line says 95 to 93,
        // although 95 has just been reported received: by its own encoding it is 94 to 92.
        let reported = decoded(100, &[0, 160, 3, 162]);
        assert_eq!(reported, [(100, 100, None), (99, 99, Some(2)), (98, 95, None), (94, 92, Some(2))]);
    }

    #[test]
    fn blocks_wrap_with_the_numbers() {
        const LAST: u64 = (1 << 48) - 1;
        assert_eq!(decoded(1, &[0xff, 0x7f]), [(1, LAST - 13, Some(7)), (LAST - 14, LAST - 141, None)]);
    }

    #[test]
    fn pushed_packets_use_the_fewest_blocks() {
        let mut out = vec![];
        for (code, len) in [(None, 100), (None, 60), (Some(2), 15), (Some(2), 3), (Some(3), 1), (None, 0), (None, 128)]
        {
            push(&mut out, code.map(DropCode::from_bits), len);
        }
        assert_eq!(out, [127, 31, 0xaf, 0xa1, 0xb0, 127]);
        let lens: Vec<_> = blocks(Seq48::new(1_000), &out).map(|b| (b.code.map(DropCode::bits), b.len)).collect();
        assert_eq!(lens, [(None, 128), (None, 32), (Some(2), 16), (Some(2), 2), (Some(3), 1), (None, 128)]);
    }
}
