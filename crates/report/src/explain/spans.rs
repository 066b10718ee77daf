//! The spans of a run, each with its reason.

use super::internals::{Row, mbps};
use super::reasons::Reason;
use serde::Serialize;
use std::fmt::Write as _;
use weir_lab::series::{FlowSeries, Series};

/// Relative change of the rate below which it is steady.
const STEADY: f64 = 0.03;

/// A flow's run in words.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The flow.
    pub flow: String,
    /// Its controller.
    pub controller: String,
    /// The spans, in order.
    pub spans: Vec<Span>,
}

/// A span of time with one reason.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    /// Its beginning in s.
    pub from_s: f64,
    /// Its end in s.
    pub to_s: f64,
    /// The target at its beginning in bit/s.
    pub from_bps: f64,
    /// The target at its end in bit/s.
    pub to_bps: f64,
    /// Why it moved, or stayed.
    pub reason: Reason,
    /// The same in words, with the values that it is from.
    pub text: String,
}

/// Words that explain a rise alone, and a fall alone.
const UP: [&str; 5] = ["grows", "no sign of congestion", "room: ", "below wanted", "increases until"];
const DOWN: [&str; 6] =
    ["above wanted", "delay rises", "delay up", "empties the queue", "feedback is missing", "loss without a queue"];

impl Span {
    /// Whether the rate moved, and the reason or its words explain a move the other way.
    pub fn contradicts_move(&self) -> bool {
        let (from, to) = (self.from_bps, self.to_bps);
        // Not so either where one of them is no number.
        let moves = (to - from).abs() > STEADY * from.max(1.0);
        let is_up = to > from;
        let reason = match self.reason {
            Reason::Start | Reason::Room | Reason::Ceiling | Reason::Competition => !is_up,
            Reason::Delay | Reason::Marks | Reason::Drain | Reason::Silence | Reason::Floor => is_up,
            Reason::Loss => is_up && !self.text.contains("allows"),
            _ => false,
        };
        let words: &[&str] = if is_up { &DOWN } else { &UP };
        moves && (reason || words.iter().any(|w| self.text.contains(w)))
    }
}

/// Explains the flows of a series, in spans of `step` s; bounds on the target in bit/s, where they are known, by flow.
pub fn explain(series: &Series, step: f64, bounds: &dyn Fn(&str) -> Option<(f64, f64)>) -> Vec<Explanation> {
    let adapts = |f: &&FlowSeries| f.target_bps.iter().any(|t| t.is_finite());
    series.flows.iter().filter(adapts).map(|f| one(series, f, step, bounds(&f.name))).collect()
}

fn one(series: &Series, flow: &FlowSeries, step: f64, bounds: Option<(f64, f64)>) -> Explanation {
    let per_step = ((step / series.interval_s.max(1e-3)).round() as usize).max(1);
    let rows: Vec<Row<'_>> = (0..series.time_s.len()).map(|at| Row::of(flow, at, bounds)).collect();
    let mut spans: Vec<Span> = Vec::new();
    let mut before = f64::NAN;
    for (k, part) in rows.chunks(per_step).enumerate() {
        let first = k * per_step;
        let from_s = series.time_s[first] - series.interval_s;
        let to_s = series.time_s[first + part.len() - 1];
        let known: Vec<&Row<'_>> = part.iter().filter(|r| r.target().is_finite()).collect();
        let (Some(start), Some(end)) = (known.first(), known.last()) else { continue };
        let from = if before.is_finite() { before } else { start.target() };
        let to = end.target();
        let (reason, text) = strongest(&known, from, to);
        before = to;
        let span = Span { from_s: tidy(from_s), to_s: tidy(to_s), from_bps: from, to_bps: to, reason, text };
        match spans.last_mut().filter(|last| joins(last, &span)) {
            Some(last) => {
                last.to_s = span.to_s;
                last.to_bps = span.to_bps;
                last.text = span.text;
            }
            None => spans.push(span),
        }
    }
    Explanation { flow: flow.name.clone(), controller: flow.controller.clone(), spans }
}

/// Whether two spans read as one: one reason, and a rate that hardly moves over both.
fn joins(last: &Span, next: &Span) -> bool {
    let is_steady = |a: f64, b: f64| (b - a).abs() <= STEADY * a.max(1.0);
    last.reason == next.reason
        && (last.to_s - next.from_s).abs() < 1e-6
        && is_steady(last.from_bps, last.to_bps)
        && is_steady(next.from_bps, next.to_bps)
        && is_steady(last.from_bps, next.to_bps)
}

/// The reason that moved the rate most in its direction, or the most frequent one of a steady rate; its words are of the row
/// where it moved the rate most.
fn strongest(rows: &[&Row<'_>], from: f64, to: f64) -> (Reason, String) {
    let is_steady = (to - from).abs() <= STEADY * from.max(1.0);
    let mut weights: Vec<(Reason, f64, f64, usize)> = Vec::new();
    let mut before = from;
    for (at, row) in rows.iter().enumerate() {
        let moved = row.target() - before;
        before = row.target();
        let weight = if is_steady { 1.0 } else { moved * (to - from).signum() };
        let pull = moved * (to - from).signum();
        let reason = if is_steady || pull <= 0.0 { row.reason(moved) } else { row.reason_with(moved, to > from) };
        match weights.iter_mut().find(|w| w.0 == reason) {
            Some(known) => {
                known.1 += weight;
                if pull > known.2 {
                    (known.2, known.3) = (pull, at);
                }
            }
            None => weights.push((reason, weight, pull, at)),
        }
    }
    let best = weights.into_iter().reduce(|a, b| if b.1 > a.1 { b } else { a });
    best.map_or((Reason::Unknown, String::new()), |(reason, _, _, at)| (reason, rows[at].words(reason)))
}

/// A time to the tenth of a millisecond: sums of sampling intervals are not exact.
fn tidy(seconds: f64) -> f64 {
    (seconds * 1e4).round() / 1e4
}

impl Explanation {
    /// One line a span: time, rate, why.
    pub fn lines(&self) -> Vec<String> {
        let line = |s: &Span| {
            let mut line = format!("{:>6.1} s  {} -> {} Mbit/s", s.to_s, mbps(s.from_bps), mbps(s.to_bps));
            if (s.to_bps - s.from_bps).abs() <= STEADY * s.from_bps.max(1.0) {
                line = format!("{:>6.1} s  {} Mbit/s", s.to_s, mbps(s.to_bps));
            }
            let _ = write!(line, "  {}", s.text);
            line
        };
        self.spans.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A series of 0.5 s rows with internals by name.
    fn series(controller: &str, target: &[f64], internals: &[(&'static str, &[f64])]) -> Series {
        let rows = target.len();
        let flow = FlowSeries {
            name: "v".into(),
            controller: controller.into(),
            target_bps: target.to_vec(),
            generated_bps: target.to_vec(),
            sent_bps: target.to_vec(),
            goodput_bps: target.to_vec(),
            repair_bps: vec![0.0; rows],
            delay_ms: (0..rows).map(|i| 50.0 + 20.0 * i as f64).collect(),
            delay_max_ms: vec![60.0; rows],
            loss: vec![0.0; rows],
            discard: vec![0.0; rows],
            internals: internals.iter().map(|(n, v)| ((*n).into(), v.to_vec())).collect(),
            ..FlowSeries::default()
        };
        let time_s = (1..=rows).map(|i| 0.5 * i as f64).collect();
        Series { interval_s: 0.5, time_s, flows: vec![flow], links: vec![], jain: vec![f64::NAN; rows] }
    }

    #[test]
    fn the_cut_of_sluice_names_queue_and_service_rate() {
        let s = series(
            "sluice",
            &[2.1e6, 2.1e6, 1.7e6, 1.62e6],
            &[
                ("mode", &[1.0, 1.0, 2.0, 2.0]),
                ("queue_expected_ms", &[0.0, 1.0, 48.0, 34.0]),
                ("queue_wanted_ms", &[14.0; 4]),
                ("capacity_bps", &[2.1e6, 2.1e6, 1.8e6, 1.7e6]),
            ],
        );
        let all = explain(&s, 1.0, &|_| None);
        let spans = &all[0].spans;
        assert_eq!(spans.len(), 2);
        assert_eq!((spans[0].reason, spans[1].reason), (Reason::Room, Reason::Queue));
        assert_eq!((spans[1].from_s, spans[1].to_s, spans[1].from_bps), (1.0, 2.0, 2.1e6));
        assert_eq!(spans[1].text, "queue 48 ms above wanted 14 ms; service rate 1.80");
        assert_eq!(
            all[0].lines()[1],
            "   2.0 s  2.10 -> 1.62 Mbit/s  queue 48 ms above wanted 14 ms; service rate 1.80"
        );
    }

    #[test]
    fn a_controller_without_known_internals_is_explained_by_delay_loss_and_source() {
        let mut s = series("custom", &[1e6, 1e6, 0.5e6, 0.5e6, 0.6e6, 0.6e6], &[]);
        s.flows[0].delay_ms = vec![50.0, 50.0, 50.0, 50.0, 50.0, 50.0];
        s.flows[0].loss = vec![0.0, 0.0, 0.12, 0.0, 0.0, 0.0];
        let loss = &explain(&s, 1.0, &|_| None)[0].spans;
        assert_eq!(loss[1].reason, Reason::Loss);
        assert!(loss[1].text.contains("12 %"), "{}", loss[1].text);
        assert_eq!(loss[2].reason, Reason::Room);
        let capped = &explain(&s, 1.0, &|_| Some((0.5e6, 1e6)))[0].spans;
        assert_eq!(capped[0].reason, Reason::Ceiling);
        let mut late = series("custom", &[1e6, 1e6, 0.5e6, 0.5e6], &[]);
        late.flows[0].delay_ms = vec![50.0, 50.0, 90.0, 95.0];
        let late = &explain(&late, 1.0, &|_| None)[0].spans;
        assert_eq!(late[1].reason, Reason::Delay);
        assert!(late[1].text.contains("50 to 90 ms"), "{}", late[1].text);
    }

    #[test]
    fn a_steady_rate_is_one_span_and_a_flow_without_a_target_none() {
        let s = series("gcc", &[1e6; 40], &[("usage", &[0.0; 40])]);
        let all = explain(&s, 1.0, &|_| None);
        assert_eq!(all[0].spans.len(), 1);
        assert_eq!((all[0].spans[0].from_s, all[0].spans[0].to_s), (0.0, 20.0));
        let tcp = series("cubic", &[f64::NAN; 4], &[]);
        assert!(explain(&tcp, 1.0, &|_| None).is_empty());
    }
}
