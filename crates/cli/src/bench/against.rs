//! `weir bench --against`.

use crate::Done;
use crate::args::BenchArgs;
use crate::output::{Failure, print, print_report, remark};
use crate::progress::Progress;
use crate::session::Session;
use crate::tables::{fold, table};
use serde::Serialize;
use weir_bench::against::{self, AgainstError, Pair};
use weir_bench::document::grouped;
use weir_bench::repository::root;

/// Output of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json {
    /// The other commit.
    against: String,
    /// Whole rounds, in each of which both programs ran once; fewer than asked for if it was interrupted.
    rounds: u32,
    /// Share of the usual simulated time.
    scale: f64,
    /// The rows of both.
    pairs: Vec<Pair>,
}

fn failure(e: AgainstError) -> Failure {
    match e {
        AgainstError::Stopped => Failure::Interrupted,
        AgainstError::Failed(what) => Failure::Work(what),
    }
}

pub(super) fn compare(session: &Session, args: &BenchArgs, other: &str) -> Done {
    let root =
        root().ok_or_else(|| Failure::Work("--against needs Weir's repository; run this in a checkout".into()))?;
    let commit = against::commit(&root, other).map_err(failure)?;
    let say = |line: &str| {
        if !args.quiet {
            remark(line);
        }
    };
    let before = against::program(&root, &commit, &session.stop, &say).map_err(failure)?;
    let now = std::env::current_exe().map_err(Failure::work)?;
    let progress = Progress::share(args.quiet);
    let begins = |share: f64, name: &str| {
        progress.set_share(share);
        progress.set_message(name.to_owned());
    };
    let rounds = args.rounds.get();
    let found = against::compare((&before, &now), (rounds, args.scale), &session.stop, &begins).map_err(failure)?;
    drop(progress);
    if args.json {
        let (scale, pairs) = (args.scale, found.pairs);
        print_report("bench-against", &Json { against: commit, rounds: found.rounds, scale, pairs })?;
    } else {
        print(&text(&commit, found.rounds, &found.pairs))?;
    }
    if found.rounds < rounds {
        remark(&format!("stopped after {} of {rounds} rounds", found.rounds));
        return Err(Failure::Interrupted);
    }
    Ok(())
}

fn text(commit: &str, rounds: u32, pairs: &[Pair]) -> String {
    let other = &commit[..commit.len().min(10)];
    let mut t = table(&["benchmark", "unit", other, "now", "times as fast", "least", "most"], 2).keys(1);
    for p in pairs {
        let speed = |s: Option<f64>| s.map_or("absent".into(), grouped);
        let ratio = |r: Option<f64>| r.map_or("-".into(), |r| format!("{r:.3}"));
        t.add_row([
            p.name.clone(),
            p.unit.replace('_', " ").replace(" per ", "/"),
            speed(p.before),
            speed(p.now),
            ratio(p.ratio),
            ratio(p.least),
            ratio(p.most),
        ]);
    }
    let note = format!(
        "Medians of {rounds} rounds by turns, CPU time, each the best of some runs; times as fast: the ratio of the medians; least \
         and most: of one round's pair. A row that one side lacks, or has in another unit, is absent there."
    );
    format!("{t}\n{}\n", fold(&note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_side_are_shown_as_absent() {
        let pair = |name: &str, before, now, ratio| Pair {
            name: name.into(),
            unit: "ns_per_packet".into(),
            before,
            now,
            ratio,
            least: ratio,
            most: ratio,
        };
        let shown = text(
            "0123456789abcdef",
            3,
            &[pair("controller-gcc", Some(52.0), Some(104.0), Some(0.5)), pair("calls-100", None, Some(955.0), None)],
        );
        assert!(shown.contains("0.500") && shown.contains("absent") && shown.contains("0123456789 "), "{shown}");
    }
}
