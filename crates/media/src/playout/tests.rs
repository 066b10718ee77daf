use super::*;
use crate::{Packetiser, Split};
use proptest::prelude::*;

const DELAY: TimeDelta = TimeDelta::from_millis(100);
const FRAME: i64 = 40;

fn ms(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}

/// Frames of these numbers of packets, 40 ms apart, on a 90 kHz clock that begins shortly before it wraps.
fn packets(per_frame: &[u64], with_start: bool) -> Vec<(i64, MediaPacket)> {
    let (mut all, mut sequence) = (vec![], 1_000);
    for (i, &n) in per_frame.iter().enumerate() {
        let split = Packetiser { max_payload: DataSize::from_bytes(1_000), split: Split::Full };
        for p in split.split(DataSize::from_bytes(1_000 * n)) {
            let rtp_timestamp = (i as u32 * 3_600).wrapping_sub(10_000);
            let start = with_start.then_some(p.start);
            all.push((
                FRAME * i as i64,
                MediaPacket { sequence, rtp_timestamp, start, marker: p.marker, size: p.size },
            ));
            sequence += 1;
        }
    }
    all
}

/// Delivers packets with a delay given by `way`, in order of arrival, polling at every deadline.
fn play(list: &[(i64, MediaPacket)], way: impl Fn(u64) -> Option<i64>) -> (Vec<PlayoutEvent>, PlayoutStats) {
    let mut p = Playout::new(DELAY);
    p.set_capture_time(list[0].1.rtp_timestamp, ms(0));
    let mut arrivals: Vec<_> = list.iter().filter_map(|(t, p)| Some((t + way(p.sequence - 1_000)?, *p))).collect();
    arrivals.sort_by_key(|&(t, p)| (t, p.sequence));
    let mut events = vec![];
    for (t, packet) in arrivals {
        while let Some(at) = p.next_event().filter(|&at| at < ms(t)) {
            events.extend(std::iter::from_fn(|| p.poll(at)));
        }
        p.on_packet(ms(t), &packet);
    }
    while let Some(at) = p.next_event() {
        events.extend(std::iter::from_fn(|| p.poll(at)));
    }
    (events, p.stats())
}

fn played(events: &[PlayoutEvent]) -> Vec<bool> {
    events.iter().map(|e| e.delay.is_some()).collect()
}

#[test]
fn whole_frames_play_at_their_deadline() {
    let (events, stats) = play(&packets(&[3, 1, 2, 4], false), |_| Some(30));
    for (i, e) in events.iter().enumerate() {
        assert_eq!((e.at, e.delay), (ms(FRAME * i as i64 + 100), Some(TimeDelta::from_millis(30))));
    }
    assert_eq!((stats.played, stats.late, stats.incomplete, stats.lost(), stats.discarded), (4, 0, 0, 0, 0));
    assert_eq!(stats.played_size.as_bytes(), 10_000);
    assert_eq!(
        (stats.delay.mean(), stats.delay.deviation()),
        (Some(TimeDelta::from_millis(30)), Some(TimeDelta::ZERO))
    );
}

#[test]
fn a_packet_at_the_deadline_is_in_time_and_one_behind_it_a_discard() {
    // The second packet of the first frame arrives at the deadline, and 1 ms after it.
    let list = packets(&[2, 1], false);
    let way = |late| move |i| Some(if i == 1 { late } else { 10 });
    let (events, stats) = play(&list, way(100));
    assert_eq!((played(&events), stats.discarded, stats.late), (vec![true, true], 0, 0));
    let (events, stats) = play(&list, way(101));
    assert_eq!((played(&events), stats.discarded, stats.late, stats.incomplete), (vec![false, true], 1, 1, 0));
    assert_eq!((stats.lost(), stats.packets, stats.discarded_size.as_bytes()), (0, 3, 1_000));
}

#[test]
fn a_lost_packet_spoils_its_frame() {
    for with_start in [false, true] {
        let list = packets(&[3, 3, 3], with_start);
        let (events, stats) = play(&list, |i| (i != 4).then_some(10));
        assert_eq!(played(&events), [true, false, true]);
        assert_eq!((stats.incomplete, stats.late, stats.lost(), stats.discarded), (1, 0, 1, 0));
    }
    // The marker's loss leaves the next frame's beginning in doubt, unless the payload signals it.
    let lost = |with_start| play(&packets(&[3, 3, 3], with_start), |i| (i != 5).then_some(10));
    assert_eq!(played(&lost(false).0), [true, false, false]);
    assert_eq!(played(&lost(true).0), [true, false, true]);
}

#[test]
fn padding_in_front_of_a_frame_is_no_loss() {
    for padded in [false, true] {
        let mut p = Playout::new(DELAY);
        let list = packets(&[1, 2], false);
        p.set_capture_time(list[0].1.rtp_timestamp, ms(0));
        p.on_packet(ms(10), &list[0].1);
        if padded {
            p.on_padding(list[0].1.sequence + 1);
            p.on_padding(list[0].1.sequence + 1);
        }
        for (t, packet) in &list[1..] {
            p.on_packet(ms(t + 10), &MediaPacket { sequence: packet.sequence + 1, ..*packet });
        }
        let played = std::iter::from_fn(|| p.poll(ms(500))).filter(|e| e.delay.is_some()).count();
        let stats = p.stats();
        assert_eq!((played, stats.lost(), stats.packets), if padded { (2, 0, 3) } else { (1, 1, 3) });
    }
}

#[test]
fn verdicts_state_the_fate_of_a_packet() {
    let mut p = Playout::new(DELAY);
    let list = packets(&[2, 1], false);
    p.set_capture_time(list[0].1.rtp_timestamp, ms(0));
    assert_eq!(p.on_packet(ms(10), &list[0].1), Verdict::InTime);
    assert_eq!(p.next_to_play(), Some((1_000, ms(100))));
    assert_eq!(p.on_packet(ms(20), &list[0].1), Verdict::Duplicate);
    assert_eq!(p.on_packet(ms(101), &list[1].1), Verdict::Discarded { of_frame: 1 });
    assert_eq!(p.next_to_play(), None);
    let wild = MediaPacket { rtp_timestamp: list[2].1.rtp_timestamp.wrapping_add(1 << 30), ..list[2].1 };
    assert_eq!(p.on_packet(ms(102), &wild), Verdict::Unusable);
    assert_eq!(p.on_packet(ms(103), &list[2].1), Verdict::InTime);
    assert_eq!(p.next_to_play(), Some((1_002, ms(140))));
}

#[test]
fn order_and_copies_do_not_matter() {
    let list = packets(&[2, 2, 2, 2], false);
    let (events, _) = play(&list, |i| Some([60, 0, 45, 40, 0, 90, 1, 0][i as usize]));
    assert_eq!(played(&events), [true; 4]);
    let twice: Vec<_> = list.iter().flat_map(|&p| [p, p]).collect();
    let (events, stats) = play(&twice, |_| Some(10));
    assert_eq!((played(&events), stats.duplicates, stats.lost()), (vec![true; 4], 8, 0));
}

#[test]
fn a_frame_received_entirely_too_late_is_counted() {
    let (events, stats) = play(&packets(&[1, 2, 1, 1, 1, 1], true), |i| Some(if i == 1 || i == 2 { 150 } else { 10 }));
    // Its deadline is 140 ms; its packets arrive at 190 ms, when the next frame has been played.
    assert_eq!(played(&events), [true; 5]);
    assert_eq!((stats.late, stats.discarded, stats.incomplete, stats.lost()), (1, 2, 0, 0));
}

#[test]
fn a_gap_in_playout_is_a_stall() {
    // At 40 ms per frame the bound is max(120, 190) ms: four lost frames make 200 ms, three make 160.
    for (lost, stalls, time) in [(3, 0, 0), (4, 1, 200)] {
        let (_, stats) = play(&packets(&[1; 60], true), |i| (!(20..20 + lost).contains(&i)).then_some(10));
        assert_eq!((stats.stalls, stats.stall_time), (stalls, TimeDelta::from_millis(time)));
        assert_eq!(stats.last_played, Some(ms(59 * FRAME + 100)));
    }
}

#[test]
fn without_a_clock_the_first_packet_sets_the_time() {
    let mut p = Playout::new(DELAY);
    let list = packets(&[1, 1], true);
    p.on_packet(ms(5_000), &list[0].1);
    p.on_packet(ms(5_140), &list[1].1);
    let events: Vec<_> = std::iter::from_fn(|| p.poll(ms(6_000))).map(|e| (e.at, e.delay)).collect();
    assert_eq!(events, [(ms(5_100), Some(TimeDelta::ZERO)), (ms(5_140), Some(DELAY))]);
}

#[test]
fn a_wild_timestamp_is_not_believed_and_400_ms_of_them_are_a_new_stream() {
    let mut p = Playout::new(DELAY);
    let packet = |sequence, rtp_timestamp| MediaPacket {
        sequence,
        rtp_timestamp,
        start: Some(true),
        marker: true,
        size: DataSize::from_bytes(1_000),
    };
    p.on_packet(ms(0), &packet(1, 0));
    p.on_packet(ms(1), &packet(2, 1 << 30));
    assert_eq!((p.stats().unusable, p.next_event()), (1, Some(ms(100))));
    for i in 0..200 {
        p.on_packet(ms(40 * i), &packet(3 + i as u64, (1 << 30) + 3_600 * i as u32));
        while p.poll(ms(40 * i)).is_some() {}
    }
    let stats = p.stats();
    // From 1 to 400 ms, in frames of 40.
    assert_eq!(stats.unusable, 12);
    // The last three wait, and the first of all was played.
    assert!((186..=188).contains(&stats.played), "{}", stats.played);
}

proptest! {
    /// For any input every packet is counted once, memory is bounded, events are in order and the loop ends.
    #[test]
    fn anything_may_arrive(
        list in proptest::collection::vec((0i64..20, 0u64..60_000, any::<u32>(), 0u8..12, 0u64..3_000), 1..400),
        wild: bool,
        clock: Option<u32>,
    ) {
        let mut p = Playout::new(DELAY);
        if let Some(t) = clock {
            p.set_capture_time(t, ms(0));
        }
        let (mut now, mut total, mut events) = (ms(0), 0, 0);
        for (gap, sequence, timestamp, flags, size) in list {
            now += TimeDelta::from_millis(gap);
            let near = now.as_millis() as u32 * 90 + timestamp % 90_000;
            let packet = MediaPacket {
                sequence: if wild { sequence } else { sequence % 300 },
                rtp_timestamp: if wild { timestamp } else { near },
                start: [None, Some(false), Some(true)][usize::from(flags % 3)],
                marker: flags > 5,
                size: DataSize::from_bytes(size),
            };
            p.on_packet(now, &packet);
            total += 1;
            let s = p.stats();
            prop_assert_eq!(s.packets + s.duplicates + s.unusable, total);
            prop_assert!(s.discarded <= s.packets && s.packets <= s.expected.max(s.packets));
            if flags % 4 == 0 {
                while let Some(e) = p.poll(now) {
                    events += 1;
                    prop_assert!(e.at <= now);
                }
                prop_assert!(p.next_event().is_none_or(|at| at > now));
            }
            prop_assert!(p.frames.len() <= MAX_FRAMES && p.announced <= p.decided && p.decided <= p.frames.len());
            prop_assert!(p.frames.iter().zip(p.frames.iter().skip(1)).all(|(a, b)| a.ticks < b.ticks));
        }
        while let Some(at) = p.next_event() {
            while p.poll(at).is_some() {
                events += 1;
            }
            prop_assert!(events <= total);
        }
    }
}
