//! Forward error correction for packets: codes, what each repair packet protects, and recovery at the receiver.
//!
//! A packet is a [`Symbol`] here: bytes, and a count of zero bytes that belong behind them. Media that travels as a
//! length only is a payload of zeros, and every code of this room is linear, so both are protected alike: a repair symbol
//! has bytes for as long as any packet it protects has, and zeros behind.
//!
//! The sender's half is an [`Encoder`], the receiver's a [`RepairWindow`]; a [`Scheme`] says which code.
//!
//! ```
//! use weir_fec::{Encoder, Importance, Limits, RepairWindow, Scheme, Symbol};
//! use weir_units::Timestamp;
//!
//! let mut encoder = Encoder::new(Scheme::parity(3)?)?;
//! let mut window = RepairWindow::new(Limits::default());
//! let now = Timestamp::from_millis(20);
//! for (sequence, packet) in [(7, "Weir"), (8, "is a"), (9, "dam.")] {
//!     let symbol = Symbol::new(packet.as_bytes());
//!     encoder.push(sequence, symbol, Importance::Other);
//!     if sequence != 8 {
//!         window.on_source(now, sequence, symbol);
//!     }
//! }
//! while let Some(repair) = encoder.poll_repair() {
//!     window.on_repair(now, repair);
//! }
//! let recovered = window.poll_recovered().expect("one of three packets was lost");
//! assert_eq!((recovered.sequence, recovered.symbol.bytes), (8, "is a".as_bytes()));
//! # Ok::<(), weir_fec::SchemeError>(())
//! ```

mod buffers;
mod coverage;
mod encoder;
mod field;
mod kernel;
mod reed_solomon;
mod repair;
mod scheme;
mod sum;
mod symbol;
mod window;

pub use coverage::Coverage;
pub use encoder::{Encoder, EncoderCounts};
pub use repair::{Code, Recovered, Repair, Shape};
pub use scheme::{Importance, Protection, Scheme, SchemeError};
pub use symbol::Symbol;
pub use window::{Limits, RepairCounts, RepairWindow};
