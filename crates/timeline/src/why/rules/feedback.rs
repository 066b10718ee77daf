//! Answers that do not come, or come late, while packets arrive.

use super::cause;
use crate::why::Cause;
use crate::why::episodes::Span;
use crate::why::evidence::Evidence;

/// Least time without an answer, in s, and as a multiple of the usual one. Transport-wide feedback comes each 50 to 250 ms.
const LEAST_GAP: f64 = 1.0;
const UNUSUAL: f64 = 3.0;
/// Growth of the way back, in ms.
const LATER: f64 = 60.0;

pub(super) fn lost(e: &Evidence, _: &Span) -> Option<Cause> {
    let is = e.unanswered_s > LEAST_GAP.max(UNUSUAL * e.usual_unanswered_s);
    let text = format!("no feedback for {:.1} s, {:.1} at most before", e.unanswered_s, e.usual_unanswered_s);
    is.then(|| cause("feedback-lost", 0.88, vec![text]))?
}

pub(super) fn late(e: &Evidence, _: &Span) -> Option<Cause> {
    let (before, now) = e.answer_delay?;
    let text = format!("feedback was {:.0} ms longer on its way than before", now - before);
    (e.has_past && now - before > LATER && e.floor.0 < LATER / 2.0).then(|| cause("feedback-late", 0.85, vec![text]))?
}
