//! Delay of recovered packets: from the departure of a media packet to its recovery, by repair or retransmission.

use super::call::Call;
use crate::histogram::Histogram;
use crate::results::Distribution;
use crate::scenario::{Clocks, RtpFlow};
use std::sync::{Arc, Mutex, PoisonError};
use weir_session::{Observer, RepairChoice, Seen};
use weir_units::Timestamp;
use weir_wire::rtp::PacketView;

/// Packets whose departure is remembered: many seconds of a call.
const REMEMBERED: usize = 1 << 12;

#[derive(Debug)]
struct Delays {
    /// Number and departure of each packet, by number modulo [`REMEMBERED`].
    sent: Vec<(u16, Timestamp)>,
    delays: Histogram,
}

/// The delays of a flow, which its two ends share.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryDelay(Arc<Mutex<Delays>>);

impl RecoveryDelay {
    /// Watches a call of one stream on one path for which the scenario chooses how losses are recovered, if its ends have one
    /// clock.
    pub(super) fn watch(rtp: &RtpFlow, call: &mut Call) -> Option<Self> {
        let recovers = rtp.resilience.is_some() || rtp.sending.repair != RepairChoice::Controller;
        let is_plain = rtp.streams.len() < 2 && rtp.multipath.is_none() && rtp.clocks == Clocks::default();
        if !recovers || !is_plain {
            return None;
        }
        let sent = vec![(0, Timestamp::ZERO); REMEMBERED];
        let all = Self(Arc::new(Mutex::new(Delays { sent, delays: Histogram::new() })));
        call.sender.set_observer(Some(Box::new(all.clone())));
        call.receiver.set_observer(Some(Box::new(all.clone())));
        Some(all)
    }
    /// The delays so far, in ms; `None` if nothing was recovered.
    pub(super) fn distribution(&self) -> Option<Distribution> {
        Distribution::of(&self.0.lock().unwrap_or_else(PoisonError::into_inner).delays, 1e-6)
    }
}

impl Observer for RecoveryDelay {
    fn on_rtp_sent(&mut self, packet: &Seen<'_>) {
        if let Ok(rtp) = PacketView::parse_header(packet.bytes) {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.sent[usize::from(rtp.sequence()) % REMEMBERED] = (rtp.sequence(), packet.now);
        }
    }
    fn on_rtp_recovered(&mut self, packet: &Seen<'_>) {
        if let Ok(rtp) = PacketView::parse_header(packet.bytes) {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (number, departure) = all.sent[usize::from(rtp.sequence()) % REMEMBERED];
            if number == rtp.sequence() {
                all.delays.record(packet.now.saturating_since(departure).as_nanos().unsigned_abs());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtp::Header;

    fn seen(bytes: &[u8], at: i64) -> Seen<'_> {
        Seen { now: Timestamp::from_millis(at), bytes, payload: 0, source: None }
    }

    #[test]
    fn delays_count_from_the_departure() {
        let sent = vec![(0, Timestamp::ZERO); REMEMBERED];
        let mut all = RecoveryDelay(Arc::new(Mutex::new(Delays { sent, delays: Histogram::new() })));
        let packet = |sequence| {
            let mut bytes = vec![];
            Header { sequence, ..Header::default() }.write_into(&mut bytes);
            bytes
        };
        assert_eq!(all.distribution(), None);
        for n in 0..100_u16 {
            all.on_rtp_sent(&seen(&packet(65_500_u16.wrapping_add(n)), 100 + 10 * i64::from(n)));
        }
        for (n, after) in [(10_u16, 30), (60, 50)] {
            all.on_rtp_recovered(&seen(&packet(65_500_u16.wrapping_add(n)), 100 + 10 * i64::from(n) + after));
        }
        // One that is no longer known, or never was.
        all.on_rtp_recovered(&seen(&packet(1_000), 5_000));
        let d = all.distribution().unwrap();
        assert_eq!((d.min, d.max, d.mean), (30.0, 50.0, 40.0));
    }
}
