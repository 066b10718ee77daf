use super::net::{Fate, Net, Source, clean, within};
use crate::ccid::CcidSender;
use weir_cc::tcp::{Equation, TcpFlow};
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
    // Twice the rate received, so one round trip behind the rate.
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
        // Reported in whole packets, and up to the greatest number received.
        within(n.metric("reported_loss_event_rate") / n.metric("loss_event_rate"), 0.95..=1.01);
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
    // With steady losses few are lost.
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
    // The first packets had waited, and their rate is kept while the application limits.
    within(n.metric("x_bps"), 780e3..=1_400e3);
    assert_eq!(n.metric("data_limited"), 1.0);
    // Once per round trip.
    within(n.feedbacks as f64, 120.0..=210.0);
}

#[test]
fn the_rate_is_that_of_the_equation_on_short_and_long_paths() {
    for (one_way, each) in [(10, 1_000), (10, 100), (50, 1_000), (50, 25), (100, 100), (100, 400)] {
        let mut n = Net::new(3, &[]);
        n.one_way = TimeDelta::from_millis(one_way);
        let fate = |s: u64| if s % each == each - 1 { Fate::Lost } else { Fate::Arrives };
        n.run(90_000, fate);
        let rate = n.sent_kbps(60_000, fate);
        let tcp = TcpFlow::new(n.size, TimeDelta::from_millis(2 * one_way));
        let expected = tcp.throughput(Equation::Full, 1.0 / each as f64).expect("bounded").as_kbps_f64();
        // The open interval may increase it a little, detection three packets late decrease it.
        within(rate / expected, 0.95..=1.06);
    }
}

#[test]
fn losses_of_a_round_trip_are_one_event() {
    let run = |in_a_row: u64| {
        let mut n = Net::new(3, &[]);
        n.run(90_000, |s| if s % 200 < in_a_row { Fate::Lost } else { Fate::Arrives });
        n.metric("loss_event_rate")
    };
    within(run(8) / run(1), 0.97..=1.03);
}

#[test]
fn packets_are_spaced_and_counted_in_quarters_of_round_trips() {
    let mut n = Net::new(3, &[("damping", 0.0)]);
    n.run(60_000, each_hundredth(Fate::Lost));
    n.wants_log = true;
    n.run(5_000, each_hundredth(Fate::Lost));
    // 898.66 kbit/s: 8.9 ms apart.
    for pair in n.log.windows(2) {
        let gap = (pair[1].0 - pair[0].0).as_millis_f64();
        within(gap, 8.4..=9.0);
        assert!((pair[1].1 + 16 - pair[0].1) % 16 <= 1, "{pair:?}");
    }
    let steps: u32 = n.log.windows(2).map(|p| u32::from((p[1].1 + 16 - p[0].1) % 16)).sum();
    // 25 ms each, plus up to one packet's spacing: every third packet.
    within(f64::from(steps), 5_000.0 / 34.0..=5_000.0 / 25.0);
}

#[test]
fn idle_time_may_be_made_up_for_by_a_round_trip() {
    for (credit, burst) in [(1.0, 10..=13), (0.5, 5..=7), (0.0, 1..=1)] {
        let mut n = Net::new(3, &[("credit", credit), ("damping", 0.0)]);
        n.run(60_000, each_hundredth(Fate::Lost));
        n.source = Source::Silent;
        n.run(300, clean);
        (n.source, n.wants_log) = (Source::Greedy, true);
        n.run(50, clean);
        let first = n.log[0].0;
        let at_once = n.log.iter().take_while(|l| l.0 == first).count();
        assert!(burst.contains(&at_once), "{at_once} with a credit of {credit}");
    }
}

#[test]
fn a_round_trip_that_grows_damps_the_rate() {
    let run = |damping| {
        let mut n = Net::new(3, &[("damping", damping)]);
        n.run(60_000, each_hundredth(Fate::Lost));
        n.one_way = TimeDelta::from_millis(200);
        n.run(460, clean);
        n.metric("x_inst_bps") / n.metric("x_bps")
    };
    // sqrt(0.1) over sqrt(0.25): the forward path alone is longer for packets in flight on the return path.
    within(run(1.0), 0.5..=0.8);
    assert_eq!(run(0.0), 1.0);
}

#[test]
fn a_receiver_that_drops_or_is_slow_is_heeded() {
    let mut n = Net::new(3, &[]);
    n.run(60_000, each_hundredth(Fate::Lost));
    let x_recv = n.metric("x_recv_bps");
    n.slow_receiver = true;
    n.run(110, each_hundredth(Fate::Lost));
    within(n.metric("x_recv_bps") / x_recv, 0.4..=0.6);
    n.run(400, each_hundredth(Fate::Lost));
    // Not above what it received, one round trip later.
    within(n.metric("x_bps") / x_recv, 0.3..=1.01);
    n.slow_receiver = false;
    n.run(3_000, each_hundredth(Fate::Lost));
    within(n.metric("x_bps") / x_recv, 0.95..=1.05);
    // Three dropped: (X_recv - 3 packets per round trip) / 2.
    n.data_dropped = vec![0x80 | 2 << 4 | 2];
    n.run(100, each_hundredth(Fate::Lost));
    within(n.metric("x_recv_bps") / x_recv, 0.33..=0.41);
}

#[test]
fn the_smoothed_rate_follows_slowly_up_and_faster_down() {
    let mut n = Net::new(3, &[]);
    n.run(60_000, each_hundredth(Fate::Lost));
    within(n.metric("smoothed_bps") / n.metric("x_bps"), 0.98..=1.02);
    let before = n.metric("smoothed_bps");
    n.deaf = true;
    n.run(1_500, clean);
    within(n.metric("smoothed_bps") / before, 0.1..=0.5);
    let raw = n.metric("x_bps");
    within(raw / before, 0.0..=0.13);
    n.deaf = false;
    n.run(1_500, each_hundredth(Fate::Lost));
    within(n.metric("smoothed_bps") / before, 0.2..=0.85);
}

#[test]
fn packets_reported_corrupt_count_as_marked() {
    let mut n = Net::new(3, &[]);
    n.run(600, clean);
    assert_eq!(n.metric("loss_event_rate"), 0.0);
    n.data_dropped = vec![0x80 | 3 << 4];
    n.run(200, clean);
    n.data_dropped.clear();
    within(n.metric("loss_event_rate"), 1e-4..=0.05);
    let before = n.metric("loss_event_rate");
    n.run(20_000, clean);
    // And the open interval grows, as after any loss.
    within(n.metric("loss_event_rate") / before, 0.0..=0.5);
    n.data_dropped = vec![0x80 | 7 << 4];
    n.run(60_000, clean);
    // An event per round trip.
    within(n.metric("loss_event_rate"), 0.1..=1.0);
}

#[test]
fn state_that_the_receiver_keeps_is_freed_once_a_round_trip() {
    let mut n = Net::new(3, &[]);
    n.run(1_000, clean);
    assert!(!n.sender.wants_ack_of_ack(n.now));
    n.data_dropped = vec![0];
    n.run(200, clean);
    assert!(n.sender.wants_ack_of_ack(n.now));
}

#[test]
fn as_linux_had_it_the_last_report_limits_the_rate_and_the_equation_still_holds() {
    // Frames of 2 packets, every second one of 30: between those the RFC keeps the greatest rate that was received.
    let greatest = |linux: f64| {
        let mut n = Net::new(3, &[("linux", linux)]);
        n.source = Source::Frames { interval: TimeDelta::from_millis(40), packets: 2, key_every: 25, key: 30 };
        n.run(30_000, each_hundredth(Fate::Lost));
        let mut most = 0.0_f64;
        for _ in 0..1_000 {
            n.run(10, each_hundredth(Fate::Lost));
            most = most.max(n.metric("x_bps") / n.metric("x_recv_bps"));
        }
        most
    };
    within(greatest(1.0), 1.5..=2.001);
    within(greatest(0.0), 2.1..=20.0);
    let mut n = Net::new(3, &[("linux", 1.0)]);
    n.run(60_000, each_hundredth(Fate::Lost));
    // 898.66 kbit/s by the equation.
    within(n.sent_kbps(60_000, each_hundredth(Fate::Lost)), 850.0..=950.0);
    assert_eq!(n.metric("x_inst_bps"), n.metric("x_bps"), "without damping");
}

#[test]
fn as_linux_had_it_the_receive_rate_is_measured_since_the_last_report() {
    // A burst of 20 packets each 400 ms on a path of 100 ms: reports within the burst cover a part of it alone, while the
    // RFC's cover a round trip.
    let ratio = |linux: f64| {
        let mut n = Net::new(3, &[("linux", linux)]);
        n.capacity = DataRate::from_mbps(4);
        n.source = Source::Frames { interval: TimeDelta::from_millis(400), packets: 20, key_every: 1_000, key: 20 };
        n.run(20_000, clean);
        let mut rates = vec![];
        for _ in 0..400 {
            n.run(10, clean);
            rates.push(n.metric("x_recv_bps"));
        }
        let most = rates.iter().copied().fold(0.0, f64::max);
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        (least / 1e3, most / 1e3)
    };
    let ((rfc, _), (linux, most)) = (ratio(0.0), ratio(1.0));
    // The first packet of a burst reports the silence before it: a packet in some 300 ms.
    within(linux, 10.0..=100.0);
    assert!(rfc > linux / 2.0 && most > 10.0 * linux, "{rfc} {linux} {most}");
}
