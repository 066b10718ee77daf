//! The receiver half of a controller, served.

use super::at;
use crate::protocol::{Answer, Event, Message};
use weir_cc::cue::ReceivedPacket;
use weir_cc::{Receiver, ReceiverController as _, Report, Setup};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// A receiver half, the rate that it asked for last, and its report.
pub(super) struct Receiving {
    half: Receiver,
    now: Timestamp,
    rate: DataRate,
    report: Option<Report>,
}

impl Receiving {
    pub(super) fn new(half: Receiver, setup: &Setup) -> Self {
        Self { half, now: setup.now, rate: setup.start_rate, report: None }
    }

    pub(super) fn pass(&mut self, event: &Event) {
        self.now = at(event.now_ns());
        match event {
            Event::Received { sequence, sent_ns, size_bytes, payload_bytes, rtp_timestamp, marker, ce, .. } => {
                self.half.on_packet_received(&ReceivedPacket {
                    now: self.now,
                    departure: sent_ns.map(RemoteTimestamp::from_nanos),
                    size: DataSize::from_bytes(*size_bytes),
                    payload: DataSize::from_bytes(*payload_bytes),
                    sequence: *sequence,
                    rtp_timestamp: *rtp_timestamp,
                    marker: *marker,
                    ecn: if *ce { Ecn::Ce } else { Ecn::NotEct },
                });
                self.poll();
            }
            Event::Timer { .. } => self.poll(),
            Event::Rtt { rtt_ns, .. } => {
                self.half.on_rtt(TimeDelta::from_nanos(*rtt_ns), self.now);
                // A report that is due at once would not be a timer in the future.
                if self.half.poll_timeout().is_some_and(|due| due <= self.now) {
                    self.poll();
                }
            }
            _ => {}
        }
    }

    fn poll(&mut self) {
        self.report = self.half.poll_report(self.now).or(self.report);
    }

    /// The rest of an answer. `None` for a report that the protocol does not have.
    pub(super) fn complete(&mut self, answer: &mut Answer) -> Option<()> {
        match self.report.take() {
            Some(Report::Remb { rate }) => (self.rate, answer.report) = (rate, Some(Message::Remb)),
            Some(Report::Tmmbr { rate }) => (self.rate, answer.report) = (rate, Some(Message::Tmmbr)),
            Some(_) => return None,
            None => {}
        }
        answer.media_bps = self.rate.as_bps_f64();
        answer.timer_ns = self.half.poll_timeout().map(Timestamp::as_nanos);
        Some(())
    }
}
