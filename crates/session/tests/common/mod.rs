//! Two ends over a minimal link, and a controller that records its inputs.

#![allow(missing_docs, dead_code, unreachable_pub, clippy::unwrap_used, clippy::type_complexity)]

pub mod toy;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use weir_cc::cue::{CapacityNotice, PacketResult, ReceiverEstimate};
use weir_cc::cue::{FramePlayout, IntervalPacket, NextDataUnit, OneWayDelay, ReceivedPacket, ReportBlock, SentPacket};
use weir_cc::{
    Controller, Cue, Limits, Receiver, ReceiverController, Registry, Report, ReportPlan, Sender, Setup, Target,
};
use weir_media::Source;
use weir_session::{CallPlan, Control, Datagram, EndConfig, EndName, Endpoint, Transmit};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

/// An input of a [`Recorder`].
#[derive(Clone, PartialEq, Debug)]
pub enum Recorded {
    Sent(SentPacket),
    Feedback(Vec<PacketResult>),
    Block(ReportBlock),
    Interval(Timestamp, Vec<IntervalPacket>, Option<OneWayDelay>, Option<TimeDelta>),
    Unit(NextDataUnit),
    Estimate(ReceiverEstimate),
    Notice(CapacityNotice),
}

/// A controller with a target set by the test.
#[derive(Clone)]
pub struct Recorder {
    pub target: Arc<Mutex<Target>>,
    pub recorded: Arc<Mutex<Vec<Recorded>>>,
}

impl Recorder {
    pub fn new(kbps: u64) -> Self {
        let rate = DataRate::from_kbps(kbps);
        Self {
            target: Arc::new(Mutex::new(Target::paced(rate, DataRate::from_kbps(kbps * 4)))),
            recorded: Arc::default(),
        }
    }
    pub fn sender(&self) -> Sender {
        Sender::Custom(Box::new(self.clone()))
    }
    pub fn recorded(&self) -> Vec<Recorded> {
        self.recorded.lock().unwrap().clone()
    }
    pub fn sent(&self) -> Vec<SentPacket> {
        self.recorded().into_iter().filter_map(|t| if let Recorded::Sent(p) = t { Some(p) } else { None }).collect()
    }
    pub fn intervals(&self) -> Vec<(Timestamp, Vec<IntervalPacket>, Option<OneWayDelay>, Option<TimeDelta>)> {
        let only = |t| if let Recorded::Interval(now, p, d, rtt) = t { Some((now, p, d, rtt)) } else { None };
        self.recorded().into_iter().filter_map(only).collect()
    }
}

impl Controller for Recorder {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.recorded.lock().unwrap().push(Recorded::Sent(*packet));
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        let recorded = match cue {
            Cue::TransportFeedback(f) => Recorded::Feedback(f.packets.to_vec()),
            Cue::ReportBlock(b) => Recorded::Block(*b),
            Cue::IntervalReport(i) => Recorded::Interval(i.now, i.packets.to_vec(), i.one_way_delay, i.rtt),
            Cue::NextDataUnit(n) => Recorded::Unit(*n),
            Cue::ReceiverEstimate(e) => Recorded::Estimate(*e),
            Cue::CapacityNotice(n) => Recorded::Notice(*n),
            other => panic!("{other:?}"),
        };
        self.recorded.lock().unwrap().push(recorded);
    }
    fn on_limits(&mut self, _: Limits, _: Timestamp) {}
    fn target(&self) -> Target {
        *self.target.lock().unwrap()
    }
}

/// A receiver half that reports next data units periodically and records playout.
#[derive(Clone, Default)]
pub struct Watcher {
    pub frames: Arc<Mutex<Vec<FramePlayout>>>,
    pub every: Option<TimeDelta>,
    last: Option<Timestamp>,
}

impl Watcher {
    pub fn every(every: TimeDelta) -> Self {
        Self { every: Some(every), ..Self::default() }
    }
    pub fn receiver(&self) -> Receiver {
        Receiver::Custom(Box::new(self.clone()))
    }
}

impl ReceiverController for Watcher {
    fn on_packet_received(&mut self, packet: &ReceivedPacket) {
        self.last.get_or_insert(packet.now);
    }
    fn on_playout(&mut self, frame: &FramePlayout) {
        self.frames.lock().unwrap().push(*frame);
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        Some(self.last? + self.every?)
    }
    fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        self.poll_timeout().filter(|&at| at <= now)?;
        self.last = Some(now);
        Some(Report::NextDataUnit { rate: DataRate::from_kbps(700) })
    }
}

/// Fate of a datagram on the link.
pub enum Fate {
    Pass,
    /// It arrives twice.
    Twice,
    Lose,
    Delay(TimeDelta),
}

type Rule = Box<dyn FnMut(u64, &[u8]) -> Fate>;

pub struct Link {
    delay: TimeDelta,
    rate: DataRate,
    free_at: Timestamp,
    rule: Rule,
    count: u64,
    inside: VecDeque<(Timestamp, Vec<u8>, u32)>,
    /// SSRC and sequence number of lost RTP packets.
    pub lost: Vec<(u32, u16)>,
}

impl Link {
    pub fn new(rate: DataRate, rule: impl FnMut(u64, &[u8]) -> Fate + 'static) -> Self {
        let delay = TimeDelta::from_millis(50);
        let rule = Box::new(rule);
        Self { delay, rate, free_at: Timestamp::ZERO, rule, count: 0, inside: VecDeque::new(), lost: vec![] }
    }
    pub fn with_delay(self, delay: TimeDelta) -> Self {
        Self { delay, ..self }
    }
    fn push(&mut self, now: Timestamp, bytes: Vec<u8>, t: &Transmit) {
        self.count += 1;
        let size = t.size + DataSize::from_bytes(28);
        let full = self.free_at.saturating_since(now) > TimeDelta::from_millis(300);
        let fate = (self.rule)(self.count, &bytes);
        let copies = usize::from(matches!(fate, Fate::Twice));
        let later = match fate {
            Fate::Lose => None,
            _ if full => None,
            Fate::Pass | Fate::Twice => Some(TimeDelta::ZERO),
            Fate::Delay(d) => Some(d),
        };
        let Some(later) = later else {
            if t.is_rtp() {
                let v = PacketView::parse_header(&bytes).unwrap();
                self.lost.push((v.ssrc(), v.sequence()));
            }
            return;
        };
        self.free_at = self.free_at.max(now) + self.rate.time_for(size).expect("rate above zero");
        let at = self.free_at + self.delay + later;
        let i = self.inside.partition_point(|p| p.0 <= at);
        for _ in 0..copies {
            self.inside.insert(i, (at, bytes.clone(), t.payload));
        }
        self.inside.insert(i, (at, bytes, t.payload));
    }
}

/// Two ends: a on the left of `there`.
pub struct Call {
    pub a: Endpoint,
    pub b: Endpoint,
    pub there: Link,
    pub back: Link,
    pub now: Timestamp,
    /// Every datagram sent: by a and by b.
    pub sent: [Vec<(Timestamp, Vec<u8>, Transmit)>; 2],
}

impl Call {
    pub fn new(a: Endpoint, b: Endpoint, there: Link) -> Self {
        let back = Link::new(DataRate::from_mbps(10), |_, _| Fate::Pass);
        Self { a, b, there, back, now: Timestamp::ZERO, sent: [vec![], vec![]] }
    }
    pub fn run_until(&mut self, end: Timestamp) {
        let mut steps = 0u32;
        loop {
            self.drain();
            let fronts = [&self.there, &self.back].map(|l| l.inside.front().map(|p| p.0));
            let timers = [self.a.poll_timeout(self.now), self.b.poll_timeout(self.now)];
            let at = fronts.into_iter().chain(timers).flatten().fold(end, Timestamp::min);
            if at >= end {
                self.now = end;
                return;
            }
            steps += 1;
            assert!(steps < 2_000_000, "time stands still at {}", self.now);
            self.now = self.now.max(at);
            if self.there.inside.front().is_some_and(|p| p.0 <= self.now)
                && let Some((_, bytes, payload)) = self.there.inside.pop_front()
            {
                self.b.handle_datagram(self.now, &Datagram { payload, ..Datagram::new(&bytes, Ecn::NotEct) });
            }
            if self.back.inside.front().is_some_and(|p| p.0 <= self.now)
                && let Some((_, bytes, payload)) = self.back.inside.pop_front()
            {
                self.a.handle_datagram(self.now, &Datagram { payload, ..Datagram::new(&bytes, Ecn::NotEct) });
            }
            self.a.handle_timeout(self.now);
            self.b.handle_timeout(self.now);
        }
    }
    fn drain(&mut self) {
        let mut out = Vec::new();
        let ends = [(&mut self.a, &mut self.there), (&mut self.b, &mut self.back)];
        for ((end, link), sent) in ends.into_iter().zip(&mut self.sent) {
            while let Some(t) = end.poll_transmit(self.now, &mut out) {
                assert_eq!(t.size.as_bytes(), out.len() as u64 + u64::from(t.payload));
                sent.push((self.now, out.clone(), t));
                link.push(self.now, out.clone(), &t);
            }
        }
    }
}

/// A one-way call under a built-in controller, with all that the controller requires.
pub fn call_plan(controller: &str, limits: Limits, start_rate: DataRate, source: Source) -> CallPlan {
    let setup = Setup { limits, start_rate, now: Timestamp::ZERO, seed: 1, params: vec![] };
    let control = Control::new(&Registry::builtin(), controller, &setup).unwrap();
    let sender = EndConfig { ssrc: 11, remote_ssrc: 22, ..EndConfig::default() };
    CallPlan::of_source(control, source, sender, EndName { cname: "weir".into(), seed: 2 })
}

/// A plan of reports with everything in them.
pub fn plan() -> ReportPlan {
    ReportPlan {
        min_round_trips: 2.0,
        min_interval: TimeDelta::from_millis(50),
        max_interval: TimeDelta::from_secs(1),
        extended: true,
        early: false,
    }
}
