use super::*;
use crate::cue::EstimateKind;
use crate::testing::{self, Kbps, REPORT, estimate, kbps};
use weir_units::DataSize;

fn sender() -> Cnadu {
    let mut s: Cnadu = Kbps { floor: 32, start: 400, ceiling: 3_000 }.sender(&[]);
    s.on_packet_sent(&SentPacket::media(Timestamp::ZERO, 0, DataSize::from_bytes(1_000)));
    s
}
fn requested(s: &mut Cnadu, kbps: u64) -> f64 {
    s.on_cue(&estimate(kbps, EstimateKind::Tmmbr));
    testing::kbps(s)
}
/// Report number `n`, of 100 packets 10 ms apart; `fates` are the exceptions by index.
fn report(s: &mut Cnadu, n: u64, rtt_ms: i64, fates: &[(u64, Fate)]) -> f64 {
    let packet = |k: u64| IntervalPacket {
        sequence: 100 * n + k,
        departure: Timestamp::from_millis(10 * (100 * n + k) as i64),
        size: DataSize::from_bytes(1_000),
        fate: fates.iter().find(|f| f.0 == k).map_or(Fate::Received, |f| f.1),
        repaired: false,
    };
    let packets: Vec<_> = (0..100).map(packet).collect();
    let (now, rtt) = (Timestamp::from_secs(n as i64 + 1), Some(TimeDelta::from_millis(rtt_ms)));
    s.on_cue(&Cue::IntervalReport(IntervalReport { now, packets: &packets, one_way_delay: None, rtt }));
    kbps(s)
}
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.01
}

#[test]
fn without_loss_it_takes_the_receivers_estimate() {
    let mut s = sender();
    assert!(near(kbps(&s), 400.0) && near(requested(&mut s, 500), 500.0) && near(requested(&mut s, 300), 300.0));
    assert!(near(report(&mut s, 0, 100, &[]), 300.0) && near(requested(&mut s, 0), 32.0));
}

#[test]
fn with_loss_the_rate_lies_between_the_estimates() {
    let mut s = sender();
    requested(&mut s, 1_000);
    report(&mut s, 0, 100, &[]);
    // Two losses at most 100 ms apart are one event; a third, 300 ms later, is another: two events.
    let lost = Fate::Lost;
    let rate = report(&mut s, 1, 100, &[(30, lost), (35, lost), (65, lost)]);
    let p = s.losses.mean(true).map_or(0.0, f64::recip);
    // Before the first event 130 packets, and 35 from it to the second.
    assert!(near(1.0 / p, (130.0 + 35.0) / 2.0), "{}", 1.0 / p);
    let tcp =
        8.0 / (0.1 * libm::sqrt(2.0 * p / 3.0) + 0.4 * 3.0 * libm::sqrt(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p));
    assert!((780.0..830.0).contains(&tcp) && near(rate, tcp), "{rate} of {tcp}");
    // The next report has no losses: the rate lies midway.
    let rate = report(&mut s, 2, 100, &[]);
    let own = s.tcp.expect("after a loss") * 1e-3;
    assert!(own >= tcp && near(rate, 0.5 * (own + 1_000.0)), "{rate}, {own}");
    // Where TCP would send far more than the receiver's estimate, the bound is a tenth above the latter.
    assert!(near(requested(&mut s, 200), 0.5 * (200.0 + 220.0)));
}

#[test]
fn growing_round_trip_times_hold_the_rate_and_then_lower_it() {
    let mut s = sender();
    requested(&mut s, 400);
    (0..10).for_each(|n| assert!(near(report(&mut s, n, 100, &[]), 400.0)));
    // Beyond 1.1 times the 75th percentile: no raise.
    report(&mut s, 10, 111, &[]);
    assert!(near(requested(&mut s, 600), 400.0));
    report(&mut s, 11, 100, &[]);
    assert!(near(kbps(&s), 600.0));
    // Beyond 1.3 times the 90th: no more than the lesser estimate, even where that rises.
    report(&mut s, 12, 160, &[]);
    assert!(near(requested(&mut s, 500), 500.0) && near(requested(&mut s, 700), 500.0));
    assert_eq!(s.level, Level::Congested);
}

#[test]
fn missed_playout_lowers_the_rate_for_a_while() {
    let mut s = sender();
    requested(&mut s, 400);
    report(&mut s, 0, 100, &[]);
    let discarded: Vec<_> = (40..60).map(|k| (k, Fate::Discarded)).collect();
    // A fifth of the packets is discarded: a tenth of the rate is taken off.
    assert!(near(report(&mut s, 1, 100, &discarded), 360.0));
    assert!(near(requested(&mut s, 500), 360.0));
    // Then a fifth more each second, and half of the difference to the receiver's estimate.
    let own = 360.0 * 1.2;
    assert!(near(report(&mut s, 2, 100, &[]), 0.5 * (own + 500.0)));
    (3..20).for_each(|n| {
        report(&mut s, n, 100, &[]);
    });
    assert!(s.discard_bound.is_none() && near(kbps(&s), 500.0));
    // One packet of 250 is below the threshold.
    report(&mut s, 20, 100, &[]);
    assert!(s.discards == 0.0 && s.tcp.is_none());
}

#[test]
fn an_empty_buffer_holds_the_rate() {
    let mut s = sender();
    requested(&mut s, 400);
    let unit =
        |playout_delay| Cue::NextDataUnit(NextDataUnit { now: Timestamp::ZERO, next_sequence: 1, playout_delay });
    // A session without playout reports no playout delay and is not held.
    s.on_cue(&unit(None));
    assert!(near(requested(&mut s, 450), 450.0));
    s.on_cue(&unit(Some(TimeDelta::from_millis(20))));
    s.on_cue(&unit(None));
    assert!(near(requested(&mut s, 500), 450.0) && near(requested(&mut s, 300), 300.0));
    s.on_cue(&unit(Some(TimeDelta::from_millis(20))));
    assert!(near(requested(&mut s, 500), 500.0));
}

#[test]
fn report_blocks_stand_in_for_run_lengths() {
    let mut s = sender();
    requested(&mut s, 2_000);
    let mut block = |n: i64, fraction_lost| {
        s.on_cue(&Cue::ReportBlock(ReportBlock {
            now: Timestamp::from_secs(n),
            fraction_lost,
            rtt: Some(TimeDelta::from_millis(100)),
            ..REPORT
        }));
        (s.losses.mean(true).map(f64::round), kbps(&s))
    };
    assert_eq!(block(1, 0.0), (None, 2_000.0));
    let (interval, rate) = block(2, 0.02);
    assert!(
        interval.is_some_and(|i| (190.0..=200.0).contains(&i)) && (1_000.0..1_500.0).contains(&rate),
        "{interval:?} {rate}"
    );
    assert!(block(3, f64::NAN).1.is_finite());
}

#[test]
fn halves_the_rate_where_reports_stay_away() {
    let mut s = sender();
    assert_eq!(s.poll_timeout(), Some((Timestamp::from_secs(2), TimeoutReason::FeedbackMissing)));
    s.on_timeout(Timestamp::from_secs(1));
    assert!(near(kbps(&s), 400.0));
    s.on_timeout(Timestamp::from_secs(2));
    assert!(near(kbps(&s), 200.0));
    assert_eq!(s.poll_timeout().map(|t| t.0), Some(Timestamp::from_secs(4)));
    requested(&mut s, 300);
    assert_eq!(s.poll_timeout(), None);
}
