//! The features of a connection as the rest of it sees them (RFC 4340, section 6).

use super::{Config, Role};
use crate::ccid::Requirements;
use crate::option::FeatureNumber;
use crate::packet::PacketWriter;
use weir_units::{Seq48, Timestamp};

/// Until negotiation stands, both ends have what this one is configured for.
#[derive(Clone, Debug)]
pub(super) struct Features {
    ccids: (u8, u8),
    window: u64,
    ecn: bool,
    short: bool,
    coverage: (u8, u8),
}

impl Features {
    pub(super) fn new(config: &Config, _role: Role) -> Self {
        Self {
            ccids: (config.ccids.send[0], config.ccids.receive[0]),
            window: config.sequence_window,
            ecn: config.ecn,
            short: config.short_sequence_numbers,
            coverage: (config.minimum_checksum_coverage, config.checksum_coverage),
        }
    }
    pub(super) fn ccids_are_agreed(&self) -> bool {
        true
    }
    fn value(&self, feature: FeatureNumber, local: bool) -> u64 {
        match feature {
            FeatureNumber::CCID => u64::from(if local { self.ccids.0 } else { self.ccids.1 }),
            FeatureNumber::SEQUENCE_WINDOW => self.window,
            FeatureNumber::ECN_INCAPABLE => u64::from(!self.ecn),
            FeatureNumber::ALLOW_SHORT_SEQUENCE_NUMBERS => u64::from(self.short),
            FeatureNumber::ACK_RATIO => 2,
            FeatureNumber::MINIMUM_CHECKSUM_COVERAGE => {
                u64::from(if local { self.coverage.0 } else { self.coverage.1 })
            }
            _ => 0,
        }
    }
    /// The value of a feature located at this end.
    pub(super) fn local(&self, feature: FeatureNumber) -> u64 {
        self.value(feature, true)
    }
    /// The value of a feature located at the other end.
    pub(super) fn remote(&self, feature: FeatureNumber) -> u64 {
        self.value(feature, false)
    }
    /// Whether options are due that no packet has taken along yet.
    pub(super) fn pending(&self) -> bool {
        false
    }
    pub(super) fn write_options(&mut self, _out: &mut PacketWriter<'_>) {}
    pub(super) fn on_packet_sent(&mut self, _sequence: Seq48) {}
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }
    pub(super) fn on_timeout(&mut self, _now: Timestamp) {}
    /// Asks for what the CCIDs need.
    pub(super) fn require(&mut self, _now: Timestamp, _data: Requirements, _acks: Requirements) {}
}
