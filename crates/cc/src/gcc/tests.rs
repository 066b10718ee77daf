//! The controller in a closed loop over a model of one link: drop-tail, fixed rate, delay both ways.

use super::*;
use crate::history::{ReportedPacket, SentHistory};
use crate::pacer::{Pacer, PacerDecision};
use crate::testing::Kbps;
use proptest::collection::vec;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_units::{DataSize, Ecn};

const PACKET: u64 = 1_000;
const KBPS: fn(u64) -> DataRate = DataRate::from_kbps;

/// A loss-based flow on the same link: slow start, one packet more per round trip, halved on loss.
#[derive(Default)]
struct Reno {
    from_ms: i64,
    until_ms: i64,
    window: f64,
    threshold: f64,
    in_flight: f64,
    /// Times at which each packet's arrival or loss is known.
    acks: std::collections::VecDeque<i64>,
    losses: std::collections::VecDeque<i64>,
    recovers_at: i64,
}
impl Reno {
    fn between(from_ms: i64, until_ms: i64) -> Self {
        Self { from_ms, until_ms, window: 2.0, threshold: f64::MAX, ..Self::default() }
    }
    fn tick(&mut self, ms: i64) {
        while self.acks.front().is_some_and(|&t| t <= ms) {
            self.acks.pop_front();
            self.in_flight -= 1.0;
            self.window += if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
        }
        while self.losses.front().is_some_and(|&t| t <= ms) {
            self.losses.pop_front();
            self.in_flight -= 1.0;
            if ms >= self.recovers_at {
                self.window = (self.window / 2.0).max(2.0);
                self.threshold = self.window;
                self.recovers_at = ms + 500;
            }
        }
    }
    fn sends(&self, ms: i64) -> bool {
        ms >= self.from_ms && ms < self.until_ms && self.in_flight + 1.0 <= self.window
    }
}

struct Link {
    /// Capacity in kbit/s at a time in ms.
    capacity: fn(i64) -> u64,
    buffer: u64,
    loss: f64,
    /// Feedback messages are lost in this span of ms.
    silent: (i64, i64),
    /// Ratio of the encoder's rate to the target.
    encoder: fn(i64) -> f64,
}
impl Default for Link {
    fn default() -> Self {
        Self { capacity: |_| 1_000, buffer: 75_000, loss: 0.0, silent: (0, 0), encoder: |_| 1.0 }
    }
}

#[derive(Default, Clone, Copy)]
struct Second {
    /// Mean target in kbit/s.
    target: f64,
    /// Rate of bytes that arrived, in kbit/s.
    received: f64,
    /// Mean and maximum queueing delay, in ms.
    queue: f64,
    max_queue: f64,
    probes: u32,
}

/// Runs in steps of 1 ms: 100 ms one way, feedback every 100 ms, an ideal codec at 50 frames per second.
fn run_with(c: &mut Gcc, link: &Link, seconds: i64, cross: &mut Reno) -> Vec<Second> {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let mut history = SentHistory::new();
    let mut pacer = Pacer::new(&c.target(), Timestamp::ZERO);
    let mut waiting = 0u64;
    let mut made = 0.0;
    let mut next_sequence = 0;
    // (sequence, size) in the queue; no sequence number for the other flow's packets.
    let mut queue = std::collections::VecDeque::<(Option<u64>, u64)>::new();
    let (mut queued, mut credit) = (0u64, 0.0);
    let mut arrived: Vec<ReportedPacket> = vec![];
    let mut highest = 0;
    let mut reported = 0;
    let mut on_way_back: std::collections::VecDeque<(i64, Vec<ReportedPacket>)> = Default::default();
    let mut results = vec![];
    let mut seconds_seen = vec![Second::default(); seconds as usize];
    for ms in 0..seconds * 1_000 {
        let now = Timestamp::from_millis(ms);
        let s = &mut seconds_seen[(ms / 1_000) as usize];
        if let Some((t, _)) = c.poll_timeout()
            && t <= now
        {
            c.on_timeout(now);
            assert!(c.poll_timeout().is_none_or(|(t, _)| t > now));
        }
        if on_way_back.front().is_some_and(|(t, _)| *t <= ms) {
            let (_, reports) = on_way_back.pop_front().expect("seen");
            history.resolve(reports, &mut results);
            let rtt = results.iter().rfind(|p| p.arrival.is_some()).map(|p| now - p.departure);
            let f = TransportFeedback { now, packets: &results, bytes_in_flight: history.bytes_in_flight(), rtt };
            c.on_cue(&Cue::TransportFeedback(f));
        }
        while let Some(p) = c.poll_probe(now) {
            s.probes += 1;
            pacer.add_probe(p, now);
        }
        let target = c.target();
        pacer.set_target(&target, now);
        s.target += target.media_rate.as_kbps_f64() / 1e3;
        if ms % 20 == 0 {
            made += target.media_rate.as_bps_f64() / 8.0 * 0.02 * (link.encoder)(ms);
            waiting += (made / PACKET as f64) as u64;
            made %= PACKET as f64;
        }
        loop {
            let (probe, is_padding) = match pacer.poll(now, waiting > 0) {
                PacerDecision::Media { probe } => (probe, false),
                PacerDecision::Padding { probe } => (probe, true),
                PacerDecision::Wait(_) | PacerDecision::Idle => break,
            };
            waiting -= u64::from(!is_padding);
            let size = DataSize::from_bytes(PACKET);
            pacer.on_sent(now, size, is_padding, probe);
            let mut p = SentPacket {
                is_padding,
                probe,
                queued: DataSize::from_bytes(waiting * PACKET),
                ..SentPacket::media(now, next_sequence, size)
            };
            history.on_sent(&p);
            p.bytes_in_flight = history.bytes_in_flight();
            c.on_packet_sent(&p);
            if queued + PACKET <= link.buffer {
                queue.push_back((Some(next_sequence), PACKET));
                queued += PACKET;
            }
            next_sequence += 1;
        }
        cross.tick(ms);
        while cross.sends(ms) {
            cross.in_flight += 1.0;
            if queued + PACKET <= link.buffer {
                queue.push_back((None, PACKET));
                queued += PACKET;
            } else {
                cross.losses.push_back(ms + 200 + (queued * 8 / (link.capacity)(ms)) as i64);
            }
        }
        let capacity = (link.capacity)(ms) as f64;
        credit += capacity;
        while let Some(&(sequence, size)) = queue.front() {
            if credit < size as f64 * 8.0 {
                break;
            }
            credit -= size as f64 * 8.0;
            queue.pop_front();
            queued -= size;
            if let Some(sequence) = sequence {
                highest = sequence;
                if rng.random::<f64>() >= link.loss {
                    s.received += size as f64 * 8.0 / 1e3;
                    let arrival = Some(RemoteTimestamp::from_millis(77_000 + ms + 100));
                    arrived.push(ReportedPacket { sequence, arrival, ecn: Ecn::NotEct });
                }
            } else {
                cross.acks.push_back(ms + 200);
            }
        }
        if queue.is_empty() {
            credit = credit.min(0.0);
        }
        let wait = queued as f64 * 8.0 / capacity;
        s.queue += wait / 1e3;
        s.max_queue = s.max_queue.max(wait);
        if ms % 100 == 99 && !arrived.is_empty() {
            let lost = (reported..=highest)
                .filter(|&q| !arrived.iter().any(|a| a.sequence == q))
                .map(|sequence| ReportedPacket { sequence, arrival: None, ecn: Ecn::NotEct })
                .collect::<Vec<_>>();
            reported = highest + 1;
            let mut all = std::mem::take(&mut arrived);
            all.extend(lost);
            all.sort_by_key(|r| r.sequence);
            if ms < link.silent.0 || ms >= link.silent.1 {
                on_way_back.push_back((ms + 200, all));
            }
        }
    }
    seconds_seen
}

fn run(link: &Link, seconds: i64) -> Vec<Second> {
    run_with(&mut gcc(&[]), link, seconds, &mut Reno::default())
}

fn gcc(params: &[(&str, f64)]) -> Gcc {
    // The model's packets have no headers, and its pacer runs each millisecond, too coarse for a factor of 1.1.
    let params = [&[("overhead", 0.0), ("pacing_factor", 2.5)], params].concat();
    Kbps { floor: 50, start: 500, ceiling: 10_000 }.sender(&params)
}

fn mean(s: &[Second], f: fn(&Second) -> f64) -> f64 {
    s.iter().map(f).sum::<f64>() / s.len() as f64
}

#[track_caller]
fn assert_between(what: &str, got: f64, low: f64, high: f64) {
    assert!(got >= low && got <= high, "{what}: {got:.1} is not in {low} to {high}");
}

#[test]
fn a_lone_flow_settles_below_capacity_with_a_short_queue() {
    for (capacity, kbps) in [((|_| 1_000) as fn(i64) -> u64, 1_000.0), (|_| 2_000, 2_000.0)] {
        let r = run(&Link { capacity, ..Link::default() }, 80);
        let settled = &r[10..];
        assert_between("received", mean(settled, |s| s.received), 0.8 * kbps, kbps);
        assert_between("target", mean(settled, |s| s.target), 0.8 * kbps, 1.02 * kbps);
        assert_between("mean queue", mean(settled, |s| s.queue), 0.0, 30.0);
        for s in settled {
            assert_between("a second's target", s.target, 0.7 * kbps, 1.1 * kbps);
            assert_between("longest queue", s.max_queue, 0.0, 150.0);
        }
    }
}

#[test]
fn initial_probes_find_most_of_the_capacity_within_two_seconds() {
    let r = run(&Link { capacity: |_| 2_000, ..Link::default() }, 10);
    assert_between("probes", f64::from(r[0].probes), 2.0, 4.0);
    assert_between("second second", r[1].received, 1_600.0, 2_000.0);
    let mut c = gcc(&[("probe_initial", 0.0)]);
    let r = run_with(&mut c, &Link { capacity: |_| 2_000, ..Link::default() }, 10, &mut Reno::default());
    assert_between("without", r[1].received, 480.0, 620.0);
    assert_between("without, 8 % a second", r[9].received, 500.0 * 1.85, 500.0 * 2.2);
}

#[test]
fn halved_and_doubled_capacity_is_followed() {
    let half = |ms| if (20_000..40_000).contains(&ms) { 1_000 } else { 2_000 };
    let r = run(&Link { capacity: half, ..Link::default() }, 80);
    for (i, s) in r[22..40].iter().enumerate() {
        assert_between(&format!("target {} s after the halving", i + 2), s.target, 700.0, 1_050.0);
    }
    assert_between("queue while it drains", r[20..40].iter().map(|s| s.max_queue).fold(0.0, f64::max), 300.0, 600.0);
    for s in &r[26..40] {
        assert_between("queue afterwards", s.max_queue, 0.0, 150.0);
    }
    // 8 % a second takes 9 s for a doubling, after a slow approach to the former capacity.
    assert_between("30 s after the doubling", mean(&r[70..], |s| s.received), 1_500.0, 2_000.0);
}

#[test]
fn random_loss_is_no_congestion_to_the_drafts_rule() {
    let run = |link: &Link, seconds| run_with(&mut gcc(&[("loss_v2", 0.0)]), link, seconds, &mut Reno::default());
    for (loss, low) in [(0.01, 0.8), (0.05, 0.6)] {
        let r = run(&Link { capacity: |_| 2_000, loss, ..Link::default() }, 80);
        assert_between("target", mean(&r[10..], |s| s.target), low * 2_000.0, 1.02 * 2_000.0);
        assert_between("share of the target", mean(&r[10..], |s| s.received / s.target), 0.985 - loss, 1.015 - loss);
    }
    // Of 30 % the rule takes half, at most once per second, so the rate ends at the floor.
    let r = run(&Link { capacity: |_| 2_000, loss: 0.3, ..Link::default() }, 60);
    assert_between("target at 30 %", mean(&r[40..], |s| s.target), 49.9, 100.0);
}

#[test]
fn a_loss_based_flow_leaves_it_a_share() {
    let link = Link { capacity: |_| 2_000, ..Link::default() };
    let r = run_with(&mut gcc(&[]), &link, 120, &mut Reno::between(20_000, 100_000));
    assert_between("share", mean(&r[30..100], |s| s.received), 0.15 * 2_000.0, 0.6 * 2_000.0);
    let least = r[30..100].iter().map(|s| s.target).fold(f64::MAX, f64::min);
    assert_between("least second", least, 200.0, 1_000.0);
    // Growth near a rate at which there was overuse is additive, 40 s are too short for the rest.
    assert_between("afterwards", r[119].received - r[101].received, 100.0, 1_700.0);
}

#[test]
fn missing_feedback_lowers_the_rate_after_three_seconds() {
    let link = Link { capacity: |_| 2_000, silent: (20_000, 30_000), ..Link::default() };
    let r = run(&link, 80);
    // The last feedback arrives at 20.2 s and leaves 2.7 s; then 0.8 per second until 30.3 s: seven or eight steps.
    assert_between("before the limit", r[22].target, 1_850.0, 2_000.0);
    assert_between("last", r[29].target, 0.8f64.powi(8) * r[22].target, 0.8f64.powi(6) * r[22].target);
    // It recovers, at most by 8 % a second.
    assert_between("10 s later", r[40].target / r[30].target, 1.05, 2.4);
    assert_between("at the end", r[79].received, 1_600.0, 2_000.0);
}

#[test]
fn an_application_that_sends_little_is_probed_for() {
    let link = Link { capacity: |_| 4_000, encoder: |ms| if ms < 40_000 { 0.3 } else { 1.0 }, ..Link::default() };
    let r = run(&link, 60);
    let probes: u32 = r[5..40].iter().map(|s| s.probes).sum();
    assert_between("probes in 35 s", f64::from(probes), 6.0, 8.0);
    assert_between("target", r[39].target, 3_000.0, 4_000.0);
    assert_between("use of it", mean(&r[42..], |s| s.received), 3_000.0, 4_000.0);
}

#[test]
fn the_target_obeys_new_limits_at_once() {
    let mut c = gcc(&[]);
    let set = |c: &mut Gcc, floor, ceiling| {
        c.on_limits(Limits { floor: KBPS(floor), ceiling: KBPS(ceiling) }, Timestamp::from_millis(5));
        c.target().media_rate
    };
    assert_eq!(set(&mut c, 50, 300), KBPS(300));
    assert_eq!(set(&mut c, 800, 900), KBPS(800));
    assert_eq!(set(&mut c, 800, 100), KBPS(800), "the floor wins");
    assert_eq!(set(&mut c, 0, 0), KBPS(0));
}
#[test]
fn version_2_tells_random_loss_from_congestion() {
    for (loss, low, high) in [(0.0, 0.85, 1.0), (0.02, 0.8, 1.0), (0.05, 0.75, 1.0), (0.1, 0.5, 1.0), (0.3, 0.02, 0.1)]
    {
        let link = Link { capacity: |_| 2_000, loss, ..Link::default() };
        let r = run_with(&mut gcc(&[("loss_v2", 1.0)]), &link, 80, &mut Reno::default());
        assert_between(
            &format!("target at {loss}"),
            mean(&r[10..], |s| s.target),
            low * 2_000.0,
            1.02 * high * 2_000.0,
        );
    }
    // A queue too short for a delay signal: 5 packets, 20 ms of the link.
    for v2 in [0.0, 1.0] {
        let link = Link { buffer: 5_000, ..Link::default() };
        let r = run_with(&mut gcc(&[("loss_v2", v2)]), &link, 80, &mut Reno::default());
        assert_between("received", mean(&r[10..], |s| s.received), 700.0, 1_000.0);
        assert_between("lost", mean(&r[10..], |s| s.target - s.received), -20.0, 150.0);
    }
}

/// Packets of 1,000 bytes every 8 ms, 1 Mbit/s, reported `many` at a time; `arrival` in ms by index.
fn report_packets(c: &mut Gcc, from: u64, to: u64, many: u64, arrival: fn(u64) -> i64) {
    for first in (from..to).step_by(many as usize) {
        let packets = (first..(first + many).min(to))
            .map(|i| {
                let departure = Timestamp::from_millis(8 * i as i64);
                let arrival = Some(RemoteTimestamp::from_millis(arrival(i)));
                let size = DataSize::from_bytes(PACKET);
                PacketResult { sequence: i, departure, arrival, size, ecn: Ecn::NotEct, probe: 0, was_lost: false }
            })
            .collect::<Vec<_>>();
        let now = Timestamp::from_millis(8 * (first + many) as i64 + 100);
        let rtt = Some(TimeDelta::from_millis(100));
        let f = TransportFeedback { now, packets: &packets, bytes_in_flight: DataSize::ZERO, rtt };
        c.on_cue(&Cue::TransportFeedback(f));
    }
}

#[test]
fn packets_that_overtook_each_other_are_taken_in_the_order_of_arrival() {
    let mut c = gcc(&[]);
    // Every second packet arrives 10 ms late, after its successor.
    report_packets(&mut c, 0, 500, 10, |i| 8 * i as i64 + 50 + if i % 2 == 0 { 10 } else { 0 });
    assert_between("acknowledged", c.acked.rate().expect("measured").as_kbps_f64(), 950.0, 1_050.0);
    assert_eq!(c.detector.usage(), Usage::Normal);
}

#[test]
fn a_pause_of_two_seconds_restarts_the_delay_filter() {
    let mut c = gcc(&[]);
    report_packets(&mut c, 0, 200, 10, |i| 8 * i as i64 + 50);
    assert!(c.trendline.count() > 60);
    report_packets(&mut c, 440, 450, 10, |i| 8 * i as i64 + 950);
    assert!(c.trendline.count() > 60, "1.92 s after the last feedback");
    report_packets(&mut c, 710, 720, 10, |i| 8 * i as i64 + 50);
    assert!(c.trendline.count() < 10, "2.16 s after it");
}

#[test]
fn a_low_probe_result_takes_the_rate_no_lower_than_what_arrives() {
    let mut c = gcc(&[]);
    report_packets(&mut c, 0, 1_200, 10, |i| 8 * i as i64 + 50);
    let before = c.target().media_rate;
    assert!(before > KBPS(900), "{before}");
    c.update_delay_based(Some(KBPS(100)), false, Timestamp::from_secs(10));
    c.set_target();
    let acked = c.acked.rate().expect("measured").as_kbps_f64();
    assert_between("acknowledged", acked, 950.0, 1_050.0);
    assert_between("target", c.target().media_rate.as_kbps_f64(), 0.849 * acked, 0.851 * acked);
}

/// A call of the controller with hostile arguments.
#[derive(Clone, Debug)]
enum Call {
    Send { after_us: i64, size: u64, probe: u32 },
    Feedback { after_us: i64, packets: Vec<(i64, Option<i64>, u64, bool)>, rtt_us: Option<i64> },
    Limits { floor: u64, ceiling: u64 },
    Timeout,
    Probe,
}

fn call() -> impl Strategy<Value = Call> {
    let any_time = prop_oneof![8 => -500_000i64..5_000_000, 1 => any::<i64>()];
    let packet = (any_time.clone(), proptest::option::weighted(0.8, any_time.clone()), 0u64..100_000, any::<bool>());
    let rtt = proptest::option::of(any_time);
    prop_oneof![
        6 => (0i64..2_000_000, 0u64..100_000, 0u32..20)
            .prop_map(|(after_us, size, probe)| Call::Send { after_us, size, probe }),
        4 => (0i64..2_000_000, vec(packet, 0..40), rtt)
            .prop_map(|(after_us, packets, rtt_us)| Call::Feedback { after_us, packets, rtt_us }),
        1 => (0u64..5_000_000, 0u64..50_000_000).prop_map(|(floor, ceiling)| Call::Limits { floor, ceiling }),
        2 => Just(Call::Timeout),
        2 => Just(Call::Probe),
    ]
}

proptest! {
    #[test]
    fn no_input_breaks_it(calls in vec(call(), 1..200), v2 in 0u8..2) {
        let mut c = gcc(&[("loss_v2", f64::from(v2)), ("probe_recovery", f64::from(v2))]);
        let mut limits = Limits { floor: KBPS(50), ceiling: KBPS(10_000) };
        let mut now = Timestamp::ZERO;
        let mut sequence = 0;
        for call in calls {
            match call {
                Call::Send { after_us, size, probe } => {
                    now += TimeDelta::from_micros(after_us);
                    sequence += 1;
                    let size = DataSize::from_bytes(size);
                    let (queued, bytes_in_flight) = (DataSize::ZERO, size);
                    let is_padding = probe % 2 == 1;
                    c.on_packet_sent(&SentPacket { is_padding, probe, queued, bytes_in_flight, ..SentPacket::media(now, sequence, size) });
                }
                Call::Feedback { after_us, packets, rtt_us } => {
                    now += TimeDelta::from_micros(after_us);
                    let packets = packets
                        .iter()
                        .enumerate()
                        .map(|(i, &(ago, arrival, size, was_lost))| PacketResult {
                            sequence: sequence + i as u64,
                            departure: now - TimeDelta::from_micros(ago),
                            arrival: arrival.map(RemoteTimestamp::from_micros),
                            size: DataSize::from_bytes(size),
                            ecn: Ecn::NotEct,
                            probe: (size % 8) as u32,
                            was_lost,
                        })
                        .collect::<Vec<_>>();
                    let rtt = rtt_us.map(TimeDelta::from_micros);
                    let f = TransportFeedback { now, packets: &packets, bytes_in_flight: DataSize::ZERO, rtt };
                    c.on_cue(&Cue::TransportFeedback(f));
                }
                Call::Limits { floor, ceiling } => {
                    limits = Limits { floor: DataRate::from_bps(floor), ceiling: DataRate::from_bps(ceiling) };
                    c.on_limits(limits, now);
                }
                Call::Timeout => {
                    if let Some((t, _)) = c.poll_timeout() {
                        now = now.max(t);
                        c.on_timeout(now);
                        prop_assert!(c.poll_timeout().is_none_or(|(t, _)| t > now));
                    }
                }
                Call::Probe => {
                    if let Some(p) = c.poll_probe(now) {
                        prop_assert!(p.id > 0 && p.rate > DataRate::ZERO && p.min_packets >= 2);
                    }
                }
            }
            let target = c.target();
            prop_assert!(target.media_rate >= limits.floor);
            prop_assert!(target.media_rate <= limits.ceiling.max(limits.floor));
            prop_assert!(target.pacing_rate >= target.media_rate);
            let mut names = 0;
            let mut wild = None;
            c.metrics(&mut |name, v| {
                names += 1;
                if v.is_infinite() || (v.is_nan() && !matches!(name, "acked_bps" | "link_capacity_bps" | "probe_bps" | "rtt_ms")) {
                    wild = Some(name);
                }
            });
            prop_assert_eq!((names, wild), (12, None));
        }
    }
}
