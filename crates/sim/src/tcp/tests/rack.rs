//! RACK-TLP (RFC 8985) and D-SACK (RFC 2883) in a connection.

use super::common::{capacity, delivered, network, sender};
use super::*;
use weir_path::Reordering;

fn rack() -> TcpConfig {
    TcpConfig { loss_detection: LossDetection::Rack, dsack: true, ..config() }
}

fn transfer(segments: u64) -> Workload {
    Workload::Transfer { size: DataSize::from_bytes(segments * MSS) }
}
/// When each segment was sent, by its number.
fn times(w: &Wire, segment: u64) -> Vec<i64> {
    w.log.iter().filter(|l| l.1.seq == segment * MSS && l.1.len > 0).map(|l| l.0.as_millis()).collect()
}

/// Section 3.4, figure 1: the last three of four are lost, and so is the first of the retransmissions.
#[test]
fn figure_1_is_followed_event_by_event() {
    let mut w = Wire::new(rack(), transfer(4), &[1, 2, 3, 5]);
    w.run(Timestamp::from_secs(5));
    // The probe is sent two round trips after the acknowledgement of P0, at 100 ms.
    assert_eq!(times(&w, 3), [0, 300]);
    assert_eq!(times(&w, 2), [0, 400]);
    assert_eq!(times(&w, 1), [0, 400, 500]);
    let s = w.sender.stats();
    assert_eq!((s.transfers, s.timeouts, s.probes, s.retransmits), (1, 0, 1, 4), "{s:?}");
    assert_eq!(s.transfer_time, TimeDelta::from_millis(600));
    // The loss of a retransmission is a second indication of congestion.
    assert_eq!(s.recoveries, 2);
}

/// Section 3.2: the last three of a hundred are lost, and repaired within four round trips.
#[test]
fn a_tail_is_repaired_in_four_round_trips() {
    let c = TcpConfig { initial_window: 100, ..rack() };
    let mut w = Wire::new(c, transfer(100), &[97, 98, 99]);
    w.run(Timestamp::from_secs(5));
    let s = w.sender.stats();
    assert_eq!((s.timeouts, s.probes, s.retransmits, s.recoveries), (0, 1, 3, 1), "{s:?}");
    assert_eq!(s.transfer_time, TimeDelta::from_millis(100 + 400));
    assert_eq!(w.sender.window().cwnd, w.sender.window().ssthresh, "the window is reduced, not reset");
    // Counts of acknowledgements leave it to the timer, one second after the last one.
    let mut w = Wire::new(TcpConfig { loss_detection: LossDetection::DupAck, ..c }, transfer(100), &[97, 98, 99]);
    w.run(Timestamp::from_secs(5));
    let s = w.sender.stats();
    assert_eq!((s.timeouts, s.probes), (1, 0), "{s:?}");
    assert!(s.transfer_time >= TimeDelta::from_millis(1_300), "{s:?}");
}

#[test]
fn a_lost_last_segment_costs_the_probe_timeout() {
    let mut w = Wire::new(rack(), transfer(10), &[9]);
    w.run(Timestamp::from_secs(5));
    let s = w.sender.stats();
    assert_eq!((s.timeouts, s.probes, s.retransmits), (0, 1, 1), "{s:?}");
    // The acknowledgement of the ninth at 100 ms, two round trips and the longest delay of an acknowledgement.
    assert_eq!(times(&w, 9), [0, 500]);
    // If the probe is lost too, the timer follows one timeout later.
    let mut w = Wire::new(rack(), transfer(10), &[9, 10]);
    w.run(Timestamp::from_secs(5));
    assert_eq!(times(&w, 9), [0, 500, 1_500]);
    assert_eq!((w.sender.stats().timeouts, w.sender.stats().transfers), (1, 1));
}

#[test]
fn a_probe_sends_new_data_beyond_the_window() {
    // All but the first of an initial window are lost: new data is there, but no acknowledgement that allows it.
    let lost: Vec<_> = (1..12).collect();
    let mut w = Wire::new(rack(), Workload::Bulk, &lost);
    w.run(Timestamp::from_millis(350));
    let probe = w.log.last().expect("sent");
    assert_eq!((probe.0.as_millis(), probe.1.seq), (300, 12 * MSS), "twelve were sent before");
    assert_eq!(w.sender.bytes_in_flight().as_bytes(), 12 * MSS);
    assert_eq!(probe.2.cwnd, 11 * MSS);
    w.run(Timestamp::from_secs(3));
    let s = w.sender.stats();
    assert_eq!((s.timeouts, s.probes, s.retransmits), (0, 1, 11), "{s:?}");
}

/// A probe that has repaired a loss reduces the window once later data is acknowledged (section 7.4.2); one that was not
/// needed does not.
#[test]
fn a_loss_repaired_by_the_probe_reduces_the_window() {
    let objects = Workload::OnOff {
        size: Distribution::Constant { value: 10.0 * MSS as f64 },
        off: Distribution::Constant { value: 0.3 },
        starts_on: true,
        persistent: true,
        seed: 1,
    };
    let c = TcpConfig { handshake: true, ..rack() };
    let ssthresh = |w: &mut Wire| {
        w.run(Timestamp::from_millis(1_350));
        assert_eq!((w.sender.stats().transfers, w.sender.stats().timeouts), (2, 0));
        assert_eq!(w.sender.stats().probes, 1);
        w.sender.window().ssthresh
    };
    // Number 10 on the wire is the last of the first object.
    let mut repaired = Wire::new(c, objects, &[10]);
    assert_eq!(ssthresh(&mut repaired), 5 * MSS);
    // The same probe, but the segment was only late.
    let mut unneeded = Wire::new(c, objects, &[]);
    unneeded.late = vec![(10, TimeDelta::from_millis(450))];
    assert_eq!(ssthresh(&mut unneeded), u64::MAX);
    assert_eq!(unneeded.sender.stats().dsacks, 1);
}

/// Section 9.1: a flow limited by its application needs no three later segments.
#[test]
fn a_live_source_repairs_a_loss_after_its_next_segment() {
    // A segment every 100 ms; the one sent at 500 ms is lost.
    let source = Workload::Stream { rate: DataRate::from_kbps(80) };
    let repeat = |c: TcpConfig| {
        let mut w = Wire::new(c, source, &[4]);
        w.run(Timestamp::from_secs(3));
        let s = w.sender.stats();
        assert_eq!((s.retransmits, s.timeouts, s.probes), (1, 0, 0), "{s:?}");
        times(&w, 4)
    };
    // The next segment's acknowledgement is received at 700 ms, and those after it every 100 ms.
    assert_eq!(repeat(rack()), [500, 700]);
    assert_eq!(repeat(config()), [500, 900]);
}

/// Section 9.3: a window of 20 segments is never full, and ten of ten are lost.
#[test]
fn a_lost_flight_is_repaired_without_a_timeout() {
    let c = TcpConfig { initial_window: 20, handshake: true, prr: true, ..rack() };
    let mut w = Wire::new(c, transfer(10), &(1..11).collect::<Vec<_>>());
    w.run(Timestamp::from_secs(5));
    let s = w.sender.stats();
    assert_eq!((s.timeouts, s.probes, s.retransmits, s.recoveries), (0, 1, 10, 1), "{s:?}");
    // A handshake, the probe two round trips after the flight, and four round trips as in slow start: the probe's
    // acknowledgement allows the first two.
    assert_eq!(w.numbers(0, 300), [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!([300, 400, 500, 600, 700].map(|ms| w.numbers(ms, ms + 1).len()), [1, 2, 4, 3, 0]);
    assert_eq!(s.transfer_time, TimeDelta::from_millis(700));
    // Half of the flight (RFC 5681, equation 4); the example halves the window.
    assert_eq!(w.sender.window().ssthresh, 5 * MSS);
}

#[test]
fn reordering_is_waited_for_once_it_was_seen() {
    let limits = TcpConfig { initial_window: 10, initial_ssthresh: Some(DataSize::from_bytes(20 * MSS)), ..rack() };
    // The last but one of the second flight, and two in the middle of later ones, arrive 20 ms late: less than a quarter
    // of the round trip.
    let late = |by: &[(u64, i64)]| by.iter().map(|&(k, ms)| (k, TimeDelta::from_millis(ms))).collect::<Vec<_>>();
    let mut w = Wire::new(limits, Workload::Bulk, &[]);
    w.late = late(&[(28, 20), (40, 20), (90, 20)]);
    w.run(Timestamp::from_secs(3));
    let s = w.sender.stats();
    assert_eq!((s.retransmits, s.recoveries, s.timeouts), (0, 0, 0), "{s:?}");
    // Counts of acknowledgements retransmit both later ones.
    let mut w = Wire::new(TcpConfig { loss_detection: LossDetection::DupAck, ..limits }, Workload::Bulk, &[]);
    w.late = late(&[(28, 20), (40, 20), (90, 20)]);
    w.run(Timestamp::from_secs(3));
    assert_eq!(w.sender.stats().retransmits, 2);
    // 40 ms are more than the window of 25 ms. Each D-SACK adds 25 ms, so only the first is retransmitted.
    let mut w = Wire::new(limits, Workload::Bulk, &[]);
    w.late = late(&[(28, 20), (40, 40), (90, 40), (140, 40)]);
    w.run(Timestamp::from_secs(3));
    let s = w.sender.stats();
    assert_eq!((s.retransmits, s.recoveries, s.dsacks, s.timeouts), (1, 1, 1, 0), "{s:?}");
    assert_eq!(w.receiver.stats().useless, 1);
}

/// RFC 2883, section 4: examples 1 to 6, in units of 500 bytes.
#[test]
fn the_receiver_reports_duplicates_first() {
    let acks = |segments: &[(u64, u64)]| {
        let mut r = Receiver::new(TcpConfig { dsack: true, ..config() }).expect("valid");
        let mut p = Packet::blank();
        let mut acks = vec![];
        for &(start, end) in segments {
            let len = (end - start) as u32 * 500;
            p.body = Body::Tcp(TcpSegment { seq: start * 500, len, ..TcpSegment::default() });
            r.on_packet(Timestamp::ZERO, &p);
            assert!(r.poll_transmit(Timestamp::ZERO, &mut p));
            let Body::Tcp(s) = p.body else { unreachable!("a segment") };
            let blocks: Vec<_> = s.sack_blocks().iter().map(|b| (b.start / 500, b.end / 500)).collect();
            acks.push((s.ack / 500, blocks, s.dsack().map(|b| (b.start / 500, b.end / 500))));
        }
        acks.pop().expect("an acknowledgement")
    };
    let before = (0, 6);
    assert_eq!(acks(&[before, (6, 7), (7, 8), (6, 7)]), (8, vec![(6, 7)], Some((6, 7))));
    assert_eq!(acks(&[before, (6, 7), (7, 8), (9, 10), (6, 7)]), (8, vec![(6, 7), (9, 10)], Some((6, 7))));
    assert_eq!(acks(&[(0, 8), (9, 10), (10, 11), (10, 11)]), (8, vec![(10, 11), (9, 11)], Some((10, 11))));
    assert_eq!(acks(&[(0, 2), (4, 5), (2, 3), (2, 4)]), (5, vec![(2, 3)], Some((2, 3))));
    let five = [(0, 2), (6, 7), (2, 3), (4, 5), (2, 5)];
    assert_eq!(acks(&five), (5, vec![(2, 3), (6, 7)], Some((2, 3))));
    let six = [(0, 2), (7, 8), (3, 4), (5, 6), (3, 6)];
    assert_eq!(acks(&six), (2, vec![(3, 4), (3, 6), (7, 8)], Some((3, 4))));
    // A block that is neither acknowledged nor part of the next one is no duplicate.
    assert_eq!(acks(&[(0, 2), (3, 4), (5, 6)]), (2, vec![(5, 6), (3, 4)], None));
}

/// A bulk flow's share of 10 Mbit/s in a minute with a round trip of 40 ms, and its counters.
fn share(config: TcpConfig, change: impl Fn(&mut LinkConfig)) -> (f64, SenderStats) {
    let rate = DataRate::from_mbps(10);
    let reverse = LinkConfig::constant(rate, TimeDelta::from_millis(20));
    let mut forward = LinkConfig { limit: Limit::Time(TimeDelta::from_millis(50)), ..reverse.clone() };
    change(&mut forward);
    let (mut sim, _, pairs) = network(7, forward, reverse, &[(config, Workload::Bulk, 0)]);
    assert_eq!(sim.run_until(Timestamp::from_secs(60)), Outcome::Reached);
    (delivered(&sim, pairs[0].1) / capacity(rate, 60.0), sender(&sim, pairs[0].0).stats())
}

fn of(variant: Variant, loss_detection: LossDetection) -> TcpConfig {
    TcpConfig { loss_detection, dsack: true, ..TcpConfig::of(variant) }
}

#[test]
fn every_algorithm_has_at_least_the_rate_that_it_has_with_counts() {
    for variant in Variant::ALL {
        for prr in [false, true] {
            let (counted, _) = share(TcpConfig { prr, ..of(variant, LossDetection::DupAck) }, |_| ());
            let (timed, s) = share(TcpConfig { prr, ..of(variant, LossDetection::Rack) }, |_| ());
            assert!((counted - 0.01..=1.0).contains(&timed), "{variant:?} prr {prr}: {timed}, counts {counted}: {s:?}");
            assert_eq!(s.timeouts, 0, "{variant:?} prr {prr}: {s:?}");
        }
    }
}

#[test]
fn reordering_within_a_quarter_of_the_round_trip_costs_no_rate() {
    // One packet in 20 arrives 8 ms late, ten packets' time; the minimum round-trip time is 40 ms.
    let reorder =
        |link: &mut LinkConfig| link.reordering = Some(Reordering { share: 0.05, extra: TimeDelta::from_millis(8) });
    let (counted, c) = share(of(Variant::Cubic, LossDetection::DupAck), reorder);
    let (timed, t) = share(of(Variant::Cubic, LossDetection::Rack), reorder);
    assert!(timed > 0.9, "{timed} {t:?}");
    assert!(counted < 0.6, "{counted} {c:?}");
}

#[test]
fn short_flows_wait_for_fewer_timeouts() {
    // 20 segments each, of which one in 50 is lost.
    let run = |loss_detection| {
        // Without handshakes, whose losses are timeouts in any case.
        let config = TcpConfig { handshake: false, ..of(Variant::Cubic, loss_detection) };
        let flows = ShortFlows { arrivals_per_s: 5.0, size: Distribution::Constant { value: 28_960.0 }, seed: 3 };
        let reverse = LinkConfig::constant(DataRate::from_mbps(10), TimeDelta::from_millis(20));
        let loss = weir_path::Loss::Independent { share: 0.02 };
        let forward = LinkConfig { limit: Limit::Time(TimeDelta::from_millis(200)), loss, ..reverse.clone() };
        let mut sim = Simulator::with_observer(7, StreamHash::default());
        let route = point_to_point(&mut sim, &DuplexConfig { forward, reverse }).expect("valid");
        let sender = Endpoint::ShortSender(Box::new(ShortSender::new(config, flows).expect("valid")));
        let receiver = Endpoint::ShortReceiver(Box::new(ShortReceiver::new(config).expect("valid")));
        let (a, b) = (sim.add_agent(sender, Timestamp::ZERO), sim.add_agent(receiver, Timestamp::ZERO));
        sim.connect(a, b, &route);
        assert_eq!(sim.run_until(Timestamp::from_secs(200)), Outcome::Reached);
        let Endpoint::ShortSender(s) = sim.agent(a) else { unreachable!("it stays what it is") };
        s.stats()
    };
    let (counted, timed) = (run(LossDetection::DupAck), run(LossDetection::Rack));
    assert!(counted.completed.abs_diff(timed.completed) < 10 && timed.completed > 900, "{timed:?}");
    assert!(timed.timeouts < counted.timeouts / 3, "{} and {}", timed.timeouts, counted.timeouts);
    assert!(timed.active_time < counted.active_time * 9 / 10, "{} and {}", timed.active_time, counted.active_time);
}
