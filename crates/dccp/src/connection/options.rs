//! Options that come (RFC 4340, section 5.8), and what acknowledgements tell.

use super::incoming::{Incoming, ndp_count};
use super::{Connection, Role};
use crate::ack_vector::runs;
use crate::ccid::{Acknowledgement, CcidSender};
use crate::option::{DccpOption, from_ticks};
use crate::packet::{PacketType, ResetCode};

type ResetCause = (ResetCode, [u8; 3]);

impl Connection {
    /// Step 8 of section 8.5.
    pub(super) fn process_options(&mut self, p: &Incoming<'_>) -> Result<(), ResetCause> {
        self.features.begin_packet(p.packet_type, p.sequence, p.ack);
        if p.packet.options.is_empty() {
            return Ok(());
        }
        self.cookies_of_this_response = false;
        for entry in p.packet.options.entries() {
            if let Some(cause) = entry.due_reset() {
                return Err(cause);
            }
            let Ok(option) = entry.option else {
                self.counters.bad_options += 1;
                continue;
            };
            let understood = self.process_option(p, &option, entry.mandatory)?;
            if entry.mandatory && !understood {
                return Err((ResetCode::MANDATORY_ERROR, entry.reset_data()));
            }
        }
        self.counters.unknown_features = self.features.unknown_features();
        self.apply_changes();
        Ok(())
    }

    /// Whether the option was understood. All stand where they may.
    fn process_option(
        &mut self,
        p: &Incoming<'_>,
        option: &DccpOption<'_>,
        mandatory: bool,
    ) -> Result<bool, ResetCause> {
        use DccpOption as O;
        match *option {
            O::ChangeL(..) | O::ChangeR(..) | O::ConfirmL(..) | O::ConfirmR(..) => {
                self.features.on_option(option, mandatory).map_err(|c| (c.code, c.data))?;
            }
            // Section 8.1.4: only the server's, on a Response. A listener has looked at the client's.
            O::InitCookie(cookie) if self.role == Role::Client && p.packet_type == PacketType::Response => {
                if !std::mem::replace(&mut self.cookies_of_this_response, true) {
                    self.cookies.clear();
                }
                self.push_cookie(cookie);
            }
            O::SlowReceiver => self.peer_slow_at = Some(p.now),
            O::Timestamp(t) => self.timing.to_echo = Some((t, p.now)),
            O::TimestampEcho { echo, elapsed } => self.timing.on_echo(p.now, echo, elapsed),
            // A CCID does not say which of its options it knows; where there is one, they count as understood.
            O::Ccid { .. } => return Ok(self.halves.numbers.is_some()),
            O::Unknown { .. } => return Ok(false),
            // The rest is told with the acknowledgement or the data.
            _ => {}
        }
        Ok(true)
    }

    fn apply_changes(&mut self) {
        if self.features.poll_changed().is_some() {
            self.apply_features();
        }
    }

    /// Tells the CCID and the books what a packet acknowledges.
    pub(super) fn process_acknowledgement(&mut self, p: &Incoming<'_>) {
        // A Sync's number may be of a packet that was not looked at (section 5.7).
        if let Some(acknowledged) = p.ack.filter(|_| p.packet_type != PacketType::Sync) {
            self.dropped.on_acknowledged(acknowledged);
            self.halves.vector.on_ack_of_ack(acknowledged);
        }
        let acknowledges = matches!(p.packet_type, PacketType::Ack | PacketType::DataAck);
        let Some(acknowledged) = p.ack.filter(|_| acknowledges) else {
            if let Some(sender) = &mut self.halves.sender {
                sender.on_unacknowledging_packet(p.now, p.sequence, ndp_count(p));
            }
            return;
        };
        let mut ack = Acknowledgement {
            now: p.now,
            sequence: p.sequence,
            packet_type: p.packet_type,
            ndp_count: None,
            acknowledged,
            ack_vector: &[],
            elapsed: None,
            echo_rtt: self.timing.echo_rtt.take(),
            data_dropped: &[],
            slow_receiver: false,
            ecn: p.ecn,
            options: p.packet.options,
        };
        // One option of a kind is given as it stands; more of them are put together here.
        let (mut vectors, mut drops) =
            (std::mem::take(&mut self.sending.vectors), std::mem::take(&mut self.sending.drops));
        vectors.clear();
        drops.clear();
        let (mut first_vector, mut first_drop) = (true, true);
        for option in p.packet.options.iter().flatten() {
            match option {
                DccpOption::AckVector { runs, .. } => {
                    if std::mem::take(&mut first_vector) {
                        ack.ack_vector = runs;
                    } else {
                        if vectors.is_empty() {
                            vectors.extend_from_slice(ack.ack_vector);
                        }
                        vectors.extend_from_slice(runs);
                    }
                }
                DccpOption::DataDropped(blocks) => {
                    if std::mem::take(&mut first_drop) {
                        ack.data_dropped = blocks;
                    } else {
                        if drops.is_empty() {
                            drops.extend_from_slice(ack.data_dropped);
                        }
                        drops.extend_from_slice(blocks);
                    }
                }
                DccpOption::NdpCount(n) => ack.ndp_count = Some(n),
                DccpOption::ElapsedTime(t) => ack.elapsed = Some(from_ticks(t)),
                DccpOption::SlowReceiver => ack.slow_receiver = true,
                _ => {}
            }
        }
        if !vectors.is_empty() {
            ack.ack_vector = &vectors;
        }
        if !drops.is_empty() {
            ack.data_dropped = &drops;
        }
        // Drop Code 1, on whatever packet: no more data are ever taken there (section 11.7.2).
        self.peer_deaf |= ack.data_dropped.iter().any(|b| b & 0xf0 == 0x90);
        if !ack.ack_vector.is_empty() {
            let fate = self.sending.log.on_runs(runs(acknowledged, ack.ack_vector));
            self.counters.data_lost += fate.lost;
            self.counters.data_marked += fate.marked;
        }
        if let Some(sender) = &mut self.halves.sender {
            sender.on_acknowledgement(&ack);
        }
        if let Some(rtt) = self.rtt() {
            self.features.set_rtt(rtt);
            self.mtu.set_rtt(rtt);
        }
        self.mtu.on_acknowledged(acknowledged, self.sequences.gss);
        self.follow_ack_ratio();
        (self.sending.vectors, self.sending.drops) = (vectors, drops);
    }
}
