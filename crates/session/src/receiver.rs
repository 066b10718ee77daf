//! The receiving direction: statistics, arrivals for feedback, the controller's receiver half and playout.

mod anew;
mod playing;
mod repair;
mod retransmission;

use crate::arrivals::ArrivalLog;
use crate::config::{EndpointConfig, ReceiveConfig};
use crate::content::ContentStore;
use crate::frames::FrameLedger;
use crate::interval::IntervalLog;
use crate::nack::{NackConfig, Nacker};
use crate::observer::MaybeObserver;
use crate::recovery::{RepairReceiver, RepairReception};
use crate::resilience::ReceiveResilience;
use crate::sender::earliest;
use crate::sent::nearest;
use crate::session_params::{Profile, SessionParams, XrBlocks};
use crate::statistics::{ReceiveStatistics, Sequenced};
use retransmission::ResentStream;
use std::collections::VecDeque;
use weir_cc::cue::{CapacityNotice, OneWayDelay, ReceivedPacket};
use weir_cc::{FeedbackFormat, FeedbackPlan, OneWayDelayMeter, Receiver, ReceiverController, Report, ReportPlan};
use weir_media::{AdaptivePlayout, Playout, PlayoutEvent};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::rtcp::OneWayDelayReport;
use weir_wire::rtp::extension::abs_send_time_since;

/// Weight of a new message in the mean size of feedback, as RFC 3550 averages RTCP (section 6.3.3).
const SIZE_WEIGHT: f64 = 1.0 / 16.0;
/// First guess of a feedback message's size in bytes, with UDP and IP: a header, and one report each for 20 packets.
const FIRST_FEEDBACK_SIZE: f64 = 90.0;

/// What the receiving direction has seen so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiveCounters {
    /// RTP packets received and counted, of the media stream.
    pub packets: u64,
    /// Their RTP bytes: headers, payload and padding.
    pub bytes: u64,
    /// Packets set aside for an unknown source or an unexplained jump of sequence numbers.
    pub invalid: u64,
}

/// One RTP packet, as read from a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub sequence: u16,
    /// Transport-wide sequence number, where feedback goes by it and the packet has it.
    pub transport: Option<u16>,
    pub rtp_timestamp: u32,
    pub marker: bool,
    /// Header, extensions, payload and padding.
    pub size: DataSize,
    /// Payload without header, extensions and padding.
    pub payload: DataSize,
    pub is_padding: bool,
    pub abs_send_time: Option<u32>,
    pub ecn: Ecn,
}

impl Incoming {
    /// What frames are told apart by; nothing for padding.
    fn frame(&self) -> Option<(u32, bool)> {
        (!self.is_padding).then_some((self.rtp_timestamp, self.marker))
    }
}

/// The payload of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload<'a> {
    /// What of it is there.
    pub bytes: &'a [u8],
    /// Zeros that belong behind.
    pub zeros: u32,
    /// Whether its packet was lost and brought back.
    pub repaired: bool,
}

/// Time that packets wait for repair where no playout deadline says so.
const DEFAULT_DEADLINE: TimeDelta = TimeDelta::from_secs(1);

/// Whether feedback goes by transport-wide numbers.
fn by_transport(format: FeedbackFormat) -> bool {
    format == FeedbackFormat::TransportWide
}

fn new_log(plan: Option<FeedbackPlan>) -> Option<ArrivalLog> {
    // RFC 8888 lets reports overlap, TWCC's practice is to tell each packet once.
    plan.map(|p| ArrivalLog::new(p.format == FeedbackFormat::CongestionControl))
}

fn new_playout(deadline: Option<TimeDelta>, adaptive: Option<AdaptivePlayout>) -> Option<Playout> {
    adaptive.map(Playout::adaptive).or(deadline.map(Playout::new))
}

pub(crate) struct MediaReceiver {
    /// The media's source.
    ssrc: u32,
    payload_type: u8,
    clock_rate: u32,
    pub stats: ReceiveStatistics,
    /// By transport-wide numbers, or by those of the media stream.
    pub log: Option<ArrivalLog>,
    /// The highest transport-wide number, unwrapped.
    transport: Option<u64>,
    reception: RepairReception,
    deadline: Option<TimeDelta>,
    adaptive: Option<AdaptivePlayout>,
    /// Whether adaptive playout counts from the fastest frame although capture times are told: by those all is too late.
    from_fastest: bool,
    pub repair: Option<RepairReceiver>,
    pub nack: Option<Nacker>,
    pub resilience: Option<ReceiveResilience>,
    /// The retransmission stream, once it has begun.
    pub resent: Option<ResentStream>,
    frames: Option<FrameLedger>,
    plan: Option<FeedbackPlan>,
    reports: Option<ReportPlan>,
    xr: XrBlocks,
    /// Whether the profile has feedback messages.
    feedback_allowed: bool,
    /// Packets since the last report, and their delay, where reports tell of them.
    pub interval: Option<IntervalLog>,
    pub one_way_delay: Option<OneWayDelayMeter>,
    pub controller: Option<Receiver>,
    pub playout: Option<Playout>,
    /// What has arrived of the frames that playout waits for, where somebody wants it.
    pub content: Option<ContentStore>,
    /// What playout told the controller and nobody has polled yet.
    events: VecDeque<PlayoutEvent>,
    pub counters: ReceiveCounters,
    feedback_due: Option<Timestamp>,
    last_feedback: Timestamp,
    bytes_since_feedback: u64,
    /// Over the last feedback interval.
    received_rate: DataRate,
    feedback_size: f64,
    /// Last absolute send time as sent, and unwrapped.
    departure: Option<(u32, RemoteTimestamp)>,
    /// The time of the first departure.
    first_departure: RemoteTimestamp,
    /// What is added to sequence numbers, so that a jump is no loss to the controller, and the number that the next packet
    /// has there where one has happened.
    ahead: u64,
    goes_on_at: Option<u64>,
    /// Packets in a row that came too late for playout, and when the first and the last of them came.
    late: (u32, Timestamp, Timestamp),
    /// RTP timestamp of the newest packet, and when it came.
    newest: (u32, Timestamp),
}

impl MediaReceiver {
    pub(crate) fn new(config: ReceiveConfig, endpoint: &EndpointConfig, now: Timestamp) -> Self {
        let (ssrc, clock_rate) = (endpoint.remote_ssrc, endpoint.clock_rate);
        let deadline = config.adaptive_playout.map(|a| a.max).or(config.playout_deadline);
        let mut r = Self {
            ssrc,
            payload_type: endpoint.payload_type,
            clock_rate,
            stats: ReceiveStatistics::new(clock_rate),
            log: new_log(config.feedback),
            transport: None,
            reception: config.repair,
            deadline,
            adaptive: config.adaptive_playout,
            from_fastest: false,
            repair: None,
            nack: config
                .nack
                .or(config.resilience.map(|_| NackConfig::default()))
                .map(|c| Nacker::new(c, endpoint.session_bandwidth, now)),
            resilience: config.resilience.map(ReceiveResilience::new),
            resent: None,
            frames: deadline.map(FrameLedger::new),
            plan: config.feedback,
            reports: config.reports,
            xr: XrBlocks::default(),
            feedback_allowed: true,
            interval: None,
            one_way_delay: None,
            events: VecDeque::new(),
            controller: config.controller,
            playout: new_playout(deadline, config.adaptive_playout),
            content: deadline.filter(|_| config.content).map(ContentStore::new),
            counters: ReceiveCounters::default(),
            feedback_due: None,
            last_feedback: now,
            bytes_since_feedback: 0,
            received_rate: DataRate::ZERO,
            feedback_size: FIRST_FEEDBACK_SIZE,
            departure: None,
            // Not from zero, so that packets sent a little earlier stay after the clock's zero.
            first_departure: RemoteTimestamp::from_secs(64),
            ahead: 0,
            goes_on_at: None,
            late: (0, now, now),
            newest: (0, now),
        };
        if r.reception == RepairReception::Always {
            r.begin_repair();
        }
        if r.nack.is_some() {
            r.begin_ledger();
        }
        r.set_params(&endpoint.params, clock_rate);
        r.follow_resilience();
        r
    }

    /// Takes up the session's parameters.
    pub(crate) fn set_params(&mut self, params: &SessionParams, clock_rate: u32) {
        self.xr = params.xr.unwrap_or(XrBlocks::of_plan(self.reports.as_ref()));
        let follows = self.xr.has_traces() || self.reports.is_some();
        self.interval = if follows { self.interval.take().or_else(|| Some(IntervalLog::default())) } else { None };
        let meter = self.one_way_delay.take().or_else(|| Some(OneWayDelayMeter::new(clock_rate)));
        self.one_way_delay = meter.filter(|_| self.xr.one_way_delay);
        self.feedback_allowed = params.profile == Profile::Avpf;
        if !self.feedback_allowed {
            self.feedback_due = None;
        }
        if let Some(nack) = &mut self.nack {
            nack.allow(self.feedback_allowed);
        }
    }

    /// A packet of the media stream: what is read of it, its bytes and its payload.
    pub(crate) fn on_rtp(
        &mut self,
        packet: &Incoming,
        (bytes, payload): (&[u8], Payload<'_>),
        observer: &mut MaybeObserver,
        now: Timestamp,
    ) {
        let before = self.stats.highest();
        let Sequenced::Valid(sequence) = self.stats.on_sequence(packet.sequence) else {
            self.counters.invalid += 1;
            return;
        };
        if self.stats.take_jump() {
            self.on_jump((before, sequence), packet.rtp_timestamp, now);
        }
        self.newest = (packet.rtp_timestamp, now);
        self.stats.on_arrival(now, packet.rtp_timestamp);
        self.counters.packets += 1;
        self.counters.bytes += packet.size.as_bytes();
        self.bytes_since_feedback += packet.size.as_bytes();
        if self.log.is_some() {
            let number = packet.transport.map_or(sequence, |t| self.unwrap_transport(t));
            if let Some(log) = &mut self.log {
                log.on_packet(number, now, packet.ecn);
            }
            self.schedule_feedback(now);
        }
        let discarded = self.play(sequence, packet, &payload, now);
        if let Some(interval) = &mut self.interval {
            interval.on_packet(sequence, discarded);
        }
        if let Some(meter) = self.one_way_delay.as_mut().filter(|_| !packet.is_padding) {
            meter.on_packet(now, packet.rtp_timestamp);
        }
        if let Some(frames) = &mut self.frames {
            frames.on_packet(now, sequence, packet.frame(), discarded);
        }
        if self.nack.is_some() {
            self.look_for_gaps(sequence, (packet.rtp_timestamp, packet.marker), false, now);
        }
        if let Some(repair) = &mut self.repair {
            repair.on_media(now, sequence, bytes, payload.zeros);
            self.recover(observer, now);
        }
        if self.controller.is_some() {
            let departure = packet.abs_send_time.map(|t| self.unwrap_departure(t));
            if let Some(next) = self.goes_on_at.take() {
                self.ahead = next.wrapping_sub(sequence);
            }
            let sequence = sequence.wrapping_add(self.ahead);
            let received = ReceivedPacket {
                now,
                departure,
                size: packet.size,
                payload: packet.payload,
                sequence,
                rtp_timestamp: packet.rtp_timestamp,
                marker: packet.marker,
                ecn: packet.ecn,
            };
            if let Some(c) = &mut self.controller {
                c.on_packet_received(&received);
            }
        }
    }

    /// The 64-bit form of a transport-wide number, one cycle up as receive statistics have it.
    fn unwrap_transport(&mut self, number: u16) -> u64 {
        let number = self.transport.map_or(65_536 + u64::from(number), |last| nearest(last, number));
        self.transport = self.transport.max(Some(number));
        number
    }

    /// Packets that have arrived since the last feedback.
    pub(crate) fn news(&self) -> u32 {
        let repair = self.repair.as_ref().and_then(|r| r.log.as_ref()).map_or(0, ArrivalLog::news);
        let resent = self.resent.as_ref().and_then(|r| r.log.as_ref()).map_or(0, ArrivalLog::news);
        self.log.as_ref().map_or(0, ArrivalLog::news) + repair + resent
    }

    fn schedule_feedback(&mut self, now: Timestamp) {
        let due = self.feedback_allowed && self.feedback_due.is_none() && self.news() > 0;
        let Some(plan) = self.plan.filter(|_| due) else { return };
        // The interval runs from the last message; after a silence the first packet starts it anew.
        let silent = now.saturating_since(self.last_feedback) > plan.max_interval;
        let due = if silent { now + plan.min_interval } else { self.last_feedback + self.interval() };
        self.feedback_due = Some(due.max(now));
    }

    /// Whether a loss or discard since the last report is to be told early.
    pub(crate) fn is_urgent(&self) -> bool {
        self.reports.is_some_and(|p| p.early) && self.interval.as_ref().is_some_and(IntervalLog::has_news)
    }

    /// Whether the round trip is of use at this end.
    pub(crate) fn wants_round_trip(&self) -> bool {
        self.controller.is_some() || self.xr.reference_time || self.nack.is_some()
    }

    /// A device on the path has told the way in's capacity; the report that it gives rise to.
    pub(crate) fn on_notice(&mut self, notice: &CapacityNotice) -> Option<Report> {
        let c = self.controller.as_mut()?;
        c.on_notice(notice);
        c.poll_report(notice.now)
    }

    pub(crate) fn on_rtt(&mut self, rtt: TimeDelta, now: Timestamp) {
        if let Some(c) = &mut self.controller {
            c.on_rtt(rtt, now);
        }
        if let Some(meter) = &mut self.one_way_delay {
            meter.on_rtt(rtt);
        }
        if let Some(nack) = &mut self.nack {
            nack.on_rtt(rtt);
        }
        if let Some(r) = &mut self.resilience {
            r.on_rtt(rtt);
        }
    }

    /// Appends what a regular report tells of the packets since the last one, where a plan asks for it.
    pub(crate) fn write_interval(&mut self, (ssrc, media_ssrc): (u32, u32), out: &mut Vec<u8>) {
        if !self.stats.is_started() {
            return;
        }
        let range = match &mut self.interval {
            Some(interval) if self.xr.has_traces() => {
                interval.write((ssrc, media_ssrc), &self.xr, self.repair.is_some() || self.nack.is_some(), out)
            }
            Some(interval) => interval.skip(),
            None => (0, 0),
        };
        if let Some(OneWayDelay { min, mean, last: latest }) =
            self.one_way_delay.as_mut().and_then(|m| m.take_interval())
        {
            let (begin, end) = range;
            OneWayDelayReport { sender_ssrc: ssrc, media_ssrc, begin, end, min, mean, latest }.write_into(out);
        }
    }

    /// The packet that is decoded next, as its sequence number stands in it, and how long until then. Nothing waiting,
    /// it is the one after the newest.
    pub(crate) fn next_to_decode(&self, now: Timestamp) -> (u16, Option<TimeDelta>) {
        match self.playout.as_ref().and_then(Playout::next_to_play) {
            Some((sequence, deadline)) => (sequence as u16, Some((deadline - now).max(TimeDelta::ZERO))),
            None => (self.stats.highest().wrapping_add(1) as u16, None),
        }
    }

    fn unwrap_departure(&mut self, time: u32) -> RemoteTimestamp {
        let at = match self.departure {
            None => self.first_departure,
            Some((last, at)) => at + abs_send_time_since(time, last),
        };
        self.departure = Some((time, at));
        at
    }

    /// Distance between feedback messages: the plan's share of the received rate, between its bounds.
    fn interval(&self) -> TimeDelta {
        let Some(plan) = &self.plan else { return TimeDelta::MAX };
        let bps = self.received_rate.as_bps_f64() * plan.bandwidth_share;
        let wanted = TimeDelta::from_secs_f64(self.feedback_size * 8.0 / bps.max(1.0));
        wanted.min(plan.max_interval).max(plan.min_interval)
    }

    pub(crate) fn feedback_due(&self, now: Timestamp) -> bool {
        self.feedback_due.is_some_and(|at| at <= now)
    }
    pub(crate) fn format(&self) -> Option<FeedbackFormat> {
        self.plan.map(|p| p.format)
    }

    /// Feedback up to `upto` has been written into a datagram of `size`.
    pub(crate) fn on_feedback_sent(
        &mut self,
        [upto, repair_upto, resent_upto]: [u64; 3],
        size: DataSize,
        now: Timestamp,
    ) {
        self.feedback_size += SIZE_WEIGHT * (size.as_bytes() as f64 - self.feedback_size);
        let bytes = DataSize::from_bytes(self.bytes_since_feedback);
        if let Some(rate) = DataRate::from_size_over(bytes, now.saturating_since(self.last_feedback)) {
            self.received_rate = rate;
        }
        let interval = self.interval();
        self.last_feedback = now;
        self.bytes_since_feedback = 0;
        self.feedback_due = None;
        if let Some(log) = &mut self.log {
            log.on_reported(upto);
        }
        if let Some(log) = self.repair_log_mut() {
            log.on_reported(repair_upto);
        }
        if let Some(log) = self.retransmission_log_mut() {
            log.on_reported(resent_upto);
        }
        if self.feedback_allowed && self.news() > 0 {
            self.feedback_due = Some(now + interval);
        }
    }

    pub(crate) fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        self.controller.as_mut()?.poll_report(now)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        let mut at = self.feedback_due;
        if let Some(nack) = &self.nack {
            earliest(&mut at, nack.poll_timeout());
        }
        if let Some(c) = &self.controller {
            earliest(&mut at, c.poll_timeout());
        }
        if self.runs_playout() {
            earliest(&mut at, self.playout.as_ref().and_then(Playout::next_event));
        }
        at
    }
}
