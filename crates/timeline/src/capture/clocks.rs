//! Absolute send times (webrtc.org, experiments/rtp-hdrext/abs-send-time), recognised by behaviour: an element of three bytes that is a clock of 6 bits of
//! seconds and 18 of fractions.

use super::extensions::each;
use crate::recording::SendClock;
use std::collections::BTreeMap;
use weir_units::Timestamp;

/// Units of the clock a second, and seconds after which it wraps.
const UNITS: f64 = 262_144.0;
const WRAPS: f64 = 64.0;
/// Least packets before a guess, and least share of them whose time is that of the capture, within so many seconds from one to the next.
const LEAST_PACKETS: u32 = 100;
const LEAST_SHARE: f64 = 0.95;
const CLOSE: f64 = 0.1;
/// Most identifiers of a flow that are looked at.
const MOST: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Clock {
    first: Timestamp,
    last: Timestamp,
    last_value: u32,
    /// Number of the last packet.
    number: u32,
    /// Seconds by the clock since the first packet.
    elapsed: f64,
    packets: u32,
    close: u32,
}

/// The elements of three bytes of a flow's packets.
#[derive(Debug, Default)]
pub(super) struct Clocks(BTreeMap<u8, Clock>);

impl Clocks {
    pub(super) fn add(&mut self, packet: &[u8], at: Timestamp, number: u32) {
        each(packet, &mut |id, value| {
            let &[a, b, c] = value else { return };
            let value = u32::from_be_bytes([0, a, b, c]);
            if self.0.len() >= MOST && !self.0.contains_key(&id) {
                return;
            }
            let new = Clock { first: at, last: at, last_value: value, number, elapsed: 0.0, packets: 0, close: 0 };
            let clock = self.0.entry(id).or_insert(new);
            let passed = (at - clock.last).as_secs_f64();
            // The nearest step to the time that has passed: the clock wraps.
            let step = f64::from(value.wrapping_sub(clock.last_value) & 0x00ff_ffff) / UNITS;
            let step = step + libm::round((passed - step) / WRAPS) * WRAPS;
            clock.packets = clock.packets.saturating_add(1);
            clock.close += u32::from((step - passed).abs() < CLOSE);
            clock.elapsed += step;
            (clock.last, clock.last_value, clock.number) = (at, value, number);
        });
    }

    /// The clock with most packets.
    pub(super) fn found(&self) -> Option<SendClock> {
        let fits = |c: &&Clock| {
            c.packets >= LEAST_PACKETS && f64::from(c.close) >= LEAST_SHARE * f64::from(c.packets) && c.elapsed > 0.0
        };
        let (id, c) = self.0.iter().filter(|(_, c)| fits(c)).max_by_key(|(_, c)| c.packets)?;
        let over_s = (c.last - c.first).as_secs_f64();
        Some(SendClock { id: *id, at: c.last, number: c.number, over_s, ahead_s: c.elapsed - over_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::TimeDelta;

    /// A flow of 100 s whose send times run faster by `drift`, with an element of three bytes beside that is no clock.
    fn flow(drift: f64) -> Clocks {
        let mut clocks = Clocks::default();
        for i in 0..5_000u32 {
            let s = f64::from(i) * 0.02;
            let value = ((s * (1.0 + drift) * UNITS) as u64 & 0x00ff_ffff) as u32;
            let [_, a, b, c] = value.to_be_bytes();
            let mut packet =
                vec![0x90, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0xbe, 0xde, 0, 2, 0x32, a, b, c, 0x42, 7, 7, 7];
            packet.extend([0; 20]);
            clocks.add(&packet, Timestamp::ZERO + TimeDelta::from_secs_f64(s), i + 1);
        }
        clocks
    }

    #[test]
    fn a_clock_is_found_and_its_drift() {
        let found = flow(0.0).found().expect("a clock");
        assert!(found.id == 3 && found.ahead_s.abs() < 1e-3 && found.over_s > 99.0, "{found:?}");
        let fast = flow(0.005).found().expect("a clock");
        assert!((fast.ahead_s - 0.5).abs() < 0.01 && fast.number == 5_000, "{fast:?}");
        assert!(Clocks::default().found().is_none());
    }
}
