//! Estimators, timers and bounds that several controllers have in common.

pub(crate) mod base_delay;
mod clock_offset;
pub(crate) mod delay_correction;
pub(crate) mod feedback_timeout;
pub(crate) mod frame_interval;
pub(crate) mod frames;
pub(crate) mod incoming_rate;
mod longer_path;
pub(crate) mod mean_size;
pub(crate) mod receiver_estimate;
pub(crate) mod recent_least;
pub(crate) mod rtt;
pub(crate) mod sent_frames;
pub(crate) mod split_mix;
