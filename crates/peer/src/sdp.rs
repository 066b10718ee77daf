//! Offers of browsers and the answers to them (JSEP, RFC 9429): one bundled transport, of which a video section is taken, and
//! for a room the sections of its other members. Other sections are rejected in the answer.

mod answer;
mod audio;
mod call;
mod choice;
mod flexfec;
mod fragment;
mod lines;
mod offer;
mod room;
mod ulpfec;

pub use answer::{Answer, further_ssrc, write};
pub use call::negotiate;
pub use choice::{Codecs, Wanted};
pub use flexfec::FlexFec;
pub use fragment::{fragment_name, write_fragment};
pub use offer::{MAX_ENCODINGS, MAX_OFFER, Negotiated, Section};
pub(crate) use offer::{MID, REPAIRED_RID, RID, TRANSPORT_CC};
pub use room::negotiate_room;
pub use ulpfec::UlpFec;

/// Why an offer is refused. Its text is for who made the offer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {found}; expected {expected}")]
pub struct OfferError {
    /// Line or section.
    pub place: String,
    /// The text found, cut short.
    pub found: String,
    /// The accepted forms.
    pub expected: String,
}

impl OfferError {
    fn new(place: impl Into<String>, found: impl AsRef<str>, expected: &str) -> Self {
        let found = found.as_ref().chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect();
        Self { place: place.into(), found, expected: expected.to_owned() }
    }
}

/// Whether this end sends, receives, or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Direction {
    /// It sends.
    pub sends: bool,
    /// It receives.
    pub receives: bool,
}

impl Direction {
    /// Its attribute.
    pub const fn name(self) -> &'static str {
        match (self.sends, self.receives) {
            (true, true) => "sendrecv",
            (true, false) => "sendonly",
            (false, true) => "recvonly",
            (false, false) => "inactive",
        }
    }
    const fn reversed(self) -> Self {
        Self { sends: self.receives, receives: self.sends }
    }
}

#[cfg(test)]
mod tests;
