//! Why a controller's rate moved: a run second by second, in words.
//!
//! Each row of a run's series is given a reason, from the controller's internals where they are known by name (`reasons.rs`), else
//! from what any flow has: delay, loss and the source's rate. A span's reason is the one that moved the rate most in the direction
//! in which it went; a reason for the other direction is none, so that the words never contradict the move. Spans with the same reason in which the rate hardly moved are joined.

mod internals;
mod reasons;
mod spans;

pub use internals::mbps;
pub use reasons::Reason;
pub use spans::{Explanation, Span, explain};
