//! Runs of one scenario that differ by seed, joined.

use super::{FlowKind, FlowSummary, RunResult, student_t_975};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Mean and spread of one metric over runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stat {
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation; `None` with one run.
    pub sigma: Option<f64>,
    /// Half-width of the 95 % confidence interval of the mean (Student's t); `None` with one run.
    pub ci95: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Runs that have a value.
    pub runs: usize,
}

impl Stat {
    /// The statistic of values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let sigma = (n > 1).then(|| {
            let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
            (squares / (n - 1) as f64).sqrt()
        });
        Some(Self {
            mean,
            sigma,
            ci95: sigma.map(|s| student_t_975(n - 1) * s / (n as f64).sqrt()),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            runs: n,
        })
    }
}

/// One flow over all runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowAggregate {
    /// Name in the scenario.
    pub name: String,
    /// Controller.
    pub controller: String,
    /// Its kind.
    pub kind: FlowKind,
    /// Statistics by the names of [`FlowSummary::values`].
    pub metrics: BTreeMap<String, Stat>,
}

/// All runs of one scenario under one controller.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Aggregate {
    /// Scenario by name.
    pub scenario: String,
    /// Variant of the scenario, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// The controller compared.
    pub controller: String,
    /// Seeds, in the order of the runs.
    pub seeds: Vec<u64>,
    /// Flows, as in each run.
    pub flows: Vec<FlowAggregate>,
    /// Statistics of the run as a whole, by the names of [`RunResult::values`].
    pub metrics: BTreeMap<String, Stat>,
}

/// Names of the shares of a flow's paths.
const PATH_SHARES: [&str; 8] = [
    "path_share_1",
    "path_share_2",
    "path_share_3",
    "path_share_4",
    "path_share_5",
    "path_share_6",
    "path_share_7",
    "path_share_8",
];

impl FlowSummary {
    /// Packets lost on the path or discarded by playout, as a share of those sent.
    pub fn loss_or_discard(&self) -> f64 {
        let p = &self.packets;
        let gone = p.dropped_queue + p.dropped_aqm + p.dropped_channel + p.discarded;
        if p.sent > 0 { gone as f64 / p.sent as f64 } else { 0.0 }
    }
    /// Frames that could not be decoded, as a share of those coded: with an encoder those replaced by the last picture,
    /// with a model those whose first packet, which contains the header, was not received (or also without the last one:
    /// `decodes_with`).
    fn undecodable(&self) -> Option<f64> {
        match self.quality {
            Some(q) => (q.pictures > 0).then(|| q.frozen as f64 / q.pictures as f64),
            None => self.coded.and_then(|c| c.share(c.headless)),
        }
    }
    /// The flow's metrics as a flat list; metrics without a value are omitted.
    pub fn values(&self) -> Vec<(&'static str, f64)> {
        let mut out = vec![
            ("sent_bps", self.rates.sent_bps),
            ("goodput_bps", self.rates.goodput_bps),
            ("tail_goodput_bps", self.tail_goodput_bps),
            ("loss", self.loss),
            ("discard", self.discard),
            ("loss_or_discard", self.loss_or_discard()),
        ];
        let mut put = |name, value: Option<f64>| out.extend(value.map(|v| (name, v)));
        put("utilisation", self.utilisation);
        put("utilisation_goodput", self.utilisation_goodput);
        put("generated_bps", (self.kind == FlowKind::Rtp).then_some(self.rates.generated_bps));
        put("target_bps", self.rates.target_bps);
        put("ramp_up_s", self.ramp_up_s);
        put("rate_variation", self.rate_variation);
        if let Some(b) = &self.burstiness {
            let dispersion = |ms| b.window(ms).map(|w| w.dispersion);
            put("dispersion_10ms", dispersion(10.0));
            put("dispersion_100ms", dispersion(100.0));
            put("dispersion_1s", dispersion(1_000.0));
            put("peak_to_mean_10ms", b.window(10.0).map(|w| w.peak_to_mean));
            put("peak_to_mean_100ms", b.window(100.0).map(|w| w.peak_to_mean));
            put("burst_mean_packets", Some(b.burst_packets.mean));
            put("burst_p95_packets", Some(b.burst_packets.p95));
            put("chunk_variation", b.chunks.map(|c| c.variation));
            put("chunk_peak_to_mean", b.chunks.map(|c| c.peak_to_mean));
        }
        if let Some(d) = &self.one_way_delay_ms {
            put("one_way_delay_mean_ms", Some(d.mean));
            put("one_way_delay_p50_ms", Some(d.p50));
            put("one_way_delay_p95_ms", Some(d.p95));
            put("one_way_delay_p99_ms", Some(d.p99));
            put("one_way_delay_max_ms", Some(d.max));
        }
        if matches!(self.kind, FlowKind::Rtp | FlowKind::Dccp) {
            let p = &self.packets;
            let offered = p.sent + p.dropped_sender;
            let share = |part: u64| (offered > 0).then(|| part as f64 / offered as f64);
            put("received", share(p.received));
            put("network_loss", share(p.dropped_queue + p.dropped_aqm + p.dropped_channel));
            put("rejected", share(p.dropped_sender));
        }
        put("i_frames", self.coded.and_then(|c| c.share(c.key)));
        put("undecodable", self.undecodable());
        put("rtt_ms", self.rtt_ms);
        put("active_bps", self.rates.active_bps);
        if let Some(r) = &self.repair {
            put("repair_bps", Some(self.rates.repair_bps));
            put("residual_loss", Some(r.residual_loss));
            put("recovery", r.recovery);
            put("recovery_delay_p95_ms", r.delay_ms.map(|d| d.p95));
            put("ffre", r.ffre);
            put("protected_lost_frames", Some((r.frames_recovered + r.frames_unrecovered) as f64));
        }
        put("tripped", (self.kind == FlowKind::Rtp).then_some(f64::from(u8::from(self.tripped.is_some()))));
        put("tripped_s", self.tripped.as_ref().map(|t| t.0));
        put("frcc", self.probing.and_then(|p| p.frcc));
        if let Some(f) = &self.frames {
            put("lost_frames", Some((f.lost + f.late) as f64));
            put("frame_delay_p95_ms", f.delay_ms.map(|d| d.p95));
            put("stalls", Some(f.stalls as f64));
            put("stalled_s", Some(f.stalled_s));
        }
        if let Some(q) = &self.quality {
            put("psnr", q.psnr_db.map(|d| d.mean));
            put("ssim", q.ssim.map(|d| d.mean));
            put("vmaf", q.vmaf.map(|d| d.mean));
            put("psnr_below_20db", q.below_20_db);
            put("frozen_pictures", Some(q.frozen as f64));
            put("undecodable_frames", Some(q.undecodable as f64));
        }
        if let Some(m) = &self.multipath {
            put("path_residual_loss", Some(m.residual_loss));
            put("duplicates", Some(m.duplicates));
            put("reordered", Some(m.reordered));
            put("reordering_extent_p95", m.reordering_extent.map(|d| d.p95));
            put("late_time_p95_ms", m.late_time_ms.map(|d| d.p95));
            put("skew_ms", m.skew_ms);
            put("longest_gap_ms", Some(m.longest_gap_ms));
            for (name, path) in PATH_SHARES.into_iter().zip(&m.paths) {
                put(name, Some(path.share));
            }
        }
        let settled: Vec<f64> = self.settling.iter().filter_map(|s| s.settled_after_s).collect();
        put("settling_mean_s", Stat::of(&settled).map(|s| s.mean));
        out
    }
}

impl RunResult {
    /// The metrics of the run as a whole as a flat list; metrics without a value are omitted.
    pub fn values(&self) -> Vec<(&'static str, f64)> {
        let mut out = Vec::new();
        let mut put = |name, value: Option<f64>| out.extend(value.map(|v| (name, v)));
        put("jain_mean", self.fairness.jain_mean);
        put("jain_end", self.fairness.jain_end);
        put("end_ratio", self.fairness.end_ratio);
        put("tcp_share", self.fairness.tcp_share);
        let ratio = |share: f64| (share < 1.0).then(|| share / (1.0 - share));
        put("tcp_fairness_ratio", self.fairness.tcp_share.and_then(ratio));
        put("tcp_throughput_bps", self.fairness.tcp_throughput_bps);
        put("tcp_goodput_bps", self.fairness.tcp_goodput_bps);
        put("tcp_fair_share", self.fairness.tcp_fair_share);
        if let Some(d) = self.queue.as_ref().and_then(|q| q.delay_ms) {
            put("queue_delay_mean_ms", Some(d.mean));
            put("queue_delay_p50_ms", Some(d.p50));
            put("queue_delay_p95_ms", Some(d.p95));
            put("queue_delay_p99_ms", Some(d.p99));
            put("queue_delay_max_ms", Some(d.max));
        }
        out
    }
}

/// Aggregates runs that differ only by seed. Flows are matched by index; `None` if there are no runs.
pub fn aggregate(runs: &[RunResult]) -> Option<Aggregate> {
    let first = runs.first()?;
    let stats = |lists: Vec<Vec<(&'static str, f64)>>| {
        let mut by_name: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (name, value) in lists.into_iter().flatten() {
            by_name.entry(name.into()).or_default().push(value);
        }
        by_name.into_iter().filter_map(|(name, v)| Some((name, Stat::of(&v)?))).collect()
    };
    Some(Aggregate {
        scenario: first.scenario.clone(),
        condition: first.condition.clone(),
        controller: first.controller.clone(),
        seeds: runs.iter().map(|r| r.seed).collect(),
        flows: (first.flows.iter().enumerate())
            .map(|(i, f)| FlowAggregate {
                name: f.name.clone(),
                controller: f.controller.clone(),
                kind: f.kind,
                metrics: stats(runs.iter().filter_map(|r| r.flows.get(i)).map(FlowSummary::values).collect()),
            })
            .collect(),
        metrics: stats(runs.iter().map(RunResult::values).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_spread_and_interval() {
        // 2, 4, 6: mean 4, sigma 2, t(2) = 4.303, half-width 4.303 * 2 / sqrt(3) = 4.9687.
        let s = Stat::of(&[2.0, 4.0, 6.0]).expect("values");
        assert_eq!((s.mean, s.sigma, s.min, s.max, s.runs), (4.0, Some(2.0), 2.0, 6.0, 3));
        assert!((s.ci95.expect("three runs") - 4.9687).abs() < 1e-4);
        let one = Stat::of(&[3.0]).expect("a value");
        assert_eq!((one.mean, one.sigma, one.ci95), (3.0, None, None));
        assert_eq!(Stat::of(&[]), None);
    }
}
