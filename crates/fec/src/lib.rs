//! Forward error correction for packets: codes, what each repair packet protects, and recovery at the receiver.
//!
//! A packet is a [`Symbol`] here: bytes, and a count of zero bytes that belong behind them. Media that travels as a
//! length only is a payload of zeros, and every code of this room is linear, so both are protected alike.

mod symbol;

pub use symbol::Symbol;
