//! One end of a call.

mod address_check;
mod capacity;
mod control;
mod counters;
mod handover;
mod incoming;
mod interfaces;
mod limits;
mod outgoing;
mod path;
mod path_checks;
mod paths;
mod picture;
mod policies;
mod red;
mod remote;
mod reports;
mod resilience;
mod streams;
mod subflow_times;
mod subflows;
mod transport;
mod views;

pub use counters::EndpointCounters;
pub use handover::{Handover, PathError, PathUse};
pub use interfaces::MAX_OFFERED;
pub use path::{Path, PathMut};
pub use streams::{Incoming, IncomingStats, MAX_STREAMS, Outgoing, OutgoingStats, StreamError};
pub use subflows::PathStats;
pub use views::{EndStats, RemoteEnd, RtcpControl};

use crate::allocation::MediaKind;
use crate::capacity_vector::CapacityVectors;
use crate::config::{EndConfig, SendingPath};
use crate::feedback::TwccWriter;
use crate::identity::Label;
use crate::ids::OutgoingId;
use crate::multipath::MAX_PATHS;
use crate::observer::MaybeObserver;
use crate::plan::EndPlan;
use crate::receiver::{IncomingStream, ReceivePath, Receiver, Shared};
use crate::rtcp::{Heard, Scratch};
use crate::rtcp_timer::{RtcpTimer, RtcpTimerConfig};
use crate::sender::{FirstNumbers, OutgoingStream, SendPath, Sender};
use crate::session_params::Profile;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_cc::{Report, ReportPlan, Target};
use weir_media::{PlayoutEvent, ReceivedFrame};
use weir_units::{DataRate, DataSize, PathId, TimeDelta, Timestamp};
use weir_wire::ntp::NtpTime;
use weir_wire::rtp::mprtp::SUBFLOW_SIZE;

/// Separates the repair stream's random values from the others.
const REPAIR_SEED: u64 = 0x5245_5041_4952;
/// Separates the retransmission stream's.
const RETRANSMISSION_SEED: u64 = 0x5254_5820;
/// Separates those of added streams.
const STREAM_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// One end of a call: sends media, receives media or both, and exchanges RTCP about it.
// Field order: data used by each packet is adjacent, so that few cache lines are touched with many calls.
#[repr(C)]
pub struct Endpoint {
    bye: Bye,
    paused: bool,
    /// Whether the call has several paths.
    is_multipath: bool,
    /// Whether an early report is wanted, by the application or on the other end's request (RFC 6051).
    early_wanted: bool,
    /// Whether a capacity vector waits to be sent for the first time.
    vector_waits: bool,
    /// Whether to request a sender report (RFC 6051), once per reporting interval.
    sr_request: SrRequestState,
    /// Whether the other end's source has sent a BYE, at an end that receives nothing.
    remote_bye: bool,
    /// [`EndStats::is_settled`].
    settled: bool,
    observer: MaybeObserver,
    /// This end's former sources, until their BYE has been sent.
    pub(crate) goodbyes: Vec<u32>,
    /// A report of the receiver half that waits for its packet.
    report: Option<Report>,
    rtt: Option<TimeDelta>,
    timer: RtcpTimer,
    pub(crate) sender: Option<Sender>,
    pub(crate) receiver: Option<Receiver>,
    zero: NtpTime,
    counters: EndpointCounters,
    pub(crate) config: EndConfig,
    rng: Pcg64Mcg,
    reference_heard: Option<(u32, Heard)>,
    /// The controllers' report plan, before session parameters modify it.
    plan: Option<ReportPlan>,
    /// The limit that the other end has requested last.
    requested: Option<limits::Requested>,
    /// When this end last changed identifiers.
    collided: Option<Timestamp>,
    pub(crate) next_outgoing: u16,
    pub(crate) next_incoming: u16,
    /// The reason in the other end's last goodbye.
    remote_reason: Option<Box<str>>,
    /// The reason that this end's goodbye gives.
    own_reason: Option<Box<str>>,
    /// State that only several paths need.
    paths: Option<Box<paths::Paths>>,
    /// Capacity vectors, if the ends have agreed on them.
    vectors: Option<Box<CapacityVectors>>,
    /// Buffers in which compounds are assembled.
    scratch: Scratch,
}

/// State of the request for the other end's sender report (RFC 6051, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SrRequestState {
    None,
    Wanted,
    Sent,
}

/// Least RTCP interval for the RTP/AVPF profile: 360 s divided by the session bandwidth in kbit/s (RFC 3550,
/// section 6.2).
fn reduced_minimum(bandwidth: DataRate) -> TimeDelta {
    TimeDelta::from_secs_f64(360.0 / bandwidth.as_kbps_f64().max(1.0))
}

/// The timer's inputs: the configuration, and the plan as modified by session parameters.
fn timer_config(config: &EndConfig, plan: Option<ReportPlan>, senders: u32, we_sent: bool) -> RtcpTimerConfig {
    let p = &config.params;
    let spacing = p.rtcp_interval.unwrap_or(config.t_rr_interval);
    let minimum = match p.profile {
        Profile::Avp => reduced_minimum(config.session_bandwidth),
        Profile::Avpf => TimeDelta::ZERO,
    };
    let plan = plan.map(|plan| match p.rtcp_interval {
        Some(t) => ReportPlan { min_interval: t, max_interval: plan.max_interval.max(t), ..plan },
        None => plan,
    });
    let (session_bandwidth, t_rr_interval) = (config.session_bandwidth, spacing);
    RtcpTimerConfig { session_bandwidth, t_rr_interval, minimum, members: 2, senders, we_sent, plan }
}

/// Bytes of RTP header and extensions before every payload of a stream.
fn rtp_overhead(config: &EndConfig, stream: &OutgoingStream, is_multipath: bool) -> u32 {
    let ntp = config.params.rapid_synchronisation.element_size();
    let label = |l: Option<Label>| l.filter(|_| stream.is_labelled).map_or(0, |l| 1 + l.as_bytes().len() as u32);
    // A subflow's number replaces the transport-wide one.
    let elements = u32::from(config.extensions.transport_sequence && !is_multipath) * 3
        + u32::from(config.extensions.abs_send_time) * 4
        + ntp
        + label(stream.identity.mid)
        + label(stream.identity.rid)
        + if is_multipath { 1 + SUBFLOW_SIZE as u32 } else { 0 };
    12 + if elements == 0 { 0 } else { 4 + elements.next_multiple_of(4) }
}

/// The sources of a stream that have sent packets.
pub(crate) fn used_sources(stream: &OutgoingStream) -> [Option<u32>; 3] {
    let [media, repair, retransmission] = stream.identity.sources();
    [
        Some(media),
        (stream.counters.repair_packets > 0 && !stream.is_in_red()).then_some(repair),
        (stream.retransmitted().0 > 0).then_some(retransmission),
    ]
}

/// A path whose circuit breaker knows how often reports come.
fn with_report_interval(mut path: SendingPath, timer: &RtcpTimer, config: &EndConfig) -> SendingPath {
    if let Some(b) = path.circuit_breaker.as_mut().filter(|b| b.min_report_interval == TimeDelta::ZERO) {
        b.min_report_interval = timer.config().plan.map_or(config.t_rr_interval, |p| p.min_interval);
    }
    path
}

/// The NTP time of `Timestamp::ZERO`.
fn zero_of(config: &EndConfig) -> NtpTime {
    NtpTime::at(Timestamp::ZERO + config.clock_offset, NtpTime::from_bits(u64::from(config.ntp_epoch) << 32))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bye {
    No,
    Wanted,
    Sent,
}

impl Endpoint {
    /// An end of a call that begins at `now`.
    ///
    /// # Errors
    /// Two streams have a source in common, or there are too many.
    pub fn new(plan: EndPlan, now: Timestamp) -> Result<Self, StreamError> {
        let EndPlan { end: config, outgoing, incoming, paths, group } = plan;
        let is_multipath = config.multipath || paths.len() > 1;
        let (mut sending, mut receiving) = (Vec::new(), Vec::new());
        for path in paths.into_iter().take(MAX_PATHS) {
            sending.extend(path.sending);
            receiving.extend(path.receiving);
        }
        let (mut outgoing, mut sending) = (outgoing.into_iter(), sending.into_iter());
        let (mut incoming, mut receiving) = (incoming.into_iter(), receiving.into_iter());
        let send = outgoing.next().zip(sending.next());
        let receive = incoming.next().zip(receiving.next());
        if let (Some((own, _)), Some((theirs, _))) = (&send, &receive)
            && let Some(ssrc) = theirs.identity.sources().into_iter().find(|s| own.identity.has(*s))
            && theirs.identity.ssrc != 0
        {
            return Err(StreamError::SourceInUse(ssrc));
        }
        let first_policy = send.as_ref().map(|(_, p)| p.policy).unwrap_or_default();
        let mut rng = Pcg64Mcg::seed_from_u64(config.seed);
        let senders = 1 + u32::from(send.is_some() && receive.is_some());
        let reports = receive.as_ref().and_then(|(_, p)| p.reports).or(send.as_ref().and_then(|(_, p)| p.reports));
        let timer = RtcpTimer::new(timer_config(&config, reports, senders, send.is_some()), &mut rng, now);
        // RFC 3550, section 5.1: both start at random values.
        let (sequence, timestamp) = (first_number(&mut rng), rng.random::<u32>());
        let first = FirstNumbers { media: one_cycle_up(sequence), timestamp, ..beside(config.seed) };
        let shared = Shared { params: &config.params, session_bandwidth: config.session_bandwidth };
        let mut endpoint = Self {
            sender: send.map(|(stream, path)| {
                let keeps = path.reports.is_some_and(|p| p.extended);
                let stream = OutgoingStream::new(OutgoingId::FIRST, stream, first, keeps, now);
                let path = with_report_interval(path, &timer, &config);
                Sender::new(stream, SendPath::new(PathId::FIRST, path, first.media, now), now)
            }),
            receiver: receive.map(|(stream, path)| {
                let twcc = TwccWriter::new(config.ssrc, config.remote_ssrc);
                let mut receiver = Receiver::new(stream, ReceivePath::new(path, twcc, now), shared, now);
                receiver.aligns = config.lip_synchronisation;
                receiver.clock_offset = config.clock_offset;
                receiver
            }),
            timer,
            report: None,
            reference_heard: None,
            requested: None,
            rtt: None,
            counters: EndpointCounters::default(),
            paused: false,
            is_multipath,
            paths: is_multipath.then(Box::default),
            vectors: config.capacity_vectors.then(Box::default),
            vector_waits: false,
            bye: Bye::No,
            plan: reports,
            observer: None,
            early_wanted: false,
            settled: false,
            sr_request: SrRequestState::None,
            goodbyes: Vec::new(),
            remote_bye: false,
            collided: None,
            next_outgoing: 1,
            next_incoming: 1,
            remote_reason: None,
            own_reason: None,
            scratch: Scratch::default(),
            zero: zero_of(&config),
            rng,
            config,
        };
        let params = endpoint.config.params;
        if let Some(r) = &mut endpoint.receiver {
            r.set_params(&params);
        }
        if is_multipath {
            endpoint.add_send_paths(first_policy, sending, group, now);
            endpoint.add_receive_paths(receiving, now);
            endpoint.follow_paths(now);
        }
        endpoint.follow_streams();
        endpoint.set_packet_overheads(now);
        for stream in outgoing {
            endpoint.add_outgoing(stream, now)?;
        }
        for stream in incoming {
            endpoint.add_incoming(stream, now)?;
        }
        Ok(endpoint)
    }

    /// First sequence numbers of a stream added as number `n`, from a separate generator.
    pub(crate) fn first_numbers(&self, n: u16) -> FirstNumbers {
        let seed = self.config.seed ^ STREAM_SEED.wrapping_mul(u64::from(n));
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let (sequence, timestamp) = (first_number(&mut rng), rng.random::<u32>());
        FirstNumbers { media: one_cycle_up(sequence), timestamp, ..beside(seed) }
    }

    /// Updates what depends on the set of streams and on session parameters.
    pub(crate) fn follow_streams(&mut self) {
        if let Some(sender) = &mut self.sender {
            for s in &mut sender.streams {
                s.overhead = rtp_overhead(&self.config, s, self.is_multipath);
            }
        }
    }

    /// The share of audio, whose packets are small, includes their headers: passes the headers' size to the sources.
    fn set_packet_overheads(&mut self, now: Timestamp) {
        let below = self.config.header_overhead;
        for s in self.sender.iter_mut().flat_map(|s| &mut s.streams).filter(|s| s.demand.media == MediaKind::Audio) {
            let headers = DataSize::from_bytes(u64::from(s.overhead + below));
            s.source_mut().set_packet_overhead(headers, now);
        }
    }

    /// When to call [`Self::handle_timeout`] next.
    #[inline]
    pub fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.bye == Bye::Sent {
            return None;
        }
        let mut at = self.timer.next_regular();
        if let Some(s) = &mut self.sender {
            at = at.min(s.poll_timeout(now));
        }
        if let Some(r) = &self.receiver {
            let (due, picture) = r.poll_timeout();
            at = at.min(due);
            if picture < Timestamp::MAX {
                self.picture_timeout(picture, &mut at);
            }
        }
        if let Some(paths) = &self.paths {
            at = at.min(paths.due);
        }
        Some(at)
    }

    /// The deadline has passed: makes frames, and runs controllers and playout.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.on_timeout(now, self.paused);
        }
        if let Some(report) = self.receiver.as_mut().and_then(|r| r.on_timeout(now)) {
            self.report = Some(report);
        }
    }

    /// The controller's current target.
    #[inline]
    pub fn target(&self) -> Option<Target> {
        self.sender.as_ref().map(Sender::joint_target)
    }
    /// The first stream's next frame whose playout deadline has passed; call it until it returns `None`.
    pub fn poll_playout(&mut self, now: Timestamp) -> Option<PlayoutEvent> {
        let (stream, path) = self.receiver.as_mut()?.with_path(0);
        stream.poll_playout(path, now)
    }
    /// Moves the received content of this event's frame of the first stream into `frame`, reusing its buffers; `false`
    /// if there is none. Frames must be taken in the order of their events: content of earlier frames is dropped.
    pub fn take_frame(&mut self, event: &PlayoutEvent, frame: &mut ReceivedFrame) -> bool {
        self.receiver.as_mut().is_some_and(|r| r.streams[0].take_frame(event, frame))
    }

    /// The stream that the endpoint was made with, or the oldest remaining one.
    fn first_outgoing(&self) -> Option<&OutgoingStream> {
        self.sender.as_ref()?.streams.first()
    }
    fn first_incoming(&self) -> Option<&IncomingStream> {
        self.receiver.as_ref()?.streams.first()
    }
}

/// The 64-bit form of a first sequence number, one cycle up so that earlier numbers exist.
fn one_cycle_up(sequence: u16) -> u64 {
    65_536 + u64::from(sequence)
}

/// A first sequence number: random (RFC 3550, section 5.1), in the lower half, so that a receiver that misses the first packets still
/// sees no wrap before it knows the source (RFC 3711, section 3.3.1).
fn first_number(rng: &mut Pcg64Mcg) -> u16 {
    rng.random::<u16>() >> 1
}

/// First sequence numbers of repair and retransmission streams, from separate generators, so that a call without them
/// is the same as with them.
fn beside(seed: u64) -> FirstNumbers {
    let other = |apart| one_cycle_up(first_number(&mut Pcg64Mcg::seed_from_u64(seed ^ apart)));
    FirstNumbers { media: 0, repair: other(REPAIR_SEED), retransmission: other(RETRANSMISSION_SEED), timestamp: 0 }
}
