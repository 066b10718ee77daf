//! Written packets parse to the same packet, and no bytes cause a panic.

use super::*;
use crate::rtp::write_padding;
use proptest::collection::vec;
use proptest::prelude::*;

fn block() -> impl Strategy<Value = ReportBlock> {
    (any::<[u32; 5]>(), any::<u8>(), -0x80_0000i32..0x80_0000).prop_map(|(w, fraction_lost, cumulative_lost)| {
        let [ssrc, highest_sequence, jitter, last_sr, delay_since_last_sr] = w;
        ReportBlock { ssrc, fraction_lost, cumulative_lost, highest_sequence, jitter, last_sr, delay_since_last_sr }
    })
}

fn words() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<[u8; 4]>(), 0..20).prop_map(|w| w.concat())
}

/// Writing and parsing returns the same packet, alone and after another with padding.
fn round_trip(packet: Packet<'_>) -> Result<(), TestCaseError> {
    let mut out = vec![];
    Pli { sender_ssrc: 1, media_ssrc: 2 }.write_into(&mut out);
    let start = out.len();
    packet.write_into(&mut out);
    let second = parse_compound(&out).nth(1);
    prop_assert_eq!(second, Some(Ok(packet)));
    let unpadded = out.len() - start;
    out.truncate(start);
    packet.write_padded_into(8, &mut out);
    prop_assert_eq!(out.len() - start, unpadded + 8);
    prop_assert_eq!(parse_compound(&out).nth(1), Some(Ok(packet)));
    Ok(())
}

proptest! {
    #[test]
    fn reports_survive(
        ids: [u32; 4], ntp: u64, blocks in vec(block(), 0..32), extension in words(),
    ) {
        let info = SenderInfo {
            ntp: NtpTime::from_bits(ntp), rtp_timestamp: ids[1], packets: ids[2], octets: ids[3],
        };
        let (ssrc, blocks) = (ids[0], (&blocks).into());
        round_trip(Packet::SenderReport(SenderReport { ssrc, info, blocks, extension: &extension }))?;
        round_trip(Packet::ReceiverReport(ReceiverReport { ssrc, blocks, extension: &extension }))?;
    }

    #[test]
    fn descriptions_survive(
        chunks in vec((any::<u32>(), vec((1u8..=255, vec(any::<u8>(), 0..256)), 0..5)), 0..32),
    ) {
        let items: Vec<Vec<SdesItem<'_>>> = chunks.iter()
            .map(|(_, items)| items.iter().map(|(k, value)| SdesItem { kind: SdesType(*k), value }).collect())
            .collect();
        let chunks: Vec<_> = chunks.iter().zip(&items)
            .map(|((ssrc, _), items)| SdesChunk { ssrc: *ssrc, items: SdesItems::Own(items) })
            .collect();
        round_trip(Packet::Sdes(Sdes { chunks: SdesChunks::Own(&chunks) }))?;
    }

    #[test]
    fn goodbyes_and_applications_survive(
        sources in vec(any::<u32>(), 0..32), reason in proptest::option::of(vec(any::<u8>(), 0..256)),
        subtype in 0u8..32, ssrc: u32, name: [u8; 4], data in words(),
    ) {
        round_trip(Packet::Bye(Bye { sources: (&sources).into(), reason: reason.as_deref() }))?;
        round_trip(Packet::App(App { subtype, ssrc, name, data: &data }))?;
    }

    #[test]
    fn nada_reports_survive(ids: [u32; 2], gradual: bool, us in 0i64..1 << 31, bps: u32) {
        round_trip(Packet::Nada(NadaReport {
            sender_ssrc: ids[0], media_ssrc: ids[1], gradual,
            x_curr: TimeDelta::from_micros(us), r_recv: DataRate::from_bps(bps.into()),
        }))?;
    }

    #[test]
    fn delay_and_buffer_reports_survive(
        ids: [u32; 2], range: [u16; 2], delays: [u32; 3],
        buffers in vec((any::<u32>(), proptest::option::of(0i64..65_535), any::<[u16; 2]>(), 0u8..32), 1..10),
    ) {
        let [min, mean, latest] = delays.map(crate::ntp::compact_to_delta);
        round_trip(Packet::OneWayDelay(OneWayDelayReport {
            sender_ssrc: ids[0], media_ssrc: ids[1], begin: range[0], end: range[1], min, mean, latest,
        }))?;
        let entries: Vec<_> = buffers.into_iter().map(|(ssrc, delay, [next_sequence, space], next_unit)| NaduEntry {
            ssrc, playout_delay: delay.map(TimeDelta::from_millis), next_sequence, next_unit,
            free_buffer: DataSize::from_bytes(u64::from(space) * 64),
        }).collect();
        round_trip(Packet::Nadu(Nadu { sender_ssrc: ids[0], entries: (&entries).into() }))?;
    }

    #[test]
    fn capacity_vectors_survive(
        ids: [u32; 2], words: [u16; 3], entries in vec(any::<([u16; 3], u8)>(), 0..100),
    ) {
        let [serial, validity, age] = words;
        let entries: Vec<_> = entries.into_iter().map(|([duration, low, median], confidence)| CapacityEntry {
            duration: Tenths::from_units(duration), confidence,
            low: ShortRate::from_bits(low), median: ShortRate::from_bits(median),
        }).collect();
        let vector = CapacityVector {
            sender_ssrc: ids[0], media_ssrc: ids[1], serial, entries: (&entries).into(),
            validity: Tenths::from_units(validity), age: Tenths::from_units(age),
        };
        round_trip(Packet::Capacity(vector))?;
        prop_assert!(vector.check().is_err() || entries.len() <= CapacityVector::MAX_ENTRIES);
    }

    #[test]
    fn short_rates_round_down_by_less_than_a_mantissa_unit(bps in 0u64..2_047 << 31) {
        let got = ShortRate::new(DataRate::from_bps(bps)).rate().as_bps();
        prop_assert!(got <= bps && bps - got <= bps >> 10, "{got} of {bps}");
    }

    #[test]
    fn loss_feedback_survives(
        ids: [u32; 2], entries in vec(any::<(u16, u16)>(), 0..40), slices in vec((0u16..1 << 13, 0u16..1 << 13, 0u8..64), 0..40),
    ) {
        let [sender_ssrc, media_ssrc] = ids;
        let entries: Vec<_> = entries.into_iter().map(|(first, following)| NackEntry { first, following }).collect();
        round_trip(Packet::Nack(Nack { sender_ssrc, media_ssrc, entries: (&entries).into() }))?;
        round_trip(Packet::Pli(Pli { sender_ssrc, media_ssrc }))?;
        round_trip(Packet::SrRequest(SrRequest { sender_ssrc, media_ssrc }))?;
        let slices: Vec<_> =
            slices.into_iter().map(|(first, number, picture_id)| SliEntry { first, number, picture_id }).collect();
        round_trip(Packet::Sli(Sli { sender_ssrc, media_ssrc, entries: (&slices).into() }))?;
    }

    #[test]
    fn picture_selection_survives(
        ids: [u32; 2], payload_type in 0u8..128, bit_string in vec(any::<u8>(), 0..50), unused in 0u8..8,
    ) {
        let unused_bits = if bit_string.is_empty() { 0 } else { unused };
        let [sender_ssrc, media_ssrc] = ids;
        round_trip(Packet::Rpsi(Rpsi { sender_ssrc, media_ssrc, payload_type, bit_string: &bit_string, unused_bits }))?;
    }

    #[test]
    fn control_survives(
        ids: [u32; 2], refresh in vec(any::<(u32, u8)>(), 0..40), limits in vec((any::<u32>(), 0u32..1 << 23, 0u16..512), 0..40),
    ) {
        let [sender_ssrc, media_ssrc] = ids;
        let refresh: Vec<_> = refresh.into_iter().map(|(ssrc, sequence)| FirEntry { ssrc, sequence }).collect();
        round_trip(Packet::Fir(Fir { sender_ssrc, media_ssrc, entries: (&refresh).into() }))?;
        let limits: Vec<_> = limits.into_iter()
            .map(|(ssrc, bits, overhead)| RateLimit { ssrc, max_rate: ScaledRate::from_bits(bits), overhead })
            .collect();
        round_trip(Packet::Tmmbr(Tmmbr { sender_ssrc, media_ssrc, entries: (&limits).into() }))?;
        round_trip(Packet::Tmmbn(Tmmbn { sender_ssrc, media_ssrc, entries: (&limits).into() }))?;
    }

    #[test]
    fn remb_survives(ids: [u32; 2], bits in 0u32..1 << 24, sources in vec(any::<u32>(), 0..256)) {
        round_trip(Packet::Remb(Remb {
            sender_ssrc: ids[0], media_ssrc: ids[1], rate: ScaledRate::from_bits(bits), sources: (&sources).into(),
        }))?;
    }

    #[test]
    fn scaled_rates_round_down_by_less_than_a_mantissa_unit(bps: u64) {
        let (tmmbr, remb) = (ScaledRate::<17>::new(DataRate::from_bps(bps)), ScaledRate::<18>::new(DataRate::from_bps(bps)));
        for (got, bits) in [(tmmbr.rate().as_bps(), 17), (remb.rate().as_bps(), 18)] {
            prop_assert!(got <= bps && bps - got <= bps >> (bits - 1), "{got} of {bps}");
        }
        prop_assert!(tmmbr.bits() < 1 << 23 && remb.bits() < 1 << 24);
    }

    #[test]
    fn extended_reports_survive(
        ssrc: u32, ntp: u64, echoes in vec(any::<[u32; 3]>(), 0..10), block_type in 100u8..=255, type_specific: u8, body in words(),
    ) {
        let echoes: Vec<_> = echoes.into_iter()
            .map(|[ssrc, last_rr, delay_since_last_rr]| xr::DlrrEntry { ssrc, last_rr, delay_since_last_rr })
            .collect();
        let blocks = [
            xr::Block::Other(xr::RawBlock { block_type, type_specific, body: &body }),
            xr::Block::Rrtr(NtpTime::from_bits(ntp)),
            xr::Block::Dlrr((&echoes).into()),
        ];
        round_trip(Packet::Xr(Xr { ssrc, blocks: xr::Blocks::Own(&blocks) }))?;
    }

    #[test]
    fn packer_loses_nothing(start: u16, steps in vec(1u16..40, 0..200)) {
        let mut sequence = start;
        let missing: Vec<u16> = steps.iter().map(|s| { sequence = sequence.wrapping_add(*s); sequence }).collect();
        let entries: Vec<_> = NackPacker::new(missing.iter().copied()).collect();
        prop_assert!(entries.iter().flat_map(|e| e.sequences()).eq(missing.iter().copied()));
        prop_assert!(entries.len() <= missing.len());
    }

    #[test]
    fn any_bytes_read_without_panic_and_settle(
        packets in vec((0u8..32, prop_oneof![4 => 200u8..208, 1 => any::<u8>()], words(), 0u8..20), 0..5), tail in vec(any::<u8>(), 0..5),
    ) {
        let mut bytes = vec![];
        for (count, packet_type, body, padding) in packets {
            let start = bytes.len();
            bytes.extend_from_slice(&[0x80 | count, packet_type, 0, 0]);
            bytes.extend_from_slice(&body);
            if padding < 10 && body.len() >= 8 {
                // Padding over the end of the content.
                let at = bytes.len() - usize::from(padding.min(8));
                bytes.truncate(at);
                write_padding(&mut bytes, padding.min(8));
                bytes[start] |= u8::from(padding > 0) << 5;
            }
            set_length(&mut bytes, start);
        }
        bytes.extend_from_slice(&tail);
        let _ = check_compound(&bytes);
        for raw in raw_packets(&bytes).flatten() {
            let Ok(packet) = Packet::parse(&raw) else { continue };
            let mut out = vec![];
            packet.write_into(&mut out);
            let again = parse_compound(&out).next().unwrap().unwrap();
            if raw.padding().is_multiple_of(4) && !matches!(packet, Packet::Other(_)) {
                prop_assert_eq!(again, packet);
            }
            let mut twice = vec![];
            again.write_into(&mut twice);
            prop_assert_eq!(twice, out);
        }
    }
}
