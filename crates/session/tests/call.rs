//! Two ends of a call over a tiny link, with real bytes in both directions.

use std::collections::VecDeque;
use weir_cc::{FeedbackFormat, Limits, Registry, Setup};
use weir_media::{Packetiser, PerfectCodec, Source};
use weir_session::{Datagram, Endpoint, EndpointConfig, ReceiveConfig, RepairChoice, SendConfig};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{Packet, check_compound, parse_compound};

struct Link {
    delay: TimeDelta,
    rate: DataRate,
    free_at: Timestamp,
    lose: fn(u64) -> bool,
    count: u64,
    inside: VecDeque<(Timestamp, Vec<u8>, u32)>,
}

impl Link {
    fn new(rate: DataRate, lose: fn(u64) -> bool) -> Self {
        let delay = TimeDelta::from_millis(50);
        Self { delay, rate, free_at: Timestamp::ZERO, lose, count: 0, inside: VecDeque::new() }
    }
    fn push(&mut self, now: Timestamp, bytes: Vec<u8>, payload: u32) {
        self.count += 1;
        let size = DataSize::from_bytes(bytes.len() as u64 + u64::from(payload) + 28);
        if (self.lose)(self.count) || self.free_at.saturating_since(now) > TimeDelta::from_millis(300) {
            return;
        }
        self.free_at = self.free_at.max(now) + self.rate.time_for(size).expect("rate above zero");
        self.inside.push_back((self.free_at + self.delay, bytes, payload));
    }
}

struct Call {
    a: Endpoint,
    b: Endpoint,
    there: Link,
    back: Link,
    now: Timestamp,
    /// RTCP datagrams from a and from b.
    rtcp: [Vec<Vec<u8>>; 2],
    media: u64,
}

fn call(controller: &str, seed: u64, lose: fn(u64) -> bool) -> Call {
    let registry = Registry::builtin();
    let kbps = DataRate::from_kbps;
    let limits = Limits { floor: kbps(150), ceiling: kbps(3_000) };
    let now = Timestamp::ZERO;
    let setup = Setup { limits, start_rate: kbps(500), now, seed, params: vec![] };
    let pair = registry.make(controller, &setup).expect("built in");
    let spec = registry.get(controller).expect("built in");
    let (feedback, reports) = (spec.feedback, spec.reports);
    let config = EndpointConfig {
        ssrc: 11,
        remote_ssrc: 22,
        seed,
        abs_send_time: pair.receiver.is_some(),
        transport_sequence: feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide),
        ..EndpointConfig::default()
    };
    let source = Source::from(PerfectCodec::packets(DataSize::from_bytes(1_000), now));
    let send = SendConfig {
        source,
        per_packet_feedback: feedback.is_some(),
        reports,
        packetiser: Packetiser::default(),
        repair: RepairChoice::default(),
        circuit_breaker: None,
        controller: pair.sender,
        limits,
    };
    let receive = ReceiveConfig { feedback, reports, controller: pair.receiver, ..ReceiveConfig::default() };
    Call {
        a: Endpoint::new(config.clone(), Some(send), None, now),
        b: Endpoint::new(
            EndpointConfig { ssrc: 22, remote_ssrc: 11, seed: seed + 1, ..config },
            None,
            Some(receive),
            now,
        ),
        there: Link::new(kbps(2_000), lose),
        back: Link::new(kbps(10_000), |_| false),
        now,
        rtcp: [vec![], vec![]],
        media: 0,
    }
}

impl Call {
    fn run(&mut self, seconds: i64) {
        let end = Timestamp::from_secs(seconds);
        let mut steps = 0u32;
        loop {
            self.drain();
            let mut at = end;
            let fronts = [&self.there, &self.back].map(|l| l.inside.front().map(|p| p.0));
            let timers = [self.a.poll_timeout(self.now), self.b.poll_timeout(self.now)];
            for t in fronts.into_iter().chain(timers).flatten() {
                at = at.min(t);
            }
            if at >= end {
                return;
            }
            steps += 1;
            assert!(steps < 2_000_000, "time stands still at {}", self.now);
            self.now = self.now.max(at);
            if let Some((_, bytes, payload)) = self.there.inside.pop_front_if(|p| p.0 <= self.now) {
                self.b.handle_datagram(self.now, &Datagram { bytes: &bytes, payload, ecn: Ecn::NotEct });
            }
            if let Some((_, bytes, payload)) = self.back.inside.pop_front_if(|p| p.0 <= self.now) {
                self.a.handle_datagram(self.now, &Datagram { bytes: &bytes, payload, ecn: Ecn::NotEct });
            }
            self.a.handle_timeout(self.now);
            self.b.handle_timeout(self.now);
        }
    }
    fn drain(&mut self) {
        let mut out = Vec::new();
        while let Some(t) = self.a.poll_transmit(self.now, &mut out) {
            assert_eq!(t.size.as_bytes(), out.len() as u64 + u64::from(t.payload));
            if t.is_rtp {
                self.media += 1;
            } else {
                self.rtcp[0].push(out.clone());
            }
            self.there.push(self.now, out.clone(), t.payload);
        }
        while let Some(t) = self.b.poll_transmit(self.now, &mut out) {
            assert!(!t.is_rtp);
            self.rtcp[1].push(out.clone());
            self.back.push(self.now, out.clone(), 0);
        }
    }
}

#[test]
fn a_constant_rate_arrives_whole_and_is_reported() {
    let mut c = call("fixed", 1, |_| false);
    c.run(20);
    // 500 kbit/s in packets of 1,000 bytes: 62.5 a second.
    assert!((1_248..=1_252).contains(&c.media), "{}", c.media);
    let r = c.b.receive_counters();
    assert!(c.media - r.packets <= 4 && r.invalid == 0, "{r:?}");
    let rtt = c.a.rtt().expect("measured").as_millis_f64();
    assert!((100.0..106.0).contains(&rtt), "{rtt}");
    for datagram in c.rtcp.iter().flatten() {
        check_compound(datagram).expect("a compound by RFC 3550");
    }
    // T_rr_interval of 1 s, 0.5 to 1.5 s apart.
    assert!((13..=40).contains(&c.rtcp[1].len()), "{}", c.rtcp[1].len());
    assert_eq!(c.a.counters().malformed + c.b.counters().malformed, 0);
}

#[test]
fn losses_reach_the_sender_as_report_blocks() {
    let mut c = call("fixed", 3, |n| n % 10 == 0);
    c.run(60);
    let lost: Vec<u8> = (c.rtcp[1].iter())
        .flat_map(|d| parse_compound(d).flatten().collect::<Vec<_>>())
        .filter_map(|p| match p {
            Packet::ReceiverReport(rr) => rr.blocks.iter().next().map(|b| b.fraction_lost),
            _ => None,
        })
        .collect();
    let mean = lost.iter().map(|&f| f64::from(f) / 256.0).sum::<f64>() / lost.len() as f64;
    assert!((0.08..0.12).contains(&mean), "{mean}");
}

#[test]
fn every_controller_finds_its_rate_and_keeps_its_counters_clean() {
    for spec in Registry::builtin().specs() {
        let mut c = call(&spec.name, 5, |_| false);
        c.run(60);
        let target = c.a.target().expect("sends").media_rate.as_kbps_f64();
        assert!((400.0..=2_400.0).contains(&target), "{}: {target} kbit/s", spec.name);
        let h = c.a.history_counters();
        assert_eq!((h.unknown, h.late), (0, 0), "{}: {h:?}", spec.name);
        assert_eq!((c.a.counters().malformed, c.b.counters().malformed), (0, 0), "{}", spec.name);
        assert!(c.a.bytes_in_flight() < DataSize::from_bytes(300_000), "{}", spec.name);
        let bandwidth = c.b.counters().rtcp_bytes as f64 * 8.0 / 60.0;
        assert!(bandwidth < 0.06 * 2e6, "{}: RTCP takes {bandwidth} bit/s", spec.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for spec in Registry::builtin().specs() {
        let run = |seed| {
            let mut c = call(&spec.name, seed, |n| n % 50 == 0);
            c.run(10);
            (c.rtcp, c.media)
        };
        assert_eq!(run(9), run(9), "{}", spec.name);
        assert_ne!(run(9).0, run(10).0, "{}", spec.name);
    }
}

#[test]
fn garbage_is_counted_and_changes_nothing() {
    let mut c = call("fixed", 1, |_| false);
    c.run(2);
    let before = c.a.target();
    let mut x = 12_345u64;
    for n in 0..20_000usize {
        let mut bytes: Vec<u8> = (0..n % 97)
            .map(|_| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (x >> 33) as u8
            })
            .collect();
        if let [first, second, ..] = &mut bytes[..] {
            *first = 0x80 | (*first & 0x3f);
            if n % 2 == 0 {
                *second = 200 + (*second % 8);
            }
        }
        for end in [&mut c.a, &mut c.b] {
            end.handle_datagram(c.now, &Datagram { bytes: &bytes, payload: (n % 3) as u32 * 100, ecn: Ecn::Ce });
        }
    }
    assert!(c.a.counters().malformed > 1_000 && c.b.counters().unknown_source > 1_000);
    assert_eq!(c.a.target(), before);
}

#[test]
fn leaving_sends_a_goodbye_and_then_nothing() {
    let mut c = call("fixed", 1, |_| false);
    c.run(1);
    c.a.leave();
    let mut out = Vec::new();
    assert!(c.a.poll_transmit(c.now, &mut out).is_some_and(|t| !t.is_rtp));
    check_compound(&out).expect("compound");
    assert!(parse_compound(&out).flatten().any(|p| matches!(p, Packet::Bye(_))));
    assert_eq!((c.a.poll_transmit(c.now, &mut out), c.a.poll_timeout(c.now)), (None, None));
}
