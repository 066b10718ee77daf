//! Rows of what calls meet daily: slides, policers and short queues in company, fair queues, clocks, copies, late feedback, many calls,
//! a video player beside, grants, the wait in the sender's own queue, a cell with stalls.
//!
//! Each goal is a causal bound of [`super::bounds`], less the share that it leaves.

use super::bounds::{ASKED, LOST, Loop, beside_player, frame_ms, most, packet_ms};
use super::measures::{lost, most as greatest, p95, used};
use super::reading::{Reading, jain};
use super::row::{Metrics, Row, row};
use super::score::Better::{High, Low, One};
use super::text::{FLOW, FlowText, scenario, steps};
use super::traces::Trace;
use weir_path::TraceFormat;

const SAMPLE: &str = "50 ms";
const NOTHING: (&str, &str) = ("", "");
const CALL: FlowText<'_> = FlowText { name: FLOW, floor: 150e3, ceiling: 6e6, start_rate: 300e3, more: &[] };
/// The path of most of these rows.
const PATH: Loop = Loop { there: 0.025, back: 0.025 };
const LINK: [(&str, &str); 3] = [("rate", "\"4 Mbps\""), ("delay", "\"25 ms\""), ("queue", "\"300 ms\"")];
const THREE: [&str; 3] = ["v1", "v2", "v3"];

/// The rows, in their order.
pub(super) fn rows() -> Vec<Row> {
    vec![
        slides(),
        policed_company(),
        policed_beside_cubic(),
        short_company(),
        fair_queue(),
        drifting(),
        set_clock(),
        copies(),
        late_feedback(),
        twenty_calls(),
        player(),
        grants("ak10", 10),
        grants("ak40", 40),
        frame_delay(),
        stalling_cell(),
    ]
}

/// Nothing to send for 17 s, then for 3 s as much as the link takes: a slide of 300 kB is its first part. The first slide finds an unknown
/// link and is not read.
fn slides() -> Row {
    const SLIDE: f64 = 300e3 * 8.0;
    const C: f64 = 5e6;
    let goal = most(SLIDE / C + PATH.there + frame_ms() / 1e3);
    let metrics = Metrics::default()
        .with("300 kB there after", "s", (Low, goal), |r| {
            let times: Option<Vec<f64>> =
                [37.0, 57.0, 77.0, 97.0].iter().map(|at| r.carried(FLOW, *at, SLIDE)).collect();
            times.map(|t| t.iter().sum::<f64>() / t.len() as f64)
        })
        .with("queue peak", "ms", (Low, most(frame_ms())), |r| greatest(&r.queue_ms(37.0, f64::INFINITY)));
    let source = "{ model = \"perfect-frames\", fps = 30, demand = { repeat = \"20 s\", steps = [{ at = \"0 s\", rate = \"0 bps\" }, \
                  { at = \"17 s\", rate = \"20 Mbps\" }] } }";
    let link = [("rate", "\"5 Mbps\""), ("delay", "\"25 ms\""), ("queue", "\"300 ms\"")];
    let flow = FlowText { ceiling: 20e6, more: &[("source", source)], ..CALL };
    let text = scenario("aa", (100.0, SAMPLE), &link, &[flow], NOTHING);
    row("aa", "shared screen: nothing for 17 s, then a slide of 300 kB, 5 Mbit/s, 25 ms", text, metrics)
}

/// Three calls that begin 20 s apart.
fn three(key: &str, title: &str, link: &[(&str, &str)], c: f64) -> Row {
    let all = move |r: &Reading<'_>| Some(THREE.iter().map(|n| r.goodput(n, 60.0, 120.0)).sum::<f64>() / c);
    let lost =
        |r: &Reading<'_>| Some(100.0 * THREE.iter().map(|n| r.mean(n, 60.0, 120.0, |f| &f.loss)).sum::<f64>() / 3.0);
    let metrics = Metrics::default()
        .with("use 60-120 s", "", (High, ASKED), all)
        .with("Jain 60-120 s", "", (High, ASKED), |r| jain(&THREE.map(|n| r.goodput(n, 60.0, 120.0))))
        .with("lost 60-120 s", "%", (Low, LOST), lost);
    let more = ["\"0 s\"", "\"20 s\"", "\"40 s\""].map(|at| [("start", at)]);
    let flows: Vec<_> = THREE.iter().zip(&more).map(|(name, more)| FlowText { name, more, ..CALL }).collect();
    row(key, title, scenario(key, (120.0, SAMPLE), link, &flows, NOTHING), metrics)
}

/// Together they may send the policer's rate, of which nothing is lost.
fn policed_company() -> Row {
    let link = [
        ("rate", "\"10 Mbps\""),
        ("delay", "\"25 ms\""),
        ("queue", "\"300 ms\""),
        ("policer", "{ rate = \"3 Mbps\", burst = \"50 kB\" }"),
    ];
    three("ab", "three calls in a policer of 3 Mbit/s and 50 kB, 25 ms", &link, 3e6)
}

fn policed_beside_cubic() -> Row {
    // Half is fair by definition; the tolerance is that of rows k2 and w.
    let metrics = Metrics::default()
        .with("share of fair 40-120 s", "", (One, 0.8), used(1.5e6, 40.0, 120.0))
        .with("lost", "%", (Low, LOST), lost)
        .with("CUBIC's share of fair", "", (High, None), |r| Some(r.goodput("bulk", 40.0, 120.0) / 1.5e6));
    let link = [
        ("rate", "\"10 Mbps\""),
        ("delay", "\"25 ms\""),
        ("queue", "\"300 ms\""),
        ("policer", "{ rate = \"3 Mbps\", burst = \"50 kB\" }"),
    ];
    let tcp = "\n[tcp.bulk]\nalgorithm = \"cubic\"\nstart = \"20 s\"\n";
    let text = scenario("ac", (120.0, SAMPLE), &link, &[CALL], ("", tcp));
    row("ac", "beside CUBIC in a policer of 3 Mbit/s and 50 kB, 25 ms", text, metrics)
}

/// Of three paced flows at the link's rate at most three packets meet, so that five places lose none.
fn short_company() -> Row {
    let link = [("rate", "\"5 Mbps\""), ("delay", "\"25 ms\""), ("queue", "\"5 packets\"")];
    three("ad", "three calls in a queue of five packets, 5 Mbit/s, 25 ms", &link, 5e6)
}

/// A fair queue serves the call as a link of half the rate, a packet of the download in between.
fn fair_queue() -> Row {
    const C: f64 = 10e6;
    let metrics = Metrics::default()
        .with("use of its half 30-100 s", "", (High, ASKED), used(0.5 * C, 30.0, 100.0))
        .with("extra delay p95", "ms", (Low, most(frame_ms() + packet_ms(C))), p95(FLOW, 25.0));
    let link =
        [("rate", "\"10 Mbps\""), ("delay", "\"25 ms\""), ("queue", "{ discipline = \"fq-codel\", limit = \"1 s\" }")];
    let tcp = "\n[tcp.bulk]\nalgorithm = \"cubic\"\nstart = \"20 s\"\n";
    let text = scenario("ae", (100.0, SAMPLE), &link, &[FlowText { ceiling: 15e6, ..CALL }], ("", tcp));
    row("ae", "beside CUBIC under FQ-CoDel, 10 Mbit/s, 25 ms", text, metrics)
}

fn clocked(key: &str, title: &str, seconds: f64, clock: &str, shown_ms: f64) -> Row {
    let metrics = Metrics::default().with("use from 10 s on", "", (High, ASKED), used(4e6, 10.0, seconds)).with(
        "extra delay p95",
        "ms",
        (Low, most(frame_ms() + shown_ms)),
        p95(FLOW, 25.0),
    );
    let flow = FlowText { more: &[("clock.receiver", clock)], ..CALL };
    row(key, title, scenario(key, (seconds, SAMPLE), &LINK, &[flow], NOTHING), metrics)
}

/// The least delay of the last 20 s is known to 200 ppm of them, 4 ms.
fn drifting() -> Row {
    clocked("af", "the receiver's clock fast by 200 ppm, 4 Mbit/s, 25 ms", 300.0, "{ drift = \"200 ppm\" }", 4.0)
}

fn set_clock() -> Row {
    let clock = "{ steps = [{ at = \"40 s\", by = \"2 s\" }, { at = \"80 s\", by = \"-2 s\" }] }";
    clocked("ag", "the receiver's clock set 2 s forwards and back, 4 Mbit/s, 25 ms", 120.0, clock, 0.0)
}

/// Copies are made behind the link, and take nothing of it.
fn copies() -> Row {
    let metrics = Metrics::default().with("use 10-120 s", "", (High, ASKED), used(4e6, 10.0, 120.0)).with(
        "extra delay p95",
        "ms",
        (Low, most(frame_ms())),
        p95(FLOW, 25.0),
    );
    let both = [LINK[0], LINK[1], LINK[2], ("duplicate", "0.1"), ("reverse", "{ duplicate = 0.1 }")];
    let text = scenario("ah", (120.0, SAMPLE), &both, &[CALL], NOTHING);
    row("ah", "a tenth of the packets and of the feedback twice, 4 Mbit/s, 25 ms", text, metrics)
}

fn late_feedback() -> Row {
    const LATE: Loop = Loop { there: 0.025, back: 0.325 };
    let metrics = Metrics::default()
        .with("use 20-60 s", "", (High, ASKED), used(4e6, 20.0, 60.0))
        .with("queue peak after the fall", "ms", (Low, most(1e3 * LATE.queue_after(4e6, 2e6))), |r| {
            greatest(&r.queue_ms(60.0, 100.0))
        })
        .with("queue under 50 ms again", "s", (Low, most(LATE.drained_after(4e6, 2e6, 150e3))), |r| {
            r.drained(60.0, 50.0)
        })
        .with("use at 2 M (70-100 s)", "", (High, ASKED), used(2e6, 70.0, 100.0));
    let rates = format!("{{ steps = {} }}", steps(&[(0.0, 4e6), (60.0, 2e6)]));
    let link = [
        ("rate", rates.as_str()),
        ("delay", "\"25 ms\""),
        ("queue", "\"600 kB\""),
        ("reverse", "{ delay = \"325 ms\" }"),
    ];
    let text = scenario("ai", (100.0, SAMPLE), &link, &[CALL], NOTHING);
    row("ai", "feedback later by 300 ms, 4 and from 60 s on 2 Mbit/s, 25 ms", text, metrics)
}

/// A packet of each may stand before a call's own frame.
fn twenty_calls() -> Row {
    const C: f64 = 20e6;
    const COUNT: u32 = 20;
    let names = || (1..=COUNT).map(|i| format!("{FLOW}-{i}"));
    let each = move |r: &Reading<'_>, from| names().map(|n| r.goodput(&n, from, 120.0)).collect::<Vec<f64>>();
    let slowest = move |r: &Reading<'_>| {
        names().filter_map(|n| r.flow(&n)?.one_way_delay_ms.map(|d| d.p95 - 25.0)).reduce(f64::max)
    };
    let metrics = Metrics::default()
        .with("use 40-120 s", "", (High, ASKED), move |r| Some(each(r, 40.0).iter().sum::<f64>() / C))
        .with("Jain 80-120 s", "", (High, ASKED), move |r| jain(&each(r, 80.0)))
        .with(
            "extra delay p95 of the slowest",
            "ms",
            (Low, most(frame_ms() + f64::from(COUNT) * packet_ms(C))),
            slowest,
        );
    let count = COUNT.to_string();
    let more = [("count", count.as_str()), ("stagger", "\"500 ms\"")];
    let link = [("rate", "\"20 Mbps\""), ("delay", "\"25 ms\""), ("queue", "\"300 ms\"")];
    let text = scenario("aj", (120.0, "100 ms"), &link, &[FlowText { ceiling: 3e6, more: &more, ..CALL }], NOTHING);
    row("aj", "twenty calls on 20 Mbit/s, 25 ms", text, metrics)
}

/// Segments of 4 s of 3 Mbit/s, 2 s apart, as a DASH player fetches them with a full buffer.
fn player() -> Row {
    const SEGMENT: f64 = 12e6;
    let (call, dash) = beside_player(6e6, SEGMENT, 2.0);
    let metrics = Metrics::default()
        .with("rate over that of a fair share", "", (High, ASKED), used(call, 30.0, 120.0))
        .with("the player's, likewise", "", (High, ASKED), move |r| Some(r.goodput("dash", 30.0, 120.0) / dash))
        .with("extra delay p95", "ms", (Low, None), p95(FLOW, 25.0))
        .with("lost", "%", (Low, LOST), lost);
    let link = [("rate", "\"6 Mbps\""), ("delay", "\"25 ms\""), ("queue", "\"300 ms\"")];
    let tcp = "\n[tcp.dash]\nalgorithm = \"cubic\"\nstart = \"10 s\"\nsize = \"1500 kB\"\nidle = \"2 s\"\npersistent = true\n";
    let text = scenario("al", (120.0, SAMPLE), &link, &[FlowText { ceiling: 9e6, ..CALL }], ("", tcp));
    row("al", "beside a DASH player: 1.5 MB by CUBIC, 2 s apart, 6 Mbit/s, 25 ms", text, metrics)
}

/// A packet waits for the opportunity to ask, for the grant (8 ms), a slot (1 ms) and, as each tenth block, one retransmission (8 ms).
fn grants(key: &str, interval_ms: u32) -> Row {
    let bound = 0.95 * f64::from(interval_ms) + 8.0 + 1.0 + 8.0 + frame_ms();
    let metrics = Metrics::default()
        .with("use 10-120 s", "", (High, ASKED), |r| Some(r.goodput(FLOW, 10.0, 120.0) / r.capacity(10.0, 120.0)?))
        .with("extra delay p95", "ms", (Low, most(bound)), p95(FLOW, 25.0));
    let cell = format!("{{ request_interval = \"{interval_ms} ms\" }}");
    let link = [LINK[0], LINK[1], LINK[2], ("cellular", cell.as_str())];
    let text = scenario(key, (120.0, SAMPLE), &link, &[CALL], NOTHING);
    row(key, format!("uplink of a cell with requests each {interval_ms} ms, 4 Mbit/s, 25 ms"), text, metrics)
}

/// From capture to the complete frame, the wait at the sender included. A fall lasts for less than a twentieth of the frames.
fn frame_delay() -> Row {
    let steady = 1e3 * PATH.there + frame_ms();
    let fall = steady + 1e3 * PATH.queue_after(4e6, 2e6);
    let of = |r: &Reading<'_>| r.flow(FLOW)?.frames.as_ref()?.delay_ms;
    let metrics = Metrics::default()
        .with("frame delay p95", "ms", (Low, most(steady)), move |r| Some(of(r)?.p95))
        .with("frame delay, the most", "ms", (Low, most(fall)), move |r| Some(of(r)?.max))
        .with("use at 2 M (50-80 s)", "", (High, ASKED), used(2e6, 50.0, 80.0));
    let rates = format!("{{ steps = {} }}", steps(&[(0.0, 4e6), (40.0, 2e6), (80.0, 4e6)]));
    let link = [("rate", rates.as_str()), ("delay", "\"25 ms\""), ("queue", "\"300 ms\"")];
    let flow = FlowText { ceiling: 4e6, more: &[("playout_deadline", "\"2 s\"")], ..CALL };
    let text = scenario("am", (120.0, SAMPLE), &link, &[flow], NOTHING);
    row("am", "frames from capture on, 4, 2, 4 Mbit/s at 40 and 80 s, 25 ms", text, metrics)
}

/// A downlink as of EV-DO (3GPP2 C.S0024): its rates, for seconds each, and stalls between them. The goal is the fluid causal sender's.
fn stalling_cell() -> Row {
    const SPANS: [(f64, f64); 9] = [
        (3.0, 921.6),
        (1.5, 0.0),
        (4.0, 614.4),
        (2.0, 307.2),
        (2.5, 0.0),
        (5.0, 1228.8),
        (1.0, 153.6),
        (3.0, 614.4),
        (2.0, 0.0),
    ];
    let mut table = String::from("time_s,rate_bps\n");
    let mut at = 0.0;
    for (span, kbps) in SPANS.iter().cycle().take(5 * SPANS.len()) {
        table += &format!("{at:.4},{:.0}\n", kbps * 1e3);
        at += span;
    }
    let capacity = TraceFormat::Table.parse(&table, "evdo.csv").ok();
    let trace = capacity.and_then(|c| Trace::new("an".into(), String::new(), &c).ok());
    let cell = trace.map(|t| t.row());
    let Some(cell) = cell else { return row("an", "", String::new(), Metrics::default()) };
    let title = "a cell with stalls of 1.5 to 2.5 s, as of EV-DO, 0.6 Mbit/s on average, 25 ms".into();
    Row { key: "an".into(), title, ..cell }
}
