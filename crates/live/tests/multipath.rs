//! Calls over several paths on sockets: between two parties, and through a forwarder that moves.

#[path = "support/camera.rs"]
mod camera;
#[path = "support/interfaces.rs"]
mod interfaces;

use camera::video;
use interfaces::ip;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use weir_cc::{Limits, Registry, Setup};
use weir_live::call::{
    CallConfig, EndSummary, LiveEnd, Party, PartyMedia, PartySummary, Peer, RunUntil, Unobserved, run_party,
};
use weir_live::clock::Clock;
use weir_live::sdp::Direction;
use weir_live::signal::{Listener, Signalling, Trust};
use weir_live::srtp::{SrtpKey, SrtpSession, Suite};
use weir_live::udp::UdpConfig;
use weir_media::{EncoderConfig, PerfectCodec, VideoCodec};
use weir_session::multipath::AnyScheduler;
use weir_session::{CallPlan, Control, EndConfig, EndName};
use weir_units::{DataRate, TimeDelta};

fn party(direction: Direction, paths: &[&str]) -> Party {
    let media = vec![PartyMedia::video(vec![VideoCodec::H264], EncoderConfig::live(320, 240), direction)];
    let mut paths = paths.iter().map(|p| p.parse().expect("an address"));
    Party {
        first_path: paths.next(),
        further_paths: paths.collect(),
        offers_paths: true,
        ..Party::new(CallConfig::default(), media, Trust::default())
    }
}

/// Both ends of a call of 2.5 s, the connecting one first; it ends the call.
fn call(connecting: &Party, listening: &Party) -> [PartySummary; 2] {
    call_of(connecting, listening, 2_500)
}

fn call_of(connecting: &Party, listening: &Party, ms: i64) -> [PartySummary; 2] {
    let mut listener = Listener::bind(&Signalling::Tcp("127.0.0.1:0".into()), None, &Trust::default()).expect("a port");
    let by = Signalling::Tcp(listener.local_addr().expect("an address").to_string());
    let stop = AtomicBool::new(false);
    let run = |party: &Party, joined, ms| {
        let (registry, duration) = (Registry::builtin(), Some(TimeDelta::from_millis(ms)));
        let video = video(party.media[0].direction);
        run_party(joined, &party.call, &registry, video, duration, &stop, &mut Unobserved).expect("it runs")
    };
    std::thread::scope(|scope| {
        let other = scope
            .spawn(|| run(listening, listening.listen(&mut listener, &stop, &mut |_| {}).expect("agreed"), ms + 5_000));
        let joined = connecting.connect(&by, &stop).expect("agreed");
        let own = run(connecting, joined, ms);
        [own, other.join().expect("no panic")]
    })
}

#[test]
fn pictures_take_both_paths_under_srtp() {
    let sends = party(Direction::Send, &["127.0.0.1", "127.0.0.2"]);
    // The other end has as many addresses, or one that all paths share.
    for theirs in [&["127.0.0.1", "127.0.0.3"][..], &["127.0.0.1"]] {
        let [a, b] = call(&sends, &party(Direction::Receive, theirs));
        let pictures = b.received.as_ref().expect("pictures");
        assert!((10..=80).contains(&pictures.intact) && pictures.undecodable < 8, "{pictures:?}");
        assert_eq!((a.end.paths.len(), b.end.paths.len()), (2, 2));
        for (own, other) in a.end.paths.iter().zip(&b.end.paths) {
            assert_eq!((&own.local, &own.remote), (&other.remote, &other.local));
            assert!(own.rtt_ms.is_some_and(|ms| (0.0..200.0).contains(&ms)), "{own:?}");
        }
        assert!(a.end.paths[1].local.starts_with("127.0.0.2:"), "{:?}", a.end.paths);
        let sent: u64 = a.end.paths.iter().map(|p| p.sent_packets).sum();
        assert_eq!(sent, a.end.sent.rtp_packets);
        assert!(b.end.paths.iter().map(|p| p.received_packets).sum::<u64>() * 100 >= sent * 98);
        for end in [&a.end, &b.end] {
            assert_eq!((end.unknown_source, end.malformed, end.counters.strangers), (0, 0, 0));
            assert_eq!(end.srtp.expect("protected").refused, 0);
        }
    }
}

#[test]
fn copies_on_both_paths_pass_replay_protection() {
    let paths = weir_live::call::PathUse { scheduler: "redundant".into(), ..Default::default() };
    let ways = [Direction::Send, Direction::Receive];
    let ends = ways.map(|way| party(way, &["127.0.0.1", "127.0.0.2"]));
    let [a, b] = ends.map(|p| Party { call: CallConfig { paths: paths.clone(), ..CallConfig::default() }, ..p });
    let [a, b] = call(&a, &b);
    let packets: Vec<u64> = b.end.paths.iter().map(|p| p.received_packets).collect();
    let media = a.end.frames_sent;
    assert!(packets.iter().all(|n| *n > media) && packets[0].abs_diff(packets[1]) * 2 < packets[0], "{packets:?}");
    assert_eq!(b.end.srtp.expect("protected").refused, 0);
}

#[test]
fn an_end_without_multipath_rtp_gets_one_path() {
    // The offering end does not mention it, so that the answering one does not either.
    let plain = Party { offers_paths: false, ..party(Direction::Send, &["127.0.0.1"]) };
    let [a, b] = call(&plain, &party(Direction::Receive, &["127.0.0.1", "127.0.0.2"]));
    assert!(b.received.expect("pictures").intact > 20);
    assert_eq!((a.end.paths.len(), b.end.paths.len()), (0, 0));
}

/// A forwarder between the ends of the second path. Towards the receiver it uses one socket, and later another.
struct Forwarder {
    towards_sender: UdpSocket,
    towards_receiver: [UdpSocket; 2],
    stranger: UdpSocket,
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_nonblocking(true).expect("set");
    socket
}

fn at(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().expect("an address")
}

impl Forwarder {
    /// Forwards until the flag is raised. From 0.7 s to 1.4 s, a stranger sends on what it has intercepted; from 2 s on,
    /// the forwarder has moved.
    fn run(&self, sender: SocketAddr, receiver: SocketAddr, stop: &AtomicBool, clock: &Clock, intercepted: &AtomicU64) {
        let mut buffer = [0; 2_000];
        let begin = clock.now();
        while !stop.load(Ordering::Relaxed) {
            let ms = (clock.now() - begin).as_millis();
            while let Ok((n, _)) = self.towards_sender.recv_from(&mut buffer) {
                let from = match ms {
                    700..1_400 => &self.stranger,
                    2_000.. => &self.towards_receiver[1],
                    _ => &self.towards_receiver[0],
                };
                intercepted.fetch_add(u64::from((700..1_400).contains(&ms)), Ordering::Relaxed);
                let _ = from.send_to(&buffer[..n], receiver);
            }
            for socket in &self.towards_receiver {
                while let Ok((n, _)) = socket.recv_from(&mut buffer) {
                    let _ = self.towards_sender.send_to(&buffer[..n], sender);
                }
            }
            // The stranger cannot read what is sent to it, and does not answer.
            while self.stranger.recv_from(&mut buffer).is_ok() {}
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_path_follows_an_end_that_moves_and_no_stranger() {
    let clock = Clock::of_day();
    let now = clock.now();
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(1) };
    let setup = Setup { limits, start_rate: DataRate::from_kbps(500), now, seed: 3, params: vec![] };
    let registry = Registry::builtin();
    let control = || Control::new(&registry, "gcc", &setup).expect("built in");
    let source = PerfectCodec::frames(TimeDelta::from_millis(33), now).into();
    let name = EndName { cname: "b".into(), seed: 5 };
    let mut plan = CallPlan::of_source(control(), source, EndConfig::default(), name);
    plan.add_path(control());
    plan.group.scheduler = AnyScheduler::named("round-robin").expect("in the list");
    let (a, b) = plan.into_ends(now).expect("one stream");

    let sockets = [(); 4].map(|()| socket());
    let forwarder = Forwarder { towards_sender: socket(), towards_receiver: [socket(), socket()], stranger: socket() };
    let [a0, b0, a1, b1] = sockets;
    let (at_a1, at_b1) = (at(&a1), at(&b1));
    let udp = UdpConfig::default();
    let (there, back) = (Peer::Follow(at(&b0)), Peer::Follow(at(&a0)));
    let mut a = LiveEnd::new(a0, udp, there, a).expect("an end");
    a.add_route(Some(a1), udp, Peer::Follow(at(&forwarder.towards_sender))).expect("a path");
    let mut b = LiveEnd::new(b0, udp, back, b).expect("an end");
    b.add_route(Some(b1), udp, Peer::Follow(at(&forwarder.towards_receiver[0]))).expect("a path");
    let keys = [(); 2].map(|()| SrtpKey::random(Suite::default()).expect("random"));
    a.set_srtp(Some(SrtpSession::new(&keys[0], &keys[1]).expect("keys")));
    b.set_srtp(Some(SrtpSession::new(&keys[1], &keys[0]).expect("keys")));

    let (stop, intercepted) = (AtomicBool::new(false), AtomicU64::new(0));
    let end = clock.now() + TimeDelta::from_millis(4_500);
    let [a, b]: [EndSummary; 2] = std::thread::scope(|scope| {
        let (stop, clock) = (&stop, &clock);
        scope.spawn(|| forwarder.run(at_a1, at_b1, stop, clock, &intercepted));
        let threads = [a, b].map(|mut end_of| {
            scope.spawn(move || {
                let never = AtomicBool::new(false);
                let until = RunUntil { at: Some(end), ..RunUntil::stopped(&never) };
                end_of.run(clock, &until, &mut Unobserved).expect("it runs");
                end_of.summary(clock.now())
            })
        });
        let summaries = threads.map(|thread| thread.join().expect("no panic"));
        stop.store(true, Ordering::Relaxed);
        summaries
    });
    assert!(intercepted.load(Ordering::Relaxed) > 10, "the stranger sent nothing");
    assert_eq!((a.counters.moves, b.counters.moves), (0, 1), "{:?} {:?}", a.counters, b.counters);
    assert_eq!(b.paths[1].remote, at(&forwarder.towards_receiver[1]).to_string());
    // A challenge each half second to the stranger, and one or two to the new address.
    assert!((2..=8).contains(&b.counters.challenges), "{:?}", b.counters);
    assert!(a.last_send_error.is_none() && b.unknown_source == 0);
    assert!(b.paths.iter().all(|p| p.received_packets > 50), "{:?}", b.paths);
}

#[test]
fn a_path_moves_with_the_address_of_its_interface() {
    let namespace = match weir_live::netns::Namespace::new("roaming") {
        Ok(n) => n,
        Err(e) if e.is_privilege() => {
            println!("skipped: {e}");
            return;
        }
        Err(e) => panic!("{e}"),
    };
    let ends = namespace.run(|| {
        ip("link set lo up");
        for (name, address) in [("near", "10.9.0.1/24"), ("far", "10.9.1.1/24")] {
            ip(&format!("tuntap add dev {name} mode tun"));
            ip(&format!("addr add {address} dev {name}"));
            ip(&format!("link set {name} up"));
        }
        let mover = std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(1_000));
            ip("addr del 10.9.0.1/24 dev near");
            ip("addr add 10.9.0.7/24 dev near");
        });
        let own = Party { call: longer(), ..party(Direction::Receive, &["lo", "near"]) };
        let other = Party { call: longer(), ..party(Direction::Send, &["127.0.0.1", "far"]) };
        // A second to the look at the interface, one to the offer, and as much again on a busy machine.
        let done = call_of(&other, &own, 9_000);
        mover.join().expect("no panic");
        done
    });
    let [sends, receives] = ends.expect("no panic");
    assert_eq!((receives.end.counters.rebound, sends.end.counters.rebound), (1, 0));
    assert_eq!((receives.end.counters.moves, sends.end.counters.moves), (0, 1), "{:?}", sends.end);
    assert!(sends.end.paths[1].remote.starts_with("10.9.0.7:"), "{:?}", sends.end.paths);
    assert!(receives.end.paths[1].received_packets > 20, "{:?}", receives.end.paths);
}

fn longer() -> CallConfig {
    let paths = weir_live::call::PathUse { scheduler: "round-robin".into(), ..Default::default() };
    CallConfig { paths, ..CallConfig::default() }
}
