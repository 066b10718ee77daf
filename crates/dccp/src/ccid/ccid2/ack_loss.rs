use weir_units::Seq48;

/// Numbers kept.
const SPAN: u64 = 64;

/// Detects lost acknowledgements by the other end's sequence numbers (RFC 4341, section 6.1.1): one is lost when
/// NUMDUPACK later packets were received. Once the other end sends NDP Counts, only numbers that these identify as
/// packets without data count; before that, all do.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckLoss {
    num_dup_ack: u32,
    newest: Option<Seq48>,
    /// Bit i: the packet i before the newest was received.
    seen: u64,
    /// Likewise: it is known to carry no data.
    without_data: u64,
    /// The same: it has been judged.
    judged: u64,
    has_ndp: bool,
}

impl AckLoss {
    pub(super) const fn new(num_dup_ack: u32) -> Self {
        Self { num_dup_ack, newest: None, seen: 0, without_data: 0, judged: u64::MAX, has_ndp: false }
    }

    /// A packet of the other end was received. Returns the number of packets without data that are now known to be
    /// lost.
    pub(super) fn on_packet(&mut self, seq: Seq48, ndp_count: Option<u64>) -> u32 {
        let ahead = self.newest.map_or(SPAN as i64, |n| seq.since(n));
        if ahead <= 0 {
            let behind = ahead.unsigned_abs();
            if behind < SPAN {
                self.seen |= 1 << behind;
                self.note_ndp(behind, ndp_count);
            }
        } else {
            let shift = ahead.unsigned_abs();
            let shifted = |bits: u64| bits.checked_shl(u32::try_from(shift).unwrap_or(u32::MAX)).unwrap_or(0);
            (self.seen, self.without_data) = (shifted(self.seen) | 1, shifted(self.without_data));
            // Before the first packet nothing can be missing; numbers beyond a long gap are not judged.
            self.judged = if self.newest.is_none() { u64::MAX } else { shifted(self.judged) };
            self.newest = Some(seq);
            self.note_ndp(0, ndp_count);
        }
        self.judge()
    }

    fn note_ndp(&mut self, behind: u64, ndp_count: Option<u64>) {
        let Some(n) = ndp_count.filter(|&n| n > 0) else { return };
        self.has_ndp = true;
        let ones = if n >= SPAN { u64::MAX } else { (1 << n) - 1 };
        self.without_data |= ones.checked_shl(behind as u32 + 1).unwrap_or(0);
    }

    fn judge(&mut self) -> u32 {
        // The NUMDUPACK-th newest received: older missing packets are lost.
        let mut newer = self.seen;
        for _ in 1..self.num_dup_ack {
            newer &= newer.wrapping_sub(1);
        }
        if newer == 0 {
            return 0;
        }
        let at = newer.trailing_zeros();
        let older = u64::MAX.checked_shl(at + 1).unwrap_or(0);
        let lost = older & !self.seen & !self.judged;
        self.judged |= older;
        (if self.has_ndp { lost & self.without_data } else { lost }).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(a: &mut AckLoss, packets: &[(u64, Option<u64>)]) -> Vec<u32> {
        packets.iter().map(|&(n, ndp)| a.on_packet(Seq48::new(n), ndp)).collect()
    }
    fn plain(a: &mut AckLoss, packets: &[u64]) -> Vec<u32> {
        packets.iter().map(|&n| a.on_packet(Seq48::new(n), None)).collect()
    }

    #[test]
    fn lost_after_three_later_ones_and_reported_once() {
        let mut a = AckLoss::new(3);
        assert_eq!(plain(&mut a, &[10, 11, 13, 14, 15, 16, 17]), [0, 0, 0, 0, 1, 0, 0]);
        // Two in one gap; a late one is not lost.
        assert_eq!(plain(&mut a, &[20, 21, 18, 22, 23]), [0, 0, 0, 1, 0]);
        assert_eq!(plain(&mut a, &[26, 27, 24, 25, 28]), [0; 5]);
        // A number received late after it was judged, or twice, changes nothing.
        assert_eq!(plain(&mut a, &[19, 28, 12]), [0; 3]);
    }

    #[test]
    fn ndp_counts_distinguish_data_from_acknowledgements() {
        let mut a = AckLoss::new(3);
        // 11 carried data: 12 does not indicate a packet without data just before it.
        assert_eq!(feed(&mut a, &[(10, None), (12, None), (13, Some(1)), (14, Some(2)), (15, Some(3))]), [0; 5]);
        // 16 was data, 17 was not.
        assert_eq!(feed(&mut a, &[(18, Some(1)), (19, Some(2)), (20, Some(3)), (21, Some(4))]), [0, 0, 1, 0]);
        // A lost data packet is not counted.
        assert_eq!(feed(&mut a, &[(23, None), (24, Some(1)), (25, Some(2)), (26, None)]), [0; 4]);
    }

    #[test]
    fn numbers_wrap_and_long_gaps_are_let_be() {
        let last = (1 << 48) - 1;
        let mut a = AckLoss::new(3);
        assert_eq!(plain(&mut a, &[last - 1, last, 1, 2, 3]), [0, 0, 0, 0, 1]);
        assert_eq!(plain(&mut a, &[3 + 64, 3 + 65, 3 + 66]), [0, 0, 61]);
        let mut b = AckLoss::new(1);
        assert_eq!(plain(&mut b, &[1, 3, 2, 1 << 40]), [0, 1, 0, 63]);
        let mut all = AckLoss::new(64);
        assert_eq!((1..=64).map(|n| all.on_packet(Seq48::new(2 * n), Some(u64::MAX))).sum::<u32>(), 0);
    }
}
