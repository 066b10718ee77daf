use super::*;
use crate::controller::RepairPlan;
use crate::cue::{Fate, IntervalPacket, OneWayDelay};
use crate::testing::{self, Kbps};
use weir_units::DataSize;

/// A call scripted report by report: media at the target, one packet every 20 ms.
struct Call {
    fbra: Fbra,
    now: i64,
    rtt_ms: i64,
}

/// While FEC is off.
const KEPT: RepairPlan = RepairPlan::Standby { interval: 14 };
const DOWN: f64 = 0.0;
const STAY: f64 = 1.0;
const PROBE: f64 = 2.0;
const UP: f64 = 3.0;

impl Call {
    fn with(params: &[(&str, f64)]) -> Self {
        Self { fbra: Kbps { floor: 32, start: 1_000, ceiling: 5_000 }.sender(params), now: 0, rtt_ms: 100 }
    }
    /// A first probe of an eighth, for round numbers.
    fn new() -> Self {
        Self::with(&[("fec_interval_min", 7.0)])
    }
    /// The packets of the last `fates.len()` times 20 ms, reported at their end.
    fn packets(&mut self, fates: &str) -> Vec<IntervalPacket> {
        let size = DataRate::size_in(self.fbra.target().media_rate, TimeDelta::from_millis(20));
        let packet = |(k, c)| IntervalPacket {
            sequence: k as u64,
            departure: Timestamp::from_millis(self.now + 20 * (k as i64 + 1)),
            size,
            fate: match c {
                '.' => Fate::Received,
                'l' => Fate::Lost,
                _ => Fate::Discarded,
            },
            repaired: false,
        };
        let packets = fates.chars().enumerate().map(packet).collect();
        self.now += 20 * fates.len() as i64;
        packets
    }
    /// Reports; returns the state and the rate in kbit/s after it.
    fn report(&mut self, fates: &str, delay_ms: i64) -> (f64, f64) {
        let packets = self.packets(fates);
        let last = TimeDelta::from_millis(delay_ms);
        self.fbra.on_cue(&Cue::IntervalReport(IntervalReport {
            now: Timestamp::from_millis(self.now),
            packets: &packets,
            one_way_delay: Some(OneWayDelay { min: TimeDelta::ZERO, mean: TimeDelta::ZERO, last }),
            rtt: Some(TimeDelta::from_millis(self.rtt_ms)),
        }));
        (self.metric("state"), self.kbps())
    }
    fn clean(&mut self) -> (f64, f64) {
        self.report("..........", 50)
    }
    fn kbps(&self) -> f64 {
        testing::kbps(&self.fbra)
    }
    fn metric(&self, name: &str) -> f64 {
        testing::metric(&self.fbra, name)
    }
    /// Enabled, raised, kept, failed.
    fn counts(&self) -> [f64; 4] {
        ["fec_enabled", "fec_raised", "fec_kept", "fec_failed"].map(|n| self.metric(n))
    }
    fn send(&mut self, is_repair: bool) {
        self.fbra.on_packet_sent(&SentPacket {
            is_repair,
            ..SentPacket::media(Timestamp::from_millis(self.now), 0, DataSize::from_bytes(1_000))
        });
    }
}

#[track_caller]
fn near(got: (f64, f64), state: f64, kbps: f64) {
    // Packets have whole bytes.
    assert!(got.0 == state && (got.1 - kbps).abs() <= 1e-3 * kbps, "{got:?} is not {state}, {kbps}");
}

#[test]
fn climbs_by_probe_up_stay_and_one_more_stay() {
    let mut c = Call::new();
    assert_eq!(c.fbra.target().repair, KEPT);
    near(c.clean(), PROBE, 1_000.0);
    assert_eq!(c.fbra.target().repair, RepairPlan::Parity { interval: 7 });
    // One packet in eight.
    near(c.clean(), UP, 1_125.0);
    assert_eq!((c.fbra.target().repair, c.counts()), (KEPT, [1.0, 0.0, 0.0, 0.0]));
    near(c.clean(), STAY, 1_125.0);
    assert_eq!(c.counts(), [1.0, 1.0, 0.0, 0.0]);
    // Above 90 % of the highest rate: one more report.
    near(c.clean(), STAY, 1_125.0);
    near(c.clean(), PROBE, 1_125.0);
    // Above the initial goodput: one packet in fifteen.
    assert_eq!(c.fbra.target().repair, RepairPlan::Parity { interval: 14 });
    near(c.clean(), UP, 1_200.0);
    assert_eq!(c.fbra.target().pacing_rate, DataRate::from_kbps(12_000));
}

#[test]
fn blocks_raise_the_rate_as_parity_does() {
    let mut c = Call::with(&[("fec_interval_min", 7.0), ("fec_repair", 2.0)]);
    assert_eq!(c.fbra.target().repair, RepairPlan::BlockStandby { block: 30, repair: 2 });
    near(c.clean(), PROBE, 1_000.0);
    assert_eq!(c.fbra.target().repair, RepairPlan::ReedSolomon { block: 16, repair: 2 });
    near(c.clean(), UP, 1_125.0);
    assert_eq!(c.fbra.target().repair, RepairPlan::BlockStandby { block: 30, repair: 2 });
}

#[test]
fn the_first_probe_is_a_third() {
    let mut c = Call::with(&[]);
    near(c.clean(), PROBE, 1_000.0);
    assert_eq!(c.fbra.target().repair, RepairPlan::Parity { interval: 2 });
    near(c.clean(), UP, 1_333.333);
}

#[test]
fn a_rate_below_90_percent_of_the_highest_probes_at_once() {
    for (rate, probes) in [(0.899, true), (0.901, false)] {
        let mut c = Call::new();
        c.fbra.previous = State::Down;
        c.fbra.rates.push(Timestamp::ZERO, 1e6);
        c.fbra.rate = rate * 1e6;
        // The report itself records the current rate, not a higher one.
        assert_eq!(c.clean().0, if probes { PROBE } else { STAY }, "{rate}");
    }
    // Rates older than 2 s do not count.
    let mut c = Call::new();
    c.fbra.previous = State::Down;
    c.fbra.rates.push(Timestamp::ZERO, 1e6);
    (c.fbra.rate, c.now) = (0.5e6, 1_801);
    assert_eq!(c.clean().0, STAY);
}

#[test]
fn undershoots_ignores_a_report_and_bounces_back() {
    let mut c = Call::new();
    c.fbra.previous = State::Down;
    near(c.clean(), STAY, 1_000.0);
    // Two of ten: 0.9 * (1000 - 2 * 200).
    near(c.report("......l.l.", 50), DOWN, 540.0);
    // Ignored within 1.25 intervals of 200 ms.
    near(c.report("llllllllll", 500), DOWN, 540.0);
    assert_eq!(c.metric("ignored_reports"), 1.0);
    // 90 % of the 800 that were stored.
    near(c.clean(), STAY, 720.0);
    // 720 is less than 90 % of the highest rate of the last 2 s.
    near(c.clean(), PROBE, 720.0);
}

#[test]
fn undershoots_again_without_disabling_where_congestion_goes_on() {
    for (fates, delay, kbps) in [
        // 0.9 * (540 - 2 * 54) and 0.9 * 540; the delay does not exceed twice the high watermark.
        (".........l", 50, 388.8),
        ("d.........", 50, 388.8),
        ("..........", 101, 486.0),
    ] {
        let mut c = Call::new();
        c.fbra.previous = State::Down;
        c.clean();
        near(c.report("......l.l.", 50), DOWN, 540.0);
        c.report("..........", 50);
        near(c.report(fates, delay), DOWN, kbps);
        assert_eq!(c.fbra.disabled, None);
        // By the letter of 1a, the next congestion leads to STAY without a cut, and bouncing back is cancelled.
        near(c.report(".........l", 50), STAY, kbps);
    }
    let mut c = Call::new();
    c.fbra.previous = State::Down;
    c.clean();
    c.report("......l.l.", 50);
    c.report("..........", 50);
    near(c.report("l.........", 100), STAY, 720.0);
}

#[test]
fn the_disabled_period_lasts_one_and_a_quarter_intervals_and_one_report() {
    // Reports 120 ms and then 240 or 260 ms after the cut, and one 300 ms late.
    for (reports, ignored) in
        [(&["......", "......"][..], 2.0), (&["......", "......."][..], 1.0), (&["....................", "."][..], 1.0)]
    {
        let mut c = Call::new();
        c.fbra.previous = State::Down;
        c.rtt_ms = 10;
        c.clean();
        c.clean();
        c.fbra.state = State::Stay;
        near(c.report("......l.l.", 50), DOWN, 540.0);
        for fates in reports {
            c.report(fates, 50);
        }
        assert_eq!(c.metric("ignored_reports"), ignored, "{reports:?}");
        near(
            (c.metric("state"), c.kbps()),
            if ignored > 1.0 { DOWN } else { STAY },
            if ignored > 1.0 { 540.0 } else { 720.0 },
        );
    }
}

#[test]
fn discards_alone_cut_without_disabling_in_down() {
    let mut c = Call::new();
    (c.fbra.state, c.fbra.previous) = (State::Down, State::Stay);
    c.report("..........", 50);
    (c.fbra.state, c.fbra.previous) = (State::Down, State::Stay);
    near(c.report("d.........", 50), DOWN, 720.0);
    assert_eq!((c.fbra.disabled, c.fbra.bounce), (None, None));
}

#[test]
fn goodput_counts_neither_lost_nor_discarded_and_a_cut_never_raises() {
    let mut c = Call::new();
    c.clean();
    c.report("d..l......", 50);
    assert!((c.metric("goodput_bps") - 0.8e6).abs() < 1e3);
    // The interval was sent at 1000, the rate is now 400: 0.9 * (1000 - 2 * 100) is higher.
    let mut c = Call::new();
    c.clean();
    let packets = c.packets(".........l");
    c.fbra.rate = 400e3;
    let rtt = Some(TimeDelta::from_millis(100));
    let now = Timestamp::from_millis(c.now);
    c.fbra.on_cue(&Cue::IntervalReport(IntervalReport { now, packets: &packets, one_way_delay: None, rtt }));
    assert_eq!((c.metric("state"), c.kbps()), (DOWN, 400.0));
    // All lost: 0.9 times -1 times the rate, so the floor.
    let mut c = Call::new();
    c.clean();
    near(c.report("llllllllll", 50), DOWN, 32.0);
}

#[test]
fn watermarks_are_of_clean_reports() {
    let mut c = Call::new();
    for (k, d) in [50, 60, 70, 80, 90, 10, 10, 10, 10, 10].iter().enumerate() {
        c.fbra.state = State::Up;
        c.report(if k < 5 { "..........." } else { "l.........." }, *d);
    }
    c.clean();
    assert_eq!([c.metric("owd_p40_ms"), c.metric("owd_p80_ms"), c.metric("owd_ms")], [60.0, 80.0, 50.0]);
    // Discards also exclude a report; without a delay there is no sign.
    let n = c.fbra.delays.percentile(0.0);
    c.report("d..........", 1);
    assert_eq!((n, c.fbra.delays.percentile(0.0)), (Some(50.0), Some(50.0)));
    let report = |delay: Option<i64>| {
        let mut c = Call::new();
        c.clean();
        let one_way_delay = delay.map(TimeDelta::from_millis).map(|last| OneWayDelay { min: last, mean: last, last });
        let packets = c.packets("..........");
        let now = Timestamp::from_millis(c.now);
        c.fbra.on_cue(&Cue::IntervalReport(IntervalReport { now, packets: &packets, one_way_delay, rtt: None }));
        c.metric("state")
    };
    // alpha_down in PROBE against 50 ms, beta below.
    assert_eq!((report(None), report(Some(50)), report(Some(60)), report(Some(81))), (UP, UP, STAY, DOWN));
    assert_eq!(report(Some(-5)), UP);
}

#[test]
fn little_more_delay_than_the_low_watermark_lessens_fec() {
    let mut c = Call::new();
    c.fbra.previous = State::Down;
    for d in [40, 40, 50, 50, 50] {
        c.fbra.state = State::Up;
        c.report("..........", d);
    }
    (c.fbra.state, c.fbra.previous) = (State::Stay, State::Stay);
    near(c.report("..........", 50), PROBE, 1_000.0);
    let interval = c.metric("fec_interval");
    // 49 / 40 is more than beta, 49 / 50 less than alpha_stay; 2 of 6 are 40 ms: the 40th percentile is the third.
    c.fbra.delays.push(40.0);
    c.fbra.delays.push(40.0);
    near(c.report("..........", 49), PROBE, 1_000.0);
    assert_eq!(c.metric("fec_interval"), interval + 1.0);
    for _ in 0..20 {
        c.fbra.delays.push(40.0);
        near(c.report("..........", 49), PROBE, 1_000.0);
    }
    assert_eq!((c.metric("fec_interval"), c.counts()), (14.0, [1.0, 0.0, 0.0, 0.0]));
    // 48 / 40 is not.
    near(c.report("..........", 48), UP, 1_000.0 * (1.0 + 1.0 / 15.0));
}

#[test]
fn probes_are_counted_by_how_they_end() {
    let outcome = |reports: &[(&str, i64)]| {
        let mut c = Call::new();
        near(c.clean(), PROBE, 1_000.0);
        let last = reports.iter().fold((PROBE, 0.0), |_, r| c.report(r.0, r.1));
        assert_eq!(c.fbra.target().repair, KEPT);
        (last.0, c.counts())
    };
    let (clean, lossy, stale) = (("..........", 50), (".........l", 50), ("l.........", 50));
    assert_eq!(outcome(&[lossy]), (DOWN, [1.0, 0.0, 0.0, 1.0]));
    assert_eq!(outcome(&[stale]), (STAY, [1.0, 0.0, 1.0, 0.0]));
    assert_eq!(outcome(&[clean, clean]), (STAY, [1.0, 1.0, 0.0, 0.0]));
    assert_eq!(outcome(&[clean, lossy]), (DOWN, [1.0, 0.0, 0.0, 1.0]));
    assert_eq!(outcome(&[clean, ("..........", 71)]), (DOWN, [1.0, 0.0, 0.0, 1.0]));
    assert_eq!(outcome(&[clean, ("..........", 70)]), (STAY, [1.0, 1.0, 0.0, 0.0]));
}

#[test]
fn an_early_report_leads_to_down() {
    // 140 and 160 ms against 1.5 * 100 ms.
    for (fates, state, kbps, early) in [
        (".......", DOWN, 1_000.0, 1.0),
        ("........", UP, 1_125.0, 0.0),
        // 0.9 * (1000 - 2 * 1000 / 7).
        ("......l", DOWN, 642.857, 1.0),
    ] {
        let mut c = Call::new();
        c.clean();
        near(c.report(fates, 50), state, kbps);
        assert_eq!((c.metric("early_reports"), c.metric("fec_failed")), (early, early), "{fates}");
    }
    // The next report has the state before DOWN as the previous one, and cuts.
    let mut c = Call::new();
    c.clean();
    c.report(".......", 50);
    near(c.report(".........l", 50), DOWN, 720.0);
}

#[test]
fn two_seconds_of_silence_halve_the_rate() {
    let mut c = Call::new();
    assert_eq!(c.fbra.poll_timeout(), None);
    c.clean();
    c.now = 1_000;
    c.send(false);
    c.now = 1_500;
    c.send(true);
    let at = Timestamp::from_millis;
    assert_eq!(c.fbra.poll_timeout(), Some((at(3_000), TimeoutReason::FeedbackMissing)));
    c.fbra.on_timeout(at(2_999));
    assert_eq!(c.kbps(), 1_000.0);
    c.fbra.on_timeout(at(3_000));
    assert_eq!((c.metric("state"), c.kbps(), c.counts()), (DOWN, 500.0, [1.0, 0.0, 0.0, 1.0]));
    assert_eq!(c.fbra.poll_timeout(), None);
    // Repeated while sending continues, until a report arrives.
    c.now = 3_100;
    c.send(false);
    assert_eq!(c.fbra.poll_timeout().map(|t| t.0), Some(at(5_100)));
    c.fbra.on_timeout(at(5_100));
    assert_eq!(c.kbps(), 250.0);
    c.now = 5_200;
    c.send(false);
    near(c.clean(), STAY, 250.0);
    assert_eq!(c.fbra.poll_timeout(), None);
}

#[test]
fn the_fec_interval_follows_the_rates() {
    let interval = |probes: u8, rate: f64, initial: Option<f64>, highest: Option<f64>| {
        let mut c = Call::with(&[]);
        (0..probes).for_each(|_| c.fbra.probing.start(2));
        highest.into_iter().for_each(|highest| c.fbra.rates.push(Timestamp::ZERO, highest));
        (c.fbra.rate, c.fbra.initial_goodput) = (rate, initial);
        c.fbra.fec_interval(Timestamp::ZERO)
    };
    // The first probe has nothing to compare with.
    assert_eq!(interval(0, 500e3, Some(128e3), Some(500e3)), 2);
    let at = |rate, initial, highest| interval(1, rate, initial, highest);
    // From four fifths of 128 kbit/s, 102.4, where nothing higher was sent in the last 2 s.
    assert_eq!([at(102e3, Some(128e3), Some(102e3)), at(103e3, Some(128e3), Some(103e3))], [7, 14]);
    assert_eq!([at(32e3, Some(128e3), None), at(5e6, Some(128e3), None)], [7, 14]);
    // And from four fifths of the highest rate of the last 2 s.
    assert_eq!([at(199e3, Some(128e3), Some(250e3)), at(201e3, Some(128e3), Some(250e3))], [7, 14]);
    assert_eq!([at(199e3, None, Some(250e3)), at(201e3, None, Some(250e3)), at(1.0, None, None)], [7, 14, 14]);
}

#[test]
fn keeps_to_the_limits() {
    let mut c = Call::new();
    let limits = |floor, ceiling| Limits { floor: DataRate::from_kbps(floor), ceiling: DataRate::from_kbps(ceiling) };
    c.fbra.on_limits(limits(32, 1_050), Timestamp::ZERO);
    near(c.clean(), PROBE, 1_000.0);
    near(c.clean(), UP, 1_050.0);
    // At the ceiling there is no rate to probe for.
    (0..10).for_each(|_| near(c.clean(), STAY, 1_050.0));
    assert_eq!(c.counts(), [1.0, 1.0, 0.0, 0.0]);
    c.fbra.on_limits(limits(2_000, 9_000), Timestamp::ZERO);
    assert_eq!(c.kbps(), 2_000.0);
    near(c.report("llllllllll", 50), DOWN, 2_000.0);
}

#[test]
fn waits_for_repair_packets_if_configured() {
    let mut c = Call::with(&[("fec_interval_min", 7.0), ("min_repair_packets", 2.0)]);
    near(c.clean(), PROBE, 1_000.0);
    c.send(true);
    near(c.clean(), PROBE, 1_000.0);
    c.send(true);
    near(c.clean(), UP, 1_125.0);
}

#[test]
fn a_report_of_nothing_says_nothing() {
    let mut c = Call::new();
    near(c.clean(), PROBE, 1_000.0);
    near(c.report("", 500), PROBE, 1_000.0);
    c.now += 200;
    near(c.report("", 500), PROBE, 1_000.0);
    near(c.clean(), UP, 1_125.0);
}
