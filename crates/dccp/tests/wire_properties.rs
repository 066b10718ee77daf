//! Packets written and parsed again, and properties of any input.

use proptest::collection::vec;
use proptest::prelude::*;
use weir_dccp::data_dropped::{self, DropCode};
use weir_dccp::option::{DccpOption, FeatureNumber, MAX_NDP_COUNT, OptionFault, Options};
use weir_dccp::packet::{
    Coverage, Header, LONG_HEADER, MAX_HEADER, PacketType, PacketWriter, PseudoHeader, ResetCode, SHORT_HEADER,
    ServiceCode, WireSequence, covered_checksum, data_checksum, parse,
};
use weir_units::Seq48;

/// An option with its own data.
#[derive(Clone, Debug)]
struct Sample(u8, Vec<u8>, u64);

impl Sample {
    fn option(&self) -> DccpOption<'_> {
        let (data, n) = (&self.1[..], self.2);
        let (feature, values) = (FeatureNumber((n >> 32) as u8), &data[..data.len().min(252)]);
        match self.0 {
            1 => DccpOption::Mandatory,
            2 => DccpOption::SlowReceiver,
            32 => DccpOption::ChangeL(feature, values),
            33 => DccpOption::ConfirmL(feature, values),
            34 => DccpOption::ChangeR(feature, values),
            35 => DccpOption::ConfirmR(feature, values),
            36 => DccpOption::InitCookie(data),
            37 => DccpOption::NdpCount(n & MAX_NDP_COUNT),
            38 | 39 => DccpOption::AckVector { nonce: self.0 == 39, runs: data },
            40 => DccpOption::DataDropped(data),
            41 => DccpOption::Timestamp(n as u32),
            42 => DccpOption::TimestampEcho { echo: n as u32, elapsed: (n >> 32) as u32 },
            43 => DccpOption::ElapsedTime(n as u32),
            44 => DccpOption::DataChecksum(n as u32),
            number @ 128.. => DccpOption::Ccid { number, data },
            number @ 3..32 => DccpOption::Unknown { number, data: &[] },
            number => DccpOption::Unknown { number, data },
        }
    }
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    // Numbers of all magnitudes, so that every encoded length occurs.
    let number = (any::<u64>(), 0u32..64).prop_map(|(n, shift)| n >> shift);
    let sample = (1u8..=255, vec(any::<u8>(), 0..=253), number).prop_map(|(k, data, n)| Sample(k, data, n));
    vec(sample, 0..6)
}

fn header() -> impl Strategy<Value = (Header, ServiceCode, (ResetCode, [u8; 3]))> {
    let numbers = (0u64..1 << 48, 0u64..1 << 48);
    (any::<(u16, u16, u32, [u8; 4], bool)>(), 0usize..10, 0u8..16, 0u8..16, numbers).prop_map(
        |((source_port, destination_port, code, reset, short), packet_type, ccval, checksum_coverage, (s, a))| {
            let packet_type = PacketType::ALL[packet_type];
            let short = short && packet_type.may_be_short();
            let form = |n| if short { WireSequence::short(Seq48::new(n)) } else { WireSequence::Long(Seq48::new(n)) };
            let header = Header {
                source_port,
                destination_port,
                ccval,
                checksum_coverage,
                packet_type,
                sequence: form(s),
                acknowledgement: packet_type.has_acknowledgement().then(|| form(a)),
            };
            (header, ServiceCode(code), (ResetCode(reset[0]), [reset[1], reset[2], reset[3]]))
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        (header, code, reset) in header(), samples in samples(), data in vec(any::<u8>(), 0..80), beyond in 0u32..100,
    ) {
        let header = Header {
            checksum_coverage: Coverage(header.checksum_coverage).fitting(data.len() + beyond as usize).0,
            ..header
        };
        let t = header.packet_type;
        let opens = matches!(t, PacketType::Request | PacketType::Response);
        let mut out = vec![1, 2, 3];
        let mut w = PacketWriter::new(&mut out, &header);
        if opens {
            w.service_code(code);
        }
        if t == PacketType::Reset {
            w.reset(reset.0, reset.1);
        }
        let mut written = vec![];
        for s in &samples {
            let room = w.room();
            let fits = w.option(&s.option());
            let mut alone = vec![];
            s.option().write_into(&mut alone);
            prop_assert_eq!((fits, w.room()), (alone.len() <= room, room - if fits { alone.len() } else { 0 }));
            if fits {
                written.push(s.option());
            }
        }
        let len = w.finish();
        prop_assert!((SHORT_HEADER..=MAX_HEADER).contains(&len) && len.is_multiple_of(4) && len == out.len() - 3);
        prop_assert!(header.sequence.is_short() || len >= LONG_HEADER);
        out.extend_from_slice(&data);

        let p = parse(&out[3..], beyond).expect("what was written");
        prop_assert_eq!((p.header, p.data), (header, &data[..]));
        prop_assert_eq!(p.service_code, opens.then_some(code));
        prop_assert_eq!(p.reset, (t == PacketType::Reset).then_some(reset));
        // A Mandatory at the end becomes padding if padding follows, and on Data it is ignored.
        let mut expected: Vec<_> = written.clone();
        if t == PacketType::Data {
            expected.retain(|o| *o != DccpOption::Mandatory);
        }
        let read: Vec<_> = p.options.iter().collect();
        if read.len() + 1 == expected.len() && expected.last() == Some(&DccpOption::Mandatory) {
            prop_assert_eq!(p.options.as_bytes().last(), Some(&0));
            expected.pop();
        }
        prop_assert_eq!(read.len(), expected.len());
        for (read, expected) in read.iter().zip(&expected) {
            match read {
                Ok(o) => prop_assert!(o == expected && expected.permitted_on(t)),
                Err(bad) => prop_assert!(bad.number == expected.number() && !expected.permitted_on(t)),
            }
        }
    }

    #[test]
    fn nothing_panics(bytes in vec(any::<u8>(), 0..200), beyond: u32, number in 0u8..16, offset in 0u8..60) {
        let mut framed = bytes.clone();
        if let Some(b) = framed.get_mut(8) {
            *b = number << 1 | *b & 1;
            framed[4] = offset;
        }
        for bytes in [&bytes, &framed] {
            let pseudo = PseudoHeader::V4([1, 2, 3, 4].into(), [5, 6, 7, 8].into());
            let _ = covered_checksum(bytes, beyond as usize, &pseudo);
            let Ok(p) = parse(bytes, beyond) else { continue };
            prop_assert!(p.options.iter().count() <= p.options.as_bytes().len());
            prop_assert!(p.options.entries().count() <= p.options.iter().count());
            prop_assert!(covered_checksum(bytes, beyond as usize, &pseudo).is_some());
        }
    }

    #[test]
    fn any_bytes_are_options(bytes in vec(prop_oneof![0u8..=6, any::<u8>(), 32u8..=44], 0..60), t in 0usize..10) {
        let options = Options::new(&bytes, PacketType::ALL[t]);
        // A packet that can be parsed has the same contents after it is written and parsed again.
        let read: Vec<_> = options.iter().filter_map(Result::ok).collect();
        let mut again = vec![];
        prop_assert!(read.iter().all(|o| o.write_into(&mut again)));
        prop_assert!(again.len() <= bytes.len());
        let reread: Vec<_> = Options::new(&again, PacketType::ALL[t]).iter().collect();
        prop_assert_eq!(reread, read.iter().map(|o| Ok(*o)).collect::<Vec<_>>());
        // Entries are the same except for Mandatory, up to an invalid one.
        let mut seen = options.iter().filter(|o| *o != Ok(DccpOption::Mandatory));
        for e in options.entries() {
            if matches!(e.option, Err(bad) if bad.fault == OptionFault::Mandatory) {
                prop_assert!(e.due_reset().is_some() && e.mandatory);
                break;
            }
            prop_assert_eq!(Some(e.option), seen.next());
        }
        prop_assert!(seen.next().is_none() || options.entries().last().is_some_and(|e| e.due_reset().is_some()));
    }

    #[test]
    fn short_numbers_are_extended_to_the_nearest(reference in 0u64..1 << 48, distance in -(1i64 << 23) + 1..1 << 23) {
        let reference = Seq48::new(reference);
        let far = if distance < 0 { reference.sub(distance.unsigned_abs()) } else { reference.add(distance as u64) };
        prop_assert_eq!(WireSequence::short(far).extend(reference), far);
    }

    #[test]
    fn blocks_report_what_was_pushed(runs in vec((proptest::option::of(0u8..8), 0u64..400), 0..20), acknowledged in 0u64..1 << 48) {
        let mut bytes = vec![];
        let mut packets = vec![];
        for (code, len) in runs {
            data_dropped::push(&mut bytes, code.map(DropCode::from_bits), len);
            packets.extend((0..len).map(|_| code));
        }
        let mut at = Seq48::new(acknowledged);
        let mut reported = vec![];
        for b in data_dropped::blocks(at, &bytes) {
            prop_assert_eq!(b.newest, at);
            reported.extend((0..b.len).map(|_| b.code.map(DropCode::bits)));
            at = b.oldest().sub(1);
        }
        prop_assert_eq!(reported, packets);
    }

    #[test]
    fn service_codes_survive_their_text(code: u32, text in "[a-zA-Z0-9+*./?@_-]{1,4}") {
        let code = ServiceCode(code);
        prop_assert_eq!(code.to_string().parse().ok(), code.is_valid().then_some(code));
        let text = format!("SC:{text}");
        prop_assert_eq!(text.parse::<ServiceCode>().map(|c| c.to_string()), Ok(text));
        prop_assert_eq!(format!("SC=x{:x}", code.0).parse().ok(), code.is_valid().then_some(code));
    }

    #[test]
    fn a_flipped_bit_is_seen_by_the_data_checksum(data in vec(any::<u8>(), 1..100), at: prop::sample::Index, bit in 0u8..8, zeros in 0u32..2_000) {
        let mut other = data.clone();
        other[at.index(data.len())] ^= 1 << bit;
        prop_assert_ne!(data_checksum(&data, zeros), data_checksum(&other, zeros));
        let whole = [&data[..], &vec![0; zeros as usize]].concat();
        prop_assert_eq!(data_checksum(&data, zeros), data_checksum(&whole, 0));
    }
}
