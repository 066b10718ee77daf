#![expect(clippy::disallowed_methods, reason = "tests of real time")]

use super::*;
use crate::netns::SetupError;
use std::net::UdpSocket;
use std::time::Instant;
use weir_path::queue::drop_tail;
use weir_path::{Discipline, Limit, Loss};
use weir_units::DataRate;

/// Bytes of IPv4 and UDP headers.
const HEADERS: u64 = 28;

fn point_to_point(link: LinkConfig) -> Config {
    Config {
        links: vec![("there".into(), link.clone()), ("back".into(), link)],
        flows: vec![Route { forward: vec![0], reverse: vec![1], headers: None }],
        seed: 1,
    }
}

/// An emulator, or a line that states why the test is skipped.
fn emulator(config: &Config) -> Option<Emulator> {
    match Emulator::new(config, ()) {
        Ok(e) => Some(e),
        Err(EmulatorError::Setup(e)) => {
            println!("skipped: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

fn socket(e: &Emulator, side: Side, port: u16) -> UdpSocket {
    let address = (side.ipv4(0), port);
    e.namespace(side).run(move || UdpSocket::bind(address)).expect("alive").expect("bound")
}

/// Runs the emulator on this thread while `work` runs on another.
fn during<T: Send + 'static>(e: &mut Emulator, work: impl FnOnce() -> T + Send + 'static) -> (T, Accuracy) {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let worker = std::thread::spawn(move || {
        let r = work();
        flag.store(true, Ordering::Relaxed);
        r
    });
    let look = |_, _: &mut Network<()>| ControlFlow::Continue(());
    e.hurry();
    let accuracy = e.run(&Clock::starting_now(), None, &stop, TimeDelta::from_millis(10), look).expect("devices live");
    (worker.join().expect("no panic"), accuracy)
}

#[test]
fn a_saturated_link_keeps_its_rate_and_its_delay() {
    let mut link = LinkConfig::constant(DataRate::from_mbps(8), TimeDelta::from_millis(20));
    link.limit = Limit::Size(DataSize::from_bytes(100_000));
    let Some(mut e) = emulator(&point_to_point(link)) else { return };
    let (a, b) = (socket(&e, Side::Left, 4_000), socket(&e, Side::Right, 4_000));
    b.set_read_timeout(Some(Duration::from_millis(500))).expect("set");
    let (arrivals, accuracy) = during(&mut e, move || {
        // 300 datagrams of 1,000 bytes on the wire, at once: the queue holds 100, one is in transmission at first, and
        // one per millisecond drains meanwhile.
        let begin = Instant::now();
        for i in 0..300u16 {
            let mut datagram = [0; 972];
            datagram[..2].copy_from_slice(&i.to_be_bytes());
            a.send_to(&datagram, (Side::Right.ipv4(0), 4_000)).expect("sent");
        }
        let mut buffer = [0; 2_000];
        let mut arrivals = Vec::new();
        while let Ok((n, from)) = b.recv_from(&mut buffer) {
            assert_eq!((n, from.ip()), (972, Side::Left.ipv4(0).into()));
            arrivals.push((u16::from_be_bytes([buffer[0], buffer[1]]), begin.elapsed()));
        }
        arrivals
    });
    println!("{accuracy}");
    let there = &accuracy.links[0];
    assert!(there.offered <= 300 && there.offered + accuracy.left.overruns == 300, "{there:?}");
    assert_eq!(there.delivered as usize, arrivals.len());
    assert_eq!(there.delivered + there.dropped_queue, there.offered);
    assert!((101..=300).contains(&arrivals.len()), "{}", arrivals.len());
    assert!(arrivals.is_sorted_by_key(|a| a.0), "order is kept");
    // Transmission and propagation of the first, and no packet faster than the link.
    assert!(arrivals[0].1 >= Duration::from_millis(21), "{:?}", arrivals[0]);
    let rate = there.saturated_bps.expect("it was saturated");
    assert!((7.84e6..=8.16e6).contains(&rate), "{rate}");
    let error = accuracy.delay_error.expect("packets passed");
    // A wide bound: the machine that tests may be busy with others'.
    assert!(error.p50_ms < 2.0 && error.mean_ms < 10.0, "{error:?}");
    assert!((0.0..=1.0).contains(&accuracy.cpu_share));
}

#[test]
fn headers_count_as_configured() {
    let mut link = LinkConfig::constant(DataRate::from_kbps(1), TimeDelta::ZERO);
    link.limit = Limit::Size(DataSize::from_bytes(10_000));
    for (headers, dropped) in [(None, 0), (Some(DataSize::from_bytes(900)), 29)] {
        let mut config = point_to_point(link.clone());
        config.flows[0].headers = headers;
        let Some(mut e) = emulator(&config) else { return };
        let a = socket(&e, Side::Left, 4_000);
        // Of 40 packets one is in transmission, and ten of 1,000 bytes wait, or all of 128.
        let ((), accuracy) = during(&mut e, move || {
            for _ in 0..40 {
                a.send_to(&[7; 100], (Side::Right.ipv4(0), 4_000)).expect("sent");
            }
            std::thread::sleep(Duration::from_millis(300));
        });
        assert_eq!((accuracy.links[0].offered, accuracy.left.overruns), (40, 0));
        assert_eq!(accuracy.links[0].dropped_queue, dropped, "{headers:?}");
    }
}

#[test]
fn losses_and_marks_are_those_of_the_link() {
    let mut link = LinkConfig::constant(DataRate::from_mbps(50), TimeDelta::from_millis(1));
    link.loss = Loss::Independent { share: 0.1 };
    let config = point_to_point(link);
    let Some(mut e) = emulator(&config) else { return };
    let (a, b) = (socket(&e, Side::Left, 4_000), socket(&e, Side::Right, 4_000));
    b.set_read_timeout(Some(Duration::from_millis(300))).expect("set");
    let (numbers, accuracy) = during(&mut e, move || {
        for i in 0..200u8 {
            a.send_to(&[i; 100], (Side::Right.ipv4(0), 4_000)).expect("sent");
            std::thread::sleep(Duration::from_micros(200));
        }
        let mut buffer = [0; 2_000];
        let mut numbers = Vec::new();
        while b.recv_from(&mut buffer).is_ok() {
            numbers.push(buffer[0]);
        }
        numbers
    });
    assert_eq!(accuracy.left.overruns, 0);
    assert_eq!(accuracy.links[0].dropped_random as usize + numbers.len(), 200);
    // The draws are those of the same link in the simulator.
    let mut twin = Link::new(&config.links[0].1, weir_sim::mix(config.seed, 0)).expect("sound");
    let mut expected = Vec::new();
    for i in 0..200u8 {
        let now = Timestamp::from_millis(i64::from(i));
        let packet =
            weir_path::Packet { item: i, size: DataSize::from_bytes(100 + HEADERS), ecn: Ecn::NotEct, flow: 0 };
        assert_eq!(twin.push(now, packet), weir_path::Verdict::Queued);
    }
    while let Some(departure) = twin.pop(Timestamp::from_secs(1)) {
        if let weir_path::Departure::Delivered(d) = departure {
            expected.push(d.item);
        }
    }
    assert_eq!(numbers, expected);
}

#[test]
fn congestion_is_marked_in_the_header() {
    let mut link = LinkConfig::constant(DataRate::from_mbps(1), TimeDelta::ZERO);
    let ecn_threshold = Limit::Packets(1);
    link.discipline = Discipline::DropTail(drop_tail::Config { ecn_threshold });
    let Some(mut e) = emulator(&point_to_point(link)) else { return };
    let (a, b) = (socket(&e, Side::Left, 4_000), socket(&e, Side::Right, 4_000));
    nix::sys::socket::setsockopt(&a, nix::sys::socket::sockopt::Ipv4Tos, &i32::from(Ecn::Ect0.bits())).expect("set");
    b.set_read_timeout(Some(Duration::from_millis(300))).expect("set");
    let (count, accuracy) = during(&mut e, move || {
        for _ in 0..20 {
            a.send_to(&[7; 972], (Side::Right.ipv4(0), 4_000)).expect("sent");
        }
        let mut buffer = [0; 2_000];
        std::iter::from_fn(|| b.recv_from(&mut buffer).ok()).count()
    });
    // A wrong header checksum would have the kernel drop the packet.
    assert_eq!(count, 20);
    assert!((10..=19).contains(&accuracy.links[0].marked), "{:?}", accuracy.links[0]);
}

#[test]
fn impossible_configurations_are_refused() {
    let link = LinkConfig::constant(DataRate::from_mbps(1), TimeDelta::ZERO);
    let none = Config { flows: vec![], ..point_to_point(link.clone()) };
    assert!(matches!(Emulator::new(&none, ()), Err(EmulatorError::Flows { flows: 0 })));
    let nowhere =
        Config { flows: vec![Route { forward: vec![0], reverse: vec![2], headers: None }], ..point_to_point(link) };
    assert!(matches!(Emulator::new(&nowhere, ()), Err(EmulatorError::Route { flow: 0 })));
    let wrong = LinkConfig::constant(DataRate::from_mbps(1), -TimeDelta::from_millis(1));
    match Emulator::new(&point_to_point(wrong), ()) {
        Err(EmulatorError::Link { link, .. }) => assert_eq!(link, "there"),
        Err(EmulatorError::Setup(SetupError::Privilege { .. } | SetupError::NoTun { .. })) => {}
        other => panic!("{:?}", other.err()),
    }
}
