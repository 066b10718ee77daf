//! Calls over DCCP.

use crate::dccp_common;
use dccp_common::{Call, Link, Recorder, Watched, at, controller, scenes, sending, sending_packets};
use std::sync::{Arc, Mutex};
use weir_dccp::connection::{Config, Datagram, EndReason, State};
use weir_dccp::queue::{QueueConfig, QueuePolicy};
use weir_media::{Frame, FrameKind, MaterialConfig, PerfectCodec, Source};
use weir_session::OutgoingId;
use weir_session::dccp::{DccpConfig, QueueSizing, video_connection};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

fn constant(kbps: u64) -> (Recorder, Source) {
    (Recorder::new(kbps), PerfectCodec::frames(TimeDelta::from_millis(40), Timestamp::ZERO).into())
}

#[test]
fn media_and_reports_share_a_connection_under_each_congestion_control() {
    for ccid in [2, 3, 4, 5] {
        let (recorder, source) = constant(1_000);
        let mut c = Call::new(sending(source, recorder.sender()), ccid, DccpConfig::default(), Link::new(10_000, 20));
        c.run_until(at(30_000));
        let (a, b) = (c.a.counters(), c.b.endpoint().stats().receive_counters());
        // 1 Mbit/s in frames of 5 packets of 1,000 bytes, 25 a second; some of the first ones, during slow start, may
        // be refused.
        assert!((745..=751).contains(&a.frames), "{ccid}: {a:?}");
        // CCID 4 sends at most one packet every 10 ms (RFC 5622, section 5): 100 of 125 a second.
        let (least, most) = if ccid == 4 { (2_900, 3_010) } else { (3_600, 3_755) };
        assert!((least..=most).contains(&a.accepted) && a.accepted + a.rejected <= 3_755, "{ccid}: {a:?}");
        assert!(a.accepted - b.packets < 12 && b.invalid == 0, "{ccid}: {a:?} {b:?}");
        assert_eq!(c.sending().ccids(), Some((ccid, ccid)));
        // RTCP of both ends is delivered.
        let ends = [c.a.endpoint().stats().counters(), c.b.endpoint().stats().counters()];
        assert!(ends.iter().all(|e| e.rtcp_received >= 15 && e.malformed + e.unknown_source == 0), "{ccid}: {ends:?}");
        let rtt = c.a.endpoint().stats().rtt().expect("by reports").as_millis_f64();
        // A report may wait behind a queue of five packets, which CCID 4 sends 10 ms apart.
        assert!((40.0..if ccid == 4 { 95.0 } else { 80.0 }).contains(&rtt), "{ccid}: {rtt}");
        // The transport reports its rate with each frame: up to the link's 10 Mbit/s, smoothed or not.
        let rates = recorder.rates.lock().unwrap();
        assert!((600..=751).contains(&rates.len()), "{ccid}: {}", rates.len());
        let last = rates.last().expect("reported");
        let floor = if ccid == 4 { 780.0 } else { 900.0 };
        assert!(last.rate.as_kbps_f64() > floor && last.smoothed.as_kbps_f64() > floor, "{ccid}: {last:?}");
        assert!(last.rtt.is_some_and(|t| (40..80).contains(&t.as_millis())), "{ccid}: {last:?}");
        // A BYE, and then the connection closes at both ends.
        c.a.leave();
        c.run_until(at(31_000));
        assert_eq!(c.b.endpoint().stats().counters().byes, 1);
        assert_eq!(c.sending().end().map(|e| e.reason), Some(EndReason::Closed));
        assert_eq!(c.receiving().end().map(|e| e.reason), Some(EndReason::Closed));
    }
}

#[test]
fn media_waits_for_the_connection_and_begins_with_a_key_frame() {
    let frames: Arc<Mutex<Vec<Frame>>> = Arc::default();
    let source = Source::Custom(Box::new(Watched(scenes(MaterialConfig::conference(), 3), frames.clone())));
    let recorder = Recorder::new(1_000);
    let mut there = Link::new(10_000, 20);
    // The first Request is lost; another is sent after a second.
    there.lose = Box::new(|n| n == 1);
    let mut c = Call::new(sending(source, recorder.sender()), 2, DccpConfig::default(), there);
    c.run_until(at(1_030));
    assert!(!c.a.is_open() && c.sent.iter().all(|p| !p.has_data) && c.sending().state() == State::Request);
    c.run_until(at(3_000));
    assert!(c.a.is_open());
    let first = c.sent.iter().find(|p| p.rtp_timestamp().is_some()).expect("media");
    assert!((at(1_040)..at(1_100)).contains(&first.now), "{}", first.now);
    let offset = c.a.endpoint_mut().outgoing(OutgoingId::FIRST).map(|s| s.rtp_timestamp_offset()).unwrap();
    let own = first.rtp_timestamp().unwrap().wrapping_sub(offset);
    let frame = *frames.lock().unwrap().iter().find(|f| f.rtp_timestamp == own).expect("a frame");
    assert_eq!(frame.kind, FrameKind::Key);
    // Packets dropped before used no numbers and were not refused.
    let counters = c.a.counters();
    assert_eq!(c.a.endpoint().stats().send_counters().packets, counters.accepted + counters.rejected);
}

#[test]
fn the_queue_grows_with_frames_and_shrinks_after_a_thousand() {
    let source = scenes(MaterialConfig::conference(), 5);
    let mut c =
        Call::new(sending(source, Recorder::new(4_000).sender()), 2, DccpConfig::default(), Link::new(100_000, 10));
    // I-frames of 4 Mbit/s have at least 20,000 x 4 bytes: 80 packets. There is one every 10 s, 250 frames.
    c.run_until(at(60_000));
    let grown = c.sending().queue().config().capacity;
    assert!((80..=160).contains(&grown) && grown.is_multiple_of(5), "{grown}");
    let counters = c.a.counters();
    assert!((4..=5).contains(&counters.queue_grown) || counters.queue_shrunk > 0, "{counters:?}");
    // The largest of a thousand, not a multiple of five.
    c.run_until(at(100_000));
    let counters = c.a.counters();
    assert!(counters.queue_shrunk >= 1, "{counters:?}");
    let fixed = DccpConfig { sizing: None, ..DccpConfig::default() };
    let source = scenes(MaterialConfig::conference(), 5);
    let mut c = Call::new(sending(source, Recorder::new(4_000).sender()), 2, fixed, Link::new(100_000, 10));
    c.run_until(at(60_000));
    assert_eq!(c.sending().queue().config(), QueueConfig::default());
}

#[test]
fn refused_packets_are_reported_once_per_frame_and_lost() {
    // 4 Mbit/s over 1: most packets are refused.
    let (recorder, source) = constant(4_000);
    let mut c = Call::new(sending(source, recorder.sender()), 2, DccpConfig::default(), Link::new(1_000, 20));
    c.run_until(at(20_000));
    let counters = c.a.counters();
    let reported = recorder.rejected.lock().unwrap();
    assert!((300..=500).contains(&reported.len()), "{}", reported.len());
    assert_eq!(reported.len() as u64, counters.frames_rejected);
    assert_eq!(reported.iter().map(|r| u64::from(r.packets)).sum::<u64>(), counters.rejected);
    assert!(reported.windows(2).all(|w| w[1].now - w[0].now >= TimeDelta::from_millis(40)), "{reported:?}");
    assert!(counters.rejected * 2 > counters.accepted, "{counters:?}");
    // Their numbers are gaps at the receiver.
    let sequences: Vec<u16> = c.sent.iter().filter_map(|p| p.rtp_sequence()).collect();
    let span = u64::from(sequences.last().unwrap().wrapping_sub(sequences[0])) + 1;
    let offered = c.a.endpoint().stats().send_counters();
    assert_eq!((offered.packets, offered.refused_packets), (counters.accepted + counters.rejected, counters.rejected));
    assert!(span > counters.accepted + counters.rejected / 2, "{span} {counters:?}");
    // Sender reports count accepted packets only.
    let report = c.sent.iter().rev().find(|p| p.has_data && p.bytes[p.header + 1] == 200).expect("a sender report");
    let packets = u32::from_be_bytes(report.bytes[report.header + 20..report.header + 24].try_into().unwrap());
    let behind = counters.accepted - u64::from(packets);
    assert!(behind < 500 && u64::from(packets) < counters.accepted, "{packets} {counters:?}");
    // RTCP waited for room and was delivered.
    assert!(c.b.endpoint().stats().counters().rtcp_received >= 10);
}

/// A controller's result on the thesis's long path: share of packets refused, share of I-frames, and Mbit/s received.
fn long_path(name: &str, params: &[(&str, f64)], seed: u64) -> (f64, f64, f64) {
    let frames: Arc<Mutex<Vec<Frame>>> = Arc::default();
    let source = Source::Custom(Box::new(Watched(scenes(MaterialConfig::movie(), seed), frames.clone())));
    let (sender, _, ccid) = controller(name, params);
    let mut c = Call::new(sending(source, sender), ccid, DccpConfig::default(), Link::new(6_000, 89));
    c.run_until(at(120_000));
    let counters = c.a.counters();
    let frames = frames.lock().expect("one thread");
    let keys = frames.iter().filter(|f| f.kind == FrameKind::Key).count();
    let received = c.receiving().counters().data_bytes_received as f64 * 8.0 / 120e6;
    let refused = counters.rejected as f64 / (counters.accepted + counters.rejected) as f64;
    (refused, keys as f64 / frames.len() as f64, received)
}

#[test]
fn without_an_update_interval_the_rate_collapses_into_i_frames() {
    for seed in [1, 2] {
        let without = long_path("ccid2", &[("update_interval", 0.0)], seed);
        let with = long_path("ccid2", &[], seed);
        eprintln!("ccid2, seed {seed}: refused, I-frames, Mbit/s: {without:?} without, {with:?} with");
        assert!(without.0 > 1.3 * with.0 && without.1 > 2.0 * with.1, "{without:?} {with:?}");
        let three = long_path("ccid3", &[], seed);
        eprintln!("ccid3, seed {seed}: {three:?}");
        assert!(three.0 < with.0, "{three:?} {with:?}");
    }
}

#[test]
fn a_queue_that_drops_keeps_key_frames() {
    let share = |policy| {
        let frames: Arc<Mutex<Vec<Frame>>> = Arc::default();
        let source = Source::Custom(Box::new(Watched(scenes(MaterialConfig::movie(), 7), frames.clone())));
        let queue = QueueConfig { capacity: 80, policy };
        let config = Config { queue, ..video_connection(2) };
        let dccp = DccpConfig { max_wait: Some(TimeDelta::from_millis(300)), sizing: None, ..DccpConfig::default() };
        let mut c = Call::with(sending(source, Recorder::new(3_000).sender()), config, dccp, Link::new(2_000, 50));
        c.run_until(at(60_000));
        let offset = c.a.endpoint_mut().outgoing(OutgoingId::FIRST).map(|s| s.rtp_timestamp_offset()).unwrap();
        let frames = frames.lock().unwrap();
        let mut left: Vec<u32> =
            c.sent.iter().filter_map(|p| p.rtp_timestamp()).map(|t| t.wrapping_sub(offset)).collect();
        left.sort_unstable();
        // Packets of 1,000 bytes: the share of each kind that was sent.
        let mut shares = [(0u64, 0u64); 2];
        for f in frames.iter() {
            let (made, gone) = &mut shares[usize::from(f.kind == FrameKind::Key)];
            *made += f.size.as_bytes().div_ceil(1_000);
            let i = left.partition_point(|&t| t < f.rtp_timestamp);
            *gone += left[i..].iter().take_while(|&&t| t == f.rtp_timestamp).count() as u64;
        }
        let counters = c.sending().queue().counters();
        assert_eq!(counters.displaced > 0, policy == QueuePolicy::DropOldest, "{counters:?}");
        shares.map(|(made, gone)| gone as f64 / made as f64)
    };
    let refuse = share(QueuePolicy::Refuse);
    let drop = share(QueuePolicy::DropOldest);
    eprintln!("of P-frames and I-frames left {refuse:?} by refusal, {drop:?} by dropping");
    assert!(drop[1] > 1.2 * drop[0] && drop[1] > 1.2 * refuse[1], "{refuse:?} {drop:?}");
}

#[test]
fn bindings_are_kept_while_media_is_paused() {
    let (recorder, source) = constant(500);
    let dccp = DccpConfig { keep_alive: Some(TimeDelta::from_millis(300)), ..DccpConfig::default() };
    let mut c = Call::new(sending(source, recorder.sender()), 2, dccp, Link::new(10_000, 20));
    c.run_until(at(2_000));
    assert_eq!(c.a.counters().keep_alives, 0);
    c.a.set_paused(true);
    c.run_until(at(12_000));
    let (frames, sent) = (c.a.counters().frames, c.a.counters().keep_alives);
    // Every 300 ms, except for RTCP about once per second.
    assert!((15..=34).contains(&sent), "{sent}");
    assert_eq!(c.b.endpoint().stats().counters().malformed, 0);
    c.a.set_paused(false);
    c.run_until(at(13_000));
    assert!((20..=26).contains(&(c.a.counters().frames - frames)));
}

#[test]
fn another_connection_takes_the_place_of_one_that_has_ended() {
    let source = scenes(MaterialConfig::conference(), 3);
    let mut c =
        Call::new(sending(source, Recorder::new(1_000).sender()), 2, DccpConfig::default(), Link::new(10_000, 20));
    c.run_until(at(5_000));
    c.b.connection_mut().unwrap().abort(at(5_000));
    c.run_until(at(6_000));
    assert!(!c.a.is_open() && c.sending().end().is_some());
    let before = c.b.endpoint().stats().receive_counters().packets;
    let config = Config { seed: 7, ..video_connection(2) };
    let connection = weir_dccp::connection::Connection::connect(config, at(6_000)).unwrap();
    assert!(c.a.set_connection(connection, at(6_000)).is_some_and(|before| before.end().is_some()));
    c.run_until(at(10_000));
    assert!(c.a.is_open());
    let packets = c.b.endpoint().stats().receive_counters().packets;
    assert!(packets > before + 300, "{before} {packets}");
}

#[test]
fn packets_fit_the_path() {
    let (recorder, source) = constant(1_000);
    let endpoint = sending_packets(source, recorder.sender(), 5_000);
    let (initial_mtu, max_mtu) = (DataSize::from_bytes(1_300), DataSize::from_bytes(1_500));
    let config = Config { initial_mtu, max_mtu, ..video_connection(3) };
    let mut c = Call::with(endpoint, config, DccpConfig::default(), Link::new(10_000, 20));
    let longest = |c: &mut Call, until| {
        let before = c.sent.len();
        c.run_until(at(until));
        c.sent[before..].iter().filter(|p| p.rtp_timestamp().is_some()).map(|p| p.size + 28).max().unwrap()
    };
    let first = longest(&mut c, 90);
    assert!((1_200..=1_300).contains(&first), "{first}");
    // Probing finds that larger packets pass.
    let most = longest(&mut c, 5_000);
    assert!((1_400..=1_500).contains(&most), "{most}");
    // A router reports a smaller MTU, and the next frame fits.
    c.a.connection_mut().unwrap().on_path_mtu(at(5_000), DataSize::from_bytes(1_350));
    let less = longest(&mut c, 7_000);
    assert!((1_250..=1_350).contains(&less), "{less}");
    // That report expires.
    longest(&mut c, 20_000);
    assert_eq!(longest(&mut c, 25_000), most);
    assert_eq!(c.a.counters().too_long, 0);
}

#[test]
fn the_same_call_gives_the_same_bytes() {
    let run = || {
        let (sender, _, ccid) = controller("ccid3", &[]);
        let source = scenes(MaterialConfig::movie(), 2);
        let mut there = Link::new(3_000, 30);
        there.lose = Box::new(|n| n.is_multiple_of(97));
        let mut c = Call::new(sending(source, sender), ccid, DccpConfig::default(), there);
        c.run_until(at(10_000));
        c.sent.into_iter().map(|p| p.bytes).collect::<Vec<_>>()
    };
    let once = run();
    assert!(once.len() > 1_000 && once == run());
}

#[test]
fn paced_frames_are_reported_once_too() {
    let (mut recorder, source) = constant(4_000);
    recorder.pacing = DataRate::from_kbps(6_000);
    let sizing = QueueSizing { max: 20, ..QueueSizing::default() };
    let dccp = DccpConfig { sizing: Some(sizing), ..DccpConfig::default() };
    let mut c = Call::new(sending(source, recorder.sender()), 3, dccp, Link::new(1_000, 20));
    c.run_until(at(10_000));
    let reported = recorder.rejected.lock().unwrap();
    let counters = c.a.counters();
    assert!(reported.len() > 100 && reported.len() as u64 <= counters.frames, "{} {counters:?}", reported.len());
    assert_eq!(reported.iter().map(|r| u64::from(r.packets)).sum::<u64>(), counters.rejected);
}

#[test]
fn packets_that_expire_in_the_queue_are_reported_too() {
    // A queue long enough to refuse nothing, and frames that expire after 100 ms.
    let (recorder, source) = constant(4_000);
    let queue = QueueConfig { capacity: 10_000, policy: QueuePolicy::Refuse };
    let config = Config { queue, ..video_connection(2) };
    let dccp = DccpConfig { max_wait: Some(TimeDelta::from_millis(100)), ..DccpConfig::default() };
    let mut c = Call::with(sending(source, recorder.sender()), config, dccp, Link::new(1_000, 20));
    c.run_until(at(10_000));
    let (reported, counters) = (recorder.rejected.lock().unwrap(), c.sending().queue().counters());
    let packets = reported.iter().map(|r| u64::from(r.packets)).sum::<u64>();
    assert!(counters.expired > 1_000 && c.a.counters().rejected == 0, "{counters:?}");
    // All except those since the last frame.
    assert!((counters.expired - 60..=counters.expired).contains(&packets), "{packets} of {}", counters.expired);
    // Nothing older than its deadline is sent: 5 packets queue on the path after 100 ms.
    let offset = c.a.endpoint_mut().outgoing(OutgoingId::FIRST).map(|s| s.rtp_timestamp_offset()).unwrap();
    let age = |p: &dccp_common::Left| {
        let ticks = p.rtp_timestamp().map(|t| i64::from(t.wrapping_sub(offset)));
        ticks.map(|t| p.now - Timestamp::from_micros(t * 100 / 9))
    };
    let oldest = c.sent.iter().filter_map(age).max().unwrap();
    assert!((90..=100).contains(&oldest.as_millis()), "{oldest}");
}

#[test]
fn the_call_survives_any_input() {
    let (recorder, source) = constant(1_000);
    let mut c = Call::new(sending(source, recorder.sender()), 2, DccpConfig::default(), Link::new(10_000, 20));
    let mut x = 88_172_645_463_325_252u64;
    let mut draw = |below: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x % below
    };
    let mut forged = 0u64;
    // From the start: noise, and packets of the call with flipped bits.
    for ms in 0..4_000 {
        c.run_until(at(ms * 5));
        for _ in 0..3 {
            let (mut bytes, payload) = match c.sent.len() {
                n if n > 0 && draw(2) == 0 => {
                    let sent = &c.sent[draw(n as u64) as usize];
                    (sent.bytes.clone(), sent.size as u32 - sent.bytes.len() as u32)
                }
                _ => ((0..draw(80)).map(|_| draw(256) as u8).collect(), draw(1_500) as u32),
            };
            // Flipped bits anywhere, with a sequence number that an off-path attacker would have to guess: UDP's is the
            // only checksum.
            for _ in 0..draw(4) {
                if let Some(i) = (!bytes.is_empty()).then(|| draw(bytes.len() as u64) as usize) {
                    bytes[i] ^= 1 << draw(8);
                }
            }
            if let Some(number) = bytes.get_mut(10..16) {
                number.copy_from_slice(&draw(1 << 48).to_be_bytes()[2..]);
            }
            forged += 1;
            let datagram = Datagram { bytes: &bytes, payload, ecn: Ecn::Ce };
            let now = c.now;
            let end = if draw(2) == 0 { &mut c.b } else { &mut c.a };
            end.handle_datagram(now, &datagram);
        }
    }
    assert_eq!((forged, c.a.is_open(), c.sending().end()), (12_000, true, None));
    let packets = c.b.endpoint().stats().receive_counters().packets;
    assert!(packets > 2_000, "{packets}");
    let counters = c.receiving().counters();
    assert!(counters.malformed > 500 && counters.sequence_invalid > 500, "{counters:?}");
}
