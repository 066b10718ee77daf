//! Time advances: after an end of a call has handled its timeout and its packets are taken, its next timeout is later, or a
//! few more turns at that instant lead there. Random operations, over UDP and over DCCP, in one direction and in both.
//!
//! `WEIR_TIMER_STEPS=10000000` takes more steps. A failure prints the seed of its call, which `WEIR_TIMER_SEED` plays alone.

#![allow(clippy::unwrap_used)]

mod end;
mod random;

use end::End;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use random::{limits, params, playout, repair, source};
use std::collections::VecDeque;
use weir_cc::{Limits, Registry, Setup, Transport, circuit_breaker, feedback_guard};
use weir_dccp::connection::{Config, Datagram as DccpDatagram};
use weir_fec::{Protection, Scheme};
use weir_media::audio::{AudioConfig, AudioSource};
use weir_media::{AdaptivePlayout, PerfectCodec, ReceivedFrame, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::dccp::{DccpConfig, DccpEnd, video_connection};
use weir_session::{
    Control, Datagram, EndConfig, EndName, EndPlan, Endpoint, IncomingConfig, IncomingId, NackConfig, OutgoingConfig,
    OutgoingId, OutgoingOptions, PathConfig, Profile, RepairChoice, RepairReception, ResilienceConfig,
    RetransmissionConfig, SendingPath, SessionParams, StreamIdentity,
};
use weir_units::{DataRate, DataSize, Ecn, PathId, TimeDelta, Timestamp};

/// Steps by default.
const STEPS: u64 = 40_000;
const STEPS_A_CALL: u64 = 200;
/// Turns at one instant: each handles what is due and takes the packets.
const MAX_TURNS_AT_ONCE: u32 = 4;
/// Turns of both ends in a millisecond, on average over a longer span.
const MAX_TURNS_A_MS: i64 = 40;
/// Packets taken at one instant from one end.
const MAX_PACKETS_AT_ONCE: u32 = 50_000;
/// Maximum packets in flight in a direction; the oldest are then lost.
const MAX_FLYING: usize = 256;
const MAX_KEPT: usize = 16;

/// A packet in flight.
#[derive(Clone)]
struct Flying {
    arrives: Timestamp,
    bytes: Vec<u8>,
    payload: u32,
    ecn: Ecn,
}

struct Call {
    rng: Pcg64Mcg,
    /// Description of the call, for messages.
    name: String,
    now: Timestamp,
    ends: [End; 2],
    /// To each end.
    flying: [VecDeque<Flying>; 2],
    /// Datagrams of either end, to be changed and sent again.
    kept: Vec<Vec<u8>>,
    /// One-way delay; `None` if packets are delivered by operations alone.
    delay: Option<TimeDelta>,
    next_ssrc: u32,
    buffer: Vec<u8>,
}

impl Call {
    fn new(seed: u64, registry: &Registry) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let r = &mut rng;
        let chosen = r.random_range(0..registry.specs().len());
        let spec = registry.specs().nth(chosen).expect("within the list");
        let ccid = match spec.transport {
            Transport::Dccp { ccid } => Some(ccid),
            _ => None,
        };
        let name = if ccid.is_none() && r.random_bool(0.2) { format!("{}+fec", spec.name) } else { spec.name.clone() };
        let now = Timestamp::from_millis(r.random_range(0..10_000));
        let both_ways = r.random_bool(0.5);
        let config = EndConfig {
            latch: r.random_bool(0.5).then(|| TimeDelta::from_secs(2)),
            seed,
            params: params(r),
            synchronised_clocks: r.random(),
            lip_synchronisation: r.random(),
            ..EndConfig::default()
        };
        let control = |r: &mut Pcg64Mcg| {
            let start_rate = DataRate::from_bps(r.random_range(0..3_000_000));
            let setup = Setup { limits: limits(r), start_rate, now, seed, params: vec![] };
            Control::new(registry, &name, &setup).unwrap()
        };
        let directions =
            |r: &mut Pcg64Mcg, ssrc: u32| {
                let identity = StreamIdentity::of(ssrc);
                let control = control(r);
                let (source, media) = source(r, now);
                let (sending, receiving) = control.into_directions();
                let (repair, retransmission) = (repair(r), r.random_bool(0.5).then(RetransmissionConfig::default));
                let resilience = r.random_bool(0.2).then(ResilienceConfig::default);
                let sending = SendingPath {
                    circuit_breaker: r.random_bool(0.5).then(circuit_breaker::Config::default),
                    feedback_guard: r
                        .random_bool(0.5)
                        .then(|| feedback_guard::Config::to_floor(DataRate::from_kbps(50))),
                    ..sending
                };
                let max_queue_age = r.random_bool(0.3).then(|| TimeDelta::from_millis(300));
                let outgoing = OutgoingConfig::new(identity, source, Demand { media, ..Demand::default() }).with(
                    OutgoingOptions { repair, retransmission, resilience, max_queue_age, ..OutgoingOptions::default() },
                );
                let (playout_deadline, adaptive_playout) = playout(r);
                let incoming = IncomingConfig {
                    nack: r.random_bool(0.5).then(NackConfig::default),
                    resilience: r.random_bool(0.2).then(ResilienceConfig::default),
                    repair: if r.random() { RepairReception::Always } else { RepairReception::WhenSeen },
                    content: r.random_bool(0.3) && (playout_deadline.is_some() || adaptive_playout.is_some()),
                    playout_deadline,
                    adaptive_playout,
                    ..IncomingConfig::new(identity, media)
                };
                (outgoing, sending, incoming, receiving)
            };
        let mut here = config;
        control(r).configure(&mut here.extensions);
        let there = here.mirrored(EndName { cname: "there".into(), seed: seed ^ 1 });
        let plays = |r: &IncomingConfig| (r.playout_deadline, r.adaptive_playout, r.content, r.media, r.nack.is_some());
        let (outgoing, sending, incoming, receiving) = directions(r, here.ssrc);
        let mut receives = [None, Some(plays(&incoming))];
        let (mut on_a, mut on_b) = (PathConfig::from(sending), PathConfig::from(receiving));
        let mut a = EndPlan::new(here).sends(outgoing);
        let mut b = EndPlan::new(there).receives(incoming);
        if both_ways {
            let (outgoing, sending, incoming, receiving) = directions(r, b.end.ssrc);
            receives[0] = Some(plays(&incoming));
            (on_a.receiving, on_b.sending) = (Some(receiving), Some(sending));
            (a, b) = (a.receives(incoming), b.sends(outgoing));
        }
        let [a, b] = [a.on(on_a), b.on(on_b)].map(|plan| plan.make(now).unwrap());
        let ends = match ccid {
            None => [End::Udp(Box::new(a)), End::Udp(Box::new(b))],
            Some(ccid) => {
                let connection = video_connection(ccid);
                let dccp = DccpConfig::default();
                let server = Config { seed: 99, ..connection.clone() };
                let a = DccpEnd::connect(a, connection, dccp, now).unwrap();
                [End::Dccp(Box::new(a)), End::Dccp(Box::new(DccpEnd::listen(b, server, dccp)))]
            }
        };
        let delay = r.random_bool(0.7).then(|| TimeDelta::from_micros(r.random_range(0..200_000)));
        let (flying, kept, buffer) = (Default::default(), Vec::new(), Vec::new());
        let playing = (receives[0], receives[1]);
        let name = format!("WEIR_TIMER_SEED={seed} {name}, {playing:?}");
        let mut call = Self { rng, name, now, ends, flying, kept, delay, next_ssrc: 1_000, buffer };
        call.settle(0);
        call.settle(1);
        call
    }

    /// Takes an end's packets and what it plays.
    fn take(&mut self, end: usize) {
        let now = self.now;
        for count in 0.. {
            assert!(count < MAX_PACKETS_AT_ONCE, "{}: packets without end at {now}", self.name);
            let Some((payload, ecn)) = self.ends[end].poll_transmit(now, &mut self.buffer) else { break };
            let flying = &mut self.flying[1 - end];
            if flying.len() >= MAX_FLYING {
                flying.pop_front();
            }
            let arrives = self.delay.map_or(Timestamp::MAX, |d| now + d);
            flying.push_back(Flying { arrives, bytes: self.buffer.clone(), payload, ecn });
            if self.kept.len() < MAX_KEPT || self.rng.random_bool(0.01) {
                let at = self.rng.random_range(0..MAX_KEPT);
                self.kept.truncate(at);
                self.kept.push(self.buffer.clone());
            }
        }
        let endpoint = self.ends[end].endpoint();
        let ids: Vec<_> = endpoint.stats().incoming_ids().collect();
        let mut frame = ReceivedFrame::default();
        for id in ids {
            let mut stream = endpoint.incoming(id).unwrap();
            while let Some(event) = stream.poll_playout(now) {
                stream.take_frame(&event, &mut frame);
            }
            while stream.poll_audio(now).is_some() {}
        }
    }

    /// Handles what is due at this instant. A few turns leave nothing due.
    fn settle(&mut self, end: usize) {
        self.take(end);
        for turn in 0.. {
            let next = self.ends[end].poll_timeout(self.now);
            if next.is_none_or(|t| t > self.now) {
                return;
            }
            let (name, now) = (&self.name, self.now);
            if turn >= MAX_TURNS_AT_ONCE {
                let e = self.ends[end].endpoint();
                let outgoing: Vec<_> = e.stats().outgoing_ids().map(|id| e.stats().outgoing(id)).collect();
                let ids: Vec<_> = e.stats().incoming_ids().collect();
                let played = |id: &_| e.incoming(*id).map(|s| (s.identity().ssrc, s.counters(), s.playout_stats()));
                let incoming: Vec<_> = ids.iter().map(played).collect();
                let state = (
                    e.stats().queue(now),
                    e.stats().tripped(),
                    e.target(),
                    e.stats().session_params(),
                    e.stats().playout_stats(),
                );
                panic!(
                    "{name}: time stands still at {now}, end {end}: {next:?}, {state:?}, {outgoing:?}, {incoming:?}"
                );
            }
            self.ends[end].handle_timeout(now);
            self.take(end);
        }
    }

    fn deliver(&mut self, to: usize, f: &Flying) {
        self.ends[to].handle_datagram(self.now, f);
        self.settle(to);
    }

    /// Time passes; timers fire when they are due, and packets arrive after the delay.
    fn advance(&mut self, span: TimeDelta) {
        let until = self.now + span;
        let most = 200 + MAX_TURNS_A_MS * span.as_millis();
        for turn in 0.. {
            let now = self.now;
            let timers = [0, 1].map(|end| self.ends[end].poll_timeout(now));
            let arrivals = [0, 1].map(|end| self.flying[end].front().map(|f| f.arrives));
            let next = timers.into_iter().chain(arrivals).flatten().min().filter(|t| *t <= until);
            let Some(next) = next else { break };
            assert!(turn < most, "{}: {turn} turns before {until}: {timers:?} at {now}", self.name);
            self.now = now.max(next);
            for to in 0..2 {
                while self.flying[to].front().is_some_and(|f| f.arrives <= self.now)
                    && let Some(f) = self.flying[to].pop_front()
                {
                    self.deliver(to, &f);
                }
                self.settle(to);
            }
        }
        self.now = until;
    }

    fn step(&mut self) {
        let now = self.now;
        let side = self.rng.random_range(0..2usize);
        let r = &mut self.rng;
        match r.random_range(0..48) {
            0..12 => {
                let bits = r.random_range(0..20u32);
                let span = TimeDelta::from_micros(r.random_range(0..1 << bits));
                self.advance(span);
            }
            12 => {
                let span = TimeDelta::from_micros(1 << r.random_range(20..25u32));
                self.advance(span);
            }
            13 => {
                // The process did not run for a while.
                self.now += TimeDelta::from_micros(r.random_range(0..2_000_000));
                self.settle(0);
                self.settle(1);
            }
            14..24 => {
                if let Some(f) = self.flying[side].pop_front() {
                    self.deliver(side, &f);
                }
            }
            24 | 25 => drop(self.flying[side].pop_front()),
            26 => {
                // Twice, and marked.
                if let Some(mut f) = self.flying[side].pop_front() {
                    f.ecn = Ecn::Ce;
                    self.deliver(side, &f);
                    self.deliver(side, &f);
                }
            }
            27 => {
                let n = self.flying[side].len().min(1);
                self.flying[side].rotate_left(n);
            }
            28..32 => self.forge(side),
            32 => {
                let limits = limits(r);
                self.ends[side].endpoint().set_limits(limits, now);
            }
            33 => {
                let paused = r.random();
                self.ends[side].set_paused(paused);
            }
            34 => {
                let e = self.ends[side].endpoint();
                e.request_key_frame(now);
                if let Some(mut s) = e.incoming(IncomingId::FIRST) {
                    s.request_key_frame(now);
                }
            }
            35 => {
                let (timestamp, intact) = (r.random(), r.random());
                let e = self.ends[side].endpoint();
                if let Some(mut s) = e.incoming(IncomingId::FIRST) {
                    s.on_decoded(timestamp, intact);
                    s.on_damaged(timestamp, now);
                }
            }
            36 => {
                let rate = r.random_bool(0.5).then(|| DataRate::from_bps(r.random_range(0..5_000_000)));
                if let Some(mut s) = self.ends[side].endpoint().outgoing(OutgoingId::FIRST) {
                    s.hold_rate(rate, now);
                }
            }
            37 => {
                let choice = repair(r);
                self.ends[side].endpoint().set_repair(choice).unwrap();
            }
            38 | 39 => {
                self.ends[side].endpoint().path_mut(PathId::FIRST).map(|mut p| p.restart_after_trip(now));
            }
            40 => {
                let params = params(r);
                self.ends[side].endpoint().rtcp().set_params(params).unwrap();
            }
            41 => {
                let e = self.ends[side].endpoint();
                e.rtcp().request_sender_report();
                e.rtcp().send_early(now);
            }
            42 => self.add(side),
            43 => self.remove(side),
            44 => {
                let (index, paused) = (r.random_range(0..4), r.random());
                let least = DataRate::from_bps(r.random_range(0..1_000_000));
                let most = least + DataRate::from_bps(r.random_range(0..1_000_000));
                let e = self.ends[side].endpoint();
                let id = e.stats().outgoing_ids().nth(index);
                if let Some(mut stream) = id.and_then(|id| e.outgoing(id)) {
                    let demand = stream.demand();
                    stream.set_demand(Demand { least, most, ..demand }, now);
                    stream.set_paused(paused, now);
                }
            }
            45 => {
                let source = source(r, now).0;
                let e = self.ends[side].endpoint();
                if let Some(mut s) = e.outgoing(OutgoingId::FIRST) {
                    s.set_source(source, now);
                }
            }
            46 => self.transport(side),
            _ => {
                if r.random_bool(0.03) {
                    self.ends[side].leave();
                }
            }
        }
        self.settle(0);
        self.settle(1);
    }

    /// A datagram sent before, with some bytes changed.
    fn forge(&mut self, to: usize) {
        if self.kept.is_empty() {
            return;
        }
        let r = &mut self.rng;
        let mut bytes = self.kept[r.random_range(0..self.kept.len())].clone();
        for _ in 0..r.random_range(0..6) {
            let at = r.random_range(0..bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte = r.random();
            }
        }
        let payload = if r.random_bool(0.5) { 0 } else { r.random_range(0..1_400) };
        let ecn = Ecn::from_bits(r.random());
        self.deliver(to, &Flying { arrives: self.now, bytes, payload, ecn });
    }

    /// Another stream, at both ends.
    fn add(&mut self, from: usize) {
        let now = self.now;
        let (source, media) = source(&mut self.rng, now);
        self.next_ssrc += 1;
        let payload_type = 100 + (self.next_ssrc % 20) as u8;
        let identity = StreamIdentity { payload_type, ..StreamIdentity::of(self.next_ssrc) };
        let r = &mut self.rng;
        let demand = Demand { media, most: DataRate::from_mbps(1), ..Demand::default() };
        let options = OutgoingOptions { repair: repair(r), ..OutgoingOptions::default() };
        let outgoing = OutgoingConfig::new(identity, source, demand).with(options);
        let (playout_deadline, adaptive_playout) = playout(r);
        let nack = r.random_bool(0.5).then(NackConfig::default);
        let incoming = IncomingConfig::new(identity, media);
        let incoming = IncomingConfig { nack, playout_deadline, adaptive_playout, ..incoming };
        if self.ends[from].endpoint().add_outgoing(outgoing, now).is_ok() {
            let _ = self.ends[1 - from].endpoint().add_incoming(incoming, now);
        }
    }

    fn remove(&mut self, from: usize) {
        let (n, now) = (self.rng.random_range(0..4), self.now);
        let e = self.ends[from].endpoint();
        let (outgoing, incoming) = (e.stats().outgoing_ids().nth(n), e.stats().incoming_ids().nth(n));
        if let Some(id) = outgoing {
            let _ = e.remove_outgoing(id, now);
        }
        if let Some(id) = incoming {
            let _ = e.remove_incoming(id);
        }
    }

    /// The application's actions on a DCCP connection.
    fn transport(&mut self, side: usize) {
        let (now, what) = (self.now, self.rng.random_range(0..24));
        let End::Dccp(end) = &mut self.ends[side] else { return };
        let Some(connection) = end.connection_mut() else { return };
        match what {
            0 => connection.close(now),
            1 => connection.abort(now),
            2 => connection.stop_receiving(),
            n => connection.set_slow_receiver(n % 2 == 0),
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|n| n.parse().unwrap_or_else(|_| panic!("{variable}={n} is no number")))
}

#[test]
fn time_advances_after_any_operations() {
    let registry = Registry::builtin();
    let steps = number("WEIR_TIMER_STEPS").unwrap_or(STEPS);
    let alone = number("WEIR_TIMER_SEED");
    let seeds = match alone {
        Some(seed) => seed..seed + 1,
        None => 0..steps.div_ceil(STEPS_A_CALL),
    };
    let (mut packets, mut played) = (0, 0);
    for seed in seeds {
        let mut call = Call::new(seed, &registry);
        (0..STEPS_A_CALL).for_each(|_| call.step());
        for end in &mut call.ends {
            let e = end.endpoint();
            packets += e.stats().send_counters().packets;
            played += e.stats().playout_stats().map_or(0, |s| s.played);
        }
    }
    println!("{steps} steps, {packets} media packets, {played} frames played");
    let have_lived = packets > steps / 10 && played > steps / 100;
    assert!(alone.is_some() || have_lived, "{packets} packets, {played} frames");
}
