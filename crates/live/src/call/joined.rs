//! An agreed call as an end.

use crate::call::carrier::{Carrier, over_dccp};
use crate::call::config::{CallConfig, adaptive};
use crate::call::end::LiveEnd;
use crate::call::path_sockets::{PathAddress, use_own_interface};
use crate::call::paths::incoming;
use crate::call::routes::Peer;
use crate::call::{CallError, random};
use crate::clock::Clock;
use crate::sdp::{
    AgreedStream, Agreement, DCCP_PORT, DccpMedia, Description, Extension, Feedback, Setup as DccpSetup, StreamCodec,
};
use crate::srtp::SrtpSession;
use std::net::UdpSocket;
use weir_cc::{FeedbackFormat, Receiver, Registry, Setup, Transport};
use weir_dccp::connection::{Ccids, Config};
use weir_media::{Packetiser, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::dccp::DccpEnd;
use weir_session::{
    Endpoint, EndpointConfig, IncomingConfig, IncomingId, Label, NackConfig, OutgoingConfig, OutgoingId, ReceiveConfig,
    RetransmissionConfig, SendConfig, StreamIdentity,
};
use weir_units::{DataRate, Ecn, PathId, TimeDelta, Timestamp};

/// Silence after which another source of the other end replaces the previous one.
const LATCH: TimeDelta = TimeDelta::from_millis(500);

/// A call that both ends have agreed on.
#[derive(Debug)]
pub struct Joined {
    /// The agreement.
    pub agreement: Agreement,
    /// Of this end's paths, at least one.
    pub(super) sockets: Vec<(UdpSocket, PathAddress)>,
    pub(super) own: Description,
}

/// A stream, or one encoding of a simulcast, that this end is to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutgoingPlan {
    /// The place of its stream in [`Agreement::streams`].
    pub stream: usize,
    /// Index of its stream in this end's description.
    pub own: usize,
    /// Index of the encoding among those described by this end: 0 without simulcast.
    pub encoding: usize,
    /// The encoding's name.
    pub rid: Option<Label>,
    /// The maximum that the other end accepts of it.
    pub most: Option<DataRate>,
}

/// A stream, or one encoding of a simulcast, that this end is to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IncomingPlan {
    /// The place of its stream in [`Agreement::streams`].
    pub stream: usize,
    /// Its codec.
    pub codec: StreamCodec,
    /// The section that it belongs to.
    pub mid: Option<Label>,
    /// The encoding's name.
    pub rid: Option<Label>,
}

/// What an end sends by an [`OutgoingPlan`].
pub struct PlannedSource {
    /// The source of frames.
    pub source: Source,
    /// Its demand on the target.
    pub demand: Demand,
}

/// An end, and its streams in the order of their plans.
#[derive(Debug)]
pub struct JoinedEnd {
    /// The end.
    pub end: LiveEnd,
    /// The streams sent, with their identities in RTP.
    pub outgoing: Vec<(OutgoingId, StreamIdentity)>,
    /// The streams received.
    pub incoming: Vec<IncomingId>,
    /// Whether both ends' clocks are synchronised.
    pub synchronised_clocks: bool,
}

/// Per-packet feedback that a controller needs and the other end does not send.
fn unfit(controller: &str, wants: &str) -> CallError {
    CallError::Unfit { controller: controller.into(), wants: wants.into() }
}

fn repairs(s: &AgreedStream) -> bool {
    s.retransmission.is_some() && s.has(Feedback::Nack)
}

/// Inputs to the construction of an end.
struct Making<'a> {
    agreement: &'a Agreement,
    config: &'a CallConfig,
    registry: &'a Registry,
    now: Timestamp,
    seed: u64,
}

impl Joined {
    /// The streams that this end is to send, in the order of their sections, encodings of a simulcast from the lowest
    /// up.
    pub fn outgoing(&self) -> Vec<OutgoingPlan> {
        let mut plans = Vec::new();
        for (stream, s) in self.agreement.streams.iter().enumerate().filter(|(_, s)| s.direction.sends()) {
            if s.send.is_empty() {
                plans.push(OutgoingPlan { stream, own: s.own, encoding: 0, rid: None, most: None });
            }
            plans.extend(s.send.iter().rev().map(|e| OutgoingPlan {
                stream,
                own: s.own,
                encoding: e.own,
                rid: Some(e.encoding.rid),
                most: e.encoding.limits.max_br.map(|bps| DataRate::from_bps(bps.into())),
            }));
        }
        plans
    }

    /// The streams that this end is to receive, in the same order.
    pub fn incoming(&self) -> Vec<IncomingPlan> {
        let mut plans = Vec::new();
        for (stream, s) in self.agreement.streams.iter().enumerate().filter(|(_, s)| s.direction.receives()) {
            let plan = |rid| IncomingPlan { stream, codec: s.codec, mid: s.mid, rid };
            if s.receive.is_empty() {
                plans.push(plan(None));
            }
            plans.extend(s.receive.iter().rev().map(|e| plan(Some(e.rid))));
        }
        plans
    }

    /// The end of the call. `sources` are the media sent, in the order of [`Self::outgoing`]; without any it sends
    /// nothing.
    ///
    /// # Errors
    /// The controller needs feedback that the other end does not send, or cannot be constructed.
    pub fn into_end(
        self,
        config: &CallConfig,
        registry: &Registry,
        clock: &Clock,
        sources: Vec<PlannedSource>,
    ) -> Result<JoinedEnd, CallError> {
        let (a, now) = (&self.agreement, clock.now());
        let making = Making { agreement: a, config, registry, now, seed: random()? };
        let (sends, receives) = (self.outgoing(), self.incoming());
        let out = sends.iter().map(|p| making.outgoing_identity(p)).collect::<Result<Vec<_>, _>>()?;
        let incoming: Vec<_> = receives.iter().map(|p| making.incoming_identity(p)).collect();
        let here = self.own.media().find_map(|m| m.transport.as_ref()).map(|t| t.address.ip());
        // One machine has one time of day; those of two may differ.
        let synchronised_clocks = a.remote.ip().is_loopback() || Some(a.remote.ip()) == here;
        let mut endpoint = making.endpoint(clock, out.first(), incoming.first());
        endpoint.cname = self.own.cname.clone().unwrap_or_default();
        endpoint.synchronised_clocks = synchronised_clocks;
        endpoint.lip_synchronisation = incoming.len() > 1;
        let mut sources = out.into_iter().zip(&sends).zip(sources).map(|((identity, plan), source)| {
            let stream = &a.streams[plan.stream];
            (identity, stream, source)
        });
        let first = sources.next().map(|(identity, stream, source)| {
            let send = making.send_config(&mut endpoint, stream, source)?;
            Ok::<_, CallError>((identity, send))
        });
        let (first, send) = first.transpose()?.unzip();
        let receive = receives.first().map(|p| making.receive_config(&a.streams[p.stream]));
        let mut endpoint = Endpoint::new(endpoint, send, receive, now);
        let mut outgoing: Vec<_> = first.map(|identity| (OutgoingId::FIRST, identity)).into_iter().collect();
        for (identity, stream, source) in sources {
            let stream = OutgoingConfig {
                packetiser: making.packetiser(),
                retransmission: repairs(stream).then(RetransmissionConfig::default),
                max_queue_age: Some(config.playout_deadline),
                ..OutgoingConfig::new(identity, source.source, source.demand)
            };
            let added = endpoint.add_outgoing(stream, now).map_err(|e| not_added(&identity, e))?;
            outgoing.push((added, identity));
        }
        let mut ids: Vec<_> = receives.first().map(|_| IncomingId::FIRST).into_iter().collect();
        for (identity, plan) in incoming.into_iter().zip(&receives).skip(1) {
            let stream = making.incoming_config(identity, &a.streams[plan.stream]);
            ids.push(endpoint.add_incoming(stream, now).map_err(|e| not_added(&identity, e))?);
        }
        let srtp = match &a.keys {
            Some((own, theirs)) => Some(SrtpSession::new(own, theirs)?),
            None => None,
        };
        // With keys the call cannot be taken over.
        let peer = if srtp.is_some() { Peer::Follow(a.remote) } else { Peer::At(a.remote) };
        let carrier = match a.dccp {
            Some(dccp) => making.carry(endpoint, dccp, self.own.media().find_map(|m| m.transport.as_ref()?.dccp))?,
            None => endpoint.into(),
        };
        let is_protected = srtp.is_some();
        let mut sockets = self.sockets.into_iter();
        let (socket, begins) = sockets.next().ok_or(CallError::NoStreams)?;
        let is_multipath = a.paths.len() > 1;
        if is_multipath {
            use_own_interface(&socket, a.remote);
        }
        let mut end = LiveEnd::new(socket, config.udp, peer, carrier)?;
        end.watch_interface(PathId::FIRST, &begins, config.udp);
        for (&remote, n) in a.paths.iter().zip(0u8..).skip(1) {
            let (socket, begins) = sockets.next().unzip();
            if let (Some(socket), Some(begins)) = (&socket, begins) {
                use_own_interface(socket, remote);
                end.watch_interface(PathId::new(n), &begins, config.udp);
            }
            let peer = if is_protected { Peer::Follow(remote) } else { Peer::At(remote) };
            end.add_route(socket, config.udp, peer)?;
        }
        end.set_subflow_id(a.extension(Extension::Mprtp).unwrap_or(6));
        let srtp = match srtp {
            Some(mut srtp) if is_multipath => {
                srtp.accept_copies(a.extension(Extension::Mprtp).unwrap_or(6))?;
                Some(srtp)
            }
            other => other,
        };
        end.set_srtp(srtp);
        Ok(JoinedEnd { end, outgoing, incoming: ids, synchronised_clocks })
    }
}

fn not_added(identity: &StreamIdentity, source: weir_session::StreamError) -> CallError {
    let name = [identity.mid, identity.rid].into_iter().flatten().map(|l| l.to_string()).collect::<Vec<_>>().join(" ");
    CallError::Stream { name, source }
}

impl Making<'_> {
    fn setup(&self, params: Vec<(String, f64)>) -> Setup {
        let (limits, start_rate) = (self.config.limits, self.config.start_rate);
        Setup { limits, start_rate, now: self.now, seed: self.seed, params }
    }
    fn packetiser(&self) -> Packetiser {
        Packetiser { max_payload: self.config.payload, ..Packetiser::default() }
    }

    /// A stream's identity in RTP, without its sources.
    fn identity(&self, s: &AgreedStream) -> StreamIdentity {
        let names = |extension| self.agreement.extension(extension).is_some();
        StreamIdentity {
            payload_type: s.payload_type,
            clock_rate: s.codec.media().clock_hz(),
            parity_payload_type: s.flexfec.unwrap_or(120),
            reed_solomon_payload_type: s.reed_solomon.unwrap_or(121),
            retransmission_payload_type: s.retransmission.unwrap_or(122),
            mid: s.mid.filter(|_| names(Extension::Mid)),
            ..EndpointConfig::default().outgoing()
        }
    }
    fn outgoing_identity(&self, plan: &OutgoingPlan) -> Result<StreamIdentity, CallError> {
        let s = &self.agreement.streams[plan.stream];
        let sources = if plan.rid.is_none() { s.sources } else { Default::default() };
        Ok(StreamIdentity {
            ssrc: sources.media.map_or_else(|| random().map(|n| (n as u32).max(1)), Ok)?,
            repair_ssrc: sources.repair,
            retransmission_ssrc: sources.retransmission,
            rid: plan.rid,
            ..self.identity(s)
        })
    }
    fn incoming_identity(&self, plan: &IncomingPlan) -> StreamIdentity {
        let s = &self.agreement.streams[plan.stream];
        let sources = if plan.rid.is_none() { s.remote } else { Default::default() };
        StreamIdentity {
            ssrc: sources.media.unwrap_or(0),
            repair_ssrc: sources.repair,
            retransmission_ssrc: sources.retransmission,
            rid: plan.rid,
            ..self.identity(s)
        }
    }

    /// What both directions share.
    fn endpoint(
        &self,
        clock: &Clock,
        out: Option<&StreamIdentity>,
        incoming: Option<&StreamIdentity>,
    ) -> EndpointConfig {
        let a = self.agreement;
        let named = a.streams.first().map(|s| (s.sources, s.remote)).unwrap_or_default();
        let own = out.copied().unwrap_or_else(|| {
            let first = incoming.copied().unwrap_or_else(|| EndpointConfig::default().outgoing());
            StreamIdentity {
                ssrc: named.0.media.unwrap_or(self.seed as u32),
                repair_ssrc: named.0.repair,
                retransmission_ssrc: named.0.retransmission,
                ..first
            }
        });
        EndpointConfig {
            ssrc: own.ssrc,
            remote_ssrc: incoming.map_or(named.1.media.unwrap_or(0), |i| i.ssrc),
            seed: self.seed,
            payload_type: own.payload_type,
            clock_rate: own.clock_rate,
            parity_payload_type: own.parity_payload_type,
            reed_solomon_payload_type: own.reed_solomon_payload_type,
            repair_ssrc: own.repair_ssrc,
            retransmission_payload_type: own.retransmission_payload_type,
            retransmission_ssrc: own.retransmission_ssrc,
            mid: own.mid,
            rid: own.rid,
            first_incoming: incoming.copied(),
            session_bandwidth: self.config.limits.ceiling,
            transport_sequence_id: a.extension(Extension::TransportSequence).unwrap_or(3),
            abs_send_time_id: a.extension(Extension::AbsSendTime).unwrap_or(2),
            mid_id: a.extension(Extension::Mid).unwrap_or(9),
            rid_id: a.extension(Extension::Rid).unwrap_or(10),
            subflow_id: a.extension(Extension::Mprtp).unwrap_or(6),
            ntp_epoch: clock.ntp_epoch(),
            header_overhead: if a.remote.is_ipv6() { 48 } else { 28 },
            latch: Some(LATCH),
            ..EndpointConfig::default()
        }
    }

    /// The sending direction, and its changes to both.
    fn send_config(
        &self,
        endpoint: &mut EndpointConfig,
        stream: &AgreedStream,
        source: PlannedSource,
    ) -> Result<SendConfig, CallError> {
        let (a, config, name) = (self.agreement, self.config, &self.config.controller);
        if config.transport(self.registry) != Transport::Udp && a.dccp.is_none() {
            return Err(CallError::OnlyOverDccp { controller: name.clone() });
        }
        let setup = self.setup(config.params.clone());
        let pair = self.registry.make(name, &setup)?;
        let controllers = (self.registry, &name[..], &setup);
        let multipath = config.paths.outgoing(a.paths.len(), controllers)?;
        let spec = self.registry.get(name);
        let (feedback, reports) = spec.map_or((None, None), |s| (s.feedback, s.reports));
        endpoint.ecn = spec.map_or(Ecn::NotEct, |s| s.ecn_where(config.ecn));
        match feedback.map(|f| f.format) {
            Some(FeedbackFormat::TransportWide) if !a.has(Feedback::TransportWide) => {
                return Err(unfit(name, "transport-wide feedback (a=rtcp-fb: transport-cc)"));
            }
            Some(FeedbackFormat::TransportWide) if a.extension(Extension::TransportSequence).is_none() => {
                return Err(unfit(name, "transport-wide sequence numbers (a=extmap)"));
            }
            Some(FeedbackFormat::CongestionControl) if !a.has(Feedback::CongestionControl) => {
                return Err(unfit(name, "RFC 8888 feedback (a=rtcp-fb: ack ccfb)"));
            }
            _ => {}
        }
        endpoint.transport_sequence = feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide);
        endpoint.abs_send_time = pair.receiver.is_some() && a.extension(Extension::AbsSendTime).is_some();
        Ok(SendConfig {
            packetiser: self.packetiser(),
            per_packet_feedback: feedback.is_some(),
            reports,
            retransmission: repairs(stream).then(RetransmissionConfig::default),
            max_queue_age: Some(config.playout_deadline),
            demand: source.demand,
            circuit_breaker: config.circuit_breaker,
            feedback_guard: config.guard(self.registry),
            multipath,
            ..SendConfig::new(source.source, pair.sender, config.limits)
        })
    }

    /// If the other end is Weir, its controller's receiver half runs here; otherwise the agreed feedback is sent.
    fn receive_config(&self, stream: &AgreedStream) -> ReceiveConfig {
        let (a, registry) = (self.agreement, self.registry);
        let theirs = a.remote_controller.as_deref().and_then(|name| registry.get(name));
        let standard = || {
            let has = |f: FeedbackFormat| match f {
                FeedbackFormat::TransportWide => a.has(Feedback::TransportWide),
                FeedbackFormat::CongestionControl => a.has(Feedback::CongestionControl),
            };
            registry.specs().iter().filter_map(|s| s.feedback).find(|f| has(f.format))
        };
        let controller: Option<Receiver> =
            theirs.and_then(|s| registry.make(&s.name, &self.setup(Vec::new())).ok()).and_then(|p| p.receiver);
        let own = self.incoming_config(EndpointConfig::default().incoming(), stream);
        ReceiveConfig {
            feedback: theirs.map_or_else(standard, |s| s.feedback),
            reports: theirs.and_then(|s| s.reports),
            nack: own.nack,
            media: own.media,
            controller,
            further_paths: incoming(a.paths.len(), registry, theirs.map(|s| &s.name[..]), &self.setup(Vec::new())),
            playout_deadline: own.playout_deadline,
            adaptive_playout: own.adaptive_playout,
            content: own.content,
            ..ReceiveConfig::default()
        }
    }

    fn incoming_config(&self, identity: StreamIdentity, stream: &AgreedStream) -> IncomingConfig {
        let (media, repairs) = (stream.codec.media(), repairs(stream));
        IncomingConfig {
            nack: repairs.then(NackConfig::default),
            playout_deadline: Some(self.config.playout_deadline),
            adaptive_playout: adaptive(self.config, media == MediaKind::Video && !repairs),
            content: true,
            ..IncomingConfig::new(identity, media)
        }
    }

    /// An end on a DCCP connection. It sends by its own CCID, if it has one, and accepts the other end's.
    fn carry(&self, endpoint: Endpoint, theirs: DccpMedia, ours: Option<DccpMedia>) -> Result<Carrier, CallError> {
        let known = weir_dccp::ccid::Registry::builtin();
        let every: Vec<u8> = known.specs().iter().map(|s| s.number).collect();
        let own = match self.config.transport(self.registry) {
            Transport::Dccp { ccid } => vec![ccid],
            _ => every.clone(),
        };
        let ccids = Ccids { send: own, receive: every, params: Vec::new() };
        let (connection, dccp) = over_dccp(self.config, ccids, self.agreement.remote.is_ipv6())?;
        let local_port = ours.map_or(DCCP_PORT, |d| d.port);
        let connection = Config { local_port, remote_port: theirs.port, ..connection };
        if theirs.setup == DccpSetup::Active {
            return Ok(DccpEnd::connect(endpoint, connection, dccp, self.now)?.into());
        }
        Ok(DccpEnd::listen(endpoint, connection, dccp).into())
    }
}
