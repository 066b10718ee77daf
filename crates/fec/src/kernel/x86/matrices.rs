//! Linear maps over bits in the form of `GF2P8AFFINEQB`.

use crate::field::{product, product_in};

/// The bit matrix of a linear map, from its images of each bit: byte `7 - i` has the bits of x whose sum is bit `i` of
/// the image (Intel's manual, GF2P8AFFINEQB).
const fn matrix(columns: [u8; 8]) -> u64 {
    let (mut matrix, mut i) = (0, 0);
    while i < 64 {
        let (row, bit) = (i / 8, i % 8);
        matrix |= (columns[bit] as u64 >> row & 1) << (8 * (7 - row) + bit);
        i += 1;
    }
    matrix
}

/// The bit matrix of multiplication by a factor.
const fn multiplier(factor: u8) -> u64 {
    let (mut columns, mut bit) = ([0; 8], 0);
    while bit < 8 {
        columns[bit] = product(factor, 1 << bit);
        bit += 1;
    }
    matrix(columns)
}

/// Byte b of a factor's matrix is also linear in the factor's bits: the bit matrices of these maps, for all b.
pub(super) static MATRIX_BYTES: [u64; 8] = matrix_bytes();

const fn matrix_bytes() -> [u64; 8] {
    let (mut all, mut b) = ([0; 8], 0);
    while b < 8 {
        let (mut columns, mut bit) = ([0; 8], 0);
        while bit < 8 {
            columns[bit] = multiplier(1 << bit).to_le_bytes()[b];
            bit += 1;
        }
        all[b] = matrix(columns);
        b += 1;
    }
    all
}

/// Bit matrices to and from the field of `GF2P8MULB`, whose polynomial is 1 + x + x^3 + x^4 + x^8. All fields of 256
/// elements are isomorphic: `alpha` maps to a root of its polynomial there.
pub(super) const ISOMORPHISM: (u64, u64) = isomorphism();

const fn isomorphism() -> (u64, u64) {
    let mut root = 2_u8;
    loop {
        let mut powers = [1_u8; 9];
        let mut i = 1;
        while i < 9 {
            powers[i] = product_in(0x11b, powers[i - 1], root);
            i += 1;
        }
        if powers[0] ^ powers[2] ^ powers[3] ^ powers[4] ^ powers[8] == 0 {
            let [a, b, c, d, e, f, g, h, _] = powers;
            let to = [a, b, c, d, e, f, g, h];
            let (mut from, mut x) = ([0; 8], 0_u8);
            loop {
                let (mut image, mut bit) = (0, 0);
                while bit < 8 {
                    image ^= if x >> bit & 1 == 1 { to[bit] } else { 0 };
                    bit += 1;
                }
                if image.is_power_of_two() {
                    from[image.trailing_zeros() as usize] = x;
                }
                if x == 255 {
                    return (matrix(to), matrix(from));
                }
                x += 1;
            }
        }
        root += 1;
    }
}
