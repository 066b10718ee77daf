//! Cost of a data packet: two connections back to back with almost no network between them, including acknowledgements,
//! Ack Vectors, features and delivery to the application.
//!
//! Reported per data packet, both ends together. Only this thread's CPU time is counted, so that other programs on the
//! machine have little influence.

use core::hint::black_box;
use core::time::Duration;
use cpu_time::ThreadTime;
use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use weir_dccp::connection::{Ccids, Config, Connection, Datagram};
use weir_dccp::queue::{Message, QueueConfig};
use weir_units::{DataSize, Ecn, TimeDelta, Timestamp};

/// A client and its server, whose datagrams arrive after a short delay.
struct Ends {
    now: Timestamp,
    ends: [Connection; 2],
    wire: Vec<u8>,
    received: Vec<u8>,
    delivered: u64,
}

impl Ends {
    fn new(ccid: u8, config: &Config) -> Self {
        let now = Timestamp::from_secs(1);
        let config = Config {
            local_port: 1,
            remote_port: 2,
            ccids: Ccids::both(ccid),
            queue: QueueConfig { capacity: 64, ..QueueConfig::default() },
            ..config.clone()
        };
        let server = Config { local_port: 2, remote_port: 1, ..config.clone() };
        let mut client = Connection::connect(config, now).expect("a valid configuration");
        let mut wire = Vec::new();
        client.poll_transmit(now, &mut wire).expect("a Request");
        let request = Datagram { bytes: &wire, payload: 0, ecn: Ecn::NotEct };
        let server = Connection::accept(server, now, &request, None).expect("a Request");
        let mut all = Self { now, ends: [client, server], wire, received: Vec::new(), delivered: 0 };
        all.settle();
        assert!(all.ends.iter().all(|e| e.ccids() == Some((ccid, ccid))), "the ends agree");
        all
    }
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for side in 0..2 {
                while let Some(t) = self.ends[side].poll_transmit(self.now, &mut self.wire) {
                    let datagram = Datagram { bytes: &self.wire, payload: t.payload, ecn: t.ecn };
                    // Packets in flight take a short time.
                    self.now += TimeDelta::from_micros(20);
                    self.ends[1 - side].handle_datagram(self.now, &datagram);
                    moved = true;
                }
                while self.ends[side].receive(&mut self.received).is_some() {
                    self.delivered += 1;
                }
            }
            if !moved {
                return;
            }
        }
    }
    /// Advances time; each end in `senders` sends a datagram of the first `bytes` bytes.
    fn step(&mut self, senders: &[usize], bytes: &[u8]) {
        self.now += TimeDelta::from_micros(100);
        for end in &mut self.ends {
            if end.poll_timeout(self.now).is_some_and(|t| t <= self.now) {
                end.handle_timeout(self.now);
            }
        }
        for &side in senders {
            // If congestion control is slower than this, a full queue is the steady state of the bench.
            let _ = self.ends[side].send(self.now, &Message { bytes, ..Message::default() });
        }
        self.settle();
    }
}

/// Time of this thread alone, in nanoseconds.
struct OwnTime;

struct Nanoseconds;

impl Measurement for OwnTime {
    type Intermediate = ThreadTime;
    type Value = Duration;
    fn start(&self) -> ThreadTime {
        ThreadTime::now()
    }
    fn end(&self, start: ThreadTime) -> Duration {
        start.elapsed()
    }
    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }
    fn zero(&self) -> Duration {
        Duration::ZERO
    }
    fn to_f64(&self, d: &Duration) -> f64 {
        d.as_nanos() as f64
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        &Nanoseconds
    }
}

impl ValueFormatter for Nanoseconds {
    fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
        "ns"
    }
    fn scale_throughputs(&self, _: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        if let Throughput::Elements(n) = *throughput {
            values.iter_mut().for_each(|v| *v /= n as f64);
        }
        "ns/packet"
    }
    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        "ns"
    }
}

fn connection(criterion: &mut Criterion<OwnTime>) {
    let mut group = criterion.benchmark_group("connection");
    let plain = Config::default();
    let checked = Config { data_checksum: true, timestamps: true, ..Config::default() };
    let size = DataSize::from_bytes(1_200).as_bytes() as usize;
    let cases = [
        ("ccid 2, one way", 2, &[0][..], &plain),
        ("ccid 2, both ways", 2, &[0, 1], &plain),
        ("ccid 2, one way, data checksums and timestamps", 2, &[0], &checked),
        ("ccid 3, one way", 3, &[0], &plain),
    ];
    for (name, ccid, senders, config) in cases {
        if config.registry.get(ccid).is_none() {
            continue;
        }
        let mut ends = Ends::new(ccid, config);
        let bytes = vec![7; size];
        (0..20_000).for_each(|_| ends.step(senders, &bytes));
        assert!(ends.delivered >= 19_000, "{name}: {} delivered", ends.delivered);
        group.throughput(Throughput::Elements(senders.len() as u64));
        group.bench_function(name, |b| b.iter(|| ends.step(senders, black_box(&bytes))));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(OwnTime);
    targets = connection
}
criterion_main!(benches);
