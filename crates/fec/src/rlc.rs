//! Coefficients of sliding-window random linear codes (RFC 8681, sections 3.5 and 3.6).
//!
//! A repair symbol is the sum of the source symbols of its encoding window, each times a coefficient. The coefficients are
//! drawn by TinyMT32 (RFC 8682) from a key in the repair packet, so that a receiver knows them without being sent them.
//! Addition and multiplication are those of RFC 5510, section 8.1, as in the Reed-Solomon code.

/// The field of the coefficients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RlcField {
    /// GF(2): coefficients of 0 and 1, sums by XOR alone. FEC encoding ID 9 (section 5.1.1.1).
    Gf2,
    /// GF(2^8): two windows that differ in their keys alone are independent but for one in 255. FEC encoding ID 10 (section
    /// 4.1.1.1).
    #[default]
    Gf256,
}

/// How a repair symbol is combined of its window's source symbols: what the repair FEC payload ID says beside the window
/// (section 4.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Combination {
    /// Repair_Key: the generator's seed.
    pub key: u16,
    /// DT, 0 to 15: `(DT + 1) / 16` of the coefficients are nonzero on average, all of them with 15.
    pub density: u8,
    /// The field.
    pub field: RlcField,
}

/// The greatest density threshold, with which no coefficient is zero.
pub(crate) const DENSEST: u8 = 15;

impl Combination {
    /// Writes the coefficients, one for each source symbol of the window in the order of their numbers (section 3.6).
    pub fn coefficients(&self, into: &mut [u8]) {
        let Self { key, density, field } = *self;
        if field == RlcField::Gf2 && density >= DENSEST {
            // The key is not read (section 5.1.3).
            into.fill(1);
            return;
        }
        let mut random = TinyMt32::new(key.into());
        for coefficient in into {
            *coefficient = match field {
                _ if density < DENSEST && random.draw() & 15 > u32::from(density) => 0,
                RlcField::Gf2 => 1,
                RlcField::Gf256 => random.nonzero(),
            };
        }
    }
}

/// The generator of RFC 8682, with its parameters.
struct TinyMt32([u32; 4]);

impl TinyMt32 {
    const MAT1: u32 = 0x8f70_11ee;
    const MAT2: u32 = 0xfc78_ff1f;
    const TMAT: u32 = 0x3793_fdff;

    /// `tinymt32_init`. Its state is zero for no seed, so that it needs no certification.
    fn new(seed: u32) -> Self {
        let mut state = [seed, Self::MAT1, Self::MAT2, Self::TMAT];
        for (i, number) in (1..8).zip(1_u32..) {
            let before = state[(i - 1) & 3];
            state[i & 3] ^= number.wrapping_add(1_812_433_253_u32.wrapping_mul(before ^ (before >> 30)));
        }
        let mut generator = Self(state);
        (0..8).for_each(|_| generator.advance());
        generator
    }
    /// `tinymt32_next_state`.
    const fn advance(&mut self) {
        let [a, b, c, d] = self.0;
        let mut x = (a & 0x7fff_ffff) ^ b ^ c;
        x ^= x << 1;
        let y = d ^ (d >> 1) ^ x;
        let odd = (y & 1).wrapping_neg();
        self.0 = [b, c ^ (odd & Self::MAT1), x ^ (y << 10) ^ (odd & Self::MAT2), y];
    }
    /// `tinymt32_generate_uint32`.
    const fn draw(&mut self) -> u32 {
        self.advance();
        let [a, _, c, d] = self.0;
        let sum = a.wrapping_add(c >> 8);
        d ^ sum ^ ((sum & 1).wrapping_neg() & Self::TMAT)
    }
    /// The next of `tinymt32_rand256` that is not zero.
    const fn nonzero(&mut self) -> u8 {
        loop {
            let byte = self.draw() as u8;
            if byte != 0 {
                return byte;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(mask: u32) -> [u32; 50] {
        let mut random = TinyMt32::new(1);
        std::array::from_fn(|_| random.draw() & mask)
    }

    #[test]
    fn the_generator_meets_the_criteria_of_rfc_8681_and_8682() {
        // RFC 8682, section 2.1: the first values with seed 1.
        assert_eq!(first(u32::MAX)[..5], [2_545_341_989, 981_918_433, 3_715_302_833, 2_387_538_352, 3_591_001_365]);
        // RFC 8681, figure 9.
        let bytes = [
            37, 225, 177, 176, 21, 246, 54, 139, 168, 237, 211, 187, 62, 190, 104, 135, 210, 99, 176, 11, 207, 35, 40,
            113, 179, 214, 254, 101, 212, 211, 226, 41, 234, 232, 203, 29, 194, 211, 112, 107, 217, 104, 197, 135, 23,
            89, 210, 252, 109, 166,
        ];
        assert_eq!(first(255), bytes);
        // RFC 8681, figure 10.
        let nibbles = [
            5, 1, 1, 0, 5, 6, 6, 11, 8, 13, 3, 11, 14, 14, 8, 7, 2, 3, 0, 11, 15, 3, 8, 1, 3, 6, 14, 5, 4, 3, 2, 9, 10,
            8, 11, 13, 2, 3, 0, 11, 9, 8, 5, 7, 7, 9, 2, 12, 13, 6,
        ];
        assert_eq!(first(15), nibbles);
    }

    #[test]
    fn coefficients_are_those_of_the_reference_function() {
        let of = |density, field| {
            let mut all = [0xee; 8];
            Combination { key: 1, density, field }.coefficients(&mut all);
            all
        };
        assert_eq!(of(15, RlcField::Gf256), [37, 225, 177, 176, 21, 246, 54, 139]);
        assert_eq!(of(15, RlcField::Gf2), [1; 8]);
        // Figure 10, 5 1 1 0 5 6 6 11, against a threshold of 5.
        assert_eq!(of(5, RlcField::Gf2), [1, 1, 1, 1, 1, 0, 0, 0]);
        // Pairs of a nibble and, if it is at most 5, a byte: 5 225, 1 176, 5 246, 6, 11, 8, 13, 3 187.
        assert_eq!(of(5, RlcField::Gf256), [225, 176, 246, 0, 0, 0, 0, 187]);
    }

    #[test]
    fn the_density_is_the_share_of_nonzero_coefficients() {
        for field in [RlcField::Gf2, RlcField::Gf256] {
            for density in 0..=15_u8 {
                let mut nonzero = 0;
                for key in 0..200 {
                    let mut all = [0; 100];
                    Combination { key, density, field }.coefficients(&mut all);
                    nonzero += all.iter().filter(|c| **c != 0).count();
                }
                let (share, expected) = (nonzero as f64 / 20_000.0, f64::from(density + 1) / 16.0);
                assert!((share - expected).abs() < 0.015, "{field:?} {density}: {share}");
            }
        }
    }
}
