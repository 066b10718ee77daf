//! GF(2^8), the field of Reed-Solomon symbols.
//!
//! The polynomial is 1 + x^2 + x^3 + x^4 + x^8 (RFC 5510, section 8.1, adopted by RFC 6865); `alpha`, that is x,
//! generates all elements except zero.

/// The polynomial's bits.
const POLYNOMIAL: u16 = 0x11d;

/// Number of elements except zero: the order of `alpha`.
pub(crate) const ORDER: usize = 255;

/// `alpha^i`, twice, so that the sum of two logarithms needs no reduction.
pub(crate) static EXP: [u8; 2 * ORDER] = exp();
/// `LOG[alpha^i] = i`, 0 to 254. The logarithm of zero is undefined, and is 0 here.
pub(crate) static LOG: [u8; 256] = log();

const fn exp() -> [u8; 2 * ORDER] {
    let mut table = [0; 2 * ORDER];
    let (mut i, mut x) = (0, 1_u16);
    while i < 2 * ORDER {
        table[i] = x as u8;
        x <<= 1;
        if x & 0x100 != 0 {
            x ^= POLYNOMIAL;
        }
        i += 1;
    }
    table
}

const fn log() -> [u8; 256] {
    let (exp, mut table) = (exp(), [0; 256]);
    let mut i = 0;
    while i < ORDER {
        table[exp[i] as usize] = i as u8;
        i += 1;
    }
    table
}

/// The product by shift and add, from which the tables are computed.
pub(crate) const fn product(a: u8, b: u8) -> u8 {
    product_in(POLYNOMIAL, a, b)
}

/// The product in the field of another polynomial.
pub(crate) const fn product_in(polynomial: u16, a: u8, b: u8) -> u8 {
    let (mut a, mut b, mut sum) = (a as u16, b, 0_u16);
    while b != 0 {
        if b & 1 != 0 {
            sum ^= a;
        }
        a <<= 1;
        if a & 0x100 != 0 {
            a ^= polynomial;
        }
        b >>= 1;
    }
    sum as u8
}

/// For each factor its products with 0 to 15, then with 16 times 0 to 15: a product is the XOR of two of them.
pub(crate) static NIBBLES: [[u8; 32]; 256] = nibbles();

const fn nibbles() -> [[u8; 32]; 256] {
    let mut table = [[0; 32]; 256];
    let mut c = 0;
    while c < 256 {
        let mut i = 0;
        while i < 16 {
            table[c][i] = product(c as u8, i as u8);
            table[c][16 + i] = product(c as u8, (i << 4) as u8);
            i += 1;
        }
        c += 1;
    }
    table
}

/// The product by table.
pub(crate) const fn mul(nibbles: &[u8; 32], x: u8) -> u8 {
    nibbles[(x & 15) as usize] ^ nibbles[16 + (x >> 4) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_field() {
        // RFC 5510's polynomial: alpha^8 = alpha^4 + alpha^3 + alpha^2 + 1; alpha has order 255.
        assert_eq!(EXP[8], 0b0001_1101);
        assert!((1..ORDER).all(|i| EXP[i] != 1) && EXP[ORDER] == 1);
        for a in 0..=255_u8 {
            assert_eq!(product(a, 1), a);
            for b in 0..=255_u8 {
                let c = product(a, b);
                assert_eq!(c, product(b, a));
                assert_eq!(c, mul(&NIBBLES[usize::from(a)], b));
                if a != 0 && b != 0 {
                    assert_eq!(c, EXP[usize::from(LOG[usize::from(a)]) + usize::from(LOG[usize::from(b)])]);
                }
                assert_eq!(product(a, b ^ 0x5a), c ^ product(a, 0x5a));
            }
        }
    }
}
