//! Two ends with two links in each direction.

use super::common::call_plan;
use std::collections::{BTreeSet, VecDeque};
use weir_cc::{Limits, Registry, Setup};
use weir_media::PerfectCodec;
use weir_session::multipath::AnyScheduler;
use weir_session::{CallPlan, Control, Datagram, Endpoint, Kind, Transmit};
use weir_units::{DataRate, DataSize, Ecn, PathId, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;
use weir_wire::rtp::mprtp::SubflowNumber;

/// A call of two paths, each with a controller of this name; fixed rates are half of `kbps`.
pub(crate) fn plan_of(controller: &str, scheduler: &str, kbps: u64) -> CallPlan {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_kbps(kbps) };
    let start = DataRate::from_kbps(if controller == "fixed" { kbps / 2 } else { 300 });
    let source = PerfectCodec::frames(TimeDelta::from_millis(33), Timestamp::ZERO).into();
    let mut plan = call_plan(controller, limits, start, source);
    let setup = Setup { limits, start_rate: start, now: Timestamp::ZERO, seed: 2, params: vec![] };
    let second = Control::new(&Registry::builtin(), controller, &setup).expect("built in");
    plan.add_path(second);
    plan.group.scheduler = AnyScheduler::named(scheduler).expect("in the list");
    plan
}

/// Leaves the first path, so that others can be added in mid-call.
pub(crate) fn only_first_path(plan: &mut CallPlan) {
    plan.sending.truncate(1);
    plan.receiving.truncate(1);
    (plan.sender.multipath, plan.receiver.multipath) = (true, true);
}

/// The subflow number of an RTP packet.
pub(crate) fn subflow_of(bytes: &[u8]) -> Option<SubflowNumber> {
    PacketView::parse_header(bytes).ok()?.extension(6).and_then(SubflowNumber::from_data)
}
/// Whether a datagram is a media packet.
pub(crate) fn media_of(t: &Transmit) -> bool {
    matches!(t.rtp, Some((_, Kind::Media)))
}

/// One direction of one path.
struct Link {
    rate: DataRate,
    delay: TimeDelta,
    free_at: Timestamp,
    count: u64,
    inside: VecDeque<(Timestamp, Vec<u8>, u32)>,
}

impl Link {
    fn push(&mut self, now: Timestamp, bytes: &[u8], t: &Transmit, is_lost: bool) {
        if is_lost || self.free_at.saturating_since(now) > TimeDelta::from_millis(300) {
            return;
        }
        let size = t.size + DataSize::from_bytes(28);
        self.free_at = self.free_at.max(now) + self.rate.time_for(size).expect("above zero");
        self.inside.push_back((self.free_at + self.delay, bytes.to_vec(), t.payload));
    }
}

pub(crate) struct Paths {
    pub a: Endpoint,
    pub b: Endpoint,
    pub now: Timestamp,
    /// Every datagram sent: by a and by b.
    pub sent: [Vec<(Timestamp, Vec<u8>, Transmit)>; 2],
    /// The path that loses everything, in both directions.
    pub dead: Option<usize>,
    /// Every n-th RTP packet is lost on the path.
    pub lose_every: [Option<u64>; 2],
    links: [[Link; 2]; 2],
    /// Times and sizes of RTP packets received, and their sequence numbers.
    received: Vec<(Timestamp, u64)>,
    numbers: BTreeSet<u16>,
}

impl Paths {
    /// Links of these rates in kbit/s and one-way delays in milliseconds; the way back has 10 Mbit/s.
    pub(crate) fn new(plan: CallPlan, links: [(u64, i64); 2]) -> Self {
        Self::of_ends(plan.into_ends(Timestamp::ZERO).expect("one source"), links)
    }

    pub(crate) fn of_ends((a, b): (Endpoint, Endpoint), links: [(u64, i64); 2]) -> Self {
        let link = |kbps, ms| Link {
            rate: DataRate::from_kbps(kbps),
            delay: TimeDelta::from_millis(ms),
            free_at: Timestamp::ZERO,
            count: 0,
            inside: VecDeque::new(),
        };
        let links = [links.map(|(kbps, ms)| link(kbps, ms)), links.map(|(_, ms)| link(10_000, ms))];
        Self {
            a,
            b,
            now: Timestamp::ZERO,
            sent: [vec![], vec![]],
            dead: None,
            lose_every: [None; 2],
            links,
            received: vec![],
            numbers: BTreeSet::new(),
        }
    }

    /// Changes the one-way delay of a path towards the receiver.
    pub(crate) fn set_delay(&mut self, path: usize, ms: i64) {
        self.links[0][path].delay = TimeDelta::from_millis(ms);
    }

    /// Changes the rate of a path towards the receiver, in kbit/s.
    pub(crate) fn set_rate(&mut self, path: usize, kbps: u64) {
        self.links[0][path].rate = DataRate::from_kbps(kbps);
    }

    pub(crate) fn run_until(&mut self, end: Timestamp) {
        let mut steps = 0u32;
        loop {
            self.drain();
            let fronts = self.links.iter().flatten().filter_map(|l| l.inside.front().map(|p| p.0));
            let timers = [self.a.poll_timeout(self.now), self.b.poll_timeout(self.now)];
            let at = fronts.chain(timers.into_iter().flatten()).fold(end, Timestamp::min);
            if at >= end {
                self.now = end;
                return;
            }
            steps += 1;
            assert!(steps < 2_000_000, "time stands still at {}", self.now);
            self.now = self.now.max(at);
            for path in 0..2 {
                let id = PathId::new(path as u8);
                if self.links[0][path].inside.front().is_some_and(|p| p.0 <= self.now)
                    && let Some((_, bytes, payload)) = self.links[0][path].inside.pop_front()
                {
                    if weir_wire::kind_of(&bytes) == Some(weir_wire::DatagramKind::Rtp) {
                        let view = PacketView::parse_header(&bytes).expect("RTP");
                        self.received.push((self.now, bytes.len() as u64 + u64::from(payload)));
                        self.numbers.insert(view.sequence());
                    }
                    let datagram = Datagram { path: id, payload, ..Datagram::new(&bytes, Ecn::NotEct) };
                    self.b.handle_datagram(self.now, &datagram);
                }
                if self.links[1][path].inside.front().is_some_and(|p| p.0 <= self.now)
                    && let Some((_, bytes, payload)) = self.links[1][path].inside.pop_front()
                {
                    let datagram = Datagram { path: id, payload, ..Datagram::new(&bytes, Ecn::NotEct) };
                    self.a.handle_datagram(self.now, &datagram);
                }
            }
            self.a.handle_timeout(self.now);
            self.b.handle_timeout(self.now);
        }
    }

    fn drain(&mut self) {
        let mut out = Vec::new();
        let ends = [&mut self.a, &mut self.b];
        for ((end, links), sent) in ends.into_iter().zip(&mut self.links).zip(&mut self.sent) {
            while let Some(t) = end.poll_transmit(self.now, &mut out) {
                assert_eq!(t.size.as_bytes(), out.len() as u64 + u64::from(t.payload));
                sent.push((self.now, out.clone(), t));
                let path = t.path.index();
                links[path].count += u64::from(t.is_rtp());
                let every = self.lose_every[path].filter(|_| t.is_rtp());
                let is_lost = self.dead == Some(path) || every.is_some_and(|n| links[path].count.is_multiple_of(n));
                links[path].push(self.now, &out, &t, is_lost);
            }
        }
    }

    /// Mean rate of RTP received between two times in seconds.
    pub(crate) fn received_kbps(&self, from: i64, to: i64) -> f64 {
        let span = Timestamp::from_secs(from)..Timestamp::from_secs(to);
        let bytes: u64 = self.received.iter().filter(|(at, _)| span.contains(at)).map(|p| p.1).sum();
        bytes as f64 * 8e-3 / (to - from) as f64
    }
    /// When RTP packets were received.
    pub(crate) fn received_at(&self) -> impl Iterator<Item = Timestamp> {
        self.received.iter().map(|p| p.0)
    }
    /// RTP packets received at least once.
    pub(crate) fn distinct_received(&self) -> usize {
        self.numbers.len()
    }
}
