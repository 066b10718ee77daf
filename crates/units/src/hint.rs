//! Hints for the compiler.

/// Marks the branch that calls it as seldom taken, so that its code stands away from that of most packets: `core::hint::cold_path`
/// where the compiler has it, which is from Rust 1.95 on.
#[rustversion::since(1.95)]
pub use core::hint::cold_path;

/// Marks the branch that calls it as seldom taken: nothing, before Rust 1.95.
#[rustversion::before(1.95)]
#[inline(always)]
pub const fn cold_path() {}
