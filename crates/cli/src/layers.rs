//! `weir layers`.

use crate::Done;
use crate::args::{LayersArgs, Learning};
use crate::output::{Failure, print, print_report};
use crate::session::Session;
use crate::tables::{fold, table};
use cpu_time::ThreadTime;
use serde::Serialize;
use weir_lab::layers::{self, LayersPlan, LayersResult};
use weir_lab::results::Distribution;
use weir_units::{DataRate, TimeDelta};

/// Sites if the command line has no number.
const SITES: u32 = 40;

/// Output of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "LayersReport"))]
pub(crate) struct Report {
    #[serde(flatten)]
    result: LayersResult,
    /// CPU time of the run, on one thread, in s.
    cpu_s: f64,
}

fn plan(args: &LayersArgs) -> LayersPlan {
    LayersPlan {
        receivers: args.receivers,
        sites: args.sites.unwrap_or(SITES.min(args.receivers)),
        classes: args.classes.clone(),
        layers: args.layers.clone(),
        learning: match args.learning {
            Learning::None => layers::Learning::None,
            Learning::Site => layers::Learning::Site,
            Learning::Session => layers::Learning::Session,
        },
        arrivals: TimeDelta::from_secs_f64(args.arrivals),
        leave_latency: TimeDelta::from_secs_f64(args.leave_latency),
        queue: TimeDelta::from_secs_f64(args.queue),
        duration: TimeDelta::from_secs_f64(args.duration),
        seed: args.seed,
    }
}

pub(crate) fn layers(session: &Session, args: &LayersArgs) -> Done {
    let plan = plan(args);
    let start = ThreadTime::now();
    let result = session.with_progress(args.quiet, false, |options, progress| {
        progress.set_message(format!("{} receivers", plan.receivers));
        layers::run(&plan, options).map_err(|e| Failure::plan("weir layers", e))
    })?;
    let report = Report { cpu_s: start.elapsed().as_secs_f64(), result };
    if args.json { print_report("layers", &report) } else { print(&text(&report)) }
}

fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$}", share * 100.0)
}

fn text(report: &Report) -> String {
    let r = &report.result;
    let of = match r.learning {
        layers::Learning::None => "nobody's",
        layers::Learning::Site => "their site's",
        layers::Learning::Session => "everybody's",
    };
    let heading = format!(
        "{} receivers at {} sites, {} layers, who learn from {of} experiments, seed {}",
        r.receivers,
        r.sites,
        r.layers_bps.len(),
        r.seed
    );
    let columns = [
        "link",
        "receivers",
        "right level",
        "at it at the end, %",
        "at it, %",
        "above, %",
        "mean level",
        "reached after, s",
        "95 %",
        "lost, %",
    ];
    let mut t = table(&columns, 1);
    let reached = |d: Option<Distribution>| {
        d.map_or(["-".into(), "-".into()], |d| [format!("{:.1}", d.p50), format!("{:.1}", d.p95)])
    };
    for c in &r.classes {
        let [median, late] = reached(c.reached_s);
        t.add_row([
            DataRate::from_bps_f64(c.rate_bps).to_string(),
            c.receivers.to_string(),
            c.level.to_string(),
            percent(c.right_at_end, 1),
            percent(c.right, 1),
            percent(c.above, 1),
            format!("{:.2}", c.mean_level),
            median,
            late,
            percent(c.loss, 2),
        ]);
    }
    let [median, late] = reached(r.reached_s);
    t.add_row([
        "all".into(),
        r.receivers.to_string(),
        "-".into(),
        percent(r.right_at_end, 1),
        percent(r.right, 1),
        percent(r.above, 1),
        "-".into(),
        median,
        late,
        percent(r.loss, 2),
    ]);
    let c = &r.control;
    let lines = [
        format!(
            "Shares of time are those of the last third of {} s; packets are counted from each start on. Never at the right level: \
             {} receivers.",
            r.simulated_s, r.never
        ),
        format!(
            "Experiments: {}, layers dropped {}; layers tried more rarely because of others: {}.",
            c.experiments, c.drops, c.learned
        ),
        format!(
            "Control: {} announcements, {:.1} heard by a receiver in a minute; {} memberships; {:.1} bit/s a receiver; announcements \
             are {} % of the links' traffic.",
            c.announced,
            c.heard_a_minute,
            c.memberships,
            c.bps_a_receiver,
            percent(c.share_of_links, 3)
        ),
        format!("CPU: {:.2} s for {} s simulated.", report.cpu_s, r.simulated_s),
    ];
    let notes: String = lines.iter().map(|l| format!("{}\n", fold(l))).collect();
    format!("{}\n{t}\n{notes}", fold(&heading))
}
