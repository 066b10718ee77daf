//! A minimal network for closed loops: flows of an ideal codec over one drop-tail bottleneck, with RTCP as cues.

mod net;
mod tcp;

pub(crate) use net::run;

use weir_cc::circuit_breaker::Trip;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// One flow of a run.
pub(crate) struct FlowPlan {
    pub(crate) controller: &'static str,
    pub(crate) start: Timestamp,
    pub(crate) start_rate: DataRate,
    pub(crate) params: Vec<(String, f64)>,
}

impl FlowPlan {
    pub(crate) fn new(controller: &'static str, start_s: i64, start_kbps: u64) -> Self {
        Self {
            controller,
            start: Timestamp::from_secs(start_s),
            start_rate: DataRate::from_kbps(start_kbps),
            params: Vec::new(),
        }
    }
}

/// The path: capacity by time, drop-tail queue, delay, random loss, ECN threshold.
pub(crate) struct LinkPlan {
    /// Start second and kbit/s.
    pub(crate) capacity: Vec<(i64, u64)>,
    pub(crate) queue_bytes: f64,
    pub(crate) one_way: TimeDelta,
    pub(crate) loss: f64,
    /// Share of packets that are marked CE.
    pub(crate) marks: f64,
    pub(crate) limits_kbps: (u64, u64),
    /// Seconds between which a greedy TCP flow shares the link.
    pub(crate) tcp: Option<(i64, i64)>,
    /// Interval of per-packet feedback.
    pub(crate) feedback: TimeDelta,
    pub(crate) seconds: i64,
}

impl Default for LinkPlan {
    fn default() -> Self {
        Self {
            capacity: vec![(0, 2_000)],
            queue_bytes: 75_000.0,
            one_way: TimeDelta::from_millis(100),
            loss: 0.0,
            marks: 0.0,
            limits_kbps: (150, 3_000),
            tcp: None,
            feedback: TimeDelta::from_millis(100),
            seconds: 100,
        }
    }
}

/// A flow's traffic, by second.
#[derive(Default)]
pub(crate) struct FlowTrace {
    /// Bits sent, by second.
    pub(crate) sent: Vec<f64>,
    /// Maximum queuing delay of an arrival in ms, by second.
    pub(crate) worst_queue: Vec<f64>,
    /// Sum of queuing delays in ms and arrivals, by second.
    queue_sum: Vec<(f64, f64)>,
    /// State at the end of a circuit breaker beside the controller: tripped, or capping the rate.
    pub(crate) breaker: (Option<Trip>, Option<DataRate>),
}

impl FlowTrace {
    fn mean(of: &[f64], from: usize, to: usize) -> f64 {
        of[from..to].iter().sum::<f64>() / (to - from) as f64
    }
    /// Mean sending rate in kbit/s.
    pub(crate) fn sent_kbps(&self, from: usize, to: usize) -> f64 {
        Self::mean(&self.sent, from, to) / 1e3
    }
    /// Mean queuing delay in ms.
    pub(crate) fn queue_ms(&self, from: usize, to: usize) -> f64 {
        let (sum, n) = self.queue_sum[from..to].iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        sum / f64::max(n, 1.0)
    }
    /// Maximum queuing delay in ms.
    pub(crate) fn worst_queue_ms(&self, from: usize, to: usize) -> f64 {
        self.worst_queue[from..to].iter().copied().fold(0.0, f64::max)
    }
}
