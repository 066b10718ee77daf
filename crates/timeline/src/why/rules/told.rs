//! Causes that a log or the other end tells.

use super::cause;
use crate::schema::{EventKind, PairChange, ProbeStep, RtcpKind};
use crate::why::episodes::Span;
use crate::why::{Cause, EpisodeKind};
use crate::{Call, Direction, EstimateKind};

/// Times around an episode's begin in which they are looked for, in s.
const EARLY: f64 = 4.0;
const LATE: f64 = 1.0;
/// Longest time from a fall's begin to the new pair, in s: ICE notices a path that is gone after some seconds (consent,
/// RFC 7675, after 30 at the latest) and has to check another.
const HANDOVER: f64 = 10.0;
/// Time behind a fall's end in which a new pair is the reason for the end, in s: what comes back does so over it.
const SETTLES: f64 = 3.0;
/// Time since the first packet in which another pair is a part of connecting, in s: checks go on while media begins (RFC 8445, section 8).
const CONNECTING: f64 = 3.0;
/// Time in which an estimate has fallen, and for which one is held, in s.
const SETTLED: f64 = 2.0;
const HELD: f64 = 6.0;
/// Pictures asked for in that time, from which it is a storm: one each second is usual after loss.
const STORM: usize = 6;

/// Share of the usual rate below which the estimate holds a start down, and longest time from the first estimate to the
/// first probe, in s: libwebrtc probes at three and six times the start rate at once.
const HELD_DOWN: f64 = 0.75;
const FIRST_PROBE: f64 = 5.0;

/// Signals with their times, in s.
#[derive(Clone, PartialEq, Debug, Default)]
pub(in crate::why) struct Signals {
    /// Limits in kbit/s, and who set them.
    limits: Vec<(f64, f64, &'static str)>,
    /// Selected pairs, the first one apart.
    routes: Vec<f64>,
    /// Requests for pictures.
    pictures: Vec<f64>,
    /// Logged estimates in kbit/s, those by delay and by loss apart.
    estimates: [Vec<(f64, f64)>; 2],
    /// Steps of probes, of logs that have them.
    probes: Vec<(f64, ProbeStep)>,
    /// Whether RTCP of the other end could be read.
    pub(in crate::why) told: bool,
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
                out.told |= !matches!(rtcp.kind, RtcpKind::Unread(_));
                match rtcp.kind {
                    RtcpKind::Remb(rate) => out.limits.push((s(rtcp.at), rate.as_bps() as f64 * 1e-3, "REMB")),
                    RtcpKind::Tmmbr(rate) => out.limits.push((s(rtcp.at), rate.as_bps() as f64 * 1e-3, "TMMBR")),
                    RtcpKind::Pli | RtcpKind::Fir => out.pictures.push(s(rtcp.at)),
                    _ => {}
                }
            }
            out.probes.extend(r.probes.iter().map(|p| (s(p.at), p.step)));
            for estimate in &r.estimates {
                let kinds = match estimate.kind {
                    EstimateKind::Delay => 0,
                    EstimateKind::Loss => 1,
                    _ => continue,
                };
                out.estimates[kinds].push((s(estimate.at), estimate.rate.as_bps() as f64 * 1e-3));
            }
            let selected = r.pairs.iter().filter(|p| p.change == PairChange::Selected);
            out.routes.extend(selected.skip(1).map(|p| s(p.at)).filter(|at| *at > CONNECTING));
            let pairs = r.series.iter().filter(|((_, _, name), _)| name == "selectedCandidatePairId");
            out.routes.extend(pairs.flat_map(|(_, series)| series.texts.iter().skip(1)).map(|t| s(t.0)));
        }
        out
    }

    /// The estimate, which is the lower one of those by delay and by loss, before an episode and in it, and whether it
    /// stays there to the bit.
    pub(in crate::why) fn estimate(&self, span: &Span) -> Option<(f64, f64, bool)> {
        let last = |of: &Vec<(f64, f64)>, at: f64| of.partition_point(|e| e.0 <= at).checked_sub(1).map(|i| of[i].1);
        let at = |at: f64| self.estimates.iter().filter_map(|e| last(e, at)).reduce(f64::min);
        let (before, now) = (at(span.from - SETTLED)?, at(span.from + SETTLED)?);
        Some((before, now, at(span.from + HELD) == Some(now)))
    }

    /// Causes that settings and requests logged near an episode's beginning name.
    ///
    /// `quiet`: the path shows no sign. Where it does, pictures are asked for because packets are lost or late.
    pub(in crate::why) fn causes(&self, span: &Span, quiet: bool) -> Vec<Cause> {
        let near = |at: &f64| *at > span.from - EARLY && *at < span.from + LATE;
        let mut asked = self.limits.iter().filter(|(at, kbps, _)| near(at) && *kbps < span.before_kbps);
        let asked = asked.next_back().and_then(|(_, kbps, by)| {
            cause(
                "other-end-asked",
                0.95,
                vec![format!("{by} allows {kbps:.0} kbit/s, {:.0} were sent", span.before_kbps)],
            )
        });
        let until = (span.to + SETTLES).min(span.from + HANDOVER).max(span.from + LATE);
        let route = self.routes.iter().find(|at| **at > span.from - EARLY && **at <= until).and_then(|at| {
            let text = format!("another candidate pair was selected, {:.1} s behind the begin", at - span.from);
            // Surer than an outage, which the old path's end is as long as it lasts.
            cause("route-change", 0.92, vec![text])
        });
        let pictures = self.pictures.iter().filter(|at| near(at)).count();
        let pictures = (pictures >= STORM).then(|| {
            let sure = if quiet { 0.86 } else { 0.3 };
            cause(
                "keyframe-requests",
                sure,
                vec![format!("{pictures} pictures were asked for in {:.0} s", EARLY + LATE)],
            )
        });
        [asked, route, pictures.flatten(), self.probe(span)].into_iter().flatten().collect()
    }

    /// A start that the estimate held down, because no probe showed that there is more.
    fn probe(&self, span: &Span) -> Option<Cause> {
        let (_, estimate, _) = self.estimate(&Span { from: span.from + 2.0 * SETTLED, ..*span })?;
        if span.kind != EpisodeKind::SlowStart || estimate >= HELD_DOWN * span.before_kbps {
            return None;
        }
        let inside = |steps: &dyn Fn(&ProbeStep) -> bool| {
            self.probes.iter().filter(|(at, step)| *at >= span.from && *at < span.to && steps(step)).count()
        };
        let failed = inside(&|s| matches!(s, ProbeStep::Failed(_)));
        if inside(&|s| *s == ProbeStep::Succeeded) > 0 {
            return None;
        }
        let held = format!("the estimate was {estimate:.0} kbit/s, {:.0} are usual in the call", span.before_kbps);
        let why = self.probes.iter().rev().find_map(|(at, step)| match step {
            ProbeStep::Failed(why) if *at >= span.from && *at < span.to => Some(*why),
            _ => None,
        });
        if let Some(why) = why {
            let probes = format!("{failed} probes failed in it, the last one by {why}, and none succeeded");
            return cause("probe-failed", 0.85, vec![held, probes]);
        }
        let missing = inside(&|s| matches!(s, ProbeStep::Made { .. })) == 0 && span.to - span.from > FIRST_PROBE;
        missing.then(|| cause("probe-failed", 0.6, vec![held, "no probe was made in it".into()]))?
    }
}
