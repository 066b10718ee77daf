//! `weir run --explain`.

use crate::Done;
use crate::args::ExplainArgs;
use crate::output::{Failure, print, print_report};
use crate::tables::width;
use schemars::JsonSchema;
use serde::Serialize;
use weir_lab::scenario::{InputError, Scenario};
use weir_lab::series::Series;
use weir_report::explain::{Explanation, explain};
use weir_report::explain_plot;

/// Output of `--json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Json {
    /// The scenario that was run, or the folder that was read.
    of: String,
    /// The flows.
    flows: Vec<Explanation>,
}

/// Prints why the rates of a run moved. `scenario` gives the bounds of rates, where it is known.
pub(super) fn show(of: &str, series: &Series, scenario: Option<&Scenario>, args: &ExplainArgs, json: bool) -> Done {
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
    for f in &mut flows {
        let (from, to) = (args.from.unwrap_or(0.0), args.to.unwrap_or(f64::INFINITY));
        f.spans.retain(|s| s.to_s > from && s.from_s < to);
    }
    if let Some(path) = &args.plot {
        explain_plot::write(series, &flows, path).map_err(|e| Failure::Work(format!("{}: {e}", path.display())))?;
    }
    if json { print_report("explain", &Json { of: of.to_owned(), flows }) } else { print(&text(of, &flows)) }
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
