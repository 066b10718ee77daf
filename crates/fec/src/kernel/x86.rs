//! x86-64. Each instruction set is a type whose values exist only if the processor supports it, so that its methods are
//! safe to call.

mod combine;
mod matrices;

use std::arch::x86_64::*;

use combine::{ROWS, SOURCES, STRIDE, expand, group};
use matrices::ISOMORPHISM;

/// SSSE3 is present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ssse3(());

/// AVX2 is present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Avx2(());

/// GFNI and AVX-512 F, BW and VBMI are present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gfni512(());

impl Ssse3 {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("ssse3").then_some(Self(()))
    }
    /// `into ^= factor * from`, of equal length, for as many bytes as fit; returns their number.
    pub(super) fn mul_add(self, into: &mut [u8], from: &[u8], table: &[u8; 32]) -> usize {
        assert_eq!(into.len(), from.len());
        let done = into.len() / 16 * 16;
        // SAFETY: the instructions are present, and `done` bytes are in both slices.
        unsafe { mul_128(into.as_mut_ptr(), from.as_ptr(), done, table) }
        done
    }
}

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
    /// `into ^= from`, over the shorter length.
    pub(super) fn xor_into(self, into: &mut [u8], from: &[u8]) {
        #[target_feature(enable = "avx2")]
        fn xor(into: &mut [u8], from: &[u8]) {
            for (a, b) in into.iter_mut().zip(from) {
                *a ^= b;
            }
        }
        // SAFETY: the instructions are present.
        unsafe { xor(into, from) }
    }
    /// `into ^= factor * from`, of equal length, for as many bytes as fit; returns their number.
    pub(super) fn mul_add(self, into: &mut [u8], from: &[u8], table: &[u8; 32]) -> usize {
        assert_eq!(into.len(), from.len());
        let done = into.len() / 32 * 32;
        // SAFETY: the instructions are present, and `done` bytes are in both slices.
        unsafe { mul_256(into.as_mut_ptr(), from.as_ptr(), done, table) }
        done
    }
}

impl Gfni512 {
    pub(super) fn detect() -> Option<Self> {
        let all = is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi");
        all.then_some(Self(()))
    }
    /// `into ^= from`, of equal length.
    #[inline]
    pub(super) fn xor_into(self, into: &mut [u8], from: &[u8]) {
        assert_eq!(into.len(), from.len());
        // SAFETY: the instructions are present, both slices have one length.
        unsafe { xor_512(into.as_mut_ptr(), from.as_ptr(), into.len()) }
    }
    /// As [`super::xor_all_by`], after its checks.
    pub(super) fn xor_all(self, into: &mut [u8], sources: &[&[u8]]) {
        assert!(sources.iter().all(|s| s.len() <= into.len()));
        // SAFETY: the instructions are present, and no source is longer.
        unsafe { xor_all_512(into, sources) }
    }
    /// As [`super::interpolate_by`].
    pub(super) fn interpolate(self, known: &[u8], wanted: &[u8], coefficients: &mut [u8]) {
        assert!(known.len() < 256 && wanted.len() < 256 && coefficients.len() == known.len() * wanted.len());
        // SAFETY: the instructions are present.
        unsafe { interpolate_512(known, wanted, coefficients) }
    }
    /// As [`super::combine_by`], after its checks.
    pub(super) fn combine(self, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [Vec<u8>], len: usize) {
        let (k, m) = (sources.len(), outputs.len());
        assert!(k <= SOURCES && coefficients.len() == k * m);
        assert!(sources.iter().all(|s| s.len() <= len) && outputs.iter().all(|o| o.len() == len));
        if k == 0 {
            outputs.iter_mut().for_each(|o| o.fill(0));
            return;
        }
        let common = sources.iter().map(|s| s.len()).min().unwrap_or(0) / 64 * 64;
        let mut matrices = [0; ROWS * STRIDE];
        let mut row = 0;
        // Groups of rows of nearly equal size: eight rows are four and four, not seven and one.
        for groups in (1..=m.div_ceil(ROWS)).rev() {
            let rows = (m - row).div_ceil(groups);
            let outputs = &mut outputs[row..row + rows];
            // SAFETY: the instructions are present. `expand` fills `matrices` for `rows` rows of `k`, which is at most
            // `SOURCES`. All sources have `common` bytes and at most `len`, all outputs `len`.
            unsafe {
                expand(&coefficients[row * k..(row + rows) * k], k, &mut matrices);
                match rows {
                    1 => group::<1>(&matrices, sources, outputs, common, len),
                    2 => group::<2>(&matrices, sources, outputs, common, len),
                    3 => group::<3>(&matrices, sources, outputs, common, len),
                    4 => group::<4>(&matrices, sources, outputs, common, len),
                    5 => group::<5>(&matrices, sources, outputs, common, len),
                    6 => group::<6>(&matrices, sources, outputs, common, len),
                    _ => group::<7>(&matrices, sources, outputs, common, len),
                }
            }
            row += rows;
        }
    }
}

/// # Safety
/// AVX-512 F and BW are present; `len` bytes are at both pointers, and do not overlap.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn xor_512(into: *mut u8, from: *const u8, len: usize) {
    let mut i = 0;
    while i + 64 <= len {
        // SAFETY: 64 bytes from i are inside.
        unsafe {
            let (a, b) = (_mm512_loadu_epi8(into.add(i).cast()), _mm512_loadu_epi8(from.add(i).cast()));
            _mm512_storeu_epi8(into.add(i).cast(), _mm512_xor_si512(a, b));
        }
        i += 64;
    }
    if i < len {
        // SAFETY: the mask selects bytes inside only.
        unsafe { xor_masked(into.add(i), from.add(i), first(len - i)) };
    }
}

/// # Safety
/// AVX-512 F and BW are present; the bytes of the mask are at both pointers, and do not overlap.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn xor_masked(into: *mut u8, from: *const u8, mask: u64) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (a, b) = (_mm512_maskz_loadu_epi8(mask, into.cast()), _mm512_maskz_loadu_epi8(mask, from.cast()));
        _mm512_mask_storeu_epi8(into.cast(), mask, _mm512_xor_si512(a, b));
    }
}

/// `into ^=` all sources; each pair of registers' bytes stays there until all are summed.
///
/// # Safety
/// AVX-512 F and BW are present; no source is longer than `into`.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn xor_all_512(into: &mut [u8], sources: &[&[u8]]) {
    let len = into.len();
    let common = sources.iter().map(|s| s.len()).min().unwrap_or(0) / 128 * 128;
    let into = into.as_mut_ptr();
    let mut i = 0;
    // SAFETY: all sources have `common` bytes, and `into` has at least as many; beyond, masks select bytes inside only.
    unsafe {
        while i < common {
            let mut a = _mm512_loadu_epi8(into.add(i).cast());
            let mut b = _mm512_loadu_epi8(into.add(i + 64).cast());
            for source in sources {
                let from = source.as_ptr().add(i);
                a = _mm512_xor_si512(a, _mm512_loadu_epi8(from.cast()));
                b = _mm512_xor_si512(b, _mm512_loadu_epi8(from.add(64).cast()));
            }
            _mm512_storeu_epi8(into.add(i).cast(), a);
            _mm512_storeu_epi8(into.add(i + 64).cast(), b);
            i += 128;
        }
        while i < len {
            let mask = first(len - i);
            let mut a = _mm512_maskz_loadu_epi8(mask, into.add(i).cast());
            for source in sources {
                let mask = first(source.len().saturating_sub(i));
                a = _mm512_xor_si512(a, _mm512_maskz_loadu_epi8(mask, source.as_ptr().wrapping_add(i).cast()));
            }
            _mm512_mask_storeu_epi8(into.add(i).cast(), mask, a);
            i += 64;
        }
    }
}

/// A mask of the first bytes of 64.
const fn first(bytes: usize) -> u64 {
    if bytes >= 64 { u64::MAX } else { (1 << bytes) - 1 }
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
        // SAFETY: 32 bytes from i are inside.
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
        // SAFETY: 16 bytes from i are inside.
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

/// As [`super::interpolate_by`], 64 coefficients at a time.
///
/// # Safety
/// AVX-512 F and BW and GFNI are present.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn interpolate_512(known: &[u8], wanted: &[u8], coefficients: &mut [u8]) {
    const IDENTITY: i64 = 0x0102_0408_1020_4080;
    let (to, from) = (_mm512_set1_epi64(ISOMORPHISM.0 as i64), _mm512_set1_epi64(ISOMORPHISM.1 as i64));
    let inverse = |x| _mm512_gf2p8affineinv_epi64_epi8::<0>(x, _mm512_set1_epi64(IDENTITY));
    let one = _mm512_set1_epi8(1);
    let load = |bytes: &[u8]| {
        // SAFETY: the mask selects bytes inside only.
        unsafe { _mm512_maskz_loadu_epi8(first(bytes.len()), bytes.as_ptr().cast()) }
    };
    let store = |bytes: &mut [u8], x| {
        // SAFETY: the mask selects bytes inside only.
        unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), first(bytes.len()), x) };
    };
    let translate = |points: &[u8]| {
        let mut all = [0; 256];
        for (from, into) in points.chunks(64).zip(all.chunks_mut(64)) {
            store(into, _mm512_gf2p8affine_epi64_epi8::<0>(load(from), to));
        }
        all
    };
    let (x, y) = (translate(known), translate(wanted));
    let x = &x[..known.len()];
    // The products of all differences from the known points, excluding zeros.
    let products = |a| {
        let mut product = one;
        for &b in x {
            let difference = _mm512_xor_si512(a, _mm512_set1_epi8(b as i8));
            let zero = _mm512_testn_epi8_mask(difference, difference);
            product = _mm512_gf2p8mul_epi8(product, _mm512_mask_mov_epi8(difference, zero, one));
        }
        product
    };
    let mut all = [0; 256];
    for (y, all) in y[..wanted.len()].chunks(64).zip(all.chunks_mut(64)) {
        store(all, products(load(y)));
    }
    for (i, x) in x.chunks(64).enumerate() {
        let a = load(x);
        let weights = inverse(products(a));
        for ((&y, &all), row) in y.iter().zip(&all).zip(coefficients.chunks_exact_mut(known.len())) {
            let difference = _mm512_xor_si512(a, _mm512_set1_epi8(y as i8));
            let quotient = _mm512_gf2p8mul_epi8(inverse(difference), weights);
            let coefficient = _mm512_gf2p8mul_epi8(quotient, _mm512_set1_epi8(all as i8));
            let into = &mut row[64 * i..][..x.len()];
            store(into, _mm512_gf2p8affine_epi64_epi8::<0>(coefficient, from));
        }
    }
}
