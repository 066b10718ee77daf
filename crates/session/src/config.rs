//! Configuration of a call end: the end itself, its streams and its paths. Each field has its only home here; who wants a
//! call for a controller by name has them filled by [`CallPlan`](crate::CallPlan) and [`Control`](crate::Control).

use crate::allocation::{Demand, MediaKind};
use crate::identity::StreamIdentity;
use crate::multipath::{AnyScheduler, Coupling, MAX_PATHS, PathPolicy, SkewPlayoutConfig};
use crate::nack::NackConfig;
use crate::picture::PictureFeedback;
use crate::protection::RepairChoice;
use crate::recovery::RepairReception;
use crate::resilience::ResilienceConfig;
use crate::retransmission::RetransmissionConfig;
use crate::sender_model::SenderModel;
use crate::session_params::SessionParams;
use weir_cc::{FeedbackPlan, Receiver, ReportPlan, Sender, circuit_breaker, feedback_guard};
use weir_media::resilience::joint::Joint;
use weir_media::utility::Utility;
use weir_media::{AdaptivePlayout, Packetiser, Source};
use weir_units::{DataRate, Ecn, PathId, TimeDelta};

/// The end itself: identity, RTCP and clock.
#[derive(Clone, PartialEq, Debug)]
pub struct EndConfig {
    /// Synchronisation source of this end's reports: that of one of its outgoing streams, if it has any.
    pub ssrc: u32,
    /// Synchronisation source of the other end's reports; 0 if unknown.
    pub remote_ssrc: u32,
    /// Synchronisation source of a device on the path whose notices are accepted, such as a base station; `None`
    /// accepts none.
    pub station_ssrc: Option<u32>,
    /// Silence of the other end after which another source of the same payload type replaces it, for instance when the
    /// other end has been restarted; after a BYE, at once. `None` disables this. This end then also changes its own
    /// source identifier on a collision (RFC 3550, section 8.2).
    pub latch: Option<TimeDelta>,
    /// Canonical name in SDES (RFC 7022 specifies how to choose it).
    pub cname: String,
    /// Seed of all random values: first sequence numbers and timestamps, RTCP timing.
    pub seed: u64,
    /// Session bandwidth, of which RTCP takes 5 %.
    pub session_bandwidth: DataRate,
    /// Least average spacing of regular RTCP packets (RFC 4585, section 3.4); libwebrtc's is 1 s for video.
    pub t_rr_interval: TimeDelta,
    /// Bytes of UDP and IP headers per datagram, included in RTCP's bandwidth (RFC 3550, section 6.2): 28 for IPv4.
    pub header_overhead: u32,
    /// RTP header extensions.
    pub extensions: HeaderExtensions,
    /// NTP seconds (since 1900) at this end's `Timestamp::ZERO`.
    pub ntp_epoch: u32,
    /// How far the clock that this end's timestamps are read from is ahead of the time passed in: NTP timestamps, absolute send
    /// times, arrival times in transport-wide feedback. [`RtcpControl::set_clock_offset`](crate::RtcpControl::set_clock_offset) changes it.
    pub clock_offset: TimeDelta,
    /// Whether the clocks of both ends are synchronised, so that sender reports give capture times for playout.
    /// Otherwise the first packet is assumed to arrive as soon as it was captured.
    pub synchronised_clocks: bool,
    /// Whether audio and video are played in synchrony: adaptive playout delays of several streams follow each other,
    /// and without synchronised clocks all streams use one clock, derived from their sender reports.
    pub lip_synchronisation: bool,
    /// Whether the ends have agreed on capacity vectors (`docs/wire/capacity-vector.md`): this end sends those that it is given
    /// ([`PathMut::announce_capacity`](crate::PathMut::announce_capacity)), and follows those of the other end. In a call over
    /// several paths each path has its own.
    pub capacity_vectors: bool,
    /// Whether the call can have several paths, even if it begins with one: packets are counted and reported by subflow
    /// (MPRTP), and [`Endpoint::add_path`](crate::Endpoint::add_path) works. Several paths imply it.
    pub multipath: bool,
    /// Parameters that can be changed during the session.
    pub params: SessionParams,
}

impl Default for EndConfig {
    fn default() -> Self {
        Self {
            ssrc: 1,
            remote_ssrc: 2,
            station_ssrc: None,
            latch: None,
            cname: "weir".into(),
            seed: 1,
            session_bandwidth: DataRate::from_mbps(2),
            t_rr_interval: TimeDelta::from_secs(1),
            header_overhead: 28,
            extensions: HeaderExtensions::default(),
            // 1 January 2026, 00:00 UTC.
            ntp_epoch: 3_976_214_400,
            clock_offset: TimeDelta::ZERO,
            synchronised_clocks: false,
            lip_synchronisation: false,
            capacity_vectors: false,
            multipath: false,
            params: SessionParams::default(),
        }
    }
}

/// RTP header extensions of an end: their identifiers, 1 to 14 where nothing else is said, and those sent with every
/// packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderExtensions {
    /// Identifier of the transport-wide sequence number.
    pub transport_sequence_id: u8,
    /// Whether outgoing RTP carries it.
    pub transport_sequence: bool,
    /// Identifier of the absolute send time.
    pub abs_send_time_id: u8,
    /// Whether outgoing RTP carries it.
    pub abs_send_time: bool,
    /// Identifier of the MID (RFC 9143), sent by streams that have one.
    pub mid_id: u8,
    /// Identifier of the RID (RFC 8852), sent by streams that have one.
    pub rid_id: u8,
    /// Identifier of the subflow number (MPRTP), 1 to 255, used if the call has several paths.
    pub subflow_id: u8,
}

impl Default for HeaderExtensions {
    fn default() -> Self {
        Self {
            transport_sequence_id: 3,
            transport_sequence: false,
            abs_send_time_id: 2,
            abs_send_time: false,
            mid_id: 9,
            rid_id: 10,
            subflow_id: 6,
        }
    }
}

/// One outgoing stream.
pub struct OutgoingConfig {
    /// Its identity in RTP.
    pub identity: StreamIdentity,
    /// Its demand on the target; unbounded by default.
    pub demand: Demand,
    /// The source of frames.
    pub source: Source,
    /// How its frames are sent.
    pub options: OutgoingOptions,
}

impl OutgoingConfig {
    /// A stream of this source, with all options off.
    pub fn new(identity: StreamIdentity, source: Source, demand: Demand) -> Self {
        Self { identity, demand, source, options: OutgoingOptions::default() }
    }
    /// With these options.
    #[must_use]
    pub fn with(self, options: OutgoingOptions) -> Self {
        Self { options, ..self }
    }
}

/// How an outgoing stream's frames are sent: plain data, so that descriptions of calls can hold it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct OutgoingOptions {
    /// How frames are packetised.
    pub packetiser: Packetiser,
    /// Source of repair packets: the controller's target, or a fixed scheme.
    pub repair: RepairChoice,
    /// Whether repair packets of a fixed scheme are taken out of the media rate; otherwise they are sent in addition to the
    /// target.
    pub repair_within_rate: bool,
    /// How lost packets are retransmitted; `None` disables it, unless [`Self::resilience`] is set and retransmission applies
    /// there. Retransmissions are taken out of the media rate.
    pub retransmission: Option<RetransmissionConfig>,
    /// Policy for slice sizes and unequal protection; `None` leaves both unchanged. Protection is taken out of the
    /// media rate.
    pub resilience: Option<ResilienceConfig>,
    /// Frames older than this in the RTP queue, measured from capture, are discarded except for the newest, and a key
    /// frame is requested from the source; `None` sets no limit beyond the controller's.
    pub max_queue_age: Option<TimeDelta>,
    /// Picture feedback.
    pub picture: PictureFeedback,
    /// The program whose sending end the stream is sent as. Of the first stream it also decides how the first path's packets leave.
    pub sender: SenderModel,
    /// The last that the call gives up where its rate is short: decides on the size and number of the stream's pictures, on their repair
    /// packets beside retransmissions, and on the share of the call's sound. `None` leaves the sound its demand and all else to the
    /// encoder's quantiser.
    pub utility: Option<Utility>,
}

/// One incoming stream.
#[derive(Clone, PartialEq, Debug)]
pub struct IncomingConfig {
    /// Its identity in RTP. If its source is unknown (0), it is the first source with its payload type that belongs to
    /// no other stream, and with its MID and RID if set.
    pub identity: StreamIdentity,
    /// The kind of media.
    pub media: MediaKind,
    /// Whether lost packets are repaired.
    pub repair: RepairReception,
    /// When lost packets are requested (generic NACK) and retransmissions accepted; `None` disables both, unless
    /// [`Self::resilience`] is set.
    pub nack: Option<NackConfig>,
    /// Policy for requesting packets and reference pictures; `None` requests packets according to [`Self::nack`], and
    /// reference pictures whenever the application does.
    pub resilience: Option<ResilienceConfig>,
    /// Delay from capture to playout, after which a packet is discarded; `None` plays at once and discards nothing.
    pub playout_deadline: Option<TimeDelta>,
    /// Plays frames as early as their jitter allows instead of at the deadline. The deadline is then
    /// [`AdaptivePlayout::max`], and [`Self::playout_deadline`] is ignored.
    pub adaptive_playout: Option<AdaptivePlayout>,
    /// Plays frames of video by the skew of the call's paths, instead of [`Self::adaptive_playout`] and
    /// [`Self::playout_deadline`], which are ignored then. Audio has adaptive playout up to
    /// [`SkewPlayoutConfig::max`].
    pub skew_playout: Option<SkewPlayoutConfig>,
    /// Plays frames of video at the time of a joint plan for losses, between its bounds, instead of [`Self::adaptive_playout`] and
    /// [`Self::playout_deadline`], which are ignored then; ignored with [`Self::skew_playout`].
    pub joint: Option<Joint>,
    /// Whether packet content is kept for [`Incoming::take_frame`](crate::Incoming::take_frame); requires a playout
    /// deadline.
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
            joint: None,
            content: false,
            picture: PictureFeedback::default(),
        }
    }
}

/// One path between the ends, with what this end does on it.
#[derive(Default)]
pub struct PathConfig {
    /// Sends media on it; `None` at an end that only receives.
    pub sending: Option<SendingPath>,
    /// Receives media on it; `None` at an end that only sends.
    pub receiving: Option<ReceivingPath>,
    /// Its number in a call to which it is added, where the ends agree on it otherwise, as by the names of ICE agents.
    pub number: Option<PathId>,
}

impl From<SendingPath> for PathConfig {
    fn from(sending: SendingPath) -> Self {
        Self { sending: Some(sending), ..Self::default() }
    }
}

impl From<ReceivingPath> for PathConfig {
    fn from(receiving: ReceivingPath) -> Self {
        Self { receiving: Some(receiving), ..Self::default() }
    }
}

/// The sending direction of a path.
pub struct SendingPath {
    /// The controller's sender half.
    pub controller: Sender,
    /// Whether the other end sends per-packet feedback; sent packets are remembered only in that case.
    pub per_packet_feedback: bool,
    /// Receiver reports required by the controller, as planned by the other end. With run lengths, sent packets are
    /// remembered for them; sender reports are sent equally often, so that the receiver knows the round-trip time.
    pub reports: Option<ReportPlan>,
    /// Circuit breaker that stops sending if the path stays congested or silent (RFC 8083); `None` disables it. Without
    /// its own `min_report_interval` it uses the reports' least interval.
    pub circuit_breaker: Option<circuit_breaker::Config>,
    /// How the target decreases while no feedback is received, under any controller; `None` leaves it to the
    /// controller.
    pub feedback_guard: Option<feedback_guard::Config>,
    /// ECN field of outgoing RTP.
    pub ecn: Ecn,
    /// Preference of the application for the path, if it is one of several. Later:
    /// [`PathMut::set_policy`](crate::PathMut::set_policy).
    pub policy: PathPolicy,
}

impl SendingPath {
    /// A path under this controller, with all options off.
    pub fn new(controller: Sender) -> Self {
        Self {
            controller,
            per_packet_feedback: false,
            reports: None,
            circuit_breaker: None,
            feedback_guard: None,
            ecn: Ecn::NotEct,
            policy: PathPolicy::default(),
        }
    }
}

/// The receiving direction of a path.
#[derive(Default)]
pub struct ReceivingPath {
    /// Per-packet feedback required by the other end's controller.
    pub feedback: Option<FeedbackPlan>,
    /// Regular RTCP required by the other end's controller, within RTCP's bandwidth share; `None` leaves it to
    /// RFC 3550's timer and [`EndConfig::t_rr_interval`].
    pub reports: Option<ReportPlan>,
    /// The controller's receiver half.
    pub controller: Option<Receiver>,
}

/// How an end that sends on several paths divides packets and rates among them; without effect with one path.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// The scheduler, which chooses the path of each packet.
    pub scheduler: AnyScheduler,
    /// Paths that share one flow's rate.
    pub coupling: Coupling,
    /// Media rate that suffices, as in [`Endpoint::set_sufficient_rate`](crate::Endpoint::set_sufficient_rate).
    pub sufficient_rate: Option<DataRate>,
    /// Greatest rate of a coupled path.
    pub ceiling: DataRate,
    /// Parts in which coupled paths share their group's rate (P of RFC 8699), path by path; one that is not above 0 counts as 1.
    pub priorities: [f64; MAX_PATHS],
}

impl GroupConfig {
    /// Paths of this scheduler, each a flow of its own.
    pub fn new(scheduler: AnyScheduler) -> Self {
        let (ceiling, priorities) = (DataRate::from_bps(u64::MAX), [1.0; MAX_PATHS]);
        Self { scheduler, coupling: Coupling::None, sufficient_rate: None, ceiling, priorities }
    }
}

impl Default for GroupConfig {
    fn default() -> Self {
        Self::new(AnyScheduler::default())
    }
}
