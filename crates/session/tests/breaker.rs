//! The circuit breaker in a call: it stops congesting calls and does not affect adaptive ones.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::{Call, Fate as LinkFate, Link, Recorder};
use weir_cc::circuit_breaker::{Config, Reason};
use weir_cc::{Limits, Registry, Setup};
use weir_media::PerfectCodec;
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    EndConfig, EndPlan, HeaderExtensions, IncomingConfig, OutgoingConfig, ReceivingPath, SendingPath, StreamIdentity,
};
use weir_units::{DataRate, PathId, TimeDelta, Timestamp};

fn call(controller: weir_cc::Sender, link: Link, config: Config, receiving: ReceivingPath) -> Call {
    let now = Timestamp::ZERO;
    let ceiling = DataRate::from_mbps(2);
    let endpoint = EndConfig {
        ssrc: 11,
        remote_ssrc: 22,
        session_bandwidth: ceiling,
        extensions: HeaderExtensions { transport_sequence: true, ..HeaderExtensions::default() },
        ..EndConfig::default()
    };
    let outgoing = OutgoingConfig::new(
        StreamIdentity::of(11),
        PerfectCodec::frames(TimeDelta::from_millis(40), now).into(),
        Demand::default(),
    );
    let sending = SendingPath {
        per_packet_feedback: receiving.feedback.is_some(),
        circuit_breaker: Some(config),
        ..SendingPath::new(controller)
    };
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..endpoint.clone() };
    let (a, b) = (
        EndPlan::new(endpoint).sends(outgoing).on(sending).make(now).unwrap(),
        EndPlan::new(other)
            .receives(IncomingConfig::new(StreamIdentity::of(11), MediaKind::default()))
            .on(receiving)
            .make(now)
            .unwrap(),
    );
    Call::new(a, b, link)
}

fn packets_after(c: &mut Call, seconds: i64) -> u64 {
    let before = c.a.stats().send_counters().packets;
    c.run_until(c.now + TimeDelta::from_secs(seconds));
    c.a.stats().send_counters().packets - before
}

#[test]
fn a_rate_far_above_the_path_is_stopped_and_rtcp_goes_on() {
    // 2 Mbit/s over 500 kbit/s with a further fifth lost: TCP would get about 100 kbit/s.
    let link = Link::new(DataRate::from_kbps(500), |n, _| if n % 5 == 0 { LinkFate::Lose } else { LinkFate::Pass });
    let mut c = call(Recorder::new(2_000).sender(), link, Config::default(), ReceivingPath::default());
    c.run_until(Timestamp::from_secs(2));
    assert_eq!(c.a.stats().tripped(), None);
    c.run_until(Timestamp::from_secs(40));
    let trip = c.a.stats().tripped().expect("stopped");
    assert_eq!(trip.reason, Reason::Congestion);
    assert!(trip.sending_rate.unwrap() > trip.tcp_rate.unwrap(), "{trip:?}");
    let rtcp = c.a.stats().counters().rtcp_sent;
    assert_eq!(packets_after(&mut c, 10), 0);
    assert!(c.a.stats().counters().rtcp_sent > rtcp + 3);
    assert_eq!(c.a.stats().queue(c.now).0.as_bytes(), 0);
    // Restarted, it trips again.
    assert!(
        c.a.path_mut(PathId::FIRST).is_some_and(|mut p| p.restart_after_trip(c.now)) && c.a.stats().tripped().is_none()
    );
    assert!(packets_after(&mut c, 2) > 100);
    c.run_until(c.now + TimeDelta::from_secs(40));
    assert!(c.a.stats().tripped().is_some());
}

#[test]
fn silence_stops_the_media_and_a_pause_does_not() {
    let mut c = call(
        Recorder::new(500).sender(),
        Link::new(DataRate::from_mbps(2), |_, _| LinkFate::Pass),
        Config::default(),
        ReceivingPath::default(),
    );
    c.run_until(Timestamp::from_secs(20));
    assert_eq!(c.a.stats().tripped(), None);
    c.a.set_paused(true);
    c.run_until(Timestamp::from_secs(60));
    assert_eq!(c.a.stats().tripped(), None, "a pause is no congestion");
    c.a.set_paused(false);
    c.run_until(Timestamp::from_secs(80));
    assert_eq!(c.a.stats().tripped(), None);
    // No feedback arrives any more: three intervals of 5 s.
    c.back = Link::new(DataRate::from_mbps(2), |_, _| LinkFate::Lose);
    c.run_until(Timestamp::from_secs(94));
    assert_eq!(c.a.stats().tripped(), None);
    c.run_until(Timestamp::from_secs(98));
    assert_eq!(c.a.stats().tripped().map(|t| t.reason), Some(Reason::RtcpTimeout));
    assert_eq!(packets_after(&mut c, 5), 0);
}

#[test]
fn adapting_controllers_never_trip_it() {
    let registry = Registry::builtin();
    for name in ["gcc", "nada"] {
        let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(2) };
        let setup =
            Setup { limits, start_rate: DataRate::from_kbps(300), now: Timestamp::ZERO, seed: 1, params: vec![] };
        let pair = registry.make(name, &setup).unwrap();
        let feedback = registry.get(name).unwrap().feedback;
        let receiving = ReceivingPath { feedback, controller: pair.receiver, ..ReceivingPath::default() };
        let link = Link::new(DataRate::from_mbps(1), |n, _| if n % 200 == 0 { LinkFate::Lose } else { LinkFate::Pass });
        let mut c = call(pair.sender, link, Config::default(), receiving);
        c.run_until(Timestamp::from_secs(60));
        assert_eq!(c.a.stats().tripped(), None, "{name}");
        assert!(c.a.stats().send_counters().packets > 1_000, "{name}");
    }
}
