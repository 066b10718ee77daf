//! A call between two processes: described, agreed on, and made into an end.

use crate::call::carrier::{Carrier, over_dccp};
use crate::call::config::{CallConfig, adaptive};
use crate::call::decode::{DecodeSummary, ReceivingVideo, VideoReceive};
use crate::call::encode::{EncodeSummary, SendingVideo, VideoSend};
use crate::call::end::{LiveEnd, Peer, RunUntil};
use crate::call::observer::{CallObserver, EndSummary};
use crate::call::{CallError, random};
use crate::clock::Clock;
use crate::sdp::{
    Agreement, DCCP_PORT, DccpMedia, Description, Direction, Extension, Feedback, Payload, Setup as DccpSetup,
};
use crate::signal::{Exchange, Signalling};
use crate::srtp::{SrtpKey, SrtpSession, Suite};
use crate::udp::Waker;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_cc::{FeedbackFormat, Registry, Setup, Transport};
use weir_dccp::connection::{Ccids, Config};
use weir_media::{EncoderConfig, Packetiser, PayloadFormat, Source, VideoCodec};
use weir_session::dccp::DccpEnd;
use weir_session::{Endpoint, EndpointConfig, NackConfig, ReceiveConfig, RetransmissionConfig, SendConfig};
use weir_units::{Ecn, TimeDelta, Timestamp};

/// After how long a silence another source of the other end takes the place of the one before.
const LATCH: TimeDelta = TimeDelta::from_millis(500);

/// What one end brings into a call with another process.
#[derive(Clone, PartialEq, Debug)]
pub struct Party {
    /// Controller, rates, playout and protection.
    pub call: CallConfig,
    /// Codecs, the preferred one first.
    pub codecs: Vec<VideoCodec>,
    /// What the pictures are like, for the description.
    pub pictures: EncoderConfig,
    /// Whether it sends, receives or both.
    pub direction: Direction,
    /// The address that media are to come to; `None` takes the one that the signalling connection goes by, or the
    /// loopback device's where there is none.
    pub ip: Option<IpAddr>,
    /// The port; 0 for any.
    pub port: u16,
}

/// A call that both ends have agreed on.
#[derive(Debug)]
pub struct Joined {
    /// What they have agreed on.
    pub agreement: Agreement,
    socket: UdpSocket,
    own: Description,
}

impl Party {
    /// Offers a call and waits for the answer.
    ///
    /// # Errors
    /// Where the other end cannot be reached, its answer cannot be used, or the flag is raised.
    pub fn connect(&self, by: &Signalling, stop: &AtomicBool) -> Result<Joined, CallError> {
        let exchange = Exchange::connect(by)?;
        let (socket, own) = self.describe(exchange.local_ip())?;
        let answer = exchange.offer(&own, stop)?;
        Ok(Joined { agreement: own.accept(&answer)?, socket, own })
    }

    /// Waits for an offer and answers it.
    ///
    /// # Errors
    /// Where nobody can come, the offer cannot be used, or the flag is raised.
    pub fn listen(&self, by: &Signalling, stop: &AtomicBool) -> Result<Joined, CallError> {
        let (exchange, offer) = Exchange::listen(by, stop)?;
        let (socket, own) = self.describe(exchange.local_ip())?;
        let (own, agreement) = own.answer(&offer)?;
        exchange.answer(&own)?;
        Ok(Joined { agreement, socket, own })
    }

    fn describe(&self, reached_at: Option<IpAddr>) -> Result<(UdpSocket, Description), CallError> {
        let ip = self.ip.or(reached_at).unwrap_or(Ipv4Addr::LOCALHOST.into());
        let at = SocketAddr::new(ip, self.port);
        let socket = UdpSocket::bind(at).map_err(CallError::socket(format!("binding a UDP socket to {at}")))?;
        let address = socket.local_addr().map_err(CallError::socket("asking for a socket's address"))?;
        let number = random()?;
        let mut payloads = Vec::new();
        for (i, &codec) in self.codecs.iter().enumerate() {
            // Dynamic payload types (RFC 3551, section 6), two for each codec.
            let pt = 96 + 2 * i as u8;
            let fmtp = PayloadFormat::new(codec).fmtp(&self.pictures);
            payloads.push((pt, Payload::Video(codec, Some(fmtp))));
            payloads.push((pt + 1, Payload::Retransmission(pt)));
        }
        payloads.extend([(120, Payload::FlexFec), (121, Payload::ReedSolomon)]);
        let dccp = matches!(self.call.transport, Some(Transport::Dccp { .. })).then(|| {
            // Who sends connects.
            let setup = if self.direction.sends() { DccpSetup::Active } else { DccpSetup::Passive };
            DccpMedia { port: DCCP_PORT, setup }
        });
        if dccp.is_some() && self.call.srtp.is_some() {
            return Err(CallError::DccpInTheClear);
        }
        let mut keys = Vec::new();
        if self.call.srtp.is_some() {
            for (suite, tag) in Suite::ALL.into_iter().zip(1..) {
                keys.push((tag, SrtpKey::random(suite)?));
            }
        }
        let ssrc = (number as u32).max(1);
        let description = Description {
            session: number >> 33,
            address,
            direction: self.direction,
            payloads,
            feedback: Feedback::ALL.iter().map(|f| f.0).collect(),
            extensions: vec![(3, Extension::TransportSequence), (2, Extension::AbsSendTime)],
            keys,
            dccp,
            ssrc: Some(ssrc),
            repair_ssrc: Some(ssrc ^ 1 << 31),
            retransmission_ssrc: Some(ssrc ^ 1 << 30),
            cname: Some(format!("{number:016x}@weir")),
            rtcp_mux: true,
            controller: self.direction.sends().then(|| self.call.controller.clone()),
        };
        Ok((socket, description))
    }
}

/// Feedback per packet that a controller wants and the other end does not give.
fn unfit(controller: &str, wants: &str) -> CallError {
    CallError::Unfit { controller: controller.into(), wants: wants.into() }
}

impl Joined {
    /// The end of the call. `source` is what it sends, where it does.
    ///
    /// # Errors
    /// Where the controller needs feedback that the other end does not give, or cannot be made.
    pub fn into_end(
        self,
        config: &CallConfig,
        registry: &Registry,
        clock: &Clock,
        source: Option<Source>,
    ) -> Result<LiveEnd, CallError> {
        let (a, now) = (&self.agreement, clock.now());
        let seed = random()?;
        let setup = |params| Setup { limits: config.limits, start_rate: config.start_rate, now, seed, params };
        let is_v6 = a.remote.is_ipv6();
        let here = self.own.address.ip();
        let mut endpoint = EndpointConfig {
            ssrc: self.own.ssrc.unwrap_or(seed as u32),
            remote_ssrc: a.remote_ssrc.unwrap_or(0),
            cname: self.own.cname.clone().unwrap_or_default(),
            seed,
            payload_type: a.payload_type,
            parity_payload_type: a.flexfec.unwrap_or(120),
            reed_solomon_payload_type: a.reed_solomon.unwrap_or(121),
            repair_ssrc: self.own.repair_ssrc,
            remote_repair_ssrc: a.remote_repair_ssrc,
            retransmission_payload_type: a.retransmission.unwrap_or(122),
            retransmission_ssrc: self.own.retransmission_ssrc,
            remote_retransmission_ssrc: a.remote_retransmission_ssrc,
            session_bandwidth: config.limits.ceiling,
            transport_sequence_id: a.extension(Extension::TransportSequence).unwrap_or(3),
            abs_send_time_id: a.extension(Extension::AbsSendTime).unwrap_or(2),
            ntp_epoch: clock.ntp_epoch(),
            // One machine has one time of day; of two nobody knows.
            synchronised_clocks: a.remote.ip().is_loopback() || a.remote.ip() == here,
            header_overhead: if is_v6 { 48 } else { 28 },
            latch: Some(LATCH),
            ..EndpointConfig::default()
        };
        let repairs = a.retransmission.is_some() && a.has(Feedback::Nack);
        let mut send = None;
        if let Some(source) = source.filter(|_| a.direction.sends()) {
            let name = &config.controller;
            if config.transport(registry) != Transport::Udp && a.dccp.is_none() {
                return Err(CallError::OnlyOverDccp { controller: name.clone() });
            }
            let pair = registry.make(name, &setup(config.params.clone()))?;
            let spec = registry.get(name);
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
            send = Some(SendConfig {
                packetiser: Packetiser { max_payload: config.payload, ..Packetiser::default() },
                per_packet_feedback: feedback.is_some(),
                reports,
                retransmission: repairs.then(RetransmissionConfig::default),
                max_queue_age: Some(config.playout_deadline),
                ..SendConfig::new(source, pair.sender, config.limits)
            });
        }
        let receive = a.direction.receives().then(|| {
            // The other end's controller has a half here, where it is Weir; else what feedback was agreed on is given.
            let theirs = a.remote_controller.as_deref().and_then(|name| registry.get(name));
            let standard = || {
                let has = |f: FeedbackFormat| match f {
                    FeedbackFormat::TransportWide => a.has(Feedback::TransportWide),
                    FeedbackFormat::CongestionControl => a.has(Feedback::CongestionControl),
                };
                registry.specs().iter().filter_map(|s| s.feedback).find(|f| has(f.format))
            };
            let half = theirs.and_then(|s| registry.make(&s.name, &setup(Vec::new())).ok()).and_then(|p| p.receiver);
            ReceiveConfig {
                feedback: theirs.map_or_else(standard, |s| s.feedback),
                reports: theirs.and_then(|s| s.reports),
                nack: repairs.then(NackConfig::default),
                controller: half,
                playout_deadline: Some(config.playout_deadline),
                adaptive_playout: adaptive(config, !repairs),
                content: true,
                ..ReceiveConfig::default()
            }
        });
        let srtp = match &a.keys {
            Some((own, theirs)) => Some(SrtpSession::new(own, theirs)?),
            None => None,
        };
        // With keys nobody can take the call over.
        let peer = if srtp.is_some() { Peer::Follow(a.remote) } else { Peer::At(a.remote) };
        let endpoint = Endpoint::new(endpoint, send, receive, now);
        let carrier = match a.dccp {
            Some(dccp) => carry(endpoint, dccp, self.own.dccp, config, registry, (now, is_v6))?,
            None => endpoint.into(),
        };
        let mut end = LiveEnd::new(self.socket, config.udp, peer, carrier)?;
        end.set_srtp(srtp);
        Ok(end)
    }
}

/// An end on a DCCP connection. It sends by its own CCID, where it has one, and takes whatever the other end sends by.
fn carry(
    endpoint: Endpoint,
    theirs: DccpMedia,
    ours: Option<DccpMedia>,
    config: &CallConfig,
    registry: &Registry,
    (now, is_v6): (Timestamp, bool),
) -> Result<Carrier, CallError> {
    let known = weir_dccp::ccid::Registry::builtin();
    let every: Vec<u8> = known.specs().iter().map(|s| s.number).collect();
    let own = match config.transport(registry) {
        Transport::Dccp { ccid } => vec![ccid],
        _ => every.clone(),
    };
    let ccids = Ccids { send: own, receive: every, params: Vec::new() };
    let (connection, dccp) = over_dccp(config, ccids, is_v6)?;
    let local_port = ours.map_or(DCCP_PORT, |d| d.port);
    let connection = Config { local_port, remote_port: theirs.port, ..connection };
    if theirs.setup == DccpSetup::Active {
        return Ok(DccpEnd::connect(endpoint, connection, dccp, now)?.into());
    }
    Ok(DccpEnd::listen(endpoint, connection, dccp).into())
}

/// The pictures of a call with another process.
#[derive(Debug, Default)]
pub struct VideoCall {
    /// What is sent, where this end sends.
    pub send: Option<VideoSend>,
    /// What is done with what comes, where this end receives.
    pub receive: Option<VideoReceive>,
}

/// What an end tells of a call with another process.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PartySummary {
    /// Packets.
    pub end: EndSummary,
    /// Pictures sent.
    pub sent: Option<EncodeSummary>,
    /// Pictures received.
    pub received: Option<DecodeSummary>,
}

/// Runs a call that was agreed on: until the time is over, the flag is raised, the camera ends, or the other end says
/// goodbye.
///
/// # Errors
/// Where the end cannot be made or its socket fails.
pub fn run_party<O: CallObserver>(
    joined: Joined,
    config: &CallConfig,
    registry: &Registry,
    video: VideoCall,
    duration: Option<TimeDelta>,
    stop: &AtomicBool,
    observer: &mut O,
) -> Result<PartySummary, CallError> {
    let clock = Clock::of_day();
    let waker = Waker::new().map(Arc::new).map_err(CallError::socket("making a descriptor to wake a thread by"))?;
    let (mut source, mut sending) = (None, None);
    if let Some(send) = video.send.filter(|_| joined.agreement.direction.sends()) {
        let (pushed, started) = SendingVideo::start(send, clock, waker.clone(), false)?;
        (source, sending) = (Some(Source::Custom(Box::new(pushed))), Some(started));
    }
    let mut end = joined.into_end(config, registry, &clock, source)?;
    end.set_waker(Some(waker.clone()));
    end.meter_cpu();
    let mut receiving = match video.receive {
        Some(receive) => Some(ReceivingVideo::start(receive, clock, waker)?),
        None => None,
    };
    let ended = sending.as_ref().map(SendingVideo::ended);
    let at = duration.map(|d| clock.now() + d);
    let until = RunUntil { at, stop, ended: ended.as_deref(), bye: true };
    let done = end.run(&clock, &until, &mut (observer, &mut receiving));
    let summary = end.summary(clock.now());
    let sent = sending.map(SendingVideo::finish).transpose()?;
    let received = receiving.map(ReceivingVideo::finish).transpose()?;
    done.map(|()| PartySummary { end: summary, sent, received })
}
