//! Probing with repair packets: the FEC interval, the code, and the counts behind FEC rate-control correctness (section 5.1:
//! FRCC = (raised + kept) / enabled).

use crate::controller::RepairPlan;

/// Repair packets at the rate of one per `interval` media packets: parity, or Reed-Solomon blocks with `repair` of them where that is more
/// than one. A block has at most 255 packets.
pub(crate) fn plan(interval: u8, repair: u32) -> RepairPlan {
    match block(interval, repair) {
        Some((block, repair)) => RepairPlan::ReedSolomon { block, repair },
        None => RepairPlan::Parity { interval },
    }
}

/// The same in reserve, while nothing is probed.
pub(crate) fn standby(interval: u8, repair: u32) -> RepairPlan {
    match block(interval, repair) {
        Some((block, repair)) => RepairPlan::BlockStandby { block, repair },
        None => RepairPlan::Standby { interval },
    }
}

/// Packets and repair packets of a block; `None` for one of parity.
fn block(interval: u8, repair: u32) -> Option<(u8, u8)> {
    let group = u32::from(interval) + 1;
    let repair = repair.min(u32::from(u8::MAX) / group);
    (repair > 1).then_some(((group * repair) as u8, repair as u8))
}

/// The outcome of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// The media took over the probe's rate without congestion.
    Raised,
    /// The rate was neither raised nor lowered.
    Kept,
    /// Congestion lowered the rate.
    Failed,
}

/// The current probe, if any, and the counts of all earlier ones.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Probing {
    interval: Option<u8>,
    /// Whether a probe awaits its outcome, possibly after FEC has stopped.
    open: bool,
    repair_packets: u32,
    enabled: u64,
    raised: u64,
    kept: u64,
    failed: u64,
}

impl Probing {
    /// Starts FEC with one repair packet per `interval` media packets. Counts as enabled.
    pub(crate) fn start(&mut self, interval: u8) {
        self.interval = Some(interval);
        self.repair_packets = 0;
        if !self.open {
            self.open = true;
            self.enabled += 1;
        }
    }

    /// IncrementFECinterval (sub-algorithm 1c): reduces FEC, down to one repair packet per `longest`.
    pub(crate) fn lessen(&mut self, longest: u32) {
        if let Some(n) = self.interval.filter(|&n| u32::from(n) < longest) {
            self.interval = Some(n.saturating_add(1));
        }
    }

    /// Stops FEC; the outcome follows later.
    pub(crate) fn stop(&mut self) {
        self.interval = None;
    }

    /// Stops FEC and records the outcome of the open probe, if any.
    pub(crate) fn judge(&mut self, outcome: Outcome) {
        self.interval = None;
        if core::mem::take(&mut self.open) {
            match outcome {
                Outcome::Raised => self.raised += 1,
                Outcome::Kept => self.kept += 1,
                Outcome::Failed => self.failed += 1,
            }
        }
    }

    /// Stops FEC and removes the open probe from the counts, since nothing was sent.
    pub(crate) fn withdraw(&mut self) {
        self.interval = None;
        self.enabled -= u64::from(core::mem::take(&mut self.open));
    }

    /// A repair packet has been sent.
    pub(crate) fn on_repair(&mut self) {
        self.repair_packets = self.repair_packets.saturating_add(1);
    }

    /// Repair packets since the probe began.
    pub(crate) fn repair_packets(&self) -> u32 {
        self.repair_packets
    }

    /// Whether no probe has begun yet.
    pub(crate) fn has_none(&self) -> bool {
        self.enabled == 0
    }

    /// Media packets per repair packet; `None` while FEC is off.
    pub(crate) fn interval(&self) -> Option<u8> {
        self.interval
    }

    /// For plots and FRCC: the interval (0 while FEC is off) and the counts since the start.
    pub(crate) fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("fec_interval", self.interval.map_or(0.0, f64::from));
        out("fec_enabled", self.enabled as f64);
        out("fec_raised", self.raised as f64);
        out("fec_kept", self.kept as f64);
        out("fec_failed", self.failed as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_rate_of_parity() {
        assert_eq!(plan(7, 1), RepairPlan::Parity { interval: 7 });
        assert_eq!(standby(14, 1), RepairPlan::Standby { interval: 14 });
        for (interval, repair, expected) in [(2, 2, (6, 2)), (14, 4, (60, 4)), (100, 16, (202, 2)), (60, 16, (244, 4))]
        {
            let (block, repair) = match plan(interval, repair) {
                RepairPlan::ReedSolomon { block, repair } => (block, repair),
                other => panic!("{other:?}"),
            };
            assert_eq!((block, repair), expected);
            assert_eq!(u32::from(block - repair), u32::from(interval) * u32::from(repair));
        }
        // No two fit.
        assert_eq!(plan(200, 2), RepairPlan::Parity { interval: 200 });
        assert_eq!(standby(14, 2), RepairPlan::BlockStandby { block: 30, repair: 2 });
    }
}
