//! A sender that sends less although the path has not changed.

use super::cause;
use crate::why::Cause;
use crate::why::episodes::Span;
use crate::why::evidence::Evidence;

/// Rate left, as a share of that before, of a source that is off: sound, and a picture now and then.
const PAUSED: f64 = 0.12;
/// Most packets of more than 500 bytes a second of it: a black picture is small.
const PAUSED_LARGE: f64 = 2.0;
/// Rate left of a sender that is limited, where the fall is taken for no accident of the picture.
const LIMITED: f64 = 0.7;

/// No sign of the path: no loss, no queue, feedback as before.
fn quiet(e: &Evidence) -> bool {
    e.loss < 0.01
        && e.floor.0 < 10.0
        && e.standing_s < 0.6
        && e.peak < e.spread.0 + 60.0
        && e.unanswered_s < 1.0f64.max(3.0 * e.usual_unanswered_s)
        && e.answer_delay.is_none_or(|(before, now)| now - before < 50.0)
}

fn signs(span: &Span) -> Vec<String> {
    let fall = format!("from {:.0} to {:.0} kbit/s", span.before_kbps, span.least_kbps);
    vec![fall, "no loss, no queue and no late feedback around it".into()]
}

pub(super) fn paused(e: &Evidence, span: &Span) -> Option<Cause> {
    let off = span.least_kbps < PAUSED * span.before_kbps && e.large < PAUSED_LARGE;
    (quiet(e) && off && span.to - span.from >= 1.5).then(|| cause("source-paused", 0.8, signs(span)))?
}

pub(super) fn limited(e: &Evidence, span: &Span) -> Option<Cause> {
    let deep = span.least_kbps < LIMITED * span.before_kbps && span.to - span.from >= 2.0;
    (quiet(e) && deep).then(|| cause("sender-limited", 0.7, signs(span)))?
}

pub(super) fn slow(e: &Evidence, span: &Span) -> Option<Cause> {
    (quiet(e) && span.least_kbps >= LIMITED * span.before_kbps).then(|| cause("sender-limited", 0.3, signs(span)))?
}
