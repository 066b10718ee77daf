//! Spans in which a flow's source is paused.

use super::clock::RawSignedTime;
use super::error::InputError;
use super::media::Source;
use super::quantity::Time;
use super::spanned::At;
use super::tree::Text;
use serde::Deserialize;
use weir_units::TimeDelta;

/// A span in which the source is paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// Beginning.
    pub from: TimeDelta,
    /// End.
    pub to: TimeDelta,
    /// Movement of the media clock, which RTP timestamps state, at the end; backwards if negative.
    pub media_clock: TimeDelta,
}

/// A pause.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { from = \"10 s\", to = \"20 s\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Pause"))]
pub(crate) struct RawPause {
    /// Beginning.
    from: Time,
    /// End.
    to: Time,
    /// How far the media clock, which RTP timestamps state, has moved at the end beside the time that has passed: "-20 s" if it stood
    /// still over a pause of 20 s, "60 min" if it starts again an hour ahead; not at all if absent. With a model as source only.
    media_clock: Option<At<RawSignedTime>>,
}

/// The pauses of a flow with this source. Errors: they are not in order, or a media clock moves under an encoder, whose pictures are
/// compared by their timestamps.
pub(crate) fn pauses(text: &Text, raw: &[At<RawPause>], source: &Source) -> Result<Vec<Pause>, InputError> {
    let mut pauses: Vec<Pause> = Vec::new();
    for p in raw {
        let (from, to) = (p.value.from.0, p.value.to.0);
        if from >= to || pauses.last().is_some_and(|last| from <= last.to) {
            let message = "expected `from` before `to`, and pauses in order and apart";
            return Err(text.error(p.span.clone(), message));
        }
        if let (Some(moved), Source::Encoder(_)) = (&p.value.media_clock, source) {
            let message = "pictures of an encoder are compared by their timestamps, which may not jump";
            return Err(text.error(moved.span.clone(), message).help("leave `media_clock` out, or take a model"));
        }
        let media_clock = p.value.media_clock.as_ref().map_or(TimeDelta::ZERO, |t| t.value.time());
        pauses.push(Pause { from, to, media_clock });
    }
    Ok(pauses)
}
