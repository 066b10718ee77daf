//! Calls by ICE through NATs of the kernel (nftables, in network namespaces) and a TURN server of others (coturn).
//!
//! A NAT that masquerades keeps a socket's port where it can, and lets in whoever was written to at that port: port
//! restricted. With `fully-random` each destination gets a port of its own: symmetric. nftables has no full cone.
//!
//! The NATs drop what is sent to themselves, as routers of homes do. Where they answer it, conntrack knows the pair of addresses
//! before the end behind the NAT has sent anything there, and masquerades that end's packets with another port: symmetric.

#[path = "support/camera.rs"]
mod camera;
#[path = "support/interfaces.rs"]
mod interfaces;

use camera::video;
use interfaces::ip;
use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_cc::{Limits, Registry};
use weir_live::call::{
    CallConfig, CallObserver, IceOptions, LivePacket, Party, PartyMedia, PartySummary, PathUse, run_party,
};
use weir_live::clock::Clock;
use weir_live::ice::RelayServer;
use weir_live::ice::stun::binding_request;
use weir_live::netns::{Namespace, Process, SetupError, is_program};
use weir_live::sdp::Direction;
use weir_live::signal::{Listener, Signalling, Trust};
use weir_media::{EncoderConfig, VideoCodec};
use weir_session::Endpoint;
use weir_units::{DataRate, PathId, TimeDelta, Timestamp};

/// The server's address, in the namespace between the NATs.
const SERVER: ([u8; 4], u16) = ([198, 51, 100, 1], 3_478);

/// One call at a time: concurrent encoders would compete for a processor.
static ONE_CALL: Mutex<()> = Mutex::new(());

/// Runs `ip` in a namespace, each line an invocation; all at once.
fn configure(namespace: &Namespace, lines: &str) {
    let lines = lines.to_owned();
    let done = namespace.run(move || lines.lines().map(str::trim).filter(|l| !l.is_empty()).for_each(ip));
    done.expect("no panic");
}

fn between(a: &Namespace, (name, at): (&str, &str), b: &Namespace, (other, there): (&str, &str)) {
    configure(a, &format!("link add {name} type veth peer name {other}\nlink set {other} netns {}", b.path()));
    if !at.is_empty() {
        configure(a, &format!("link set {name} up\naddr add {at} dev {name}"));
    }
    configure(b, &format!("link set {other} up\naddr add {there} dev {other}"));
}

/// A namespace that passes packets on.
fn router(name: &str) -> Result<Namespace, SetupError> {
    let namespace = Namespace::new(name)?;
    let written = namespace.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"));
    written.expect("no panic").map_err(|source| SetupError::System { what: "ip_forward".into(), source })?;
    Ok(namespace)
}

/// The namespaces of a trial: the first end has a public interface, and one behind a NAT of its own that is down; the other end
/// is behind a NAT.
struct World {
    ends: [Namespace; 2],
    _nats: [Namespace; 2],
    internet: Namespace,
}

impl World {
    /// # Errors
    /// A privilege is missing.
    fn new(kinds: [&str; 2]) -> Result<Self, SetupError> {
        let internet = router("internet")?;
        configure(&internet, "addr add 198.51.100.1/32 dev lo");
        let nats = [router("nat a")?, router("nat b")?];
        let ends = [Namespace::new("a")?, Namespace::new("b")?];
        between(&ends[0], ("pub", "192.0.2.9/30"), &internet, ("to-pub", "192.0.2.10/30"));
        configure(&ends[0], "route add default via 192.0.2.10 dev pub");
        between(&ends[0], ("near", ""), &nats[0], ("in", "10.1.0.1/24"));
        between(&ends[1], ("eth", "10.2.0.2/24"), &nats[1], ("in", "10.2.0.1/24"));
        configure(&ends[1], "route add default via 10.2.0.1");
        for (nat, (own, other, name)) in
            nats.iter().zip([("192.0.2.2", "192.0.2.1", "to-a"), ("192.0.2.6", "192.0.2.5", "to-b")])
        {
            between(nat, ("out", &format!("{own}/30")), &internet, (name, &format!("{other}/30")));
            configure(nat, &format!("route add default via {other}"));
        }
        for (nat, kind) in nats.iter().zip(kinds) {
            let how = if kind == "symmetric" { "masquerade fully-random" } else { "masquerade" };
            let rules = format!(
                "add table ip nat\n\
                 add chain ip nat post {{ type nat hook postrouting priority 100 ; }}\n\
                 add rule ip nat post oifname \"out\" {how}\n\
                 add table ip filter\n\
                 add chain ip filter pass {{ type filter hook forward priority 0 ; policy drop ; }}\n\
                 add chain ip filter own {{ type filter hook input priority 0 ; }}\n\
                 add rule ip filter own iifname \"out\" drop\n\
                 add rule ip filter pass iifname \"in\" accept\n\
                 add rule ip filter pass ct state established,related accept"
            );
            let done = nat.run(move || std::process::Command::new("nft").arg(rules).status());
            assert!(done.expect("no panic").is_ok_and(|s| s.success()), "nft for {kind}");
        }
        Ok(Self { ends, _nats: nats, internet })
    }
}

/// Starts coturn at the server's address. Dropping it ends it.
fn coturn(namespace: &Namespace) -> Process {
    let dir = std::env::temp_dir();
    let mut command = Namespace::command("turnserver").expect("found before");
    command.args("-n -L 198.51.100.1 -E 198.51.100.1 -p 3478 -a -u weir:secret -r weir.test".split(' '));
    command.args("--no-tls --no-dtls --no-tcp --no-cli --log-file stdout --simple-log --pidfile".split(' '));
    command.arg(dir.join(format!("weir-turn-{}.pid", std::process::id())));
    let quiet = if std::env::var_os("WEIR_TURN_LOG").is_some() { Stdio::inherit() } else { Stdio::null() };
    command.stdout(quiet).stderr(Stdio::null()).current_dir(dir);
    let server = namespace.start(command).expect("it starts");
    let answers = namespace.run(|| {
        let socket = UdpSocket::bind(SocketAddr::from((SERVER.0, 0))).expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("set");
        (0..300).any(|_| {
            let _ = socket.send_to(&binding_request([7; 12]), SocketAddr::from(SERVER));
            let is_answered = socket.recv_from(&mut [0; 1_500]).is_ok();
            if !is_answered {
                std::thread::sleep(Duration::from_millis(50));
            }
            is_answered
        })
    });
    assert!(answers.expect("no panic"), "coturn answers");
    server
}

/// Notes when media are under way, and when the first has come on the second path.
struct Watch {
    clock: Clock,
    first: Option<Timestamp>,
    packets: Arc<AtomicU64>,
}

impl CallObserver for Watch {
    fn on_packet(&mut self, _: &LivePacket<'_>) {
        self.packets.fetch_add(1, Ordering::Relaxed);
    }
    fn on_turn(&mut self, _: Timestamp, endpoint: &mut Endpoint) {
        let second = endpoint.path(PathId::new(1)).and_then(|p| p.stats());
        if self.first.is_none() && second.is_some_and(|s| s.received_packets > 0) {
            self.first = Some(self.clock.now());
        }
    }
}

fn options(with_relay: bool, relay_only: bool) -> IceOptions {
    let server = SocketAddr::from(SERVER);
    let relay = RelayServer { address: server, user: "weir".into(), password: "secret".into() };
    let stun = if relay_only { Vec::new() } else { vec![server] };
    IceOptions { stun, relays: with_relay.then_some(relay).into_iter().collect(), relay_only }
}

fn party(direction: Direction, paths: &[&str], ice: IceOptions) -> Party {
    let media = vec![PartyMedia::video(vec![VideoCodec::H264], EncoderConfig::live(320, 240), direction)];
    let mut paths = paths.iter().map(|p| p.parse().expect("a path"));
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_kbps(600) };
    let uses = PathUse { scheduler: "round-robin".into(), ..PathUse::default() };
    Party {
        first_path: paths.next(),
        further_paths: paths.collect(),
        ice: Some(ice),
        ..Party::new(CallConfig { paths: uses, limits, ..CallConfig::default() }, media, Trust::default())
    }
}

/// Waits until the sending end of a call has sent and received some packets.
fn await_media(packets: &AtomicU64) {
    let mut pauses = 0;
    while packets.load(Ordering::Relaxed) < 60 {
        assert!(pauses < 12000, "no media within 60 s");
        pauses += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Both ends of a call by files, the first one sending; and when media came on the second path. `packets` counts the first end's.
fn call(
    ends: [&Namespace; 2],
    parties: [Party; 2],
    ms: i64,
    clock: Clock,
    packets: &Arc<AtomicU64>,
) -> ([PartySummary; 2], Option<Timestamp>) {
    let dir = tempfile::tempdir().expect("a folder");
    let prefix = dir.path().join("call").to_str().expect("text").to_owned();
    let [sends, receives] = parties;
    let packets = packets.clone();
    let run = move |party: Party, prefix: String, offers: bool, ms: i64| {
        let (by, stop) = (Signalling::File(prefix.into()), AtomicBool::new(false));
        let joined = if offers {
            party.connect(&by, &stop)
        } else {
            let mut listener = Listener::bind(&by, None, &Trust::default()).expect("a folder");
            party.await_call(&mut listener, &stop, &mut |r| println!("{r:?}"))
        };
        let (registry, duration) = (Registry::builtin(), Some(TimeDelta::from_millis(ms)));
        let packets = if offers { packets } else { Arc::default() };
        let mut watch = Watch { clock, first: None, packets };
        let video = video(party.media[0].direction);
        let done = run_party(joined.expect("agreed"), &party.call, &registry, video, duration, &stop, &mut watch);
        (done.expect("it runs"), watch.first)
    };
    // Threads that begin in a namespace are in it.
    let other = prefix.clone();
    let runs = run.clone();
    let far = ends[1].run(move || std::thread::spawn(move || runs(receives, other, false, ms + 5_000)));
    let near = ends[0].run(move || std::thread::spawn(move || run(sends, prefix, true, ms)));
    let [(a, _), (b, first)] = [near, far].map(|end| end.expect("no panic").join().expect("no panic"));
    ([a, b], first)
}

fn skipped<T>(make: impl FnOnce() -> Result<T, SetupError>) -> Option<T> {
    for program in ["ip", "nft", "turnserver"] {
        if !is_program(program) {
            println!("skipped: no {program} on this machine");
            return None;
        }
    }
    match make() {
        Ok(made) => Some(made),
        Err(e) if e.is_privilege() => {
            println!("skipped: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn two_ends_that_show_relays_alone_call_by_coturn() {
    let _only = ONE_CALL.lock();
    let Some(namespace) = skipped(|| Namespace::new("relays")) else { return };
    for n in 1..=3 {
        configure(&namespace, &format!("addr add 198.51.100.{n}/32 dev lo"));
    }
    let mut server = coturn(&namespace);
    assert!(server.try_wait().expect("asked").is_none(), "coturn runs");
    let sends = party(Direction::Send, &["198.51.100.2"], options(true, true));
    let receives = party(Direction::Receive, &["198.51.100.3"], options(true, true));
    let ([a, b], _) = call([&namespace, &namespace], [sends, receives], 4_000, Clock::starting_now(), &Arc::default());
    let pictures = b.received.as_ref().expect("pictures");
    for end in [&a.end, &b.end] {
        let ice = end.ice.as_ref().expect("agreed");
        println!("{:?} {:?} {:?}", ice.pairs, ice.relays, ice.messages);
        assert!(!ice.pairs.is_empty() && ice.pairs.iter().all(|p| p.is_relayed), "{ice:?}");
        let selected: Vec<_> = ice.pairs.iter().filter(|p| p.is_selected).collect();
        assert_eq!(selected.len(), 1, "{ice:?}");
        for at in [&selected[0].local, &selected[0].remote] {
            assert!(at.starts_with("198.51.100.1:"), "{ice:?}");
        }
        // It was given back at the end.
        assert_eq!(serde_json::to_value(ice.relays[0].state).expect("text"), "returned", "{ice:?}");
    }
    assert!((20..=130).contains(&pictures.intact), "{pictures:?}");
    assert_eq!(b.end.srtp.expect("protected").refused, 0);
}

/// The time from a second interface to media on it in milliseconds, for NATs of these kinds, and whether it is by a relay.
fn second_path(kinds: [&str; 2], with_relay: bool) -> Option<(Option<i64>, bool)> {
    let _only = ONE_CALL.lock();
    let world = skipped(|| World::new(kinds))?;
    let _server = coturn(&world.internet);
    let clock = Clock::starting_now();
    let sends = party(Direction::Send, &["pub", "near"], options(with_relay, false));
    let receives = party(Direction::Receive, &["eth"], options(with_relay, false));
    let path = world.ends[0].path();
    let packets = Arc::new(AtomicU64::new(0));
    let begun = packets.clone();
    let mover = std::thread::spawn(move || {
        await_media(&begun);
        let batch =
            "link set near up\naddr add 10.1.0.2/24 dev near\nroute add default via 10.1.0.1 dev near metric 9\n";
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), batch).expect("written");
        let mut ip = std::process::Command::new("nsenter");
        ip.arg(format!("--net={path}")).args(["ip", "-batch"]).arg(file.path());
        assert!(ip.status().expect("util-linux").success());
        clock.now()
    });
    let ([a, b], first) = call([&world.ends[0], &world.ends[1]], [sends, receives], 9_000, clock, &packets);
    let appeared = mover.join().expect("no panic");
    let ice = a.end.ice.as_ref().expect("agreed");
    // A busy machine shows few of the 270.
    assert!(b.received.as_ref().is_some_and(|p| p.intact > 10), "the first path: {:?}", b.received);
    let by_relay = [&a.end, &b.end].iter().any(|end| {
        end.ice.as_ref().is_some_and(|ice| ice.pairs.iter().any(|p| p.path == 1 && p.is_selected && p.is_relayed))
    });
    if first.is_none() {
        println!("{kinds:?}: {ice:?}");
    }
    Some((first.map(|at| (at - appeared).as_millis()), by_relay))
}

#[test]
fn a_second_path_through_nats_of_the_kernel() {
    let runs = std::env::var("WEIR_NAT_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    println!("the new interface's NAT | the other end's | ms to media on the second path");
    for a in ["port restricted", "symmetric"] {
        for b in ["port restricted", "symmetric"] {
            for _ in 0..runs {
                let Some((time, by_relay)) = second_path([a, b], false) else { return };
                println!("{a} | {b} | {}", time.map_or("none".into(), |t| t.to_string()));
                assert_eq!(time.is_some(), a == b && a == "port restricted", "{a}, {b}: {time:?}");
                assert!(!by_relay, "{a}, {b}");
            }
        }
    }
}

/// The server has no way to the private networks of the ends, as most have none: what it cannot send costs no allocation.
#[test]
fn a_second_path_by_coturn_through_nats_of_the_kernel() {
    println!("the new interface's NAT | the other end's | ms to media on the second path by a relay");
    for kinds in [["port restricted", "symmetric"], ["symmetric", "port restricted"], ["symmetric", "symmetric"]] {
        let Some((time, by_relay)) = second_path(kinds, true) else { return };
        let [a, b] = kinds;
        println!("{a} | {b} | {}", time.map_or("none".into(), |t| t.to_string()));
        assert!(time.is_some_and(|ms| ms < 7_000) && by_relay, "{a}, {b}: {time:?}");
    }
}
