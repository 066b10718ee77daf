//! Header extensions of a stream whose description is not known, recognised by behaviour.

use std::collections::BTreeMap;

/// Elements of two bytes kept of a packet.
const KEPT: usize = 3;
/// Least packets before a guess, and least share of them whose number is the one after the last.
const LEAST_PACKETS: u32 = 20;
const LEAST_SHARE: f64 = 0.8;

/// Identifiers and values of the elements of two bytes in a packet's header.
pub(crate) type Elements = [(u8, u16); KEPT];

/// The elements of two bytes of an RTP packet, as far as they were captured.
pub(crate) fn elements(packet: &[u8]) -> Elements {
    let (mut found, mut kept) = ([(0, 0); KEPT], 0);
    each(packet, &mut |id, value| {
        if let ([a, b], true) = (value, kept < KEPT) {
            found[kept] = (id, u16::from_be_bytes([*a, *b]));
            kept += 1;
        }
    });
    found
}

/// Each element of an RTP packet's header extension, of one- and two-byte headers (RFC 8285), as far as they were captured.
pub(super) fn each(packet: &[u8], of: &mut dyn FnMut(u8, &[u8])) {
    let Some([first, ..]) = packet.get(..12) else { return };
    if first & 0x10 == 0 {
        return;
    }
    let at = 12 + usize::from(first & 0xf) * 4;
    let Some([p0, p1, w0, w1, rest @ ..]) = packet.get(at..) else { return };
    let length = usize::from(u16::from_be_bytes([*w0, *w1])) * 4;
    let mut rest = &rest[..rest.len().min(length)];
    let wide = match (p0, p1 & 0xf0) {
        (0xbe, 0xd0) => false,
        (0x10, 0x00) => true,
        _ => return,
    };
    while let [head, after @ ..] = rest {
        if *head == 0 {
            rest = after;
            continue;
        }
        let (id, length, after) = if wide {
            let [length, after @ ..] = after else { break };
            (*head, usize::from(*length), after)
        } else {
            if head >> 4 == 15 {
                break;
            }
            (head >> 4, usize::from(head & 0xf) + 1, after)
        };
        let Some(value) = after.get(..length) else { break };
        of(id, value);
        rest = &after[length..];
    }
}

/// Behaviour of each identifier over the packets of a flow: a transport-wide number counts up by one.
#[derive(Debug, Default)]
pub(super) struct Behaviour {
    /// Last value, packets, and those whose value is the one after the last.
    ids: BTreeMap<u8, (u16, u32, u32)>,
}

impl Behaviour {
    pub(super) fn add(&mut self, elements: &Elements) {
        for (id, value) in elements.iter().filter(|e| e.0 != 0) {
            let seen = self.ids.entry(*id).or_insert((value.wrapping_sub(1), 0, 0));
            seen.1 = seen.1.saturating_add(1);
            // A capture behind a lossy link has gaps, and reordering a step back.
            let step = value.wrapping_sub(seen.0);
            seen.2 += u32::from((1..=8).contains(&step));
            seen.0 = *value;
        }
    }

    /// The identifier of transport-wide numbers.
    pub(super) fn transport(&self) -> Option<u8> {
        let share = |(_, n, next): &(u16, u32, u32)| f64::from(*next) / f64::from((*n).max(1));
        let fits = |seen: &&(u16, u32, u32)| seen.1 >= LEAST_PACKETS && share(seen) >= LEAST_SHARE;
        let best =
            self.ids.iter().filter(|(_, seen)| fits(seen)).max_by_key(|(id, seen)| (seen.1, std::cmp::Reverse(**id)));
        best.map(|(id, _)| *id)
    }
}
