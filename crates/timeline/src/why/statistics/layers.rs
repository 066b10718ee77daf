//! Layers in statistics: the `outbound-rtp` objects with a `rid` (RFC 8852) of one picture.

use super::seconds::growth_between;
use crate::Recording;
use crate::why::episodes::Span;
use crate::why::layers::Layer;

/// Seconds before and behind an episode's begin that are compared, those around it apart.
const BEFORE: f64 = 6.0;
const BEHIND: f64 = 5.0;
const APART: f64 = 1.0;
/// Least share of the rate of all layers before of one that counts, and most share of its own that is left of one that
/// stopped.
const LEAST_SHARE: f64 = 0.1;
const STOPPED: f64 = 0.05;
/// Most layers that are looked at: three of each of some twenty pictures.
const MOST: usize = 64;

/// The largest layer that stopped at an episode's begin while another went on. `zero` is the seconds' Unix time in ms.
pub(super) fn stopped(sender: Option<&Recording>, zero: f64, span: &Span) -> Option<Layer> {
    let series = &sender?.series;
    let behind = (span.to - span.from).min(BEHIND) - APART;
    if behind < 1.0 || span.from < BEFORE {
        return None;
    }
    let objects = series.iter().filter(|((kind, _, name), s)| {
        kind == "outbound-rtp" && name == "rid" && s.texts.iter().any(|t| !t.1.is_empty())
    });
    let objects = objects.take(MOST);
    let at = |s: f64| zero + s * 1e3;
    let rates: Vec<(f64, f64)> = objects
        .filter_map(|((kind, id, _), _)| {
            let bytes = series.get(&(kind.clone(), id.clone(), "bytesSent".to_owned()))?;
            let past = growth_between(bytes, at(span.from - BEFORE), at(span.from - APART)) / (BEFORE - APART);
            let now = growth_between(bytes, at(span.from + APART), at(span.from + APART + behind)) / behind;
            Some((past * 8e-3, now * 8e-3))
        })
        .collect();
    let all: f64 = rates.iter().map(|r| r.0).sum();
    let stopped = |r: &(f64, f64)| r.0 > 0.0 && r.0 >= LEAST_SHARE * all && r.1 < STOPPED * r.0;
    let left_kbps: f64 = rates.iter().filter(|r| !stopped(r)).map(|r| r.1).sum();
    let largest = rates.iter().filter(|r| stopped(r)).map(|r| r.0).reduce(f64::max)?;
    (left_kbps > 0.0).then_some(Layer { ssrc: None, kbps: largest, left_kbps })
}
