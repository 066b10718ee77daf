//! Probing with parity packets: the FEC interval, and the counts that FEC rate-control correctness is read from
//! (section 5.1: FRCC = (raised + kept) / enabled).

/// How a probe ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// The media took the probe's rate, and no congestion came of it.
    Raised,
    /// Neither raised nor lowered.
    Kept,
    /// Congestion lowered the rate.
    Failed,
}

/// A probe, if there is one, and the counts of all before.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Probing {
    interval: Option<u8>,
    /// Whether a probe waits to be judged; it may, after FEC has gone off.
    open: bool,
    repair_packets: u32,
    enabled: u64,
    raised: u64,
    kept: u64,
    failed: u64,
}

impl Probing {
    /// One parity packet for each `interval` media packets from now on. Counts as enabling.
    pub(crate) fn start(&mut self, interval: u8) {
        self.interval = Some(interval);
        self.repair_packets = 0;
        if !self.open {
            self.open = true;
            self.enabled += 1;
        }
    }

    /// IncrementFECinterval (sub-algorithm 1c): less FEC, down to one packet for each `longest`.
    pub(crate) fn lessen(&mut self, longest: u32) {
        if let Some(n) = self.interval.filter(|&n| u32::from(n) < longest) {
            self.interval = Some(n.saturating_add(1));
        }
    }

    /// FEC goes off; what came of it shows later.
    pub(crate) fn stop(&mut self) {
        self.interval = None;
    }

    /// FEC goes off, and the open probe, if there is one, ended so.
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

    /// FEC goes off, and the open probe does not count: nothing was sent.
    pub(crate) fn withdraw(&mut self) {
        self.interval = None;
        self.enabled -= u64::from(core::mem::take(&mut self.open));
    }

    /// A repair packet has left.
    pub(crate) fn on_repair(&mut self) {
        self.repair_packets = self.repair_packets.saturating_add(1);
    }

    /// Repair packets since the probe began.
    pub(crate) fn repair_packets(&self) -> u32 {
        self.repair_packets
    }

    /// Media packets to a parity packet; `None` where FEC is off.
    pub(crate) fn interval(&self) -> Option<u8> {
        self.interval
    }

    /// For plots and for FRCC: the interval (0 where FEC is off) and the counts since the start.
    pub(crate) fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("fec_interval", self.interval.map_or(0.0, f64::from));
        out("fec_enabled", self.enabled as f64);
        out("fec_raised", self.raised as f64);
        out("fec_kept", self.kept as f64);
        out("fec_failed", self.failed as f64);
    }
}

/// The interval at `share` of the way from the shortest to the longest.
pub(crate) fn interval(share: f64, shortest: u32, longest: u32) -> u8 {
    let (shortest, longest) = (f64::from(shortest), f64::from(longest.max(shortest)));
    libm::round(shortest + share.clamp(0.0, 1.0) * (longest - shortest)) as u8
}
