//! TWCC messages, and the builder with arbitrary arrivals.
#![no_main]

use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtcp::{Packet, RTPFB, parse_compound, twcc};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    weir_fuzz::rtcp_of(RTPFB, Some(twcc::FMT), data);

    let Some((head, steps)) = data.split_first_chunk::<4>() else { return };
    let base = u16::from_be_bytes([head[0], head[1]]);
    let start = Timestamp::from_millis(i64::from(i16::from_be_bytes([head[2], head[3]])) * 1_000);
    let mut builder = twcc::Builder::new(1, 2, 3, base, start);
    let (mut sequence, mut now, mut recorded) = (base, start, vec![]);
    for step in steps.chunks_exact(3) {
        sequence = sequence.wrapping_add(u16::from(step[0] & 0x7f) * if step[0] > 0x7f { 100 } else { 1 });
        let quarter_ms = i64::from(i16::from_be_bytes([step[1], step[2]]));
        let arrival = (quarter_ms != 0).then(|| now + TimeDelta::from_micros(quarter_ms * 250));
        if builder.push(sequence, arrival) {
            recorded.push((sequence, arrival));
            now = arrival.unwrap_or(now);
            sequence = sequence.wrapping_add(1);
        }
    }
    let mut out = vec![];
    if !builder.finish_into(&mut out) {
        return assert!(recorded.is_empty());
    }
    assert!(out.len() <= twcc::DEFAULT_MAX_SIZE);
    let Some(Ok(Packet::Twcc(f))) = parse_compound(&out).next() else { panic!("what is built can be read") };
    let reference = Timestamp::from_nanos(start.as_nanos().div_euclid(64_000_000) * 64_000_000);
    let mut recorded = recorded.into_iter().peekable();
    for (sequence, arrival) in f.statuses() {
        let want = recorded.next_if(|t| t.0 == sequence).and_then(|t| t.1);
        assert_eq!(arrival.map(|d| reference + d), want);
    }
    assert!(recorded.next().is_none());
});
