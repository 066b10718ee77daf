//! Sections 7.6 to 7.11: nodes that do not comply, and what changes suddenly.

use super::bounds::{AS_WITHOUT, DELAY, FAIR, HARM, LOSS, SHOWN, STARVED, USE};
use super::lies::Lie;
use super::question::Bound::{Least, Most};
use super::question::{Beside, Case, Question, Runs};
use super::read::{OTHER, V, extra, fairness, kept, lost, over, total, used};
use weir_lab::scenario::TcpAlgorithm;

const MISBEHAVING: &str = "rfc9743/7.6-misbehaving";

pub(super) fn questions() -> Vec<Question> {
    vec![misbehaving(), reordering(), transient(), path_changes(), multipath(), data_centre()]
}

fn misbehaving() -> Question {
    let alone = |lie| Case::file(MISBEHAVING).only(&["none"]).beside(Beside::Variant("none")).under(lie);
    let company =
        |lie| Case::file(MISBEHAVING).only(&["beside cubic"]).beside(Beside::Tcp(TcpAlgorithm::Cubic)).under(lie);
    let path = |variants| Case::file(MISBEHAVING).only(variants).beside(Beside::Variant("none"));
    let losses = (
        Most(10.0),
        "the losses are reported: a controller that takes its delays from a liar still has these (section 5.1.3)",
    );
    let queue = (
        Most(100.0),
        "the queue is reported: a controller that takes its losses from a liar still has this (section 5.1.2)",
    );
    let no_starvation = (
        Least(0.1),
        "losses and marks call for less (RFC 3168, RFC 9331), and who forges them can also drop: no starvation is asked",
    );
    Question {
        section: "7.6",
        title: "Misbehaving nodes",
        asks: "explore non-compliant senders, receivers and routers, and outside attackers",
        cases: vec![
            alone(Lie::HiddenQueue).check("receiver hides the queue: lost", "%", losses, lost(V)),
            company(Lie::HiddenQueue).check("the same: CUBIC's share of fair", "", STARVED, share),
            alone(Lie::HiddenLoss).check("receiver hides losses: extra delay p95", "ms", queue, extra(V)).check(
                "the same: lost",
                "%",
                LOSS,
                lost(V),
            ),
            company(Lie::HiddenLoss).check("the same: CUBIC's share of fair", "", STARVED, share),
            alone(Lie::HiddenBoth).check("receiver hides both: lost", "%", SHOWN, lost(V)),
            company(Lie::HiddenBoth).check("the same: CUBIC's share of fair", "", SHOWN, share),
            alone(Lie::AsksForAll).check(
                "receiver asks for 1 Gbit/s: rate over that without",
                "",
                (Most(1.01), "a request bounds the rate (RFC 5104, section 4.2.1); it cannot raise it"),
                over(|r| Some(r.mean(V, 20.0, 90.0, |f| &f.sent_bps))),
            ),
            alone(Lie::AsksForNothing).check(
                "receiver (or a forger) asks for nothing: sent",
                "kbit/s",
                (
                    Least(100.0),
                    "a call keeps its floor, of 150 kbit/s, less rounding to frames; SRTCP keeps forgers out",
                ),
                |r| Some(r.run.mean(V, 20.0, 90.0, |f| &f.sent_bps) / 1e3),
            ),
            alone(Lie::FalseLoss).check(
                "receiver (or a forger) reports a third lost: rate over that without",
                "",
                no_starvation,
                kept(V, 20.0, 90.0),
            ),
            path(&["copies"])
                .check("path copies each packet: rate over that without", "", AS_WITHOUT, kept(V, 20.0, 90.0))
                .check("the same, not more either", "", (Most(1.05), "copies are no capacity"), kept(V, 20.0, 90.0)),
            path(&["a tenth marked"]).check(
                "path marks a tenth: rate over that without",
                "",
                no_starvation,
                kept(V, 20.0, 90.0),
            ),
            path(&["feedback 300 ms late"]).check(
                "feedback 300 ms late: the same",
                "",
                AS_WITHOUT,
                kept(V, 20.0, 90.0),
            ),
            path(&["half of the feedback withheld"]).check(
                "half of the feedback withheld: the same",
                "",
                AS_WITHOUT,
                kept(V, 20.0, 90.0),
            ),
            Case::row("s").check("70 % of the feedback withheld: extra delay p95", "ms", DELAY, extra(V)),
        ],
    }
}

/// CUBIC's share of its half of the link of 4 Mbit/s.
fn share(r: &Runs<'_>) -> Option<f64> {
    Some(total(&r.run, OTHER, 30.0, 90.0) / 2e6)
}

fn reordering() -> Question {
    let case = |variants| Case::file("rfc9743/7.7-reordering").only(variants).beside(Beside::Variant("none"));
    let of = |from: f64, to: f64| move |r: &Runs<'_>| Some(r.run.goodput(V, from, to) / 4e6);
    Question {
        section: "7.7",
        title: "Extreme packet reordering",
        asks: "do not presume that paths deliver packets in order",
        cases: vec![
            Case::row("r1").check("a fifth held back by 10 ms: use", "", USE, of(10.0, 120.0)),
            Case::row("r2").check("a twentieth held back by 120 ms: use", "", USE, of(10.0, 120.0)),
            case(&["half by 200 ms"]).check(
                "half held back by 200 ms: rate over that without",
                "",
                AS_WITHOUT,
                kept(V, 20.0, 90.0),
            ),
            case(&["each by up to 50 ms"]).check("each by up to 50 ms: the same", "", AS_WITHOUT, kept(V, 20.0, 90.0)),
        ],
    }
}

fn transient() -> Question {
    const FILE: &str = "rfc9743/7.8-transient";
    let back = (Most(10.0), "the report card of RFC 8867 lets a phase settle for 5 s; twice that after an event");
    let again = |from| move |r: &Runs<'_>| r.run.reached(V, from, 3.2e6, 0.5);
    let burst = |r: &Runs<'_>| Some(100.0 * r.run.mean(V, 30.0, 33.0, |f| &f.loss));
    Question {
        section: "7.8",
        title: "Transient events",
        asks: "consider sudden congestion, routing changes, mobility",
        cases: vec![
            Case::file(FILE)
                .only(&["burst"])
                .check(
                    "burst of 90 % of the link for 2 s: lost in 3 s",
                    "%",
                    (Most(50.0), "while 4 + 3.6 Mbit/s meet 4, half is lost until the sender hears"),
                    burst,
                )
                .check("after the burst: 80 % again", "s", back, again(32.0)),
            Case::file(FILE).only(&["gone"]).check("path gone for 2 s: 80 % again", "s", back, again(32.0)),
            Case::row("e")
                .check("fall to a quarter: queue under 50 ms again", "s", back, |r| r.run.drained(40.0, 50.0))
                .check("rise to four times: 80 % again", "s", back, |r| r.run.reached(V, 80.0, 1.6e6, 0.5)),
            Case::row("x").check("outage of 4 s: 80 % again", "s", back, again(44.0)).check(
                "outage of 10 s: 80 % again",
                "s",
                back,
                again(80.0),
            ),
        ],
    }
}

fn path_changes() -> Question {
    const FILE: &str = "rfc9743/7.9-path-changes";
    let soon = (Most(10.0), "routes change in tens of seconds; the RFC asks for robustness on that interval");
    Question {
        section: "7.9",
        title: "Sudden changes in the path",
        asks: "be robust to changes of the path on common rerouting intervals",
        cases: vec![
            Case::file(FILE)
                .only(&["slower and longer"])
                .check("8 to 1 Mbit/s, 20 to 100 ms: queue under 50 ms", "s", soon, |r| r.run.drained(30.0, 50.0))
                .check("the same: use 10 to 30 s later", "", USE, used(V, 40.0, 60.0))
                .check("back: 80 % of 8 Mbit/s again", "s", soon, |r| r.run.reached(V, 60.0, 6.4e6, 0.5)),
            Case::file(FILE).only(&["longer"]).check("60 ms longer: use 10 s later on", "", USE, used(V, 40.0, 90.0)),
            Case::file(FILE)
                .only(&["shorter"])
                .check("60 ms shorter: use 10 s later on", "", USE, used(V, 40.0, 90.0))
                .check("60 ms shorter: queue p95 10 s later on", "ms", DELAY, |r| {
                    let mut queue = r.run.queue_ms(40.0, 90.0);
                    queue.sort_by(f64::total_cmp);
                    queue.get(queue.len() * 19 / 20).copied()
                }),
        ],
    }
}

fn multipath() -> Question {
    let single = |variants| {
        move |quantity, bound| {
            Case::file("multipath/shared-bottleneck")
                .only(variants)
                .check(quantity, "", bound, |r| Some(r.run.goodput("single", 60.0, 120.0) / 2e6))
        }
    };
    let fair = (Least(0.8), "one flow's share each (RFC 6356's first two goals); a fifth is left, as in row w");
    let over_other = (Least(0.85), "the card's use of the path that is left, of 1.5 Mbit/s");
    let call = |r: &Runs<'_>| Some(r.run.goodput("call", 40.0, 60.0) / 1.5e6);
    Question {
        section: "7.10",
        title: "Multipath transport",
        asks: "evaluate the harm to other flows where paths share a bottleneck; fail-over without starvation",
        cases: vec![
            single(&["always"])("coupled, one bottleneck: the single-path call's share", fair),
            single(&["detected"])("the bottleneck detected: the same", fair),
            single(&["none"])("uncoupled: the same", (SHOWN.0, "two controllers take two shares")),
            Case::file("multipath/hand-over").only(&["dies"]).check(
                "one of two paths dies: use of the other",
                "",
                over_other,
                call,
            ),
            Case::file("multipath/hand-over").only(&["dies"]).check("the same: the other flow's use", "", USE, |r| {
                Some(r.run.goodput("single", 40.0, 60.0) / 1.5e6)
            }),
        ],
    }
}

fn data_centre() -> Question {
    Question {
        section: "7.11",
        title: "Data centres",
        asks: "say which algorithms coexist, if meant for data centres; Sluice is not meant for them, and is shown there",
        cases: vec![
            Case::file("rfc9743/7.11-data-centre")
                .beside(Beside::Tcp(TcpAlgorithm::Cubic))
                .check("sixteen at once, 100 Mbit/s, 1 ms: use", "", SHOWN, used(V, 10.0, 30.0))
                .check("the same: lost", "%", LOSS, lost(V))
                .check("the same: Jain, last 10 s", "", (SHOWN.0, FAIR.1), fairness(V, 20.0, 30.0))
                .check("the same: rate over CUBIC's", "", (SHOWN.0, HARM.1), kept(V, 10.0, 30.0)),
        ],
    }
}
