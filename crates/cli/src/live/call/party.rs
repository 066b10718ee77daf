//! `weir live call listen` and `weir live call connect`.

use super::feed::Feed;
use super::party_args::{described, direction, failure, join, remotes};
use super::progress::Progress;
use super::report::Report;
use super::streams::picture_size;
use super::{ending, map, party_streams, video};
use crate::Done;
use crate::args::live::call::{MediaArgs, PartyArgs};
use crate::output::{Failure, print, print_report, remark};
use crate::session::Session;
use crate::tables::pairs;
use weir_lab::scenario::InputError;
use weir_live::call::{PartyMedia, PartySummary, VideoCall, run_party};
use weir_media::{EncoderConfig, VideoCodec};

/// The size of pictures that an end which only receives agrees on: 1280x720, or --size if that is larger.
fn agreeable(args: &MediaArgs) -> Result<(u32, u32), Failure> {
    let (width, height) = picture_size(args)?;
    Ok(if width * height > 1_280 * 720 { (width, height) } else { (1_280, 720) })
}

pub(super) fn call(session: &Session, args: &PartyArgs, listens: bool) -> Done {
    if let Some(list) = &args.streams.streams {
        return party_streams::call(session, args, list, listens);
    }
    let config = args.media.config(&session.registry)?;
    let Some(preferred) = args.media.codec.codec() else {
        let what = "model: calls between processes are of h264, vp8 or vp9; loopback has the model";
        return Err(InputError::whole("--codec", what).into());
    };
    let direction = direction(args, listens);
    let map = map::of_party(args, direction)?;
    // The encoder has to be there before the call is offered; what is received may be in any codec that is built in.
    let feed = Feed::new(session);
    let send = if direction.sends() { Some(video::sending(&args.media, preferred, &feed, None)?) } else { None };
    let (width, height) = match &send {
        Some(s) => s.camera.size(),
        None => agreeable(&args.media)?,
    };
    let rate = match &send {
        Some(s) => s.camera.rate(),
        None => args.media.fps,
    };
    let mut codecs = vec![preferred];
    if send.is_none() {
        let others = VideoCodec::ALL.into_iter().filter(|c| *c != preferred && weir_codecs::decoder(*c).is_ok());
        codecs.extend(others);
    }
    let pictures = EncoderConfig { frame_rate: rate.as_f64(), ..EncoderConfig::live(width, height) };
    let media = vec![PartyMedia::video(codecs, pictures, direction)];
    let party = described(args, config, media)?;
    let joined = join(session, args, &party, listens)?;
    let a = &joined.agreement;
    if !args.output.quiet {
        let keys = a.keys.as_ref().map_or("in the clear", |k| k.0.suite().name());
        let codecs: Vec<&str> = a.streams.iter().map(|s| s.codec.name()).collect();
        remark(&format!("{} with {}, {keys}; Ctrl-C ends the call", codecs.join(", "), remotes(a)));
        map::remark_agreement(map.as_ref(), a);
    }
    let codec = a.streams.iter().find_map(|s| s.codec.video());
    let receive = match codec.filter(|_| a.receives()) {
        Some(codec) => Some(video::receiving(&args.media, codec, rate, false, (width.max(1_280), height.max(720)))?),
        None => None,
    };
    let mut watching = (Progress::new(args.output.quiet), map);
    let video = VideoCall { send, receive };
    let duration = args.media.duration();
    feed.call_begins(duration);
    let summary = run_party(joined, &party.call, &session.registry, video, duration, &session.stop, &mut watching);
    watching.0.finish();
    let summary = summary.map_err(failure)?;
    let recorded = summary
        .received
        .as_ref()
        .map_or(Ok(()), |r| video::recorded(&args.media, args.output.quiet, r.recorded, r.record_error.as_deref()));
    if args.output.json { print_report("call", &Report::Party(&summary)) } else { print(&table(&summary)) }?;
    ending::outcome(&summary.end).and(recorded).and(feed.check())
}

fn table(s: &PartySummary) -> String {
    let mbps = |bps: f64| format!("{:.3} Mbit/s", bps / 1e6);
    let mut rows = vec![
        ("duration", format!("{:.1} s", s.end.duration_s)),
        ("sent", format!("{} RTP packets, {}", s.end.sent.rtp_packets, mbps(s.end.sent_rate_bps))),
        ("received", format!("{} RTP packets, {}", s.end.received.rtp_packets, mbps(s.end.received_rate_bps))),
        ("round trip", s.end.rtt_ms.map_or("-".into(), |x| format!("{x:.2} ms"))),
    ];
    rows.extend(ending::paths(&s.end));
    if let Some(d) = &s.end.dccp {
        let ccid = d.ccid.map_or("-".into(), |n| n.to_string());
        rows.push(("DCCP", format!("CCID {ccid}, {} packets of {} frames refused", d.rejected, d.frames_rejected)));
    }
    if let Some(v) = &s.sent {
        rows.push(("pictures", format!("{}, {} skipped, {} dropped", v.pictures, v.skipped, v.dropped)));
    }
    if let Some(v) = &s.received {
        rows.push(("shown", format!("{} intact, {} concealed, {:.1} a second", v.intact, v.concealed, v.shown_rate)));
        rows.push(("not shown", format!("{} undecodable, {} missed", v.undecodable, v.missed)));
    }
    rows.extend(ending::rows(&s.end));
    pairs(&rows)
}
