//! `weir overlay`.

use crate::Done;
use crate::args::{Division, OverlayArgs};
use crate::output::{Failure, print, print_report};
use crate::session::Session;
use crate::tables::{fold, table};
use cpu_time::ThreadTime;
use serde::Serialize;
use weir_lab::overlay::{self, OverlayPlan, OverlayResult};
use weir_lab::results::Distribution;
use weir_lab::scenario::suggest;
use weir_units::{DataRate, TimeDelta};

/// Output of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Report {
    #[serde(flatten)]
    result: OverlayResult,
    /// CPU time of the run, on one thread, in s.
    cpu_s: f64,
    /// The same of a simulated second.
    cpu_s_per_simulated_s: f64,
}

fn plan(args: &OverlayArgs) -> OverlayPlan {
    OverlayPlan {
        nodes: args.nodes,
        trees: args.trees,
        rate: args.rate,
        root_copies: args.copies,
        arrivals: args.arrivals.map_or(TimeDelta::ZERO, TimeDelta::from_secs_f64),
        leave: args.leave,
        leave_at: TimeDelta::from_secs_f64(args.leave_at),
        leave_within: args.leave_within.map_or(TimeDelta::ZERO, TimeDelta::from_secs_f64),
        focus: !args.without_focus,
        graceful: args.graceful,
        loss: args.loss,
        division: match args.division {
            Division::Packets => overlay::Division::Packets,
            Division::Frames => overlay::Division::Frames,
        },
        controller: args.controller.clone(),
        playout: TimeDelta::from_secs_f64(args.playout),
        duration: TimeDelta::from_secs_f64(args.duration),
        seed: args.seed,
    }
}

pub(crate) fn overlay(session: &Session, args: &OverlayArgs) -> Done {
    suggest::find(&session.registry, "--controller", &args.controller)?;
    let plan = plan(args);
    let start = ThreadTime::now();
    let result = session.with_progress(args.quiet, false, |options, progress| {
        progress.set_message(format!("{} nodes", plan.nodes));
        overlay::run(&plan, options).map_err(|e| Failure::plan("weir overlay", e))
    })?;
    let cpu_s = start.elapsed().as_secs_f64();
    let report = Report { cpu_s, cpu_s_per_simulated_s: cpu_s / result.simulated_s, result };
    if args.json { print_report("overlay", &report) } else { print(&text(&report)) }
}

fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$} %", share * 100.0)
}

fn text(report: &Report) -> String {
    let r = &report.result;
    let rate = DataRate::from_bps_f64(r.rate_bps);
    let division = match r.division {
        overlay::Division::Packets => "packets",
        overlay::Division::Frames => "frames",
    };
    let heading = format!(
        "{} nodes{}, {} trees of a stream of {rate} divided by {division}, hops under {}, seed {}",
        r.nodes,
        if r.focus { "" } else { " without a focus" },
        r.trees,
        r.controller,
        r.seed
    );
    let mut t = table(&["", "mean", "median", "95 %", "max"], 1);
    let mut row = |name: &str, d: Option<Distribution>, digits: usize| {
        let values = d.map(|d| [d.mean, d.p50, d.p95, d.max].map(|v| format!("{v:.digits$}")));
        let cells = values.unwrap_or_else(|| ["-"; 4].map(str::to_owned));
        t.add_row(std::iter::once(name.to_owned()).chain(cells));
    };
    row("join (s)", r.joins.time_s, 3);
    if let Some(c) = &r.churn {
        row("reconnected after leaving (s)", c.reconnected_s, 3);
        row("last packet missed after leaving (s)", c.whole_after_s, 3);
    }
    row("delay of packets (ms)", r.delivery.delay_ms, 0);
    let (joins, depth, d, traffic) = (r.joins, r.depth, r.delivery, r.traffic);
    let mut lines = vec![format!(
        "joined: {} of {}; hops from the root: mean {:.2}, at most {}; places that could not be given: {}",
        joins.joined, r.nodes, depth.mean, depth.max, depth.unplaced
    )];
    lines.push(format!(
        "received within {} s: {} of packets, least of a node {}; never: {}",
        r.playout_s,
        percent(d.in_time, 3),
        percent(d.least_in_time, 2),
        percent(d.residual_loss, 4)
    ));
    let end = r.depth_at_end;
    lines.push(format!(
        "hops at the end: mean {:.2}, at most {}; nodes times trees that are not connected: {}",
        end.mean, end.max, end.unplaced
    ));
    if let Some(n) = traffic.neighbours {
        lines.push(format!(
            "neighbours: {} searches, {} requests, {} offers, {} referrals; {} leaves made room; {} cycles ended",
            n.searches, n.asked, n.offered, n.referred, n.displaced, n.cycles
        ));
    }
    if let Some(c) = &r.churn {
        lines.push(format!(
            "for each node that left: {:.2} times a node lacked a tree, for {:.3} s on average, {:.3} s in all",
            c.breaks_a_leave, c.break_s, c.broken_s_a_leave
        ));
        lines.push(format!(
            "{} nodes {}: {} others lacked a tree, {} of them to the end; {} missed packets; of packets of the 2 s after, \
             received in time: {}, never: {}",
            c.left,
            if c.graceful { "said goodbye" } else { "vanished" },
            c.disconnected,
            c.never_reconnected,
            c.interrupted,
            percent(c.in_time, 2),
            percent(c.residual_loss, 3)
        ));
    }
    lines.push(format!(
        "hops: {} RTP packets, {} repeated, {} received twice, {} dropped in relays; nodes send {:.2} times what they receive",
        traffic.packets,
        percent(traffic.repeated, 2),
        percent(traffic.duplicates, 2),
        traffic.dropped,
        traffic.forwarded
    ));
    lines.push(format!(
        "CPU: {:.2} s for {} s simulated, {:.3} s a simulated second",
        report.cpu_s, r.simulated_s, report.cpu_s_per_simulated_s
    ));
    let notes: String = lines.iter().map(|l| format!("{}\n", fold(l))).collect();
    format!("{}\n{t}\n{notes}", fold(&heading))
}
