//! Fifth stage: the mode, that is the reason for which the rate is what it is.

mod competition;
mod drains;

use super::Config;
use super::path::{View, overfull};
use super::quantity::{Rate, Span};
use super::queue::{Queue, packet_time};
pub(super) use competition::{Competition, Pressure};
pub(super) use drains::{Begun, Drains, Moment};

/// Share of busy time from which the link counts as saturated.
pub(super) const SATURATED: f64 = 0.6;
/// Queue below which it is empty.
const EMPTY: Span = Span::secs(0.002);
/// Share of the queue wanted from which a saturated link is held.
const HELD: f64 = 0.5;

/// Reason for the rate, as the internal `mode` has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Mode {
    /// It doubles, and no queue has been seen yet.
    #[default]
    Start,
    /// There is room: it grows.
    Grow,
    /// The link is busy: service rate, corrected by the queue.
    Hold,
    /// The queue is emptied.
    Drain,
    /// Competitive mode.
    Compete,
    /// Feedback is missing.
    Unreported,
    /// The source does not use the rate.
    Unused,
    /// The rate is lowered to see whether losses answer.
    Trial,
    /// Losses have answered: what arrives.
    Own,
}

impl Mode {
    /// The internal's value.
    pub(super) fn number(self) -> f64 {
        match self {
            Self::Start => 0.0,
            Self::Grow => 1.0,
            Self::Hold => 2.0,
            Self::Drain => 3.0,
            Self::Compete => 4.0,
            Self::Unreported => 5.0,
            Self::Unused => 6.0,
            Self::Trial => 7.0,
            Self::Own => 8.0,
        }
    }
}

/// Next step of the rate: this stage's result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// The rate of competitive mode.
    Compete(Rate),
    /// A drain begins.
    BeginDrain(Begun),
    /// A drain goes on.
    Drain,
    /// The link is busy.
    Hold,
    /// The link has room.
    Grow,
}

/// State of the mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModeState {
    /// Reason for the rate at present.
    pub(super) mode: Mode,
    /// Whether no queue has been seen yet.
    pub(super) is_starting: bool,
    pub(super) competition: Competition,
    pub(super) drains: Drains,
}

impl Default for ModeState {
    fn default() -> Self {
        Self { mode: Mode::Start, is_starting: true, competition: Competition::default(), drains: Drains::default() }
    }
}

impl ModeState {
    /// The next step in competitive mode; `None` if it is off.
    pub(super) fn compete(&mut self, view: &View, queue: Queue, p: &Pressure, c: &Config) -> Option<Step> {
        if self.is_starting && view.busy >= SATURATED && view.standing.delay > queue.wanted {
            self.is_starting = false;
            self.drains.after_start(p.now, &c.drain);
        }
        if view.standing.delay < EMPTY {
            self.drains.put_off(p.now);
        }
        let rate = self.competition.update(p, &c.compete)?;
        self.drains.put_off(p.now);
        self.drains.cut_short();
        Some(Step::Compete(rate))
    }

    /// The next step outside competitive mode, at a message. `share` is this flow's rate of service; `is_uneven`: delay and
    /// service are uneven, and no drain has shown yet what remains.
    pub(super) fn step(
        &mut self,
        (view, queue, share): (&View, Queue, Rate),
        is_uneven: bool,
        moment: &Moment,
        c: &Config,
    ) -> Step {
        let now = moment.now;
        self.drains.observe(moment);
        if self.drains.is_on(now) {
            return Step::Drain;
        }
        let is_due = self.drains.is_due(is_uneven, now, &c.drain) || self.drains.joins(&c.drain);
        if !self.is_starting && is_due {
            return Step::BeginDrain(self.drains.begin(queue, share, moment, &c.drain));
        }
        let standing = view.standing.delay;
        let is_held = if view.l4s.is_some() {
            // Marks hold a shorter queue.
            standing > overfull(packet_time(view, share))
        } else {
            standing > queue.wanted || (view.busy >= SATURATED && standing > HELD * queue.wanted)
        };
        if is_held { Step::Hold } else { Step::Grow }
    }
}
