//! A scenario ready to run: everything resolved, checked and in units.

use super::clock::Clocks;
use super::dccp::{DccpFlow, DccpSettings};
use super::forecast::Forecast;
use super::media::Source;
use super::paths::Multipath;
use super::pause::Pause;
use std::borrow::Cow;
use weir_cc::cue::ForecastSegment;
use weir_cc::tcp::Equation;
use weir_cc::wrappers::{self, MAP_SUFFIX};
use weir_cc::{FeedbackPlan, Limits, ReportPlan, circuit_breaker};
use weir_path::{Capacity, Dscp, LinkConfig};
use weir_session::{OutgoingOptions, ReceiverModel};
/// How a TCP sender detects losses.
pub use weir_sim::tcp::LossDetection as TcpLossDetection;
/// TCP congestion control.
pub use weir_sim::tcp::Variant as TcpAlgorithm;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta};

/// One run's description, without placeholders: one variant, one controller for each flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// The name by which it is found, such as `rmcat-comparison/responsiveness`, or the file's stem.
    pub name: String,
    /// One line for headings.
    pub title: String,
    /// The scenario's purpose, and its source.
    pub doc: String,
    /// The variant's name, if the file has variants.
    pub variant: Option<String>,
    /// The controller that replaced `$controller`, if the file has that placeholder.
    pub controller: Option<String>,
    /// Simulated time.
    pub duration: TimeDelta,
    /// Seed if the caller gives none.
    pub seed: u64,
    /// Runs in a reproduction if the command line does not state a number.
    pub runs: Option<u32>,
    /// Distance between two points of the time series.
    pub sample_interval: TimeDelta,
    /// Shape of the network.
    pub topology: Topology,
    /// All links, both directions; flows refer to them by index.
    pub links: Vec<Link>,
    /// Index of the link whose queue is the run's, and against whose capacity flows over it are measured if the file names it.
    pub bottleneck: usize,
    /// Whether the file names it.
    pub has_named_bottleneck: bool,
    /// All flows, in the order of the file.
    pub flows: Vec<Flow>,
    /// Time intervals that are summarised separately, such as the steps of a capacity schedule.
    pub windows: Vec<Window>,
    /// Whether each flow's burstiness is measured.
    pub burstiness: bool,
}

impl Scenario {
    /// Name, variant and controller in one label, such as `random-loss [5%] nada`.
    pub fn label(&self) -> String {
        let mut s = self.name.clone();
        if let Some(v) = &self.variant {
            s.push_str(&format!(" [{v}]"));
        }
        if let Some(c) = &self.controller {
            s.push_str(&format!(" {c}"));
        }
        s
    }
    /// The controller of a flow as results name it: with its parameters, where they were given behind its name.
    pub fn controller_of<'a>(&'a self, flow: &'a RtpFlow) -> &'a str {
        let given = self.controller.as_deref().and_then(|c| Some((c, c.split_once(':')?.0)));
        given.filter(|(_, name)| *name == flow.controller).map_or(&flow.controller, |(controller, _)| controller)
    }
    /// The index of the flow of a name.
    pub fn flow(&self, name: &str) -> Option<usize> {
        self.flows.iter().position(|f| f.name == name)
    }
    /// The index of the link that goes the other way beside this one.
    pub fn reverse_of(&self, link: usize) -> Option<usize> {
        self.link(&format!("{}.reverse", self.links.get(link)?.name))
    }
    /// The index of the link of a name.
    pub fn link(&self, name: &str) -> Option<usize> {
        self.links.iter().position(|l| l.name == name)
    }
}

/// A named span of time that results are also given for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// Name in results, such as `0-20s`.
    pub name: String,
    /// Beginning, from the start of the run.
    pub from: TimeDelta,
    /// End, exclusive; never after the end of the run.
    pub to: TimeDelta,
}

/// Shape of the network. Flows carry their own list of links, so this is for display and plots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topology {
    /// One link in each direction between two hosts.
    PointToPoint,
    /// One shared link in each direction, every flow with its own access links.
    Dumbbell,
    /// Several links in a row; flows enter and leave where they state.
    ParkingLot,
    /// Links in any order; each flow has its own list of them.
    Network,
}

/// One direction of one hop.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Name in the file; the other direction of `x` is `x.reverse`.
    pub name: String,
    /// Its path model.
    pub config: LinkConfig,
    /// The trace file or the 3G pattern of its capacity; none if the file states rates.
    pub trace: Option<String>,
    /// A base station that reports the link's capacity to flows.
    pub assist: Option<Assist>,
}

/// A base station at a link: it reports an even share of the capacity to RTP flows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Assist {
    /// Whether it reports to media senders.
    pub to_sender: bool,
    /// Whether it reports to media receivers.
    pub to_receiver: bool,
    /// Interval of notices while the capacity changes little.
    pub interval: TimeDelta,
    /// Relative change of the rate since the last report that is reported at once.
    pub threshold: f64,
    /// Delay of a notice.
    pub delay: TimeDelta,
    /// Time in which the queue should drain; the queue is ignored if absent.
    pub drain: Option<TimeDelta>,
}

/// A stream of packets from one host to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Name in the file, unique; `name-1`, `name-2` ... if the file has a count.
    pub name: String,
    /// Indices into [`Scenario::links`] that its packets cross, in order.
    pub forward: Vec<usize>,
    /// Links that feedback or acknowledgements cross, in order.
    pub reverse: Vec<usize>,
    /// Whether it runs against the links: from the end at which forward flows arrive.
    pub reversed: bool,
    /// Code point of its packets, in both directions.
    pub dscp: Dscp,
    /// Total one-way delay of its own access links, in each direction.
    pub access_delay: TimeDelta,
    /// Rate of its own access links; unlimited if absent.
    pub access_rate: Option<DataRate>,
    /// Instant at which it starts.
    pub start: TimeDelta,
    /// Time at which it stops; never after the end of the run.
    pub stop: TimeDelta,
    /// Its traffic.
    pub kind: FlowKind,
}

impl Flow {
    /// The RTP part, if it is an RTP flow.
    pub fn rtp(&self) -> Option<&RtpFlow> {
        match &self.kind {
            FlowKind::Rtp(r) => Some(r),
            _ => None,
        }
    }
}

/// The traffic of a flow.
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::large_enum_variant, reason = "a scenario has a handful of flows")]
pub enum FlowKind {
    /// Media under a congestion controller.
    Rtp(RtpFlow),
    /// TCP.
    Tcp(TcpFlow),
    /// UDP without congestion control.
    Udp(UdpFlow),
    /// DCCP without RTP.
    Dccp(DccpFlow),
}

/// A media stream under a controller.
#[derive(Clone, PartialEq, Debug)]
pub struct RtpFlow {
    /// The controller's name in the registry.
    pub controller: String,
    /// Its parameters, known to exist and to be in range.
    pub params: Vec<(String, f64)>,
    /// Minimum media rate.
    pub floor: DataRate,
    /// Greatest media rate.
    pub ceiling: DataRate,
    /// Whether the ceiling is the default, since the file has none.
    pub has_default_ceiling: bool,
    /// Media rate before the first feedback.
    pub start_rate: DataRate,
    /// Intervals in which the source is paused, in order and disjoint.
    pub pauses: Vec<Pause>,
    /// Source of the media.
    pub source: Source,
    /// How far the source is read ahead, if it is stored content.
    pub read_ahead: Option<TimeDelta>,
    /// Greatest rate that the application has to send; as much as the target allows if absent.
    pub demand: Option<weir_media::Caps>,
    /// The streams that share the target, if the flow has several; [`Self::source`] is then ignored, unless the first stream has its
    /// pictures.
    pub streams: Vec<RtpStream>,
    /// The paths, if the flow has several.
    pub multipath: Option<Multipath>,
    /// How the first stream is sent: the size of packets, limits of the queue. Error resilience and picture feedback follow
    /// from other fields.
    pub sending: OutgoingOptions,
    /// Delay after sending at which a frame is played; later packets are discarded. None: nothing is discarded.
    pub playout_deadline: Option<TimeDelta>,
    /// Whether playout is as early as jitter allows, at the latest at [`Self::playout_deadline`].
    pub adaptive_playout: bool,
    /// Per-packet feedback: the controller's plan with the file's changes. None if it uses none.
    pub feedback: Option<FeedbackPlan>,
    /// The program whose receiving end the receiver behaves as.
    pub receiver: ReceiverModel,
    /// Receiver reports as requested by the controller; RFC 3550's timing if absent.
    pub reports: Option<ReportPlan>,
    /// UDP and IP headers around each packet.
    pub header_overhead: DataSize,
    /// Header bytes of each packet that rates in results count, although no link carries them.
    pub reported_headers: DataSize,
    /// Session bandwidth, of which RTCP uses 5 %.
    pub session_bandwidth: DataRate,
    /// Minimum average interval of regular RTCP reports.
    pub rtcp_interval: TimeDelta,
    /// Rules by which the flow stops for good.
    pub circuit_breaker: Option<CircuitBreaker>,
    /// Selection of the error resilience mechanisms; none if absent.
    pub resilience: Option<weir_media::resilience::Choice>,
    /// Whether receiver reports count retransmitted packets as received.
    pub count_retransmissions: bool,
    /// ECN codepoint of its packets: the controller's if the scenario has `ecn = true`.
    pub ecn: Ecn,
    /// Whether the controller adapts its rate.
    pub adapts: bool,
    /// The DCCP connection that carries it; UDP alone if absent.
    pub dccp: Option<DccpSettings>,
    /// The ends' own clocks.
    pub clocks: Clocks,
    /// The forecast of capacity that both ends get.
    pub forecast: Option<Box<Forecast>>,
    /// Whether a frame of a model counts as undecodable without the packet with the marker bit, not only without the
    /// first one.
    pub needs_marker: bool,
}

impl RtpFlow {
    /// Maximum payload of an RTP packet.
    pub fn payload(&self) -> DataSize {
        self.sending.packetiser.max_payload
    }
    /// This flow with the start rate that a forecast allows, if its controller is bounded by one.
    pub fn started_by(&self, forecast: Option<&[ForecastSegment]>) -> Cow<'_, Self> {
        let Some(segments) = forecast.filter(|_| self.controller.ends_with(MAP_SUFFIX)) else {
            return Cow::Borrowed(self);
        };
        let limits = Limits { floor: self.floor, ceiling: self.ceiling };
        let start_rate = wrappers::start_rate(segments, limits, self.start_rate);
        Cow::Owned(Self { start_rate, ..self.clone() })
    }
}

/// One of the streams of an RTP flow.
#[derive(Clone, PartialEq, Debug)]
pub struct RtpStream {
    /// Its name in results; encodings of a simulcast have their number after a colon.
    pub name: String,
    /// Its demand on the target.
    pub demand: weir_session::allocation::Demand,
    /// Whether its greatest rate is the default, since the file has none.
    pub has_default_most: bool,
    /// Source of its frames.
    pub source: StreamSource,
}

/// Source of the frames of a stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum StreamSource {
    /// Speech under Opus, as a model.
    Audio {
        /// Whether the talker pauses, and pauses send almost nothing.
        dtx: bool,
        /// Its packet time; as its rate advises if absent.
        packet_time: Option<weir_media::audio::PacketTime>,
    },
    /// Frames of the size given by the stream's rate.
    Frames {
        /// Frames a second.
        fps: f64,
        /// Time constant with which they follow a higher rate; zero for at once.
        rise: TimeDelta,
        /// Rate of the frames above which there is no more, if any.
        most: Option<DataRate>,
    },
    /// The pictures of the flow's source, a real encoder; of its first stream only.
    Pictures,
    /// Drawn speech through Opus, in virtual time.
    Speech,
}

/// Rules of a circuit breaker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CircuitBreaker {
    /// RFC 8083 with its recommended values.
    Rfc8083,
    /// The previous rules with TCP's simplified throughput equation (Singh's dissertation, section 3.7.1).
    Thesis2013,
    /// The same with TCP's full throughput equation.
    Thesis2013Full,
}

impl CircuitBreaker {
    /// The circuit breaker's configuration.
    pub fn config(self) -> circuit_breaker::Config {
        match self {
            Self::Rfc8083 => circuit_breaker::Config::default(),
            Self::Thesis2013 => circuit_breaker::Config::thesis_2013(Equation::Simplified),
            Self::Thesis2013Full => circuit_breaker::Config::thesis_2013(Equation::Full),
        }
    }
}

/// A TCP flow.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpFlow {
    /// Congestion control.
    pub algorithm: TcpAlgorithm,
    /// Whether it uses ECN (RFC 3168); always for algorithms that need it.
    pub ecn: bool,
    /// Whether slow start ends when the round-trip time rises (HyStart++, RFC 9406).
    pub hystart: bool,
    /// Whether the window falls in proportion to deliveries during fast recovery (RFC 6937).
    pub prr: bool,
    /// How losses are detected; with RACK-TLP the receiver reports duplicates (D-SACK, RFC 2883).
    pub loss_detection: TcpLossDetection,
    /// Its data to send.
    pub traffic: TcpTraffic,
    /// Payload of a full segment.
    pub segment: DataSize,
    /// Whether the receiver delays acknowledgements (RFC 5681, section 4.2).
    pub delayed_acks: bool,
    /// Initial window of a new connection in segments.
    pub initial_window: u32,
    /// Maximum segments in flight, if the file bounds them.
    pub max_window: Option<u32>,
    /// Whether losses are found by selective acknowledgements (RFC 6675) rather than by RFC 6582's rules.
    pub sack: bool,
    /// Whether segments carry timestamps (RFC 7323), 12 bytes each.
    pub timestamps: bool,
    /// Whether connections open with a handshake.
    pub handshake: bool,
    /// Minimum retransmission timeout.
    pub min_rto: TimeDelta,
}

/// The data to send of a TCP flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TcpTraffic {
    /// Unlimited, from start to stop.
    Bulk,
    /// A live source's data at a rate; data that the network has not accepted waits.
    Stream {
        /// The rate of the data, without headers.
        rate: DataRate,
    },
    /// Flows that arrive as a Poisson process, each one object on its own connection.
    Short {
        /// Flows a second.
        arrivals: f64,
        /// Size of an object, in bytes.
        size: Distribution,
    },
    /// Consecutive objects, with idle times between.
    OnOff {
        /// Size of an object, in bytes.
        size: Distribution,
        /// Idle time after an object, in seconds.
        idle: Distribution,
        /// Whether the first object starts at once or after an idle time.
        starts_on: bool,
        /// Whether all use one connection rather than each a new one.
        persistent: bool,
    },
}

/// A random quantity, in the unit that its owner states.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// Always the same.
    Constant(f64),
    /// Anything between, alike.
    Uniform {
        /// Minimum.
        min: f64,
        /// Greatest.
        max: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Pareto.
    Pareto {
        /// Mean.
        mean: f64,
        /// Shape, above 1.
        shape: f64,
    },
}

/// A UDP flow.
#[derive(Clone, PartialEq, Debug)]
pub struct UdpFlow {
    /// Rate while on, payload and UDP/IP headers together: constant, or in steps.
    pub rate: Capacity,
    /// Payload of a packet.
    pub payload: DataSize,
    /// Lengths of on and off times in seconds; always on if absent.
    pub on_off: Option<(Distribution, Distribution)>,
}
