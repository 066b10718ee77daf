//! `weir live call listen` and `weir live call connect` with `--streams`: several streams between two processes.

use super::party_args::{described, direction, failure, join, remotes};
use super::progress::Progress;
use super::report::Report;
use super::streams::{
    Wanted, audio_demand, checked, filming, heard, hearing, lip_offset, picture_size, showing, speech, video_codec,
};
use super::{ending, map};
use crate::Done;
use crate::args::live::call::PartyArgs;
use crate::output::{Failure, print, print_report, remark};
use crate::session::Session;
use crate::tables::pairs;
use weir_live::call::{
    IncomingPlan, PartyCoding, PartyMedia, PartyReceive, PartyRun, PartySend, PartySource, PartyStreamsSummary,
    ReceivedStream, SentStream, run_party_streams,
};
use weir_live::sdp::{Direction, StreamCodec};
use weir_media::audio::OpusParams;
use weir_media::{EncoderConfig, VideoCodec};

/// Each stream of the list as this end describes it.
fn media(args: &PartyArgs, list: &[Wanted], direction: Direction) -> Result<Vec<PartyMedia>, Failure> {
    let (preferred, full) = (video_codec(&args.media)?, picture_size(&args.media)?);
    let mut codecs = vec![preferred];
    // Received media may be in any codec that is built in.
    if !direction.sends() {
        codecs.extend(VideoCodec::ALL.into_iter().filter(|c| *c != preferred && weir_codecs::decoder(*c).is_ok()));
    }
    let frame_rate = args.media.fps.as_f64();
    let pictures = EncoderConfig { frame_rate, ..EncoderConfig::live(full.0, full.1) };
    let describe = |wanted: &Wanted| {
        let coding = match wanted {
            Wanted::Audio => {
                // Both have to be built in before a call is offered.
                hearing()?;
                PartyCoding::Audio(OpusParams { useinbandfec: Some(true), usedtx: Some(true), ..OpusParams::default() })
            }
            Wanted::Camera(_) | Wanted::Screen => {
                let mut sends = wanted.sizes(full);
                sends.reverse();
                let (codecs, pictures, receives) = (codecs.clone(), pictures, sends.len());
                PartyCoding::Video { codecs, pictures, sends, receives }
            }
        };
        Ok(PartyMedia { mid: wanted.mid(), direction, coding })
    };
    list.iter().map(describe).collect()
}

/// The streams that this end could send, with their encoders.
fn sends(args: &PartyArgs, list: &[Wanted]) -> Result<Vec<PartySend>, Failure> {
    let (codec, full) = (video_codec(&args.media)?, picture_size(&args.media)?);
    let mut all = Vec::new();
    for (own, &wanted) in list.iter().enumerate() {
        if wanted == Wanted::Audio {
            let (name, demand, source) = ("audio".into(), audio_demand(), PartySource::Audio(speech()?));
            all.push(PartySend { own, encoding: 0, name, demand, source });
        }
        let clip = if wanted == Wanted::Screen { &args.streams.screen_clip } else { &args.media.clip };
        for (encoding, size) in wanted.sizes(full).into_iter().rev().enumerate() {
            let (demand, send) = filming(&args.media, codec, clip, size, None)?;
            all.push(PartySend { own, encoding, name: wanted.name(size), demand, source: PartySource::Video(send) });
        }
    }
    Ok(all)
}

fn receive(plan: &IncomingPlan) -> Result<PartyReceive, Failure> {
    Ok(match plan.codec {
        StreamCodec::Audio(_) => PartyReceive::Audio(hearing()?),
        StreamCodec::Video(codec) => PartyReceive::Video(showing(codec)?),
    })
}

pub(super) fn call(session: &Session, args: &PartyArgs, list: &str, listens: bool) -> Done {
    let config = args.media.config(&session.registry)?;
    let list = checked(list, &config, session, &args.media)?;
    let direction = direction(args, listens);
    let map = map::of_party(args, direction)?;
    let sends = if direction.sends() { sends(args, &list)? } else { Vec::new() };
    let party = described(args, config, media(args, &list, direction)?)?;
    let joined = join(session, args, &party, listens)?;
    let a = &joined.agreement;
    if !args.output.quiet {
        let keys = a.keys.as_ref().map_or("in the clear", |k| k.0.suite().name());
        let names: Vec<String> = (a.streams.iter().filter(|s| s.direction != Direction::Inactive))
            .map(|s| s.mid.map_or_else(|| s.codec.to_string(), |mid| format!("{mid} ({})", s.codec)))
            .collect();
        remark(&format!("{} with {}, {keys}; Ctrl-C ends the call", names.join(", "), remotes(a)));
        map::remark_agreement(map.as_ref(), a);
        if !a.refused.is_empty() {
            remark(&format!("refused: {}", a.refused.join(", ")));
        }
    }
    let receives = joined.incoming().iter().map(receive).collect::<Result<Vec<_>, _>>()?;
    let mut watching = (Progress::new(args.output.quiet), map);
    let (duration, stop) = (args.media.duration(), &session.stop);
    let run = PartyRun { config: &party.call, registry: &session.registry, sends, receives, duration, stop };
    let summary = run_party_streams(joined, run, &mut watching);
    watching.0.finish();
    let summary = summary.map_err(failure)?;
    if args.output.json { print_report("call", &Report::PartyStreams(&summary)) } else { print(&table(&summary)) }?;
    ending::outcome(&summary.end)
}

fn sent(s: &SentStream) -> String {
    let mut text = format!("{:.0} kbit/s, {} packets, switched {} times", s.rate_bps / 1e3, s.packets, s.switches);
    if let Some(v) = &s.video {
        text += &format!("; {} frames, {} skipped, {} dropped", v.frames, v.skipped, v.dropped);
    }
    text
}

fn received(s: &ReceivedStream) -> String {
    let mut text = format!("{} packets, {} lost", s.packets, s.lost_packets);
    if let Some(a) = &s.audio {
        text += &format!("; {}", heard(a));
    }
    if let Some(v) = &s.video {
        let (shown, missed) = (v.intact + v.concealed, v.missed);
        text += &format!("; {shown} shown, {missed} missed, {} undecodable", v.undecodable);
        if let Some(t) = v.glass_to_glass {
            text += &format!("; glass to glass median {:.0} ms, 95 % {:.0} ms", t.p50_ms, t.p95_ms);
        }
    }
    text
}

fn table(s: &PartyStreamsSummary) -> String {
    let mbps = |bps: f64| format!("{:.3} Mbit/s", bps / 1e6);
    let mut rows = vec![
        ("duration".to_owned(), format!("{:.1} s", s.end.duration_s)),
        ("sent".into(), mbps(s.end.sent_rate_bps)),
        ("received".into(), mbps(s.end.received_rate_bps)),
        ("last target".into(), s.end.target_bps.map_or("-".into(), |t| mbps(t as f64))),
        ("round trip".into(), s.end.rtt_ms.map_or("-".into(), |x| format!("{x:.2} ms"))),
    ];
    rows.extend(s.sent.iter().map(|s| (format!("to: {}", s.name), sent(s))));
    rows.extend(s.received.iter().map(|s| (format!("from: {}", s.name), received(s))));
    if let Some(l) = &s.lips {
        rows.push(("lip offset".into(), lip_offset(l)));
    }
    rows.extend(ending::rows(&s.end).into_iter().map(|(name, value)| (name.to_owned(), value)));
    pairs(&rows)
}
