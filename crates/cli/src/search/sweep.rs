//! `weir search sweep`.

use super::counted;
use crate::Done;
use crate::args::SweepArgs;
use crate::output::{Failure, print, remark};
use crate::reading::heeding;
use crate::session::{Session, threads};
use weir_judge::sweep::{Dataset, Grid, chunks, make_all};

pub(super) fn sweep(session: &Session, args: &SweepArgs) -> Done {
    let (path, registry) = (args.grid.clone(), session.registry.clone());
    let name = args.grid.display().to_string();
    let runs = heeding(&session.stop, &name, move || Grid::read(&path)?.runs(&registry))??;
    let all = runs.len();
    if args.dry_run && !args.out.exists() {
        return print(&format!("{}: none is kept yet\n", counted(all, "run")));
    }
    let dataset = Dataset::open(&args.out).map_err(Failure::Work)?;
    let good = dataset.keys(true).map_err(Failure::Work)?;
    let known = if args.retry_failures { good.clone() } else { dataset.keys(false).map_err(Failure::Work)? };
    let failed_before = runs.iter().filter(|run| known.contains(&run.key) && !good.contains(&run.key)).count();
    let left: Vec<_> = runs.into_iter().filter(|run| !known.contains(&run.key)).collect();
    let (missing, kept) = (left.len(), all - left.len());
    if args.dry_run {
        return print(&format!("{}: {kept} kept in {}, {missing} to make\n", counted(all, "run"), args.out.display()));
    }
    let (mut done, mut failed) = (0_usize, Vec::new());
    let made = session.with_progress(args.quiet, false, |options, progress| {
        let one = |kept: &weir_judge::sweep::SweepResult| {
            done += 1;
            progress.set_share(done as f64 / missing as f64);
            progress.set_message(format!("{done} of {missing} runs"));
            if let Some(error) = &kept.error {
                failed.push(error.clone());
            }
        };
        let keep = |part: &[_]| dataset.keep(part);
        make_all(&chunks(left), threads(args.jobs), options.registry, options.stop, keep, one)
    });
    made.map_err(Failure::Work)?;
    let lost = missing - done;
    print(&format!(
        "{}: {kept} kept before, {done} made, {} failed; {}\n",
        counted(all, "run"),
        failed.len(),
        args.out.join("runs").display()
    ))?;
    if !args.quiet {
        failed.iter().take(3).for_each(|e| remark(&format!("failed: {e}")));
        super::failed_before(failed_before, "run", &args.out);
    }
    if lost > 0 {
        remark(&format!("{} missing: the same command makes the rest", counted(lost, "run")));
        return Err(Failure::Interrupted);
    }
    match failed.len() {
        0 => Ok(()),
        n => Err(Failure::Work(format!(
            "{} failed: {} says why",
            counted(n, "run"),
            args.out.join("failures").display()
        ))),
    }
}
