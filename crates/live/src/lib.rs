//! Calls and link emulation in real time.
//!
//! On Linux: calls, DCCP sockets and the emulator, which use its socket options, eventfd, TUN devices and network
//! namespaces. Elsewhere only [`clock`], [`ice`], [`sdp`], [`srtp`] and, on Unix, [`signal`] exist.
//!
//! This is the only room with sockets, TUN devices, network namespaces and a clock, except for the testbed above it.
//! Its algorithms are those of the rooms below: an endpoint is `weir_session`'s, a link is `weir_path`'s.

#[cfg(target_os = "linux")]
pub mod call;
pub mod clock;
#[cfg(target_os = "linux")]
pub mod dccp;
#[cfg(target_os = "linux")]
pub mod emulate;
pub mod ice;
#[cfg(target_os = "linux")]
pub mod netns;
#[cfg(target_os = "linux")]
pub mod overlay;
#[cfg(target_os = "linux")]
pub mod realtime;
pub mod sdp;
#[cfg(unix)]
pub mod signal;
pub mod srtp;
#[cfg(target_os = "linux")]
pub mod tun;
#[cfg(target_os = "linux")]
pub mod udp;
