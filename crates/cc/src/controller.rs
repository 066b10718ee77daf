//! The interface that every controller implements.

use crate::cue::{CapacityNotice, Cue, FramePlayout, NadaMode, QueueState, ReceivedPacket, SentPacket};
use weir_units::{DataRate, DataSize, Gain, TimeDelta, Timestamp};

/// Bounds that the application sets on the media rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The media rate never goes below this.
    pub floor: DataRate,
    /// The media rate never goes above this.
    pub ceiling: DataRate,
}

impl Limits {
    /// The rate brought between floor and ceiling; the floor wins where they cross.
    pub fn clamp(&self, rate: DataRate) -> DataRate {
        rate.min(self.ceiling).max(self.floor)
    }
    /// The same for a rate in bit/s.
    pub(crate) fn clamp_bps(&self, bps: f64) -> f64 {
        bps.min(self.ceiling.as_bps_f64()).max(self.floor.as_bps_f64())
    }
}

/// How much repair a controller wants sent beside the media; the session's codes give it effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum RepairPlan {
    /// No repair packets.
    #[default]
    Off,
    /// One parity packet for each `interval` media packets (RFC 5109; RFC 8627), from 2 up.
    Parity {
        /// Media packets that one repair packet protects.
        interval: u8,
    },
    /// Reed-Solomon blocks of fixed length (RFC 6865): `block` packets, of which `repair` are repair packets.
    ReedSolomon {
        /// Packets of a block, media and repair, at most 255.
        block: u8,
        /// Repair packets among them, below `block`; with 0 blocks go on without repair.
        repair: u8,
    },
}

/// What a controller asks the session to do. A read: asking twice changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// Rate for the encoder, between the limits.
    pub media_rate: DataRate,
    /// Rate at which the pacer lets packets go.
    pub pacing_rate: DataRate,
    /// Rate up to which the pacer fills with padding when media is short; zero for none.
    pub padding_rate: DataRate,
    /// Bytes that may be in flight; `None` where the controller is not window-limited.
    pub window: Option<DataSize>,
    /// Age at which the RTP queue is discarded; `None` to keep everything.
    pub max_queue_age: Option<TimeDelta>,
    /// Repair packets to send beside the media; they come on top of `media_rate`.
    pub repair: RepairPlan,
}

impl Target {
    /// A pacing rate at which packets leave as soon as they are there, all of a frame at once.
    pub const UNPACED: DataRate = DataRate::from_bps(u64::MAX);

    /// A target of one rate, paced at `pacing_rate`, without padding, window or queue limit.
    pub const fn paced(media_rate: DataRate, pacing_rate: DataRate) -> Self {
        Self {
            media_rate,
            pacing_rate,
            padding_rate: DataRate::ZERO,
            window: None,
            max_queue_age: None,
            repair: RepairPlan::Off,
        }
    }

    /// A target paced at a multiple of its media rate, and never below it.
    pub(crate) fn paced_by(media_rate: DataRate, pacing: Gain) -> Self {
        Self::paced(media_rate, (media_rate * pacing).max(media_rate))
    }
}

/// Why a controller wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TimeoutReason {
    /// A periodic update of the rate.
    RateUpdate,
    /// Feedback has been missing for too long.
    FeedbackMissing,
    /// A probe is due or gives up.
    Probe,
}

/// A short burst at a set rate that measures capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeCluster {
    /// Names the cluster in [`SentPacket::probe`]; never 0.
    pub id: u32,
    /// Rate at which the cluster is sent.
    pub rate: DataRate,
    /// The cluster goes on until it holds at least this many packets ...
    pub min_packets: u32,
    /// ... and at least this many bytes.
    pub min_size: DataSize,
}

/// The sender half of a controller: a pure function of its configuration and the events, in order.
///
/// Sans-IO and infallible: time enters as an argument, late, duplicate, forged or missing cues are
/// taken as they come, and nothing panics. Calls carry times that never go back.
pub trait Controller: Send {
    /// A packet has left.
    fn on_packet_sent(&mut self, packet: &SentPacket);
    /// A cue has arrived.
    fn on_cue(&mut self, cue: &Cue<'_>);
    /// The application has changed its bounds; the target obeys them from the return of this call.
    fn on_limits(&mut self, limits: Limits, now: Timestamp);
    /// A frame has entered the RTP queue.
    fn on_queue(&mut self, queue: &QueueState) {
        let _ = queue;
    }
    /// The instant that [`Self::poll_timeout`] gave has come.
    fn on_timeout(&mut self, now: Timestamp) {
        let _ = now;
    }
    /// What the session should do now.
    fn target(&self) -> Target;
    /// When to call [`Self::on_timeout`] next, and why. After `on_timeout(now)` it is later than `now`.
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        None
    }
    /// Takes the next probe cluster to send, if one is wanted at `now`.
    fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> {
        let _ = now;
        None
    }
    /// Tells the controller's own internals by name, for plots: always the same names in the same order,
    /// units in the name's last part (`_ms`, `_bps`, `_bytes`) or none, NaN where there is no value yet.
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let _ = out;
    }
}

/// What a receiver half tells the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// A REMB message.
    Remb {
        /// The estimate.
        rate: DataRate,
    },
    /// A TMMBR message.
    Tmmbr {
        /// The bound asked for.
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
    /// C-NADU's report: a TMMBR message with the receiver's estimate and a NADU report; the session adds what
    /// is played next.
    NextDataUnit {
        /// The receiver's estimate.
        rate: DataRate,
    },
}

/// The receiver half of a controller, for those that have one.
pub trait ReceiverController: Send {
    /// A media packet has arrived.
    fn on_packet_received(&mut self, packet: &ReceivedPacket);
    /// The session has measured the round-trip time.
    fn on_rtt(&mut self, rtt: TimeDelta, now: Timestamp) {
        let _ = (rtt, now);
    }
    /// A device on the path says what its link to this end can carry.
    fn on_notice(&mut self, notice: &CapacityNotice) {
        let _ = notice;
    }
    /// A frame's playout deadline has come. Called only where the session plays out.
    fn on_playout(&mut self, frame: &FramePlayout) {
        let _ = frame;
    }
    /// When [`Self::poll_report`] may next have something to tell without a new packet.
    fn poll_timeout(&self) -> Option<Timestamp>;
    /// Takes the report that is due at `now`, if any. Called after packets and at the timeout;
    /// after it, `poll_timeout` is later than `now`.
    fn poll_report(&mut self, now: Timestamp) -> Option<Report>;
    /// As [`Controller::metrics`].
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let _ = out;
    }
}
