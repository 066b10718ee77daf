//! `weir live call`.

mod ending;
mod feed;
mod map;
mod party;
mod party_args;
mod party_streams;
mod progress;
mod report;
mod streams;
mod video;

use crate::Done;
use crate::args::live::call::{CallCommand, LoopbackArgs, MediaArgs};
use crate::output::{Failure, print, print_report};
use crate::session::Session;
use crate::tables::pairs;
use feed::Feed;
use progress::Progress;
pub(crate) use report::Report;
#[cfg(feature = "webrtc")]
pub(super) use report::WebrtcReport;
use weir_lab::scenario::InputError;
use weir_live::call::{CpuShares, EncodeSummary, LoopbackSummary, Times, loopback, loopback_video};
use weir_media::utility::{Preference, Utility};

pub(crate) fn call(session: &Session, command: &CallCommand) -> Done {
    match command {
        CallCommand::Loopback(a) => over_loopback(session, a),
        CallCommand::Listen(a) => party::call(session, a, true),
        CallCommand::Connect(a) => party::call(session, a, false),
    }
}

/// The utility of a call of these pictures, if there is a preference.
fn utility(
    media: &MediaArgs,
    prefer: Option<Preference>,
    size: (u32, u32),
    frame_rate: f64,
) -> Result<Option<Utility>, Failure> {
    if prefer.is_some() && !media.layering()?.is_single() {
        return Err(InputError::whole("--prefer, --layers", "a call drops layers, or codes smaller pictures").into());
    }
    Ok(prefer.map(|preference| Utility { preference, size, frame_rate }))
}

fn over_loopback(session: &Session, args: &LoopbackArgs) -> Done {
    if let Some(list) = &args.streams.streams {
        return streams::call(session, args, list);
    }
    let mut config = args.media.config(&session.registry)?;
    let mut map = map::of(&args.media.map, 1)?;
    let duration = args.media.duration();
    let feed = Feed::new(session);
    let video = match args.media.codec.codec() {
        Some(codec) => {
            let send = video::sending(&args.media, codec, &feed, args.prefer)?;
            config.frame_rate = send.camera.rate().as_f64();
            config.utility = utility(&args.media, args.prefer, send.camera.size(), config.frame_rate)?;
            let receive = video::receiving(&args.media, codec, send.camera.rate(), args.quality, send.camera.size())?;
            Some((send, receive))
        }
        None if args.prefer.is_some() => {
            return Err(InputError::whole("--prefer", "decides on pictures; --codec model has none").into());
        }
        None => None,
    };
    let mut progress = Progress::new(args.output.quiet);
    feed.call_begins(duration);
    let ends = (&mut progress, &mut map);
    let summary = match video {
        Some(video) => loopback_video(&config, video, &session.registry, duration, &session.stop, ends),
        None => loopback(&config, &session.registry, duration, &session.stop, ends),
    };
    progress.finish();
    let summary = summary.map_err(Failure::work)?;
    let recorded = summary.video.as_ref().map_or(Ok(()), |v| {
        video::recorded(&args.media, args.output.quiet, v.received.recorded, v.received.record_error.as_deref())
    });
    if args.output.json { print_report("call", &Report::Loopback(&summary)) } else { print(&table(&summary)) }?;
    ending::outcome(&summary.sender).and(recorded).and(feed.check())
}

/// The size of the pictures, where it follows a preference.
fn shape(sent: &EncodeSummary) -> String {
    let (of, changes) = (sent.size.0, sent.shape_changes);
    sent.width.map_or_else(String::new, |w| format!("; mean width {w:.0} of {of}, changed {changes} times"))
}

fn table(s: &LoopbackSummary) -> String {
    let mbps = |bps: f64| format!("{:.3} Mbit/s", bps / 1e6);
    let percent = |share: Option<f64>| share.map_or("-".into(), |x| format!("{:.2} %", 100.0 * x));
    let ms = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.2} ms"));
    let mut rows = vec![
        ("duration", format!("{:.1} s", s.sender.duration_s)),
        ("frames", s.sender.frames_sent.to_string()),
        ("RTP packets", s.sender.sent.rtp_packets.to_string()),
        ("sent", mbps(s.sender.sent_rate_bps)),
        ("received", mbps(s.receiver.received_rate_bps)),
        ("lost", percent(s.receiver.loss)),
        ("round trip", ms(s.sender.rtt_ms)),
        ("last target", s.sender.target_bps.map_or("-".into(), |t| mbps(t as f64))),
    ];
    if let Some(d) = &s.sender.dccp {
        let ccid = d.ccid.map_or("-".into(), |n| n.to_string());
        let rate = d.rate_bps.map_or("-".into(), |r| mbps(r as f64));
        rows.extend([
            ("DCCP", format!("CCID {ccid}, {rate}, round trip {}", ms(d.rtt_ms))),
            ("refused", format!("{} packets of {} frames", d.rejected, d.frames_rejected)),
        ]);
    }
    if let Some(v) = &s.video {
        let times = |t: Option<Times>| {
            t.map_or("-".into(), |t| {
                let (p50, p95, p99, max) = (t.p50_ms, t.p95_ms, t.p99_ms, t.max_ms);
                format!("median {p50:.1} ms, 95 % {p95:.1} ms, 99 % {p99:.1} ms, most {max:.1} ms")
            })
        };
        let (sent, got) = (&v.sent, &v.received);
        let codec = format!("{} {}x{} by {}", sent.codec, sent.size.0, sent.size.1, sent.library);
        let shown = format!("{} intact, {} concealed, {:.1} a second", got.intact, got.concealed, got.shown_rate);
        let lacking = format!("{} undecodable, {} missed, {} overrun", got.undecodable, got.missed, got.overrun);
        let cpu = |c: Option<CpuShares>| {
            let pc = |x: f64| format!("{:.1} %", 100.0 * x);
            c.map_or("-".into(), |c| format!("session {}, SRTP {}, socket {}", pc(c.session), pc(c.srtp), pc(c.socket)))
        };
        rows.extend([
            ("codec", codec),
            (
                "pictures",
                format!("{}, {} skipped, {} dropped{}", sent.pictures, sent.skipped, sent.dropped, shape(sent)),
            ),
            ("shown", shown),
            ("not shown", lacking),
            ("glass to glass", times(got.glass_to_glass)),
            ("encoding", times(sent.encoding)),
            ("decoding", times(got.decoding)),
            ("PSNR (Y)", got.psnr_y_db.map_or("-".into(), |p| format!("{p:.2} dB of {} pictures", got.compared))),
            ("CPU", format!("encoder {}, decoder {}", percent(Some(sent.cpu)), percent(Some(got.cpu)))),
            ("CPU, sender", cpu(s.sender.cpu)),
            ("CPU, receiver", cpu(s.receiver.cpu)),
        ]);
    }
    rows.extend(ending::rows(&s.receiver));
    pairs(&rows)
}
