//! A sender that sends less although the path has not changed.

use super::cause;
use crate::why::episodes::Span;
use crate::why::evidence::Evidence;
use crate::why::{Cause, EpisodeKind};

/// Rate left, as a share of that before, of a source that is off: sound, and a picture now and then.
const PAUSED: f64 = 0.12;
/// Most packets of more than 500 bytes a second of it: a black picture is small.
const PAUSED_LARGE: f64 = 2.0;
/// Rate left of a sender that is limited, where the fall is taken for no accident of the picture.
const LIMITED: f64 = 0.7;

/// Share of the logged estimate left, above which it has not moved, and below which it has.
const UNMOVED: f64 = 0.9;
const MOVED: f64 = 0.85;

/// No sign of the path: no loss, no queue, feedback as before.
pub(super) fn quiet(e: &Evidence) -> bool {
    // One late packet is none, if the estimator took it for none.
    still(e) && (e.peak < e.spread.0 + 60.0 || unmoved(e))
}

/// The same but for single packets that are late.
fn still(e: &Evidence) -> bool {
    e.loss < 0.01
        && e.floor.0 < 10.0
        && e.standing_s < 0.6
        && e.unanswered_s < 1.0f64.max(3.0 * e.usual_unanswered_s)
        && e.answer_delay.is_none_or(|(before, now)| now - before < 50.0)
}

fn unmoved(e: &Evidence) -> bool {
    e.estimate.is_some_and(|(before, now, _)| now >= UNMOVED * before)
}

/// Whether the sender itself is all that is left, how sure that is, and the signs.
fn own(e: &Evidence, span: &Span) -> Option<(f64, Vec<String>)> {
    if !quiet(e) || span.kind != EpisodeKind::Fall {
        return None;
    }
    let fall = format!("from {:.0} to {:.0} kbit/s", span.before_kbps, span.least_kbps);
    let mut signs = vec![fall, "no loss, no queue and no late feedback around it".into()];
    let sure = match e.estimate {
        Some((_, now, _)) if unmoved(e) && now > span.least_kbps => {
            signs.push(format!("the estimate stayed at {now:.0} kbit/s"));
            0.85
        }
        Some(_) => return None,
        None if e.told => 0.7,
        // The other end may have asked for it in RTCP that is encrypted, or in a description.
        None => 0.45,
    };
    Some((sure, signs))
}

pub(super) fn paused(e: &Evidence, span: &Span) -> Option<Cause> {
    let (sure, signs) = own(e, span)?;
    let off = span.least_kbps < PAUSED * span.before_kbps && e.large < PAUSED_LARGE && span.to - span.from >= 1.5;
    off.then(|| cause("source-paused", sure.max(0.8), signs))?
}

pub(super) fn limited(e: &Evidence, span: &Span) -> Option<Cause> {
    let (sure, signs) = own(e, span)?;
    let deep = span.least_kbps < LIMITED * span.before_kbps && span.to - span.from >= 2.0;
    cause("sender-limited", if deep { sure } else { 0.3 }, signs)
}

/// The estimate fell with no sign of the path: to a value that does not move, if somebody set it.
pub(super) fn asked(e: &Evidence, span: &Span) -> Option<Cause> {
    let (before, now, held) = e.estimate?;
    // No estimator stays where it is because of one late packet.
    if !(quiet(e) || (held && still(e) && e.spikes < 2)) || span.kind != EpisodeKind::Fall || now >= MOVED * before {
        return None;
    }
    let fall = format!("the estimate fell from {before:.0} to {now:.0} kbit/s with no loss, queue or late feedback");
    if held {
        let text = "it stays there to the bit: a limit that was set, by the other end's description or RTCP".into();
        return cause("other-end-asked", 0.7, vec![fall, text]);
    }
    cause("estimator", 0.4, vec![fall])
}

/// A layer stopped, and the picture went on in another one. Where the path shows signs they come first: they made the
/// estimate too small for the layer.
pub(super) fn layer_paused(e: &Evidence, span: &Span) -> Option<Cause> {
    let layer = e.layer.filter(|_| span.kind == EpisodeKind::Fall)?;
    let ssrc = layer.ssrc.map_or_else(String::new, |s| format!(" ({s:08x})"));
    let stopped = format!("a layer of {:.0} kbit/s{ssrc} stopped", layer.kbps);
    let left = format!("{:.0} kbit/s of the same picture went on", layer.left_kbps);
    cause("layer-paused", if quiet(e) { 0.88 } else { 0.4 }, vec![stopped, left])
}
