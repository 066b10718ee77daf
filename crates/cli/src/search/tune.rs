//! `weir search tune`.

use crate::Done;
use crate::args::TuneArgs;
use crate::judge::rows::{choose, open_traces};
use crate::output::{Failure, check_folder, print, print_report, remark};
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use cmaes::{CMAESOptions, DVector};
use std::fmt::Write as _;
use weir_judge::rows::{Row, Trace, shown};
use weir_judge::tune::{Campaign, Judgement, Report, Space, generated};
use weir_lab::run::RunOptions;
use weir_lab::scenario::InputError;

/// Capacities generated where nothing else is named.
const GENERATED: u16 = 20;
/// Seed of the capacities that validate where no traces are named: added to the search's.
const OTHER: u64 = 1 << 32;
/// First step of the search, in steps of the space.
const STEP: f64 = 1.0;

pub(super) fn tune(session: &Session, args: &TuneArgs) -> Done {
    let space = Space::new(&args.controller, &args.parameters, &session.registry)?;
    let (rows, wants_traces) = if args.rows.is_empty() { (vec![], false) } else { choose(&args.rows)? };
    if wants_traces {
        return Err(InputError::whole("--rows", "`traces` is no row here").help("--traces DIR names them").into());
    }
    let mut traces = open_traces(&args.traces, args.quiet)?;
    let is_alone = traces.is_empty() && rows.is_empty();
    let count = args.generated.unwrap_or(if is_alone { GENERATED } else { 0 });
    traces.extend(generated(count.into(), args.seed));
    if traces.is_empty() && rows.is_empty() {
        return Err(InputError::whole("--generated", "0: there is nothing to judge candidates by").into());
    }
    let mut validation = open_traces(&args.validation, args.quiet)?;
    if validation.is_empty() {
        validation = generated(count.into(), args.seed.wrapping_add(OTHER));
    }
    check_folder("--out", &args.out)?;
    let work = Work { session, args, space: &space, traces: &traces, rows: &rows, validation: &validation };
    let report = work.search()?;
    write(&report, args)?;
    if args.json {
        print_report("tune", &report)?;
    } else {
        print(&text(&report))?;
    }
    if report.stopped { Err(Failure::Interrupted) } else { Ok(()) }
}

struct Work<'a> {
    session: &'a Session,
    args: &'a TuneArgs,
    space: &'a Space,
    traces: &'a [Trace],
    rows: &'a [Row],
    validation: &'a [Trace],
}

impl Work<'_> {
    fn search(&self) -> Result<Report, Failure> {
        let args = self.args;
        let most = args.evaluations.get();
        self.session.with_progress(args.quiet, true, |given, progress| {
            // The bar shows the share of the search, not of a candidate's runs.
            let options = RunOptions { progress: &|_| {}, ..*given };
            let threads = threads(args.jobs);
            let mut campaign = Campaign::new(self.space, self.traces, self.rows, args.runs.get(), threads);
            let mut failure = None;
            let zeros = vec![0.0; self.space.parameters().len()];
            let mut stopped = campaign.evaluate(&zeros, &options)?.is_none();
            let objective = |x: &DVector<f64>| -> f64 {
                let done = campaign.evaluations().len();
                if stopped || failure.is_some() || done >= most {
                    return f64::INFINITY;
                }
                progress.set_share(done as f64 / most as f64);
                let best = campaign.evaluations()[campaign.best_at()].judgement.score;
                progress.set_message(format!("{done} of {most} candidates, best score {best:.4}"));
                match campaign.evaluate(x.as_slice(), &options) {
                    Ok(Some(score)) => -score,
                    Ok(None) => {
                        stopped = true;
                        f64::INFINITY
                    }
                    Err(e) => {
                        failure = Some(e);
                        f64::INFINITY
                    }
                }
            };
            let start = DVector::from_vec(zeros.clone());
            let settings = CMAESOptions::new(start, STEP).seed(args.seed).max_function_evals(most.saturating_sub(1));
            let mut optimiser = settings.build(objective).map_err(|e| Failure::Work(format!("the search: {e:?}")))?;
            // Generations are whole: the last ones stop at the number asked for.
            if most > 1 {
                optimiser.run();
            }
            drop(optimiser);
            if let Some(e) = failure {
                return Err(e.into());
            }
            progress.set_message("validation".to_owned());
            let ended = stopped || self.session.stopped();
            Ok(campaign.finish(self.validation, ended, &options)?)
        })
    }
}

fn write(report: &Report, args: &TuneArgs) -> Done {
    let path = args.out.join("tune.json");
    report.write(&path).map_err(|e| Failure::Work(format!("{}: {e}", path.display())))?;
    if !args.quiet {
        remark(&format!("written: {}", path.display()));
    }
    Ok(())
}

fn text(report: &Report) -> String {
    if report.evaluations.is_empty() {
        return "stopped before the first evaluation\n".into();
    }
    let best = &report.evaluations[report.best_at];
    let mut changed = table(&["parameter", "unit", "start", "best"], 2);
    for (p, value) in report.parameters.iter().zip(&best.values) {
        changed.add_row([p.name.clone(), p.unit.clone(), format!("{}", p.start), format!("{value}")]);
    }
    let mut judged = table(&["", "score", "worst tenth", "traces", "rows near", "goals met", "lost"], 1);
    let mut line = |name: String, j: &Judgement| {
        let value = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| format!("{v:.4}"));
        let near = if report.rows.is_empty() { None } else { j.closeness };
        let met = if report.rows.is_empty() { "-".into() } else { j.met.to_string() };
        let lost = shown(Some(j.lost));
        judged.add_row([name, value(Some(j.score)), value(j.worst_tenth), value(j.mean), value(near), met, lost]);
    };
    line("start".into(), &report.evaluations[0].judgement);
    line(format!("best, {} of {}", report.best_at + 1, report.evaluations.len()), &best.judgement);
    if let Some(v) = &report.validation {
        line(format!("start, {} others", v.traces), &v.start);
        line(format!("best, {} others", v.traces), &v.best);
    }
    let mut out = format!("{changed}\n{judged}\n");
    if report.stopped {
        let _ = writeln!(out, "stopped: {} candidates were evaluated; nothing was validated", report.evaluations.len());
    }
    if report.best_at == 0 {
        out += &fold("No candidate was better than the start.\n");
    } else if let Some(v) = report.validation.as_ref().filter(|v| v.best.score < v.start.score) {
        out += &fold(&format!(
            "On traces that the search did not see, the best is worse than the start by {:.4}: it has learnt the traces of the search.\n",
            v.start.score - v.best.score
        ));
    }
    // As --controllers takes it; where it is longer than a line, the file has it.
    match report.best.len() {
        0..=80 => _ = writeln!(out, "{}", report.best),
        _ => out += "The best, as --controllers takes it: `best` in tune.json.\n",
    }
    out
}
