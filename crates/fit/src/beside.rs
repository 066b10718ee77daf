//! The room of a queue that others' traffic fills too.

use crate::capacity::Capacity;
use crate::cross::CrossTraffic;
use crate::packets::Entered;
use crate::queue::{Discipline, LEAST, Queue};

/// Half of a full packet, in bytes.
const IN_TRANSMISSION: f64 = 750.0;

impl Queue {
    /// Beside others' traffic the call's own bytes say little of the room: the time that packets waited at a loss does.
    pub(crate) fn beside(&mut self, packets: &[Entered], cross: &[CrossTraffic], capacity: &Capacity) {
        let beside = |at: f64| cross.iter().any(|c| at >= c.from_s && at <= c.to_s);
        let (mut waited, mut rooms, mut longest) = (0.0, Vec::new(), 0.0_f64);
        for (i, p) in packets.iter().enumerate() {
            let bin = ((p.at / capacity.bin_s).max(0.0) as usize).min(capacity.likely_bps.len().saturating_sub(1));
            let Some(rate) = capacity.likely_bps.get(bin).filter(|_| beside(p.at)) else { continue };
            match p.left {
                Some(left) => {
                    // Half of a packet, on average, was in transmission and is no part of the room.
                    waited = ((left - p.at) * rate / 8.0 - IN_TRANSMISSION).max(0.0);
                    longest = longest.max(waited);
                }
                None => {
                    (self.overflowed[i], self.full[i]) = (true, true);
                    rooms.push(waited);
                }
            }
        }
        self.fit.at_least_bytes = self.fit.at_least_bytes.max(longest);
        rooms.sort_by(f64::total_cmp);
        if let Some(room) = rooms.get(rooms.len() / 2).filter(|_| rooms.len() >= LEAST as usize) {
            self.fit.discipline = Discipline::DropTail;
            self.fit.limit_bytes = Some(room.max(longest));
        }
    }
}
