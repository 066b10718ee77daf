//! Products and sums of many packets: as many sums as fit into registers, across all packets.

use std::arch::x86_64::*;

use super::first;
use super::matrices::MATRIX_BYTES;

/// Rows whose sums are kept in registers together; with [`COLUMNS`], 21 of 32 registers.
pub(super) const ROWS: usize = 7;
/// Registers per row, of 64 bytes each.
const COLUMNS: usize = 3;
/// Most sources.
pub(super) const SOURCES: usize = 255;
/// Matrices per row: not a power of two, which would map all rows to few cache sets.
pub(super) const STRIDE: usize = 264;

/// Positions of the bytes of an 8x8 block in its transpose.
static TRANSPOSED: [u8; 64] = transposed();

const fn transposed() -> [u8; 64] {
    let (mut table, mut i) = ([0; 64], 0);
    while i < 64 {
        table[i] = (i % 8 * 8 + i / 8) as u8;
        i += 1;
    }
    table
}

/// Writes the bit matrices of all coefficients, `k` per row, in rows of [`STRIDE`].
///
/// # Safety
/// AVX-512 F and VBMI and GFNI are present; `k` is 1 to [`SOURCES`], and there are at most [`ROWS`] rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) unsafe fn expand(coefficients: &[u8], k: usize, matrices: &mut [u64; ROWS * STRIDE]) {
    // SAFETY: both are 64 bytes.
    let (bytes, transposed) =
        unsafe { (_mm512_loadu_epi64(MATRIX_BYTES.as_ptr().cast()), _mm512_loadu_epi8(TRANSPOSED.as_ptr().cast())) };
    for (row, matrices) in coefficients.chunks(k).zip(matrices.chunks_exact_mut(STRIDE)) {
        for (eight, matrices) in row.chunks(8).zip(matrices.chunks_exact_mut(8)) {
            let mut factors = [0; 8];
            factors[..eight.len()].copy_from_slice(eight);
            let x = _mm512_set1_epi64(i64::from_le_bytes(factors));
            // Qword b: byte b of all eight matrices.
            let x = _mm512_permutexvar_epi8(transposed, _mm512_gf2p8affine_epi64_epi8::<0>(x, bytes));
            // SAFETY: there are eight.
            unsafe { _mm512_storeu_epi64(matrices.as_mut_ptr().cast(), x) };
        }
    }
}

/// All bytes of a group of rows.
///
/// # Safety
/// As [`tile`]; all sources have `common` bytes, a multiple of 64, and at most `len`, and all outputs have `len`.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
pub(super) unsafe fn group<const R: usize>(
    matrices: &[u64; ROWS * STRIDE],
    sources: &[&[u8]],
    outputs: &mut [Vec<u8>],
    common: usize,
    len: usize,
) {
    let mut at = 0;
    // SAFETY: by the loops' conditions, and guaranteed by this function's callers; the last tile masks absent bytes.
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

/// The bytes of `R` rows from `at`, `C` registers wide: sums stay in registers across all sources, so that each source
/// byte is loaded once for `R` products.
///
/// # Safety
/// AVX-512 F and BW and GFNI are present. `outputs` has `R` entries of `len` bytes. Unless `MASKED`, in which case `C`
/// is 1 and `at` is below `len`, all sources and outputs have the bytes. There are at most [`SOURCES`] sources.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
#[inline]
unsafe fn tile<const R: usize, const C: usize, const MASKED: bool>(
    matrices: &[u64; ROWS * STRIDE],
    sources: &[&[u8]],
    outputs: &mut [Vec<u8>],
    at: usize,
    len: usize,
) {
    let load = |source: &[u8]| {
        let mut x = [_mm512_setzero_si512(); C];
        for (c, x) in x.iter_mut().enumerate() {
            let from = source.as_ptr().wrapping_add(at + 64 * c).cast();
            // SAFETY: the mask selects bytes inside only; without one, all are inside.
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
    // SAFETY: below, i is below the number of sources.
    let matrix = |r: usize, i: usize| _mm512_set1_epi64(unsafe { *matrices.as_ptr().add(r * STRIDE + i) } as i64);
    let mut sums = [[_mm512_setzero_si512(); C]; R];
    let mut pairs = sources.chunks_exact(2);
    let mut i = 0;
    for pair in &mut pairs {
        let (x, y) = (load(pair[0]), load(pair[1]));
        for (r, sums) in sums.iter_mut().enumerate() {
            let (a, b) = (matrix(r, i), matrix(r, i + 1));
            for c in 0..C {
                let products =
                    (_mm512_gf2p8affine_epi64_epi8::<0>(x[c], a), _mm512_gf2p8affine_epi64_epi8::<0>(y[c], b));
                // 0x96: XOR of all three.
                sums[c] = _mm512_ternarylogic_epi64::<0x96>(sums[c], products.0, products.1);
            }
        }
        i += 2;
    }
    if let [last] = pairs.remainder() {
        let x = load(last);
        for (r, sums) in sums.iter_mut().enumerate() {
            let a = matrix(r, i);
            for c in 0..C {
                sums[c] = _mm512_xor_si512(sums[c], _mm512_gf2p8affine_epi64_epi8::<0>(x[c], a));
            }
        }
    }
    for (sums, output) in sums.iter().zip(outputs) {
        for (c, &sum) in sums.iter().enumerate() {
            let into = output.as_mut_ptr().wrapping_add(at + 64 * c).cast();
            // SAFETY: the mask selects bytes inside only; without one, all are inside.
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
