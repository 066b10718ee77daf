//! Weir in GStreamer: elements of the plugin `weir` (`libgstweir.so`), built with the feature `gst`.
//!
//! - `weirbwe` is in a sender's RTP stream where `rtpgccbwe` is, directly before `rtpsession` or `rtpbin`: it paces packets and
//!   estimates the rate from transport-wide feedback, with any controller that needs no more than that.
//! - `weirfecenc` and `weirfecdec` send and use Reed-Solomon repair packets beside an RTP stream.
//!
//! All are shells: what they decide comes from `weir-cc` and `weir-session`, and GStreamer's system clock is the only clock.
//! `docs/gstreamer.md` has pipelines.

#[cfg(feature = "gst")]
mod bwe;
#[cfg(feature = "gst")]
mod fec;
#[cfg(feature = "gst")]
mod plugin;

#[cfg(feature = "gst")]
pub use plugin::register_static;
