//! Causes that a log or the other end tells.

use super::cause;
use crate::schema::{EventKind, PairChange, RtcpKind};
use crate::why::Cause;
use crate::why::episodes::Span;
use crate::{Call, Direction};

/// Times around an episode's begin in which they are looked for, in s.
const EARLY: f64 = 4.0;
const LATE: f64 = 1.0;
/// Pictures asked for in that time, from which it is a storm: one each second is usual after loss.
const STORM: usize = 6;

/// Signals with their times, in s.
#[derive(Clone, PartialEq, Debug, Default)]
pub(in crate::why) struct Signals {
    /// Limits in kbit/s, and who set them.
    limits: Vec<(f64, f64, &'static str)>,
    /// Selected pairs, the first one apart.
    routes: Vec<f64>,
    /// Requests for pictures.
    pictures: Vec<f64>,
}

impl Signals {
    /// The signals of a call whose zero is at a Unix time in ms.
    pub(in crate::why) fn of(call: &Call, zero: f64) -> Self {
        let mut out = Self::default();
        for r in &call.recordings {
            let s = |at: weir_units::Timestamp| at.as_nanos() as f64 * 1e-9 - zero * 1e-3;
            for event in &r.events {
                if let EventKind::RemoteLimit(Some(bps)) = event.kind {
                    out.limits.push((s(event.at), bps as f64 * 1e-3, "the remote description (b=AS or b=TIAS)"));
                }
            }
            for rtcp in r.rtcp.iter().filter(|r| r.direction != Direction::Sent) {
                match rtcp.kind {
                    RtcpKind::Remb(rate) => out.limits.push((s(rtcp.at), rate.as_bps() as f64 * 1e-3, "REMB")),
                    RtcpKind::Tmmbr(rate) => out.limits.push((s(rtcp.at), rate.as_bps() as f64 * 1e-3, "TMMBR")),
                    RtcpKind::Pli | RtcpKind::Fir => out.pictures.push(s(rtcp.at)),
                    _ => {}
                }
            }
            let selected = r.pairs.iter().filter(|p| p.change == PairChange::Selected);
            out.routes.extend(selected.skip(1).map(|p| s(p.at)));
            let pairs = r.series.iter().filter(|((_, _, name), _)| name == "selectedCandidatePairId");
            out.routes.extend(pairs.flat_map(|(_, series)| series.texts.iter().skip(1)).map(|t| s(t.0)));
        }
        out
    }
}

/// Causes that are told around an episode's begin.
pub(in crate::why) fn causes(signals: &Signals, span: &Span) -> Vec<Cause> {
    let near = |at: &f64| *at > span.from - EARLY && *at < span.from + LATE;
    let mut asked = signals.limits.iter().filter(|(at, kbps, _)| near(at) && *kbps < span.before_kbps);
    let asked = asked.next_back().and_then(|(_, kbps, by)| {
        cause("other-end-asked", 0.95, vec![format!("{by} allows {kbps:.0} kbit/s, {:.0} were sent", span.before_kbps)])
    });
    let route = signals.routes.iter().find(|at| near(at)).and_then(|at| {
        cause("route-change", 0.9, vec![format!("another candidate pair was selected {:.1} s before", span.from - at)])
    });
    let pictures = signals.pictures.iter().filter(|at| near(at)).count();
    let pictures = (pictures >= STORM)
        .then(|| cause("keyframe-requests", 0.6, vec![format!("{pictures} pictures were asked for in {EARLY:.0} s")]));
    [asked, route, pictures.flatten()].into_iter().flatten().collect()
}
