//! Whole connections over CCIDs 2 and 5: random loss, marks, a narrow return path, data in both directions.

use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use weir_dccp::connection::{Ccids, Config, Connection, Datagram, State, Transmit};
use weir_dccp::queue::{Message, QueueConfig};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

const SIZE: u32 = 1_000;
/// IPv4 and UDP.
const OVERHEAD: u64 = 28;

/// One direction: a drop-tail queue with a rate, then a delay.
struct Link {
    rate: DataRate,
    delay: TimeDelta,
    queue: TimeDelta,
    loss: f64,
    marks: f64,
    free_at: Timestamp,
    dropped: u64,
    marked: u64,
}

impl Link {
    fn new(kbps: u64, delay_ms: i64, queue_ms: i64) -> Self {
        Self {
            rate: DataRate::from_kbps(kbps),
            delay: TimeDelta::from_millis(delay_ms),
            queue: TimeDelta::from_millis(queue_ms),
            loss: 0.0,
            marks: 0.0,
            free_at: Timestamp::ZERO,
            dropped: 0,
            marked: 0,
        }
    }
}

struct End {
    connection: Connection,
    /// Whether its application has always something to send.
    sends: bool,
    received: u64,
}

/// End, bytes, payload, ECN field.
type Arrival = (usize, Vec<u8>, u32, Ecn);

struct Pair {
    now: Timestamp,
    ends: Vec<End>,
    /// From the client, and from the server.
    links: [Link; 2],
    config: Config,
    on_the_way: BTreeMap<(Timestamp, u64), Arrival>,
    count: u64,
    random: rand_pcg::Pcg64Mcg,
}

impl Pair {
    fn new(ccid: u8, forward: Link, back: Link) -> Self {
        let config = Config {
            local_port: 1,
            remote_port: 2,
            ccids: Ccids::both(ccid),
            queue: QueueConfig { capacity: 20, ..QueueConfig::default() },
            receive_capacity: 100_000,
            ..Config::default()
        };
        let now = Timestamp::from_secs(10);
        let client = Connection::connect(config.clone(), now).expect("a valid configuration");
        Self {
            now,
            ends: vec![End { connection: client, sends: true, received: 0 }],
            links: [forward, back],
            config: Config { local_port: 2, remote_port: 1, seed: 2, ..config },
            on_the_way: BTreeMap::new(),
            count: 0,
            random: rand_pcg::Pcg64Mcg::seed_from_u64(3),
        }
    }

    fn put(&mut self, from: usize, sent: &Transmit, bytes: Vec<u8>) {
        let link = &mut self.links[from];
        let waiting = link.free_at.saturating_since(self.now);
        if waiting > link.queue || self.random.random_bool(link.loss) {
            link.dropped += 1;
            return;
        }
        let size = sent.size + DataSize::from_bytes(OVERHEAD);
        link.free_at = link.free_at.max(self.now) + link.rate.time_for(size).expect("a rate");
        let marked = sent.ecn.is_capable() && self.random.random_bool(link.marks);
        link.marked += u64::from(marked);
        let ecn = if marked { Ecn::Ce } else { sent.ecn };
        self.count += 1;
        self.on_the_way.insert((link.free_at + link.delay, self.count), (1 - from, bytes, sent.payload, ecn));
    }

    fn flush(&mut self) {
        for i in 0..self.ends.len() {
            let mut out = Vec::new();
            loop {
                let end = &mut self.ends[i];
                let bytes = [i as u8; 4];
                while end.sends
                    && end.connection.state() <= State::Open
                    && end.connection.queue().len() < 20
                    && end
                        .connection
                        .send(self.now, &Message { bytes: &bytes, payload: SIZE - 4, ..Message::default() })
                        .is_ok()
                {}
                while end.connection.receive(&mut out).is_some() {
                    end.received += 1;
                }
                let Some(sent) = end.connection.poll_transmit(self.now, &mut out) else { break };
                self.put(i, &sent, out.clone());
            }
        }
    }

    fn deliver(&mut self, to: usize, bytes: &[u8], payload: u32, ecn: Ecn) {
        let datagram = Datagram { bytes, payload, ecn };
        if let Some(end) = self.ends.get_mut(to) {
            end.connection.handle_datagram(self.now, &datagram);
        } else {
            let server = Connection::accept(self.config.clone(), self.now, &datagram, None).expect("a Request");
            self.ends.push(End { connection: server, sends: false, received: 0 });
        }
    }

    /// Runs for a while; returns the datagrams per second received by each end.
    fn run(&mut self, seconds: i64) -> Vec<f64> {
        let before: Vec<_> = self.ends.iter().map(|e| e.received).collect();
        let end = self.now + TimeDelta::from_secs(seconds);
        loop {
            self.flush();
            let now = self.now;
            let timer = self.ends.iter_mut().filter_map(|e| e.connection.poll_timeout(now)).min();
            let arrival = self.on_the_way.keys().next().map(|k| k.0);
            let Some(at) = timer.into_iter().chain(arrival).min().filter(|&t| t <= end) else { break };
            self.now = at.max(now);
            if arrival.is_some_and(|t| t <= self.now) {
                let (_, (to, bytes, payload, ecn)) = self.on_the_way.pop_first().expect("an arrival");
                self.deliver(to, &bytes, payload, ecn);
            } else {
                self.ends.iter_mut().for_each(|e| e.connection.handle_timeout(at));
            }
        }
        self.now = end;
        let rate = |(i, e): (usize, &End)| (e.received - before.get(i).unwrap_or(&0)) as f64 / seconds as f64;
        self.ends.iter().enumerate().map(rate).collect()
    }

    fn metric(&self, end: usize, name: &str) -> f64 {
        let mut found = f64::NAN;
        self.ends[end].connection.metrics(&mut |n, v| found = if n == name { v } else { found });
        found
    }
}

#[test]
fn one_percent_of_loss_or_marks() {
    for ccid in [2, 5] {
        for (loss, marks) in [(0.01, 0.0), (0.0, 0.01)] {
            let mut forward = Link::new(100_000, 25, 100);
            (forward.loss, forward.marks) = (loss, marks);
            let mut p = Pair::new(ccid, forward, Link::new(100_000, 25, 100));
            p.run(5);
            let rate = p.run(120)[1];
            // sqrt(3 / 2p) packets in 50 ms are 245 a second; at this window CUBIC is in its Reno-friendly region.
            let what = format!("CCID {ccid}, loss {loss}, marks {marks}");
            assert!((190.0..300.0).contains(&rate), "{what}: {rate}");
            let c = p.ends[0].connection.counters();
            assert!(c.data_lost.abs_diff(p.links[0].dropped) <= 20, "{what}: {c:?}");
            assert!(c.data_marked.abs_diff(p.links[0].marked) <= 20, "{what}: {c:?}");
            assert_eq!((c.sequence_invalid, c.unexpected, c.bad_options, c.data_dropped), (0, 0, 0, 0), "{what}");
            assert_eq!(p.ends[0].connection.ccids(), Some((ccid, ccid)));
        }
    }
}

#[test]
fn a_narrow_way_back_raises_ack_ratio() {
    for ccid in [2, 5] {
        let run = |back_kbps| {
            let mut p = Pair::new(ccid, Link::new(10_000, 25, 50), Link::new(back_kbps, 25, 50));
            p.run(20);
            let mut mean = 0.0;
            let rates = (0..60).map(|_| {
                let rate = p.run(1)[1];
                mean += p.metric(0, "ack_ratio") / 60.0;
                rate
            });
            (rates.sum::<f64>() / 60.0, mean, p.links[1].dropped)
        };
        // 1,044 bytes each: at most 1,197 per second, for which Ack Ratio 2 needs about 300 kbit/s.
        let (rate, ratio, _) = run(1_000);
        assert!((1_130.0..=1_198.0).contains(&rate) && (ratio - 2.0).abs() < 0.01, "CCID {ccid}: {rate} {ratio}");
        let (rate, ratio, dropped) = run(64);
        assert!((800.0..=1_198.0).contains(&rate), "CCID {ccid}: {rate}");
        assert!((6.0..=25.0).contains(&ratio) && dropped > 0, "CCID {ccid}: {ratio}");
    }
}

#[test]
fn data_both_ways() {
    for ccid in [2, 5] {
        let mut p = Pair::new(ccid, Link::new(10_000, 25, 50), Link::new(10_000, 25, 50));
        p.run(1);
        p.ends[1].sends = true;
        p.run(20);
        let rates = p.run(60);
        let ratios = [p.metric(0, "ack_ratio"), p.metric(1, "ack_ratio")];
        assert!(rates.iter().all(|r| (1_000.0..=1_198.0).contains(r)), "CCID {ccid}: {rates:?}");
        assert!(ratios.iter().all(|r| (2.0..=8.0).contains(r)), "CCID {ccid}: {ratios:?}");
    }
}

#[test]
fn a_pause_and_a_broken_path() {
    let mut p = Pair::new(2, Link::new(10_000, 25, 50), Link::new(10_000, 25, 50));
    p.run(10);
    // No packet passes for three seconds: timeouts, then slow start.
    (p.links[0].loss, p.links[1].loss) = (1.0, 1.0);
    // (except those in flight: two round trips of 1,197 packets per second)
    assert!(p.run(3)[1] < 50.0);
    assert!(p.metric(0, "timeouts") >= 2.0);
    (p.links[0].loss, p.links[1].loss) = (0.0, 0.0);
    p.run(10);
    assert!(p.run(10)[1] > 1_000.0);
    // And nothing is sent.
    p.ends[0].sends = false;
    p.run(30);
    assert_eq!(p.metric(0, "pipe"), 0.0);
    p.ends[0].sends = true;
    p.run(5);
    assert!(p.run(10)[1] > 1_000.0);
    assert_eq!(p.ends[0].connection.state(), State::Open);
}
