//! Packets to be sent.

use super::sent::SentLog;
use super::{Connection, Role, State, Transmit, reset};
use crate::ccid::{CcidReceiver, CcidSender, Permission, SentPacket};
use crate::option::{DccpOption, FeatureNumber, ticks, timestamp};
use crate::packet::{Coverage, Header, MAX_HEADER, PacketType, PacketWriter, ResetCode, WireSequence, data_checksum};
use weir_units::{DataSize, Ecn, Seq48, TimeDelta, Timestamp};

/// A Reset to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResetOut {
    /// It ends this connection. If the other end was never heard, it acknowledges zero (section 8.1.1).
    Own { code: ResetCode, data: [u8; 3], unanswered: bool },
    /// It answers a packet without a connection.
    Answer { code: ResetCode, data: [u8; 3], sequence: Seq48, ack: Seq48 },
}

/// Packets without data to be sent, at most one of a kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Due {
    pub(super) reset: Option<ResetOut>,
    pub(super) request: bool,
    pub(super) response: bool,
    pub(super) ack: bool,
    /// A Sync that acknowledges this.
    pub(super) sync: Option<Seq48>,
    /// A SyncAck that acknowledges this.
    pub(super) sync_ack: Option<Seq48>,
    /// Close or CloseReq.
    pub(super) close: bool,
}

/// State about packets sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Sending {
    pub(super) log: SentLog,
    /// Packets without data since the last with data (NDP Count).
    non_data: u64,
    /// The first datagram of the queue has been held back once.
    front_held: bool,
    /// The acknowledgement due with the last data was sent separately, since both did not fit one packet.
    ack_split_off: bool,
    /// Data and acknowledgement do not fit one packet, and PARTOPEN allows no other (section 8.1.5).
    pub(super) too_long_for_partopen: bool,
    /// The first packet sent from OPEN on that opens a client in PARTOPEN: any but a Sync.
    pub(super) opener: Option<Seq48>,
    /// The newest Sync.
    pub(super) sync: Option<Seq48>,
    /// The newest number at the last measurement of packets per round trip, and its time.
    pub(super) round: (Seq48, Timestamp),
    /// The newest packet whose data the other end may not accept yet (Drop Code 0), and until when data is held back
    /// for it.
    pub(super) constrained: Option<(Seq48, Timestamp)>,
    /// Scratch for options in several parts.
    pub(super) vectors: Vec<u8>,
    pub(super) drops: Vec<u8>,
    /// Packets since the given time, to decide whether short numbers suffice.
    short_count: (u32, Timestamp),
    /// When an Ack was last sent only for features.
    featured_at: Option<Timestamp>,
}

/// Short numbers are used with windows up to this: 512 blind packets have an even chance to hit one (section 7.5.5: P =
/// WN / 2^24).
const MAX_SHORT_WINDOW: u64 = 1 << 14;
/// Bytes of a Data Checksum option.
const DATA_CHECKSUM_LEN: usize = 6;
/// Minimum interval of Acks sent only for negotiation.
const MIN_FEATURED_INTERVAL: TimeDelta = TimeDelta::from_millis(5);
/// And for this many packets within two maximum segment lifetimes: half of the number space (section 7.6.2).
const MAX_SHORT_PACKETS: u32 = 1 << 23;

impl Connection {
    /// Writes the next packet to be sent into `out`, replacing its contents. Call it until it returns `None`, after
    /// every input.
    pub fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        if self.state == State::Open {
            self.close_if_emptied(now);
        }
        if let Some(reset) = self.due.reset.take() {
            return Some(self.write_reset(reset, out));
        }
        match self.state {
            State::Closed | State::Listen | State::TimeWait => return None,
            State::Request => {
                return std::mem::take(&mut self.due.request).then(|| self.write(now, out, PacketType::Request, None));
            }
            _ => {}
        }
        let gsr = self.sequences.gsr;
        if std::mem::take(&mut self.due.response) {
            return Some(self.write(now, out, PacketType::Response, Some(gsr)));
        }
        if let Some(sync) = self.due.sync_ack.take() {
            return Some(self.write(now, out, PacketType::SyncAck, Some(sync)));
        }
        if let Some(about) = self.due.sync.take() {
            self.counters.syncs_sent += 1;
            return Some(self.write(now, out, PacketType::Sync, Some(about)));
        }
        if self.state == State::Open && self.mtu.probe_due().is_some() {
            return Some(self.write_probe(now, out));
        }
        if std::mem::take(&mut self.due.close) {
            let close = if self.state == State::CloseReq { PacketType::CloseReq } else { PacketType::Close };
            return Some(self.write(now, out, close, Some(gsr)));
        }
        if !matches!(self.state, State::PartOpen | State::Open) {
            return None;
        }
        let ack = self.ack_is_due(now);
        if self.may_send_data(now) {
            return self.write_data(now, out, ack);
        }
        ack.then(|| self.write(now, out, PacketType::Ack, Some(gsr)))
    }

    fn ack_is_due(&mut self, now: Timestamp) -> bool {
        if self.due.ack || self.halves.receiver.as_ref().is_some_and(|r| r.wants_ack(now)) {
            return true;
        }
        let featured = self.featured_ack_due().is_some_and(|t| t <= now);
        if featured {
            self.sending.featured_at = Some(now);
        }
        featured
    }

    /// When an Ack is to be sent for negotiation. One that had no room for it does not trigger the next at once.
    pub(super) fn featured_ack_due(&self) -> Option<Timestamp> {
        let due = self.features.poll_timeout()?;
        Some(self.sending.featured_at.map_or(due, |t| due.max(t + MIN_FEATURED_INTERVAL)))
    }

    /// Whether the connection, apart from congestion control, permits data.
    pub(super) fn data_may_leave(&self, now: Timestamp) -> bool {
        !self.peer_deaf
            && self.sending.constrained.is_none_or(|(_, until)| until <= now)
            && match self.state {
                State::PartOpen => !self.sending.too_long_for_partopen,
                State::Open => true,
                _ => false,
            }
    }

    fn may_send_data(&mut self, now: Timestamp) -> bool {
        if !self.data_may_leave(now) {
            return false;
        }
        let Some(sender) = &self.halves.sender else { return false };
        let Some(front) = self.queue.front(now) else { return false };
        let may = sender.may_send(now, front.size()) == Permission::Now;
        if !may && !self.sending.front_held {
            self.sending.front_held = true;
            self.counters.held_back += 1;
        }
        may
    }

    fn write_data(&mut self, now: Timestamp, out: &mut Vec<u8>, ack: bool) -> Option<Transmit> {
        let in_partopen = self.state == State::PartOpen;
        let split = std::mem::take(&mut self.sending.ack_split_off) && !in_partopen;
        let wanted = ack || in_partopen || self.halves.sender.as_ref().is_some_and(|s| s.wants_ack_of_ack(now));
        let packet_type = if wanted && !split { PacketType::DataAck } else { PacketType::Data };
        Some(self.write(now, out, packet_type, (packet_type == PacketType::DataAck).then_some(self.sequences.gsr)))
    }

    /// Whether packets may be sent as ECN-capable.
    pub(super) fn sends_ecn(&self) -> bool {
        self.config.ecn && self.features.remote(FeatureNumber::ECN_INCAPABLE) == 0
    }

    fn uses_short_numbers(&mut self, now: Timestamp, packet_type: PacketType) -> bool {
        if !packet_type.may_be_short()
            || self.state != State::Open
            || self.features.local(FeatureNumber::ALLOW_SHORT_SEQUENCE_NUMBERS) == 0
            || self.sequences.local_window.max(self.sequences.remote_window) > MAX_SHORT_WINDOW
        {
            return false;
        }
        let (count, since) = &mut self.sending.short_count;
        if now.saturating_since(*since) > self.config.time_wait {
            (*count, *since) = (0, now);
        }
        *count = count.saturating_add(1);
        *count < MAX_SHORT_PACKETS
    }

    /// Writes one packet. A DataAck whose data does not fit behind its options is sent as an Ack (section 11.2).
    fn write(&mut self, now: Timestamp, out: &mut Vec<u8>, packet_type: PacketType, ack: Option<Seq48>) -> Transmit {
        let sequence = self.sequences.send();
        let short = self.uses_short_numbers(now, packet_type);
        let on_wire = |s: Seq48| {
            if short { WireSequence::short(s) } else { WireSequence::Long(s) }
        };
        let with_data = packet_type.is_data();
        let ccval = self.halves.sender.as_mut().map_or(0, |s| s.ccval(now));
        let length = self.queue.front(now).filter(|_| with_data).map_or(0, |q| q.size().as_bytes());
        let header = Header {
            source_port: self.config.local_port,
            destination_port: self.config.remote_port,
            ccval,
            checksum_coverage: if with_data { self.coverage(length) } else { 0 },
            packet_type,
            sequence: on_wire(sequence),
            acknowledgement: ack.map(on_wire),
        };
        let mut writer = PacketWriter::new(out, &header);
        if matches!(packet_type, PacketType::Request | PacketType::Response) {
            writer.service_code(self.config.service_code);
        }
        let acknowledges = matches!(packet_type, PacketType::Ack | PacketType::DataAck);
        self.write_options(now, &mut writer, packet_type, sequence, acknowledges);
        let checks = with_data && self.config.data_checksum;
        let header_len = (MAX_HEADER - writer.room() + if checks { DATA_CHECKSUM_LEN } else { 0 }).next_multiple_of(4);
        let splits = packet_type == PacketType::DataAck && header_len as u64 + length > self.mtu.max_datagram();
        if checks
            && !splits
            && let Some(q) = self.queue.front(now)
        {
            writer.option(&DccpOption::DataChecksum(data_checksum(&q.bytes, q.payload)));
        }
        let header_len = writer.finish();

        let mut sent_type = packet_type;
        if splits {
            sent_type = PacketType::Ack;
            out[5] &= 0xf0;
            out[8] = PacketType::Ack.number() << 1 | out[8] & 1;
            self.sending.ack_split_off = true;
            self.sending.too_long_for_partopen = self.state == State::PartOpen;
        }
        if acknowledges {
            self.due.ack = false;
            if let Some(receiver) = &mut self.halves.receiver {
                receiver.on_ack_sent(now);
            }
        }
        let (mut payload, mut data) = (0, DataSize::ZERO);
        if sent_type.is_data()
            && let Some(q) = self.queue.pop()
        {
            out.extend_from_slice(&q.bytes);
            (payload, data) = (q.payload, q.size());
            self.queue.recycle(q.bytes);
            self.sending.front_held = false;
            self.counters.data_sent += 1;
            self.counters.data_bytes_sent += data.as_bytes();
        }
        let ecn = if sent_type.may_be_short() && self.sends_ecn() { Ecn::Ect0 } else { Ecn::NotEct };
        let size = DataSize::from_bytes(out.len() as u64 + u64::from(payload));
        self.on_packet_sent(&SentPacket {
            now,
            sequence,
            packet_type: sent_type,
            data,
            header: DataSize::from_bytes(header_len as u64),
            ecn,
            queued: self.queue.size(),
        });
        Transmit { payload, size, header: header_len, ecn, is_probe: false }
    }

    /// A Sync as long as the path's MTU is to be tested with (section 14.1).
    fn write_probe(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Transmit {
        let length = self.mtu.probe_due().unwrap_or(0);
        let mut transmit = self.write(now, out, PacketType::Sync, Some(self.sequences.gsr));
        self.counters.syncs_sent += 1;
        out.resize(out.len().max(length as usize), 0);
        self.mtu.on_probe_sent(now, self.sequences.gss);
        (transmit.size, transmit.is_probe) = (DataSize::from_bytes(out.len() as u64), true);
        transmit
    }

    fn on_packet_sent(&mut self, sent: &SentPacket) {
        self.counters.packets_sent += 1;
        let counts_as_data = sent.packet_type.may_carry_data();
        self.sending.non_data = if counts_as_data { 0 } else { self.sending.non_data + 1 };
        if let Some(sender) = &mut self.halves.sender {
            sender.on_packet_sent(sent);
            // Without Ack Vectors nothing would ever be reported of it.
            if self.halves.data.ack_vector {
                self.sending.log.on_sent(sent.sequence, sent.packet_type.is_data());
            }
        }
        if matches!(sent.packet_type, PacketType::Request | PacketType::Response) {
            self.timing.measured = Some((sent.sequence, sent.now));
        } else if sent.packet_type == PacketType::Sync {
            self.sending.sync = Some(sent.sequence);
        } else if self.state == State::Open {
            self.sending.opener.get_or_insert(sent.sequence);
        }
        if self.state == State::PartOpen {
            self.timers.retransmit.restart(sent.now);
        }
        if sent.packet_type.is_data() {
            self.mtu.on_sent(sent.now, sent.sequence, (sent.header + sent.data).as_bytes());
        }
        self.widen_window(sent.now);
        self.timers.busy(sent.now);
    }

    /// CsCov of a data packet: the configured value if the other end accepts it and there is enough data.
    fn coverage(&self, length: u64) -> u8 {
        let wanted = Coverage(self.config.checksum_coverage);
        let accepted = wanted.is_accepted(self.features.remote(FeatureNumber::MINIMUM_CHECKSUM_COVERAGE));
        if accepted { wanted.fitting(length as usize).0 } else { 0 }
    }

    fn write_options(
        &mut self,
        now: Timestamp,
        out: &mut PacketWriter<'_>,
        packet_type: PacketType,
        sequence: Seq48,
        acknowledges: bool,
    ) {
        self.features.write_options(now, packet_type, sequence, out);
        // Section 8.1.4: the server's on its Response, the client's on all that it sends until it is acknowledged.
        let echoes = match self.role {
            Role::Server => packet_type == PacketType::Response,
            Role::Client => self.state == State::PartOpen,
        };
        let mut cookies = if echoes { &self.cookies[..] } else { &[] };
        while let Some((&len, rest)) = cookies.split_first() {
            let (cookie, rest) = rest.split_at(usize::from(len).min(rest.len()));
            out.option(&DccpOption::InitCookie(cookie));
            cookies = rest;
        }
        if self.sending.non_data > 0
            && (self.features.local(FeatureNumber::SEND_NDP_COUNT) == 1 || self.halves.data.ndp_count)
        {
            out.option(&DccpOption::NdpCount(self.sending.non_data));
        }
        if let Some((echo, at)) = self.timing.to_echo.take() {
            let elapsed = ticks(now.saturating_since(at));
            out.option(&DccpOption::TimestampEcho { echo, elapsed });
        }
        let stamps = self.config.timestamps
            && packet_type.is_data()
            && self.timing.stamped_at.is_none_or(|t| now.saturating_since(t) >= self.rtt_or_default());
        if stamps {
            self.timing.stamped_at = Some(now);
            out.option(&DccpOption::Timestamp(timestamp(now)));
        }
        if self.slow_receiver || self.received.is_filling() {
            out.option(&DccpOption::SlowReceiver);
        }
        if acknowledges {
            if let Some(receiver) = &mut self.halves.receiver {
                if let Some(at) = self.timing.gsr_at.filter(|_| self.halves.acks.elapsed_time) {
                    out.option(&DccpOption::ElapsedTime(ticks(now.saturating_since(at))));
                }
                receiver.write_options(now, out);
            }
            let vectors = self.halves.acks.ack_vector || self.features.local(FeatureNumber::SEND_ACK_VECTOR) == 1;
            if vectors && self.halves.vector.write(self.sequences.gsr, out) {
                self.halves.vector.on_ack_sent(sequence, self.sequences.gsr);
            }
        }
        if acknowledges || packet_type == PacketType::Response {
            self.dropped.write(self.sequences.gsr, sequence, out);
        }
    }

    fn write_reset(&mut self, due: ResetOut, out: &mut Vec<u8>) -> Transmit {
        let (code, data, sequence, ack) = match due {
            ResetOut::Own { code, data, unanswered } => {
                let ack = if unanswered { Seq48::new(0) } else { self.sequences.gsr };
                (code, data, self.sequences.send(), ack)
            }
            ResetOut::Answer { code, data, sequence, ack } => (code, data, sequence, ack),
        };
        let (source_port, destination_port) = (self.config.local_port, self.config.remote_port);
        let reset = reset::Reset { source_port, destination_port, sequence, acknowledgement: ack, code, data };
        let header = reset.write(out);
        // States the reason for readers of a capture; a normal end has no text.
        if code != ResetCode::CLOSED {
            out.extend_from_slice(code.name().unwrap_or_default().as_bytes());
        }
        self.counters.resets_sent += 1;
        self.counters.packets_sent += 1;
        let size = DataSize::from_bytes(out.len() as u64);
        Transmit { payload: 0, size, header, ecn: Ecn::NotEct, is_probe: false }
    }
}
