//! Probing with parity packets: the FEC interval, and the counts behind FEC rate-control correctness (section 5.1:
//! FRCC = (raised + kept) / enabled).

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
    /// Starts FEC with one parity packet per `interval` media packets. Counts as enabled.
    pub(crate) fn start(&mut self, interval: u8) {
        self.interval = Some(interval);
        self.repair_packets = 0;
        if !self.open {
            self.open = true;
            self.enabled += 1;
        }
    }

    /// IncrementFECinterval (sub-algorithm 1c): reduces FEC, down to one parity packet per `longest`.
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

    /// Media packets per parity packet; `None` while FEC is off.
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
