//! Other libraries parse what Weir writes, and write what Weir parses: `rtc-rtcp` for the formats that it supports, and
//! `rtcp-types` for the older ones.

use proptest::collection::vec;
use proptest::prelude::*;
use rtc_rtcp::extended_report as theirs_xr;
use rtc_rtcp::payload_feedbacks::receiver_estimated_maximum_bitrate::ReceiverEstimatedMaximumBitrate;
use rtc_rtcp::transport_feedbacks::cc_feedback_report as theirs_ccfb;
use rtc_rtcp::transport_feedbacks::transport_layer_cc::TransportLayerCc;
use rtcp_types::prelude::*;
use weir_units::{DataRate, Ecn, Timestamp};
use weir_wire::ntp::NtpTime;
use weir_wire::rtcp::{self, Packet, ccfb, parse_compound, twcc, xr};

/// The one packet in `bytes`, parsed by `rtc-rtcp`.
fn theirs<T: Clone + 'static>(bytes: &[u8]) -> T {
    let packets = rtc_rtcp::packet::unmarshal(&mut &bytes[..]).expect("rtc-rtcp reads it");
    assert_eq!(packets.len(), 1);
    packets[0].as_any().downcast_ref::<T>().expect("rtc-rtcp takes it for the same type").clone()
}

fn marshal(packet: impl rtc_rtcp::packet::Packet + 'static) -> Vec<u8> {
    rtc_rtcp::packet::marshal(&[Box::new(packet)]).expect("rtc-rtcp writes it").to_vec()
}

fn metric() -> impl Strategy<Value = (bool, u8, u16)> {
    (any::<bool>(), 0u8..4, 0u16..0x2000)
}

fn their_ecn(bits: u8) -> theirs_ccfb::Ecn {
    use theirs_ccfb::Ecn;
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(bits)]
}

proptest! {
    #[test]
    fn ccfb(sender_ssrc: u32, report_timestamp: u32, streams in vec((any::<u32>(), any::<u16>(), vec(metric(), 0..40)), 1..4)) {
        let report_blocks: Vec<_> = streams.iter().map(|(media_ssrc, begin_sequence, metrics)| {
            let metric_blocks = metrics.iter().map(|&(received, ecn, arrival_time_offset)| {
                if received {
                    theirs_ccfb::CcFeedbackMetricBlock { received, ecn: their_ecn(ecn), arrival_time_offset }
                } else {
                    Default::default()
                }
            });
            theirs_ccfb::CcFeedbackReportBlock {
                media_ssrc: *media_ssrc,
                begin_sequence: *begin_sequence,
                metric_blocks: metric_blocks.collect(),
            }
        }).collect();
        let report = theirs_ccfb::CcFeedbackReport { sender_ssrc, report_blocks, report_timestamp };
        let bytes = marshal(report.clone());
        let Some(Ok(Packet::Ccfb(ours))) = parse_compound(&bytes).next() else { panic!("not read") };
        prop_assert_eq!((ours.sender_ssrc, ours.report_timestamp), (sender_ssrc, report_timestamp));
        let read: Vec<_> = ours.streams().map(|s| (s.ssrc, s.begin_sequence, s.metrics.iter().map(ccfb::Metric::bits).collect())).collect();
        let want: Vec<(u32, u16, Vec<u16>)> = streams.iter().map(|(ssrc, begin, metrics)| {
            let bits = |&(received, ecn, offset): &(bool, u8, u16)| if received { 0x8000 | u16::from(ecn) << 13 | offset } else { 0 };
            (*ssrc, *begin, metrics.iter().map(bits).collect())
        }).collect();
        prop_assert_eq!(read, want);
        let mut again = vec![];
        ours.write_into(&mut again);
        prop_assert_eq!(&again, &bytes);
        prop_assert_eq!(theirs::<theirs_ccfb::CcFeedbackReport>(&again), report);
    }

    #[test]
    fn remb(sender_ssrc: u32, bps in 1u64..20_000_000_000, ssrcs in vec(any::<u32>(), 1..10)) {
        let ours = rtcp::Remb {
            sender_ssrc, media_ssrc: 0, rate: rtcp::ScaledRate::new(DataRate::from_bps(bps)), sources: (&ssrcs).into(),
        };
        let mut bytes = vec![];
        ours.write_into(&mut bytes);
        let read = theirs::<ReceiverEstimatedMaximumBitrate>(&bytes);
        // Their rate is an f32, whose 24 bits suffice for our 18.
        prop_assert_eq!(read.bitrate as u64, ours.rate.rate().as_bps());
        prop_assert_eq!((read.sender_ssrc, &read.ssrcs), (sender_ssrc, &ssrcs));
        prop_assert_eq!(marshal(read), bytes);
    }

    #[test]
    fn twcc(
        base: u16, count: u8, start in 0i64..1_000_000_000,
        steps in vec(proptest::option::weighted(0.8, prop_oneof![6 => 0i64..30_000, 1 => -100_000i64..2_000_000]), 1..150),
    ) {
        let mut builder = twcc::Builder::new(1, 2, count, base, Timestamp::from_micros(start)).with_max_size(60_000);
        let mut us = start;
        for (i, step) in steps.iter().enumerate() {
            us += step.unwrap_or(0);
            prop_assert!(builder.push(base.wrapping_add(i as u16), step.map(|_| Timestamp::from_micros(us))));
        }
        let mut bytes = vec![];
        prop_assert!(builder.finish_into(&mut bytes));
        let Some(Ok(Packet::Twcc(ours))) = parse_compound(&bytes).next() else { panic!("not read") };
        let read = theirs::<TransportLayerCc>(&bytes);
        prop_assert_eq!((read.sender_ssrc, read.media_ssrc, read.fb_pkt_count), (1, 2, count));
        prop_assert_eq!((read.base_sequence_number, usize::from(read.packet_status_count)), (base, steps.len()));
        prop_assert_eq!(read.reference_time as i32, ours.reference);
        prop_assert_eq!(read.packet_chunks.len(), ours.chunks().len());
        // Their deltas are in microseconds, one per received packet.
        let mut at = 0;
        let arrivals: Vec<i64> = read.recv_deltas.iter().map(|d| { at += d.delta; at }).collect();
        prop_assert!(ours.statuses().filter_map(|(_, a)| a).map(|a| a.as_micros()).eq(arrivals));
        // They pad with the P bit where Weir fills with zeros; Weir preserves it.
        let padded = marshal(read);
        let raw = rtcp::raw_packets(&padded).next().unwrap().unwrap();
        let mut again = vec![];
        Packet::parse(&raw).unwrap().write_padded_into(raw.padding(), &mut again);
        prop_assert_eq!(again, padded);
    }

    #[test]
    fn traces_and_times(
        ids: [u32; 2], begin: u16, thinning in 0u8..16, duplicate: bool,
        runs in vec((any::<bool>(), prop_oneof![3 => 1usize..6, 1 => 10usize..200]), 1..40), times in vec(any::<u32>(), 0..20),
    ) {
        let bits: Vec<bool> = runs.iter().flat_map(|(bit, n)| core::iter::repeat_n(*bit, *n)).collect();
        let mut chunks = vec![];
        let trace = xr::RleBlock::encode(ids[0], begin, thinning, bits.iter().copied(), 60_000, &mut chunks);
        let end = begin.wrapping_add(times.len() as u16);
        let receipts = xr::ReceiptTimes { ssrc: ids[1], begin, end, thinning, times: (&times).into() };
        let first = if duplicate { xr::Block::DuplicateRle(trace) } else { xr::Block::LossRle(trace) };
        let blocks = [first, xr::Block::ReceiptTimes(receipts)];
        let mut bytes = vec![];
        rtcp::Xr { ssrc: 9, blocks: xr::Blocks::Own(&blocks) }.write_into(&mut bytes);
        let read = theirs::<theirs_xr::ExtendedReport>(&bytes);
        prop_assert_eq!((read.sender_ssrc, read.reports.len()), (9, 2));
        let rle = read.reports[0].as_any().downcast_ref::<theirs_xr::RLEReportBlock>().expect("a trace");
        prop_assert_eq!((rle.is_loss_rle, rle.t, rle.ssrc), (!duplicate, thinning, ids[0]));
        prop_assert_eq!((rle.begin_seq, rle.end_seq), (begin, trace.end));
        // Their chunks, expanded by RFC 3611, section 4.1, without the bits beyond the range.
        let mut opened = vec![];
        for chunk in &rle.chunks {
            match (chunk.chunk_type(), chunk.value()) {
                (theirs_xr::ChunkType::RunLength, n) => {
                    opened.extend(core::iter::repeat_n(chunk.run_type().expect("a run") == 1, n.into()));
                }
                (theirs_xr::ChunkType::BitVector, v) => opened.extend((0..15).rev().map(|i| v >> i & 1 == 1)),
                (theirs_xr::ChunkType::TerminatingNull, _) => {}
            }
        }
        let reported: Vec<bool> = bits.iter().enumerate()
            .filter(|(i, _)| begin.wrapping_add(*i as u16) % (1 << thinning) == 0).map(|(_, bit)| *bit).collect();
        prop_assert!(opened.len() >= reported.len() && opened.len() < reported.len() + 15);
        prop_assert!(opened[reported.len()..].iter().all(|bit| !bit), "bits beyond the range are zero");
        prop_assert_eq!(&opened[..reported.len()], &reported[..]);
        let prt = read.reports[1].as_any().downcast_ref::<theirs_xr::PacketReceiptTimesReportBlock>().expect("times");
        prop_assert_eq!((prt.t, prt.ssrc, prt.begin_seq, prt.end_seq), (thinning, ids[1], begin, end));
        prop_assert_eq!(&prt.receipt_time, &times);
        prop_assert_eq!(marshal(read), bytes);
    }

    #[test]
    fn summaries(
        ids: [u32; 2], range: [u16; 2], lost: Option<u32>, jitter: Option<[u32; 4]>, hops: Option<(bool, [u8; 4])>,
        octets: [u8; 13], spans: [u16; 7],
    ) {
        let summary = xr::StatisticsSummary {
            ssrc: ids[0], begin: range[0], end: range[1], lost, duplicates: lost.map(|n| n / 2),
            jitter: jitter.map(|[min, max, mean, deviation]| xr::JitterSummary { min, max, mean, deviation }),
            hops: hops.map(|(ipv6, [min, max, mean, deviation])| xr::HopSummary { ipv6, min, max, mean, deviation }),
        };
        let [loss_rate, discard_rate, burst_density, gap_density, signal_level, noise_level, echo_return_loss,
            gap_threshold, r_factor, external_r_factor, mos_listening, mos_conversational, receiver_config] = octets;
        let voice = xr::VoipMetrics {
            ssrc: ids[1], loss_rate, discard_rate, burst_density, gap_density, echo_return_loss, gap_threshold,
            signal_level: signal_level as i8, noise_level: noise_level as i8,
            r_factor, external_r_factor, mos_listening, mos_conversational, receiver_config,
            burst_duration: spans[0], gap_duration: spans[1], round_trip_delay: spans[2], end_system_delay: spans[3],
            jitter_buffer_nominal: spans[4], jitter_buffer_max: spans[5], jitter_buffer_abs_max: spans[6],
        };
        let blocks = [xr::Block::StatisticsSummary(summary), xr::Block::VoipMetrics(voice)];
        let mut bytes = vec![];
        rtcp::Xr { ssrc: 9, blocks: xr::Blocks::Own(&blocks) }.write_into(&mut bytes);
        let (jitter, hops) = (jitter.unwrap_or_default(), hops);
        let (ttl, kind) = match hops {
            None => ([0; 4], theirs_xr::TTLorHopLimitType::Missing),
            Some((false, ttl)) => (ttl, theirs_xr::TTLorHopLimitType::IPv4),
            Some((true, ttl)) => (ttl, theirs_xr::TTLorHopLimitType::IPv6),
        };
        let their_summary = theirs_xr::StatisticsSummaryReportBlock {
            loss_reports: lost.is_some(), duplicate_reports: lost.is_some(), jitter_reports: summary.jitter.is_some(),
            ttl_or_hop_limit: kind, ssrc: ids[0], begin_seq: range[0], end_seq: range[1],
            lost_packets: lost.unwrap_or(0), dup_packets: lost.unwrap_or(0) / 2,
            min_jitter: jitter[0], max_jitter: jitter[1], mean_jitter: jitter[2], dev_jitter: jitter[3],
            min_ttl_or_hl: ttl[0], max_ttl_or_hl: ttl[1], mean_ttl_or_hl: ttl[2], dev_ttl_or_hl: ttl[3],
        };
        let their_voice = theirs_xr::VoIPMetricsReportBlock {
            ssrc: ids[1], loss_rate, discard_rate, burst_density, gap_density, burst_duration: spans[0],
            gap_duration: spans[1], round_trip_delay: spans[2], end_system_delay: spans[3], signal_level, noise_level,
            rerl: echo_return_loss, gmin: gap_threshold, rfactor: r_factor, ext_rfactor: external_r_factor,
            mos_lq: mos_listening, mos_cq: mos_conversational, rx_config: receiver_config, reserved: 0,
            jb_nominal: spans[4], jb_maximum: spans[5], jb_abs_max: spans[6],
        };
        let report = theirs_xr::ExtendedReport {
            sender_ssrc: 9, reports: vec![Box::new(their_summary), Box::new(their_voice)],
        };
        prop_assert_eq!(theirs::<theirs_xr::ExtendedReport>(&bytes), report.clone());
        let written = marshal(report);
        prop_assert_eq!(&written, &bytes);
        let Some(Ok(Packet::Xr(ours))) = parse_compound(&written).next() else { panic!("not read") };
        prop_assert!(ours.blocks.iter().eq(blocks));
    }

    #[test]
    fn reports(ssrc: u32, ntp: u64, words: [u32; 3], block: [u32; 5], lost in 0u32..1 << 23, fraction: u8) {
        let built = rtcp_types::SenderReport::builder(ssrc)
            .ntp_timestamp(ntp).rtp_timestamp(words[0]).packet_count(words[1]).octet_count(words[2])
            .add_report_block(
                rtcp_types::ReportBlock::builder(block[0]).fraction_lost(fraction).cumulative_lost(lost)
                    .extended_sequence_number(block[1]).interarrival_jitter(block[2])
                    .last_sender_report_timestamp(block[3]).delay_since_last_sender_report_timestamp(block[4]),
            );
        let mut bytes = vec![0; built.calculate_size().unwrap()];
        built.write_into(&mut bytes).unwrap();
        let Some(Ok(Packet::SenderReport(ours))) = parse_compound(&bytes).next() else { panic!("not read") };
        prop_assert_eq!((ours.ssrc, ours.info.ntp), (ssrc, NtpTime::from_bits(ntp)));
        prop_assert_eq!([ours.info.rtp_timestamp, ours.info.packets, ours.info.octets], words);
        let [source, highest_sequence, jitter, last_sr, delay_since_last_sr] = block;
        let want = rtcp::ReportBlock {
            ssrc: source, fraction_lost: fraction, cumulative_lost: lost as i32, highest_sequence, jitter, last_sr, delay_since_last_sr,
        };
        prop_assert!(ours.blocks.iter().eq([want]));
        let mut again = vec![];
        ours.write_into(&mut again);
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn nack_sli_and_goodbye(ids: [u32; 2], lost in vec(1u16..30, 1..50), slice in (0u16..1 << 13, 0u16..1 << 13, 0u8..64), reason in "[a-z]{1,40}") {
        let mut sequence = 0u16;
        let lost: Vec<u16> = lost.into_iter().map(|s| { sequence += s; sequence }).collect();
        let entries: Vec<_> = rtcp::NackPacker::new(lost.iter().copied()).collect();
        let mut bytes = vec![];
        rtcp::Nack { sender_ssrc: ids[0], media_ssrc: ids[1], entries: (&entries).into() }.write_into(&mut bytes);
        let feedback = rtcp_types::TransportFeedback::parse(&bytes).unwrap();
        prop_assert_eq!([feedback.sender_ssrc(), feedback.media_ssrc()], ids);
        prop_assert!(feedback.parse_fci::<rtcp_types::Nack<'_>>().unwrap().entries().eq(lost));

        bytes.clear();
        let (first, number, picture_id) = slice;
        let slices = [rtcp::SliEntry { first, number, picture_id }];
        rtcp::Sli { sender_ssrc: ids[0], media_ssrc: ids[1], entries: (&slices).into() }.write_into(&mut bytes);
        let fci = rtcp_types::Sli::builder().add_lost_macroblock(first, number, picture_id);
        let built = rtcp_types::PayloadFeedback::builder(&fci).sender_ssrc(ids[0]).media_ssrc(ids[1]);
        let mut theirs = vec![0; built.calculate_size().unwrap()];
        built.write_into(&mut theirs).unwrap();
        prop_assert_eq!(&bytes, &theirs);

        bytes.clear();
        rtcp::Bye { sources: (&ids).into(), reason: Some(reason.as_bytes()) }.write_into(&mut bytes);
        let bye = rtcp_types::Bye::parse(&bytes).unwrap();
        prop_assert!(bye.ssrcs().eq(ids));
        prop_assert_eq!(bye.reason(), Some(reason.as_bytes()));
    }
}

/// Why `rtcp-types` 0.3 is an oracle and not a dependency. If one of these faults is fixed, it deserves another review.
#[test]
fn faults_of_rtcp_types() {
    // Padding after one NACK entry is read as another entry.
    let padded = [0xa1, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 5, 0, 0, 0, 0, 0, 4];
    let feedback = rtcp_types::TransportFeedback::parse(&padded).unwrap();
    assert_eq!(feedback.parse_fci::<rtcp_types::Nack<'_>>().unwrap().entries().count(), 3);
    let Some(Ok(Packet::Nack(nack))) = parse_compound(&padded).next() else { panic!() };
    assert!(nack.sequences().eq([5]));
    // The second chunk's SSRC starts with a null octet and is taken for the end of the first.
    let sdes = [0x82, 202, 0, 4, 0x11, 0, 0, 1, 1, 1, b'a', 0, 0, 0x22, 0, 1, 1, 1, b'b', 0];
    assert!(rtcp_types::Sdes::parse(&sdes).is_err());
    let Some(Ok(Packet::Sdes(sdes))) = parse_compound(&sdes).next() else { panic!() };
    assert_eq!(sdes.chunks.iter().count(), 2);
}

#[test]
fn ecn_codepoints_are_those_of_the_ip_header() {
    for bits in 0..4 {
        assert_eq!(their_ecn(bits) as u8, Ecn::from_bits(bits).bits());
    }
}
