//! DCCP in the simulator: a source and its sink, and calls over it.

use super::RunError;
use super::call::Call;
use super::ends::Ends;
use super::sampling::PauseChange;
use super::video::Viewer;
use crate::scenario::{DccpFlow, DccpSettings, Flow, RtpFlow};
use std::sync::Arc;
use weir_dccp::ccid::Registry;
use weir_dccp::connection::{Ccids, Config, Connection, Datagram};
use weir_dccp::packet::ServiceCode;
use weir_dccp::queue::Message;
use weir_media::PlayoutEvent;
use weir_session::Endpoint;
use weir_session::dccp::{DccpConfig, DccpEnd, QueueSizing};
use weir_sim::{Body, Packet, mix};
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Room beyond a full packet for headers and options, so that no packet of a scenario exceeds its path's MTU.
const HEADER_ROOM: u64 = 400;

/// A connection's configuration; `payload` is the maximum application data of a packet.
pub fn config(d: &DccpSettings, payload: DataSize, seed: u64) -> Config {
    let mtu = d.header_overhead + payload + DataSize::from_bytes(HEADER_ROOM);
    let params = d.params.iter().map(|(name, value)| (d.ccid, name.clone(), *value)).collect();
    Config {
        registry: Arc::new(Registry::builtin()),
        ccids: Ccids { send: vec![d.ccid], receive: vec![d.ccid], params },
        service_code: ServiceCode::UNSPECIFIED,
        ecn: d.ecn,
        short_sequence_numbers: d.short_sequence_numbers,
        sequence_window: d.sequence_window,
        queue: d.queue,
        initial_mtu: mtu,
        max_mtu: mtu,
        header_overhead: d.header_overhead,
        seed,
        ..Config::default()
    }
}

/// Puts a connection's transmission into a simulated packet.
pub(crate) fn fill(packet: &mut Packet, t: &weir_dccp::connection::Transmit, overhead: DataSize) {
    packet.payload = t.payload;
    packet.size = t.size + overhead;
    packet.ecn = t.ecn;
    packet.body = Body::Dccp { header: u16::try_from(t.header).unwrap_or(u16::MAX) };
}

/// One end of a call over DCCP.
pub(crate) struct CallOverDccp {
    end: DccpEnd,
    header_overhead: DataSize,
    /// The time of the last event.
    now: Timestamp,
    /// Decodes and rates received frames, if they have content.
    pub viewer: Option<Box<Viewer>>,
}

/// How a session uses the connection.
pub fn session_config(d: &DccpSettings) -> DccpConfig {
    let sizing = d.sized_by_frames.then(QueueSizing::default);
    DccpConfig { sizing, max_wait: d.max_wait, ..DccpConfig::default() }
}

/// Both ends of a call over DCCP: the sender of media connects.
pub(crate) fn calls(
    flow: &Flow,
    rtp: &RtpFlow,
    d: &DccpSettings,
    call: Call,
    seed: u64,
) -> Result<Ends<CallOverDccp>, RunError> {
    let now = Timestamp::ZERO + flow.start;
    let settings = session_config(d);
    let config = |side: u64| {
        let service_code = ServiceCode::RTP_VIDEO;
        Config { service_code, ..config(d, rtp.payload(), mix(seed, 10 + side)) }
    };
    let error = |e: weir_cc::tunable::SetupError| RunError::Traffic { flow: flow.name.clone(), message: e.to_string() };
    let client = DccpEnd::connect(call.sender, config(0), settings, now).map_err(error)?;
    let server = DccpEnd::listen(call.receiver, config(1), settings);
    let end = |end, viewer| CallOverDccp { end, header_overhead: d.header_overhead, now, viewer };
    Ok(Ends { sender: end(client, None), receiver: end(server, call.viewer) })
}

impl CallOverDccp {
    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.end.endpoint()
    }
    pub(crate) fn end(&self) -> &DccpEnd {
        &self.end
    }
    pub(crate) fn pause(&mut self, change: &PauseChange) {
        self.end.set_paused(change.paused);
        self.end.endpoint_mut().rtcp().move_media_clock(change.media_clock);
    }
    pub(crate) fn poll_playout(&mut self, now: Timestamp, stream: usize) -> Option<PlayoutEvent> {
        let endpoint = self.end.endpoint_mut();
        let event = super::sampling::next_played(endpoint, stream, now)?;
        if let Some(viewer) = &mut self.viewer {
            viewer.on_playout(endpoint, &event, now);
        }
        Some(event)
    }
}

impl weir_sim::Agent for CallOverDccp {
    fn on_start(&mut self, now: Timestamp) {
        self.now = now;
    }
    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        self.now = now;
        let datagram = Datagram { bytes: &packet.bytes, payload: packet.payload, ecn: packet.ecn };
        self.end.handle_datagram(now, &datagram);
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.now = now;
        self.end.handle_timeout(now);
    }
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        self.end.poll_timeout(self.now)
    }
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        let Some(t) = self.end.poll_transmit(now, &mut packet.bytes) else { return false };
        fill(packet, &t.transmit, self.header_overhead);
        true
    }
}

/// The application at one end.
enum Role {
    /// As much as the connection accepts.
    Bulk,
    /// A packet at each of these times.
    Live { interval: TimeDelta, next: Timestamp },
    /// Receives.
    Sink,
}

/// The connection of an end of a flow without RTP.
enum Stage {
    /// The first Request creates the connection.
    Listening(Box<Config>),
    Connected(Box<Connection>),
}

/// One end of a DCCP flow without RTP.
pub(crate) struct DccpFlowEnd {
    stage: Stage,
    role: Role,
    payload: u32,
    header_overhead: DataSize,
    /// The time of the last event.
    now: Timestamp,
    buffer: Vec<u8>,
}

/// Both ends of a flow.
pub(crate) fn ends(flow: &Flow, d: &DccpFlow, seed: u64) -> Result<Ends<DccpFlowEnd>, RunError> {
    let now = Timestamp::ZERO + flow.start;
    let error = |e: weir_cc::tunable::SetupError| RunError::Traffic { flow: flow.name.clone(), message: e.to_string() };
    let interval = d.rate.and_then(|r| r.time_for(d.payload));
    let end = |stage, role| DccpFlowEnd {
        stage,
        role,
        payload: d.payload.as_bytes() as u32,
        header_overhead: d.connection.header_overhead,
        now,
        buffer: Vec::new(),
    };
    let client = Connection::connect(config(&d.connection, d.payload, mix(seed, 1)), now).map_err(error)?;
    let server = config(&d.connection, d.payload, mix(seed, 2));
    let role = interval.map_or(Role::Bulk, |interval| Role::Live { interval, next: now });
    let sender = end(Stage::Connected(Box::new(client)), role);
    Ok(Ends { sender, receiver: end(Stage::Listening(Box::new(server)), Role::Sink) })
}

impl DccpFlowEnd {
    /// The connection; `None` while this end listens.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        if let Stage::Connected(c) = &self.stage { Some(c) } else { None }
    }
    fn connection_mut(&mut self) -> Option<&mut Connection> {
        if let Stage::Connected(c) = &mut self.stage { Some(c) } else { None }
    }

    /// Offers a packet; returns whether the queue accepted it.
    fn offer(&mut self, now: Timestamp) -> bool {
        let message = Message { payload: self.payload, ..Message::default() };
        self.connection_mut().is_some_and(|c| c.send(now, &message).is_ok())
    }

    fn has_room(&self) -> bool {
        self.connection().map(Connection::queue).is_some_and(|q| q.len() < q.config().capacity)
    }
}

impl weir_sim::Agent for DccpFlowEnd {
    fn on_start(&mut self, now: Timestamp) {
        self.now = now;
    }
    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        self.now = now;
        let datagram = Datagram { bytes: &packet.bytes, payload: packet.payload, ecn: packet.ecn };
        match &mut self.stage {
            Stage::Connected(connection) => {
                connection.handle_datagram(now, &datagram);
                while connection.receive(&mut self.buffer).is_some() {}
            }
            Stage::Listening(config) => {
                // Datagrams that are no Request are dropped.
                if let Ok(connection) = Connection::accept(config.as_ref().clone(), now, &datagram, None) {
                    self.stage = Stage::Connected(Box::new(connection));
                }
            }
        }
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.now = now;
        if let Role::Live { interval, next } = &mut self.role {
            let mut due = 0;
            while *next <= now {
                *next += *interval;
                due += 1;
            }
            for _ in 0..due {
                self.offer(now);
            }
        }
        if let Some(connection) = self.connection_mut() {
            connection.handle_timeout(now);
        }
    }
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        let (now, next) = (self.now, if let Role::Live { next, .. } = self.role { Some(next) } else { None });
        self.connection_mut().and_then(|c| c.poll_timeout(now)).into_iter().chain(next).min()
    }
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        if matches!(self.role, Role::Bulk) {
            while self.has_room() && self.offer(now) {}
        }
        let Some(t) = self.connection_mut().and_then(|c| c.poll_transmit(now, &mut packet.bytes)) else {
            return false;
        };
        fill(packet, &t, self.header_overhead);
        true
    }
}
