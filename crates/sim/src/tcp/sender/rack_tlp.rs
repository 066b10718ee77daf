//! Loss detection by RACK-TLP (RFC 8985): its timers, the response to its losses, and the choice of the next segment.

use super::loss::Kind;
use super::{Phase, Sender};
use crate::tcp::avoidance::{AckInfo, Congestion, CongestionAvoidance};
use crate::tcp::rack::{Ack, Lost, Rack};
use crate::tcp::tail_loss_probe::TailLossProbe;
use crate::tcp_segment::TcpSegment;
use weir_units::{TimeDelta, Timestamp};

/// The role of the sender's only timer, of three (RFC 8985, section 8).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Timer {
    #[default]
    Retransmission,
    /// RACK's reordering timer.
    Reordering,
    /// The probe timeout.
    Probe,
}

/// The state of RACK-TLP at a sender.
#[derive(Clone, Default, Debug)]
pub(super) struct RackTlp {
    rack: Rack,
    probe: TailLossProbe,
    timer: Timer,
    /// When each would expire.
    retransmission_at: Option<Timestamp>,
    reordering_at: Option<Timestamp>,
    probe_at: Option<Timestamp>,
    /// The next segment is a probe.
    is_probe_due: bool,
    /// When the window was last reduced for a loss.
    reduced_at: Timestamp,
}

impl RackTlp {
    /// A further transfer begins on the connection.
    pub(super) fn restart(&mut self) {
        self.rack.restart();
        (self.retransmission_at, self.reordering_at, self.probe_at) = (None, None, None);
        self.is_probe_due = false;
    }
    pub(super) fn in_flight(&self) -> u64 {
        self.rack.in_flight()
    }
    pub(super) fn has_lost(&self) -> bool {
        self.rack.has_lost()
    }
    pub(super) fn newly_lost(&self) -> &[Lost] {
        self.rack.newly_lost()
    }
    /// The receiver has discarded data that it had reported.
    pub(super) fn renege(&mut self) {
        self.rack.renege();
    }
    pub(super) fn on_rtt(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.rack.on_rtt(now, rtt);
        self.probe.on_rtt();
    }
    /// Fast recovery or the recovery from a timeout begins.
    pub(super) fn on_recovery(&mut self, now: Timestamp) {
        self.probe.reset();
        (self.reduced_at, self.probe_at) = (now, None);
    }
}

impl Sender {
    /// Whether RACK has marked a segment as lost that is not yet retransmitted.
    pub(super) fn has_lost(&self) -> bool {
        self.rack_tlp.as_ref().is_some_and(|r| r.has_lost())
    }
    fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// Takes in an acknowledgement, before the scoreboard has.
    #[cold]
    #[inline(never)]
    pub(super) fn take_ack_by_rack(&mut self, now: Timestamp, s: &TcpSegment) {
        let dsack = s.dsack();
        self.stats.dsacks += u64::from(dsack.is_some());
        let Some(r) = &mut self.rack_tlp else { return };
        let is_bare_duplicate = s.ack == self.una && s.sack_count == 0 && !s.is_syn;
        let has_repaired = r.probe.on_ack(s.ack, dsack, is_bare_duplicate);
        if matches!(self.phase, Phase::Idle | Phase::Opening) {
            return;
        }
        // The probe has acted, or has become unnecessary.
        r.is_probe_due = false;
        let in_recovery = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let ack = Ack {
            now,
            una: s.ack,
            high: self.high,
            blocks: s.sack_blocks(),
            echo: self.config.timestamps.then_some(s.echo),
            has_dsack: dsack.is_some(),
            ends_recovery: in_recovery && s.ack >= self.recovery_point,
        };
        r.rack.on_ack(&ack, &self.board);
        // Algorithms that model the path respond to rates of loss, which one segment does not change.
        if has_repaired && self.phase == Phase::Open && self.model.is_none() {
            self.reduce(Congestion::Loss);
            self.window.cwnd = self.window.ssthresh;
            self.ecn_point = self.high;
        }
    }

    /// Processes an acknowledgement after the scoreboard has taken it in, with a window set by losses and
    /// acknowledgements. `reduces` states that marks have reduced it.
    #[cold]
    #[inline(never)]
    pub(super) fn on_ack_by_rack(&mut self, ack: &AckInfo, delivered: u64, reduces: bool) {
        let was_open = self.phase == Phase::Open;
        if self.phase == Phase::Loss && ack.acked > 0 {
            self.grow(&AckInfo { was_limited: true, ..*ack });
        }
        if self.is_recovering() && self.una >= self.recovery_point {
            if self.phase == Phase::Recovery && self.config.prr {
                self.window.cwnd = self.window.ssthresh;
            }
            self.phase = Phase::Open;
            self.resend_first = false;
        }
        self.detect_losses(ack.now);
        if !self.respond_to_losses(ack.now) && was_open && ack.acked > 0 && !reduces {
            self.avoidance.measure(&mut self.window, ack);
            self.grow(ack);
        }
        self.count_pipe();
        if self.config.prr && self.phase == Phase::Recovery {
            self.window.cwnd = self.prr.window(delivered, self.pipe, self.window.ssthresh, self.window.mss);
        }
        self.arm_after_ack(ack.now, ack.acked > 0);
    }

    /// Marks what is lost by now.
    pub(super) fn detect_losses(&mut self, now: Timestamp) {
        let (srtt, in_recovery) = (self.rto.srtt(), self.is_recovering());
        if let Some(r) = &mut self.rack_tlp {
            r.reordering_at = r.rack.detect(now, srtt, in_recovery);
        }
    }

    /// Enters fast recovery, or responds again to the loss of what was sent since the last response; returns whether
    /// it has.
    fn respond_to_losses(&mut self, now: Timestamp) -> bool {
        let Some(r) = &self.rack_tlp else { return false };
        let must = match self.phase {
            Phase::Open => r.has_lost(),
            // Proportional rate reduction has one threshold in a recovery (RFC 6937, section 3); without it, a lost
            // retransmission is a second indication of congestion (RFC 8985, section 9.3).
            Phase::Recovery if self.config.prr => false,
            Phase::Recovery | Phase::Loss => r.newly_lost().iter().any(|l| match l.is_retransmission {
                true => l.sent >= r.reduced_at,
                false => l.start >= self.recovery_point,
            }),
            Phase::Idle | Phase::Opening => false,
        };
        if must {
            self.enter_recovery(now);
        }
        must
    }

    /// The timer expired.
    #[cold]
    #[inline(never)]
    pub(super) fn on_timer_by_rack(&mut self, now: Timestamp) {
        let rto_at = now + self.rto.rto();
        let Some(r) = &mut self.rack_tlp else { return };
        let timer = if self.phase == Phase::Opening { Timer::Retransmission } else { r.timer };
        match timer {
            Timer::Retransmission => return self.on_retransmission_timeout(now),
            Timer::Reordering => {
                r.retransmission_at = Some(rto_at);
                self.detect_losses(now);
                if !self.lose_by_model(now) {
                    self.respond_to_losses(now);
                }
                self.count_pipe();
            }
            // The retransmission timer follows in any case (section 7.3).
            Timer::Probe => {
                r.is_probe_due = r.probe.is_allowed();
                (r.probe_at, r.retransmission_at) = (None, Some(rto_at));
            }
        }
        self.arm();
    }

    /// The retransmission timer expired: marks what is lost.
    pub(super) fn mark_on_timeout(&mut self, now: Timestamp) {
        let (srtt, in_recovery) = (self.rto.srtt(), self.is_recovering());
        if let Some(r) = &mut self.rack_tlp {
            r.rack.on_timeout(now, srtt, in_recovery);
        }
    }
    /// The same, once the window is set and the timeout has doubled.
    pub(super) fn arm_after_timeout(&mut self, now: Timestamp) {
        let rto_at = now + self.rto.rto();
        if let Some(r) = &mut self.rack_tlp {
            r.on_recovery(now);
            (r.retransmission_at, r.reordering_at) = (Some(rto_at), None);
            r.is_probe_due = false;
        }
        self.resend_first = true;
        self.count_pipe();
        self.arm();
    }

    /// Sets the timers after an acknowledgement, which was of new data if `is_new`.
    pub(super) fn arm_after_ack(&mut self, now: Timestamp, is_new: bool) {
        if self.rack_tlp.is_none() {
            return;
        }
        let (rto_at, probe_at) = (now + self.rto.rto(), now + self.probe_timeout());
        let Some(r) = &mut self.rack_tlp else { return };
        if is_new {
            // RFC 6298, section 5.2 and 5.3.
            (r.retransmission_at, r.probe_at) = (Some(rto_at), Some(probe_at));
        }
        if self.una >= self.high {
            (r.retransmission_at, r.reordering_at) = (None, None);
        }
        if self.una >= self.high || self.phase != Phase::Open || r.rack.sacked() > 0 {
            r.probe_at = None;
        }
        self.arm();
    }

    /// Sets the timer to that of the three which is due (RFC 8985, sections 7.2 and 8).
    fn arm(&mut self) {
        let Some(r) = &mut self.rack_tlp else { return };
        (r.timer, self.timer) = match (r.reordering_at, r.probe_at) {
            (Some(at), _) => (Timer::Reordering, Some(at)),
            (None, Some(at)) => (Timer::Probe, Some(r.retransmission_at.map_or(at, |rto| rto.min(at)))),
            (None, None) => (Timer::Retransmission, r.retransmission_at),
        };
    }

    fn probe_timeout(&self) -> TimeDelta {
        let is_one_segment = self.high - self.una <= self.window.mss;
        TailLossProbe::timeout(self.rto.srtt(), is_one_segment, self.config.ack_delay)
    }

    /// The next segment to send: a probe, what is lost, or new data.
    #[cold]
    #[inline(never)]
    pub(super) fn choose_by_rack(&mut self) -> Option<(u64, u64, Kind)> {
        let mss = self.window.mss;
        let r = self.rack_tlp.as_mut()?;
        let len = mss.min(self.limit.saturating_sub(self.high));
        let new = (len > 0 && self.high + len <= self.allowed).then_some((self.high, len, Kind::New));
        if r.is_probe_due {
            return new.or(r.rack.last_segment().map(|(start, len)| (start, len, Kind::Again)));
        }
        let next = r.rack.first_lost().map(|(start, len)| (start, len, Kind::Again)).or(new)?;
        let is_forced = self.resend_first && next.2 == Kind::Again;
        (is_forced || self.pipe + next.1 <= self.window.cwnd).then_some(next)
    }

    /// Records a segment as sent.
    #[cold]
    #[inline(never)]
    pub(super) fn sent_by_rack(&mut self, now: Timestamp, start: u64, len: u64, kind: Kind) {
        let (rto_at, probe_at) = (now + self.rto.rto(), now + self.probe_timeout());
        let Some(r) = &mut self.rack_tlp else { return };
        r.rack.on_sent(now, start, start + len);
        self.pipe = r.in_flight();
        // A retransmission of the first segment restarts the timer that is to follow it.
        if r.retransmission_at.is_none() || start == self.una {
            r.retransmission_at = Some(rto_at);
        }
        if std::mem::take(&mut r.is_probe_due) {
            r.probe.on_sent(self.high, kind != Kind::New);
            self.stats.probes += 1;
        } else if kind == Kind::New && self.phase == Phase::Open && r.rack.sacked() == 0 {
            r.probe_at = Some(probe_at);
        }
        self.arm();
    }
}
