//! Packets per second carried by one core: calls over the loopback device, both ends of each on one thread, with SRTP.
//!
//!     cargo run --release -p weir-live --example throughput -- [SECONDS] [PACKETS_PER_SECOND] [clear|gcm|cm]
//!
//! Measured from outside by the kernel's counters (/proc/net/snmp: UDP datagrams received in this network namespace)
//! and the process's CPU time (/proc/self/stat). Pin it to a core with `taskset -c 1`.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;
use weir_cc::{Limits, Registry, Setup};
use weir_live::clock::Clock;
use weir_live::srtp::{SrtpKey, SrtpSession, Suite};
use weir_live::udp::{UdpConfig, UdpPort};
use weir_media::PerfectCodec;
use weir_session::{CallPlan, Control, Datagram, EndConfig, EndName, Endpoint};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

const PAYLOAD: u64 = 1_100;
/// Packets are sent in bursts at this interval.
const TICK: TimeDelta = TimeDelta::from_millis(1);

fn udp_received() -> u64 {
    let text = fs::read_to_string("/proc/net/snmp").expect("Linux has it");
    let line = text.lines().filter(|l| l.starts_with("Udp:")).nth(1).expect("numbers");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

/// User and system time of this process in seconds.
fn processor_time() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").expect("Linux has it");
    let rest = text.rsplit(')').next().expect("fields");
    let ticks = |i: usize| rest.split_whitespace().nth(i).and_then(|n| n.parse::<f64>().ok()).expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

struct End {
    port: UdpPort,
    endpoint: Endpoint,
    srtp: Option<SrtpSession>,
    peer: std::net::SocketAddr,
    /// The latest time passed to the session.
    last_now: Timestamp,
}

impl End {
    /// Processes received datagrams, and sends those due since the last turn, with the times at which they were due.
    fn turn(&mut self, now: Timestamp, out: &mut Vec<u8>) -> (u64, u64) {
        let (mut sent, mut received) = (0, 0);
        loop {
            let count = self.port.receive().expect("a socket");
            for i in 0..count {
                let Some(d) = self.port.datagram(i) else { continue };
                let (ecn, opened);
                ecn = d.ecn;
                let bytes = match &mut self.srtp {
                    None => d.bytes,
                    Some(s) => {
                        opened = s.open(d.bytes).expect("right protection");
                        &opened[..]
                    }
                };
                self.endpoint.handle_datagram(self.last_now, &Datagram::new(bytes, ecn));
                received += 1;
            }
            if count < 32 {
                break;
            }
        }
        // The receiving end's buffer has to hold the packets sent in a turn.
        while sent < 256 {
            let due = self.endpoint.poll_timeout(self.last_now).filter(|t| *t <= now);
            self.last_now = due.unwrap_or(now).max(self.last_now);
            self.endpoint.handle_timeout(self.last_now);
            while let Some(t) = self.endpoint.poll_transmit(self.last_now, out) {
                out.resize(out.len() + t.payload as usize, 0);
                match &mut self.srtp {
                    None => self.port.send(self.peer, t.ecn, out),
                    Some(s) => self.port.send(self.peer, t.ecn, &s.protect(out).expect("a key")),
                }
                sent += 1;
            }
            if due.is_none() {
                break;
            }
        }
        self.port.flush();
        while self.endpoint.poll_playout(self.last_now).is_some() {}
        (sent, received)
    }
}

fn ends(rate: DataRate, suite: Option<Suite>, clock: &Clock, seed: u64) -> [End; 2] {
    let now = clock.now();
    let limits = Limits { floor: rate, ceiling: rate };
    let setup = Setup { limits, start_rate: rate, now, seed, params: vec![] };
    let registry = Registry::builtin();
    let control = Control::new(&registry, "gcc", &setup).expect("built in");
    let config = EndConfig { seed, ..EndConfig::default() };
    let source = PerfectCodec::frames(TimeDelta::from_millis(10), now).into();
    let mut plan = CallPlan::of_source(control, source, config, EndName { cname: "weir".into(), seed: seed + 1 });
    plan.outgoing[0].options.packetiser.max_payload = DataSize::from_bytes(PAYLOAD);
    let endpoints: [Endpoint; 2] = plan.into_ends(now).expect("one stream").into();
    let udp = UdpConfig { buffer: Some(4 << 20), ..UdpConfig::default() };
    let ports = [0, 1].map(|_| UdpPort::new(UdpSocket::bind("127.0.0.1:0").expect("a port"), udp).expect("a socket"));
    let at = [0, 1].map(|i: usize| ports[1 - i].local_addr().expect("an address"));
    let keys = suite.map(|s| [0, 1].map(|_| SrtpKey::random(s).expect("random numbers")));
    let mut i = 0;
    let mut ports = ports.into_iter();
    endpoints.map(|endpoint| {
        let srtp = keys.as_ref().map(|k| SrtpSession::new(&k[i], &k[1 - i]).expect("keys"));
        let end = End { port: ports.next().expect("two"), endpoint, srtp, peer: at[i], last_now: now };
        i += 1;
        end
    })
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize, default: f64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (seconds, wanted) = (number(1, 5.0), number(2, 250_000.0));
    let suite = match args.get(3).map(String::as_str) {
        Some("clear") => None,
        Some("cm") => Some(Suite::AesCm128HmacSha1_80),
        _ => Some(Suite::AeadAes128Gcm),
    };
    let clock = Clock::of_day();
    // Calls of 25,000 packets per second: TWCC numbers 65,536 packets, which has to be more than a feedback interval's.
    let calls = (wanted / 25_000.0).ceil().max(1.0) as u64;
    let rate = DataRate::from_bps((wanted / calls as f64 * PAYLOAD as f64 * 8.0) as u64);
    let mut all: Vec<End> = (0..calls).flat_map(|i| ends(rate, suite, &clock, 2 * i + 1)).collect();
    let mut out = Vec::with_capacity(2_048);
    let (mut sent, mut received, mut late) = (0u64, 0u64, 0u64);
    let (begin, udp, cpu) = (clock.now(), udp_received(), processor_time());
    let mut tick = begin;
    let until = begin + TimeDelta::from_secs_f64(seconds);
    loop {
        let now = clock.now();
        if now >= until {
            break;
        }
        for end in &mut all {
            let (s, r) = end.turn(now, &mut out);
            (sent, received) = (sent + s, received + r);
        }
        tick += TICK;
        let wait = tick.saturating_since(clock.now());
        if wait > TimeDelta::ZERO {
            std::thread::sleep(Duration::from_nanos(wait.as_nanos() as u64));
        } else {
            tick = clock.now();
            late += 1;
        }
    }
    let time = (clock.now() - begin).as_secs_f64();
    let counted = udp_received() - udp;
    let used = processor_time() - cpu;
    let media: u64 = all.iter().map(|e| e.endpoint.stats().send_counters().packets).sum();
    let came: u64 = all.iter().map(|e| e.endpoint.stats().receive_counters().packets).sum();
    let (calls_sent, calls_received) =
        all.iter().map(|e| e.port.counters()).fold((0, 0), |a, c| (a.0 + c.send_calls, a.1 + c.receive_calls));
    println!("{} {calls} calls, both ends on one thread, {time:.2} s", suite.map_or("in the clear,", |s| s.name()));
    println!("kernel: {counted} UDP datagrams received, {:.0} a second", counted as f64 / time);
    println!("media packets: {media} sent, {came} received, {:.3} % lost", 100.0 * (1.0 - came as f64 / media as f64));
    println!("datagrams: {sent} sent by {calls_sent} system calls, {received} received by {calls_received}");
    println!(
        "processor: {used:.2} s of {time:.2} s; {:.0} media packets a second of one core; {late} ticks late",
        came as f64 / used
    );
}
