use super::*;
use crate::radio::Radio;
use crate::{Delivery, Departure, Dropped, Limit, Link, LinkConfig, Member, Members, Packet, Schedule, Step, Verdict};
use weir_units::{DataSize, Ecn};

fn ms(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}

/// 8 Mbit/s, 1,000 bytes a slot, and no propagation.
fn config(cellular: Cellular) -> LinkConfig {
    let mut c = LinkConfig::constant(DataRate::from_mbps(8), TimeDelta::ZERO);
    (c.radio, c.limit) = (Some(Radio::Cellular(cellular)), Limit::Packets(500));
    c
}

fn reliable() -> Cellular {
    Cellular { error_rate: 0.0, ..Cellular::default() }
}

#[derive(Default, PartialEq, Debug)]
struct Out {
    delivered: Vec<Delivery<u64>>,
    dropped: Vec<Dropped<u64>>,
    sent: Vec<Timestamp>,
    refused: u64,
    inside: u64,
}

/// Packets of `bytes` every `gap`, in turn of each flow, for some seconds; items are their numbers.
fn run(config: &LinkConfig, flows: u32, bytes: u64, gap: TimeDelta, seconds: i64, seed: u64) -> Out {
    let mut link = Link::new(config, seed).expect("valid");
    let mut out = Out::default();
    let mut now = Timestamp::ZERO;
    let pop = |link: &mut Link<u64>, now, out: &mut Out| {
        while let Some(d) = link.pop(now) {
            match d {
                Departure::Delivered(d) => out.delivered.push(d),
                Departure::Dropped(d) => out.dropped.push(d),
            }
        }
    };
    while now < Timestamp::from_secs(seconds) {
        for flow in 0..flows {
            let item = out.sent.len() as u64;
            let packet = Packet { item, size: DataSize::from_bytes(bytes), ecn: Ecn::NotEct, flow };
            out.refused += u64::from(link.push(now, packet) != Verdict::Queued);
            out.sent.push(now);
        }
        now += gap;
        pop(&mut link, now, &mut out);
    }
    out.inside = link.packets_inside() as u64;
    out
}

impl Out {
    fn delays(&self) -> Vec<TimeDelta> {
        self.delivered.iter().map(|d| d.at - self.sent[d.item as usize]).collect()
    }
    fn assert_conserved(&self, flows: u64) {
        let seen = self.delivered.len() as u64 + self.dropped.len() as u64;
        assert_eq!(self.sent.len() as u64, seen + self.refused + self.inside);
        for flow in 0..flows {
            let items: Vec<_> = self.delivered.iter().filter(|d| d.item % flows == flow).map(|d| d.item).collect();
            assert!(items.windows(2).all(|w| w[0] < w[1]), "out of order");
        }
    }
}

#[track_caller]
fn near(x: f64, expected: f64, tolerance: f64) {
    assert!((x / expected - 1.0).abs() <= tolerance, "{x} is not within {tolerance} of {expected}");
}

#[test]
fn a_packet_waits_for_its_slot_and_is_there_at_its_end() {
    // Every 10.3 ms, so that arrivals fall anywhere in a slot.
    let out = run(&config(reliable()), 1, 500, TimeDelta::from_micros(10_300), 10, 1);
    for d in out.delays() {
        assert!(d > ms(1) && d <= ms(2), "{d}");
    }
    assert!(out.delivered.iter().all(|d| (d.at - Timestamp::ZERO).as_nanos() % 1_000_000 == 0));
    // NR with slots of a quarter of a millisecond.
    let nr = Cellular { slot: TimeDelta::from_micros(250), ..reliable() };
    let out = run(&config(nr), 1, 200, TimeDelta::from_micros(10_300), 10, 1);
    assert!(out.delays().iter().all(|&d| d > TimeDelta::from_micros(250) && d <= TimeDelta::from_micros(500)));
}

#[test]
fn harq_delays_are_whole_rounds_with_their_probabilities() {
    // Rare packets of half a slot, so that none waits for another: half of the transmissions fail each time.
    let cell = Cellular { error_rate: 0.5, retransmission_error_rate: 0.5, ..Cellular::default() };
    let out = run(&config(cell), 1, 500, ms(200), 2_000, 2);
    let mut rounds = [0u32; 4];
    for d in out.delays() {
        let over = d - ms(2);
        // Retransmissions by RLC are 36 ms later.
        let round = over.as_nanos() / ms(8).as_nanos();
        if over.as_nanos() % ms(8).as_nanos() == 0 && round < 4 {
            rounds[round as usize] += 1;
        }
    }
    let all = out.delivered.len() as f64;
    for (k, n) in rounds.iter().enumerate() {
        near(f64::from(*n) / all, 0.5f64.powi(k as i32 + 1), 0.1);
    }
    out.assert_conserved(1);
    assert_eq!(out.dropped.len(), 0);
    let usual = run(&config(Cellular::default()), 1, 500, ms(100), 2_000, 3);
    let at_once = usual.delays().iter().filter(|&&d| d <= ms(2)).count() as f64;
    near(at_once / usual.delivered.len() as f64, 0.9, 0.01);
    assert!(usual.delays().iter().all(|&d| d <= ms(2 + 8) || d == ms(2 + 16) || d == ms(2 + 24)));
}

#[test]
fn packets_behind_a_retransmission_are_held_back() {
    let out = run(&config(Cellular::default()), 1, 900, ms(1), 100, 4);
    out.assert_conserved(1);
    assert!(out.delivered.windows(2).all(|w| w[0].at <= w[1].at));
    // A tenth of the blocks delays those of the 8 ms after it: bursts of several packets at one time.
    let together = out.delivered.windows(2).filter(|w| w[0].at == w[1].at).count() as f64;
    let share = together / out.delivered.len() as f64;
    assert!((0.2..0.7).contains(&share), "{share}");
}

#[test]
fn a_saturated_cell_carries_its_rate_less_retransmissions() {
    for (cell, factor) in [(reliable(), 1.0), (Cellular::default(), 1.0 / (1.0 + 0.1 * (1.0 + 0.01 + 0.0001)))] {
        let c = config(cell);
        let out = run(&c, 1, 1_250, TimeDelta::from_micros(500), 20, 5);
        out.assert_conserved(1);
        let rate = out.delivered.len() as f64 * 10_000.0 / 20.0;
        near(rate, 8e6 * factor, 0.01);
        near(c.sustained().rate_at(Timestamp::ZERO).as_bps_f64(), 8e6 * factor, 1e-3);
    }
}

#[test]
fn a_links_share_of_the_cell_follows_its_other_users() {
    let users = Steps::new(vec![(TimeDelta::ZERO, 3), (TimeDelta::from_secs(20), 0)], None).expect("steps");
    let mut c = config(Cellular { users, ..reliable() });
    let mbps = |c: &LinkConfig, s| c.shared_at(Timestamp::from_secs(s)).as_bps_f64() / 1e6;
    near(mbps(&c, 0), 2.0, 1e-9);
    near(mbps(&c, 20), 8.0, 1e-9);
    // One flow with a bearer of its own gets as much, and two get two of five parts.
    for (stations, expected) in [(1, 2.0), (2, 3.2)] {
        let Some(Radio::Cellular(cell)) = &mut c.radio else { panic!("a cell") };
        cell.separate = true;
        c.members = Members::new((1..=stations).map(|station| Member { station, ..Member::default() }).collect());
        near(mbps(&c, 0), expected, 1e-9);
    }
    assert!(c.has_changing_users());
}

#[test]
fn users_share_the_slots_evenly_and_leave_what_they_do_not_need() {
    let users = Steps::new(vec![(ms(0), 3), (ms(10_000), 0)], None).expect("in order");
    let out = run(&config(Cellular { users, ..reliable() }), 1, 1_000, TimeDelta::from_micros(500), 20, 6);
    let until = |s| out.delivered.iter().filter(|d| d.at <= Timestamp::from_secs(s)).count() as f64;
    near(until(10), 2_500.0, 0.01);
    near(until(20) - until(10), 10_000.0, 0.01);
    // Two bearers of the scenario's own: one with full queues gets what one of 1 Mbit/s leaves.
    let member = |station| Member { station, to_station: true, ..Member::default() };
    let mut c = config(Cellular { separate: true, ..reliable() });
    c.members = Members::new(vec![member(1), member(2)]);
    let mut link = Link::new(&c, 7).expect("valid");
    let mut counts = [0u32; 2];
    for t in 0..10_000 {
        let now = Timestamp::from_millis(t);
        for flow in if t % 8 == 0 { 0..2 } else { 1..2 } {
            for _ in 0..if flow == 0 { 1 } else { 2 } {
                let size = DataSize::from_bytes(1_000);
                let _ = link.push(now, Packet { item: u64::from(flow), size, ecn: Ecn::NotEct, flow });
            }
        }
        while let Some(Departure::Delivered(d)) = link.pop(now) {
            counts[d.item as usize] += 1;
        }
    }
    assert!((1_245..=1_250).contains(&counts[0]), "{counts:?}");
    near(f64::from(counts[1]), 8_750.0, 0.005);
}

#[test]
fn an_uplink_without_a_grant_requests_one_first() {
    let cell = Cellular { request_interval: Some(ms(10)), ..reliable() };
    let out = run(&config(cell.clone()), 1, 500, TimeDelta::from_micros(50_700), 100, 8);
    // Up to 10 ms to the request, 8 ms to the granted slot, 1 ms in it.
    let delays: Vec<f64> = out.delays().iter().map(|d| d.as_millis_f64()).collect();
    let (least, most) = (delays.iter().copied().fold(f64::MAX, f64::min), delays.iter().copied().fold(0.0, f64::max));
    assert!((9.0..9.5).contains(&least) && (18.5..=19.0).contains(&most), "{least} {most}");
    near(delays.iter().sum::<f64>() / delays.len() as f64, 14.0, 0.02);
    // While packets wait, grants follow each other.
    let busy = run(&config(cell), 1, 1_000, ms(1), 10, 9);
    assert!(busy.delivered.len() > 9_900, "{}", busy.delivered.len());
}

#[test]
fn what_harq_gives_up_is_lost_without_acknowledgement_and_kept_with_it() {
    let failing =
        |acknowledged| Cellular { error_rate: 0.5, harq_retransmissions: 0, acknowledged, ..Cellular::default() };
    let out = run(&config(failing(false)), 1, 500, ms(20), 200, 10);
    out.assert_conserved(1);
    near(out.dropped.len() as f64 / out.sent.len() as f64, 0.5, 0.05);
    // Those behind a lost one wait until the receiver gives it up.
    assert!(out.delays().iter().any(|&d| d > ms(10)) && out.delays().iter().all(|&d| d <= ms(2 + 35)));
    let out = run(&config(failing(true)), 1, 500, ms(400), 1_000, 10);
    out.assert_conserved(1);
    assert_eq!(out.dropped.len(), 0);
    let late = out.delays().iter().filter(|&&d| d >= ms(2 + 36)).count() as f64;
    near(late / out.delivered.len() as f64, 0.5, 0.06);
    // A channel on which nothing is decoded loses everything, and nothing hangs.
    let dead = Cellular { error_rate: 1.0, retransmission_error_rate: 1.0, ..Cellular::default() };
    let mut link = Link::new(&config(dead), 1).expect("valid");
    let packet = Packet { item: 0u64, size: DataSize::from_bytes(500), ecn: Ecn::NotEct, flow: 0 };
    assert_eq!(link.push(Timestamp::ZERO, packet), Verdict::Queued);
    let out = link.pop(Timestamp::from_secs(100));
    assert!(matches!(out, Some(Departure::Dropped(d)) if d.reason == crate::DropReason::RandomLoss), "{out:?}");
}

#[test]
fn an_outage_is_passed_at_once() {
    let steps = [(0, 8_000), (1_000, 0), (5_000, 8_000)];
    let steps = steps.map(|(t, kbps)| Step { at: ms(t), rate: DataRate::from_kbps(kbps) });
    let mut c = config(reliable());
    c.capacity = Capacity::Schedule(Schedule::new(steps.to_vec(), None).expect("in order"));
    let mut link = Link::new(&c, 1).expect("valid");
    let packet = |item| Packet { item, size: DataSize::from_bytes(1_000), ecn: Ecn::NotEct, flow: 0 };
    assert_eq!(link.push(Timestamp::from_millis(2_000), packet(1)), Verdict::Queued);
    assert_eq!(link.next_event(), Some(Timestamp::from_millis(5_000)));
    assert_eq!(link.pop(Timestamp::from_millis(5_000)), None);
    let Some(Departure::Delivered(d)) = link.pop(Timestamp::from_millis(5_001)) else { panic!("due") };
    assert_eq!((d.at, d.queued_for), (Timestamp::from_millis(5_001), ms(3_000)));
}

#[test]
fn equal_seeds_give_equal_results() {
    let c = config(Cellular { error_rate: 0.3, ..Cellular::default() });
    let of = |seed| run(&c, 1, 700, ms(1), 5, seed);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn errors_name_the_field() {
    let error = |change: fn(&mut Cellular)| {
        let mut cell = Cellular::default();
        change(&mut cell);
        config(cell).check().expect_err("refused").to_string()
    };
    assert!(error(|c| c.error_rate = -0.1).contains("cellular.error_rate is -0.1: expected a share"));
    assert!(error(|c| c.slot = ms(0)).contains("cellular.slot is 0 ms: expected a time between 0.125 ms and 10 ms"));
    assert!(error(|c| c.users = Steps::constant(5_000)).contains("cellular.users is 5000"));
    assert!(error(|c| c.harq_delay = ms(0)).contains("cellular.harq_delay is 0 ms"));
    assert!(error(|c| c.request_interval = Some(ms(0))).contains("cellular.request_interval"));
}
