//! Reasons for a rate.

use serde::Serialize;

/// Why a rate moved, or stayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The start: it grows until something answers.
    Start,
    /// There is room.
    Room,
    /// A queue, beyond or below the one wanted.
    Queue,
    /// The delay rose.
    Delay,
    /// Packets were lost.
    Loss,
    /// Packets were marked.
    Marks,
    /// The queue is emptied on purpose.
    Drain,
    /// Another flow keeps the queue full.
    Competition,
    /// Feedback is missing.
    Silence,
    /// The source does not use the rate.
    Source,
    /// The greatest rate allowed.
    Ceiling,
    /// The least rate allowed.
    Floor,
    /// Nothing that is measured shows why.
    Unknown,
}

impl Reason {
    /// All of them, in the order of their colours in plots.
    pub const ALL: [Self; 13] = [
        Self::Start,
        Self::Room,
        Self::Queue,
        Self::Delay,
        Self::Loss,
        Self::Marks,
        Self::Drain,
        Self::Competition,
        Self::Silence,
        Self::Source,
        Self::Ceiling,
        Self::Floor,
        Self::Unknown,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Room => "room",
            Self::Queue => "queue",
            Self::Delay => "delay",
            Self::Loss => "loss",
            Self::Marks => "marks",
            Self::Drain => "drain",
            Self::Competition => "competition",
            Self::Silence => "silence",
            Self::Source => "source",
            Self::Ceiling => "ceiling",
            Self::Floor => "floor",
            Self::Unknown => "unknown",
        }
    }
}
