//! Values requested by a configuration.

use super::table::{Location, Slot, Values};
use crate::config::Config;
use crate::option::FeatureNumber;

/// The values of a feature that suit a configuration, in order of preference, and whether they are to be requested.
pub(super) fn wishes(slot: Slot, config: &Config) -> (Values, bool) {
    let is_local = slot.location() == Location::Local;
    let either = Values::list([0, 1]);
    match slot.number() {
        FeatureNumber::CCID => {
            let list = if is_local { &config.ccids.send } else { &config.ccids.receive };
            let values = Values::list(list.iter().map(|&n| u64::from(n)));
            (values, values.bytes().first() != Some(&2))
        }
        FeatureNumber::ALLOW_SHORT_SEQUENCE_NUMBERS if config.short_sequence_numbers => {
            (Values::list([1, 0]), is_local)
        }
        FeatureNumber::ALLOW_SHORT_SEQUENCE_NUMBERS => (Values::list([0]), false),
        FeatureNumber::SEQUENCE_WINDOW => {
            let window = config.sequence_window.clamp(32, (1 << 46) - 1);
            (Values::one(window, 6), is_local && window != slot.feature().initial)
        }
        FeatureNumber::ACK_RATIO => (Values::one(slot.feature().initial, 2), false),
        // This end accepts all packets whose coverage is at least its own, and more coverage does no harm
        // (section 9.2.1).
        FeatureNumber::MINIMUM_CHECKSUM_COVERAGE if is_local => match u64::from(config.minimum_checksum_coverage & 0xf)
        {
            0 => (Values::list([0]), false),
            least => (Values::list((least..=15).chain([0])), true),
        },
        // The coverage sent by this end suits the other one's minimum if that is not above it.
        FeatureNumber::MINIMUM_CHECKSUM_COVERAGE => match u64::from(config.checksum_coverage & 0xf) {
            0 => (Values::list(0..=15), false),
            coverage => (Values::list((0..=coverage).rev()), true),
        },
        // Every received Data Checksum is verified here.
        FeatureNumber::CHECK_DATA_CHECKSUM => (Values::list([1, 0]), !is_local && config.data_checksum),
        _ => (either, false),
    }
}
