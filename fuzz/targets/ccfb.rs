//! RFC 8888 messages, and the writer with arbitrary arrivals.
#![no_main]

use weir_units::{Ecn, Timestamp};
use weir_wire::rtcp::ccfb::{ArrivalOffset, Metric, Writer};
use weir_wire::rtcp::{Packet, RTPFB, ccfb, parse_compound};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    weir_fuzz::rtcp_of(RTPFB, Some(ccfb::FMT), data);

    let report = Timestamp::from_secs(5);
    let (mut out, mut blocks) = (vec![], vec![]);
    let mut writer = Writer::new(&mut out, 1, report, 7);
    for step in data.chunks_exact(4) {
        let ms = i64::from(u16::from_be_bytes([step[1], step[2]])) / 4;
        match step[0] % 8 {
            0 => {
                assert!(writer.stream(ms as u32, u16::from(step[3])));
                blocks.push((ms as u32, u16::from(step[3]), vec![]));
            }
            1 => blocks.last_mut().map_or((), |t| {
                assert!(writer.push(None));
                t.2.push(Metric::NotReceived);
            }),
            _ => blocks.last_mut().map_or((), |t| {
                let (ecn, arrival) = (Ecn::from_bits(step[3]), Timestamp::from_millis(ms - 5_000));
                assert!(writer.push(Some((ecn, arrival))));
                t.2.push(Metric::Received { ecn, offset: ArrivalOffset::between(arrival, report) });
            }),
        }
    }
    writer.finish();
    let Some(Ok(Packet::Ccfb(f))) = parse_compound(&out).next() else { panic!("what is written can be read") };
    let read: Vec<_> = f.streams().map(|s| (s.ssrc, s.begin_sequence, s.metrics.iter().collect())).collect();
    assert_eq!(read, blocks);
});
