//! The receiving direction: statistics, arrivals for feedback, the controller's receiver half and playout.

use crate::arrivals::ArrivalLog;
use crate::config::ReceiveConfig;
use crate::sender::earliest;
use crate::statistics::{ReceiveStatistics, Sequenced};
use weir_cc::cue::ReceivedPacket;
use weir_cc::{FeedbackFormat, FeedbackPlan, Receiver, ReceiverController, Report};
use weir_media::{MediaPacket, Playout};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::rtp::extension::abs_send_time_since;

/// Weight of a new message in the mean size of feedback, as RFC 3550 averages RTCP (section 6.3.3).
const SIZE_WEIGHT: f64 = 1.0 / 16.0;
/// First guess of a feedback message's size in bytes, with UDP and IP: a header, and one report each for 20 packets.
const FIRST_FEEDBACK_SIZE: f64 = 90.0;

/// What the receiving direction has seen so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiveCounters {
    /// RTP packets received and counted.
    pub packets: u64,
    /// RTP bytes received: headers, payload and padding.
    pub bytes: u64,
    /// Packets set aside for an unknown source or an unexplained jump of sequence numbers.
    pub invalid: u64,
}

/// One RTP packet, as read from a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub sequence: u16,
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

pub(crate) struct MediaReceiver {
    pub stats: ReceiveStatistics,
    pub log: Option<ArrivalLog>,
    plan: Option<FeedbackPlan>,
    pub controller: Option<Receiver>,
    pub playout: Option<Playout>,
    pub counters: ReceiveCounters,
    feedback_due: Option<Timestamp>,
    last_feedback: Timestamp,
    bytes_since_feedback: u64,
    /// Over the last feedback interval.
    received_rate: DataRate,
    feedback_size: f64,
    /// Last absolute send time as sent, and unwrapped.
    departure: Option<(u32, RemoteTimestamp)>,
}

impl MediaReceiver {
    pub(crate) fn new(config: ReceiveConfig, clock_rate: u32, now: Timestamp) -> Self {
        // RFC 8888 lets reports overlap, TWCC's practice is to tell each packet once.
        let log = config.feedback.map(|p| ArrivalLog::new(p.format == FeedbackFormat::CongestionControl));
        Self {
            stats: ReceiveStatistics::new(clock_rate),
            log,
            plan: config.feedback,
            controller: config.controller,
            playout: config.playout_deadline.map(Playout::new),
            counters: ReceiveCounters::default(),
            feedback_due: None,
            last_feedback: now,
            bytes_since_feedback: 0,
            received_rate: DataRate::ZERO,
            feedback_size: FIRST_FEEDBACK_SIZE,
            departure: None,
        }
    }

    pub(crate) fn on_rtp(&mut self, packet: &Incoming, now: Timestamp) {
        let Sequenced::Valid(sequence) = self.stats.on_sequence(packet.sequence) else {
            self.counters.invalid += 1;
            return;
        };
        self.stats.on_arrival(now, packet.rtp_timestamp);
        self.counters.packets += 1;
        self.counters.bytes += packet.size.as_bytes();
        self.bytes_since_feedback += packet.size.as_bytes();
        if let (Some(log), Some(plan)) = (&mut self.log, self.plan) {
            log.on_packet(sequence, now, packet.ecn);
            if self.feedback_due.is_none() && log.news() > 0 {
                // The interval runs from the last message; after a silence the first packet starts it anew.
                let silent = now.saturating_since(self.last_feedback) > plan.max_interval;
                let due = if silent { now + plan.min_interval } else { self.last_feedback + self.interval() };
                self.feedback_due = Some(due.max(now));
            }
        }
        if let Some(playout) = &mut self.playout
            && !packet.is_padding
        {
            let (rtp_timestamp, marker, size) = (packet.rtp_timestamp, packet.marker, packet.payload);
            playout.on_packet(now, &MediaPacket { sequence, rtp_timestamp, start: None, marker, size });
        }
        if self.controller.is_some() {
            let departure = packet.abs_send_time.map(|t| self.unwrap_departure(t));
            let received = ReceivedPacket {
                now,
                departure,
                size: packet.size,
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

    fn unwrap_departure(&mut self, time: u32) -> RemoteTimestamp {
        let at = match self.departure {
            // Not from zero, so that packets sent a little earlier stay after the clock's zero.
            None => RemoteTimestamp::from_secs(64),
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
    pub(crate) fn on_feedback_sent(&mut self, upto: u64, size: DataSize, now: Timestamp) {
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
            if log.news() > 0 {
                self.feedback_due = Some(now + interval);
            }
        }
    }

    pub(crate) fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        self.controller.as_mut()?.poll_report(now)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        let mut at = self.feedback_due;
        earliest(&mut at, self.controller.as_ref().and_then(ReceiverController::poll_timeout));
        at
    }
}
