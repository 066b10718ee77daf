//! x86-64.
//!
//! The functions that the parent module calls are safe: they check that the instructions are present, which costs a load
//! and a test of a word that the standard library fills once.

use std::arch::x86_64::*;

use super::Level;
use crate::field::product;

/// For each factor the bit matrix that multiplies by it: byte `7 - i` of a matrix holds the bits of x that sum up to bit
/// `i` of the product (Intel's manual, GF2P8AFFINEQB).
static MATRICES: [u64; 256] = matrices();

const fn matrices() -> [u64; 256] {
    let mut all = [0; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut bit = 0;
        while bit < 8 {
            let column = product(factor as u8, 1 << bit);
            let mut i = 0;
            while i < 8 {
                if column >> i & 1 == 1 {
                    all[factor] |= 1 << (8 * (7 - i) + bit);
                }
                i += 1;
            }
            bit += 1;
        }
        factor += 1;
    }
    all
}

/// `into ^= from`, which have one length.
pub(super) fn xor_into_512(into: &mut [u8], from: &[u8]) {
    assert!(Level::Gfni512.is_present() && into.len() == from.len());
    // SAFETY: the instructions are present, both slices have one length.
    unsafe { xor_512(into.as_mut_ptr(), from.as_ptr(), into.len()) }
}

/// # Safety
/// AVX-512 F and BW are present; `len` bytes are at both pointers, and do not overlap.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn xor_512(into: *mut u8, from: *const u8, len: usize) {
    let mut i = 0;
    while i + 64 <= len {
        // SAFETY: 64 bytes from i on are inside.
        unsafe {
            let (a, b) = (_mm512_loadu_epi8(into.add(i).cast()), _mm512_loadu_epi8(from.add(i).cast()));
            _mm512_storeu_epi8(into.add(i).cast(), _mm512_xor_si512(a, b));
        }
        i += 64;
    }
    if i < len {
        let mask = first(len - i);
        // SAFETY: the mask keeps to the bytes that are inside.
        unsafe {
            let a = _mm512_maskz_loadu_epi8(mask, into.add(i).cast());
            let b = _mm512_maskz_loadu_epi8(mask, from.add(i).cast());
            _mm512_mask_storeu_epi8(into.add(i).cast(), mask, _mm512_xor_si512(a, b));
        }
    }
}

/// A mask of the first bytes of 64.
const fn first(bytes: usize) -> u64 {
    if bytes >= 64 { u64::MAX } else { (1 << bytes) - 1 }
}

/// `into ^= from`, which have one length.
pub(super) fn xor_into_256(into: &mut [u8], from: &[u8]) {
    assert!(Level::Avx2.is_present());
    #[target_feature(enable = "avx2")]
    fn xor(into: &mut [u8], from: &[u8]) {
        for (a, b) in into.iter_mut().zip(from) {
            *a ^= b;
        }
    }
    // SAFETY: the instructions are present.
    unsafe { xor(into, from) }
}

/// `into ^= factor * from`, which have one length, for as many bytes as fit; how many that were.
pub(super) fn mul_add_256(into: &mut [u8], from: &[u8], table: &[u8; 32]) -> usize {
    assert!(Level::Avx2.is_present() && into.len() == from.len());
    let done = into.len() / 32 * 32;
    // SAFETY: the instructions are present, and `done` bytes are in both slices.
    unsafe { mul_256(into.as_mut_ptr(), from.as_ptr(), done, table) }
    done
}

/// # Safety
/// AVX2 is present; `len` bytes, a multiple of 32, are at both pointers, and do not overlap.
#[target_feature(enable = "avx2")]
unsafe fn mul_256(into: *mut u8, from: *const u8, len: usize, table: &[u8; 32]) {
    // SAFETY: the table's halves are 16 bytes each.
    let (low, high) =
        unsafe { (_mm_loadu_si128(table.as_ptr().cast()), _mm_loadu_si128(table.as_ptr().add(16).cast())) };
    let (low, high) = (_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high));
    let nibble = _mm256_set1_epi8(15);
    let mut i = 0;
    while i < len {
        // SAFETY: 32 bytes from i on are inside.
        unsafe {
            let x = _mm256_loadu_si256(from.add(i).cast());
            let sum = _mm256_loadu_si256(into.add(i).cast());
            let a = _mm256_shuffle_epi8(low, _mm256_and_si256(x, nibble));
            let b = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(x), nibble));
            _mm256_storeu_si256(into.add(i).cast(), _mm256_xor_si256(sum, _mm256_xor_si256(a, b)));
        }
        i += 32;
    }
}

/// `into ^= factor * from`, which have one length, for as many bytes as fit; how many that were.
pub(super) fn mul_add_128(into: &mut [u8], from: &[u8], table: &[u8; 32]) -> usize {
    assert!(Level::Ssse3.is_present() && into.len() == from.len());
    let done = into.len() / 16 * 16;
    // SAFETY: the instructions are present, and `done` bytes are in both slices.
    unsafe { mul_128(into.as_mut_ptr(), from.as_ptr(), done, table) }
    done
}

/// # Safety
/// SSSE3 is present; `len` bytes, a multiple of 16, are at both pointers, and do not overlap.
#[target_feature(enable = "ssse3")]
unsafe fn mul_128(into: *mut u8, from: *const u8, len: usize, table: &[u8; 32]) {
    // SAFETY: the table's halves are 16 bytes each.
    let (low, high) =
        unsafe { (_mm_loadu_si128(table.as_ptr().cast()), _mm_loadu_si128(table.as_ptr().add(16).cast())) };
    let nibble = _mm_set1_epi8(15);
    let mut i = 0;
    while i < len {
        // SAFETY: 16 bytes from i on are inside.
        unsafe {
            let x = _mm_loadu_si128(from.add(i).cast());
            let sum = _mm_loadu_si128(into.add(i).cast());
            let a = _mm_shuffle_epi8(low, _mm_and_si128(x, nibble));
            let b = _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi64::<4>(x), nibble));
            _mm_storeu_si128(into.add(i).cast(), _mm_xor_si128(sum, _mm_xor_si128(a, b)));
        }
        i += 16;
    }
}

/// Rows whose sums are kept in registers together: with [`COLUMNS`], 24 of 32 registers.
const ROWS: usize = 8;
/// Registers a row, of 64 bytes each.
const COLUMNS: usize = 3;
/// Sources at most.
const SOURCES: usize = 255;

/// As [`super::combine`], whose checks were made.
pub(super) fn combine_512(coefficients: &[u8], sources: &[&[u8]], outputs: &mut [Vec<u8>], len: usize) {
    assert!(Level::Gfni512.is_present() && sources.len() <= SOURCES);
    assert!(sources.iter().all(|s| s.len() <= len) && outputs.iter().all(|o| o.len() == len));
    let (k, m) = (sources.len(), outputs.len());
    assert_eq!(coefficients.len(), k * m);
    let common = sources.iter().map(|s| s.len()).min().unwrap_or(0) / 64 * 64;
    let mut matrices = [0_u64; ROWS * SOURCES];
    // Groups of rows as equal as can be: nine rows are five and four, not eight and one.
    let mut groups = m.div_ceil(ROWS);
    let mut row = 0;
    while groups > 0 {
        let rows = (m - row).div_ceil(groups);
        for (i, matrices) in matrices.chunks_exact_mut(rows).take(k).enumerate() {
            for (r, matrix) in matrices.iter_mut().enumerate() {
                *matrix = MATRICES[usize::from(coefficients[(row + r) * k + i])];
            }
        }
        let outputs = &mut outputs[row..row + rows];
        // SAFETY: the instructions are present. `matrices` has `rows` for each source. All sources have `common` bytes
        // and no more than `len`, all outputs `len`.
        unsafe {
            match rows {
                1 => group::<1>(&matrices, sources, outputs, common, len),
                2 => group::<2>(&matrices, sources, outputs, common, len),
                3 => group::<3>(&matrices, sources, outputs, common, len),
                4 => group::<4>(&matrices, sources, outputs, common, len),
                5 => group::<5>(&matrices, sources, outputs, common, len),
                6 => group::<6>(&matrices, sources, outputs, common, len),
                7 => group::<7>(&matrices, sources, outputs, common, len),
                _ => group::<8>(&matrices, sources, outputs, common, len),
            }
        }
        row += rows;
        groups -= 1;
    }
}

/// All bytes of a group of rows.
///
/// # Safety
/// As [`tile`]; all sources have `common` bytes, a multiple of 64, and no more than `len`, and all outputs have `len`.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn group<const R: usize>(
    matrices: &[u64; ROWS * SOURCES],
    sources: &[&[u8]],
    outputs: &mut [Vec<u8>],
    common: usize,
    len: usize,
) {
    let mut at = 0;
    // SAFETY: by the loops' conditions, as this function's callers grant; the last tile masks what is not there.
    unsafe {
        while at + COLUMNS * 64 <= common {
            tile::<R, COLUMNS, false>(matrices, sources, outputs, at, len);
            at += COLUMNS * 64;
        }
        while at < common {
            tile::<R, 1, false>(matrices, sources, outputs, at, len);
            at += 64;
        }
        while at < len {
            tile::<R, 1, true>(matrices, sources, outputs, at, len);
            at += 64;
        }
    }
}

/// The bytes of `R` rows from `at` on, `C` registers wide: sums stay in registers across all sources, so that each
/// source byte is loaded once for `R` products.
///
/// # Safety
/// AVX-512 F and BW and GFNI are present. `outputs` has `R` entries of `len` bytes. Unless `MASKED`, in which case `C` is 1
/// and `at` below `len`, all sources and outputs have the bytes. `matrices` has `R` for each source.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
#[inline]
unsafe fn tile<const R: usize, const C: usize, const MASKED: bool>(
    matrices: &[u64; ROWS * SOURCES],
    sources: &[&[u8]],
    outputs: &mut [Vec<u8>],
    at: usize,
    len: usize,
) {
    let load = |source: &[u8]| {
        let mut x = [_mm512_setzero_si512(); C];
        for (c, x) in x.iter_mut().enumerate() {
            let from = source.as_ptr().wrapping_add(at + 64 * c).cast();
            // SAFETY: the mask keeps to the bytes that are inside; without one, all are.
            *x = unsafe {
                if MASKED {
                    _mm512_maskz_loadu_epi8(first(source.len().saturating_sub(at)), from)
                } else {
                    _mm512_loadu_epi8(from)
                }
            };
        }
        x
    };
    let mut sums = [[_mm512_setzero_si512(); C]; R];
    let mut matrix = matrices.as_ptr();
    let mut pairs = sources.chunks_exact(2);
    for pair in &mut pairs {
        let (x, y) = (load(pair[0]), load(pair[1]));
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: R matrices for each source.
            let (a, b) = unsafe { (*matrix.add(r), *matrix.add(R + r)) };
            let (a, b) = (_mm512_set1_epi64(a as i64), _mm512_set1_epi64(b as i64));
            for c in 0..C {
                let products =
                    (_mm512_gf2p8affine_epi64_epi8::<0>(x[c], a), _mm512_gf2p8affine_epi64_epi8::<0>(y[c], b));
                // 0x96: exclusive or of all three.
                sums[c] = _mm512_ternarylogic_epi64::<0x96>(sums[c], products.0, products.1);
            }
        }
        // SAFETY: two sources' matrices lie behind.
        matrix = unsafe { matrix.add(2 * R) };
    }
    if let [last] = pairs.remainder() {
        let x = load(last);
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: R matrices for each source.
            let a = _mm512_set1_epi64(unsafe { *matrix.add(r) } as i64);
            for c in 0..C {
                sums[c] = _mm512_xor_si512(sums[c], _mm512_gf2p8affine_epi64_epi8::<0>(x[c], a));
            }
        }
    }
    for (sums, output) in sums.iter().zip(outputs) {
        for (c, &sum) in sums.iter().enumerate() {
            let into = output.as_mut_ptr().wrapping_add(at + 64 * c).cast();
            // SAFETY: the mask keeps to the bytes that are inside; without one, all are.
            unsafe {
                if MASKED {
                    _mm512_mask_storeu_epi8(into, first(len - at), sum);
                } else {
                    _mm512_storeu_epi8(into, sum);
                }
            }
        }
    }
}
