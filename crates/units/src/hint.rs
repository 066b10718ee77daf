//! Hints for the compiler.

/// Marks the branch that calls it as seldom taken, so that its code stands away from that of most packets:
/// [`core::hint::cold_path`] of Rust 1.95 and later.
#[rustversion::since(1.95)]
#[expect(clippy::incompatible_msrv, reason = "older compilers take the next function")]
#[inline(always)]
pub const fn cold_path() {
    core::hint::cold_path();
}

/// Marks the branch that calls it as seldom taken, which compilers before Rust 1.95 take no notice of.
#[rustversion::before(1.95)]
#[inline(always)]
pub const fn cold_path() {}
