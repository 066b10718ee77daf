//! Fluid senders over a trace: what feedback delay alone costs, and what not being given the capacity costs.
//!
//! Both know of their own path exactly, but late: by a round trip and a feedback interval of 50 ms. They have no frames, no
//! noise and no other flows. The *causal* one knows the capacity, and sends its mean over the last 50 ms that it knows of, less
//! what drains the queue that it expects in 400 ms. The *reactive* one knows the rate delivered and the queue: where there was a
//! queue the rate delivered is the capacity, and it keeps 20 ms of queue; where there was none it sends twice what it had sent.

use super::traces::{LATE, ONE_WAY, Trace};
use serde::Serialize;

/// Step of the simulation, s.
const STEP: f64 = 0.005;
/// Feedback interval, s.
const FEEDBACK: f64 = 0.05;
/// Time in which the expected queue is drained, s.
const DRAIN: f64 = 0.4;
/// Queue that the reactive sender keeps, s; its growth in each round without a queue.
const STANDING: f64 = 0.02;
const GROWTH: f64 = 2.0;

/// Result of a fluid sender on a trace, or the mean over several.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fluid {
    /// Data that arrived on time over the data that an omniscient sender gets through.
    pub on_time: f64,
    /// 95th percentile of the extra delay in ms.
    pub extra_delay_p95_ms: f64,
}

/// The sender that knows the capacity.
pub(super) fn causal(trace: &Trace) -> Fluid {
    send(trace, true, 0.05)
}

/// The sender that knows the rate delivered and the queue.
pub(super) fn reactive(trace: &Trace) -> Fluid {
    send(trace, false, 0.1)
}

fn send(trace: &Trace, knows_capacity: bool, window: f64) -> Fluid {
    let capacities = trace.capacities(STEP);
    let late = libm::round((2.0 * ONE_WAY / 1e3 + FEEDBACK) / STEP) as usize;
    let back = (libm::round(window / STEP) as usize).max(1);
    let (most, start, floor, ceiling) = (trace.queue_bytes() * 8.0, trace.start(), trace.floor(), trace.ceiling());
    // Sums up to each step: of capacity, of what was sent and of what was delivered.
    let (mut capacity, mut sent, mut delivered) = (vec![0.0], vec![0.0], vec![0.0]);
    let (mut queue, mut queues, mut rates) = (0.0_f64, Vec::<f64>::new(), Vec::<f64>::new());
    let mut fluid = Vec::new();
    for x in &capacities {
        capacity.push(capacity.last().copied().unwrap_or(0.0) + x * STEP);
    }
    for (i, x) in capacities.iter().enumerate() {
        let rate = if i <= late {
            start
        } else {
            let (k, j) = (i - late, (i - late).saturating_sub(back));
            let sums = if knows_capacity { &capacity } else { &delivered };
            let known = (sums[k] - sums[j]) / ((k - j) as f64 * STEP);
            if !knows_capacity && queues[k - 1] <= 0.0 {
                GROWTH * rates[k - 1]
            } else {
                let expected = (queues[k - 1] + sent[i] - sent[k] - known * late as f64 * STEP).max(0.0);
                let keep = if knows_capacity { 0.0 } else { STANDING * known };
                known + (keep - expected) / DRAIN
            }
        };
        let rate = rate.max(floor).min(ceiling);
        let admitted = (rate * STEP).min((most - queue).max(0.0) + x * STEP);
        fluid.push((i, queue, admitted));
        let before = queue + admitted;
        queue = (before - x * STEP).max(0.0);
        queues.push(queue);
        rates.push(rate);
        sent.push(sent[i] + rate * STEP);
        delivered.push(delivered[i] + before - queue);
    }
    // Data that arrives in a step leaves when the link has served the queue before it and half of the data itself.
    let (mut on_time, mut arrived, mut delays, mut at) = (0.0, 0.0, Vec::new(), 0);
    for (i, before, bits) in fluid {
        let due = capacity[i] + before + bits / 2.0;
        at = at.max(i);
        while at < capacities.len() && capacity[at + 1] < due - 1e-9 {
            at += 1;
        }
        if at < capacities.len() && bits > 0.0 {
            let delay = (at - i) as f64 * STEP * 1e3;
            arrived += bits;
            delays.push((delay, bits));
            on_time += if delay <= LATE { bits } else { 0.0 };
        }
    }
    delays.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = 0.95 * arrived;
    let p95 = delays.iter().find(|(_, bits)| {
        left -= bits;
        left <= 0.0
    });
    Fluid {
        on_time: on_time / (trace.omniscient() * trace.duration()),
        extra_delay_p95_ms: p95.map_or(f64::NAN, |d| d.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_path::TraceFormat;

    fn trace(table: &str) -> Trace {
        let capacity = TraceFormat::Table.parse(table, "x.csv").expect("a table");
        Trace::new("g/x".into(), "g".into(), &capacity).expect("a trace")
    }

    #[test]
    fn who_knows_a_steady_capacity_has_nearly_all_of_it() {
        // Only the start, at 0.3 of 2 Mbit/s for 0.1 s, is lost.
        let steady = trace("time_s,rate_bps\n0,2000000\n60,2000001\n");
        let (causal, reactive) = (causal(&steady), reactive(&steady));
        assert!((0.99..1.0).contains(&causal.on_time), "{causal:?}");
        assert!((0.95..1.0).contains(&reactive.on_time), "{reactive:?}");
        assert!((15.0..30.0).contains(&reactive.extra_delay_p95_ms), "{reactive:?}");
    }

    #[test]
    fn a_capacity_that_changes_faster_than_feedback_costs_both() {
        let rows: String =
            (0..600).map(|i| format!("{},{}\n", f64::from(i) * 0.2, [4_000_000, 400_000][i as usize % 2])).collect();
        let swings = trace(&format!("time_s,rate_bps\n{rows}"));
        let (causal, reactive) = (causal(&swings), reactive(&swings));
        assert!(causal.on_time < 0.95 && reactive.on_time < causal.on_time, "{causal:?} {reactive:?}");
    }
}
