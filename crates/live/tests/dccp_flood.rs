//! A server of many connections by one thread: hostile handshakes by the thousand, and honest senders beside them.
#![cfg(target_os = "linux")]

#[path = "support/raise.rs"]
mod raise;

use raise::Raise;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_dccp::connection::{Config, Connection, Datagram};
use weir_dccp::packet::{PacketType, ResetCode, parse};
use weir_live::clock::Clock;
use weir_live::dccp::transfer::{Look, Looks, ReceiveReport, SendPlan, ServeObserver, ServePlan, send_all, serve};
use weir_live::dccp::{DccpListener, DccpPort, DccpSocket, ListenerConfig, PortConfig};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// Connections of the server in all, and from one source.
const MAX: usize = 40;
const MAX_PER_SOURCE: usize = 12;
/// Handshakes that a hostile source completes, if it may, and Requests that it abandons.
const HANDSHAKES: u16 = 3_000;
const REQUESTS: u16 = 3_000;
const LONG: Duration = Duration::from_secs(20);

/// One test at a time, so that their threads can be counted.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn config(local_port: u16) -> Config {
    Config { local_port, remote_port: 5_004, time_wait: TimeDelta::from_millis(200), ..Config::default() }
}

fn server() -> DccpListener {
    let limits = PortConfig { max_connections: MAX, max_per_source: MAX_PER_SOURCE, ..PortConfig::default() };
    let port = DccpPort::bind("127.0.0.1:0".parse().expect("an address"), limits).expect("a port");
    port.listen(ListenerConfig::new(Config { remote_port: 0, ..config(5_004) }, [0; 32])).expect("a listener")
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("procfs").count()
}

#[derive(Default)]
struct Seen<'a> {
    stop: Option<&'a AtomicBool>,
    most_connections: usize,
    looks: usize,
    reports: Vec<ReceiveReport>,
    with_data: usize,
}

impl ServeObserver for Seen<'_> {
    fn stops(&mut self) -> bool {
        self.stop.is_some_and(|s| s.load(Ordering::Relaxed))
    }
    fn on_data(&mut self, socket: &DccpSocket) {
        self.with_data += 1;
        self.most_connections = self.most_connections.max(socket.port().connections());
    }
    fn on_look(&mut self, _: &DccpSocket, _: &Look) {
        self.looks += 1;
    }
    fn on_end(&mut self, socket: &DccpSocket, report: ReceiveReport) {
        self.most_connections = self.most_connections.max(socket.port().connections());
        self.reports.push(report);
    }
}

fn plan(idle_ms: i64) -> ServePlan {
    let (idle, patience) = (TimeDelta::from_millis(idle_ms), TimeDelta::from_secs(5));
    ServePlan { concurrent: MAX, idle, patience, every: TimeDelta::from_millis(100) }
}

/// The answers received by a hostile source.
#[derive(Default, Debug)]
struct Answers {
    opened: usize,
    too_busy: usize,
}

/// A source's wait for an answer: of one that has no time to lose, and of one of which each handshake counts, also where the
/// server's thread gets no processor for a while.
const HURRIED: Duration = Duration::from_millis(20);
const PATIENT: Duration = Duration::from_secs(2);

/// Handshakes from one address, one after the other, each connection then abandoned.
fn flood(from: &str, to: SocketAddr) -> Answers {
    paced_flood(from, to, HANDSHAKES + REQUESTS, Duration::ZERO, HURRIED)
}

/// So many Requests, this long apart, every second of which leads to a handshake where it is let.
fn paced_flood(from: &str, to: SocketAddr, requests: u16, pause: Duration, wait: Duration) -> Answers {
    let socket = UdpSocket::bind((from, 0)).expect("a loopback address");
    socket.connect(to).expect("a route");
    socket.set_read_timeout(Some(wait)).expect("a timeout");
    let (mut out, mut buffer) = (Vec::new(), [0; 2_048]);
    let mut answers = Answers::default();
    let clock = Clock::starting_now();
    for n in 0..requests {
        let due = Timestamp::ZERO + TimeDelta::from_nanos(pause.as_nanos() as i64) * i64::from(n);
        let early = due.saturating_since(clock.now());
        if early > TimeDelta::ZERO {
            std::thread::sleep(Duration::from_nanos(early.as_nanos() as u64));
        }
        let now = Timestamp::from_secs(1);
        let mut client =
            Connection::connect(Config { seed: n.into(), ..config(10_000 + n) }, now).expect("a configuration");
        client.poll_transmit(now, &mut out).expect("a Request");
        socket.send(&out).expect("sent");
        if n % 2 == 1 {
            continue;
        }
        // Answers to others may be received before it.
        while let Ok(length) = socket.recv(&mut buffer) {
            let bytes = &buffer[..length];
            let Ok(packet) = parse(bytes, 0) else { continue };
            let is_mine = packet.header.destination_port == 10_000 + n;
            match (packet.header.packet_type, packet.reset) {
                (PacketType::Response, _) if is_mine => {
                    client.handle_datagram(now, &Datagram { bytes, payload: 0, ecn: Ecn::NotEct });
                    while client.poll_transmit(now, &mut out).is_some() {
                        socket.send(&out).expect("sent");
                    }
                    answers.opened += 1;
                    break;
                }
                (PacketType::Reset, Some((code, _))) if is_mine => {
                    answers.too_busy += usize::from(code == ResetCode::TOO_BUSY);
                    break;
                }
                _ => {}
            }
        }
    }
    answers
}

#[test]
fn a_flood_of_handshakes_keeps_no_honest_sender_out() {
    let _alone = alone();
    let listener = server();
    let (at, port) = (listener.local_addr(), listener.port().clone());
    let over = AtomicBool::new(false);
    let most_threads = AtomicUsize::new(0);
    let mut seen = Seen { stop: Some(&over), ..Seen::default() };
    std::thread::scope(|scope| {
        let _end = Raise(&over);
        let serving = scope.spawn(|| serve(&listener, &plan(500), &mut seen));
        let hostile = ["127.0.0.2", "127.0.0.3"].map(|from| scope.spawn(move || flood(from, at)));
        let honest = scope.spawn(move || {
            // Not before the flood has begun.
            std::thread::sleep(Duration::from_millis(100));
            let client = DccpSocket::connect_timeout(at, config(0), LONG).unwrap();
            let plan = SendPlan { size: Some(DataSize::from_bytes(2_000_000)), ..SendPlan::default() };
            send_all(&client, &plan, &|| false, LONG, Looks { every: TimeDelta::from_secs(1), report_to: &mut |_| () })
                .unwrap()
        });
        while !hostile.iter().all(|h| h.is_finished()) {
            most_threads.fetch_max(threads(), Ordering::Relaxed);
            assert!(port.connections() <= MAX);
            std::thread::sleep(Duration::from_millis(5));
        }
        let answers = hostile.map(|h| h.join().unwrap());
        let sent = honest.join().unwrap();
        // Strangers get in, and give way to each other.
        assert!(answers.iter().all(|a| a.opened >= MAX_PER_SOURCE), "{answers:?}");
        assert!(port.counters().gave_way >= 500, "{:?}", port.counters());
        assert!(sent.closed && sent.ended_by.is_none(), "{sent:?}");
        // Idle ones are reset without a flood too.
        let clock = Clock::starting_now();
        while port.connections() > 0 && clock.now() < Timestamp::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(port.connections(), 0, "after {}", clock.now());
        over.store(true, Ordering::Relaxed);
        serving.join().unwrap().unwrap();
    });
    // Those of the tests, two for the server and its port, three for the clients and one for a client's port: none per
    // connection.
    assert!((6..=12).contains(&most_threads.load(Ordering::Relaxed)), "{most_threads:?} threads");
    assert!(seen.most_connections <= MAX && seen.with_data == 1, "{} {}", seen.most_connections, seen.with_data);
    let whole: Vec<_> = seen.reports.iter().filter(|r| r.closed && r.tally.datagrams > 0).collect();
    assert!(whole.len() == 1 && whole[0].tally.damaged == 0, "{whole:?}");
    assert!(whole[0].tally.bytes > 1_500_000 && whole[0].ended_by.is_none(), "{whole:?}");
    let idle = seen.reports.iter().filter(|r| r.ended_by.as_ref().is_some_and(|e| e.contains("too long"))).count();
    // Those that the flood left open, and more where a busy machine held it up.
    assert!((1..=MAX).contains(&idle), "{idle} of {}", seen.reports.len());
}

/// A listener at the server's default bounds.
fn usual_server() -> (DccpPort, DccpListener) {
    let limits = PortConfig { max_connections: 256, max_per_source: 32, ..PortConfig::default() };
    let port = DccpPort::bind("127.0.0.1:0".parse().expect("an address"), limits).expect("a port");
    let listening = ListenerConfig::new(Config { remote_port: 0, ..config(5_004) }, [0; 32]);
    let listener = port.listen(listening).expect("a listener");
    (port, listener)
}

/// 256 finished, silent handshakes from eight addresses, and as many Requests without one, at the server's default bounds.
#[test]
fn silent_connections_from_eight_addresses_give_way_to_a_newcomer() {
    let _alone = alone();
    let (port, listener) = usual_server();
    let at = listener.local_addr();
    let over = AtomicBool::new(false);
    let mut seen = Seen { stop: Some(&over), ..Seen::default() };
    let took = std::thread::scope(|scope| {
        let _end = Raise(&over);
        let serving = scope.spawn(|| serve(&listener, &ServePlan { concurrent: 256, ..plan(60_000) }, &mut seen));
        for n in 1..=8 {
            let answers = paced_flood(&format!("127.0.1.{n}"), at, 64, Duration::from_millis(1), PATIENT);
            assert_eq!(answers.opened, 32, "{answers:?}");
        }
        let clock = Clock::starting_now();
        let client = DccpSocket::connect_timeout(at, config(0), LONG).expect("a newcomer gets in");
        let plan = SendPlan { size: Some(DataSize::from_bytes(20_000)), ..SendPlan::default() };
        let looks = Looks { every: TimeDelta::from_secs(1), report_to: &mut |_| () };
        let sent = send_all(&client, &plan, &|| false, LONG, looks).expect("sent");
        let took = clock.now() - Timestamp::ZERO;
        assert!(sent.closed && sent.ended_by.is_none(), "{sent:?}");
        over.store(true, Ordering::Relaxed);
        serving.join().expect("served").expect("served");
        took
    });
    println!("flood | DCCP | finished and silent | 8 | {:.2} | - |", took.as_secs_f64());
    assert!(took < TimeDelta::from_secs(2), "{took}");
    assert!(port.connections() <= 256 && port.counters().gave_way >= 100, "{:?}", port.counters());
    assert!(seen.reports.iter().any(|r| r.closed && r.tally.bytes > 15_000), "{} reports", seen.reports.len());
}

/// Memory of this process in RAM, in kB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

/// 100,000 handshakes a minute from four sources beside one sender of 1 Mbit/s, for six seconds; the server's default bounds.
#[test]
fn an_honest_sender_keeps_its_rate_beside_a_hundred_thousand_handshakes_a_minute() {
    const SECONDS: i64 = 6;
    const SOURCES: [&str; 4] = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];
    // Every second Request leads to a handshake.
    let requests = (2 * 100_000 / 60 * SECONDS / SOURCES.len() as i64) as u16;
    let pause = Duration::from_secs(SECONDS as u64) / u32::from(requests);
    let _alone = alone();
    let (_port, listener) = usual_server();
    let at = listener.local_addr();
    let over = AtomicBool::new(false);
    let mut seen = Seen { stop: Some(&over), ..Seen::default() };
    let before = resident();
    let (sent, answers, grown) = std::thread::scope(|scope| {
        let _end = Raise(&over);
        let serving = scope.spawn(|| serve(&listener, &plan(2_000), &mut seen));
        let honest = scope.spawn(move || {
            let client = DccpSocket::connect_timeout(at, config(0), LONG).unwrap();
            let (duration, rate) = (Some(TimeDelta::from_secs(SECONDS)), Some(DataRate::from_mbps(1)));
            let plan = SendPlan { duration, rate, ..SendPlan::default() };
            send_all(&client, &plan, &|| false, LONG, Looks { every: TimeDelta::from_secs(1), report_to: &mut |_| () })
                .unwrap()
        });
        let hostile = SOURCES.map(|from| scope.spawn(move || paced_flood(from, at, requests, pause, HURRIED)));
        let answers = hostile.map(|h| h.join().unwrap());
        let grown = resident().saturating_sub(before);
        let sent = honest.join().unwrap();
        over.store(true, Ordering::Relaxed);
        serving.join().unwrap().unwrap();
        (sent, answers, grown)
    });
    let whole = seen.reports.iter().filter(|r| r.tally.datagrams > 0).max_by_key(|r| r.tally.bytes).unwrap();
    let opened: usize = answers.iter().map(|a| a.opened).sum();
    println!(
        "{} of {} bytes received at {:.3} Mbit/s, {opened} handshakes finished, {grown} kB more memory",
        whole.tally.bytes,
        sent.bytes,
        sent.rate_bps / 1e6
    );
    // The machine had no time for messages that the sender could not hand over; all others have to be received.
    assert!(whole.tally.bytes as f64 >= 0.95 * sent.bytes as f64, "{whole:?} of {sent:?}");
    assert!(sent.rate_bps >= 0.95e6, "{sent:?}");
    assert!(opened >= 32 * SOURCES.len(), "{answers:?}");
    assert!(grown < 32_768, "{grown} kB");
}

#[test]
fn one_thread_receives_from_many_at_once() {
    let _alone = alone();
    let listener = server();
    let at = listener.local_addr();
    let over = AtomicBool::new(false);
    let mut seen = Seen { stop: Some(&over), ..Seen::default() };
    std::thread::scope(|scope| {
        let _end = Raise(&over);
        let serving = scope.spawn(|| serve(&listener, &plan(60_000), &mut seen));
        let senders = [(); 8].map(|()| {
            scope.spawn(move || {
                let client = DccpSocket::connect_timeout(at, config(0), LONG).unwrap();
                let plan = SendPlan { size: Some(DataSize::from_bytes(300_000)), ..SendPlan::default() };
                let looks = Looks { every: TimeDelta::from_secs(1), report_to: &mut |_| () };
                send_all(&client, &plan, &|| false, LONG, looks).unwrap()
            })
        });
        assert!(senders.into_iter().all(|s| s.join().unwrap().closed));
        over.store(true, Ordering::Relaxed);
        serving.join().unwrap().unwrap();
    });
    assert_eq!((seen.with_data, seen.reports.len()), (8, 8));
    assert!(seen.looks >= 8, "at the end of each: {}", seen.looks);
    for report in &seen.reports {
        let t = report.tally;
        assert!(report.closed && report.ended_by.is_none() && t.damaged + t.duplicates == 0, "{report:?}");
        assert!(t.bytes > 200_000, "{report:?}");
    }
}

#[test]
fn a_stop_closes_what_is_open() {
    let _alone = alone();
    let listener = server();
    let at = listener.local_addr();
    let over = AtomicBool::new(false);
    let mut seen = Seen { stop: Some(&over), ..Seen::default() };
    std::thread::scope(|scope| {
        let _end = Raise(&over);
        let serving = scope.spawn(|| serve(&listener, &plan(60_000), &mut seen));
        let client = DccpSocket::connect_timeout(at, config(0), LONG).unwrap();
        client.send(&[0; 100]).unwrap();
        while listener.port().counters().accepted == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(50));
        over.store(true, Ordering::Relaxed);
        serving.join().unwrap().unwrap();
        assert!(client.recv(&mut [0; 10]).is_err());
    });
    // The data sent is no datagram of a transfer.
    assert_eq!((seen.reports.len(), seen.reports[0].closed, seen.reports[0].tally.damaged), (1, true, 1));
}
