//! Several streams under one controller: allocation, and separate numbering, reports and repair.

#![allow(clippy::unwrap_used)]

mod allocation;
mod changes;
mod losses;

use crate::common;
use common::{Call, Fate, Link, Recorded, Recorder};
use proptest::prelude::*;
use std::collections::BTreeMap;
use weir_cc::{FeedbackFormat, Limits, Registry, ReportPlan, Setup};
use weir_media::PerfectCodec;
use weir_session::allocation::{Demand, MediaKind, Priority};
use weir_session::{
    Datagram, EndConfig, EndPlan, Endpoint, HeaderExtensions, IncomingConfig, IncomingId, Kind, Label, NackConfig,
    Outcome, OutgoingConfig, OutgoingId, OutgoingOptions, ReceivingPath, RepairChoice, RetransmissionConfig,
    SenderModel, SendingPath, StreamError, StreamIdentity,
};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{Packet, check_compound, parse_compound};
use weir_wire::rtp::PacketView;

const AUDIO: u32 = 11;
const LOW: u32 = 101;
const HIGH: u32 = 102;
const SCREEN: u32 = 103;

fn kbps(k: u64) -> DataRate {
    DataRate::from_kbps(k)
}
fn ms(t: i64) -> TimeDelta {
    TimeDelta::from_millis(t)
}
fn demand(least: u64, most: u64, media: MediaKind, simulcast: Option<u8>) -> Demand {
    Demand { least: kbps(least), most: kbps(most), media, simulcast, priority: Priority::Low }
}

fn identity(ssrc: u32, payload_type: u8) -> StreamIdentity {
    StreamIdentity { ssrc, payload_type, clock_rate: 90_000, ..StreamIdentity::default() }
}
fn frames(interval: TimeDelta) -> weir_media::Source {
    PerfectCodec::frames(interval, Timestamp::ZERO).into()
}

/// The streams besides audio: source, payload type and demand.
fn videos() -> [(u32, u8, Demand); 3] {
    [
        (LOW, 100, demand(50, 200, MediaKind::Video, Some(1))),
        (HIGH, 100, demand(300, 1_200, MediaKind::Video, Some(1))),
        (SCREEN, 104, demand(50, 1_000, MediaKind::Video, None)),
    ]
}

/// A call with audio; [`add`] adds the other streams.
fn call(controller: &str, link: u64, rule: impl FnMut(u64, &[u8]) -> Fate + 'static) -> Call {
    let registry = Registry::builtin();
    let limits = Limits { floor: kbps(32), ceiling: kbps(3_000) };
    let now = Timestamp::ZERO;
    let setup = Setup { limits, start_rate: kbps(500), now, seed: 1, params: vec![] };
    let pair = registry.make(controller, &setup).unwrap();
    let spec = registry.get(controller).unwrap();
    let (feedback, reports) = (spec.feedback, spec.reports);
    let config = EndConfig {
        ssrc: AUDIO,
        remote_ssrc: 22,
        latch: Some(TimeDelta::from_secs(30)),
        extensions: HeaderExtensions {
            abs_send_time: pair.receiver.is_some(),
            transport_sequence: feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide),
            ..HeaderExtensions::default()
        },
        ..EndConfig::default()
    };
    let audio = StreamIdentity { clock_rate: 48_000, ..identity(AUDIO, 111) };
    let outgoing = OutgoingConfig::new(audio, frames(ms(20)), demand(16, 48, MediaKind::Audio, None));
    let sending = SendingPath { per_packet_feedback: feedback.is_some(), reports, ..SendingPath::new(pair.sender) };
    let incoming = IncomingConfig::new(audio, MediaKind::default());
    let receiving = ReceivingPath { feedback, reports, controller: pair.receiver };
    let other = EndConfig { ssrc: 22, remote_ssrc: AUDIO, seed: 2, ..config.clone() };
    let ends = [
        EndPlan::new(config).sends(outgoing).on(sending).make(now).unwrap(),
        EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap(),
    ];
    let [a, b] = ends;
    Call::new(a, b, Link::new(kbps(link), rule))
}

fn add(c: &mut Call) -> [OutgoingId; 3] {
    videos().map(|(ssrc, payload_type, demand)| {
        let identity = identity(ssrc, payload_type);
        c.b.add_incoming(IncomingConfig::new(identity, MediaKind::Video), c.now).unwrap();
        c.a.add_outgoing(OutgoingConfig::new(identity, frames(ms(33)), demand), c.now).unwrap()
    })
}

/// The other end of one that sends sound.
fn receiver_of_sound(of: EndConfig) -> Endpoint {
    EndPlan::new(EndConfig { ssrc: 22, remote_ssrc: AUDIO, seed: 2, ..of })
        .receives(IncomingConfig::new(identity(AUDIO, 111), MediaKind::default()))
        .on(ReceivingPath::default())
        .make(Timestamp::ZERO)
        .unwrap()
}

fn run(c: &mut Call, seconds: i64) {
    c.run_until(Timestamp::from_secs(seconds));
}

/// RTP bytes sent by source from this time on.
fn sent_bytes(c: &Call, from: i64) -> BTreeMap<u32, u64> {
    let mut sum = BTreeMap::new();
    for (at, bytes, t) in c.sent[0].iter().filter(|s| s.2.is_rtp() && s.0 >= Timestamp::from_secs(from)) {
        let _ = at;
        *sum.entry(PacketView::parse_header(bytes).unwrap().ssrc()).or_default() += t.size.as_bytes();
    }
    sum
}

#[test]
fn every_controller_carries_four_streams_and_none_of_them_starves() {
    for controller in ["gcc", "nada", "scream", "nada-receiver", "gcc-remb", "fbra", "tfrc", "cnadu", "tmmbr"] {
        let mut c = call(controller, 3_000, |_, _| Fate::Pass);
        add(&mut c);
        run(&mut c, 60);
        let rates = sent_bytes(&c, 30).into_iter().map(|(s, b)| (s, b * 8 / 30_000)).collect::<BTreeMap<_, _>>();
        assert!((40..=60).contains(&rates[&AUDIO]), "{controller}: {rates:?}");
        assert!(rates[&LOW] >= 45 && rates[&SCREEN] >= 45, "{controller}: {rates:?}");
        let sum: u64 = rates.values().sum();
        assert!(sum <= 3_050, "{controller}: {rates:?}");
        let target = c.a.target().unwrap().media_rate;
        let shares: u64 = [0, 1, 2, 3]
            .map(|n| c.a.stats().outgoing_ids().nth(n).unwrap())
            .map(|id| c.a.outgoing(id).unwrap().rate().as_bps())
            .iter()
            .sum();
        assert!(shares <= target.as_bps(), "{controller}: {shares} of {target}");
        assert_eq!(c.a.stats().history_counters().unknown, 0, "{controller}");
        assert_eq!((c.a.stats().counters().malformed, c.b.stats().counters().malformed), (0, 0), "{controller}");
        assert_eq!(
            (c.a.stats().counters().unknown_source, c.b.stats().counters().unknown_source),
            (0, 0),
            "{controller}"
        );
    }
}

/// Greatest time that a packet of sound, one each 20 ms, waits beside video frames of some 15 ms of the pacing rate.
fn longest_wait_of_sound(model: SenderModel) -> TimeDelta {
    let config = EndConfig { ssrc: AUDIO, remote_ssrc: 22, ..EndConfig::default() };
    let with = |ssrc, payload_type, interval, demand| {
        let options = OutgoingOptions { sender: model, ..OutgoingOptions::default() };
        OutgoingConfig::new(identity(ssrc, payload_type), frames(ms(interval)), demand).with(options)
    };
    let sound = with(AUDIO, 111, 20, demand(32, 32, MediaKind::Audio, None));
    let video = with(LOW, 100, 90, demand(30, 400, MediaKind::Video, None));
    let plan = EndPlan::new(config.clone()).sends(sound).sends(video);
    let a = plan.on(SendingPath::new(Recorder::new(100).sender())).make(Timestamp::ZERO).unwrap();
    let mut c = Call::new(a, receiver_of_sound(config), Link::new(kbps(4_000), |_, _| Fate::Pass));
    run(&mut c, 5);
    let sound = c.sent[0].iter().filter(|s| s.2.is_rtp() && PacketView::parse_header(&s.1).unwrap().ssrc() == AUDIO);
    let late: Vec<_> = sound.map(|s| TimeDelta::from_nanos(s.0.as_nanos() % 20_000_000)).collect();
    assert!((245..=251).contains(&late.len()), "{}", late.len());
    late.into_iter().max().unwrap()
}

#[test]
fn chromiums_sound_does_not_wait_for_the_pacer() {
    assert_eq!(longest_wait_of_sound(SenderModel::Chromium), TimeDelta::ZERO);
    assert!(longest_wait_of_sound(SenderModel::Weir) > ms(5));
}

#[test]
fn streams_have_their_own_numbers_and_share_the_paths() {
    let mut c = call("gcc", 3_000, |_, _| Fate::Pass);
    add(&mut c);
    run(&mut c, 20);
    let (mut own, mut path) = (BTreeMap::<u32, u16>::new(), None::<u16>);
    for (_, bytes, _) in c.sent[0].iter().filter(|s| s.2.is_rtp()) {
        let view = PacketView::parse_header(bytes).unwrap();
        let transport = view.transport_sequence(3).unwrap();
        assert!(path.replace(transport).is_none_or(|last| last.wrapping_add(1) == transport));
        let last = own.insert(view.ssrc(), view.sequence());
        assert!(last.is_none_or(|last| last.wrapping_add(1) == view.sequence()));
    }
    assert_eq!(own.len(), 4);
    let counters = c.a.stats().history_counters();
    assert_eq!((counters.unknown, counters.unreported), (0, 0), "{counters:?}");
}

#[test]
fn a_compound_reports_on_all_streams_and_from_all_sources() {
    let mut c = call("scream", 3_000, |_, _| Fate::Pass);
    add(&mut c);
    run(&mut c, 30);
    let (mut senders, mut blocks) = (BTreeMap::<u32, u32>::new(), BTreeMap::<u32, u32>::new());
    for (_, bytes, _) in c.sent.iter().flatten().filter(|s| !s.2.is_rtp()) {
        let has_report =
            parse_compound(bytes).any(|p| matches!(p, Ok(Packet::SenderReport(_) | Packet::ReceiverReport(_))));
        if has_report {
            check_compound(bytes).unwrap();
        }
        for packet in parse_compound(bytes) {
            match packet.unwrap() {
                Packet::SenderReport(sr) => *senders.entry(sr.ssrc).or_default() += 1,
                Packet::ReceiverReport(rr) => rr.blocks.iter().for_each(|b| *blocks.entry(b.ssrc).or_default() += 1),
                _ => {}
            }
        }
    }
    for ssrc in [AUDIO, LOW, HIGH, SCREEN] {
        assert!(senders[&ssrc] >= 10 && blocks[&ssrc] >= 10, "{ssrc}: {senders:?} {blocks:?}");
    }
}

#[test]
fn a_datagram_comes_with_what_it_was() {
    let mut c = call("gcc", 3_000, |_, _| Fate::Pass);
    add(&mut c);
    run(&mut c, 5);
    let rtp = c.sent[0].iter().rev().find(|s| matches!(s.2.rtp, Some((id, Kind::Media)) if id != OutgoingId::FIRST));
    let (bytes, payload) = rtp.map(|s| (s.1.clone(), s.2.payload)).unwrap();
    let ssrc = PacketView::parse_header(&bytes).unwrap().ssrc();
    let outcome = c.b.handle_datagram(c.now, &Datagram { payload, ..Datagram::new(&bytes, Ecn::NotEct) });
    let Outcome::Rtp { stream, kind: Kind::Media } = outcome else { panic!("{outcome:?}") };
    assert_eq!(c.b.incoming(stream).unwrap().identity().ssrc, ssrc);
    let rtcp = c.sent[1].iter().rev().find(|s| !s.2.is_rtp()).map(|s| s.1.clone()).unwrap();
    let outcome = c.a.handle_datagram(c.now, &Datagram::new(&rtcp, Ecn::NotEct));
    assert!(outcome.is_of_call() && !outcome.is_rtp(), "{outcome:?}");
    for bad in [&b""[..], b"\x16\xfe\xff", &[0x80; 5]] {
        let outcome = c.b.handle_datagram(c.now, &Datagram::new(bad, Ecn::NotEct));
        assert!(!outcome.is_of_call(), "{bad:?}: {outcome:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Bytes from the network, including damaged real packets, neither cause a panic nor exceed an end's memory bounds.
    #[test]
    fn hostile_datagrams_do_no_harm(seed: u64, flips in proptest::collection::vec((any::<u16>(), any::<u16>(), any::<u8>()), 1..60)) {
        let mut c = call(["gcc", "scream", "fbra"][(seed % 3) as usize], 3_000, |_, _| Fate::Pass);
        add(&mut c);
        c.run_until(Timestamp::from_millis(2_500));
        for (which, at, value) in flips {
            for end in [0, 1] {
                let all = &c.sent[1 - end];
                let Some((_, bytes, t)) = all.get(usize::from(which) % all.len().max(1)) else { continue };
                let (mut bytes, payload) = (bytes.clone(), t.payload);
                let i = usize::from(at) % bytes.len();
                bytes[i] = value;
                let datagram = Datagram { payload, ..Datagram::new(&bytes, Ecn::Ce) };
                let receiver = if end == 0 { &mut c.a } else { &mut c.b };
                receiver.handle_datagram(c.now, &datagram);
            }
        }
        c.run_until(Timestamp::from_millis(4_000));
        prop_assert!(c.a.stats().outgoing_ids().count() == 4 && c.b.stats().incoming_ids().count() == 4);
    }
}
