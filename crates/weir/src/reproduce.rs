//! `weir reproduce`.

use crate::args::{FigureFormat, ReproduceArgs};
use crate::compare::{finish, report_of, run_all, write_report};
use crate::output::{print, print_json};
use crate::session::Session;
use crate::{Done, tables};
use std::num::NonZeroU32;
use weir_lab::measure::compare::Repeat;
use weir_lab::publish::figures::Format;
use weir_lab::publish::papers::PaperData;

/// Runs of each scenario if neither the user nor the paper states a number.
const DEFAULT_RUNS: u32 = 5;

pub(crate) fn reproduce(session: &Session, args: &ReproduceArgs) -> Done {
    let mut data = PaperData::open(&args.paper)?;
    if let Some(table) = &args.table {
        data = data.with_table(table)?;
    }
    let runs = args.runs.map_or(data.runs.unwrap_or(DEFAULT_RUNS), NonZeroU32::get);
    let repeat = Repeat { runs, own: args.runs.is_none(), seed: args.seed };
    let outcome = run_all(session, &data.scenarios(), None, repeat, &args.work)?;
    let runs: Vec<_> = outcome.runs().cloned().collect();
    let reproduction = weir_lab::publish::reproduce::reproduce(&data.paper, &runs);
    if args.json {
        print_json(&reproduction)?;
    } else {
        print(&tables::reproduction(&reproduction))?;
    }
    if let Some(folder) = &args.out {
        let report = report_of(&data.paper.title, &outcome, Some(reproduction));
        let format = |f: &FigureFormat| match f {
            FigureFormat::Svg => Format::Svg,
            FigureFormat::Pdf => Format::Pdf,
        };
        let formats: Vec<Format> = args.figures.iter().map(format).collect();
        write_report(&report, Some(&data), &outcome, (folder, &formats), args.work.quiet)?;
    }
    finish(outcome)
}
