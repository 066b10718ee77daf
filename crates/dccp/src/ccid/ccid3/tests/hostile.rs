//! For any input from the network nothing panics and memory stays bounded.

use crate::ccid::ccid3::options::Report;
use crate::ccid::{
    Acknowledgement, CcidReceiver, CcidSender, Chunk, Permission, ReceivedPacket, Registry, SentPacket, Setup,
};
use crate::option::Options;
use crate::packet::{Header, PacketType, PacketWriter, WireSequence};
use proptest::prelude::*;
use weir_units::{DataSize, Ecn, Seq48, TimeDelta, Timestamp};

fn setup(rtt: Option<TimeDelta>) -> Setup {
    let max_packet_size = DataSize::from_bytes(1_400);
    Setup { now: Timestamp::ZERO, max_packet_size, rtt, ecn: true, ack_ratio: 2, params: Vec::new() }
}

/// Options as a receiver might write them, with any numbers.
fn options() -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        (192..=195u8, prop::collection::vec(any::<u8>(), 0..60)).prop_map(|(n, d)| (n, d)),
        any::<u32>().prop_map(|r| (194, r.to_be_bytes().to_vec())),
        (0..5u8, prop::collection::vec(prop::collection::vec(any::<u8>(), 9), 0..12))
            .prop_map(|(skip, i)| (193, [vec![skip], i.concat()].concat())),
    ];
    prop::collection::vec(one, 0..5)
        .prop_map(|all| all.into_iter().flat_map(|(n, d)| [vec![n, d.len() as u8 + 2], d].concat()).collect())
}

proptest! {
    #[test]
    fn any_feedback_leaves_a_finite_rate(
        number in prop::sample::select(vec![3, 4, 248]),
        has_rtt in any::<bool>(),
        steps in prop::collection::vec((options(), 0..40u64, -20..200_000i64, any::<bool>(), prop::collection::vec(any::<u8>(), 0..20)), 1..40),
    ) {
        let registry = Registry::builtin();
        let rtt = has_rtt.then(|| TimeDelta::from_millis(20));
        let mut sender = (registry.get(number).expect("a CCID").sender)(&setup(rtt)).expect("defaults");
        let mut now = Timestamp::from_millis(1);
        let start = Seq48::new((1 << 48) - 60);
        let mut sent = 0;
        for (bytes, back, step, slow_receiver, drops) in steps {
            now += TimeDelta::from_micros(step.max(0));
            if slow_receiver {
                let size = DataSize::from_bytes(back * 300);
                sender.on_chunk(&Chunk { now, size, interval: TimeDelta::from_micros(step) });
            }
            if let Permission::Now = sender.may_send(now, DataSize::from_bytes(900)) {
                sender.ccval(now);
                let sequence = start.add(sent);
                sender.on_packet_sent(&SentPacket {
                    now, sequence, packet_type: PacketType::Data, data: DataSize::from_bytes(900),
                    header: DataSize::ZERO, ecn: Ecn::Ect0, queued: DataSize::ZERO,
                });
                sent += 1;
            }
            sender.on_acknowledgement(&Acknowledgement {
                now, sequence: Seq48::new(1), packet_type: PacketType::Ack, ndp_count: None,
                acknowledged: start.add(sent).sub(back), ack_vector: &[], elapsed: Some(TimeDelta::from_micros(step)),
                echo_rtt: None, data_dropped: &drops, slow_receiver, ecn: Ecn::NotEct,
                options: Options::new(&bytes, PacketType::Ack),
            });
            if sender.poll_timeout().is_some_and(|t| t <= now) {
                sender.on_timeout(now);
                prop_assert!(sender.poll_timeout().is_none_or(|t| t > now));
            }
            sender.metrics(&mut |name, v| if !["x_calc_bps", "recv_limit_bps", "rtt_ms", "reported_loss_event_rate"].contains(&name) {
                assert!(v.is_finite(), "{name} is {v}");
            });
            let rate = sender.rate();
            prop_assert!(rate.is_none_or(|r| r.as_bps() <= 10_000_000_000_000));
        }
    }

    #[test]
    fn any_packets_leave_feedback_that_can_be_read(
        packets in prop::collection::vec((-40..40i64, 0..16u8, 0..4u8, 0..60_000i64, prop::option::of(0..9u64), any::<bool>()), 1..200),
        far in any::<u64>(),
    ) {
        let registry = Registry::builtin();
        let mut receiver = (registry.get(3).expect("a CCID").receiver)(&setup(None)).expect("defaults");
        let (mut now, mut at) = (Timestamp::ZERO, Seq48::new(5));
        let mut highest = None::<Seq48>;
        for (n, (step, ccval, kind, wait, ndp_count, jump)) in packets.into_iter().enumerate() {
            now += TimeDelta::from_micros(wait);
            at = if step < 0 { at.sub(step.unsigned_abs()) } else { at.add(step.unsigned_abs()) };
            if jump && n % 50 == 7 {
                at = at.add(far % (1 << 40));
            }
            highest = Some(highest.map_or(at, |h| h.max(at)));
            receiver.on_packet(&ReceivedPacket {
                now, sequence: at, packet_type: if kind == 0 { PacketType::Ack } else { PacketType::Data },
                data: DataSize::from_bytes(100 * u64::from(kind)), ecn: if kind == 3 { Ecn::Ce } else { Ecn::Ect0 },
                ccval, ndp_count, rtt: None, options: Options::new(&[], PacketType::Data),
            });
            if receiver.wants_ack(now) {
                let acknowledged = highest.expect("one");
                let header = Header {
                    source_port: 1, destination_port: 2, ccval: 0, checksum_coverage: 0, packet_type: PacketType::Ack,
                    sequence: WireSequence::Long(Seq48::new(1)), acknowledgement: Some(WireSequence::Long(acknowledged)),
                };
                let mut bytes = Vec::new();
                let mut writer = PacketWriter::new(&mut bytes, &header);
                receiver.write_options(now, &mut writer);
                writer.finish();
                receiver.on_ack_sent(now);
                prop_assert!(!receiver.wants_ack(now));
                let packet = crate::packet::parse(&bytes, 0).expect("our own");
                let report = Report::read(acknowledged, &packet.options);
                let reported = report.intervals().expect("intervals");
                prop_assert!(report.receive_rate.is_some() && !reported.is_empty());
                // In order and without gaps, all of them before the packet acknowledged.
                for pair in reported.windows(2) {
                    prop_assert_eq!(pair[0].0.since(pair[1].0), (pair[1].1.lossless + pair[1].1.lossy) as i64);
                    prop_assert!(pair[0].1.lossy > 0);
                }
            }
        }
    }
}
