//! State of a path in the receiving direction: the contents and timing of feedback, and the controller's receiver half.
//!
//! Per-packet feedback follows the controller's plan, inside RTCP's 5 %. REMB and TMMBR follow the early-feedback
//! rules of RFC 4585, regular reports RFC 3550's randomised timer; suppressed regular packets cause no wake-up.

use super::subflow::Subflow;
use crate::arrivals::ArrivalLog;
use crate::config::ReceivingPath;
use crate::feedback::TwccWriter;
use crate::received_packet::ReceivedPacket;
use crate::receiver_model::ReceiverModel;
use crate::sent::nearest;
use crate::session_params::{Profile, SessionParams};
use weir_cc::cue::{self, CapacityForecast, CapacityNotice};
use weir_cc::{FeedbackFormat, FeedbackPlan, Receiver, ReceiverController, Report, ReportPlan};
use weir_units::{DataRate, DataSize, Ecn, PathId, RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::rtp::extension::abs_send_time_since;

/// Weight of a new message in the mean size of feedback, as for RTCP in RFC 3550 (section 6.3.3).
const SIZE_WEIGHT: f64 = 1.0 / 16.0;
/// Initial size of a feedback message in bytes, with UDP and IP headers: a header and reports on 20 packets.
const FIRST_FEEDBACK_SIZE: f64 = 90.0;

/// A silence of this length is no gap between packets.
const MUTE: TimeDelta = TimeDelta::from_secs(1);

/// Transport-wide numbers of unknown sources further than this from the streams' are not believed: half a second at 2,000 packets a
/// second.
const MAX_UNKNOWN: u64 = 1_000;

/// An arrival log for this plan.
fn new_log(plan: FeedbackPlan) -> ArrivalLog {
    // RFC 8888 allows overlapping reports; TWCC implementations report each packet once.
    ArrivalLog::new(plan.format == FeedbackFormat::CongestionControl)
}

// Field order: data used by each packet is adjacent, so that few cache lines are touched with many calls.
#[repr(C)]
pub(crate) struct ReceivePath {
    pub feedback_due: Option<Timestamp>,
    pub controller: Option<Receiver>,
    plan: Option<FeedbackPlan>,
    /// Whether the profile has feedback messages.
    feedback_allowed: bool,
    /// Whether the feedback being waited for is the first after a mute.
    after_mute: bool,
    pub id: PathId,
    /// The highest transport-wide number, unwrapped, and whether a packet of a stream had it.
    transport: Option<u64>,
    transport_is_known: bool,
    bytes_since_feedback: u64,
    /// Arrivals by transport-wide numbers, if feedback uses them.
    pub log: Option<ArrivalLog>,
    last_feedback: Timestamp,
    /// The program whose timing feedback has, and when its timer began.
    model: ReceiverModel,
    began: Timestamp,
    pub twcc: TwccWriter,
    pub reports: Option<ReportPlan>,
    /// Rate over the last feedback interval.
    received_rate: DataRate,
    feedback_size: f64,
    /// Of the datagrams that the feedback of this interval has taken so far, bytes.
    report_size: f64,
    /// Last absolute send time as received, and unwrapped.
    departure: Option<(u32, RemoteTimestamp)>,
    /// The time of the first departure.
    first_departure: RemoteTimestamp,
    /// The number of the newest packet of any stream passed to the controller, if there are several streams.
    newest: u64,
    /// Reception of the subflow on this path, if the call has several paths.
    pub subflow: Option<Box<Subflow>>,
    /// A report on the subflow by the controller's receiver half that waits for its packet.
    pub report: Option<Report>,
}

impl ReceivePath {
    pub(crate) fn new(config: ReceivingPath, twcc: TwccWriter, now: Timestamp) -> Self {
        let ReceivingPath { feedback: plan, reports, controller } = config;
        Self {
            id: PathId::FIRST,
            log: plan.filter(|p| p.format == FeedbackFormat::TransportWide).map(new_log),
            transport: None,
            transport_is_known: false,
            twcc,
            plan,
            reports,
            feedback_allowed: true,
            after_mute: false,
            controller,
            feedback_due: None,
            last_feedback: now,
            model: ReceiverModel::default(),
            began: now,
            bytes_since_feedback: 0,
            received_rate: DataRate::ZERO,
            feedback_size: FIRST_FEEDBACK_SIZE,
            report_size: 0.0,
            departure: None,
            // Not zero, so that packets sent slightly earlier have positive times.
            first_departure: RemoteTimestamp::from_secs(64),
            newest: 65_536,
            subflow: None,
            report: None,
        }
    }

    /// Its feedback and reports, without a controller.
    pub(crate) fn feedback_config(&self) -> ReceivingPath {
        ReceivingPath { feedback: self.plan, reports: self.reports, controller: None }
    }

    /// Makes this one of several paths: arrivals are logged by the subflow's numbers, in any format of feedback.
    pub(crate) fn make_subflow(&mut self, id: PathId, clock_rate: u32) {
        self.id = id;
        self.log = self.plan.map(new_log);
        self.subflow = Some(Box::new(Subflow::new(clock_rate)));
    }

    /// The other end has restarted after this silence: clears the log; the controller continues.
    pub(crate) fn restart(&mut self, twcc: TwccWriter, silence: TimeDelta, now: Timestamp) {
        let first_departure = self.departure.map_or(self.first_departure, |(_, at)| at + silence);
        let config = ReceivingPath { controller: self.controller.take(), ..self.feedback_config() };
        let next = Self::new(config, twcc, now);
        let (feedback_allowed, newest, id, model) = (self.feedback_allowed, self.newest, self.id, self.model);
        let subflow = self.subflow.as_ref().map(|s| s.clock_rate());
        *self = Self { first_departure, feedback_allowed, newest, model, ..next };
        if let Some(clock_rate) = subflow {
            self.make_subflow(id, clock_rate);
        }
    }

    pub(crate) fn set_params(&mut self, params: &SessionParams) {
        self.feedback_allowed = params.profile == Profile::Avpf;
        self.model = params.receiver;
        if !self.feedback_allowed {
            self.feedback_due = None;
        }
    }

    #[inline]
    pub(crate) fn format(&self) -> Option<FeedbackFormat> {
        self.plan.map(|p| p.format)
    }

    /// A log of a stream's arrivals by its own sequence numbers, if feedback uses those.
    pub(crate) fn stream_log(&self) -> Option<ArrivalLog> {
        let by_stream = self.subflow.is_none();
        self.plan.filter(|p| by_stream && p.format == FeedbackFormat::CongestionControl).map(new_log)
    }

    /// An RTP packet of this size has arrived; logs it by its transport-wide number, if it has one.
    #[inline]
    pub(crate) fn on_rtp(&mut self, transport: Option<u16>, size: DataSize, ecn: Ecn, now: Timestamp) {
        self.bytes_since_feedback += size.as_bytes();
        if let Some(number) = transport {
            if !self.transport_is_known {
                self.begin_transport(number);
            }
            let number = self.unwrap_transport(number);
            self.log_packet(number, ecn, now);
        }
    }

    /// The first packet of a stream has arrived. Numbers of unknown sources far from its own were not the other end's.
    #[cold]
    fn begin_transport(&mut self, number: u16) {
        self.transport_is_known = true;
        if let (Some(log), Some(last)) = (&mut self.log, self.transport)
            && nearest(last, number).abs_diff(last) > MAX_UNKNOWN
        {
            (*log, self.transport) = (ArrivalLog::new(false), None);
        }
    }

    /// A packet of no known source has arrived with this transport-wide number. It is reported if its number is near those of
    /// the streams, which it does not move.
    pub(crate) fn on_unknown(&mut self, number: u16, size: DataSize, ecn: Ecn, now: Timestamp) {
        self.bytes_since_feedback += size.as_bytes();
        let number = match self.transport {
            Some(last) if self.transport_is_known => nearest(last, number),
            _ => self.unwrap_transport(number),
        };
        if self.transport.is_some_and(|last| number.abs_diff(last) <= MAX_UNKNOWN) {
            self.log_packet(number, ecn, now);
        }
    }
    #[inline]
    pub(crate) fn log_packet(&mut self, number: u64, ecn: Ecn, now: Timestamp) {
        if let Some(log) = &mut self.log {
            log.on_packet(number, now, ecn);
        }
    }

    /// The 64-bit form of a transport-wide number, one cycle up as in receive statistics.
    fn unwrap_transport(&mut self, number: u16) -> u64 {
        let number = self.transport.map_or(65_536 + u64::from(number), |last| nearest(last, number));
        self.transport = self.transport.max(Some(number));
        number
    }

    /// Counts a packet of any stream in the subflow's own numbers, if there are several paths.
    #[inline]
    pub(crate) fn count_subflow(&mut self, packet: &ReceivedPacket<'_>) {
        if let (Some(subflow), Some(sequence)) = (&mut self.subflow, packet.path_sequence) {
            subflow.on_packet(sequence, packet.rtp.timestamp(), packet.size, packet.now);
        }
    }
    /// Whether feedback must be scheduled after an arrival.
    #[inline]
    pub(crate) fn wants_schedule(&self) -> bool {
        self.feedback_allowed && self.feedback_due.is_none() && self.plan.is_some()
    }
    /// Schedules feedback: a packet has arrived since the last message.
    pub(crate) fn schedule_feedback(&mut self, now: Timestamp) {
        let Some(plan) = self.plan else { return };
        if let Some(interval) = self.model.feedback_interval(&plan) {
            self.feedback_due = Some(self.next_turn(interval, now));
            return;
        }
        // The interval runs from the last message. For the first one, and after a silence, it starts with the packet.
        let is_first = self.received_rate == DataRate::ZERO;
        let silence = now.saturating_since(self.last_feedback);
        self.after_mute = !is_first && silence > MUTE.max(plan.max_interval);
        let is_silent = is_first || silence > plan.max_interval;
        let due = if is_silent { now + plan.min_interval } else { self.last_feedback + self.interval() };
        self.feedback_due = Some(due.max(now));
    }

    /// The next time of a timer with this interval, after the last message.
    fn next_turn(&self, interval: TimeDelta, now: Timestamp) -> Timestamp {
        let nanos = interval.as_nanos().max(1);
        let turns = |at: Timestamp| (at - self.began).as_nanos().div_euclid(nanos);
        // A message that was sent late is that of the turn before it.
        let turn = (turns(now - TimeDelta::from_nanos(1)) + 1).max(turns(self.last_feedback) + 1);
        self.began + interval * turn
    }

    /// Interval of feedback messages: the plan's share of the received rate, within its bounds.
    fn interval(&self) -> TimeDelta {
        let Some(plan) = &self.plan else { return TimeDelta::MAX };
        let bps = self.received_rate.as_bps_f64() * plan.bandwidth_share;
        let wanted = TimeDelta::from_secs_f64(self.feedback_size * 8.0 / bps.max(1.0));
        wanted.min(plan.max_interval).max(plan.min_interval)
    }

    pub(crate) fn is_feedback_due(&self, now: Timestamp) -> bool {
        self.feedback_due.is_some_and(|at| at <= now)
    }

    /// Whether feedback is written into a regular report too, before it is due.
    pub(crate) fn rides_along(&self) -> bool {
        self.plan.and_then(|p| self.model.feedback_interval(&p)).is_none()
    }

    /// Feedback was written into a datagram of `size`. If it has covered packets (`progress`) and others are `left` that did
    /// not fit, the next datagram follows at once: otherwise reports fall behind where an interval has more packets than a
    /// datagram holds.
    pub(crate) fn on_feedback_sent(&mut self, size: DataSize, progress: bool, left: bool, now: Timestamp) {
        self.report_size += size.as_bytes() as f64;
        if left && progress {
            self.feedback_due = self.feedback_allowed.then_some(now);
            return;
        }
        self.feedback_size += SIZE_WEIGHT * (core::mem::take(&mut self.report_size) - self.feedback_size);
        let bytes = DataSize::from_bytes(self.bytes_since_feedback);
        // A mute shows nothing of the rate after it; at a rate over the mute, feedback would come at its longest interval.
        if !core::mem::take(&mut self.after_mute)
            && let Some(rate) = DataRate::from_size_over(bytes, now.saturating_since(self.last_feedback))
        {
            self.received_rate = rate;
        }
        self.last_feedback = now;
        self.bytes_since_feedback = 0;
        let next = self.plan.and_then(|p| self.model.feedback_interval(&p)).map(|i| self.next_turn(i, now));
        let next = next.unwrap_or_else(|| now + self.interval());
        self.feedback_due = (left && self.feedback_allowed).then_some(next);
    }

    /// The same for this path's own log, covered up to a number if any packet was.
    pub(crate) fn on_report_sent(&mut self, size: DataSize, upto: Option<u64>, now: Timestamp) {
        let (progress, left) = match self.log.as_mut().zip(upto) {
            Some((log, upto)) => (log.on_reported(upto), log.news() > 0),
            None => (false, false),
        };
        self.on_feedback_sent(size, progress, left, now);
    }

    fn unwrap_departure(&mut self, time: u32) -> RemoteTimestamp {
        let at = match self.departure {
            None => self.first_departure,
            Some((last, at)) => at + abs_send_time_since(time, last),
        };
        self.departure = Some((time, at));
        at
    }

    /// The number by which the controller knows a packet if several streams use this path: it counts the steps of each
    /// stream's numbers, so that a stream's losses are gaps here too.
    pub(crate) fn joint_number(&mut self, step: i64) -> u64 {
        let number = self.newest.saturating_add_signed(step);
        self.newest = self.newest.max(number);
        number
    }

    /// Passes a packet to the controller's receiver half.
    #[inline]
    pub(crate) fn report_to_controller(&mut self, sequence: u64, packet: &ReceivedPacket<'_>) {
        let departure = packet.abs_send_time.map(|t| self.unwrap_departure(t));
        let received = cue::ReceivedPacket {
            now: packet.now,
            departure,
            size: packet.size,
            payload: packet.payload_size(),
            sequence,
            rtp_timestamp: packet.rtp.timestamp(),
            marker: packet.rtp.marker(),
            ecn: packet.datagram.ecn,
        };
        if let Some(c) = &mut self.controller {
            c.on_packet_received(&received);
        }
    }

    /// A device on the path has announced the downlink capacity; returns the resulting report.
    pub(crate) fn on_notice(&mut self, notice: &CapacityNotice) -> Option<Report> {
        let c = self.controller.as_mut()?;
        c.on_notice(notice);
        c.poll_report(notice.now)
    }
    /// A map foretells the capacity; returns the resulting report.
    pub(crate) fn on_forecast(&mut self, forecast: &CapacityForecast<'_>) -> Option<Report> {
        let c = self.controller.as_mut()?;
        c.on_forecast(forecast);
        c.poll_report(forecast.now)
    }
    pub(crate) fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        self.controller.as_mut()?.poll_report(now)
    }
}
