//! What has been agreed on, in few bytes: for an Init Cookie (RFC 4340, section 8.1.4).

use super::table::{Rule, SLOTS, Slot};
use super::{Negotiation, Phase};
use crate::connection::Config;
use weir_units::Seq48;

/// Bytes of the two bit fields in front.
const FIELD: usize = 3;
/// Bytes of all values, were all to differ from their initial ones.
const MOST: usize = 2 * FIELD + SLOTS - 4 + 2 * 6 + 2 * 2;

/// The features of a server that has answered a Request, saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Saved {
    bytes: [u8; MOST],
    len: usize,
}

impl Saved {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

fn width(slot: Slot) -> usize {
    match slot.feature().rule {
        Rule::ServerPriority => 1,
        Rule::NonNegotiable { bytes, .. } => bytes,
    }
}

impl Negotiation {
    /// Saves what [`Self::restore`] makes an equal from, after the Response has been written.
    pub fn save(&self) -> Saved {
        let (mut differs, mut changing) = (0u32, 0u32);
        for slot in Slot::all() {
            let entry = &self.entries[slot.index()];
            differs |= u32::from(entry.value != slot.feature().initial) << slot.index();
            changing |= u32::from(entry.phase == Phase::Changing) << slot.index();
        }
        let mut saved = Saved { bytes: [0; MOST], len: 0 };
        saved.push(&differs.to_be_bytes()[1..]);
        saved.push(&changing.to_be_bytes()[1..]);
        for index in (0..SLOTS).filter(|i| differs & 1 << i != 0) {
            saved.push(&self.entries[index].value.to_be_bytes()[8 - width(Slot::from_index(index))..]);
        }
        saved
    }

    /// A server's features as they were when it had sent the Response numbered `sent` for the Request numbered `received`.
    /// `None` where `bytes` are not what [`Self::save`] wrote.
    pub fn restore(config: &Config, bytes: &[u8], sent: Seq48, received: Seq48) -> Option<Self> {
        let field = |b: &[u8]| b.iter().fold(0u32, |n, &b| n << 8 | u32::from(b));
        let (differs, rest) = bytes.split_at_checked(FIELD)?;
        let (changing, mut rest) = rest.split_at_checked(FIELD)?;
        let (differs, changing) = (field(differs), field(changing));
        let mut all = Self::new(config, true);
        for index in 0..SLOTS {
            let slot = Slot::from_index(index);
            if differs & 1 << index != 0 {
                let (value, behind) = rest.split_at_checked(width(slot))?;
                all.entries[index].value = slot.feature().rule.value(value)?;
                all.changed |= 1 << index;
                rest = behind;
            }
        }
        all.find_needs();
        for (index, slot) in (0..SLOTS).map(|i| (i, Slot::from_index(i))) {
            let is_changing = changing & 1 << index != 0;
            all.entries[index].values = all.wanted(slot);
            all.entries[index].phase = if is_changing { Phase::Changing } else { Phase::Stable };
            all.entries[index].asked = is_changing;
        }
        (all.newest_sent, all.newest_received) = (Some(sent), Some(received));
        all.begin_packet(crate::packet::PacketType::Request, received, None);
        rest.is_empty().then_some(all)
    }
}
