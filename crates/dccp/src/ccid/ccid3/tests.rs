//! Two ends over a path with a queue.

mod connections;
mod hostile;
mod loops;
pub(crate) mod net;
mod second_interval;
