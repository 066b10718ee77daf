//! The numbers of TFRC (RFC 5348) that the controller `tfrc` and DCCP's CCIDs 3 and 4 share: X, X_recv_set and the loss
//! intervals. Loss events are found by arrival times at the sender here, and by window counters at DCCP's receiver.

mod loss_intervals;
mod rate;
mod receive_rate;

pub use loss_intervals::{LossIntervals, N as LOSS_INTERVALS};
pub use rate::{AllowedRate, Feedback, MAX_RATE, Terms};
pub use receive_rate::ReceiveRateSet;
pub(crate) use receive_rate::{CLOCK_JUMP, ReceiveRate};
