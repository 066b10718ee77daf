//! Notices of a base station: who accepts them, and their effects.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::{Recorded, Recorder};
use weir_cc::cue::{CapacityNotice, EstimateKind, ReceiverEstimate};
use weir_cc::{Limits, Registry, Setup};
use weir_media::PerfectCodec;
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    Datagram, EndConfig, EndPlan, Endpoint, IncomingConfig, OutgoingConfig, ReceivingPath, SendingPath, Station,
    StationConfig, StreamIdentity,
};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{Packet, parse_compound};

const NOW: Timestamp = Timestamp::from_secs(1);
const LIMITS: Limits = Limits { floor: DataRate::from_kbps(30), ceiling: DataRate::from_kbps(2_000) };

/// A notice of 400 kbit/s for a media source.
fn notice(ssrc: u32, media_ssrc: u32) -> Vec<u8> {
    let mut station = Station::new(StationConfig {
        ssrc,
        media_ssrc,
        cname: "station".into(),
        share: 1.0,
        threshold: 0.05,
        interval: TimeDelta::from_secs(1),
        drain: None,
        header_overhead: 28,
    });
    station.observe(DataRate::from_kbps(400), DataSize::ZERO);
    let mut out = Vec::new();
    assert!(station.poll_transmit(NOW, &mut out));
    out
}

fn hear(end: &mut Endpoint, bytes: &[u8]) {
    end.handle_datagram(NOW, &Datagram::new(bytes, Ecn::NotEct));
}

#[test]
fn a_sender_heeds_its_own_station_alone() {
    let recorder = Recorder::new(100);
    let source = PerfectCodec::packets(DataSize::from_bytes(1_000), Timestamp::ZERO).into();
    let outgoing = OutgoingConfig::new(StreamIdentity::of(1), source, Demand::default());
    let sending = SendingPath::new(recorder.sender());
    let config = EndConfig { ssrc: 1, remote_ssrc: 2, station_ssrc: Some(7), ..EndConfig::default() };
    let mut end = EndPlan::new(config).sends(outgoing).on(sending).make(Timestamp::ZERO).unwrap();
    let rate = DataRate::from_kbps(400);
    hear(&mut end, &notice(7, 1));
    assert_eq!(recorder.recorded(), [Recorded::Notice(CapacityNotice { now: NOW, rate })]);
    // For another source: ignored and counted.
    hear(&mut end, &notice(7, 3));
    assert_eq!((recorder.recorded().len(), end.stats().counters().unknown_source), (1, 1));
    // The same message from another sender is an ordinary request.
    hear(&mut end, &notice(2, 1));
    let estimate = ReceiverEstimate { now: NOW, rate, kind: EstimateKind::Tmmbr };
    assert_eq!(recorder.recorded().last(), Some(&Recorded::Estimate(estimate)));
    assert_eq!(end.stats().counters().malformed, 0);
}

#[test]
fn a_receiver_asks_the_sender_for_what_its_station_says() {
    let setup =
        Setup { limits: LIMITS, start_rate: DataRate::from_kbps(100), now: Timestamp::ZERO, seed: 1, params: vec![] };
    let controller = Registry::builtin().make("tmmbr-a", &setup).unwrap().receiver;
    let incoming = IncomingConfig::new(StreamIdentity::of(1), MediaKind::default());
    let receiving = ReceivingPath { controller, ..ReceivingPath::default() };
    let config = EndConfig { ssrc: 2, remote_ssrc: 1, station_ssrc: Some(8), ..EndConfig::default() };
    let mut end = EndPlan::new(config).receives(incoming).on(receiving).make(Timestamp::ZERO).unwrap();
    hear(&mut end, &notice(8, 1));
    let mut out = Vec::new();
    assert!(end.poll_transmit(NOW, &mut out).is_some_and(|t| !t.is_rtp()));
    let asked = parse_compound(&out).find_map(|p| match p.unwrap() {
        Packet::Tmmbr(t) => t.entries.iter().next().map(|e| (t.sender_ssrc, e.ssrc, e.max_rate.rate())),
        _ => None,
    });
    assert_eq!(asked, Some((2, 1, DataRate::from_kbps(400))));
}
