//! `weir call loopback --streams`: several streams under one controller.

use super::progress::Progress;
use super::video::{clip_error, codec_error};
use crate::Done;
use crate::args::call::{LoopbackArgs, MediaArgs};
use crate::output::{Failure, print, print_json};
use crate::session::Session;
use weir_cc::Transport;
use weir_lab::measure::scenario::InputError;
use weir_live::call::{
    Camera, StreamSend, StreamSource, StreamSummary, StreamsSummary, VideoReceive, VideoSend, loopback_streams,
    video_demand,
};
use weir_media::audio::{
    AudioCodec, AudioConfig, AudioEncoderConfig, AudioLimits, AudioSource, Channels, EncodedAudio, SpeechClip,
};
use weir_media::clip::{Character, Clip, ClipSpec, parse_size};
use weir_media::{EncoderConfig, OnDamage, SimulcastCamera, Source, VideoCodec};
use weir_session::Label;
use weir_session::allocation::Demand;
use weir_units::{DataSize, Timestamp};

/// Headers of a packet of audio, of which its share of the target has to hold some: IPv4, UDP, RTP with two header extensions, a tag of SRTP.
const AUDIO_HEADERS: DataSize = DataSize::from_bytes(28 + 24 + 16);
/// Most encodings of the camera: at 8 times fewer pixels a side there is little left to see.
const MAX_ENCODINGS: u32 = 4;

/// A stream of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    Audio,
    /// With so many encodings.
    Camera(u32),
    Screen,
}

fn parse(list: &str) -> Result<Vec<Wanted>, String> {
    let mut all = Vec::new();
    for item in list.split(',') {
        let wanted = match item.trim().split_once(':') {
            None if item.trim() == "audio" => Wanted::Audio,
            None if item.trim() == "screen" => Wanted::Screen,
            None if item.trim() == "camera" => Wanted::Camera(1),
            Some(("camera", n)) => match n.parse() {
                Ok(n @ 1..=MAX_ENCODINGS) => Wanted::Camera(n),
                _ => return Err(format!("{item}: expected 1 to {MAX_ENCODINGS} encodings")),
            },
            _ => return Err(format!("{item:?}: expected audio, camera, camera:N or screen, separated by commas")),
        };
        if all.iter().any(|w| std::mem::discriminant(w) == std::mem::discriminant(&wanted)) {
            return Err(format!("{item}: there can be one of a kind"));
        }
        all.push(wanted);
    }
    Ok(all)
}

/// The speech clip through Opus, or the model of an encoder where Opus is not built in.
fn audio() -> Result<StreamSend, Failure> {
    let limits = AudioLimits::default();
    let wrong = |e: &dyn ToString| Failure::from(InputError::whole("--streams", e.to_string()));
    let config = AudioEncoderConfig { dtx: true, ..AudioEncoderConfig::default() };
    let codec = AudioCodec::Opus;
    let both = weir_codecs::audio_encoder(codec, &config)
        .and_then(|encoder| Ok((encoder, weir_codecs::audio_decoder(codec, Channels::Mono)?)));
    let (name, source) = match both {
        Ok((encoder, decoder)) => {
            let clip = Box::new(SpeechClip::new(1));
            let source = EncodedAudio::new(clip, encoder, limits, Timestamp::ZERO).map_err(|e| wrong(&e))?;
            ("audio (Opus)", StreamSource::Audio(Source::Custom(Box::new(source)), Some(decoder)))
        }
        Err(_) => {
            let model = AudioSource::new(AudioConfig::default(), Timestamp::ZERO, 1).map_err(|e| wrong(&e))?;
            ("audio (model)", StreamSource::Audio(model.into(), None))
        }
    };
    let (least, most) = (limits.least(AUDIO_HEADERS), limits.most(AUDIO_HEADERS));
    let demand = Demand { least, most, ..Demand::default() };
    Ok(StreamSend { name: name.into(), mid: Label::new("audio"), rid: None, demand, source })
}

/// A built-in clip through an encoder of its own, in this size.
fn video(args: &MediaArgs, codec: VideoCodec, clip: &str, size: (u32, u32)) -> Result<(Demand, StreamSource), Failure> {
    let rate = args.frame_rate()?;
    let full = parse_size(&args.size).map_err(|e| InputError::whole("--size", e.to_string()))?;
    let Some(character) = Character::by_name(clip) else {
        let names = Character::ALL.map(Character::name).join(", ");
        return Err(clip_error(format!("{clip}: --streams takes built-in clips: {names}")));
    };
    let clip = Clip::new(ClipSpec::new(character, full.0, full.1, rate)).map_err(clip_error)?;
    let mut view = SimulcastCamera::new(Box::new(clip)).view(size.0, size.1).map_err(clip_error)?;
    let camera = Camera::reel(&mut view, rate).map_err(clip_error)?;
    let (least, most) = video_demand(size.0, size.1);
    let config = EncoderConfig {
        frame_rate: rate.as_f64(),
        bit_rate: least,
        key_interval: args.key_interval,
        threads: args.threads,
        ..EncoderConfig::live(size.0, size.1)
    };
    let send = VideoSend { camera, encoder: weir_codecs::encoder(codec, &config).map_err(codec_error)? };
    let decoder = weir_codecs::decoder(codec).map_err(codec_error)?;
    let receive = VideoReceive { decoder, on_damage: OnDamage::Show, record: None, quality: false };
    Ok((Demand { least, most, ..Demand::default() }, StreamSource::Video(send, receive)))
}

fn streams(args: &LoopbackArgs, list: &[Wanted]) -> Result<Vec<StreamSend>, Failure> {
    let media = &args.media;
    let Some(codec) = media.codec.codec() else {
        return Err(InputError::whole("--codec", "model: --streams wants h264, vp8 or vp9").into());
    };
    let (width, height) = parse_size(&media.size).map_err(|e| InputError::whole("--size", e.to_string()))?;
    let mut all = Vec::new();
    for wanted in list {
        match *wanted {
            Wanted::Audio => all.push(audio()?),
            Wanted::Camera(count) => {
                for n in 0..count {
                    // Each encoding has half the width and height of the one above.
                    let half = |side: u32| ((side >> (count - 1 - n)) & !1).max(2);
                    let size = (half(width), half(height));
                    let (demand, source) = video(media, codec, &media.clip, size)?;
                    let name = format!("camera {}x{}", size.0, size.1);
                    let (mid, rid) = (Label::new("camera"), Label::new(&n.to_string()).filter(|_| count > 1));
                    let demand = Demand { simulcast: rid.map(|_| 1), ..demand };
                    all.push(StreamSend { name, mid, rid, demand, source });
                }
            }
            Wanted::Screen => {
                let (demand, source) = video(media, codec, &args.screen_clip, (width, height))?;
                let name = format!("screen {width}x{height}");
                all.push(StreamSend { name, mid: Label::new("screen"), rid: None, demand, source });
            }
        }
    }
    Ok(all)
}

pub(super) fn call(session: &Session, args: &LoopbackArgs, list: &str) -> Done {
    let config = args.media.config(&session.registry)?;
    let list = parse(list).map_err(|e| InputError::whole("--streams", e))?;
    if config.transport(&session.registry) != Transport::Udp {
        return Err(InputError::whole("--streams", "several streams go over plain datagrams, not over DCCP").into());
    }
    if args.quality || args.media.record.is_some() {
        return Err(InputError::whole("--streams", "--quality and --record are for calls of one stream").into());
    }
    let streams = streams(args, &list)?;
    let mut progress = Progress::new(args.output.quiet);
    let duration = args.media.duration();
    let summary = loopback_streams(&config, streams, &session.registry, duration, &session.stop, &mut progress);
    progress.finish();
    let summary = summary.map_err(Failure::work)?;
    if args.output.json { print_json(&summary) } else { print(&table(&summary)) }
}

fn row(s: &StreamSummary) -> String {
    let mut text = format!(
        "{:.0} kbit/s, {} packets, {} lost, switched {} times",
        s.sent_rate_bps / 1e3,
        s.sent_packets,
        s.lost_packets,
        s.switches
    );
    if let Some(a) = &s.audio {
        let share = a.concealed_share.map_or("-".into(), |x| format!("{:.2} %", 100.0 * x));
        let delay = a.delay_ms.map_or("-".into(), |x| format!("{x:.0} ms"));
        text += &format!("; {:.1} s played, {share} concealed, {} late, delay {delay}", a.played_s, a.late);
    }
    if let Some(v) = &s.video {
        let (shown, missed) = (v.received.intact + v.received.concealed, v.received.missed);
        text += &format!("; {} frames, {shown} shown, {missed} missed", v.sent.frames);
        if let Some(t) = v.received.glass_to_glass {
            text += &format!("; glass to glass median {:.0} ms, 95 % {:.0} ms", t.p50_ms, t.p95_ms);
        }
    }
    text
}

fn table(s: &StreamsSummary) -> String {
    let mbps = |bps: f64| format!("{:.3} Mbit/s", bps / 1e6);
    let mut rows = vec![
        ("duration", format!("{:.1} s", s.sender.duration_s)),
        ("sent", mbps(s.sender.sent_rate_bps)),
        ("last target", s.sender.target_bps.map_or("-".into(), |t| mbps(t as f64))),
        ("round trip", s.sender.rtt_ms.map_or("-".into(), |x| format!("{x:.2} ms"))),
    ];
    rows.extend(s.streams.iter().map(|s| (s.name.as_str(), row(s))));
    if let Some(l) = &s.lips {
        let (mean, greatest) = (l.mean_ms, l.greatest_ms);
        rows.push(("lip offset", format!("mean {mean:.1} ms, greatest {greatest:.1} ms, {} samples", l.samples)));
    }
    let width = rows.iter().map(|r| r.0.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:<width$}  {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_streams_are_read_and_wrong_ones_refused() {
        let [audio, screen] = [Wanted::Audio, Wanted::Screen];
        assert_eq!(parse("audio,camera:2,screen"), Ok(vec![audio, Wanted::Camera(2), screen]));
        assert_eq!(parse("camera, audio"), Ok(vec![Wanted::Camera(1), audio]));
        for bad in ["", "audio,", "video", "camera:0", "camera:5", "camera:x", "audio:2", "screen,screen"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
