//! A receiver half under operations.

use super::*;

/// A receiver half that receives packets.
pub(super) struct ReceiverHarness {
    pub(super) controller: Receiver,
    pub(super) now: Timestamp,
    pub(super) sequence: u64,
    pub(super) rtp_timestamp: u32,
    pub(super) names: Vec<&'static str>,
    pub(super) clock: OtherClock,
    pub(super) reports: Vec<String>,
}

impl ReceiverHarness {
    pub(super) fn apply(&mut self, op: ReceiverOp) -> Checked {
        match op {
            ReceiverOp::Packet { gap_us, size, departure, step, rtp_step, marker, ecn } => {
                self.now += TimeDelta::from_micros(i64::from(gap_us));
                self.sequence = self.sequence.saturating_add_signed(i64::from(step));
                self.rtp_timestamp = self.rtp_timestamp.wrapping_add(rtp_step);
                let departure = departure.map(RemoteTimestamp::from_nanos);
                self.packet(size, departure, marker, Ecn::from_bits(ecn));
            }
            ReceiverOp::Steady { gap_us, size, delay_us } => {
                self.now += TimeDelta::from_micros(i64::from(gap_us));
                self.sequence += 1;
                self.rtp_timestamp = self.rtp_timestamp.wrapping_add(3_000);
                let departure = self.now - TimeDelta::from_micros(i64::from(delay_us));
                self.packet(size, Some(self.clock.read(departure)), true, Ecn::Ect0);
            }
            ReceiverOp::Playout { rtp_timestamp, complete, discarded, buffered_ns } => {
                // Of the last packet, or arbitrary.
                let rtp_timestamp = if complete { self.rtp_timestamp } else { rtp_timestamp };
                let buffered = TimeDelta::from_nanos(buffered_ns);
                let frame = FramePlayout { now: self.now, rtp_timestamp, complete, discarded, buffered };
                self.controller.on_playout(&frame);
                let report = self.controller.poll_report(self.now);
                self.reports.extend(report.map(|r| format!("{r:?}")));
            }
            ReceiverOp::Clock { step_ms, ppm, granularity_us } => {
                self.clock.change(self.now, step_ms, ppm, granularity_us);
            }
            ReceiverOp::Rtt { ns } => self.controller.on_rtt(TimeDelta::from_nanos(ns), self.now),
            ReceiverOp::Poll { late_us } => {
                let at = self.controller.poll_timeout().unwrap_or(self.now);
                self.now = self.now.max(at) + TimeDelta::from_micros(i64::from(late_us));
                self.poll()?;
            }
            ReceiverOp::Silence { ms } => self.now += TimeDelta::from_millis(i64::from(ms)),
        }
        let (mut at, mut wrong) = (0, None);
        self.controller.metrics(&mut |name, value| {
            if self.names.get(at) != Some(&name) || value.is_infinite() {
                wrong.get_or_insert((name, value));
            }
            at += 1;
        });
        prop_assert!(wrong.is_none() && at == self.names.len(), "metric {wrong:?}, {at} of {}", self.names.len());
        Ok(())
    }

    pub(super) fn packet(&mut self, size: u16, departure: Option<RemoteTimestamp>, marker: bool, ecn: Ecn) {
        self.controller.on_packet_received(&ReceivedPacket {
            now: self.now,
            departure,
            size: DataSize::from_bytes(u64::from(size)),
            payload: DataSize::from_bytes(u64::from(size)),
            sequence: self.sequence,
            rtp_timestamp: self.rtp_timestamp,
            marker,
            ecn,
        });
        let report = self.controller.poll_report(self.now);
        self.reports.extend(report.map(|r| format!("{r:?}")));
    }

    pub(super) fn poll(&mut self) -> Checked {
        let report = self.controller.poll_report(self.now);
        self.reports.extend(report.map(|r| format!("{r:?}")));
        let next = self.controller.poll_timeout();
        prop_assert!(next.is_none_or(|t| t > self.now), "{next:?} is not after {:?}", self.now);
        Ok(())
    }
}
