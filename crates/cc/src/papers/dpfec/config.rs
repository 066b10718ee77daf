//! The constants of DP-FEC.

use weir_units::{DataSize, TimeDelta};

crate::tunables! {
    /// Configuration of DP-FEC. Sections and equations are the paper's.
    pub struct Config {
        /// n: packets of a block, media and repair (section 4.1: 127).
        block: u32 = 127, 2 => 255;
        /// Greatest FEC window: repair packets of a block; always limited to n - 1 (section 4.1: 63).
        max_window: u32 = 63, 0 => 254;
        /// SYN time: losses within one are one loss event (section 3.2.2: 10 ms, the assumed RTT).
        syn: TimeDelta = 10.0, 1.0 => 1_000.0;
        /// ResTime: time between decisions on the window (section 3.2.2: 160 ms).
        res_time: TimeDelta = 160.0, 10.0 => 60_000.0;
        /// MinLI: a shorter loss interval signals congestion (section 3.2.2: 35 ms).
        min_li: TimeDelta = 35.0, 0.0 => 60_000.0;
        /// alpha: weight of the previous loss interval against a new sample (section 3.2.2: 0.9).
        alpha: f64 = 0.9, 0.0 => 0.999;
        /// beta: multiplicative decrease of the window on congestion (equation 6: 0.8).
        beta: f64 = 0.8, 0.0 => 1.0;
        /// Threshold FEC Impact: a greater impact on TCP signals congestion (section 3.2.1: 0.1; section 4.4 tries
        /// 0.3).
        threshold: f64 = 0.1, 0.0 => 1_000.0;
        /// Whether the threshold follows the loss interval (section 6: "optimally set a parameter such as Threshold FEC impact
        /// according to network conditions"; no).
        by_conditions: bool = 0, 0 => 1;
        /// With that, the threshold where losses are rare: beside them TCP has room that FEC may take (guess: 0.3, the greater one
        /// of section 4.4). It falls to Threshold FEC Impact at MinLI.
        free_threshold: f64 = 0.3, 0.0 => 1_000.0;
        /// With that, the loss interval from which losses are rare (guess: 350 ms, ten times MinLI).
        free_li: TimeDelta = 350.0, 0.0 => 60_000.0;
        /// Assumed RTT of all TCP flows (section 3.2.1: 10 ms).
        rtt: TimeDelta = 10.0, 1.0 => 10_000.0;
        /// MSS of the TCP flows, and PacketSize of equation 2 (section 3.2.2: 1,460 bytes).
        mss: DataSize = 1_460, 100 => 65_535;
        /// Whether TCP's throughput follows equation 3 instead of equation 2.
        by_equation_3: bool = 0, 0 => 1;
        /// Pacing rate as a multiple of media and repair together; the paper's sender smooths its media itself.
        pacing_factor: f64 = 2.5, 1.0 => 100.0;
    }
}

impl Config {
    /// Threshold FEC Impact at a loss interval.
    pub(super) fn threshold_at(&self, interval: TimeDelta) -> f64 {
        if !self.by_conditions {
            return self.threshold;
        }
        let above = (interval - self.min_li).as_secs_f64();
        let range = (self.free_li - self.min_li).as_secs_f64().max(1e-9);
        self.threshold + (self.free_threshold - self.threshold) * (above / range).clamp(0.0, 1.0)
    }
}
