//! Causes that are put into calls, and how much of them.

use crate::draw::Draw;
use serde::Serialize;

/// Magnitudes of each cause: little, much, and very much.
pub const MAGNITUDES: usize = 3;

/// A cause that is put into a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "PutCause"))]
pub enum Kind {
    /// None.
    Healthy,
    /// Less capacity from some time on.
    CapacityFell,
    /// Capacity that changes all the time.
    CapacityVaries,
    /// Less capacity behind a queue of seconds.
    DeepQueue,
    /// Downloads under CUBIC beside the call.
    Tcp,
    /// A constant stream beside the call.
    Udp,
    /// Losses by chance.
    RandomLoss,
    /// Losses in a row.
    BurstLoss,
    /// A longer way.
    DelayStep,
    /// Delay by chance.
    Jitter,
    /// A link that stands still now and then.
    Stalls,
    /// Nothing arrives for seconds.
    Outage,
    /// A token bucket that drops, from the start.
    Policer,
    /// No feedback for seconds.
    FeedbackLost,
    /// A longer way of feedback.
    FeedbackLate,
    /// The application sends less.
    SenderLimited,
    /// The source is off for seconds.
    SourcePaused,
    /// The other end asks for less, by REMB.
    OtherEndAsked,
    /// The other end asks for pictures without end.
    KeyFrameRequests,
    /// Another candidate pair, on a longer and slower path.
    RouteChange,
    /// Clocks of different speeds, from the start.
    ClockDrift,
}

impl Kind {
    /// All, in the order of tables.
    pub const ALL: [Self; 21] = [
        Self::Healthy,
        Self::CapacityFell,
        Self::CapacityVaries,
        Self::DeepQueue,
        Self::Tcp,
        Self::Udp,
        Self::RandomLoss,
        Self::BurstLoss,
        Self::DelayStep,
        Self::Jitter,
        Self::Stalls,
        Self::Outage,
        Self::Policer,
        Self::FeedbackLost,
        Self::FeedbackLate,
        Self::SenderLimited,
        Self::SourcePaused,
        Self::OtherEndAsked,
        Self::KeyFrameRequests,
        Self::RouteChange,
        Self::ClockDrift,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::CapacityFell => "capacity fell",
            Self::CapacityVaries => "capacity varies",
            Self::DeepQueue => "deep queue",
            Self::Tcp => "TCP beside",
            Self::Udp => "UDP beside",
            Self::RandomLoss => "random loss",
            Self::BurstLoss => "burst loss",
            Self::DelayStep => "delay step",
            Self::Jitter => "jitter",
            Self::Stalls => "stalls",
            Self::Outage => "outage",
            Self::Policer => "policer",
            Self::FeedbackLost => "feedback lost",
            Self::FeedbackLate => "feedback late",
            Self::SenderLimited => "sender limited",
            Self::SourcePaused => "source paused",
            Self::OtherEndAsked => "other end asked",
            Self::KeyFrameRequests => "key-frame requests",
            Self::RouteChange => "route change",
            Self::ClockDrift => "clock drift",
        }
    }

    /// Answers that are right.
    pub fn answers(self) -> &'static [&'static str] {
        match self {
            Self::Healthy => &[],
            Self::CapacityFell => &["capacity-fell"],
            Self::CapacityVaries => &["capacity-varies", "capacity-fell"],
            Self::DeepQueue => &["deep-queue", "capacity-fell"],
            Self::Tcp | Self::Udp => &["cross-traffic"],
            Self::RandomLoss => &["random-loss"],
            Self::BurstLoss => &["burst-loss"],
            Self::DelayStep => &["delay-step", "route-change"],
            Self::Jitter => &["jitter"],
            Self::Stalls => &["stalls", "jitter"],
            Self::Outage => &["outage"],
            Self::Policer => &["policer"],
            Self::FeedbackLost => &["feedback-lost"],
            Self::FeedbackLate => &["feedback-late"],
            Self::SenderLimited => &["sender-limited"],
            Self::SourcePaused => &["source-paused"],
            Self::OtherEndAsked => &["other-end-asked"],
            Self::KeyFrameRequests => &["keyframe-requests"],
            Self::RouteChange => &["route-change"],
            Self::ClockDrift => &["clock-drift"],
        }
    }

    /// Whether the cause is there from the start of the call.
    pub fn from_start(self) -> bool {
        matches!(self, Self::Policer | Self::ClockDrift)
    }

    /// Ranges of its magnitudes, of which one is drawn, uniform in its logarithm. Rates are shares of what the call sends before, times
    /// are in s, and losses are shares.
    pub(super) fn range(self, magnitude: usize) -> (f64, f64) {
        let of = match self {
            // Ceiling of the call as a share of its link.
            Self::Healthy => [(0.3, 0.45), (0.45, 0.65), (0.65, 0.85)],
            Self::CapacityFell | Self::RouteChange => [(0.5, 0.75), (0.25, 0.5), (0.1, 0.25)],
            Self::DeepQueue => [(0.4, 0.6), (0.25, 0.4), (0.15, 0.25)],
            Self::CapacityVaries => [(0.5, 0.7), (0.3, 0.5), (0.15, 0.3)],
            // Downloads, rounded; what is left of the call's rate.
            Self::Tcp => [(1.0, 1.4), (1.6, 2.4), (2.6, 5.4)],
            Self::Udp => [(0.5, 0.75), (0.25, 0.5), (0.1, 0.25)],
            Self::RandomLoss => [(0.03, 0.07), (0.08, 0.15), (0.16, 0.3)],
            Self::BurstLoss => [(0.04, 0.07), (0.07, 0.12), (0.12, 0.2)],
            Self::DelayStep => [(0.04, 0.08), (0.08, 0.2), (0.2, 0.45)],
            Self::Jitter => [(0.02, 0.04), (0.04, 0.07), (0.07, 0.12)],
            Self::Stalls => [(0.12, 0.2), (0.2, 0.35), (0.35, 0.6)],
            Self::Outage => [(1.0, 2.0), (2.0, 4.0), (4.0, 7.0)],
            Self::Policer => [(0.5, 0.75), (0.3, 0.5), (0.15, 0.3)],
            Self::FeedbackLost => [(1.5, 2.5), (2.5, 4.5), (4.5, 8.0)],
            Self::FeedbackLate => [(0.1, 0.2), (0.2, 0.4), (0.4, 0.8)],
            Self::SenderLimited | Self::OtherEndAsked | Self::KeyFrameRequests => {
                [(0.45, 0.65), (0.25, 0.45), (0.12, 0.25)]
            }
            Self::SourcePaused => [(2.0, 4.0), (4.0, 7.0), (7.0, 12.0)],
            // Parts per million.
            Self::ClockDrift => [(1_200.0, 2_500.0), (2_500.0, 5_000.0), (5_000.0, 9_900.0)],
        };
        of[magnitude.min(MAGNITUDES - 1)]
    }

    /// A magnitude, drawn.
    pub(super) fn draw(self, magnitude: usize, draw: &mut Draw) -> f64 {
        draw.log(self.range(magnitude))
    }
}
