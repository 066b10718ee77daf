//! Forward error correction for packets: codes, the coverage of repair packets, and recovery at the receiver.
//!
//! A packet is a [`Symbol`]: bytes, and a number of zero bytes that follow them. Media carried as a length only is a
//! payload of zeros, and every code here is linear, so both are protected alike: a repair symbol has as many bytes as
//! the longest bytes of any packet that it protects, followed by zeros.
//!
//! The sender's half is an [`Encoder`], the receiver's a [`RepairWindow`]:
//!
//! | [`Scheme`] | repair packets | recovers | source |
//! |---|---|---|---|
//! | `Parity` | 1 for every `interval` packets | 1 loss a group | RFC 5109; the probes of FBRA |
//! | `Interleaved` | 1 a column of `columns` x `rows` | a burst of `columns` | RFC 6015 |
//! | `TwoDimensional` | 1 a row and 1 a column | what rows and columns free in turn | RFC 8627, section 1.1.4 |
//! | `ReedSolomon` | `repair` of `n` | any `repair` losses of `n` | RFC 6865 and RFC 5510; DP-FEC |
//! | `Rlc` | `repairs` among `sources`, over a window that slides | as many losses as repair packets over them | RFC 8681 |
//!
//! Packets to protect that are chosen later are named to a [`SourceHistory`]; its repair packets are RLC's, over any of its packets.
//!
//! A [`Protection`] plan may have separate schemes and blocks for packets of each [`Importance`]. Schemes can change at
//! run time. The packets protected by a repair packet are a [`Coverage`], a set of sequence numbers; packets left out,
//! such as padding, are gaps in it. Sequence numbers have 64 bits, unwrapped by the caller.
//!
//! Packets differ in length, and codes extend shorter ones with zeros. To recover a packet's length, protect it with
//! the packet: the packet format's rules define the symbol.
//!
//! The window accepts untrusted input: a forged or damaged repair packet costs bounded memory and time and is counted
//! in [`RepairCounts`]; a packet that arrived is never returned as recovered. Neither half allocates in steady state.
//! Results do not depend on the processor, whose vector instructions are detected at run time; `cargo bench -p
//! weir-fec` compares them with other libraries.
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
//!
//! Codes are our own, with kernels chosen at run time. None of the libraries examined is fast at all sizes and at
//! decoding; the matrix code of RFC 6865 with GFNI and AVX-512 is, but for encoding 64 + 63, where a transform in a
//! larger field wins (`crates/fec/benches/codes.rs` compares them). Apart from foreign calls in `codecs` and the
//! pointers of C programs in `capi::border`, the only `unsafe` of the project is in `fec::kernel::x86`.

mod buffers;
mod coverage;
mod encoder;
mod field;
mod history;
mod kernel;
mod reed_solomon;
mod repair;
mod rlc;
mod scheme;
mod sum;
mod symbol;
mod window;

pub use coverage::Coverage;
pub use encoder::{Encoder, EncoderCounts};
pub use history::SourceHistory;
pub use repair::{Code, Recovered, Repair, Shape};
pub use rlc::{Combination, RlcField};
pub use scheme::{Importance, Protection, Scheme, SchemeError};
pub use sum::parity;
pub use symbol::Symbol;
pub use window::{RepairCounts, RepairWindow, WindowLimits};

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
