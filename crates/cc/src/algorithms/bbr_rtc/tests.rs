//! The target by hand-computed feedback, and a closed loop over a model of one link of 5 Mbit/s and 100 ms.

use super::*;
use crate::cue::{EstimateKind, PacketResult, SentPacket, TransportFeedback};
use crate::testing::link::{Link, Reno, Second, assert_between, mean, run_with};
use crate::testing::{Kbps, REPORT, estimate, kbps, metric};
use weir_units::RemoteTimestamp;

const KBPS: Kbps = Kbps { floor: 50, start: 300, ceiling: 10_000 };
const MS: fn(i64) -> Timestamp = Timestamp::from_millis;

fn bbr(params: &[(&str, f64)]) -> BbrRtc {
    KBPS.sender(params)
}

/// A controller and what a session does around it: packets of 1,000 bytes, and feedback after 100 ms.
struct Fed {
    bbr: BbrRtc,
    next: u64,
    in_flight: Vec<(u64, Timestamp)>,
}

impl Fed {
    fn new(params: &[(&str, f64)]) -> Self {
        Self { bbr: bbr(params), next: 0, in_flight: Vec::new() }
    }
    fn size(&self) -> DataSize {
        DataSize::from_bytes(1_000 * self.in_flight.len() as u64)
    }
    fn send(&mut self, count: u64, ms: i64) {
        for _ in 0..count {
            self.in_flight.push((self.next, MS(ms)));
            let packet = SentPacket::media(MS(ms), self.next, DataSize::from_bytes(1_000));
            self.bbr.on_packet_sent(&SentPacket { bytes_in_flight: self.size(), ..packet });
            self.next += 1;
        }
    }
    /// Reports the first `count` packets in flight, the first `lost` of them as lost.
    fn report(&mut self, count: usize, lost: usize, ms: i64) {
        let results: Vec<_> = self
            .in_flight
            .drain(..count)
            .enumerate()
            .map(|(i, (sequence, departure))| PacketResult {
                sequence,
                departure,
                arrival: (i >= lost).then_some(RemoteTimestamp::ZERO),
                size: DataSize::from_bytes(1_000),
                ecn: Ecn::NotEct,
                probe: 0,
                was_lost: false,
            })
            .collect();
        let bytes_in_flight = self.size();
        let f = TransportFeedback { now: MS(ms), packets: &results, bytes_in_flight, rtt: None };
        self.bbr.on_cue(&Cue::TransportFeedback(f));
    }
    /// Sends `count` packets each 100 ms from `from` to `to` and reports them 100 ms later. With as many at each time,
    /// all rates are the same.
    fn cruise(&mut self, count: u64, from: i64, to: i64) {
        for ms in (from..to).step_by(100) {
            self.send(count, ms);
            self.report(count as usize, 0, ms + 100);
        }
    }
}

#[test]
fn it_starts_at_the_start_rate_with_the_initial_window() {
    let t = bbr(&[]).target();
    assert_eq!(t.media_rate, DataRate::from_kbps(300));
    // 2.885 x 46,720 bytes per 100 ms are 10.78 Mbit/s, above the ceiling, which bounds padding.
    let pacing = DataRate::from_bps(10_782_976);
    assert_eq!((t.pacing_rate, t.padding_rate), (pacing, DataRate::from_mbps(10)));
    assert_eq!(t.window, Some(DataSize::from_bytes(46_720)));
    let t = bbr(&[("initial_window", 14_600.0)]).target();
    assert_eq!(t.pacing_rate, DataRate::from_bps_f64(2.885 * 14_600.0 * 8.0 / 0.1));
}

#[test]
fn the_first_feedback_measures_the_flight() {
    let mut f = Fed::new(&[]);
    f.send(10, 0);
    f.report(10, 0, 100);
    // 10,000 bytes in 100 ms; the media gets that, and the pacer what the initial window sends in a round trip.
    assert_eq!(kbps(&f.bbr), 800.0);
    assert_eq!(metric(&f.bbr, "bandwidth_bps"), 800e3);
    assert_eq!(metric(&f.bbr, "min_rtt_ms"), 100.0);
    assert_eq!(f.bbr.target().pacing_rate, DataRate::from_bps(46_720 * 8 * 10));
    // In STARTUP what is acknowledged widens the window.
    assert_eq!(f.bbr.target().window, Some(DataSize::from_bytes(56_720)));
}

#[test]
fn a_bandwidth_that_stays_ends_startup_and_drain_and_begins_a_cycle() {
    let mut f = Fed::new(&[]);
    f.cruise(10, 0, 300);
    assert_eq!(metric(&f.bbr, "mode"), 0.0);
    // Three round trips after the first without a quarter more. Nothing is in flight, so DRAIN has nothing to do.
    f.cruise(10, 300, 400);
    assert_eq!(metric(&f.bbr, "mode"), 2.0);
    assert_eq!(metric(&f.bbr, "rounds"), 4.0);
    let gain = metric(&f.bbr, "pacing_gain");
    assert_eq!(f.bbr.target().pacing_rate, DataRate::from_bps_f64(800e3 * gain));
    // Twice the product of 800 kbit/s and 100 ms, and what was acknowledged at once: the window shrinks to it.
    let window = f.bbr.target().window.expect("a window").as_bytes();
    assert!((20_000..=30_000).contains(&window), "{window}");
}

#[test]
fn each_cycle_has_a_phase_above_and_one_below_the_bandwidth() {
    let mut f = Fed::new(&[]);
    f.cruise(10, 0, 400);
    let mut seen = Vec::new();
    for k in 0..32 {
        // The path passes 10 packets in a round trip; what the gain adds is in flight a round trip longer.
        f.send((10.0 * metric(&f.bbr, "pacing_gain")).round() as u64, 400 + 101 * k);
        f.report(10.min(f.in_flight.len()), 0, 501 + 101 * k);
        let t = f.bbr.target();
        let gain = metric(&f.bbr, "pacing_gain");
        assert_eq!(t.padding_rate, if gain > 1.0 { t.pacing_rate } else { DataRate::ZERO });
        assert!(t.media_rate <= t.pacing_rate);
        seen.push(gain);
    }
    let above: Vec<_> = (0..seen.len()).filter(|&i| seen[i] == 1.25).collect();
    assert!((3..=5).contains(&above.len()), "{seen:?}");
    assert!(above.iter().all(|&i| seen.get(i + 1).is_none_or(|g| *g == 0.75)), "{seen:?}");
    assert!(above.windows(2).all(|w| w[1] - w[0] == 8), "{seen:?}");
}

#[test]
fn the_least_round_trip_is_measured_again_after_ten_seconds() {
    let mut f = Fed::new(&[]);
    f.cruise(10, 0, 1_000);
    // From now on each takes 150 ms, as over a path that has become longer.
    let mut ms = 1_000;
    while metric(&f.bbr, "mode") != 3.0 {
        f.send(10, ms);
        f.report(10, 0, ms + 150);
        ms += 150;
        assert!(ms < 12_000, "never");
    }
    assert!(ms > 10_000, "{ms}");
    let t = f.bbr.target();
    assert_eq!((t.window, t.padding_rate), (Some(DataSize::from_bytes(5_840)), DataRate::ZERO));
    assert_eq!(metric(&f.bbr, "min_rtt_ms"), 150.0);
    // At once below its window: 200 ms and a round trip.
    let since = ms;
    while metric(&f.bbr, "mode") == 3.0 {
        f.send(5, ms);
        f.report(5, 0, ms + 150);
        ms += 150;
    }
    assert!((since + 200..=since + 450).contains(&ms), "{since} to {ms}");
    let by_bdp = [("probe_rtt_by_bdp", 1.0), ("encoder_gain_probe_rtt", 0.5)];
    let mut f = Fed::new(&by_bdp);
    f.cruise(10, 0, 1_000);
    let mut ms = 1_000;
    while metric(&f.bbr, "mode") != 3.0 {
        f.send(15, ms);
        f.report(15, 0, ms + 150);
        ms += 150;
    }
    // 800 kbit/s for 150 ms are 15,000 bytes, of which it keeps three quarters; the media gets half of the rate.
    assert_eq!(f.bbr.target().window, Some(DataSize::from_bytes(11_250)));
    assert_eq!(kbps(&f.bbr), 400.0);
}

#[test]
fn a_loss_bounds_the_flight_for_a_round_trip() {
    let mut f = Fed::new(&[]);
    f.cruise(10, 0, 1_000);
    f.send(20, 1_000);
    f.report(10, 2, 1_100);
    assert_eq!(metric(&f.bbr, "in_recovery"), 1.0);
    // Bytes in flight, and again those just acknowledged.
    assert_eq!(f.bbr.target().window, Some(DataSize::from_bytes(10_000 + 8_000)));
    f.report(10, 0, 1_110);
    f.send(10, 1_110);
    f.report(10, 0, 1_210);
    assert_eq!(metric(&f.bbr, "in_recovery"), 0.0);
    let mut f = Fed::new(&[("rate_based_recovery", 1.0)]);
    f.cruise(10, 0, 1_000);
    let window = f.bbr.target().window;
    f.send(20, 1_000);
    f.report(10, 2, 1_100);
    assert_eq!(metric(&f.bbr, "in_recovery"), 1.0);
    assert!(f.bbr.target().window >= window, "not by a window");
}

#[test]
fn a_long_queue_is_drained_and_then_not_added_to() {
    let mut f = Fed::new(&[]);
    f.cruise(10, 0, 1_000);
    let pacing = f.bbr.target().pacing_rate;
    let mut frame = |bytes, age_ms| {
        let queued = DataSize::from_bytes(bytes);
        let oldest_age = TimeDelta::from_millis(age_ms);
        f.bbr.on_queue(&QueueState { now: MS(1_000), added: DataSize::ZERO, queued, oldest_age });
        f.bbr.target()
    };
    assert_eq!(frame(100_000, 0).pacing_rate, pacing, "a second at the bandwidth");
    let t = frame(200_000, 2_000);
    assert_eq!((t.pacing_rate, t.media_rate), (DataRate::from_kbps(1_600), DataRate::from_kbps(720)), "a tenth less");
    assert_eq!(frame(260_000, 2_000).media_rate, DataRate::from_kbps(50), "more than 2 s at up to 1 Mbit/s");
    f.send(1, 1_010);
    assert_eq!((f.bbr.target().pacing_rate, kbps(&f.bbr)), (pacing, 800.0), "the queue is empty");
}

#[test]
fn a_full_window_lets_a_packet_out_each_half_second() {
    let mut f = Fed::new(&[]);
    f.send(45, 0);
    assert_eq!(f.bbr.poll_timeout(), None, "45,000 bytes and a packet fit into 46,720");
    f.send(1, 10);
    let due = |f: &Fed| f.bbr.poll_timeout().map(|(at, _)| at);
    assert_eq!(due(&f), Some(MS(510)));
    f.bbr.on_timeout(MS(509));
    assert_eq!(f.bbr.target().window, Some(DataSize::from_bytes(46_720)));
    f.bbr.on_timeout(MS(510));
    assert_eq!((f.bbr.target().window, due(&f)), (Some(DataSize::from_bytes(47_452)), Some(MS(1_010))));
    f.send(1, 515);
    assert_eq!((f.bbr.target().window, due(&f)), (Some(DataSize::from_bytes(46_720)), Some(MS(1_015))));
    f.report(47, 0, 600);
    assert_eq!(f.bbr.poll_timeout(), None);
}

#[test]
fn seeds_spread_the_cycles() {
    let gains: Vec<_> = (0..40)
        .map(|seed| {
            let start = [("startup_rounds", 0.0)];
            let config = Config::from_params("bbr-rtc", &start.map(|(n, v)| (n.into(), v))).expect("valid");
            let bbr = BbrRtc::new(config, &KBPS.start()).expect("valid").with_seed(seed);
            metric(&bbr, "pacing_gain")
        })
        .collect();
    assert!(gains.iter().all(|&g| g == 1.25 || g == 1.0), "never in the phase below: {gains:?}");
    // One of seven phases is above.
    let above = gains.iter().filter(|&&g| g == 1.25).count();
    assert!((2..=12).contains(&above), "{gains:?}");
}

#[test]
fn only_feedback_and_limits_change_the_target() {
    let mut bbr = bbr(&[]);
    let before = bbr.target();
    bbr.on_cue(&Cue::ReportBlock(crate::cue::ReportBlock { fraction_lost: 0.5, ..REPORT }));
    bbr.on_cue(&estimate(100, EstimateKind::Remb));
    assert_eq!((bbr.target(), bbr.poll_timeout()), (before, None));
    bbr.on_limits(Kbps { floor: 400, ..KBPS }.limits(), MS(1));
    assert_eq!(kbps(&bbr), 400.0);
    bbr.on_limits(Kbps { floor: 50, ceiling: 200, ..KBPS }.limits(), MS(2));
    assert_eq!((kbps(&bbr), bbr.target().padding_rate), (200.0, DataRate::from_kbps(200)));
    assert_eq!(bbr.target().pacing_rate, before.pacing_rate, "a backlog has to shrink");
}

const LINK: Link =
    Link { capacity: |_| 5_000, buffer: 187_500, one_way: 50, feedback: 100, is_exact: true, ..Link::DEFAULT };

fn run(link: &Link, seconds: i64) -> Vec<Second> {
    run_with(&mut bbr(&[]), link, seconds, &mut Reno::default())
}

#[test]
fn a_lone_flow_has_the_link_after_two_seconds() {
    let r = run(&LINK, 60);
    assert_between("target in the second second", r[1].target, 4_000.0, 5_100.0);
    assert_between("target", mean(&r[3..], |s| s.target), 4_700.0, 5_100.0);
    assert_between("received", mean(&r[3..], |s| s.received), 4_600.0, 5_000.0);
    // The probe's quarter of a round trip, more than it drains.
    assert_between("queue", mean(&r[3..], |s| s.queue), 1.0, 20.0);
    assert_between("longest queue", r[3..].iter().map(|s| s.max_queue).fold(0.0, f64::max), 25.0, 90.0);
    // STARTUP fills the path twice over; then padding is only what a probe exceeds the media by.
    let padded = |s: &[Second]| {
        s.iter().map(|s| f64::from(s.padded)).sum::<f64>() / s.iter().map(|s| f64::from(s.sent)).sum::<f64>()
    };
    assert_between("padding in the first second", padded(&r[..1]), 0.2, 0.6);
    assert_between("padding", padded(&r[3..]), 0.005, 0.05);
    // Media waits while PROBE_RTT empties the path, every ten seconds, and is sent later by the probes alone.
    assert_between("wait in the pacer", mean(&r[3..], |s| s.waiting), 20.0, 200.0);
}

#[test]
fn a_halved_capacity_is_found_as_old_samples_expire_and_a_doubled_one_by_probes() {
    let half = |ms| if (20_000..50_000).contains(&ms) { 2_500 } else { 5_000 };
    let r = run(&Link { capacity: half, ..LINK }, 80);
    // Ten round trips of up to 700 ms keep the old bandwidth, and the window of two products the queue.
    assert_between("target after 3 s", r[22].target, 4_000.0, 5_100.0);
    assert_between("queue after 3 s", r[22].queue, 250.0, 600.0);
    assert_between("target after 10 s", mean(&r[29..49], |s| s.target), 1_500.0, 2_600.0);
    assert_between("queue after 20 s", mean(&r[39..49], |s| s.queue), 5.0, 300.0);
    assert_between("received", mean(&r[22..49], |s| s.received), 2_200.0, 2_500.0);
    assert_between("wait in the pacer", r[20..].iter().map(|s| s.waiting).fold(0.0, f64::max), 500.0, 4_500.0);
    // A quarter more in each cycle of eight round trips.
    assert_between("target 2 s after the doubling", r[51].target, 2_500.0, 4_000.0);
    assert_between("target 10 s after the doubling", mean(&r[60..], |s| s.target), 4_500.0, 5_100.0);
}

#[test]
fn random_loss_slows_the_start_and_little_else() {
    let r = run(&Link { loss: 0.05, ..LINK }, 60);
    assert_between("after the start", r[3].target, 1_200.0, 4_000.0);
    // Of 5 Mbit/s, 95 % arrive.
    assert_between("received", mean(&r[20..], |s| s.received), 4_100.0, 4_750.0);
    let r = run_with(&mut bbr(&[("startup_exit_on_loss", 0.0)]), &Link { loss: 0.05, ..LINK }, 5, &mut Reno::default());
    assert_between("if losses do not end STARTUP", r[3].target, 4_000.0, 5_100.0);
}

#[test]
fn padding_keeps_the_estimate_where_the_encoder_sends_half() {
    let r = run(&Link { encoder: |_| 0.5, ..LINK }, 60);
    assert_between("target", mean(&r[5..], |s| s.target), 4_300.0, 5_100.0);
    assert_between("received", mean(&r[5..], |s| s.received), 2_400.0, 3_500.0);
}

#[test]
fn it_keeps_more_beside_a_loss_based_flow_than_gcc() {
    let beside = |c: &mut dyn Controller| run_with(c, &LINK, 100, &mut Reno::between(30_000, 70_000));
    let r = beside(&mut bbr(&[]));
    assert_between("beside it", mean(&r[40..70], |s| s.received), 3_000.0, 4_600.0);
    assert_between("after it", mean(&r[80..], |s| s.received), 4_500.0, 5_000.0);
    let gcc = beside(&mut KBPS.sender::<crate::algorithms::gcc::Gcc>(&[("overhead", 0.0)]));
    assert_between("GCC beside it", mean(&gcc[40..70], |s| s.received), 1_000.0, 2_800.0);
}
