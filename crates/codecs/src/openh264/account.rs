//! Bits that the library's rate control has overspent by its own account, and those overspent in fact.
//!
//! The library allots the bits of eight pictures at a time and takes what these overspend from the next eight. Until it is paid back, a picture gets 55 % of its share,
//! and every second one is left out: a quarter of the target. It charges more than was overspent (OpenH264 2.6, `ratectl.cpp`):
//!
//! - Another target multiplies the debt (`RcUpdateBitrateFps`). 300 kbit, which the quantiser's way up takes when 4 Mbit/s become 100 kbit/s, are 12 Mbit once the target is back.
//! - A key frame within the eight takes away what the rest of them was allotted, at the rate of before a change (`RcInitVGop`).
//! - A key frame that is coded again is charged for each time.
//!
//! One rate is not multiplied: a bit a picture. A picture at that rate, the last of its eight, leaves no debt but its own bits, and the next eight get
//! their share of the target. It has a quantiser three to five above the last one, which is at most 51. [`Account`] follows the library's account, and says when such a
//! picture is worth it.

use weir_units::DataRate;

/// Ticks per second, as in RTP.
const CLOCK: f64 = 90_000.0;
/// Pictures whose bits are allotted together (the library's VGOP_SIZE).
const GROUP: i64 = 8;
/// Overspent bits up to which the account may be settled, in pictures' shares of the target: 67 ms of its rate at 30 pictures a second, which a queue holds. Above it
/// the debt is a real one, and is paid back first. Chosen here.
const PAID: f64 = 2.0;

/// Accounts of one stream. With temporal layers the last picture of a group is of the highest one, which no other needs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Account {
    frame_rate: f64,
    /// Pictures from one of the lowest temporal layer to the next.
    period: i64,
    /// A picture's share of the library's rate, in bits; 0 before the first picture.
    share: i64,
    /// Bits left of what the group was allotted.
    left: i64,
    allotted: i64,
    /// Coded pictures of the group.
    coded: i64,
    /// Bits above the target in fact.
    overspent: f64,
    /// Time of the last picture in ticks, and its bits.
    last: (u64, f64),
}

impl Account {
    /// Of a stream with so many pictures a second and temporal layers.
    pub(super) const fn new(frame_rate: f64, layers: u8) -> Self {
        let period = 1 << layers.saturating_sub(1);
        Self { frame_rate, period, share: 0, left: 0, allotted: 0, coded: 0, overspent: 0.0, last: (0, 0.0) }
    }

    /// The rate at which a picture settles the account: a bit a picture, and no less than the library accepts.
    pub(super) fn settling_rate(&self) -> DataRate {
        DataRate::from_bps(self.frame_rate.ceil() as u64)
    }

    /// The time of a picture to be coded or skipped, with this target since the last one.
    pub(super) fn pass(&mut self, target: DataRate, ticks: u64) {
        let (at, bits) = self.last;
        // A picture at the same time replaces the last one.
        let paid = if ticks > at { target.as_bps_f64() * (ticks - at) as f64 / CLOCK } else { bits };
        self.overspent = (self.overspent - paid).max(0.0);
        self.last = (ticks, 0.0);
    }

    /// Whether the next picture, at this rate, should settle the account: the library would take more than a group's bits away that were not
    /// overspent.
    pub(super) fn settles(&self, rate: DataRate) -> bool {
        let share = self.share_of(rate);
        let carried = share.saturating_sub(self.left_at(share));
        self.coded == GROUP - 1
            && self.overspent <= PAID * share as f64
            && carried as f64 > GROUP as f64 * share as f64 + self.overspent
    }

    /// Whether the last coded picture has settled the account.
    pub(super) const fn is_settling(&self) -> bool {
        self.share == 1
    }

    /// A picture was coded at this rate of the library, into so many bytes; none if it was left out.
    pub(super) fn coded(&mut self, rate: DataRate, key: bool, bytes: usize) {
        if bytes == 0 {
            self.left = self.left.saturating_add(self.share);
            return;
        }
        let share = self.share_of(rate);
        (self.left, self.share) = (self.left_at(share), share);
        if key || self.coded == GROUP {
            let periods = GROUP / self.period;
            let unused = (periods - (self.coded + self.period - 1) / self.period) * (self.allotted / periods);
            self.left = GROUP * share + self.left.saturating_sub(unused).min(0);
            (self.allotted, self.coded) = (self.left, 0);
        }
        self.coded += 1;
        let bits = i64::try_from(bytes).unwrap_or(i64::MAX).saturating_mul(8);
        self.left = self.left.saturating_sub(bits);
        self.overspent += bits as f64;
        self.last.1 = bits as f64;
    }

    fn share_of(&self, rate: DataRate) -> i64 {
        // The library's integers have 32 bits.
        (rate.as_bps_f64() / self.frame_rate).round().min(f64::from(i32::MAX)) as i64
    }

    /// Bits left, with another share of a picture.
    fn left_at(&self, share: i64) -> i64 {
        if self.share <= 1 || share == self.share {
            return self.left;
        }
        // Its rounding is to the nearest above zero, and up below.
        (self.share / 2).saturating_add(self.left.saturating_mul(share)) / self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: u64 = 3_000;
    /// Shares of 10,000 and 400,000 bits.
    const LOW: DataRate = DataRate::from_kbps(300);
    const HIGH: DataRate = DataRate::from_kbps(12_000);

    /// An account after so many pictures of this rate and size.
    fn after(pictures: u64, rate: DataRate, bytes: usize) -> Account {
        let mut a = Account::new(30.0, 1);
        for n in 1..=pictures {
            a.pass(rate, n * FRAME);
            assert!(!a.settles(rate));
            a.coded(rate, n == 1, bytes);
        }
        a
    }

    #[test]
    fn what_a_group_overspends_is_taken_from_the_next() {
        // Eight pictures of 12,000 bits overspend 16,000 of 80,000.
        assert_eq!(after(8, LOW, 1_500).left, -16_000);
        assert_eq!(after(9, LOW, 1_500).left, 64_000 - 12_000);
        // Unused bits are not added.
        assert_eq!(after(9, LOW, 500).left, 80_000 - 4_000);
        let mut a = after(8, LOW, 1_500);
        a.coded(LOW, false, 0);
        assert_eq!(a.left, -6_000);
    }

    #[test]
    fn a_higher_target_multiplies_the_debt_and_the_last_picture_of_a_group_settles_it() {
        // 24,000 bits a picture: after 15, the second group's 80,000 less 112,000 have lost 168,000, and 10,000 remain for the last.
        let mut a = after(15, LOW, 3_000);
        assert_eq!((a.left, a.coded), (80_000 - 112_000 - 168_000, 7));
        assert!(!a.settles(LOW));
        // In fact 15 pictures overspent 14,000 each, and one its own 24,000, which 67 ms at the high rate pay.
        a.pass(HIGH, 16 * FRAME);
        assert_eq!(a.overspent, 0.0);
        assert!(a.settles(HIGH));
        a.coded(a.settling_rate(), false, 1_000);
        assert_eq!((a.left, a.share), (-19 - 8_000, 1));
        assert!(!a.settles(HIGH));
        a.coded(HIGH, false, 50_000);
        assert_eq!(a.left, 8 * 400_000 - 8_019 - 400_000);
    }

    #[test]
    fn a_real_debt_is_paid_first() {
        let mut a = after(15, LOW, 3_000);
        // Twice the rate: 224,000 bits overspent, of which a picture's time pays 20,000.
        a.pass(DataRate::from_kbps(600), 16 * FRAME);
        assert_eq!(a.overspent, 14.0 * 14_000.0 + 24_000.0 - 20_000.0);
        assert!(!a.settles(DataRate::from_kbps(600)));
    }

    #[test]
    fn a_key_frame_takes_the_allotment_of_before_a_fall() {
        let mut a = after(9, HIGH, 50_000);
        a.coded(LOW, false, 1_250);
        assert_eq!(a.left, 70_000 - 10_000);
        // Six of the group were not coded, of 400,000 bits each.
        a.coded(LOW, true, 1_250);
        assert_eq!((a.left, a.coded), (80_000 + 60_000 - 2_400_000 - 10_000, 1));
    }

    #[test]
    fn what_a_key_frame_takes_away_begins_with_the_next_period_of_layers() {
        let mut a = Account::new(30.0, 3);
        for n in 0..3 {
            a.coded(LOW, n == 0, 1_250);
        }
        assert_eq!(a.left, 80_000 - 30_000);
        // The second of two periods of four pictures was not begun.
        a.coded(LOW, true, 1_250);
        assert_eq!((a.left, a.coded), (80_000 - 10_000, 1));
        a = Account::new(30.0, 3);
        for n in 0..3 {
            a.coded(LOW, n == 0, 3_750);
        }
        a.coded(LOW, true, 1_250);
        assert_eq!(a.left, 80_000 + (80_000 - 90_000 - 40_000) - 10_000);
    }

    #[test]
    fn a_picture_coded_again_replaces_the_first() {
        let mut a = after(1, LOW, 5_000);
        assert_eq!(a.overspent, 40_000.0);
        a.pass(LOW, FRAME);
        a.coded(LOW, true, 2_500);
        assert_eq!((a.overspent, a.left), (20_000.0, 80_000 + (40_000 - 70_000) - 20_000));
    }

    #[test]
    fn rates_of_any_size_leave_no_overflow() {
        let mut a = Account::new(1.0, 1);
        for n in 0..100 {
            let rate = DataRate::from_bps(if n % 2 == 0 { 1 } else { u64::MAX });
            a.pass(rate, n);
            a.settles(rate);
            a.coded(rate, n % 3 == 0, usize::MAX);
        }
    }
}
