//! Time per media packet through both ends of a call: packetised, paced, written, parsed, reported and fed to the
//! controller.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::collections::VecDeque;
use std::hint::black_box;
use weir_cc::{Limits, Registry, Setup};
use weir_media::PerfectCodec;
use weir_session::{CallPlan, Control, Datagram, EndName, Endpoint, EndpointConfig};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// Packets sent per measured step: one second of 2 Mbit/s in packets of 1,000 bytes.
const PACKETS: u64 = 250;
const DELAY: TimeDelta = TimeDelta::from_millis(50);

/// Two ends and the datagrams between them. Buffers are reused, so that nothing is allocated in steady state.
struct Call {
    ends: [Endpoint; 2],
    under_way: [VecDeque<(Timestamp, Vec<u8>, u32)>; 2],
    spare: Vec<Vec<u8>>,
    now: Timestamp,
}

impl Call {
    fn new(controller: &str) -> Self {
        let registry = Registry::builtin();
        // Floor and ceiling are equal, so that every controller sends the same packets.
        let rate = DataRate::from_mbps(2);
        let limits = Limits { floor: rate, ceiling: rate };
        let now = Timestamp::ZERO;
        let setup = Setup { limits, start_rate: rate, now, seed: 1, params: vec![] };
        let control = Control::new(&registry, controller, &setup).expect("built in");
        let source = PerfectCodec::packets(DataSize::from_bytes(1_000), now).into();
        let receiver = EndName { cname: "weir".into(), seed: 2 };
        let plan = CallPlan::new(control, source, EndpointConfig::default(), receiver);
        let ends = plan.into_ends(now).into();
        Self { ends, under_way: [VecDeque::new(), VecDeque::new()], spare: Vec::new(), now }
    }

    /// Runs until `count` more RTP packets have been sent.
    fn send(&mut self, count: u64) {
        let upto = self.ends[0].send_counters().packets + count;
        while self.ends[0].send_counters().packets < upto {
            for (from, end) in self.ends.iter_mut().enumerate() {
                let mut bytes = self.spare.pop().unwrap_or_default();
                while let Some(t) = end.poll_transmit(self.now, &mut bytes) {
                    self.under_way[from].push_back((self.now + DELAY, bytes, t.payload));
                    bytes = self.spare.pop().unwrap_or_default();
                }
                self.spare.push(bytes);
            }
            let timers = self.ends.iter_mut().filter_map(|e| e.poll_timeout(self.now)).min();
            let arrivals = self.under_way.iter().filter_map(|q| q.front().map(|p| p.0)).min();
            self.now = timers.into_iter().chain(arrivals).min().unwrap_or(self.now).max(self.now);
            for (from, queue) in self.under_way.iter_mut().enumerate() {
                while let Some((_, bytes, payload)) = queue.pop_front_if(|p| p.0 <= self.now) {
                    let datagram = Datagram { payload, ..Datagram::new(&bytes, Ecn::NotEct) };
                    self.ends[1 - from].handle_datagram(self.now, &datagram);
                    self.spare.push(bytes);
                }
            }
            self.ends.iter_mut().for_each(|e| e.handle_timeout(self.now));
        }
    }
}

fn calls(c: &mut Criterion) {
    let mut group = c.benchmark_group("call");
    group.throughput(Throughput::Elements(PACKETS));
    for spec in Registry::builtin().specs() {
        let mut call = Call::new(&spec.name);
        call.send(2_500);
        group.bench_function(&spec.name, |b| b.iter(|| black_box(&mut call).send(PACKETS)));
    }
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
