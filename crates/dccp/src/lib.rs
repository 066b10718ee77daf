//! The Datagram Congestion Control Protocol (RFC 4340) without sockets or clocks: datagrams and the time in, datagrams
//! and deadlines out.
//!
//! Packets are those of DCCP-UDP (RFC 6773): the payload of UDP, that is the DCCP header, including its own ports, and
//! what follows it. The congestion control of each direction (a half-connection) is one of [`ccid`].
//!
//! DCCP is in user space, over UDP alone (RFC 6773): UDP's checksum replaces DCCP's, whose field is zero. Captures
//! show the packets as IP protocol 33 with the checksum that they would have there, since dissectors support no other
//! form.
//!
//! How DCCP is checked. Every state with every packet type is a table in a test, written from RFC 4340, section 8.5;
//! short openings and closings over a faulty network are searched exhaustively; off-path attackers are simulated. See
//! `crates/dccp/tests/`.

pub mod ack_vector;
pub mod ccid;
mod config;
pub mod connection;
pub mod data_dropped;
pub mod feature;
pub mod listener;
pub mod option;
pub mod packet;
mod packet_type;
pub mod queue;
mod reset_code;

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
