//! Section 5.2: beside other algorithms.

use super::bounds::{HARM, LATER, MORE_LOST, Reasoned, SHOWN, STARVED};
use super::question::Bound::Least;
use super::question::{Beside, Case, Question, Runs};
use super::read::{OTHER, V, delayed, kept, more_lost, over, used};
use weir_lab::scenario::TcpAlgorithm;

/// Span in which flows that share are read, s: half of the run of `rfc9743/5.2.1-beside-tcp`.
const FROM: f64 = 40.0;
const TO: f64 = 80.0;

pub(super) fn questions() -> Vec<Question> {
    vec![general_purpose(), real_time(), short_and_long()]
}

fn beside(quantities: [&'static str; 5], variants: &'static [&'static str]) -> Case {
    let [rate, delay, loss, starved, own] = quantities;
    let of_fair = |name| {
        let used = used(name, FROM, TO);
        move |r: &Runs<'_>| Some(2.0 * used(r)?)
    };
    Case::file("rfc9743/5.2.1-beside-tcp")
        .only(variants)
        .beside(Beside::Tcp(TcpAlgorithm::Cubic))
        .check(rate, "", HARM, kept(OTHER, FROM, TO))
        .check(delay, "", LATER, delayed(OTHER))
        .check(loss, "%", MORE_LOST, more_lost(OTHER))
        .check(starved, "", STARVED, of_fair(OTHER))
        .check(own, "", SHOWN, of_fair(V))
}

fn general_purpose() -> Question {
    Question {
        section: "5.2.1",
        title: "Existing general-purpose congestion control",
        asks: "be evaluated against standard congestion control; no significantly negative impact, no starvation",
        cases: vec![
            beside(
                [
                    "NewReno's rate over that beside CUBIC, 6 links",
                    "NewReno's delay p95 over that beside CUBIC",
                    "NewReno's loss beyond that beside CUBIC",
                    "NewReno's share of fair",
                    "the call's share of fair beside NewReno, the most",
                ],
                &["newreno"],
            ),
            beside(
                [
                    "CUBIC's rate over that beside CUBIC, 6 links",
                    "CUBIC's delay p95 over that beside CUBIC",
                    "CUBIC's loss beyond that beside CUBIC",
                    "CUBIC's share of fair",
                    "the call's share of fair beside CUBIC, the most",
                ],
                &["cubic"],
            ),
            beside(
                [
                    "BBRv3's rate over that beside CUBIC, 6 links",
                    "BBRv3's delay p95 over that beside CUBIC",
                    "BBRv3's loss beyond that beside CUBIC",
                    "BBRv3's share of fair",
                    "the call's share of fair beside BBRv3, the most",
                ],
                &["bbr"],
            ),
        ],
    }
}

fn real_time() -> Question {
    const ITS_OWN: Reasoned =
        (Least(0.8), "no less than beside its own kind; a fifth is left, as in row w of the scoreboard");
    let case = |rate, own, variants| {
        Case::file("rfc9743/5.2.2-beside-media")
            .only(variants)
            .beside(Beside::ItsOwnKind)
            .check(rate, "", ITS_OWN, kept(OTHER, 40.0, 120.0))
            .check(own, "", SHOWN, |r: &Runs<'_>| Some(r.run.goodput(V, 40.0, 120.0) / 2e6))
    };
    Question {
        section: "5.2.2",
        title: "Real-time congestion control",
        asks: "consider coexistence with widely deployed real-time congestion control",
        cases: vec![
            case("gcc's rate over that beside gcc", "the call's share of fair beside gcc", &["gcc"]),
            case("nada's rate over that beside nada", "the call's share of fair beside nada", &["nada"]),
            case("scream2's rate over that beside scream2", "the call's share of fair beside scream2", &["scream2"]),
            Case::row("w").check("with gcc, nada and scream2: the least share of fair of these", "", STARVED, |r| {
                ["gcc", "nada", "scream2"].iter().map(|n| r.run.goodput(n, 40.0, 120.0) / 1.5e6).reduce(f64::min)
            }),
        ],
    }
}

fn short_and_long() -> Question {
    let times = || {
        over(|r| {
            let transfers = r.flow("web")?.transfers.as_ref()?;
            Some(transfers.completion_s?.p95)
        })
    };
    let case = |variants| Case::file("rfc9743/5.2.3-web").only(variants).beside(Beside::Tcp(TcpAlgorithm::Cubic));
    Question {
        section: "5.2.3",
        title: "Short and long flows of others",
        asks: "evaluate the effect on short-lived and long-lived flows of common algorithms",
        cases: vec![
            case(&["web"]).check("web flows' times p95 over those beside CUBIC", "", LATER, times()),
            case(&["web and a download"]).check("the same with a download", "", LATER, times()).check(
                "the download's rate over that beside CUBIC",
                "",
                HARM,
                kept("download", 30.0, 100.0),
            ),
        ],
    }
}
