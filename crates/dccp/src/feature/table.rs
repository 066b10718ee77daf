//! Properties of each feature (RFC 4340, table 4; RFC 4342, section 8.4).

use crate::option::FeatureNumber;

/// The end at which a feature is located.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Location {
    /// This one.
    Local,
    /// The other one.
    Remote,
}

/// Number of known features.
pub(super) const FEATURES: usize = 10;
/// Each exists at both ends.
pub(super) const SLOTS: usize = 2 * FEATURES;

/// How the two ends agree on a value (RFC 4340, section 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// The first of the server's list that is on the client's; values of one byte.
    ServerPriority,
    /// The feature's own end decides, within these bounds and in this many bytes.
    NonNegotiable { bytes: usize, least: u64, most: u64 },
}

/// A feature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Feature {
    pub(super) number: FeatureNumber,
    pub(super) rule: Rule,
    pub(super) initial: u64,
    /// Whether every DCCP has to know it.
    pub(super) required: bool,
}

const fn server_priority(number: FeatureNumber, initial: u64, required: bool) -> Feature {
    Feature { number, rule: Rule::ServerPriority, initial, required }
}

/// All known features, the CCID first: others may depend on it.
///
/// Ack Ratio may be zero by RFC 4340, section 11.3 (the half-connection does not use it); by section 6.6.8 it never is.
/// The former is followed: accepting it loses nothing.
const TABLE: [Feature; FEATURES] = [
    server_priority(FeatureNumber::CCID, 2, true),
    server_priority(FeatureNumber::ALLOW_SHORT_SEQUENCE_NUMBERS, 0, true),
    Feature {
        number: FeatureNumber::SEQUENCE_WINDOW,
        rule: Rule::NonNegotiable { bytes: 6, least: 32, most: (1 << 46) - 1 },
        initial: 100,
        required: true,
    },
    server_priority(FeatureNumber::ECN_INCAPABLE, 0, false),
    Feature {
        number: FeatureNumber::ACK_RATIO,
        rule: Rule::NonNegotiable { bytes: 2, least: 0, most: 0xffff },
        initial: 2,
        required: false,
    },
    server_priority(FeatureNumber::SEND_ACK_VECTOR, 0, false),
    server_priority(FeatureNumber::SEND_NDP_COUNT, 0, false),
    server_priority(FeatureNumber::MINIMUM_CHECKSUM_COVERAGE, 0, false),
    server_priority(FeatureNumber::CHECK_DATA_CHECKSUM, 0, false),
    server_priority(FeatureNumber::SEND_LOSS_EVENT_RATE, 0, false),
];

/// A feature at one of the ends: its index in the tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Slot(usize);

impl Slot {
    /// The index; `None` if the feature is unknown.
    pub(super) fn new(location: Location, number: FeatureNumber) -> Option<Self> {
        let i = match number.0 {
            n @ 1..=9 => usize::from(n) - 1,
            192 => FEATURES - 1,
            _ => return None,
        };
        Some(Self(if location == Location::Local { i } else { FEATURES + i }))
    }
    pub(super) const fn index(self) -> usize {
        self.0
    }
    pub(super) const fn location(self) -> Location {
        if self.0 < FEATURES { Location::Local } else { Location::Remote }
    }
    pub(super) const fn feature(self) -> &'static Feature {
        &TABLE[self.0 % FEATURES]
    }
    pub(super) fn number(self) -> FeatureNumber {
        self.feature().number
    }
    /// All, in the order in which they are written.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        // Both CCIDs precede the features that depend on them.
        (0..SLOTS).map(|i| Self(i / 2 + (i % 2) * FEATURES))
    }
}

impl Rule {
    /// The value in these bytes, of a feature of this rule; `None` if they are invalid.
    pub(super) fn value(self, bytes: &[u8]) -> Option<u64> {
        match (self, bytes) {
            (Self::ServerPriority, &[value, ..]) => Some(u64::from(value)),
            (Self::NonNegotiable { bytes: width, least, most }, _) if bytes.len() == width => {
                let value = bytes.iter().fold(0, |n, &b| n << 8 | u64::from(b));
                (least..=most).contains(&value).then_some(value)
            }
            _ => None,
        }
    }
}

/// The value area of a Change: a list of one-byte values in order of preference, or the bytes of one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Values {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl Values {
    /// Maximum values of a list: those of Minimum Checksum Coverage.
    pub(super) const MAX: usize = 16;

    /// A list; values beyond [`Self::MAX`] or that do not fit a byte are omitted.
    pub(super) fn list(values: impl IntoIterator<Item = u64>) -> Self {
        let mut list = Self::default();
        for value in values.into_iter().filter_map(|v| u8::try_from(v).ok()).take(Self::MAX) {
            list.bytes[usize::from(list.len)] = value;
            list.len += 1;
        }
        list
    }
    /// One value of this many bytes, at most 8.
    pub(super) fn one(value: u64, bytes: usize) -> Self {
        Self::list(value.to_be_bytes()[8 - bytes..].iter().map(|&b| u64::from(b)))
    }
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
    pub(super) fn contains(&self, value: u64) -> bool {
        self.bytes().iter().any(|&b| u64::from(b) == value)
    }
}

/// The first of the server's values that is among the client's (RFC 4340, section 6.3.1).
pub(super) fn reconcile(server: &[u8], client: &[u8]) -> Option<u64> {
    server.iter().find(|v| client.contains(v)).map(|&v| u64::from(v))
}
