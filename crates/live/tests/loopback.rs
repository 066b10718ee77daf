//! Calls between two sockets of this machine.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use weir_cc::{Limits, Registry, Spec, Transport};
use weir_live::call::{
    CallConfig, CallObserver, Camera, LiveEnd, LivePacket, Peer, Recording, RunUntil, Unobserved, VideoReceive,
    VideoSend, loopback, loopback_video,
};
use weir_live::clock::Clock;
use weir_live::srtp::Suite;
use weir_live::udp::UdpConfig;
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::{EncoderConfig, FrameRate, OnDamage, VideoCodec};
use weir_session::Endpoint;
use weir_session::dccp::{DccpConfig, DccpEnd, video_connection};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};

/// A file in memory.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no holder panics").write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct Watch {
    rtp: [u64; 2],
    rtcp: [u64; 2],
    marks: Vec<Ecn>,
    last: Timestamp,
    looks: u32,
    looked: Option<Timestamp>,
    played: u32,
}

impl CallObserver for Watch {
    fn on_packet(&mut self, p: &LivePacket<'_>) {
        let totals = if p.is_rtp { &mut self.rtp } else { &mut self.rtcp };
        totals[usize::from(p.sent)] += 1;
        if p.is_rtp && !p.sent {
            self.marks.push(p.ecn);
        }
        assert!(p.at >= self.last, "time goes back");
        assert!(p.size.as_bytes() >= p.bytes.len() as u64);
        self.last = p.at;
    }
    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        assert!(self.looked.is_none_or(|l| now - l >= TimeDelta::from_millis(10)));
        self.looked = Some(now);
        self.looks += 1;
        while endpoint.poll_playout(now).is_some() {
            self.played += 1;
        }
    }
}

fn fixed_rate(kbps: u64) -> CallConfig {
    let rate = DataRate::from_kbps(kbps);
    CallConfig { limits: Limits { floor: rate, ceiling: rate }, start_rate: rate, ..CallConfig::default() }
}

#[test]
fn a_call_on_loopback_loses_nothing_and_keeps_its_rate() {
    for (v6, srtp) in [(false, Some(Suite::AeadAes128Gcm)), (true, Some(Suite::AesCm128HmacSha1_80)), (false, None)] {
        if v6 && std::net::UdpSocket::bind("[::1]:0").is_err() {
            println!("skipped: no IPv6 on this machine");
            continue;
        }
        let config =
            CallConfig { v6, srtp, ecn: true, playout_deadline: TimeDelta::from_millis(100), ..fixed_rate(2_000) };
        let (mut a, mut b) = (Watch::default(), Watch::default());
        let duration = Some(TimeDelta::from_millis(1_500));
        let stop = AtomicBool::new(false);
        let s = loopback(&config, &Registry::builtin(), duration, &stop, (&mut a, &mut b)).unwrap();
        assert!((1.4..1.9).contains(&s.sender.duration_s), "{}", s.sender.duration_s);
        // Lower bounds leave room for a machine that stands still for a third of the time.
        assert!((1.2e6..2.4e6).contains(&s.sender.sent_rate_bps), "{}", s.sender.sent_rate_bps);
        assert_eq!(s.receiver.loss, Some(0.0));
        assert_eq!((a.rtp[1], b.rtp[0]), (s.sender.sent.rtp_packets, s.sender.sent.rtp_packets));
        assert_eq!(a.rtp[0] + b.rtp[1], 0);
        // Feedback every 50 to 100 ms, and a BYE at the end.
        let unread = b.rtcp[1] - a.rtcp[0];
        assert!(b.rtcp[1] >= 7 && unread <= 2, "{:?} {:?}", a.rtcp, b.rtcp);
        assert_eq!(s.receiver.counters.byes, 1);
        // The default controller answers marks of L4S (RFC 9331).
        assert!(b.marks.iter().all(|e| *e == Ecn::Ect1));
        let strange = [s.sender.malformed, s.receiver.malformed, s.sender.unknown_source, s.receiver.unknown_source];
        assert_eq!(strange, [0; 4]);
        // One every 10 ms at most. A thread that waits for a processor misses some: those of half the time on a machine with three
        // others for each.
        assert!((25..=152).contains(&a.looks), "{}", a.looks);
        assert!((25..=46).contains(&b.played), "{}", b.played);
        assert!(s.sender.rtt_ms.is_some_and(|ms| ms < 50.0), "{:?}", s.sender.rtt_ms);
        let refused = s.receiver.srtp.map(|c| c.refused);
        assert_eq!(refused, srtp.map(|_| 0));
    }
}

#[test]
fn no_controller_keeps_a_core_busy_or_stops_sending() {
    let registry = Registry::builtin();
    let results: Vec<_> = std::thread::scope(|scope| {
        let ccids = weir_dccp::ccid::Registry::builtin();
        let there = |s: &&Spec| !matches!(s.transport, Transport::Dccp { ccid } if ccids.get(ccid).is_none());
        let calls: Vec<_> = (registry.specs().filter(there))
            .map(|spec| {
                let registry = &registry;
                scope.spawn(move || {
                    let config = CallConfig { controller: spec.name.clone(), ..fixed_rate(500) };
                    let stop = AtomicBool::new(false);
                    let duration = Some(TimeDelta::from_secs(1));
                    let ends = (&mut Unobserved, &mut Unobserved);
                    (&spec.name, loopback(&config, registry, duration, &stop, ends).unwrap())
                })
            })
            .collect();
        calls.into_iter().map(|c| c.join().unwrap()).collect()
    });
    for (name, s) in results {
        assert!((17..=33).contains(&s.sender.frames_sent), "{name}: {} frames", s.sender.frames_sent);
        assert_eq!(s.receiver.loss, Some(0.0), "{name}");
        // A turn for each packet and timer, and one every 10 ms, more of them where the machine is busy: far from the 50,000 of a busy loop.
        for end in [&s.sender, &s.receiver] {
            let turns = end.counters.turns as f64 / end.duration_s;
            assert!((30.0..5_000.0).contains(&turns), "{name}: {turns} turns a second");
        }
    }
}

#[test]
fn a_call_goes_over_dccp_and_closes() {
    for (ccid, v6) in [(2, false), (3, true)] {
        let config = CallConfig { transport: Some(Transport::Dccp { ccid }), v6, ecn: true, ..fixed_rate(2_000) };
        let (mut a, mut b) = (Watch::default(), Watch::default());
        let stop = AtomicBool::new(false);
        let duration = Some(TimeDelta::from_millis(2_000));
        let s = loopback(&config, &Registry::builtin(), duration, &stop, (&mut a, &mut b)).unwrap();
        assert!((55..=65).contains(&s.sender.frames_sent), "{}", s.sender.frames_sent);
        // 2 Mbit/s in frames of 8,333 bytes are 7 packets 30 times per second; the first ones are limited by slow
        // start.
        let (dccp, received) = (s.sender.dccp.expect("over DCCP"), s.receiver.dccp.expect("over DCCP"));
        assert_eq!(dccp.ccid, Some(ccid));
        assert!((200..=430).contains(&a.rtp[1]) && dccp.rejected < 150, "{} {dccp:?}", a.rtp[1]);
        assert_eq!((a.rtp[1], s.receiver.loss), (b.rtp[0], Some(0.0)));
        assert!(b.marks.iter().all(|e| *e == Ecn::Ect0));
        assert!(a.rtcp[0] >= 1 && b.rtcp[0] >= 2, "{:?} {:?}", a.rtcp, b.rtcp);
        // Plus acknowledgements.
        assert!(received.packets_sent > b.rtcp[1] + 20, "{received:?}");
        assert_eq!(s.receiver.counters.byes, 1);
        assert_eq!((dccp.end.as_deref(), received.end.as_deref()), (Some("closed"), Some("closed")));
        let strange = [s.sender.malformed, s.receiver.malformed, s.sender.unknown_source, s.receiver.unknown_source];
        assert_eq!((strange, dccp.strangers + received.strangers), ([0; 4], 0));
        assert!(b.played > 30, "{}", b.played);
    }
}

#[test]
fn an_unanswered_call_over_dccp_lasts_until_it_is_stopped() {
    let config = CallConfig { controller: "ccid2".into(), ..CallConfig::default() };
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    assert_eq!(config.transport(&registry), Transport::Dccp { ccid: 2 });
    let bound = || std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (here, silent) = (bound(), bound());
    let (endpoint, _) = weir_live::call::endpoints(&config, &registry, &Clock::of_day(), 1).unwrap();
    let clock = Clock::of_day();
    let end = DccpEnd::connect(endpoint, video_connection(2), DccpConfig::default(), clock.now()).unwrap();
    let peer = Peer::At(silent.local_addr().unwrap());
    let mut end = LiveEnd::new(here, UdpConfig::default(), peer, end).unwrap();
    let at = Some(clock.now() + TimeDelta::from_millis(1_300));
    end.run(&clock, &RunUntil { at, stop: &stop, ended: None, bye: false, silence: None }, &mut Unobserved).unwrap();
    // A Request, another after a second, and the Reset that gives up.
    let summary = end.summary(clock.now());
    let dccp = summary.dccp.expect("over DCCP");
    assert_eq!((dccp.packets_sent, summary.sent.rtp_packets), (3, 0), "{dccp:?}");
    assert!((1.25..2.5).contains(&summary.duration_s), "{}", summary.duration_s);
}

#[test]
fn a_raised_flag_ends_both_ends_at_once() {
    struct StopAfter<'a>(Timestamp, &'a AtomicBool);
    impl CallObserver for StopAfter<'_> {
        fn on_look(&mut self, now: Timestamp, _: &mut Endpoint) {
            if self.0 == Timestamp::ZERO {
                self.0 = now + TimeDelta::from_millis(200);
            } else if now >= self.0 {
                self.1.store(true, Ordering::Relaxed);
            }
        }
    }
    let stop = AtomicBool::new(false);
    let mut sending = StopAfter(Timestamp::ZERO, &stop);
    let s = loopback(&fixed_rate(500), &Registry::builtin(), None, &stop, (&mut sending, &mut Unobserved)).unwrap();
    // The receiver may begin a little after the sender.
    assert!((0.15..1.0).contains(&s.receiver.duration_s), "{}", s.receiver.duration_s);
    assert_eq!(s.receiver.counters.byes, 1);
}

#[test]
fn an_unknown_controller_is_reported_by_name() {
    let config = CallConfig { controller: "nobody".into(), ..CallConfig::default() };
    let stop = AtomicBool::new(false);
    let ends = (&mut Unobserved, &mut Unobserved);
    let e = loopback(&config, &Registry::builtin(), None, &stop, ends).unwrap_err().to_string();
    assert!(e.contains("nobody"), "{e}");
}

fn h264(size: (u32, u32), rate: &str) -> (VideoSend, VideoReceive) {
    let rate: FrameRate = rate.parse().expect("it is right");
    let mut clip = Clip::new(ClipSpec::new(Character::TalkingHead, size.0, size.1, rate)).expect("it is right");
    let config = EncoderConfig { frame_rate: rate.as_f64(), ..EncoderConfig::live(size.0, size.1) };
    let encoder = weir_codecs::encoder(VideoCodec::H264, &config).expect("it is right");
    let decoder = weir_codecs::decoder(VideoCodec::H264).expect("it is right");
    let send = VideoSend { camera: Camera::reel(&mut clip, rate).expect("it is right"), encoder };
    (send, VideoReceive { decoder, on_damage: OnDamage::Show, record: None, quality: true })
}

#[test]
fn pictures_come_through_encoder_network_and_decoder() {
    let record = Shared::default();
    let (send, mut receive) = h264((320, 240), "30");
    receive.record = Some(Recording::new(Box::new(record.clone()), "30".parse().unwrap()));
    let config =
        CallConfig { playout_deadline: TimeDelta::from_millis(300), adaptive_playout: false, ..fixed_rate(600) };
    let (duration, stop) = (Some(TimeDelta::from_secs(2)), AtomicBool::new(false));
    let ends = (&mut Unobserved, &mut Unobserved);
    let s = loopback_video(&config, (send, receive), &Registry::builtin(), duration, &stop, ends).unwrap();
    let video = s.video.unwrap();
    assert!((50..=66).contains(&video.sent.pictures), "{:?}", video.sent);
    assert_eq!((video.sent.errors, video.received.undecodable, video.received.overrun), (0, 0, 0));
    // The last ones are still waiting for playout when the call ends.
    let shown = video.received.intact;
    assert!(shown + 13 >= video.sent.frames && shown >= 40, "{video:?}");
    let delay = video.received.glass_to_glass.unwrap();
    // Never before the deadline. After it comes the time until the picture is decoded, which is that of a processor on a busy machine.
    assert!((300.0..600.0).contains(&delay.p50_ms), "{delay:?}");
    assert!((30.0..60.0).contains(&video.received.psnr_y_db.unwrap()), "{:?}", video.received);
    assert!((350e3..800e3).contains(&video.sent.rate_bps), "{}", video.sent.rate_bps);
    let bytes = record.0.lock().unwrap();
    assert!(bytes.starts_with(b"YUV4MPEG2 W320 H240 F30:1"));
    let frame = 6 + 320 * 240 * 3 / 2;
    let recorded = video.received.recorded as usize;
    assert!(recorded.abs_diff(shown as usize) <= 3, "{recorded} {shown}");
    let header = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
    assert_eq!(bytes.len(), header + recorded * frame);
}

#[test]
fn a_call_begins_with_pictures_and_shows_them_as_soon_as_jitter_allows() {
    let (send, receive) = h264((640, 480), "30");
    // A key frame of this size takes more than a tenth of a second to send.
    let config = fixed_rate(600);
    assert!(config.adaptive_playout && config.playout_deadline == TimeDelta::from_millis(400));
    let (duration, stop) = (Some(TimeDelta::from_secs(3)), AtomicBool::new(false));
    let ends = (&mut Unobserved, &mut Unobserved);
    let s = loopback_video(&config, (send, receive), &Registry::builtin(), duration, &stop, ends).unwrap();
    let video = s.video.unwrap();
    assert_eq!((video.received.undecodable, video.received.missed), (0, 0), "{:?}", video.received);
    assert_eq!(video.sent.key_frames, 1, "nothing has to be asked for again");
    // The last ones are in flight when the call ends.
    assert!(video.received.intact + 8 >= video.sent.frames && video.received.intact >= 50, "{video:?}");
    let delay = video.received.glass_to_glass.unwrap();
    assert!(delay.p50_ms < 200.0 && delay.max_ms < 700.0, "{delay:?}");
}
