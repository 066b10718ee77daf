//! One end of a call.

mod incoming;
mod outgoing;

use crate::config::{EndpointConfig, ReceiveConfig, SendConfig};
use crate::feedback::{FeedbackReader, TwccWriter};
use crate::frames::RecoveryStats;
use crate::protection::RepairChoice;
use crate::receiver::{MediaReceiver, ReceiveCounters};
use crate::recovery::RepairReceiveCounters;
use crate::rtcp::Heard;
use crate::rtcp_timer::{RtcpTimer, RtcpTimerConfig};
use crate::sender::{MediaSender, SendCounters, earliest};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_cc::circuit_breaker::Trip;
use weir_cc::{Controller, Limits, ReceiverController, Report, Target};
use weir_fec::SchemeError;
use weir_media::{PlayoutEvent, PlayoutStats};
use weir_units::{DataSize, Ecn, TimeDelta, Timestamp};
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
    /// Whether it is a repair packet.
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
}

/// Sets the repair stream's random numbers apart from the others.
const REPAIR_SEED: u64 = 0x5245_5041_4952;

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
    reference_heard: Option<(u32, Heard)>,
    prior_highest: Option<u32>,
    rtt: Option<TimeDelta>,
    counters: EndpointCounters,
    paused: bool,
    bye: Bye,
    rtp_overhead: u32,
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
        let timer_config = RtcpTimerConfig {
            session_bandwidth: config.session_bandwidth,
            t_rr_interval: config.t_rr_interval,
            members: 2,
            senders,
            we_sent: send.is_some(),
            plan: receive.as_ref().and_then(|r| r.reports).or(send.as_ref().and_then(|s| s.reports)),
        };
        if let Some(b) = send.as_mut().and_then(|s| s.circuit_breaker.as_mut())
            && b.min_report_interval == TimeDelta::ZERO
        {
            b.min_report_interval = timer_config.plan.map_or(config.t_rr_interval, |p| p.min_interval);
        }
        let timer = RtcpTimer::new(timer_config, &mut rng, now);
        // RFC 3550, section 5.1: both start at a random value.
        let (sequence, timestamp) = (rng.random::<u16>(), rng.random::<u32>());
        // From a generator of its own, so that a call without repair is the same as ever.
        let repair_sequence = Pcg64Mcg::seed_from_u64(config.seed ^ REPAIR_SEED).random::<u16>();
        let extensions = [(config.transport_sequence, 3), (config.abs_send_time, 4)];
        let elements: u32 = extensions.iter().filter(|e| e.0).map(|e| e.1).sum();
        let rtp_overhead = 12 + if elements == 0 { 0 } else { 4 + elements.next_multiple_of(4) };
        Self {
            sender: send.map(|s| MediaSender::new(s, config.ssrc, (sequence, repair_sequence), timestamp, now)),
            receiver: receive.map(|r| MediaReceiver::new(r, config.remote_ssrc, config.clock_rate, now)),
            timer,
            twcc: TwccWriter::new(config.ssrc, config.remote_ssrc),
            reader: FeedbackReader::default(),
            report: None,
            last_sr: None,
            last_repair_sr: None,
            reference_heard: None,
            prior_highest: None,
            rtt: None,
            counters: EndpointCounters::default(),
            paused: false,
            bye: Bye::No,
            rtp_overhead,
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

    /// New bounds on the media rate.
    pub fn set_limits(&mut self, limits: Limits, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.on_limits(limits, now);
        }
    }
    /// Stops or restarts the media source; RTCP goes on.
    pub fn set_paused(&mut self, paused: bool) {
        if paused
            && !self.paused
            && let Some(s) = &mut self.sender
        {
            s.breaker.on_stopped();
        }
        self.paused = paused;
    }
    /// Asks the source for a key frame.
    pub fn request_key_frame(&mut self, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.source_mut().request_key_frame(now);
        }
    }
    /// Ends the call: the next datagram is a compound with BYE, and nothing follows it.
    pub fn leave(&mut self) {
        if self.bye == Bye::No {
            self.bye = Bye::Wanted;
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
    /// Who decides on repair packets, from the next media packet on.
    ///
    /// # Errors
    /// Where no code has the scheme's numbers; nothing changes then.
    pub fn set_repair(&mut self, choice: RepairChoice) -> Result<(), SchemeError> {
        self.sender.as_mut().map_or(Ok(()), |s| s.repair.choose(choice))
    }
    /// Why and when the circuit breaker has stopped the media, where it has. RTCP goes on.
    pub fn tripped(&self) -> Option<Trip> {
        self.sender.as_ref()?.breaker.tripped()
    }
    /// Lets media flow again after a trip; `false` where it is too early for that, or there is no circuit breaker. The
    /// caller should have reason to think that the congestion has gone (RFC 8083, section 4.5).
    pub fn restart_after_trip(&mut self, now: Timestamp) -> bool {
        self.sender.as_mut().is_some_and(|s| s.breaker.restart(now))
    }
    /// Repair packets received, and what recovery made of them.
    pub fn repair_counters(&self) -> RepairReceiveCounters {
        self.receiver.as_ref().map(MediaReceiver::repair_counters).unwrap_or_default()
    }
    /// What became of media packets and frames in the end; nothing where there is neither repair nor playout.
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
    /// What playout has seen, where there is a deadline.
    pub fn playout_stats(&self) -> Option<PlayoutStats> {
        Some(self.receiver.as_ref()?.playout.as_ref()?.stats())
    }
    /// The internals of the controller's halves at this end, by name.
    pub fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        if let Some(s) = &self.sender {
            s.controller.metrics(out);
        }
        if let Some(c) = self.receiver.as_ref().and_then(|r| r.controller.as_ref()) {
            c.metrics(out);
        }
    }
}
