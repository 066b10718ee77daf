//! Received Change and Confirm options (RFC 4340, section 6.6.2).

use super::table::{Location, Rule, Slot, reconcile};
use super::{Answer, Arrived, Negotiation, Phase, ResetCause};
use crate::option::{DccpOption, FeatureNumber};
use crate::packet::{PacketType, ResetCode};
use weir_units::Seq48;

impl Negotiation {
    /// A valid packet was received, whose options follow.
    pub fn begin_packet(&mut self, packet_type: PacketType, sequence: Seq48, acknowledgement: Option<Seq48>) {
        let in_order = self.newest_received.is_none_or(|newest| sequence.is_after(newest));
        self.arrived = Some(Arrived { packet_type, sequence, acknowledgement, in_order });
    }

    /// Processes an option; kinds other than Change and Confirm are ignored, as are all on a DCCP-Data (RFC 4340,
    /// section 6).
    ///
    /// # Errors
    /// Why the connection has to be reset: the option is an invalid Confirm, or a failed Change after Mandatory.
    pub fn on_option(&mut self, option: &DccpOption<'_>, mandatory: bool) -> Result<(), ResetCause> {
        let (location, number, bytes, is_change) = match *option {
            DccpOption::ChangeR(number, bytes) => (Location::Local, number, bytes, true),
            DccpOption::ConfirmR(number, bytes) => (Location::Local, number, bytes, false),
            DccpOption::ChangeL(number, bytes) => (Location::Remote, number, bytes, true),
            DccpOption::ConfirmL(number, bytes) => (Location::Remote, number, bytes, false),
            _ => return Ok(()),
        };
        let Some(arrived) = self.arrived.filter(|a| a.packet_type != PacketType::Data) else { return Ok(()) };
        self.newest_received = Some(self.newest_received.map_or(arrived.sequence, |n| n.max(arrived.sequence)));
        self.active = true;
        let reset = |code| {
            let first = |i: usize| bytes.get(i).copied().unwrap_or(0);
            ResetCause { code, data: [option.number(), number.0, first(0)] }
        };
        let slot = Slot::new(location, number).filter(|&s| self.is_known(s));
        let Some(slot) = slot else {
            if !is_change {
                return Ok(());
            }
            self.unknown_features += 1;
            if mandatory {
                return Err(reset(ResetCode::MANDATORY_ERROR));
            }
            self.answer_unknown(location, number);
            return Ok(());
        };
        if self.entries[slot.index()].phase == Phase::Unstable || !arrived.in_order {
            return Ok(());
        }
        // Whether the packet was sent after the newest Change was received, as far as its acknowledgement number shows.
        let answers_newest = match (arrived.acknowledgement, self.newest_sent) {
            (Some(acknowledged), Some(newest)) => !newest.is_after(acknowledged),
            _ => false,
        };
        if is_change {
            self.on_change(slot, bytes, mandatory, answers_newest).map_err(reset)?;
        } else if answers_newest && self.entries[slot.index()].phase == Phase::Changing {
            self.on_confirm(slot, bytes).map_err(reset)?;
        }
        if slot.number() == FeatureNumber::CCID {
            self.find_needs();
        }
        Ok(())
    }

    fn on_change(&mut self, slot: Slot, bytes: &[u8], mandatory: bool, answers_newest: bool) -> Result<(), ResetCode> {
        let rule = slot.feature().rule;
        let own = self.wanted(slot);
        let entry = &mut self.entries[slot.index()];
        let value = match rule {
            // A Change has at least one value (RFC 4340, section 6.1).
            Rule::ServerPriority if bytes.is_empty() => None,
            Rule::ServerPriority => {
                let (server, client) = if self.is_server { (own.bytes(), bytes) } else { (bytes, own.bytes()) };
                let shared = reconcile(server, client);
                if shared.is_none() && mandatory {
                    return Err(ResetCode::MANDATORY_ERROR);
                }
                Some(shared.unwrap_or(entry.value))
            }
            // The other end decides on its own features, not on this end's.
            Rule::NonNegotiable { .. } => rule.value(bytes).filter(|_| slot.location() == Location::Remote),
        };
        let Some(value) = value else {
            entry.answer = Some(Answer::Empty);
            return if mandatory { Err(ResetCode::MANDATORY_ERROR) } else { Ok(()) };
        };
        // Without a value that this end supports, it keeps requesting. So it does if the other end has not received its
        // Change: that end may be STABLE by now with another list than that of this Change, and would ignore the
        // Confirm. Section 6.6.6 allows, but does not require, a CHANGING end to become STABLE. And so it does if it
        // has answered before with another list, by a Confirm that may still be in flight.
        let asks_on = match entry.phase {
            Phase::Wanting => entry.answered,
            Phase::Changing => !answers_newest || entry.answered,
            Phase::Stable | Phase::Unstable => false,
        };
        (entry.answer, entry.answered, entry.values) = (Some(Answer::Value), true, own);
        if !asks_on && (!entry.mandatory || own.contains(value)) {
            entry.phase = Phase::Stable;
        }
        self.set(slot, value);
        Ok(())
    }

    fn on_confirm(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), ResetCode> {
        let feature = slot.feature();
        let entry = &mut self.entries[slot.index()];
        let own = entry.values;
        if bytes.is_empty() {
            if feature.required {
                return Err(ResetCode::OPTION_ERROR);
            }
            (entry.phase, entry.refused) = (Phase::Stable, true);
            return Ok(());
        }
        let value = feature.rule.value(bytes).ok_or(ResetCode::OPTION_ERROR)?;
        let right = match feature.rule {
            Rule::NonNegotiable { .. } => bytes == own.bytes(),
            Rule::ServerPriority => match &bytes[1..] {
                [] => own.contains(value) || value == entry.value,
                other => {
                    let (server, client) = if self.is_server { (own.bytes(), other) } else { (other, own.bytes()) };
                    value == reconcile(server, client).unwrap_or(entry.value)
                }
            },
        };
        if !right {
            // A Confirm that acknowledges a packet at or after the newest Change does not prove that the Change was
            // received: it may answer an older one, and then belongs to no current negotiation (section 6.6.8).
            return if entry.repeated { Ok(()) } else { Err(ResetCode::OPTION_ERROR) };
        }
        entry.phase = Phase::Stable;
        entry.refused = feature.rule == Rule::ServerPriority && !own.contains(value);
        self.set(slot, value);
        Ok(())
    }

    fn answer_unknown(&mut self, location: Location, number: FeatureNumber) {
        let answer = Some((location, number));
        if !self.unknown.contains(&answer)
            && let Some(free) = self.unknown.iter_mut().find(|u| u.is_none())
        {
            *free = answer;
        }
    }
}
