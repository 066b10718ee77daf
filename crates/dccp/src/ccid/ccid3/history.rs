//! Detection of lost and marked packets, at the receiver (RFC 5348, section 5.1; RFC 4342, sections 6.1 and 10.2).

use super::options::NDUPACK;
use super::window_counter::distance;
use crate::ccid::ReceivedPacket;
use weir_units::{Ecn, Seq48};

/// Holes that wait for later packets: each packet makes at most one and three complete it, but late packets split them.
const MAX_HOLES: usize = 8;

/// Position of an event in the packet stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Place {
    /// The window counter received before it, unwrapped.
    pub(super) counter: u64,
    /// Packets without data before it.
    pub(super) without_data: u64,
}

/// Data packets in a row that were lost, or one that was marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Loss {
    pub(super) first: Seq48,
    pub(super) last: Seq48,
    pub(super) place: Place,
}

impl Loss {
    pub(super) fn packets(&self) -> u64 {
        (self.last.since(self.first) + 1).unsigned_abs()
    }
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    loss: Loss,
    /// Packets that have arrived with greater numbers.
    later: u64,
}

/// Received and missing packets.
#[derive(Clone, Debug)]
pub(super) struct History {
    highest: Option<Seq48>,
    ccval: Option<u8>,
    place: Place,
    /// Oldest first.
    holes: Vec<Hole>,
}

impl History {
    pub(super) fn new() -> Self {
        Self { highest: None, ccval: None, place: Place::default(), holes: Vec::with_capacity(MAX_HOLES + 1) }
    }

    /// The greatest number that has arrived.
    pub(super) fn highest(&self) -> Option<Seq48> {
        self.highest
    }
    /// The current position in the stream.
    pub(super) fn place(&self) -> Place {
        self.place
    }
    /// The first packet that may be lost.
    pub(super) fn pending(&self) -> Option<Seq48> {
        self.holes.first().map(|h| h.loss.first)
    }

    /// Processes a packet; returns `false` if it is a duplicate or was given up. Calls `on_loss` with losses in order.
    pub(super) fn on_packet(&mut self, packet: &ReceivedPacket<'_>, mut on_loss: impl FnMut(Loss)) -> bool {
        let (sequence, is_data) = (packet.sequence, packet.packet_type.is_data());
        let place = match self.highest {
            Some(highest) if !sequence.is_after(highest) => {
                let Some(hole) = self.fill(sequence) else { return false };
                self.place.without_data += u64::from(!is_data);
                for h in self.holes.iter_mut().filter(|h| sequence.is_after(h.loss.last)) {
                    h.later += 1;
                }
                hole
            }
            highest => {
                self.holes.iter_mut().for_each(|h| h.later += 1);
                if let Some(highest) = highest {
                    self.open(highest.next(), sequence.sub(1), packet.ndp_count.unwrap_or(0));
                }
                if is_data {
                    let step = self.ccval.map_or(0, |before| distance(before, packet.ccval));
                    self.place.counter += u64::from(step);
                    self.ccval = Some(packet.ccval);
                }
                let place = self.place;
                self.place.without_data += u64::from(!is_data);
                self.highest = Some(sequence);
                place
            }
        };
        let is_marked = packet.ecn == Ecn::Ce && is_data;
        // Packets that may be lost before a marked packet are lost with it.
        let given_up = |h: &Hole| h.later >= NDUPACK || (is_marked && sequence.is_after(h.loss.last));
        while self.holes.len() > MAX_HOLES || self.holes.first().is_some_and(given_up) {
            on_loss(self.holes.remove(0).loss);
        }
        if is_marked {
            on_loss(Loss { first: sequence, last: sequence, place });
        }
        true
    }

    /// Numbers not received, the last `without_data` of them without data.
    fn open(&mut self, first: Seq48, last: Seq48, without_data: u64) {
        let missing = (last.since(first) + 1).max(0).unsigned_abs();
        let without_data = without_data.min(missing);
        if missing > without_data {
            let loss = Loss { first, last: last.sub(without_data), place: self.place };
            self.holes.push(Hole { loss, later: 1 });
        }
        self.place.without_data += without_data;
    }

    /// A packet received late: removes it from its hole and returns the position before it.
    fn fill(&mut self, sequence: Seq48) -> Option<Place> {
        let at = self.holes.iter().position(|h| sequence.is_within(h.loss.first, h.loss.last))?;
        let hole = self.holes[at];
        let Loss { first, last, place } = hole.loss;
        let before = Hole { loss: Loss { last: sequence.sub(1), ..hole.loss }, later: hole.later };
        let after = Hole { loss: Loss { first: sequence.next(), ..hole.loss }, later: hole.later };
        match (first == sequence, last == sequence) {
            (true, true) => {
                self.holes.remove(at);
            }
            (true, false) => self.holes[at] = after,
            (false, true) => self.holes[at] = before,
            (false, false) => {
                self.holes[at] = before;
                self.holes.insert(at + 1, after);
            }
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::option::Options;
    use crate::packet::PacketType;
    use weir_units::{DataSize, Timestamp};

    /// `.` is received, `x` lost, `m` received marked, `a` an acknowledgement, `n` a lost one; one per number from 0,
    /// and the window counter increases every second packet.
    struct Run(History, u64, u64, Vec<(u64, u64, u64)>);

    impl Run {
        fn new() -> Self {
            Self(History::new(), 0, 0, Vec::new())
        }
        fn packet(&mut self, n: u64, kind: char, ndp: Option<u64>) -> bool {
            let packet = ReceivedPacket {
                now: Timestamp::ZERO,
                sequence: Seq48::new(n),
                packet_type: if kind == 'a' { PacketType::Ack } else { PacketType::Data },
                data: DataSize::ZERO,
                ecn: if kind == 'm' { Ecn::Ce } else { Ecn::Ect0 },
                ccval: (n / 2 % 16) as u8,
                ndp_count: ndp,
                rtt: None,
                options: Options::new(&[], PacketType::Data),
            };
            self.0.on_packet(&packet, |l| self.3.push((l.first.get(), l.last.get(), l.place.counter)))
        }
        fn take(mut self, pattern: &str) -> Self {
            for c in pattern.chars() {
                match c {
                    'x' => {}
                    'n' => self.2 += 1,
                    _ => {
                        assert!(self.packet(self.1, c, Some(self.2)));
                        self.2 = if c == 'a' { self.2 + 1 } else { 0 };
                    }
                }
                self.1 += 1;
            }
            self
        }
    }

    #[test]
    fn three_later_packets_make_a_loss() {
        assert_eq!(Run::new().take("....x..").3, []);
        assert_eq!(Run::new().take("....x...").3, [(4, 4, 1)]);
        assert_eq!(Run::new().take("..xxx.a.").3, [(2, 4, 0)], "any packets");
        assert_eq!(Run::new().take("..x.x...").3, [(2, 2, 0), (4, 4, 1)]);
    }

    #[test]
    fn a_mark_counts_at_once_and_takes_what_is_missing_before_it() {
        assert_eq!(Run::new().take("....m").3, [(4, 4, 2)]);
        assert_eq!(Run::new().take("..x.m").3, [(2, 2, 0), (4, 4, 2)]);
    }

    #[test]
    fn packets_without_data_are_not_lost() {
        assert_eq!(Run::new().take("..n....").3, []);
        assert_eq!(Run::new().take("..xnn...").3, [(2, 2, 0)]);
        let r = Run::new().take("..a.xnn...");
        assert_eq!((r.3, r.0.place.without_data), (vec![(4, 4, 1)], 3));
    }

    #[test]
    fn late_packets_fill_holes() {
        let mut r = Run::new().take("..xxx.");
        assert!(r.packet(3, '.', None) && !r.packet(3, '.', None) && !r.packet(0, '.', None));
        assert_eq!(r.0.pending(), Some(Seq48::new(2)));
        assert_eq!(r.0.holes.len(), 2);
        assert!(r.packet(2, '.', None) && r.packet(4, '.', None));
        assert_eq!((r.0.pending(), r.3.len()), (None, 0));
        let mut r = r.take("x...");
        assert!(!r.packet(6, '.', None), "too late");
        assert_eq!(r.3, [(6, 6, 2)]);
    }

    #[test]
    fn the_counter_unwraps() {
        let r = Run::new().take(&".".repeat(100)).take("xxxxxxxx...");
        assert_eq!((r.0.place.counter, r.3), (55, vec![(100, 107, 49)]));
    }
}
