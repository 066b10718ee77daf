//! `weir call`.

mod args;
mod progress;

pub(crate) use args::{CallCommand, EXAMPLES};

use crate::Done;
use crate::output::{Failure, print, print_json};
use crate::session::Session;
use args::LoopbackArgs;
use progress::Progress;
use weir_live::call::{LoopbackSummary, Unobserved, loopback};

pub(crate) fn call(session: &Session, command: &CallCommand) -> Done {
    match command {
        CallCommand::Loopback(a) => over_loopback(session, a),
    }
}

fn over_loopback(session: &Session, args: &LoopbackArgs) -> Done {
    let config = args.media.config(&session.registry)?;
    let mut progress = Progress::new(args.output.quiet);
    let ends = (&mut progress, &mut Unobserved);
    let summary = loopback(&config, &session.registry, args.media.duration(), &session.stop, ends);
    progress.finish();
    let summary = summary.map_err(Failure::work)?;
    if args.output.json { print_json(&summary) } else { print(&table(&summary)) }
}

fn table(s: &LoopbackSummary) -> String {
    let mbps = |bps: f64| format!("{:.3} Mbit/s", bps / 1e6);
    let percent = |share: Option<f64>| share.map_or("-".into(), |x| format!("{:.2} %", 100.0 * x));
    let ms = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.2} ms"));
    let rows = [
        ("duration", format!("{:.1} s", s.sender.duration_s)),
        ("frames", s.sender.frames_sent.to_string()),
        ("RTP packets", s.sender.sent.rtp_packets.to_string()),
        ("sent", mbps(s.sender.sent_rate_bps)),
        ("received", mbps(s.receiver.received_rate_bps)),
        ("lost", percent(s.receiver.loss)),
        ("round trip", ms(s.sender.rtt_ms)),
        ("last target", s.sender.target_bps.map_or("-".into(), |t| mbps(t as f64))),
    ];
    rows.iter().map(|(name, value)| format!("{name:<12} {value}\n")).collect()
}
