//! Two ends of a call and the datagrams between them, which all take 50 ms.

use std::collections::VecDeque;
use weir_cc::{Limits, Registry, Setup};
use weir_media::PerfectCodec;
use weir_session::{CallPlan, Control, Datagram, EndConfig, EndName, Endpoint};
use weir_units::{DataRate, Ecn, PathId, TimeDelta, Timestamp};

const DELAY: TimeDelta = TimeDelta::from_millis(50);

struct UnderWay {
    at: Timestamp,
    path: PathId,
    bytes: Vec<u8>,
    payload: u32,
}

/// Two ends and the datagrams between them. Buffers are reused, so that nothing is allocated in steady state.
pub(crate) struct Call {
    ends: [Endpoint; 2],
    under_way: [VecDeque<UnderWay>; 2],
    spare: Vec<Vec<u8>>,
    now: Timestamp,
}

impl Call {
    /// A call of 2 Mbit/s over this many paths of equal rates.
    pub(crate) fn new(controller: &str, paths: usize, source: PerfectCodec) -> Self {
        let registry = Registry::builtin();
        // Floor and ceiling are equal, so that every controller sends the same packets.
        let rate = DataRate::from_bps(2_000_000 / paths as u64);
        let limits = Limits { floor: rate, ceiling: rate };
        let now = Timestamp::ZERO;
        let setup = Setup { limits, start_rate: rate, now, seed: 1, params: vec![] };
        let control = || Control::new(&registry, controller, &setup).expect("built in");
        let receiver = EndName { cname: "weir".into(), seed: 2 };
        let mut plan = CallPlan::of_source(control(), source.into(), EndConfig::default(), receiver);
        (1..paths).for_each(|_| plan.add_path(control()));
        let ends = plan.into_ends(now).expect("one source").into();
        Self { ends, under_way: [VecDeque::new(), VecDeque::new()], spare: Vec::new(), now }
    }

    /// Runs until `count` more RTP packets have been sent.
    pub(crate) fn send(&mut self, count: u64) {
        let upto = self.ends[0].stats().send_counters().packets + count;
        while self.ends[0].stats().send_counters().packets < upto {
            for (from, end) in self.ends.iter_mut().enumerate() {
                let mut bytes = self.spare.pop().unwrap_or_default();
                while let Some(t) = end.poll_transmit(self.now, &mut bytes) {
                    let at = self.now + DELAY;
                    self.under_way[from].push_back(UnderWay { at, path: t.path, bytes, payload: t.payload });
                    bytes = self.spare.pop().unwrap_or_default();
                }
                self.spare.push(bytes);
            }
            let timers = self.ends.iter_mut().filter_map(|e| e.poll_timeout(self.now)).min();
            let arrivals = self.under_way.iter().filter_map(|q| q.front().map(|p| p.at)).min();
            self.now = timers.into_iter().chain(arrivals).min().unwrap_or(self.now).max(self.now);
            for (from, queue) in self.under_way.iter_mut().enumerate() {
                while queue.front().is_some_and(|p| p.at <= self.now)
                    && let Some(p) = queue.pop_front()
                {
                    let datagram =
                        Datagram { path: p.path, payload: p.payload, ..Datagram::new(&p.bytes, Ecn::NotEct) };
                    self.ends[1 - from].handle_datagram(self.now, &datagram);
                    self.spare.push(p.bytes);
                }
            }
            self.ends.iter_mut().for_each(|e| e.handle_timeout(self.now));
        }
    }

    /// RTP packets sent on each path; on the only one of a call over one path.
    pub(crate) fn sent(&self) -> Vec<u64> {
        let by_path =
            (0..8).map_while(|n| self.ends[0].path(PathId::new(n)).and_then(|p| p.stats())).map(|s| s.sent_packets);
        let by_path: Vec<_> = by_path.collect();
        if by_path.is_empty() { vec![self.ends[0].stats().send_counters().packets] } else { by_path }
    }
}
