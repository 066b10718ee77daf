//! Calls, link emulation and testbeds in real time.
//!
//! This is the only room with sockets, TUN devices, network namespaces and a clock. Its algorithms are those of the rooms
//! below: an endpoint is `weir_session`'s, a link is `weir_path`'s.

#[cfg(target_os = "linux")]
pub mod call;
pub mod clock;
#[cfg(target_os = "linux")]
pub mod dccp;
#[cfg(target_os = "linux")]
pub mod emulate;
#[cfg(target_os = "linux")]
pub mod netns;
pub mod sdp;
#[cfg(unix)]
pub mod signal;
pub mod srtp;
#[cfg(target_os = "linux")]
pub mod testbed;
#[cfg(target_os = "linux")]
pub mod tun;
#[cfg(target_os = "linux")]
pub mod udp;
