//! Audio and video captured together are played together, also with adaptive playout of both.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::{Call, Fate, Link, Recorder};
use weir_media::audio::{AudioConfig, AudioSource};
use weir_media::{AdaptivePlayout, PerfectCodec};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    EndConfig, EndPlan, IncomingConfig, IncomingId, OutgoingConfig, ReceivingPath, SendingPath, StreamIdentity,
};
use weir_units::{DataRate, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

const AUDIO: u32 = 11;
const VIDEO: u32 = 101;

fn ms(t: i64) -> TimeDelta {
    TimeDelta::from_millis(t)
}

/// Delays of 0 to 200 ms without a pattern.
fn jitter(n: u64) -> TimeDelta {
    ms((n * 7_919 % 21) as i64 * 10)
}

/// Continuous speech, and video, over a path of 50 ms.
fn call(synchronised_clocks: bool, follows: bool, rule: impl FnMut(u64, &[u8]) -> Fate + 'static) -> Call {
    let (now, kbps) = (Timestamp::ZERO, DataRate::from_kbps);
    let config = EndConfig {
        ssrc: AUDIO,
        remote_ssrc: 22,
        synchronised_clocks,
        lip_synchronisation: follows,
        ..EndConfig::default()
    };
    let model = AudioConfig { talk: None, ..AudioConfig::default() };
    let audio = AudioSource::new(model, now, 1).unwrap();
    let demand = |media, most| Demand { media, most: kbps(most), ..Demand::default() };
    let audio_identity = StreamIdentity { payload_type: 111, clock_rate: 48_000, ..StreamIdentity::of(AUDIO) };
    let outgoing = OutgoingConfig::new(audio_identity, audio.into(), demand(MediaKind::Audio, 48));
    let sending = SendingPath::new(Recorder::new(800).sender());
    let adaptive_playout = Some(AdaptivePlayout::up_to(ms(500)));
    let incoming = IncomingConfig { adaptive_playout, ..IncomingConfig::new(audio_identity, MediaKind::Audio) };
    let receiving = ReceivingPath::default();
    let other = EndConfig { ssrc: 22, remote_ssrc: AUDIO, seed: 2, ..config.clone() };
    let identity = StreamIdentity { ssrc: VIDEO, payload_type: 100, clock_rate: 90_000, ..StreamIdentity::default() };
    let mut a = EndPlan::new(config).sends(outgoing).on(sending).make(now).unwrap();
    let mut b = EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap();
    let frames = PerfectCodec::frames(ms(33), now).into();
    a.add_outgoing(OutgoingConfig::new(identity, frames, demand(MediaKind::Video, 700)), now).unwrap();
    b.add_incoming(IncomingConfig { adaptive_playout, ..IncomingConfig::new(identity, MediaKind::Video) }, now)
        .unwrap();
    Call::new(a, b, Link::new(kbps(20_000), rule))
}

/// How much later video is played than audio, every 50 ms within a range of seconds.
fn offsets(c: &mut Call, from: i64, to: i64) -> Vec<TimeDelta> {
    let mut all = Vec::new();
    while c.now < Timestamp::from_secs(to) {
        c.run_until(c.now + ms(50));
        let video = c.b.stats().incoming_ids().nth(1).unwrap();
        let mut stream = c.b.incoming(video).unwrap();
        while stream.poll_playout(c.now).is_some() {}
        let video = stream.playout_lag();
        let audio = c.b.incoming(IncomingId::FIRST).and_then(|s| s.playout_lag());
        if let (Some(video), Some(audio)) = (video, audio)
            && c.now >= Timestamp::from_secs(from)
        {
            all.push(video - audio);
        }
    }
    all
}

fn greatest(offsets: &[TimeDelta]) -> TimeDelta {
    assert!(offsets.len() > 50, "{}", offsets.len());
    offsets.iter().map(|o| o.abs()).max().unwrap()
}

/// Packets of this source are delayed in the first half of a minute.
fn delayed(ssrc: u32) -> impl FnMut(u64, &[u8]) -> Fate {
    move |n, bytes| match PacketView::parse_header(bytes) {
        Ok(view) if view.ssrc() == ssrc && n < 4_500 => Fate::Delay(jitter(n)),
        _ => Fate::Pass,
    }
}

#[test]
fn sound_waits_for_pictures_that_need_longer_and_comes_back() {
    for synchronised in [true, false] {
        let mut c = call(synchronised, true, delayed(VIDEO));
        let late = offsets(&mut c, 8, 28);
        assert!(greatest(&late) <= ms(45), "{synchronised}: {}", greatest(&late));
        let stats = c.b.stats().incoming(IncomingId::FIRST).unwrap().audio.unwrap();
        // Some audio is inserted, at a few places only.
        assert!((0.001..0.05).contains(&stats.concealed_share().unwrap()), "{synchronised}: {stats:?}");
        // Without jitter both continue in synchrony.
        let rest = offsets(&mut c, 50, 70);
        assert!(greatest(&rest) <= ms(45), "{synchronised}: {}", greatest(&rest));
        // Without alignment they would be apart.
        let mut alone = call(synchronised, false, delayed(VIDEO));
        let apart = greatest(&offsets(&mut alone, 8, 28));
        assert!((ms(60)..ms(300)).contains(&apart), "{synchronised}: {apart}");
    }
}

#[test]
fn pictures_wait_for_sound_that_needs_longer() {
    for synchronised in [true, false] {
        let mut c = call(synchronised, true, delayed(AUDIO));
        let late = offsets(&mut c, 8, 28);
        assert!(greatest(&late) <= ms(45), "{synchronised}: {}", greatest(&late));
        let mut alone = call(synchronised, false, delayed(AUDIO));
        let apart = greatest(&offsets(&mut alone, 8, 28));
        assert!((ms(60)..ms(300)).contains(&apart), "{synchronised}: {apart}");
    }
}

#[test]
fn the_same_call_comes_out_the_same() {
    let run = || offsets(&mut call(true, true, delayed(VIDEO)), 0, 20);
    assert_eq!(run(), run());
}
