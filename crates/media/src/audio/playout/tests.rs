use super::*;
use proptest::prelude::*;
use weir_units::DataSize;

const STEP: u32 = 960;
const FIRST: u32 = 4_294_000_000;

fn ms(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}
fn delta(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}
fn packet(n: u64) -> AudioPacket<'static> {
    let size = DataSize::from_bytes(60);
    let samples = Some(STEP);
    AudioPacket { samples, ..AudioPacket::sized(1_000 + n, FIRST.wrapping_add(n as u32 * STEP), size) }
}
/// All slots played up to `end`.
fn heard(p: &mut AudioPlayout, end: i64) -> Vec<AudioSlot> {
    std::iter::from_fn(|| {
        let at = p.next_event().filter(|&at| at <= ms(end))?;
        let slot = p.poll(at)?;
        assert_eq!(slot.at, at);
        Some(slot)
    })
    .collect()
}
fn letters(slots: &[AudioSlot]) -> String {
    let letter = |s: &AudioSlot| match s.content {
        AudioSlotContent::Packet(_) => 'p',
        AudioSlotContent::Recovered(_) => 'r',
        AudioSlotContent::Concealed => 'c',
        AudioSlotContent::Silence => 's',
    };
    slots.iter().map(letter).collect()
}

#[test]
fn a_fixed_delay_plays_each_packet_that_long_after_its_capture() {
    let mut p = AudioPlayout::new(AudioDelay::fixed(delta(60)));
    p.set_capture_time(FIRST, ms(0));
    // A path of 30 ms; the third packet is lost, the fifth late, the sixth duplicated.
    let arrivals = [(0, 50), (1, 70), (3, 110), (5, 150), (5, 151), (4, 161), (6, 170)];
    let mut slots = vec![];
    let mut verdicts = vec![];
    for (n, at) in arrivals {
        slots.extend(heard(&mut p, at));
        verdicts.push(p.on_packet(ms(at), &packet(n)));
    }
    slots.extend(heard(&mut p, 185));
    assert_eq!(letters(&slots), "ppcpcpp");
    assert!(slots.iter().enumerate().all(|(i, s)| s.at == ms(60 + 20 * i as i64)), "{slots:?}");
    assert_eq!(slots[2].rtp_timestamp, FIRST.wrapping_add(2 * STEP));
    assert_eq!(verdicts[4], Verdict::Duplicate);
    assert_eq!(verdicts[5], Verdict::Discarded { of_frame: 1 });
    let s = p.stats();
    assert_eq!((s.packets, s.played, s.late, s.duplicates), (6, 5, 1, 1));
    assert_eq!((s.played_samples, s.concealed_samples), (5 * 960, 2 * 960));
    assert_eq!(s.concealed_share(), Some(2.0 / 7.0));
    assert_eq!(s.delay.mean(), Some(delta(60)));
}

#[test]
fn the_copy_in_the_next_packet_stands_in_for_a_lost_one() {
    let mut p = AudioPlayout::new(AudioDelay::fixed(delta(60)));
    p.set_capture_time(FIRST, ms(0));
    for n in [0, 1, 3, 4, 7] {
        p.on_packet(ms(20 + 20 * n as i64), &AudioPacket { has_fec: true, payload: &[n as u8], ..packet(n) });
    }
    let slots = heard(&mut p, 200);
    // Of two consecutive losses the first is concealed.
    assert_eq!(letters(&slots), "pprppcrp");
    assert_eq!(slots[2].content, AudioSlotContent::Recovered(vec![3]));
    assert_eq!((p.stats().recovered_samples, p.stats().concealed_samples), (2 * 960, 960));
    // A packet that arrives after its predecessor's time cannot recover it.
    let mut p = AudioPlayout::new(AudioDelay::fixed(delta(60)));
    p.set_capture_time(FIRST, ms(0));
    p.on_packet(ms(20), &packet(0));
    let mut slots = heard(&mut p, 85);
    p.on_packet(ms(86), &AudioPacket { has_fec: true, ..packet(2) });
    slots.extend(heard(&mut p, 110));
    assert_eq!(letters(&slots), "pcp");
}

#[test]
fn a_pause_is_silence_and_no_loss() {
    for silence in [true, false] {
        let mut p = AudioPlayout::new(AudioDelay::fixed(delta(60)));
        p.set_capture_time(FIRST, ms(0));
        p.on_packet(ms(20), &packet(0));
        p.on_packet(ms(40), &AudioPacket { silence, ..packet(1) });
        let mut slots = heard(&mut p, 460);
        // The next packet has the next number, 400 ms later.
        let later = AudioPacket { sequence: 1_002, ..packet(21) };
        p.on_packet(ms(465), &later);
        slots.extend(heard(&mut p, 490));
        let s = p.stats();
        assert_eq!((s.played, s.concealed_samples, s.silent_samples), (3, 0, 19 * 960), "{silence}");
        assert_eq!(slots.last().unwrap().at, ms(480), "{silence}");
        if silence {
            assert!(letters(&slots).starts_with("ppsss"), "{}", letters(&slots));
        }
    }
}

#[test]
fn losses_after_a_pause_are_counted() {
    let mut p = AudioPlayout::new(AudioDelay::fixed(delta(60)));
    p.set_capture_time(FIRST, ms(0));
    p.on_packet(ms(20), &AudioPacket { silence: true, ..packet(0) });
    heard(&mut p, 150);
    // Two packets are missing before it.
    p.on_packet(ms(155), &AudioPacket { sequence: 1_003, ..packet(10) });
    heard(&mut p, 300);
    // And two after it, where nothing signals that it was the last.
    assert_eq!((p.stats().concealed_samples, p.stats().silent_samples), (4 * 960, 7 * 960));
}

#[test]
fn an_adaptive_delay_settles_at_the_required_delay() {
    let mut p = AudioPlayout::new(AudioDelay::up_to(delta(400)));
    let mut slots = vec![];
    // 20 ms of packet time, 30 ms of path, 0 to 28 ms of jitter; every 50th packet is quiet.
    for n in 0..1_000u64 {
        let at = 50 + 20 * n as i64 + (n * 7 % 15) as i64 * 2;
        slots.extend(heard(&mut p, at));
        p.on_packet(ms(at), &AudioPacket { level: Some(if n % 50 == 49 { 60 } else { 25 }), ..packet(n) });
    }
    slots.extend(heard(&mut p, 20_060));
    // Relative to the fastest packet: the jitter plus at most a packet.
    assert!((20..=48).contains(&p.delay().as_millis()), "{}", p.delay());
    let s = p.stats();
    assert!(s.played >= 995 && s.late == 0, "{s:?}");
    assert!(s.concealed_samples <= 3 * 960, "{s:?}");
    let gapless = slots.windows(2).all(|w| {
        let error = w[1].at - w[0].at - ticks_to_time(w[0].samples.into());
        error.abs() < TimeDelta::from_micros(1)
    });
    assert!(gapless);
}

#[test]
fn packets_that_come_late_are_waited_for_and_a_pause_takes_the_delay_back() {
    let mut p = AudioPlayout::new(AudioDelay::up_to(delta(400)));
    let mut slots = vec![];
    let give = |p: &mut AudioPlayout, slots: &mut Vec<AudioSlot>, at: i64, packet: AudioPacket<'_>| {
        slots.extend(heard(p, at));
        p.on_packet(ms(at), &packet)
    };
    for n in 0..50 {
        give(&mut p, &mut slots, 50 + 20 * n as i64, packet(n));
    }
    // Nothing for 150 ms, then all at once.
    for n in 50..60 {
        let at = (50 + 20 * n as i64).max(50 + 20 * 50 + 150);
        assert_eq!(give(&mut p, &mut slots, at, packet(n)), Verdict::InTime);
    }
    let waited = letters(&slots);
    assert!((6..=9).contains(&waited.matches('c').count()), "{waited}");
    slots.extend(heard(&mut p, 1_300));
    assert!(p.delay() > delta(100), "{}", p.delay());
    assert_eq!(p.stats().late, 0);
    // They were played; the concealment still counts as such.
    assert!(p.stats().concealed_samples >= 6 * 960);
    for n in 60..400 {
        give(&mut p, &mut slots, 50 + 20 * n as i64, packet(n));
    }
    // A pause of 600 ms.
    for n in 400..450 {
        let at = 50 + 20 * (n + 30) as i64;
        give(&mut p, &mut slots, at, AudioPacket { rtp_timestamp: packet(n + 30).rtp_timestamp, ..packet(n) });
    }
    assert!(p.delay() < delta(45), "{}", p.delay());
}

#[test]
fn lost_packets_that_were_waited_for_cost_no_more_than_their_time() {
    let mut p = AudioPlayout::new(AudioDelay::up_to(delta(400)));
    let mut slots = vec![];
    for n in (0..200u64).filter(|n| n % 10 != 5) {
        let at = 50 + 20 * n as i64;
        slots.extend(heard(&mut p, at));
        p.on_packet(ms(at), &packet(n));
    }
    let s = p.stats();
    // Twenty were lost.
    assert!((18 * 960..=22 * 960).contains(&s.concealed_samples), "{s:?}");
    assert!(p.delay() <= delta(40), "{}", p.delay());
    assert_eq!(s.late, 0);
}

#[test]
fn the_length_of_packets_is_learnt_from_timestamps() {
    let mut p = AudioPlayout::new(AudioDelay::fixed(delta(100)));
    p.set_capture_time(0, ms(0));
    let sized = |n: u64| AudioPacket::sized(n, n as u32 * 2_880, DataSize::from_bytes(90));
    for n in [0, 1, 2, 4] {
        p.on_packet(ms(60 + 60 * n as i64), &sized(n));
    }
    let slots = heard(&mut p, 345);
    assert_eq!(letters(&slots), "pppcp");
    assert!(slots[1..].iter().all(|s| s.samples == 2_880), "{slots:?}");
}

#[test]
fn a_stream_ends_in_silence_and_another_begins() {
    let mut p = AudioPlayout::new(AudioDelay::fixed(delta(60)));
    p.on_packet(ms(0), &packet(0));
    let slots = heard(&mut p, 60_000);
    assert!((490..=510).contains(&slots.len()), "{}", slots.len());
    assert_eq!(p.next_event(), None);
    p.on_packet(ms(61_000), &packet(3_050));
    assert!(p.next_event().is_some());
    // Distant timestamps are rejected until there are many.
    let other = |n: u64| AudioPacket { rtp_timestamp: n as u32 * STEP + 2_000_000_000, ..packet(n + 5_000) };
    let verdicts: Vec<_> = (0..60).map(|n| p.on_packet(ms(61_010), &other(n))).collect();
    assert!(verdicts[..49].iter().all(|v| *v == Verdict::Unusable));
    assert!(verdicts[50..].iter().all(|v| *v == Verdict::InTime), "{verdicts:?}");
}

/// A packet whose timestamp is that of packet `n` less `back` packets.
fn set_back(n: u64, back: u64) -> AudioPacket<'static> {
    AudioPacket { sequence: 1_000 + n, ..packet(n - back) }
}

#[test]
fn sound_is_played_at_once_after_a_silence_in_which_the_media_clock_was_set_back() {
    for (delay, is_known) in [(AudioDelay::fixed(delta(60)), true), (AudioDelay::fixed(delta(60)), false)]
        .into_iter()
        .chain([(AudioDelay::up_to(delta(400)), true), (AudioDelay::up_to(delta(400)), false)])
    {
        let mut p = AudioPlayout::new(delay);
        if is_known {
            p.set_capture_time(FIRST, ms(0));
        }
        for n in 0..50 {
            p.on_packet(ms(20 * n as i64 + 30), &packet(n));
            heard(&mut p, 20 * n as i64 + 49);
        }
        heard(&mut p, 20_999);
        // Of 20 s of silence 15 have passed by the timestamps.
        let mut slots = vec![];
        for n in 0..50 {
            let now = 21_030 + 20 * n as i64;
            let packet = AudioPacket { sequence: 1_050 + n, ..packet(800 + n) };
            assert_eq!(p.on_packet(ms(now), &packet), Verdict::InTime);
            slots.extend(heard(&mut p, now + 19));
        }
        let first = slots.iter().find(|s| matches!(s.content, AudioSlotContent::Packet(_))).expect("sound");
        assert!((ms(21_030)..=ms(21_200)).contains(&first.at), "{delay:?}, {is_known}: {:?}", first.at);
        assert!(p.stats().longest_silence < delta(20_200), "{:?}", p.stats());
    }
}

#[test]
fn playout_goes_on_when_a_report_shows_that_the_media_clock_was_set_back() {
    for delay in [AudioDelay::fixed(delta(60)), AudioDelay::up_to(delta(400))] {
        let mut p = AudioPlayout::new(delay);
        p.set_capture_time(FIRST, ms(0));
        for n in 0..300 {
            p.on_packet(ms(20 * n as i64 + 30), &packet(n));
            heard(&mut p, 20 * n as i64 + 49);
        }
        // By 5 s; the report comes after ten packets, which are late.
        let mut verdicts = vec![];
        for n in 300..400 {
            if n == 310 {
                p.set_capture_time(FIRST, ms(5_000));
            }
            verdicts.push(p.on_packet(ms(20 * n as i64 + 30), &set_back(n, 250)));
            heard(&mut p, 20 * n as i64 + 49);
        }
        assert!(verdicts[..10].iter().all(|v| *v != Verdict::InTime), "{verdicts:?}");
        assert!(verdicts[20..].iter().all(|v| *v == Verdict::InTime), "{delay:?}: {verdicts:?}");
        assert!((delta(150)..delta(600)).contains(&p.stats().longest_silence), "{:?}", p.stats());
    }
}

proptest! {
    /// For any input time advances without gaps, memory is bounded, and counts add up.
    #[test]
    fn any_arrivals_are_played_in_order(
        steps in proptest::collection::vec(
            (0i64..60, -30i64..30, -40i64..40, proptest::option::of(1u32..6_000), any::<[bool; 3]>()), 1..300),
        min in 0i64..100, range in 0i64..500, synchronised: bool,
    ) {
        let mut p = AudioPlayout::new(AudioDelay { min: delta(min), max: delta(min + range) });
        if synchronised {
            p.set_capture_time(FIRST, ms(0));
        }
        let (mut now, mut n, mut end, mut played, mut taken) = (0, 100i64, None::<Timestamp>, 0u64, 0u64);
        for (wait, number, jump, samples, [silence, has_fec, wild]) in steps {
            now += wait;
            n += 1;
            for slot in heard(&mut p, now) {
                if let Some(end) = end {
                    let gap = slot.at - end;
                    // After playout has stopped it restarts later.
                    prop_assert!(gap > -TimeDelta::from_micros(1), "{gap}");
                }
                prop_assert!(slot.samples > 0);
                played += u64::from(matches!(slot.content, AudioSlotContent::Packet(_)));
                end = Some(slot.at + ticks_to_time(slot.samples.into()));
            }
            let at = if wild { n + number * 1_000 } else { n + number / 10 };
            let packet = AudioPacket {
                sequence: (n + number / 10).unsigned_abs(),
                rtp_timestamp: FIRST.wrapping_add((at * 960 + jump) as u32),
                samples, silence, has_fec, ..packet(0)
            };
            taken += u64::from(p.on_packet(ms(now), &packet) == Verdict::InTime);
            prop_assert!(p.waiting.len() <= MAX_WAITING);
        }
        prop_assert!(played <= taken);
        prop_assert_eq!(p.stats().played, played);
    }
}
