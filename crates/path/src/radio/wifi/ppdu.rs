//! The size and the air time of a transmission.

use super::Wifi;
use weir_units::{DataRate, TimeDelta};

/// Bytes around a packet in an aggregate: delimiter 4 (802.11-2020, clause 9.7.1), QoS data header 26 (clause 9.3.2.1), LLC and
/// SNAP 8 (IEEE 802.2), frame check sequence 4.
const HEADERS: u64 = 4 + 26 + 8 + 4;
/// Subframes of an aggregate are padded to multiples of this (802.11-2020, clause 9.7.1).
const ALIGNMENT: u64 = 4;
/// Bits of the SERVICE field and the tail (802.11-2020, clause 19.3.11.1 and following, one encoder).
const SERVICE_AND_TAIL: u64 = 16 + 6;
/// Length of an OFDM symbol with the long guard interval, in nanoseconds (802.11-2020, table 19-6).
const SYMBOL: i64 = 4_000;

/// A transmission as it is put together.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Ppdu {
    packets: u32,
    bytes: u64,
}

/// Bytes that a packet takes of an aggregate.
fn subframe(bytes: u32) -> u64 {
    (HEADERS + u64::from(bytes)).div_ceil(ALIGNMENT) * ALIGNMENT
}

impl Ppdu {
    pub(super) fn packets(self) -> u32 {
        self.packets
    }

    /// Whether one more packet fits; a first one always does.
    pub(super) fn fits(self, config: &Wifi, rate: DataRate, bytes: u32) -> bool {
        if self.packets == 0 {
            return true;
        }
        let mut with = self;
        with.add(bytes);
        with.packets <= config.max_packets
            && with.bytes <= config.max_size.as_bytes()
            && with.air_time(config, rate) <= config.max_air_time
    }

    pub(super) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += subframe(bytes);
    }

    /// Time of the data after the preamble: whole symbols.
    fn data_time(self, rate: DataRate) -> TimeDelta {
        let bits = u128::from(SERVICE_AND_TAIL + 8 * self.bytes);
        // A symbol has `rate` times 4 us bits.
        let symbols = (bits * 250_000).div_ceil(u128::from(rate.as_bps().max(1)));
        TimeDelta::from_nanos(i64::try_from(symbols).unwrap_or(i64::MAX).saturating_mul(SYMBOL))
    }

    /// Time on the air.
    pub(super) fn air_time(self, config: &Wifi, rate: DataRate) -> TimeDelta {
        config.preamble + self.data_time(rate)
    }

    /// When the last packet added so far is received, from the beginning of a transmission that will be `whole`: packets of an
    /// aggregate are checked one by one.
    pub(super) fn received_after(self, config: &Wifi, rate: DataRate, whole: Self) -> TimeDelta {
        if self.bytes >= whole.bytes {
            return whole.air_time(config, rate);
        }
        let share = self.bytes as f64 / whole.bytes as f64;
        config.preamble + whole.data_time(rate).mul_f64(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn air_times_are_those_of_the_standard() {
        let config = Wifi::default();
        let mut one = Ppdu::default();
        one.add(1_040);
        // 1,082 bytes padded to 1,084: 8,694 bits at 208 bits a symbol (52 Mbit/s) are 41.8 symbols.
        assert_eq!(one.air_time(&config, DataRate::from_mbps(52)), TimeDelta::from_micros(36 + 42 * 4));
        // 26 bits a symbol at 6.5 Mbit/s: 334.4 symbols.
        assert_eq!(one.air_time(&config, DataRate::from_kbps(6_500)), TimeDelta::from_micros(36 + 335 * 4));
        let mut two = one;
        two.add(1_040);
        assert_eq!(two.air_time(&config, DataRate::from_mbps(52)), TimeDelta::from_micros(36 + 84 * 4));
        assert_eq!(two.received_after(&config, DataRate::from_mbps(52), two), TimeDelta::from_micros(36 + 84 * 4));
        assert_eq!(one.received_after(&config, DataRate::from_mbps(52), two), TimeDelta::from_micros(36 + 42 * 4));
    }

    #[test]
    fn an_aggregate_has_three_limits() {
        let rate = DataRate::from_mbps(52);
        let count = |config: &Wifi| config.full(rate).packets();
        let us = TimeDelta::from_micros;
        // 5,448 us carry 1,362 symbols, 35,409 bytes.
        assert_eq!(count(&Wifi::default()), 35_409 / 1_084);
        assert_eq!(count(&Wifi { max_packets: 7, ..Wifi::default() }), 7);
        let small = Wifi { max_size: weir_units::DataSize::from_bytes(10_000), ..Wifi::default() };
        assert_eq!(count(&small), 9);
        assert_eq!(count(&Wifi { max_air_time: us(1), ..Wifi::default() }), 1);
    }
}
