//! `weir run`.

mod explain;
mod pcap;

#[cfg(all(test, feature = "schema"))]
pub(crate) use explain::Json as ExplainJson;

use crate::args::RunArgs;
use crate::output::{Failure, check_apart, check_file, check_folder, print, print_report, remark};
use crate::session::Session;
use crate::{Done, result_tables};
use std::path::Path;
use weir_lab::run::RunError;
use weir_lab::scenario::InputError;
use weir_report::recorded;
use weir_report::series_files::write_series;
use weir_report::series_read::read_series;

pub(crate) fn run(session: &Session, args: &RunArgs) -> Done {
    if Path::new(&args.one.scenario).is_dir() {
        return folder(args);
    }
    let (scenario, seed) = session.one(&args.one)?;
    args.series.as_ref().map_or(Ok(()), |folder| check_folder("--series", folder))?;
    args.explain.plot.as_ref().map_or(Ok(()), |file| check_file("--plot", file))?;
    if let Some(path) = &args.capture.pcap {
        // A name that ends in a slash is a folder, which is made.
        let is_folder = path.is_dir() || path.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR);
        if is_folder { check_folder("--pcap", path)? } else { check_file("--pcap", path)? }
    }
    for (option, file) in [("--pcap", &args.capture.pcap), ("--plot", &args.explain.plot)] {
        file.as_ref().map_or(Ok(()), |file| check_apart(option, file, [Path::new(&args.one.scenario)]))?;
    }
    let keeps_series = args.series.is_some() || args.explain.explain;
    let (result, written, recorded) = session.with_progress(args.one.quiet, keeps_series, |options, progress| {
        progress.set_message(format!("{}, seed {seed}", scenario.label()));
        // The same scenario and seed give the same packets, however often they are run.
        let written = args.capture.pcap.as_ref();
        let written = written.map(|path| pcap::run(&scenario, seed, options, &args.capture, path)).transpose()?;
        if args.explain.explain {
            let (result, recorded) = recorded::run(&scenario, seed, options).map_err(failure)?;
            return Ok::<_, Failure>((result, written.map(|w| w.1), recorded));
        }
        let (result, written) = match written {
            Some((result, written)) => (result, Some(written)),
            None => (weir_lab::run::run(&scenario, seed, options).map_err(failure)?, None),
        };
        Ok((result, written, Vec::new()))
    })?;
    if let Some(written) = written.filter(|_| !args.one.quiet) {
        remark(&written);
    }
    // The series are written even if nobody reads the table.
    let shown = if args.explain.explain {
        let of = format!("{}, seed {seed}", scenario.label());
        let series = result.series.as_ref().ok_or_else(|| Failure::Work("the run kept no time series".into()))?;
        explain::show(&of, series, Some(&scenario), explain::causes(&recorded), &args.explain, args.json)
    } else if args.json {
        print_report("run", &result)
    } else if !args.no_table {
        print(&result_tables::run(&scenario.label(), &result))
    } else {
        Ok(())
    };
    if let Some(folder) = &args.series {
        let paths = write_series(&result, folder, &stem(&scenario.label())).map_err(Failure::work)?;
        if !args.one.quiet {
            paths.iter().for_each(|p| remark(&format!("series: {}", p.display())));
        }
    }
    shown
}

/// A folder in the place of a scenario: the time series that an earlier run wrote, explained.
fn folder(args: &RunArgs) -> Done {
    let name = &args.one.scenario;
    if !args.explain.explain || args.capture.pcap.is_some() || args.series.is_some() {
        let error = InputError::whole(name, "a folder is no scenario");
        return Err(error.help("--explain alone explains the time series in a folder").into());
    }
    let series = read_series(Path::new(name)).map_err(|e| InputError::whole(name, e.to_string()))?;
    explain::show(name, &series, None, explain::Causes::new(), &args.explain, args.json)
}

pub(crate) fn failure(e: RunError) -> Failure {
    match e {
        RunError::Stopped { .. } => Failure::Interrupted,
        e => Failure::work(e),
    }
}

/// A label as a file name: `rmcat-comparison/random-loss [5%] nada` becomes `random-loss-5-nada`. A scenario's folder is left out,
/// not a variant's; the sign of a number is written out.
pub(crate) fn stem(label: &str) -> String {
    let name = label.split(" [").next().unwrap_or(label);
    let last = &label[name.rfind('/').map_or(0, |at| at + 1)..];
    let chars: Vec<char> = last.chars().collect();
    let mut text = String::new();
    for (i, &c) in chars.iter().enumerate() {
        let is_sign =
            chars.get(i + 1).is_some_and(char::is_ascii_digit) && (i == 0 || matches!(chars[i - 1], ' ' | '[' | '='));
        match c {
            '-' if is_sign => text.push_str("minus "),
            '+' if is_sign => text.push_str("plus "),
            c if c.is_ascii_alphanumeric() || c == '.' || c == '_' => text.push(c),
            _ => text.push(' '),
        }
    }
    text.split(' ').filter(|w| !w.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_file_names() {
        assert_eq!(stem("rmcat-comparison/random-loss [5%] nada"), "random-loss-5-nada");
        assert_eq!(stem("5.6-long-tcp [newreno, 300 ms] gcc"), "5.6-long-tcp-newreno-300-ms-gcc");
        assert_eq!(stem("pathologies/layers [2 Mbit/s] gcc"), "layers-2-Mbit-s-gcc");
        assert_eq!(stem("matrix [a/ride.csv] gcc"), "matrix-a-ride.csv-gcc");
        assert_ne!(stem("drift [5000 ppm] gcc"), stem("drift [-5000 ppm] gcc"));
    }
}
