//! The row of a trace.

use super::fluid;
use super::reading::Reading;
use super::row::{Metrics, Row, Source};
use super::score::Better::{High, Low};
use super::text::{FLOW, FlowText, rate, scenario};
use super::traces::{LATE, ONE_WAY, Trace};
use std::collections::BTreeMap;
use weir_lab::results::Distribution;

/// Share of what the causal sender has on time that is the goal.
const GOAL: f64 = 0.9;

impl Trace {
    /// Its row.
    pub fn row(&self) -> Row {
        let (file, data, format) = if self.opportunities.is_empty() {
            let mut text = String::from("time_s,rate_bps\n");
            let mut at = 0.0;
            for (span, rate) in &self.spans {
                text += &format!("{at:.4},{rate:.0}\n");
                at += span;
            }
            ("trace.csv", text, "csv")
        } else {
            ("trace.mahimahi", self.opportunities.iter().map(|ms| format!("{ms}\n")).collect(), "mahimahi")
        };
        let is_steady = self.spans.len() < 2;
        let rates = match is_steady {
            true => format!("\"{}\"", rate(self.mean())),
            false => format!("{{ trace = \"{file}\", format = \"{format}\" }}"),
        };
        let (queue, delay) = (format!("\"{:.0} B\"", self.queue_bytes()), format!("\"{ONE_WAY} ms\""));
        let link = [("rate", &*rates), ("delay", &*delay), ("queue", &*queue)];
        let deadline = format!("\"{} ms\"", ONE_WAY + LATE);
        let flow = FlowText {
            floor: self.floor(),
            ceiling: self.ceiling(),
            start_rate: self.start(),
            more: &[("playout_deadline", &deadline)],
            ..FlowText::default()
        };
        let text = scenario(&self.name, (self.duration(), "1 s"), &link, &[flow], ("", ""));
        let files = if is_steady { BTreeMap::new() } else { BTreeMap::from([(file.to_owned(), data.into_bytes())]) };
        let title = format!("{:.2} Mbit/s on average", self.mean() / 1e6);
        Row {
            key: format!("trace:{}", self.name),
            title,
            source: Source::Text(text, files),
            metrics: self.metrics().0,
            only: None,
        }
    }

    fn metrics(&self) -> Metrics {
        let (best, duration) = (self.omniscient(), self.duration());
        let goal = GOAL * fluid::causal(self).on_time;
        let flow = |r: &Reading<'_>| r.flow(FLOW).cloned();
        let extra =
            move |r: &Reading<'_>, of: fn(&Distribution) -> f64| Some(of(&flow(r)?.one_way_delay_ms?) - ONE_WAY);
        let used = move |r: &Reading<'_>| {
            let flow = flow(r)?;
            let arrived = flow.repair.as_ref().map_or(0.0, |p| p.received as f64 / p.sent.max(1) as f64);
            Some((flow.rates.received_bps - flow.rates.repair_bps * arrived) / best)
        };
        let stalled = move |r: &Reading<'_>| Some(100.0 * flow(r)?.frames.map_or(0.0, |f| f.stalled_s) / duration);
        Metrics::default()
            .with("on time", "", (High, goal), move |r| Some(flow(r)?.rates.goodput_bps / best))
            .with("use", "", (High, None), used)
            .with("extra delay p50", "ms", (Low, None), move |r| extra(r, |d| d.p50))
            .with("extra delay p95", "ms", (Low, None), move |r| extra(r, |d| d.p95))
            .with("lost", "%", (Low, None), move |r| Some(100.0 * flow(r)?.loss))
            .with("stalled", "%", (Low, None), stalled)
    }
}
