//! Two ends that agree on a call of several streams by themselves, as two processes do.

#![allow(clippy::unwrap_used)]

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use weir_cc::{Limits, Registry};
use weir_live::call::{
    CallConfig, Camera, Party, PartyCoding, PartyMedia, PartyReceive, PartyRun, PartySend, PartySource,
    PartyStreamsSummary, Unobserved, VideoReceive, VideoSend, run_party_streams,
};
use weir_live::sdp::{Direction, StreamCodec};
use weir_live::signal::{Listener, Signalling, Trust};
use weir_media::audio::{AudioCodec, AudioEncoderConfig, AudioLimits, Channels, EncodedAudio, OpusParams, SpeechClip};
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::{EncoderConfig, FrameRate, OnDamage, SimulcastCamera, Source, VideoCodec, useful_rates};
use weir_session::Label;
use weir_session::allocation::Demand;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Pictures a second of every camera.
const RATE: u64 = 15;
const SECONDS: u64 = 5;
const LARGE: (u32, u32) = (320, 240);
const SMALL: (u32, u32) = (160, 120);

fn party(media: Vec<PartyMedia>) -> Party {
    let call = CallConfig {
        limits: Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_mbps(3) },
        start_rate: DataRate::from_kbps(1_500),
        // All streams are played this long after their capture.
        playout_deadline: TimeDelta::from_millis(300),
        adaptive_playout: false,
        ..CallConfig::default()
    };
    Party::new(call, media, Trust::default())
}

/// Audio, a camera of this many encodings and, optionally, a screen.
fn media(direction: Direction, encodings: usize, screen: bool) -> Vec<PartyMedia> {
    let of = |mid, coding| PartyMedia { mid: Label::new(mid), direction, coding };
    let video = |sizes: &[(u32, u32)]| PartyCoding::Video {
        codecs: vec![VideoCodec::H264],
        pictures: EncoderConfig::live(LARGE.0, LARGE.1),
        sends: sizes.to_vec(),
        receives: sizes.len(),
    };
    let mut all =
        vec![of("audio", PartyCoding::Audio(OpusParams::default())), of("camera", video(&[LARGE, SMALL][..encodings]))];
    all.extend(screen.then(|| of("screen", video(&[LARGE]))));
    all
}

fn filming(own: usize, encoding: usize, character: Character, size: (u32, u32)) -> PartySend {
    let rate: FrameRate = RATE.to_string().parse().unwrap();
    let clip = Clip::new(ClipSpec::new(character, LARGE.0, LARGE.1, rate)).unwrap();
    let mut view = SimulcastCamera::new(Box::new(clip)).view(size.0, size.1).unwrap();
    let config = EncoderConfig { frame_rate: rate.as_f64(), ..EncoderConfig::live(size.0, size.1) };
    let encoder = weir_codecs::encoder(VideoCodec::H264, &config).unwrap();
    let source = PartySource::Video(VideoSend { camera: Camera::reel(&mut view, rate).unwrap(), encoder });
    let (least, most) = useful_rates(size.0, size.1);
    PartySend {
        own,
        encoding,
        name: format!("{own} {encoding}"),
        demand: Demand { least, most, ..Demand::default() },
        source,
    }
}

fn sends() -> Vec<PartySend> {
    let (limits, headers) = (AudioLimits::default(), DataSize::from_bytes(64));
    let encoder = weir_codecs::audio_encoder(AudioCodec::Opus, &AudioEncoderConfig::default()).unwrap();
    let source = EncodedAudio::new(Box::new(SpeechClip::new(1)), encoder, limits, Timestamp::ZERO).unwrap();
    let audio = PartySend {
        own: 0,
        encoding: 0,
        name: "audio".into(),
        demand: Demand { least: limits.least(headers), most: limits.most(headers), ..Demand::default() },
        source: PartySource::Audio(Source::Custom(Box::new(source))),
    };
    let head = Character::TalkingHead;
    vec![audio, filming(1, 0, head, LARGE), filming(1, 1, head, SMALL), filming(2, 0, Character::HandHeld, LARGE)]
}

fn receive(codec: StreamCodec) -> PartyReceive {
    match codec {
        StreamCodec::Audio(codec) => PartyReceive::Audio(weir_codecs::audio_decoder(codec, Channels::Mono).unwrap()),
        StreamCodec::Video(codec) => {
            let decoder = weir_codecs::decoder(codec).unwrap();
            PartyReceive::Video(VideoReceive { decoder, on_damage: OnDamage::Show, record: None, quality: false })
        }
    }
}

/// One call at a time: concurrent encoders would compete for CPU time.
static TURN: Mutex<()> = Mutex::new(());

/// Both ends of a call, the connecting one first; it ends the call.
fn call(connecting: &Party, listening: &Party) -> [PartyStreamsSummary; 2] {
    let _turn = TURN.lock();
    let ((mut listener, by), stop) = (listener(), AtomicBool::new(false));
    let run = |party: &Party, joined: weir_live::call::Joined, seconds| {
        let receives = joined.incoming().iter().map(|p| receive(p.codec)).collect();
        let sends = if party.media[0].direction.sends() { sends() } else { vec![] };
        let (registry, duration) = (Registry::builtin(), Some(TimeDelta::from_secs(seconds)));
        let run = PartyRun { config: &party.call, registry: &registry, sends, receives, duration, stop: &stop };
        run_party_streams(joined, run, &mut Unobserved).unwrap()
    };
    std::thread::scope(|scope| {
        let other = scope
            .spawn(|| run(listening, listening.listen(&mut listener, &stop, &mut |_| {}).unwrap(), 3 * SECONDS as i64));
        let joined = connecting.connect(&by, &stop);
        let own = run(connecting, joined.unwrap(), SECONDS as i64);
        [own, other.join().unwrap()]
    })
}

#[test]
fn audio_a_camera_of_two_encodings_and_a_screen_go_to_another_end() {
    let [a, b] = call(&party(media(Direction::Send, 2, true)), &party(media(Direction::Receive, 2, true)));
    let sent: Vec<&str> = a.sent.iter().map(|s| s.name.as_str()).collect();
    let received: Vec<&str> = b.received.iter().map(|s| s.name.as_str()).collect();
    // Encodings from the lowest up.
    assert_eq!(sent, ["audio", "1 1", "1 0", "2 0"]);
    assert_eq!(received, ["audio", "camera 0", "camera 1", "screen"]);
    let heard = b.received[0].audio.as_ref().unwrap();
    assert!((SECONDS as f64 - 2.0..=SECONDS as f64).contains(&(heard.played_s + heard.silent_s)), "{heard:?}");
    assert!(heard.decoded_samples > 48_000 && heard.undecodable == 0, "{heard:?}");
    for (r, size) in b.received[1..].iter().zip([SMALL, LARGE, LARGE]) {
        let v = r.video.as_ref().unwrap();
        assert!((SECONDS * RATE / 2..=SECONDS * RATE + 2).contains(&(v.intact + v.concealed)), "{r:?}");
        assert_eq!((v.size, v.undecodable, r.lost_packets), (Some(size), 0, 0), "{r:?}");
        let delay = v.glass_to_glass.unwrap();
        assert!((250.0..600.0).contains(&delay.p50_ms), "{delay:?}");
    }
    let lips = b.lips.unwrap();
    assert!((2..=SECONDS + 1).contains(&lips.samples) && lips.greatest_ms <= 45.0, "{lips:?}");
    assert_eq!((a.end.malformed, b.end.malformed, b.end.counters.byes), (0, 0, 1));
    assert_eq!((b.end.srtp.map(|c| c.refused), b.refused.len()), (Some(0), 0));
}

#[test]
fn what_is_refused_does_not_go_and_the_rest_does() {
    // The other end accepts the first encoding of the camera, which is the large one, and no screen.
    let [a, b] = call(&party(media(Direction::Send, 2, true)), &party(media(Direction::Receive, 1, false)));
    let sent: Vec<&str> = a.sent.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(sent, ["audio", "1 0"]);
    assert_eq!(
        (&a.refused, &b.refused),
        (&vec!["video (mid screen)".to_owned()], &vec!["video (mid screen)".to_owned()])
    );
    let v = b.received[1].video.as_ref().unwrap();
    assert_eq!(v.size, Some(LARGE), "{v:?}");
    assert!((SECONDS * RATE / 2..=SECONDS * RATE + 2).contains(&v.intact), "{v:?}");
    assert!(b.received[0].packets > 50, "{:?}", b.received[0]);
}

#[test]
fn an_offer_of_one_stream_is_taken_as_one() {
    let mut one = media(Direction::Send, 1, false);
    one.remove(0);
    one[0].mid = None;
    let mut connecting = party(one);
    connecting.call.start_rate = DataRate::from_kbps(500);
    let ((mut listener, by), stop) = (listener(), AtomicBool::new(false));
    let listening = party(media(Direction::Receive, 2, true));
    let agreed = std::thread::scope(|scope| {
        let other = scope.spawn(|| listening.listen(&mut listener, &stop, &mut |_| {}).unwrap().agreement);
        let own = connecting.connect(&by, &stop);
        [own.unwrap().agreement, other.join().unwrap()]
    });
    for a in agreed {
        let streams: Vec<_> =
            a.streams.iter().map(|s| (s.codec.name(), s.mid, s.send.len() + s.receive.len())).collect();
        assert_eq!((streams, a.refused.len()), (vec![("H264", None, 0)], 0));
    }
}

/// A listener at a free port, and the means to reach it.
fn listener() -> (Listener, Signalling) {
    let any = Signalling::Tcp("127.0.0.1:0".into());
    let listener = Listener::bind(&any, None, &Trust::default()).unwrap();
    let by = Signalling::Tcp(listener.local_addr().unwrap().to_string());
    (listener, by)
}
