//! SCReAM over a model of the path: frames, RTP queue, pacer, one drop-tail link, CCFB.

use super::*;
use crate::Registry;
use crate::cue::TransportFeedback;
use crate::flow::history::{ReportedPacket, SentHistory};
use crate::flow::pacer::{Pacer, PacerDecision};
use crate::testing::Kbps;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use weir_units::{Ecn, RemoteTimestamp};

const PACKET: u64 = 1_000;

#[derive(Clone, Copy)]
struct Path {
    capacity: fn(i64) -> u64,
    buffer: u64,
    one_way_ms: i64,
    loss: f64,
    fps: i64,
    feedback_ms: i64,
    /// Reports are received until this time only.
    feedback_until_ms: i64,
    /// A Reno bulk flow shares the link from this time.
    reno_from_ms: i64,
    /// Packets are marked if this many bytes are queued before them.
    marks_above: u64,
}

/// 2 Mbit/s, 100 ms, a queue of 300 ms.
const FLAT: Path = Path {
    capacity: |_| 2_000,
    buffer: 75_000,
    one_way_ms: 100,
    loss: 0.0,
    fps: 50,
    feedback_ms: 20,
    feedback_until_ms: i64::MAX,
    reno_from_ms: i64::MAX,
    marks_above: u64::MAX,
};

/// Per second of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Second {
    target_kbps: f64,
    sent_kbps: f64,
    queue_ms: f64,
    queue_ms_max: f64,
    dropped: u32,
}

fn setup(start: u64, floor: u64, params: &[(&str, f64)]) -> Setup {
    Kbps { floor, start, ceiling: 32_800 }.setup(params)
}

fn scream(params: &[(&str, f64)]) -> Scream {
    Kbps { floor: 150, start: 300, ceiling: 32_800 }.sender(params)
}

/// As close to the public C++ of 2018 as the tunables allow, with a quick ramp-up and a floor of 256 kbit/s.
fn cpp() -> Setup {
    setup(
        2_000,
        256,
        &[
            ("ramp_up_speed", 2_000.0),
            ("tx_queue_size_factor", 0.2),
            ("pre_congestion_guard", 0.1),
            ("target_rate_scale_rtp_qdelay", 1.0),
            ("adapt_qdelay_target", 0.0),
            ("gain_down", 2.0),
            ("fast_increase_rtp_qdelay", 100.0),
            ("beta_r_ecn", 0.95),
            ("pacing_head_room", 1.5),
            ("base_delay_interval", 10_000.0),
            ("base_delay_history", 50.0),
        ],
    )
}

/// TCP's additive increase and multiplicative decrease over the same link, in packets.
struct Reno {
    cwnd: f64,
    ssthresh: f64,
    in_flight: u32,
    recovers_at: i64,
    /// When a packet's fate is known, and whether it has arrived.
    fates: VecDeque<(i64, bool)>,
}

impl Reno {
    fn new() -> Self {
        Self { cwnd: 4.0, ssthresh: 1e9, in_flight: 0, recovers_at: 0, fates: VecDeque::new() }
    }
    fn turn(&mut self, t: i64) {
        while self.fates.front().is_some_and(|f| f.0 <= t) {
            self.in_flight -= 1;
            if self.fates.pop_front().expect("looked at").1 {
                self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
            } else if t >= self.recovers_at {
                self.ssthresh = (self.cwnd / 2.0).max(2.0);
                (self.cwnd, self.recovers_at) = (self.ssthresh, t + 400);
            }
        }
    }
}

/// A packet in the link's queue.
#[derive(Clone, Copy)]
struct Queued {
    sequence: u64,
    size: u64,
    is_reno: bool,
    is_marked: bool,
}

struct Frame {
    left: u64,
    entered: i64,
}

/// Runs in steps of a millisecond.
fn run(setup: &Setup, path: Path, seconds: usize) -> Vec<Second> {
    let mut c = Registry::builtin().make("scream", setup).expect("valid").sender;
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let mut history = SentHistory::new();
    let mut pacer = Pacer::new(&c.target(), Timestamp::ZERO);
    let mut rtp: VecDeque<Frame> = VecDeque::new();
    let (mut link, mut credit): (VecDeque<Queued>, u64) = (VecDeque::new(), 0);
    let mut flying: VecDeque<(i64, u64, Ecn)> = VecDeque::new();
    let mut reno = Reno::new();
    let mut reports: VecDeque<(i64, Vec<ReportedPacket>)> = VecDeque::new();
    let (mut received, mut reported, mut sequence) = (Vec::<(u64, i64, Ecn)>::new(), 0u64, 0u64);
    let mut out = Vec::new();
    let mut seconds_out = vec![Second::default(); seconds];
    for t in 0..seconds as i64 * 1_000 {
        let now = Timestamp::from_millis(t);
        let s = &mut seconds_out[t as usize / 1_000];
        while c.poll_timeout().is_some_and(|(at, _)| at <= now) {
            c.on_timeout(now);
        }
        while reports.front().is_some_and(|r| r.0 <= t) {
            let (_, batch) = reports.pop_front().expect("looked at");
            history.resolve(batch, &mut out);
            let rtt = out.iter().rev().find(|p| p.arrival.is_some()).map(|p| {
                // Without the receiver's holding time, as in RFC 8888.
                let arrival = Timestamp::from_nanos(p.arrival.expect("received").as_nanos());
                arrival - p.departure + TimeDelta::from_millis(path.one_way_ms)
            });
            let bytes_in_flight = history.bytes_in_flight();
            c.on_cue(&Cue::TransportFeedback(TransportFeedback { now, packets: &out, bytes_in_flight, rtt }));
        }
        if t % (1_000 / path.fps) == 0 {
            let size = c.target().media_rate.as_bps() / 8 / path.fps as u64;
            let (queued, oldest) = (rtp.iter().map(|f| f.left).sum::<u64>(), rtp.front().map_or(t, |f| f.entered));
            rtp.push_back(Frame { left: size, entered: t });
            let (added, queued) = (DataSize::from_bytes(size), DataSize::from_bytes(queued + size));
            c.on_queue(&QueueState { now, added, queued, oldest_age: TimeDelta::from_millis(t - oldest) });
            s.target_kbps += size as f64 * 8e-3;
        }
        if let (Some(age), Some(f)) = (c.target().max_queue_age, rtp.front())
            && TimeDelta::from_millis(t - f.entered) > age
        {
            rtp.clear();
        }
        pacer.set_target(&c.target(), now);
        while let Some(f) = rtp.front_mut() {
            let size = DataSize::from_bytes(f.left.min(PACKET));
            let fits = c.target().window.is_none_or(|w| history.bytes_in_flight() + size <= w);
            if !fits {
                pacer.stop_waiting();
                break;
            }
            if pacer.poll(now, true) != (PacerDecision::Media { probe: 0 }) {
                break;
            }
            f.left -= size.as_bytes();
            if f.left == 0 {
                rtp.pop_front();
            }
            pacer.on_sent(now, size, false, 0);
            let mut packet = SentPacket {
                queued: DataSize::from_bytes(rtp.iter().map(|f| f.left).sum()),
                ..SentPacket::media(now, sequence, size)
            };
            history.on_sent(&packet);
            packet.bytes_in_flight = history.bytes_in_flight();
            c.on_packet_sent(&packet);
            s.sent_kbps += size.as_bits() as f64 * 1e-3;
            let waiting = link.iter().map(|p| p.size).sum::<u64>();
            if waiting + size.as_bytes() <= path.buffer {
                let (size, is_marked) = (size.as_bytes(), waiting > path.marks_above);
                link.push_back(Queued { sequence, size, is_reno: false, is_marked });
            } else {
                s.dropped += 1;
            }
            sequence += 1;
        }
        reno.turn(t);
        while t >= path.reno_from_ms && f64::from(reno.in_flight) < reno.cwnd {
            reno.in_flight += 1;
            let waiting = link.iter().map(|p| p.size).sum::<u64>();
            if waiting + PACKET <= path.buffer {
                link.push_back(Queued { sequence: 0, size: PACKET, is_reno: true, is_marked: false });
            } else {
                // Inferred from the duplicate acknowledgements of later packets.
                reno.fates.push_back((t + 2 * path.one_way_ms + waiting as i64 * 8 / (path.capacity)(t) as i64, false));
            }
        }
        let capacity = (path.capacity)(t);
        let queue_ms = link.iter().map(|p| p.size).sum::<u64>() as f64 * 8.0 / capacity as f64;
        s.queue_ms += queue_ms / 1_000.0;
        s.queue_ms_max = s.queue_ms_max.max(queue_ms);
        credit = if link.is_empty() { 0 } else { credit + capacity };
        while link.front().is_some_and(|p| p.size * 8 <= credit) {
            let p = link.pop_front().expect("looked at");
            credit -= p.size * 8;
            if p.is_reno {
                reno.fates.push_back((t + 2 * path.one_way_ms, true));
                reno.fates.make_contiguous().sort_by_key(|f| f.0);
            } else if !rng.random_bool(path.loss) {
                let ecn = if p.is_marked { Ecn::Ce } else { Ecn::Ect0 };
                flying.push_back((t + path.one_way_ms, p.sequence, ecn));
            }
        }
        while flying.front().is_some_and(|p| p.0 <= t) {
            let (_, sequence, ecn) = flying.pop_front().expect("looked at");
            received.push((sequence, t, ecn));
        }
        if t % path.feedback_ms == 0 && t < path.feedback_until_ms && !received.is_empty() {
            let highest = received.last().expect("not empty").0;
            let batch = (reported..=highest).map(|sequence| {
                let got = received.iter().find(|r| r.0 == sequence);
                let arrival = got.map(|r| RemoteTimestamp::from_millis(r.1));
                ReportedPacket { sequence, arrival, ecn: got.map_or(Ecn::NotEct, |r| r.2) }
            });
            reports.push_back((t + path.one_way_ms, batch.collect()));
            reported = highest + 1;
            received.clear();
        }
    }
    seconds_out
}

fn mean(s: &[Second], f: impl Fn(&Second) -> f64) -> f64 {
    s.iter().map(f).sum::<f64>() / s.len() as f64
}

/// The capacity halves midway.
const HALVING: Path = Path { capacity: |t| if t < 40_000 { 2_000 } else { 1_000 }, ..FLAT };

fn assert_between(what: &str, x: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&x), "{what} is {x}, not in {low} to {high}");
}

#[test]
fn fills_a_steady_link_and_keeps_its_queue_short() {
    for fps in [25, 30, 50] {
        let r = run(&setup(300, 150, &[]), Path { fps, ..FLAT }, 60);
        // A fifth more each second from less than 300 kbit/s, later 200 kbit/s: full at 14 s.
        assert_between("target in the fifth second", r[4].target_kbps, 300.0, 550.0);
        assert_between("rate", mean(&r[15..], |s| s.sent_kbps), 1_800.0, 2_010.0);
        assert_between("target", mean(&r[15..], |s| s.target_kbps), 1_800.0, 2_060.0);
        assert_between("queue", mean(&r[15..], |s| s.queue_ms), 2.0, 40.0);
        let longest = r[15..].iter().map(|s| s.queue_ms_max).fold(0.0, f64::max);
        assert_between("longest queue", longest, 10.0, 120.0);
        assert!(r[15..].iter().all(|s| s.dropped == 0));
    }
}

#[test]
fn sparse_feedback_costs_a_little_of_the_link() {
    // 130 ms is unrelated to the adjustment interval; 400 ms is the RFC's longest.
    for (feedback_ms, least) in [(50, 1_750.0), (100, 1_750.0), (130, 1_750.0), (400, 1_450.0)] {
        let r = run(&setup(300, 150, &[]), Path { feedback_ms, ..FLAT }, 60);
        assert_between("rate", mean(&r[25..], |s| s.sent_kbps), least, 2_000.0);
        assert_between("queue", mean(&r[25..], |s| s.queue_ms), 2.0, 40.0);
    }
}

#[test]
fn yields_when_half_of_the_capacity_goes() {
    let r = run(&setup(300, 150, &[]), HALVING, 70);
    assert_between("rate before", mean(&r[15..40], |s| s.sent_kbps), 1_800.0, 2_010.0);
    // A window of about 50 kB is queued at first: 400 ms at 1 Mbit/s. It drains within seconds.
    assert_between("highest queue", r[40].queue_ms_max.max(r[41].queue_ms_max), 50.0, 450.0);
    assert_between("rate after", mean(&r[43..], |s| s.sent_kbps), 900.0, 1_005.0);
    assert_between("queue after", mean(&r[46..], |s| s.queue_ms), 2.0, 50.0);
}

#[test]
fn takes_what_comes_back_sluggishly() {
    let path = Path { capacity: |t| if t < 30_000 { 500 } else { 1_000 }, ..FLAT };
    let r = run(&cpp(), path, 60);
    assert_between("rate before", mean(&r[15..30], |s| s.sent_kbps), 440.0, 502.0);
    assert_between("target at once", r[31].target_kbps, 400.0, 800.0);
    assert_between("rate in the end", mean(&r[50..], |s| s.sent_kbps), 900.0, 1_005.0);
}

#[test]
fn random_loss_drives_it_to_its_floor() {
    let target = |loss| mean(&run(&cpp(), Path { loss, ..FLAT }, 80)[30..], |s| s.target_kbps);
    // 0.8 and 0.9 once per round trip of 200 ms, in which mostly one of 13 or more packets is lost.
    assert_between("at 5 %", target(0.05), 255.0, 270.0);
    assert_between("at 1 %", target(0.01), 255.0, 500.0);
    assert_between("at 0.02 %", target(0.0002), 700.0, 2_000.0);
}

#[test]
fn by_the_letter_it_runs_away_from_the_link() {
    // The reason for `follow_throughput`.
    let s = setup(
        2_000,
        256,
        &[("ramp_up_speed", 2_000.0), ("ramp_up_scale", 0.5), ("follow_throughput", 0.0), ("idle_ratio", 1_000.0)],
    );
    assert_between("target", mean(&run(&s, FLAT, 40)[20..], |s| s.target_kbps), 5_000.0, 32_800.0);
}

#[test]
fn without_feedback_only_the_least_rate_goes_out() {
    let r = run(&setup(300, 150, &[]), Path { feedback_until_ms: 20_000, ..FLAT }, 60);
    // 3,000 bytes every 500 ms, less what the last packet leaves unused.
    assert_between("rate", mean(&r[25..], |s| s.sent_kbps), 30.0, 50.0);
    assert_between("target", r[59].target_kbps, 149.0, 200.0);
}

#[test]
fn the_same_events_give_the_same_targets() {
    let path = Path { loss: 0.01, ..HALVING };
    assert_eq!(run(&cpp(), path, 60), run(&cpp(), path, 60));
}

#[test]
fn the_queue_is_discarded_only_after_the_first_second() {
    let mut c = scream(&[("max_queue_age", 80.0)]);
    assert_eq!(c.target().max_queue_age, None);
    c.on_timeout(Timestamp::from_millis(999));
    assert_eq!(c.target().max_queue_age, None);
    c.on_timeout(Timestamp::from_millis(1_200));
    assert_eq!(c.target().max_queue_age, Some(TimeDelta::from_millis(80)));
    let mut c = scream(&[("max_queue_age", 0.0)]);
    c.on_timeout(Timestamp::from_millis(1_200));
    assert_eq!(c.target().max_queue_age, None);
}

#[test]
fn packets_may_go_unpaced_until_there_is_a_queue() {
    let start = |params: &[(&str, f64)]| scream(params).target().pacing_rate;
    assert!(start(&[]) < DataRate::from_mbps(1));
    assert_eq!(start(&[("pace_from", 0.02)]), UNPACED);
}

#[test]
fn it_starts_at_its_start_rate_with_the_least_window() {
    let c = scream(&[]);
    let t = c.target();
    assert_eq!((t.media_rate, t.pacing_rate), (DataRate::from_kbps(300), DataRate::from_kbps(300)));
    // MIN_CWND and, since the queue delay is below its target, MSS.
    assert_eq!(t.window, Some(DataSize::from_bytes(4_000)));
}

#[test]
fn marks_keep_the_queue_shorter_still() {
    let r = run(&setup(300, 150, &[]), Path { marks_above: 5_000, ..FLAT }, 80);
    assert_between("rate", mean(&r[20..], |s| s.sent_kbps), 1_650.0, 1_960.0);
    assert_between("queue", mean(&r[20..], |s| s.queue_ms), 2.0, 9.0);
    assert!(r[20..].iter().all(|s| s.queue_ms_max < 50.0 && s.dropped == 0));
}

#[test]
fn a_reno_flow_starves_it_and_the_adapted_target_only_delays_that() {
    let path = Path { reno_from_ms: 20_000, ..FLAT };
    let fixed = run(&cpp(), path, 100);
    assert_between("alone", mean(&fixed[10..20], |s| s.sent_kbps), 1_850.0, 2_010.0);
    assert_between("target beside Reno", mean(&fixed[60..], |s| s.target_kbps), 255.0, 330.0);
    let share = |adapt| {
        let r = run(&setup(300, 150, &[("adapt_qdelay_target", adapt)]), path, 60);
        mean(&r[20..], |s| s.sent_kbps)
    };
    assert_between("gain by the adapted target", share(1.0) / share(0.0), 1.2, 3.0);
}
