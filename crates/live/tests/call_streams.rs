//! Calls of several streams between two sockets of this machine.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::AtomicBool;
use weir_cc::{Limits, Registry};
use weir_live::call::{
    CallConfig, Camera, StreamSend, StreamSource, StreamsSummary, Unobserved, VideoReceive, VideoSend, loopback_streams,
};
use weir_media::audio::{AudioConfig, AudioLimits, AudioSource};
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::{EncoderConfig, FrameRate, OnDamage, SimulcastCamera, VideoCodec, useful_rates};
use weir_session::Label;
use weir_session::allocation::Demand;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Pictures a second of every camera.
const RATE: u64 = 15;
const SECONDS: u64 = 6;

/// Camera, encoder and decoder of a clip, scaled to this size.
fn video(name: &str, rid: Option<&str>, character: Character, size: (u32, u32)) -> StreamSend {
    let rate: FrameRate = RATE.to_string().parse().unwrap();
    let clip = Clip::new(ClipSpec::new(character, 320, 240, rate)).unwrap();
    let mut view = SimulcastCamera::new(Box::new(clip)).view(size.0, size.1).unwrap();
    let config = EncoderConfig { frame_rate: rate.as_f64(), ..EncoderConfig::live(size.0, size.1) };
    let encoder = weir_codecs::encoder(VideoCodec::H264, &config).unwrap();
    let decoder = weir_codecs::decoder(VideoCodec::H264).unwrap();
    let send = VideoSend { camera: Camera::reel(&mut view, rate).unwrap(), encoder };
    let receive = VideoReceive { decoder, on_damage: OnDamage::Show, record: None, quality: false };
    let (least, most) = useful_rates(size.0, size.1);
    StreamSend {
        name: rid.map_or(name.into(), |rid| format!("{name} {rid}")),
        mid: Label::new(name),
        rid: rid.and_then(Label::new),
        demand: Demand { least, most, simulcast: rid.map(|_| 1), ..Demand::default() },
        source: StreamSource::Video(send, receive),
    }
}

/// A speaker without pauses.
fn audio() -> StreamSend {
    let model = AudioConfig { talk: None, ..AudioConfig::default() };
    let source = AudioSource::new(model, Timestamp::ZERO, 1).unwrap();
    let (limits, headers) = (AudioLimits::default(), DataSize::from_bytes(64));
    StreamSend {
        name: "audio".into(),
        mid: Label::new("audio"),
        rid: None,
        demand: Demand { least: limits.least(headers), most: limits.most(headers), ..Demand::default() },
        source: StreamSource::Audio(source.into(), None),
    }
}

fn call(start: u64, ceiling: u64, streams: Vec<StreamSend>) -> StreamsSummary {
    let config = CallConfig {
        limits: Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(ceiling) },
        start_rate: DataRate::from_kbps(start),
        // All streams are played this long after their capture.
        playout_deadline: TimeDelta::from_millis(300),
        adaptive_playout: false,
        ..CallConfig::default()
    };
    let duration = Some(TimeDelta::from_secs(SECONDS as i64));
    let stop = AtomicBool::new(false);
    loopback_streams(&config, streams, &Registry::builtin(), duration, &stop, &mut Unobserved).unwrap()
}

#[test]
fn audio_two_encodings_and_a_screen_share_one_target_and_play_together() {
    let streams = vec![
        audio(),
        video("camera", Some("0"), Character::TalkingHead, (160, 120)),
        video("camera", Some("1"), Character::TalkingHead, (320, 240)),
        video("screen", None, Character::HandHeld, (320, 240)),
    ];
    let s = call(1_500, 3_000, streams);
    let names: Vec<&str> = s.streams.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["audio", "camera 0", "camera 1", "screen"]);
    let heard = s.streams[0].audio.as_ref().unwrap();
    let seconds = SECONDS as f64;
    assert!((seconds - 1.0..=seconds).contains(&heard.played_s), "{heard:?}");
    assert!(heard.concealed_share.unwrap() < 0.05, "{heard:?}");
    // 32 kbit/s, and 50 headers of RTP and SRTP a second.
    assert!((35e3..65e3).contains(&s.streams[0].sent_rate_bps), "{}", s.streams[0].sent_rate_bps);
    for stream in &s.streams[1..] {
        let v = stream.video.as_ref().unwrap();
        let shown = v.received.intact + v.received.concealed;
        assert!((SECONDS * RATE / 2..=SECONDS * RATE + 2).contains(&shown), "{stream:?}");
        assert_eq!((v.received.undecodable, v.sent.errors), (0, 0), "{stream:?}");
        assert!((20e3..400e3).contains(&stream.sent_rate_bps), "{stream:?}");
        let delay = v.received.glass_to_glass.unwrap();
        assert!((250.0..600.0).contains(&delay.p50_ms), "{delay:?}");
    }
    let lips = s.lips.unwrap();
    assert!((3..=SECONDS + 1).contains(&lips.samples) && lips.greatest_ms <= 45.0, "{lips:?}");
    let lost: u64 = s.streams.iter().map(|s| s.lost_packets).sum();
    assert_eq!((lost, s.sender.malformed, s.receiver.malformed), (0, 0, 0));
    assert_eq!((s.sender.unknown_source, s.receiver.unknown_source), (0, 0));
    assert_eq!(s.receiver.srtp.map(|c| c.refused), Some(0));
}

#[test]
fn a_small_target_leaves_audio_alone_and_the_higher_encoding_off() {
    let high = StreamSend {
        demand: Demand { least: DataRate::from_kbps(300), ..video_at(600) },
        ..video("camera", Some("1"), Character::TalkingHead, (320, 240))
    };
    let low = video("camera", Some("0"), Character::TalkingHead, (160, 120));
    let s = call(250, 250, vec![audio(), low, high]);
    let heard = s.streams[0].audio.as_ref().unwrap();
    assert!((SECONDS as f64 - 1.0..=SECONDS as f64).contains(&heard.played_s), "{heard:?}");
    let [low, high] = [1, 2].map(|n| s.streams[n].video.as_ref().unwrap());
    assert!(low.received.intact >= SECONDS * RATE / 2, "{low:?}");
    assert_eq!((high.received.intact, s.streams[2].sent_packets), (0, 0), "{high:?}");
    assert!(s.streams.iter().map(|s| s.sent_rate_bps).sum::<f64>() < 300e3, "{:?}", s.streams);
}

fn video_at(kbps: u64) -> Demand {
    Demand { most: DataRate::from_kbps(kbps), simulcast: Some(1), ..Demand::default() }
}
