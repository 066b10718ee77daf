//! The agents of a scenario: call ends, and the simulator's own traffic.

use super::clock::EndClock;
use super::dccp::{CallOverDccp, DccpFlowEnd};
use super::forecast::ForecastFeeds;
use super::sampling::{PauseChange, next_played};
use super::station::StationAgent;
use super::stepped_udp::SteppedUdp;
use super::video::Viewer;
use crate::results::{Distribution, TransferSummary};
use crate::scenario::{Flow, FlowKind, TcpFlow, TcpTraffic};
use weir_dccp::connection::Connection;
use weir_media::PlayoutEvent;
use weir_session::{Datagram, Endpoint};
use weir_sim::{Agent as _, Packet};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Any agent of a scenario.
pub(crate) enum Agent {
    Call(Box<CallEnd>),
    Traffic(Box<weir_sim::Endpoint>),
    Stepped(Box<SteppedUdp>),
    Station(Box<StationAgent>),
    Dccp(Box<DccpFlowEnd>),
    CallOverDccp(Box<CallOverDccp>),
}

/// One end of a call in the simulator.
#[repr(C)]
pub(crate) struct CallEnd {
    /// The time of the last event, by its own clock.
    now: Timestamp,
    /// Its own clock, if it does not follow the simulation's.
    clock: Option<Box<EndClock>>,
    /// UDP and IP headers around each datagram.
    header_overhead: DataSize,
    /// Decodes and rates received frames, if they have content.
    viewer: Option<Box<Viewer>>,
    /// The forecasts that it gets.
    forecast: Option<Box<ForecastFeeds>>,
    pub endpoint: Endpoint,
}

impl CallEnd {
    pub(crate) fn new(endpoint: Endpoint, header_overhead: DataSize, viewer: Option<Box<Viewer>>) -> Self {
        Self { endpoint, now: Timestamp::ZERO, clock: None, header_overhead, viewer, forecast: None }
    }
    /// With forecasts of the capacity of its path.
    pub(crate) fn with_forecast(self, feed: Option<ForecastFeeds>) -> Self {
        Self { forecast: feed.map(Box::new), ..self }
    }
    /// With a clock of its own.
    pub(crate) fn with_clock(self, clock: Option<EndClock>) -> Self {
        Self { clock: clock.map(Box::new), ..self }
    }
    /// The end's own time at this time of the simulation.
    #[inline(always)]
    fn own_time(&mut self, now: Timestamp) -> Timestamp {
        if self.clock.is_none() { now } else { self.read_clock(now) }
    }
    #[cold]
    fn read_clock(&mut self, now: Timestamp) -> Timestamp {
        let Some(clock) = &mut self.clock else { return now };
        if let Some(offset) = clock.set_until(now) {
            self.endpoint.rtcp().set_clock_offset(offset);
        }
        clock.read(now)
    }
    fn poll_playout(&mut self, now: Timestamp, stream: usize) -> Option<PlayoutEvent> {
        let own = self.own_time(now);
        let mut event = next_played(&mut self.endpoint, stream, own)?;
        if let Some(viewer) = self.viewer.as_mut().filter(|_| stream == 0) {
            viewer.on_playout(&mut self.endpoint, &event, own);
        }
        if let Some(clock) = &self.clock {
            event.at = clock.when(event.at).min(now);
        }
        Some(event)
    }
    #[cold]
    fn take_forecast(&mut self, now: Timestamp) {
        if let Some(feeds) = &mut self.forecast {
            feeds.give(&mut self.endpoint, now, self.now);
        }
    }
}

impl Agent {
    pub(crate) fn call(&self) -> Option<&Endpoint> {
        match self {
            Self::Call(c) => Some(&c.endpoint),
            Self::CallOverDccp(c) => Some(c.endpoint()),
            _ => None,
        }
    }
    pub(crate) fn is_over_dccp(&self) -> bool {
        matches!(self, Self::Dccp(_) | Self::CallOverDccp(_))
    }
    /// The DCCP connection of an end that has one.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Dccp(d) => d.connection(),
            Self::CallOverDccp(c) => c.end().connection(),
            _ => None,
        }
    }
    /// Packets that the transport's send queue has refused or dropped.
    pub(crate) fn refused_packets(&self) -> u64 {
        let queue = self.connection().map(|c| c.queue().counters());
        queue.map_or(0, |q| q.refused + q.displaced + q.expired)
    }
    /// Frames whose first packet the transport has refused.
    pub(crate) fn refused_first_packets(&self) -> u64 {
        if let Self::CallOverDccp(c) = self { c.end().counters().first_rejected } else { 0 }
    }
    pub(crate) fn viewer(&self) -> Option<&Viewer> {
        match self {
            Self::Call(c) => c.viewer.as_deref(),
            Self::CallOverDccp(c) => c.viewer.as_deref(),
            _ => None,
        }
    }
    /// The transfers of a TCP flow up to `stop`, if it has several.
    pub(crate) fn transfers(&self, flow: &Flow, stop: Timestamp) -> Option<TransferSummary> {
        let FlowKind::Tcp(TcpFlow { traffic: TcpTraffic::OnOff { .. } | TcpTraffic::Short { .. }, .. }) = flow.kind
        else {
            return None;
        };
        let over = |size: DataSize, time: TimeDelta| DataRate::from_size_over(size, time).map(DataRate::as_bps_f64);
        let whole = stop.saturating_since(Timestamp::ZERO + flow.start);
        match self {
            Self::Traffic(t) => match &**t {
                weir_sim::Endpoint::TcpSender(s) => {
                    let stats = s.stats();
                    let mean = stats.transfer_rates.as_bps_f64() / stats.transfers as f64;
                    Some(TransferSummary {
                        completed: stats.transfers,
                        unfinished: u64::from(s.is_active()),
                        refused: 0,
                        goodput_bps: over(stats.acked, whole).unwrap_or(0.0),
                        active_bps: over(stats.acked, s.active_time(stop)),
                        mean_throughput_bps: (stats.transfers > 0).then_some(mean),
                        completion_s: None,
                    })
                }
                weir_sim::Endpoint::ShortSender(s) => {
                    let stats = s.stats();
                    let times = &stats.completion_times;
                    let q = |q| times.quantile(q).map(TimeDelta::as_secs_f64);
                    let shape = || {
                        let (min, max) = times.range()?;
                        Some(Distribution {
                            mean: times.mean()?.as_secs_f64(),
                            p50: q(0.5)?,
                            p95: q(0.95)?,
                            p99: q(0.99)?,
                            min: min.as_secs_f64(),
                            max: max.as_secs_f64(),
                        })
                    };
                    Some(TransferSummary {
                        completed: stats.completed,
                        unfinished: stats.alive,
                        refused: stats.refused,
                        goodput_bps: over(stats.acked, whole).unwrap_or(0.0),
                        active_bps: over(stats.completed_size, stats.active_time),
                        mean_throughput_bps: stats.mean_throughput.map(DataRate::as_bps_f64),
                        completion_s: shape(),
                    })
                }
                _ => None,
            },
            _ => None,
        }
    }
    /// Passes the size of the queue in front of its link to a base station.
    pub(crate) fn set_queue(&mut self, queue: DataSize) {
        if let Self::Station(s) = self {
            s.set_queue(queue);
        }
    }
    pub(crate) fn pause(&mut self, change: &PauseChange) {
        match self {
            Self::Call(c) => change.apply(&mut c.endpoint),
            Self::CallOverDccp(c) => c.pause(change),
            _ => {}
        }
    }
    /// The next frame of stream number `stream` whose playout time has come.
    pub(crate) fn poll_playout(&mut self, now: Timestamp, stream: usize) -> Option<PlayoutEvent> {
        match self {
            Self::Call(c) => c.poll_playout(now, stream),
            Self::CallOverDccp(c) => c.poll_playout(now, stream),
            _ => None,
        }
    }
}

macro_rules! each {
    ($self:ident, $agent:ident => $call:expr) => {
        match $self {
            Self::Call($agent) => $call,
            Self::Traffic($agent) => $call,
            Self::Stepped($agent) => $call,
            Self::Station($agent) => $call,
            Self::Dccp($agent) => $call,
            Self::CallOverDccp($agent) => $call,
        }
    };
}

/// The simulator's calls, for agents of any kind.
impl Agent {
    #[inline(never)]
    fn on_packet_of_any(&mut self, now: Timestamp, packet: &Packet) {
        each!(self, a => a.on_packet(now, packet));
    }
    #[inline(never)]
    fn on_timeout_of_any(&mut self, now: Timestamp) {
        each!(self, a => a.on_timeout(now));
    }
    #[inline(never)]
    fn poll_timeout_of_any(&mut self) -> Option<Timestamp> {
        each!(self, a => a.poll_timeout())
    }
    #[inline(never)]
    fn poll_transmit_of_any(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        each!(self, a => a.poll_transmit(now, packet))
    }
}

// The ends of calls, which have most events, are asked without a call.
impl weir_sim::Agent for Agent {
    fn on_start(&mut self, now: Timestamp) {
        each!(self, a => a.on_start(now));
    }
    #[inline(always)]
    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        if let Self::Call(end) = self { end.on_packet(now, packet) } else { self.on_packet_of_any(now, packet) }
    }
    #[inline(always)]
    fn on_timeout(&mut self, now: Timestamp) {
        if let Self::Call(end) = self { end.on_timeout(now) } else { self.on_timeout_of_any(now) }
    }
    #[inline(always)]
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        if let Self::Call(end) = self { end.poll_timeout() } else { self.poll_timeout_of_any() }
    }
    #[inline(always)]
    fn is_settled(&self) -> bool {
        if let Self::Call(end) = self { end.is_settled() } else { false }
    }
    #[inline(always)]
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        if let Self::Call(end) = self { end.poll_transmit(now, packet) } else { self.poll_transmit_of_any(now, packet) }
    }
}

impl weir_sim::Agent for CallEnd {
    fn on_start(&mut self, now: Timestamp) {
        self.now = self.own_time(now);
        self.take_forecast(now);
    }
    #[inline(always)]
    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        let now = self.own_time(now);
        self.now = now;
        let datagram =
            Datagram { path: packet.path, payload: packet.payload, ..Datagram::new(&packet.bytes, packet.ecn) };
        self.endpoint.handle_datagram(now, &datagram);
    }
    #[inline(always)]
    fn on_timeout(&mut self, now: Timestamp) {
        self.now = self.own_time(now);
        if self.forecast.is_some() {
            self.take_forecast(now);
        }
        self.endpoint.handle_timeout(self.now);
    }
    #[inline(always)]
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        let own = self.endpoint.poll_timeout(self.now);
        let own = own.map(|at| self.clock.as_ref().map_or(at, |clock| clock.when(at)));
        match &self.forecast {
            Some(feed) => Some(own.map_or(feed.due(), |own| own.min(feed.due()))),
            None => own,
        }
    }
    #[inline(always)]
    fn is_settled(&self) -> bool {
        self.endpoint.stats().is_settled() && self.forecast.is_none()
    }
    #[inline(always)]
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        let now = self.own_time(now);
        let Some(t) = self.endpoint.poll_transmit(now, &mut packet.bytes) else { return false };
        packet.payload = t.payload;
        packet.size = t.size + self.header_overhead;
        packet.ecn = t.ecn;
        packet.path = t.path;
        true
    }
}
