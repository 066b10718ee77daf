//! Section 5.1: flows of the controller alone.

use super::bounds::{DELAY, FAIR, LOSS, SHOWN, USE};
use super::question::Bound::{Least, Most, Shown};
use super::question::{Beside, Case, Question, Runs};
use super::read::{V, extra, fairness, lost, over, sent, stopped_after, total, used};
use weir_lab::scenario::TcpAlgorithm;

/// The link's collapse in `rfc9743/5.1.1-collapse`, s, the time to react to it, and the end of the run.
const COLLAPSE: f64 = 30.0;
const SETTLED: f64 = 60.0;
const END: f64 = 90.0;
/// The four short calls of `rfc9743/5.1.5-short-calls`: their beginnings in s.
const SHORT: [(&str, f64); 4] = [("s1", 30.0), ("s2", 45.0), ("s3", 60.0), ("s4", 75.0)];

pub(super) fn questions() -> Vec<Question> {
    vec![collapse(), bufferbloat(), high_loss(), fairness_within(), short_flows()]
}

fn collapse() -> Question {
    const FILE: &str = "rfc9743/5.1.1-collapse";
    // A packet of 1,200 bytes in a round trip of 50 ms.
    let backoff = (Most(192.0), "full backoff: a packet in a round-trip time, 1,200 B in 50 ms, or less");
    let half = |r: &Runs<'_>| {
        let rate = |from, to| r.run.mean(V, from, to, |f| &f.sent_bps);
        Some(rate(SETTLED, END) / rate(20.0, COLLAPSE).max(1.0))
    };
    let fallen = |r: &Runs<'_>| {
        let rate = |from, to| r.run.mean(V, from, to, |f| &f.sent_bps);
        Some(rate(END - 10.0, END) / rate(COLLAPSE + 10.0, COLLAPSE + 20.0).max(1.0))
    };
    Question {
        section: "5.1.1",
        title: "Protection against congestion collapse",
        asks: "stop sending when the drop rate exceeds some threshold, or back off fully: to one packet per round trip and less",
        cases: vec![
            Case::file(FILE)
                .only(&["nine in ten lost"])
                .check("nine in ten lost: sent 30 to 60 s later", "kbit/s", backoff, sent(V, SETTLED, END))
                .check(
                    "the same: sent after 50 s over that after 10 s",
                    "",
                    (
                        Most(0.5),
                        "full backoff goes on exponentially while congestion persists: at least a half less in 40 s",
                    ),
                    fallen,
                ),
            Case::file(FILE).only(&["nine in ten lost with a circuit breaker"]).check(
                "the same with RFC 8083's breaker: stopped after",
                "s",
                (Shown, "it stops who sends ten times TCP's rate (RFC 8083, section 4.3), here 2.5 Mbit/s"),
                stopped_after(COLLAPSE),
            ),
            Case::file(FILE).only(&["no feedback"]).check(
                "no feedback: sent 30 to 60 s later",
                "kbit/s",
                (Most(192.0), "section 5.2: a loss of all feedback results in backoff; a packet in a round-trip time"),
                sent(V, SETTLED, END),
            ),
            Case::file(FILE).only(&["no feedback with a circuit breaker"]).check(
                "the same with RFC 8083's breaker: stopped after",
                "s",
                (Most(20.0), "RFC 8083, section 4.1: three intervals of 5 s at least, and one to find out"),
                stopped_after(COLLAPSE),
            ),
            Case::file(FILE)
                .only(&["twenty calls"])
                .check("twenty calls on 1 Mbit/s: use", "", USE, used(V, COLLAPSE, END))
                .check("twenty calls: lost", "%", LOSS, lost(V)),
            Case::file(FILE).only(&["half lost"]).check(
                "half lost: rate sent, of that before",
                "",
                (Most(0.5), "section 5.1.3: reduce the rate at high loss; half of it is what arrived"),
                half,
            ),
        ],
    }
}

fn bufferbloat() -> Question {
    const FILE: &str = "rfc9743/5.1.2-bufferbloat";
    Question {
        section: "5.1.2",
        title: "Protection against bufferbloat",
        asks: "avoid maintaining excessive queues",
        cases: vec![
            Case::row("k1").check("2 s of buffer, one call: extra delay p95", "ms", DELAY, extra(V)).check(
                "2 s of buffer, one call: use",
                "",
                USE,
                used(V, 20.0, 120.0),
            ),
            Case::file(FILE).check("5 s, one and four calls: extra delay p95", "ms", DELAY, extra(V)).check(
                "5 s, one and four calls: use",
                "",
                USE,
                used(V, 30.0, 120.0),
            ),
        ],
    }
}

fn high_loss() -> Question {
    Question {
        section: "5.1.3",
        title: "Protection against high packet loss",
        asks: "avoid causing excessively high loss; several flows over buffers below 1.5 BDP are where BBRv1 failed",
        cases: vec![
            Case::file("rfc9743/5.1.3-short-buffers")
                .beside(Beside::Tcp(TcpAlgorithm::Cubic))
                .check("four calls, 0.1 to 1 BDP of buffer: lost", "%", LOSS, lost(V))
                .check("the same over CUBIC's loss there", "", SHOWN, over(|r| Some(mean_loss(r))))
                .check("the same: use", "", USE, used(V, 30.0, 90.0)),
            Case::row("l").check("queue of ten packets, alone: lost", "%", LOSS, lost(V)),
            Case::row("y").check("policer, alone: lost", "%", LOSS, lost(V)),
        ],
    }
}

/// Mean share lost of the flows.
fn mean_loss(r: &crate::rows::Reading<'_>) -> f64 {
    r.run.flows.iter().map(|f| f.loss).sum::<f64>() / r.run.flows.len().max(1) as f64
}

fn fairness_within() -> Question {
    let flows = |names: &'static [&'static str], from: f64, to: f64| {
        move |r: &Runs<'_>| crate::rows::jain(&names.iter().map(|n| r.run.goodput(n, from, to)).collect::<Vec<_>>())
    };
    // Of TCP, whose share falls as the round trip grows.
    let unequal = |r: &crate::rows::Reading<'_>| {
        let ratio = r.goodput("near", 60.0, 120.0) / r.goodput("far", 60.0, 120.0).max(1.0);
        Some(ratio.max(1.0 / ratio.max(1e-9)))
    };
    Question {
        section: "5.1.4",
        title: "Fairness within the algorithm",
        asks: "explore how capacity is shared among flows of the algorithm",
        cases: vec![
            Case::row("c").check(
                "three calls, late comers: Jain, last 20 s",
                "",
                FAIR,
                flows(&["v1", "v2", "v3"], 100.0, 120.0),
            ),
            Case::row("f").check("a second call: Jain 20 s after", "", FAIR, flows(&["v1", "v2"], 40.0, 60.0)),
            Case::row("f").check(
                "a second call: 80 % of its half after",
                "s",
                (Most(20.0), "the time after which rows c and f of the scoreboard read fairness"),
                |r| r.run.reached("v2", 40.0, 1.6e6, 1.0),
            ),
            Case::row("g").beside(Beside::Tcp(TcpAlgorithm::NewReno)).check(
                "round trips of 20 and 200 ms: ratio over NewReno's",
                "",
                (Most(1.0), "no less fair than NewReno's flows there (RFC 5681)"),
                over(unequal),
            ),
            Case::file("rfc9743/5.1.4-many-calls")
                .check("ten calls: Jain, last 40 s", "", FAIR, fairness(V, 80.0, 120.0))
                .check("ten calls: use", "", USE, used(V, 40.0, 120.0))
                .check("ten calls: extra delay p95", "ms", DELAY, extra(V)),
        ],
    }
}

fn short_flows() -> Question {
    let short = |r: &Runs<'_>| {
        let share = SHORT.iter().map(|(name, at)| r.run.goodput(name, *at, at + 10.0) / 2e6);
        share.reduce(f64::min)
    };
    let long = |r: &Runs<'_>| {
        let share = SHORT.iter().map(|(_, at)| total(&r.run, V, *at, at + 10.0) / 2e6);
        share.reduce(f64::min)
    };
    Question {
        section: "5.1.5",
        title: "Short flows",
        asks: "consider how new and short-lived flows affect long-lived ones, and vice versa",
        cases: vec![
            Case::file("rfc9743/5.1.5-short-calls")
                .check(
                    "calls of 10 s: share of fair, the least",
                    "",
                    (Least(0.5), "from 0.3 Mbit/s a call that doubles each second has 0.66 of 2 Mbit/s in 10 s; half of fair is asked"),
                    short,
                )
                .check(
                    "the lasting call meanwhile: share of fair",
                    "",
                    (Least(0.85), "the half that it has to give, and the card's use of the rest"),
                    long,
                )
                .check("the lasting call: extra delay p95", "ms", DELAY, extra(V))
                .check("the lasting call: lost", "%", LOSS, lost(V)),
        ],
    }
}
