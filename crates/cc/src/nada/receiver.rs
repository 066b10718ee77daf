//! The receiver half of the receiver-side variant (RFC 8698, sections 4.2 and 5.1).

use super::config::Config;
use super::sender::mode_number;
use super::signal::{Aggregator, Signal};
use super::window::Arrival;
use crate::controller::{ReceiverController, Report};
use crate::cue::ReceivedPacket;
use crate::registry::Setup;
use crate::tunable::SetupError;
use weir_units::{DataRate, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// A gap wider than this is a restart of the stream, not loss (RFC 3550, appendix A.1, MAX_DROPOUT).
const MAX_DROPOUT: u64 = 3_000;

/// NADA's receiver.
#[derive(Clone, Debug)]
pub struct NadaReceiver {
    config: Config,
    aggregator: Aggregator,
    highest: Option<u64>,
    reported: Timestamp,
    /// Whether a packet has arrived since the last report.
    news: bool,
}

impl NadaReceiver {
    /// A receiver of nothing yet. Errors: see [`Config::set_all`].
    pub fn new(setup: &Setup) -> Result<Self, SetupError> {
        let mut config = Config::default();
        config.set_all("nada-receiver", &setup.params)?;
        Ok(Self { config, aggregator: Aggregator::new(), highest: None, reported: setup.now, news: false })
    }

    /// Counts the gap before a packet; whether it came late.
    fn follow_sequence(&mut self, sequence: u64) -> bool {
        match self.highest {
            Some(highest) if sequence > highest => {
                let gap = sequence - highest - 1;
                if gap <= MAX_DROPOUT {
                    self.aggregator.on_lost(gap as u32);
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
            delay: packet.departure.map(|d| at - (d - RemoteTimestamp::ZERO)),
            size: u32::try_from(packet.size.as_bytes()).unwrap_or(u32::MAX),
            lost_before: 0,
            late,
            marked: packet.ecn == Ecn::Ce,
        };
        self.aggregator.on_arrival(arrival, &self.config);
        self.news = true;
    }
    fn on_rtt(&mut self, rtt: TimeDelta, _: Timestamp) {
        self.aggregator.set_rtt(rtt);
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
        let Signal { mode, x_curr, receive_rate, .. } = *self.aggregator.report(&self.config);
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
