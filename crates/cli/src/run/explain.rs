//! `weir run --explain`.

use crate::Done;
use crate::args::ExplainArgs;
use crate::episodes;
use crate::output::{Failure, print, print_report};
use crate::tables::width;
use serde::Serialize;
use std::collections::BTreeMap;
use weir_lab::scenario::{InputError, Scenario};
use weir_lab::series::Series;
use weir_report::explain::{Explanation, explain};
use weir_report::explain_plot;
use weir_report::recorded::RecordedFlow;
use weir_timeline::why::{Episode, Level};

/// Output of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json {
    /// The scenario that was run, or the folder that was read.
    of: String,
    /// The flows.
    flows: Vec<Flow>,
}

/// A flow's run in words.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Flow {
    #[serde(flatten)]
    moves: Explanation,
    /// Evidence for the episodes; `none` for a folder of series, which has no packets, and for flows over DCCP.
    level: Level,
    /// Falls of the sent rate, freezes and slow starts, with causes by the rules of `weir open --why`. Times are simulated ones.
    episodes: Vec<Episode>,
}

/// Causes in the packets of each flow, by its name.
pub(super) type Causes = BTreeMap<String, weir_timeline::why::Explanation>;

/// Causes in the packets of a run's flows.
pub(super) fn causes(flows: &[RecordedFlow]) -> Causes {
    flows.iter().map(|f| (f.name.clone(), weir_timeline::why::explain(&f.call))).collect()
}

/// Prints why the rates of a run moved. `scenario` gives the bounds of rates, where it is known.
pub(super) fn show(
    of: &str,
    series: &Series,
    scenario: Option<&Scenario>,
    mut causes: Causes,
    args: &ExplainArgs,
    json: bool,
) -> Done {
    let bounds = |name: &str| {
        let flow = scenario?.flows.iter().find(|f| f.name == name)?.rtp()?;
        Some((flow.floor.as_bps_f64(), flow.ceiling.as_bps_f64()))
    };
    let mut flows = explain(series, args.step, &bounds);
    if let Some(wanted) = &args.flow {
        flows.retain(|f| f.flow == *wanted);
        if flows.is_empty() {
            let known: Vec<&str> = series.flows.iter().map(|f| f.name.as_str()).collect();
            let message = format!("no flow under a controller is named `{wanted}`");
            return Err(InputError::whole("--flow", message).help(format!("flows: {}", known.join(", "))).into());
        }
    }
    if flows.is_empty() {
        return Err(Failure::Work("no flow has a controller's target: there is nothing to explain".into()));
    }
    let (from, to) = (args.from.unwrap_or(0.0), args.to.unwrap_or(f64::INFINITY));
    if from >= to {
        let why = format!("{to} s is not behind --from, {from} s");
        return Err(InputError::whole("--to", why).help("give a later time, or leave it out").into());
    }
    let end = flows.iter().flat_map(|f| &f.spans).fold(0.0_f64, |end, s| end.max(s.to_s));
    if from > end {
        let why = format!("{from} s is behind the run's end: it is {end:.1} s long");
        return Err(InputError::whole("--from", why).help("give an earlier time").into());
    }
    for f in &mut flows {
        f.spans.retain(|s| s.to_s > from && s.from_s < to);
    }
    if let Some(path) = &args.plot {
        explain_plot::write(series, &flows, path).map_err(|e| Failure::Work(format!("{}: {e}", path.display())))?;
    }
    let flows: Vec<Flow> = (flows.into_iter())
        .map(|moves| {
            let found = causes.remove(&moves.flow);
            let (level, mut episodes) = found.map_or((Level::None, Vec::new()), |f| (f.level, f.episodes));
            episodes.retain(|e| e.to_ms as f64 > from * 1e3 && (e.from_ms as f64) < to * 1e3);
            Flow { moves, level, episodes }
        })
        .collect();
    if json { print_report("explain", &Json { of: of.to_owned(), flows }) } else { print(&text(of, &flows)) }
}

fn text(of: &str, flows: &[Flow]) -> String {
    let mut out = format!("{of}\n");
    let columns = usize::from(width());
    for f in flows {
        out.push_str(&format!("\n{} ({}): until, target, why\n", f.moves.flow, f.moves.controller));
        for line in f.moves.lines() {
            out.push_str(&wrapped(&line, columns));
        }
        if f.level != Level::None {
            out.push('\n');
            out.push_str(&episodes::text(f.level, None, &f.episodes, 0));
        }
    }
    out
}

/// A line broken at blanks; what follows is set in below its words.
fn wrapped(line: &str, columns: usize) -> String {
    const INDENT: usize = 10;
    let (mut out, mut at) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if at + length > columns && at > INDENT {
            out.truncate(out.trim_end().len());
            out.push_str(&format!("\n{:INDENT$}", ""));
            at = INDENT;
        }
        out.push_str(word);
        at += word.chars().count();
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_below_their_words() {
        assert_eq!(wrapped("short", 80), "short\n");
        let long = wrapped("   1.0 s  2.00 Mbit/s  no sign of congestion; delay 50 ms", 40);
        assert_eq!(long, "   1.0 s  2.00 Mbit/s  no sign of\n          congestion; delay 50 ms\n");
        assert!(long.lines().all(|l| l.chars().count() <= 40));
    }
}
