use super::{Episode, EpisodeKind, explain};
use crate::schema::{Direction, Packet};
use crate::{Call, Format, Recording};
use weir_units::{TimeDelta, Timestamp};

/// A call of 40 s: 100 packets of 1,250 bytes a second (1 Mbit/s), sent and then received after what `fate` says, in ms.
/// `rate` is the share of packets that is sent.
fn call(rate: impl Fn(f64) -> f64, fate: impl Fn(usize, f64) -> Option<f64>) -> Call {
    let mut ends = ["left", "right"].map(|name| Recording::new(name, Format::Pcap));
    let (mut number, mut due) = (0usize, 0.0);
    for i in 0..4000 {
        let s = f64::from(i) * 0.01;
        due += rate(s);
        if due < 1.0 {
            continue;
        }
        due -= 1.0;
        let at = Timestamp::from_secs(1_700_000_000) + TimeDelta::from_secs_f64(s);
        let packet = Packet {
            at,
            direction: Direction::Sent,
            ssrc: 7,
            sequence: number as u16,
            timestamp: number as u32,
            payload_type: 96,
            marker: true,
            size: 1250,
            padding: None,
            transport_sequence: None,
        };
        ends[0].packets.push(packet);
        if let Some(ms) = fate(number, s) {
            let at = at + TimeDelta::from_millis_f64(ms);
            ends[1].packets.push(Packet { at, direction: Direction::Received, ..packet });
        }
        number += 1;
    }
    Call::new(ends.into())
}

fn first(episodes: &[Episode]) -> (&'static str, f64) {
    let e = episodes.first().expect("an episode");
    assert!(e.from_ms <= e.to_ms && e.causes.is_sorted_by(|a, b| a.confidence >= b.confidence), "{e:?}");
    (e.causes[0].name, e.causes[0].confidence)
}

/// Half of the rate from 20 s on.
fn halved(s: f64) -> f64 {
    if s < 20.0 { 1.0 } else { 0.5 }
}

#[test]
fn a_call_without_a_fall_has_no_episode() {
    assert_eq!(explain(&call(|_| 1.0, |_, _| Some(20.0))), []);
}

#[test]
fn loss_by_chance_and_in_bursts_is_told_apart() {
    let random = explain(&call(halved, |i, s| (s < 18.0 || i % 9 != 4).then_some(20.0)));
    assert_eq!((first(&random), random[0].kind), (("random-loss", 0.85), EpisodeKind::Fall), "{random:#?}");
    assert!((1_700_000_019_000..=1_700_000_021_000).contains(&random[0].from_ms), "{random:#?}");
    let burst = explain(&call(halved, |i, s| (s < 18.0 || i % 100 > 11).then_some(20.0)));
    assert_eq!(first(&burst), ("burst-loss", 0.85), "{burst:#?}");
}

#[test]
fn an_outage_and_a_quiet_fall_are_named() {
    let outage = explain(&call(halved, |_, s| (!(19.5..21.0).contains(&s)).then_some(20.0)));
    assert_eq!(first(&outage), ("outage", 0.9), "{outage:#?}");
    let quiet = explain(&call(halved, |_, _| Some(20.0)));
    assert_eq!(first(&quiet), ("sender-limited", 0.7), "{quiet:#?}");
}

#[test]
fn a_longer_way_is_a_step() {
    let step = explain(&call(halved, |_, s| Some(if s < 19.0 { 20.0 } else { 120.0 })));
    assert!(step[0].causes.iter().all(|c| c.name != "sender-limited" && !c.name.contains("loss")), "{step:#?}");
}
