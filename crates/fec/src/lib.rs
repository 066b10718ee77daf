//! Forward error correction for packets: codes, what each repair packet protects, and recovery at the receiver.
//!
//! A packet is a [`Symbol`] here: bytes, and a count of zero bytes that belong behind them. Media that travels as a
//! length only is a payload of zeros, and every code of this room is linear, so both are protected alike: a repair
//! symbol has bytes for as long as any packet it protects has, and zeros behind.
//!
//! The sender's half is an [`Encoder`], the receiver's a [`RepairWindow`]:
//!
//! | [`Scheme`] | repair packets | recovers | source |
//! |---|---|---|---|
//! | `Parity` | 1 for every `interval` packets | 1 loss a group | RFC 5109; the probes of FBRA |
//! | `Interleaved` | 1 a column of `columns` x `rows` | a burst of `columns` | RFC 6015 |
//! | `TwoDimensional` | 1 a row and 1 a column | what rows and columns free in turn | RFC 8627, section 1.1.4 |
//! | `ReedSolomon` | `repair` of `n` | any `repair` losses of `n` | RFC 6865 and RFC 5510; DP-FEC |
//!
//! A [`Protection`] plan may give packets of each [`Importance`] a scheme, and blocks, of their own. Schemes change at
//! run time. What a repair packet protects is a [`Coverage`], a set of sequence numbers; packets that were left out,
//! such as padding, are gaps in it. Sequence numbers are 64 bits wide, unwrapped by the caller.
//!
//! Packets differ in length, and codes take the shorter ones as if zeros followed. Whoever must know a recovered
//! packet's length protects it with the packet: a symbol is what the packet format's own rules say is protected.
//!
//! The window bears anything: a forged or damaged repair packet costs bounded memory and time and comes under a head of
//! [`RepairCounts`]; a packet that arrived is never handed out. Neither half allocates in steady state. Results do not
//! depend on the processor, whose vector instructions are found at run time; `cargo bench -p weir-fec` measures them
//! beside other libraries.
//!
//! ```
//! use weir_fec::{Encoder, Importance, WindowLimits, RepairWindow, Scheme, Symbol};
//! use weir_units::Timestamp;
//!
//! let mut encoder = Encoder::new(Scheme::parity(3)?)?;
//! let mut window = RepairWindow::new(WindowLimits::default());
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
pub use sum::parity;
pub use symbol::Symbol;
pub use window::{RepairCounts, RepairWindow, WindowLimits};
