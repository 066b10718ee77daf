//! Timestamp, Timestamp Echo and Elapsed Time (RFC 4340, section 13).

use crate::option::{from_ticks, ticks, timestamp};
use weir_units::{Seq48, TimeDelta, Timestamp};

/// Greater round-trip samples are ignored.
const MAX_RTT: TimeDelta = TimeDelta::from_secs(60);

/// State of round-trip measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct Timing {
    /// Round-trip time of the handshake and of timestamps, smoothed.
    pub(super) rtt: Option<TimeDelta>,
    /// A timestamp to be echoed, and its arrival time.
    pub(super) to_echo: Option<(u32, Timestamp)>,
    /// When the last timestamp was sent.
    pub(super) stamped_at: Option<Timestamp>,
    /// A round-trip time by an echo that has not been passed to the CCID with an acknowledgement yet.
    pub(super) echo_rtt: Option<TimeDelta>,
    /// The packet whose acknowledgement measures the handshake, and its send time.
    pub(super) measured: Option<(Seq48, Timestamp)>,
    /// Arrival time of the packet that acknowledgements acknowledge.
    pub(super) gsr_at: Option<Timestamp>,
    /// Arrival time of the last valid packet.
    pub(super) heard_at: Option<Timestamp>,
}

impl Timing {
    /// A round-trip time was measured: a smoothed mean with the weight of TCP's (RFC 6298, section 2).
    pub(super) fn sample(&mut self, rtt: TimeDelta) {
        if rtt.is_negative() || rtt > MAX_RTT {
            return;
        }
        self.rtt = Some(self.rtt.map_or(rtt, |old| old + (rtt - old) / 8));
    }
    /// The other end echoes a timestamp that it held for this time.
    pub(super) fn on_echo(&mut self, now: Timestamp, echo: u32, elapsed: u32) {
        // A timestamp never sent here, or a hold time longer than the round trip, is ignored.
        let Some(sent) = self.stamped_at else { return };
        let age = timestamp(now).wrapping_sub(echo);
        let oldest = timestamp(now).wrapping_sub(timestamp(sent)).saturating_add(ticks(MAX_RTT));
        if elapsed <= age && age <= oldest {
            // Less than the clock's resolution is not zero.
            let rtt = from_ticks((age - elapsed).max(1));
            self.sample(rtt);
            self.echo_rtt = Some(rtt);
        }
    }
    /// A packet of the handshake is acknowledged.
    pub(super) fn on_acknowledged(&mut self, now: Timestamp, ack: Seq48) {
        if let Some((sequence, at)) = self.measured
            && sequence == ack
        {
            self.measured = None;
            self.sample(now.saturating_since(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_measures_the_round_trip_across_the_wrap_of_its_clock() {
        // 2^32 units of 10 us are 42,949.67296 s.
        let wrap = 42_949_672_960_000;
        let mut t = Timing { stamped_at: Some(Timestamp::from_nanos(wrap - 20_000_000)), ..Timing::default() };
        let echo = timestamp(Timestamp::from_nanos(wrap - 20_000_000));
        t.on_echo(Timestamp::from_nanos(wrap + 40_000_000), echo, 1_000);
        assert_eq!(t.rtt, Some(TimeDelta::from_millis(50)));
        // Held longer than the round trip, or never sent.
        t.on_echo(Timestamp::from_nanos(wrap + 40_000_000), echo, 6_001);
        t.on_echo(Timestamp::from_nanos(wrap + 40_000_000), echo.wrapping_add(1 << 31), 0);
        assert_eq!(t.rtt, Some(TimeDelta::from_millis(50)));
    }
}
