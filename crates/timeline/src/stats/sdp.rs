//! Limits of rate in a session description.

use crate::recording::Recording;
use crate::schema::{Event, EventKind};
use serde_json::Value;
use weir_units::Timestamp;

/// Adds the limit that a remote description states for video: `b=TIAS` in bit/s, else `b=AS` in kbit/s (RFC 4566,
/// section 5.8, and RFC 3890). A description without content says nothing.
pub(super) fn limits(out: &mut Recording, at: Timestamp, description: &Value) {
    let text = match description {
        Value::Object(d) => d.get("sdp").and_then(Value::as_str).map(str::to_owned),
        Value::String(s) => match serde_json::from_str(s) {
            Ok(Value::Object(d)) => d.get("sdp").and_then(Value::as_str).map(str::to_owned),
            // Older dumps have a text: "type: answer, sdp: v=0...".
            _ => s.contains("v=0").then(|| s.clone()),
        },
        _ => None,
    };
    let Some(text) = text.filter(|t| t.contains("m=")) else { return };
    let mut limit = None;
    let mut video = false;
    for line in text.lines().map(str::trim) {
        if let Some(media) = line.strip_prefix("m=") {
            video = media.starts_with("video");
        }
        if video && let Some(bps) = bandwidth(line) {
            limit = Some(limit.map_or(bps, |l: u64| l.min(bps)));
        }
    }
    if out.room(1) {
        out.events.push(Event { at, kind: EventKind::RemoteLimit(limit) });
    }
}

fn bandwidth(line: &str) -> Option<u64> {
    if let Some(tias) = line.strip_prefix("b=TIAS:") {
        return tias.parse().ok();
    }
    line.strip_prefix("b=AS:")?.parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    #[test]
    fn the_limit_of_video_counts_and_not_that_of_audio() {
        let mut out = Recording::new("", Format::GetStats);
        let sdp = "v=0\r\nm=audio 9\r\nb=AS:40\r\nm=video 9\r\nb=AS:300\r\nb=TIAS:290000\r\n";
        limits(&mut out, Timestamp::ZERO, &serde_json::json!({"type": "answer", "sdp": sdp}));
        limits(&mut out, Timestamp::ZERO, &Value::from(serde_json::json!({"sdp": "v=0\nm=video 9\n"}).to_string()));
        limits(&mut out, Timestamp::ZERO, &Value::from(""));
        let limits: Vec<&EventKind> = out.events.iter().map(|e| &e.kind).collect();
        assert_eq!(limits, [&EventKind::RemoteLimit(Some(290_000)), &EventKind::RemoteLimit(None)]);
    }
}
