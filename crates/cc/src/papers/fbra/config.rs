//! The parameters of FBRA.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration. Section numbers are those of M. Nagy et al., "Congestion Control using FEC for Conversational
    /// Multimedia Communication" (MMSys 2014); "guess" marks a value that the paper does not give.
    pub struct Config {
        /// alpha_stay, against the high watermark, in STAY and PROBE (section 4.3: 1.1).
        alpha_stay: f64 = 1.1, 1.0 => 10.0;
        /// alpha_down in PROBE (section 4.3: 1.6).
        alpha_down_probe: f64 = 1.6, 1.0 => 10.0;
        /// alpha_down in UP (section 4.3: 1.4).
        alpha_down_up: f64 = 1.4, 1.0 => 10.0;
        /// alpha_undershoot in DOWN (section 4.3: 2.0).
        alpha_undershoot: f64 = 2.0, 1.0 => 10.0;
        /// beta, against the low watermark, in PROBE (section 4.3: 1.2).
        beta: f64 = 1.2, 1.0 => 10.0;
        /// Percentile of the delay history that is the low watermark (section 4.1: 40).
        low_percentile: f64 = 40.0, 0.0 => 100.0;
        /// Percentile of the delay history that is the high watermark (section 4.1: 80).
        high_percentile: f64 = 80.0, 0.0 => 100.0;
        /// Number of reports in the delay history, which excludes those with loss or discard (guess: 1,000, minutes;
        /// the paper gives no bound).
        history: u32 = 1_000.0, 1.0 => 5_000.0;
        /// Whether the current delay is the mean of the interval instead of its last packet's (guess: no).
        mean_delay: bool = 0.0, 0.0 => 1.0;
        /// Last share of the interval's packets in which a loss or discard is recent (guess: 0.5; section 4.1 says
        /// "later").
        recent_share: f64 = 0.5, 0.0 => 1.0;
        /// Share of the rate kept by undershooting after the subtraction (section 4.4: 90 %).
        undershoot_share: f64 = 0.9, 0.1 => 1.0;
        /// Share of the goodput stored at undershooting that bouncing back restores (section 4.4: 90 %).
        bounce_share: f64 = 0.9, 0.0 => 1.0;
        /// Length of the disabled period in reporting intervals (section 4.4: "a bit more than" one; guess: 1.25). It
        /// always includes the next report.
        disabled_intervals: f64 = 1.25, 0.0 => 10.0;
        /// Share of the highest rate of the last 2 s above which STAY lasts one more report (section 4.3: 90 %).
        stable_share: f64 = 0.9, 0.0 => 1.0;
        /// Window of the highest rate (section 4.2: 2 s).
        rate_window: TimeDelta = 2_000.0, 100.0 => 60_000.0;
        /// Fewest media packets per parity packet, those of the first probe (section 4.2: 2; figure 6: nine parity packets in
        /// the first second).
        fec_interval_min: u32 = 2.0, 2.0 => 100.0;
        /// Media packets per parity packet at a low rate (calibrated: 7, by figure 6, where rates below about 100 kbit/s rise
        /// by an eighth with each probe).
        fec_interval_low: u32 = 7.0, 2.0 => 100.0;
        /// Most media packets per parity packet, at a high rate (section 4.2: 14; in figure 6 a fifteenth with each probe).
        fec_interval_max: u32 = 14.0, 2.0 => 100.0;
        /// A rate is high from this share of the initial goodput and of the highest rate of the last 2 s (section 4.2 names
        /// both; calibrated: 0.8, by figure 6, where the rise changes near 102 kbit/s with an initial goodput of 128).
        high_rate_share: f64 = 0.8, 0.0 => 100.0;
        /// Repair packets of a block: 1 is parity, more are Reed-Solomon at the same rate, over as many times the FEC interval
        /// (section 4.2: parity; section 7 leaves "more complex FEC schemes" to the future).
        fec_repair: u32 = 1.0, 1.0 => 16.0;
        /// Repair packets that must have been sent before PROBE may lead to UP (guess: 0, the next report decides in
        /// any case).
        min_repair_packets: u32 = 0.0, 0.0 => 100.0;
        /// A report is early if its interval is below this multiple of the median round-trip time (section 4.3: 1.5).
        early_round_trips: f64 = 1.5, 0.0 => 10.0;
        /// Time without reports after which the rate is halved (section 4.3: 2 s).
        silence: TimeDelta = 2_000.0, 100.0 => 60_000.0;
        /// Pacing rate as a multiple of the media rate (guess: 10, so that a frame is sent almost at once as in ns-2).
        pacing_factor: f64 = 10.0, 1.1 => 1_000.0;
    }
}
