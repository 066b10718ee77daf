//! How a path's target is shared out over the streams that it carries.
//!
//! [`share_out`] is a pure function of the target, what each stream asks for, and which encodings were on before. It gives,
//! in this order:
//!
//! 1. each stream its least rate: audio first, then by priority (RFC 8836, section 2, item 8). Where the target is too small
//!    for all, the streams at the end of that order get nothing;
//! 2. audio the rest up to its greatest rate, by weight;
//! 3. video the rest up to its greatest rate, by weight: each priority has twice the weight of the one below (RFC 8835,
//!    section 4).
//!
//! The encodings of a simulcast are one stream in this: its rate goes to the lowest encoding up to its greatest rate, then to
//! the next (RFC 8853 leaves the choice to the sender). What they cannot take goes to the other streams.
//!
//! The sum is never above the target, and does not fall when the target rises. A stream or an encoding that was off goes on
//! only once it would fit a target lower by [`Hysteresis::margin`], and that for [`Hysteresis::hold`]; one that is on stays
//! on while it fits.

pub use weir_media::MediaKind;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// How much a stream counts beside the others (RFC 8835, section 4; RFC 8837, section 5). Each has twice the weight of the
/// one before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Priority {
    /// Weight 1.
    VeryLow,
    /// Weight 2.
    #[default]
    Low,
    /// Weight 4.
    Medium,
    /// Weight 8.
    High,
}

impl Priority {
    /// Its weight, 1 to 8.
    pub const fn weight(self) -> u64 {
        1 << self as u64
    }
}

/// What one stream, or one encoding of a simulcast, asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Rate below which it is of no use.
    pub least: DataRate,
    /// Rate above which it gains nothing.
    pub most: DataRate,
    /// Weight beside the other streams. Encodings of a simulcast go by that of the lowest.
    pub priority: Priority,
    /// Audio is served first.
    pub media: MediaKind,
    /// The simulcast that it is an encoding of. Encodings of one simulcast stand in the list from the lowest up, not
    /// necessarily one behind the other.
    pub simulcast: Option<u8>,
}

impl Default for Demand {
    /// Whatever the target gives.
    fn default() -> Self {
        Self {
            least: DataRate::ZERO,
            most: DataRate::from_bps(u64::MAX),
            priority: Priority::default(),
            media: MediaKind::default(),
            simulcast: None,
        }
    }
}

/// When a stream or an encoding goes on that was off.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hysteresis {
    /// It has to fit the target with so much to spare, as a share of the rate that it needs. 0.2: libwebrtc's
    /// `kDefaultVideoHysteresisFactor`, 1.2 (rtc_base/experiments/rate_control_settings, 2024). Range 0 to 1.
    pub margin: f64,
    /// For so long without a break. 1 s: a target that swings, as GCC's does when it backs off, does so every few hundred
    /// milliseconds to seconds. Ours.
    pub hold: TimeDelta,
    /// Something that goes off again within this time of going on waits twice as long the next time, up to 16 times
    /// [`Self::hold`]. 10 s. Ours.
    pub trial: TimeDelta,
}

impl Default for Hysteresis {
    fn default() -> Self {
        Self { margin: 0.2, hold: TimeDelta::from_secs(1), trial: TimeDelta::from_secs(10) }
    }
}

/// What is known of a stream from the last share-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Its rate; zero while it is off.
    pub rate: DataRate,
    /// Whether it is on.
    pub is_on: bool,
    /// Since when it has fitted with the margin, while it is off.
    fits_since: Option<Timestamp>,
    /// When it went on last, where it was off before.
    on_since: Option<Timestamp>,
    /// Times in a row that it went off again soon.
    relapses: u8,
}

/// Most doublings of the hold.
const MAX_RELAPSES: u8 = 4;

impl Share {
    /// A stream that has not been given anything. One that fits goes on at once if it is `new`, as at the beginning of a call.
    pub const fn new() -> Self {
        Self { rate: DataRate::ZERO, is_on: true, fits_since: None, on_since: None, relapses: 0 }
    }
    /// A stream that was off.
    pub const fn off() -> Self {
        Self { is_on: false, ..Self::new() }
    }
}

/// What a share-out leaves to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Next {
    /// When to share out again although nothing has changed: something that waits for [`Hysteresis::hold`] may go on then.
    pub again: Option<Timestamp>,
    /// The target, at least, with which the next stream or encoding that is off would go on; `None` where all are on. A
    /// controller whose target follows what is sent only gets there if padding is sent meanwhile.
    pub needed: Option<DataRate>,
}

/// Shares `target` out. `shares` holds, for each of `demands`, what the last share-out gave ([`Share::new`] at first), and
/// holds the new shares afterwards. See the top of this module for the rules.
///
pub fn share_out(
    target: DataRate,
    demands: &[Demand],
    hysteresis: &Hysteresis,
    shares: &mut [Share],
    now: Timestamp,
) -> Next {
    let mut round = Round { demands, hysteresis, shares, now, target: target.as_bps(), next: Next::default() };
    round.choose_streams();
    let target = target.as_bps();
    // By stream: what its lowest encoding has. Rates of other encodings follow from it below.
    let mut left = target;
    let mut order = round.order();
    for i in order.clone() {
        let rate = if round.shares[i].is_on { round.least(i).min(left) } else { 0 };
        round.shares[i].rate = DataRate::from_bps(rate);
        left -= rate;
    }
    order.retain(|&i| round.shares[i].is_on);
    for media in [MediaKind::Audio, MediaKind::Video] {
        let of_kind: Vec<usize> = order.iter().copied().filter(|&i| demands[i].media == media).collect();
        left = round.fill(&of_kind, left, |r, i| r.group_most(i));
    }
    // A simulcast may be unable to take all that it has been given: others get the rest.
    let mut spare = left;
    for &i in &order {
        spare += round.choose_encodings(i);
    }
    let takers: Vec<usize> = order.iter().copied().filter(|&i| demands[i].media == MediaKind::Video).collect();
    round.fill(&takers, spare, Round::usable_most);
    for i in takers {
        round.split(i);
    }
    round.next
}

struct Round<'a> {
    demands: &'a [Demand],
    hysteresis: &'a Hysteresis,
    shares: &'a mut [Share],
    now: Timestamp,
    target: u64,
    next: Next,
}

impl Round<'_> {
    /// Encodings of the stream of `i`, its lowest, from the lowest up.
    fn encodings(&self, i: usize) -> impl Iterator<Item = usize> + use<'_> {
        let group = self.demands[i].simulcast;
        (i..self.demands.len()).filter(move |&j| j == i || (group.is_some() && self.demands[j].simulcast == group))
    }
    fn is_lowest(&self, i: usize) -> bool {
        let group = self.demands[i].simulcast;
        group.is_none() || !self.demands[..i].iter().any(|d| d.simulcast == group)
    }
    /// Streams in the order in which they are served, each by its lowest encoding.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.demands.len()).filter(|&i| self.is_lowest(i)).collect();
        let is_video = |i: usize| self.demands[i].media != MediaKind::Audio;
        order.sort_by_key(|&i| (is_video(i), core::cmp::Reverse(self.demands[i].priority)));
        order
    }
    fn least(&self, i: usize) -> u64 {
        self.demands[i].least.as_bps()
    }
    fn most(&self, i: usize) -> u64 {
        self.demands[i].most.as_bps().max(self.least(i))
    }
    fn group_most(&self, i: usize) -> u64 {
        self.encodings(i).fold(0u64, |sum, j| sum.saturating_add(self.most(j)))
    }
    /// The greatest rate of the encodings that are on.
    fn usable_most(&self, i: usize) -> u64 {
        let on = self.encodings(i).filter(|&j| self.shares[j].is_on);
        on.fold(0u64, |sum, j| sum.saturating_add(self.most(j)))
    }

    /// Whether stream or encoding `i` is on, where it needs `needed` of `given`, which is never more than `limit`.
    fn switch(&mut self, i: usize, needed: u64, given: u64, limit: u64) -> bool {
        if self.shares[i].is_on {
            if needed > given {
                self.turn_off(i);
            }
            return self.shares[i].is_on;
        }
        let with_margin = ((needed as f64 * (1.0 + self.hysteresis.margin)) as u64).min(limit);
        if with_margin > given {
            self.shares[i].fits_since = None;
            let needed = DataRate::from_bps(self.target.saturating_add(with_margin - given));
            self.next.needed = Some(self.next.needed.map_or(needed, |n| n.min(needed)));
            return false;
        }
        let since = *self.shares[i].fits_since.get_or_insert(self.now);
        let due = since + self.hysteresis.hold * (1 << self.shares[i].relapses);
        if due <= self.now {
            self.shares[i] = Share { is_on: true, fits_since: None, on_since: Some(self.now), ..self.shares[i] };
            return true;
        }
        self.next.again = Some(self.next.again.map_or(due, |at| at.min(due)));
        // The target has to stay.
        let needed = DataRate::from_bps(self.target);
        self.next.needed = Some(self.next.needed.map_or(needed, |n| n.min(needed)));
        false
    }

    fn turn_off(&mut self, i: usize) {
        let before = self.shares[i];
        let relapses = match before.on_since {
            _ if !before.is_on => before.relapses,
            Some(at) if self.now - at < self.hysteresis.trial => (before.relapses + 1).min(MAX_RELAPSES),
            _ => 0,
        };
        self.shares[i] = Share { relapses, ..Share::off() };
    }

    /// Streams that have their least rate: in the order of service, until one does not fit. The first is always on.
    fn choose_streams(&mut self) {
        let (mut needed, mut all_fit) = (0u64, true);
        for (n, i) in self.order().into_iter().enumerate() {
            needed = needed.saturating_add(self.least(i));
            if n == 0 {
                self.shares[i].is_on = true;
                continue;
            }
            if all_fit {
                all_fit = self.switch(i, needed, self.target, u64::MAX);
            } else {
                self.turn_off(i);
            }
            if !self.shares[i].is_on {
                for j in self.encodings(i).skip(1).collect::<Vec<_>>() {
                    self.turn_off(j);
                }
            }
        }
    }

    /// Raises the rates of these streams by weight, up to what `most` says of each; gives what is left.
    fn fill(&mut self, streams: &[usize], mut left: u64, most: fn(&Self, usize) -> u64) -> u64 {
        let mut open: Vec<usize> = streams.to_vec();
        while left > 0 && !open.is_empty() {
            open.retain(|&i| self.shares[i].rate.as_bps() < most(self, i));
            let weights: u64 = open.iter().map(|&i| self.demands[i].priority.weight()).sum();
            if weights == 0 {
                break;
            }
            // Whoever reaches the most first does so within this round; the others share again.
            let room = |i: usize| most(self, i) - self.shares[i].rate.as_bps();
            let part = |i: usize| {
                (u128::from(left) * u128::from(self.demands[i].priority.weight()) / u128::from(weights)) as u64
            };
            let full = open.iter().copied().filter(|&i| room(i) <= part(i)).min_by_key(|&i| {
                // The level, in bits a second and weight, at which it is full.
                u128::from(room(i)) * 8 / u128::from(self.demands[i].priority.weight())
            });
            match full {
                Some(i) => {
                    let room = room(i);
                    self.shares[i].rate = DataRate::from_bps(self.shares[i].rate.as_bps() + room);
                    left -= room;
                }
                None => {
                    let parts: Vec<u64> = open.iter().map(|&i| part(i)).collect();
                    for (&i, part) in open.iter().zip(parts) {
                        self.shares[i].rate = DataRate::from_bps(self.shares[i].rate.as_bps() + part);
                        left -= part;
                    }
                    // What rounding leaves is less than a bit a second a stream.
                    break;
                }
            }
        }
        left
    }

    /// Which encodings of a stream its rate is enough for; takes from the rate what they cannot use and gives that.
    fn choose_encodings(&mut self, lowest: usize) -> u64 {
        let rate = self.shares[lowest].rate.as_bps();
        let (mut below, mut all_fit) = (0u64, true);
        let encodings: Vec<usize> = self.encodings(lowest).collect();
        for (n, i) in encodings.into_iter().enumerate() {
            if n > 0 {
                if all_fit {
                    all_fit = self.switch(i, below.saturating_add(self.least(i)), rate, self.group_most(lowest));
                } else {
                    self.turn_off(i);
                }
            }
            below = below.saturating_add(self.most(i));
        }
        let used = rate.min(self.usable_most(lowest));
        self.shares[lowest].rate = DataRate::from_bps(used);
        rate - used
    }

    /// Splits a stream's rate over its encodings that are on: the lower ones have their most, the highest the rest.
    fn split(&mut self, lowest: usize) {
        let mut left = self.shares[lowest].rate.as_bps();
        let encodings: Vec<usize> = self.encodings(lowest).collect();
        for i in encodings {
            let rate = if self.shares[i].is_on { left.min(self.most(i)) } else { 0 };
            self.shares[i].rate = DataRate::from_bps(rate);
            left -= rate;
        }
    }
}

#[cfg(test)]
#[path = "allocation/tests.rs"]
mod tests;
