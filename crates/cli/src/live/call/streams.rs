//! `weir live call loopback --streams`: several streams under one controller.

use super::progress::Progress;
use super::report::Report;
use super::video::{clip_error, codec_error, encoder};
use crate::Done;
use crate::args::live::call::{LoopbackArgs, MediaArgs};
use crate::output::{Failure, print, print_report};
use crate::session::Session;
use crate::tables::pairs;
use weir_cc::Transport;
use weir_lab::scenario::InputError;
use weir_live::call::{
    AudioSummary, CallConfig, Camera, LipSummary, StreamSend, StreamSource, StreamSummary, StreamsSummary,
    VideoReceive, VideoSend, loopback_streams,
};
use weir_media::audio::{
    AudioCodec, AudioConfig, AudioDecoder, AudioEncoderConfig, AudioLimits, AudioSource, Channels, EncodedAudio,
    SpeechClip,
};
use weir_media::clip::{Character, Clip, ClipSpec, parse_size};
use weir_media::utility::Utility;
use weir_media::{EncoderConfig, LayerSelection, OnDamage, SimulcastCamera, Source, VideoCodec, useful_rates};
use weir_session::Label;
use weir_session::allocation::Demand;
use weir_units::{DataSize, Timestamp};

/// Headers of an audio packet, for which its share of the target needs room: IPv4, UDP, RTP with two header extensions,
/// a tag of SRTP.
const AUDIO_HEADERS: DataSize = DataSize::from_bytes(28 + 24 + 16);
/// Maximum encodings of the camera: at an eighth of the width and height little detail remains.
const MAX_ENCODINGS: u32 = 4;

/// A stream of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    Audio,
    /// With this many encodings.
    Camera(u32),
    Screen,
}

pub(super) fn parse(list: &str) -> Result<Vec<Wanted>, String> {
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

impl Wanted {
    /// The name of its section.
    pub(super) fn mid(self) -> Option<Label> {
        Label::new(match self {
            Self::Audio => "audio",
            Self::Camera(_) => "camera",
            Self::Screen => "screen",
        })
    }

    /// Sizes of its pictures, the smallest encoding first: each has half the width and height of the one above.
    pub(super) fn sizes(self, (width, height): (u32, u32)) -> Vec<(u32, u32)> {
        let count = match self {
            Self::Audio => 0,
            Self::Camera(count) => count,
            Self::Screen => 1,
        };
        let half = |side: u32, n: u32| ((side >> (count - 1 - n)) & !1).max(2);
        (0..count).map(|n| (half(width, n), half(height, n))).collect()
    }

    /// The name of pictures of this size in the results.
    pub(super) fn name(self, (width, height): (u32, u32)) -> String {
        let mid = self.mid().map_or_else(String::new, |mid| mid.to_string());
        format!("{mid} {width}x{height}")
    }
}

pub(super) fn audio_demand() -> Demand {
    let limits = AudioLimits::default();
    Demand { least: limits.least(AUDIO_HEADERS), most: limits.most(AUDIO_HEADERS), ..Demand::default() }
}

fn wrong(e: impl ToString) -> Failure {
    InputError::whole("--streams", e.to_string()).into()
}

/// The speech clip through Opus.
pub(super) fn speech() -> Result<Source, Failure> {
    let config = AudioEncoderConfig { dtx: true, ..AudioEncoderConfig::default() };
    let encoder = weir_codecs::audio_encoder(AudioCodec::Opus, &config).map_err(wrong)?;
    let clip = Box::new(SpeechClip::new(1));
    let source = EncodedAudio::new(clip, encoder, AudioLimits::default(), Timestamp::ZERO).map_err(wrong)?;
    Ok(Source::Custom(Box::new(source)))
}

pub(super) fn hearing() -> Result<Box<dyn AudioDecoder>, Failure> {
    weir_codecs::audio_decoder(AudioCodec::Opus, Channels::Mono).map_err(wrong)
}

/// The speech clip through Opus, or the model of an encoder if Opus is not built in.
fn audio() -> Result<StreamSend, Failure> {
    let (name, source) = match (speech(), hearing()) {
        (Ok(source), Ok(decoder)) => ("audio (Opus)", StreamSource::Audio(source, Some(decoder))),
        _ => {
            let model = AudioSource::new(AudioConfig::default(), Timestamp::ZERO, 1).map_err(wrong)?;
            ("audio (model)", StreamSource::Audio(model.into(), None))
        }
    };
    Ok(StreamSend { name: name.into(), mid: Wanted::Audio.mid(), rid: None, demand: audio_demand(), source })
}

/// A built-in clip through its own encoder, in this size.
pub(super) fn filming(
    args: &MediaArgs,
    codec: VideoCodec,
    clip: &str,
    size: (u32, u32),
    utility: Option<Utility>,
) -> Result<(Demand, VideoSend), Failure> {
    let rate = args.fps;
    let full = picture_size(args)?;
    let Some(character) = Character::by_name(clip) else {
        let names = Character::ALL.map(Character::name).join(", ");
        return Err(clip_error(format!("{clip}: --streams takes built-in clips: {names}")));
    };
    let clip = Clip::new(ClipSpec::new(character, full.0, full.1, rate)).map_err(clip_error)?;
    let mut view = SimulcastCamera::new(Box::new(clip)).view(size.0, size.1).map_err(clip_error)?;
    let camera = Camera::reel(&mut view, rate).map_err(clip_error)?;
    let (least, most) = useful_rates(size.0, size.1);
    let layering = args.layering()?;
    // A stream of layers continues with the base layer alone.
    let needed = match utility {
        Some(utility) => utility.least(),
        None if layering.is_single() => least,
        None => LayerSelection::new(layering, size).least(),
    };
    let config = EncoderConfig {
        frame_rate: rate.as_f64(),
        bit_rate: least,
        key_interval: args.key_interval,
        threads: args.encoder_threads,
        layering,
        ..EncoderConfig::live(size.0, size.1)
    };
    let send = VideoSend { camera, encoder: encoder(codec, &config, utility.map(|u| u.preference))? };
    Ok((Demand { least: needed, most, ..Demand::default() }, send))
}

pub(super) fn showing(codec: VideoCodec) -> Result<VideoReceive, Failure> {
    let decoder = weir_codecs::decoder(codec).map_err(codec_error)?;
    Ok(VideoReceive { decoder, on_damage: OnDamage::Show, record: None, quality: false })
}

pub(super) fn picture_size(args: &MediaArgs) -> Result<(u32, u32), Failure> {
    Ok(parse_size(&args.size).map_err(|e| InputError::whole("--size", e.to_string()))?)
}

pub(super) fn video_codec(args: &MediaArgs) -> Result<VideoCodec, Failure> {
    let none = || InputError::whole("--codec", "model: --streams needs h264, vp8 or vp9");
    Ok(args.codec.codec().ok_or_else(none)?)
}

fn streams(args: &LoopbackArgs, list: &[Wanted], utility: Option<Utility>) -> Result<Vec<StreamSend>, Failure> {
    let media = &args.media;
    let (codec, full) = (video_codec(media)?, picture_size(media)?);
    let mut all = Vec::new();
    for &wanted in list {
        if wanted == Wanted::Audio {
            all.push(audio()?);
        }
        let clip = if wanted == Wanted::Screen { &args.streams.screen_clip } else { &media.clip };
        let sizes = wanted.sizes(full);
        for (n, &size) in sizes.iter().enumerate() {
            let (demand, send) = filming(media, codec, clip, size, utility)?;
            let rid = Label::new(&n.to_string()).filter(|_| sizes.len() > 1);
            let demand = Demand { simulcast: rid.map(|_| 1), ..demand };
            let source = StreamSource::Video(send, showing(codec)?);
            all.push(StreamSend { name: wanted.name(size), mid: wanted.mid(), rid, demand, source });
        }
    }
    Ok(all)
}

/// The list of `--streams`, checked against the other options.
pub(super) fn checked(
    list: &str,
    config: &CallConfig,
    session: &Session,
    media: &MediaArgs,
) -> Result<Vec<Wanted>, Failure> {
    if config.transport(&session.registry) != Transport::Udp {
        return Err(wrong("several streams go over plain datagrams, not over DCCP"));
    }
    if media.record.is_some() {
        return Err(wrong("--record is for calls of one stream"));
    }
    parse(list).map_err(wrong)
}

pub(super) fn call(session: &Session, args: &LoopbackArgs, list: &str) -> Done {
    let mut config = args.media.config(&session.registry)?;
    let list = checked(list, &config, session, &args.media)?;
    if args.prefer.is_some() && (list.contains(&Wanted::Screen) || !list.contains(&Wanted::Camera(1))) {
        return Err(
            InputError::whole("--prefer", "decides on the pictures of one camera: --streams audio,camera").into()
        );
    }
    let fps = args.media.fps.as_f64();
    config.utility = super::utility(&args.media, args.prefer, picture_size(&args.media)?, fps)?;
    if args.quality || !args.media.map.map.is_empty() {
        return Err(wrong("--quality and --map are for calls of one stream"));
    }
    let streams = streams(args, &list, config.utility)?;
    let mut progress = Progress::new(args.output.quiet);
    let duration = args.media.duration();
    let summary = loopback_streams(&config, streams, &session.registry, duration, &session.stop, &mut progress);
    progress.finish();
    let summary = summary.map_err(Failure::work)?;
    if args.output.json { print_report("call", &Report::LoopbackStreams(&summary)) } else { print(&table(&summary)) }?;
    super::ending::outcome(&summary.sender)
}

fn row(s: &StreamSummary) -> String {
    let padding = match s.padding_rate_bps / 1e3 {
        kbps if kbps >= 0.5 => format!(" ({kbps:.0} of padding)"),
        _ => String::new(),
    };
    let mut text = format!(
        "{:.0} kbit/s{padding}, {} packets, {} lost, switched {} times",
        s.sent_rate_bps / 1e3,
        s.sent_packets,
        s.lost_packets,
        s.switches
    );
    if let Some(a) = &s.audio {
        text += &format!("; {}", heard(a));
    }
    if let Some(v) = &s.video {
        let (shown, missed) = (v.received.intact + v.received.concealed, v.received.missed);
        let shape = super::shape(&v.sent);
        text += &format!("; {} frames, {shown} shown, {missed} missed{shape}", v.sent.frames);
        if let Some(t) = v.received.glass_to_glass {
            text += &format!("; glass to glass median {:.0} ms, 95 % {:.0} ms", t.p50_ms, t.p95_ms);
        }
    }
    text
}

pub(super) fn heard(a: &AudioSummary) -> String {
    let share = a.concealed_share.map_or("-".into(), |x| format!("{:.2} %", 100.0 * x));
    let delay = a.delay_ms.map_or("-".into(), |x| format!("{x:.0} ms"));
    format!("{:.1} s played, {share} concealed, {} late, delay {delay}", a.played_s, a.late)
}

pub(super) fn lip_offset(l: &LipSummary) -> String {
    format!("mean {:.1} ms, greatest {:.1} ms, {} samples", l.mean_ms, l.greatest_ms, l.samples)
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
        rows.push(("lip offset", lip_offset(l)));
    }
    rows.extend(super::ending::rows(&s.receiver));
    pairs(&rows)
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
