//! The laws of TCP's congestion control that media and other transports follow: its throughput by loss, and CUBIC's window.

pub mod cubic;
pub mod throughput;
