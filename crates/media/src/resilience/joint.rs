//! Repair, media rate and playout as one decision: requests, a code over frames, copies of what is sent again, and the time of playout,
//! by the value that a [`Plan`] has for a viewer.
//!
//! Both ends run the same [`Planner`], each with what it sees of the path ([`Tally`]): the sender follows the plan's repair, the receiver its
//! playout. No message carries a plan. Where the ends differ, a picture that is not whole at its playout still waits for requests, up to the
//! latest playout, so that a difference costs delay before it costs pictures.

mod bounds;
mod conditions;
mod plan;
mod residual;

pub use bounds::Joint;
pub use conditions::{Conditions, Tally};
pub use plan::{Plan, Planner};
