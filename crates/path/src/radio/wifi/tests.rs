use super::*;
use crate::radio::Radio;
use crate::{
    Capacity, Delivery, Departure, Dropped, Limit, Link, LinkConfig, Member, Members, Packet, Schedule, Step, Verdict,
};
use weir_units::{Ecn, Timestamp};

const PHY: DataRate = DataRate::from_mbps(52);

fn us(n: i64) -> TimeDelta {
    TimeDelta::from_micros(n)
}

fn config(wifi: Wifi) -> LinkConfig {
    let mut c = LinkConfig::constant(PHY, TimeDelta::from_millis(1));
    (c.radio, c.limit) = (Some(Radio::Wifi(wifi)), Limit::Packets(200));
    c
}

/// Packets of 1,040 bytes; `item` is the packet's number within its flow.
fn push(link: &mut Link<u64>, now: Timestamp, flow: u32, item: u64) -> bool {
    let packet = Packet { item, size: DataSize::from_bytes(1_040), ecn: Ecn::NotEct, flow };
    link.push(now, packet) == Verdict::Queued
}

/// Output, by flow.
#[derive(Default, PartialEq, Debug)]
struct Out {
    delivered: Vec<Vec<Delivery<u64>>>,
    dropped: Vec<Dropped<u64>>,
    pushed: u64,
    refused: u64,
    inside: u64,
}

/// Flows `0..flows` that always have packets, for some seconds. Items are numbers times 100, plus the flow.
fn saturate(config: &LinkConfig, flows: u32, seconds: i64, seed: u64) -> Out {
    let mut link = Link::new(config, seed).expect("valid");
    let mut out = Out { delivered: vec![vec![]; flows as usize], ..Out::default() };
    let mut next = vec![0u64; flows as usize];
    for tick in 0..seconds * 500 {
        let now = Timestamp::from_millis(2 * tick);
        for flow in 0..flows {
            // 60 packets in 2 ms are 250 Mbit/s.
            for _ in 0..60 {
                let is_taken = push(&mut link, now, flow, next[flow as usize] * 100 + u64::from(flow));
                out.pushed += 1;
                out.refused += u64::from(!is_taken);
                next[flow as usize] += 1;
            }
        }
        while let Some(d) = link.pop(now) {
            match d {
                Departure::Delivered(d) => out.delivered[(d.item % 100) as usize].push(d),
                Departure::Dropped(d) => out.dropped.push(d),
            }
        }
    }
    out.inside = link.packets_inside() as u64;
    out
}

impl Out {
    fn count(&self) -> u64 {
        self.delivered.iter().map(|d| d.len() as u64).sum()
    }
    fn assert_conserved(&self) {
        assert_eq!(self.pushed, self.count() + self.dropped.len() as u64 + self.refused + self.inside);
        for flow in &self.delivered {
            assert!(flow.windows(2).all(|w| w[0].item < w[1].item && w[0].at <= w[1].at), "out of order");
        }
    }
}

#[track_caller]
fn near(x: f64, expected: f64, tolerance: f64) {
    assert!((x / expected - 1.0).abs() <= tolerance, "{x} is not within {tolerance} of {expected}");
}

#[test]
fn a_lone_saturated_station_has_the_throughput_of_its_cycle() {
    for (packets, air_time) in [(1, 36 + 42 * 4), (32, 36 + 1_335 * 4)] {
        let wifi = Wifi { max_packets: packets, ..Wifi::default() };
        let out = saturate(&config(wifi.clone()), 1, 10, 3);
        // AIFS of 43 us, on average 7.5 slots of 9 us, the data, SIFS and the acknowledgement.
        let cycle = 43.0 + 67.5 + f64::from(air_time) + 16.0 + 32.0;
        near(out.count() as f64, f64::from(packets) * 10e6 / cycle, 0.005);
        near(wifi.sustained(PHY).as_bps_f64(), f64::from(packets) * 8_320.0 / (cycle / 1e6), 1e-6);
        out.assert_conserved();
        assert_eq!(out.dropped.len(), 0);
    }
    // RFC 8869, section 3.2.3: about 20 Mbit/s at 52 Mbit/s, which holds without aggregates.
    let single = Wifi { max_packets: 1, ..Wifi::default() };
    near(single.sustained(PHY).as_bps_f64(), 22.95e6, 0.001);
}

#[test]
fn an_idle_medium_delays_a_packet_by_its_transmission_alone() {
    let mut link = Link::new(&config(Wifi::default()), 1).expect("valid");
    for i in 0..50 {
        let now = Timestamp::from_millis(20 * i);
        assert!(push(&mut link, now, 0, i as u64));
        let at = link.next_event().expect("a packet");
        let Some(Departure::Delivered(d)) = link.pop(Timestamp::from_millis(20 * i + 19)) else { panic!("due") };
        // 204 us and the propagation of a millisecond; up to a slot until the boundary of slots.
        let delay = d.at - now;
        assert!((us(1_204)..us(1_204 + 9)).contains(&delay) || i == 0, "{delay}");
        assert!(at <= d.at);
        assert_eq!(link.packets_inside(), 0);
    }
}

#[test]
fn errors_are_retried_in_order_up_to_the_limit() {
    let wifi = Wifi { error_rate: 0.2, retry_limit: 1, ..Wifi::default() };
    let out = saturate(&config(wifi), 1, 10, 5);
    out.assert_conserved();
    // Lost if both transmissions fail.
    let share = out.dropped.len() as f64 / (out.dropped.len() as u64 + out.count()) as f64;
    near(share, 0.04, 0.1);
    assert!(out.dropped.iter().all(|d| d.reason == crate::DropReason::RandomLoss));
    let kept = saturate(&config(Wifi { error_rate: 0.2, ..Wifi::default() }), 1, 10, 5);
    kept.assert_conserved();
    // 0.2 to the eighth is one in 400,000.
    assert!(kept.dropped.len() <= 2, "{}", kept.dropped.len());
    // A fifth of the packets of an aggregate is sent once more.
    let clean = saturate(&config(Wifi::default()), 1, 10, 5);
    let kept_share = kept.count() as f64 / clean.count() as f64;
    assert!((0.7..0.81).contains(&kept_share), "{kept_share}");
    let none = saturate(&config(Wifi { error_rate: 1.0, ..Wifi::default() }), 1, 1, 5);
    none.assert_conserved();
    assert!(none.count() == 0 && !none.dropped.is_empty());
}

#[test]
fn saturated_contenders_take_their_turns() {
    let alone = saturate(&config(Wifi::default()), 1, 10, 7).count() as f64;
    for (n, seed) in [(1, 7), (4, 8)] {
        let out = saturate(&config(Wifi { others: Others::Saturated(n), ..Wifi::default() }), 1, 20, seed);
        out.assert_conserved();
        // An even share less collisions, which take one transmission of 17 or so with two stations, and every third or
        // fourth with five.
        let share = out.count() as f64 / 2.0 / alone * f64::from(n + 1);
        let (least, most) = if n == 1 { (0.88, 0.97) } else { (0.62, 0.78) };
        assert!((least..most).contains(&share), "{n}: {share}");
    }
}

#[test]
fn a_stated_load_leaves_the_rest_of_the_air_time() {
    let alone = saturate(&config(Wifi::default()), 1, 20, 9).count() as f64;
    for share in [0.1, 0.3] {
        let air_time = Some(TimeDelta::from_millis(2));
        let wifi = Wifi { others: Others::Load(share), others_air_time: air_time, ..Wifi::default() };
        let out = saturate(&config(wifi), 1, 20, 9);
        // Contention and collisions cost a little more than the load itself.
        let left = out.count() as f64 / alone;
        assert!((1.0 - 1.4 * share..1.0 - 0.9 * share).contains(&left), "{share}: {left}");
    }
}

/// Stations 1 to `n` with an uplink each (flows 0 to n - 1), and one downlink to station 1 (flow n).
fn shared(n: u16, wifi: Wifi) -> LinkConfig {
    let up = |station| Member { station, ..Member::default() };
    let mut members: Vec<Member> = (1..=n).map(up).collect();
    members.push(Member { station: 1, to_station: true, ..Member::default() });
    let mut c = config(Wifi { separate: true, ..wifi });
    c.members = Members::new(members);
    c
}

#[test]
fn a_link_gets_its_turns_beside_other_stations_whoever_has_the_queues() {
    let rate = DataRate::from_mbps(54);
    let one = Wifi { others: Others::Saturated(3), ..Wifi::default() };
    let each = Wifi { separate: true, ..one.clone() };
    assert_eq!(each.shared(rate, 1), one.sustained(rate));
    assert!(each.shared(rate, 3) > each.shared(rate, 1) && each.shared(rate, 3) < each.sustained(rate));
}

#[test]
fn stations_and_the_access_point_share_one_medium_evenly() {
    let single = Wifi { max_packets: 1, ..Wifi::default() };
    let out = saturate(&shared(4, single.clone()), 5, 20, 11);
    out.assert_conserved();
    let counts: Vec<f64> = out.delivered.iter().map(|d| d.len() as f64).collect();
    let mean = counts.iter().sum::<f64>() / 5.0;
    for c in &counts {
        near(*c, mean, 0.04);
    }
    // All together less than one alone with twice the backoffs saved: collisions cost more than the shorter backoff saves.
    let alone = saturate(&config(single), 1, 20, 11).count() as f64;
    let all: f64 = counts.iter().sum();
    assert!((0.75..1.05).contains(&(all / alone)), "{}", all / alone);
}

#[test]
fn a_slow_rate_and_an_outage_follow_the_table() {
    let steps = [(0, 52_000), (2_000, 13_000), (4_000, 0), (6_000, 52_000)];
    let steps = steps.map(|(ms, kbps)| Step { at: TimeDelta::from_millis(ms), rate: DataRate::from_kbps(kbps) });
    let mut c = config(Wifi { max_packets: 1, ..Wifi::default() });
    c.capacity = Capacity::Schedule(Schedule::new(steps.to_vec(), None).expect("in order"));
    let out = saturate(&c, 1, 8, 13);
    out.assert_conserved();
    let within = |from: i64| {
        let (from, to) = (Timestamp::from_millis(from + 100), Timestamp::from_millis(from + 2_000));
        out.delivered[0].iter().filter(|d| d.at > from && d.at < to).count() as f64
    };
    let per_cycle = |air_time: f64| 1.9e6 / (158.5 + air_time);
    near(within(0), per_cycle(204.0), 0.01);
    // 8,694 bits at 52 bits a symbol are 168 symbols.
    near(within(2_000), per_cycle(36.0 + 168.0 * 4.0), 0.01);
    assert_eq!(within(4_000), 0.0);
    near(within(6_000), per_cycle(204.0), 0.01);
    // Without an end of the outage nothing leaves, and nothing hangs.
    let dead = [(0, 52_000), (1, 0)]
        .map(|(ms, kbps)| Step { at: TimeDelta::from_millis(ms), rate: DataRate::from_kbps(kbps) });
    c.capacity = Capacity::Schedule(Schedule::new(dead.to_vec(), None).expect("in order"));
    let mut link = Link::new(&c, 1).expect("valid");
    assert!((0..50).all(|i| push(&mut link, Timestamp::from_millis(2), 0, i)));
    assert_eq!((link.next_event(), link.pop(Timestamp::from_secs(1 << 30)), link.packets_inside()), (None, None, 50));
}

#[test]
fn equal_seeds_give_equal_results() {
    let wifi = Wifi { error_rate: 0.1, others: Others::Saturated(2), ..Wifi::default() };
    let c = shared(3, wifi);
    assert_eq!(saturate(&c, 4, 1, 5), saturate(&c, 4, 1, 5));
    assert_ne!(saturate(&c, 4, 1, 5), saturate(&c, 4, 1, 6));
}

#[test]
fn errors_name_the_field() {
    let error = |change: fn(&mut Wifi)| {
        let mut wifi = Wifi::default();
        change(&mut wifi);
        config(wifi).check().expect_err("refused").to_string()
    };
    assert!(error(|w| w.error_rate = 1.5).contains("wifi.error_rate is 1.5: expected a share"));
    assert!(error(|w| w.max_packets = 0).contains("wifi.max_packets is 0: expected a number between 1 and 64"));
    assert!(error(|w| w.cw_max = 7).contains("wifi.cw_max is 7: expected a number between 15 and 32767"));
    assert!(error(|w| w.others = Others::Load(1.0)).contains("wifi.busy is 1"));
    assert!(error(|w| w.slot = TimeDelta::ZERO).contains("wifi.slot is 0 ms"));
    let mut slow = config(Wifi::default());
    slow.capacity = Capacity::Constant(DataRate::from_kbps(500));
    assert!(slow.check().expect_err("too slow").to_string().contains("rate is"));
    slow.capacity = Capacity::Unlimited;
    assert!(slow.check().expect_err("no rate").to_string().contains("rate is unlimited"));
}
