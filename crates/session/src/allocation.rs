//! Allocation of a path's target rate to the streams that it carries.
//!
//! [`share_out`] is a pure function of the target, the streams' demands, and which encodings were on before. It
//! allocates, in this order:
//!
//! 1. the least rate of each stream: audio first, then by priority (RFC 8836, section 2, item 8). If the target is too
//!    low for all, the last streams in that order get nothing;
//! 2. the rest to audio by weight, up to its greatest rate;
//! 3. the rest to video by weight, up to its greatest rate: each priority has twice the weight of the one below
//!    (RFC 8835, section 4).
//!
//! The encodings of a simulcast count as one stream: its rate goes to the lowest encoding up to its greatest rate, then
//! to the next (RFC 8853 leaves the choice to the sender). What they cannot use goes to the other streams.
//!
//! The sum never exceeds the target, and does not fall when the target rises. A stream or encoding that was off is
//! switched on once it would fit a target lower by [`Hysteresis::margin`] for [`Hysteresis::hold`]; one that is on
//! stays on while it fits. With [`Hysteresis::first_video_soon`] the first stream of video waits for less.
//!
//! The target is allocated by a pure function (`session::allocation`): minimum rates in order, then audio, then video
//! by weight; encodings of a simulcast follow their stream's rate. While a stream is disabled, padding is sent up to
//! the rate that it needs, since most controllers do not raise their target far above the rate sent. A call of one
//! stream without bounds has no cost from it.

pub use weir_media::MediaKind;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// A stream's weight relative to others (RFC 8835, section 4; RFC 8837, section 5). Each has twice the weight of the
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
    /// The weight, 1 to 8.
    pub const fn weight(self) -> u64 {
        1 << self as u64
    }
}

/// The demand of one stream, or of one encoding of a simulcast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Least useful rate.
    pub least: DataRate,
    /// Greatest useful rate.
    pub most: DataRate,
    /// Weight relative to other streams. Encodings of a simulcast use that of the lowest.
    pub priority: Priority,
    /// The kind of media; audio takes precedence.
    pub media: MediaKind,
    /// The simulcast to which this encoding belongs. Encodings of one simulcast are listed from the lowest up, not
    /// necessarily adjacent.
    pub simulcast: Option<u8>,
}

impl Default for Demand {
    /// An unbounded demand.
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

/// When a stream or an encoding that was off is switched on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hysteresis {
    /// Spare rate required, as a share of all that is needed with it. 0.2: libwebrtc's `kDefaultVideoHysteresisFactor`, 1.2
    /// (rtc_base/experiments/rate_control_settings, 2024). Range 0 to 1.
    pub margin: f64,
    /// Time for which it must fit without interruption. 1 s, chosen here: a target that swings, as GCC's does on
    /// back-off, does so every few hundred milliseconds to seconds.
    pub hold: TimeDelta,
    /// If it goes off again within this time of being switched on, the next hold is twice as long, up to 16 times
    /// [`Self::hold`]. 10 s, chosen here.
    pub trial: TimeDelta,
    /// Whether the first stream of video needs the margin of its own rate alone, and has its hold doubled once at most: where one
    /// picture that comes and goes is better than none, as for a member of a room. Not by default: a target that swings
    /// would switch a call's only video with each swing.
    pub first_video_soon: bool,
}

impl Default for Hysteresis {
    fn default() -> Self {
        Self { margin: 0.2, hold: TimeDelta::from_secs(1), trial: TimeDelta::from_secs(10), first_video_soon: false }
    }
}

/// The state of a stream after the last allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Its rate; zero while it is off.
    pub rate: DataRate,
    /// Whether it is on.
    pub is_on: bool,
    /// While off: since when it has fitted with the margin.
    fits_since: Option<Timestamp>,
    /// When it was last switched on after having been off.
    on_since: Option<Timestamp>,
    /// Consecutive times that it went off again soon.
    relapses: u8,
}

/// Most doublings of the hold.
const MAX_RELAPSES: u8 = 4;
/// The same, for the first stream of video where it is wanted soon. Chosen here: a picture that fits is there within 2 s.
const MAX_RELAPSES_OF_FIRST: u8 = 1;

impl Share {
    /// A new stream. If it fits, it is switched on at once, as at the beginning of a call.
    pub const fn new() -> Self {
        Self { rate: DataRate::ZERO, is_on: true, fits_since: None, on_since: None, relapses: 0 }
    }
    /// A stream that was off.
    pub const fn off() -> Self {
        Self { is_on: false, ..Self::new() }
    }
    /// Whether it is off, fits, and waits for [`Hysteresis::hold`].
    pub const fn is_waiting(&self) -> bool {
        self.fits_since.is_some()
    }
}

/// Result of an allocation beside the shares: when to allocate again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Next {
    /// When to allocate again without any change: something that waits for [`Hysteresis::hold`] may then be switched
    /// on.
    pub again: Option<Timestamp>,
    /// The least target at which the next stream or encoding that is off would be switched on; `None` if all are on. A
    /// controller whose target follows the sending rate reaches it only if padding is sent meanwhile.
    pub needed: Option<DataRate>,
}

/// Allocates `target`. For each of `demands`, `shares` holds the previous allocation (initially [`Share::new`]) and
/// receives the new one. The module documentation has the rules.
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
    // By stream: the share of its lowest encoding. The other encodings' rates are derived from it below.
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
    // A simulcast may be unable to use all of its rate; the rest goes to others.
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
    /// Encodings of the stream whose lowest encoding is `i`, from the lowest up.
    fn encodings(&self, i: usize) -> impl Iterator<Item = usize> + use<'_> {
        let group = self.demands[i].simulcast;
        (i..self.demands.len()).filter(move |&j| j == i || (group.is_some() && self.demands[j].simulcast == group))
    }
    fn is_lowest(&self, i: usize) -> bool {
        let group = self.demands[i].simulcast;
        group.is_none() || !self.demands[..i].iter().any(|d| d.simulcast == group)
    }
    /// Streams in order of precedence, each by its lowest encoding.
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
    /// The greatest total rate of the encodings that are on.
    fn usable_most(&self, i: usize) -> u64 {
        let on = self.encodings(i).filter(|&j| self.shares[j].is_on);
        on.fold(0u64, |sum, j| sum.saturating_add(self.most(j)))
    }

    /// Whether stream or encoding `i` is on, if it needs `needed` of `given`; `given` never exceeds `limit`.
    fn switch(&mut self, i: usize, needed: u64, given: u64, limit: u64, is_first_video: bool) -> bool {
        if self.shares[i].is_on {
            if needed > given {
                self.turn_off(i);
            }
            return self.shares[i].is_on;
        }
        let (of, relapses) = match is_first_video && self.hysteresis.first_video_soon {
            true => (self.least(i), self.shares[i].relapses.min(MAX_RELAPSES_OF_FIRST)),
            false => (needed, self.shares[i].relapses),
        };
        let margin = (of as f64 * self.hysteresis.margin) as u64;
        let with_margin = needed.saturating_add(margin).min(limit);
        if with_margin > given {
            self.shares[i].fits_since = None;
            let needed = DataRate::from_bps(self.target.saturating_add(with_margin - given));
            self.next.needed = Some(self.next.needed.map_or(needed, |n| n.min(needed)));
            return false;
        }
        let since = *self.shares[i].fits_since.get_or_insert(self.now);
        let due = since + self.hysteresis.hold * (1 << relapses);
        if due <= self.now {
            self.shares[i] = Share { is_on: true, fits_since: None, on_since: Some(self.now), ..self.shares[i] };
            return true;
        }
        self.next.again = Some(self.next.again.map_or(due, |at| at.min(due)));
        // The target must stay for the hold.
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

    /// Selects the streams that get their least rate, in order of precedence until one does not fit. The first is
    /// always on.
    fn choose_streams(&mut self) {
        let (mut needed, mut all_fit, mut has_video) = (0u64, true, false);
        for (n, i) in self.order().into_iter().enumerate() {
            needed = needed.saturating_add(self.least(i));
            let is_first_video = self.demands[i].media == MediaKind::Video && !has_video;
            has_video |= is_first_video;
            if n == 0 {
                self.shares[i].is_on = true;
                continue;
            }
            if all_fit {
                all_fit = self.switch(i, needed, self.target, u64::MAX, is_first_video);
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

    /// Raises the rates of these streams by weight, up to `most` of each; returns the remainder.
    fn fill(&mut self, streams: &[usize], mut left: u64, most: fn(&Self, usize) -> u64) -> u64 {
        let mut open: Vec<usize> = streams.to_vec();
        while left > 0 && !open.is_empty() {
            open.retain(|&i| self.shares[i].rate.as_bps() < most(self, i));
            let weights: u64 = open.iter().map(|&i| self.demands[i].priority.weight()).sum();
            if weights == 0 {
                break;
            }
            // Streams that reach their greatest rate first do so in this round; the others continue.
            let room = |i: usize| most(self, i) - self.shares[i].rate.as_bps();
            let part = |i: usize| {
                (u128::from(left) * u128::from(self.demands[i].priority.weight()) / u128::from(weights)) as u64
            };
            let full = open.iter().copied().filter(|&i| room(i) <= part(i)).min_by_key(|&i| {
                // The level, in bit/s per weight, at which the stream reaches its greatest rate.
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
                    // Rounding leaves less than 1 bit/s per stream.
                    break;
                }
            }
        }
        left
    }

    /// Selects the encodings for which the stream's rate suffices; returns the rate that they cannot use.
    fn choose_encodings(&mut self, lowest: usize) -> u64 {
        let rate = self.shares[lowest].rate.as_bps();
        let (mut below, mut all_fit) = (0u64, true);
        let encodings: Vec<usize> = self.encodings(lowest).collect();
        for (n, i) in encodings.into_iter().enumerate() {
            if n > 0 {
                if all_fit {
                    all_fit = self.switch(i, below.saturating_add(self.least(i)), rate, self.group_most(lowest), false);
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

    /// Splits a stream's rate over its encodings that are on: the lower ones get their greatest rate, the highest the
    /// rest.
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
