//! Two ends over DCCP on a link with a rate and a queue, and access to their state.

#![allow(missing_docs, dead_code, unreachable_pub, clippy::unwrap_used, clippy::type_complexity)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use weir_cc::cue::{SendRejected, SentPacket, TransportRate};
use weir_cc::{Controller, Cue, Limits, Registry, Sender, Setup, Spec, Target, Transport};
use weir_dccp::connection::{Config, Connection, Datagram};
use weir_media::{Frame, FrameSource, MaterialConfig, Packetiser, ScenesConfig, ScenesSource, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::dccp::{DccpConfig, DccpEnd, video_connection};
use weir_session::{
    EndConfig, EndPlan, Endpoint, IncomingConfig, OutgoingConfig, OutgoingOptions, ReceivingPath, SendingPath,
    StreamIdentity,
};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

pub fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A link: its delay, rate, queue length and losses.
pub struct Link {
    pub delay: TimeDelta,
    pub rate: DataRate,
    pub buffer: TimeDelta,
    pub lose: Box<dyn FnMut(u64) -> bool>,
    free_at: Timestamp,
    pub count: u64,
    pub lost: u64,
    inside: VecDeque<(Timestamp, Vec<u8>, u32, Ecn)>,
}

impl Link {
    pub fn new(kbps: u64, delay_ms: i64) -> Self {
        Self {
            delay: TimeDelta::from_millis(delay_ms),
            rate: DataRate::from_kbps(kbps),
            buffer: TimeDelta::from_millis(100),
            lose: Box::new(|_| false),
            free_at: Timestamp::ZERO,
            count: 0,
            lost: 0,
            inside: VecDeque::new(),
        }
    }
    fn push(&mut self, now: Timestamp, bytes: Vec<u8>, payload: u32, ecn: Ecn) {
        let size = DataSize::from_bytes(bytes.len() as u64 + u64::from(payload) + 28);
        self.count += 1;
        if (self.lose)(self.count) || self.free_at.saturating_since(now) > self.buffer {
            self.lost += 1;
            return;
        }
        self.free_at = self.free_at.max(now) + self.rate.time_for(size).unwrap();
        self.inside.push_back((self.free_at + self.delay, bytes, payload, ecn));
    }
}

/// The inputs of a controller, and its rate.
#[derive(Clone)]
pub struct Recorder {
    pub rate: DataRate,
    pub pacing: DataRate,
    pub rejected: Arc<Mutex<Vec<SendRejected>>>,
    pub rates: Arc<Mutex<Vec<TransportRate>>>,
}

impl Recorder {
    pub fn new(kbps: u64) -> Self {
        let rate = DataRate::from_kbps(kbps);
        Self { rate, pacing: Target::UNPACED, rejected: Arc::default(), rates: Arc::default() }
    }
    pub fn sender(&self) -> Sender {
        Sender::Custom(Box::new(self.clone()))
    }
}

impl Controller for Recorder {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::SendRejected(r) => self.rejected.lock().unwrap().push(*r),
            Cue::TransportRate(r) => self.rates.lock().unwrap().push(*r),
            _ => {}
        }
    }
    fn on_limits(&mut self, _: Limits, _: Timestamp) {}
    fn target(&self) -> Target {
        Target::paced(self.rate, self.pacing)
    }
}

/// A source that records its frames.
pub struct Watched<S>(pub S, pub Arc<Mutex<Vec<Frame>>>);

impl<S: FrameSource> FrameSource for Watched<S> {
    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        self.0.on_target(rate, now);
    }
    fn next_frame_at(&self) -> Option<Timestamp> {
        self.0.next_frame_at()
    }
    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let frame = self.0.poll_frame(now);
        self.1.lock().unwrap().extend(frame);
        frame
    }
    fn request_key_frame(&mut self, now: Timestamp) {
        self.0.request_key_frame(now);
    }
    fn generated_rate(&self) -> DataRate {
        self.0.generated_rate()
    }
}

pub fn scenes(material: MaterialConfig, seed: u64) -> ScenesSource {
    ScenesSource::new(ScenesConfig::new(material), Timestamp::ZERO, seed).unwrap()
}

pub fn limits() -> Limits {
    Limits { floor: DataRate::ZERO, ceiling: DataRate::from_mbps(1_000) }
}

/// A built-in controller with these parameters, and its entry.
pub fn controller(name: &str, params: &[(&str, f64)]) -> (Sender, Spec, u8) {
    let registry = Registry::builtin();
    let params = params.iter().map(|&(n, v)| (n.into(), v)).collect();
    let setup = Setup { limits: limits(), start_rate: DataRate::from_mbps(1), now: Timestamp::ZERO, seed: 1, params };
    let spec = registry.get(name).unwrap().clone();
    let ccid = match spec.transport {
        Transport::Dccp { ccid } => ccid,
        _ => 2,
    };
    (registry.make(name, &setup).unwrap().sender, spec, ccid)
}

pub fn endpoint_config(ssrc: u32, remote_ssrc: u32) -> EndConfig {
    EndConfig { ssrc, remote_ssrc, seed: u64::from(ssrc), ..EndConfig::default() }
}

/// The sending endpoint.
pub fn sending(source: impl Into<Source>, controller: Sender) -> Endpoint {
    sending_packets(source, controller, 1_000)
}
/// The same with payloads of this size.
pub fn sending_packets(source: impl Into<Source>, controller: Sender, bytes: u64) -> Endpoint {
    let packetiser = Packetiser { max_payload: DataSize::from_bytes(bytes), ..Packetiser::default() };
    let outgoing = OutgoingConfig::new(StreamIdentity::of(11), source.into(), Demand::default())
        .with(OutgoingOptions { packetiser, ..OutgoingOptions::default() });
    let sending = SendingPath::new(controller);
    EndPlan::new(endpoint_config(11, 22)).sends(outgoing).on(sending).make(Timestamp::ZERO).unwrap()
}

/// One DCCP packet in flight: when it was sent, its bytes, and the size of its header.
pub struct Left {
    pub now: Timestamp,
    pub bytes: Vec<u8>,
    pub header: usize,
    pub size: u64,
    pub has_data: bool,
}

impl Left {
    /// The RTP timestamp, if it carries media.
    pub fn rtp_timestamp(&self) -> Option<u32> {
        let rtp = &self.bytes[self.header..];
        (self.has_data && rtp.len() >= 12 && rtp[1] & 0x7f == 96)
            .then(|| u32::from_be_bytes(rtp[4..8].try_into().unwrap()))
    }
    /// Its RTP sequence number, if it carries media.
    pub fn rtp_sequence(&self) -> Option<u16> {
        self.rtp_timestamp().map(|_| {
            let rtp = &self.bytes[self.header..];
            u16::from_be_bytes([rtp[2], rtp[3]])
        })
    }
}

/// Two ends: the first sends and connects, the second listens.
pub struct Call {
    pub a: DccpEnd,
    pub b: DccpEnd,
    pub config: Config,
    pub there: Link,
    pub back: Link,
    pub now: Timestamp,
    /// Packets sent by the first end.
    pub sent: Vec<Left>,
}

impl Call {
    pub fn new(endpoint: Endpoint, ccid: u8, dccp: DccpConfig, there: Link) -> Self {
        Self::with(endpoint, video_connection(ccid), dccp, there)
    }
    pub fn with(endpoint: Endpoint, config: Config, dccp: DccpConfig, there: Link) -> Self {
        let a = DccpEnd::connect(endpoint, config.clone(), dccp, Timestamp::ZERO).unwrap();
        let incoming = IncomingConfig::new(StreamIdentity::of(11), MediaKind::default());
        let receiving = ReceivingPath::default();
        let endpoint =
            EndPlan::new(endpoint_config(22, 11)).receives(incoming).on(receiving).make(Timestamp::ZERO).unwrap();
        let b = DccpEnd::listen(endpoint, Config { seed: 99, ..config.clone() }, dccp);
        let back = Link::new(100_000, there.delay.as_millis());
        Self { a, b, config, there, back, now: Timestamp::ZERO, sent: Vec::new() }
    }

    fn arrive(&mut self, bytes: &[u8], payload: u32, ecn: Ecn) {
        let datagram = Datagram { bytes, payload, ecn };
        let is_request = bytes[8] >> 1 & 15 == 0;
        if is_request && self.b.connection().is_some_and(|c| c.end().is_some()) {
            let config = Config { seed: 99, ..self.config.clone() };
            if let Ok(connection) = Connection::accept(config, self.now, &datagram, None) {
                self.b.set_connection(connection, self.now);
            }
            return;
        }
        self.b.handle_datagram(self.now, &datagram);
    }

    fn drain(&mut self) {
        let mut out = Vec::new();
        while let Some(t) = self.a.poll_transmit(self.now, &mut out) {
            let (header, has_data, size) = (t.transmit.header, t.has_data, t.transmit.size.as_bytes());
            assert_eq!(size, out.len() as u64 + u64::from(t.transmit.payload));
            self.sent.push(Left { now: self.now, bytes: out.clone(), header, size, has_data });
            self.there.push(self.now, out.clone(), t.transmit.payload, t.transmit.ecn);
        }
        while let Some(t) = self.b.poll_transmit(self.now, &mut out) {
            self.back.push(self.now, out.clone(), t.transmit.payload, t.transmit.ecn);
        }
    }

    pub fn run_until(&mut self, end: Timestamp) {
        let mut steps = 0u32;
        loop {
            self.drain();
            let fronts = [&self.there, &self.back].map(|l| l.inside.front().map(|p| p.0));
            let timers = [self.a.poll_timeout(self.now), self.b.poll_timeout(self.now)];
            let next = fronts.into_iter().chain(timers).flatten().fold(end, Timestamp::min);
            if next >= end {
                self.now = end;
                return;
            }
            steps += 1;
            assert!(steps < 10_000_000, "time stands still at {}", self.now);
            self.now = self.now.max(next);
            if self.there.inside.front().is_some_and(|p| p.0 <= self.now)
                && let Some((_, bytes, payload, ecn)) = self.there.inside.pop_front()
            {
                self.arrive(&bytes, payload, ecn);
            }
            if self.back.inside.front().is_some_and(|p| p.0 <= self.now)
                && let Some((_, bytes, payload, ecn)) = self.back.inside.pop_front()
            {
                self.a.handle_datagram(self.now, &Datagram { bytes: &bytes, payload, ecn });
            }
            self.a.handle_timeout(self.now);
            self.b.handle_timeout(self.now);
        }
    }

    /// The receiver's connection.
    pub fn receiving(&self) -> &Connection {
        self.b.connection().expect("accepted")
    }
    /// The sender's connection.
    pub fn sending(&self) -> &Connection {
        self.a.connection().expect("it connects")
    }
}
