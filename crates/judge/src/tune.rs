//! The search for a controller's parameters: candidates over recorded and generated capacity and over the scoreboard's rows.
//!
//! A candidate is judged by [`Judgement`]: the worst traces count, not their mean, and a goal lost costs more than another can
//! gain. The optimiser is the caller's: it has numbers around zero ([`Space`]), and gets one number back.

mod campaign;
mod generated;
mod judgement;
mod space;

pub use campaign::{Campaign, Evaluation, Report, Validation};
pub use generated::generated;
pub use judgement::Judgement;
pub use space::{Parameter, Space};
