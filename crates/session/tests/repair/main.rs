//! Repair packets beside the media: recovery, reports on both streams, and forged packets.

#![allow(clippy::unwrap_used)]

mod by_frames;
mod red;
mod rlc;

use crate::common;
use common::{Call, Fate as LinkFate, Link, Recorded, Recorder, plan};
use std::collections::BTreeMap;
use weir_cc::cue::Fate;
use weir_cc::{FeedbackFormat, FeedbackPlan, RepairPlan};
use weir_media::PerfectCodec;
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    Datagram, EndConfig, EndPlan, HeaderExtensions, IncomingConfig, OutgoingConfig, OutgoingOptions, ParityFormat,
    ReceivingPath, RepairChoice, RepairReception, SendingPath, StreamIdentity,
};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{Packet, check_compound, parse_compound};
use weir_wire::rtp::PacketView;

const MEDIA: u8 = 96;
const REPAIR_SSRC: u32 = 11 ^ 1 << 31;

fn ms(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}

fn payload_type(bytes: &[u8]) -> u8 {
    bytes[1] & 0x7f
}

fn call(
    recorder: &Recorder,
    feedback: Option<FeedbackFormat>,
    reception: RepairReception,
    rule: impl FnMut(u64, &[u8]) -> LinkFate + 'static,
) -> Call {
    call_with(ParityFormat::FlexFec, recorder, feedback, reception, rule)
}

fn call_with(
    parity_format: ParityFormat,
    recorder: &Recorder,
    feedback: Option<FeedbackFormat>,
    reception: RepairReception,
    rule: impl FnMut(u64, &[u8]) -> LinkFate + 'static,
) -> Call {
    call_of(parity_format, recorder, feedback, reception, rule, |_, _| {})
}

fn call_of(
    parity_format: ParityFormat,
    recorder: &Recorder,
    feedback: Option<FeedbackFormat>,
    reception: RepairReception,
    rule: impl FnMut(u64, &[u8]) -> LinkFate + 'static,
    change: impl FnOnce(&mut OutgoingOptions, &mut IncomingConfig),
) -> Call {
    let now = Timestamp::ZERO;
    let rate = DataRate::from_mbps(2);
    let (min_interval, max_interval) = (ms(50), ms(100));
    let feedback = feedback.map(|format| FeedbackPlan { format, min_interval, max_interval, bandwidth_share: 0.05 });
    let config = EndConfig {
        ssrc: 11,
        remote_ssrc: 22,
        synchronised_clocks: true,
        extensions: HeaderExtensions {
            transport_sequence: feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide),
            ..HeaderExtensions::default()
        },
        ..EndConfig::default()
    };
    let identity = StreamIdentity { parity_format, ..StreamIdentity::of(11) };
    let mut outgoing = OutgoingConfig::new(identity, PerfectCodec::frames(ms(40), now).into(), Demand::default());
    let sending = SendingPath {
        per_packet_feedback: feedback.is_some(),
        reports: Some(plan()),
        ..SendingPath::new(recorder.sender())
    };
    let mut incoming = IncomingConfig {
        repair: reception,
        playout_deadline: Some(ms(250)),
        ..IncomingConfig::new(identity, MediaKind::default())
    };
    let receiving = ReceivingPath { feedback, reports: Some(plan()), ..ReceivingPath::default() };
    change(&mut outgoing.options, &mut incoming);
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..config.clone() };
    let (a, b) = (
        EndPlan::new(config).sends(outgoing).on(sending).make(now).unwrap(),
        EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap(),
    );
    Call::new(a, b, Link::new(rate, rule))
}

/// Loses media packets by their count, from 0.
fn lose_media(which: impl Fn(u64) -> bool + 'static) -> impl FnMut(u64, &[u8]) -> LinkFate {
    let mut n = 0;
    move |_, bytes| {
        if payload_type(bytes) != MEDIA {
            return LinkFate::Pass;
        }
        n += 1;
        if which(n - 1) { LinkFate::Lose } else { LinkFate::Pass }
    }
}

fn with_repair(kbps: u64, repair: RepairPlan) -> Recorder {
    let recorder = Recorder::new(kbps);
    recorder.target.lock().unwrap().repair = repair;
    recorder
}

#[test]
fn every_single_loss_of_a_parity_group_is_recovered() {
    for interval in [2u64, 3, 14] {
        let recorder = with_repair(800, RepairPlan::Parity { interval: interval as u8 });
        // In group g, from the second on, packet g modulo the group's size: each position in turn, and one per group.
        let which = move |n: u64| n >= interval && n % interval == n / interval % interval;
        let mut c = call(&recorder, None, RepairReception::Always, lose_media(which));
        c.run_until(Timestamp::from_secs(10));
        let (sent, r) = (c.a.stats().send_counters(), c.b.stats().repair_counters());
        assert_eq!(sent.repair_packets, sent.packets / interval);
        assert_eq!((sent.repair_dropped, sent.repair_refused, r.malformed, r.bad_recovered), (0, 0, 0, 0));
        assert!(sent.repair_packets - r.packets <= 20);
        let lost = c.there.lost.len() as u64;
        assert!(lost - r.window.recovered <= 10, "{interval}: {} of {lost}", r.window.recovered);
        let s = c.b.stats().recovery_stats();
        assert!(s.lost > 50 && s.packets > 500, "{s:?}");
        assert_eq!((s.recovered, s.protected_lost, s.residual_lost, s.discarded), (s.lost, s.lost, 0, 0), "{s:?}");
        assert_eq!((s.frames_lost, s.frames_protected_lost), (0, 0), "{s:?}");
        assert!(s.frames_recovered > 40 && s.frame_recovery_efficiency() == Some(1.0), "{s:?}");
        let p = c.b.stats().playout_stats().unwrap();
        assert_eq!((p.incomplete, p.late, p.discarded), (0, 0, 0), "{p:?}");
        // Receive statistics and run lengths report the loss before repair.
        let recorded: Vec<_> = recorder.intervals().into_iter().flat_map(|i| i.1).collect();
        let (mut fates, mut not_repaired) = (0, 0);
        for (i, p) in recorded.iter().enumerate() {
            assert_eq!(p.fate == Fate::Lost, which(i as u64), "{i}");
            assert!(p.fate == Fate::Lost || !p.repaired);
            fates += u64::from(p.fate == Fate::Lost);
            not_repaired += u64::from(p.fate == Fate::Lost && !p.repaired);
        }
        // Losses at the end of an interval may wait for their repair packet.
        assert!(fates > 50 && not_repaired <= recorder.intervals().len() as u64, "{not_repaired} of {fates}");
        let recorded = recorder.recorded();
        let loss = recorded.iter().filter_map(|t| match t {
            Recorded::Block(b) => Some(b.fraction_lost),
            _ => None,
        });
        let mean = loss.clone().sum::<f64>() / loss.count() as f64;
        assert!((mean - 1.0 / interval as f64).abs() < 0.25 / interval as f64, "{mean}");
    }
}

#[test]
fn flexfec_03_recovers_packets_whose_numbers_were_written_last() {
    let format = ParityFormat::FlexFec03 { zeroed: [3, 0] };
    let one_in = |n: u64| move |k: u64| k >= n && k % n == k / n % n;
    for feedback in [FeedbackFormat::TransportWide, FeedbackFormat::CongestionControl] {
        let recorder = with_repair(800, RepairPlan::Parity { interval: 5 });
        let (reception, rule) = (RepairReception::Always, lose_media(one_in(5)));
        let mut c = call_with(format, &recorder, Some(feedback), reception, rule);
        c.run_until(Timestamp::from_secs(4));
        let (sent, r) = (c.a.stats().send_counters(), c.b.stats().repair_counters());
        assert_eq!(
            (sent.repair_packets, sent.repair_dropped, r.malformed, r.bad_recovered),
            (sent.packets / 5, 0, 0, 0)
        );
        let s = c.b.stats().recovery_stats();
        assert!(s.lost > 40 && (s.recovered, s.residual_lost) == (s.lost, 0), "{s:?}");
        // The source is in the FEC header, and nowhere else.
        let repair = c.sent[0].iter().filter(|(_, bytes, t)| t.is_rtp() && payload_type(bytes) == 97);
        let ssrcs = repair.map(|(_, bytes, _)| {
            let view = PacketView::parse_header(bytes).unwrap();
            let repair = weir_wire::fec::flexfec03::Repair::parse(view.payload().into()).unwrap();
            (view.ssrc(), view.csrcs().len(), repair.ssrc)
        });
        assert!(ssrcs.clone().count() > 40 && ssrcs.clone().all(|s| s == (REPAIR_SSRC, 0, 11)));
    }
    // The other end has no format for another code.
    let recorder = with_repair(800, RepairPlan::ReedSolomon { block: 10, repair: 3 });
    let mut c = call_with(format, &recorder, None, RepairReception::Always, |_, _| LinkFate::Pass);
    c.run_until(Timestamp::from_secs(1));
    assert_eq!(c.a.stats().send_counters().repair_packets, 0);
}

#[test]
fn reed_solomon_recovers_as_many_losses_as_it_has_repair_packets() {
    // Blocks of 10 with 3 repair packets: b modulo 5 losses in block b; 4 are too many.
    let recorder = with_repair(800, RepairPlan::ReedSolomon { block: 10, repair: 3 });
    let losses = |n: u64| if n < 7 { 0 } else { n / 7 % 5 };
    let which = move |n: u64| n % 7 * 3 % 7 < losses(n);
    let mut c = call(&recorder, None, RepairReception::Always, lose_media(which));
    c.run_until(Timestamp::from_secs(10));
    let (sent, r) = (c.a.stats().send_counters(), c.b.stats().repair_counters());
    assert_eq!((sent.repair_packets, sent.repair_dropped, r.malformed), (sent.packets / 7 * 3, 0, 0));
    let s = c.b.stats().recovery_stats();
    // Of 10 losses in five blocks, 6 are recovered.
    assert!(s.recovered > 80 && s.protected_lost == s.lost, "{s:?}");
    let share = s.recovered as f64 / s.lost as f64;
    assert!((0.57..0.63).contains(&share), "{share}");
    assert_eq!(s.residual_lost + s.recovered, s.lost);
    let (plan, none) = (RepairPlan::ReedSolomon { block: 10, repair: 0 }, sent.repair_packets);
    recorder.target.lock().unwrap().repair = plan;
    c.run_until(Timestamp::from_secs(12));
    assert!(c.a.stats().send_counters().repair_packets - none <= 3, "no more but for the open block's");
}

#[test]
fn two_losses_of_a_group_stay_lost_and_are_counted() {
    let recorder = with_repair(800, RepairPlan::Parity { interval: 5 });
    let which = |n: u64| n / 5 % 10 == 3 && n % 5 < 2;
    let mut c = call(&recorder, None, RepairReception::Always, lose_media(which));
    c.run_until(Timestamp::from_secs(10));
    let s = c.b.stats().recovery_stats();
    assert!(s.lost > 20, "{s:?}");
    assert_eq!((s.recovered, s.residual_lost, s.protected_lost, s.frames_recovered), (0, s.lost, s.lost, 0), "{s:?}");
    assert!(s.frames_lost >= s.lost / 4 && s.frames_protected_lost == s.frames_lost, "{s:?}");
    assert_eq!(s.frame_recovery_efficiency(), Some(0.0));
    assert!(recorder.intervals().iter().all(|i| i.1.iter().all(|p| !p.repaired)));
}

#[test]
fn lost_repair_packets_are_known_by_their_numbers() {
    let recorder = with_repair(800, RepairPlan::Parity { interval: 5 });
    // In each tenth group a media packet and the repair packet are lost.
    let (mut media, mut repair) = (0u64, 0u64);
    let mut c = call(&recorder, None, RepairReception::Always, move |_, bytes| match payload_type(bytes) {
        MEDIA => {
            media += 1;
            if (media - 1) % 50 == 22 { LinkFate::Lose } else { LinkFate::Pass }
        }
        97 => {
            repair += 1;
            if (repair - 1) % 10 == 4 { LinkFate::Lose } else { LinkFate::Pass }
        }
        _ => LinkFate::Pass,
    });
    c.run_until(Timestamp::from_secs(10));
    let s = c.b.stats().recovery_stats();
    assert!(s.lost >= 15 && s.protected_lost == s.lost && s.residual_lost == s.lost, "{s:?}");
    assert_eq!((s.frames_protected_lost, s.frames_lost), (s.lost, s.lost), "{s:?}");
}

#[test]
fn repair_that_was_not_expected_begins_with_its_first_packet() {
    let recorder = Recorder::new(800);
    let mut c = call(&recorder, None, RepairReception::WhenSeen, lose_media(|n| n % 4 == 1));
    c.run_until(Timestamp::from_secs(2));
    assert_eq!((c.a.stats().send_counters().repair_packets, c.b.stats().repair_counters().packets), (0, 0));
    assert_eq!(c.b.stats().recovery_stats().recovered, 0);
    recorder.target.lock().unwrap().repair = RepairPlan::Parity { interval: 4 };
    c.run_until(Timestamp::from_secs(6));
    let (s, before) = (c.b.stats().recovery_stats(), c.a.stats().send_counters());
    assert!(s.recovered > 90, "{s:?}");
    recorder.target.lock().unwrap().repair = RepairPlan::Off;
    c.run_until(Timestamp::from_secs(8));
    assert!(c.a.stats().send_counters().repair_packets - before.repair_packets <= 1);
    let off = RepairChoice::Fixed(weir_fec::Protection::Off);
    c.a.set_repair(RepairChoice::Fixed(weir_fec::Scheme::Parity { interval: 2 }.into())).unwrap();
    let bad = RepairChoice::Fixed(weir_fec::Scheme::Parity { interval: 0 }.into());
    assert!(c.a.set_repair(bad).is_err(), "and the old one stays");
    c.run_until(Timestamp::from_secs(9));
    assert!(c.a.stats().send_counters().repair_packets - before.repair_packets > 40);
    c.a.set_repair(off).unwrap();
    let at = c.a.stats().send_counters().repair_packets;
    c.run_until(Timestamp::from_secs(10));
    assert!(c.a.stats().send_counters().repair_packets - at <= 1);
}

#[test]
fn an_end_without_repair_takes_repair_packets_for_strangers() {
    let recorder = with_repair(800, RepairPlan::Parity { interval: 4 });
    let mut c = call(&recorder, None, RepairReception::Off, lose_media(|n| n % 4 == 1));
    c.run_until(Timestamp::from_secs(2));
    assert!(c.b.stats().counters().unknown_source > 40);
    assert_eq!((c.b.stats().repair_counters().packets, c.b.stats().recovery_stats().recovered), (0, 0));
    assert_eq!(c.b.stats().receive_counters().invalid, 0);
}

#[test]
fn per_packet_feedback_reports_both_streams() {
    for format in [FeedbackFormat::TransportWide, FeedbackFormat::CongestionControl] {
        let recorder = with_repair(800, RepairPlan::Parity { interval: 3 });
        let mut c = call(&recorder, Some(format), RepairReception::WhenSeen, |n, bytes| {
            if n % 7 == 0 && matches!(payload_type(bytes), MEDIA | 97) { LinkFate::Lose } else { LinkFate::Pass }
        });
        c.run_until(Timestamp::from_secs(5));
        let sent: BTreeMap<u64, _> = recorder.sent().into_iter().map(|p| (p.sequence, p)).collect();
        let first = *sent.keys().next().unwrap();
        assert!(sent.keys().copied().eq(first..first + sent.len() as u64), "transport-wide numbers leave no gap");
        let repairs = sent.values().filter(|p| p.is_repair).count();
        assert!(repairs > 100 && sent.values().all(|p| !(p.is_repair && p.is_padding)));
        // The transport-wide numbers lost by the link, by the order in which datagrams were sent.
        let rtp: Vec<_> = c.sent[0].iter().filter(|s| s.2.is_rtp()).collect();
        let mut resolved = BTreeMap::new();
        for t in recorder.recorded() {
            let Recorded::Feedback(packets) = t else { continue };
            for p in packets {
                assert_eq!((p.departure, p.size), (sent[&p.sequence].now, sent[&p.sequence].size), "{format:?}");
                assert!(resolved.insert(p.sequence, p.arrival.is_some()).is_none(), "{format:?}");
            }
        }
        assert!(sent.len() - resolved.len() < 40, "{format:?}: {} of {}", resolved.len(), sent.len());
        for (number, came) in resolved {
            let bytes = &rtp[(number - first) as usize].1;
            let v = PacketView::parse_header(bytes).unwrap();
            assert_eq!(rtp[(number - first) as usize].2.is_repair(), sent[&number].is_repair);
            assert_eq!(came, !c.there.lost.contains(&(v.ssrc(), v.sequence())), "{format:?}");
        }
        let h = c.a.stats().history_counters();
        assert_eq!((h.unknown, h.late), (0, 0), "{format:?}");
        assert_eq!(c.a.stats().counters().unknown_source, 0);
    }
}

#[test]
fn the_repair_stream_has_reports_of_its_own() {
    let recorder = with_repair(800, RepairPlan::Parity { interval: 3 });
    let mut c = call(&recorder, None, RepairReception::WhenSeen, |n, bytes| {
        if n % 10 == 0 && payload_type(bytes) == 97 { LinkFate::Lose } else { LinkFate::Pass }
    });
    c.run_until(Timestamp::from_secs(5));
    let (mut infos, mut blocks, mut named) = (0, vec![], 0);
    for (_, bytes, t) in c.sent.iter().flatten().filter(|s| !s.2.is_rtp()) {
        assert!(!t.is_repair());
        check_compound(bytes).expect("a compound by RFC 3550");
        for packet in parse_compound(bytes).flatten() {
            match packet {
                Packet::SenderReport(sr) if sr.ssrc == REPAIR_SSRC => {
                    infos += 1;
                    assert!(sr.info.packets > 0 && sr.info.octets > sr.info.packets * 1_000);
                }
                Packet::Sdes(s) => named += usize::from(s.chunks.iter().any(|c| c.ssrc == REPAIR_SSRC)),
                Packet::ReceiverReport(rr) => blocks.extend(rr.blocks.iter().filter(|b| b.ssrc == REPAIR_SSRC)),
                _ => {}
            }
        }
    }
    assert!(infos > 10 && named == infos, "{infos} {named}");
    let last = blocks.last().expect("repair arrives");
    let unreported = c.there.lost.len() as i32 - last.cumulative_lost;
    assert!(last.cumulative_lost > 8 && (0..=1).contains(&unreported), "{last:?}");
    assert!(last.last_sr != 0 && blocks.len() > 10);
    // The controller receives the media only.
    let media =
        recorder.recorded().iter().filter(|t| matches!(t, Recorded::Block(b) if b.cumulative_lost != 0)).count();
    assert_eq!(media, 0);
}

#[test]
fn forged_repair_packets_are_counted_and_bring_nothing_back() {
    let recorder = with_repair(800, RepairPlan::Parity { interval: 4 });
    let mut c = call(&recorder, None, RepairReception::Always, lose_media(|n| n % 40 == 1));
    c.run_until(Timestamp::from_secs(3));
    let (clean, frames) = (c.b.stats().repair_counters(), c.b.stats().recovery_stats());
    let real = c.sent[0].iter().rev().find(|s| s.2.is_repair()).cloned().unwrap();
    let mut x = 12_345u64;
    let mut random = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (x >> 33) as u32
    };
    let mut sequence = PacketView::parse_header(&real.1).unwrap().sequence();
    for n in 0..20_000u32 {
        let mut bytes = real.1.clone();
        sequence = sequence.wrapping_add(1);
        bytes[2..4].copy_from_slice(&sequence.to_be_bytes());
        bytes[1] = 97 + (n % 2) as u8;
        for _ in 0..n % 5 {
            let i = 12 + random() as usize % (bytes.len() - 12);
            bytes[i] = random() as u8;
        }
        bytes.truncate(bytes.len() - random() as usize % 8);
        let payload = random() % 70_000;
        c.b.handle_datagram(c.now, &Datagram { payload, ..Datagram::new(&bytes, Ecn::NotEct) });
    }
    let r = c.b.stats().repair_counters();
    assert_eq!(r.packets - clean.packets, 20_000);
    let w = r.window;
    let judged = r.malformed + w.unused + w.late + w.duplicate + w.inconsistent + w.rejected + w.expired + w.used;
    assert!(r.malformed > 1_000 && judged + 256 >= 20_000, "{r:?}");
    // The call continues, and losses are still recovered.
    c.run_until(Timestamp::from_secs(6));
    let s = c.b.stats().recovery_stats();
    assert!(s.recovered - frames.recovered > 5, "{s:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_with_repair() {
    let run = || {
        let recorder = with_repair(800, RepairPlan::Parity { interval: 3 });
        let format = Some(FeedbackFormat::CongestionControl);
        let mut c = call(&recorder, format, RepairReception::Always, lose_media(|n| n % 9 == 1));
        c.run_until(Timestamp::from_secs(4));
        (c.sent, recorder.recorded(), c.b.stats().recovery_stats())
    };
    assert_eq!(run(), run());
}
