//! A live run compared with its simulated twin.

use serde::Serialize;
use std::fmt;
use weir_lab::results::{FlowKind, RunResult};

/// Largest difference of mean utilisation at which runs are alike: 10 percentage points.
const UTILISATION: f64 = 0.10;
/// Largest difference of the median queueing delay, in ms.
const QUEUE_DELAY_MS: f64 = 20.0;

/// One flow, live and simulated.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowDifference {
    /// Its name.
    pub name: String,
    /// Mean utilisation, live and simulated; goodput for flows other than RTP.
    pub utilisation: (Option<f64>, Option<f64>),
    /// Share of packets lost.
    pub loss: (f64, f64),
    /// Median one-way delay in ms.
    pub one_way_delay_ms: (Option<f64>, Option<f64>),
    /// Mean PSNR of luma in dB, of flows with pictures.
    pub psnr_db: (Option<f64>, Option<f64>),
}

/// Both runs of one scenario and seed; pairs are live and simulated.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// Scenario, variant and controller.
    pub label: String,
    /// Seed of both.
    pub seed: u64,
    /// Median queueing delay of the bottleneck in ms.
    pub queue_delay_ms: (Option<f64>, Option<f64>),
    /// The flows.
    pub flows: Vec<FlowDifference>,
    /// Whether every RTP flow's utilisation is within 10 points and the median queueing delay within 20 ms.
    pub alike: bool,
}

impl Difference {
    /// The difference of two runs with the same flows.
    pub fn new(label: &str, live: &RunResult, simulated: &RunResult) -> Self {
        let queue = |r: &RunResult| r.queue.as_ref().and_then(|q| q.delay_ms.as_ref()).map(|d| d.p50);
        let flow = |a: &weir_lab::results::FlowSummary, b: &weir_lab::results::FlowSummary| {
            let utilisation = |f: &weir_lab::results::FlowSummary| match f.kind {
                FlowKind::Rtp => f.utilisation,
                _ => f.utilisation_goodput,
            };
            let psnr = |f: &weir_lab::results::FlowSummary| f.quality?.psnr_db.map(|d| d.mean);
            FlowDifference {
                name: a.name.clone(),
                utilisation: (utilisation(a), utilisation(b)),
                loss: (a.loss, b.loss),
                one_way_delay_ms: (a.one_way_delay_ms.map(|d| d.p50), b.one_way_delay_ms.map(|d| d.p50)),
                psnr_db: (psnr(a), psnr(b)),
            }
        };
        let flows: Vec<FlowDifference> = live.flows.iter().zip(&simulated.flows).map(|(a, b)| flow(a, b)).collect();
        let queue_delay_ms = (queue(live), queue(simulated));
        let queues = queue_delay_ms.0.zip(queue_delay_ms.1).is_none_or(|(a, b)| (a - b).abs() <= QUEUE_DELAY_MS);
        let media = live.flows.iter().zip(&flows).filter(|(f, _)| f.kind == FlowKind::Rtp);
        let mut rates = media.filter_map(|(_, d)| Some((d.utilisation.0? - d.utilisation.1?).abs()));
        let alike = queues && rates.all(|d| d <= UTILISATION);
        Self { label: label.into(), seed: live.seed, queue_delay_ms, flows, alike }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = |p: (f64, f64)| format!("{:.1} / {:.1} ({:+.1})", 100.0 * p.0, 100.0 * p.1, 100.0 * (p.0 - p.1));
        let ms = |p: (Option<f64>, Option<f64>)| match p {
            (Some(a), Some(b)) => format!("{a:.1} / {b:.1} ({:+.1})", a - b),
            _ => "-".into(),
        };
        writeln!(f, "{}, seed {}: live / simulated (difference)", self.label, self.seed)?;
        writeln!(f, "  median queueing delay {} ms", ms(self.queue_delay_ms))?;
        for d in &self.flows {
            let (name, delay) = (&d.name, ms(d.one_way_delay_ms));
            write!(
                f,
                "  {name}: utilisation {} %, loss {} %, median delay {delay} ms",
                d.utilisation.0.zip(d.utilisation.1).map_or("-".into(), points),
                points(d.loss)
            )?;
            if let (Some(live), Some(simulated)) = d.psnr_db {
                write!(f, ", PSNR {live:.1} / {simulated:.1} ({:+.1}) dB", live - simulated)?;
            }
            writeln!(f)?;
        }
        let verdict = if self.alike { "alike" } else { "NOT alike" };
        writeln!(f, "  {verdict}: the goal is utilisation within 10 points and queueing delay within 20 ms")
    }
}
