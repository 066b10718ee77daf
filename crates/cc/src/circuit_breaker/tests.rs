use super::*;
use crate::tcp::throughput::Equation;
use crate::testing::REPORT;
use weir_units::DataSize;

const SECOND: TimeDelta = TimeDelta::from_secs(1);
const fn ms(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}

/// A sender of 1,000 bytes every 10 ms, 800 kbit/s, whose receiver reports every second.
struct Call {
    breaker: CircuitBreaker,
    now: Timestamp,
    spacing: TimeDelta,
    next_send: Timestamp,
    sequence: u64,
    highest: u64,
    rtt: Option<TimeDelta>,
}

impl Call {
    fn new(config: Config) -> Self {
        let mut breaker = CircuitBreaker::new(config);
        breaker.on_rtcp_interval(RtcpIntervals { own: SECOND, receiver: SECOND });
        Self {
            breaker,
            now: Timestamp::ZERO,
            spacing: ms(10),
            next_send: Timestamp::ZERO,
            sequence: 0,
            highest: 0,
            rtt: Some(ms(500)),
        }
    }
    fn final_trips() -> Self {
        Self::new(Config { may_reduce: false, usability: None, ..Config::default() })
    }

    fn send(&mut self, time: TimeDelta) {
        let end = self.now + time;
        self.next_send = self.next_send.max(self.now);
        while self.next_send < end {
            self.breaker.on_packet_sent(&SentPacket::media(self.next_send, self.sequence, DataSize::from_bytes(1_000)));
            self.sequence += 1;
            self.next_send += self.spacing;
        }
        self.now = end;
    }
    fn report(&mut self, fraction_lost: f64, marked: u64) -> Option<Reason> {
        let block =
            ReportBlock { now: self.now, fraction_lost, highest_sequence: self.highest, rtt: self.rtt, ..REPORT };
        self.breaker.on_report_block(&block, marked);
        self.breaker.tripped().map(|t| t.reason)
    }
    /// Sends for `time`; the receiver then reports this loss, but new media all the same.
    fn interval(&mut self, time: TimeDelta, loss: f64) -> Option<Reason> {
        self.send(time);
        self.highest = self.sequence;
        self.report(loss, 0)
    }
    /// Number of reports of this loss until the breaker trips, 60 at most.
    fn reports_to_trip(&mut self, loss: f64) -> Option<usize> {
        (1..=60).find(|_| self.interval(SECOND, loss).is_some())
    }
    fn metric(&self, wanted: &str) -> f64 {
        let mut found = None;
        self.breaker.metrics(&mut |name, v| {
            if name == wanted {
                found = Some(v);
            }
        });
        found.expect("a metric of this name")
    }
}

#[test]
fn silence_of_three_intervals_is_an_rtcp_timeout() {
    let mut c = Call::final_trips();
    assert_eq!(c.breaker.poll_timeout(), None);
    c.send(ms(14_999));
    assert_eq!(c.breaker.poll_timeout(), Some(Timestamp::from_secs(15)));
    c.breaker.on_timeout(c.now);
    assert_eq!(c.breaker.tripped(), None);
    c.breaker.on_timeout(Timestamp::from_secs(15));
    let trip = c.breaker.tripped().expect("15 s without a report");
    assert_eq!((trip.reason, trip.at), (Reason::RtcpTimeout, Timestamp::from_secs(15)));
    assert_eq!(trip.earliest_restart(), Timestamp::from_secs(30));
    assert_eq!(c.breaker.poll_timeout(), None);
}

#[test]
fn reports_and_feedback_put_the_rtcp_timeout_off() {
    let mut c = Call::final_trips();
    c.send(ms(10_000));
    c.breaker.on_feedback();
    assert_eq!(c.breaker.poll_timeout(), None);
    c.send(ms(10));
    assert_eq!(c.breaker.poll_timeout(), Some(Timestamp::from_secs(25)));
    c.breaker.on_rtcp_interval(RtcpIntervals { own: SECOND * 6, receiver: SECOND });
    assert_eq!(c.breaker.poll_timeout(), Some(Timestamp::from_secs(28)));
    c.interval(SECOND, 0.0);
    assert_eq!(c.breaker.poll_timeout(), None);
}

#[test]
fn a_receiver_only_end_waits_for_no_report() {
    for (idle, trips) in [(ms(4_900), true), (ms(5_100), false)] {
        let mut c = Call::final_trips();
        c.send(SECOND * 15 - idle);
        c.breaker.on_timeout(Timestamp::from_secs(15));
        assert_eq!(c.breaker.tripped().is_some(), trips, "after {idle}");
    }
    let mut c = Call::final_trips();
    c.send(SECOND * 14);
    c.breaker.on_stopped();
    assert_eq!(c.breaker.poll_timeout(), None);
}

#[test]
fn five_reports_without_new_media_are_a_media_timeout() {
    let mut c = Call::final_trips();
    c.interval(SECOND, 0.0);
    for _ in 0..4 {
        c.send(SECOND);
        assert_eq!(c.report(0.0, 0), None);
    }
    assert_eq!(c.interval(SECOND, 0.0), None, "new media starts the count again");
    let tripped_at = (1..=20).find(|_| {
        c.send(SECOND);
        c.report(0.0, 0).is_some()
    });
    assert_eq!(tripped_at, Some(5));
    let trip = c.breaker.tripped().expect("tripped");
    assert_eq!((trip.reason, trip.pause), (Reason::MediaTimeout, SECOND * 5));
}

#[test]
fn the_media_timeout_grows_but_does_not_shrink_while_it_runs() {
    let mut c = Call::final_trips();
    c.interval(SECOND, 0.0);
    // Tr becomes 0.8 * 0.5 + 0.2 * 10 = 2.4 s: 5 * 2.4 = 12 reports; then it falls again.
    c.rtt = Some(SECOND * 10);
    c.send(SECOND);
    assert_eq!(c.report(0.0, 0), None);
    c.rtt = Some(ms(1));
    let more = (1..=20).find(|_| {
        c.send(SECOND);
        c.report(0.0, 0).is_some()
    });
    assert_eq!(more, Some(11));
}

#[test]
fn a_pause_is_no_media_timeout() {
    let mut c = Call::final_trips();
    c.interval(SECOND, 0.0);
    c.now += SECOND * 2;
    for _ in 0..20 {
        c.now += SECOND;
        assert_eq!(c.report(0.0, 0), None);
    }
}

#[test]
fn ten_times_the_rate_of_tcp_trips() {
    // 10 X = 80,000 / (0.5 * sqrt(2p/3)) = 800 kbit/s at p = 0.06; ten round trips make CB_INTERVAL = 5 intervals.
    assert_eq!(Call::final_trips().reports_to_trip(0.0595), None);
    let mut c = Call::final_trips();
    assert_eq!(c.reports_to_trip(0.0605), Some(6), "more than 5 blocks");
    let trip = c.breaker.tripped().expect("tripped");
    assert_eq!((trip.reason, trip.pause), (Reason::Congestion, SECOND * 5));
    assert_eq!(trip.sending_rate, Some(DataRate::from_kbps(800)));
    // 16,000 / sqrt(0.0605 * 2/3) = 79.67 kbit/s.
    let tcp = trip.tcp_rate.expect("loss").as_bps_f64();
    assert!((79_600.0..79_740.0).contains(&tcp), "{tcp}");
}

#[test]
fn the_full_equation_trips_earlier() {
    let full = || Call::new(Config { equation: Equation::Full, may_reduce: false, ..Config::default() });
    // sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32 p^2) = 0.2 at p = 0.0346.
    assert_eq!(full().reports_to_trip(0.034), None);
    assert_eq!(full().reports_to_trip(0.0355), Some(6));
}

#[test]
fn loss_is_averaged_by_time() {
    let run = |short: f64, long: f64| {
        let mut c = Call::final_trips();
        (0..40).any(|n| if n % 2 == 0 { c.interval(ms(500), short) } else { c.interval(ms(1_500), long) }.is_some())
    };
    // Averaged by reports 0.058 or 0.072; by time (3 * 0.05 + 2 * 0.045) / 4.5 = 0.053 at most.
    assert!(!run(0.1, 0.03));
    // Averaged by reports 0.057 at most; by time (2 * 0.015 + 3 * 0.1125) / 5.5 = 0.067.
    assert!(run(0.03, 0.075));
}

#[test]
fn marks_count_as_loss_where_they_are_to() {
    let run = |count_marks, marked| {
        let mut c = Call::new(Config { count_marks, may_reduce: false, ..Config::default() });
        (0..20).any(|_| {
            c.send(SECOND);
            c.highest = c.sequence;
            c.report(0.03, marked).is_some()
        })
    };
    assert!(!run(true, 2));
    assert!(run(true, 4));
    assert!(!run(false, 4));
}

#[test]
fn a_sender_slower_than_a_packet_an_interval_is_left_alone() {
    let run = |spacing| {
        let mut c = Call::new(Config {
            equation: Equation::Full,
            may_reduce: false,
            usability: None,
            frame_interval: SECOND,
            ..Config::default()
        });
        (c.spacing, c.rtt) = (spacing, Some(ms(900)));
        c.reports_to_trip(0.5)
    };
    // At p = 0.5 TCP needs 0.9 * 24 s for a packet: one per second is more than ten times that.
    assert!(run(SECOND).is_some());
    assert_eq!(run(ms(1_001)), None);
}

#[test]
fn without_a_round_trip_time_there_is_no_verdict() {
    for rtt in [None, Some(TimeDelta::ZERO), Some(ms(-5))] {
        let mut c = Call::final_trips();
        c.rtt = rtt;
        assert_eq!(c.reports_to_trip(0.9), None, "{rtt:?}");
    }
}

#[test]
fn the_round_trip_time_is_smoothed() {
    let mut c = Call::final_trips();
    c.interval(SECOND, 0.01);
    c.rtt = Some(ms(1_000));
    (0..12).for_each(|_| assert_eq!(c.interval(SECOND, 0.01), None));
    // 1 - 0.5 * 0.8^12 = 0.9656 s; 8,000 / (0.9656 * sqrt(0.02 / 3)).
    let tcp = c.metric("breaker_tcp_rate_bps");
    assert!((101_300.0..101_700.0).contains(&tcp), "{tcp}");
    assert!((c.metric("breaker_loss") - 0.01).abs() < 1e-9);
    assert_eq!(c.metric("breaker_interval"), 10.0);
}

#[test]
fn a_first_trigger_reduces_and_a_second_ends() {
    let mut c = Call::new(Config { usability: None, ..Config::default() });
    (0..6).for_each(|_| assert_eq!(c.interval(SECOND, 0.07), None));
    assert_eq!(c.breaker.rate_cap(), Some(DataRate::from_kbps(80)));
    // The sender ignores it: five intervals later it must cease.
    assert_eq!(c.reports_to_trip(0.07), Some(5));
}

#[test]
fn a_reduction_that_helps_is_eased_step_by_step() {
    let mut c = Call::new(Config { usability: None, ..Config::default() });
    (0..6).for_each(|_| assert_eq!(c.interval(SECOND, 0.07), None));
    c.spacing = ms(100);
    let mut caps = Vec::new();
    for _ in 0..4 {
        for _ in 0..5 {
            caps.push(c.breaker.rate_cap().map(|r| r.as_bps() / 1_000));
            assert_eq!(c.interval(SECOND, 0.07), None, "a tenth of the rate is within ten times TCP's");
        }
    }
    let wanted: Vec<_> = [80, 160, 320, 640].into_iter().flat_map(|kbps| [Some(kbps); 5]).collect();
    assert_eq!(caps, wanted);
    assert_eq!(c.breaker.rate_cap(), None);
    // Then the reduction may be used again.
    c.spacing = ms(10);
    (0..6).for_each(|_| assert_eq!(c.interval(SECOND, 0.07), None));
    assert_eq!(c.breaker.rate_cap().map(|r| r.as_bps() / 1_000 > 50), Some(true));
}

#[test]
fn media_of_no_use_ends_after_its_patience() {
    let usable = Usability { max_loss: 0.5, max_rtt: SECOND * 5, patience: SECOND * 30 };
    let config = Config { usability: Some(usable), may_reduce: false, ..Config::default() };
    let run = |loss, rtt| {
        let mut c = Call::new(config);
        (c.rtt, c.spacing) = (rtt, ms(900));
        c.reports_to_trip(loss).zip(c.breaker.tripped().map(|t| t.reason))
    };
    assert_eq!(run(0.5, None), None);
    assert_eq!(run(0.51, None), Some((31, Reason::MediaUsability)));
    assert_eq!(run(0.0, Some(ms(5_001))), Some((31, Reason::MediaUsability)));
    assert_eq!(run(0.0, Some(ms(5_000))), None);
    let mut c = Call::new(config);
    (c.rtt, c.spacing) = (None, ms(900));
    for n in 0..100 {
        assert_eq!(c.interval(SECOND, if n % 30 == 29 { 0.4 } else { 0.9 }), None, "a good report forgives");
    }
}

#[test]
fn a_restart_waits_for_the_triggering_interval() {
    let mut c = Call::final_trips();
    assert_eq!(c.reports_to_trip(0.1), Some(6));
    let trip = c.breaker.tripped().expect("tripped");
    assert!(!c.breaker.restart(trip.earliest_restart() - ms(1)));
    assert!(c.breaker.tripped().is_some());
    assert!(c.breaker.restart(trip.earliest_restart()));
    assert_eq!(c.breaker.tripped(), None);
    c.now = trip.earliest_restart();
    assert_eq!(c.reports_to_trip(0.1), Some(6));
}

#[test]
fn the_rules_of_2013() {
    let call = || Call::new(Config::thesis_2013(Equation::Simplified));
    let mut c = call();
    assert_eq!(c.interval(SECOND, 0.061), None);
    assert_eq!(c.interval(SECOND, 0.059), None, "not on end");
    assert_eq!(c.interval(SECOND, 0.061), None);
    assert_eq!(c.interval(SECOND, 0.061), Some(Reason::Congestion));
    let mut c = call();
    c.interval(SECOND, 0.0);
    c.send(SECOND);
    assert_eq!(c.report(0.0, 0), None);
    c.send(SECOND);
    assert_eq!(c.report(0.0, 0), Some(Reason::MediaTimeout));
    let mut c = call();
    c.send(SECOND * 15);
    c.breaker.on_timeout(c.now);
    assert_eq!(c.breaker.tripped().map(|t| t.reason), Some(Reason::RtcpTimeout));
}

#[test]
fn absurd_reports_neither_panic_nor_trip_at_once() {
    for fraction_lost in [f64::NAN, f64::NEG_INFINITY, 0.0] {
        for rtt in [TimeDelta::MAX, -TimeDelta::MAX] {
            let mut c = Call::new(Config { usability: None, ..Config::default() });
            c.rtt = Some(rtt);
            assert_eq!(c.reports_to_trip(fraction_lost), None);
            c.breaker.metrics(&mut |name, v| assert!(!v.is_infinite(), "{name}"));
        }
    }
    let mut c = Call::final_trips();
    c.breaker.on_rtcp_interval(RtcpIntervals { own: -TimeDelta::MAX, receiver: -TimeDelta::MAX });
    c.breaker.on_frame_interval(TimeDelta::MAX);
    for n in 0..10 {
        c.send(SECOND);
        c.report(f64::INFINITY, u64::MAX);
        c.breaker.on_timeout(Timestamp::from_nanos(n));
    }
}
