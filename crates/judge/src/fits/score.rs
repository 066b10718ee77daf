//! A fit beside its link, and predictions beside the runs that they predict.

use super::ibox::{Observed, reactive, unreactive};
use super::{Kind, KnownLink, Trial, TrialError};
use serde::Serialize;
use weir_fit::{Fit, FitError, whatif};
use weir_lab::results::RunResult;
use weir_lab::run::{RunOptions, run};
use weir_timeline::Call;

/// Predicted numbers of a controller on a link, beside the measured ones.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Predicted {
    /// Its name.
    pub controller: String,
    /// Goodput in kbit/s: predicted, least and greatest over the draws, and measured.
    pub goodput_kbps: [f64; 4],
    /// 95th percentile of the one-way delay in ms, likewise.
    pub delay_p95_ms: [f64; 4],
    /// Goodput by throughput taken for capacity.
    pub naive_goodput_kbps: f64,
    /// 95th percentile of the delay, likewise.
    pub naive_delay_p95_ms: f64,
    /// Goodput over the link of iBox's model of others that react to nothing.
    pub ibox_goodput_kbps: f64,
    /// 95th percentile of the delay, likewise.
    pub ibox_delay_p95_ms: f64,
    /// Goodput over that of its model of others that react.
    pub ibox_reactive_goodput_kbps: f64,
    /// 95th percentile of the delay, likewise.
    pub ibox_reactive_delay_p95_ms: f64,
    /// Goodput on the true link with another seed: nearer no prediction is but by luck.
    pub again_goodput_kbps: f64,
    /// 95th percentile of the delay, likewise.
    pub again_delay_p95_ms: f64,
}

/// A fit beside its link.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitScore {
    /// The link.
    pub link: u64,
    /// Its kind.
    pub kind: Kind,
    /// Share of the time in which the capacity is known.
    pub known: f64,
    /// Area between the fitted and the true capacity over the true one, where it is known; absent if that is nowhere.
    pub capacity_error: Option<f64>,
    /// Fitted less true delay one way, in ms.
    pub delay_error_ms: Option<f64>,
    /// Room of the queue, fitted over true; absent if the queue never overflowed.
    pub queue_ratio: Option<f64>,
    /// Share lost by chance: fitted and true.
    pub chance: [f64; 2],
    /// Steps, policer, jitter, others' traffic, discipline and losses that were found, in words.
    pub found: String,
    /// Other controllers.
    pub predicted: Vec<Predicted>,
}

pub(super) fn compare(link: &KnownLink, truth: &RunResult, fit: &Fit) -> FitScore {
    let capacity_error = truth.series.as_ref().and_then(|series| {
        let row = series.interval_s;
        let links = series.links.iter().find(|l| l.name == "access")?;
        let per_row = (row / fit.capacity.bin_s + 0.5) as usize;
        let (mut error, mut area) = (0.0, 0.0);
        for (k, end) in series.time_s.iter().enumerate() {
            // Times of the recording begin with its first packet, as those of the run do.
            let first = ((end - row) / fit.capacity.bin_s + 0.5) as usize;
            let Some(bins) = fit.capacity.served_bps.get(first..first + per_row) else { continue };
            let known: Vec<f64> = bins.iter().flatten().copied().collect();
            if known.len() * 10 < per_row * 8 {
                continue;
            }
            let (fitted, true_) = (known.iter().sum::<f64>() / known.len() as f64, links.capacity_bps[k]);
            error += (fitted - true_).abs();
            area += true_;
        }
        (area > 0.0).then_some(error / area)
    });
    let lost = fit.loss.by_chance + fit.loss.by_outage + fit.loss.by_queue + fit.loss.by_policer;
    let sent: f64 = truth.flows.iter().find(|f| f.name == super::links::FLOW).map_or(0.0, |f| f.packets.sent as f64);
    let mut found = Vec::new();
    if let Some(p) = &fit.policer {
        found.push(format!("policer {:.0} kbit/s, {:.0} kB", p.rate_bps * 1e-3, p.burst_bytes * 1e-3));
    }
    found.extend(fit.jitter.iter().map(|j| format!("jitter {:.0} ms from {:.0} s", j.max_ms, j.from_s)));
    found.extend(
        fit.cross.iter().map(|c| format!("others {:.0} kbit/s {:.0} to {:.0} s", c.rate_bps * 1e-3, c.from_s, c.to_s)),
    );
    found.extend(fit.base.iter().skip(1).map(|b| format!("{:+.0} ms at {:.0} s", b.more_ms, b.from_s)));
    found.push(format!("{:?}", fit.queue.discipline));
    found.extend(fit.loss.outages.iter().map(|o| format!("outage {:.1} to {:.1} s", o.from_s, o.to_s)));
    found.push(format!("lost {lost}: chance {}, queue {}", fit.loss.by_chance, fit.loss.by_queue));
    FitScore {
        link: link.number,
        kind: link.kind,
        known: fit.capacity.known_share(),
        capacity_error,
        delay_error_ms: fit.rtt_ms.map(|rtt| rtt / 2.0 - link.delay_ms),
        queue_ratio: fit.queue.limit_bytes.zip(link.queue_bytes).map(|(fitted, room)| fitted / room),
        chance: [f64::from(fit.loss.by_chance) / sent.max(1.0), link.lost],
        found: found.join("; "),
        predicted: Vec::new(),
    }
}

/// Seeds of second runs over true links, less those of the first.
const AGAIN: u64 = 1 << 20;

/// Goodput in kbit/s and 95th percentile of the one-way delay in ms.
fn numbers(result: &RunResult) -> [f64; 2] {
    let flow = result.flows.iter().find(|f| f.name == super::links::FLOW);
    let delay = flow.and_then(|f| f.one_way_delay_ms.as_ref()).map_or(0.0, |d| d.p95);
    [flow.map_or(0.0, |f| f.rates.goodput_bps * 1e-3), delay]
}

pub(super) fn predict(
    link: &KnownLink,
    fit: &Fit,
    call: &Call,
    trial: &Trial,
    options: &RunOptions<'_>,
) -> Result<Vec<Predicted>, TrialError> {
    // The application's own limit is no property of the link, and who runs the call knows it.
    let mut fit = fit.clone();
    fit.source.ceiling_bps = link.ceiling_bps;
    let fit = &fit;
    let with = whatif(fit, &trial.predicted, trial.draws, 1, options)?;
    let naive = whatif(&fit.by_throughput(), &trial.predicted, 0, 1, options)?;
    let seen = Observed::of(call).ok_or(FitError::NoPassages)?;
    let ibox = whatif(&unreactive(fit, &seen), &trial.predicted, 0, 1, options)?;
    let others = reactive(fit, &seen, &trial.recorded, link.number, options)?;
    let ibox_reactive = whatif(&others, &trial.predicted, 0, 1, options)?;
    let mut out = Vec::new();
    let baselines = naive.controllers.iter().zip(&ibox.controllers).zip(&ibox_reactive.controllers);
    for (p, ((n, i), r)) in with.controllers.iter().zip(baselines) {
        let scenario = link.scenario(&p.controller, options.registry)?;
        let [goodput, delay] = numbers(&run(&scenario, link.number, options)?);
        let again = numbers(&run(&scenario, link.number + AGAIN, options)?);
        let of = |e: weir_fit::Estimate, actual: f64| [e.likely, e.low, e.high, actual];
        out.push(Predicted {
            controller: p.controller.clone(),
            goodput_kbps: of(p.goodput_kbps, goodput),
            delay_p95_ms: of(p.delay_p95_ms, delay),
            naive_goodput_kbps: n.goodput_kbps.likely,
            naive_delay_p95_ms: n.delay_p95_ms.likely,
            ibox_goodput_kbps: i.goodput_kbps.likely,
            ibox_delay_p95_ms: i.delay_p95_ms.likely,
            ibox_reactive_goodput_kbps: r.goodput_kbps.likely,
            ibox_reactive_delay_p95_ms: r.delay_p95_ms.likely,
            again_goodput_kbps: again[0],
            again_delay_p95_ms: again[1],
        });
    }
    Ok(out)
}

/// Near: within this share of what was measured.
const NEAR: f64 = 0.15;

/// Shares over all links and controllers.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FitSummary"))]
pub struct Summary {
    /// Links.
    pub links: usize,
    /// Of those with a known capacity, the share whose error is at most a tenth.
    pub capacity_near: f64,
    /// Share whose delay is within 3 ms.
    pub delay_near: f64,
    /// Of the queues that overflowed, the share whose room is within a fifth.
    pub queue_near: f64,
    /// Share of predictions whose goodput and delay both are within 15 %.
    pub both_near: f64,
    /// Share whose goodput is.
    pub goodput_near: f64,
    /// Share whose delay is.
    pub delay_p95_near: f64,
    /// The same three by throughput taken for capacity.
    pub naive: [f64; 3],
    /// The same three over the link of iBox's model of others that react to nothing.
    pub ibox: [f64; 3],
    /// The same three over that of its model of others that react.
    pub ibox_reactive: [f64; 3],
    /// The same three by a run over the true link with another seed.
    pub ceiling: [f64; 3],
    /// Share of goodputs, and of delays, that lie in the intervals.
    pub covered: [f64; 2],
    /// Of pairs whose goodputs differ by a tenth, the share whose order is predicted.
    pub ordered: f64,
}

impl Summary {
    /// Of scores.
    pub fn of(scores: &[FitScore]) -> Self {
        let share = |of: &[bool]| of.iter().filter(|b| **b).count() as f64 / of.len().max(1) as f64;
        let each = |f: &dyn Fn(&FitScore) -> Option<bool>| share(&scores.iter().filter_map(f).collect::<Vec<_>>());
        let all: Vec<&Predicted> = scores.iter().flat_map(|s| &s.predicted).collect();
        let near = |a: f64, b: f64| (a - b).abs() <= NEAR * b;
        let of = |f: &dyn Fn(&Predicted) -> bool| share(&all.iter().map(|p| f(p)).collect::<Vec<_>>());
        let goodput = |p: &Predicted| near(p.goodput_kbps[0], p.goodput_kbps[3]);
        let delay = |p: &Predicted| near(p.delay_p95_ms[0], p.delay_p95_ms[3]);
        let by = |numbers: &dyn Fn(&Predicted) -> [f64; 2]| {
            let goodput = |p: &Predicted| near(numbers(p)[0], p.goodput_kbps[3]);
            let delay = |p: &Predicted| near(numbers(p)[1], p.delay_p95_ms[3]);
            [of(&|p| goodput(p) && delay(p)), of(&goodput), of(&delay)]
        };
        let inside = |v: &[f64; 4]| v[3] >= v[1] && v[3] <= v[2];
        let mut ordered = Vec::new();
        for s in scores {
            for (i, a) in s.predicted.iter().enumerate() {
                for b in &s.predicted[i + 1..] {
                    let (x, y) = (a.goodput_kbps, b.goodput_kbps);
                    if (x[3] - y[3]).abs() > 0.1 * x[3].min(y[3]) {
                        ordered.push((x[0] > y[0]) == (x[3] > y[3]));
                    }
                }
            }
        }
        Self {
            links: scores.len(),
            capacity_near: each(&|s| s.capacity_error.map(|e| e <= 0.1)),
            delay_near: each(&|s| s.delay_error_ms.map(|e| e.abs() <= 3.0)),
            queue_near: each(&|s| s.queue_ratio.map(|r| (r - 1.0).abs() <= 0.2)),
            both_near: of(&|p| goodput(p) && delay(p)),
            goodput_near: of(&goodput),
            delay_p95_near: of(&delay),
            naive: by(&|p| [p.naive_goodput_kbps, p.naive_delay_p95_ms]),
            ibox: by(&|p| [p.ibox_goodput_kbps, p.ibox_delay_p95_ms]),
            ibox_reactive: by(&|p| [p.ibox_reactive_goodput_kbps, p.ibox_reactive_delay_p95_ms]),
            ceiling: by(&|p| [p.again_goodput_kbps, p.again_delay_p95_ms]),
            covered: [of(&|p| inside(&p.goodput_kbps)), of(&|p| inside(&p.delay_p95_ms))],
            ordered: share(&ordered),
        }
    }
}
