//! Rows of paths that carry media daily and that most controllers' papers do not try: long ones, those whose delay, order or losses say
//! little about the queue, quiet return paths, uploads beside a call, and other controllers beside it.
//!
//! Goals are those set for `sluice`; rows without one show where all stand.

use super::measures::{lost, most, p95, used};
use super::reading::Reading;
use super::row::{Metrics, Row, row};
use super::score::Better::{High, Low, One};
use super::text::{FLOW, FlowText, scenario, steps};

const SAMPLE: &str = "50 ms";
const NOTHING: (&str, &str) = ("", "");
const CALL: FlowText<'_> = FlowText { name: FLOW, floor: 150e3, ceiling: 6e6, start_rate: 300e3, more: &[] };

/// The rows, in their order.
pub(super) fn rows() -> Vec<Row> {
    vec![
        long_path("o1", 200, 0.94),
        long_path("o2", 300, 0.92),
        handovers(),
        jittery("q1", 4, 50),
        jittery("q2", 10, 30),
        held_back("r1", 0.2, 10),
        held_back("r2", 0.05, 120),
        lost_feedback(),
        audio(),
        upload(),
        alternating(),
        longer(),
        company(),
        outages(),
        policed(),
    ]
}

/// Goodput counts what arrives within 100 ms of the path's own delay.
fn long_path(key: &str, one_way_ms: u32, goal: f64) -> Row {
    let base = f64::from(one_way_ms);
    let metrics = Metrics::default()
        .with("use 20-120 s, on time", "", (High, goal), used(4e6, 20.0, 120.0))
        .with("time to 80 %", "s", (Low, None), |r| r.reached(FLOW, 0.0, 3.2e6, 1.0))
        .with("extra delay p95", "ms", (Low, None), p95(FLOW, base));
    let (delay, deadline) = (format!("\"{one_way_ms} ms\""), format!("\"{} ms\"", one_way_ms + 100));
    let link = [("rate", "\"4 Mbps\""), ("delay", delay.as_str()), ("queue", "\"300 ms\"")];
    let flow = FlowText { more: &[("playout_deadline", deadline.as_str())], ..CALL };
    let text = scenario(key, (120.0, SAMPLE), &link, &[flow], NOTHING);
    row(key, format!("round trip of {} ms, 4 Mbit/s", 2 * one_way_ms), text, metrics)
}

/// A satellite in a low orbit: each 15 s another one, with another delay, and half of the packets of 100 ms lost.
fn handovers() -> Row {
    let metrics = Metrics::default()
        .with("use 15-120 s", "", (High, 0.88), used(10e6, 15.0, 120.0))
        .with("extra delay p95 over 40 ms", "ms", (Low, 60.0), p95(FLOW, 40.0))
        .with("lost", "%", (Low, None), lost);
    let delays = "{ repeat = \"60 s\", steps = [{ at = \"0 s\", delay = \"25 ms\" }, { at = \"15 s\", delay = \"35 ms\" }, \
                  { at = \"30 s\", delay = \"28 ms\" }, { at = \"45 s\", delay = \"40 ms\" }] }";
    let losses = "{ repeat = \"15 s\", steps = [{ at = \"0 s\", loss = 0.0 }, { at = \"14.9 s\", loss = 0.5 }] }";
    let link = [("rate", "\"10 Mbps\""), ("delay", delays), ("queue", "\"300 ms\""), ("loss", losses)];
    let flow = FlowText { ceiling: 15e6, ..CALL };
    let text = scenario("p", (120.0, SAMPLE), &link, &[flow], NOTHING);
    row("p", "hand-over each 15 s: delays of 25 to 40 ms, 100 ms of 50 % loss, 10 Mbit/s", text, metrics)
}

fn jittery(key: &str, mbps: u32, max_ms: u32) -> Row {
    let c = f64::from(mbps) * 1e6;
    let metrics = Metrics::default().with("use 10-60 s", "", (High, 0.95), used(c, 10.0, 60.0)).with(
        "extra delay p95",
        "ms",
        (Low, None),
        p95(FLOW, 10.0),
    );
    let (rate, jitter) = (format!("\"{mbps} Mbps\""), format!("{{ max = \"{max_ms} ms\" }}"));
    let link = [("rate", rate.as_str()), ("delay", "\"10 ms\""), ("queue", "\"300 ms\""), ("jitter", jitter.as_str())];
    let flow = FlowText { ceiling: 1.5 * c, ..CALL };
    let text = scenario(key, (60.0, SAMPLE), &link, &[flow], NOTHING);
    row(key, format!("jitter of 0 to {max_ms} ms in order, {mbps} Mbit/s, 10 ms"), text, metrics)
}

fn held_back(key: &str, share: f64, by_ms: u32) -> Row {
    // .95 of what the same link carries in order.
    let metrics = Metrics::default().with("use 10-120 s", "", (High, 0.93), used(4e6, 10.0, 120.0)).with(
        "lost",
        "%",
        (Low, None),
        lost,
    );
    let reorder = format!("{{ probability = {share}, delay = \"{by_ms} ms\" }}");
    let link = [("rate", "\"4 Mbps\""), ("delay", "\"20 ms\""), ("queue", "\"300 ms\""), ("reorder", reorder.as_str())];
    let text = scenario(key, (120.0, SAMPLE), &link, &[CALL], NOTHING);
    row(key, format!("{} % of the packets held back by {by_ms} ms, 4 Mbit/s, 20 ms", 100.0 * share), text, metrics)
}

fn lost_feedback() -> Row {
    let metrics = Metrics::default().with("use 10-120 s", "", (High, 0.9), used(4e6, 10.0, 120.0)).with(
        "extra delay p95",
        "ms",
        (Low, None),
        p95(FLOW, 25.0),
    );
    let link = [("rate", "\"4 Mbps\""), ("delay", "\"25 ms\""), ("queue", "\"300 ms\""), ("reverse", "{ loss = 0.7 }")];
    let text = scenario("s", (120.0, SAMPLE), &link, &[CALL], NOTHING);
    row("s", "70 % of the feedback lost, 4 Mbit/s, 25 ms", text, metrics)
}

/// A packet each 20 ms.
fn audio() -> Row {
    let metrics = Metrics::default()
        .with("extra delay p95", "ms", (Low, 80.0), p95(FLOW, 25.0))
        .with("use at 40 kbit/s (45-80 s)", "", (High, None), used(40e3, 45.0, 80.0))
        .with("lost", "%", (Low, None), lost);
    let rates = format!("{{ steps = {} }}", steps(&[(0.0, 200e3), (40.0, 40e3), (80.0, 200e3)]));
    let link = [("rate", rates.as_str()), ("delay", "\"25 ms\""), ("queue", "\"20000 B\"")];
    let more = [("source", "{ model = \"perfect-frames\", fps = 50 }")];
    let flow = FlowText { floor: 8e3, ceiling: 128e3, start_rate: 32e3, more: &more, ..CALL };
    let text = scenario("t", (120.0, SAMPLE), &link, &[flow], NOTHING);
    row("t", "audio alone, 200, 40, 200 kbit/s at 40 and 80 s, 25 ms", text, metrics)
}

fn upload() -> Row {
    let metrics = Metrics::default()
        .with("share of the link 35-90 s", "", (High, 0.5), used(1e6, 35.0, 90.0))
        .with("lost", "%", (Low, 0.5), lost)
        .with("back to 80 % after", "s", (Low, None), |r| r.reached(FLOW, 90.0, 0.8e6, 1.0));
    let link = [
        ("rate", "\"1 Mbps\""),
        ("delay", "\"15 ms\""),
        ("queue", "\"500 ms\""),
        ("reverse", "{ rate = \"16 Mbps\", queue = \"100 ms\" }"),
    ];
    let flow = FlowText { ceiling: 2e6, ..CALL };
    let tcp = "\n[tcp.upload]\nalgorithm = \"cubic\"\nstart = \"30 s\"\nstop = \"90 s\"\n";
    let text = scenario("u", (120.0, SAMPLE), &link, &[flow], ("", tcp));
    row("u", "DSL: 1 Mbit/s up, 500 ms of queue, a CUBIC upload from 30 to 90 s", text, metrics)
}

fn alternating() -> Row {
    let metrics = Metrics::default().with("delay p95", "ms", (Low, 110.0), p95(FLOW, 0.0)).with(
        "use 10-120 s",
        "",
        (High, None),
        used(3e6, 10.0, 120.0),
    );
    let delays =
        "{ repeat = \"10 s\", steps = [{ at = \"0 s\", delay = \"25 ms\" }, { at = \"5 s\", delay = \"75 ms\" }] }";
    let link = [("rate", "\"3 Mbps\""), ("delay", delays), ("queue", "\"300 ms\"")];
    let text = scenario("v1", (120.0, SAMPLE), &link, &[CALL], NOTHING);
    row("v1", "paths of 25 and 75 ms in turn each 5 s, 3 Mbit/s", text, metrics)
}

fn longer() -> Row {
    let metrics = Metrics::default()
        .with("delay p95", "ms", (Low, 200.0), p95(FLOW, 0.0))
        .with("use 10-40 s", "", (High, None), used(3e6, 10.0, 40.0))
        .with("use 60-120 s", "", (High, None), used(3e6, 60.0, 120.0));
    let delays = "{ steps = [{ at = \"0 s\", delay = \"25 ms\" }, { at = \"40 s\", delay = \"175 ms\" }] }";
    let link = [("rate", "\"3 Mbps\""), ("delay", delays), ("queue", "\"300 ms\"")];
    let text = scenario("v2", (120.0, SAMPLE), &link, &[CALL], NOTHING);
    row("v2", "the path longer by 150 ms from 40 s on, 3 Mbit/s, 25 ms", text, metrics)
}

/// Beside those that people run.
fn company() -> Row {
    const OTHERS: [&str; 3] = ["\"gcc\"", "\"nada\"", "\"scream2\""];
    let all = |r: &Reading<'_>| {
        let names = [FLOW, "gcc", "nada", "scream2"];
        Some(names.iter().map(|n| r.goodput(n, 40.0, 120.0)).sum::<f64>() / 6e6)
    };
    let metrics = Metrics::default()
        .with("share of fair 40-120 s", "", (One, 0.8), used(1.5e6, 40.0, 120.0))
        .with("use of all", "", (High, None), all)
        .with("extra delay p95", "ms", (Low, None), p95(FLOW, 50.0));
    let link = [("rate", "\"6 Mbps\""), ("delay", "\"50 ms\""), ("queue", "\"300 ms\"")];
    let controllers = OTHERS.map(|c| [("controller", c)]);
    let others = OTHERS.iter().zip(&controllers);
    let others = others.map(|(name, more)| FlowText { name: name.trim_matches('"'), more, ..CALL });
    let flows: Vec<_> = [CALL].into_iter().chain(others).collect();
    let text = scenario("w", (120.0, SAMPLE), &link, &flows, NOTHING);
    row("w", "with gcc, nada and scream2 on 6 Mbit/s, 50 ms", text, metrics)
}

fn outages() -> Row {
    let metrics = Metrics::default()
        .with("3.2 M again after 1 s", "s", (Low, None), |r| r.reached(FLOW, 21.0, 3.2e6, 0.5))
        .with("after 4 s", "s", (Low, None), |r| r.reached(FLOW, 44.0, 3.2e6, 0.5))
        .with("after 10 s", "s", (Low, None), |r| r.reached(FLOW, 80.0, 3.2e6, 0.5))
        .with("queue peak", "ms", (Low, None), |r| most(&r.queue_ms(20.0, f64::INFINITY)));
    let points = [(0.0, 4e6), (20.0, 0.0), (21.0, 4e6), (40.0, 0.0), (44.0, 4e6), (70.0, 0.0), (80.0, 4e6)];
    let rates = format!("{{ steps = {} }}", steps(&points));
    let link = [("rate", rates.as_str()), ("delay", "\"25 ms\""), ("queue", "\"100000 B\"")];
    let text = scenario("x", (110.0, SAMPLE), &link, &[CALL], NOTHING);
    row("x", "nothing for 1, 4 and 10 s, 4 Mbit/s, 25 ms", text, metrics)
}

fn policed() -> Row {
    let metrics = Metrics::default().with("use 10-120 s", "", (High, None), used(1.5e6, 10.0, 120.0)).with(
        "lost",
        "%",
        (Low, None),
        lost,
    );
    let link = [
        ("rate", "\"10 Mbps\""),
        ("delay", "\"25 ms\""),
        ("queue", "\"300 ms\""),
        ("policer", "{ rate = \"1.5 Mbps\", burst = \"50 kB\" }"),
    ];
    let text = scenario("y", (120.0, SAMPLE), &link, &[CALL], NOTHING);
    row("y", "policer of 1.5 Mbit/s and 50 kB on 10 Mbit/s, 25 ms", text, metrics)
}
