//! Time series of a run: one row a sampling interval.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Series of one flow. All columns have a value for each row of [`Series::time_s`]; NaN if there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlowSeries {
    /// Name in the scenario.
    pub name: String,
    /// Controller.
    pub controller: String,
    /// The controller's target at the row's end, in bit/s.
    pub target_bps: Vec<f64>,
    /// Media made, in bit/s.
    pub generated_bps: Vec<f64>,
    /// RTP bytes (TCP segments) sent, in bit/s.
    pub sent_bps: Vec<f64>,
    /// Repair packets sent, part of `sent_bps`, in bit/s.
    pub repair_bps: Vec<f64>,
    /// Bytes received less bytes discarded, without repair packets, in bit/s.
    pub goodput_bps: Vec<f64>,
    /// Mean one-way delay of the received packets, in ms.
    pub delay_ms: Vec<f64>,
    /// Maximum one-way delay, in ms.
    pub delay_max_ms: Vec<f64>,
    /// Packets lost on the path over packets sent, 0 to 1, at most 1; NaN if none was sent.
    pub loss: Vec<f64>,
    /// Packets discarded over packets received; NaN if none was received.
    pub discard: Vec<f64>,
    /// Shares of the target of a call's streams, as `share_bps:NAME`, in bit/s; empty if it has one stream.
    pub streams: Vec<(String, Vec<f64>)>,
    /// Rates sent on a flow's paths, as `path_bps:NAME`, in bit/s; empty if it has one path.
    pub paths: Vec<(String, Vec<f64>)>,
    /// The controller's own internals by name, at the row's end.
    pub internals: Vec<(Cow<'static, str>, Vec<f64>)>,
}

/// Series of one link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LinkSeries {
    /// Name in the scenario.
    pub name: String,
    /// Mean capacity over the row, in bit/s.
    pub capacity_bps: Vec<f64>,
    /// Mean bytes in the queue.
    pub queue_bytes: Vec<f64>,
    /// Mean delay in the queue, in ms.
    pub queue_delay_ms: Vec<f64>,
}

/// Series of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Length of a row, in s.
    pub interval_s: f64,
    /// End of each row, in s.
    pub time_s: Vec<f64>,
    /// The flows, in the order of the run.
    pub flows: Vec<FlowSeries>,
    /// The links, in the order of the run.
    pub links: Vec<LinkSeries>,
    /// Jain's index of the RTP flows; NaN with fewer than two.
    pub jain: Vec<f64>,
}

impl FlowSeries {
    /// The columns by name, the controller's internals last.
    pub fn columns(&self) -> Vec<(&str, &[f64])> {
        let mut all: Vec<(&str, &[f64])> = vec![
            ("target_bps", &self.target_bps),
            ("generated_bps", &self.generated_bps),
            ("sent_bps", &self.sent_bps),
            ("repair_bps", &self.repair_bps),
            ("goodput_bps", &self.goodput_bps),
            ("delay_ms", &self.delay_ms),
            ("delay_max_ms", &self.delay_max_ms),
            ("loss", &self.loss),
            ("discard", &self.discard),
        ];
        all.extend(self.paths.iter().map(|(name, values)| (name.as_str(), values.as_slice())));
        all.extend(self.streams.iter().map(|(name, values)| (name.as_str(), values.as_slice())));
        all.extend(self.internals.iter().map(|(name, values)| (name.as_ref(), values.as_slice())));
        all
    }
}

impl LinkSeries {
    /// The columns by name.
    pub fn columns(&self) -> Vec<(&str, &[f64])> {
        vec![
            ("capacity_bps", &self.capacity_bps),
            ("queue_bytes", &self.queue_bytes),
            ("queue_delay_ms", &self.queue_delay_ms),
        ]
    }
}

impl Series {
    /// Every column, with the flow or link it belongs to.
    fn all_columns(&self) -> Vec<(&str, &str, &[f64])> {
        let mut all: Vec<(&str, &str, &[f64])> = vec![("", "time_s", &self.time_s), ("", "jain", &self.jain)];
        for f in &self.flows {
            all.extend(f.columns().into_iter().map(|(name, v)| (f.name.as_str(), name, v)));
        }
        for l in &self.links {
            all.extend(l.columns().into_iter().map(|(name, v)| (l.name.as_str(), name, v)));
        }
        all
    }
    /// Passes names and exact bits of every column to `sink`, for a digest.
    pub(crate) fn feed(&self, sink: &mut dyn FnMut(&[u8])) {
        for (owner, name, values) in self.all_columns() {
            for part in [owner, name] {
                sink(&(part.len() as u64).to_le_bytes());
                sink(part.as_bytes());
            }
            sink(&(values.len() as u64).to_le_bytes());
            for v in values {
                // One NaN for all, as its sign and payload are no part of the result.
                let bits = if v.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { v.to_bits() };
                sink(&bits.to_le_bytes());
            }
        }
    }
}

impl PartialEq for Series {
    /// Equal bits, any NaN equal to any other.
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()))
        };
        let (a, b) = (self.all_columns(), other.all_columns());
        a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| (x.0, x.1) == (y.0, y.1) && same(x.2, y.2))
    }
}
