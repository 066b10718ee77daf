//! A peer that knows all numbers and sends anything: no panic, bounded memory and replies, and the connection either
//! survives or ends with a reason.

#[path = "support/hostile.rs"]
mod hostile;

use hostile::{Target, play};
use proptest::prelude::*;
use weir_dccp::ccid::Registry;
use weir_dccp::connection::{EndReason, State};
use weir_dccp::option::{DccpOption, FeatureNumber};
use weir_dccp::packet::{PacketType, ResetCode};
use weir_units::TimeDelta;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_script_can_be_played(script in prop::collection::vec(any::<u8>(), 0..1_500)) {
        play(&script);
    }

    /// Scripts of packets that are mostly valid.
    #[test]
    fn valid_packets_of_any_kind(
        setup: u8,
        ccid: u8,
        packets in prop::collection::vec((0u8..10, any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)), 0..100),
    ) {
        let mut script = vec![setup | 1 << 6, ccid];
        for (packet_type, kind, options) in packets {
            // Resets and Closes would end it too soon.
            let packet_type = if (5..8).contains(&packet_type) && kind > 8 { 4 } else { packet_type };
            script.extend_from_slice(&[0, kind & 0xfc, packet_type, 0, 0, 0xe1 | kind << 1]);
            script.extend_from_slice(&options);
            if kind % 5 == 0 {
                script.extend_from_slice(&[5, kind]);
            }
        }
        play(&script);
    }
}

/// Options' bytes.
fn bytes_of(options: &[DccpOption<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    options.iter().for_each(|o| assert!(o.write_into(&mut out), "an option"));
    out
}

/// Setups: as a client and as a server, in OPEN.
const OPEN: [u8; 2] = [1 << 6, 1 << 6 | 1 << 5];

/// Heap bytes retained after 20,000 packets in addition to those after the first 2,000.
fn growth(setup: u8, ccid: u8, mut send: impl FnMut(&mut Target, u32)) -> (i64, Target) {
    let mut target = Target::new(setup, ccid);
    (0..2_000).for_each(|i| send(&mut target, i));
    let info = allocation_counter::measure(|| (2_000..22_000).for_each(|i| send(&mut target, i)));
    (info.bytes_current, target)
}

/// Sends one packet, by its number.
type Flood<'a> = &'a mut dyn FnMut(&mut Target, u32);

/// A megabyte would be 50 bytes per packet.
const MOST_GROWTH: i64 = 64 * 1_024;

#[test]
fn floods_leave_nothing_behind() {
    use DccpOption as O;
    let lies = [0xc0, 0x3f, 0x00, 0x41, 0xff, 0x05];
    let window = |i: u32| [0, 0, 0, 0, 1, (i % 200) as u8];
    for setup in OPEN {
        for ccid in 0..Registry::builtin().specs().len() as u8 {
            let floods: [(&str, Flood<'_>); 9] = [
                ("data that nobody takes", &mut |t, _| t.packet(PacketType::Data, 0, 0, &[], &[7; 200], 0)),
                ("data with holes", &mut |t, i| t.packet(PacketType::DataAck, u64::from(i % 60), 0, &[], b"d", 0)),
                ("Syncs", &mut |t, _| t.packet(PacketType::Sync, 0, 0, &[], &[], 0)),
                ("SyncAcks that jump", &mut |t, _| t.packet(PacketType::SyncAck, 70, 0, &[], &[], 0)),
                ("Ack Vectors that lie", &mut |t, i| {
                    let options = bytes_of(&[O::AckVector { nonce: i % 2 == 0, runs: &lies }]);
                    t.packet(PacketType::Ack, 0, 0, &options, &[], 0);
                }),
                ("unknown features", &mut |t, i| {
                    let f = FeatureNumber((i % 118) as u8 + 10);
                    let options = bytes_of(&[O::ChangeL(f, &[1, 2]), O::ChangeR(f, &[3])]);
                    t.packet(PacketType::Ack, 0, 0, &options, &[], 0);
                }),
                ("windows that come and go", &mut |t, i| {
                    let options = bytes_of(&[O::ChangeL(FeatureNumber::SEQUENCE_WINDOW, &window(i))]);
                    t.packet(PacketType::Ack, 0, 0, &options, &[], 0);
                }),
                ("Data Dropped and slow receivers", &mut |t, _| {
                    let options = bytes_of(&[O::DataDropped(&[0x80, 0xa5, 0x7f, 0xd0]), O::SlowReceiver]);
                    t.packet(PacketType::Ack, 0, 0, &options, &[], 0);
                }),
                ("times from nowhere", &mut |t, i| {
                    let options = bytes_of(&[
                        O::Timestamp(i.wrapping_mul(0x9e37_79b9)),
                        O::TimestampEcho { echo: i.wrapping_mul(0x85eb_ca6b), elapsed: i },
                        O::Ccid { number: 194, data: &[0xff; 4] },
                        O::Ccid { number: 192, data: &i.to_be_bytes() },
                    ]);
                    t.packet(PacketType::Ack, 0, 0, &options, &[], 0);
                    t.wait(TimeDelta::from_micros(100));
                }),
            ];
            for (name, flood) in floods {
                let (bytes, target) = growth(setup, ccid, flood);
                assert!(bytes < MOST_GROWTH, "{name}, setup {setup}, CCID {ccid}: {bytes} bytes more");
                let (state, end) = (target.connection.state(), target.connection.end());
                let fine = match end.map(|e| e.reason) {
                    None => state == State::Open,
                    // A CCID may penalise a receiver that acknowledges packets never sent.
                    Some(EndReason::Reset(code, _)) => {
                        [ResetCode::OPTION_ERROR, ResetCode::AGGRESSION_PENALTY].contains(&code)
                    }
                    Some(_) => false,
                };
                assert!(fine, "{name}, setup {setup}, CCID {ccid}: {state:?}, {end:?}");
                let taken = target.connection.counters().packets_received;
                assert!(end.is_some() || taken > 20_000, "{name}, setup {setup}, CCID {ccid}: {taken} were valid");
            }
        }
    }
}

#[test]
fn a_peer_that_asks_for_the_worst_gets_a_reset_or_a_connection() {
    // Each on its own connection: option, after Mandatory, and the resulting end.
    use DccpOption as O;
    let feature = FeatureNumber;
    let cases: [(&[O<'_>], Option<ResetCode>); 8] = [
        (&[O::Mandatory, O::ChangeL(feature(77), &[1])], Some(ResetCode::MANDATORY_ERROR)),
        (&[O::Mandatory, O::ChangeL(FeatureNumber::SEQUENCE_WINDOW, &[0; 6])], Some(ResetCode::MANDATORY_ERROR)),
        (&[O::Mandatory, O::ChangeR(FeatureNumber::CCID, &[99])], Some(ResetCode::MANDATORY_ERROR)),
        (&[O::Mandatory, O::Unknown { number: 100, data: &[] }], Some(ResetCode::MANDATORY_ERROR)),
        (&[O::Mandatory, O::Mandatory], Some(ResetCode::OPTION_ERROR)),
        (&[O::ChangeL(feature(77), &[1])], None),
        (&[O::Unknown { number: 100, data: &[1, 2, 3] }], None),
        (&[O::ConfirmL(feature(3), &[0; 6]), O::ConfirmR(feature(1), &[9, 9])], None),
    ];
    for setup in OPEN {
        for (options, code) in cases {
            let mut target = Target::new(setup, 0);
            target.packet(PacketType::Ack, 0, 0, &bytes_of(options), &[], 0);
            let reset = match target.connection.end().map(|e| e.reason) {
                Some(EndReason::Reset(code, _)) => Some(code),
                // The option of the Mandatory Error is also given as text.
                Some(EndReason::NoCommonCcid) => Some(ResetCode::MANDATORY_ERROR),
                None => None,
                other => panic!("{other:?}"),
            };
            assert_eq!(reset, code, "{options:?}");
            // On a DCCP-Data none of it may end the connection (RFC 4340, section 7.5.5).
            let mut target = Target::new(setup, 0);
            target.packet(PacketType::Data, 0, 0, &bytes_of(options), &[], 0);
            assert_eq!(target.connection.end(), None, "{options:?} on a DCCP-Data");
        }
    }
}
