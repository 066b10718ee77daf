//! Numbers of the recorded sender, and of the same controller on the fitted link.

use crate::Fit;
use crate::packets::{Entered, HEADERS, Packets};
use crate::scenario::{FLOW, RTT_MS};
use crate::whatif::WhatIfError;
use serde::Serialize;
use weir_lab::run::{RunOptions, run};

/// Measured numbers of a recorded sender.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FitMeasured"))]
pub struct Measured {
    /// RTP bytes that arrived, in kbit/s.
    pub received_kbps: f64,
    /// 95th percentile of the one-way delay in ms: what it was beyond its least, the fastest packet's transmission time, and half of the least
    /// round trip, which is taken for 60 ms where it is not known.
    pub delay_p95_ms: f64,
    /// Share of the packets that were lost, in percent.
    pub lost_percent: f64,
}

/// The same controller on the fitted link beside what was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FitResidual"))]
pub struct Residual {
    /// The controller.
    pub controller: String,
    /// Numbers on the fitted link.
    pub simulated: Measured,
    /// Ends of intervals in s, and rates that arrived in them on the fitted link, in kbit/s. Intervals without a value are left out.
    pub received_kbps: Vec<(f64, f64)>,
    /// Mean one-way delays in the same intervals, in ms.
    pub delay_ms: Vec<(f64, f64)>,
}

/// The fastest packet's transmission time `first_ms` is no part of the round trip, and is in each delay.
pub(crate) fn measured(
    packets: &Packets,
    entered: &[Entered],
    rtt_ms: Option<f64>,
    first_ms: f64,
    length: f64,
) -> Measured {
    let mut delays: Vec<f64> = packets.all.iter().filter_map(|p| Some(p.delay? * 1e3)).collect();
    delays.sort_by(f64::total_cmp);
    let p95 = delays.get(delays.len().saturating_sub(1) * 95 / 100).copied().unwrap_or(0.0);
    let bits: f64 = entered.iter().filter(|p| p.left.is_some()).map(|p| p.bits - HEADERS * 8.0).sum();
    let lost = packets.all.iter().filter(|p| p.delay.is_none()).count() as f64;
    Measured {
        received_kbps: bits / length.max(1.0) * 1e-3,
        delay_p95_ms: p95 + first_ms + rtt_ms.unwrap_or(RTT_MS) / 2.0,
        lost_percent: lost / packets.all.len().max(1) as f64 * 100.0,
    }
}

/// Runs a controller over the likeliest link: where it is the one that was recorded, the differences are the fit's.
///
/// # Errors
/// The controller does not exist, or the run is stopped.
pub fn residual(fit: &Fit, controller: &str, options: &RunOptions<'_>) -> Result<Residual, WhatIfError> {
    let names = [controller.to_owned()];
    let file = fit.scenario("The fitted link", &names, None).open("fitted", options.registry)?;
    let scenario = file.one(None, Some(controller), options.registry)?;
    let result = run(&scenario, 1, options).map_err(|e| WhatIfError::Run(Box::new(e)))?;
    let flow = result.flows.iter().find(|f| f.name == FLOW);
    let simulated = Measured {
        received_kbps: flow.map_or(0.0, |f| f.rates.received_bps * 1e-3),
        delay_p95_ms: flow.and_then(|f| f.one_way_delay_ms.as_ref()).map_or(0.0, |d| d.p95),
        lost_percent: flow.map_or(0.0, |f| f.loss * 100.0),
    };
    let series = result.series.as_ref().and_then(|s| Some((s, s.flows.iter().find(|f| f.name == FLOW)?)));
    let column = |of: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
        series.map_or_else(Vec::new, |(s, _)| {
            s.time_s.iter().enumerate().map(|(i, t)| (*t, of(i))).filter(|v| v.1.is_finite()).collect()
        })
    };
    let at = |values: &[f64], i: usize| values.get(i).copied().unwrap_or(f64::NAN);
    Ok(Residual {
        controller: controller.to_owned(),
        simulated,
        received_kbps: column(&|i| series.map_or(f64::NAN, |(_, f)| at(&f.goodput_bps, i) * 1e-3)),
        delay_ms: column(&|i| series.map_or(f64::NAN, |(_, f)| at(&f.delay_ms, i))),
    })
}
