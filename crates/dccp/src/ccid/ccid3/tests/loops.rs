use super::net::{Fate, Net, Source, clean, within};
use crate::ccid::CcidSender;
use weir_units::{DataRate, TimeDelta};

fn each_hundredth(fate: Fate) -> impl Fn(u64) -> Fate {
    move |s| if s % 100 == 99 { fate } else { Fate::Arrives }
}

#[test]
fn the_first_round_trip_time_sets_the_initial_rate() {
    let mut n = Net::new(3, &[]);
    n.run(99, clean);
    assert_eq!((n.sender.rate(), n.sent), (None, 1), "a packet a second");
    n.run(2, clean);
    // min(4 * 1,000, max(2 * 1,000, 4,380)) = 4,000 bytes in 100 ms.
    within(n.kbps(), 319.0..=320.1);
    n.run(120, clean);
    within(n.sent as f64, 5.0..=8.0);
}

#[test]
fn slow_start_doubles_the_rate_each_round_trip() {
    let mut n = Net::new(3, &[]);
    n.run(102, clean);
    let mut before = n.kbps();
    // Twice what has arrived, so a round trip behind the rate.
    for _ in 0..4 {
        n.run(210, clean);
        within(n.kbps() / before, 1.4..=4.1);
        before = n.kbps();
    }
    within(n.kbps() / 320.0, 12.0..=130.0);
}

#[test]
fn one_loss_in_a_hundred_gives_the_rate_of_the_equation() {
    for fate in [Fate::Lost, Fate::Marked] {
        let mut n = Net::new(3, &[]);
        n.run(60_000, each_hundredth(fate));
        within(n.metric("loss_event_rate"), 0.0093..=0.01);
        let rate = n.sent_kbps(60_000, each_hundredth(fate));
        // p = 0.01: 898.66 kbit/s (1,000 bytes in 100 ms); somewhat more while the open interval is the longer.
        within(rate, 890.0..=945.0);
        within(n.metric("segment_bytes"), 999.9..=1_000.1);
    }
}

#[test]
fn it_fills_an_empty_link_and_slow_start_stays_bounded() {
    let mut n = Net::new(3, &[]);
    n.capacity = DataRate::from_mbps(4);
    n.run(5_000, clean);
    let dropped = n.dropped;
    within(dropped as f64, 1.0..=150.0);
    n.run(15_000, clean);
    let before = n.received;
    n.run(60_000, clean);
    let share = (n.received - before) as f64 * 8e3 / 60.0 / 4e6;
    within(share, 0.85..=1.0);
    // Steady losses stay few.
    within((n.dropped - dropped) as f64 / n.sent as f64, 0.0..=0.01);
}

#[test]
fn silence_halves_the_rate_each_time() {
    let mut n = Net::new(3, &[]);
    n.run(60_000, each_hundredth(Fate::Lost));
    let before = n.metric("x_bps");
    n.deaf = true;
    n.run(290, each_hundredth(Fate::Lost));
    assert_eq!(n.metric("x_bps"), before);
    n.run(135, clean);
    within(n.metric("x_bps") / before, 0.47..=0.52);
    n.run(400, clean);
    within(n.metric("x_bps") / before, 0.22..=0.27);
    n.run(400_000, clean);
    // A packet in 64 seconds.
    within(n.metric("x_bps"), 100.0..=250.0);
    n.deaf = false;
    n.run(400_000, each_hundredth(Fate::Lost));
    within(n.kbps(), 850.0..=950.0);
}

#[test]
fn a_pause_does_not_go_below_the_rate_to_recover_from() {
    let mut n = Net::new(3, &[]);
    n.run(700, clean);
    within(n.metric("x_bps"), 1_300e3..=20_000e3);
    n.source = Source::Silent;
    n.run(30_000, clean);
    within(n.metric("x_bps"), 320e3..=640e3);
    assert_eq!(n.sender.poll_timeout(), None);
    n.source = Source::Greedy;
    n.run(400, clean);
    within(n.metric("x_bps"), 640e3..=6_000e3);
}

#[test]
fn little_to_send_holds_the_rate_at_twice_what_arrives() {
    let mut n = Net::new(3, &[]);
    n.source = Source::Every(TimeDelta::from_millis(20));
    n.run(20_000, clean);
    within(n.metric("x_recv_bps"), 380e3..=420e3);
    // The first packets had waited, and their rate is kept for as long as the application limits.
    within(n.metric("x_bps"), 780e3..=1_400e3);
    assert_eq!(n.metric("data_limited"), 1.0);
    // Once a round trip.
    within(n.feedbacks as f64, 120.0..=210.0);
}

#[test]
fn p_falls_through_the_second_interval() {
    // One loss on a wide path, then none: the interval it begins is the second.
    let mut n = Net::new(3, &[]);
    n.run(600, clean);
    let lost = n.sequence;
    n.run(400, |s| if s == lost { Fate::Lost } else { Fate::Arrives });
    let after = (n.metric("loss_event_rate"), n.metric("x_bps"));
    within(after.0, 1e-6..=0.03);
    n.run(60_000, clean);
    within(n.metric("loss_event_rate") / after.0, 0.0..=0.2);
    within(n.metric("x_bps") / after.1, 2.0..=100.0);
}
