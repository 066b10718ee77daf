//! Calls by ICE on sockets: between two parties, with a STUN server, with interfaces that come and go, and under a flood.

#[path = "support/camera.rs"]
mod camera;
#[path = "support/interfaces.rs"]
mod interfaces;

use camera::video;
use interfaces::ip;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use weir_cc::{Limits, Registry};
use weir_live::call::{
    CallConfig, CallObserver, IceOptions, LivePacket, Party, PartyMedia, PartySummary, PathUse, run_party,
};
use weir_live::ice::stun::{HEADER, answer, binding_request};
use weir_live::netns::{Namespace, is_program};
use weir_live::sdp::Direction;
use weir_live::signal::{Listener, Signalling, Trust};
use weir_media::{EncoderConfig, VideoCodec};
use weir_units::{DataRate, TimeDelta};

fn party(direction: Direction, paths: &[&str], stun: &[SocketAddr]) -> Party {
    let media = vec![PartyMedia::video(vec![VideoCodec::H264], EncoderConfig::live(320, 240), direction)];
    let mut paths = paths.iter().map(|p| p.parse().expect("an address"));
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_kbps(600) };
    let uses = PathUse { scheduler: "round-robin".into(), ..PathUse::default() };
    Party {
        first_path: paths.next(),
        further_paths: paths.collect(),
        ice: Some(IceOptions { stun: stun.to_vec(), ..IceOptions::default() }),
        ..Party::new(CallConfig { paths: uses, limits, ..CallConfig::default() }, media, Trust::default())
    }
}

/// Counts the packets of an end.
struct Counted<'a>(&'a AtomicU64);

impl CallObserver for Counted<'_> {
    fn on_packet(&mut self, _: &LivePacket<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until the connecting end of a call has this many packets.
fn await_packets(packets: &AtomicU64, count: u64) {
    for _ in 0..12_000 {
        if packets.load(Ordering::Relaxed) >= count {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no media within 60 s");
}

/// Both ends of a call, the connecting one first; it ends the call after this time.
fn call(connecting: &Party, listening: &Party, ms: i64) -> [PartySummary; 2] {
    counted_call(connecting, listening, ms, &AtomicU64::new(0))
}

/// Likewise, and the packets of the connecting end are counted.
fn counted_call(connecting: &Party, listening: &Party, ms: i64, packets: &AtomicU64) -> [PartySummary; 2] {
    let mut listener = Listener::bind(&Signalling::Tcp("127.0.0.1:0".into()), None, &Trust::default()).expect("a port");
    let by = Signalling::Tcp(listener.local_addr().expect("an address").to_string());
    let stop = AtomicBool::new(false);
    let unwatched = AtomicU64::new(0);
    let run = |party: &Party, joined, ms, packets| {
        let (registry, duration) = (Registry::builtin(), Some(TimeDelta::from_millis(ms)));
        let video = video(party.media[0].direction);
        run_party(joined, &party.call, &registry, video, duration, &stop, &mut Counted(packets)).expect("it runs")
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let joined = listening.await_call(&mut listener, &stop, &mut |r| println!("{r:?}")).expect("a call");
            run(listening, joined, ms + 5_000, &unwatched)
        });
        let joined = connecting.connect(&by, &stop).expect("agreed");
        let own = run(connecting, joined, ms, packets);
        [own, other.join().expect("no panic")]
    })
}

/// A STUN server until it is dropped.
struct Server {
    at: SocketAddr,
    stop: std::sync::Arc<AtomicBool>,
    asked: std::sync::Arc<AtomicU64>,
}

impl Server {
    fn begin() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
        let at = socket.local_addr().expect("an address");
        let server = Self { at, stop: Default::default(), asked: Default::default() };
        let (stop, asked) = (server.stop.clone(), server.asked.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 1_500];
            while !stop.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                if let Some(answered) = answer(&buffer[..length], from) {
                    asked.fetch_add(1, Ordering::Relaxed);
                    let _ = socket.send_to(&answered, from);
                }
            }
        });
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn pictures_take_the_paths_that_ice_finds() {
    let server = Server::begin();
    let sends = party(Direction::Send, &["127.0.0.1", "127.0.0.2"], &[server.at]);
    // The other end has as many addresses, or one that all paths share.
    for theirs in [&["127.0.0.1", "127.0.0.3"][..], &["127.0.0.1"]] {
        let [a, b] = call(&sends, &party(Direction::Receive, theirs, &[server.at]), 3_500);
        let pictures = b.received.as_ref().expect("pictures");
        assert!((40..=115).contains(&pictures.intact), "{pictures:?}");
        for end in [&a.end, &b.end] {
            let ice = end.ice.as_ref().expect("agreed");
            assert_eq!((ice.events.opened, ice.events.lost), (2, 0), "{ice:?}");
            assert!(ice.pairs.iter().filter(|p| p.is_selected).count() == 2, "{ice:?}");
            assert_eq!((ice.messages.malformed, ice.messages.replayed, ice.messages.too_often), (0, 0, 0));
            assert_eq!((end.unknown_source, end.malformed, end.counters.strangers), (0, 0, 0));
            assert_eq!(end.srtp.expect("protected").refused, 0);
        }
        assert_eq!((a.end.paths.len(), b.end.paths.len()), (2, 2));
        assert!(b.end.paths.iter().all(|p| p.received_packets > 20), "{:?}", b.end.paths);
        for (own, other) in a.end.paths.iter().zip(&b.end.paths) {
            assert_eq!((&own.local, &own.remote), (&other.remote, &other.local));
        }
    }
    assert!(server.asked.load(Ordering::Relaxed) >= 4);
}

#[test]
fn an_end_without_ice_is_called_at_its_address() {
    let plain = Party { ice: None, ..party(Direction::Receive, &["127.0.0.1"], &[]) };
    let [a, b] = call(&party(Direction::Send, &["127.0.0.1"], &[]), &plain, 2_000);
    assert!(b.received.expect("pictures").intact > 20);
    assert!(a.end.ice.is_none() && b.end.ice.is_none());
}

/// A namespace of its own; `None` without the privilege.
fn namespace() -> Option<Namespace> {
    match Namespace::new("ice") {
        Ok(n) => Some(n),
        Err(e) if e.is_privilege() => {
            println!("skipped: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_path_is_added_with_an_interface_and_lost_with_it() {
    let Some(namespace) = namespace() else { return };
    let ends = namespace.run(|| {
        ip("link set lo up");
        let packets = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                await_packets(&packets, 100);
                ip("tuntap add dev near mode tun");
                ip("addr add 10.9.0.1/24 dev near");
                ip("link set near up");
                std::thread::sleep(Duration::from_millis(2_500));
                ip("link del near");
            });
            let own = party(Direction::Send, &["lo", "near"], &[]);
            counted_call(&own, &party(Direction::Receive, &["127.0.0.1"], &[]), 6_000, &packets)
        })
    });
    let [sends, receives] = ends.expect("no panic");
    let ice = sends.end.ice.expect("agreed");
    assert_eq!((ice.events.appeared, ice.events.disappeared, ice.events.opened), (1, 1, 2), "{ice:?}");
    assert!(ice.events.offers >= 1);
    let second = &receives.end.paths[1];
    assert!((20..400).contains(&second.received_packets), "{:?}", receives.end.paths);
    assert!(receives.received.expect("pictures").intact > 100);
}

#[test]
fn a_path_restarts_where_its_interface_has_another_address() {
    let Some(namespace) = namespace() else { return };
    let ends = namespace.run(|| {
        ip("link set lo up");
        ip("tuntap add dev near mode tun");
        ip("addr add 10.9.0.1/24 dev near");
        ip("link set near up");
        let moved = |paths: &[&str]| {
            let packets = AtomicU64::new(0);
            let ends = std::thread::scope(|scope| {
                scope.spawn(|| {
                    await_packets(&packets, 60);
                    ip("addr del 10.9.0.1/24 dev near");
                    ip("addr add 10.9.0.2/24 dev near");
                });
                let own = party(Direction::Send, paths, &[]);
                counted_call(&own, &party(Direction::Receive, &["127.0.0.1"], &[]), 6_000, &packets)
            });
            ip("addr del 10.9.0.2/24 dev near");
            ip("addr add 10.9.0.1/24 dev near");
            ends
        };
        // Beside a path that stays, and as the only one.
        [moved(&["lo", "near"]), moved(&["near"])]
    });
    for ([sends, receives], path) in ends.expect("no panic").into_iter().zip([1, 0]) {
        let [own, other] = [&sends.end, &receives.end].map(|end| end.ice.as_ref().expect("agreed"));
        println!("{:?} {:?}", own.events, other.events);
        assert_eq!((own.events.restarts, own.events.lost, other.events.followed, other.events.lost), (1, 0, 1, 0));
        // The numbers of paths stay.
        assert_eq!((sends.end.paths.len(), receives.end.paths.len()), (path + 1, path + 1));
        let is_new = |at: &str| at.starts_with("10.9.0.2:");
        assert!(own.pairs.iter().any(|p| p.path == path && p.is_selected && is_new(&p.local)), "{own:?}");
        assert!(other.pairs.iter().any(|p| p.path == path && p.is_selected && is_new(&p.remote)), "{other:?}");
        assert!(is_new(&receives.end.paths[path].remote), "{:?}", receives.end.paths);
        // Without the restart, the only path would have carried about a second's.
        assert!(receives.received.expect("pictures").intact > 90);
    }
}

#[test]
fn a_path_that_no_longer_answers_restarts() {
    let Some(namespace) = namespace() else { return };
    if !is_program("nft") {
        println!("skipped: no nft on this machine");
        return;
    }
    let nft = |rules: &str| {
        let done = std::process::Command::new("nft").arg(rules).status();
        assert!(done.is_ok_and(|s| s.success()), "nft {rules}");
    };
    let ends = namespace.run(move || {
        ip("link set lo up");
        ip("tuntap add dev near mode tun");
        ip("addr add 10.9.0.1/24 dev near");
        ip("link set near up");
        let packets = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                await_packets(&packets, 60);
                nft("add table ip cut
                    add chain ip cut in { type filter hook input priority 0 ; }
                    add rule ip cut in ip saddr 10.9.0.1 drop
                    add rule ip cut in ip daddr 10.9.0.1 drop");
                std::thread::sleep(Duration::from_millis(6_500));
                nft("delete table ip cut");
            });
            let own = party(Direction::Send, &["lo", "near"], &[]);
            counted_call(&own, &party(Direction::Receive, &["127.0.0.1"], &[]), 14_000, &packets)
        })
    });
    let [sends, receives] = ends.expect("no panic");
    for end in [&sends.end, &receives.end] {
        let ice = end.ice.as_ref().expect("agreed");
        println!("{:?}", ice.events);
        assert_eq!(ice.events.lost, 1, "{ice:?}");
        assert_eq!(ice.events.restarts + ice.events.followed, 1, "{ice:?}");
        assert!(ice.pairs.iter().any(|p| p.path == 1 && p.is_selected), "{ice:?}");
    }
    assert!(receives.received.expect("pictures").intact > 150);
}

/// Media packets received in a call, under a flood of this many datagrams a second or without.
fn flooded(each_ms: usize) -> (u64, PartySummary) {
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let port = UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let receives = Party { port, ..party(Direction::Receive, &["127.0.0.1"], &[]) };
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.9:0").expect("a port");
            let mut bytes = binding_request([9; 12]).to_vec();
            // A user name, and the rest of a check without its password.
            bytes.extend([0, 6, 0, 9]);
            bytes.extend(*b"abcd:efgh\0\0\0");
            bytes.extend([0, 0x24, 0, 4, 0, 0, 0, 1, 0, 8, 0, 20]);
            bytes.extend([7; 20]);
            let length = (bytes.len() - HEADER) as u16;
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..each_ms {
                    sent.fetch_add(u64::from(socket.send_to(&bytes, to).is_ok()), Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let [_, b] = call(&party(Direction::Send, &["127.0.0.1"], &[]), &receives, 4_000);
        stop.store(true, Ordering::Relaxed);
        (sent.load(Ordering::Relaxed), b)
    })
}

#[test]
fn a_call_on_sockets_keeps_its_rate_under_a_flood_of_checks() {
    let (_, calm) = flooded(0);
    let (sent, flooded) = flooded(5);
    let counters = flooded.end.ice.as_ref().expect("agreed").messages;
    let [calm, under] = [&calm, &flooded].map(|b| b.end.received.rtp_packets);
    println!("{sent} forged checks in 4 s: {under} packets, {calm} without; {counters:?}");
    assert!(counters.unauthentic > 2_000, "{counters:?}");
    assert!(under * 100 >= calm * 95, "{under} beside {calm}");
}
