//! Every preset is measured from outside and must have its stated properties, within bounds on both sides.

use weir_path::presets::{ALL, by_name};
use weir_path::{Delivery, Departure, Link, LinkStats, Packet};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

const SIZE: DataSize = DataSize::from_bytes(1_000);

/// Result of sending packets of 1,000 bytes at a constant rate through a link.
struct Measured {
    out: Vec<Delivery<u32>>,
    /// For every offered packet, whether it arrived.
    arrived: Vec<bool>,
    sent: Vec<Timestamp>,
    stats: LinkStats,
    seconds: f64,
}

fn measure(name: &str, load: DataRate, seconds: i64) -> Measured {
    let config = by_name(name).expect("a preset").config();
    let mut link = Link::new(&config, 42).expect("sound");
    let gap = load.time_for(SIZE).expect("a load");
    let (mut out, mut arrived, mut sent) = (vec![], vec![], vec![]);
    let end = Timestamp::from_secs(seconds);
    let mut now = Timestamp::ZERO;
    loop {
        while let Some(at) = link.next_event().filter(|&at| at <= now.min(end)) {
            while let Some(d) = link.pop(at) {
                if let Departure::Delivered(d) = d {
                    arrived[d.item as usize] = true;
                    out.push(d);
                }
            }
        }
        if now >= end {
            break;
        }
        // The verdict is not needed: dropped packets never arrive.
        let _ = link.push(now, Packet { item: sent.len() as u32, size: SIZE, ecn: Ecn::Ect1, flow: 0 });
        arrived.push(false);
        sent.push(now);
        now += gap;
    }
    Measured { out, arrived, sent, stats: link.stats(), seconds: seconds as f64 }
}

impl Measured {
    /// Delay excluding transmission and queueing, that is propagation, in milliseconds.
    fn way_ms(&self, rate: DataRate) -> Vec<f64> {
        let transmission = rate.time_for(SIZE).expect("a rate");
        let way = |d: &Delivery<u32>| d.at - self.sent[d.item as usize] - d.queued_for - transmission;
        self.out.iter().map(|d| way(d).as_millis_f64()).collect()
    }
    fn rate_mbps(&self) -> f64 {
        self.out.len() as f64 * 8_000.0 / self.seconds / 1e6
    }
    fn longest_queue_ms(&self) -> f64 {
        self.out.iter().map(|d| d.queued_for).max().unwrap_or_default().as_millis_f64()
    }
    /// Share of packets lost, among those with a known fate, and the mean length of loss bursts.
    fn losses(&self) -> (f64, f64) {
        let last = self.arrived.iter().rposition(|&a| a).expect("some arrive");
        let known = &self.arrived[..=last];
        let lost = known.iter().filter(|&&a| !a).count() as f64;
        let runs = known.windows(2).filter(|w| !w[0] && w[1]).count();
        (lost / known.len() as f64, lost / runs.max(1) as f64)
    }
}

#[track_caller]
fn within(x: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&x), "{x} is not between {low} and {high}");
}
fn kbps(n: u64) -> DataRate {
    DataRate::from_kbps(n)
}
/// Rate delivered by a saturated link in Mbit/s, and its longest queueing delay.
fn saturated(name: &str, load: u64, seconds: i64) -> (f64, f64) {
    let m = measure(name, kbps(load), seconds);
    (m.rate_mbps(), m.longest_queue_ms())
}
fn extremes(x: &[f64]) -> (f64, f64) {
    (x.iter().copied().fold(f64::MAX, f64::min), x.iter().copied().fold(f64::MIN, f64::max))
}

#[test]
fn rmcat_is_2_mbps_100_ms_and_300_ms_of_queue() {
    let m = measure("rmcat", kbps(1_000), 20);
    assert_eq!(extremes(&m.way_ms(kbps(2_000))), (100.0, 100.0));
    assert_eq!((m.losses().0, m.longest_queue_ms(), m.stats.marked.packets), (0.0, 0.0, 0));
    let (rate, queue) = saturated("rmcat", 3_000, 100);
    within(rate, 1.99, 2.0);
    // 75 packets are queued and up to 4 ms remain of the one in transmission.
    within(queue, 299.99, 304.0);
}

#[test]
fn rmcat_steps_follow_the_papers_schedule() {
    let m = measure("rmcat-steps", kbps(3_000), 240);
    for (i, mbps) in [2.0, 1.5, 1.0, 0.5, 1.0, 1.5, 2.0, 1.5].into_iter().enumerate() {
        let from = Timestamp::from_secs(20 * i as i64) + TimeDelta::from_millis(200);
        let span = TimeDelta::from_millis(19_700);
        let n = m.out.iter().filter(|d| d.at >= from && d.at < from + span).count();
        within(n as f64 * 8_000.0 / span.as_secs_f64() / 1e6, mbps * 0.995, mbps * 1.005);
    }
}

#[test]
fn lossy_links_lose_their_share_one_by_one() {
    for (name, share) in [("loss-1", 0.01), ("loss-5", 0.05)] {
        let m = measure(name, kbps(1_000), 1_600);
        let error = 4.0 * (share * (1.0 - share) / m.sent.len() as f64).sqrt();
        let (lost, run) = m.losses();
        within(lost, share - error, share + error);
        // Independent losses make geometric bursts.
        within(run, 1.0 / (1.0 - share) - 0.03, 1.0 / (1.0 - share) + 0.03);
        assert_eq!(m.stats.dropped_queue.packets, 0);
    }
}

#[test]
fn bursty_loses_2_percent_in_runs_of_5() {
    let (lost, run) = measure("bursty", kbps(1_900), 2_000).losses();
    within(lost, 0.0185, 0.0215);
    within(run, 4.7, 5.3);
}

#[test]
fn ecn_marks_above_20_ms_only_and_still_drops_at_the_end() {
    let light = measure("ecn", kbps(1_900), 50);
    assert_eq!(light.stats.marked.packets, 0);
    let m = measure("ecn", kbps(2_100), 100);
    // 20 ms are 5,000 bytes: the fifth packet in the queue is the last one not marked.
    for d in &m.out {
        let queue = d.queued_for.as_millis_f64();
        if d.ecn == Ecn::Ce { within(queue, 20.0, 304.0) } else { within(queue, 0.0, 20.0) }
    }
    within(m.stats.marked.packets as f64 / m.out.len() as f64, 0.97, 1.0);
    within(m.longest_queue_ms(), 299.99, 304.0);
}

#[test]
fn bufferbloat_queues_for_two_seconds() {
    let (rate, queue) = saturated("bufferbloat", 1_500, 60);
    within(rate, 0.99, 1.0);
    within(queue, 1_999.99, 2_008.0);
    let m = measure("bufferbloat", kbps(500), 10);
    assert_eq!(extremes(&m.way_ms(kbps(1_000))), (20.0, 20.0));
}

#[test]
fn policed_drops_beyond_its_rate_and_never_queues() {
    let m = measure("policed", kbps(3_000), 60);
    // 1.5 Mbit/s, and once the burst of 200 kbit.
    within(m.rate_mbps(), 1.500, 1.505);
    within(m.losses().0, 0.49, 0.51);
    // All that is missing, but for those under way at the end.
    let missing = (m.sent.len() - m.out.len()) as f64;
    within(missing - m.stats.dropped_policer.packets as f64, 0.0, 12.0);
    within(m.longest_queue_ms(), 0.0, 0.0);
    // The burst passes at first: 25 packets, and those that the rate lets pass meanwhile.
    let first = m.arrived.iter().position(|a| !a).expect("a drop");
    within(first as f64, 48.0, 51.0);
    let light = measure("policed", kbps(1_400), 60);
    assert_eq!((light.losses().0, light.stats.dropped_policer.packets), (0.0, 0));
    assert_eq!(extremes(&light.way_ms(kbps(10_000))), (20.0, 20.0));
}

#[test]
fn cellular_is_3_mbps_on_average_swings_and_stands_still() {
    // A whole number of 12 s cycles.
    let m = measure("cellular", kbps(10_000), 120);
    within(m.rate_mbps(), 2.95, 3.05);
    let mut per_100_ms = vec![0.0; 1_199];
    for d in &m.out {
        let window = (d.at - Timestamp::ZERO).as_millis() / 100;
        if let Some(n) = per_100_ms.get_mut(window as usize) {
            *n += 0.08;
        }
    }
    let mean = per_100_ms.iter().sum::<f64>() / 1_199.0;
    let spread = (per_100_ms.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / 1_199.0).sqrt() / mean;
    within(spread, 0.4, 0.9);
    within(extremes(&per_100_ms).1, 7.0, 9.0);
    let gaps: Vec<_> = m.out.windows(2).map(|w| (w[1].at - w[0].at).as_millis_f64()).collect();
    within(extremes(&gaps).1, 500.0, 560.0);
    // A light load has the propagation delay of 30 ms and waits for grants.
    let light = measure("cellular", kbps(200), 12);
    let delays: Vec<_> = light.out.iter().map(|d| (d.at - light.sent[d.item as usize]).as_millis_f64()).collect();
    within(extremes(&delays).0, 30.0, 32.0);
    within(delays.iter().sum::<f64>() / delays.len() as f64, 34.0, 60.0);
}

#[test]
fn wifi_jitters_within_30_ms_in_order() {
    let m = measure("wifi", kbps(80), 1_000);
    let way = m.way_ms(kbps(20_000));
    let mean = way.iter().sum::<f64>() / way.len() as f64;
    within(mean, 5.0 + 15.0 - 0.3, 5.0 + 15.0 + 0.3);
    let deviation = (way.iter().map(|w| (w - mean) * (w - mean)).sum::<f64>() / way.len() as f64).sqrt();
    within(deviation, 4.8, 5.1);
    let (least, most) = extremes(&way);
    within(least, 5.0, 7.0);
    within(most, 33.0, 35.0);
    // At a packet every 0.8 ms most draws would reorder; none does, and bursts arrive at the link's own spacing.
    let m = measure("wifi", kbps(10_000), 20);
    assert!(m.out.windows(2).all(|w| w[0].item < w[1].item && w[1].at - w[0].at >= TimeDelta::from_micros(400)));
    within(m.losses().0, 0.0, 0.0);
    let (rate, queue) = saturated("wifi", 30_000, 20);
    within(rate, 19.9, 20.0);
    within(queue, 39.9, 40.4);
}

#[test]
fn satellite_is_far_and_loses_one_in_a_thousand() {
    let m = measure("satellite", kbps(5_000), 400);
    assert_eq!(extremes(&m.way_ms(kbps(10_000))), (270.0, 270.0));
    within(m.losses().0, 0.000_75, 0.001_25);
    let (rate, queue) = saturated("satellite", 15_000, 40);
    within(rate, 9.8, 10.0);
    within(queue, 299.0, 301.0);
}

#[test]
fn reordering_delays_and_copies_its_shares() {
    let m = measure("reordering", kbps(5_000), 200);
    let way = m.way_ms(kbps(10_000));
    assert!(way.iter().all(|&w| w == 20.0 || w == 35.0));
    within(way.iter().filter(|&&w| w == 35.0).count() as f64 / way.len() as f64, 0.047, 0.053);
    // A late packet is overtaken by those of the next 15 ms: nine or ten at 1.6 ms each.
    let overtaken = m.out.windows(2).filter(|w| w[0].item > w[1].item).count() as f64 / m.out.len() as f64;
    within(overtaken, 0.04, 0.053);
    within(m.stats.duplicated.packets as f64 / m.sent.len() as f64, 0.0088, 0.0112);
    assert_eq!(m.losses().0, 0.0);
}

#[test]
fn outage_stands_still_for_two_seconds_in_ten() {
    let m = measure("outage", kbps(3_000), 100);
    within(m.rate_mbps(), 1.59, 1.61);
    let stops: Vec<_> = m.out.windows(2).map(|w| (w[1].at - w[0].at).as_millis_f64()).filter(|&g| g > 100.0).collect();
    assert_eq!(stops.len(), 9);
    stops.iter().for_each(|&s| within(s, 2_000.0, 2_004.0));
}

#[test]
fn names_are_unique_and_every_preset_carries_packets() {
    for (i, p) in ALL.iter().enumerate() {
        assert!(ALL[..i].iter().all(|q| q.name != p.name));
        let m = measure(p.name, kbps(100), 10);
        assert!(m.out.len() > 90 && !p.summary.is_empty(), "{}", p.name);
    }
    assert!(by_name("nothing").is_none());
}

#[test]
fn links_3g_lose_half_a_percent_and_carry_what_their_pattern_says() {
    for (name, mbps) in [("3g-excellent", 0.3079), ("3g-poor", 0.1217), ("3g-mobile", 0.2354), ("slow-link", 0.1387)] {
        let m = measure(name, kbps(1_000), 1_800);
        let loss = if name == "slow-link" { 0.0 } else { 0.005 };
        within(m.rate_mbps(), mbps * (1.0 - loss) * 0.98, mbps * (1.0 - loss) * 1.02);
        let light = measure(name, kbps(10), 1_800);
        within(light.losses().0, loss * 0.4, loss * 1.6);
        within(
            extremes(
                &light.out.iter().map(|d| (d.at - light.sent[d.item as usize]).as_millis_f64()).collect::<Vec<_>>(),
            )
            .0,
            60.0,
            110.0,
        );
    }
}
