use weir_units::Seq48;

/// Ack Ratio (RFC 4341, section 6.1.2): doubled for each window with a lost or marked acknowledgement, and lowered by
/// one after cwnd / (R^2 - R) consecutive windows without.
///
/// It is at most cwnd / 2, rounded up, and at least 2 for windows of 4 and more. The RFC always accepts 2; with a
/// window of 1 or 2 packets the sender would wait for the receiver's delayed acknowledgement, so it is 1 there, which
/// the RFC allows and Linux does.
///
/// The window after a doubling is skipped: acknowledgements lost in it were sent before the receiver knew.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckRatio {
    ratio: u16,
    /// Newest packet sent when the present window of data began.
    window_end: Option<Seq48>,
    was_congested: bool,
    was_doubled: bool,
    clean_windows: u32,
}

impl AckRatio {
    pub(super) fn new(ratio: u16) -> Self {
        Self { ratio: ratio.max(1), window_end: None, was_congested: false, was_doubled: false, clean_windows: 0 }
    }
    pub(super) const fn get(&self) -> u16 {
        self.ratio
    }
    pub(super) fn on_lost_or_marked(&mut self) {
        self.was_congested = true;
    }
    /// The window has shrunk.
    pub(super) fn bound(&mut self, cwnd: u32) {
        let most = u16::try_from(cwnd.div_ceil(2)).unwrap_or(u16::MAX).max(1);
        let least = if cwnd >= 4 { 2 } else { 1 };
        self.ratio = self.ratio.clamp(least, most);
    }
    /// A packet is acknowledged, `sent` being the newest sent: the end of each window changes the ratio.
    pub(super) fn on_acknowledged(&mut self, acknowledged: Seq48, sent: Seq48, cwnd: u32) {
        if self.window_end.is_some_and(|end| !acknowledged.is_after(end)) {
            return;
        }
        if self.window_end.replace(sent).is_none() {
            return;
        }
        let congested = std::mem::take(&mut self.was_congested);
        if std::mem::take(&mut self.was_doubled) {
            // Too early to decide.
        } else if congested {
            (self.was_doubled, self.clean_windows) = (true, 0);
            self.ratio = self.ratio.saturating_mul(2);
        } else {
            self.clean_windows = self.clean_windows.saturating_add(1);
            let r = u32::from(self.ratio);
            let product = u64::from(r * r - r) * u64::from(self.clean_windows);
            if r > 1 && product >= u64::from(cwnd) {
                self.ratio -= 1;
                self.clean_windows = 0;
            }
        }
        self.bound(cwnd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs windows of `cwnd` packets; in those listed in `bad` an acknowledgement is lost. Returns the ratio after
    /// each.
    fn windows(a: &mut AckRatio, cwnd: u32, n: u64, bad: &[u64]) -> Vec<u16> {
        let start = a.window_end.map_or(0, Seq48::get);
        a.on_acknowledged(Seq48::new(start + 1), Seq48::new(start + u64::from(cwnd)), cwnd);
        (1..=n)
            .map(|w| {
                let at = start + w * u64::from(cwnd);
                if bad.contains(&w) {
                    a.on_lost_or_marked();
                    a.on_lost_or_marked();
                }
                // Nothing happens within the window.
                a.on_acknowledged(Seq48::new(at), Seq48::new(at + u64::from(cwnd) - 1), cwnd);
                a.on_acknowledged(Seq48::new(at + 1), Seq48::new(at + u64::from(cwnd)), cwnd);
                a.get()
            })
            .collect()
    }

    #[test]
    fn doubles_a_window_and_comes_down_by_appendix_a() {
        let mut a = AckRatio::new(2);
        // Two losses in one window are one event, as are those of the next.
        assert_eq!(windows(&mut a, 40, 5, &[1, 2, 3]), [4, 4, 8, 8, 7]);
        // K = 40 / (8 * 7) is below 1: one window; 40 / (7 * 6): 1; 40 / 30: 2; 40 / 20: 2; 40 / 12: 4; 40 / 6: 7.
        let mut a = AckRatio { ratio: 8, ..AckRatio::new(2) };
        let seen = windows(&mut a, 40, 17, &[]);
        assert_eq!(seen, [7, 6, 6, 5, 5, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 2]);
        // And never below 2 for a window of 4 or more.
        assert_eq!(windows(&mut a, 40, 200, &[]).last(), Some(&2));
    }

    #[test]
    fn keeps_its_bounds() {
        let mut a = AckRatio::new(2);
        // Half a window of 11, rounded up.
        assert_eq!(windows(&mut a, 11, 5, &[1, 2, 3, 4, 5]), [4, 4, 6, 6, 6]);
        a.bound(5);
        assert_eq!(a.get(), 3);
        a.bound(2);
        assert_eq!(a.get(), 1);
        a.bound(4);
        assert_eq!(a.get(), 2);
        a.ratio = u16::MAX;
        assert_eq!(windows(&mut a, 1_000_000, 2, &[1, 2]), [u16::MAX; 2]);
    }
}
