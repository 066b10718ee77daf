//! `weir gate`.

mod bisect;
mod child;
mod git;

use crate::Done;
use crate::args::GateArgs;
use crate::output::{Failure, check_apart, check_file, print, print_report, remark};
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;
use weir_estimator::{Faults, PREFIX, Permits, add_to};
use weir_judge::gate::{Baseline, Check, Ended, GateFile, Plan, Report, Verdict, Work, digits};
use weir_lab::run::RunOptions;
use weir_lab::scenario::InputError;
use weir_report::atomic_write::write_atomically;

pub(crate) fn gate(session: &Session, args: &GateArgs) -> Done {
    if let Some([good, bad, command]) = args.bisect.as_deref() {
        return bisect::bisect(session, args, [good, bad], command);
    }
    let file = read(&args.file, args)?;
    let (registry, faults) = permitted(session, &file, args.allow_exec)?;
    let outputs = [
        ("--save-baseline", &args.save_baseline),
        ("--junit", &args.junit),
        ("--markdown", &args.markdown),
        ("--sarif", &args.sarif),
    ];
    for (i, (option, path)) in outputs.iter().enumerate() {
        let Some(path) = path else { continue };
        check_file(option, path)?;
        // A baseline may be replaced by its successor.
        let baseline = args.baseline.as_deref().filter(|_| *option != "--save-baseline");
        check_apart(option, path, [args.file.as_path()].into_iter().chain(baseline))?;
        if let Some((other, _)) = outputs[..i].iter().find(|(_, earlier)| earlier.as_ref() == Some(path)) {
            let why = format!("{}: {other} is written there", path.display());
            return Err(InputError::whole(*option, why).help("name another file").into());
        }
    }
    let plan = Plan::new(&file, &registry)?;
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let begin = begin();
    let elapsed = || begin.elapsed().as_secs_f64();
    let work = Work {
        baseline: baseline.as_ref(),
        saves: args.save_baseline.is_some(),
        threads: threads(args.jobs),
        elapsed: &elapsed,
        faults: &|| faults.take_here(),
    };
    let (answer, plots) = session.with_progress(args.quiet, true, |options, progress| {
        let options = RunOptions { registry: &registry, ..*options };
        let mut answer = plan.run(work, &options, &|what| progress.set_message(what.to_owned()));
        let plots = plan.explain(&mut answer.report, &options, args.markdown.as_deref());
        (answer, plots)
    });
    let report = answer.report;
    // Files are written even if nobody reads the table.
    let printed = if args.json { print_report("gate", &report) } else { print(&text(&report, args)) };
    let plots = plots.map_err(|e| Failure::Work(format!("a plot cannot be written: {e}")))?;
    let written = |path: &Path| {
        if !args.quiet {
            remark(&format!("written: {}", path.display()));
        }
    };
    plots.iter().for_each(|p| written(p));
    let texts = [
        (&args.junit, report.junit(args.strict)),
        (&args.markdown, report.markdown()),
        (&args.sarif, report.sarif(args.strict)),
    ];
    for (path, text) in texts.iter().filter_map(|(path, text)| Some((path.as_ref()?, text))) {
        write_atomically(path, |out| out.write_all(text.as_bytes())).map_err(|e| failed(path, &e))?;
        written(path);
    }
    if report.ended == Some(Ended::Stopped) {
        // Values of fewer seeds than were asked for are no baseline.
        return Err(Failure::Interrupted);
    }
    if let Some(path) = &args.save_baseline {
        answer.baseline.write(path).map_err(|e| failed(path, &e))?;
        written(path);
    }
    printed?;
    match report.verdict {
        Verdict::Passes => Ok(()),
        Verdict::Undecided if !args.strict => {
            remark(&fold(&format!("warning: {}; --strict makes this a failure", report.summary())));
            Ok(())
        }
        _ => Err(Failure::Work(report.summary())),
    }
}

fn failed(path: &Path, e: &std::io::Error) -> Failure {
    Failure::Work(format!("{}: {e}", path.display()))
}

#[expect(clippy::disallowed_methods, reason = "the file's time is that of the user")]
fn begin() -> Instant {
    Instant::now()
}

/// The controllers of a session, with the programs that the file names if they may start.
/// The file, with the seed of the command line.
fn read(path: &Path, args: &GateArgs) -> Result<GateFile, InputError> {
    let mut file = GateFile::read(path)?;
    file.seed = args.seed.unwrap_or(file.seed);
    Ok(file)
}

fn permitted(session: &Session, file: &GateFile, allow_exec: bool) -> Result<(weir_cc::Registry, Faults), InputError> {
    let programs: Vec<&str> = file.named().into_iter().filter(|name| name.starts_with(PREFIX)).collect();
    if let Some(name) = programs.first().filter(|_| !allow_exec) {
        let message = format!("`{name}` starts a program, which no file may do by itself");
        return Err(file.at_name(name, &message, "--allow-exec lets the file's programs start: read them first"));
    }
    let mut registry = session.registry.clone();
    let faults = add_to(&mut registry, Permits::these(programs));
    Ok((registry, faults))
}

/// A value, and that which it is compared with.
fn measured(check: &Check) -> String {
    let own = if check.values.is_empty() { "-".into() } else { digits(check.median) };
    if check.others.is_empty() { own } else { format!("{own} / {}", digits(check.median_of_others)) }
}

fn text(report: &Report, args: &GateArgs) -> String {
    let mut out = String::new();
    for controller in &report.controllers {
        // Commands are too long for a column.
        let mut rows = table(&["verdict", "scenario", "budget", "median", "seeds"], 3).keys(1);
        for check in report.checks.iter().filter(|c| c.controller == *controller) {
            rows.add_row([
                check.verdict.name().to_owned(),
                check.scenario.clone(),
                check.budget.clone(),
                measured(check),
                format!("{}/{}", check.hits, check.hits + check.misses),
            ]);
        }
        let _ = writeln!(out, "{}{rows}", fold(&format!("{controller}\n")));
    }
    let mut said = "";
    for check in report.checks.iter().filter(|c| c.verdict == Verdict::Fails) {
        let _ = write!(out, "\n{}", fold(&format!("{}:{}: {}\n", report.file, check.line, check.sentence())));
        // Budgets of one run have one reason.
        if let Some(why) = check.why.as_deref().filter(|why| *why != said) {
            out += &fold(&format!("  {why}\n"));
            said = why;
        }
    }
    let _ = write!(out, "\n{}", fold(&format!("{}.\n", report.summary())));
    out += &fold(
        "seeds: those that keep the budget, of those that decided it; median: over them, beside that of the \
         controller or baseline compared with.\n",
    );
    if args.annotations {
        out += &report.annotations(args.strict);
    }
    out
}
