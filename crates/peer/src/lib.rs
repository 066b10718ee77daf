//! Calls with browsers: Weir's session under ICE and DTLS-SRTP.
//!
//! `server::serve` offers a page, WHIP (RFC 9725) and WHEP. Each offer accepted becomes a call on a socket of its own.
//! ICE's messages, DTLS and SRTP are those of `rtc` (sans-IO webrtc-rs), SDP is parsed by it; feedback, controllers, pacing, retransmission and
//! playout are [`weir_session`]'s, as in every other call of Weir's.
//!
//! A packet's way: socket -> [`Transport`](transport::Transport) (STUN and DTLS end there, SRTP is opened) -> [`weir_session::Endpoint`].

#![cfg(target_os = "linux")]

#[cfg(feature = "server")]
pub mod call;
pub mod caller;
pub mod dtls;
pub mod ice;
#[cfg(feature = "server")]
pub mod room;
#[cfg(feature = "server")]
pub mod saved;
pub mod sdp;
#[cfg(feature = "server")]
pub mod server;
pub mod transport;
