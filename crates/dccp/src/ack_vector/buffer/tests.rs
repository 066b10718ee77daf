use super::AckState::{Marked as M, NotReceived as N, Received as R};
use super::*;
use crate::ack_vector::runs;
use crate::packet::{Header, MAX_HEADER, PacketType, WireSequence, parse};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn seq(n: u64) -> Seq48 {
    Seq48::new(n)
}

/// The vector on an acknowledgement of `acknowledged` with `taken` bytes of other options, as its reader sees it: the
/// bytes of the runs, the number of options, and whether everything fitted.
fn written(buffer: &Buffer, acknowledged: u64, taken: usize) -> (Vec<u8>, usize, bool) {
    let header = Header {
        source_port: 1,
        destination_port: 2,
        ccval: 0,
        checksum_coverage: 0,
        packet_type: PacketType::Ack,
        sequence: WireSequence::Long(seq(1)),
        acknowledgement: Some(WireSequence::Long(seq(acknowledged))),
    };
    let mut out = Vec::new();
    let mut writer = PacketWriter::new(&mut out, &header);
    let mut left = taken;
    while left > 0 {
        let n = left.min(255);
        assert!(writer.option(&DccpOption::Unknown { number: 50, data: &[0; 255][..n - 2] }));
        left -= n;
    }
    let room = writer.room();
    let all = buffer.write(seq(acknowledged), &mut writer);
    assert_eq!(room - writer.room() == buffer.option_bytes(), all || buffer.option_bytes() == 0);
    writer.finish();
    assert!(out.len() <= MAX_HEADER);
    let packet = parse(&out, 0).expect("our own");
    let mut bytes = Vec::new();
    let mut options = 0;
    for option in packet.options.iter() {
        if let DccpOption::AckVector { nonce, runs } = option.expect("our own") {
            assert!(!nonce && !runs.is_empty());
            bytes.extend_from_slice(runs);
            options += 1;
        }
    }
    (bytes, options, all)
}

fn vector(buffer: &Buffer) -> Vec<u8> {
    let newest = buffer.newest().expect("not empty").get();
    let (bytes, _, all) = written(buffer, newest, 0);
    assert!(all);
    bytes
}

fn with(states: &[(u64, AckState)]) -> Buffer {
    let mut b = Buffer::default();
    for &(n, s) in states {
        b.on_packet(seq(n), s);
    }
    b
}

/// Appendix A's buffer: 10 received; 9, 8, 7 missing; 6 to 2 received; 1 marked; 0 received (here a hundred more).
fn example() -> Buffer {
    with(&[(100, R), (101, M), (102, R), (103, R), (104, R), (105, R), (106, R), (110, R)])
}

const fn run(state: AckState, len: u8) -> u8 {
    (state as u8) << 6 | (len - 1)
}

#[test]
fn the_vector_of_section_11_4() {
    let mut b = Buffer::default();
    for n in 88..=100 {
        if n != 99 {
            b.on_packet(seq(n), if n == 94 { M } else { R });
        }
    }
    assert_eq!(vector(&b), [0, 192, 3, 64, 5]);
}

#[test]
fn packets_arrive_as_in_appendix_a_1() {
    let mut b = example();
    assert_eq!(vector(&b), [run(R, 1), run(N, 3), run(R, 5), run(M, 1), run(R, 1)]);
    assert_eq!(b.clone().on_packet(seq(111), M), Arrival::New { missing: 0 });
    let mut next = b.clone();
    next.on_packet(seq(111), R);
    assert_eq!(vector(&next)[..2], [run(R, 2), run(N, 3)]);
    next.on_packet(seq(113), R);
    assert_eq!(vector(&next)[..4], [run(R, 1), run(N, 1), run(R, 2), run(N, 3)]);
    // Packet 8 is late: the three missing fall apart.
    assert_eq!(b.on_packet(seq(108), R), Arrival::Late);
    assert_eq!(vector(&b)[..4], [run(R, 1), run(N, 1), run(R, 1), run(N, 1)]);
    // And they merge.
    assert_eq!(b.on_packet(seq(109), R), Arrival::Late);
    assert_eq!(b.on_packet(seq(107), R), Arrival::Late);
    assert_eq!(vector(&b), [run(R, 9), run(M, 1), run(R, 1)]);
}

#[test]
fn marks_persist_and_duplicates_are_reported() {
    let mut b = example();
    assert_eq!(b.on_packet(seq(101), R), Arrival::Duplicate);
    assert_eq!(vector(&b)[3], run(M, 1));
    assert_eq!(b.on_packet(seq(110), M), Arrival::Duplicate);
    assert_eq!(vector(&b)[0], run(M, 1));
    assert_eq!(b.on_packet(seq(99), R), Arrival::Forgotten);
}

#[test]
fn state_is_cleared_as_in_appendix_a_3() {
    let mut b = with(&[(100, R), (101, M), (102, R), (103, R)]);
    b.on_ack_sent(seq(59), seq(103));
    for n in [104, 105, 106, 110] {
        b.on_packet(seq(n), R);
    }
    b.on_ack_sent(seq(60), seq(110));
    let mut cleared = b.clone();
    cleared.on_ack_of_ack(seq(58));
    assert_eq!(vector(&cleared), vector(&b), "nothing is known of 58");
    cleared.on_ack_of_ack(seq(59));
    assert_eq!(vector(&cleared), [run(R, 1), run(N, 3), run(R, 3)]);
    assert_eq!(cleared.on_packet(seq(103), R), Arrival::Forgotten);
    // Packet 9 is received after 60 was sent, which reported it missing: acknowledging 60 then clears only older
    // packets.
    let mut late = b.clone();
    late.on_packet(seq(109), R);
    late.on_ack_of_ack(seq(60));
    assert_eq!(vector(&late), [run(R, 2)]);
    // Otherwise everything but the newest is removed; every vector begins with that one.
    b.on_ack_of_ack(seq(60));
    assert_eq!(vector(&b), [run(R, 1)]);
    b.on_ack_of_ack(seq(60));
    assert_eq!(vector(&b), [run(R, 1)]);
}

#[test]
fn an_older_packet_can_be_acknowledged() {
    let b = example();
    assert_eq!(written_from(&b, 104), [run(R, 3), run(M, 1), run(R, 1)]);
    let mut out = Vec::new();
    let mut w = PacketWriter::new(&mut out, &ack_header());
    assert!(!b.write(seq(111), &mut w), "not come");
    assert!(!b.write(seq(99), &mut w), "forgotten");
    assert!(!Buffer::default().write(seq(0), &mut w), "nothing");
}

fn ack_header() -> Header {
    Header {
        source_port: 1,
        destination_port: 2,
        ccval: 0,
        checksum_coverage: 0,
        packet_type: PacketType::Ack,
        sequence: WireSequence::Short(1),
        acknowledgement: Some(WireSequence::Short(1)),
    }
}

fn written_from(b: &Buffer, acknowledged: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut w = PacketWriter::new(&mut out, &ack_header());
    assert!(b.write(seq(acknowledged), &mut w));
    w.finish();
    let packet = parse(&out, 0).expect("our own");
    let vectors = packet.options.iter().filter_map(|o| match o {
        Ok(DccpOption::AckVector { runs, .. }) => Some(runs.to_vec()),
        _ => None,
    });
    vectors.flatten().collect()
}

#[test]
fn many_runs_take_several_options_and_never_more_than_three() {
    let mut b = Buffer::default();
    // Every second is missing: one byte a packet.
    for n in 0..300 {
        b.on_packet(seq(2 * n), R);
    }
    let newest = b.newest().expect("some").get();
    let (bytes, options, all) = written(&b, newest, 0);
    assert_eq!((bytes.len(), options, all), (599, 3, true));
    for n in 300..100_000 {
        b.on_packet(seq(2 * n), R);
    }
    let newest = b.newest().expect("some").get();
    let (bytes, options, all) = written(&b, newest, 0);
    assert_eq!((bytes.len(), options, all), (759, 3, true));
    // 4 bytes a cell, in a ring that doubles: 759 in 1,024.
    assert!(b.cells.capacity() <= 1_024 && size_of::<Cell>() == 4, "{}", b.cells.capacity());
    // If other options leave little room, the newest are reported.
    let (bytes, options, all) = written(&b, newest, 700);
    assert!((200..=300).contains(&bytes.len()) && (1..=2).contains(&options) && !all, "{} {options}", bytes.len());
    assert_eq!(bytes[..2], [run(R, 1), run(N, 1)]);
}

#[test]
fn long_gaps_are_bounded() {
    for gap in [1_000, 48_574, 48_575, 48_576, 1 << 20, 1 << 40] {
        let mut b = with(&[(5, R), (6, R)]);
        assert_eq!(b.on_packet(seq(7 + gap), R), Arrival::New { missing: gap });
        let bytes = vector(&b);
        assert!(bytes.len() <= MAX_BYTES);
        let reported: u64 = runs(seq(7 + gap), &bytes).map(|r| r.len).sum();
        let want = (gap + 3).min(MAX_PACKETS);
        assert!(reported <= want && reported + 128 >= want, "{gap}: {reported}");
        assert_eq!(b.packets, reported);
    }
}

#[test]
fn records_reach_back_however_many_there_are() {
    let mut b = Buffer::default();
    for n in 0..5_000 {
        b.on_packet(seq(n), R);
        b.on_ack_sent(seq(70_000 + n), seq(n));
    }
    assert!(b.records.len() <= MAX_RECORDS && b.records.capacity() <= 2 * MAX_RECORDS);
    let cleared = (3_000..3_064).filter(|&n| {
        let mut c = b.clone();
        c.on_ack_of_ack(seq(70_000 + n));
        c.packets < b.packets
    });
    assert!((1..64).contains(&cleared.count()), "one in a few is remembered");
    // The newest is always.
    b.on_ack_of_ack(seq(74_999));
    assert_eq!((b.packets, b.records.len()), (1, 0));
}

#[test]
fn an_idle_buffer_keeps_little() {
    let mut b = Buffer::default();
    for n in 0..5_000 {
        b.on_packet(seq(n), R);
        b.on_ack_sent(seq(n), seq(n));
    }
    let reported = vector(&b);
    b.shrink();
    assert_eq!(vector(&b), reported);
    assert!(b.records.capacity() + b.cells.capacity() <= 64);
    b.on_ack_of_ack(seq(4_999));
    assert_eq!(vector(&b), [run(R, 1)]);
}

#[test]
fn numbers_wrap() {
    let last = (1 << 48) - 1;
    let mut b = with(&[(last - 1, R), (last, R), (1, R)]);
    assert_eq!(vector(&b), [run(R, 1), run(N, 1), run(R, 2)]);
    b.on_ack_sent(seq(last), seq(last));
    b.on_ack_sent(seq(0), seq(1));
    b.on_packet(seq(0), M);
    b.on_ack_of_ack(seq(0));
    assert_eq!(vector(&b), [run(R, 1), run(M, 1)]);
}

#[derive(Clone, Debug)]
enum Step {
    Packet(i64, bool),
    Ack,
    AckOfAck(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (-12i64..8, any::<bool>()).prop_map(|(d, m)| Step::Packet(d, m)),
        1 => (-300i64..90_000, any::<bool>()).prop_map(|(d, m)| Step::Packet(d, m)),
        2 => Just(Step::Ack),
        1 => (0u64..6).prop_map(Step::AckOfAck),
    ]
}

proptest! {
    /// Compared with a plain map: reports are true, nothing is reported twice, and nothing is removed before the sender
    /// has it.
    #[test]
    fn reports_received_packets(steps in prop::collection::vec(step(), 1..400)) {
        let mut b = Buffer::default();
        let mut model: BTreeMap<u64, AckState> = BTreeMap::new();
        let mut newest = 1u64 << 30;
        let mut own = 0u64;
        // The sender's knowledge if it received every acknowledgement that it acknowledges.
        let mut sent: Vec<(u64, BTreeMap<u64, AckState>)> = Vec::new();
        let mut known: BTreeMap<u64, AckState> = BTreeMap::new();
        b.on_packet(seq(newest), R);
        model.insert(newest, R);
        for s in steps {
            match s {
                Step::Packet(ahead, marked) => {
                    let n = newest.saturating_add_signed(ahead);
                    let state = if marked { M } else { R };
                    let was = b.packets;
                    let arrival = b.on_packet(seq(n), state);
                    prop_assert_eq!(matches!(arrival, Arrival::New { .. }), n > newest);
                    if arrival != Arrival::Forgotten {
                        let e = model.entry(n).or_insert(state);
                        if marked {
                            *e = M;
                        }
                    } else {
                        prop_assert!(newest - n >= was);
                    }
                    newest = newest.max(n);
                }
                Step::Ack => {
                    own += 1;
                    let reported = runs(seq(newest), &vector(&b))
                        .flat_map(|r| (0..r.len).map(move |i| (r.newest.get() - i, r.state)))
                        .filter(|(_, s)| s.came())
                        .collect();
                    sent.push((own, reported));
                    b.on_ack_sent(seq(own), seq(newest));
                }
                Step::AckOfAck(back) => {
                    let n = own.saturating_sub(back);
                    if let Some((_, reported)) = sent.iter().find(|(o, _)| *o == n) {
                        for (&k, &v) in reported {
                            // The sender keeps marks too (RFC 4340, section 11.4.1).
                            known.entry(k).and_modify(|s| *s = if v == M { M } else { *s }).or_insert(v);
                        }
                    }
                    b.on_ack_of_ack(seq(n));
                }
            }
            let cells: u64 = b.cells.iter().map(|c| u64::from(c.len)).sum();
            let bytes: usize = b.cells.iter().map(|c| c.bytes()).sum();
            prop_assert_eq!((cells, bytes), (b.packets, b.bytes));
            prop_assert!(b.bytes <= MAX_BYTES);
            prop_assert!(b.cells.iter().zip(b.cells.iter().skip(1)).all(|(a, c)| a.state != c.state));
        }
        let bytes = vector(&b);
        let oldest = newest + 1 - b.packets;
        for r in runs(seq(newest), &bytes) {
            for i in 0..r.len {
                let n = r.newest.get() - i;
                prop_assert_eq!(r.state, model.get(&n).copied().unwrap_or(N), "{}", n);
            }
        }
        // Everything below that is known to the sender, unless the buffer was full.
        if b.bytes < MAX_BYTES - 200 && newest < (1 << 30) + 40_000 {
            for (n, s) in model.range(..oldest) {
                prop_assert_eq!(known.get(n), Some(s));
            }
        }
    }
}

#[test]
fn the_other_ends_vector_acknowledges_vectors_too() {
    let reported = |bytes: &[u8]| {
        let mut buffer = Buffer::default();
        for n in 100..=160 {
            buffer.on_packet(seq(n), if n % 2 == 0 { R } else { M });
            if n % 10 == 0 {
                // Every tenth packet of this end carries a vector; the others carry none.
                buffer.on_ack_sent(seq(n), seq(n));
            }
        }
        buffer.on_ack_runs(runs(seq(165), bytes));
        buffer.packets
    };
    // All of 165 to 152 were received, of which only 160 carried a vector: the newest packet stays.
    assert_eq!(reported(&[13]), 1);
    // 165 to 155 were lost, 154 to 147 received, including 150: packets newer than it are reported again.
    assert_eq!(reported(&[0xc0 | 10, 7]), 10);
    // None of the vectors was received, or nothing is reported of them.
    assert_eq!(reported(&[4, 0xc0, 8, 0xc0, 0x40 | 8, 0xc0]), 61);
    assert_eq!(reported(&[4]), 61);
    assert_eq!(reported(&[]), 61);
}
