use super::*;
use crate::rtcp::{Packet, parse_compound};
use proptest::prelude::*;

fn parse(bytes: &[u8]) -> Result<Feedback<'_>, Error> {
    match parse_compound(bytes).next() {
        Some(Ok(Packet::Ccfb(f))) => Ok(f),
        Some(Err(e)) => Err(e),
        other => panic!("not CCFB: {other:?}"),
    }
}

#[test]
fn message_by_hand() {
    let mut out = vec![];
    let report = Timestamp::from_secs(10);
    let mut w = Writer::new(&mut out, 1, report, 0xaabb_ccdd);
    assert!(!w.push(None), "no stream yet");
    w.stream(0x11, 0xffff);
    assert!(w.push(Some((Ecn::Ce, Timestamp::from_millis(9_500)))));
    assert!(w.push(None));
    assert!(w.push(Some((Ecn::Ect1, Timestamp::from_millis(10_001)))));
    w.stream(0x22, 5);
    assert!(w.push(Some((Ecn::NotEct, Timestamp::from_secs(1)))));
    w.stream(0x33, 6);
    assert_eq!(w.size(), 48);
    w.finish();
    let want = [
        0x8b, 205, 0, 11, 0, 0, 0, 1, // header
        0, 0, 0, 0x11, 0xff, 0xff, 0, 3, 0xe2, 0x00, 0, 0, 0xbf, 0xff, 0, 0, // CE 512/1024 s; none; ECT(1) later
        0, 0, 0, 0x22, 0, 5, 0, 1, 0x9f, 0xfe, 0, 0, // over range
        0, 0, 0, 0x33, 0, 6, 0, 0, // nothing
        0xaa, 0xbb, 0xcc, 0xdd,
    ];
    assert_eq!(out, want);
    let f = parse(&out).unwrap();
    let streams: Vec<_> = f.streams().collect();
    assert_eq!((f.sender_ssrc, f.report_timestamp, streams.len()), (1, 0xaabb_ccdd, 3));
    let packets: Vec<_> = streams[0].packets().collect();
    assert_eq!(
        packets,
        [
            (0xffff, Metric::Received { ecn: Ecn::Ce, offset: ArrivalOffset::Ticks(512) }),
            (0, Metric::NotReceived),
            (1, Metric::Received { ecn: Ecn::Ect1, offset: ArrivalOffset::Unavailable }),
        ]
    );
    assert_eq!(streams[2].packets().count(), 0);
}

#[test]
fn offsets_saturate_as_section_3_1_says() {
    let report = Timestamp::from_secs(100);
    let ticks = |t: i64| Timestamp::from_nanos(report.as_nanos() - (t * 1_000_000_000 + 512) / 1_024);
    assert_eq!(ArrivalOffset::between(ticks(0), report), ArrivalOffset::Ticks(0));
    assert_eq!(ArrivalOffset::between(ticks(8_189), report), ArrivalOffset::Ticks(0x1ffd));
    assert_eq!(ArrivalOffset::between(ticks(8_190), report), ArrivalOffset::OverRange);
    assert_eq!(ArrivalOffset::between(Timestamp::from_nanos(i64::MIN), report), ArrivalOffset::OverRange);
    let later = Timestamp::from_nanos(report.as_nanos() + 1);
    assert_eq!(ArrivalOffset::between(later, report), ArrivalOffset::Unavailable);
    assert_eq!(ArrivalOffset::Ticks(512).as_time_delta(), Some(TimeDelta::from_millis(500)));
    assert_eq!(ArrivalOffset::OverRange.as_time_delta(), None);
    assert_eq!(Metric::from_bits(0x7fff), Metric::NotReceived, "bits behind a clear R are ignored");
}

#[test]
fn faulty_messages_are_refused() {
    let header = |words: u8| vec![0x8b, 205, 0, words, 0, 0, 0, 1];
    assert!(matches!(
        parse(&header(1)),
        Err(Error::Truncated { field: "CCFB report timestamp", offset: 8, needed: 4, available: 0 })
    ));
    let mut b = header(4);
    b.extend_from_slice(&[0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0]);
    assert!(matches!(
        parse(&b),
        Err(Error::Truncated { field: "CCFB packet metric blocks", offset: 16, needed: 8, available: 0 })
    ));
    b[14..16].copy_from_slice(&16_385u16.to_be_bytes());
    assert!(matches!(parse(&b), Err(Error::Value { field: "CCFB number of reports", offset: 14, value: 16_385, .. })));
}

#[test]
fn a_block_is_bounded() {
    let mut out = vec![];
    let mut w = Writer::new(&mut out, 1, Timestamp::ZERO, 0);
    w.stream(2, 0);
    for _ in 0..MAX_REPORTS {
        assert!(w.push(None));
    }
    assert!(!w.push(None));
    w.finish();
    assert_eq!(parse(&out).unwrap().streams().next().unwrap().metrics.len(), MAX_REPORTS);
}

fn metric() -> impl Strategy<Value = Metric> {
    (any::<u8>(), 0u16..0x2000, any::<bool>()).prop_map(|(ecn, bits, received)| {
        let offset = ArrivalOffset::from_bits(bits);
        if received { Metric::Received { ecn: Ecn::from_bits(ecn), offset } } else { Metric::NotReceived }
    })
}

proptest! {
    #[test]
    fn written_packets_are_read_back(
        sender: u32,
        rts: u32,
        streams in proptest::collection::vec((any::<u32>(), any::<u16>(), proptest::collection::vec(metric(), 0..60)), 0..5),
    ) {
        let mut out = vec![0xee];
        let mut w = Writer::new(&mut out, sender, Timestamp::ZERO, rts);
        for (ssrc, begin, metrics) in &streams {
            w.stream(*ssrc, *begin);
            for m in metrics {
                prop_assert!(w.push_metric(*m));
            }
        }
        let size = w.size();
        w.finish();
        prop_assert_eq!(out.len() - 1, size);
        let f = parse(&out[1..]).unwrap();
        prop_assert_eq!((f.sender_ssrc, f.report_timestamp), (sender, rts));
        let got: Vec<_> =
            f.streams().map(|s| (s.ssrc, s.begin_sequence, s.metrics.iter().collect::<Vec<_>>())).collect();
        prop_assert_eq!(got, streams);
        let mut again = vec![];
        f.write_into(&mut again);
        prop_assert_eq!(&again, &out[1..]);
    }

    #[test]
    fn offset_is_within_half_a_unit(report in 0i64..1 << 60, before in 0i64..7_900_000_000) {
        let arrival = Timestamp::from_nanos(report - before);
        let offset = ArrivalOffset::between(arrival, Timestamp::from_nanos(report)).as_time_delta().unwrap();
        prop_assert!((offset.as_nanos() - before).abs() <= 488_282);
    }

    #[test]
    fn any_body_reads_without_panic(body in proptest::collection::vec(any::<u8>(), 0..100)) {
        let mut bytes = vec![0x8b, 205, 0, 0];
        bytes.extend_from_slice(&body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes[3] = (bytes.len() / 4 - 1) as u8;
        if let Ok(f) = parse(&bytes) {
            let blocks: usize = f.streams().map(|s| 8 + s.metrics.len().next_multiple_of(2) * 2).sum();
            prop_assert_eq!(blocks + 12, bytes.len());
        }
    }
}

proptest! {
    #[test]
    fn packets_added_together_are_those_added_one_by_one(
        first in 0_usize..5,
        arrivals in prop::collection::vec(prop::option::of(0_i64..9_000), 0..200),
        max_size in 0_usize..400,
    ) {
        let report = Timestamp::from_secs(10);
        let packets: Vec<_> =
            arrivals.iter().map(|a| a.map(|ms| (Ecn::NotEct, Timestamp::from_millis(ms)))).collect();
        let write = |together: bool| {
            let mut out = vec![];
            let mut w = Writer::new(&mut out, 1, report, 2);
            assert_eq!(w.push_all(packets.iter().copied(), max_size), 0, "no stream yet");
            w.stream(3, 4);
            (0..first).for_each(|_| assert!(w.push(None)));
            w.stream(5, 6);
            let count = if together {
                w.push_all(packets.iter().copied(), max_size)
            } else {
                packets.iter().take_while(|p| w.size() + Metric::SIZE <= max_size && w.push(**p)).count()
            };
            w.finish();
            (count, out)
        };
        prop_assert_eq!(write(true), write(false));
    }
}
