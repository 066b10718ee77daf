//! What the rate follows at present, as the internal `mode` has it.

/// Why the rate is what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Doing {
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
}

impl Doing {
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
        }
    }
}
