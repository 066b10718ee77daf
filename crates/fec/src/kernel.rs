//! Arithmetic on packets' bytes, the only place for vector instructions.
//!
//! The portable code below defines it; the other versions are equivalent and faster. The version is selected at run
//! time. A product by a constant is linear over bits, so that `GF2P8AFFINEQB` computes it by an 8x8 bit matrix in any
//! field of 256 elements; without that instruction, a byte shuffle looks up the products of both nibbles (Plank,
//! Greenan and Miller, "Screaming fast Galois field arithmetic using Intel SIMD instructions", FAST 2013).

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector instructions are called by pointer, once found present")]
mod x86;

use crate::field::{self, EXP, LOG, NIBBLES, ORDER};

/// The instructions used; variants of a processor are proof that it has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    /// Portable code.
    Portable,
    /// Shuffles of 16 bytes.
    #[cfg(target_arch = "x86_64")]
    Ssse3(x86::Ssse3),
    /// Shuffles of 32 bytes.
    #[cfg(target_arch = "x86_64")]
    Avx2(x86::Avx2),
    /// Bit matrices, 64 bytes at a time.
    #[cfg(target_arch = "x86_64")]
    Gfni512(x86::Gfni512),
}

impl Level {
    /// The best level of this processor.
    #[cfg(target_arch = "x86_64")]
    fn best() -> Self {
        static BEST: std::sync::OnceLock<Level> = std::sync::OnceLock::new();
        *BEST.get_or_init(|| Self::present().last().unwrap_or(Self::Portable))
    }
    /// The best level of this processor.
    #[cfg(not(target_arch = "x86_64"))]
    const fn best() -> Self {
        Self::Portable
    }
    /// All levels of this processor, from slow to fast.
    #[cfg(target_arch = "x86_64")]
    fn present() -> impl Iterator<Item = Self> {
        [
            Some(Self::Portable),
            x86::Ssse3::detect().map(Self::Ssse3),
            x86::Avx2::detect().map(Self::Avx2),
            x86::Gfni512::detect().map(Self::Gfni512),
        ]
        .into_iter()
        .flatten()
    }
    /// All levels of this processor.
    #[cfg(all(test, not(target_arch = "x86_64")))]
    fn present() -> impl Iterator<Item = Self> {
        [Self::Portable].into_iter()
    }
}

/// `into ^= from`, over the shorter length.
#[inline]
pub(crate) fn xor_into(into: &mut [u8], from: &[u8]) {
    xor_into_by(Level::best(), into, from);
}

#[inline]
fn xor_into_by(level: Level, into: &mut [u8], from: &[u8]) {
    let len = into.len().min(from.len());
    let (into, from) = (&mut into[..len], &from[..len]);
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Gfni512(present) => present.xor_into(into, from),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(present) => present.xor_into(into, from),
        _ => {
            for (a, b) in into.iter_mut().zip(from) {
                *a ^= b;
            }
        }
    }
}

/// `into ^=` each of `sources`, none of which is longer.
pub(crate) fn xor_all(into: &mut [u8], sources: &[&[u8]]) {
    xor_all_by(Level::best(), into, sources);
}

fn xor_all_by(level: Level, into: &mut [u8], sources: &[&[u8]]) {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Gfni512(present) => present.xor_all(into, sources),
        _ => {
            for source in sources {
                xor_into_by(level, into, source);
            }
        }
    }
}

/// `into ^= factor * from`, over the shorter length.
fn mul_add_by(level: Level, into: &mut [u8], from: &[u8], factor: u8) {
    let len = into.len().min(from.len());
    let (into, from) = (&mut into[..len], &from[..len]);
    let table = &NIBBLES[usize::from(factor)];
    let done = match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(present) => present.mul_add(into, from, table),
        #[cfg(target_arch = "x86_64")]
        Level::Ssse3(present) => present.mul_add(into, from, table),
        _ => 0,
    };
    for (a, &b) in into[done..].iter_mut().zip(&from[done..]) {
        *a ^= field::mul(table, b);
    }
}

/// For each row of coefficients, one per source, writes the sum of the products into the row's output.
///
/// All outputs have one length; shorter sources count as followed by zeros, and none is longer.
pub(crate) fn combine(coefficients: &[u8], sources: &[&[u8]], outputs: &mut [Vec<u8>]) {
    combine_by(Level::best(), coefficients, sources, outputs);
}

fn combine_by(level: Level, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [Vec<u8>]) {
    let len = outputs.first().map_or(0, Vec::len);
    assert!(outputs.iter().all(|o| o.len() == len) && sources.iter().all(|s| s.len() <= len), "lengths agree");
    assert_eq!(coefficients.len(), sources.len() * outputs.len(), "one coefficient for each pair");
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Gfni512(present) => present.combine(coefficients, sources, outputs, len),
        _ => {
            // In pieces, so that the sources' pieces stay in the first-level cache between rows.
            for start in (0..len).step_by(PIECE) {
                let end = len.min(start + PIECE);
                for (row, output) in coefficients.chunks(sources.len().max(1)).zip(outputs.iter_mut()) {
                    let output = &mut output[start..end];
                    output.fill(0);
                    for (&factor, source) in row.iter().zip(sources) {
                        mul_add_by(level, output, source.get(start..).unwrap_or_default(), factor);
                    }
                }
            }
        }
    }
}

/// Lagrange interpolation: for each point y of `wanted` a row of coefficients, one for each point x of `known`, which
/// is the product of (y - x')/(x - x') over all other points x' of `known`.
///
/// All points differ; there are at most 255 known ones.
pub(crate) fn interpolate(known: &[u8], wanted: &[u8], coefficients: &mut [u8]) {
    interpolate_by(Level::best(), known, wanted, coefficients);
}

fn interpolate_by(level: Level, known: &[u8], wanted: &[u8], coefficients: &mut [u8]) {
    assert!(known.len() <= ORDER && coefficients.len() == known.len() * wanted.len(), "one coefficient for each pair");
    #[cfg(target_arch = "x86_64")]
    if let Level::Gfni512(present) = level {
        return present.interpolate(known, wanted, coefficients);
    }
    let _ = level;
    // By logarithms. The logarithm of zero reads as zero, so that x - x does not count. No sum exceeds 254 * 255.
    let difference = |a: u8, b: u8| u32::from(LOG[usize::from(a ^ b)]);
    let product = |a: u8| known.iter().map(|&b| difference(a, b)).sum::<u32>() % ORDER as u32;
    let mut weights = [0; ORDER];
    for (weight, &x) in weights.iter_mut().zip(known) {
        *weight = product(x);
    }
    for (&y, row) in wanted.iter().zip(coefficients.chunks_mut(known.len().max(1))) {
        let all = product(y) + 2 * ORDER as u32;
        for ((&x, weight), coefficient) in known.iter().zip(weights).zip(row) {
            *coefficient = EXP[(all - difference(y, x) - weight) as usize % ORDER];
        }
    }
}

/// Bytes of each packet per piece.
const PIECE: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::product;

    fn bytes(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|i| ((i + 7 * seed) * (2 * seed + 31) + i * i / 3) as u8).collect()
    }

    #[test]
    fn sums_are_those_of_the_definition_at_every_length_and_alignment() {
        let (a, b) = (bytes(300, 1), bytes(300, 2));
        for level in Level::present() {
            for len in 0..=200 {
                for (x, y) in [(0, 0), (1, 0), (0, 1), (3, 17), (31, 32), (63, 64)] {
                    let (mut into, from) = (a.clone(), &b[y..y + len]);
                    xor_into_by(level, &mut into[x..x + len], from);
                    for i in 0..300 {
                        let inside = (x..x + len).contains(&i);
                        assert_eq!(into[i], if inside { a[i] ^ b[i - x + y] } else { a[i] }, "{level:?} {len} {x} {y}");
                    }
                }
            }
        }
    }

    #[test]
    fn products_are_those_of_the_field() {
        let all = bytes(100, 0).into_iter().chain(0..=255).collect::<Vec<u8>>();
        for level in Level::present() {
            for factor in 0..=255_u8 {
                let mut output = [vec![0xaa; all.len()]];
                combine_by(level, &[factor], &[&all], &mut output);
                let expected: Vec<u8> = all.iter().map(|&x| product(factor, x)).collect();
                assert_eq!(output[0], expected, "{level:?} {factor}");
            }
        }
    }

    #[test]
    fn combinations_are_those_of_the_definition_at_every_length_and_alignment() {
        let pool: Vec<Vec<u8>> = (0..40).map(|i| bytes(700, i)).collect();
        for level in Level::present() {
            for len in (0..=200_usize).chain([256, 257, 511, 600]) {
                let (k, m) = (1 + len % 13, 1 + len % 18);
                let sources: Vec<&[u8]> = (0..k)
                    .map(|i| {
                        // Unequal lengths, including empty ones.
                        let own = if i == len % k { len } else { len.saturating_sub(i * i * 3 + i) };
                        &pool[i][i * 5 % 67..][..own]
                    })
                    .collect();
                let coefficients = bytes(k * m, len);
                let mut outputs: Vec<Vec<u8>> = (0..m).map(|_| vec![0x55; len]).collect();
                combine_by(level, &coefficients, &sources, &mut outputs);
                let mut sum = bytes(len, 77);
                xor_all_by(level, &mut sum, &sources);
                for (x, &value) in sum.iter().enumerate() {
                    let byte = |s: &&[u8]| s.get(x).copied().unwrap_or(0);
                    let expected = sources.iter().map(byte).fold(bytes(len, 77)[x], |a, b| a ^ b);
                    assert_eq!(value, expected, "{level:?} {len} byte {x}");
                }
                for (r, output) in outputs.iter().enumerate() {
                    for (x, &value) in output.iter().enumerate() {
                        let sum = (0..k).fold(0, |sum, i| {
                            sum ^ product(coefficients[r * k + i], sources[i].get(x).copied().unwrap_or(0))
                        });
                        assert_eq!(value, sum, "{level:?} {len} row {r} byte {x}");
                    }
                }
            }
        }
    }

    #[test]
    fn interpolation_is_that_of_the_definition() {
        let inverses: Vec<u8> = (0..=255).map(|a| (1..=255).find(|&b| product(a, b) == 1).unwrap_or(0)).collect();
        for (k, m) in [(1, 1), (2, 3), (9, 4), (63, 5), (64, 63), (65, 2), (128, 7), (200, 55), (254, 1), (255, 0)] {
            let points: Vec<u8> = bytes(5_000, k).into_iter().chain(0..=255).fold(Vec::new(), |mut all, x| {
                if !all.contains(&x) {
                    all.push(x);
                }
                all
            });
            let (known, wanted) = (&points[..k], &points[k..k + m]);
            let mut expected = Vec::new();
            for y in wanted {
                for x in known {
                    let others = known.iter().filter(|&o| o != x);
                    expected.push(others.fold(1, |c, o| product(c, product(y ^ o, inverses[usize::from(x ^ o)]))));
                }
            }
            for level in Level::present() {
                let mut found = vec![0xee; k * m];
                interpolate_by(level, known, wanted, &mut found);
                assert!(found == expected, "{level:?} {k} {m}");
            }
        }
    }
}
