//! Bounds that many questions share, and why.

use super::question::Bound::{self, Least, Most, Shown};

/// A bound with its reason.
pub(super) type Reasoned = (Bound, &'static str);

pub(super) const USE: Reasoned = (Least(0.85), "least use of the report card of RFC 8867 (`weir judge rfc`)");
pub(super) const LOSS: Reasoned = (Most(5.0), "greatest loss of the report card of RFC 8867");
pub(super) const FAIR: Reasoned = (Least(0.95), "least fairness of the report card of RFC 8867");
pub(super) const DELAY: Reasoned =
    (Most(100.0), "150 ms from mouth to ear (ITU-T G.114), less 50 ms for path and devices");
pub(super) const HARM: Reasoned =
    (Least(0.9), "no less than beside CUBIC in the call's place (section 5.2); a tenth is left to chance");
pub(super) const LATER: Reasoned =
    (Most(1.1), "no longer than beside CUBIC in the call's place; a tenth is left to chance");
pub(super) const MORE_LOST: Reasoned =
    (Most(1.0), "no more than beside CUBIC in the call's place; 1 % of the packets is left to chance");
pub(super) const STARVED: Reasoned =
    (Least(0.1), "below a tenth of its half of the link a flow is starved (section 5.2)");
pub(super) const AS_WITHOUT: Reasoned =
    (Least(0.85), "the disturbance is no congestion; the share is that of the report card's use");
pub(super) const SHOWN: Reasoned = (Shown, "the RFC asks to look; no bound follows");
