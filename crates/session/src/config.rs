//! Configuration of a call end.

use crate::allocation::{Demand, MediaKind};
use crate::identity::{Label, ParityFormat, StreamIdentity};
use crate::multipath::{AnyScheduler, Coupling, PathPolicy, SkewPlayoutConfig};
use crate::nack::NackConfig;
use crate::picture::PictureFeedback;
use crate::protection::RepairChoice;
use crate::recovery::RepairReception;
use crate::resilience::ResilienceConfig;
use crate::retransmission::RetransmissionConfig;
use crate::session_params::SessionParams;
use weir_cc::{FeedbackPlan, Limits, Receiver, ReportPlan, Sender, circuit_breaker, feedback_guard};
use weir_media::{AdaptivePlayout, Packetiser, Source};
use weir_units::{DataRate, Ecn, TimeDelta};

/// Configuration of both directions of a call end.
#[derive(Clone, PartialEq, Debug)]
pub struct EndpointConfig {
    /// This end's synchronisation source.
    pub ssrc: u32,
    /// The other end's synchronisation source; 0 if unknown, in which case the first source with this payload type is
    /// used.
    pub remote_ssrc: u32,
    /// Silence of the other end after which another source of the same payload type replaces it, for instance when the
    /// other end has been restarted; after a BYE, at once. `None` disables this. This end then also changes its own
    /// source identifier on a collision (RFC 3550, section 8.2).
    pub latch: Option<TimeDelta>,
    /// Canonical name in SDES (RFC 7022 specifies how to choose it).
    pub cname: String,
    /// Seed of all random values: first sequence number and timestamp, RTCP timing.
    pub seed: u64,
    /// RTP payload type of the media.
    pub payload_type: u8,
    /// RTP payload type of parity repair packets.
    pub parity_payload_type: u8,
    /// Their format.
    pub parity_format: ParityFormat,
    /// RTP payload type of Reed-Solomon repair packets.
    pub reed_solomon_payload_type: u8,
    /// Synchronisation source of this end's repair stream; `None` inverts the top bit of [`Self::ssrc`].
    pub repair_ssrc: Option<u32>,
    /// Synchronisation source of the other end's repair stream, by the same rule.
    pub remote_repair_ssrc: Option<u32>,
    /// RTP payload type of retransmissions (RFC 4588).
    pub retransmission_payload_type: u8,
    /// Synchronisation source of this end's retransmission stream; `None` inverts the second bit of [`Self::ssrc`].
    pub retransmission_ssrc: Option<u32>,
    /// Synchronisation source of the other end's retransmission stream, by the same rule.
    pub remote_retransmission_ssrc: Option<u32>,
    /// Synchronisation source of a device on the path whose notices are accepted, such as a base station; `None`
    /// accepts none.
    pub station_ssrc: Option<u32>,
    /// RTP clock in Hz; 90,000 for video.
    pub clock_rate: u32,
    /// Session bandwidth, of which RTCP takes 5 %.
    pub session_bandwidth: DataRate,
    /// Least average spacing of regular RTCP packets (RFC 4585, section 3.4); libwebrtc's is 1 s for video.
    pub t_rr_interval: TimeDelta,
    /// Header extension identifier of the transport-wide sequence number.
    pub transport_sequence_id: u8,
    /// Header extension identifier of the absolute send time.
    pub abs_send_time_id: u8,
    /// Whether outgoing RTP carries the absolute send time.
    pub abs_send_time: bool,
    /// Whether outgoing RTP carries the transport-wide sequence number.
    pub transport_sequence: bool,
    /// ECN field of outgoing RTP.
    pub ecn: Ecn,
    /// NTP seconds (since 1900) at this end's `Timestamp::ZERO`.
    pub ntp_epoch: u32,
    /// Whether the clocks of both ends are synchronised, so that sender reports give capture times for playout.
    /// Otherwise the first packet is assumed to arrive as soon as it was captured.
    pub synchronised_clocks: bool,
    /// Whether audio and video are played in synchrony: adaptive playout delays of several streams follow each other,
    /// and without synchronised clocks all streams use one clock, derived from their sender reports.
    pub lip_synchronisation: bool,
    /// Bytes of UDP and IP headers per datagram, included in RTCP's bandwidth (RFC 3550, section 6.2): 28 for IPv4.
    pub header_overhead: u32,
    /// Picture feedback.
    pub picture: PictureFeedback,
    /// Header extension identifier of the MID (RFC 9143), 1 to 14.
    pub mid_id: u8,
    /// MID of the first stream's media section, the same at both ends; `None` sends no MID.
    pub rid_id: u8,
    /// RID of the first stream, if it is an encoding of a simulcast, the same at both ends; `None` sends no RID.
    pub mid: Option<Label>,
    /// The encoding of a simulcast that the first stream is, the same at both ends; `None` sends no RID.
    pub rid: Option<Label>,
    /// Identity of the first incoming stream if it differs from the fields above, which then describe the outgoing one
    /// only. Its source is [`Self::remote_ssrc`] in any case.
    pub first_incoming: Option<StreamIdentity>,
    /// Header extension identifier of the subflow number (MPRTP), 1 to 255, used if the call has several paths.
    pub subflow_id: u8,
    /// Parameters that can be changed during the session.
    pub params: SessionParams,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            ssrc: 1,
            remote_ssrc: 2,
            latch: None,
            cname: "weir".into(),
            seed: 1,
            payload_type: 96,
            parity_payload_type: 97,
            parity_format: ParityFormat::default(),
            reed_solomon_payload_type: 98,
            repair_ssrc: None,
            remote_repair_ssrc: None,
            retransmission_payload_type: 99,
            retransmission_ssrc: None,
            remote_retransmission_ssrc: None,
            station_ssrc: None,
            clock_rate: 90_000,
            session_bandwidth: DataRate::from_mbps(2),
            t_rr_interval: TimeDelta::from_secs(1),
            transport_sequence_id: 3,
            abs_send_time_id: 2,
            abs_send_time: false,
            transport_sequence: false,
            ecn: Ecn::NotEct,
            // 1 January 2026, 00:00 UTC.
            ntp_epoch: 3_976_214_400,
            synchronised_clocks: false,
            lip_synchronisation: false,
            header_overhead: 28,
            picture: PictureFeedback::default(),
            mid_id: 9,
            rid_id: 10,
            mid: None,
            rid: None,
            first_incoming: None,
            subflow_id: 6,
            params: SessionParams::default(),
        }
    }
}

impl EndpointConfig {
    /// The first outgoing stream.
    pub fn outgoing(&self) -> StreamIdentity {
        StreamIdentity {
            ssrc: self.ssrc,
            payload_type: self.payload_type,
            clock_rate: self.clock_rate,
            parity_payload_type: self.parity_payload_type,
            parity_format: self.parity_format,
            reed_solomon_payload_type: self.reed_solomon_payload_type,
            retransmission_payload_type: self.retransmission_payload_type,
            repair_ssrc: self.repair_ssrc,
            retransmission_ssrc: self.retransmission_ssrc,
            mid: self.mid,
            rid: self.rid,
        }
    }
    /// The first incoming stream.
    pub fn incoming(&self) -> StreamIdentity {
        if let Some(first) = self.first_incoming {
            return StreamIdentity { ssrc: self.remote_ssrc, ..first };
        }
        StreamIdentity {
            ssrc: self.remote_ssrc,
            repair_ssrc: self.remote_repair_ssrc,
            retransmission_ssrc: self.remote_retransmission_ssrc,
            ..self.outgoing()
        }
    }
}

/// The sending direction: its first stream, and the path that all streams use.
pub struct SendConfig {
    /// The source of frames.
    pub source: Source,
    /// How frames are packetised.
    pub packetiser: Packetiser,
    /// Whether the other end sends per-packet feedback; sent packets are remembered only in that case.
    pub per_packet_feedback: bool,
    /// Receiver reports required by the controller, as planned by the other end. With run lengths, sent packets are
    /// remembered for them; sender reports are sent equally often, so that the receiver knows the round-trip time.
    pub reports: Option<ReportPlan>,
    /// What decides on repair packets.
    pub repair: RepairChoice,
    /// How lost packets are retransmitted; `None` disables it, unless [`Self::resilience`] is set and retransmission applies
    /// there. Retransmissions are taken out of the media rate.
    pub retransmission: Option<RetransmissionConfig>,
    /// Policy for slice sizes and unequal protection; `None` leaves both unchanged. Protection is taken out of the
    /// media rate.
    pub resilience: Option<ResilienceConfig>,
    /// Circuit breaker that stops sending if the path stays congested or silent (RFC 8083); `None` disables it. Without
    /// its own `min_report_interval` it uses the reports' least interval.
    pub circuit_breaker: Option<circuit_breaker::Config>,
    /// How the target decreases while no feedback is received, under any controller; `None` leaves it to the
    /// controller.
    pub feedback_guard: Option<feedback_guard::Config>,
    /// The controller's sender half.
    pub controller: Sender,
    /// Bounds on the media rate.
    pub limits: Limits,
    /// Frames older than this in the RTP queue, measured from capture, are discarded except for the newest, and a key
    /// frame is requested from the source; `None` sets no limit beyond the controller's.
    pub max_queue_age: Option<TimeDelta>,
    /// The stream's demand on the target; unbounded by default.
    pub demand: Demand,
    /// Several paths; `None` uses one, for the whole call.
    pub multipath: Option<MultipathConfig>,
}

/// Paths beside the first, which has [`SendConfig::controller`]. All have the first one's other settings. Packets have
/// subflow numbers (MPRTP) even if there are none yet: [`Endpoint::add_path`](crate::Endpoint::add_path) adds them.
pub struct MultipathConfig {
    /// What chooses the path of each packet.
    pub scheduler: AnyScheduler,
    /// The controllers of the second path and those after it; more than
    /// [`MAX_PATHS`](crate::multipath::MAX_PATHS) paths in all are left out. May be empty.
    pub controllers: Vec<Sender>,
    /// Which paths share one flow's rate.
    pub coupling: Coupling,
    /// What the application wants of each path, from the first on; the default for those left out. Later:
    /// [`Endpoint::set_path_policy`](crate::Endpoint::set_path_policy).
    pub policies: Vec<PathPolicy>,
    /// Media rate that suffices, as in [`Endpoint::set_sufficient_rate`](crate::Endpoint::set_sufficient_rate).
    pub sufficient_rate: Option<DataRate>,
}

impl MultipathConfig {
    /// Paths of these controllers beside the first, each a flow of its own.
    pub fn new(scheduler: AnyScheduler, controllers: Vec<Sender>) -> Self {
        Self { scheduler, controllers, coupling: Coupling::None, policies: Vec::new(), sufficient_rate: None }
    }
}

impl SendConfig {
    /// Sends this source under this controller, with all options off.
    pub fn new(source: Source, controller: Sender, limits: Limits) -> Self {
        Self {
            source,
            packetiser: Packetiser::default(),
            per_packet_feedback: false,
            reports: None,
            repair: RepairChoice::default(),
            retransmission: None,
            resilience: None,
            circuit_breaker: None,
            feedback_guard: None,
            controller,
            limits,
            max_queue_age: None,
            demand: Demand::default(),
            multipath: None,
        }
    }
}

/// The receiving direction: its first stream, and the path on which all streams arrive.
#[derive(Default)]
pub struct ReceiveConfig {
    /// Per-packet feedback required by the other end's controller.
    pub feedback: Option<FeedbackPlan>,
    /// Regular RTCP required by the other end's controller, within RTCP's bandwidth share; `None` leaves it to
    /// RFC 3550's timer and [`EndpointConfig::t_rr_interval`].
    pub reports: Option<ReportPlan>,
    /// Whether lost packets are repaired.
    pub repair: RepairReception,
    /// When lost packets are requested (generic NACK) and retransmissions accepted; `None` disables both, unless
    /// [`Self::resilience`] is set.
    pub nack: Option<NackConfig>,
    /// Policy for requesting packets and reference pictures; `None` requests packets according to [`Self::nack`], and
    /// reference pictures whenever the application does.
    pub resilience: Option<ResilienceConfig>,
    /// What the first stream carries.
    pub media: MediaKind,
    /// The controller's receiver half.
    pub controller: Option<Receiver>,
    /// Delay from capture to playout, after which a packet is discarded; `None` plays at once and discards nothing.
    pub playout_deadline: Option<TimeDelta>,
    /// Plays frames as early as their jitter allows instead of at the deadline. The deadline is then
    /// [`AdaptivePlayout::max`], and [`Self::playout_deadline`] is ignored.
    pub adaptive_playout: Option<AdaptivePlayout>,
    /// Plays frames of video by the skew of the call's paths, instead of [`Self::adaptive_playout`] and
    /// [`Self::playout_deadline`], which are ignored then. Audio has adaptive playout up to
    /// [`SkewPlayoutConfig::max`].
    pub skew_playout: Option<SkewPlayoutConfig>,
    /// Whether packet content is kept for [`Endpoint::take_frame`](crate::Endpoint::take_frame); requires a playout
    /// deadline.
    pub content: bool,
    /// The receiver halves of the second path's controller and of those after it, one entry a path: empty with one
    /// path.
    pub further_paths: Vec<Option<Receiver>>,
    /// Whether the call can have several paths, even if it begins with one: packets are counted and reported by subflow
    /// (MPRTP), and [`Endpoint::add_path`](crate::Endpoint::add_path) works. [`Self::further_paths`] implies it.
    pub multipath: bool,
}

/// One outgoing stream.
pub struct OutgoingConfig {
    /// Its identity in RTP.
    pub identity: StreamIdentity,
    /// Its demand on the target.
    pub demand: Demand,
    /// The source of frames.
    pub source: Source,
    /// How frames are packetised.
    pub packetiser: Packetiser,
    /// What decides on repair packets.
    pub repair: RepairChoice,
    /// See [`SendConfig::retransmission`].
    pub retransmission: Option<RetransmissionConfig>,
    /// See [`SendConfig::resilience`].
    pub resilience: Option<ResilienceConfig>,
    /// See [`SendConfig::max_queue_age`].
    pub max_queue_age: Option<TimeDelta>,
    /// Picture feedback.
    pub picture: PictureFeedback,
}

impl OutgoingConfig {
    /// A stream of this source, with all options off.
    pub fn new(identity: StreamIdentity, source: Source, demand: Demand) -> Self {
        Self {
            identity,
            demand,
            source,
            packetiser: Packetiser::default(),
            repair: RepairChoice::default(),
            retransmission: None,
            resilience: None,
            max_queue_age: None,
            picture: PictureFeedback::default(),
        }
    }
}

/// One incoming stream.
#[derive(Clone, Debug)]
pub struct IncomingConfig {
    /// Its identity in RTP. If its source is unknown (0), it is the first source with its payload type that belongs to
    /// no other stream, and with its MID and RID if set.
    pub identity: StreamIdentity,
    /// The kind of media.
    pub media: MediaKind,
    /// Whether lost packets are repaired.
    pub repair: RepairReception,
    /// See [`ReceiveConfig::nack`].
    pub nack: Option<NackConfig>,
    /// See [`ReceiveConfig::resilience`].
    pub resilience: Option<ResilienceConfig>,
    /// See [`ReceiveConfig::playout_deadline`].
    pub playout_deadline: Option<TimeDelta>,
    /// See [`ReceiveConfig::adaptive_playout`].
    pub adaptive_playout: Option<AdaptivePlayout>,
    /// See [`ReceiveConfig::skew_playout`].
    pub skew_playout: Option<SkewPlayoutConfig>,
    /// See [`ReceiveConfig::content`].
    pub content: bool,
    /// Picture feedback.
    pub picture: PictureFeedback,
}

impl IncomingConfig {
    /// A stream that is counted and reported, but neither played nor repaired.
    pub fn new(identity: StreamIdentity, media: MediaKind) -> Self {
        Self {
            identity,
            media,
            repair: RepairReception::default(),
            nack: None,
            resilience: None,
            playout_deadline: None,
            adaptive_playout: None,
            skew_playout: None,
            content: false,
            picture: PictureFeedback::default(),
        }
    }
}
