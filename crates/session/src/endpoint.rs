//! One end of a call.

mod control;
mod incoming;
mod outgoing;
mod picture;
mod remote;
mod resilience;
mod transport;

use crate::config::{EndpointConfig, ReceiveConfig, SendConfig};
use crate::content::ContentCounters;
use crate::feedback::{FeedbackReader, TwccWriter};
use crate::frames::RecoveryStats;
use crate::nack::NackCounters;
use crate::observer::MaybeObserver;
use crate::picture::PictureRequests;
use crate::receiver::{MediaReceiver, ReceiveCounters};
use crate::recovery::RepairReceiveCounters;
use crate::retransmission::RetransmissionCounters;
use crate::rtcp::Heard;
use crate::rtcp_timer::{RtcpTimer, RtcpTimerConfig};
use crate::sender::{MediaSender, SendCounters, earliest};
use crate::session_params::Profile;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use remote::Remote;
use weir_cc::circuit_breaker::Trip;
use weir_cc::{Controller, ReceiverController, Report, ReportPlan, Target};
use weir_media::{PlayoutEvent, PlayoutStats, ReceivedFrame};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::ntp::NtpTime;

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Its bytes, or those of its beginning.
    pub bytes: &'a [u8],
    /// Payload bytes that belong behind them and are carried as a length only.
    pub payload: u32,
    /// The ECN field on arrival.
    pub ecn: Ecn,
}

/// A datagram that is to leave; its bytes are in the buffer that the caller gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Media payload bytes that belong behind the buffer's bytes and are carried as a length only.
    pub payload: u32,
    /// UDP payload in bytes: the buffer and the media payload.
    pub size: DataSize,
    /// The ECN field to send it with.
    pub ecn: Ecn,
    /// Whether it is RTP rather than RTCP.
    pub is_rtp: bool,
    /// Whether it is a repair packet: forward error correction, or a packet that is sent again.
    pub is_repair: bool,
}

/// Datagrams that could not be taken, and RTCP's share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointCounters {
    /// Datagrams or RTCP packets that do not parse.
    pub malformed: u64,
    /// RTP or feedback about a source that is not part of the call.
    pub unknown_source: u64,
    /// Run-length reports and next data units of packets that were not sent, or are no longer remembered.
    pub unknown_packet: u64,
    /// RTCP datagrams sent.
    pub rtcp_sent: u64,
    /// RTCP bytes sent, UDP and IP headers included.
    pub rtcp_bytes: u64,
    /// RTCP datagrams received.
    pub rtcp_received: u64,
    /// Sources taken up as the other end's: the first where it was not known, and those that came in its place.
    pub sources: u64,
    /// Goodbyes of the other end's source.
    pub byes: u64,
    /// Packets that came under this end's own source identifier (RFC 3550, section 8.2).
    pub collisions: u64,
}

/// Sets the repair stream's random numbers apart from the others.
const REPAIR_SEED: u64 = 0x5245_5041_4952;
/// The same of the retransmission stream.
const RETRANSMISSION_SEED: u64 = 0x5254_5820;

/// One end of a call: sends media, receives media or both, and speaks RTCP about it.
pub struct Endpoint {
    config: EndpointConfig,
    rng: Pcg64Mcg,
    zero: NtpTime,
    sender: Option<MediaSender>,
    receiver: Option<MediaReceiver>,
    timer: RtcpTimer,
    twcc: TwccWriter,
    reader: FeedbackReader,
    /// A report of the receiver half that waits for its packet.
    report: Option<Report>,
    last_sr: Option<Heard>,
    /// The same of the other end's repair stream.
    last_repair_sr: Option<Heard>,
    /// The same of the other end's retransmission stream.
    last_retransmission_sr: Option<Heard>,
    reference_heard: Option<(u32, Heard)>,
    prior_highest: Option<u32>,
    rtt: Option<TimeDelta>,
    counters: EndpointCounters,
    paused: bool,
    bye: Bye,
    rtp_overhead: u32,
    /// The reports that controllers plan, before parameters of the session change them.
    plan: Option<ReportPlan>,
    observer: MaybeObserver,
    /// A report is wanted early: by the application, or by the other end's request (RFC 6051).
    early_wanted: bool,
    /// A sender report is to be asked for (RFC 6051), once a reporting interval.
    sync: Sync,
    picture: PictureRequests,
    remote: Remote,
}

/// Whether the other end's sender report is missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sync {
    No,
    Wanted,
    Asked,
}

/// Least interval of RTCP by RFC 3551's profile: 360 s over the session bandwidth in kbit/s (RFC 3550, section 6.2).
fn reduced_minimum(bandwidth: DataRate) -> TimeDelta {
    TimeDelta::from_secs_f64(360.0 / bandwidth.as_kbps_f64().max(1.0))
}

/// What the timer works from: the configuration, and the plan as the session's parameters change it.
fn timer_config(config: &EndpointConfig, plan: Option<ReportPlan>, senders: u32, we_sent: bool) -> RtcpTimerConfig {
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

/// Bytes of RTP header and extensions in front of every payload.
fn rtp_overhead(config: &EndpointConfig) -> u32 {
    let ntp = config.params.rapid_synchronisation.element_size();
    let elements = u32::from(config.transport_sequence) * 3 + u32::from(config.abs_send_time) * 4 + ntp;
    12 + if elements == 0 { 0 } else { 4 + elements.next_multiple_of(4) }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bye {
    No,
    Wanted,
    Sent,
}

impl Endpoint {
    /// An end of a call that begins at `now`.
    pub fn new(
        config: EndpointConfig,
        mut send: Option<SendConfig>,
        receive: Option<ReceiveConfig>,
        now: Timestamp,
    ) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(config.seed);
        let senders = 1 + u32::from(send.is_some() && receive.is_some());
        let plan = receive.as_ref().and_then(|r| r.reports).or(send.as_ref().and_then(|s| s.reports));
        let timer_config = timer_config(&config, plan, senders, send.is_some());
        if let Some(b) = send.as_mut().and_then(|s| s.circuit_breaker.as_mut())
            && b.min_report_interval == TimeDelta::ZERO
        {
            b.min_report_interval = timer_config.plan.map_or(config.t_rr_interval, |p| p.min_interval);
        }
        let timer = RtcpTimer::new(timer_config, &mut rng, now);
        // RFC 3550, section 5.1: both start at a random value.
        let (sequence, timestamp) = (rng.random::<u16>(), rng.random::<u32>());
        // From a generator of its own, so that a call without repair is the same as ever.
        let other = |seed| Pcg64Mcg::seed_from_u64(config.seed ^ seed).random::<u16>();
        let first = [sequence, other(REPAIR_SEED), other(RETRANSMISSION_SEED)];
        Self {
            sender: send.map(|s| MediaSender::new(s, (config.ssrc, config.picture), first, timestamp, now)),
            receiver: receive.map(|r| MediaReceiver::new(r, &config, now)),
            timer,
            twcc: TwccWriter::new(config.ssrc, config.remote_ssrc),
            reader: FeedbackReader::default(),
            report: None,
            last_sr: None,
            last_repair_sr: None,
            last_retransmission_sr: None,
            reference_heard: None,
            prior_highest: None,
            rtt: None,
            counters: EndpointCounters::default(),
            paused: false,
            bye: Bye::No,
            rtp_overhead: rtp_overhead(&config),
            plan,
            observer: None,
            early_wanted: false,
            sync: Sync::No,
            picture: PictureRequests::new(config.picture, now),
            remote: Remote::new(now),
            zero: NtpTime::from_bits(u64::from(config.ntp_epoch) << 32),
            rng,
            config,
        }
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.bye == Bye::Sent {
            return None;
        }
        let mut at = Some(self.timer.next_regular());
        if let Some(s) = &mut self.sender {
            earliest(&mut at, s.poll_timeout(now));
        }
        if let Some(r) = &self.receiver {
            earliest(&mut at, r.poll_timeout());
        }
        self.picture_timeout(&mut at);
        at
    }

    /// The deadline has come: frames are made, controllers and playout are run.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.on_timeout(now, self.paused);
        }
        if let Some(r) = &mut self.receiver {
            r.run_playout(now);
            if let Some(report) = r.poll_report(now) {
                self.report = Some(report);
            }
        }
    }

    /// What the controller asks for now.
    pub fn target(&self) -> Option<Target> {
        self.sender.as_ref().map(|s| *s.target())
    }
    /// What has been sent.
    pub fn send_counters(&self) -> SendCounters {
        self.sender.as_ref().map(MediaSender::counters).unwrap_or_default()
    }
    /// What has been received.
    pub fn receive_counters(&self) -> ReceiveCounters {
        self.receiver.as_ref().map(|r| r.counters).unwrap_or_default()
    }
    /// Why and when the circuit breaker has stopped the media, where it has. RTCP goes on.
    pub fn tripped(&self) -> Option<Trip> {
        self.sender.as_ref()?.breaker.tripped()
    }
    /// Repair packets received, and what recovery made of them.
    pub fn repair_counters(&self) -> RepairReceiveCounters {
        self.receiver.as_ref().map(MediaReceiver::repair_counters).unwrap_or_default()
    }
    /// What came of the other end's NACKs.
    pub fn retransmission_counters(&self) -> RetransmissionCounters {
        self.sender.as_ref().and_then(|s| s.retransmitter.as_ref()).map(|r| r.counters).unwrap_or_default()
    }
    /// Packets that were missing, and what came of asking for them.
    pub fn nack_counters(&self) -> NackCounters {
        self.receiver.as_ref().and_then(|r| r.nack.as_ref()).map(|n| n.counters).unwrap_or_default()
    }
    /// What became of media packets and frames in the end; nothing where there is neither repair, NACK nor playout.
    pub fn recovery_stats(&self) -> RecoveryStats {
        self.receiver.as_ref().map(MediaReceiver::recovery).unwrap_or_default()
    }
    /// What could not be taken, and RTCP's share.
    pub fn counters(&self) -> EndpointCounters {
        let unknown = self.sender.as_ref().map_or(0, MediaSender::unknown_reports);
        EndpointCounters { unknown_packet: self.counters.unknown_packet + unknown, ..self.counters }
    }
    /// Feedback that did not match what was sent.
    pub fn history_counters(&self) -> weir_cc::HistoryCounters {
        self.sender.as_ref().map(|s| s.history().counters()).unwrap_or_default()
    }
    /// Bytes in flight.
    pub fn bytes_in_flight(&self) -> DataSize {
        self.sender.as_ref().map(|s| s.history().bytes_in_flight()).unwrap_or_default()
    }
    /// Media bytes that wait in the RTP queue, the age of the oldest, and packets thrown away there.
    pub fn queue(&self, now: Timestamp) -> (DataSize, TimeDelta, u64) {
        self.sender.as_ref().map_or((DataSize::ZERO, TimeDelta::ZERO, 0), |s| {
            (s.queue().size(), s.queue().oldest_age(now), s.queue().dropped())
        })
    }
    /// The last round-trip time measured.
    pub fn rtt(&self) -> Option<TimeDelta> {
        self.rtt
    }
    /// The next frame whose playout deadline has come; ask until there is none.
    pub fn poll_playout(&mut self, now: Timestamp) -> Option<PlayoutEvent> {
        self.receiver.as_mut()?.poll_playout(now)
    }
    /// Moves what has arrived of the frame of this event into `frame`, whose buffers are used again; `false` where that is
    /// nothing. Frames are to be taken in the order of their events: what belongs before is let go.
    pub fn take_frame(&mut self, event: &PlayoutEvent, frame: &mut ReceivedFrame) -> bool {
        let content = self.receiver.as_mut().and_then(|r| r.content.as_mut());
        let taken = content.is_some_and(|c| c.take(event, frame));
        if taken {
            let payload = frame.packets.first().map(|p| &p.bytes[..]);
            self.picture.pictures.note(self.config.picture.name, frame.rtp_timestamp, payload);
        }
        taken
    }
    /// What became of the content that has arrived, and its bytes that are kept now.
    pub fn content_counters(&self) -> (ContentCounters, DataSize) {
        let content = self.receiver.as_ref().and_then(|r| r.content.as_ref());
        content.map_or_else(Default::default, |c| (c.counters, c.size()))
    }
    /// What playout has seen, where there is a deadline.
    pub fn playout_stats(&self) -> Option<PlayoutStats> {
        Some(self.receiver.as_ref()?.playout.as_ref()?.stats())
    }
    /// The internals of the controller's halves at this end, by name, and counts of error resilience where it is on.
    pub fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.resilience_metrics(out);
        if let Some(s) = &self.sender {
            s.controller.metrics(out);
        }
        if let Some(c) = self.receiver.as_ref().and_then(|r| r.controller.as_ref()) {
            c.metrics(out);
        }
    }
}
