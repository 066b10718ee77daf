//! Survival of a call on real sockets, through a forwarder that misbehaves for a while.
//!
//! The default is 1.5 s; WEIR_SURVIVAL_SECONDS=10 makes it longer.

use std::collections::BinaryHeap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_cc::{FeedbackFormat, Limits, Registry, Setup};
use weir_live::call::{CallObserver, EndReason, EndSummary, LiveEnd, Peer, RunUntil, Unobserved};
use weir_live::clock::Clock;
use weir_live::srtp::{SrtpKey, SrtpSession, Suite};
use weir_live::udp::UdpConfig;
use weir_media::PerfectCodec;
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    EndConfig, EndPlan, Endpoint, HeaderExtensions, IncomingConfig, OutgoingConfig, OutgoingOptions, ReceivingPath,
    SendingPath, StreamIdentity,
};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// When the path begins to misbehave: controllers have increased their rates by then.
const BEGIN: TimeDelta = TimeDelta::from_secs(2);
/// Maximum time until media is played again.
const RETURN: TimeDelta = TimeDelta::from_secs(2);
const PLAYOUT: TimeDelta = TimeDelta::from_millis(300);

fn misbehaviour() -> TimeDelta {
    let given = std::env::var("WEIR_SURVIVAL_SECONDS").ok().and_then(|s| s.parse().ok());
    TimeDelta::from_secs_f64(given.unwrap_or(1.5))
}

/// The path's effect on each datagram while it misbehaves.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Trouble {
    None,
    /// Loses this share.
    Loss(f64),
    Outage,
    /// Carries this many bytes per second, with 300 ms of queue.
    Narrow(f64),
    /// Delays every third datagram by 30 ms, and sends every fifth twice.
    Shuffle,
    /// Changes a byte of every fifth datagram.
    Corrupt,
    /// Adds four garbage datagrams to each.
    Garbage,
    /// Loses the first BYE.
    Goodbye,
}

/// Whether RTCP in the clear has a BYE in it.
fn has_goodbye(mut bytes: &[u8]) -> bool {
    while let [_, kind @ 200..=207, a, b, ..] = *bytes {
        if kind == 203 {
            return true;
        }
        bytes = bytes.get(4 * (usize::from(a) << 8 | usize::from(b)) + 4..).unwrap_or_default();
    }
    false
}

/// A simple random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
    fn chance(&mut self, share: f64) -> bool {
        (self.roll() as f64) < share * (1u64 << 31) as f64
    }
}

/// Garbage, half of it with valid headers.
fn nonsense(dice: &mut Dice, like: &[u8]) -> Vec<u8> {
    let length = (dice.roll() % 1_300) as usize;
    let mut bytes: Vec<u8> = (0..length).map(|_| dice.roll() as u8).collect();
    match dice.roll() % 4 {
        // RTP or RTCP of a random source.
        0 => bytes.splice(..bytes.len().min(2), [0x80, 96]).for_each(drop),
        1 => bytes
            .splice(..bytes.len().min(2), [0x80 | dice.roll() as u8 & 0x1f, 200 + (dice.roll() % 8) as u8])
            .for_each(drop),
        // The call's own header, followed by garbage.
        2 => bytes.splice(..bytes.len().min(12), like.iter().copied().take(12)).for_each(drop),
        _ => {}
    }
    bytes
}

/// Forwards between two sockets until stopped.
fn forward(sockets: [&UdpSocket; 2], to: [SocketAddr; 2], trouble: Trouble, clock: &Clock, stop: &AtomicBool) {
    let mut dice = Dice(7);
    let mut buffer = [0; 4_096];
    // Waiting datagrams, by departure time, the earliest first.
    let mut waiting: BinaryHeap<(std::cmp::Reverse<Timestamp>, u64, usize, Vec<u8>)> = BinaryHeap::new();
    let (begin, end) = (Timestamp::ZERO + BEGIN, Timestamp::ZERO + BEGIN + misbehaviour());
    let mut free_at = [Timestamp::ZERO; 2];
    let (mut count, mut goodbyes) = (0u64, 0);
    sockets.iter().for_each(|s| s.set_nonblocking(true).expect("a socket"));
    while !stop.load(Ordering::Relaxed) {
        let mut idle = true;
        for (i, socket) in sockets.iter().enumerate() {
            while let Ok(n) = socket.recv(&mut buffer) {
                idle = false;
                count += 1;
                let now = clock.now();
                let mut bytes = buffer[..n].to_vec();
                let mut put = |at, bytes| waiting.push((std::cmp::Reverse(at), count, 1 - i, bytes));
                match if now >= begin && now < end { trouble } else { Trouble::None } {
                    Trouble::None => put(now, bytes),
                    Trouble::Loss(share) if dice.chance(share) => {}
                    Trouble::Loss(_) => put(now, bytes),
                    Trouble::Outage => {}
                    Trouble::Goodbye => {
                        goodbyes += u32::from(has_goodbye(&bytes));
                        if goodbyes != 1 || !has_goodbye(&bytes) {
                            put(now, bytes);
                        }
                    }
                    Trouble::Narrow(rate) => {
                        let at = free_at[i].max(now) + TimeDelta::from_secs_f64(n as f64 / rate);
                        if at - now < TimeDelta::from_millis(300) {
                            free_at[i] = at;
                            put(at, bytes);
                        }
                    }
                    Trouble::Shuffle => {
                        if count.is_multiple_of(5) {
                            put(now, bytes.clone());
                        }
                        let late = if count.is_multiple_of(3) { TimeDelta::from_millis(30) } else { TimeDelta::ZERO };
                        put(now + late, bytes);
                    }
                    Trouble::Corrupt => {
                        if count.is_multiple_of(5) {
                            bytes[dice.roll() as usize % n] ^= 1 << (dice.roll() % 8);
                        }
                        put(now, bytes);
                    }
                    Trouble::Garbage => {
                        for _ in 0..4 {
                            put(now, nonsense(&mut dice, &bytes));
                        }
                        put(now, bytes);
                    }
                }
            }
        }
        while waiting.peek().is_some_and(|w| w.0.0 <= clock.now()) {
            let Some((.., i, bytes)) = waiting.pop() else { break };
            // To the end at that side, which knows this socket as the other end.
            let _ = sockets[i].send_to(&bytes, to[i]);
        }
        if idle {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

/// When frames were played, whole or not.
#[derive(Default)]
struct Played(Vec<(Timestamp, bool)>);

impl CallObserver for Played {
    fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        while let Some(e) = endpoint.poll_playout(now) {
            self.0.push((now, e.delay.is_some()));
        }
    }
}

impl Played {
    /// Share of the frames of these times that were played whole.
    fn share(&self, from: Timestamp, to: Timestamp) -> f64 {
        let whole = self.0.iter().filter(|(at, whole)| *at >= from && *at < to && *whole).count();
        whole as f64 / (30.0 * (to - from).as_secs_f64())
    }
}

struct Ends {
    sender: LiveEnd,
    receiver: LiveEnd,
    middle: [UdpSocket; 2],
    to: [SocketAddr; 2],
    sender_socket: UdpSocket,
}

fn sending(seed: u64, now: Timestamp, clock: &Clock) -> EndPlan {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_kbps(1_500) };
    let setup = Setup { limits, start_rate: DataRate::from_kbps(800), now, seed, params: vec![] };
    let registry = Registry::builtin();
    let pair = registry.make("gcc", &setup).expect("built in");
    let feedback = registry.get("gcc").and_then(|s| s.feedback);
    let transport_sequence = feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide);
    let config = EndConfig {
        ssrc: seed as u32,
        remote_ssrc: 2,
        seed,
        extensions: HeaderExtensions { transport_sequence, ..HeaderExtensions::default() },
        ntp_epoch: clock.ntp_epoch(),
        synchronised_clocks: true,
        latch: Some(TimeDelta::from_millis(500)),
        ..EndConfig::default()
    };
    let source = PerfectCodec::frames(TimeDelta::from_nanos(33_333_333), now).into();
    let outgoing = OutgoingConfig::new(StreamIdentity::of(seed as u32), source, Demand::default());
    let outgoing = outgoing.with(OutgoingOptions { max_queue_age: Some(PLAYOUT), ..OutgoingOptions::default() });
    let path = SendingPath { per_packet_feedback: feedback.is_some(), ..SendingPath::new(pair.sender) };
    EndPlan::new(config).sends(outgoing).on(path)
}

fn ends(clock: &Clock, srtp: bool) -> Ends {
    let now = clock.now();
    let plan = sending(1, now, clock);
    let other = EndConfig { ssrc: 2, remote_ssrc: 1, seed: 2, ..plan.end.clone() };
    let feedback = Registry::builtin().get("gcc").and_then(|s| s.feedback);
    let incoming = IncomingConfig::new(StreamIdentity::of(1), MediaKind::default());
    let incoming = IncomingConfig { playout_deadline: Some(PLAYOUT), ..incoming };
    let other = EndPlan::new(other).receives(incoming).on(ReceivingPath { feedback, ..ReceivingPath::default() });
    let socket = || UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (a, b, middle) = (socket(), socket(), [socket(), socket()]);
    let at = |s: &UdpSocket| s.local_addr().expect("an address");
    let to = [at(&a), at(&b)];
    let peers = [Peer::At(at(&middle[0])), Peer::At(at(&middle[1]))];
    let sender_socket = a.try_clone().expect("a descriptor");
    let endpoints = [plan, other].map(|plan| plan.make(now).expect("one stream"));
    let [a_end, b_end] = endpoints;
    let mut sender = LiveEnd::new(a, UdpConfig::default(), peers[0], a_end).expect("a socket");
    let mut receiver = LiveEnd::new(b, UdpConfig::default(), peers[1], b_end).expect("a socket");
    if srtp {
        let keys = [0, 1].map(|_| SrtpKey::random(Suite::default()).expect("random numbers"));
        sender.set_srtp(Some(SrtpSession::new(&keys[0], &keys[1]).expect("keys")));
        receiver.set_srtp(Some(SrtpSession::new(&keys[1], &keys[0]).expect("keys")));
    }
    Ends { sender, receiver, middle, to, sender_socket }
}

/// A call with the fault, and two seconds more than the maximum recovery time.
fn survive(trouble: Trouble, srtp: bool) -> (Played, EndSummary, EndSummary) {
    let clock = Clock::starting_now();
    let mut e = ends(&clock, srtp);
    let stop = AtomicBool::new(false);
    let at = Some(Timestamp::ZERO + BEGIN + misbehaviour() + RETURN + TimeDelta::from_secs(2));
    let until = RunUntil { at, stop: &stop, ended: None, bye: false, silence: None };
    let mut played = Played::default();
    std::thread::scope(|scope| {
        let middle = [&e.middle[0], &e.middle[1]];
        let (to, stop, clock_) = (e.to, &stop, &clock);
        scope.spawn(move || forward(middle, to, trouble, clock_, stop));
        let (sender, until_) = (&mut e.sender, &until);
        scope.spawn(move || sender.run(clock_, until_, &mut Unobserved).expect("the sender survives"));
        e.receiver.run(&clock, &until, &mut played).expect("the receiver survives");
        stop.store(true, Ordering::Relaxed);
    });
    let now = clock.now();
    (played, e.sender.summary(now), e.receiver.summary(now))
}

#[test]
fn media_return_within_two_seconds_of_the_path() {
    let troubles = [
        (Trouble::Loss(0.3), true),
        (Trouble::Outage, true),
        (Trouble::Narrow(150e3 / 8.0), true),
        (Trouble::Shuffle, true),
        (Trouble::Corrupt, true),
        (Trouble::Corrupt, false),
        (Trouble::Garbage, true),
        (Trouble::Garbage, false),
    ];
    std::thread::scope(|scope| {
        for (trouble, srtp) in troubles {
            scope.spawn(move || {
                let (played, sender, receiver) = survive(trouble, srtp);
                let begin = Timestamp::ZERO + BEGIN;
                let end = begin + misbehaviour();
                let second = TimeDelta::from_secs(1);
                let before = played.share(begin - second, begin);
                let during = played.share(begin + PLAYOUT, end);
                let after = played.share(end + RETURN, end + RETURN + second);
                // The first time after the fault from which on half a second of frames is played.
                let half = TimeDelta::from_millis(500);
                let returned = (0..40).find(|i| {
                    let from = end + TimeDelta::from_millis(i * 100);
                    played.share(from, from + half) >= 0.8
                });
                println!(
                    "{trouble:?}, SRTP {srtp}: played {:.0} %, {:.0} % in trouble, {:.0} % after; back after {:?} ms; \
                     refused {:?}, malformed {}, unknown {}",
                    100.0 * before,
                    100.0 * during,
                    100.0 * after,
                    returned.map(|i| i * 100),
                    receiver.srtp.map(|s| s.refused),
                    receiver.malformed,
                    receiver.unknown_source
                );
                assert!((0.8..1.2).contains(&before), "{trouble:?} {srtp}: {before} before");
                assert!((0.8..1.2).contains(&after), "{trouble:?} {srtp}: {after} after");
                assert!(sender.sent.rtp_packets > 100 && receiver.received.rtp_packets > 50);
                match trouble {
                    Trouble::Outage => assert!(during < 0.3, "{during}"),
                    // Garbage rejected by SRTP changes nothing, nor does reordering within the playout delay.
                    Trouble::Shuffle => assert!(during > 0.8, "{during}"),
                    Trouble::Garbage if srtp => assert!(during > 0.8, "{during}"),
                    _ => {}
                }
                if srtp && trouble == Trouble::Garbage {
                    assert!(receiver.srtp.is_some_and(|s| s.refused > 100), "{:?}", receiver.srtp);
                }
            });
        }
    });
}

#[test]
fn a_lost_bye_is_repeated() {
    let clock = Clock::starting_now();
    let mut e = ends(&clock, false);
    let stop = AtomicBool::new(false);
    let until = |ms, bye| RunUntil {
        at: Some(Timestamp::from_millis(ms)),
        stop: &stop,
        ended: None,
        bye,
        silence: Some(TimeDelta::from_secs(1)),
    };
    std::thread::scope(|scope| {
        let middle = [&e.middle[0], &e.middle[1]];
        let (to, stop, clock_, sender) = (e.to, &stop, &clock, &mut e.sender);
        scope.spawn(move || forward(middle, to, Trouble::Goodbye, clock_, stop));
        let first = until(2_200, false);
        scope.spawn(move || sender.run(clock_, &first, &mut Unobserved).expect("the sender runs"));
        e.receiver.run(&clock, &until(8_000, true), &mut Unobserved).expect("the receiver runs");
        stop.store(true, Ordering::Relaxed);
    });
    let ended = e.receiver.end_reason();
    assert!(matches!(ended, Some(EndReason::Goodbye { .. })), "{ended:?}");
    assert_eq!(e.receiver.summary(clock.now()).counters.byes, 1, "the first was lost");
}

#[test]
fn a_restarted_sender_is_accepted_with_and_without_a_bye() {
    std::thread::scope(|scope| {
        for goodbye in [true, false] {
            scope.spawn(move || {
                let clock = Clock::starting_now();
                let mut e = ends(&clock, false);
                let stop = AtomicBool::new(false);
                let run = |ms: i64| RunUntil {
                    at: Some(Timestamp::from_millis(ms)),
                    stop: &stop,
                    ended: None,
                    bye: false,
                    silence: None,
                };
                // With a BYE there is no need to wait.
                let end = if goodbye { 6_000 } else { 4_500 + misbehaviour().as_millis() };
                let mut played = Played::default();
                // An outage around its end drops the BYE.
                let trouble = if goodbye { Trouble::None } else { Trouble::Outage };
                std::thread::scope(|scope| {
                    let middle = [&e.middle[0], &e.middle[1]];
                    let (to, stop, clock_, peer) = (e.to, &stop, &clock, e.sender.peer());
                    scope.spawn(move || forward(middle, to, trouble, clock_, stop));
                    let (sender, first, second) = (&mut e.sender, run(2_200), run(end + 500));
                    let socket = e.sender_socket;
                    scope.spawn(move || {
                        sender.run(clock_, &first, &mut Unobserved).expect("the first sender runs");
                        let plan = sending(77, clock_.now(), clock_);
                        let endpoint = plan.make(clock_.now()).expect("one stream");
                        let mut second_end =
                            LiveEnd::new(socket, UdpConfig::default(), peer, endpoint).expect("a socket");
                        second_end.run(clock_, &second, &mut Unobserved).expect("the second sender runs");
                    });
                    e.receiver.run(&clock, &run(end), &mut played).expect("the receiver survives");
                    stop.store(true, Ordering::Relaxed);
                });
                let back = Timestamp::ZERO + BEGIN + if goodbye { TimeDelta::ZERO } else { misbehaviour() } + RETURN;
                let share = played.share(back, back + TimeDelta::from_millis(400));
                println!("goodbye {goodbye}: {:.0} % played from two seconds behind it on", 100.0 * share);
                assert!((0.7..1.4).contains(&share), "goodbye {goodbye}: {share}");
                assert_eq!(e.receiver.endpoint().remote().ssrc(), Some(77));
            });
        }
    });
}
