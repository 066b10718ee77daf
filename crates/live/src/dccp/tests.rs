//! Connections on this machine's loopback device.

use super::*;
use crate::clock::Clock;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use weir_dccp::ccid::{
    Acknowledgement, CcidSender, Permission, Receiver, Registry, Requirements, Sender, SentPacket, Spec,
};
use weir_dccp::connection::{Ccids, Config, EndReason, State};
use weir_dccp::packet::ResetCode;
use weir_dccp::queue::QueueConfig;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

const LONG: Duration = Duration::from_secs(20);

fn config() -> Config {
    let queue = QueueConfig { capacity: 64, ..QueueConfig::default() };
    Config { local_port: 0, queue, time_wait: TimeDelta::from_millis(200), ..Config::default() }
}

fn listening() -> Config {
    Config { local_port: 5_004, ..config() }
}

fn listen(address: &str) -> Option<DccpListener> {
    let bound = DccpListener::bind(address.parse().unwrap(), listening());
    if bound.is_err() {
        println!("skipped: no {address} on this machine");
    }
    bound.ok()
}

fn pair() -> (DccpListener, DccpSocket, DccpSocket) {
    let listener = listen("127.0.0.1:0").unwrap();
    let client = DccpSocket::connect(listener.local_addr(), config()).unwrap();
    let server = listener.accept_timeout(LONG).unwrap();
    (listener, client, server)
}

/// Whether a condition holds within a time, checked every few ms.
fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let clock = Clock::starting_now();
    while clock.now() < Timestamp::from_secs(20) {
        if holds() {
            return true;
        }
        thread::sleep(Duration::from_millis(2));
    }
    false
}

#[test]
fn datagrams_go_both_ways_and_both_ends_close() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Some(listener) = listen(address) else { continue };
        let client = DccpSocket::connect(listener.local_addr(), config()).unwrap();
        let server = listener.accept_timeout(LONG).unwrap();
        assert_eq!(client.peer_addr(), listener.local_addr());
        assert_eq!(server.dccp_ports(), (5_004, client.dccp_ports().0));
        assert_eq!((client.ccids(), server.ccids()), (Some((2, 2)), Some((2, 2))));
        let overhead = if address.starts_with('[') { 48 } else { 28 };
        assert!(client.max_packet_size().as_bytes() < 1_500 - overhead - 12);
        let talk = |mine: &DccpSocket, tag: u8, count: usize| {
            for i in 0..count {
                mine.send(&vec![tag; 1 + i * 7 % 1_300]).unwrap();
            }
        };
        let hear = |theirs: &DccpSocket, tag: u8, count: usize| {
            let mut buffer = [0; 2_000];
            for i in 0..count {
                let n = theirs.recv(&mut buffer).unwrap();
                assert_eq!((n, buffer[0], buffer[n - 1]), (1 + i * 7 % 1_300, tag, tag), "datagram {i}");
            }
        };
        thread::scope(|s| {
            s.spawn(|| talk(&client, 1, 500));
            s.spawn(|| talk(&server, 2, 300));
            s.spawn(|| hear(&client, 2, 300));
            hear(&server, 1, 500);
        });
        assert!(client.rtt().is_some_and(|r| r > TimeDelta::ZERO && r < TimeDelta::from_secs(5)));
        assert!(client.finish(LONG).unwrap());
        let end = server.recv(&mut [0; 10]).unwrap_err();
        assert!(matches!(end, DccpError::Ended(EndReason::Closed)), "{end}");
        assert!(client.send(b"more").unwrap_err().is_closed());
        drop(server);
        // TIMEWAIT is over after 200 ms, and then nothing is left.
        assert!(soon(|| client.port().connections() + listener.port().connections() == 0));
        assert_eq!(client.state(), State::Closed);
    }
}

#[test]
fn what_does_not_wait_says_so() {
    let (_listener, client, server) = pair();
    server.set_nonblocking(true);
    assert!(server.recv(&mut [0; 10]).unwrap_err().is_would_block());
    server.set_nonblocking(false);
    server.set_read_timeout(Some(Duration::from_millis(50)));
    let clock = Clock::starting_now();
    assert!(server.recv(&mut [0; 10]).unwrap_err().is_would_block());
    let waited = clock.now().as_nanos();
    assert!((49_000_000..5_000_000_000).contains(&waited), "{waited}");
    // Data cannot be sent as fast as a thread submits it.
    client.set_nonblocking(true);
    let datagram = vec![3; client.max_packet_size().as_bytes() as usize];
    let refused = (0..100_000).find_map(|_| client.send(&datagram).err()).unwrap();
    assert!(refused.is_would_block(), "{refused}");
    assert_eq!(std::io::Error::from(refused).kind(), std::io::ErrorKind::WouldBlock);
    assert!(client.queue_counters().refused > 0);
    let long = client.send(&vec![0; 65_000]).unwrap_err();
    assert!(matches!(long, DccpError::TooLong { size, .. } if size.as_bytes() == 65_000), "{long}");
}

#[test]
fn many_connections_share_a_port_at_either_end() {
    const EACH: usize = 12;
    let listener = listen("127.0.0.1:0").unwrap();
    let one = DccpPort::bind("127.0.0.1:0".parse().unwrap(), PortConfig::default()).unwrap();
    let shared = (0..EACH).map(|_| one.begin_connect(listener.local_addr(), config()).unwrap());
    let own = (0..EACH).map(|_| DccpSocket::connect(listener.local_addr(), config()).unwrap());
    let clients: Vec<DccpSocket> = shared.chain(own).collect();
    let mut ports: Vec<u16> = clients[..EACH].iter().map(|c| c.dccp_ports().0).collect();
    ports.sort_unstable();
    ports.dedup();
    assert!(ports.len() == EACH && ports[0] >= 49_152, "{ports:?}");
    for c in &clients {
        assert!(c.wait(Interest::Open, Some(LONG)).unwrap());
    }
    thread::scope(|s| {
        for _ in 0..clients.len() {
            let server = listener.accept_timeout(LONG).unwrap();
            s.spawn(move || {
                let mut buffer = Vec::new();
                while server.recv_into(&mut buffer).is_ok() {
                    server.send(&buffer).unwrap();
                }
            });
        }
        for (i, c) in clients.iter().enumerate() {
            s.spawn(move || {
                let mut buffer = [0; 100];
                for round in 0..20u8 {
                    let said = [i as u8, round, 7];
                    c.send(&said).unwrap();
                    let n = c.recv(&mut buffer).unwrap();
                    assert_eq!(buffer[..n], said, "what another has said");
                }
                assert!(c.finish(LONG).unwrap());
            });
        }
    });
    assert!(soon(|| listener.port().connections() == 0), "{}", listener.port().connections());
    let counters = listener.port().counters();
    assert_eq!((counters.accepted, counters.turned_away), (2 * EACH as u64, 0));
}

#[test]
fn unreachable_peers_are_distinguished() {
    // An unused UDP port: reported by ICMP.
    let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let e = DccpSocket::connect(gone, config()).unwrap_err();
    assert!(matches!(e, DccpError::Unreachable { kind: std::io::ErrorKind::ConnectionRefused, .. }), "{e}");
    // One that does not answer.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    let e = DccpSocket::connect_timeout(at, config(), Duration::from_millis(300)).unwrap_err();
    assert!(matches!(e, DccpError::TimedOut { peer, .. } if peer == at), "{e}");
    // One that has no listener.
    let deaf = DccpPort::bind("127.0.0.1:0".parse().unwrap(), PortConfig::default()).unwrap();
    let e = DccpSocket::connect(deaf.local_addr(), config()).unwrap_err();
    let refused = EndReason::ResetByPeer(ResetCode::CONNECTION_REFUSED, [0; 3]);
    assert!(matches!(e, DccpError::Ended(r) if r == refused), "{e}");
    // Another service.
    let listener = listen("127.0.0.1:0").unwrap();
    let other = Config { service_code: weir_dccp::packet::ServiceCode::RTP_AUDIO, ..config() };
    let e = DccpSocket::connect(listener.local_addr(), other).unwrap_err();
    assert!(e.to_string().contains("Bad Service Code"), "{e}");
    assert_eq!(listener.port().connections(), 0);
}

/// A CCID that panics when it receives its first acknowledgement.
struct Panicking;

impl CcidSender for Panicking {
    fn may_send(&self, _: Timestamp, _: DataSize) -> Permission {
        Permission::Now
    }
    fn on_packet_sent(&mut self, sent: &SentPacket) {
        assert!(sent.data != DataSize::from_bytes(666), "meant to fail");
    }
    fn on_acknowledgement(&mut self, _: &Acknowledgement<'_>) {}
    fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }
    fn on_timeout(&mut self, _: Timestamp) {}
    fn rate(&self) -> Option<DataRate> {
        None
    }
    fn smoothed_rate(&self) -> Option<DataRate> {
        None
    }
    fn rtt(&self) -> Option<TimeDelta> {
        None
    }
}

fn with_panicking() -> Registry {
    let mut registry = Registry::builtin();
    let two = registry.get(2).unwrap().clone();
    registry.register(Spec {
        number: 250,
        name: "panicking",
        summary: "",
        source: "",
        requirements: Requirements::default(),
        params: vec![],
        sender: Arc::new(|_| Ok(Sender::Custom(Box::new(Panicking)))),
        receiver: Arc::new(move |setup| -> Result<Receiver, _> { (two.receiver)(setup) }),
    });
    registry
}

#[test]
fn a_panic_ends_its_connection_and_no_other() {
    let registry = Arc::new(with_panicking());
    let ccids = Ccids { send: vec![250, 2], receive: vec![250, 2], params: vec![] };
    let odd = Config { registry, ccids, ..config() };
    let listener = Config { local_port: 5_004, ..odd.clone() };
    let listener = DccpListener::bind("127.0.0.1:0".parse().unwrap(), listener).unwrap();
    let port = DccpPort::bind("127.0.0.1:0".parse().unwrap(), PortConfig::default()).unwrap();
    let bad = port.begin_connect(listener.local_addr(), odd.clone()).unwrap();
    let good = port.begin_connect(listener.local_addr(), odd).unwrap();
    for c in [&bad, &good] {
        assert!(c.wait(Interest::Open, Some(LONG)).unwrap());
    }
    assert_eq!(bad.ccids(), Some((250, 250)));
    let servers = [0, 1].map(|_| listener.accept_timeout(LONG).unwrap());
    thread::scope(|s| {
        let waiting = s.spawn(|| bad.recv(&mut [0; 10]));
        thread::sleep(Duration::from_millis(50));
        let _ = bad.send(&[0; 666]);
        let e = waiting.join().unwrap().unwrap_err();
        assert!(matches!(&e, DccpError::Driver(why) if why.contains("meant to fail")), "{e}");
    });
    let e = bad.send(b"more").unwrap_err();
    assert!(matches!(e, DccpError::Driver(_)), "{e}");
    good.send(b"still here").unwrap();
    let heard = |server: &DccpSocket| {
        server.set_read_timeout(Some(Duration::from_millis(500)));
        let mut buffer = [0; 20];
        server.recv(&mut buffer).is_ok_and(|n| &buffer[..n] == b"still here")
    };
    assert!(servers.iter().any(heard));
    assert_eq!(port.connections(), 1);
}

#[test]
fn garbage_and_strangers_are_counted_and_do_no_harm() {
    let (listener, client, server) = pair();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut random = 1u64;
    for i in 0..400usize {
        let bytes: Vec<u8> = (0..i % 90)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 56) as u8
            })
            .collect();
        stranger.send_to(&bytes, listener.local_addr()).unwrap();
        if i % 40 == 0 {
            client.send(b"meanwhile").unwrap();
            assert_eq!(server.recv(&mut [0; 20]).unwrap(), 9);
        }
    }
    let counters = || listener.port().counters();
    assert!(soon(|| counters().malformed + counters().strays >= 390), "{:?}", counters());
    assert_eq!(listener.port().connections(), 1);
    assert_eq!(server.counters().sequence_invalid, 0);
}

#[test]
fn marks_and_datagrams_arrive_as_they_were_sent() {
    let (_listener, client, server) = pair();
    client.send(b"marked").unwrap();
    let mut buffer = Vec::new();
    let received = server.recv_into(&mut buffer).unwrap();
    assert_eq!((received.ecn, &buffer[..]), (Ecn::Ect0, &b"marked"[..]));
    // Bytes that do not fit are lost.
    client.send(b"a long one").unwrap();
    client.send(b"next").unwrap();
    let mut short = [0; 6];
    assert_eq!((server.recv(&mut short).unwrap(), &short), (6, b"a long"));
    assert_eq!((server.recv(&mut short).unwrap(), &short[..4]), (4, &b"next"[..]));
    let batch: [&[u8]; 3] = [b"1", b"22", b"333"];
    assert_eq!(client.send_many(&batch).unwrap(), 3);
    let lengths = [0; 3].map(|_| server.recv(&mut short).unwrap());
    assert_eq!(lengths, [1, 2, 3]);
}

#[test]
fn a_listener_that_goes_resets_what_it_has_not_accepted() {
    let listener = listen("127.0.0.1:0").unwrap();
    let client = DccpSocket::connect(listener.local_addr(), config()).unwrap();
    let accepted = listener.accept_timeout(LONG).unwrap();
    let waiting = DccpSocket::connect(listener.local_addr(), config()).unwrap();
    waiting.send(b"so that the handshake ends").unwrap();
    assert!(soon(|| listener.port().counters().accepted == 2));
    let at = listener.local_addr();
    drop(listener);
    let e = waiting.recv(&mut [0; 10]).unwrap_err();
    assert!(matches!(e, DccpError::Ended(EndReason::ResetByPeer(..))), "{e}");
    client.send(b"goes on").unwrap();
    assert_eq!(accepted.recv(&mut [0; 10]).unwrap(), 7);
    assert!(DccpSocket::connect(at, config()).is_err());
    drop(accepted);
    assert!(matches!(client.recv(&mut [0; 10]), Err(DccpError::Ended(EndReason::Closed))));
}

#[test]
fn limits_hold() {
    let port = PortConfig { max_connections: 16, backlog: 2, ..PortConfig::default() };
    let port = DccpPort::bind("127.0.0.1:0".parse().unwrap(), port).unwrap();
    let listening = || ListenerConfig::new(listening(), [0; 32]);
    let listener = port.listen(listening()).unwrap();
    assert!(matches!(port.listen(listening()), Err(DccpError::Config(_))));
    let open = || {
        let client = DccpSocket::connect(port.local_addr(), config())?;
        client.send(b"so that the handshake ends")?;
        Ok::<_, DccpError>(client)
    };
    let first = [(); 2].map(|()| open().unwrap());
    assert!(soon(|| port.counters().accepted == 2));
    // Two wait to be accepted.
    let e = open().unwrap_err();
    assert!(e.to_string().contains("Too Busy"), "{e}");
    let servers = [(); 2].map(|()| listener.accept_timeout(LONG).unwrap());
    let more = [(); 14].map(|()| (open().unwrap(), listener.accept_timeout(LONG).unwrap()));
    assert!(soon(|| port.counters().accepted == 16 && port.connections() == 16));
    // Sixteen is the maximum, including those opened by this end.
    let peer = port.local_addr();
    assert!(matches!(port.begin_connect(peer, config()), Err(DccpError::Full(16))));
    assert_eq!(port.counters().gave_way, 0);
    // A quarter are places of strangers: there, a newcomer takes the place of another one.
    let newcomer = (open().unwrap(), listener.accept_timeout(LONG).unwrap());
    assert!(soon(|| port.counters().gave_way == 1 && port.connections() == 16));
    drop((first, servers));
    assert!(soon(|| port.connections() == 14));
    assert!(open().is_ok());
    drop((newcomer, more));
}

#[test]
fn a_configuration_that_cannot_be_is_refused_at_once() {
    let unknown = Config { ccids: Ccids::both(99), ..config() };
    assert!(matches!(DccpSocket::connect("127.0.0.1:9".parse().unwrap(), unknown.clone()), Err(DccpError::Setup(_))));
    assert!(DccpListener::bind("127.0.0.1:0".parse().unwrap(), unknown).is_err());
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let keep = UdpSocket::bind(taken).unwrap();
    let e = DccpListener::bind(taken, listening()).unwrap_err();
    assert!(e.to_string().contains(&taken.to_string()), "{e}");
    drop(keep);
}

#[test]
fn a_transfer_is_counted_whole() {
    use super::transfer::{Looks, SendPlan, receive_all, send_all};
    let (_listener, client, server) = pair();
    let plan = SendPlan { size: Some(DataSize::from_bytes(3_000_001)), ..SendPlan::default() };
    let never = || false;
    let (sent, received) = thread::scope(|s| {
        let receiver = s.spawn(|| {
            receive_all(&server, &never, LONG, Looks { every: TimeDelta::from_secs(1), report_to: &mut |_| () })
        });
        let mut looks = 0;
        let sent = send_all(
            &client,
            &plan,
            &never,
            LONG,
            Looks { every: TimeDelta::from_millis(10), report_to: &mut |_| looks += 1 },
        )
        .unwrap();
        assert!(looks >= 1);
        (sent, receiver.join().unwrap())
    });
    assert!(sent.closed && received.closed, "{sent:?} {received:?}");
    assert_eq!((&sent.ended_by, &received.ended_by), (&None, &None));
    assert!((3_000_001..3_000_001 + 24).contains(&sent.bytes), "{}", sent.bytes);
    let t = received.tally;
    assert_eq!((t.damaged, t.duplicates), (0, 0));
    // Packets lost after the last one received are known to the sender alone.
    assert!(t.datagrams + t.lost <= sent.datagrams && t.datagrams > sent.datagrams * 9 / 10, "{t:?} {sent:?}");
    // At a rate: 2 Mbit/s for 300 ms are 75,000 bytes.
    let (_listener, client, server) = pair();
    let rate = Some(DataRate::from_mbps(2));
    let duration = Some(TimeDelta::from_millis(300));
    let plan = SendPlan { rate, duration, datagram: Some(DataSize::from_bytes(500)), ..SendPlan::default() };
    let sent = thread::scope(|s| {
        s.spawn(|| {
            receive_all(&server, &never, LONG, Looks { every: TimeDelta::from_secs(1), report_to: &mut |_| () })
        });
        send_all(&client, &plan, &never, LONG, Looks { every: TimeDelta::from_secs(1), report_to: &mut |_| () })
            .unwrap()
    });
    assert!((15_000..=78_000).contains(&sent.bytes), "{sent:?}");
}

type SocketIs<T> = fn(&T);

#[test]
fn sockets_can_be_shared_between_threads() {
    fn is<T: Send + Sync>(_: &T) {}
    let _: (SocketIs<DccpSocket>, SocketIs<DccpListener>, SocketIs<DccpPort>) = (is, is, is);
    let _: SocketAddr = ([127, 0, 0, 1], DCCP_UDP_PORT).into();
}
