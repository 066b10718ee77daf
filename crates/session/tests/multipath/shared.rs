//! Several calls over links that they may share.

use super::common::call_plan;
use std::collections::{BTreeMap, VecDeque};
use weir_cc::{Limits, Registry, Setup};
use weir_media::PerfectCodec;
use weir_session::multipath::Coupling;
use weir_session::{Control, Datagram, Endpoint, Transmit};
use weir_units::{DataRate, DataSize, Ecn, PathId, TimeDelta, Timestamp};

/// Delay of a full queue, above which packets are dropped.
const MOST_DELAY: TimeDelta = TimeDelta::from_millis(300);

/// A link by its rate in kbit/s.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    rate: DataRate,
    free_at: Timestamp,
}

/// One path of a call: its link, and its own one-way delay in milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub link: usize,
    pub delay: i64,
}

struct Call {
    a: Endpoint,
    b: Endpoint,
    paths: Vec<Path>,
    /// RTP bytes received in each second, and in all on each path.
    received: Vec<u64>,
    on_path: Vec<u64>,
}

/// Where a datagram goes: the call, whether to its receiver, and the path.
type Direction = (usize, bool, usize);

pub(crate) struct Net {
    pub now: Timestamp,
    links: Vec<Link>,
    calls: Vec<Call>,
    /// Datagrams by their time of arrival.
    inside: BTreeMap<Timestamp, VecDeque<(Direction, Vec<u8>, u32)>>,
    /// The call and path that lose everything.
    pub dead: Option<(usize, usize)>,
    /// Packets of the first call: when each was sent or dropped, its path, and its one-way delay unless it was dropped.
    pub delays: Vec<(Timestamp, usize, Option<TimeDelta>)>,
}

impl Net {
    pub(crate) fn new(links: &[u64]) -> Self {
        let link = |kbps| Link { rate: DataRate::from_kbps(kbps), free_at: Timestamp::ZERO };
        let links = links.iter().map(|kbps| link(*kbps)).collect();
        Self { now: Timestamp::ZERO, links, calls: vec![], inside: BTreeMap::new(), dead: None, delays: vec![] }
    }

    /// Adds a call under this controller, with 300 kbit/s at the start and `most` kbit/s at most on each path.
    pub(crate) fn add(&mut self, controller: &str, most: u64, paths: &[Path], coupling: Coupling) {
        self.add_with_priorities(controller, most, paths, coupling, &[]);
    }

    /// The same, with priorities of its paths; 1 for those left out.
    pub(crate) fn add_with_priorities(
        &mut self,
        controller: &str,
        most: u64,
        paths: &[Path],
        coupling: Coupling,
        priorities: &[f64],
    ) {
        let n = self.calls.len() as i64;
        let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_kbps(most) };
        let start = DataRate::from_kbps(300);
        let first = Timestamp::from_millis(n * 13);
        let source = PerfectCodec::frames(TimeDelta::from_millis(33), first).into();
        let mut plan = call_plan(controller, limits, start, source);
        plan.sender.seed = 7 + n as u64;
        if paths.len() > 1 {
            let setup = Setup { limits, start_rate: start, now: Timestamp::ZERO, seed: 2, params: vec![] };
            for _ in 1..paths.len() {
                plan.add_path(Control::new(&Registry::builtin(), controller, &setup).expect("built in"));
            }
            plan.group.coupling = coupling;
            plan.group.priorities.iter_mut().zip(priorities).for_each(|(p, given)| *p = *given);
        }
        let (a, b) = plan.into_ends(Timestamp::ZERO).expect("one source");
        self.calls.push(Call { a, b, paths: paths.to_vec(), received: vec![], on_path: vec![0; paths.len()] });
    }

    pub(crate) fn sender(&self, call: usize) -> &Endpoint {
        &self.calls[call].a
    }

    pub(crate) fn run_until(&mut self, end: Timestamp) {
        let mut steps = 0u32;
        loop {
            self.drain();
            let mut at = self.inside.first_key_value().map_or(end, |p| end.min(*p.0));
            for c in &mut self.calls {
                at = [c.a.poll_timeout(self.now), c.b.poll_timeout(self.now)]
                    .into_iter()
                    .flatten()
                    .fold(at, Timestamp::min);
            }
            if at >= end {
                self.now = end;
                return;
            }
            steps += 1;
            assert!(steps < 5_000_000, "time stands still at {}", self.now);
            self.now = self.now.max(at);
            while let Some(entry) = self.inside.first_entry().filter(|e| *e.key() <= self.now) {
                for (direction, bytes, payload) in entry.remove() {
                    self.deliver(direction, &bytes, payload);
                }
            }
            for c in &mut self.calls {
                c.a.handle_timeout(self.now);
                c.b.handle_timeout(self.now);
            }
        }
    }

    fn deliver(&mut self, (call, there, path): Direction, bytes: &[u8], payload: u32) {
        let call = &mut self.calls[call];
        let datagram = Datagram { path: PathId::new(path as u8), payload, ..Datagram::new(bytes, Ecn::NotEct) };
        if !there {
            call.a.handle_datagram(self.now, &datagram);
            return;
        }
        if weir_wire::kind_of(bytes) == Some(weir_wire::DatagramKind::Rtp) {
            let second = (self.now - Timestamp::ZERO).as_secs_f64() as usize;
            call.received.resize(call.received.len().max(second + 1), 0);
            let size = bytes.len() as u64 + u64::from(payload);
            call.received[second] += size;
            call.on_path[path] += size;
        }
        call.b.handle_datagram(self.now, &datagram);
    }

    fn drain(&mut self) {
        let mut out = Vec::new();
        for n in 0..self.calls.len() {
            for there in [true, false] {
                loop {
                    let c = &mut self.calls[n];
                    let end = if there { &mut c.a } else { &mut c.b };
                    let Some(t) = end.poll_transmit(self.now, &mut out) else { break };
                    let direction = (n, there, t.path.index());
                    self.push(direction, &out, &t);
                }
            }
        }
    }

    fn push(&mut self, direction: Direction, bytes: &[u8], t: &Transmit) {
        let path = self.calls[direction.0].paths[direction.2];
        if self.dead == Some((direction.0, direction.2)) {
            return;
        }
        let mut at = self.now;
        if direction.1 {
            let link = &mut self.links[path.link];
            if link.free_at.saturating_since(self.now) > MOST_DELAY {
                if direction.0 == 0 {
                    self.delays.push((self.now, direction.2, None));
                }
                return;
            }
            link.free_at =
                link.free_at.max(self.now) + link.rate.time_for(t.size + DataSize::from_bytes(28)).expect("above zero");
            at = link.free_at;
        }
        let at = at + TimeDelta::from_millis(path.delay);
        if direction.0 == 0 && direction.1 && t.is_rtp() {
            self.delays.push((self.now, direction.2, Some(at - self.now)));
        }
        self.inside.entry(at).or_default().push_back((direction, bytes.to_vec(), t.payload));
    }

    /// RTP bytes that a call has received on a path.
    pub(crate) fn received_on(&self, call: usize, path: usize) -> u64 {
        self.calls[call].on_path[path]
    }

    /// Mean rate of RTP that a call received between two seconds.
    pub(crate) fn kbps(&self, call: usize, from: usize, to: usize) -> f64 {
        self.calls[call].received[from..to].iter().sum::<u64>() as f64 * 8e-3 / (to - from) as f64
    }
}
