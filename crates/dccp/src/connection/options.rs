//! Options that come (RFC 4340, section 5.8), and what acknowledgements tell.

use super::incoming::Incoming;
use super::{Connection, Role};
use crate::ack_vector::runs;
use crate::ccid::{Acknowledgement, CcidSender};
use crate::connection::timing::from_units;
use crate::option::DccpOption;
use crate::packet::{PacketType, ResetCode};

type ResetCause = (ResetCode, [u8; 3]);

/// Number and first bytes of an option, as a Reset tells them.
fn about(option: &DccpOption<'_>) -> [u8; 3] {
    let mut bytes = Vec::new();
    option.write_into(&mut bytes);
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    [at(0), at(2), at(3)]
}

impl Connection {
    /// Step 8 of section 8.5.
    pub(super) fn process_options(&mut self, p: &Incoming<'_>) -> Result<(), ResetCause> {
        let on_data = p.packet_type == PacketType::Data;
        let mut mandatory = false;
        self.cookies_of_this_response = false;
        for option in p.packet.options.iter() {
            let option = match option {
                Ok(o) => o,
                Err(bad) => {
                    self.counters.bad_options += 1;
                    if mandatory {
                        return Err((ResetCode::MANDATORY_ERROR, [bad.number, bad.data[0], bad.data[1]]));
                    }
                    continue;
                }
            };
            if option == DccpOption::Mandatory {
                if on_data {
                    continue;
                }
                if mandatory {
                    return Err((ResetCode::OPTION_ERROR, [option.number(), 0, 0]));
                }
                mandatory = true;
                continue;
            }
            let understood = self.process_option(p, &option, mandatory)?;
            if mandatory && !understood {
                return Err((ResetCode::MANDATORY_ERROR, about(&option)));
            }
            mandatory = false;
        }
        if mandatory {
            return Err((ResetCode::OPTION_ERROR, [DccpOption::Mandatory.number(), 0, 0]));
        }
        Ok(())
    }

    /// Whether the option was understood and is in its place.
    fn process_option(
        &mut self,
        p: &Incoming<'_>,
        option: &DccpOption<'_>,
        mandatory: bool,
    ) -> Result<bool, ResetCause> {
        use DccpOption as O;
        let on_data = p.packet_type == PacketType::Data;
        let acknowledges = p.ack.is_some();
        let _ = mandatory;
        let in_place = match *option {
            O::Mandatory => true,
            O::ChangeL(..) | O::ChangeR(..) | O::ConfirmL(..) | O::ConfirmR(..) => !on_data,
            O::InitCookie(cookie) => {
                // Section 8.1.4: only the server's, on a Response. A listener has looked at the client's.
                if self.role == Role::Client && p.packet_type == PacketType::Response {
                    if !self.cookies_of_this_response {
                        self.cookies.clear();
                        self.cookies_of_this_response = true;
                    }
                    self.push_cookie(cookie);
                }
                true
            }
            O::SlowReceiver => {
                self.peer_slow_at = Some(p.now);
                true
            }
            O::Timestamp(t) => {
                self.timing.to_echo = Some((t, p.now));
                true
            }
            O::TimestampEcho { echo, elapsed } => {
                self.timing.on_echo(p.now, echo, elapsed);
                true
            }
            O::AckVector { .. } | O::DataDropped(_) | O::ElapsedTime(_) => acknowledges,
            O::NdpCount(_) | O::DataChecksum(_) => true,
            O::Ccid { .. } => self.halves.numbers.is_some(),
            O::Unknown { .. } => false,
        };
        if !in_place && !matches!(option, O::Unknown { .. }) {
            self.counters.bad_options += 1;
        }
        Ok(in_place)
    }

    /// Tells the CCID and the books what a packet acknowledges.
    pub(super) fn process_acknowledgement(&mut self, p: &Incoming<'_>) {
        let Some(acknowledged) = p.ack.filter(|_| p.packet_type != PacketType::Sync) else { return };
        self.dropped.on_acknowledged(acknowledged);
        self.halves.vector.on_ack_of_ack(acknowledged);
        if !matches!(p.packet_type, PacketType::Ack | PacketType::DataAck) {
            return;
        }
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
                DccpOption::ElapsedTime(t) => ack.elapsed = Some(from_units(t)),
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
        (self.sending.vectors, self.sending.drops) = (vectors, drops);
    }
}
