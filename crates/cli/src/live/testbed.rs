//! `weir live testbed`.

use super::with_privilege;
use crate::args::OneArgs;
use crate::args::live::TestbedArgs;
use crate::compare::{finish, report_of, stopped, write_report};
use crate::output::{Failure, check_apart, check_file, check_folder, print, print_report, remark};
use crate::run::stem;
use crate::session::Session;
use crate::{Done, result_tables};
use serde::Serialize;
use std::path::{Path, PathBuf};
use weir_lab::compare::{Outcome, OutcomeJson};
use weir_lab::results::RunResult;
use weir_lab::run::RunError;
use weir_lab::scenario::Scenario;
use weir_live::emulate::Accuracy;
use weir_report::series_files::write_series;
use weir_testbed::{CaptureFile, CapturePoint, Difference, LiveError, LiveOptions, LiveRun, run_live};

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json<'a> {
    #[serde(flatten)]
    outcome: OutcomeJson<'a>,
    /// Accuracy of the emulator, run by run.
    accuracy: &'a [Accuracy],
    /// With `--compare`: each run and its simulated twin.
    #[serde(skip_serializing_if = "Option::is_none")]
    differences: Option<&'a [Difference]>,
    /// With `--compare`: the simulated runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    simulated: Vec<&'a RunResult>,
}

pub(crate) fn testbed(session: &Session, args: &TestbedArgs) -> Done {
    let scenarios = scenarios(session, args)?;
    args.out.as_ref().map_or(Ok(()), |folder| check_folder("--out", folder))?;
    if let Some(file) = &args.pcap {
        check_file("--pcap", file)?;
        check_apart("--pcap", file, [Path::new(&args.scenario)])?;
    }
    args.pcap_ends.as_ref().map_or(Ok(()), |folder| check_folder("--pcap-ends", folder))?;
    with_privilege(args.quiet)?;
    let made = |dir: &PathBuf| {
        std::fs::create_dir_all(dir).map_err(|e| Failure::Work(format!("--pcap-ends {}: {e}", dir.display())))
    };
    args.pcap_ends.as_ref().map_or(Ok(()), made)?;
    let planned = u64::from(args.runs.get());
    let several = scenarios.len() > 1 || planned > 1;
    let mut made: Vec<Vec<(LiveRun, Option<RunResult>)>> = scenarios.iter().map(|_| Vec::new()).collect();
    let mut ended = None;
    // Set by set, so that a stop leaves as many runs of one controller as of another.
    'all: for run in 0..planned {
        for ((scenario, first), made) in scenarios.iter().zip(&mut made) {
            match one(session, args, scenario, first.wrapping_add(run), several) {
                Ok((live, twin)) => {
                    report(args, scenario, &live)?;
                    made.push((live, twin));
                }
                Err(e) => {
                    ended = Some(e);
                    break 'all;
                }
            }
        }
    }
    let is_stopped = matches!(ended, Some(Failure::Interrupted));
    let sets = made.iter().map(Vec::len).min().unwrap_or(0);
    let (mut groups, mut simulated, mut accuracy, mut differences) = (vec![], vec![], vec![], vec![]);
    for ((scenario, _), made) in scenarios.into_iter().zip(made) {
        let (mut live, mut twins) = (vec![], vec![]);
        for (i, (run, twin)) in made.into_iter().enumerate() {
            // After a stop, runs of the last set are counted alone.
            if !is_stopped || i < sets {
                differences.extend(twin.as_ref().map(|t| Difference::new(&scenario.label(), &run.result, t)));
                twins.extend(twin);
                accuracy.push(run.accuracy);
            }
            live.push(run.result);
        }
        simulated.push((scenario.clone(), twins));
        groups.push((scenario, live));
    }
    let twins = Outcome::of(simulated);
    if is_stopped {
        let outcome = Outcome::stopped(groups, planned);
        show(args, &outcome, &twins, &accuracy, &differences)?;
        return finish(outcome);
    }
    // Finished runs are shown and kept, even if a later one fails.
    let outcome = Outcome::of(groups);
    if outcome.count() > 0 {
        show(args, &outcome, &twins, &accuracy, &differences)?;
    }
    ended.map_or_else(|| finish(outcome), Err)
}

/// The scenario under every requested controller, and the first seed.
fn scenarios(session: &Session, args: &TestbedArgs) -> Result<Vec<(Scenario, u64)>, Failure> {
    let one = |controller: Option<&String>| {
        session.one(&OneArgs {
            scenario: args.scenario.clone(),
            controller: controller.cloned(),
            variant: args.variant.clone(),
            seed: args.seed,
            quiet: args.quiet,
        })
    };
    session.check_controllers("--controllers", &args.controllers)?;
    match &args.controllers[..] {
        [] => Ok(vec![one(None)?]),
        all => all.iter().map(|c| one(Some(c))).collect(),
    }
}

/// One run in real time, and its twin if requested.
fn one(
    session: &Session,
    args: &TestbedArgs,
    scenario: &Scenario,
    seed: u64,
    several: bool,
) -> Result<(LiveRun, Option<RunResult>), Failure> {
    let series = args.out.is_some();
    let files = captures(args, scenario, seed, several);
    let captures: Vec<CaptureFile<'_>> = files.iter().map(|(at, path)| CaptureFile { at: *at, path }).collect();
    if !args.quiet {
        remark(&format!("{}, seed {seed}: {:.0} s in real time", scenario.label(), scenario.duration.as_secs_f64()));
    }
    let live = session.with_progress(args.quiet, series, |o, progress| {
        progress.set_message(format!("{}, seed {seed}", scenario.label()));
        let options = LiveOptions { run: *o, congestion: args.tcp.as_deref(), captures: &captures };
        run_live(scenario, seed, &options)
    });
    let live = live.map_err(|e| match e {
        LiveError::Run(e) if matches!(*e, RunError::Stopped { .. }) => Failure::Interrupted,
        e => Failure::work(e),
    })?;
    for ((_, path), packets) in files.iter().zip(&live.captured).filter(|_| !args.quiet) {
        remark(&format!("{packets} packets: {}", path.display()));
    }
    let twin = args.compare.then(|| {
        session.with_progress(true, false, |o, _| weir_lab::run::run(scenario, seed, o)).map_err(crate::run::failure)
    });
    Ok((live, twin.transpose()?))
}

/// The captures of a run that are asked for.
fn captures(args: &TestbedArgs, scenario: &Scenario, seed: u64, several: bool) -> Vec<(CapturePoint, PathBuf)> {
    let of_run = |path: PathBuf| if several { numbered(&path, scenario, seed) } else { path };
    let ends = [(CapturePoint::Sender, "sender.pcapng"), (CapturePoint::Receiver, "receiver.pcapng")];
    let ends = args.pcap_ends.iter().flat_map(|dir| ends.map(|(at, name)| (at, of_run(dir.join(name)))));
    args.pcap.iter().map(|path| (CapturePoint::Entering, of_run(path.clone()))).chain(ends).collect()
}

/// `run.pcapng` of one of several runs becomes `run-LABEL-SEED.pcapng`.
fn numbered(path: &Path, scenario: &Scenario, seed: u64) -> PathBuf {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
    path.with_file_name(format!("{name}-{}-{seed}{extension}", stem(&scenario.label())))
}

/// Reports a run at once, and keeps its series.
fn report(args: &TestbedArgs, scenario: &Scenario, run: &LiveRun) -> Done {
    if !args.quiet {
        remark(run.accuracy.to_string().trim_end());
        run.result.live.iter().flat_map(|l| &l.remarks).for_each(|r| remark(r));
    }
    if let Some(folder) = &args.out {
        let name = format!("{}-{}", stem(&scenario.label()), run.result.seed);
        let paths = write_series(&run.result, folder, &name).map_err(Failure::work)?;
        if !args.quiet {
            paths.iter().for_each(|p| remark(&format!("series: {}", p.display())));
        }
    }
    Ok(())
}

fn show(
    args: &TestbedArgs,
    outcome: &Outcome,
    twins: &Outcome,
    accuracy: &[Accuracy],
    differences: &[Difference],
) -> Done {
    // The report is written even if nobody reads the tables.
    let shown = if args.json {
        let differences = args.compare.then_some(differences);
        let simulated = twins.runs().collect();
        print_report("testbed", &Json { outcome: outcome.json(), accuracy, differences, simulated })
    } else {
        let mut text = stopped(outcome) + &result_tables::outcome(outcome);
        if args.compare && outcome.count() > 0 {
            text += "simulated twins\n";
            text += &result_tables::outcome(twins);
            differences.iter().for_each(|d| text += &d.to_string());
        }
        print(&text)
    };
    let Some(folder) = args.out.as_ref().filter(|_| outcome.count() > 0) else { return shown };
    let report = report_of("In real time", outcome, ["", " in real time, over an emulated network"], None);
    write_report(&report, None, outcome, (folder, &[]), args.quiet).and(shown)
}
