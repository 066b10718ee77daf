//! Preferences of the application among paths, beside what the network allows: which cost money or a battery's energy, and
//! how much they may carry.
//!
//! A policy decides which paths a scheduler sees as usable, and at which rate, so that all schedulers honour it. It is
//! the application's: the draft (draft-ietf-avtcore-mprtp-03) has none, and Multipath TCP (RFC 8684, section 3.3.8) the
//! backup flag alone.

use super::scheduler::{MAX_PATHS, PathSet, PathView};
use weir_units::{DataRate, DataSize, PathId, TimeDelta, Timestamp};

/// Better paths must suffice for this long before worse ones are left (calibrated: controllers' rates swing within
/// seconds; each change costs reordering).
const PATIENCE: TimeDelta = TimeDelta::from_secs(5);
/// Least share, so that a path is still measured.
const LEAST_SHARE: f64 = 0.01;

/// When a path carries media, from the best class to the worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum PathClass {
    /// Whenever it can.
    Preferred,
    /// While preferred paths do not reach the sufficient rate.
    #[default]
    Normal,
    /// While preferred and normal paths do not reach it: a path that costs money or energy by the byte.
    Metered,
    /// While no other path can: for example a radio that would otherwise sleep.
    Backup,
}

impl PathClass {
    /// Names, from the best class to the worst.
    pub const NAMES: [(&str, Self); 4] = [
        ("preferred", Self::Preferred),
        ("normal", Self::Normal),
        ("metered", Self::Metered),
        ("backup", Self::Backup),
    ];

    /// The class of a name in [`Self::NAMES`].
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|n| n.0 == name).map(|n| n.1)
    }
}

/// Preference of the application for a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathPolicy {
    /// When it carries media. Without a sufficient rate all classes but [`PathClass::Backup`] carry media together.
    pub class: PathClass,
    /// Part of its controller's rate that media may take, from 0.01 to 1; other values count as the nearer bound, and one
    /// that is no number as 1.
    pub share: f64,
    /// RTP bytes, without UDP and IP headers, that may be sent on it from now on; after them it counts as
    /// [`PathClass::Backup`]. `None` sets no limit. RTCP, at most 5 % of the session bandwidth, is not counted.
    pub budget: Option<DataSize>,
}

impl Default for PathPolicy {
    /// Normal, with all of its rate and without a limit.
    fn default() -> Self {
        Self { class: PathClass::default(), share: 1.0, budget: None }
    }
}

impl PathPolicy {
    /// A policy of this class, without further limits.
    pub fn of(class: PathClass) -> Self {
        Self { class, ..Self::default() }
    }
}

/// The policies of all paths, and which classes are in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    paths: [Held; MAX_PATHS],
    /// Media rate that suffices.
    sufficient: Option<DataRate>,
    /// The worst class in use, and since when better ones have sufficed.
    worst: PathClass,
    sufficed: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    policy: PathPolicy,
    /// Bytes sent on the path at which its budget is spent.
    spent_at: Option<u64>,
}

impl Policies {
    /// Sets a path's policy after `sent` bytes.
    pub(crate) fn set(&mut self, path: PathId, policy: PathPolicy, sent: u64) {
        let Some(held) = self.paths.get_mut(path.index()) else { return };
        let share = if policy.share.is_nan() { 1.0 } else { policy.share.clamp(LEAST_SHARE, 1.0) };
        let spent_at = policy.budget.map(|b| sent.saturating_add(b.as_bytes()));
        *held = Held { policy: PathPolicy { share, ..policy }, spent_at };
    }
    pub(crate) fn set_sufficient(&mut self, rate: Option<DataRate>) {
        self.sufficient = rate;
    }

    /// A path's policy, with the budget that is left after `sent` bytes.
    pub(crate) fn get(&self, path: PathId, sent: u64) -> PathPolicy {
        let held = self.paths.get(path.index()).copied().unwrap_or_default();
        let left = held.spent_at.map(|at| DataSize::from_bytes(at.saturating_sub(sent)));
        PathPolicy { budget: left, ..held.policy }
    }

    /// The rate that media may take of a path's.
    pub(crate) fn rate(&self, path: PathId, rate: DataRate) -> DataRate {
        let share = self.paths.get(path.index()).map_or(1.0, |h| h.policy.share);
        if share < 1.0 { DataRate::from_bps_f64(rate.as_bps_f64() * share) } else { rate }
    }

    fn class(&self, path: PathId, sent: u64) -> PathClass {
        let held = self.paths.get(path.index()).copied().unwrap_or_default();
        let is_spent = held.spent_at.is_some_and(|at| sent >= at);
        if is_spent { PathClass::Backup } else { held.policy.class }
    }

    /// Those of the usable paths that are to be used, by the rates in their views and the bytes sent on each so far.
    pub(crate) fn select(
        &mut self,
        views: &[PathView],
        usable: PathSet,
        sent: impl Fn(PathId) -> u64,
        now: Timestamp,
    ) -> PathSet {
        let mut needed = PathClass::Metered;
        let (mut sum, mut any) = (DataRate::ZERO, false);
        for class in [PathClass::Preferred, PathClass::Normal, PathClass::Metered] {
            let members = views.iter().filter(|v| usable.contains(v.id) && self.class(v.id, sent(v.id)) == class);
            for v in members {
                (sum, any) = (sum + v.rate, true);
            }
            if any && self.sufficient.is_some_and(|enough| sum >= enough) {
                needed = class;
                break;
            }
        }
        if !any {
            // Backups are all that there is.
            return usable;
        }
        let waits = needed < self.worst && now.saturating_since(*self.sufficed.get_or_insert(now)) < PATIENCE;
        if !waits {
            (self.worst, self.sufficed) = (needed, None);
        }
        let is_used = |path: &PathId| self.class(*path, sent(*path)) <= self.worst;
        usable.iter().filter(is_used).fold(PathSet::NONE, PathSet::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(n: u8, kbps: u64) -> PathView {
        PathView { id: PathId::new(n), rate: DataRate::from_kbps(kbps), ..PathView::NEW }
    }
    fn set(numbers: &[u8]) -> PathSet {
        numbers.iter().fold(PathSet::NONE, |set, n| set.with(PathId::new(*n)))
    }
    /// Paths of these classes.
    fn policies(classes: &[PathClass], sufficient: Option<u64>) -> Policies {
        let mut p = Policies::default();
        for (n, class) in (0..).zip(classes) {
            p.set(PathId::new(n), PathPolicy::of(*class), 0);
        }
        p.set_sufficient(sufficient.map(DataRate::from_kbps));
        p
    }
    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn without_a_sufficient_rate_all_but_backups_are_used() {
        use PathClass::{Backup, Metered, Normal, Preferred};
        let mut p = policies(&[Preferred, Normal, Metered, Backup], None);
        let views = [0, 1, 2, 3].map(|n| view(n, 1_000));
        assert_eq!(p.select(&views, set(&[0, 1, 2, 3]), |_| 0, at(0)), set(&[0, 1, 2]));
        assert_eq!(p.select(&views, set(&[2, 3]), |_| 0, at(1)), set(&[2]));
        assert_eq!(p.select(&views, set(&[3]), |_| 0, at(2)), set(&[3]));
        assert_eq!(p.select(&views, PathSet::NONE, |_| 0, at(3)), PathSet::NONE);
    }

    #[test]
    fn worse_classes_join_at_once_and_are_left_after_a_while() {
        use PathClass::{Metered, Preferred};
        let mut p = policies(&[Preferred, Metered], Some(1_000));
        let both = set(&[0, 1]);
        let mut select = |kbps, ms| p.select(&[view(0, kbps), view(1, 5_000)], both, |_| 0, at(ms));
        assert_eq!(select(1_200, 0), set(&[0]));
        assert_eq!(select(900, 1_000), both);
        assert_eq!(select(1_200, 2_000), both);
        assert_eq!(select(1_200, 6_999), both);
        assert_eq!(select(1_200, 7_000), set(&[0]));
        assert_eq!(select(900, 7_100), both);
        assert_eq!(select(1_200, 8_000), both);
        assert_eq!(select(900, 12_900), both, "the wait begins again");
        assert_eq!(select(1_200, 13_100), both);
        assert_eq!(select(1_200, 18_100), set(&[0]));
    }

    #[test]
    fn a_spent_budget_makes_a_backup() {
        let mut p = Policies::default();
        let (a, b) = (PathId::new(0), PathId::new(1));
        p.set(b, PathPolicy { budget: Some(DataSize::from_bytes(1_000)), ..PathPolicy::default() }, 500);
        let views = [view(0, 100), view(1, 100)];
        let mut select =
            |usable: &[u8], bytes| p.select(&views, set(usable), |path| if path == b { bytes } else { 0 }, at(0));
        assert_eq!(select(&[0, 1], 1_499), set(&[0, 1]));
        assert_eq!(select(&[0, 1], 1_500), set(&[0]));
        assert_eq!(select(&[1], 9_000), set(&[1]), "better than nothing");
        assert_eq!(p.get(b, 1_400).budget, Some(DataSize::from_bytes(100)));
        assert_eq!((p.get(b, 9_000).budget, p.get(a, 9_000).budget), (Some(DataSize::ZERO), None));
    }

    #[test]
    fn shares_scale_rates_and_are_bounded() {
        let mut p = Policies::default();
        let path = PathId::new(3);
        let rate = DataRate::from_kbps(1_000);
        for (share, kbps) in [(0.5, 500), (1.0, 1_000), (7.0, 1_000), (-1.0, 10), (0.0, 10), (f64::NAN, 1_000)] {
            p.set(path, PathPolicy { share, ..PathPolicy::default() }, 0);
            assert_eq!(p.rate(path, rate), DataRate::from_kbps(kbps), "{share}");
        }
        assert_eq!(p.rate(PathId::new(2), rate), rate);
        // A number that no path has changes nothing.
        p.set(PathId::new(200), PathPolicy::of(PathClass::Backup), 0);
        assert_eq!(p.get(PathId::new(200), 0), PathPolicy::default());
    }
}
