//! Forward error correction on the wire: which packets repair packets protect, and the strings on which codes operate.
//!
//! Codes are independent of RTP: they take a string of octets per packet and return the lost ones. This module converts
//! packets to strings, writes and parses the headers that state which packets a repair packet protects, and converts
//! recovered strings to RTP packets.
//!
//! | module | follows |
//! |---|---|
//! | [`parity`] | the protected string of the XOR codes: RFC 5109 section 8, RFC 6015 section 6.2, RFC 8627 section 6.2 |
//! | [`ulpfec`] | RFC 5109 |
//! | [`flexfec`] | RFC 8627 |
//! | [`flexfec03`] | draft-ietf-payload-flexible-fec-scheme-03, as in browsers |
//! | [`interleaved`] | RFC 6015 |
//! | [`red`] | RFC 2198; RFC 5109 section 14.2 |
//! | [`reed_solomon`] | RFC 6865; RFC 6363 section 5 |
//! | [`rlc`] | RFC 8681 |
//!
//! Media may be carried as a length only, so that strings and packets are [`Octets`]: bytes, and a number of zeros that
//! follow them. All codes here are linear, so zeros are protected like other bytes.
//!
//! Independent checks:
//!
//! | | checked by |
//! |---|---|
//! | ULPFEC | the headers of RFC 5109, section 10; whole groups of packets sent by GStreamer and Chromium, recomputed to the byte and recovered |
//! | RED | the examples of RFC 2198, section 7, and RFC 5109, section 10.3; Chromium's packets; tshark |
//! | interleaved parity | tshark, for the header |
//! | FlexFEC | the figures of RFC 8627 |
//! | FlexFEC-03 | a group of packets by Chromium, recomputed to the byte and recovered; Chromium as the receiver in calls |
//! | Reed-Solomon payload IDs | the figures of RFC 6865 only: no other implementation was at hand |
//! | RLC's payload ID | the figures of RFC 8681 only |
//!
//! Readers take the RTP payload unless stated otherwise; offsets in their errors count from its start.

mod coverage;
pub mod flexfec;
pub mod flexfec03;
pub mod interleaved;
mod octets;
pub mod parity;
pub mod red;
pub mod reed_solomon;
pub mod rlc;
pub mod ulpfec;

pub use coverage::{Coverage, Mask, Pattern, Sequences};
pub use octets::Octets;
