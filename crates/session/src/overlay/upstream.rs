//! A hop from a parent: whether it is there, and feedback on what arrives.

use super::config::Timing;
use crate::feedback::{CcfbContext, CcfbWriter, MAX_SUBFLOW_FEEDBACK};
use crate::receiver::ReceivePath;
use weir_cc::FeedbackFormat;
use weir_units::{DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::ntp::NtpTime;
use weir_wire::rtcp::mprtcp::Writer;
use weir_wire::rtcp::overlay::Place;

/// Packets that a hop's loss is measured over.
const LOSS_PACKETS: u64 = 50;

/// Progress of a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The parent has been asked this often and has not answered; it is asked again at this time.
    Attaching(u8, Timestamp),
    /// The parent sends.
    Attached,
}

/// A hop from a parent.
pub(super) struct Upstream {
    pub place: Place,
    pub state: State,
    pub last_heard: Timestamp,
    pub last_sent: Timestamp,
    /// Whether the parent lacks the tree itself.
    pub starved: bool,
    path: ReceivePath,
    /// Packets expected and received when the hop's loss was last measured.
    measured: (u64, u64),
}

/// A packet's arrival on a hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct HopArrival {
    /// Its number in the hop's subflow.
    pub number: u16,
    pub timestamp: u32,
    pub size: DataSize,
    pub ecn: Ecn,
}

impl Upstream {
    pub(super) fn new(place: Place, path: ReceivePath, now: Timestamp) -> Self {
        let state = State::Attaching(0, now);
        Self { place, state, last_heard: now, last_sent: now, starved: false, path, measured: (0, 0) }
    }

    pub(super) fn is_attached(&self) -> bool {
        self.state == State::Attached
    }

    /// An RTP packet has arrived: what feedback reports.
    pub(super) fn on_rtp(&mut self, arrival: &HopArrival, now: Timestamp) {
        self.last_heard = now;
        self.starved = false;
        self.path.on_rtp(Some(arrival.number), arrival.size, arrival.ecn, now);
        if let Some(s) = &mut self.path.subflow {
            s.on_packet(arrival.number, arrival.timestamp, arrival.size, now);
        }
        if self.path.wants_schedule() {
            self.path.schedule_feedback(now);
        }
    }

    /// The hop's loss since the last call, 0 to 1, once enough packets were expected.
    pub(super) fn take_loss(&mut self) -> Option<f64> {
        let stats = &self.path.subflow.as_ref()?.stats;
        let (expected, received) = (stats.expected(), stats.received());
        let new = expected.checked_sub(self.measured.0).filter(|n| *n >= LOSS_PACKETS)?;
        let arrived = received.saturating_sub(self.measured.1).min(new);
        self.measured = (expected, received);
        Some((new - arrived) as f64 / new as f64)
    }

    pub(super) fn is_feedback_due(&self, now: Timestamp) -> bool {
        self.path.is_feedback_due(now)
    }

    /// Writes feedback on this hop's subflow, in multipath RTCP.
    pub(super) fn write_feedback(&mut self, ssrcs: [u32; 2], zero: NtpTime, now: Timestamp, out: &mut Vec<u8>) {
        let [own, media] = ssrcs;
        let (path, mut upto) = (&mut self.path, None);
        let mut writer = Writer::new(out, own, media);
        writer.reports(self.place.tree.into(), |out| {
            let Some(log) = &path.log else { return };
            if path.format() == Some(FeedbackFormat::TransportWide) {
                upto = Some(path.twcc.write(log, TimeDelta::ZERO, out));
                return;
            }
            let context = CcfbContext { ssrc: own, zero, now, max_size: MAX_SUBFLOW_FEEDBACK };
            let mut message = CcfbWriter::new(context, out);
            upto = Some(message.add(media, log));
            message.finish();
        });
        writer.finish();
        // With UDP and IPv4 headers, as in RTCP's bandwidth.
        path.on_report_sent(DataSize::from_bytes(out.len() as u64 + 28), upto, now);
        self.last_sent = now;
    }

    /// Whether the parent has been silent for too long.
    pub(super) fn is_silent(&self, timing: &Timing, now: Timestamp) -> bool {
        self.is_attached() && now >= self.last_heard + timing.silence
    }
    /// Whether a keep-alive is due.
    pub(super) fn wants_keepalive(&self, timing: &Timing, now: Timestamp) -> bool {
        self.is_attached() && now >= self.last_sent + timing.child_keepalive
    }

    pub(super) fn poll_timeout(&self, timing: &Timing) -> Timestamp {
        let mut at = match self.state {
            State::Attaching(_, at) => at,
            State::Attached => (self.last_heard + timing.silence).min(self.last_sent + timing.child_keepalive),
        };
        crate::timers::earliest(&mut at, self.path.feedback_due);
        at
    }
}
