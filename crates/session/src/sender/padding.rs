//! Padding that finds room for streams that are off.
//!
//! Most controllers do not raise their target far above the rate that is sent. So while a stream is off, padding fills the gap up to the
//! target at which it would be switched on, in searches: one ends when the room is found, or when the target rises no further, and the
//! pauses after those that found none grow. Padding has a share of the target, which a search may overdraw as long as the target rises.

use super::Sender;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Share of the target that padding may take. Chosen here: below a twentieth of what is sent, which is less than the target.
const SHARE: f64 = 0.03;
/// Time over which the share accrues at most, and how many times as much may be owed. Chosen here: searches of 3 s with a third of the rate in
/// padding, and of 12 s while the target rises.
const PERIOD: TimeDelta = TimeDelta::from_secs(30);
const MOST_OWED: f64 = 4.0;
/// A target that has risen by less than [`RISE`] in this time rises no further. 2 s: GCC's additive increase, of a packet in a response
/// time (draft-ietf-rmcat-gcc-02, section 5.5), is above that rise in it up to some Mbit/s.
const PATIENCE: TimeDelta = TimeDelta::from_secs(2);
const RISE: f64 = 1.02;
/// A target below this share of its highest in the search has fallen: the path has no room. Below GCC's back-off, 0.85.
const FALL: f64 = 0.8;
/// A target this far above the highest of the last search has risen by itself: there is another path, or room again.
const NEWS: f64 = 1.1;
/// Pauses after searches that have found nothing: the first, and the longest. Each is twice the one before. Chosen here.
const FIRST_PAUSE: TimeDelta = TimeDelta::from_secs(5);
const LONGEST_PAUSE: TimeDelta = TimeDelta::from_secs(40);

/// The state of a search for room.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The highest target of the search, and when it was reached.
    Searches { best: DataRate, at: Timestamp },
    /// The highest target of the last search, and until when there is no other.
    Pauses { best: DataRate, until: Timestamp },
}

/// The search for room.
#[derive(Debug)]
pub(super) struct Search {
    state: Option<State>,
    pause: TimeDelta,
    /// Bytes of padding that may be sent; negative if more than its share has been.
    left: Option<f64>,
    /// Bytes of padding sent by the last call, and when that was.
    sent: u64,
    at: Timestamp,
    /// When to look again.
    again: Option<Timestamp>,
}

impl Search {
    pub(super) const fn new() -> Self {
        Self { state: None, pause: FIRST_PAUSE, left: None, sent: 0, at: Timestamp::ZERO, again: None }
    }

    /// When [`Self::up_to`] is to be called without a change of the target.
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        self.again
    }
    /// Whether there is a search, or a pause between two.
    pub(super) fn is_on(&self) -> bool {
        self.state.is_some()
    }

    /// The rate up to which to pad, if streams that are off need a target of `needed`, in place of the present one. `sent` bytes of padding
    /// have been sent so far.
    pub(super) fn up_to(
        &mut self,
        needed: Option<DataRate>,
        target: DataRate,
        sent: u64,
        now: Timestamp,
    ) -> Option<DataRate> {
        self.again = None;
        let Some(needed) = needed else {
            (self.state, self.pause) = (None, FIRST_PAUSE);
            return None;
        };
        let accrual = target.as_bps_f64() / 8.0 * SHARE;
        let most = accrual * PERIOD.as_secs_f64();
        let accrued = accrual * now.saturating_since(self.at).as_secs_f64();
        let padding = sent.saturating_sub(self.sent);
        let left = (self.left.unwrap_or(most) + accrued - padding as f64).clamp(-MOST_OWED * most, most);
        (self.left, self.sent, self.at) = (Some(left), sent, now);
        let fits = target >= needed;
        let state = match self.state {
            None => State::Searches { best: target, at: now },
            Some(State::Pauses { best, until }) => {
                let is_news = target > scaled(best, NEWS);
                match left > 0.0 && (is_news || fits || now >= until) {
                    true => State::Searches { best: target, at: now },
                    false => State::Pauses { best, until },
                }
            }
            Some(State::Searches { best, at }) => {
                let rises = target > scaled(best, RISE);
                let (best, at) = if rises || fits { (target.max(best), now) } else { (best, at) };
                let is_over = now - at >= PATIENCE || target < scaled(best, FALL);
                // Room that is found is held for no more than the share allows.
                if is_over || (left <= 0.0 && fits) {
                    let until = now + self.pause;
                    self.pause = if fits { FIRST_PAUSE } else { (self.pause * 2).min(LONGEST_PAUSE) };
                    State::Pauses { best, until }
                } else {
                    if fits {
                        self.pause = FIRST_PAUSE;
                    }
                    State::Searches { best, at }
                }
            }
        };
        self.state = Some(state);
        match state {
            State::Searches { at, .. } => {
                self.again = Some((at + PATIENCE).max(now + TimeDelta::from_millis(1)));
                Some(needed)
            }
            State::Pauses { until, .. } => {
                // The time in which what is missing accrues.
                let owed = TimeDelta::from_secs_f64((-left).max(0.0) / accrual.max(1.0));
                self.again = Some(until.max(now + owed).max(now + TimeDelta::from_millis(100)));
                None
            }
        }
    }
}

impl Sender {
    /// More would be sent at a target of `wanted`: pads up to it while that may find room.
    pub(super) fn pad_up_to(&mut self, wanted: Option<DataRate>, target: DataRate, now: Timestamp) {
        if wanted.is_none() && !self.search.is_on() {
            return;
        }
        let sent = self.streams.iter().map(|s| s.counters.padding_bytes).sum();
        let fill = self.search.up_to(wanted, target, sent, now);
        self.paths[0].fill_up_to(fill, now);
        let again = [self.share_again, self.search.poll_timeout()];
        self.share_again = again.into_iter().flatten().min();
    }
}

fn scaled(rate: DataRate, by: f64) -> DataRate {
    DataRate::from_bps_f64(rate.as_bps_f64() * by)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drives a search for `seconds` on a link of `capacity` kbit/s with `media` kbit/s of media; the target follows what is sent.
    /// Returns the share of padding in what is sent, how often padding began, and the highest target.
    fn drive(search: &mut Search, needed: u64, capacity: f64, media: f64, seconds: i64) -> (f64, u32, f64) {
        let (mut target, mut highest, mut sent, mut begun, mut was_on) = (media, media, [0.0; 2], 0, false);
        for n in 0..seconds * 10 {
            let now = Timestamp::from_millis(n * 100);
            let rate = DataRate::from_bps_f64(target * 1e3);
            let fill = search.up_to(Some(DataRate::from_kbps(needed)), rate, sent[1] as u64, now);
            begun += u32::from(fill.is_some() && !was_on);
            was_on = fill.is_some();
            let padding = fill.map_or(0.0, |f| (f.as_bps_f64() / 1e3).min(target) - media).max(0.0);
            sent[0] += (media + padding) * 12.5;
            sent[1] += padding * 12.5;
            target = (target * 1.01).min((media + padding) * 1.2).min(capacity);
            highest = f64::max(highest, target);
        }
        (sent[1] / sent[0], begun, highest)
    }
    #[test]
    fn padding_raises_the_target_to_what_is_needed() {
        let (share, begun, target) = drive(&mut Search::new(), 900, 2_000.0, 500.0, 10);
        assert!(target >= 900.0 && begun == 1, "{target} {begun}");
        assert!((0.05..=0.5).contains(&share), "{share}");
    }

    #[test]
    fn where_there_is_no_room_padding_stays_below_its_share() {
        for capacity in [600.0, 700.0, 850.0] {
            let (share, begun, target) = drive(&mut Search::new(), 900, capacity, 500.0, 600);
            assert!((0.005..=0.06).contains(&share), "{capacity}: {share}");
            // At 0, 7, 19, 41, 83 s ... if the share allows.
            assert!((5..=20).contains(&begun), "{capacity}: {begun}");
            assert!(target <= capacity);
        }
    }

    #[test]
    fn there_is_none_without_a_need_and_again_at_once_when_the_target_rises_by_itself() {
        let mut search = Search::new();
        let kbps = DataRate::from_kbps;
        let mut at = |needed: Option<u64>, target: u64, ms: i64| {
            search.up_to(needed.map(kbps), kbps(target), 0, Timestamp::from_millis(ms))
        };
        assert_eq!(at(None, 500, 0), None);
        assert_eq!(at(Some(900), 500, 100), Some(kbps(900)));
        // It rises no further: after 2 s there is a pause of 5 s, then one of 10 s.
        assert_eq!(at(Some(900), 505, 2_099), Some(kbps(900)));
        assert_eq!(at(Some(900), 505, 2_100), None);
        assert_eq!(at(Some(900), 505, 7_099), None);
        assert_eq!(at(Some(900), 505, 7_100), Some(kbps(900)));
        assert_eq!(at(Some(900), 505, 9_100), None);
        assert_eq!(at(Some(900), 505, 19_000), None);
        assert_eq!(at(Some(900), 560, 19_010), Some(kbps(900)));
        // It has fallen.
        assert_eq!(at(Some(900), 440, 19_020), None);
    }
}
