//! `weir live dccp send`.

use super::{Report, failure, lines, mbit, percent};
use crate::Done;
use crate::args::live::dccp::{SendArgs, address};
use crate::output::{Failure, print, print_report, remark};
use crate::session::Session;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;
use weir_live::dccp::transfer::{Look, Looks, SendPlan, SendReport, send_all, wait_open};
use weir_live::dccp::{DccpError, DccpSocket};
use weir_units::TimeDelta;

/// Interval between reports of progress.
const EVERY: TimeDelta = TimeDelta::from_millis(500);
const LINE_EVERY: TimeDelta = TimeDelta::from_secs(1);

pub(super) fn send(session: &Session, args: &SendArgs) -> Done {
    let plan = args.plan()?;
    let peer = address("ADDR", &args.to)?;
    let mut config = args.connection.config(&[2])?;
    config.queue = args.queue()?;
    let patience = Duration::from_secs_f64(args.patience);
    let socket = DccpSocket::begin_connect(peer, config).map_err(failure)?;
    if !args.output.quiet {
        remark(&format!("connecting to {peer}"));
    }
    if !wait_open(&socket, patience, &|| session.stopped()).map_err(failure)? {
        if session.stopped() {
            return Err(Failure::Interrupted);
        }
        return Err(failure(DccpError::TimedOut { peer, seconds: args.patience }));
    }
    if !args.output.quiet {
        let ccid = socket.ccids().map_or("-".into(), |c| c.0.to_string());
        let bytes = plan.datagram.unwrap_or(socket.max_packet_size()).as_bytes();
        remark(&format!("connected, CCID {ccid}, datagrams of {bytes} bytes; Ctrl-C closes"));
    }
    let mut progress = Progress::new(args, &plan);
    let every = if args.progress { LINE_EVERY } else { EVERY };
    let looks = Looks { every, report_to: &mut |look| progress.report_to(look) };
    let report = send_all(&socket, &plan, &|| session.stopped(), patience, looks);
    progress.bar.finish_and_clear();
    let report = report.map_err(|e| match e {
        DccpError::TooLong { max, .. } => {
            Failure::Work(format!("{e}: --packet-size may be {} at most on this path", max.as_bytes()))
        }
        e => failure(e),
    })?;
    if args.output.json { print_report("dccp", &Report::Send(&report)) } else { print(&table(&report)) }?;
    match &report.ended_by {
        Some(why) => Err(Failure::Work(format!("the transfer has ended early: {why}"))),
        None if !report.closed => {
            let what = "the other end has not agreed to close within";
            Err(Failure::Work(format!("{what} {} s: allow more time by --patience", args.patience)))
        }
        None => Ok(()),
    }
}

fn table(r: &SendReport) -> String {
    let count =
        |n: Option<u64>| n.map_or("as reported by the receiver".into(), |n| format!("{n}, {}", percent(n, r.packets)));
    lines(&[
        ("CCID", r.ccid.map_or("-".into(), |c| c.to_string())),
        ("time", format!("{:.2} s", r.seconds)),
        ("sent", format!("{} datagrams, {:.3} MB", r.datagrams, r.bytes as f64 / 1e6)),
        ("rate", mbit(r.rate_bps)),
        ("lost", count(r.lost)),
        ("marked", count(r.marked)),
        ("round trip", r.rtt_ms.map_or("-".into(), |x| format!("{x:.2} ms"))),
        ("closed", if r.closed { "in order".into() } else { "no".into() }),
    ])
}

/// A bar if standard error is a terminal, or lines if they are requested.
struct Progress {
    bar: ProgressBar,
    lines: bool,
    /// Whether the bar counts bytes rather than ms.
    bytes: bool,
    before: Look,
}

impl Progress {
    fn new(args: &SendArgs, plan: &SendPlan) -> Self {
        let length = match (plan.size, plan.duration) {
            (Some(s), _) => Some(s.as_bytes()),
            (None, Some(d)) => Some(d.as_millis().unsigned_abs()),
            (None, None) => None,
        };
        let hidden = args.output.quiet || args.progress;
        let bar = match length {
            _ if hidden => ProgressBar::hidden(),
            Some(n) => ProgressBar::new(n),
            None => ProgressBar::new_spinner(),
        };
        let template = match length {
            Some(_) => "{bar:30} {percent:>3} % {elapsed} (about {eta} left) {msg}",
            None => "{elapsed} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, lines: args.progress, bytes: plan.size.is_some(), before: Look::default() }
    }

    fn report_to(&mut self, look: &Look) {
        let time = look.at_s - self.before.at_s;
        if time <= 0.0 {
            return;
        }
        let rate = (look.bytes - self.before.bytes) as f64 * 8.0 / time;
        let lost = look.lost - self.before.lost;
        let allowed = look.allowed_bps.map_or("-".into(), mbit);
        let rtt = look.rtt_ms.map_or("-".into(), |x| format!("{x:.1} ms"));
        let text = format!("{} of {allowed}, {lost} lost, round trip {rtt}, {} queued", mbit(rate), look.queued);
        if self.lines {
            remark(&format!("{:7.1} s  {text}", look.at_s));
        }
        self.bar.set_position(if self.bytes { look.bytes } else { (look.at_s * 1e3) as u64 });
        self.bar.set_message(text);
        self.before = *look;
    }
}
