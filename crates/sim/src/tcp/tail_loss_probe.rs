//! The tail loss probe (RFC 8985, section 7): its timeout, when one may be sent, and what its acknowledgement shows.

use crate::tcp_segment::SackBlock;
use weir_units::TimeDelta;

/// The probe timeout without a round-trip time estimate (section 7.2).
const PTO_WITHOUT_SRTT: TimeDelta = TimeDelta::from_secs(1);

/// The state of TLP (section 5.3).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct TailLossProbe {
    /// End of what had been sent with the unacknowledged probe (TLP.end_seq).
    end: Option<u64>,
    /// Whether that probe was a retransmission (TLP.is_retrans).
    is_retransmission: bool,
    /// Whether a round-trip time was measured since the last probe.
    has_sample: bool,
}

impl TailLossProbe {
    /// Fast recovery or the recovery from a timeout begins (TLP_init, section 7.1).
    pub(super) fn reset(&mut self) {
        (self.end, self.is_retransmission) = (None, false);
    }
    pub(super) fn on_rtt(&mut self) {
        self.has_sample = true;
    }

    /// The probe timeout (TLP_calc_PTO, section 7.2), without its bound by the retransmission timer. `ack_delay` is the
    /// longest delay of an acknowledgement (TLP.max_ack_delay).
    pub(super) fn timeout(srtt: Option<TimeDelta>, is_one_segment: bool, ack_delay: TimeDelta) -> TimeDelta {
        match srtt {
            None => PTO_WITHOUT_SRTT,
            Some(srtt) if is_one_segment => srtt * 2 + ack_delay,
            Some(srtt) => srtt * 2,
        }
    }

    /// Whether a probe may be sent when the probe timeout expires (section 7.3).
    pub(super) fn is_allowed(&self) -> bool {
        self.end.is_none() && self.has_sample
    }
    /// A probe was sent, with data up to `high` sent by now.
    pub(super) fn on_sent(&mut self, high: u64, is_retransmission: bool) {
        *self = Self { end: Some(high), is_retransmission, has_sample: false };
    }

    /// Takes in an acknowledgement up to `ack` (TLP_process_ack, section 7.4.2): its D-SACK block, if it has one, and
    /// whether it is a duplicate without SACK blocks. Returns whether the probe has repaired a loss, to which congestion
    /// control must respond.
    pub(super) fn on_ack(&mut self, ack: u64, dsack: Option<SackBlock>, is_bare_duplicate: bool) -> bool {
        let Some(end) = self.end.filter(|&end| ack >= end) else { return false };
        // Without a loss, the probe's new data is delivered, or the retransmission was received twice.
        let is_unneeded = !self.is_retransmission || dsack.is_some_and(|d| d.end == end);
        let has_repaired = !is_unneeded && ack > end;
        if is_unneeded || has_repaired || is_bare_duplicate {
            self.end = None;
        }
        has_repaired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    fn probed(is_retransmission: bool) -> TailLossProbe {
        let mut p = TailLossProbe::default();
        p.on_rtt();
        assert!(p.is_allowed());
        p.on_sent(1_000, is_retransmission);
        p.on_rtt();
        assert!(!p.is_allowed(), "one is in flight");
        p
    }

    #[test]
    fn the_timeout_is_two_round_trips() {
        assert_eq!(TailLossProbe::timeout(None, true, MS(200)), MS(1_000));
        assert_eq!(TailLossProbe::timeout(Some(MS(40)), false, MS(200)), MS(80));
        assert_eq!(TailLossProbe::timeout(Some(MS(40)), true, MS(200)), MS(280));
    }

    #[test]
    fn each_probe_needs_a_new_sample() {
        let mut p = TailLossProbe::default();
        assert!(!p.is_allowed());
        p.on_rtt();
        p.on_sent(1_000, false);
        assert!(!p.on_ack(1_000, None, false));
        assert!(!p.is_allowed(), "no sample since");
        p.on_rtt();
        assert!(p.is_allowed());
    }

    #[test]
    fn an_acknowledged_probe_of_new_data_is_no_loss() {
        let mut p = probed(false);
        assert!(!p.on_ack(999, None, false) && !p.is_allowed());
        assert!(!p.on_ack(2_000, None, false) && p.is_allowed());
    }

    #[test]
    fn a_retransmission_received_twice_is_no_loss() {
        let mut by_dsack = probed(true);
        let block = |start, end| Some(SackBlock { start, end });
        assert!(!by_dsack.on_ack(1_000, block(0, 500), false) && !by_dsack.is_allowed(), "of another segment");
        assert!(!by_dsack.on_ack(1_000, block(500, 1_000), false) && by_dsack.is_allowed());
        let mut by_duplicate = probed(true);
        assert!(!by_duplicate.on_ack(1_000, None, false) && !by_duplicate.is_allowed());
        assert!(!by_duplicate.on_ack(1_000, None, true) && by_duplicate.is_allowed());
    }

    #[test]
    fn a_retransmission_received_once_has_repaired_a_loss() {
        let mut p = probed(true);
        assert!(!p.on_ack(1_000, None, false));
        assert!(p.on_ack(1_001, None, false));
        assert!(!p.on_ack(2_000, None, false), "it is reported once");
        let mut p = probed(true);
        p.reset();
        assert!(!p.on_ack(2_000, None, false), "recovery has responded");
    }
}
