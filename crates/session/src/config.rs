//! What a call end is made from.

use crate::allocation::{Demand, MediaKind};
use crate::identity::{Label, StreamIdentity};
use crate::nack::NackConfig;
use crate::picture::PictureFeedback;
use crate::protection::RepairChoice;
use crate::recovery::RepairReception;
use crate::resilience::ResilienceConfig;
use crate::retransmission::RetransmissionConfig;
use crate::session_params::SessionParams;
use weir_cc::{FeedbackPlan, Limits, Receiver, ReportPlan, Sender, circuit_breaker};
use weir_media::{AdaptivePlayout, Packetiser, Source};
use weir_units::{DataRate, Ecn, TimeDelta};

/// What both directions of a call end share.
#[derive(Clone, PartialEq, Debug)]
pub struct EndpointConfig {
    /// This end's synchronisation source.
    pub ssrc: u32,
    /// The other end's synchronisation source; 0 where it is not known: then the first source of this payload type is it.
    pub remote_ssrc: u32,
    /// After how long a silence of the other end, or at once after its goodbye, another source of the same payload type
    /// takes its place, as when the other end was started again; `None` for never. This end then also takes another
    /// identifier for its own where somebody else has it (RFC 3550, section 8.2).
    pub latch: Option<TimeDelta>,
    /// Canonical name in SDES (RFC 7022 says how to choose it).
    pub cname: String,
    /// Seed of every random draw: first sequence number and timestamp, RTCP timing.
    pub seed: u64,
    /// RTP payload type of the media.
    pub payload_type: u8,
    /// RTP payload type of parity repair packets (FlexFEC, RFC 8627).
    pub parity_payload_type: u8,
    /// RTP payload type of Reed-Solomon repair packets.
    pub reed_solomon_payload_type: u8,
    /// Synchronisation source of this end's repair stream; `None` takes [`Self::ssrc`] with its top bit turned.
    pub repair_ssrc: Option<u32>,
    /// The same of the other end.
    pub remote_repair_ssrc: Option<u32>,
    /// RTP payload type of retransmissions (RFC 4588).
    pub retransmission_payload_type: u8,
    /// Synchronisation source of this end's retransmission stream; `None` takes [`Self::ssrc`] with its second bit turned.
    pub retransmission_ssrc: Option<u32>,
    /// The same of the other end.
    pub remote_retransmission_ssrc: Option<u32>,
    /// Synchronisation source of a device on the path whose notices count, such as a base station; `None` for none.
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
    /// NTP seconds (since 1900) of this end's `Timestamp::ZERO`.
    pub ntp_epoch: u32,
    /// Whether both ends' clocks show the same time, so that sender reports tell playout when frames were captured.
    /// Where they do not, the first packet is taken to have been captured as it arrives.
    pub synchronised_clocks: bool,
    /// Whether sound and pictures of one instant come out together: adaptive playout delays of several streams follow each other,
    /// and where clocks are not synchronised, the streams are played by one clock, as their sender reports show it.
    pub lip_synchronisation: bool,
    /// Bytes of UDP and IP headers around each datagram, which RTCP bandwidth counts (RFC 3550, section 6.2): 28 for IPv4.
    pub header_overhead: u32,
    /// Feedback on pictures.
    pub picture: PictureFeedback,
    /// Header extension identifier of the MID (RFC 9143), 1 to 14.
    pub mid_id: u8,
    /// Header extension identifier of the RID (RFC 8852), 1 to 14.
    pub rid_id: u8,
    /// The media section that the first stream belongs to, the same at both ends; `None` sends no MID.
    pub mid: Option<Label>,
    /// The encoding of a simulcast that the first stream is, the same at both ends; `None` sends no RID.
    pub rid: Option<Label>,
    /// How the first incoming stream appears in RTP where the fields above describe the outgoing one alone. Its source is
    /// [`Self::remote_ssrc`] all the same.
    pub first_incoming: Option<StreamIdentity>,
    /// What can be changed while the session runs.
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

/// The sending direction: its first stream, and the path that all streams leave by.
pub struct SendConfig {
    /// Where frames come from.
    pub source: Source,
    /// How frames become packets.
    pub packetiser: Packetiser,
    /// Whether the other end reports on each packet; what is sent is remembered only then.
    pub per_packet_feedback: bool,
    /// Receiver reports that the controller asks for, as the other end plans them. With run lengths, what is sent is
    /// remembered for them; sender reports come as often, so that the receiver knows the round trip.
    pub reports: Option<ReportPlan>,
    /// What decides on repair packets beside the media.
    pub repair: RepairChoice,
    /// How packets that the other end misses are sent again; `None` does not, unless there is [`Self::resilience`]. Media makes
    /// room for it in the target.
    pub retransmission: Option<RetransmissionConfig>,
    /// By what slice sizes and unequal protection are chosen; `None` leaves both alone. Media makes room for protection.
    pub resilience: Option<ResilienceConfig>,
    /// Rules by which sending ceases when the path stays congested or silent (RFC 8083); `None` for none. Without a
    /// `min_report_interval` of its own it takes the reports' least spacing.
    pub circuit_breaker: Option<circuit_breaker::Config>,
    /// The controller's sender half.
    pub controller: Sender,
    /// Bounds on the media rate.
    pub limits: Limits,
    /// Frames that have waited in the RTP queue for longer since their capture are thrown away, all but the newest, and
    /// the source is asked for a key frame; `None` for no limit but the controller's own.
    pub max_queue_age: Option<TimeDelta>,
    /// What the stream asks for of the target; by default whatever there is.
    pub demand: Demand,
}

impl SendConfig {
    /// Sends this source under this controller, with nothing else switched on.
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
            controller,
            limits,
            max_queue_age: None,
            demand: Demand::default(),
        }
    }
}

/// The receiving direction: its first stream, and the path that all streams come by.
#[derive(Default)]
pub struct ReceiveConfig {
    /// Per-packet feedback that the other end's controller asks for.
    pub feedback: Option<FeedbackPlan>,
    /// Regular RTCP that the other end's controller asks for, inside RTCP's bandwidth share; `None` leaves it to
    /// RFC 3550's timer and [`EndpointConfig::t_rr_interval`].
    pub reports: Option<ReportPlan>,
    /// Whether lost packets are repaired.
    pub repair: RepairReception,
    /// When lost packets are asked for again (generic NACK), and retransmissions taken; `None` does neither, unless there is
    /// [`Self::resilience`].
    pub nack: Option<NackConfig>,
    /// By what it is chosen whether packets and references are asked for; `None` asks for packets as [`Self::nack`] has it, and
    /// for references whenever the application does.
    pub resilience: Option<ResilienceConfig>,
    /// What the first stream carries.
    pub media: MediaKind,
    /// The controller's receiver half.
    pub controller: Option<Receiver>,
    /// Time from capture to playout, after which a packet is discarded; `None` plays at once and discards nothing.
    pub playout_deadline: Option<TimeDelta>,
    /// Plays frames as soon as their jitter allows instead of all at the deadline, which is then
    /// [`AdaptivePlayout::max`], whatever [`Self::playout_deadline`] is.
    pub adaptive_playout: Option<AdaptivePlayout>,
    /// Whether the content of packets is kept for [`Endpoint::take_frame`](crate::Endpoint::take_frame); needs a playout
    /// deadline.
    pub content: bool,
}

/// One outgoing stream.
pub struct OutgoingConfig {
    /// How it appears in RTP.
    pub identity: StreamIdentity,
    /// What it asks for of the target.
    pub demand: Demand,
    /// Where frames come from.
    pub source: Source,
    /// How frames become packets.
    pub packetiser: Packetiser,
    /// What decides on repair packets beside the media.
    pub repair: RepairChoice,
    /// See [`SendConfig::retransmission`].
    pub retransmission: Option<RetransmissionConfig>,
    /// See [`SendConfig::resilience`].
    pub resilience: Option<ResilienceConfig>,
    /// See [`SendConfig::max_queue_age`].
    pub max_queue_age: Option<TimeDelta>,
    /// Feedback on pictures.
    pub picture: PictureFeedback,
}

impl OutgoingConfig {
    /// A stream of this source, with nothing else switched on.
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
    /// How it appears in RTP. Where its source is not known (0), the first source of its payload type that belongs to no other
    /// stream is it, and has to have its MID and RID where it has them.
    pub identity: StreamIdentity,
    /// What it carries.
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
    /// See [`ReceiveConfig::content`].
    pub content: bool,
    /// Feedback on pictures.
    pub picture: PictureFeedback,
}

impl IncomingConfig {
    /// A stream that is counted and reported on, and neither played nor repaired.
    pub fn new(identity: StreamIdentity, media: MediaKind) -> Self {
        Self {
            identity,
            media,
            repair: RepairReception::default(),
            nack: None,
            resilience: None,
            playout_deadline: None,
            adaptive_playout: None,
            content: false,
            picture: PictureFeedback::default(),
        }
    }
}
