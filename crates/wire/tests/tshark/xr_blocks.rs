//! Extended report blocks.

use super::*;

/// A block, with a further one after it: tshark 4.0 reads 8 bytes beyond the chunks of a run-length trace, and reports
/// one at the end of the packet as malformed.
fn xr_case(name: &'static str, block: xr::Block<'_>, fields: &[(&'static str, &[&'static str])]) -> Case {
    let next = xr::Block::Other(xr::RawBlock { block_type: 200, type_specific: 0, body: &[0; 4] });
    rtcp(name, &[Packet::Xr(rtcp::Xr { ssrc: 4, blocks: xr::Blocks::Own(&[block, next]) })], fields)
}

/// The blocks of RFC 3611 that the dissector parses.
pub(super) fn xr_cases() -> Vec<Case> {
    // The example of RFC 3611, section 4.1: 45 packets, of which the 22nd and 24th are lost.
    let received = (1..=45).map(|i| i != 22 && i != 24);
    let mut chunks = vec![];
    let trace = xr::RleBlock::encode(0x11, 13_821, 0, received, 1_000, &mut chunks);
    let thinned = xr::RleBlock { thinning: 2, ..trace };
    let times = [256, 512];
    let times = xr::ReceiptTimes { ssrc: 0x11, begin: 65_535, end: 1, thinning: 0, times: (&times).into() };
    let summary = xr::StatisticsSummary {
        ssrc: 0x11,
        begin: 10,
        end: 20,
        lost: Some(1),
        duplicates: Some(2),
        jitter: Some(xr::JitterSummary { min: 3, max: 4, mean: 5, deviation: 6 }),
        hops: Some(xr::HopSummary { ipv6: true, min: 7, max: 8, mean: 9, deviation: 10 }),
    };
    let voice = xr::VoipMetrics {
        ssrc: 0x11,
        loss_rate: 64,
        discard_rate: 128,
        burst_density: 3,
        gap_density: 4,
        burst_duration: 5,
        gap_duration: 6,
        round_trip_delay: 7,
        end_system_delay: 8,
        signal_level: -20,
        noise_level: -60,
        echo_return_loss: 45,
        gap_threshold: 16,
        r_factor: 94,
        external_r_factor: 90,
        mos_listening: 35,
        mos_conversational: 40,
        receiver_config: 0xb5,
        jitter_buffer_nominal: 60,
        jitter_buffer_max: 120,
        jitter_buffer_abs_max: 300,
    };
    vec![
        xr_case(
            "Loss RLE",
            xr::Block::LossRle(trace),
            &[
                ("rtcp.xr.bt", &["1", "200"]),
                ("rtcp.xr.bl", &["4", "1"]),
                ("rtcp.ssrc.identifier", &["0x00000011"]),
                ("rtcp.xr.tf", &["0"]),
                ("rtcp.xr.beginseq", &["13821"]),
                ("rtcp.xr.endseq", &["13866"]),
                ("rtcp.xr.chunk.length", &["21", "9"]),
                // 0x2fff: the vector 0101 1111 1111 111.
                ("rtcp.xr.chunk.bit_vector", &["12287"]),
                ("rtcp.xr.chunk.null_terminator", &[""]),
            ],
        ),
        xr_case(
            "Duplicate RLE",
            xr::Block::DuplicateRle(thinned),
            &[("rtcp.xr.bt", &["2", "200"]), ("rtcp.xr.tf", &["2"]), ("rtcp.xr.endseq", &["13866"])],
        ),
        xr_case(
            "receipt times",
            xr::Block::ReceiptTimes(times),
            &[
                ("rtcp.xr.bt", &["3", "200"]),
                ("rtcp.xr.tf", &["0"]),
                ("rtcp.xr.beginseq", &["65535"]),
                ("rtcp.xr.endseq", &["1"]),
                ("rtcp.xr.receipt_time_seq", &["256", "512"]),
            ],
        ),
        xr_case(
            "statistics summary",
            xr::Block::StatisticsSummary(summary),
            &[
                ("rtcp.xr.bt", &["6", "200"]),
                ("rtcp.xr.stats.lrflag", &["1"]),
                ("rtcp.xr.stats.dupflag", &["1"]),
                ("rtcp.xr.stats.jitterflag", &["1"]),
                ("rtcp.xr.stats.ttl", &["2"]),
                ("rtcp.xr.beginseq", &["10"]),
                ("rtcp.xr.endseq", &["20"]),
                ("rtcp.xr.stats.lost", &["1"]),
                ("rtcp.xr.stats.dups", &["2"]),
                ("rtcp.xr.stats.minjitter", &["3"]),
                ("rtcp.xr.stats.maxjitter", &["4"]),
                ("rtcp.xr.stats.meanjitter", &["5"]),
                ("rtcp.xr.stats.devjitter", &["6"]),
                ("rtcp.xr.stats.minttl", &["7"]),
                ("rtcp.xr.stats.maxttl", &["8"]),
                ("rtcp.xr.stats.meanttl", &["9"]),
                ("rtcp.xr.stats.devttl", &["10"]),
            ],
        ),
        xr_case(
            "voice metrics",
            xr::Block::VoipMetrics(voice),
            &[
                ("rtcp.xr.bt", &["7", "200"]),
                ("rtcp.xr.voipmetrics.burstdensity", &["3"]),
                ("rtcp.xr.voipmetrics.gapdensity", &["4"]),
                ("rtcp.xr.voipmetrics.burstduration", &["5"]),
                ("rtcp.xr.voipmetrics.gapduration", &["6"]),
                ("rtcp.xr.voipmetrics.rtdelay", &["7"]),
                ("rtcp.xr.voipmetrics.esdelay", &["8"]),
                ("rtcp.xr.voipmetrics.signallevel", &["-20"]),
                ("rtcp.xr.voipmetrics.noiselevel", &["-60"]),
                ("rtcp.xr.voipmetrics.rerl", &["45"]),
                ("rtcp.xr.voipmetrics.gmin", &["16"]),
                ("rtcp.xr.voipmetrics.rfactor", &["94"]),
                ("rtcp.xr.voipmetrics.extrfactor", &["90"]),
                ("rtcp.xr.voipmetrics.moslq", &["3.5"]),
                ("rtcp.xr.voipmetrics.moscq", &["4"]),
                ("rtcp.xr.voipmetrics.plc", &["2"]),
                ("rtcp.xr.voipmetrics.jba", &["3"]),
                ("rtcp.xr.voipmetrics.jbrate", &["5"]),
                ("rtcp.xr.voipmetrics.jbnominal", &["60"]),
                ("rtcp.xr.voipmetrics.jbmax", &["120"]),
                ("rtcp.xr.voipmetrics.jbabsmax", &["300"]),
            ],
        ),
        later_blocks(trace),
    ]
}

/// The blocks of later RFCs, of which tshark 4.0 shows the frame only: type, type-specific octet and length.
fn later_blocks(trace: xr::RleBlock<'_>) -> Case {
    let (ssrc, interval, threshold) = (0x11, xr::IntervalMetric::Interval, 16);
    let (count, delay) = (xr::Measured::Value(5), Some(TimeDelta::from_millis(250)));
    let blocks = [
        xr::Block::PostRepairLossRle(trace),
        xr::Block::MeasurementInformation(xr::MeasurementInformation {
            ssrc,
            first_sequence: 1,
            interval_first: 2,
            last: 3,
            interval: TimeDelta::from_secs(1),
            cumulative: TimeDelta::from_secs(2),
        }),
        xr::Block::DelayVariation(xr::DelayVariation {
            ssrc,
            interval,
            metric: xr::DelayVariation::TWO_POINT,
            positive_threshold: delay,
            positive_percentile: Some(25_600),
            negative_threshold: delay,
            negative_percentile: None,
            mean: None,
        }),
        xr::Block::Delay(xr::DelayMetrics {
            ssrc,
            interval,
            mean_round_trip: delay,
            min_round_trip: delay,
            max_round_trip: delay,
            end_system: None,
        }),
        xr::Block::BurstGapLoss(xr::BurstGapLoss {
            ssrc,
            interval,
            combined: true,
            threshold,
            duration: count,
            lost: count,
            expected: count,
            bursts: count,
            squared_duration: count,
        }),
        xr::Block::BurstGapDiscard(xr::BurstGapDiscard {
            ssrc,
            interval,
            threshold,
            discarded: count,
            expected: count,
        }),
        xr::Block::DiscardCount(xr::DiscardCount { ssrc, interval, reason: xr::DiscardReason::Late, count }),
        xr::Block::DiscardRle { early: true, trace },
        xr::Block::BytesDiscarded(xr::BytesDiscarded { ssrc, interval, early: true, bytes: 9 }),
    ];
    rtcp(
        "XR blocks of later RFCs",
        &[Packet::Xr(rtcp::Xr { ssrc: 4, blocks: xr::Blocks::Own(&blocks) })],
        &[
            ("rtcp.xr.bt", &["10", "14", "15", "16", "20", "21", "24", "25", "26"]),
            ("rtcp.xr.bs", &["0", "0", "132", "128", "160", "128", "160", "16", "160"]),
            ("rtcp.xr.bl", &["4", "7", "4", "6", "5", "3", "2", "4", "2"]),
        ],
    )
}
