//! The arithmetic on packets' bytes.

/// `into ^= from`, over the shorter of both.
pub(crate) fn xor_into(into: &mut [u8], from: &[u8]) {
    for (a, b) in into.iter_mut().zip(from) {
        *a ^= b;
    }
}
