//! Loss detection with a reordering window (RFC 8298, section 4.1.2.4; draft-ietf-ccwg-rfc8298bis, section 4.2.1.1).

use weir_units::{TimeDelta, Timestamp};

/// Most packets held back as possibly lost. Beyond this they are losses.
const REMEMBERED: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Marked {
    sequence: u64,
    at: Timestamp,
    came: bool,
}

/// Holds losses back for a reordering window that adapts to observed reordering.
#[derive(Clone, Debug)]
pub(super) struct LossDetector {
    marked: [Marked; REMEMBERED],
    /// Number of packets ever held back, and of those already decided.
    total: u64,
    judged: u64,
    window: TimeDelta,
}

impl LossDetector {
    pub(super) fn new(window: TimeDelta) -> Self {
        Self { marked: [Marked::default(); REMEMBERED], total: 0, judged: 0, window }
    }

    /// The reordering window.
    pub(super) fn window(&self) -> TimeDelta {
        self.window
    }

    /// A packet is reported missing. Returns whether this declares an earlier one lost for lack of room.
    pub(super) fn on_missing(&mut self, sequence: u64, now: Timestamp) -> bool {
        let overflow = self.total - self.judged == REMEMBERED as u64;
        if overflow {
            self.judged += 1;
        }
        self.marked[self.total as usize % REMEMBERED] = Marked { sequence, at: now, came: false };
        self.total += 1;
        overflow
    }

    /// A packet reported missing has arrived after all: the window adapts to its delay, up to `longest`.
    pub(super) fn on_late_arrival(&mut self, sequence: u64, now: Timestamp, longest: TimeDelta) {
        if let Some(m) = self.marked.iter_mut().find(|m| m.sequence == sequence && !m.came) {
            m.came = true;
            self.window = self.window.max((now - m.at).min(longest));
        }
    }

    /// Whether a packet has now been missing for the reordering window.
    pub(super) fn judge(&mut self, now: Timestamp) -> bool {
        let mut lost = false;
        while self.judged < self.total {
            let m = &self.marked[self.judged as usize % REMEMBERED];
            if !m.came && now - m.at < self.window {
                break;
            }
            lost |= !m.came;
            self.judged += 1;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }
    const fn at(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    #[test]
    fn without_a_window_a_loss_is_judged_at_once_and_only_once() {
        let mut d = LossDetector::new(TimeDelta::ZERO);
        assert!(!d.judge(at(0)));
        d.on_missing(7, at(0));
        assert!(d.judge(at(0)));
        assert!(!d.judge(at(100)));
    }

    #[test]
    fn the_window_learns_from_late_arrivals() {
        let mut d = LossDetector::new(TimeDelta::ZERO);
        d.on_missing(7, at(0));
        assert!(d.judge(at(0)));
        d.on_late_arrival(7, at(30), ms(200));
        assert_eq!(d.window(), ms(30));
        d.on_missing(9, at(100));
        assert!(!d.judge(at(129)));
        d.on_late_arrival(9, at(129), ms(200));
        assert!(!d.judge(at(500)));
        d.on_missing(11, at(1_000));
        d.on_late_arrival(11, at(1_900), ms(200));
        assert_eq!(d.window(), ms(200), "bounded");
        d.on_late_arrival(500, at(9_000), ms(999));
        assert_eq!(d.window(), ms(200), "an unknown packet changes nothing");
    }

    #[test]
    fn too_many_at_once_are_losses() {
        let mut d = LossDetector::new(ms(1_000));
        assert!((0..64).all(|s| !d.on_missing(s, at(0))));
        assert!(d.on_missing(64, at(0)));
    }
}
