//! An agreed call as an end.

use crate::call::carrier::{Carrier, over_dccp};
use crate::call::config::{CallConfig, adaptive};
use crate::call::end::LiveEnd;
use crate::call::gather::PreparedIce;
use crate::call::ice_state::LiveIce;
use crate::call::lent::Lent;
use crate::call::path_factory::PathFactory;
use crate::call::path_sockets::{PathAddress, use_own_interface};
use crate::call::routes::Peer;
use crate::call::{CallError, random};
use crate::clock::Clock;
use crate::ice::IcePaths;
use crate::sdp::{
    AgreedStream, Agreement, DCCP_PORT, DccpMedia, Description, Extension, Feedback, Setup as DccpSetup, StreamCodec,
};
use crate::srtp::SrtpSession;
use std::net::UdpSocket;
use weir_cc::{Registry, Transport};
use weir_dccp::connection::{Ccids, Config};
use weir_media::{Packetiser, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::dccp::DccpEnd;
use weir_session::{
    EndConfig, EndPlan, Endpoint, HeaderExtensions, IncomingConfig, IncomingId, Label, NackConfig, OutgoingConfig,
    OutgoingId, OutgoingOptions, RetransmissionConfig, StreamIdentity,
};
use weir_units::{DataRate, PathId, TimeDelta, Timestamp};

/// Silence after which another source of the other end replaces the previous one.
const LATCH: TimeDelta = TimeDelta::from_millis(500);

/// A call that both ends have agreed on.
#[derive(Debug)]
pub struct Joined {
    /// The agreement.
    pub agreement: Agreement,
    /// Of this end's paths, at least one.
    pub(super) sockets: Vec<(UdpSocket, PathAddress)>,
    /// The relays of the sockets.
    pub(super) lent: Vec<Lent>,
    /// Where its further paths begin, with ICE.
    pub(super) begins: Vec<PathAddress>,
    pub(super) own: Description,
    pub(super) ice: Option<PreparedIce>,
    /// Whether this end has offered the call.
    pub(super) offered: bool,
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

/// Media that an end sends by an [`OutgoingPlan`].
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

fn repairs(s: &AgreedStream) -> bool {
    s.retransmission.is_some() && s.has(Feedback::Nack)
}

/// Inputs to the construction of an end.
struct EndBuilder<'a> {
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
        let builder = EndBuilder { agreement: a, config, registry, now, seed: random()? };
        let (sends, receives) = (self.outgoing(), self.incoming());
        let out = sends.iter().map(|p| builder.outgoing_identity(p)).collect::<Result<Vec<_>, _>>()?;
        let incoming: Vec<_> = receives.iter().map(|p| builder.incoming_identity(p)).collect();
        let here = self.own.media().find_map(|m| m.transport.as_ref()).map(|t| t.address.ip());
        // One machine has one time of day; those of two may differ.
        // Two ends at one relay share its address and no clock.
        let is_hidden = self.ice.as_ref().is_some_and(PreparedIce::is_relay_only);
        let synchronised_clocks = a.remote.ip().is_loopback() || Some(a.remote.ip()) == here && !is_hidden;
        let end = EndConfig {
            cname: self.own.cname.clone().unwrap_or_default(),
            synchronised_clocks,
            lip_synchronisation: incoming.len() > 1,
            // Whoever can write RTCP in the clear could foretell anything.
            capacity_vectors: a.has(Feedback::CapacityVector) && (a.keys.is_some() || a.remote.ip().is_loopback()),
            ..builder.end(clock, out.first(), incoming.first())
        };
        let mut plan = EndPlan { group: config.paths.group(config.limits.ceiling)?, ..EndPlan::new(end) };
        let is_by_ice = a.ice.is_some() && self.ice.is_some();
        let factory = PathFactory {
            agreement: a.clone(),
            config: config.clone(),
            registry: registry.clone(),
            seed: builder.seed,
            sends: !sends.is_empty() && !sources.is_empty(),
            receives: !incoming.is_empty(),
        };
        let count = if is_by_ice { 1 } else { a.paths.len() };
        for path in 0..count {
            plan.paths.push(factory.path(path, now, &mut plan.end.extensions)?);
        }
        // With ICE, paths are added once their agents have a pair.
        plan.end.multipath |= is_by_ice && a.extension(Extension::Mprtp).is_some();
        let sent: Vec<_> = out.into_iter().zip(&sends).zip(sources).collect();
        let identities: Vec<_> = sent.iter().map(|((identity, _), _)| *identity).collect();
        for ((identity, planned), source) in sent {
            let options = OutgoingOptions {
                packetiser: builder.packetiser(),
                retransmission: repairs(&a.streams[planned.stream]).then(RetransmissionConfig::default),
                max_queue_age: Some(config.playout_deadline),
                ..OutgoingOptions::default()
            };
            plan.outgoing.push(OutgoingConfig::new(identity, source.source, source.demand).with(options));
        }
        for (identity, planned) in incoming.into_iter().zip(&receives) {
            plan.incoming.push(builder.incoming_config(identity, &a.streams[planned.stream]));
        }
        let endpoint = plan.make(now).map_err(CallError::Streams)?;
        let outgoing: Vec<_> = endpoint.stats().outgoing_ids().zip(identities).collect();
        let ids: Vec<_> = endpoint.stats().incoming_ids().collect();
        let srtp = match &a.keys {
            Some((own, theirs)) => Some(SrtpSession::new(own, theirs)?),
            None => None,
        };
        // With keys the call cannot be taken over.
        let peer = if srtp.is_some() { Peer::Follow(a.remote) } else { Peer::At(a.remote) };
        let carrier = match a.dccp {
            Some(dccp) => builder.carry(endpoint, dccp, self.own.media().find_map(|m| m.transport.as_ref()?.dccp))?,
            None => endpoint.into(),
        };
        let is_protected = srtp.is_some();
        let mut sockets = self.sockets.into_iter();
        let (socket, begins) = sockets.next().ok_or(CallError::NoStreams)?;
        let is_multipath = a.paths.len() > 1 || is_by_ice && a.extension(Extension::Mprtp).is_some();
        if is_multipath {
            use_own_interface(&socket, a.remote);
        }
        let mut end = LiveEnd::new(socket, config.udp, peer, carrier)?;
        if !is_by_ice {
            end.watch_interface(PathId::FIRST, &begins, config.udp);
        }
        for (&remote, n) in a.paths.iter().zip(0u8..).take(count).skip(1) {
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
        if let (Some(theirs), Some(ice)) = (&a.ice, self.ice) {
            // Addresses seen from outside are those of the sockets that are there; the others have none yet.
            let seen = ice.reflexive.iter().copied().chain(std::iter::repeat(None));
            let all = [begins].into_iter().chain(self.begins).zip(seen).collect();
            for (socket, _) in sockets {
                use_own_interface(&socket, a.remote);
                end.add_port(socket, config.udp)?;
            }
            let paths = IcePaths::new(ice.config(self.offered));
            let live = LiveIce::new(paths, factory.into_new_path(), config.udp);
            let relays = self.lent.into_iter().flat_map(|lent| lent.into_relays(now)).collect();
            end.set_ice(live, all, relays, theirs, now);
        }
        Ok(JoinedEnd { end, outgoing, incoming: ids, synchronised_clocks })
    }
}

impl EndBuilder<'_> {
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
            rlc_payload_type: s.rlc.unwrap_or(123),
            retransmission_payload_type: s.retransmission.unwrap_or(122),
            mid: s.mid.filter(|_| names(Extension::Mid)),
            ..StreamIdentity::default()
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

    /// The end, which reports by the source of its first outgoing stream, or by the one named in its description.
    fn end(&self, clock: &Clock, out: Option<&StreamIdentity>, incoming: Option<&StreamIdentity>) -> EndConfig {
        let a = self.agreement;
        let named = a.streams.first().map(|s| (s.sources, s.remote)).unwrap_or_default();
        EndConfig {
            ssrc: out.map_or(named.0.media.unwrap_or(self.seed as u32), |o| o.ssrc),
            remote_ssrc: incoming.map_or(named.1.media.unwrap_or(0), |i| i.ssrc),
            seed: self.seed,
            session_bandwidth: self.config.limits.ceiling,
            extensions: HeaderExtensions {
                transport_sequence_id: a.extension(Extension::TransportSequence).unwrap_or(3),
                abs_send_time_id: a.extension(Extension::AbsSendTime).unwrap_or(2),
                mid_id: a.extension(Extension::Mid).unwrap_or(9),
                rid_id: a.extension(Extension::Rid).unwrap_or(10),
                subflow_id: a.extension(Extension::Mprtp).unwrap_or(6),
                ..HeaderExtensions::default()
            },
            ntp_epoch: clock.ntp_epoch(),
            header_overhead: if a.remote.is_ipv6() { 48 } else { 28 },
            latch: Some(LATCH),
            ..EndConfig::default()
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
