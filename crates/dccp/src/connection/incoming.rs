//! Received packets: the steps of RFC 4340, section 8.5, in their order and by their numbers.

use super::incoming_packet::Incoming;
use super::options::PacketOptions;
use super::outgoing::ResetOut;
use super::{Connection, Datagram, Role, State, reset};
use crate::ack_vector::AckState;
use crate::ccid::{CcidReceiver, ReceivedPacket};
use crate::data_dropped::DropCode;
use crate::option::FeatureNumber;
use crate::packet::{Coverage, Packet, PacketType, ResetCode, data_checksum, parse};
use weir_units::{Ecn, Seq48, Timestamp};

impl Connection {
    /// Processes a received datagram.
    pub fn handle_datagram(&mut self, now: Timestamp, datagram: &Datagram<'_>) {
        // Step 1: check header basics. The checksum is UDP's (RFC 6773, section 3.3).
        let Ok(packet) = parse(datagram.bytes, datagram.payload) else {
            self.counters.malformed += 1;
            return;
        };
        let h = packet.header;

        // Step 2: check ports and process TIMEWAIT state.
        if (h.source_port, h.destination_port) != (self.config.remote_port, self.config.local_port) {
            self.counters.strangers += 1;
            return;
        }
        if matches!(self.state, State::Closed | State::Listen | State::TimeWait) {
            self.answer_by_reset(now, &packet, ResetCode::NO_CONNECTION, [0; 3]);
            return;
        }

        // Step 3: process LISTEN state. See `Connection::accept`.

        // Step 4: prepare sequence numbers in REQUEST.
        let p = Incoming {
            now,
            packet,
            packet_type: h.packet_type,
            sequence: h.sequence.extend(self.sequences.gsr),
            ack: h.acknowledgement.map(|a| a.extend(self.sequences.gss)),
            payload: datagram.payload,
            ecn: datagram.ecn,
        };
        let in_request = self.state == State::Request;
        if in_request {
            let answers = matches!(p.packet_type, PacketType::Response | PacketType::Reset)
                && p.ack.is_some_and(|a| self.sequences.may_be_acknowledged(a));
            if !answers {
                self.counters.unexpected += 1;
                self.answer_by_reset(now, &packet, ResetCode::PACKET_ERROR, [p.packet_type.number(), 0, 0]);
                return;
            }
            self.sequences.begin(p.sequence);
        }

        // Step 5: prepare sequence numbers for Sync.
        if matches!(p.packet_type, PacketType::Sync | PacketType::SyncAck) {
            let active = self.is_active(now);
            if !p.ack.is_some_and(|a| self.sequences.sync_is_valid(p.sequence, a, active)) {
                self.counters.sequence_invalid += 1;
                return;
            }
            self.sequences.received(p.sequence);
        }

        // Step 6: check sequence numbers.
        if h.sequence.is_short() && self.features.remote(FeatureNumber::ALLOW_SHORT_SEQUENCE_NUMBERS) == 0 {
            self.counters.sequence_invalid += 1;
            return;
        }
        let is_sync = matches!(p.packet_type, PacketType::Sync | PacketType::SyncAck);
        if !in_request && !is_sync && !self.sequences.is_valid(p.packet_type, p.sequence, p.ack) {
            self.counters.sequence_invalid += 1;
            let about = if p.packet_type == PacketType::Reset { self.sequences.gsr } else { p.sequence };
            self.send_sync(now, about);
            return;
        }

        // Step 7: check for unexpected packet types.
        let after_open = self.sequences.osr.is_some_and(|osr| p.sequence.since(osr) >= 0);
        let unexpected = match p.packet_type {
            PacketType::CloseReq => self.role == Role::Server,
            PacketType::Response => self.role == Role::Server || self.state >= State::Open && after_open,
            PacketType::Request => self.role == Role::Client || self.state >= State::Open && after_open,
            PacketType::Data => self.state == State::Respond,
            _ => false,
        };
        if unexpected {
            self.counters.unexpected += 1;
            self.send_sync(now, p.sequence);
            return;
        }
        // Step 6's update is made here: GSR and GAR are of acknowledgeable packets, and those above are not
        // (sections 7.1 and 7.4).
        let is_newest = !self.sequences.gsr.is_after(p.sequence);
        self.sequences.received(p.sequence);
        if let Some(ack) = p.ack.filter(|_| p.packet_type != PacketType::Sync) {
            self.sequences.acknowledged(ack);
        }

        self.counters.packets_received += 1;
        if self.seen.note(p.sequence)
            && matches!(p.packet_type, PacketType::Data | PacketType::Ack | PacketType::DataAck)
        {
            // Section 7: a duplicate made by the network. It has been processed already.
            self.counters.duplicates += 1;
            return;
        }
        self.timers.heard(now, &self.config);
        self.timers.busy(now);
        self.timing.heard_at = Some(now);
        if is_newest || self.timing.gsr_at.is_none() {
            self.timing.gsr_at = Some(now);
        }
        if let Some(ack) = p.ack {
            self.timing.on_acknowledged(now, ack);
        }
        self.process_valid(&p);
    }

    /// Steps 8 to 16.
    fn process_valid(&mut self, p: &Incoming<'_>) {
        let now = p.now;
        // Step 8: process options and mark acknowledgeable. A Reset's options have no effect, and a Reset is never
        // answered by one.
        let mut options = PacketOptions::default();
        if p.packet_type != PacketType::Reset {
            options = match self.process_options(p) {
                Ok(options) => options,
                Err((code, data)) => {
                    self.reset_with(now, code, data, super::close::reason(code, data, false));
                    return;
                }
            };
            let handshake_over = p.packet_type != PacketType::Request;
            if handshake_over && !self.open_half_connections(now) {
                return;
            }
            self.mark_acknowledgeable(p, &options);
            self.process_acknowledgement(p, &options);
        }

        // Step 9: process Reset.
        if let Some((code, data)) = p.packet.reset {
            self.on_reset(now, code, data, p.packet.data);
            return;
        }

        // Step 10: process REQUEST state (second part).
        if self.state == State::Request {
            self.enter_partopen(now);
        }

        // Step 11: process RESPOND state.
        if self.state == State::Respond {
            if p.packet_type == PacketType::Request {
                self.due.response = true;
            } else {
                self.enter_open(now, p.sequence);
                // The fourth packet of section 8.1's figure, so that a client without data does not wait in PARTOPEN.
                self.due.ack = true;
            }
        } else if p.packet_type == PacketType::Ack && self.shows_partopen(p) {
            self.due.ack = true;
        }

        // Step 12: process PARTOPEN state.
        if self.state == State::PartOpen {
            if p.packet_type == PacketType::Response {
                self.due.ack = true;
            } else if p.packet_type != PacketType::Sync {
                self.enter_open(now, p.sequence);
            }
        }

        // Step 13: process CloseReq. In CLOSING it is answered by the Close that is repeated anyway.
        if p.packet_type == PacketType::CloseReq && self.state < State::CloseReq {
            self.enter_closing(now);
        }

        // Step 14: process Close.
        if p.packet_type == PacketType::Close {
            self.reset_with(now, ResetCode::CLOSED, [0; 3], super::EndReason::Closed);
            return;
        }

        // Step 15: process Sync.
        if p.packet_type == PacketType::Sync {
            if self.sync_acks.take(now) {
                self.due.sync_ack = Some(p.sequence);
            } else {
                self.counters.rate_limited += 1;
            }
        }

        if let Some(ack) = p.ack.filter(|_| p.packet_type == PacketType::SyncAck) {
            self.mtu.on_sync_ack(now, ack);
        }

        // Step 16: process data. A Data Checksum is verified on the other types too (section 9.3).
        if p.has_data() {
            self.process_data(p, &options);
        } else if !data_checksum_fits(p, &options) {
            self.dropped.on_dropped(p.sequence, DropCode::CORRUPT);
        }
        self.close_if_emptied(now);
    }

    /// Whether the client's Ack acknowledges only Responses and Syncs of this server: the packet that opened this end
    /// was lost.
    fn shows_partopen(&self, p: &Incoming<'_>) -> bool {
        let Some(ack) = p.ack.filter(|_| self.role == Role::Server && p.sequence == self.sequences.gsr) else {
            return false;
        };
        self.sending.sync == Some(ack) || self.sending.opener.is_none_or(|o| o.is_after(ack))
    }

    /// Whether valid packets were received within the last three round trips (section 7.5.3).
    fn is_active(&self, now: Timestamp) -> bool {
        self.timing.heard_at.is_some_and(|t| now.saturating_since(t) <= self.rtt_or_default() * 3)
    }

    pub(super) fn send_sync(&mut self, now: Timestamp, about: Seq48) {
        if self.syncs.take(now) {
            self.due.sync = Some(about);
        } else {
            self.counters.rate_limited += 1;
        }
    }

    /// "Generate Reset" of ends without numbers of their own (section 8.3.1).
    fn answer_by_reset(&mut self, now: Timestamp, packet: &Packet<'_>, code: ResetCode, data: [u8; 3]) {
        if packet.header.packet_type == PacketType::Reset {
            return;
        }
        if !self.resets.take(now) {
            self.counters.rate_limited += 1;
            return;
        }
        let (sequence, ack) = reset::numbers_for(packet);
        if self.state == State::Request && sequence == self.sequences.gss.next() {
            // It takes the number of our next packet, as in section 7.5.6's last example.
            self.sequences.send();
        }
        self.due.reset.get_or_insert(ResetOut::Answer { code, data, sequence, ack });
    }

    fn mark_acknowledgeable(&mut self, p: &Incoming<'_>, options: &PacketOptions<'_>) {
        let state = if p.ecn == Ecn::Ce { AckState::Marked } else { AckState::Received };
        let rtt = self.rtt();
        let Some(receiver) = &mut self.halves.receiver else { return };
        self.halves.vector.on_packet(p.sequence, state);
        receiver.on_packet(&ReceivedPacket {
            now: p.now,
            sequence: p.sequence,
            packet_type: p.packet_type,
            data: p.data_size(),
            ecn: p.ecn,
            ccval: p.packet.header.ccval,
            ndp_count: options.ndp_count,
            rtt,
            options: p.packet.options,
        });
    }

    fn process_data(&mut self, p: &Incoming<'_>, options: &PacketOptions<'_>) {
        if p.packet_type.is_data() {
            self.counters.data_received += 1;
            self.counters.data_bytes_received += p.data_size().as_bytes();
        }
        let minimum = self.features.local(FeatureNumber::MINIMUM_CHECKSUM_COVERAGE);
        let covered = Coverage(p.packet.header.checksum_coverage).is_accepted(minimum);
        let refused = if !p.packet_type.is_data() || !covered || self.halves.receiver.is_none() {
            Some(DropCode::PROTOCOL_CONSTRAINTS)
        } else if self.deaf {
            Some(DropCode::APPLICATION_NOT_LISTENING)
        } else if !data_checksum_fits(p, options) {
            Some(DropCode::CORRUPT)
        } else if !self.received.push(p.packet.data, p.payload, p.ecn, p.sequence) {
            Some(DropCode::RECEIVE_BUFFER)
        } else {
            None
        };
        if let Some(code) = refused {
            self.counters.data_dropped += 1;
            self.dropped.on_dropped(p.sequence, code);
        }
    }
}

/// Whether the data matches its Data Checksum, if there is one.
fn data_checksum_fits(p: &Incoming<'_>, options: &PacketOptions<'_>) -> bool {
    options.data_checksum.is_none_or(|sum| sum == data_checksum(p.packet.data, p.payload))
}
