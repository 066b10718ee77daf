use super::{Episode, EpisodeKind, Level};
use crate::schema::{CandidatePair, Direction, NetworkType, Packet, PairChange};
use crate::{Call, Format, Recording, read};
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
            number: 0,
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

fn explain(call: &Call) -> Vec<Episode> {
    super::explain(call).episodes
}

fn first(episodes: &[Episode]) -> (&str, f64) {
    let e = episodes.first().expect("an episode");
    assert!(e.from_ms <= e.to_ms && e.causes.is_sorted_by(|a, b| a.confidence >= b.confidence), "{e:?}");
    (e.causes[0].name.as_ref(), e.causes[0].confidence)
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
    // A capture without RTCP that can be read does not show whether the other end asked.
    assert_eq!(first(&quiet), ("sender-limited", 0.45), "{quiet:#?}");
}

#[test]
fn a_longer_way_is_a_step() {
    let step = explain(&call(halved, |_, s| Some(if s < 19.0 { 20.0 } else { 120.0 })));
    assert!(step[0].causes.iter().all(|c| c.name != "sender-limited" && !c.name.contains("loss")), "{step:#?}");
}

#[test]
fn a_slower_path_with_a_queue_has_less_capacity() {
    // From 20 s on a packet takes 25 ms (400 kbit/s), and one is sent each 20 ms.
    let slow = explain(&call(halved, |_, s| Some(20.0 + ((s - 20.0).max(0.0) * 250.0).min(1000.0))));
    assert_eq!(first(&slow), ("capacity-fell", 0.85), "{slow:#?}");
}

#[test]
fn a_link_that_stands_still_again_and_again_before_its_queue_is_empty_has_stalls() {
    // From 19 s on half a second of each one and a half, where a packet takes 9 ms; three are sent together.
    let mut stalled = call(|s| if s < 20.0 { 1.0 } else { 0.7 }, |_, _| Some(0.0));
    let [left, right] = &mut stalled.recordings[..] else { panic!("two ends") };
    let into = |at: f64| if at < 19.0 { f64::INFINITY } else { (at - 19.0) % 1.5 };
    let mut free = 0.0_f64;
    for i in 0..left.packets.len() {
        left.packets[i].at = left.packets[i - i % 3].at;
        free = free.max((left.packets[i].at - Timestamp::from_secs(1_700_000_000)).as_secs_f64());
        free += (0.5 - into(free)).max(0.0) + 0.009;
        right.packets[i].at = Timestamp::from_secs(1_700_000_000) + TimeDelta::from_secs_f64(free + 0.02);
    }
    let stalled = explain(&stalled);
    assert_eq!(first(&stalled).0, "stalls", "{stalled:#?}");
    assert!(stalled.iter().flat_map(|e| &e.causes).all(|c| c.name != "cross-traffic"), "{stalled:#?}");
}

#[test]
fn arrivals_in_whole_milliseconds_do_not_show_that_others_are_between() {
    // 1 Mbit/s, then 400 kbit/s with a queue, let out in clumps of four, by a clock of 1 ms: the gaps within a clump are zero.
    let clumps = |n: usize, s: f64, grows: f64| {
        let sent = s * 1e3;
        let delay = 20.0 + ((s - 20.0).max(0.0) * grows).min(1000.0);
        let clump = if n < 2_000 { 1.0 } else { 100.0 };
        (((sent + delay) / clump).ceil() * clump).ceil() - sent
    };
    let slow = explain(&call(halved, |n, s| Some(clumps(n, s, 250.0))));
    let (name, sure) = first(&slow);
    assert!(name == "capacity-fell" && (0.5..0.9).contains(&sure), "{slow:#?}");
    assert!(slow.iter().flat_map(|e| &e.causes).all(|c| c.name != "cross-traffic" || c.confidence < 0.5), "{slow:#?}");
}

/// Statistics of 40 s at both ends, a pair of lines a second: of the sender by `(bytes, rtt, estimate)` and of the
/// receiver by `(lost, freezes)`, each of what is in that second.
fn statistics(sender: impl Fn(u64) -> (u64, f64, f64), receiver: impl Fn(u64) -> (u64, u64)) -> Call {
    let (mut left, mut right) = (String::new(), String::new());
    let (mut bytes, mut rtts, mut received, mut lost, mut freezes) = (0u64, 0.0, 0, 0, 0);
    for t in 0..40u64 {
        let (more, rtt, available) = sender(t);
        let (missed, stood) = receiver(t);
        (bytes, rtts) = (bytes + more, rtts + rtt);
        (received, lost, freezes) = (received + more / 1000 - missed.min(more / 1000), lost + missed, freezes + stood);
        let at = 1_700_000_000_000u64 + t * 1000;
        left += &serde_json::json!({"epoch_ms": at, "stats": {
            "O": {"type": "outbound-rtp", "bytesSent": bytes, "packetsSent": bytes / 1000, "framesEncoded": 30 * t},
            "R": {"type": "remote-inbound-rtp", "totalRoundTripTime": rtts, "roundTripTimeMeasurements": t + 1},
            "C": {"type": "candidate-pair", "availableOutgoingBitrate": available},
            "T": {"type": "transport", "packetsReceived": 20 * t},
        }})
        .to_string();
        left.push('\n');
        right += &serde_json::json!({"epoch_ms": at, "stats": {
            "I": {"type": "inbound-rtp", "bytesReceived": received * 1000, "packetsReceived": received, "packetsLost": lost,
                "freezeCount": freezes, "totalFreezesDuration": freezes as f64 * 0.5},
        }})
        .to_string();
        right.push('\n');
    }
    Call::new([left, right].map(|text| read("", text.as_bytes()).expect("statistics")).into())
}

#[test]
fn statistics_tell_a_queue_from_loss_and_from_the_sender_itself() {
    let rate = |t: u64| if t < 20 { 250_000 } else { 60_000 };
    let known = |call: Call| {
        let found = super::explain(&call);
        assert_eq!(found.level, Level::Statistics);
        assert!(
            found.episodes.iter().all(|e| (1_700_000_017_000..1_700_000_022_000).contains(&e.from_ms)),
            "{found:#?}"
        );
        let (name, confidence) = first(&found.episodes);
        assert!((0.5..0.9).contains(&confidence), "{found:#?}");
        name.to_owned()
    };
    let capped = statistics(|t| (rate(t), 0.04, 3e6), |_| (0, 0));
    assert_eq!(known(capped), "sender-limited");
    let queued = statistics(|t| (rate(t), if (20..25).contains(&t) { 0.3 } else { 0.04 }, 5e5), |_| (0, 0));
    assert_eq!(known(queued), "capacity-fell");
    let lossy = statistics(|t| (rate(t), 0.04, 5e5), |t| (if t < 18 { 0 } else { 12 }, 0));
    assert_eq!(known(lossy), "random-loss");
    let longer = statistics(|t| (rate(t), if t < 19 { 0.04 } else { 0.14 }, 5e5), |_| (0, 0));
    assert_eq!(known(longer), "delay-step");
    let dark = statistics(|t| (rate(t), 0.04, 3e6), |t| (if (20..23).contains(&t) { 60 } else { 0 }, 0));
    assert_eq!(known(dark), "outage");
}

#[test]
fn a_new_pair_at_the_end_of_an_outage_in_which_the_old_one_heard_something_is_its_consequence() {
    let rate = |t: u64| if t < 20 { 250_000 } else { 60_000 };
    for heard in [true, false] {
        let mut outage = statistics(|t| (rate(t), 0.04, 3e6), |t| (if (20..25).contains(&t) { 60 } else { 0 }, 0));
        let sender = &mut outage.recordings[0];
        if !heard {
            sender.series.retain(|key, _| key.2 != "packetsReceived");
        }
        for (s, pair) in [(0, "4"), (24, "6")] {
            let (at, change) = (Timestamp::from_secs(1_700_000_000 + s), PairChange::Selected);
            sender.pairs.push(CandidatePair { at, pair: pair.into(), change, network: NetworkType::Ethernet });
        }
        let found = explain(&outage);
        let (name, _) = first(&found);
        assert_eq!(name, if heard { "outage" } else { "route-change" }, "{found:#?}");
    }
}

#[test]
fn round_trips_near_the_bound_between_a_longer_way_and_jitter_are_sure_of_neither() {
    let rate = |t: u64| if t < 20 { 250_000 } else { 60_000 };
    // 40 ms more, and two of three by so much more again.
    let by = |wander: f64| {
        let rtt = move |t: u64| if t < 19 { 0.04 } else { 0.08 + wander * 1e-3 * [0.0, 1.0, 1.0][t as usize % 3] };
        explain(&statistics(|t| (rate(t), rtt(t), if t < 19 { 2e6 } else { 5e5 + t as f64 }), |_| (0, 0)))
    };
    for wander in [5.0, 9.0] {
        let found = by(wander);
        let named: Vec<(&str, f64)> = found[0].causes.iter().map(|c| (c.name.as_ref(), c.confidence)).collect();
        assert!(named.len() >= 2 && named.iter().all(|c| c.1 < 0.5), "{wander}: {named:?}");
        assert!(["delay-step", "jitter"].iter().all(|n| named.iter().any(|c| c.0 == *n)), "{wander}: {named:?}");
    }
    assert_eq!(first(&by(0.5)), ("delay-step", 0.7));
    assert_eq!(first(&by(25.0)), ("jitter", 0.6));
}

#[test]
fn a_healthy_call_of_statistics_has_no_episode_and_one_without_rates_no_level() {
    let healthy = super::explain(&statistics(|t| (250_000 - t % 3 * 10_000, 0.04, 3e6), |_| (0, 0)));
    assert_eq!((healthy.level, healthy.episodes), (Level::Statistics, vec![]));
    let none =
        read("", "{\"epoch_ms\": 1700000000000, \"stats\": {\"P\": {\"type\": \"peer-connection\"}}}\n".as_bytes());
    assert_eq!(super::explain(&Call::new(vec![none.expect("statistics")])).level, Level::None);
}

#[test]
fn freezes_near_each_other_are_one_episode() {
    let frozen = explain(&statistics(|_| (250_000, 0.04, 3e6), |t| (0, u64::from([10, 11, 30].contains(&t)))));
    let times: Vec<(EpisodeKind, i64)> = frozen.iter().map(|e| (e.kind, e.from_ms - 1_700_000_000_000)).collect();
    assert_eq!(times, [(EpisodeKind::Freeze, 9_500), (EpisodeKind::Freeze, 29_500)], "{frozen:#?}");
    assert!(frozen.iter().all(|e| e.causes[0].name == "not-known"), "{frozen:#?}");
}

#[test]
fn a_rate_that_comes_late_is_a_slow_start() {
    let slow = explain(&statistics(|t| (if t < 9 { 30_000 } else { 250_000 }, 0.04, 3e6), |_| (0, 0)));
    assert_eq!(slow.len(), 1, "{slow:#?}");
    assert_eq!((slow[0].kind, slow[0].from_ms), (EpisodeKind::SlowStart, 1_700_000_000_000));
    assert!((7_000..10_000).contains(&(slow[0].to_ms - slow[0].from_ms)), "{slow:#?}");
}

#[test]
fn a_picture_that_stands_in_packets_is_a_freeze() {
    // 30 frames a second of 90 kHz, of which none arrives for 0.6 s, although packets are sent.
    let mut call = call(|_| 1.0, |_, s| (!(20.0..20.6).contains(&s)).then_some(20.0));
    for recording in &mut call.recordings {
        for packet in &mut recording.packets {
            let frame = u32::from(packet.sequence) / 3;
            packet.timestamp = frame * 2700;
        }
    }
    let found = explain(&call);
    let freeze = found.iter().find(|e| e.kind == EpisodeKind::Freeze).expect("a freeze");
    assert!((550..=750).contains(&(freeze.to_ms - freeze.from_ms)), "{found:#?}");
    assert!((1_700_000_019_900..1_700_000_020_100).contains(&freeze.from_ms), "{found:#?}");
}

#[test]
fn curves_have_the_rates_the_loss_and_the_delay_of_the_packets() {
    let lost_each_fifth = |n: usize, s: f64| (!n.is_multiple_of(5)).then_some(if s < 20.0 { 20.0 } else { 50.0 });
    let found = super::curves(&call(halved, lost_each_fifth)).expect("packets have times");
    assert_eq!((found.start_ms, found.interval_s), (1_700_000_000_000, 0.5));
    let at = |name: &str, row: usize| found.column(name).expect("a column")[row];
    let near = |name: &str, row: usize, value: f64| {
        let got = at(name, row);
        assert!((got - value).abs() < 0.1 * value.max(10.0), "{name} in row {row}: {got}, not {value}");
    };
    for (row, rate, delay) in [(20, 1000.0, 0.0), (70, 500.0, 30.0)] {
        near("sent_kbps", row, rate);
        near("arrived_kbps", row, 0.8 * rate);
        near("loss_percent", row, 20.0);
        near("delay_ms", row, delay);
    }
    assert!(
        found.columns.iter().all(|c| c.values.len() == 80 || c.values.len() == 81),
        "{}",
        found.columns[0].values.len()
    );
    assert!(found.column("rtt_ms").is_none(), "captures have no round trips");
}

#[test]
fn curves_of_statistics_have_a_row_a_second() {
    let line = |s: u64| {
        format!(
            "{{\"epoch_ms\":{},\"stats\":{{\"O\":{{\"type\":\"outbound-rtp\",\"bytesSent\":{},\"packetsSent\":{}}}}}}}\n",
            1_700_000_000_000u64 + s * 1000,
            s * 125_000,
            s * 100
        )
    };
    let text: String = (0..30).map(line).collect();
    let found = super::curves(&Call::new(vec![read("", text.as_bytes()).expect("a log")])).expect("times");
    let rates = found.column("sent_kbps").expect("a rate");
    assert_eq!((found.interval_s, rates.len()), (1.0, 30));
    assert!(rates[1..28].iter().all(|r| (999.0..1001.0).contains(r)), "{rates:?}");
    assert!(found.column("delay_ms").is_none());
}

#[test]
fn curves_of_clocks_that_lie_years_apart_are_bounded() {
    let mut far = call(|_| 1.0, |_, _| Some(20.0));
    far.recordings[1].packets.iter_mut().for_each(|p| p.at += TimeDelta::from_secs(1_000_000_000));
    let found = super::curves(&far).expect("times");
    assert!(found.columns.iter().all(|c| c.values.len() <= 345_600));
}

mod log;
mod one_end;

#[test]
fn recordings_that_do_not_tell_the_ends_apart_are_looked_at_in_the_heavier_direction() {
    // 40 packets a stream: source 1 there in 20 ms and more, source 2 back in 30 ms. The second clock is 5 s behind.
    let passing = |size_back: u32| {
        let mut ends = ["left", "right"].map(|name| Recording::new(name, Format::Pcap));
        for i in 0..80_u16 {
            let (ssrc, there) = (1 + u32::from(i % 2), i % 2 == 0);
            let sent = Timestamp::from_secs(1_700_000_000) + TimeDelta::from_millis(10 * i64::from(i));
            let (first, second) = if there { (0, 20 + i64::from(i)) } else { (30, 0) };
            let packet = |at, direction| Packet {
                at,
                number: 0,
                direction,
                ssrc,
                sequence: i,
                timestamp: u32::from(i),
                payload_type: 96,
                marker: true,
                size: if there { 1_000 } else { size_back },
                padding: None,
                transport_sequence: None,
            };
            ends[0].packets.push(packet(sent + TimeDelta::from_millis(first), Direction::Passing));
            ends[1].packets.push(packet(sent + TimeDelta::from_millis(second - 5_000), Direction::Passing));
        }
        for end in &mut ends {
            end.packets.sort_by_key(|p| p.at);
        }
        let found = super::passages(&Call::new(ends.to_vec())).expect("packets with fates");
        let sources: std::collections::BTreeSet<u32> = found.packets.iter().map(|p| p.ssrc).collect();
        let grows = found.packets.iter().filter_map(|p| match p.fate {
            super::Fate::Arrived(delay) => Some(delay),
            _ => None,
        });
        let grows: Vec<f64> = grows.collect();
        (sources.into_iter().collect::<Vec<_>>(), grows.len(), grows.windows(2).all(|w| w[1] >= w[0] - 1e-3))
    };
    assert_eq!(passing(100), (vec![1], 40, true));
    assert_eq!(passing(5_000), (vec![2], 40, true), "a delay that does not change");
}
