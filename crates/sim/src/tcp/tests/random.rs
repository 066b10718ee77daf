//! Random input.

use super::*;

fn any_segment() -> impl Strategy<Value = (TcpSegment, u8, i64)> {
    let number = || prop_oneof![0u64..30_000, any::<u64>()];
    let block = (number(), number()).prop_map(|(start, end)| SackBlock { start, end });
    let header = (number(), number(), number(), any::<u32>(), any::<u8>(), any::<[bool; 8]>());
    (header, [block.clone(), block.clone(), block], any::<i64>(), any::<u8>(), 0i64..2_000).prop_map(
        |((seq, ack, window, len, sack_count, f), sack, echo, ecn, ms)| {
            let len = if len % 4 == 0 { len } else { len % 3_000 };
            let s = TcpSegment {
                seq,
                ack,
                window,
                len,
                connection: 0,
                sack_count,
                sack,
                timestamp: Timestamp::from_nanos(echo),
                echo: Timestamp::from_nanos(echo),
                is_syn: f[0],
                is_ack: f[1] || f[2],
                is_push: f[3],
                is_ece: f[4],
                is_cwr: f[5],
                has_timestamps: f[6],
                ace: if f[7] { 255 } else { (ack % 8) as u8 },
            };
            (s, ecn, ms)
        },
    )
}

fn any_variant() -> impl Strategy<Value = Variant> {
    prop::sample::select(Variant::ALL.to_vec())
}

/// Drives an agent like the engine; returns how many packets it sent.
fn stimulate(agent: &mut impl Agent, now: Timestamp, packet: &Packet) -> u32 {
    let mut sent = 0;
    let mut out = Packet::blank();
    let mut drain = |agent: &mut dyn FnMut(&mut Packet) -> bool| {
        while agent(&mut out) {
            sent += 1;
            assert!(sent < 20_000, "it sends without end");
        }
    };
    agent.on_packet(now, packet);
    drain(&mut |p| agent.poll_transmit(now, p));
    for _ in 0..100 {
        let Some(at) = agent.poll_timeout().filter(|&t| t <= now) else { return sent };
        assert!(at <= now);
        agent.on_timeout(now);
        drain(&mut |p| agent.poll_transmit(now, p));
    }
    panic!("its timer stands still");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn random_segments_neither_panic_nor_loop(
        segments in prop::collection::vec(any_segment(), 1..200), sack: bool, ecn: bool, timestamps: bool, handshake: bool, variant in any_variant(),
        hystart: bool, prr: bool, rack: bool, dsack: bool,
    ) {
        let sack = sack || variant.models_path();
        let ecn = if ecn { variant.with_ecn() } else { variant.ecn() };
        let (prr, dsack) = (prr && sack, dsack && sack);
        let loss_detection = if rack && sack { LossDetection::Rack } else { LossDetection::DupAck };
        let c = TcpConfig { variant, sack, ecn, hystart, prr, loss_detection, dsack, timestamps, handshake, receive_window: DataSize::from_bytes(200_000), ..config() };
        let size = Distribution::Constant { value: 20_000.0 };
        let workload = Workload::OnOff { size, off: Distribution::Constant { value: 0.0 }, starts_on: false, persistent: false, seed: 1 };
        let mut s = Sender::new(c, workload).expect("valid");
        let mut r = Receiver::new(c).expect("valid");
        let mut now = Timestamp::ZERO;
        s.on_start(now);
        let mut packet = Packet::blank();
        while s.poll_transmit(now, &mut packet) {}
        for (segment, ecn, ms) in segments {
            now += TimeDelta::from_millis(ms);
            packet.body = Body::Tcp(segment);
            packet.ecn = Ecn::from_bits(ecn);
            stimulate(&mut s, now, &packet);
            stimulate(&mut r, now, &packet);
            prop_assert!(s.window().cwnd >= MSS && s.window().ssthresh >= 2 * MSS);
            prop_assert!(r.out_of_order() <= 300);
            prop_assert!(s.bytes_in_flight().as_bytes() <= 2 * 200_000);
        }
    }

    #[test]
    fn any_pattern_of_loss_is_repaired(lose in prop::collection::vec(0u64..150, 0..60), sack: bool, variant in any_variant(), timestamps: bool, every in 1u32..3, prr: bool) {
        let sack = sack || variant.models_path();
        let c = TcpConfig { sack, prr: prr && sack, ecn: variant.ecn(), variant, timestamps, ack_every: every, handshake: true, ..config() };
        let size = DataSize::from_bytes(120 * MSS + 17);
        let mut w = Wire::new(c, Workload::Transfer { size }, &lose);
        w.run(Timestamp::from_secs(20_000));
        prop_assert_eq!(w.receiver.delivered(), size);
        prop_assert_eq!(w.sender.stats().transfers, 1);
        prop_assert!(w.sender.poll_timeout().is_none());
    }

    #[test]
    fn any_pattern_of_loss_and_reordering_is_repaired_with_rack(
        lose in prop::collection::vec(0u64..150, 0..60), late in prop::collection::vec((0u64..150, 0i64..400), 0..40),
        variant in any_variant(), timestamps: bool, every in 1u32..3, prr: bool, dsack: bool, handshake: bool,
        gap in prop::option::of((0i64..1_000, 0i64..2_000)),
    ) {
        let loss_detection = LossDetection::Rack;
        let ecn = variant.ecn();
        let c = TcpConfig { prr, ecn, variant, timestamps, ack_every: every, handshake, loss_detection, dsack, ..config() };
        let size = DataSize::from_bytes(120 * MSS + 17);
        let mut w = Wire::new(c, Workload::Transfer { size }, &lose);
        w.late = late.into_iter().map(|(k, ms)| (k, TimeDelta::from_millis(ms))).collect();
        if let Some((from, ms)) = gap {
            // Acknowledgements are lost for a while.
            w.run(Timestamp::from_millis(from));
            w.lose_acks_from = Some(Timestamp::from_millis(from));
            w.run(Timestamp::from_millis(from + ms));
            w.lose_acks_from = None;
        }
        w.run(Timestamp::from_secs(20_000));
        prop_assert_eq!(w.receiver.delivered(), size);
        prop_assert_eq!(w.receiver.out_of_order(), 0);
        prop_assert_eq!(w.sender.stats().transfers, 1);
        prop_assert!(w.sender.poll_timeout().is_none());
    }
}
