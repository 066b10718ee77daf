//! The session of a call, from what was negotiated.

use super::sound::{Sound, SoundPlan};
use super::{LinkPlan, Settings, StartError};
use crate::room::{MemberCall, MemberCallPlan, Session};
use crate::sdp::Negotiated;
use std::sync::Arc;
use weir_cc::{FeedbackPlan, Receiver as Estimator, Registry, Sender as Controller, circuit_breaker, feedback_guard};
use weir_fec::Protection;
use weir_live::call::{CallError, Camera, ReceivingVideo, SendingVideo, VideoReceive, VideoSend, random};
use weir_live::clock::Clock;
use weir_live::udp::Waker;
use weir_media::resilience::{Applicability, PolicyConfig};
use weir_media::{AdaptivePlayout, EncoderConfig, OnDamage, Packetiser, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    EndConfig, EndPlan, Endpoint, HeaderExtensions, IncomingConfig, NackConfig, OutgoingConfig, OutgoingOptions,
    ParityFormat, PathConfig, ReceivingPath, Red, RepairChoice, RetransmissionConfig, SendingPath, StreamIdentity,
};
use weir_units::{DataRate, DataSize, TimeDelta};

/// Longest RTP payload: with extensions, SRTP, UDP and IPv6 a packet stays below libwebrtc's 1,200 bytes and its headers.
const PAYLOAD: DataSize = DataSize::from_bytes(1_150);
/// Longest time from capture to playout of what the browser sends.
const DEADLINE: TimeDelta = TimeDelta::from_millis(400);
/// Longest time in the queue of the pacer; browsers play what comes late. A key frame of lively pictures takes more than half a second at a
/// low rate: with a shorter time here it would be discarded, and requested again, without end. libwebrtc's is 2 s (`kMaxExpectedQueueLength`).
const QUEUE: TimeDelta = TimeDelta::from_secs(2);
/// Time for which packets are kept for retransmission. libwebrtc keeps 600 packets for up to three times the greater of 1 s and three round
/// trips (`kPacketCullingDelayFactor`, `kMinPacketDurationRtt`): 9 s at a round trip of 1 s, with a full queue before a slow link. The bound
/// on their size is the session's.
const KEPT: TimeDelta = TimeDelta::from_secs(9);
/// Payload types that no offer can give to other formats: those of repair packets that browsers do not send.
const UNUSED: (u8, u8) = (1, 2);

/// This end's names in RTP.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) ssrc: u32,
    pub(super) rtx_ssrc: u32,
    pub(super) cname: String,
    seed: u64,
}

impl Names {
    pub(super) fn random() -> Result<Self, CallError> {
        let (seed, sources) = (random()?, random()?);
        // Neither is 0, they differ, and the eight zero bits are for sections beside the first.
        let ssrc = (sources as u32).max(1 << 8) & !0xff;
        Ok(Self { ssrc, rtx_ssrc: ssrc ^ (1 << 30), cname: format!("{:016x}", random()?), seed })
    }
}

/// Encoder and decoder, or the place in a room, before the call begins.
pub(super) struct Media {
    member_call: Option<MemberCallPlan>,
    sound: Option<SoundPlan>,
    send: Option<VideoSend>,
    receive: Option<VideoReceive>,
}

impl Media {
    pub(super) fn new(n: &Negotiated, camera: Camera, start_rate: DataRate) -> Result<Self, StartError> {
        let sound = n.further.first().map(SoundPlan::new).transpose()?;
        let mut media = Self { member_call: None, sound, send: None, receive: None };
        if n.direction.sends {
            let (width, height) = camera.size();
            let frame_rate = camera.rate().as_f64();
            let config = EncoderConfig { frame_rate, bit_rate: start_rate, ..EncoderConfig::live(width, height) };
            media.send = Some(VideoSend { camera, encoder: weir_codecs::encoder(n.codec, &config)? });
        }
        if n.direction.receives {
            let decoder = weir_codecs::decoder(n.codec)?;
            media.receive = Some(VideoReceive { decoder, on_damage: OnDamage::Show, record: None, quality: false });
        }
        Ok(media)
    }
    pub(super) const fn of_room(member_call: MemberCallPlan) -> Self {
        Self { member_call: Some(member_call), sound: None, send: None, receive: None }
    }
}

/// Initial state of a call once its keys are there.
pub(super) struct CallStart {
    pub(super) negotiated: Negotiated,
    pub(super) settings: Settings,
    pub(super) names: Names,
    pub(super) controller: Controller,
    /// Estimates what the other end may send, where it asks for that (REMB).
    pub(super) estimator: Option<Estimator>,
    pub(super) media: Media,
    pub(super) link: Option<LinkPlan>,
}

/// A call's session, its encoder and its decoder, or its place in a room.
pub(super) struct Ends {
    pub(super) endpoint: Endpoint,
    pub(super) member_call: Option<MemberCall>,
    pub(super) sound: Option<Sound>,
    pub(super) sending: Option<SendingVideo>,
    pub(super) receiving: Option<ReceivingVideo>,
}

impl CallStart {
    pub(super) fn begin(
        self,
        registry: &Registry,
        clock: Clock,
        waker: &Arc<Waker>,
        v6: bool,
    ) -> Result<Ends, StartError> {
        let Self { negotiated: n, settings, names, controller, estimator, media, link: _ } = self;
        if let Some(plan) = media.member_call {
            let session = Session {
                negotiated: &n,
                limits: settings.limits,
                adapts: registry.get(&settings.controller).is_some_and(|c| c.adapts),
                ssrc: names.ssrc,
                cname: &names.cname,
                seed: names.seed,
                controller,
                clock,
                header_overhead: if v6 { 48 } else { 28 },
            };
            let (endpoint, member_call) = MemberCall::begin(plan, session).map_err(CallError::Streams)?;
            return Ok(Ends { endpoint, member_call: Some(member_call), sound: None, sending: None, receiving: None });
        }
        let mut plan = EndPlan::new(config(&n, &settings, &names, &clock, v6));
        let (own, theirs) = identities(&n, &names);
        let mut path = PathConfig::default();
        let repairs = n.nack && n.rtx.is_some();
        let has_fec = n.flexfec.is_some() || n.ulpfec.is_some();
        let mut sending = None;
        if let Some(video) = media.send {
            let frame_rate = video.camera.rate().as_f64();
            let (source, started) = SendingVideo::start(video, clock, waker.clone(), false)?;
            sending = Some(started);
            let options = OutgoingOptions {
                packetiser: Packetiser { max_payload: PAYLOAD, ..Packetiser::default() },
                retransmission: repairs.then(|| RetransmissionConfig { kept: KEPT, ..RetransmissionConfig::default() }),
                max_queue_age: Some(QUEUE),
                repair: if has_fec { RepairChoice::Controller } else { RepairChoice::Fixed(Protection::Off) },
                resilience: has_fec.then(|| protection(repairs, frame_rate)),
                ..OutgoingOptions::default()
            };
            let source = Source::Custom(Box::new(source));
            plan.outgoing.push(OutgoingConfig::new(own, source, Demand::default()).with(options));
            path.sending = Some(SendingPath {
                per_packet_feedback: n.reports.is_some(),
                circuit_breaker: Some(circuit_breaker::Config::default()),
                feedback_guard: registry
                    .get(&settings.controller)
                    .is_some_and(|s| s.adapts)
                    .then(|| feedback_guard::Config::to_floor(settings.limits.floor)),
                ..SendingPath::new(controller)
            });
        }
        let receiving = match media.receive {
            Some(video) => Some(ReceivingVideo::start(video, clock, waker.clone())?),
            None => None,
        };
        if receiving.is_some() {
            plan.incoming.push(IncomingConfig {
                nack: repairs.then(NackConfig::default),
                playout_deadline: Some(DEADLINE),
                adaptive_playout: Some(AdaptivePlayout::up_to(DEADLINE)),
                content: true,
                ..IncomingConfig::new(theirs, MediaKind::Video)
            });
            path.receiving = Some(ReceivingPath {
                feedback: n.reports.map(|format| FeedbackPlan { format, ..FeedbackPlan::LIBWEBRTC }),
                reports: None,
                controller: estimator,
            });
        }
        let now = clock.now();
        let mut endpoint = plan.on(path).make(now).map_err(CallError::Streams)?;
        let section = n.further.iter().enumerate().next();
        let sound =
            media.sound.zip(section).map(|(plan, s)| plan.begin(s, names.ssrc, &mut endpoint, now)).transpose()?;
        Ok(Ends { endpoint, member_call: None, sound, sending, receiving })
    }
}

/// When repair packets are sent, and how many: where retransmissions would be too late or too few, by the loss that the other end
/// reports.
fn protection(repairs: bool, frame_rate: f64) -> PolicyConfig {
    let all = Applicability::default();
    let applicability = if repairs { all } else { all.without_retransmission() };
    PolicyConfig { applicability, frame_rate, ..PolicyConfig::default() }
}

/// Both directions of the picture in RTP: sent, and received.
fn identities(n: &Negotiated, names: &Names) -> (StreamIdentity, StreamIdentity) {
    // Those that are written as packets leave.
    let zeroed = [n.transport_sequence, n.abs_send_time].map(Option::unwrap_or_default);
    let parity_format = match n.ulpfec {
        Some(u) => {
            ParityFormat::UlpFec(Red { payload_type: u.red, ulpfec: u.payload_type, retransmission: u.rtx, zeroed })
        }
        None => ParityFormat::FlexFec03 { zeroed },
    };
    let own = StreamIdentity {
        payload_type: n.payload_type,
        parity_payload_type: n.flexfec.map_or(UNUSED.0, |f| f.payload_type),
        parity_format,
        reed_solomon_payload_type: UNUSED.1,
        rlc_payload_type: UNUSED.1,
        retransmission_payload_type: n.rtx.unwrap_or(UNUSED.0),
        retransmission_ssrc: Some(names.rtx_ssrc),
        ..StreamIdentity::of(names.ssrc)
    };
    let ssrc = n.ssrc.unwrap_or(0);
    (own, StreamIdentity { ssrc, retransmission_ssrc: n.rtx_ssrc, repair_ssrc: n.repair_ssrc, ..own })
}

fn config(n: &Negotiated, settings: &Settings, names: &Names, clock: &Clock, v6: bool) -> EndConfig {
    EndConfig {
        ssrc: names.ssrc,
        remote_ssrc: n.ssrc.unwrap_or(0),
        cname: names.cname.clone(),
        seed: names.seed,
        session_bandwidth: settings.limits.ceiling,
        extensions: HeaderExtensions {
            transport_sequence_id: n.transport_sequence.unwrap_or(1),
            transport_sequence: n.transport_sequence.is_some(),
            abs_send_time_id: n.abs_send_time.unwrap_or(2),
            abs_send_time: n.remb,
            ..HeaderExtensions::default()
        },
        ntp_epoch: clock.ntp_epoch(),
        header_overhead: if v6 { 48 } else { 28 },
        ..EndConfig::default()
    }
}
