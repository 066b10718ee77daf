//! The Datagram Congestion Control Protocol (RFC 4340) without sockets or clocks: datagrams and the time in, datagrams
//! and deadlines out.
//!
//! Packets are those of DCCP-UDP (RFC 6773): the payload of UDP, that is the DCCP header, including its own ports, and
//! what follows it. The congestion control of each direction (a half-connection) is one of [`ccid`].

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
