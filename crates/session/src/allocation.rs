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
//! The sum never exceeds the target, and does not fall when the target rises.
//!
//! Streams and encodings go on and off by what the target sustains. One that was off is switched on once it has fitted a target
//! lower by [`Hysteresis::margin`] for [`Hysteresis::hold`], times at which it did not fit counting three times: it then fits
//! the lower quartile of the target. One that is on stays on while the target falls short of it by no more than its own least rate
//! in [`Hysteresis::carry`]: each switch costs a key frame and is seen, and the target of many controllers dips by design. In a dip it
//! has what is left. With [`Hysteresis::first_video_soon`] the first stream of video waits for less.
//!
//! While a stream is off, padding is sent now and then up to the rate that it needs, since most controllers do not raise their target
//! far above the rate sent (`sender::padding`). A call of one stream without bounds has no cost from all this.

mod trials;

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
    /// Time for which it must have fitted; three times the time for which it did not is taken off. 2 s, chosen here: a target that
    /// has risen too far has fallen again by then.
    pub hold: TimeDelta,
    /// The lack that switches one off that is on: as much as its least rate sends in this time. Surpluses make up for it.
    /// 0.5 s, chosen here: with its queue that long, frames still arrive within the playout delay of a call that has any to spare.
    pub carry: TimeDelta,
    /// If it goes off again within this time of being switched on, the next hold is four times as long, up to 64 times
    /// [`Self::hold`]; within twice this time, as long again. 30 s, chosen here: it then is switched less than twice a minute.
    pub trial: TimeDelta,
    /// Whether the first stream of video needs the margin of its own rate alone, and has its hold doubled once at most: where one
    /// picture that comes and goes is better than none, as for a member of a room. Not by default: a target that swings
    /// would switch a call's only video with each swing.
    pub first_video_soon: bool,
}

impl Default for Hysteresis {
    fn default() -> Self {
        Self {
            margin: 0.2,
            hold: TimeDelta::from_secs(2),
            carry: TimeDelta::from_millis(500),
            trial: TimeDelta::from_secs(30),
            first_video_soon: false,
        }
    }
}

/// The state of a stream after the last allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Its rate; zero while it is off.
    pub rate: DataRate,
    /// Whether it is on.
    pub is_on: bool,
    /// While off: the time for which it has fitted. While on: the time in which its least rate sends what it has lacked.
    balance: TimeDelta,
    /// Growth of the balance per time since [`Self::at`], in thousandths.
    slope: i64,
    /// When the balance was last computed.
    at: Timestamp,
    /// When it was last switched on after having been off.
    on_since: Option<Timestamp>,
    /// Consecutive times that it went off again soon.
    relapses: u8,
    /// Of the last of these times: when it had been switched on, and when it went off.
    failed: Option<(Timestamp, Timestamp)>,
}

/// A slope of one.
const ONE: i64 = 1_000;
/// Growth of the balance of one that is off and does not fit: it goes on if it fits for more than three quarters of the time.
const MISFIT: i64 = -3 * ONE;

/// Most times that it doubles, for the first stream of video where it is wanted soon. Chosen here: a picture that fits is there within 2 s.
const MAX_RELAPSES_OF_FIRST: u8 = 1;

impl Share {
    /// A new stream. If it fits, it is switched on at once, as at the beginning of a call; if not, it goes off at once.
    pub const fn new() -> Self {
        Self {
            rate: DataRate::ZERO,
            is_on: true,
            balance: TimeDelta::from_nanos(i64::MAX),
            slope: 0,
            at: Timestamp::ZERO,
            on_since: None,
            relapses: 0,
            failed: None,
        }
    }
    /// A stream that was off.
    pub const fn off() -> Self {
        Self { is_on: false, balance: TimeDelta::ZERO, ..Self::new() }
    }
    /// Whether it is off, fits, and waits for [`Hysteresis::hold`].
    pub const fn is_waiting(&self) -> bool {
        !self.is_on && self.slope > 0
    }
    /// Whether it is on with less than its least rate.
    pub(crate) const fn is_short(&self) -> bool {
        self.is_on && self.slope > 0
    }
    /// The balance at this time, no less than zero and no more than `most`.
    fn balance(&self, most: TimeDelta, now: Timestamp) -> TimeDelta {
        let grown = i128::from(now.saturating_since(self.at).as_nanos()) * i128::from(self.slope) / i128::from(ONE);
        let sum = (i128::from(self.balance.as_nanos()) + grown).clamp(0, i128::from(most.as_nanos()));
        TimeDelta::from_nanos(sum as i64)
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

    /// Whether stream or encoding `i` is on, if it needs `needed` of `given`; `given` never exceeds `limit`. While it may not go on,
    /// since one before it is off, its hold runs: all that fit then go on together.
    fn switch(&mut self, i: usize, needed: u64, given: u64, limit: u64, is_first_video: bool, may: bool) -> bool {
        if self.shares[i].is_on && may {
            return self.stays_on(i, needed, given);
        }
        if self.shares[i].is_on {
            self.turn_off(i);
            return false;
        }
        let relapses = self.shares[i].relapses;
        let (of, doublings) = match is_first_video && self.hysteresis.first_video_soon {
            true => (self.least(i), relapses.min(MAX_RELAPSES_OF_FIRST)),
            false => (needed, 2 * relapses),
        };
        let margin = (of as f64 * self.hysteresis.margin) as u64;
        let with_margin = needed.saturating_add(margin).min(limit);
        let hold = self.hysteresis.hold * (1 << doublings);
        let balance = self.shares[i].balance(hold, self.now);
        let fits = with_margin <= given;
        if fits && balance >= hold && may {
            let (at, balance) = (self.now, TimeDelta::ZERO);
            self.shares[i] = Share { is_on: true, on_since: Some(at), balance, slope: 0, at, ..self.shares[i] };
            return true;
        }
        let slope = if fits { ONE } else { MISFIT };
        self.shares[i] = Share { balance, slope, at: self.now, ..self.shares[i] };
        if fits && balance < hold {
            self.allocate_again(self.now + (hold - balance));
        }
        // A target that fits must stay for the hold.
        let short = with_margin.saturating_sub(given);
        let needed = DataRate::from_bps(self.target.saturating_add(short));
        self.next.needed = Some(self.next.needed.map_or(needed, |n| n.min(needed)));
        false
    }

    /// Whether stream or encoding `i`, which is on, stays so.
    fn stays_on(&mut self, i: usize, needed: u64, given: u64) -> bool {
        let (least, carry) = (self.least(i), self.hysteresis.carry);
        let balance = self.shares[i].balance(carry, self.now);
        // The rate that is left for it beside those before it.
        let own = given.saturating_add(least).saturating_sub(needed);
        let lacks = i128::from(least) - i128::from(own);
        let is_short = needed > given;
        // Without a least rate it is short where those before it leave nothing.
        let all = i128::from(if is_short { ONE } else { -ONE });
        let slope = (lacks * i128::from(ONE)).checked_div(i128::from(least)).unwrap_or(all);
        let slope = slope.clamp(i128::from(-ONE), i128::from(ONE)) as i64;
        if is_short && balance >= carry {
            self.turn_off(i);
            return false;
        }
        self.shares[i] = Share { balance, slope, at: self.now, ..self.shares[i] };
        if slope > 0 {
            let left = (carry - balance).as_nanos();
            // Rounded up, so that the balance is full by then.
            self.allocate_again(self.now + TimeDelta::from_nanos(left.saturating_mul(ONE) / slope + 1));
        }
        true
    }

    fn allocate_again(&mut self, at: Timestamp) {
        self.next.again = Some(self.next.again.map_or(at, |next| next.min(at)));
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
            all_fit = self.switch(i, needed, self.target, u64::MAX, is_first_video, all_fit);
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
                    all_fit =
                        self.switch(i, below.saturating_add(self.least(i)), rate, self.group_most(lowest), false, true);
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
