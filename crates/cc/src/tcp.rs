//! The laws of TCP's congestion control that media and other transports follow: its throughput by loss, the rates and
//! loss intervals of TFRC, and CUBIC's window.

pub(crate) mod cubic;
pub(crate) mod friendly;
pub(crate) mod throughput;

pub use cubic::{Acked, Config as CubicConfig, Cubic};
pub use friendly::{AllowedRate, Feedback, LOSS_INTERVALS, LossIntervals, MAX_RATE, ReceiveRateSet, Terms};
pub use throughput::{Equation, MIN_LOSS_EVENT_RATE, TcpFlow};
