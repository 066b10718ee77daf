//! CRC-32c, for the Data Checksum option (RFC 4340, section 9.3) as SCTP has it (RFC 3309).

/// Castagnoli's polynomial, 0x1EDC6F41, its bits in reverse: the highest power is bit 0.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]`: the effect of byte `b` on the remainder when `k` bytes follow it.
const TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut b = 0;
    while b < 256 {
        let mut crc = b as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = times_x(crc);
            bit += 1;
        }
        tables[0][b] = crc;
        b += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut b = 0;
        while b < 256 {
            let before = tables[k - 1][b];
            tables[k][b] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            b += 1;
        }
        k += 1;
    }
    tables
};

/// `POWERS[k]`: x to the power of 8 * 2^k, by which 2^k zero bytes multiply the remainder.
const POWERS: [u32; 32] = {
    let mut powers = [0; 32];
    // x^8.
    powers[0] = 1 << (31 - 8);
    let mut k = 1;
    while k < 32 {
        powers[k] = product(powers[k - 1], powers[k - 1]);
        k += 1;
    }
    powers
};

const fn times_x(a: u32) -> u32 {
    a >> 1 ^ if a & 1 == 1 { POLYNOMIAL } else { 0 }
}

/// The product of two polynomials modulo the generator.
const fn product(a: u32, mut b: u32) -> u32 {
    let (mut sum, mut bit) = (0, 31);
    loop {
        if a >> bit & 1 == 1 {
            sum ^= b;
        }
        if bit == 0 {
            return sum;
        }
        b = times_x(b);
        bit -= 1;
    }
}

fn update(mut crc: u32, bytes: &[u8]) -> u32 {
    let mut eights = bytes.chunks_exact(8);
    for c in &mut eights {
        let first = (crc ^ u32::from_le_bytes([c[0], c[1], c[2], c[3]])).to_le_bytes();
        let at = |k: usize, b: u8| TABLES[k][usize::from(b)];
        crc = at(7, first[0]) ^ at(6, first[1]) ^ at(5, first[2]) ^ at(4, first[3]);
        crc ^= at(3, c[4]) ^ at(2, c[5]) ^ at(1, c[6]) ^ at(0, c[7]);
    }
    eights.remainder().iter().fold(crc, |crc, &b| crc >> 8 ^ TABLES[0][usize::from(crc as u8 ^ b)])
}

/// The value of the Data Checksum option for these bytes of data and `beyond` more that are carried as a length only
/// and count as zeros. As in SCTP, the remainder's first byte on the wire is the one usually written last; the value of
/// no data is zero.
pub fn data_checksum(bytes: &[u8], beyond: u32) -> u32 {
    let mut crc = update(u32::MAX, bytes);
    for (k, power) in POWERS.iter().enumerate() {
        if beyond >> k & 1 == 1 {
            crc = product(*power, crc);
        }
    }
    (!crc).swap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_iscsi() {
        // RFC 3720, section B.4, gives the bytes in the order in which they are sent.
        let up: Vec<u8> = (0..32).collect();
        let down: Vec<u8> = (0..32).rev().collect();
        assert_eq!(data_checksum(&[0; 32], 0).to_be_bytes(), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(data_checksum(&[0xff; 32], 0).to_be_bytes(), [0x43, 0xab, 0xa8, 0x62]);
        assert_eq!(data_checksum(&up, 0).to_be_bytes(), [0x4e, 0x79, 0xdd, 0x46]);
        assert_eq!(data_checksum(&down, 0).to_be_bytes(), [0x5c, 0xdb, 0x3f, 0x11]);
        // The catalogue's check value of CRC-32/ISCSI.
        assert_eq!(data_checksum(b"123456789", 0).swap_bytes(), 0xe306_9283);
        // RFC 4340, section 9.3.
        assert_eq!(data_checksum(&[], 0), 0);
    }

    #[test]
    fn zeros_that_are_a_length_only_count() {
        for (beyond, head) in [(0, 5), (1, 0), (7, 3), (32, 0), (1_400, 12), (65_507, 1)] {
            let bytes: Vec<u8> = (1..=head).collect();
            let mut whole = bytes.clone();
            whole.resize(bytes.len() + beyond, 0);
            assert_eq!(data_checksum(&bytes, beyond as u32), data_checksum(&whole, 0), "{beyond} behind {head}");
        }
    }
}
