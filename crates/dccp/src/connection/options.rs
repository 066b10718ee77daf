//! Received options (RFC 4340, section 5.8), and what acknowledgements report.

use super::incoming_packet::Incoming;
use super::{Connection, Role};
use crate::ack_vector::runs;
use crate::ccid::{Acknowledgement, CcidSender};
use crate::data_dropped::{DropCode, blocks};
use crate::option::{DccpOption, Options, from_ticks};
use crate::packet::{PacketType, ResetCode};
use weir_units::TimeDelta;

type ResetCause = (ResetCode, [u8; 3]);

/// The options of one packet that are processed with its acknowledgement number or its data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketOptions<'a> {
    pub(super) ndp_count: Option<u64>,
    pub(super) data_checksum: Option<u32>,
    elapsed: Option<TimeDelta>,
    slow_receiver: bool,
    ack_vector: Parts<'a>,
    data_dropped: Parts<'a>,
}

/// The data of an option that may be split into parts.
#[derive(Clone, Copy, Debug, Default)]
struct Parts<'a> {
    first: Option<&'a [u8]>,
    more: bool,
}

impl<'a> Parts<'a> {
    fn add(&mut self, data: &'a [u8]) {
        self.more = self.first.is_some();
        self.first.get_or_insert(data);
    }
    /// A single part is returned as is; several are joined in `scratch`.
    fn whole<'s>(
        &self,
        options: &Options<'_>,
        scratch: &'s mut Vec<u8>,
        part: for<'o> fn(DccpOption<'o>) -> Option<&'o [u8]>,
    ) -> &'s [u8]
    where
        'a: 's,
    {
        if !self.more {
            return self.first.unwrap_or(&[]);
        }
        scratch.clear();
        options.iter().flatten().filter_map(part).for_each(|p| scratch.extend_from_slice(p));
        scratch
    }
}

fn runs_of(option: DccpOption<'_>) -> Option<&[u8]> {
    if let DccpOption::AckVector { runs, .. } = option { Some(runs) } else { None }
}

fn blocks_of(option: DccpOption<'_>) -> Option<&[u8]> {
    if let DccpOption::DataDropped(blocks) = option { Some(blocks) } else { None }
}

impl Connection {
    /// Step 8 of section 8.5.
    pub(super) fn process_options<'a>(&mut self, p: &Incoming<'a>) -> Result<PacketOptions<'a>, ResetCause> {
        self.features.begin_packet(p.packet_type, p.sequence, p.ack);
        let mut options = PacketOptions::default();
        if p.packet.options.is_empty() {
            return Ok(options);
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
            let understood = self.process_option(p, &option, entry.mandatory, &mut options)?;
            if entry.mandatory && !understood {
                return Err((ResetCode::MANDATORY_ERROR, entry.reset_data()));
            }
        }
        self.counters.unknown_features = self.features.unknown_features();
        if self.features.poll_changed().is_some() {
            self.apply_features();
        }
        Ok(options)
    }

    /// Whether the option was understood. All are permitted on their packet.
    fn process_option<'a>(
        &mut self,
        p: &Incoming<'a>,
        option: &DccpOption<'a>,
        mandatory: bool,
        options: &mut PacketOptions<'a>,
    ) -> Result<bool, ResetCause> {
        use DccpOption as O;
        match *option {
            O::ChangeL(..) | O::ChangeR(..) | O::ConfirmL(..) | O::ConfirmR(..) => {
                self.features.on_option(option, mandatory).map_err(|c| (c.code, c.data))?;
            }
            O::SlowReceiver => {
                self.peer_slow_at = Some(p.now);
                options.slow_receiver = true;
            }
            O::NdpCount(n) => options.ndp_count = Some(n),
            O::DataChecksum(sum) => options.data_checksum = Some(sum),
            O::ElapsedTime(t) => options.elapsed = Some(from_ticks(t)),
            O::AckVector { runs, .. } => options.ack_vector.add(runs),
            O::DataDropped(blocks) => options.data_dropped.add(blocks),
            O::Timestamp(t) => self.timing.to_echo = Some((t, p.now)),
            O::TimestampEcho { echo, elapsed } => self.timing.on_echo(p.now, echo, elapsed),
            // Section 8.1.4: the client returns those of the Response that it acknowledges. A listener has checked its
            // own; others are ignored.
            O::InitCookie(cookie) => {
                let is_response = self.role == Role::Client && p.packet_type == PacketType::Response;
                if is_response && p.sequence == self.sequences.gsr {
                    if !std::mem::replace(&mut self.cookies_of_this_response, true) {
                        self.cookies.clear();
                    }
                    self.push_cookie(cookie);
                }
            }
            // A CCID does not state which of its options it knows; if there is one, they count as understood.
            O::Ccid { .. } => return Ok(self.halves.numbers.is_some()),
            O::Unknown { .. } => return Ok(false),
            O::Mandatory => {}
        }
        Ok(true)
    }

    /// Reports to the CCID and the other state what a packet acknowledges.
    pub(super) fn process_acknowledgement(&mut self, p: &Incoming<'_>, options: &PacketOptions<'_>) {
        // A Sync's number may be of a packet that was not processed (section 5.7).
        if let Some(acknowledged) = p.ack.filter(|_| p.packet_type != PacketType::Sync) {
            self.dropped.on_acknowledged(acknowledged);
            self.halves.vector.on_ack_of_ack(acknowledged);
        }
        let acknowledges = matches!(p.packet_type, PacketType::Ack | PacketType::DataAck);
        let Some(acknowledged) = p.ack.filter(|_| acknowledges) else {
            if let Some(sender) = &mut self.halves.sender {
                sender.on_unacknowledging_packet(p.now, p.sequence, options.ndp_count);
            }
            return;
        };
        let rtt = self.rtt_or_default();
        let ack = Acknowledgement {
            now: p.now,
            sequence: p.sequence,
            packet_type: p.packet_type,
            ndp_count: options.ndp_count,
            acknowledged,
            ack_vector: options.ack_vector.whole(&p.packet.options, &mut self.sending.vectors, runs_of),
            elapsed: options.elapsed,
            echo_rtt: self.timing.echo_rtt.take(),
            data_dropped: options.data_dropped.whole(&p.packet.options, &mut self.sending.drops, blocks_of),
            slow_receiver: options.slow_receiver,
            ecn: p.ecn,
            options: p.packet.options,
        };
        for block in blocks(acknowledged, ack.data_dropped) {
            match block.code {
                // No more data are ever taken there (section 11.7.2).
                Some(DropCode::APPLICATION_NOT_LISTENING) => self.peer_deaf = true,
                // None are accepted now. A packet that is reported repeatedly delays data once.
                Some(DropCode::PROTOCOL_CONSTRAINTS)
                    if self.sending.constrained.is_none_or(|(newest, _)| block.newest.is_after(newest)) =>
                {
                    self.sending.constrained = Some((block.newest, p.now + rtt));
                }
                _ => {}
            }
        }
        if !ack.ack_vector.is_empty() {
            let runs = runs(acknowledged, ack.ack_vector);
            self.halves.vector.on_ack_runs(runs.clone());
            self.dropped.on_ack_runs(runs.clone());
            let fate = self.sending.log.on_runs(runs);
            self.counters.data_lost += fate.lost;
            self.counters.data_marked += fate.marked;
        }
        if let Some(sender) = &mut self.halves.sender {
            sender.on_acknowledgement(&ack);
        }
        if self.peer_deaf {
            self.queue.clear();
        }
        if let Some(rtt) = self.rtt() {
            self.features.set_rtt(rtt);
            self.mtu.set_rtt(rtt);
        }
        self.mtu.on_acknowledged(acknowledged, self.sequences.gss);
        self.follow_ack_ratio();
    }
}
