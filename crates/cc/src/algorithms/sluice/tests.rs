//! The controller against a fluid link: growth, the queue held, falls, drains, silence.

use super::mode::Mode;
use super::*;
use crate::controller::Controller;
use crate::controller::Limits;
use crate::cue::{Cue, PacketResult, SentPacket};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp};

/// A link of one rate with a queue without end, and this flow alone on it.
struct Link {
    sluice: Sluice,
    now: i64,
    /// Capacity in bit/s.
    capacity: f64,
    /// When the link has sent what it has, ns.
    free_at: i64,
    sequence: u64,
    /// Sent and not yet reported: departure in ns, and arrival or, if it is dropped, when that is known.
    flying: Vec<(i64, i64, bool)>,
    /// Greatest queueing delay reported, s.
    queue: f64,
    /// Queueing delay beyond which packets are dropped, ns.
    limit: i64,
    /// Rate in bit/s and size in bits of a token bucket before the link.
    policer: Option<(f64, f64)>,
    /// Bits in it.
    tokens: f64,
    /// Share of packets lost by chance.
    loss: f64,
    /// Share of feedback messages lost; each has the packets since the last one that was made.
    mute: f64,
    /// Each fifth packet arrives later by this, ns.
    held_back: i64,
    /// Addition to the delay of the path, ns.
    longer: i64,
    /// Random numbers: a linear congruential generator (Knuth's MMIX).
    random: u64,
    /// Packets sent and lost.
    counts: [f64; 2],
    credit: f64,
}

const MS: i64 = 1_000_000;
const ONE_WAY: i64 = 25 * MS;
const PACKET: u64 = 1_200;
const FOUR: Limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(4) };

impl Link {
    fn new(capacity: f64) -> Self {
        let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(50) };
        let start = Start { limits, rate: DataRate::from_kbps(300), now: Timestamp::ZERO };
        let sluice = Sluice::new(Config::default(), &start).expect("defaults are sound");
        Self {
            sluice,
            now: 0,
            capacity,
            free_at: 0,
            sequence: 0,
            flying: vec![],
            queue: 0.0,
            limit: i64::MAX,
            policer: None,
            tokens: f64::MAX,
            loss: 0.0,
            mute: 0.0,
            held_back: 0,
            longer: 0,
            random: 1,
            counts: [0.0; 2],
            credit: 0.0,
        }
    }

    fn rate(&self) -> f64 {
        self.sluice.target().media_rate.as_bps_f64()
    }

    /// Packets sent and lost in so many milliseconds.
    fn count(&mut self, ms: i64) -> [f64; 2] {
        self.counts = [0.0; 2];
        self.run(ms).counts
    }

    /// A number from 0 to 1.
    fn random(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether the policer or chance takes a packet.
    fn is_lost(&mut self) -> bool {
        let chance = self.random();
        let bits = PACKET as f64 * 8.0;
        if chance < self.loss {
            return true;
        }
        if self.policer.is_some() && self.tokens < bits {
            return true;
        }
        self.tokens -= bits;
        false
    }

    /// So many milliseconds: frames every 33 ms sent at once, feedback every 50 ms.
    fn run(&mut self, ms: i64) -> &mut Self {
        for _ in 0..ms {
            self.now += MS;
            self.tokens = self.policer.map_or(f64::MAX, |(rate, size)| (self.tokens + rate * 1e-3).min(size));
            let at = Timestamp::from_nanos(self.now);
            if let Some((due, _)) = self.sluice.poll_timeout().filter(|(due, _)| *due <= at) {
                let _ = due;
                self.sluice.on_timeout(at);
            }
            if (self.now / MS) % 33 == 0 {
                self.credit += self.rate() * 0.033 / 8.0;
                while self.credit >= PACKET as f64 {
                    self.credit -= PACKET as f64;
                    self.send(at);
                }
            }
            if (self.now / MS) % 50 == 0 {
                self.report(at);
            }
        }
        self
    }

    fn send(&mut self, at: Timestamp) {
        let service = (PACKET as f64 * 8.0 / self.capacity * 1e9) as i64;
        let is_dropped = self.is_lost() || self.free_at - self.now > self.limit;
        self.counts[0] += 1.0;
        self.counts[1] += f64::from(u8::from(is_dropped));
        if !is_dropped {
            self.free_at = self.free_at.max(self.now) + service;
        }
        self.sequence += 1;
        let held_back = if self.sequence.is_multiple_of(5) { self.held_back } else { 0 };
        self.flying.push((self.now, self.free_at + ONE_WAY + self.longer + held_back, is_dropped));
        self.sluice.on_packet_sent(&SentPacket {
            now: at,
            sequence: self.sequence,
            size: DataSize::from_bytes(PACKET),
            is_padding: false,
            is_repair: false,
            is_retransmission: false,
            probe: 0,
            queued: DataSize::ZERO,
            bytes_in_flight: DataSize::from_bytes(PACKET * self.flying.len() as u64),
        });
    }

    /// Feedback that left the receiver one way ago.
    fn report(&mut self, at: Timestamp) {
        let made = self.now - ONE_WAY;
        let arrived = self.flying.iter().take_while(|f| f.1 <= made).count();
        let first = self.sequence + 1 - self.flying.len() as u64;
        let results: Vec<PacketResult> = (first..)
            .zip(self.flying.drain(..arrived))
            .map(|(sequence, (sent, arrival, is_dropped))| PacketResult {
                sequence,
                departure: Timestamp::from_nanos(sent),
                arrival: (!is_dropped).then(|| RemoteTimestamp::from_nanos(arrival)),
                size: DataSize::from_bytes(PACKET),
                ecn: Ecn::NotEct,
                probe: 0,
                was_lost: false,
            })
            .collect();
        if self.random() < self.mute {
            return;
        }
        let Some(last) = results.iter().rfind(|p| p.arrival.is_some()) else { return };
        let delay = last.arrival.map_or(0, |a| a.as_nanos()) - last.departure.as_nanos();
        self.queue = (delay - ONE_WAY) as f64 * 1e-9;
        self.sluice.on_cue(&Cue::TransportFeedback(TransportFeedback {
            now: at,
            packets: &results,
            bytes_in_flight: DataSize::from_bytes(PACKET * self.flying.len() as u64),
            rtt: Some(TimeDelta::from_nanos(self.now - last.departure.as_nanos())),
        }));
    }
}

fn internal(sluice: &Sluice, name: &str) -> f64 {
    let mut found = f64::NAN;
    sluice.metrics(&mut |n, v| {
        if n == name {
            found = v;
        }
    });
    found
}

#[test]
fn it_doubles_to_the_capacity_and_holds_a_short_queue() {
    let mut link = Link::new(4e6);
    link.run(1_500);
    assert!(link.rate() > 0.7 * 4e6, "{}", link.rate());
    link.run(4_000);
    for _ in 0..40 {
        link.run(50);
        assert!((0.75 * 4e6..1.15 * 4e6).contains(&link.rate()), "{}", link.rate());
        assert!(link.queue < 0.06, "{} s", link.queue);
    }
    assert_eq!(internal(&link.sluice, "compete"), 0.0);
    let capacity = internal(&link.sluice, "capacity_bps");
    assert!((3.8e6..4.2e6).contains(&capacity), "{capacity}");
}

#[test]
fn a_fall_to_a_quarter_is_followed_in_half_a_second_and_is_no_competition() {
    let mut link = Link::new(2e6);
    link.run(10_000);
    link.capacity = 0.5e6;
    link.run(400);
    assert!(link.rate() < 0.5e6, "{}", link.rate());
    let (mut competed, mut sum) = (0, 0.0);
    for k in 0..200 {
        link.run(50);
        competed += i32::from(internal(&link.sluice, "compete") > 0.5);
        sum += if k < 160 { 0.0 } else { link.rate() };
    }
    let mean = sum / 40.0;
    assert_eq!(competed, 0, "alone on a link that has become slow");
    assert!((0.45e6..0.55e6).contains(&mean) && link.queue < 0.1, "{mean} {}", link.queue);
    link.capacity = 2e6;
    link.run(1_200);
    assert!(link.rate() > 1.6e6, "{}", link.rate());
}

#[test]
fn a_queue_that_never_empties_is_drained_every_four_to_eight_seconds() {
    let mut link = Link::new(2e6);
    link.run(5_000);
    let (mut drains, mut was) = (0, false);
    for _ in 0..480 {
        link.run(50);
        let drains_now = internal(&link.sluice, "mode") == Mode::Drain.number();
        drains += i32::from(drains_now && !was);
        was = drains_now;
    }
    assert!((2..=6).contains(&drains), "{drains} drains in 24 s");
}

#[test]
fn silence_lowers_the_rate_to_the_floor_and_nothing_panics() {
    let mut link = Link::new(2e6);
    link.run(5_000);
    let before = link.rate();
    // The link stands still: packets leave, none is reported.
    link.capacity = 1.0;
    link.run(3_000);
    assert!(before > 1.5e6 && link.rate() <= 110e3, "{before} {}", link.rate());
    assert_eq!(internal(&link.sluice, "mode"), Mode::Unreported.number());
}

#[test]
fn a_silence_during_a_drain_does_not_raise_the_rate() {
    let mut link = Link::new(0.2e6);
    link.run(5_000);
    for _ in 0..20_000 {
        link.run(1);
        if internal(&link.sluice, "mode") == Mode::Drain.number() {
            break;
        }
    }
    let drained = link.rate();
    assert_eq!(internal(&link.sluice, "mode"), Mode::Drain.number());
    // No message arrives any more, from the begin of the drain on.
    link.mute = 1.0;
    for _ in 0..1_000 {
        let before = link.rate();
        link.run(1);
        let is_silent = internal(&link.sluice, "mode") == Mode::Unreported.number();
        assert!(!is_silent || link.rate() <= before, "{before} {}", link.rate());
    }
    assert!(link.rate() <= 110e3, "{drained} {}", link.rate());
}

#[test]
fn a_source_that_does_not_use_the_rate_changes_nothing() {
    let mut link = Link::new(5e6);
    link.sluice.on_limits(Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(4) }, Timestamp::ZERO);
    link.run(3_000);
    let before = link.rate();
    for _ in 0..40 {
        // A packet in 50 ms: a twentieth.
        link.run(33);
        link.credit = -1e9;
        let at = Timestamp::from_nanos(link.now);
        link.send(at);
        link.run(17);
    }
    assert!(link.rate() >= 0.95 * before, "{} after {before}", link.rate());
}

#[test]
fn a_queue_that_holds_less_than_a_frame_does_not_let_the_rate_exceed_the_service() {
    // Of each frame three packets pass; what is dropped of it leaves no queue behind.
    let mut link = Link::new(1e6);
    link.limit = 20 * MS;
    link.sluice.on_limits(Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(5) }, Timestamp::ZERO);
    link.run(10_000);
    let (mut sum, mut most) = (0.0, 0.0_f64);
    for _ in 0..200 {
        link.run(50);
        sum += link.rate() / 200.0;
        most = most.max(link.rate());
    }
    assert!((0.6e6..1.06e6).contains(&sum) && most < 1.3e6, "{sum}, {most} at most");
}

#[test]
fn a_policer_is_answered_and_chance_is_not() {
    // A policer of 1.5 Mbit/s with 50 kB on a link of 10: at most a twentieth is lost, and what arrives is used.
    let mut policed = Link::new(10e6);
    policed.sluice.on_limits(FOUR, Timestamp::ZERO);
    policed.policer = Some((1.5e6, 400e3));
    policed.run(5_000);
    let [sent, lost] = policed.count(55_000);
    let arrived = (sent - lost) * 1_200.0 * 8.0 / 55.0;
    assert!((0.001..0.05).contains(&(lost / sent)) && (0.95 * 1.5e6..1.02 * 1.5e6).contains(&arrived), "{lost} {sent}");
    assert_eq!(internal(&policed.sluice, "chance"), 0.0);
    // It goes away.
    policed.policer = None;
    policed.run(10_000);
    assert!(policed.rate() > 3.5e6, "{}", policed.rate());
    // Of 5 to 30 % lost by chance nothing is this rate's own.
    for share in [0.05, 0.1, 0.3] {
        let mut radio = Link::new(10e6);
        radio.sluice.on_limits(FOUR, Timestamp::ZERO);
        radio.loss = share;
        radio.run(2_000);
        let [sent, lost] = radio.count(60_000);
        assert!((0.8 * share..1.2 * share).contains(&(lost / sent)), "{lost} {sent}");
        let used = sent * 1_200.0 * 8.0 / 60.0 / 4e6;
        // It is asked again now and then whether they are, which takes a part of the rate.
        assert!((0.9..1.02).contains(&used), "{share}: {used}");
    }
}

/// Share of the capacity that is sent, and mean queueing delay reported, in so many seconds.
fn use_of(link: &mut Link, s: i64) -> [f64; 2] {
    link.counts = [0.0; 2];
    let mut queue = 0.0;
    for _ in 0..20 * s {
        link.run(50);
        queue += link.queue / (20 * s) as f64;
    }
    [link.counts[0] * PACKET as f64 * 8.0 / s as f64 / link.capacity, queue]
}

#[test]
fn lost_feedback_is_no_lost_media() {
    let mut link = Link::new(4e6);
    link.mute = 0.7;
    link.run(10_000);
    let [used, queue] = use_of(&mut link, 60);
    assert!((0.85..1.02).contains(&used) && (0.0..0.04).contains(&queue), "{used} {queue}");
}

#[test]
fn packets_that_overtake_others_show_no_slow_link() {
    let mut link = Link::new(4e6);
    link.held_back = 10 * MS;
    link.run(10_000);
    let [used, queue] = use_of(&mut link, 30);
    assert!((0.9..1.02).contains(&used) && (0.0..0.04).contains(&queue), "{used} {queue}");
}

#[test]
fn a_path_that_becomes_longer_is_no_queue_and_a_queue_is_no_longer_path() {
    let mut link = Link::new(3e6);
    link.run(10_000);
    link.longer = 150 * MS;
    link.run(2_000);
    let [used, delay] = use_of(&mut link, 6);
    assert!((0.75..1.03).contains(&used) && (0.15..0.22).contains(&delay), "{used} {delay}");
    // A fall of the capacity leaves a queue that shrinks; nothing of it may become the path's.
    let mut slower = Link::new(3e6);
    slower.run(10_000);
    slower.capacity = 1e6;
    slower.run(3_000);
    let [used, delay] = use_of(&mut slower, 20);
    assert!((0.85..1.03).contains(&used) && (0.0..0.06).contains(&delay), "{used} {delay}");
}

#[test]
fn a_burst_of_losses_that_ends_by_itself_is_no_policer() {
    let mut link = Link::new(10e6);
    link.run(6_000);
    link.loss = 0.5;
    link.run(100);
    link.loss = 0.0;
    link.run(700);
    assert!((7e6..11e6).contains(&link.rate()), "{}", link.rate());
    assert!(internal(&link.sluice, "answer_bound_bps").is_nan());
}

#[test]
fn the_rate_is_back_soon_after_losses_that_ended_by_themselves() {
    let mut link = Link::new(2e6);
    link.run(20_000);
    link.loss = 0.5;
    link.run(20_000);
    assert!(link.rate() < 0.6e6, "half is lost at any rate: {}", link.rate());
    link.loss = 0.0;
    link.run(6_000);
    let rate = link.rate();
    assert!((1.4e6..2.6e6).contains(&rate) && link.queue < 0.2, "{rate} {}", link.queue);
}
