//! `weir explain`.

use crate::Done;
use crate::args::ExplainArgs;
use crate::output::{Failure, print, print_report};
use crate::run::failure;
use crate::session::Session;
use crate::tables::width;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use weir_lab::judge::rows;
use weir_lab::report::explain::{Explanation, explain};
use weir_lab::report::explain_plot;
use weir_lab::report::series_read::read_series;
use weir_lab::run::run;
use weir_lab::scenario::{InputError, Scenario};

/// What names a row of the scoreboard in the place of a scenario.
const ROW: &str = "row:";

/// What `--json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Json {
    /// What was run, or the folder that was read.
    of: String,
    /// The flows.
    flows: Vec<Explanation>,
}

pub(crate) fn command(session: &Session, args: &ExplainArgs) -> Done {
    let path = Path::new(&args.one.scenario);
    let (of, series, scenario) = if path.is_dir() {
        let read = read_series(path).map_err(|e| InputError::whole(&args.one.scenario, e.to_string()))?;
        (args.one.scenario.clone(), read, None)
    } else {
        let (scenario, seed) = open(session, args)?;
        let result = session.with_progress(args.one.quiet, true, |options, progress| {
            progress.doing(scenario.label());
            run(&scenario, seed, options).map_err(failure)
        })?;
        let series = result.series.ok_or_else(|| Failure::Work("the run kept no time series".into()))?;
        (format!("{}, seed {seed}", scenario.label()), series, Some(scenario))
    };
    let bounds = |name: &str| {
        let flow = scenario.as_ref()?.flows.iter().find(|f| f.name == name)?.rtp()?.clone();
        Some((flow.floor.as_bps_f64(), flow.ceiling.as_bps_f64()))
    };
    let mut flows = explain(&series, args.step, &bounds);
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
    for f in &mut flows {
        let (from, to) = (args.from.unwrap_or(0.0), args.to.unwrap_or(f64::INFINITY));
        f.spans.retain(|s| s.to_s > from && s.from_s < to);
    }
    if let Some(path) = &args.plot {
        explain_plot::write(&series, &flows, path).map_err(|e| Failure::Work(format!("{}: {e}", path.display())))?;
    }
    if args.json { print_report("explain", &Json { of, flows }) } else { print(&text(&of, &flows)) }
}

/// The scenario of the arguments, or a row of the scoreboard, and its seed.
fn open(session: &Session, args: &ExplainArgs) -> Result<(Scenario, u64), Failure> {
    let Some(key) = args.one.scenario.strip_prefix(ROW) else { return session.one(&args.one) };
    let rows = rows::rows();
    let row = rows.iter().find(|r| r.key == key).ok_or_else(|| {
        let known: Vec<&str> = rows.iter().map(|r| r.key.as_str()).collect();
        InputError::whole(&args.one.scenario, format!("no row of the scoreboard is named `{key}`"))
            .help(format!("rows: {}", known.join(", ")))
    })?;
    let controller = args.one.controller.as_deref().unwrap_or("sluice");
    let scenario = rows::scenario(row, controller, &session.registry)?;
    Ok((scenario, args.one.seed.unwrap_or(1)))
}

fn text(of: &str, flows: &[Explanation]) -> String {
    let mut out = format!("{of}\n");
    let columns = usize::from(width());
    for f in flows {
        out.push_str(&format!("\n{} ({}): until, target, why\n", f.flow, f.controller));
        for line in f.lines() {
            out.push_str(&wrapped(&line, columns));
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
