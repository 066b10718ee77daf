//! Repair in the receiving direction: protected packets and recovered ones.

use super::path::ReceivePath;
use super::stream::{DEFAULT_DEADLINE, IncomingStream};
use crate::arrivals::ArrivalLog;
use crate::frames::{FrameLedger, RecoveryStats};
use crate::observer::MaybeObserver;
use crate::received_packet::ReceivedPacket;
use crate::recovery::{RepairReceiveCounters, RepairReceiver, RepairReception};
use crate::repair_format::{Format, ProtectedStream, ReceivedRepair};
use weir_units::Timestamp;
use weir_wire::rtp::PacketView;

impl IncomingStream {
    pub(super) fn begin_ledger(&mut self) {
        let deadline = self.deadline.unwrap_or(DEFAULT_DEADLINE);
        self.frames.get_or_insert_with(|| Box::new(FrameLedger::new(deadline)));
    }

    pub(super) fn begin_repair(&mut self, path: &ReceivePath) {
        self.begin_ledger();
        let (deadline, identity) = (self.deadline.unwrap_or(DEFAULT_DEADLINE), self.identity);
        let new = || RepairReceiver::new(deadline, identity.clock_rate, path.stream_log());
        self.repair.get_or_insert_with(|| Box::new(new().with_parity(identity.parity_format)));
    }

    /// Takes a packet of the repair stream, or a repair packet in RED that has been taken as one without media. `false` if
    /// repair is off.
    pub(crate) fn on_repair(
        &mut self,
        path: &mut ReceivePath,
        packet: &ReceivedPacket<'_>,
        repair_packet: ReceivedRepair<'_>,
        observer: &mut MaybeObserver,
    ) -> bool {
        if self.reception == RepairReception::Off {
            return false;
        }
        let (now, ecn) = (packet.now, packet.datagram.ecn);
        let media = ProtectedStream { ssrc: self.identity.ssrc, highest: self.stats.highest() };
        self.begin_repair(path);
        let (Some(repair), frames, nack) = (&mut self.repair, &mut self.frames, &mut self.nack) else { return false };
        let in_red = repair_packet.format == Format::UlpFec;
        let is_masked = repair_packet.format == Format::MaskedRlc;
        let size = repair.on_repair(now, repair_packet, media, ecn, |number, coverage| {
            if let Some(frames) = frames {
                frames.on_protected(now, number, coverage);
            }
            match (&mut *nack, coverage.last()) {
                // By frames. One over older packets answers a request, and says nothing of packets to come.
                (Some(nack), Some(last)) if is_masked && last >= media.highest => nack.on_frame_repair(now, last),
                (Some(nack), Some(last)) if !is_masked => nack.on_repair(now, last),
                _ => {}
            }
        });
        match size {
            Some(size) => {
                path.on_rtp(packet.path_sequence, size, ecn, now);
                self.schedule_feedback(path, now);
            }
            None if !in_red => {
                path.on_rtp(packet.path_sequence, packet.size, ecn, now);
                self.schedule_feedback(path, now);
                return true;
            }
            None => {}
        }
        self.recover(path, observer, now);
        true
    }

    /// Plays recovered packets.
    #[inline(never)]
    pub(super) fn recover(&mut self, path: &mut ReceivePath, observer: &mut MaybeObserver, now: Timestamp) {
        let ssrc = self.identity.ssrc;
        while let Some(rebuilt) = self.repair.as_mut().and_then(|r| r.poll(ssrc)) {
            // Here padding carried as a length only is a payload like any other.
            if let Ok(rtp) = PacketView::parse_header(&rebuilt.bytes) {
                let packet = ReceivedPacket::recovered(rtp, &rebuilt.bytes, rebuilt.zeros, now);
                if let Some(o) = observer {
                    o.on_rtp_recovered(&packet.seen());
                }
                if self.nack.is_some() {
                    self.look_for_gaps(rebuilt.sequence, packet.part(), true, now);
                }
                self.on_recovered(path, rebuilt.sequence, &packet);
            }
            if let Some(repair) = &mut self.repair {
                repair.recycle(rebuilt.bytes);
            }
        }
    }

    /// A lost media packet was recovered. `false` if it is too late for playout.
    pub(super) fn on_recovered(&mut self, path: &mut ReceivePath, sequence: u64, packet: &ReceivedPacket<'_>) -> bool {
        if self.play(path, sequence, packet) {
            return false;
        }
        if let Some(interval) = &mut self.interval {
            interval.on_repaired(sequence);
        }
        if let Some(frames) = &mut self.frames {
            frames.on_recovered(packet.now, sequence, packet.frame());
        }
        true
    }

    pub(crate) fn recovery(&self) -> RecoveryStats {
        self.frames.as_deref().map(FrameLedger::stats).unwrap_or_default()
    }
    pub(crate) fn repair_counters(&self) -> RepairReceiveCounters {
        self.repair.as_deref().map(RepairReceiver::counters).unwrap_or_default()
    }

    /// Arrivals of the repair stream, if it exists and feedback is per stream.
    pub(crate) fn repair_log(&self) -> Option<&ArrivalLog> {
        self.repair.as_ref()?.log.as_ref().filter(|l| l.range().end > 0)
    }
    pub(super) fn repair_log_mut(&mut self) -> Option<&mut ArrivalLog> {
        self.repair.as_mut()?.log.as_mut().filter(|l| l.range().end > 0)
    }
}
