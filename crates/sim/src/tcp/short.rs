//! Short flows: Poisson arrivals, each with its own connection.

use super::pool::Pool;
use super::workload::{check, draw_size};
use super::{Receiver, Sender, TcpConfig, TcpConfigError, Workload};
use crate::agent::Agent;
use crate::distribution::{Distribution, Random};
use crate::log_histogram::LogHistogram;
use crate::packet::{Body, Packet};
use crate::seed::mix;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Most connections alive at once, as many as there are ports; further flows are rejected and counted.
const MAX_ALIVE: usize = 1 << 16;

/// Short flows: arrivals are a Poisson process, and each flow is one transfer on a new connection.
///
/// The offered load is the arrival rate times the mean size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ShortFlows {
    /// Mean number of flows that begin per second.
    pub arrivals_per_s: f64,
    /// Bytes of a flow.
    pub size: Distribution,
    /// Seed of the random numbers. Sizes do not depend on the arrival rate.
    pub seed: u64,
}

impl ShortFlows {
    /// Checks every field. Errors: the first invalid one.
    pub fn check(&self) -> Result<(), TcpConfigError> {
        if !(self.arrivals_per_s > 0.0 && self.arrivals_per_s <= 1e6) {
            let (value, expected) = (self.arrivals_per_s.to_string(), "above 0 and at most 1000000 flows a second");
            return Err(TcpConfigError { field: "arrivals_per_s", value, expected });
        }
        check("size", &self.size)
    }
}

/// Counters of short flows.
#[derive(Clone, PartialEq, Debug)]
pub struct ShortStats {
    /// Flows that have begun.
    pub begun: u64,
    /// Flows whose last byte is acknowledged.
    pub completed: u64,
    /// Flows in progress.
    pub alive: u64,
    /// Flows rejected because the maximum number was alive.
    pub refused: u64,
    /// Data of completed flows.
    pub completed_size: DataSize,
    /// Data acknowledged, including flows in progress; divided by the run's time it is the aggregate goodput.
    pub acked: DataSize,
    /// Total time of completed flows.
    pub active_time: TimeDelta,
    /// The mean throughput of completed flows, each its size divided by its completion time.
    pub mean_throughput: Option<DataRate>,
    /// Completion times, from the first segment or SYN to the last acknowledgement.
    pub completion_times: LogHistogram,
    /// Segments with data, retransmissions included.
    pub segments: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Expirations of retransmission timers.
    pub timeouts: u64,
}

/// The sending ends of short flows: one agent for all.
///
/// A connection's state is reused once its flow has ended, so memory follows the number of flows alive at once.
#[derive(Clone, Debug)]
pub struct ShortSender {
    config: TcpConfig,
    flows: ShortFlows,
    pool: Pool<Sender>,
    /// Free slots; the one freed last is used next.
    free: Vec<u32>,
    gaps: Random,
    sizes: Random,
    next: Option<Timestamp>,
    begun: u64,
    refused: u64,
    unknown: u64,
    times: LogHistogram,
}

impl ShortSender {
    /// Short flows that begin at their agent's start.
    ///
    /// Errors: as for [`TcpConfig::check`] and [`ShortFlows::check`].
    pub fn new(config: TcpConfig, flows: ShortFlows) -> Result<Self, TcpConfigError> {
        config.check()?;
        flows.check()?;
        Ok(Self {
            config,
            flows,
            pool: Pool::new(),
            free: Vec::new(),
            gaps: Random::new(mix(flows.seed, 0)),
            sizes: Random::new(mix(flows.seed, 1)),
            next: None,
            begun: 0,
            refused: 0,
            unknown: 0,
            times: LogHistogram::default(),
        })
    }

    /// The counters.
    pub fn stats(&self) -> ShortStats {
        let mut s = ShortStats {
            begun: self.begun,
            completed: 0,
            alive: (self.pool.len() - self.free.len()) as u64,
            refused: self.refused,
            completed_size: DataSize::ZERO,
            acked: DataSize::ZERO,
            active_time: TimeDelta::ZERO,
            mean_throughput: None,
            completion_times: self.times.clone(),
            segments: 0,
            retransmits: 0,
            timeouts: 0,
        };
        let mut rates = 0;
        for m in self.pool.iter().map(Sender::stats) {
            s.completed += m.transfers;
            s.completed_size += m.transferred;
            s.acked += m.acked;
            s.active_time += m.transfer_time;
            s.segments += m.segments;
            s.retransmits += m.retransmits;
            s.timeouts += m.timeouts;
            rates += u128::from(m.transfer_rates.as_bps());
        }
        let mean = rates.checked_div(u128::from(s.completed));
        s.mean_throughput = mean.map(|bps| DataRate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)));
        s
    }
    /// Number of connection slots: the most ever alive at once.
    pub fn places(&self) -> usize {
        self.pool.len()
    }
    /// Packets without a connection.
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }

    fn gap(&mut self) -> TimeDelta {
        let mean = 1.0 / self.flows.arrivals_per_s;
        TimeDelta::from_secs_f64(Distribution::Exponential { mean }.sample(&mut self.gaps))
    }

    fn begin(&mut self, now: Timestamp) {
        // Drawn in any case, so that later flows are the same.
        let bytes = draw_size(&self.flows.size, &mut self.sizes);
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.pool.len() < MAX_ALIVE => {
                let idle = Workload::Transfer { size: DataSize::ZERO };
                let sender = Sender::new(self.config, idle).expect("the configuration has been checked");
                self.pool.push(sender);
                (self.pool.len() - 1) as u32
            }
            None => {
                self.refused += 1;
                return;
            }
        };
        self.begun += 1;
        if let Some(sender) = self.pool.stimulate(place) {
            sender.begin(now, bytes);
        }
    }
}

impl Agent for ShortSender {
    fn on_start(&mut self, now: Timestamp) {
        self.next = Some(now + self.gap());
    }

    #[inline]
    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        let place = if let Body::Tcp(s) = &packet.body { s.connection } else { u32::MAX };
        let Some(sender) = self.pool.stimulate(place) else {
            self.unknown += 1;
            return;
        };
        let before = sender.stats().transfer_time;
        let was_active = sender.is_active();
        sender.on_packet(now, packet);
        if was_active && !sender.is_active() {
            self.times.add(sender.stats().transfer_time - before);
            self.free.push(place);
        }
    }

    fn on_timeout(&mut self, _now: Timestamp) {}

    #[inline]
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        self.next.into_iter().chain(self.pool.poll_timeout()).min()
    }

    #[inline]
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        loop {
            if self.pool.poll_transmit(now, packet) {
                return true;
            }
            let Some(at) = self.next.filter(|&t| t <= now) else { return false };
            self.begin(at.max(now));
            self.next = Some(at + self.gap());
        }
    }
}

/// The receiving ends of short flows.
#[derive(Clone, Debug)]
pub struct ShortReceiver {
    config: TcpConfig,
    pool: Pool<Receiver>,
    unknown: u64,
}

impl ShortReceiver {
    /// The receivers for a [`ShortSender`] with the same configuration.
    ///
    /// Errors: as for [`TcpConfig::check`].
    pub fn new(config: TcpConfig) -> Result<Self, TcpConfigError> {
        config.check()?;
        Ok(Self { config, pool: Pool::new(), unknown: 0 })
    }
    /// Data delivered to readers in order, of all flows.
    pub fn delivered(&self) -> DataSize {
        self.pool.iter().map(Receiver::delivered).sum()
    }
    /// Packets without a connection.
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }
}

impl Agent for ShortReceiver {
    #[inline]
    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        let place = if let Body::Tcp(s) = &packet.body { s.connection } else { u32::MAX };
        // A new connection's number follows those in use, but its first packet may be lost or late.
        while self.pool.len() <= place as usize && (place as usize) < MAX_ALIVE {
            self.pool.push(Receiver::new(self.config).expect("the configuration has been checked"));
        }
        match self.pool.stimulate(place) {
            Some(receiver) => receiver.on_packet(now, packet),
            None => self.unknown += 1,
        }
    }

    fn on_timeout(&mut self, _now: Timestamp) {}

    #[inline]
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        self.pool.poll_timeout()
    }

    #[inline]
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        self.pool.poll_transmit(now, packet)
    }
}

#[cfg(test)]
mod tests;
