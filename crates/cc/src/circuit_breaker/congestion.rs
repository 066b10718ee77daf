//! Whether the sender uses more than ten times TCP's rate (RFC 8083, section 4.3).

use super::config::{Config, Rules, Timing};
use super::sent::SentInterval;
use crate::tcp::throughput::TcpFlow;
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, Gain, TimeDelta};

/// Consecutive reports above the bound that trip (V. Singh's dissertation, section 3.7.1).
const THESIS_REPORTS: u32 = 2;

#[derive(Clone, Copy, Debug)]
struct Record {
    fraction_lost: f64,
    duration: TimeDelta,
    bytes: DataSize,
}

/// The two rates that were compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Rates {
    pub(super) loss: f64,
    pub(super) sending: DataRate,
    /// `None` without loss or round-trip time: TCP's rate is then unbounded.
    pub(super) tcp: Option<DataRate>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compared {
    /// Too few reports or packets for a verdict.
    Unknown,
    Within,
    Exceeded,
}

/// The congestion rule.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    records: VecDeque<Record>,
    /// CB_INTERVAL as computed after the last report.
    cb_interval: u32,
    /// Whether a block has been received: the first has no predecessor from which to measure its interval.
    begun: bool,
    consecutive: u32,
    rates: Option<Rates>,
}

impl Congestion {
    pub(super) fn new(timing: &Timing) -> Self {
        Self { records: VecDeque::new(), cb_interval: timing.cb_interval(), begun: false, consecutive: 0, rates: None }
    }

    /// CB_INTERVAL in reporting intervals.
    pub(super) fn cb_interval(&self) -> u32 {
        self.cb_interval
    }
    /// The rates compared last.
    pub(super) fn rates(&self) -> Option<Rates> {
        self.rates
    }

    /// Drops the intervals so far; the next one starts at the newest report.
    pub(super) fn forget(&mut self) {
        self.records.clear();
        self.consecutive = 0;
    }

    /// Sending has stopped.
    pub(super) fn reset(&mut self) {
        self.forget();
        self.begun = false;
    }

    /// Handles a report block: the share of packets lost and the sending interval, with packets of this mean size.
    pub(super) fn on_report(
        &mut self,
        fraction_lost: f64,
        sent: Option<SentInterval>,
        segment: DataSize,
        rtt: Option<TimeDelta>,
        timing: &Timing,
        config: &Config,
    ) -> Compared {
        let first = !std::mem::replace(&mut self.begun, true);
        let Some(sent) = sent.filter(|s| s.duration > TimeDelta::ZERO) else { return Compared::Unknown };
        let record = Record { fraction_lost, duration: sent.duration, bytes: sent.bytes };
        match config.rules {
            Rules::Thesis2013 => self.judge_each(record, segment, rtt, config),
            Rules::Rfc8083 => {
                let often_enough = sent.longest_pause <= timing.tdr.max(timing.tr);
                if first || !often_enough {
                    return Compared::Unknown;
                }
                self.records.push_back(record);
                self.judge_mean(segment, rtt, config)
            }
        }
    }

    /// Recomputes CB_INTERVAL, which the RFC does after the check.
    pub(super) fn update(&mut self, timing: &Timing) {
        self.cb_interval = timing.cb_interval();
    }

    fn judge_mean(&mut self, segment: DataSize, rtt: Option<TimeDelta>, config: &Config) -> Compared {
        let wanted = self.cb_interval as usize;
        while self.records.len() > wanted {
            self.records.pop_front();
        }
        if self.records.len() < wanted {
            return Compared::Unknown;
        }
        let (mut lost, mut time, mut bytes) = (0.0, TimeDelta::ZERO, DataSize::ZERO);
        for r in &self.records {
            lost += r.fraction_lost * r.duration.as_secs_f64();
            time += r.duration;
            bytes += r.bytes;
        }
        let loss = lost / time.as_secs_f64();
        self.compare(loss, bytes, time, segment, rtt, config)
    }

    fn judge_each(&mut self, r: Record, segment: DataSize, rtt: Option<TimeDelta>, config: &Config) -> Compared {
        let verdict = self.compare(r.fraction_lost, r.bytes, r.duration, segment, rtt, config);
        self.consecutive = if verdict == Compared::Exceeded { self.consecutive + 1 } else { 0 };
        if verdict == Compared::Exceeded && self.consecutive < THESIS_REPORTS { Compared::Unknown } else { verdict }
    }

    fn compare(
        &mut self,
        loss: f64,
        bytes: DataSize,
        time: TimeDelta,
        segment: DataSize,
        rtt: Option<TimeDelta>,
        config: &Config,
    ) -> Compared {
        let sending = DataRate::from_size_over(bytes, time).unwrap_or(DataRate::ZERO);
        let tcp = rtt.and_then(|rtt| TcpFlow::new(segment, rtt).throughput(config.equation, loss));
        self.rates = Some(Rates { loss, sending, tcp });
        let factor = Gain::new(config.factor).unwrap_or(Gain::ONE);
        if tcp.is_some_and(|tcp| sending > tcp * factor) { Compared::Exceeded } else { Compared::Within }
    }
}
