//! Two ends over a path with a queue.

mod loops;
mod net;
