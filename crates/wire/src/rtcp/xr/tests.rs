use super::*;
use crate::rtcp::{Packet, parse_compound};
use crate::testing::hex;
use proptest::collection::vec;
use proptest::prelude::*;
use weir_units::TimeDelta;

fn write(blocks: &[Block<'_>]) -> Vec<u8> {
    let mut out = vec![];
    Xr { ssrc: 9, blocks: Blocks::Own(blocks) }.write_into(&mut out);
    out
}

/// Writes a block, and checks the bytes and that they parse to the same block.
fn same(block: Block<'_>, bytes: &str) {
    let out = write(&[block]);
    assert_eq!(out[8..], hex(bytes), "{block:?}");
    reads_as(bytes, block);
}

fn reads_as(bytes: &str, block: Block<'_>) {
    let bytes = hex(bytes);
    let words = (1 + bytes.len() / 4) as u8;
    let report = [&[0x80, 207, 0, words, 0, 0, 0, 9][..], &bytes].concat();
    let Some(Ok(Packet::Xr(xr))) = parse_compound(&report).next() else { panic!("{report:x?}") };
    assert!(xr.blocks.iter().eq([block]), "{:?}, expected {block:?}", xr.blocks);
}

/// The block is kept as bytes.
fn is_other(bytes: &str) {
    let bytes = hex(bytes);
    let words = (1 + bytes.len() / 4) as u8;
    let report = [&[0x80, 207, 0, words, 0, 0, 0, 9][..], &bytes].concat();
    let Some(Ok(Packet::Xr(xr))) = parse_compound(&report).next() else { panic!("{report:x?}") };
    let block = xr.blocks.iter().next();
    let other = RawBlock { block_type: bytes[0], type_specific: bytes[1], body: &bytes[4..] };
    assert_eq!(block, Some(Block::Other(other)));
}

/// A block of this type has exactly one valid length.
fn has_one_length(block: Block<'_>) {
    let block = &write(&[block])[8..];
    let words = block.len() as u8 / 4 - 1;
    for wrong in (0..words + 3).filter(|w| *w != words) {
        let mut bytes = block.to_vec();
        bytes[3] = wrong;
        bytes.resize(4 + usize::from(wrong) * 4, 0);
        let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        is_other(&digits);
    }
}

const INTERVAL: IntervalMetric = IntervalMetric::Interval;
const CUMULATIVE: IntervalMetric = IntervalMetric::Cumulative;

#[test]
fn receipt_times_by_hand() {
    let times = [0x100, 0x200, 0x300];
    let all = ReceiptTimes { ssrc: 2, begin: 0xffff, end: 2, thinning: 0, times: (&times).into() };
    same(Block::ReceiptTimes(all), "03000005 00000002 ffff0002 00000100 00000200 00000300");
    assert!(all.packets().eq([(0xffff, 0x100), (0, 0x200), (1, 0x300)]));
    let thinned = ReceiptTimes { thinning: 1, ..all };
    assert!(thinned.packets().eq([(0, 0x100)]), "times beyond the range are passed over");
    let short = ReceiptTimes { end: 100, ..all };
    assert_eq!((short.packets().count(), short.reported()), (3, 101), "times missing");
    is_other("03000001 00000002");
}

#[test]
fn statistics_by_hand() {
    let none = StatisticsSummary { ssrc: 2, begin: 10, end: 20, ..Default::default() };
    let zeros = "00000000".repeat(7);
    same(Block::StatisticsSummary(none), &format!("06000009 00000002 000a0014 {zeros}"));
    let all = StatisticsSummary {
        lost: Some(1),
        duplicates: Some(2),
        jitter: Some(JitterSummary { min: 3, max: 4, mean: 5, deviation: 6 }),
        hops: Some(HopSummary { ipv6: true, min: 7, max: 8, mean: 9, deviation: 10 }),
        ..none
    };
    let fields = "00000001 00000002 00000003 00000004 00000005 00000006 0708090a";
    same(Block::StatisticsSummary(all), &format!("06f00009 00000002 000a0014 {fields}"));
    let ipv4 = StatisticsSummary { hops: Some(HopSummary { ipv6: false, ..all.hops.unwrap() }), ..all };
    same(Block::StatisticsSummary(ipv4), &format!("06e80009 00000002 000a0014 {fields}"));
    // A field flagged as not reported must be zero, and the value 3 of ToH must not be used.
    for flags in ["70", "b0", "d0", "e0", "f8"] {
        is_other(&format!("06{flags}0009 00000002 000a0014 {fields}"));
    }
    has_one_length(Block::StatisticsSummary(all));
}

#[test]
fn voice_metrics_by_hand() {
    let metrics = VoipMetrics {
        ssrc: 2,
        loss_rate: 1,
        discard_rate: 2,
        burst_density: 3,
        gap_density: 4,
        burst_duration: 5,
        gap_duration: 6,
        round_trip_delay: 7,
        end_system_delay: 8,
        signal_level: -20,
        noise_level: 127,
        echo_return_loss: 45,
        gap_threshold: 16,
        r_factor: 94,
        external_r_factor: 127,
        mos_listening: 35,
        mos_conversational: 34,
        receiver_config: 0xb5,
        jitter_buffer_nominal: 60,
        jitter_buffer_max: 120,
        jitter_buffer_abs_max: 300,
    };
    same(
        Block::VoipMetrics(metrics),
        "07000008 00000002 01020304 00050006 00070008 ec7f2d10 5e7f2322 b500003c 0078012c",
    );
    has_one_length(Block::VoipMetrics(metrics));
}

#[test]
fn measurement_information_by_hand() {
    // 1.5 s is 0x18000 units of 2^-16 s; 10.25 s is 10 and 0x40000000 units of 2^-32 s.
    let information = MeasurementInformation {
        ssrc: 2,
        first_sequence: 0xfff0,
        interval_first: 0x0001_0005,
        last: 0x0001_0009,
        interval: TimeDelta::from_millis(1_500),
        cumulative: TimeDelta::from_millis(10_250),
    };
    same(
        Block::MeasurementInformation(information),
        "0e000007 00000002 0000fff0 00010005 00010009 00018000 0000000a 40000000",
    );
    let reserved = "0eff0007 00000002 fffffff0 00010005 00010009 00018000 0000000a 40000000";
    reads_as(reserved, Block::MeasurementInformation(information));
    has_one_length(Block::MeasurementInformation(information));
}

#[test]
fn delay_metrics_by_hand() {
    let delay = DelayMetrics {
        ssrc: 2,
        interval: INTERVAL,
        mean_round_trip: Some(TimeDelta::from_millis(500)),
        min_round_trip: Some(TimeDelta::from_millis(250)),
        max_round_trip: Some(TimeDelta::from_secs(1)),
        end_system: Some(TimeDelta::from_millis(125)),
    };
    same(Block::Delay(delay), "10800006 00000002 00008000 00004000 00010000 00000000 20000000");
    let nothing = DelayMetrics {
        interval: IntervalMetric::Sampled,
        mean_round_trip: None,
        min_round_trip: None,
        max_round_trip: None,
        end_system: None,
        ..delay
    };
    same(Block::Delay(nothing), "10400006 00000002 ffffffff ffffffff ffffffff ffffffff ffffffff");
    let far = TimeDelta::from_nanos(i64::MAX);
    let far = DelayMetrics { mean_round_trip: Some(far), end_system: Some(far), ..nothing };
    let out = write(&[Block::Delay(far)]);
    assert_eq!(out[16..], hex("fffffffe ffffffff ffffffff ffffffff fffffffe"), "none reads as unknown");
    is_other("10000006 00000002 00008000 00004000 00010000 00000000 20000000");
    has_one_length(Block::Delay(delay));
}

#[test]
fn delay_variation_by_hand() {
    // Example (b) of RFC 6798, section 3.4: +60 ms, 96.3 %, 0 ms, 0 %: 60 * 16 = 0x3c0, 96.3 * 256 = 24,652.8.
    let variation = DelayVariation {
        ssrc: 2,
        interval: CUMULATIVE,
        metric: DelayVariation::TWO_POINT,
        positive_threshold: Some(TimeDelta::from_millis(60)),
        positive_percentile: Some(24_653),
        negative_threshold: Some(TimeDelta::ZERO),
        negative_percentile: Some(0),
        mean: Some(TimeDelta::from_micros(-1_500)),
    };
    same(Block::DelayVariation(variation), "0fc40004 00000002 03c0604d 00000000 ffe80000");
    let nothing = DelayVariation {
        metric: DelayVariation::MAPDV2,
        positive_threshold: None,
        positive_percentile: None,
        negative_threshold: None,
        negative_percentile: None,
        mean: None,
        ..variation
    };
    same(Block::DelayVariation(nothing), "0fc00004 00000002 7fffffff 7fffffff 7fff0000");
    // 2,047.8125 ms is the maximum, -2,047.9375 ms the minimum; values beyond have special codes.
    let mean =
        |us| write(&[Block::DelayVariation(DelayVariation { mean: Some(TimeDelta::from_micros(us)), ..nothing })]);
    for (us, bits) in [
        (2_047_812, "7ffd"),
        (2_047_900, "7ffe"),
        (i64::MAX / 1_000, "7ffe"),
        (-2_047_937, "8001"),
        (-2_048_000, "8000"),
        (i64::MIN / 1_000, "8000"),
        (31, "0000"),
        (32, "0001"),
        (-32, "ffff"),
    ] {
        assert_eq!(mean(us)[24..26], hex(bits), "{us} us");
    }
    is_other("0f040004 00000002 03c0604d 00000000 ffe80000");
    has_one_length(Block::DelayVariation(variation));
}

#[test]
fn bursts_of_losses_by_hand() {
    // 24 bits of 0x111111 and 0x222222, 12 bits of 0x345, 36 bits of 0x6789abcde, as the figure has them.
    let bursts = BurstGapLoss {
        ssrc: 2,
        interval: INTERVAL,
        combined: true,
        threshold: 16,
        duration: Measured::Value(0x01_0203),
        lost: Measured::Value(0x11_1111),
        expected: Measured::Value(0x22_2222),
        bursts: Measured::Value(0x345),
        squared_duration: Measured::Value(0x6_789a_bcde),
    };
    same(Block::BurstGapLoss(bursts), "14a00005 00000002 10010203 11111122 22223456 789abcde");
    let nothing = BurstGapLoss {
        combined: false,
        duration: Measured::Unavailable,
        lost: Measured::OverRange,
        expected: Measured::Unavailable,
        bursts: Measured::OverRange,
        squared_duration: Measured::Unavailable,
        ..bursts
    };
    same(Block::BurstGapLoss(nothing), "14800005 00000002 10ffffff fffffeff ffffffef ffffffff");
    for first in ["14000005", "14400005"] {
        is_other(&format!("{first} 00000002 10010203 11111122 22223456 789abcde"));
    }
    has_one_length(Block::BurstGapLoss(bursts));
}

#[test]
fn bursts_of_discards_by_hand() {
    let bursts = BurstGapDiscard {
        ssrc: 2,
        interval: CUMULATIVE,
        threshold: 16,
        discarded: Measured::Value(0x01_0203),
        expected: Measured::Value(0x04_0506),
    };
    same(Block::BurstGapDiscard(bursts), "15c00003 00000002 10010203 04050600");
    // Counts above 0xfffffd are over range.
    let at = |n| BurstGapDiscard { discarded: Measured::Value(n), ..bursts };
    same(Block::BurstGapDiscard(at(0xff_fffd)), "15c00003 00000002 10fffffd 04050600");
    for n in [0xff_fffe, 0xff_ffff, 1 << 40] {
        let over = BurstGapDiscard { discarded: Measured::OverRange, ..bursts };
        assert_eq!(write(&[Block::BurstGapDiscard(at(n))]), write(&[Block::BurstGapDiscard(over)]));
    }
    is_other("15400003 00000002 10010203 04050600");
    has_one_length(Block::BurstGapDiscard(bursts));
}

#[test]
fn discard_counts_by_hand() {
    let late = DiscardCount { ssrc: 2, interval: INTERVAL, reason: DiscardReason::Late, count: Measured::Value(5) };
    same(Block::DiscardCount(late), "18a00002 00000002 00000005");
    let early = DiscardCount { reason: DiscardReason::Early, interval: CUMULATIVE, ..late };
    same(Block::DiscardCount(early), "18d00002 00000002 00000005");
    let duplicate = DiscardCount { reason: DiscardReason::Duplicate, count: Measured::Value(0xffff_fffd), ..late };
    same(Block::DiscardCount(duplicate), "18800002 00000002 fffffffd");
    same(Block::DiscardCount(DiscardCount { count: Measured::OverRange, ..duplicate }), "18800002 00000002 fffffffe");
    same(Block::DiscardCount(DiscardCount { count: Measured::Unavailable, ..duplicate }), "18800002 00000002 ffffffff");
    // The reserved reason, sampled, and the reserved interval.
    for first in ["18b00002", "18600002", "18200002"] {
        is_other(&format!("{first} 00000002 00000005"));
    }
    has_one_length(Block::DiscardCount(late));
}

#[test]
fn bytes_discarded_by_hand() {
    let late = BytesDiscarded { ssrc: 5, interval: INTERVAL, early: false, bytes: 1_000 };
    same(Block::BytesDiscarded(late), "1a800002 00000005 000003e8");
    let early = BytesDiscarded { interval: CUMULATIVE, early: true, ..late };
    same(Block::BytesDiscarded(early), "1ae00002 00000005 000003e8");
    // Sampled, and the reserved interval.
    is_other("1a400002 00000005 000003e8");
    is_other("1a000002 00000005 000003e8");
    has_one_length(Block::BytesDiscarded(late));
}

fn over_time() -> impl Strategy<Value = IntervalMetric> {
    prop_oneof![Just(INTERVAL), Just(CUMULATIVE)]
}

fn measured(width: u32) -> impl Strategy<Value = Measured> {
    let most = u64::MAX >> (64 - width);
    prop_oneof![
        8 => (0..most - 1).prop_map(Measured::Value),
        1 => Just(Measured::OverRange),
        1 => Just(Measured::Unavailable),
    ]
}

fn blocks() -> impl Strategy<Value = Block<'static>> {
    let words = any::<[u32; 4]>();
    let compact = || 0u32..u32::MAX;
    let sixteenths = || proptest::option::of((-0x8000i64..=0x7ffe).prop_map(|n| TimeDelta::from_nanos(n * 62_500)));
    prop_oneof![
        (any::<u32>(), over_time(), any::<bool>(), any::<u32>()).prop_map(|(ssrc, interval, early, bytes)| {
            Block::BytesDiscarded(BytesDiscarded { ssrc, interval, early, bytes })
        }),
        (any::<u32>(), over_time(), 0..3usize, measured(32)).prop_map(|(ssrc, interval, reason, count)| {
            let reason = [DiscardReason::Duplicate, DiscardReason::Early, DiscardReason::Late][reason];
            Block::DiscardCount(DiscardCount { ssrc, interval, reason, count })
        }),
        (any::<(u32, bool, u8)>(), over_time(), (measured(24), measured(24), measured(24), measured(12), measured(36)))
            .prop_map(
                |((ssrc, combined, threshold), interval, (duration, lost, expected, bursts, squared_duration))| {
                    Block::BurstGapLoss(BurstGapLoss {
                        ssrc,
                        interval,
                        combined,
                        threshold,
                        duration,
                        lost,
                        expected,
                        bursts,
                        squared_duration,
                    })
                }
            ),
        (any::<(u32, u8)>(), over_time(), measured(24), measured(24)).prop_map(
            |((ssrc, threshold), interval, discarded, expected)| {
                Block::BurstGapDiscard(BurstGapDiscard { ssrc, interval, threshold, discarded, expected })
            }
        ),
        (words, any::<u64>()).prop_map(|([ssrc, interval_first, last, interval], cumulative)| {
            Block::MeasurementInformation(MeasurementInformation {
                ssrc,
                first_sequence: last as u16,
                interval_first,
                last,
                interval: crate::ntp::compact_to_delta(interval),
                cumulative: crate::ntp::span_to_delta(cumulative),
            })
        }),
        (
            any::<u32>(),
            1u8..4,
            proptest::collection::vec(proptest::option::of(compact()), 3),
            proptest::option::of(0..u64::MAX)
        )
            .prop_map(|(ssrc, interval, delays, end_system)| {
                let delay = |i: usize| delays[i].map(crate::ntp::compact_to_delta);
                Block::Delay(DelayMetrics {
                    ssrc,
                    interval: IntervalMetric::from_bits(interval).unwrap(),
                    mean_round_trip: delay(0),
                    min_round_trip: delay(1),
                    max_round_trip: delay(2),
                    end_system: end_system.map(crate::ntp::span_to_delta),
                })
            }),
        (any::<u32>(), 1u8..4, 0u8..16, (sixteenths(), sixteenths(), sixteenths()), any::<[bool; 2]>(), 0u16..25_601)
            .prop_map(|(ssrc, interval, metric, (positive_threshold, negative_threshold, mean), known, percentile)| {
                Block::DelayVariation(DelayVariation {
                    ssrc,
                    interval: IntervalMetric::from_bits(interval).unwrap(),
                    metric,
                    positive_threshold,
                    positive_percentile: known[0].then_some(percentile),
                    negative_threshold,
                    negative_percentile: known[1].then_some(25_600 - percentile),
                    mean,
                })
            }),
        (
            any::<(u32, u16, u16)>(),
            any::<[Option<u32>; 2]>(),
            any::<Option<[u32; 4]>>(),
            any::<Option<(bool, [u8; 4])>>()
        )
            .prop_map(|((ssrc, begin, end), [lost, duplicates], jitter, hops)| {
                Block::StatisticsSummary(StatisticsSummary {
                    ssrc,
                    begin,
                    end,
                    lost,
                    duplicates,
                    jitter: jitter.map(|[min, max, mean, deviation]| JitterSummary { min, max, mean, deviation }),
                    hops: hops.map(|(ipv6, [min, max, mean, deviation])| HopSummary {
                        ipv6,
                        min,
                        max,
                        mean,
                        deviation,
                    }),
                })
            }),
    ]
}

proptest! {
    #[test]
    fn metric_blocks_survive(blocks in vec(blocks(), 0..12)) {
        let out = write(&blocks);
        let Some(Ok(Packet::Xr(xr))) = parse_compound(&out).next() else { panic!("not read") };
        prop_assert_eq!(&xr, &Xr { ssrc: 9, blocks: Blocks::Own(&blocks) });
        let mut again = vec![];
        xr.write_into(&mut again);
        prop_assert_eq!(again, out);
    }

    #[test]
    fn receipt_times_survive(ssrc: u32, begin: u16, end: u16, thinning in 0u8..16, times in vec(any::<u32>(), 0..50)) {
        let block = ReceiptTimes { ssrc, begin, end, thinning, times: (&times).into() };
        let out = write(&[Block::ReceiptTimes(block)]);
        let Some(Ok(Packet::Xr(xr))) = parse_compound(&out).next() else { panic!("not read") };
        prop_assert_eq!(xr.blocks.iter().next(), Some(Block::ReceiptTimes(block)));
        prop_assert_eq!(block.packets().count(), times.len().min(block.reported().into()));
    }

    /// For any bytes under any known type, a block that parses is written to one that parses to the same.
    #[test]
    fn any_bytes_of_known_types_settle(
        block_type in 0u8..40, type_specific: u8, body in vec(prop_oneof![3 => any::<u8>(), 1 => Just(0xff), 1 => Just(0)], 0..60),
    ) {
        let body = &body[..body.len() / 4 * 4];
        let mut bytes = vec![0x80, 207, 0, 0, 0, 0, 0, 9, block_type, type_specific, 0, (body.len() / 4) as u8];
        bytes.extend_from_slice(body);
        bytes[3] = (bytes.len() / 4 - 1) as u8;
        let Some(Ok(Packet::Xr(xr))) = parse_compound(&bytes).next() else { panic!("not read") };
        let mut out = vec![];
        xr.write_into(&mut out);
        prop_assert_eq!(out.len(), bytes.len());
        let Some(Ok(again)) = parse_compound(&out).next() else { panic!("not read") };
        prop_assert_eq!(again, Packet::Xr(xr));
    }
}
