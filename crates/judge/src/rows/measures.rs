//! Numbers that many rows read.

use super::reading::Reading;
use super::text::FLOW;

/// 95th percentile of a flow's delay beyond `base` ms, of all packets that arrived.
pub(super) fn p95(flow: &'static str, base: f64) -> impl Fn(&Reading<'_>) -> Option<f64> {
    move |r| Some(r.flow(flow)?.one_way_delay_ms?.p95 - base)
}

/// Goodput of the flow within a span over a capacity.
pub(super) fn used(bps: f64, from: f64, to: f64) -> impl Fn(&Reading<'_>) -> Option<f64> {
    move |r| Some(r.goodput(FLOW, from, to) / bps)
}

pub(super) fn lost(r: &Reading<'_>) -> Option<f64> {
    Some(100.0 * r.flow(FLOW)?.loss)
}

pub(super) fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}
