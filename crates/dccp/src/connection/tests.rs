//! Two ends and a link between them, for tests.

pub(crate) mod harness;

mod life;
