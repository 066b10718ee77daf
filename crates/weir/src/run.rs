//! `weir run`.

use crate::args::RunArgs;
use crate::output::{Failure, print, print_report, remark};
use crate::session::Session;
use crate::{Done, result_tables};
use weir_lab::report::series_files::write_series;
use weir_lab::run::RunError;

pub(crate) fn run(session: &Session, args: &RunArgs) -> Done {
    let (scenario, seed) = session.one(&args.one)?;
    let series = args.series.is_some();
    let result = session.with_progress(args.one.quiet, series, |options, progress| {
        progress.doing(format!("{}, seed {seed}", scenario.label()));
        weir_lab::run::run(&scenario, seed, options).map_err(failure)
    })?;
    if args.json {
        print_report("run", &result)?;
    } else {
        print(&result_tables::run(&scenario.label(), &result))?;
    }
    if let Some(folder) = &args.series {
        let paths = write_series(&result, folder, &stem(&scenario.label())).map_err(Failure::work)?;
        if !args.one.quiet {
            paths.iter().for_each(|p| remark(&format!("series: {}", p.display())));
        }
    }
    Ok(())
}

pub(crate) fn failure(e: RunError) -> Failure {
    match e {
        RunError::Stopped { .. } => Failure::Interrupted,
        e => Failure::work(e),
    }
}

/// A label as a file name: `random-loss [5%] nada` becomes `random-loss-5-nada`.
pub(crate) fn stem(label: &str) -> String {
    let last = label.rsplit('/').next().unwrap_or(label);
    let words = last.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_');
    words.filter(|w| !w.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_file_names() {
        assert_eq!(stem("rmcat-comparison/random-loss [5%] nada"), "random-loss-5-nada");
        assert_eq!(stem("5.6-long-tcp [newreno, 300 ms] gcc"), "5.6-long-tcp-newreno-300-ms-gcc");
    }
}
