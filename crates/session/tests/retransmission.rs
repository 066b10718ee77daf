//! Requests for lost packets and their retransmission: residual loss, cost, and hostile requests.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::toy::Toy;
use common::{Call, Fate, Link, Recorded, Recorder};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_cc::{FeedbackFormat, FeedbackPlan, RepairPlan};
use weir_media::resilience::{Choice, Mechanisms};
use weir_media::{Capabilities, PerfectCodec, ReceivedFrame, Source, SourceFeedback};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    Datagram, EndConfig, EndPlan, HeaderExtensions, IncomingConfig, NackConfig, OutgoingConfig, OutgoingOptions,
    ReceivingPath, RecoveryStats, ResilienceConfig, RetransmissionConfig, SendingPath, StreamIdentity,
};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{Nack, NackEntry, Packet, check_compound, parse_compound};

const MEDIA: u8 = 96;
const RESENT: u8 = 99;
const RESENT_SSRC: u32 = 11 ^ 1 << 30;

fn ms(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}

/// A call with a round-trip time, a playout deadline, and a loss rule.
struct Setup {
    rtt: TimeDelta,
    deadline: TimeDelta,
    feedback: Option<FeedbackFormat>,
    retransmission: RetransmissionConfig,
    nack: NackConfig,
}

impl Setup {
    fn new(rtt: i64, deadline: i64) -> Self {
        let (retransmission, nack) = (RetransmissionConfig::default(), NackConfig::default());
        Self { rtt: ms(rtt), deadline: ms(deadline), feedback: None, retransmission, nack }
    }

    fn call(&self, recorder: &Recorder, rule: impl FnMut(u64, &[u8]) -> Fate + 'static) -> Call {
        let now = Timestamp::ZERO;
        let (min_interval, max_interval) = (ms(50), ms(100));
        let feedback =
            self.feedback.map(|format| FeedbackPlan { format, min_interval, max_interval, bandwidth_share: 0.05 });
        let config = EndConfig {
            ssrc: 11,
            remote_ssrc: 22,
            synchronised_clocks: true,
            extensions: HeaderExtensions {
                transport_sequence: self.feedback == Some(FeedbackFormat::TransportWide),
                ..HeaderExtensions::default()
            },
            ..EndConfig::default()
        };
        let outgoing =
            OutgoingConfig::new(StreamIdentity::of(11), PerfectCodec::frames(ms(20), now).into(), Demand::default())
                .with(OutgoingOptions { retransmission: Some(self.retransmission), ..OutgoingOptions::default() });
        let sending = SendingPath { per_packet_feedback: feedback.is_some(), ..SendingPath::new(recorder.sender()) };
        let nack = Some(self.nack);
        let incoming = IncomingConfig {
            nack,
            playout_deadline: Some(self.deadline),
            ..IncomingConfig::new(StreamIdentity::of(11), MediaKind::default())
        };
        let receiving = ReceivingPath { feedback, ..ReceivingPath::default() };
        let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..config.clone() };
        let (a, b) = (
            EndPlan::new(config).sends(outgoing).on(sending).make(now).unwrap(),
            EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap(),
        );
        let mut c = Call::new(a, b, Link::new(DataRate::from_mbps(20), rule).with_delay(self.rtt / 2));
        c.back = Link::new(DataRate::from_mbps(20), |_, _| Fate::Pass).with_delay(self.rtt / 2);
        c
    }
}

/// Loses RTP at random.
fn lose_rtp(share: f64, seed: u64) -> impl FnMut(u64, &[u8]) -> Fate {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    move |_, bytes| {
        let is_rtp = !(192..=223).contains(&bytes[1]);
        if is_rtp && rng.random_bool(share) { Fate::Lose } else { Fate::Pass }
    }
}

fn since(s: RecoveryStats, before: RecoveryStats) -> [u64; 4] {
    [
        s.packets - before.packets,
        s.lost - before.lost,
        s.recovered - before.recovered,
        s.residual_lost - before.residual_lost,
    ]
}

/// With time for k requests, a packet is finally lost if it and k retransmissions are lost.
#[test]
fn the_residual_loss_is_a_power_of_the_loss() {
    for (i, (rtt, share)) in [20, 100, 300].into_iter().flat_map(|r| [(r, 0.01), (r, 0.05), (r, 0.2)]).enumerate() {
        for requests in 0..3 {
            // The loss is detected with the next frame, at most 20 ms later, or after 10 ms; a response counts if it
            // arrives by the deadline. The deadline is half a round trip longer than needed.
            let deadline = rtt / 2 + 35 + requests * (rtt + 10) + rtt / 2 - 10;
            let mut c = Setup::new(rtt, deadline).call(&Recorder::new(800), lose_rtp(share, i as u64));
            // Until the round-trip time is measured.
            c.run_until(Timestamp::from_secs(8));
            let (before, begun) = (c.b.stats().recovery_stats(), c.b.stats().nack_counters());
            c.run_until(Timestamp::from_secs(80));
            let [packets, lost, recovered, residual] = since(c.b.stats().recovery_stats(), before);
            let (n, r) = (c.b.stats().nack_counters(), c.a.stats().retransmission_counters());
            let near = |count: u64, expected: f64| {
                let spread = 4.0 * expected.sqrt() + 2.0;
                assert!(
                    (count as f64 - expected).abs() < spread,
                    "RTT {rtt}, loss {share}, {requests} requests: {count} instead of {expected}: {n:?} {r:?}"
                );
            };
            assert!((6_000..9_000).contains(&packets), "{packets}");
            near(lost, packets as f64 * share);
            near(residual, packets as f64 * share.powi(1 + requests as i32));
            assert_eq!(lost, recovered + residual);
            // Hardly anything is sent without need, and nothing is refused.
            let (useless, all) = (n.useless() - begun.useless(), n.retransmissions - begun.retransmissions);
            assert!(useless * 20 <= all + 40, "RTT {rtt}, loss {share}, {requests}: {n:?}");
            assert_eq!((r.refused, n.malformed), (0, 0));
            assert!(r.unknown <= 2, "{r:?}");
        }
    }
}

/// Reports have the loss of the path, or on request the residual loss after retransmission.
#[test]
fn reports_count_retransmissions_on_request() {
    for (count_retransmissions, share) in [(false, 0.1), (true, 0.01)] {
        let recorder = Recorder::new(800);
        let nack = NackConfig { count_retransmissions, ..NackConfig::default() };
        // Time for one request.
        let mut c = Setup { nack, ..Setup::new(100, 245) }.call(&recorder, lose_rtp(0.1, 3));
        c.run_until(Timestamp::from_secs(100));
        let recorded = recorder.recorded.lock().unwrap();
        let block =
            recorded.iter().rev().find_map(|t| if let Recorded::Block(b) = t { Some(*b) } else { None }).unwrap();
        let (lost, packets) = (block.cumulative_lost as f64, c.a.stats().send_counters().packets as f64);
        let expected = packets * share;
        assert!((lost - expected).abs() < 4.0 * expected.sqrt() + 10.0, "{count_retransmissions}: {lost} of {packets}");
    }
}

#[test]
fn a_retransmission_is_a_stream_of_its_own_with_reports_and_an_end() {
    let recorder = Recorder::new(800);
    let mut c = Setup::new(100, 400).call(&recorder, lose_rtp(0.05, 7));
    c.run_until(Timestamp::from_secs(20));
    let sent = c.a.stats().retransmission_counters();
    assert!(sent.packets > 60 && sent.unknown == 0, "{sent:?}");
    let resent: Vec<_> = c.sent[0].iter().filter(|(_, b, t)| t.is_rtp() && b[1] & 0x7f == RESENT).collect();
    assert_eq!(resent.len() as u64, sent.packets);
    assert_eq!(resent.iter().map(|r| r.2.size.as_bytes()).sum::<u64>(), sent.bytes);
    let mut last = None;
    for (at, bytes, t) in &resent {
        let view = weir_wire::rtp::PacketView::parse_header(bytes).unwrap();
        assert!(view.ssrc() == RESENT_SSRC && t.is_repair());
        assert!(last.is_none_or(|l: u16| view.sequence() == l.wrapping_add(1)));
        last = Some(view.sequence());
        let (osn, _) = weir_wire::rtp::retransmission::read(view.payload()).unwrap();
        // A retransmission is the packet sent with that number, marker and timestamp included.
        let same = |(_, b, t): &&(Timestamp, Vec<u8>, weir_session::Transmit)| {
            t.is_rtp() && b[1] & 0x7f == MEDIA && b[2..4] == osn.to_be_bytes()
        };
        let original = c.sent[0].iter().find(same).unwrap();
        assert!(original.0 < *at && *at - original.0 < ms(1_000));
        assert_eq!((&original.1[4..8], original.1[1] & 0x80), (&bytes[4..8], bytes[1] & 0x80));
        assert_eq!(original.2.payload, t.payload);
    }
    // Sender reports on both, and a block on each at the other end.
    let (mut reports, mut blocks) = (vec![], vec![]);
    for (from, to) in [(0, &mut reports), (1, &mut blocks)] {
        for (_, bytes, _) in c.sent[from].iter().filter(|s| !s.2.is_rtp()) {
            for packet in parse_compound(bytes) {
                match packet.unwrap() {
                    Packet::SenderReport(sr) => to.push((sr.ssrc, sr.info.packets)),
                    Packet::ReceiverReport(rr) => to.extend(rr.blocks.iter().map(|b| (b.ssrc, b.highest_sequence))),
                    _ => {}
                }
            }
        }
    }
    for all in [reports, blocks] {
        assert!(all.iter().filter(|r| r.0 == RESENT_SSRC).count() > 5 && all.iter().filter(|r| r.0 == 11).count() > 5);
    }
    c.a.leave(None);
    c.run_until(Timestamp::from_secs(21));
    let last = &c.sent[0].last().unwrap().1;
    assert!(check_compound(last).is_ok());
    let goodbye = parse_compound(last).find_map(|p| if let Ok(Packet::Bye(b)) = p { Some(b) } else { None }).unwrap();
    assert_eq!(goodbye.sources.iter().collect::<Vec<_>>(), [11, RESENT_SSRC]);
}

/// In either format feedback reports retransmissions as packets of their own, which controllers can distinguish.
#[test]
fn feedback_and_controllers_know_retransmissions_from_originals() {
    for format in [FeedbackFormat::TransportWide, FeedbackFormat::CongestionControl] {
        let recorder = Recorder::new(800);
        let setup = Setup { feedback: Some(format), ..Setup::new(100, 400) };
        let mut c = setup.call(&recorder, lose_rtp(0.1, 3));
        c.run_until(Timestamp::from_secs(20));
        let sent = recorder.sent();
        let again: Vec<_> = sent.iter().filter(|p| p.is_retransmission).map(|p| p.sequence).collect();
        assert_eq!(again.len() as u64, c.a.stats().retransmission_counters().packets);
        assert!(again.len() > 100 && sent.iter().all(|p| !p.is_repair && !p.is_padding));
        assert!(sent.windows(2).all(|w| w[1].sequence == w[0].sequence + 1));
        let (mut recorded, mut lost) = (0, 0);
        for results in
            recorder.recorded().iter().filter_map(|t| if let Recorded::Feedback(f) = t { Some(f) } else { None })
        {
            for p in results {
                let departure = sent[(p.sequence - sent[0].sequence) as usize].now;
                assert_eq!(departure, p.departure);
                if again.binary_search(&p.sequence).is_ok() {
                    recorded += 1;
                    lost += u64::from(p.arrival.is_none());
                }
            }
        }
        // Each may be lost like any other packet.
        assert!(recorded as f64 > 0.97 * again.len() as f64, "{recorded} of {}", again.len());
        assert!((0.04..0.18).contains(&(lost as f64 / recorded as f64)), "{lost} of {recorded}");
        assert_eq!((c.a.stats().counters().unknown_source, c.b.stats().counters().unknown_source), (0, 0));
    }
}

#[test]
fn media_makes_room_for_what_is_sent_again() {
    let rate = |share| {
        let mut c = Setup::new(100, 500).call(&Recorder::new(800), lose_rtp(share, 5));
        c.run_until(Timestamp::from_secs(10));
        let before = (c.a.stats().send_counters().bytes, c.a.stats().retransmission_counters().bytes);
        c.run_until(Timestamp::from_secs(50));
        let kbps = |bytes: u64| bytes as f64 * 8.0 / 40_000.0;
        (
            kbps(c.a.stats().send_counters().bytes - before.0),
            kbps(c.a.stats().retransmission_counters().bytes - before.1),
        )
    };
    let (alone, none) = rate(0.0);
    assert!(none == 0.0 && (790.0..830.0).contains(&alone), "{alone}");
    let (media, resent) = rate(0.2);
    // A fifth of media and retransmissions.
    let expected = media * 0.25;
    assert!((expected * 0.9..expected * 1.1).contains(&resent), "{resent} beside {media}");
    assert!((alone * 0.95..alone * 1.05).contains(&(media + resent)), "{media} and {resent} instead of {alone}");
}

#[test]
fn a_storm_of_requests_is_bounded() {
    let recorder = Recorder::new(800);
    let mut setup = Setup::new(100, 400);
    setup.retransmission.max_share = 0.2;
    let mut c = setup.call(&recorder, |_, _| Fate::Pass);
    c.run_until(Timestamp::from_secs(5));
    let mut requests = 0;
    for t in 0..5_000 {
        let entries: Vec<_> =
            (0..300u16).map(|i| NackEntry { first: i.wrapping_mul(17 * 13).wrapping_add(t), following: !0 }).collect();
        let mut out = vec![];
        Nack { sender_ssrc: 22, media_ssrc: 11, entries: (&entries).into() }.write_into(&mut out);
        requests += entries.len() as u64 * 17;
        let datagram = Datagram::new(&out, Ecn::NotEct);
        c.a.handle_datagram(c.now, &datagram);
        c.run_until(c.now + ms(1));
    }
    let r = c.a.stats().retransmission_counters();
    assert_eq!((r.requested, r.nacks), (requests, 5_000));
    assert_eq!(r.unknown + r.repeated + r.refused + r.packets, requests);
    // 20 % of 800 kbit/s for 5 s, and 1 s of it at once. Packets waiting for the pacer are not counted here.
    assert!((60_000..=120_000).contains(&r.payload), "{r:?}");
    // Media continues, and no retransmission counts as new at the other end.
    let n = c.b.stats().nack_counters();
    assert_eq!((n.recovered, n.missing), (0, 0));
    assert!(n.duplicates > 0 && n.duplicates + n.late == n.retransmissions, "{n:?}");
    let s = c.b.stats().recovery_stats();
    assert_eq!((s.lost, s.recovered), (0, 0), "{s:?}");
}

#[test]
fn forged_retransmissions_bring_nothing_in() {
    let recorder = Recorder::new(800);
    let mut c = Setup::new(100, 400).call(&recorder, |_, _| Fate::Pass);
    c.run_until(Timestamp::from_secs(3));
    let before = c.b.stats().recovery_stats();
    for i in 0..2_000u16 {
        let mut out = vec![];
        weir_wire::rtp::Header { payload_type: RESENT, sequence: i, ssrc: RESENT_SSRC, ..Default::default() }
            .write_into(&mut out);
        out.extend_from_slice(&i.wrapping_mul(33).to_be_bytes()[..usize::from(i % 3)]);
        c.b.handle_datagram(c.now, &Datagram::new(&out, Ecn::NotEct));
    }
    let n = c.b.stats().nack_counters();
    assert_eq!((n.retransmissions, n.recovered), (2_000, 0));
    assert!(n.malformed > 1_300);
    c.run_until(Timestamp::from_secs(6));
    let s = c.b.stats().recovery_stats();
    assert_eq!((s.lost, s.frames_lost), (before.lost, before.frames_lost));
}

/// Repair and retransmission together: packets recovered by repair are hardly ever requested.
#[test]
fn repair_goes_first_where_there_is_both() {
    let recorder = Recorder::new(800);
    recorder.target.lock().unwrap().repair = RepairPlan::Parity { interval: 4 };
    let mut c = Setup::new(60, 400).call(&recorder, lose_rtp(0.05, 9));
    c.run_until(Timestamp::from_secs(60));
    let (s, n, w) = (c.b.stats().recovery_stats(), c.b.stats().nack_counters(), c.b.stats().repair_counters().window);
    assert!(s.lost > 200, "{s:?}");
    // Parity recovers single losses among five: 0.95^4 of them.
    let share = w.recovered as f64 / s.lost as f64;
    assert!((0.72..0.9).contains(&share), "{share}: {w:?}");
    assert!(n.requested as f64 <= s.lost as f64 * 0.3, "{n:?}");
    assert!(s.residual_lost as f64 <= s.lost as f64 * 0.02, "{s:?} {n:?}");
    assert_eq!(s.recovered + s.residual_lost, s.lost);
}

/// A call with a policy at both ends, over a path with random loss. The source may support slice sizes.
fn with_policy(config: ResilienceConfig, rtt: i64, share: f64, recorder: &Recorder, toy: Option<Toy>) -> Call {
    let now = Timestamp::ZERO;
    let endpoint = EndConfig { ssrc: 11, remote_ssrc: 22, synchronised_clocks: true, ..EndConfig::default() };
    let source = toy.map_or(PerfectCodec::frames(ms(20), now).into(), |t| Source::Custom(Box::new(t)));
    let resilience = Some(config);
    let outgoing = OutgoingConfig::new(StreamIdentity::of(11), source, Demand::default())
        .with(OutgoingOptions { resilience, ..OutgoingOptions::default() });
    let sending = SendingPath::new(recorder.sender());
    let incoming = IncomingConfig {
        resilience,
        playout_deadline: Some(config.delay_max),
        ..IncomingConfig::new(StreamIdentity::of(11), MediaKind::default())
    };
    let receiving = ReceivingPath::default();
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..endpoint.clone() };
    let (a, b) = (
        EndPlan::new(endpoint).sends(outgoing).on(sending).make(now).unwrap(),
        EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap(),
    );
    let mut c = Call::new(a, b, Link::new(DataRate::from_mbps(20), lose_rtp(share, 5)).with_delay(ms(rtt / 2)));
    c.back = Link::new(DataRate::from_mbps(20), |_, _| Fate::Pass).with_delay(ms(rtt / 2));
    c
}

#[test]
fn a_policy_asks_again_on_a_short_path_and_protects_on_a_long_one() {
    for (rtt, share, nack, uep) in [(40, 0.01, true, false), (600, 0.03, false, true)] {
        let recorder = Recorder::new(800);
        let mut c = with_policy(ResilienceConfig::default(), rtt, share, &recorder, None);
        c.run_until(Timestamp::from_secs(15));
        let (before, sent) = (c.b.stats().recovery_stats(), c.a.stats().send_counters());
        c.run_until(Timestamp::from_secs(60));
        let [packets, lost, recovered, residual] = since(c.b.stats().recovery_stats(), before);
        let (sending, receiving) = c.a.stats().resilience();
        assert!(receiving.is_none() && sending.is_some());
        let (sending, receiving) = (sending.unwrap().mechanisms, c.b.stats().resilience().1.unwrap().mechanisms);
        // Both ends have decided the same independently.
        assert_eq!(sending, receiving);
        assert_eq!((receiving.contains(Mechanisms::NACK), sending.contains(Mechanisms::PROTECTION)), (nack, uep));
        assert!(lost > 20 && packets > 3_000);
        let (repair, again) =
            (c.a.stats().send_counters().repair_packets, c.a.stats().retransmission_counters().packets);
        assert_eq!((repair > 300, again > 20), (uep, nack));
        // Parity of one in eight recovers single losses.
        let back = recovered as f64 / lost as f64;
        assert!(if nack { residual <= 1 } else { (0.6..0.95).contains(&back) }, "{back}, {residual}");
        // Media is reduced for all of it.
        let all = |s: weir_session::SendCounters| s.bytes + s.repair_bytes;
        let kbps = (all(c.a.stats().send_counters()) - all(sent)) as f64 * 8.0 / 45_000.0;
        assert!((770.0..840.0).contains(&kbps), "{kbps}");
        let mut names = vec![];
        c.a.stats().metrics(&mut |name, value| names.push((name, value)));
        c.b.stats().metrics(&mut |name, value| names.push((name, value)));
        for (name, value) in [("resilience_nack", nack), ("resilience_uep", uep), ("retransmissions_sent", nack)] {
            assert!(names.iter().any(|n| n.0 == name && (n.1 > 0.0) == value), "{name} of {names:?}");
        }
    }
}

#[test]
fn slices_get_smaller_with_loss_and_are_left_alone_without_a_policy() {
    let capabilities = Capabilities { slices: true, reference_selection: false };
    let choice = Choice::Pinned(Mechanisms::SLICES);
    let config = ResilienceConfig { choice, capabilities, ..ResilienceConfig::default() };
    let toy = Toy::new(ms(20));
    let life = toy.life.clone();
    let mut c = with_policy(config, 40, 0.1, &Recorder::new(800), Some(toy));
    c.run_until(Timestamp::from_secs(20));
    let sizes: Vec<_> = life
        .lock()
        .unwrap()
        .feedback
        .iter()
        .filter_map(|f| if let SourceFeedback::SliceSize(s) = f { s.map(|s| s.as_bytes()) } else { None })
        .collect();
    // From a packet's payload on, by the rule.
    assert_eq!(sizes, [1_000, 500, 250, 200, 150], "{sizes:?}");
    assert_eq!(c.b.stats().nack_counters().nacks, 0);
    // A codec without support is not asked repeatedly.
    let mut c = with_policy(config, 40, 0.1, &Recorder::new(800), None);
    c.run_until(Timestamp::from_secs(20));
    assert_eq!(c.a.stats().resilience().0.unwrap().mechanisms, Mechanisms::NONE);
}

#[test]
fn a_controller_that_plans_repair_keeps_it() {
    let recorder = Recorder::new(800);
    recorder.target.lock().unwrap().repair = RepairPlan::Parity { interval: 10 };
    let choice = Choice::Pinned(Mechanisms::PROTECTION);
    let config = ResilienceConfig { choice, ..ResilienceConfig::default() };
    let mut c = with_policy(config, 40, 0.02, &recorder, None);
    c.run_until(Timestamp::from_secs(20));
    let s = c.a.stats().send_counters();
    assert!((s.repair_packets as i64 * 10 - s.packets as i64).abs() < 60, "{s:?}");
}

/// Retransmissions have the original content, byte for byte.
#[test]
fn content_comes_again_as_it_was() {
    let toy = Toy::new(ms(40));
    let life = toy.life.clone();
    let recorder = Recorder::new(800);
    let now = Timestamp::ZERO;
    let endpoint = EndConfig { ssrc: 11, remote_ssrc: 22, ..EndConfig::default() };
    let retransmission = Some(RetransmissionConfig::default());
    let outgoing = OutgoingConfig::new(StreamIdentity::of(11), Source::Custom(Box::new(toy)), Demand::default())
        .with(OutgoingOptions { retransmission, ..OutgoingOptions::default() });
    let sending = SendingPath::new(recorder.sender());
    let nack = Some(NackConfig::default());
    let incoming = IncomingConfig {
        nack,
        playout_deadline: Some(ms(600)),
        content: true,
        ..IncomingConfig::new(StreamIdentity::of(11), MediaKind::default())
    };
    let receiving = ReceivingPath::default();
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..endpoint.clone() };
    let (a, b) = (
        EndPlan::new(endpoint).sends(outgoing).on(sending).make(now).unwrap(),
        EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap(),
    );
    let mut c = Call::new(a, b, Link::new(DataRate::from_mbps(5), lose_rtp(0.05, 3)));
    let (mut frame, mut whole, mut offset) = (ReceivedFrame::default(), 0, None);
    for _ in 0..500 {
        c.run_until(c.now + ms(40));
        let first = c.sent[0].iter().find(|(_, _, t)| t.is_rtp()).map(|s| &s.1);
        // The first frame was captured at time zero.
        let offset =
            *offset.get_or_insert_with(|| weir_wire::rtp::PacketView::parse(first.unwrap()).unwrap().timestamp());
        while let Some(e) = c.b.poll_playout(c.now) {
            if c.b.take_frame(&e, &mut frame) {
                life.lock().unwrap().check(&frame, offset);
                whole += u32::from(frame.whole);
            }
        }
    }
    let (content, n) = (c.b.stats().content_counters().0, c.b.stats().nack_counters());
    assert!(n.recovered > 40 && content.repaired == n.recovered, "{content:?} {n:?}");
    assert!(whole >= 475, "{whole}");
}
