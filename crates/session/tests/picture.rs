//! Picture feedback between two ends: key frames, acknowledgements, reference pictures.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::toy::{Life, Toy};
use common::{Call, Fate, Link, Recorder};
use std::sync::{Arc, Mutex};
use weir_media::{FrameKind, SourceFeedback};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    Datagram, EndConfig, EndPlan, IncomingConfig, IncomingId, KeyFrameRequest, OutgoingConfig, OutgoingId,
    OutgoingOptions, PictureFeedback, Profile, ReceivingPath, SendingPath, StreamIdentity,
};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{Fir, FirEntry, Packet, Pli, Sli, SliEntry, parse_compound};

fn ms(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}
fn at(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}

fn call(picture: PictureFeedback, back: impl FnMut(u64, &[u8]) -> Fate + 'static) -> (Call, Arc<Mutex<Life>>) {
    let (now, toy) = (Timestamp::ZERO, Toy::new(ms(40)));
    let life = toy.life.clone();
    let outgoing =
        OutgoingConfig::new(StreamIdentity::of(11), weir_media::Source::Custom(Box::new(toy)), Demand::default())
            .with(OutgoingOptions { picture, ..OutgoingOptions::default() });
    let sending = SendingPath::new(Recorder::new(800).sender());
    let incoming = IncomingConfig {
        playout_deadline: Some(ms(200)),
        content: true,
        picture,
        ..IncomingConfig::new(StreamIdentity::of(11), MediaKind::default())
    };
    let receiving = ReceivingPath::default();
    let config = EndConfig { ssrc: 11, remote_ssrc: 22, ..EndConfig::default() };
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..config.clone() };
    let (a, b) = (
        EndPlan::new(config).sends(outgoing).on(sending).make(now).unwrap(),
        EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap(),
    );
    let mut c = Call::new(a, b, Link::new(DataRate::from_mbps(20), |_, _| Fate::Pass));
    c.back = Link::new(DataRate::from_mbps(10), back);
    (c, life)
}

/// When messages of a kind were sent by the receiver.
fn sent(c: &Call, is: impl Fn(&Packet<'_>) -> bool) -> Vec<Timestamp> {
    let counted = |bytes: &[u8]| parse_compound(bytes).flatten().any(|p| is(&p));
    c.sent[1].iter().filter(|s| counted(&s.1)).map(|s| s.0).collect()
}

/// Sends this message to the sender.
fn deliver(c: &mut Call, message: impl Fn(&mut Vec<u8>)) {
    let mut bytes = vec![];
    message(&mut bytes);
    c.a.handle_datagram(c.now, &Datagram::new(&bytes, Ecn::NotEct));
}

fn key_requests(life: &Mutex<Life>) -> Vec<Timestamp> {
    life.lock().unwrap().key_requests.clone()
}

#[test]
fn a_key_frame_request_leaves_early_and_is_repeated_until_answered() {
    let (mut c, life) = call(PictureFeedback::default(), |_, _| Fate::Pass);
    c.run_until(at(3_000));
    assert!(c.b.incoming(IncomingId::FIRST).is_some_and(|mut s| s.request_key_frame(c.now)));
    c.run_until(at(4_000));
    let left = sent(&c, |p| matches!(p, Packet::Pli(_)));
    // At once by the rules of early feedback: RTCP's share of 2 Mbit/s allows a packet every few tens of milliseconds.
    assert!(left[0] <= at(3_100), "{left:?}");
    // A round trip and the playout delay apart; the other end responds at most every 300 ms.
    assert!(left.windows(2).all(|w| w[1] - w[0] >= ms(300)) && (3..=4).contains(&left.len()), "{left:?}");
    assert_eq!(key_requests(&life).len(), left.iter().filter(|&&t| t < at(3_940)).count());
    let keys = life.lock().unwrap().frames.iter().filter(|f| f.1 == FrameKind::Key).count();
    assert!(keys >= 3, "the first, and one each time");
    c.b.incoming(IncomingId::FIRST).expect("a stream").on_decoded(1, true);
    let before = left.len();
    c.run_until(at(8_000));
    assert_eq!(sent(&c, |p| matches!(p, Packet::Pli(_))).len(), before);
    let (counted, heard) = (c.b.stats().picture_counters(), c.a.stats().picture_counters());
    assert_eq!((counted.pli_sent, heard.key_requests, counted.fir_sent), (before as u64, before as u64, 0));
}

#[test]
fn a_request_survives_the_loss_of_feedback_and_falls_back_to_fir() {
    let picture = PictureFeedback { key_frame_request: KeyFrameRequest::PliThenFir(2), ..Default::default() };
    let is_request = |b: &[u8]| parse_compound(b).flatten().any(|p| matches!(p, Packet::Pli(_) | Packet::Fir(_)));
    let mut seen = 0;
    let (mut c, life) = call(picture, move |_, b| {
        seen += u64::from(is_request(b));
        if is_request(b) && seen <= 3 { Fate::Lose } else { Fate::Pass }
    });
    c.run_until(at(2_000));
    assert!(c.b.incoming(IncomingId::FIRST).is_some_and(|mut s| s.request_key_frame(c.now)));
    c.run_until(at(5_000));
    let counted = c.b.stats().picture_counters();
    assert_eq!(counted.pli_sent, 2);
    // One FIR was lost, the others arrive as repetitions of one command.
    assert!(counted.fir_sent >= 4, "{counted:?}");
    let first = key_requests(&life)[0];
    assert!((at(2_800)..at(3_400)).contains(&first), "{first}");
    let heard = c.a.stats().picture_counters();
    assert_eq!(heard.key_requests, counted.fir_sent - 1);
    assert_eq!(heard.key_requests_granted, key_requests(&life).len() as u64);
}

#[test]
fn requests_are_granted_no_faster_than_the_least_interval_and_fir_by_its_number() {
    let (mut c, life) = call(PictureFeedback::default(), |_, _| Fate::Pass);
    c.run_until(at(1_000));
    for _ in 0..20 {
        deliver(&mut c, |out| Pli { sender_ssrc: 22, media_ssrc: 11 }.write_into(out));
        let end = c.now + ms(50);
        c.run_until(end);
    }
    // A second of requests.
    assert!((3..=4).contains(&key_requests(&life).len()), "{:?}", key_requests(&life));
    c.run_until(at(4_000));
    let fir = |sequence: u8| {
        move |out: &mut Vec<u8>| {
            let entries = [FirEntry { ssrc: 11, sequence }];
            Fir { sender_ssrc: 22, media_ssrc: 0, entries: (&entries).into() }.write_into(out);
        }
    };
    let before = key_requests(&life).len();
    deliver(&mut c, fir(7));
    assert_eq!(key_requests(&life).len(), before + 1);
    // The round-trip time is 100 ms: two of them after the key frame, a repetition counts again.
    c.run_until(at(4_150));
    deliver(&mut c, fir(7));
    assert_eq!(key_requests(&life).len(), before + 1);
    // A new command is delayed until another key frame is allowed.
    deliver(&mut c, fir(8));
    assert_eq!(key_requests(&life).len(), before + 1);
    c.run_until(at(4_500));
    assert_eq!(key_requests(&life).len(), before + 2);
    c.run_until(at(5_200));
    deliver(&mut c, fir(8));
    assert_eq!(key_requests(&life).len(), before + 3);
    // Addressed to another source.
    c.run_until(at(6_000));
    deliver(&mut c, |out| Pli { sender_ssrc: 22, media_ssrc: 12 }.write_into(out));
    assert_eq!(key_requests(&life).len(), before + 3);
}

#[test]
fn references_and_acknowledgements_reach_the_source_by_its_own_timestamps() {
    for acknowledge in [false, true] {
        let picture = PictureFeedback { acknowledge, reference_tries: 20, ..Default::default() };
        let (mut c, life) = call(picture, |_, _| Fate::Pass);
        let (mut frame, mut decoded) = (weir_media::ReceivedFrame::default(), vec![]);
        let mut damaged_at = None;
        while c.now < at(4_000) {
            let end = c.now + ms(10);
            c.run_until(end);
            while let Some(e) = c.b.poll_playout(c.now) {
                assert!(c.b.take_frame(&e, &mut frame));
                let damage = (at(2_000)..at(2_600)).contains(&c.now);
                c.b.incoming(IncomingId::FIRST).expect("a stream").on_decoded(frame.rtp_timestamp, !damage);
                let id = u64::from_be_bytes(frame.packets[0].bytes[..8].try_into().unwrap());
                if damage {
                    damaged_at.get_or_insert(c.now);
                    assert!(
                        c.b.incoming(IncomingId::FIRST)
                            .is_some_and(|mut s| s.on_damaged(frame.rtp_timestamp.wrapping_sub(3_600), c.now))
                    );
                } else {
                    decoded.push((id, life.lock().unwrap().frames[id as usize].0));
                }
            }
        }
        let feedback = life.lock().unwrap().feedback.clone();
        let acknowledged: Vec<u32> = (feedback.iter())
            .filter_map(|f| if let SourceFeedback::Decoded { rtp_timestamp } = f { Some(*rtp_timestamp) } else { None })
            .collect();
        let wanted: Vec<u32> = (feedback.iter())
            .filter_map(|f| if let SourceFeedback::ReferenceWanted { rtp_timestamp: t } = f { Some(*t) } else { None })
            .collect();
        // 600 ms of damage, requested every 200 ms plus a round trip.
        assert!((2..=4).contains(&wanted.len()), "{wanted:?}");
        let first = (damaged_at.unwrap() - Timestamp::ZERO).as_millis() - 200 - 40;
        assert!((i64::from(wanted[0]) / 90 - first).abs() <= 80, "{} {first}", wanted[0] / 90);
        let (counted, heard) = (c.b.stats().picture_counters(), c.a.stats().picture_counters());
        assert_eq!(
            (counted.references_sent, heard.references, heard.unknown),
            (wanted.len() as u64, counted.references_sent, 0)
        );
        assert_eq!(acknowledged.len() as u64, heard.acknowledgements);
        if acknowledge {
            assert!((20..=90).contains(&acknowledged.len()), "{acknowledged:?}");
            assert!(acknowledged.iter().all(|t| decoded.iter().any(|d| d.1 == *t)));
            assert!(sent(&c, |p| matches!(p, Packet::Sli(_))).len() >= wanted.len());
        } else {
            assert_eq!((acknowledged.len(), counted.acknowledgements_sent), (0, 0));
        }
    }
}

#[test]
fn an_sli_alone_goes_back_to_what_was_acknowledged_or_asks_for_a_key_frame() {
    let sli = |out: &mut Vec<u8>| {
        let entries = [SliEntry { first: 0, number: 9, picture_id: 1 }];
        Sli { sender_ssrc: 22, media_ssrc: 11, entries: (&entries).into() }.write_into(out);
    };
    let (mut c, life) = call(PictureFeedback { acknowledge: true, ..Default::default() }, |_, _| Fate::Pass);
    c.run_until(at(1_000));
    deliver(&mut c, sli);
    assert_eq!((key_requests(&life).len(), life.lock().unwrap().feedback.len()), (1, 0));
    let mut frame = weir_media::ReceivedFrame::default();
    let e = c.b.poll_playout(c.now).unwrap();
    assert!(c.b.take_frame(&e, &mut frame));
    c.b.incoming(IncomingId::FIRST).expect("a stream").on_decoded(frame.rtp_timestamp, true);
    c.run_until(at(1_300));
    deliver(&mut c, sli);
    let expected = [SourceFeedback::Decoded { rtp_timestamp: 0 }, SourceFeedback::ReferenceWanted { rtp_timestamp: 0 }];
    assert_eq!((key_requests(&life).len(), &life.lock().unwrap().feedback[..]), (1, &expected[..]));
    assert!(
        c.a.outgoing(OutgoingId::FIRST).is_some_and(|mut s| s.set_slice_size(Some(DataSize::from_bytes(400)), c.now))
    );
    let last = life.lock().unwrap().feedback.last().copied();
    assert_eq!(last, Some(SourceFeedback::SliceSize(Some(DataSize::from_bytes(400)))));
}

#[test]
fn a_profile_without_feedback_says_so() {
    let (mut c, _) = call(PictureFeedback::default(), |_, _| Fate::Pass);
    let mut params = *c.b.stats().session_params();
    params.profile = Profile::Avp;
    c.b.rtcp().set_params(params).unwrap();
    c.run_until(at(1_000));
    assert!(
        !c.b.incoming(IncomingId::FIRST).is_some_and(|mut s| s.request_key_frame(c.now))
            && !c.b.incoming(IncomingId::FIRST).is_some_and(|mut s| s.on_damaged(0, c.now))
    );
    c.run_until(at(9_000));
    assert_eq!(sent(&c, |p| matches!(p, Packet::Pli(_) | Packet::Rpsi(_))).len(), 0);
}
