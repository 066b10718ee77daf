//! Sections 6 and 7.1 to 7.5: kinds of paths.

use super::bounds::{AS_WITHOUT, DELAY, HARM, LOSS, Reasoned, SHOWN, STARVED, USE};
use super::question::Bound::{Least, Most};
use super::question::{Beside, Case, Question, Runs};
use super::read::{OTHER, V, extra, kept, lost, stopped, used};
use crate::rows::Reading;
use weir_lab::scenario::TcpAlgorithm;

pub(super) fn questions() -> Vec<Question> {
    vec![
        tail_drop(),
        tunnels(),
        wireless(),
        queue_management(),
        breakers(),
        varying_delay(),
        constrained(),
        high_delay(),
    ]
}

fn tail_drop() -> Question {
    Question {
        section: "6.1, 6.3",
        title: "Paths with tail-drop queues, wired paths",
        asks: "evaluate drop-tail queues over a representative range of bandwidths, delays and queue depths",
        cases: vec![
            Case::file("rfc9743/6.1-tail-drop")
                .check("0.5 to 40 Mbit/s, 5 to 150 ms, 60 ms to 1 s: use", "", USE, used(V, 20.0, 60.0))
                .check("the same 36 links: extra delay p95", "ms", DELAY, extra(V))
                .check("the same 36 links: lost", "%", LOSS, lost(V)),
        ],
    }
}

fn tunnels() -> Question {
    let case = |quantity, variants| {
        Case::file("queues/ecn-faults").only(variants).beside(Beside::Variant("none")).check(
            quantity,
            "",
            AS_WITHOUT,
            kept("video", 20.0, 60.0),
        )
    };
    Question {
        section: "6.2",
        title: "Tunnel behaviour",
        asks: "consider tunnels whose routers or ends change explicit signals",
        cases: vec![
            case("ECN field cleared before CoDel: rate over that without", &["bleached before the queue"]),
            case("marks cleared behind CoDel: the same", &["bleached behind the queue"]),
            case("marks turned into ECT(0): the same", &["CE erased"]),
            Case::file("queues/ecn-faults").only(&["CE erased"]).check(
                "marks turned into ECT(0): extra delay p95",
                "ms",
                DELAY,
                extra("video"),
            ),
        ],
    }
}

fn wireless() -> Question {
    let on_time = (Least(0.85), "the card's use of the mean capacity");
    let of = |bps: f64, from: f64, to: f64| move |r: &Runs<'_>| Some(r.run.goodput(V, from, to) / bps);
    Question {
        section: "6.4",
        title: "Wireless paths",
        asks: "be evaluated where losses are due to radio, capacity varies, and link-layer retransmission lets delays vary",
        cases: vec![
            Case::row("b").check("5 % of random loss: use of what can arrive", "", USE, of(0.95 * 2e6, 50.0, 100.0)),
            Case::row("j1").check("jitter of 30 ms: use", "", USE, of(4e6, 10.0, 60.0)),
            Case::row("j2").check("Wi-Fi-like aggregates, loss in bursts: use", "", on_time, of(6e6, 10.0, 60.0)),
            Case::row("p").check("LEO hand-overs: use", "", on_time, of(10e6, 15.0, 120.0)),
        ],
    }
}

fn queue_management() -> Question {
    const FILE: &str = "rfc9743/7.1-aqm";
    let beside = |variants| Case::file(FILE).only(variants).beside(Beside::Tcp(TcpAlgorithm::Cubic));
    let fair_queue: Reasoned = (Least(0.85), "a fair queue gives each its half; the card's use of it");
    let half = |name| move |r: &Runs<'_>| Some(r.run.goodput(name, 40.0, 80.0) / 5e6);
    Question {
        section: "7.1",
        title: "Active queue management",
        asks: "be evaluated under FQ-CoDel, PIE and L4S; ECN reactions have to conform to the codepoint used",
        cases: vec![
            Case::file(FILE)
                .check("alone under five disciplines, drops and marks: use", "", USE, used(V, 10.0, 30.0))
                .check("the same, CUBIC from 30 s on: extra delay p95", "ms", DELAY, extra(V))
                .check("the same, CUBIC from 30 s on: lost", "%", LOSS, lost(V)),
            beside(&["codel"]).check("CUBIC under CoDel: rate over that beside CUBIC", "", HARM, kept(OTHER, 40.0, 80.0)),
            beside(&["pie"]).check("CUBIC under PIE: the same", "", HARM, kept(OTHER, 40.0, 80.0)),
            beside(&["red"]).check("CUBIC under RED: the same", "", HARM, kept(OTHER, 40.0, 80.0)),
            beside(&["dualpi2"]).check("CUBIC under DualPI2: the same", "", HARM, kept(OTHER, 40.0, 80.0)),
            beside(&["fq-codel"])
                .check("CUBIC under FQ-CoDel: the same", "", HARM, kept(OTHER, 40.0, 80.0))
                .check("the call under FQ-CoDel: share of fair", "", fair_queue, half(V)),
            Case::file("l4s/l4s-call").only(&["beside prague"]).check(
                "L4S: TCP Prague's share of fair beside the call",
                "",
                (Least(0.5), "RFC 9331, section 4.3: no starvation; RFC 9332 aims at about equal rates, and half of fair is asked"),
                |r| Some(r.run.goodput(OTHER, 20.0, 60.0) / 10e6),
            ),
            Case::file("l4s/l4s-call").only(&["alone"]).check(
                "L4S, alone: queue p95",
                "ms",
                (Most(5.0), "RFC 9332's step threshold is 1 ms; a frame's packets come together, 5 ms at 20 Mbit/s are 12.5 kB"),
                |r| quantile(&r.run, 0.95),
            ),
        ],
    }
}

/// Quantile of the queue from 20 s on, ms.
fn quantile(r: &Reading<'_>, q: f64) -> Option<f64> {
    let mut values = r.queue_ms(20.0, f64::INFINITY);
    values.sort_by(f64::total_cmp);
    values.get((q * values.len() as f64) as usize).copied()
}

fn breakers() -> Question {
    Question {
        section: "7.2",
        title: "Operation within the envelope of circuit breakers",
        asks: "react before a circuit breaker does",
        cases: vec![Case::file("rfc9743/7.2-circuit-breakers").check(
            "loss, policer, fall, short queue, CUBIC: runs stopped",
            "",
            (Most(0.0), "a controller that reacts in time is never stopped by RFC 8083's rules"),
            stopped,
        )],
    }
}

fn varying_delay() -> Question {
    let without = |case: Case| case.beside(Beside::Variant("none"));
    let case = |variants| Case::file("rfc9743/7.3-varying-delay").only(variants);
    let of = |bps: f64, from: f64, to: f64| move |r: &Runs<'_>| Some(r.run.goodput(V, from, to) / bps);
    Question {
        section: "7.3",
        title: "Paths with varying delay",
        asks: "be robust to significant changes of the minimum delay",
        cases: vec![
            without(case(&["grants each 40 ms"])).check(
                "uplink with grants each 40 ms: rate over that without",
                "",
                AS_WITHOUT,
                kept(V, 20.0, 90.0),
            ),
            without(case(&["jitter of 20 ms"])).check("jitter of 20 ms: the same", "", AS_WITHOUT, kept(V, 20.0, 90.0)),
            case(&["preempted"]).check("a higher class on and off: use of what it leaves", "", USE, |r| {
                Some(r.run.goodput(V, 20.0, 90.0) / (4e6 - 0.2 * 1.6e6))
            }),
            Case::row("v1").check("25 and 75 ms in turn: use", "", USE, of(3e6, 10.0, 120.0)),
            Case::row("v2").check("150 ms longer: use 20 s later on", "", USE, of(3e6, 60.0, 120.0)),
            Case::row("q1").check("jitter of 50 ms in order: use", "", USE, of(4e6, 10.0, 60.0)),
        ],
    }
}

fn constrained() -> Question {
    Question {
        section: "7.4",
        title: "Constrained nodes",
        asks: "very low throughput, and the volume of control packets, where links are of low power",
        cases: vec![
            Case::file("rfc9743/7.4-constrained")
                .check("20, 40 and 100 kbit/s: use", "", USE, used(V, 30.0, 120.0))
                .check(
                    "the same: extra delay p95",
                    "ms",
                    (
                        Most(500.0),
                        "weaker latency constraints (section 7.4); three packets of 400 B at 20 kbit/s are 480 ms",
                    ),
                    extra(V),
                )
                .check("the same: lost", "%", LOSS, lost(V)),
            Case::row("t").check("audio, 200 to 40 kbit/s: extra delay p95", "ms", DELAY, extra(V)),
        ],
    }
}

fn high_delay() -> Question {
    let of = |from: f64, to: f64| move |r: &Runs<'_>| Some(r.run.goodput(V, from, to) / 4e6);
    Question {
        section: "7.5",
        title: "Paths with high delay",
        asks: "do not presume a low delay: satellites",
        cases: vec![
            Case::row("o1").check("round trip of 400 ms: use, on time", "", USE, of(20.0, 120.0)),
            Case::row("o2").check("round trip of 600 ms: use, on time", "", USE, of(20.0, 120.0)).check(
                "round trip of 600 ms: extra delay p95",
                "ms",
                DELAY,
                extra(V),
            ),
            Case::row("h50").check("50 Mbit/s: 80 % after", "s", SHOWN, |r| r.run.reached(V, 0.0, 40e6, 0.2)),
            Case::row("d2").check("CUBIC's share of fair at 200 ms of round trip", "", STARVED, |r| {
                Some(r.run.goodput("bulk", 40.0, 100.0) / 1e6)
            }),
        ],
    }
}
