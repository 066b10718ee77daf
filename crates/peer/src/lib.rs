//! Calls with browsers: Weir's session under ICE and DTLS-SRTP.
//!
//! `server::serve` offers a page, WHIP (RFC 9725) and WHEP. Each offer accepted becomes a call on a socket of its own.
//! ICE's messages, DTLS and SRTP are those of `rtc` (sans-IO webrtc-rs), SDP is parsed by it; feedback, controllers, pacing, retransmission and
//! playout are [`weir_session`]'s, as in every other call of Weir's.
//!
//! A packet's way: socket -> [`Transport`](transport::Transport) (STUN and DTLS end there, SRTP is opened) -> [`weir_session::Endpoint`].
//!
//! A browser is called by Weir's session, not by webrtc-rs's peer connection. `peer` takes ICE's messages, DTLS, SRTP
//! and the parser of SDP from `rtc` and puts `session::Endpoint` above them, which has feedback, NACK and RTX, pacing,
//! picture requests and every controller already, so that a call with Chromium runs what simulations measure.
//! `CongestionControl` in webrtc-rs's chain (`webrtc`) is for others' programs: there probes, repair and the RTP queue
//! would be missing. This end is ICE-lite and DTLS's client: it answers checks, and the browser, which knows its
//! networks, decides.

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
