//! The sending end: connections and acknowledgements. Growth is in `growth.rs`, loss recovery in `loss.rs` and `prr.rs`,
//! loss detection by time in `rack_tlp.rs`, rate samples and pacing in `model.rs`, transfers in `transfer.rs`.

mod growth;
mod loss;
mod model;
mod prr;
mod rack_tlp;
mod transfer;

use super::avoidance::{Avoidance, CongestionAvoidance, Window};
use super::ecn::{EcnFeedback, MarkCount};
use super::hystart::HyStart;
use super::rto::Rto;
use super::scoreboard::{DUP_THRESH, Scoreboard};
use super::workload::{Transfers, Workload};
use super::{TcpConfig, TcpConfigError};
use crate::agent::Agent;
use crate::packet::{Body, Packet};
use crate::tcp_segment::TcpSegment;
use loss::Kind;
use model::Model;
use prr::Prr;
use rack_tlp::RackTlp;
use transfer::initial_window;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Counters of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SenderStats {
    /// Segments with data, retransmissions included.
    pub segments: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Number of loss recoveries.
    pub recoveries: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u64,
    /// Tail loss probes sent (RFC 8985, section 7); those that retransmit are also in [`Self::retransmits`].
    pub probes: u64,
    /// Acknowledgements with a D-SACK block (RFC 2883), counted with RACK only.
    pub dsacks: u64,
    /// Window reductions by ECN-Echo.
    pub ecn_reductions: u64,
    /// Transfers acknowledged completely.
    pub transfers: u64,
    /// Data of those transfers.
    pub transferred: DataSize,
    /// Sum of those transfers' rates, each its data divided by its time; divided by their number it is the mean
    /// throughput of a transfer.
    pub transfer_rates: DataRate,
    /// Data acknowledged, including transfers in progress.
    pub acked: DataSize,
    /// Total time of those transfers, from the first segment or SYN to the last acknowledgement.
    pub transfer_time: TimeDelta,
    /// Invalid acknowledgements, or of another connection.
    pub ignored: u64,
}

/// State of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing to send.
    Idle,
    /// The SYN has been sent.
    Opening,
    /// Nothing is known to be missing.
    Open,
    /// Fast recovery (RFC 6675, section 5, or RFC 6582).
    Recovery,
    /// After a timeout, until all data sent before is acknowledged.
    Loss,
}

/// The sending end of a TCP connection. Sequence numbers continue from transfer to transfer.
#[derive(Clone, Debug)]
pub struct Sender {
    config: TcpConfig,
    transfers: Transfers,
    /// The rate at which data is produced, if not all is available at once.
    stream: Option<DataRate>,
    window: Window,
    avoidance: Avoidance,
    rto: Rto,
    phase: Phase,
    /// First unacknowledged byte (HighACK + 1).
    una: u64,
    /// Next byte to send; below `high` only after a timeout.
    next: u64,
    /// End of what has been sent (HighData + 1).
    high: u64,
    /// End of the available data.
    limit: u64,
    /// End of the receiver's window.
    allowed: u64,
    board: Scoreboard,
    dup_acks: u32,
    /// Recovery ends here (RecoveryPoint + 1).
    recovery_point: u64,
    /// End of what has been retransmitted in this recovery (HighRxt + 1).
    high_rxt: u64,
    /// Whether this recovery's rescue retransmission has been used.
    rescued: bool,
    /// Recovery has just begun or continued: the first hole is sent regardless of the window.
    resend_first: bool,
    /// Estimate of bytes in the network.
    pipe: u64,
    timer: Option<Timestamp>,
    /// Without timestamps: a segment sent once whose round-trip time is being measured.
    timed: Option<(u64, Timestamp)>,
    /// The next RTT sample is taken when this is acknowledged, so there is one per round trip.
    sample_at: u64,
    /// ECN: an echo below this is not new; and the next data segment signals the reduction.
    ecn_point: u64,
    signal_cwr: bool,
    /// Marks that the receiver has counted.
    marks: MarkCount,
    hystart: HyStart,
    prr: Prr,
    /// With RACK-TLP (RFC 8985). It replaces `next`, `high_rxt` and `rescued`.
    rack_tlp: Option<Box<RackTlp>>,
    /// For algorithms that model the path.
    model: Option<Box<Model>>,
    /// Whether the algorithm paces; the earliest time of the next segment, and whether one waits for it.
    paces: bool,
    next_send: Timestamp,
    paced_until: Option<Timestamp>,
    syn_lost: bool,
    /// The next transfer: its time and size in bytes.
    coming: Option<(Timestamp, u64)>,
    began: Timestamp,
    /// When the previous transfer ended.
    idle_since: Timestamp,
    first: u64,
    /// Whether the last call left nothing to send before the timeout.
    settled: bool,
    stats: SenderStats,
}

impl Sender {
    /// A sender that begins when its agent starts.
    ///
    /// Errors: as for [`TcpConfig::check`], or an invalid distribution.
    pub fn new(config: TcpConfig, workload: Workload) -> Result<Self, TcpConfigError> {
        config.check()?;
        let transfers = Transfers::new(workload)?;
        let window = initial_window(&config);
        Ok(Self {
            stream: transfers.stream(),
            transfers,
            window,
            avoidance: Avoidance::new(config.variant, &window, Timestamp::ZERO, config.seed),
            rto: Rto::new(config.min_rto),
            config,
            phase: Phase::Idle,
            una: 0,
            next: 0,
            high: 0,
            limit: 0,
            allowed: 0,
            board: Scoreboard::default(),
            dup_acks: 0,
            recovery_point: 0,
            high_rxt: 0,
            rescued: false,
            resend_first: false,
            pipe: 0,
            timer: None,
            timed: None,
            sample_at: 0,
            ecn_point: 0,
            signal_cwr: false,
            marks: MarkCount::default(),
            hystart: HyStart::default(),
            prr: Prr::default(),
            rack_tlp: None,
            model: None,
            paces: config.variant.paces(),
            next_send: Timestamp::ZERO,
            paced_until: None,
            syn_lost: false,
            coming: None,
            began: Timestamp::ZERO,
            idle_since: Timestamp::ZERO,
            first: 0,
            settled: false,
            stats: SenderStats::default(),
        })
    }

    /// The counters.
    pub const fn stats(&self) -> SenderStats {
        self.stats
    }
    /// The congestion window and slow-start threshold.
    pub const fn window(&self) -> Window {
        self.window
    }
    /// Smoothed round-trip time of this connection.
    pub fn srtt(&self) -> Option<TimeDelta> {
        self.rto.srtt()
    }
    /// The current retransmission timeout.
    pub fn retransmission_timeout(&self) -> TimeDelta {
        self.rto.rto()
    }
    /// Estimate of bytes in the network.
    pub const fn bytes_in_flight(&self) -> DataSize {
        DataSize::from_bytes(self.pipe)
    }
    /// Whether a transfer is in progress.
    pub fn is_active(&self) -> bool {
        self.phase != Phase::Idle
    }

    fn on_ack(&mut self, now: Timestamp, s: &TcpSegment) {
        let is_current = s.ack >= self.una && s.ack <= self.high;
        if self.rack_tlp.is_some() && is_current {
            self.take_ack_by_rack(now, s);
        }
        if self.phase == Phase::Idle || !is_current {
            self.stats.ignored += 1;
            return;
        }
        self.check_application();
        self.refill(now);
        let acked = s.ack - self.una;
        let was_limited = self.pipe + self.window.mss > self.window.cwnd;
        let sacked_before = self.board.sacked();
        let mut news = 0;
        if self.config.sack {
            for &block in s.sack_blocks() {
                news += self.board.add(block, s.ack, self.high);
            }
        }
        // A window below one segment would need probes, which this sender does not implement.
        let offered = s.window.clamp(self.window.mss, self.config.receive_window.as_bytes());
        self.allowed = self.allowed.max(s.ack + offered);
        let mut rtt = None;
        if acked > 0 {
            self.una = s.ack;
            self.next = self.next.max(self.una);
            self.dup_acks = 0;
            if !self.board.is_empty() && self.board.advance(self.una) {
                self.board.clear();
                if let Some(r) = &mut self.rack_tlp {
                    r.renege();
                }
            }
            rtt = self.take_rtt(now, s);
            if self.phase == Phase::Opening {
                self.open(now);
                self.timer = None;
                self.pipe = 0;
                return;
            }
            self.stats.acked += DataSize::from_bytes(acked);
            // RFC 6298, section 5.2 and 5.3.
            self.timer = (self.una < self.high).then(|| now + self.rto.rto());
            if self.una >= self.limit && self.stream.is_none() {
                return self.finish(now);
            }
        } else if self.phase == Phase::Opening {
            return;
        }
        if news > 0 || (!self.config.sack && acked == 0 && !s.is_syn && self.una < self.high) {
            self.dup_acks += 1;
        }
        if self.model.is_some() {
            self.on_ack_by_model(now, s, news, was_limited);
            return self.arm_after_ack(now, acked > 0);
        }
        let delivered = (acked + self.board.sacked()).saturating_sub(sacked_before);
        let reduces = match self.config.ecn {
            EcnFeedback::Off => false,
            // Once per window: the answer to the first segment after the reduction, which informs the receiver,
            // arrives later.
            EcnFeedback::Classic => {
                let reduces = s.is_ece && self.una > self.ecn_point && self.phase == Phase::Open;
                if reduces {
                    self.on_ecn_echo();
                }
                reduces
            }
            EcnFeedback::Dctcp | EcnFeedback::Accurate => {
                self.count_marks(s, delivered, &self.ack_info(now, acked, rtt, was_limited))
            }
        };
        if self.rack_tlp.is_some() {
            return self.on_ack_by_rack(&self.ack_info(now, acked, rtt, was_limited), delivered, reduces);
        }
        match self.phase {
            Phase::Open => {
                if self.dup_acks as usize >= DUP_THRESH || self.board.lost_below(self.window.mss) > self.una {
                    self.enter_recovery(now);
                } else if acked > 0 && !reduces {
                    let ack = self.ack_info(now, acked, rtt, was_limited);
                    self.avoidance.measure(&mut self.window, &ack);
                    self.grow(&ack);
                }
            }
            Phase::Recovery => self.recover(acked),
            Phase::Loss => {
                if acked > 0 {
                    self.grow(&self.ack_info(now, acked, rtt, true));
                }
                if self.una >= self.recovery_point {
                    self.phase = Phase::Open;
                }
            }
            Phase::Idle | Phase::Opening => {}
        }
        self.count_pipe();
        if self.config.prr && self.phase == Phase::Recovery {
            self.window.cwnd = self.prr.window(delivered, self.pipe, self.window.ssthresh, self.window.mss);
        }
    }
}

impl Agent for Sender {
    fn on_start(&mut self, now: Timestamp) {
        self.plan(now);
    }

    #[inline]
    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        self.settled = false;
        match &packet.body {
            Body::Tcp(segment) if segment.is_ack => self.on_ack(now, segment),
            _ => self.stats.ignored += 1,
        }
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.settled = false;
        self.begin_if_due(now);
        self.check_application();
        self.refill(now);
        if self.timer.is_some_and(|t| t <= now) {
            if self.rack_tlp.is_some() {
                self.on_timer_by_rack(now);
            } else {
                self.on_retransmission_timeout(now);
            }
        }
    }

    #[inline]
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        if self.stream.is_some() && self.next >= self.limit {
            return self.next_made().into_iter().chain(self.timer).min();
        }
        let next = self.timer.or(self.coming.map(|(at, _)| at));
        match self.paced_until {
            None => next,
            Some(at) => Some(next.map_or(at, |t| t.min(at))),
        }
    }

    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        // Waiting segments may have been acknowledged.
        self.paced_until = None;
        let (mut seq, mut len, mut is_syn, mut is_push, mut is_cwr) = (self.una, 0, false, false, false);
        match self.phase {
            Phase::Idle => return false,
            Phase::Opening => {
                if self.next > self.una {
                    return false;
                }
                is_syn = true;
                (self.next, self.high) = (self.una + 1, self.una + 1);
                if !self.config.timestamps && !self.syn_lost {
                    self.timed = Some((self.high, now));
                }
                self.timer = Some(now + self.rto.rto());
            }
            Phase::Open | Phase::Recovery | Phase::Loss => {
                let Some((start, bytes, kind)) = self.choose() else { return false };
                if self.paces {
                    if self.waits_for_pacer(now) {
                        return false;
                    }
                    self.pace(now, bytes);
                }
                self.sent(now, start, bytes, kind);
                (seq, len) = (start, bytes as u32);
                is_push = start + bytes == self.limit && self.stream.is_none();
                if self.config.ecn != EcnFeedback::Off && kind == Kind::New {
                    packet.ecn = self.config.ecn.codepoint();
                    is_cwr = std::mem::take(&mut self.signal_cwr);
                }
                self.settled = self.is_window_full();
            }
        }
        let s = TcpSegment {
            seq,
            len,
            timestamp: now,
            window: self.config.receive_window.as_bytes(),
            is_syn,
            is_push,
            is_cwr,
            has_timestamps: self.config.timestamps,
            ..TcpSegment::default()
        };
        packet.size = s.wire_size();
        packet.body = Body::Tcp(s);
        true
    }

    #[inline]
    fn is_settled(&self) -> bool {
        self.settled
    }
}
