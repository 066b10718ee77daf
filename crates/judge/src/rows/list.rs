//! The rows beyond the traces: a scenario each, what is read from its runs, and the goals.
//!
//! In all of them but `a0` headers of UDP and IP do not count, so that a sender that sends exactly what the link carries has a
//! goodput of 1.0 of it. All controllers have the same floor, ceiling and start rate, and their own default parameters. *Extra*
//! delay is delay less the path's propagation.

use super::measures::{lost, most, p95, used};
use super::reading::{Reading, jain};
use super::row::{Metrics, Row, Source, row};
use super::score::Better::{High, Low, One};
use super::text::{FLOW, FlowText, scenario, steps};

/// Aggregates of the Wi-Fi-like link.
const AGGREGATES: &str = include_str!("../../assets/scoreboard/wifi-aggregates.txt");

/// The rows, in their order.
pub(super) fn rows() -> Vec<Row> {
    vec![
        changing_link(),
        as_in_the_paper(),
        random_loss(),
        three_flows(),
        beside_tcp("d1", "newreno", 0.9),
        beside_tcp("d2", "cubic", 0.9),
        beside_tcp("d3", "bbr", 0.5),
        fall_and_rise("e", false),
        second_flow(),
        round_trips(),
        start("h10", 10, 1.0),
        start("h50", 50, 1.5),
        limited("i1", false),
        limited("i2", true),
        jitter(),
        aggregates(),
        deep("k1", false),
        deep("k2", true),
        ten_packets(),
        fall_and_rise("m", true),
        low_latency(),
    ]
}

const SAMPLE: &str = "50 ms";
const NOTHING: (&str, &str) = ("", "");
const PACKETS: (&str, &str) = ("source", "\"perfect-packets\"");
const PACKET: (&str, &str) = ("payload", "\"1000 B\"");
const QUEUE: (&str, &str) = ("queue", "\"75000 B\"");

fn quantile(mut values: Vec<f64>, q: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get((q * values.len() as f64) as usize).copied()
}

/// The steps of capacity of the paper rmcat-comparison, from its text: bit/s for 20 s each.
const STEPS: [f64; 6] = [2e6, 1.5e6, 1e6, 0.5e6, 1e6, 1.5e6];

fn changing_link() -> Row {
    let part = |i: usize| move |r: &Reading<'_>| used(STEPS[i % 6], 20.0 * i as f64, 20.0 * (i + 1) as f64)(r);
    let parts = move |r: &Reading<'_>| (0..10).filter_map(|i| part(i)(r)).collect::<Vec<f64>>();
    let mut metrics = Metrics::default()
        .with("use, mean of ten 20 s", "", (High, 0.97), move |r| Some(parts(r).iter().sum::<f64>() / 10.0))
        .with("use, worst 20 s", "", (High, 0.93), move |r| parts(r).into_iter().reduce(f64::min))
        .with("extra delay p95", "ms", (Low, 80.0), p95(FLOW, 100.0));
    for i in 0..10 {
        let label = format!("use {}-{} s ({} M)", 20 * i, 20 * i + 20, STEPS[i % 6] / 1e6);
        metrics = metrics.with(&label, "", (High, None), part(i));
    }
    let points: Vec<(f64, f64)> = STEPS.iter().enumerate().map(|(i, c)| (20.0 * i as f64, *c)).collect();
    let rates = format!("{{ steps = {}, repeat = \"120 s\" }}", steps(&points));
    let link = [("rate", rates.as_str()), ("delay", "\"100 ms\""), QUEUE];
    let flow = FlowText { more: &[PACKETS, PACKET], ..FlowText::default() };
    let text = scenario("a", (200.0, SAMPLE), &link, &[flow], NOTHING);
    row("a", "2, 1.5, 1, 0.5, 1, 1.5 Mbit/s, 20 s each, 100 ms", text, metrics)
}

/// The paper's own scenario, with its own settings of the controllers that it has.
fn as_in_the_paper() -> Row {
    let part = |i: usize| move |r: &Reading<'_>| r.run.windows.get(i)?.flows.first()?.utilisation;
    let mut metrics = Metrics::default().with("generated/capacity, mean of 0-100 s", "", (High, None), move |r| {
        Some((0..5).filter_map(|i| part(i)(r)).sum::<f64>() / 5.0)
    });
    for i in 0..5 {
        let label = format!("generated/capacity {}-{} s", 20 * i, 20 * i + 20);
        metrics = metrics.with(&label, "", (High, None), part(i));
    }
    let name = "rmcat-comparison/responsiveness";
    Row {
        key: "a0".into(),
        title: format!("{name} as shipped"),
        source: Source::BuiltIn(name),
        metrics: metrics.0,
        only: Some(&["gcc", "nada", "scream", "gcc-remb"]),
    }
}

fn random_loss() -> Row {
    let left = |r: &Reading<'_>| {
        let flow = r.flow(FLOW)?;
        Some(100.0 * flow.repair.as_ref().map_or(flow.loss, |repair| repair.residual_loss))
    };
    let metrics = Metrics::default()
        .with("use of what can arrive", "", (High, 0.95), used(0.95 * 2e6, 0.0, 100.0))
        .with("the same, last 50 s", "", (High, 0.97), used(0.95 * 2e6, 50.0, 100.0))
        .with("extra delay p95", "ms", (Low, 40.0), p95(FLOW, 100.0))
        .with("lost after repair", "%", (Low, None), left);
    let link = [("rate", "\"2 Mbps\""), ("loss", "0.05"), ("delay", "\"100 ms\""), QUEUE];
    let flow = FlowText { more: &[PACKETS, PACKET], ..FlowText::default() };
    let text = scenario("b", (100.0, SAMPLE), &link, &[flow], NOTHING);
    row("b", "5 % random loss, 2 Mbit/s, 100 ms", text, metrics)
}

fn three_flows() -> Row {
    const NAMES: [&str; 3] = ["v1", "v2", "v3"];
    let after = |flows: usize, from: f64| {
        move |r: &Reading<'_>| jain(&NAMES[..flows].iter().map(|n| r.goodput(n, from, from + 20.0)).collect::<Vec<_>>())
    };
    let all = |r: &Reading<'_>| Some(NAMES.iter().map(|n| r.goodput(n, 40.0, 120.0)).sum::<f64>() / 2e6);
    let metrics = Metrics::default()
        .with("Jain 20 s after 2nd", "", (High, 0.97), after(2, 40.0))
        .with("Jain 20 s after 3rd", "", (High, 0.97), after(3, 80.0))
        .with("Jain last 20 s", "", (High, 0.99), after(3, 100.0))
        .with("use 40-120 s", "", (High, 0.95), all)
        .with("extra delay p95", "ms", (Low, 60.0), p95("v1", 100.0));
    let link = [("rate", "\"2 Mbps\""), ("delay", "\"100 ms\""), QUEUE];
    let more = ["\"0 s\"", "\"40 s\"", "\"80 s\""].map(|at| [PACKETS, PACKET, ("start", at)]);
    let flows: Vec<FlowText<'_>> =
        NAMES.iter().zip(&more).map(|(name, more)| FlowText { name, more, ..FlowText::default() }).collect();
    let text = scenario("c", (120.0, SAMPLE), &link, &flows, NOTHING);
    row("c", "three flows at 0, 40, 80 s, 2 Mbit/s, 100 ms", text, metrics)
}

fn tcp(algorithm: &str) -> String {
    format!("\n[tcp.bulk]\nalgorithm = \"{algorithm}\"\nstart = \"20 s\"\nstop = \"100 s\"\n")
}

fn beside_tcp(key: &str, algorithm: &str, share: f64) -> Row {
    let fair = if share < 0.9 { High } else { One };
    let metrics = Metrics::default()
        .with("share of fair", "", (fair, share), used(1e6, 20.0, 100.0))
        .with("extra delay beside TCP", "ms", (Low, None), |r| r.extra_in(FLOW, 25.0, 100.0, 100.0))
        .with("back to 95 % after TCP", "s", (Low, 2.0), |r| r.reached(FLOW, 100.0, 1.9e6, 1.0))
        .with("back to 80 % after TCP", "s", (Low, 1.5), |r| r.reached(FLOW, 100.0, 1.6e6, 1.0));
    let link = [("rate", "\"2 Mbps\""), ("delay", "\"100 ms\""), QUEUE];
    let flow = FlowText { more: &[PACKETS, PACKET], ..FlowText::default() };
    let text = scenario(key, (200.0, SAMPLE), &link, &[flow], ("", &tcp(algorithm)));
    row(key, format!("beside {algorithm} from 20 to 100 s, 2 Mbit/s, 100 ms"), text, metrics)
}

fn fall_and_rise(key: &str, marks: bool) -> Row {
    let metrics = Metrics::default()
        .with("time to below 0.5 M", "s", (Low, if marks { 0.35 } else { 0.4 }), |r| {
            r.below(FLOW, 40.0, 0.5e6, 0.2, 80.0)
        })
        .with("queue peak", "ms", (Low, if marks { 450.0 } else { 600.0 }), |r| most(&r.queue_ms(40.0, 80.0)))
        .with("queue under 50 ms again", "s", (Low, 1.2), |r| r.drained(40.0, 50.0))
        .with("use at 0.5 M (45-80 s)", "", (High, 0.95), used(0.5e6, 45.0, 80.0))
        .with("time to pass 1.6 M", "s", (Low, 1.0), |r| r.reached(FLOW, 80.0, 1.6e6, 0.5))
        .with("lost 40-80 s", "%", (Low, 0.0), |r| Some(100.0 * r.mean(FLOW, 40.0, 80.0, |f| &f.loss)));
    let rates = format!("{{ steps = {} }}", steps(&[(0.0, 2e6), (40.0, 0.5e6), (80.0, 2e6)]));
    let mut link = vec![("rate", rates.as_str()), ("delay", "\"50 ms\""), QUEUE];
    let mut more = vec![("playout_deadline", "\"150 ms\"")];
    if marks {
        link.push(("ecn_threshold", "\"5 ms\""));
        more.push(("ecn", "true"));
    }
    let flow = FlowText { more: &more, ..FlowText::default() };
    let text = scenario(key, (120.0, SAMPLE), &link, &[flow], NOTHING);
    let how = if marks { ", marked from 5 ms, ECN" } else { "" };
    row(key, format!("2, 0.5, 2 Mbit/s at 40 and 80 s, 50 ms{how}"), text, metrics)
}

fn second_flow() -> Row {
    let jain_of = |r: &Reading<'_>| jain(&["v1", "v2"].map(|n| r.goodput(n, 40.0, 60.0)));
    let ratio = |r: &Reading<'_>| Some(r.goodput("v2", 90.0, 120.0) / r.goodput("v1", 90.0, 120.0).max(1.0));
    let metrics = Metrics::default()
        .with("2nd at 80 % of fair", "s", (Low, 3.0), |r| r.reached("v2", 40.0, 1.6e6, 1.0))
        .with("Jain 20 s after", "", (High, 0.97), jain_of)
        .with("new over old, last 30 s", "", (One, 0.9), ratio)
        .with("queue p95 after", "ms", (Low, 40.0), |r| quantile(r.queue_ms(40.0, f64::INFINITY), 0.95));
    let link = [("rate", "\"4 Mbps\""), ("delay", "\"50 ms\""), ("queue", "\"300 ms\"")];
    let first = FlowText { name: "v1", ceiling: 6e6, ..FlowText::default() };
    let second = FlowText { name: "v2", ceiling: 6e6, more: &[("start", "\"40 s\"")], ..FlowText::default() };
    let text = scenario("f", (120.0, SAMPLE), &link, &[first, second], NOTHING);
    row("f", "second flow at 40 s, 4 Mbit/s, 50 ms", text, metrics)
}

fn round_trips() -> Row {
    let ratio = |r: &Reading<'_>| Some(r.goodput("near", 60.0, 120.0) / r.goodput("far", 60.0, 120.0).max(1.0));
    let all = |r: &Reading<'_>| Some(["near", "far"].map(|n| r.goodput(n, 60.0, 120.0)).iter().sum::<f64>() / 4e6);
    let metrics = Metrics::default().with("20 ms over 200 ms, 60-120 s", "", (One, 1.2), ratio).with(
        "use 60-120 s",
        "",
        (High, 0.95),
        all,
    );
    let link = [("rate", "\"4 Mbps\""), ("delay", "\"0 ms\""), ("queue", "\"300 ms\"")];
    let near = FlowText { name: "near", ceiling: 6e6, more: &[("access_delay", "\"10 ms\"")], ..FlowText::default() };
    let far = FlowText { name: "far", ceiling: 6e6, more: &[("access_delay", "\"100 ms\"")], ..FlowText::default() };
    let text = scenario("g", (120.0, SAMPLE), &link, &[near, far], ("topology = \"dumbbell\"\n", ""));
    row("g", "round trips of 20 and 200 ms share 4 Mbit/s", text, metrics)
}

fn start(key: &str, mbps: u32, goal: f64) -> Row {
    let c = f64::from(mbps) * 1e6;
    let metrics = Metrics::default()
        .with("time to 80 %", "s", (Low, goal), move |r| r.reached(FLOW, 0.0, 0.8 * c, 0.2))
        .with("queue peak", "ms", (Low, 60.0), |r| most(&r.queue_ms(0.0, f64::INFINITY)))
        .with("use 0-30 s", "", (High, 0.95), used(c, 0.0, 30.0));
    let rate = format!("\"{mbps} Mbps\"");
    let link = [("rate", rate.as_str()), ("delay", "\"25 ms\""), ("queue", "\"300 ms\"")];
    let flow = FlowText { ceiling: 1.5 * c, ..FlowText::default() };
    let text = scenario("h", (60.0, SAMPLE), &link, &[flow], NOTHING);
    row(key, format!("start from 0.3 on {mbps} Mbit/s, 25 ms"), text, metrics)
}

/// Free for 20 s, then 30 s with a twentieth of the target (200 kbit/s at 4 Mbit/s) or nothing, then free again.
fn limited(key: &str, twentieth: bool) -> Row {
    const FILE: &str = "twentieth.frames";
    let metrics = Metrics::default()
        .with("3.2 M again after", "s", (Low, 0.5), |r| r.reached(FLOW, 50.0, 3.2e6, 0.2))
        .with("use 50-60 s", "", (High, 0.95), used(4e6, 50.0, 60.0))
        .with("queue peak after", "ms", (Low, 60.0), |r| most(&r.queue_ms(50.0, f64::INFINITY)));
    let link = [("rate", "\"5 Mbps\""), ("delay", "\"25 ms\""), ("queue", "\"300 ms\"")];
    let source = format!("{{ model = \"trace\", fps = 30, file = \"{FILE}\" }}");
    let more = if twentieth { ("source", source.as_str()) } else { ("pauses", "[{ from = \"20 s\", to = \"50 s\" }]") };
    let flow = FlowText { ceiling: 4e6, more: &[more], ..FlowText::default() };
    let text = scenario(key, (80.0, SAMPLE), &link, &[flow], NOTHING);
    let what = if twentieth { "source makes a twentieth of its target" } else { "source paused" };
    let mut row = row(key, format!("{what} for 30 s, then 4 Mbit/s on 5 Mbit/s, 25 ms"), text, metrics);
    if let (true, Source::Text(_, files)) = (twentieth, &mut row.source) {
        // The source scales its frames so that their mean is the target: the file is long enough that the mean is that of the
        // frames which are not limited.
        let size = |frame: u32| if (20 * 30..50 * 30).contains(&frame) { "500\n" } else { "10000\n" };
        files.insert(FILE.into(), (0..100_000).map(size).collect::<String>().into_bytes());
    }
    row
}

fn jitter() -> Row {
    let metrics = Metrics::default().with("use 10-60 s", "", (High, 0.95), used(4e6, 10.0, 60.0)).with(
        "extra delay p95 over 15 ms",
        "ms",
        (Low, 40.0),
        p95(FLOW, 25.0),
    );
    let link =
        [("rate", "\"4 Mbps\""), ("delay", "\"10 ms\""), ("queue", "\"300 ms\""), ("jitter", "{ max = \"30 ms\" }")];
    let flow = FlowText { ceiling: 6e6, ..FlowText::default() };
    let text = scenario("j1", (60.0, SAMPLE), &link, &[flow], NOTHING);
    row("j1", "jitter of 0 to 30 ms in order, 4 Mbit/s, 10 ms", text, metrics)
}

fn aggregates() -> Row {
    const FILE: &str = "aggregates.mahimahi";
    let metrics = Metrics::default()
        .with("use 10-60 s, on time", "", (High, 0.85), used(6e6, 10.0, 60.0))
        .with("extra delay p95", "ms", (Low, 90.0), p95(FLOW, 10.0))
        .with("lost", "%", (Low, None), lost);
    let link = [
        ("rate", &*format!("{{ trace = \"{FILE}\", format = \"mahimahi\" }}")),
        ("delay", "\"10 ms\""),
        ("queue", "\"300 ms\""),
        ("loss", "{ good_to_bad = 0.002, bad_to_good = 0.3, loss_in_bad = 0.8 }"),
    ];
    let flow = FlowText { ceiling: 9e6, more: &[("playout_deadline", "\"110 ms\"")], ..FlowText::default() };
    let text = scenario("j2", (60.0, SAMPLE), &link, &[flow], NOTHING);
    let title = "Wi-Fi-like: aggregates every 2 to 60 ms, bursts of loss (0.5 %), 6 Mbit/s, 10 ms";
    let mut row = row("j2", title, text, metrics);
    if let Source::Text(_, files) = &mut row.source {
        let mut trace = String::new();
        for line in AGGREGATES.lines().filter(|l| !l.starts_with('#')) {
            let (ms, packets) = line.split_once(' ').unwrap_or((line, "0"));
            (0..packets.parse().unwrap_or(0)).for_each(|_| trace += &format!("{ms}\n"));
        }
        files.insert(FILE.into(), trace.into_bytes());
    }
    row
}

fn deep(key: &str, with_tcp: bool) -> Row {
    let link = [("rate", "\"2 Mbps\""), ("delay", "\"50 ms\""), ("queue", "\"2 s\"")];
    let (metrics, rest, how) = if with_tcp {
        let metrics = Metrics::default()
            .with("share of fair", "", (One, 0.8), used(1e6, 20.0, 100.0))
            .with("extra delay beside TCP", "ms", (Low, None), |r| r.extra_in(FLOW, 25.0, 100.0, 50.0))
            .with("back to 80 % after TCP", "s", (Low, 2.5), |r| r.reached(FLOW, 100.0, 1.6e6, 1.0));
        (metrics, tcp("cubic"), ", CUBIC from 20 to 100 s")
    } else {
        let metrics = Metrics::default().with("use 10-140 s", "", (High, 0.97), used(2e6, 10.0, 140.0)).with(
            "extra delay p95",
            "ms",
            (Low, 30.0),
            p95(FLOW, 50.0),
        );
        (metrics, String::new(), "")
    };
    let text = scenario(key, (140.0, SAMPLE), &link, &[FlowText::default()], ("", &rest));
    row(key, format!("queue of 2 s, 2 Mbit/s, 50 ms{how}"), text, metrics)
}

fn ten_packets() -> Row {
    let metrics = Metrics::default().with("use 10-60 s", "", (High, 0.93), used(5e6, 10.0, 60.0)).with(
        "lost",
        "%",
        (Low, 0.3),
        lost,
    );
    let link = [("rate", "\"5 Mbps\""), ("delay", "\"25 ms\""), ("queue", "\"10 packets\"")];
    let flow = FlowText { ceiling: 7.5e6, ..FlowText::default() };
    let text = scenario("l", (60.0, SAMPLE), &link, &[flow], NOTHING);
    row("l", "queue of 10 packets, 5 Mbit/s, 25 ms", text, metrics)
}

/// DualPI2 (RFC 9332) under ECT(1), on a link on which a packet takes half a millisecond: the rate and the queue while nothing changes,
/// and the time after a rise. The goal of the queue is RFC 9330's: "less than about 2 ms at the 99th percentile".
fn low_latency() -> Row {
    const C: f64 = 20e6;
    let metrics = Metrics::default()
        .with("use 10-40 s", "", (High, 0.95), used(C, 10.0, 40.0))
        .with("queue p99 10-40 s", "ms", (Low, 2.0), |r| quantile(r.queue_ms(10.0, 40.0), 0.99))
        .with("time to pass 16 M", "s", (Low, 1.0), |r| r.reached(FLOW, 80.0, 0.8 * C, 0.5));
    let rates = format!("{{ steps = {} }}", steps(&[(0.0, C), (40.0, 0.25 * C), (80.0, C)]));
    let link = [
        ("rate", rates.as_str()),
        ("delay", "\"50 ms\""),
        ("queue", "{ discipline = \"dualpi2\", limit = \"250 ms\" }"),
    ];
    let more = [("playout_deadline", "\"150 ms\""), ("ecn", "true")];
    let flow = FlowText { ceiling: 1.5 * C, more: &more, ..FlowText::default() };
    let text = scenario("n", (120.0, SAMPLE), &link, &[flow], NOTHING);
    row("n", "20, 5, 20 Mbit/s at 40 and 80 s, 50 ms, DualPI2, L4S", text, metrics)
}
