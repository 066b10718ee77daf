//! RFC 9743's questions to a congestion control, those that a simulation can answer.
//!
//! The RFC (sections 5 to 8) has criteria and, on purpose, no thresholds. Here each question has cases: a scenario, the numbers read
//! from its runs, a bound for each, and the reason of the bound. Bounds are those of the report card of RFC 8867 ([`crate::rfc`]), of
//! other RFCs, or comparisons:
//!
//! - **harm to others**: what the other flow gets beside the controller over what it gets beside CUBIC (RFC 9438) in the
//!   controller's place, since the RFC asks for "more harm than algorithms published in previous Standards Track RFCs" (section 5.2);
//! - **robustness**: the same run without the disturbance.
//!
//! A value is the mean over seeds; of a case with several variants the worst one counts. Where the RFC asks to explore and nothing in
//! what the sender sees could help it, the number is shown without a bound.

mod answers;
mod bounds;
mod general;
mod lies;
mod mixed;
mod nodes;
mod paths;
mod question;
mod read;
mod work;

pub use answers::{Answer, Answers, CaseAnswer, CheckAnswer, Tally, Value};
pub use question::{Bound, Case, Check, Question};
pub use work::judge;

/// The suite's name on the command line.
pub const NAME: &str = "rfc9743";

/// All questions, in the order of the RFC.
pub fn questions() -> Vec<Question> {
    let parts = [general::questions(), mixed::questions(), paths::questions(), nodes::questions()];
    parts.into_iter().flatten().collect()
}
