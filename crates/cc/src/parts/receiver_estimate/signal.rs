//! The signals of over-use detectors and the states of the rate control behind them (draft-ietf-rmcat-gcc-02, sections 5.4
//! and 5.5; draft-alvestrand-rtcweb-congestion-03, sections 3.4 and 3.5).

/// The path's state by an over-use detector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OveruseSignal {
    Underuse,
    Normal,
    Overuse,
}

impl OveruseSignal {
    /// For plots: under-use -1, normal 0, over-use 1.
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Underuse => -1.0,
            Self::Normal => 0.0,
            Self::Overuse => 1.0,
        }
    }
}

/// The state of the rate control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RateState {
    Hold,
    Increase,
    Decrease,
}

impl RateState {
    /// For plots: hold 0, increase 1, decrease 2.
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Hold => 0.0,
            Self::Increase => 1.0,
            Self::Decrease => 2.0,
        }
    }
}
