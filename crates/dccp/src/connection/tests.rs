//! Two ends and a link between them, for tests.

pub(crate) mod harness;

mod closing;
mod hostile;
mod life;
mod opening;
mod options;
mod synchrony;
