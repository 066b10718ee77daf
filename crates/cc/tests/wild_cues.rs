//! Controllers told anything at all: late, duplicate, reordered, forged and absent cues.

use proptest::prelude::*;
use weir_cc::cue::{
    EstimateKind, NadaMode, NadaReport, PacketResult, QueueState, ReceivedPacket, ReceiverEstimate, ReportBlock,
    SentPacket, TransportFeedback,
};
use weir_cc::{Controller, Cue, Limits, ReceiverController, Registry, Setup};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

const NAMES: [&str; 3] = ["nada", "nada-receiver", "gcc-remb"];

/// Small numbers most of the time, any at all now and then.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![8 => -2_000i64..2_000, 2 => -1_000_000_000_000i64..1_000_000_000_000, 1 => any::<i64>()]
}

fn ecn(n: i64) -> Ecn {
    Ecn::from_bits((n & 3) as u8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn stay_between_the_limits(
        ops in proptest::collection::vec((0u8..10, 0i64..300, number(), number(), number()), 1..400),
        floor in 0u64..500, span in 0u64..5_000,
    ) {
        for name in NAMES {
            let mut limits = Limits { floor: DataRate::from_kbps(floor), ceiling: DataRate::from_kbps(floor + span) };
            let start_rate = DataRate::from_kbps(floor + span / 2);
            let setup = Setup { limits, start_rate, now: Timestamp::ZERO, seed: 1, params: vec![] };
            let pair = Registry::builtin().make(name, &setup).expect("built in");
            let (mut sender, mut receiver) = (pair.sender, pair.receiver);
            let mut now = Timestamp::ZERO;
            for &(op, step, a, b, c) in &ops {
                now += TimeDelta::from_millis(step);
                let size = DataSize::from_bytes(a.unsigned_abs());
                let rate = DataRate::from_bps(b.unsigned_abs());
                let rtt = Some(TimeDelta::from_micros(c));
                match op {
                    0 | 1 => {
                        sender.on_packet_sent(&SentPacket {
                            now, sequence: b as u64, size, is_padding: false, probe: 0, queued: size, bytes_in_flight: size,
                        });
                        if let Some(r) = &mut receiver {
                            let departure = (c % 5 != 0).then(|| RemoteTimestamp::from_micros(c));
                            r.on_packet_received(&ReceivedPacket {
                                now, departure, size, sequence: b as u64, rtp_timestamp: a as u32, marker: a % 3 == 0, ecn: ecn(a),
                            });
                        }
                    }
                    2 => {
                        limits = Limits { floor: DataRate::from_bps(a.unsigned_abs()), ceiling: rate };
                        sender.on_limits(limits, now);
                    }
                    3 => sender.on_queue(&QueueState { now, added: size, queued: size, oldest_age: TimeDelta::from_millis(c) }),
                    4 => sender.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate { now, rate, kind: EstimateKind::Remb })),
                    5 => sender.on_cue(&Cue::NadaReport(NadaReport {
                        now,
                        mode: if a % 2 == 0 { NadaMode::GradualUpdate } else { NadaMode::AcceleratedRampUp },
                        aggregate_delay: TimeDelta::from_micros(a),
                        receive_rate: rate,
                        rtt,
                    })),
                    6 => sender.on_cue(&Cue::ReportBlock(ReportBlock {
                        now,
                        fraction_lost: if c % 7 == 0 { f64::NAN } else { a as f64 / 1_000.0 },
                        cumulative_lost: b,
                        highest_sequence: c as u64,
                        expected: a as u64,
                        jitter: TimeDelta::from_micros(b),
                        rtt,
                    })),
                    7 | 8 => {
                        let packet = |k: i64| PacketResult {
                            sequence: (b as u64).wrapping_add(k as u64),
                            departure: Timestamp::from_micros(b.saturating_add(k * 9_000)),
                            arrival: ((a ^ k) % 4 != 0).then(|| RemoteTimestamp::from_micros(c.saturating_add(k * 10_000))),
                            size,
                            ecn: ecn(a ^ k),
                            probe: 0,
                            was_lost: (c ^ k) % 9 == 0,
                        };
                        let packets: Vec<_> = (0..a.rem_euclid(30)).map(packet).collect();
                        let feedback = TransportFeedback { now, packets: &packets, bytes_in_flight: size, rtt };
                        sender.on_cue(&Cue::TransportFeedback(feedback));
                    }
                    _ => {
                        sender.on_timeout(now);
                        prop_assert!(sender.poll_timeout().is_none_or(|(t, _)| t > now));
                        if let Some(r) = &mut receiver {
                            r.on_rtt(TimeDelta::from_micros(c), now);
                        }
                    }
                }
                if let Some(r) = &mut receiver {
                    let _ = r.poll_report(now);
                    prop_assert!(r.poll_timeout().is_none_or(|t| t > now));
                    r.metrics(&mut |n, v| assert!(!v.is_infinite(), "{n} is {v}"));
                }
                let target = sender.target();
                prop_assert!(target.media_rate >= limits.floor);
                prop_assert!(target.media_rate <= limits.ceiling.max(limits.floor));
                prop_assert!(target.pacing_rate >= target.media_rate);
                sender.metrics(&mut |n, v| assert!(!v.is_infinite(), "{n} is {v}"));
            }
        }
    }
}
