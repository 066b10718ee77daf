//! Numbers that many questions read. Flows of a name are that one, or those that a count has made of it (`v-1`, `v-2`).

use super::question::Runs;
use crate::rows::{Reading, jain};
use weir_lab::results::FlowSummary;

/// The flow under the controller, and the one beside it.
pub(super) const V: &str = "v";
pub(super) const OTHER: &str = "other";

/// Names of the flows that go by a name.
fn named<'a>(r: &Reading<'a>, name: &'a str) -> impl Iterator<Item = &'a FlowSummary> {
    let is = move |flow: &str| {
        flow.strip_prefix(name).is_some_and(|rest| {
            let number = rest.strip_prefix('-').unwrap_or("x");
            rest.is_empty() || number.bytes().all(|b| b.is_ascii_digit())
        })
    };
    r.run.flows.iter().filter(move |f| is(&f.name))
}

/// Goodput of all flows of a name in a span, bit/s.
pub(super) fn total(r: &Reading<'_>, name: &str, from: f64, to: f64) -> f64 {
    named(r, name).map(|f| r.goodput(&f.name, from, to)).sum()
}

/// The same over the capacity of the link.
pub(super) fn used(name: &'static str, from: f64, to: f64) -> impl Fn(&Runs<'_>) -> Option<f64> {
    move |r| Some(total(&r.run, name, from, to) / r.run.capacity(from, to)?)
}

/// Rate sent by all flows of a name, in kbit/s.
pub(super) fn sent(name: &'static str, from: f64, to: f64) -> impl Fn(&Runs<'_>) -> Option<f64> {
    move |r| Some(named(&r.run, name).map(|f| r.run.mean(&f.name, from, to, |f| &f.sent_bps)).sum::<f64>() / 1e3)
}

/// Packets lost of those sent by all flows of a name, in %.
pub(super) fn lost(name: &'static str) -> impl Fn(&Runs<'_>) -> Option<f64> {
    move |r| Some(loss(&r.run, name))
}

fn loss(r: &Reading<'_>, name: &str) -> f64 {
    let sum = named(r, name).fold((0.0, 0.0), |(lost, sent), f| {
        let packets = f.packets.sent as f64;
        (lost + f.loss * packets, sent + packets)
    });
    100.0 * sum.0 / f64::max(sum.1, 1.0)
}

/// 95th percentile of the delay beyond the least, in ms; the greatest of the flows of a name.
pub(super) fn extra(name: &'static str) -> impl Fn(&Runs<'_>) -> Option<f64> {
    move |r| named(&r.run, name).filter_map(|f| f.one_way_delay_ms.map(|d| d.p95 - d.min)).reduce(f64::max)
}

/// Jain's index of the flows of a name in a span.
pub(super) fn fairness(name: &'static str, from: f64, to: f64) -> impl Fn(&Runs<'_>) -> Option<f64> {
    move |r| jain(&named(&r.run, name).map(|f| r.run.goodput(&f.name, from, to)).collect::<Vec<_>>())
}

/// A number of the run over that of the run beside it.
pub(super) fn over(of: impl Fn(&Reading<'_>) -> Option<f64>) -> impl Fn(&Runs<'_>) -> Option<f64> {
    move |r| {
        let (own, beside) = (of(&r.run)?, of(r.beside.as_ref()?)?);
        (beside > 0.0).then(|| own / beside)
    }
}

/// A flow's goodput in a span over that in the run beside it.
pub(super) fn kept(name: &'static str, from: f64, to: f64) -> impl Fn(&Runs<'_>) -> Option<f64> {
    over(move |r| Some(total(r, name, from, to)))
}

/// 95th percentile of a flow's delay over that in the run beside it.
pub(super) fn delayed(name: &'static str) -> impl Fn(&Runs<'_>) -> Option<f64> {
    over(move |r| Some(r.flow(name)?.one_way_delay_ms?.p95))
}

/// Losses of a flow beyond those in the run beside it, in %.
pub(super) fn more_lost(name: &'static str) -> impl Fn(&Runs<'_>) -> Option<f64> {
    move |r| Some(loss(&r.run, name) - loss(r.beside.as_ref()?, name))
}

/// Whether a circuit breaker has stopped the flow: 1 or 0.
pub(super) fn stopped(r: &Runs<'_>) -> Option<f64> {
    Some(if r.run.flow(V)?.tripped.is_some() { 1.0 } else { 0.0 })
}

/// When it has, in s after `from`.
pub(super) fn stopped_after(from: f64) -> impl Fn(&Runs<'_>) -> Option<f64> {
    move |r| Some(r.run.flow(V)?.tripped.as_ref()?.0 - from)
}
