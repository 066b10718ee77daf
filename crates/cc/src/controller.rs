//! The interface that every controller implements.
//!
//! A controller needs no registry. Each has a `Config` of public fields and `new(config, &start)`; the registry sets
//! parameters by name and calls the same constructor; both check the same ranges.

use crate::cue::{
    CapacityForecast, CapacityNotice, Cue, FramePlayout, NadaMode, QueueState, ReceivedPacket, SentPacket,
};
use weir_units::cold_path;
use weir_units::{DataRate, DataSize, Gain, TimeDelta, Timestamp};

/// Bounds that the application sets on the media rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Lower bound of the media rate.
    pub floor: DataRate,
    /// Upper bound of the media rate.
    pub ceiling: DataRate,
}

impl Limits {
    /// The rate limited to floor and ceiling; the floor wins if they cross.
    pub fn clamp(&self, rate: DataRate) -> DataRate {
        rate.min(self.ceiling).max(self.floor)
    }
    /// The same for a rate in bit/s.
    pub(crate) fn clamp_bps(&self, bps: f64) -> f64 {
        bps.min(self.ceiling.as_bps_f64()).max(self.floor.as_bps_f64())
    }
}

/// Repair that a controller wants sent beside the media; the session's codes apply it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum RepairPlan {
    /// No repair packets.
    #[default]
    Off,
    /// One parity packet per `interval` media packets (RFC 5109; RFC 8627), at least 2.
    Parity {
        /// Media packets that one repair packet protects.
        interval: u8,
    },
    /// No repair packets, but parity over up to `interval` of the packets just sent is kept, so that a change to
    /// [`Self::Parity`] sends it at once.
    Standby {
        /// Most media packets that the packet kept protects.
        interval: u8,
    },
    /// Reed-Solomon blocks of fixed length (RFC 6865): `block` packets, of which `repair` are repair packets.
    ReedSolomon {
        /// Packets of a block, media and repair, at most 255.
        block: u8,
        /// Repair packets of a block, fewer than `block`; 0 sends blocks without repair.
        repair: u8,
    },
    /// No repair packets, but blocks of the packets just sent are kept, so that a change to [`Self::ReedSolomon`] sends at once those
    /// of the open block, as many as its part of a whole one has.
    BlockStandby {
        /// Packets of a block, media and repair, at most 255.
        block: u8,
        /// Repair packets of a block, fewer than `block`.
        repair: u8,
    },
}

/// Requests of a controller to the session. Reading it changes nothing.
#[derive(Clone, Copy, Eq, Debug)]
pub struct Target {
    /// Rate for the encoders, between the limits; `overhead` is part of it.
    pub media_rate: DataRate,
    /// Rate at which the pacer releases packets, RTP headers included unless `paces_payload`.
    pub pacing_rate: DataRate,
    /// Whether `pacing_rate` is a rate of payload and padding alone. A controller that paces at its media rate needs this
    /// where `overhead` is zero: otherwise a packet always waits for the one before it.
    pub paces_payload: bool,
    /// Rate up to which the pacer fills with padding when media is short; zero for none.
    pub padding_rate: DataRate,
    /// Bytes that may be in flight; `None` if the controller is not window-limited.
    pub window: Option<DataSize>,
    /// Age at which the RTP queue is discarded; `None` keeps everything.
    pub max_queue_age: Option<TimeDelta>,
    /// Repair packets to send in addition to `media_rate`.
    pub repair: RepairPlan,
    /// Bytes of headers in each packet, down to IP, that `media_rate` covers beside the payload; zero if `media_rate` is
    /// the rate of the payload alone. The session subtracts them from the encoders' rates.
    pub overhead: DataSize,
}

impl PartialEq for Target {
    // Asked after each event, and nearly always equal: most fields are compared without a branch for each.
    #[inline]
    fn eq(&self, o: &Self) -> bool {
        let rates = (self.media_rate == o.media_rate)
            & (self.pacing_rate == o.pacing_rate)
            & (self.paces_payload == o.paces_payload)
            & (self.padding_rate == o.padding_rate)
            & (self.overhead == o.overhead);
        let repair = match (self.repair, o.repair) {
            (RepairPlan::Off, RepairPlan::Off) => true,
            (one, other) => {
                cold_path();
                one == other
            }
        };
        rates && self.window == o.window && self.max_queue_age == o.max_queue_age && repair
    }
}

impl Target {
    /// A pacing rate that sends packets at once, all packets of a frame together.
    pub const UNPACED: DataRate = DataRate::from_bps(u64::MAX);

    /// A target of one rate, paced at `pacing_rate`, without padding, window or queue limit.
    pub const fn paced(media_rate: DataRate, pacing_rate: DataRate) -> Self {
        Self {
            media_rate,
            pacing_rate,
            paces_payload: false,
            padding_rate: DataRate::ZERO,
            window: None,
            max_queue_age: None,
            repair: RepairPlan::Off,
            overhead: DataSize::ZERO,
        }
    }

    /// A target paced at a multiple of its media rate, at least 1.
    pub(crate) fn paced_by(media_rate: DataRate, pacing: Gain) -> Self {
        Self::paced(media_rate, (media_rate * pacing).max(media_rate))
    }
}

/// Rate and share of a flow that is coupled with others of one sender ([`crate::coupled`]).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Coupled {
    /// The rate from which to continue (FSE_R of RFC 8699); `None` leaves the controller's own.
    pub rate: Option<DataRate>,
    /// Factor on increases that do not grow with the rate or window itself, above 0 to 1: the flow's share of its group,
    /// so that the increases of all members add up to those of one flow. 1 for a flow on its own.
    pub increase: f64,
}

/// Why a controller requests a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TimeoutReason {
    /// A periodic update of the rate.
    RateUpdate,
    /// Feedback is overdue.
    FeedbackMissing,
    /// A probe is due or has expired.
    Probe,
}

/// A short burst at a given rate that measures capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeCluster {
    /// Identifies the cluster in [`SentPacket::probe`]; never 0.
    pub id: u32,
    /// Rate at which the cluster is sent.
    pub rate: DataRate,
    /// The cluster ends once it holds at least this many packets ...
    pub min_packets: u32,
    /// ... and at least this many bytes. Zero where the delay of the packets matters and not their size: padding of such a cluster is as
    /// small as it can be.
    pub min_size: DataSize,
}

/// The sender half of a controller: a pure function of its configuration and the events, in order.
///
/// Sans-IO and infallible. Time enters as an argument and never goes back. Late, duplicate, forged or missing cues are
/// tolerated; nothing panics.
pub trait Controller: Send {
    /// A packet has been sent.
    fn on_packet_sent(&mut self, packet: &SentPacket);
    /// A cue has been received.
    fn on_cue(&mut self, cue: &Cue<'_>);
    /// A datagram of RTCP has been received, as it came from the network, before its cues; returns whether [`Self::target`] or
    /// [`Self::poll_probe`] may have changed. For controllers that parse feedback themselves; the others leave it out.
    fn on_rtcp(&mut self, datagram: &[u8], now: Timestamp) -> bool {
        let _ = (datagram, now);
        false
    }
    /// The application has changed its bounds; the target obeys them as soon as this returns.
    fn on_limits(&mut self, limits: Limits, now: Timestamp);
    /// The rate that the controller has calculated for its path, without what the RTP queue or the source change of it:
    /// CC_R of RFC 8699, for coupling with other flows. `None` for a controller that cannot continue from another rate.
    fn coupled_rate(&self) -> Option<DataRate> {
        None
    }
    /// The flow is coupled with others from now on, or no longer ([`Coupled::increase`] is 1).
    /// [`Self::coupled_rate`] is the rate given as soon as this returns, within the limits; a controller that measures its rate may
    /// take the share only.
    fn on_coupled(&mut self, coupled: &Coupled, now: Timestamp) {
        let _ = (coupled, now);
    }
    /// A frame has entered the RTP queue. Returns whether [`Self::target`] or [`Self::poll_probe`] may have changed since the last
    /// frame, by this call or by [`Self::on_packet_sent`]; `false` spares the session asking for both after each frame.
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        let _ = queue;
        true
    }
    /// The time of [`Self::poll_timeout`] has come.
    fn on_timeout(&mut self, now: Timestamp) {
        let _ = now;
    }
    /// Returns the rates and limits that the session should apply now.
    fn target(&self) -> Target;
    /// Of so many frames one is to be left out before the encoder, at least of two, so that [`Self::target`] has less for it; zero for none.
    /// A sender that leaves none out follows the target alone.
    fn left_out_frames(&self) -> u32 {
        0
    }
    /// When to call [`Self::on_timeout`] next, and why. After `on_timeout(now)` it is later than `now`.
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        None
    }
    /// Takes the next probe cluster, if one is to be sent at `now`.
    fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> {
        let _ = now;
        None
    }
    /// Reports internal values by name, for plots: always the same names in the same order, with the unit as suffix
    /// (`_ms`, `_bps`, `_bytes`) or none, NaN where there is no value yet.
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let _ = out;
    }
}

/// A receiver half's report to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// A REMB message.
    Remb {
        /// The estimate.
        rate: DataRate,
    },
    /// A TMMBR message.
    Tmmbr {
        /// The bound requested.
        rate: DataRate,
    },
    /// NADA's receiver-side report.
    Nada {
        /// rmode.
        mode: NadaMode,
        /// x_curr.
        aggregate_delay: TimeDelta,
        /// r_recv.
        receive_rate: DataRate,
    },
    /// C-NADU's report: a TMMBR message with the receiver's estimate and a NADU report, in which the session fills in
    /// what is played next.
    NextDataUnit {
        /// The receiver's estimate.
        rate: DataRate,
    },
}

/// The receiver half of a controller, for those that have one.
pub trait ReceiverController: Send {
    /// A media packet has been received.
    fn on_packet_received(&mut self, packet: &ReceivedPacket);
    /// The session has measured the round-trip time.
    fn on_rtt(&mut self, rtt: TimeDelta, now: Timestamp) {
        let _ = (rtt, now);
    }
    /// A device on the path has announced the capacity of its link to this end.
    fn on_notice(&mut self, notice: &CapacityNotice) {
        let _ = notice;
    }
    /// A map of network coverage foretells the capacity of this end's path.
    fn on_forecast(&mut self, forecast: &CapacityForecast<'_>) {
        let _ = forecast;
    }
    /// A frame's playout deadline has passed. Called only if the session has playout.
    fn on_playout(&mut self, frame: &FramePlayout) {
        let _ = frame;
    }
    /// When [`Self::poll_report`] may next have a report without a new packet.
    fn poll_timeout(&self) -> Option<Timestamp>;
    /// Takes the report due at `now`, if any. Called after packets and at the timeout; afterwards `poll_timeout` is
    /// later than `now`.
    fn poll_report(&mut self, now: Timestamp) -> Option<Report>;
    /// As [`Controller::metrics`].
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let _ = out;
    }
}
