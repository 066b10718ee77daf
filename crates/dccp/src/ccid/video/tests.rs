use super::{NUMBER, Sender};
use crate::ccid::ccid3::tests::net::{Fate, Net, Source, clean, within};
use crate::ccid::{self, CcidSender, Chunk};
use weir_units::{DataRate, TimeDelta};

const FRAME: TimeDelta = TimeDelta::from_micros(33_333);

/// Frames of 4 kB at 30 per second, and a key frame of this many kB every two seconds; 64 packets may wait, and those
/// sent after more than 100 ms are late.
fn film(number: u8, key: u64, rtt: i64) -> Net {
    let mut n = Net::new(number, &[]);
    n.source = Source::Frames { interval: FRAME, packets: 4, key_every: 60, key };
    n.one_way = TimeDelta::from_millis(rtt / 2);
    n.room = 64;
    n.patience = TimeDelta::from_millis(100);
    n
}

fn each(k: u64) -> impl Fn(u64) -> Fate + Copy {
    move |s| if s % k == k - 1 { Fate::Lost } else { Fate::Arrives }
}

/// Over two minutes after the first half: shares of the offered packets that were refused or late, and lost of those
/// sent, and the mean rate sent over that of the equation.
#[derive(Debug)]
struct Outcome {
    failed: f64,
    lost: f64,
    friendly: f64,
}

fn outcome(mut n: Net, fate: impl Fn(u64) -> Fate + Copy) -> Outcome {
    n.run(30_000, fate);
    let (offered, failed, sent, lost) = (n.offered, n.refused + n.late, n.sent, n.dropped);
    let mut by_equation = 0.0;
    for _ in 0..1_200 {
        n.run(100, fate);
        by_equation += n.metric("x_calc_bps") / 1_200.0;
    }
    let share = |part: u64, of: u64| part as f64 / of as f64;
    Outcome {
        failed: share(n.refused + n.late - failed, n.offered - offered),
        lost: share(n.dropped - lost, n.sent - sent),
        friendly: (n.sent - sent) as f64 * n.size.as_bits() as f64 / 120.0 / by_equation,
    }
}

fn both(make: impl Fn(u8) -> Net, fate: impl Fn(u64) -> Fate + Copy) -> [Outcome; 2] {
    let all = [3, NUMBER].map(|number| outcome(make(number), fate));
    eprintln!("CCID 3 {:?}\nvideo {:?}", all[0], all[1]);
    all
}

#[test]
fn key_frames_wait_less_at_the_same_loss() {
    for (key, rtt, k) in [(40, 56, 200), (40, 100, 400), (40, 100, 200)] {
        let [tfrc, video] = both(|number| film(number, key, rtt), each(k));
        within(video.lost / tfrc.lost, 0.97..=1.03);
        within(tfrc.failed, 0.001..=0.2);
        assert!(video.failed < tfrc.failed);
        within(video.friendly, 0.3..=1.0);
    }
}

#[test]
fn spread_key_frames_pass_a_short_queue() {
    // 3 Mbit/s with 30 ms: 11 packets.
    let narrow = |number, key, rtt| {
        let mut n = film(number, key, rtt);
        (n.capacity, n.queue) = (DataRate::from_mbps(3), TimeDelta::from_millis(30));
        n
    };
    for (key, rtt) in [(16, 56), (16, 100), (40, 56), (40, 100)] {
        let [tfrc, video] = both(|number| narrow(number, key, rtt), each(400));
        within(tfrc.lost, 0.015..=0.03);
        within(video.lost, 0.0024..=0.4 * tfrc.lost);
        within(video.failed, 0.0..=0.002);
        assert!(video.failed <= tfrc.failed);
        within(video.friendly, 0.3..=1.0);
    }
}

#[test]
fn a_film_beyond_the_friendly_rate_is_held_to_it() {
    for k in [100, 200] {
        let [tfrc, video] = both(|number| film(number, 40, 178), each(k));
        within(video.friendly, 0.97..=1.005);
        within(video.failed / tfrc.failed, 0.97..=1.03);
    }
}

#[test]
fn without_chunks_it_is_ccid_3() {
    let run = |number| {
        let mut n = Net::new(number, &[]);
        n.source = Source::Every(TimeDelta::from_millis(7));
        n.wants_log = true;
        n.run(20_000, each(150));
        (n.metric("x_bps"), n.dropped, n.log)
    };
    assert_eq!(run(3), run(NUMBER));
}

fn video(n: &mut Net) -> &mut Sender {
    let ccid::Sender::Video(sender) = &mut n.sender else { panic!("another CCID") };
    sender
}

#[test]
fn the_ceiling_rises_from_x_to_the_equation_within_a_chunk() {
    // A packet every 50 ms: 160 kbit/s, and X at twice that.
    let mut n = Net::new(NUMBER, &[]);
    n.source = Source::Every(TimeDelta::from_millis(50));
    n.run(120_000, each(100));
    n.source = Source::Silent;
    n.run(60, clean);
    let (x, top, now) = (n.metric("x_inst_bps"), n.metric("x_calc_bps"), n.now);
    within(top / x, 2.0..=6.0);
    let size = n.size * 40;
    assert_eq!(video(&mut n).ceiling(now), x);
    video(&mut n).on_chunk(&Chunk { now, size, interval: TimeDelta::from_millis(40) });
    let at = |n: &mut Net, ms| video(n).ceiling(now + TimeDelta::from_millis(ms)) / 1e3;
    let (from, to) = (x / 1e3, top / 1e3);
    assert!((at(&mut n, 0) - from).abs() < 1e-6);
    assert!((at(&mut n, 10) - (from + (to - from) / 4.0)).abs() < 2.0);
    for ms in [40, 500] {
        within(at(&mut n, ms) / to, 0.98..=1.02);
    }
    // Another chunk does not restart the period while data waits.
    video(&mut n).on_chunk(&Chunk {
        now: now + TimeDelta::from_millis(40),
        size,
        interval: TimeDelta::from_millis(40),
    });
    within(at(&mut n, 60) / to, 0.98..=1.02);
}

#[test]
fn without_feedback_nothing_is_raised() {
    let mut n = film(NUMBER, 40, 100);
    n.run(60_000, each(200));
    within(n.metric("reachable_bps") / n.metric("x_calc_bps"), 0.98..=1.02);
    n.deaf = true;
    n.run(1_000, clean);
    within(n.metric("x_bps") / n.metric("x_calc_bps"), 0.01..=0.3);
    assert_eq!(n.metric("reachable_bps"), n.metric("x_inst_bps"));
    let now = n.now;
    assert_eq!(video(&mut n).ceiling(now), n.metric("x_inst_bps"));
}

#[test]
fn a_small_frame_takes_most_of_its_interval() {
    let mut n = film(NUMBER, 4, 56);
    n.run(10_000, clean);
    n.wants_log = true;
    n.run(1_000, clean);
    // 4 packets over 0.8 of 33.3 ms: 6.67 ms apart, then 13.3 to the next frame.
    let gaps: Vec<f64> = n.log.windows(2).map(|p| (p[1].0 - p[0].0).as_millis_f64()).collect();
    let even = gaps.iter().filter(|g| (6.5..=6.8).contains(*g)).count();
    let pauses = gaps.iter().filter(|g| (13.2..=13.5).contains(*g)).count();
    assert_eq!(even + pauses, gaps.len(), "{gaps:?}");
    within(even as f64 / pauses as f64, 2.8..=3.2);
}

#[test]
fn the_smoothed_rate_is_that_of_the_equation_where_it_may_be_reached() {
    let mut n = film(NUMBER, 16, 100);
    n.run(90_000, each(200));
    within(n.metric("smoothed_bps") / n.metric("x_calc_bps"), 0.95..=1.05);
    assert_eq!(n.sender.rate().map(DataRate::as_bps), Some(n.metric("reachable_bps") as u64));
}
