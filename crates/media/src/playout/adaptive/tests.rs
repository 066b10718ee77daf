use super::*;
use crate::playout::MAX_FRAMES;
use crate::{MediaPacket, PlayoutEvent, Verdict};
use proptest::prelude::*;
use rand::{Rng, RngExt, SeedableRng};
use weir_units::DataSize;

const MAX: TimeDelta = TimeDelta::from_millis(400);
/// A little above 30 frames per second, so that timestamps are whole.
const FRAME: TimeDelta = TimeDelta::from_millis(33);

fn ms(n: f64) -> TimeDelta {
    TimeDelta::from_millis_f64(n)
}

/// A frame's capture time, by the sender's clock and the receiver's.
fn captured(frame: usize) -> Timestamp {
    Timestamp::from_secs(10) + FRAME * frame as i64
}

/// Frames of three packets sent 1 ms apart; `way` gives the arrival by frame, packet index and departure; `None` for a
/// loss.
fn arrivals(
    frames: usize,
    mut way: impl FnMut(usize, usize, Timestamp) -> Option<Timestamp>,
) -> Vec<(Timestamp, MediaPacket)> {
    let mut all = vec![];
    for frame in 0..frames {
        for place in 0..3 {
            let packet = MediaPacket {
                sequence: 1_000 + (3 * frame + place) as u64,
                rtp_timestamp: (frame as u32 * 33 * 90).wrapping_sub(50_000),
                start: None,
                marker: place == 2,
                size: DataSize::from_bytes(1_000),
            };
            all.extend(way(frame, place, captured(frame) + ms(place as f64)).map(|at| (at, packet)));
        }
    }
    all.sort_by_key(|&(at, p)| (at, p.sequence));
    all
}

/// Number of the frame and its event.
type Played = (usize, PlayoutEvent);

fn play(p: &mut Playout, list: &[(Timestamp, MediaPacket)]) -> Vec<Played> {
    let mut events = vec![];
    let mut poll = |p: &mut Playout, until: Option<Timestamp>| {
        while let Some(at) = p.next_event().filter(|&at| until.is_none_or(|t| at < t)) {
            let before = events.len();
            while let Some(e) = p.poll(at) {
                events.push(((e.rtp_timestamp.wrapping_add(50_000) / (33 * 90)) as usize, e));
            }
            assert!(events.len() > before, "an announced event occurs");
        }
    };
    for (at, packet) in list {
        poll(p, Some(*at));
        p.on_packet(*at, packet);
    }
    poll(p, None);
    for w in events.windows(2) {
        assert!(w[0].1.at <= w[1].1.at && w[0].0 < w[1].0, "order is kept: {w:?}");
    }
    events
}

fn adaptive(synchronised: bool) -> Playout {
    let mut p = Playout::adaptive(AdaptivePlayout::up_to(MAX));
    if synchronised {
        p.set_capture_time(0u32.wrapping_sub(50_000), captured(0));
    }
    p
}

/// From capture to playout, by the true clock.
fn latency(e: &Played) -> f64 {
    (e.1.at - captured(e.0)).as_millis_f64()
}

fn rng() -> rand_pcg::Pcg64Mcg {
    rand_pcg::Pcg64Mcg::seed_from_u64(7)
}

#[test]
fn on_a_quiet_path_little_is_added() {
    for synchronised in [false, true] {
        let mut r = rng();
        let list = arrivals(600, |_, _, at| Some(at + ms(40.0) + ms(r.random_range(0.0..2.0))));
        let mut p = adaptive(synchronised);
        let events = play(&mut p, &list);
        assert_eq!((events.len(), p.stats().played, p.stats().discarded), (600, 600, 0));
        // The last packet is sent after 2 ms and arrives 40 to 42 ms later. The first waits for the second to begin.
        assert!((42.0..78.0).contains(&latency(&events[0])));
        assert!(events[1..].iter().all(|e| (42.0..44.1).contains(&latency(e))), "{synchronised}");
        // Most are played evenly, at the current delay rather than on arrival.
        let even = events[300..].windows(2).filter(|w| ((w[1].1.at - w[0].1.at) - FRAME).abs() < ms(0.1)).count();
        assert!(even > 240, "{even}");
        let delay = p.delay().as_millis_f64();
        assert!(if synchronised { (43.5..44.1).contains(&delay) } else { (1.5..2.1).contains(&delay) }, "{delay}");
    }
}

#[test]
fn playout_delay_covers_nearly_all_frames() {
    for synchronised in [false, true] {
        let mut r = rng();
        let mut jitter = 0.0;
        let list = arrivals(3_000, |_, place, at| {
            if place == 0 {
                jitter = r.random_range(0.0..50.0);
            }
            Some(at + ms(20.0 + jitter))
        });
        let mut p = adaptive(synchronised);
        let events = play(&mut p, &list);
        assert_eq!(p.stats().played, 3_000);
        // Frames take 22 to 72 ms; 0.95 of uniform delays are below 69.5.
        let settled = &events[300..];
        let mean = settled.iter().map(latency).sum::<f64>() / settled.len() as f64;
        assert!((67.0..71.0).contains(&mean), "{mean}");
        assert!(settled.iter().all(|e| latency(e) < 72.1));
        // Late frames are played on arrival.
        let as_they_come = settled.windows(2).filter(|w| (w[1].1.at - w[0].1.at - FRAME).abs() > ms(1.0)).count();
        let late = as_they_come as f64 / settled.len() as f64;
        assert!(late < 0.05, "{late}");
    }
}

#[test]
fn a_longer_path_moves_playout_at_once_and_a_shorter_one_slowly() {
    let mut p = adaptive(true);
    let way = |frame: usize| if (300..900).contains(&frame) { 140.0 } else { 40.0 };
    let events = play(&mut p, &arrivals(1_500, |frame, _, at| Some(at + ms(way(frame)))));
    assert_eq!((events.len(), p.stats().played, p.stats().discarded), (1_500, 1_500, 0));
    assert!(events[1..300].iter().all(|e| (42.0..42.2).contains(&latency(e))));
    assert!(events[300..900].iter().all(|e| (142.0..142.2).contains(&latency(e))));
    // 0.95 of 256 frames must be short before the delay falls, and then by 1/64 per frame: 100 (63/64)^n is below 1 for
    // n = 293.
    assert!(latency(&events[1_100]) > 140.0 && latency(&events[1_200]) < 110.0);
    assert!((42.0..43.0).contains(&latency(&events[1_499])), "{}", latency(&events[1_499]));
    // The decrease is gradual.
    assert!(events[900..].windows(2).all(|w| w[1].1.at - w[0].1.at > FRAME - ms(2.0)));
}

#[test]
fn frames_after_the_deadline_are_discarded() {
    for (delay, played) in [(398.0, true), (398.1, false)] {
        let mut p = adaptive(true);
        let list = arrivals(60, |frame, _, at| Some(at + ms(if frame == 30 { delay } else { 40.0 })));
        let mut verdicts = vec![];
        let mut events = vec![];
        for (at, packet) in &list {
            while let Some(next) = p.next_event().filter(|next| next < at) {
                events.extend(p.poll(next));
            }
            verdicts.push(p.on_packet(*at, packet));
        }
        while let Some(next) = p.next_event() {
            events.extend(p.poll(next));
        }
        let discarded = verdicts.iter().filter(|v| matches!(v, Verdict::Discarded { .. })).count();
        // Its last packet is sent 2 ms after its capture: the deadline is 400 ms.
        assert_eq!((discarded, p.stats().discarded, p.stats().late), if played { (0, 0, 0) } else { (1, 1, 1) });
        assert_eq!((events.len(), events[30].delay.is_some()), (60, played));
        // Later frames are delayed and follow at once, in order. If the late one has raised the delay by a quarter of
        // 358 ms, this affects those up to 268 ms after it. The beginning of the next is in doubt until the last packet
        // has arrived, in time or not.
        let known = captured(30) + ms(2.0 + delay);
        assert_eq!(events[30].at, captured(30) + MAX);
        assert_eq!(events[31..].iter().take_while(|e| e.at == known).count(), 8);
        assert_eq!(p.stats().played, if played { 60 } else { 59 });
    }
}

#[test]
fn a_repaired_packet_is_waited_for_and_patience_can_be_shorter() {
    let list = arrivals(60, |frame, place, at| Some(at + ms(if (frame, place) == (30, 1) { 140.0 } else { 40.0 })));
    let mut p = adaptive(true);
    let events = play(&mut p, &list);
    assert_eq!((p.stats().played, p.stats().discarded), (60, 0));
    assert!((141.0..141.1).contains(&latency(&events[30])));
    assert!(p.delay() > ms(42.0), "late frames move playout");
    let config = AdaptivePlayout { patience: Some(ms(20.0)), ..AdaptivePlayout::up_to(MAX) };
    let mut p = Playout::adaptive(config);
    p.set_capture_time(0u32.wrapping_sub(50_000), captured(0));
    let events = play(&mut p, &list);
    assert_eq!((p.stats().played, p.stats().discarded, p.stats().late), (59, 1, 1));
    assert!((62.0..62.3).contains(&latency(&events[30])) && events[30].1.delay.is_none());
}

#[test]
fn a_frame_of_which_nothing_has_come_is_waited_for_too() {
    // All packets of frame 30 are lost and are recovered after 150 ms.
    let list = arrivals(60, |frame, _, at| Some(at + ms(if frame == 30 { 190.0 } else { 40.0 })));
    let mut p = adaptive(true);
    let events = play(&mut p, &list);
    assert_eq!((events.len(), p.stats().played, p.stats().discarded), (60, 60, 0));
    // They never arrive: the next frame, whose beginning is in doubt, waits for its deadline.
    let list = arrivals(60, |frame, _, at| (frame != 30).then_some(at + ms(40.0)));
    let mut p = adaptive(true);
    let events = play(&mut p, &list);
    assert_eq!((events.len(), p.stats().played, p.stats().incomplete), (59, 58, 1));
    assert_eq!((events[30].0, events[30].1.at), (31, captured(31) + MAX));
}

#[test]
fn clocks_that_drift_do_not_matter() {
    for ppm in [-200.0, 200.0] {
        // Two hours with every 20th frame show the same drift.
        let mut r = rng();
        let clock = |at: Timestamp| captured(0) + ms((at - captured(0)).as_millis_f64() * (1.0 + ppm * 1e-6));
        let list = arrivals(100_000, |_, _, at| Some(clock(at) + ms(40.0) + ms(r.random_range(0.0..5.0))));
        let mut p = adaptive(false);
        let events = play(&mut p, &list);
        assert_eq!((events.len(), p.stats().played, p.stats().discarded), (100_000, 100_000, 0));
        for e in &events[1_000..] {
            let true_latency = (e.1.at - clock(captured(e.0))).as_millis_f64();
            // 42 to 47 ms are required; in 8.5 s the clocks move by 1.7 ms.
            assert!((42.0..49.0).contains(&true_latency), "{true_latency}");
            // As reported: relative to the fastest frame of a minute, in which they move by 12 ms.
            assert!(e.1.delay.is_some_and(|d| (TimeDelta::ZERO..ms(18.0)).contains(&d)));
        }
    }
}

#[test]
fn late_capture_times_change_nothing_on_the_screen() {
    let list = arrivals(200, |frame, _, at| Some(at + ms(40.0 + (frame % 7) as f64)));
    let mut p = adaptive(false);
    let first = play(&mut p, &list[..300]);
    let before = p.delay();
    p.set_capture_time(list[300].1.rtp_timestamp, captured(100));
    // The fastest frame took 42 ms.
    assert!(((p.delay() - before) - ms(42.0)).abs() < ms(0.1), "{} {before}", p.delay());
    let second = play(&mut p, &list[300..]);
    assert_eq!((first.len(), second.len(), p.stats().played), (100, 100, 200));
    assert!(second.iter().all(|e| (46.0..48.2).contains(&latency(e))));
    assert!(second.iter().all(|e| e.1.delay.is_some_and(|d| d >= ms(42.0))));
}

#[test]
fn a_path_longer_than_the_deadline_is_followed_within_a_second() {
    for (synchronised, follows) in [(false, false), (true, true), (true, false)] {
        let mut p = adaptive(synchronised);
        if follows {
            p.follow_lateness();
        }
        // Half a second longer from frame 100 on.
        let way = |frame: usize| if frame >= 100 { 540.0 } else { 40.0 };
        let list = arrivals(300, |frame, _, at| Some(at + ms(way(frame))));
        let events = play(&mut p, &list);
        let stats = p.stats();
        if synchronised && !follows {
            // By a clock that both ends share, and with nobody to play to, they are late.
            assert_eq!((stats.played, stats.discarded), (100, 600));
            continue;
        }
        // 400 ms of frames of 33 ms, the thirteenth of them played.
        assert_eq!((stats.played, stats.discarded), (287, 39), "{synchronised}");
        let played: Vec<_> = events.iter().filter(|e| e.0 > 114 && e.1.delay.is_some()).collect();
        assert!(played.iter().all(|e| (542.0..542.2).contains(&latency(e))), "{synchronised}");
        assert!(p.delay() < ms(2.1) && p.max_delay() == MAX && p.is_from_fastest(), "{}", p.delay());
        if !follows {
            continue;
        }
        // Reported times by which all are late change nothing; when the path is short again they count.
        p.set_capture_time(list[897].1.rtp_timestamp, captured(299));
        assert!(p.is_from_fastest());
        let again = arrivals(400, |frame, _, at| (frame >= 310).then_some(at + ms(40.0)));
        play(&mut p, &again[..100]);
        p.set_capture_time(again[99].1.rtp_timestamp, captured(343));
        assert!(!p.is_from_fastest());
    }
}

#[test]
fn bounds_hold() {
    let config = AdaptivePlayout { min: ms(80.0), ..AdaptivePlayout::up_to(ms(120.0)) };
    let mut p = Playout::adaptive(config);
    p.set_capture_time(0u32.wrapping_sub(50_000), captured(0));
    let mut r = rng();
    let events = play(&mut p, &arrivals(300, |_, _, at| Some(at + ms(r.random_range(0.0..10.0)))));
    assert!(events.iter().all(|e| (80.0..80.01).contains(&latency(e))));
    let mut p = Playout::adaptive(config);
    p.set_capture_time(0u32.wrapping_sub(50_000), captured(0));
    let events = play(&mut p, &arrivals(300, |_, _, at| Some(at + ms(r.random_range(0.0..200.0)))));
    assert!(events.iter().all(|e| latency(e) <= 120.0) && p.delay() <= p.max_delay());
    assert!(p.stats().played > 10 && p.stats().discarded > 100);
    let odd = Playout::adaptive(AdaptivePlayout { min: ms(50.0), ..AdaptivePlayout::up_to(ms(20.0)) });
    assert_eq!((odd.delay(), odd.max_delay()), (ms(20.0), ms(20.0)));
}

#[test]
fn a_quantile_is_that_of_the_last_delays() {
    let mut d = Delays::EMPTY;
    assert_eq!(d.quantile(), TimeDelta::ZERO);
    let mut r = rng();
    let mut all = vec![];
    for _ in 0..1_000 {
        let delay = TimeDelta::from_nanos(i64::from(r.next_u32() % 100));
        all.push(delay);
        d.push(delay);
        let mut last: Vec<_> = all.iter().rev().take(WINDOW).copied().collect();
        last.sort();
        assert_eq!(d.quantile(), last[(last.len() as f64 * 0.95).ceil() as usize - 1]);
    }
}

proptest! {
    /// For any input the order is kept, nothing is played after its deadline, memory is bounded and the loop ends.
    #[test]
    fn anything_may_arrive(
        list in proptest::collection::vec((0i64..20, 0u64..60_000, any::<u32>(), 0u8..12, 0u64..3_000), 1..300),
        wild: bool,
        synchronised: bool,
        clocks in proptest::collection::vec((0usize..300, 0i64..500), 0..4),
        patience in proptest::option::of(0i64..200),
        min in 0i64..150,
    ) {
        let config = AdaptivePlayout {
            min: ms(min as f64),
            max: ms(100.0),
            patience: patience.map(TimeDelta::from_millis),
        };
        let mut p = Playout::adaptive(config);
        let mut now = Timestamp::from_secs(1);
        if synchronised {
            p.set_capture_time(now.as_millis() as u32 * 90, now);
        }
        // A clock that is set back can make frames late that arrived in time.
        let moving = !synchronised || wild || !clocks.is_empty();
        let (mut total, mut events, mut last) = (0, 0, NEVER);
        for (i, (gap, sequence, timestamp, flags, size)) in list.into_iter().enumerate() {
            now += TimeDelta::from_millis(gap);
            let near = now.as_millis() as u32 * 90 + timestamp % 9_000;
            let rtp_timestamp = if wild { timestamp } else { near };
            for &(_, back) in clocks.iter().filter(|c| c.0 == i) {
                p.set_capture_time(rtp_timestamp, now - TimeDelta::from_millis(back));
            }
            let packet = MediaPacket {
                sequence: if wild { sequence } else { sequence % 300 },
                rtp_timestamp,
                start: [None, Some(false), Some(true)][usize::from(flags % 3)],
                marker: flags > 5,
                size: DataSize::from_bytes(size),
            };
            p.on_packet(now, &packet);
            total += 1;
            let s = p.stats();
            prop_assert_eq!(s.packets + s.duplicates + s.unusable, total);
            prop_assert!(p.delay() <= p.max_delay() && p.delay() >= config.min.min(config.max));
            if flags % 4 == 0 {
                while let Some(e) = p.poll(now) {
                    events += 1;
                    prop_assert!(e.at <= now && e.at >= last);
                    prop_assert!(moving || e.delay.is_none_or(|d| d <= p.max_delay()));
                    last = e.at;
                }
                prop_assert!(p.next_event().is_none_or(|at| at > now));
            }
            prop_assert!(p.frames.len() <= MAX_FRAMES && p.announced <= p.decided && p.decided <= p.frames.len());
            prop_assert!(p.frames.iter().zip(p.frames.iter().skip(1)).all(|(a, b)| a.ticks < b.ticks));
        }
        while let Some(at) = p.next_event() {
            while let Some(e) = p.poll(at) {
                events += 1;
                prop_assert!(e.at >= last);
                last = e.at;
            }
            prop_assert!(events <= total);
        }
    }
}

#[test]
fn a_steered_delay_is_the_callers() {
    let config = AdaptivePlayout { min: ms(20.0), max: MAX, patience: Some(ms(10.0)) };
    let mut p = Playout::steered(config);
    // Frames take 50 ms, then 70 ms: the delay stays.
    let list = arrivals(60, |frame, _, at| Some(at + ms(if frame < 30 { 50.0 } else { 70.0 })));
    p.on_packet(list[0].0, &list[0].1);
    p.set_delay(ms(90.0), list[0].0);
    let events = play(&mut p, &list[1..]);
    assert_eq!((p.delay(), events.len()), (ms(90.0), 60));
    assert!(events.iter().all(|(_, e)| e.delay.is_some()));
    // The first packet arrived 50 ms after capture, so capture is taken to be 50 ms later.
    let played: Vec<_> = events.iter().map(|(frame, e)| e.at - captured(*frame)).collect();
    assert!(played.iter().all(|lag| *lag == ms(140.0)), "{played:?}");
    // Within its bounds.
    p.set_delay(ms(1.0), captured(60));
    assert_eq!(p.delay(), config.min);
    p.set_delay(TimeDelta::MAX, captured(60));
    assert_eq!(p.delay(), MAX);
    // Capture times that become known count from then on.
    p.set_delay(ms(90.0), captured(60));
    p.set_capture_time((60u32 * 33 * 90).wrapping_sub(50_000), captured(60));
    p.set_delay(ms(100.0), captured(60));
    assert_eq!(p.delay(), ms(150.0));
    // Other playout is not steered.
    for mut other in [Playout::new(MAX), Playout::adaptive(config)] {
        let before = other.delay();
        other.set_delay(ms(90.0), captured(0));
        assert_eq!(other.delay(), before);
    }
}

#[test]
fn the_least_delay_can_be_changed() {
    let mut p = adaptive(true);
    let list = arrivals(600, |_, _, at| Some(at + ms(30.0)));
    let (early, rest) = list.split_at(300);
    let (late, last) = rest.split_at(300);
    play(&mut p, early);
    assert!(p.delay() < ms(50.0), "{:?}", p.delay());
    p.set_min_delay(ms(120.0), early[299].0);
    assert_eq!(p.delay(), ms(120.0));
    assert!(play(&mut p, late).iter().skip(2).all(|e| (latency(e) - 120.0).abs() < 1.0));
    // It returns with the frames, and stays within the bounds.
    p.set_min_delay(TimeDelta::ZERO, late[299].0);
    assert_eq!(p.delay(), ms(120.0));
    play(&mut p, last);
    p.set_min_delay(TimeDelta::MAX, last[0].0);
    assert_eq!(p.delay(), MAX);
    // A fixed and a steered delay have no least one.
    let config = AdaptivePlayout::up_to(MAX);
    for mut other in [Playout::new(ms(200.0)), Playout::steered(config)] {
        let before = other.delay();
        other.set_min_delay(ms(300.0), captured(0));
        assert_eq!(other.delay(), before);
    }
}
