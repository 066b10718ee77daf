//! Options to be sent: pending Confirms, and Changes until they are answered.

use super::table::{Location, Rule, Slot, Values};
use super::{Answer, MAX_BACKOFF, Negotiation, Phase};
use crate::option::DccpOption;
use crate::packet::{PacketType, PacketWriter};
use weir_units::{Seq48, Timestamp};

impl Negotiation {
    /// Writes the pending options into a packet of this type and number that is sent now. An unanswered Change is on
    /// all of them, so that a Confirm that acknowledges any refers to the newest; only packets made for it move the
    /// timer. Changes are on all but DCCP-Data and DCCP-Reset. Confirms need an acknowledgement number that states what
    /// was received: they are not on DCCP-Sync either, whose number may be of a packet that was not processed.
    pub fn write_options(
        &mut self,
        now: Timestamp,
        packet_type: PacketType,
        sequence: Seq48,
        out: &mut PacketWriter<'_>,
    ) {
        if matches!(packet_type, PacketType::Data | PacketType::Reset) || !self.active {
            return;
        }
        let mut written = false;
        if packet_type.has_acknowledgement() && packet_type != PacketType::Sync {
            written |= self.write_answers(out);
        }
        let due = self.changes_sent.is_none_or(|(sent, wait)| sent + wait <= now);
        let (mut new, mut old) = (false, false);
        for slot in Slot::all() {
            let starts = match self.entries[slot.index()].phase {
                Phase::Stable if !self.ccid_wants(slot) => continue,
                Phase::Stable | Phase::Wanting | Phase::Unstable => true,
                Phase::Changing => false,
            };
            let values = self.wanted(slot);
            let entry = &mut self.entries[slot.index()];
            if !write_change(slot, &values, entry.mandatory, out) {
                break;
            }
            (new, old) = (new || starts, old || !starts);
            entry.repeated |= starts && entry.asked;
            entry.asked = true;
            (entry.values, entry.phase) = (values, Phase::Changing);
        }
        if new {
            self.newest_sent = Some(sequence);
            self.changes_sent = Some((now, self.rtt + self.rtt));
        } else if old && due {
            let wait = self.changes_sent.map_or(self.rtt, |(_, wait)| wait);
            self.changes_sent = Some((now, (wait + wait).clamp(self.rtt, MAX_BACKOFF)));
        }
        if written || new || old {
            self.last_written = Some(now);
        }
        self.active = !self.is_stable();
    }

    fn write_answers(&mut self, out: &mut PacketWriter<'_>) -> bool {
        let mut written = false;
        for slot in Slot::all() {
            let entry = &mut self.entries[slot.index()];
            let own = entry.values;
            let Some(answer) = entry.answer else { continue };
            let mut bytes = [0; Values::MAX + 1];
            let list = match (answer, slot.feature().rule) {
                (Answer::Empty, _) => &[][..],
                (Answer::Value, Rule::NonNegotiable { bytes: width, .. }) => &entry.value.to_be_bytes()[8 - width..],
                (Answer::Value, Rule::ServerPriority) => {
                    bytes[0] = entry.value as u8;
                    bytes[1..=own.bytes().len()].copy_from_slice(own.bytes());
                    &bytes[..=own.bytes().len()]
                }
            };
            let option = match slot.location() {
                Location::Local => DccpOption::ConfirmL(slot.number(), list),
                Location::Remote => DccpOption::ConfirmR(slot.number(), list),
            };
            if !out.option(&option) {
                return written;
            }
            entry.answer = None;
            written = true;
        }
        for waiting in &mut self.unknown {
            let Some((location, feature)) = *waiting else { continue };
            let option = match location {
                Location::Local => DccpOption::ConfirmL(feature, &[]),
                Location::Remote => DccpOption::ConfirmR(feature, &[]),
            };
            if !out.option(&option) {
                return written;
            }
            *waiting = None;
            written = true;
        }
        written
    }
}

/// A Change, after Mandatory if required.
fn write_change(slot: Slot, values: &Values, mandatory: bool, out: &mut PacketWriter<'_>) -> bool {
    // Both or none.
    if out.room() < values.bytes().len() + 4 {
        return false;
    }
    if mandatory {
        out.option(&DccpOption::Mandatory);
    }
    out.option(&match slot.location() {
        Location::Local => DccpOption::ChangeL(slot.number(), values.bytes()),
        Location::Remote => DccpOption::ChangeR(slot.number(), values.bytes()),
    })
}
