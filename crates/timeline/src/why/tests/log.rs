//! Causes that need both ways, probes or layers, on both sides of their bounds.

use super::{call, first, halved};
use crate::schema::{Direction, Estimate, EstimateKind, Packet, Probe, ProbeStep, Reported, Rtcp, RtcpKind};
use crate::why::{Episode, EpisodeKind, explain};
use crate::{Call, Format, Recording, read};
use weir_units::{DataRate, RemoteTimestamp, TimeDelta, Timestamp};

fn at(s: f64) -> Timestamp {
    Timestamp::from_secs(1_700_000_000) + TimeDelta::from_secs_f64(s)
}

/// The sender's log of a call of 40 s: the packets of `call`, each 20 ms on its way and `more` ms of s; feedback each
/// 100 ms, `back` ms on its way. The receiver's clock is fast by a share.
fn log(rate: impl Fn(f64) -> f64, more: impl Fn(f64) -> f64, back: impl Fn(f64) -> f64, fast: f64) -> Recording {
    let sent = call(rate, |_, _| Some(20.0)).recordings.remove(0).packets;
    let mut log = Recording::new("log", Format::EventLog);
    let mut arrivals: Vec<(f64, u16)> = Vec::new();
    for packet in sent {
        let s = (packet.at - at(0.0)).as_secs_f64();
        arrivals.push((s + (20.0 + more(s)) * 1e-3, packet.sequence));
        log.packets.push(Packet { transport_sequence: Some(packet.sequence), ..packet });
    }
    let mut next = 0;
    for message in 1..400 {
        let s = f64::from(message) * 0.1;
        let received = at(s + back(s) * 1e-3);
        while let Some((arrival, sequence)) = arrivals.get(next).filter(|a| a.0 <= s) {
            let clock = RemoteTimestamp::from_nanos((arrival * (1.0 + fast) * 1e9) as i64);
            let (direction, ssrc) = (Direction::Received, None);
            log.reported.push(Reported { at: received, direction, ssrc, sequence: *sequence, arrival: Some(clock) });
            next += 1;
        }
        let kind = RtcpKind::Twcc { count: message as u8 };
        let direction = Direction::Received;
        log.rtcp.push(Rtcp { at: received, number: 0, direction, sender_ssrc: 1, size: 60, kind, fingerprint: None });
    }
    log.sort();
    log
}

fn episodes(log: Recording) -> Vec<Episode> {
    explain(&Call::new(vec![log])).episodes
}

fn names(episodes: &[Episode], name: &str) -> bool {
    episodes.iter().flat_map(|e| &e.causes).any(|c| c.name == name)
}

#[test]
fn feedback_that_is_longer_on_its_way_is_late_in_one_log() {
    let by = |later: f64| episodes(log(halved, |_| 0.0, |s| if s < 19.0 { 20.0 } else { 20.0 + later }, 0.0));
    let late = by(80.0);
    assert_eq!(first(&late), ("feedback-late", 0.85), "{late:#?}");
    let little = by(40.0);
    assert!(!little.is_empty() && !names(&little, "feedback-late"), "{little:#?}");
}

#[test]
fn ways_whose_delays_change_against_each_other_are_a_clocks() {
    // 5 ms a second; 0.5 are less than the bound.
    let drift = episodes(log(halved, |_| 0.0, |_| 20.0, 5e-3));
    assert_eq!(first(&drift), ("clock-drift", 0.9), "{drift:#?}");
    let slow = episodes(log(halved, |_| 0.0, |_| 20.0, -5e-3));
    assert!(names(&slow, "clock-drift"), "{slow:#?}");
    for fast in [5e-4, 0.0] {
        let none = episodes(log(halved, |_| 0.0, |_| 20.0, fast));
        assert!(!none.is_empty() && !names(&none, "clock-drift"), "{none:#?}");
    }
    // A queue grows on one way alone.
    let queue = episodes(log(halved, |s| 5.0 * s, |_| 20.0, 0.0));
    assert!(!queue.is_empty() && !names(&queue, "clock-drift"), "{queue:#?}");
}

/// A start at a tenth of the rate, until `to` s, with the estimate and the steps of a probe in it.
fn start(to: f64, estimate: u64, steps: &[ProbeStep]) -> Vec<Episode> {
    let mut log = log(|s| if s < to { 0.1 } else { 1.0 }, |_| 0.0, |_| 20.0, 0.0);
    for (s, kbps) in [(0.0, estimate), (to, 1_200)] {
        let rate = DataRate::from_kbps(kbps);
        log.estimates.push(Estimate { at: at(s), kind: EstimateKind::Delay, rate, loss: None, detector: None });
    }
    for (i, step) in steps.iter().enumerate() {
        log.probes.push(Probe { at: at(0.1 + i as f64 * 0.2), id: 1, rate: None, step: *step });
    }
    episodes(log)
}

#[test]
fn a_start_held_down_without_a_probes_success_is_named() {
    let made = ProbeStep::Made { packets: 5, bytes: 4_000 };
    let failed = start(9.0, 120, &[made, ProbeStep::Failed("timeout")]);
    assert_eq!((failed[0].kind, first(&failed)), (EpisodeKind::SlowStart, ("probe-failed", 0.85)), "{failed:#?}");
    let missing = start(9.0, 120, &[]);
    assert_eq!(first(&missing), ("probe-failed", 0.6), "{missing:#?}");
    for other in [
        start(9.0, 120, &[made, ProbeStep::Succeeded]),
        start(9.0, 120, &[made, ProbeStep::Failed("timeout"), ProbeStep::Succeeded]),
        // The estimate had room: something else held the rate down.
        start(9.0, 900, &[made, ProbeStep::Failed("timeout")]),
    ] {
        assert!(!other.is_empty() && !names(&other, "probe-failed"), "{other:#?}");
    }
    assert!(!names(&start(4.0, 120, &[made, ProbeStep::Failed("timeout")]), "probe-failed"), "not late");
}

/// Two streams of a picture at captures of both ends, of which one stops at 20 s; timestamps differ by `by` of the frame.
fn layers(by: impl Fn(u32) -> u32, left: impl Fn(u32) -> bool) -> Vec<Episode> {
    let mut call = call(|_| 1.0, |_, _| Some(20.0));
    for recording in &mut call.recordings {
        for packet in &mut recording.packets {
            let frame = u32::from(packet.sequence) / 2;
            packet.ssrc = 7 + u32::from(packet.sequence) % 2;
            packet.timestamp = frame * 1_800 + if packet.ssrc == 8 { by(frame) } else { 0 };
        }
        recording.packets.retain(|p| p.ssrc == 7 || p.sequence < 2_000 || left(u32::from(p.sequence)));
    }
    explain(&call).episodes
}

#[test]
fn a_layer_that_stops_beside_another_of_its_picture_is_paused() {
    let paused = layers(|_| 12_345, |_| false);
    assert_eq!(first(&paused), ("layer-paused", 0.88), "{paused:#?}");
    assert!((1_700_000_019_000..=1_700_000_021_000).contains(&paused[0].from_ms), "{paused:#?}");
    // Another picture's stream; retransmissions; a layer of which a tenth is left.
    for other in [
        layers(|frame| 12_345 + frame * frame % 97, |_| false),
        layers(|_| 0, |_| false),
        layers(|_| 12_345, |n| n % 20 == 1),
    ] {
        assert!(!other.is_empty() && !names(&other, "layer-paused"), "{other:#?}");
    }
}

#[test]
fn statistics_name_a_layer_by_its_rid() {
    let with = |rid: bool, left: u64| {
        let (mut text, mut low, mut high) = (String::new(), 0, 0);
        for t in 0..40u64 {
            low += 40_000;
            high += if t < 20 { 210_000 } else { left };
            let stream = |ssrc: u32, name: &str, bytes: u64| {
                let mut object = serde_json::json!({"type": "outbound-rtp", "ssrc": ssrc, "bytesSent": bytes,
                    "packetsSent": bytes / 1000, "framesEncoded": 30 * t});
                if rid {
                    object["rid"] = name.into();
                }
                object
            };
            let line = serde_json::json!({"epoch_ms": 1_700_000_000_000u64 + t * 1000, "stats": {
                "O1": stream(1, "l", low), "O2": stream(2, "h", high),
                "C": {"type": "candidate-pair", "availableOutgoingBitrate": 3e6},
                "R": {"type": "remote-inbound-rtp", "totalRoundTripTime": 0.04 * (t + 1) as f64,
                    "roundTripTimeMeasurements": t + 1, "packetsLost": 0},
            }});
            text += &format!("{line}\n");
        }
        explain(&Call::new(vec![read("", text.as_bytes()).expect("statistics")])).episodes
    };
    let paused = with(true, 0);
    assert_eq!(first(&paused), ("layer-paused", 0.82), "{paused:#?}");
    for other in [with(false, 0), with(true, 30_000)] {
        assert!(!other.is_empty() && !names(&other, "layer-paused"), "{other:#?}");
    }
}
