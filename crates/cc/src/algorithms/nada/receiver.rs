//! The receiver half of the receiver-side variant (RFC 8698, sections 4.2 and 5.1).

use super::config::Config;
use super::signal::{Aggregator, CongestionSignal, mode_number, warp_threshold};
use super::window::Arrival;
use crate::controller::{ReceiverController, Report};
use crate::cue::ReceivedPacket;
use crate::spec::Start;
use crate::tunable::SetupError;
use weir_units::{DataRate, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// A wider gap is a restart of the stream, not loss (RFC 3550, appendix A.1, MAX_DROPOUT).
const MAX_DROPOUT: u64 = 3_000;

/// NADA's receiver.
#[derive(Clone, Debug)]
pub struct NadaReceiver {
    config: Config,
    aggregator: Aggregator,
    highest: Option<u64>,
    reported: Timestamp,
    /// RMAX.
    ceiling: DataRate,
    /// Whether a packet has arrived since the last report.
    news: bool,
}

impl NadaReceiver {
    /// A receiver in its initial state. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("nada-receiver")?;
        let (aggregator, ceiling) = (Aggregator::new(&config), start.limits.ceiling);
        Ok(Self { config, aggregator, highest: None, reported: start.now, ceiling, news: false })
    }

    /// Counts the gap before a packet; returns whether the packet is late.
    fn follow_sequence(&mut self, sequence: u64) -> bool {
        match self.highest {
            Some(highest) if sequence > highest => {
                let gap = sequence - highest - 1;
                if gap <= MAX_DROPOUT {
                    self.aggregator.on_lost(gap as u32);
                    self.aggregator.correction.on_lost(gap as u32);
                }
            }
            Some(highest) if highest - sequence <= MAX_DROPOUT => return true,
            _ => {}
        }
        self.highest = Some(sequence);
        false
    }
}

impl ReceiverController for NadaReceiver {
    fn on_packet_received(&mut self, packet: &ReceivedPacket) {
        let late = self.follow_sequence(packet.sequence);
        let at = packet.now - Timestamp::ZERO;
        let arrival = Arrival {
            at,
            delay: packet.departure.map(|d| self.aggregator.correction.correct(at - (d - RemoteTimestamp::ZERO), at)),
            size: u32::try_from(packet.size.as_bytes()).unwrap_or(u32::MAX),
            lost_before: 0,
            late,
            marked: packet.ecn == Ecn::Ce,
        };
        self.aggregator.on_arrival(arrival, &self.config);
        self.news = true;
    }
    fn on_rtt(&mut self, rtt: TimeDelta, now: Timestamp) {
        self.aggregator.set_rtt(rtt);
        self.aggregator.correction.on_round_trip(rtt, now);
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        self.news.then(|| self.reported + self.config.delta)
    }
    fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        if self.poll_timeout()? > now {
            return None;
        }
        self.news = false;
        self.reported = now;
        self.aggregator.advance(now - Timestamp::ZERO, &self.config);
        let rate = self.aggregator.receive_rate(&self.config);
        let qth = warp_threshold(rate, self.ceiling.as_bps_f64(), &self.config);
        let CongestionSignal { mode, x_curr, receive_rate, .. } = *self.aggregator.report(qth, &self.config);
        Some(Report::Nada {
            mode,
            aggregate_delay: TimeDelta::from_millis_f64(x_curr),
            receive_rate: DataRate::from_bps_f64(receive_rate),
        })
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let s = self.aggregator.signal();
        out("x_curr_ms", s.x_curr);
        out("rmode", mode_number(s.mode));
        out("r_recv_bps", s.receive_rate);
        out("d_queue_ms", s.d_queue);
        out("d_tilde_ms", s.d_tilde);
        out("p_loss", s.p_loss);
        out("p_mark", s.p_mark);
        out("loss_interval", s.loss_interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::NadaMode;
    use crate::testing::Kbps;
    use weir_units::DataSize;

    fn receiver() -> NadaReceiver {
        let start = Kbps { floor: 0, start: 300, ceiling: 3_000 }.start();
        NadaReceiver::new(Config::default(), &Start { now: Timestamp::from_secs(1), ..start }).expect("valid")
    }
    fn arrive(r: &mut NadaReceiver, ms: i64, sequence: u64, delay_ms: i64) {
        r.on_packet_received(&ReceivedPacket {
            now: Timestamp::from_millis(ms),
            departure: Some(RemoteTimestamp::from_millis(ms - delay_ms)),
            size: DataSize::from_bytes(1_000),
            payload: DataSize::from_bytes(1_000),
            sequence,
            rtp_timestamp: 0,
            marker: false,
            ecn: Ecn::Ect0,
        });
    }

    #[test]
    fn reports_every_100_ms_while_packets_arrive() {
        let mut r = receiver();
        assert_eq!((r.poll_timeout(), r.poll_report(Timestamp::from_secs(2))), (None, None));
        let mut reported = Vec::new();
        for k in 0..100 {
            let now = Timestamp::from_millis(2_000 + 10 * k);
            arrive(&mut r, 2_000 + 10 * k, k as u64, 30 + k);
            if let Some(Report::Nada { mode, aggregate_delay, receive_rate }) = r.poll_report(now) {
                reported.push((k, mode, aggregate_delay, receive_rate));
                assert!(r.poll_timeout().is_none());
            }
        }
        assert_eq!(reported.iter().map(|t| t.0).collect::<Vec<_>>(), [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
        // The minimum of the last 15 delays: 90 - 14 above the baseline.
        let expected = (90, NadaMode::GradualUpdate, TimeDelta::from_millis(76), DataRate::from_kbps(800));
        assert_eq!(reported[9], expected);
        assert_eq!(r.poll_timeout(), Some(Timestamp::from_millis(3_000)));
        assert!(r.poll_report(Timestamp::from_millis(2_999)).is_none());
        assert!(r.poll_report(Timestamp::from_millis(3_000)).is_some());
        assert!(r.poll_report(Timestamp::from_millis(9_000)).is_none());
    }

    #[test]
    fn takes_gaps_for_loss_but_not_restarts() {
        let loss_of = |sequences: &[u64]| {
            let mut r = receiver();
            for (k, &s) in sequences.iter().enumerate() {
                arrive(&mut r, 2_000 + k as i64, s, 30);
            }
            assert!(r.poll_report(Timestamp::from_millis(2_100)).is_some());
            r.aggregator.signal().p_loss
        };
        assert_eq!(loss_of(&[10, 11, 12, 13]), 0.0);
        assert!((loss_of(&[10, 11, 14, 15]) - 0.1 * 2.0 / 6.0).abs() < 1e-12);
        // Late and duplicate packets do not change the loss.
        assert!((loss_of(&[10, 13, 11, 11, 14]) - 0.1 * 2.0 / 5.0).abs() < 1e-12);
        assert_eq!(loss_of(&[10, 11, 5_000, 5_001]), 0.0);
        assert_eq!(loss_of(&[9_000, 9_001, 5, 6]), 0.0);
        assert_eq!(loss_of(&[10, u64::MAX, 0, u64::MAX]), 0.0);
    }
}
