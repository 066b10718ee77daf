//! Runs the circuit breaker over a trace of reports, without a call.

use super::{CircuitBreaker, Config, RtcpIntervals, Trip};
use crate::cue::{ReportBlock, SentPacket};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// One reporting interval of a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TraceReport {
    /// Length of the interval.
    pub interval: TimeDelta,
    /// Share of packets lost, 0 to 1.
    pub fraction_lost: f64,
    /// Round-trip time in its report, if any.
    pub rtt: Option<TimeDelta>,
    /// Sending rate.
    pub sending_rate: DataRate,
}

/// The first trip in a session that sends evenly spaced packets of one size through these intervals, each ended by a
/// report block. Both reporting intervals are the trace's. An interval in which all packets are lost reports no new
/// media. `None` if nothing trips. The sender ignores a required reduction, so [`Config::may_reduce`] needs two
/// triggers.
pub fn first_trip(config: Config, packet: DataSize, reports: impl IntoIterator<Item = TraceReport>) -> Option<Trip> {
    let mut breaker = CircuitBreaker::new(config);
    let mut now = Timestamp::ZERO;
    let mut sequence = 0;
    let (mut highest, mut cumulative_lost) = (0, 0.0);
    for report in reports {
        let interval = report.interval.max(TimeDelta::from_nanos(1));
        breaker.on_rtcp_interval(RtcpIntervals { own: interval, receiver: interval });
        let expected = report.sending_rate.size_in(interval).as_bytes() / packet.as_bytes().max(1);
        let spacing = interval / i64::try_from(expected.max(1)).unwrap_or(i64::MAX);
        for n in 0..expected {
            breaker.on_packet_sent(&SentPacket {
                bytes_in_flight: packet,
                ..SentPacket::media(now + spacing * n as i64, sequence, packet)
            });
            sequence += 1;
        }
        now += interval;
        cumulative_lost += report.fraction_lost * expected as f64;
        if report.fraction_lost < 1.0 {
            highest = sequence;
        }
        breaker.on_report_block(
            &ReportBlock {
                now,
                fraction_lost: report.fraction_lost,
                cumulative_lost: cumulative_lost as i64,
                highest_sequence: highest,
                expected,
                jitter: TimeDelta::ZERO,
                rtt: report.rtt,
            },
            0,
        );
        if breaker.tripped().is_some() {
            break;
        }
    }
    breaker.tripped()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit_breaker::Reason;
    use crate::tcp::throughput::Equation;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg32;

    const PACKET: DataSize = DataSize::from_bytes(1_000);
    const RTT: TimeDelta = TimeDelta::from_millis(50);

    /// Reports every 5 s of a ten-minute call at 1 Mbit/s, with losses from a two-state Markov process.
    fn gilbert(seed: u64, enter: f64, leave: f64, loss_in_burst: f64) -> Vec<TraceReport> {
        let mut random = Pcg32::seed_from_u64(seed);
        let mut burst = false;
        let report = |_| {
            let packets = 625;
            let lost = (0..packets).filter(|_| {
                burst = if burst { !random.random_bool(leave) } else { random.random_bool(enter) };
                burst && random.random_bool(loss_in_burst)
            });
            TraceReport {
                interval: TimeDelta::from_secs(5),
                fraction_lost: lost.count() as f64 / f64::from(packets),
                rtt: Some(RTT),
                sending_rate: DataRate::from_mbps(1),
            }
        };
        (0..120).map(report).collect()
    }
    fn share(of: impl Fn(u64) -> Vec<TraceReport>) -> f64 {
        let config = Config::thesis_2013(Equation::Simplified);
        let tripped = (0..100).filter(|&seed| first_trip(config, PACKET, of(seed)).is_some()).count();
        tripped as f64 / 100.0
    }

    #[test]
    fn loss_free_and_scattered_loss_never_trip_and_long_bursts_do() {
        assert_eq!(share(|seed| gilbert(seed, 0.0, 1.0, 0.0)), 0.0);
        // 1 Mbit/s is over 10 X where sqrt(2p/3) > 10 * 8,000 / (0.05 * 10^6) = 1.6: never by the simplified equation.
        assert_eq!(share(|seed| gilbert(seed, 0.02, 1.0, 1.0)), 0.0);
        // On average 1.5 outages of 16 s per call: some cover two whole intervals, and media times out.
        let bursts = share(|seed| gilbert(seed, 0.000_02, 0.000_5, 1.0));
        assert!((0.2..=0.95).contains(&bursts), "{bursts}");
    }

    #[test]
    fn two_intervals_on_end_trip_and_one_does_not() {
        let report = |fraction_lost| TraceReport {
            interval: TimeDelta::from_millis(2_500),
            fraction_lost,
            rtt: Some(TimeDelta::from_millis(500)),
            sending_rate: DataRate::from_mbps(1),
        };
        // 10 X = 80,000 / (0.5 * sqrt(2p/3)) = 1 Mbit/s at p = 0.0384.
        let (under, over) = (report(0.038), report(0.039));
        let config = Config::thesis_2013(Equation::Simplified);
        assert_eq!(first_trip(config, PACKET, [under; 100]), None);
        assert_eq!(first_trip(config, PACKET, [over, under].repeat(50)), None);
        let trip = first_trip(config, PACKET, [under, over, over]).expect("twice on end");
        assert_eq!((trip.reason, trip.at), (Reason::Congestion, Timestamp::from_millis(7_500)));
        assert_eq!(trip.pause, TimeDelta::from_secs(5));
        // The full equation trips earlier.
        assert!(first_trip(Config::thesis_2013(Equation::Full), PACKET, [under; 2]).is_some());
        assert!(first_trip(Config::thesis_2013(Equation::Full), PACKET, [report(0.02); 100]).is_none());
    }
}
