//! The systematic Reed-Solomon code of RFC 5510, section 8, and RFC 6865, over GF(2^8).
//!
//! Its generator matrix is `V_kk^-1 * V_kn` with the Vandermonde matrix `v_ij = alpha^(i*j)`: the k source symbols are
//! the values of a polynomial of degree below k at `alpha^0` to `alpha^(k-1)`, the repair symbols its values at
//! `alpha^k` to `alpha^(n-1)`. Encoding and decoding are therefore the same task, Lagrange interpolation: from any k
//! values of the polynomial to any other. Its coefficients cost k^2 additions of logarithms, without inverting a
//! matrix.

use crate::field::{EXP, ORDER};
use crate::kernel;

/// Most source and repair packets in a block: there are 255 points.
pub(crate) const MAX_BLOCK: usize = ORDER;

/// Appends, for each point of `wanted`, the factors of the values at the `known` points that sum to its value: a row of
/// `known.len()` coefficients. Points are encoding symbol IDs, and differ; there are at most [`MAX_BLOCK`].
pub(crate) fn interpolate(known: &[u8], wanted: &[u8], coefficients: &mut Vec<u8>) {
    let (mut x, mut y) = ([0_u8; MAX_BLOCK], [0_u8; MAX_BLOCK]);
    for (points, ids) in [(&mut x, known), (&mut y, wanted)] {
        for (point, &id) in points.iter_mut().zip(ids) {
            *point = EXP[usize::from(id)];
        }
    }
    let start = coefficients.len();
    coefficients.resize(start + known.len() * wanted.len(), 0);
    kernel::interpolate(&x[..known.len()], &y[..wanted.len()], &mut coefficients[start..]);
}

/// The rows of generator matrices used so far.
///
/// A row depends on the number of source packets only, so that a repeated change of the number of repair packets in a
/// block of given length costs nothing. All rows of all lengths would be 2.8 MB.
#[derive(Debug, Default)]
pub(crate) struct Generators {
    /// By number of source packets, in order of first use.
    all: Vec<Generator>,
}

#[derive(Debug)]
struct Generator {
    sources: usize,
    rows: Vec<u8>,
}

impl Generators {
    /// The first rows for this number of source packets, concatenated.
    ///
    /// Both counts are at least 1, their sum at most [`MAX_BLOCK`].
    pub(crate) fn rows(&mut self, sources: usize, count: usize) -> &[u8] {
        debug_assert!(sources + count <= MAX_BLOCK);
        let i = self.all.iter().position(|g| g.sources == sources).unwrap_or_else(|| {
            self.all.push(Generator { sources, rows: Vec::new() });
            self.all.len() - 1
        });
        let generator = &mut self.all[i];
        let made = generator.rows.len() / sources;
        if made < count {
            let mut ids = [0; MAX_BLOCK];
            for (id, i) in ids.iter_mut().zip(0..) {
                *id = i;
            }
            interpolate(&ids[..sources], &ids[sources + made..sources + count], &mut generator.rows);
        }
        &generator.rows[..count * sources]
    }
}

/// Combines `sources` by each row of coefficients into a buffer of `outputs`, as long as the longest source.
pub(crate) fn combine<'a>(coefficients: &[u8], sources: impl Iterator<Item = &'a [u8]>, outputs: &mut [Vec<u8>]) {
    let mut list = [&[][..]; MAX_BLOCK];
    let mut count = 0;
    for (entry, source) in list.iter_mut().zip(sources) {
        *entry = source;
        count += 1;
    }
    kernel::combine(coefficients, &list[..count], outputs);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{LOG, product};

    /// The generator matrix as defined by RFC 5510, by Gauss-Jordan elimination: `V_kk^-1 * V_kn`, column `k + row`.
    fn by_definition(k: usize, n: usize) -> Vec<Vec<u8>> {
        let v = |i: usize, j: usize| EXP[i * j % ORDER];
        // [V_kk | V_kn] reduced to [I | G].
        let mut a: Vec<Vec<u8>> =
            (0..k).map(|i| (0..k).map(|j| v(i, j)).chain((0..n).map(|j| v(i, j))).collect()).collect();
        for c in 0..k {
            let pivot = (c..k).find(|&r| a[r][c] != 0).unwrap();
            a.swap(c, pivot);
            let inverse = EXP[ORDER - usize::from(LOG[usize::from(a[c][c])])];
            for x in &mut a[c] {
                *x = product(*x, inverse);
            }
            for r in (0..k).filter(|&r| r != c) {
                let (factor, row) = (a[r][c], a[c].clone());
                for (x, &y) in a[r].iter_mut().zip(&row) {
                    *x ^= product(factor, y);
                }
            }
        }
        a.into_iter().map(|row| row[k..].to_vec()).collect()
    }

    #[test]
    fn the_generator_matrix_is_that_of_the_definition() {
        let mut generators = Generators::default();
        for (k, n) in [(1, 2), (1, 255), (2, 3), (3, 7), (10, 14), (64, 127), (128, 255), (254, 255)] {
            let g = by_definition(k, n);
            assert!((0..k * k).all(|i| g[i / k][i % k] == u8::from(i / k == i % k)), "the code is systematic");
            // In two steps, as the number of repair packets grows.
            generators.rows(k, 1);
            let rows = generators.rows(k, n - k);
            assert_eq!(rows.len(), k * (n - k));
            for (row, j) in rows.chunks(k).zip(k..) {
                assert!((0..k).all(|i| row[i] == g[i][j]), "k {k}, column {j}");
            }
        }
    }

    #[test]
    fn any_k_values_give_all_others() {
        // A polynomial of degree 4 given by its coefficients, evaluated at alpha^0 to alpha^8.
        let u = [7, 0, 255, 19, 4_u8];
        let value =
            |id: u8| u.iter().enumerate().fold(0, |sum, (i, &c)| sum ^ product(c, EXP[i * usize::from(id) % ORDER]));
        for mask in (0..512_u32).filter(|m| m.count_ones() == 5) {
            let known: Vec<u8> = (0..9).filter(|i| mask >> i & 1 == 1).collect();
            let wanted: Vec<u8> = (0..9).filter(|i| mask >> i & 1 == 0).collect();
            let mut rows = Vec::new();
            interpolate(&known, &wanted, &mut rows);
            for (row, &w) in rows.chunks(5).zip(&wanted) {
                let sum = row.iter().zip(&known).fold(0, |sum, (&c, &id)| sum ^ product(c, value(id)));
                assert_eq!(sum, value(w), "{known:?} -> {w}");
            }
        }
    }
}
