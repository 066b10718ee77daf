//! Parameters.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of [`Pudica`](crate::papers::Pudica). Defaults are the paper's, but for the last four, which it leaves open.
    pub struct Config {
        /// Smoothed utilisation up to which the bitrate grows by multiples (alpha, section 4.2).
        threshold: f64 = 0.85, 0.1 => 0.99;
        /// Share of the way to (alpha + 1) / 2 that an increase takes (gamma_MI, equation 8).
        increase: f64 = 0.3, 0.0 => 2.0;
        /// Multiplicative decrease in each step between alpha and one (gamma_MD, equation 10).
        decrease: f64 = 0.05, 0.0 => 0.5;
        /// Reduction for one frame after a frame with a utilisation above one (zeta, section 4.3).
        fallback: f64 = 0.15, 0.0 => 0.9;
        /// How much faster than a frame's own queueing delay the next one is sent (gamma_rho, equation 2).
        pacing: f64 = 1.25, 1.0 => 10.0;
        /// Probe packets without payload after each frame (N_packet, section 4.1).
        probes: u32 = 4.0, 0.0 => 8.0;
        /// Age up to which a frame counts for the smoothed utilisation (T_wd, section 4.2).
        window: TimeDelta = 200.0, 20.0 => 5_000.0;
        /// Age up to which the least delay counts (D_min, section 4.1).
        delay_window: TimeDelta = 10_000.0, 100.0 => 600_000.0;
        /// Time in which a queue is to be gone (section 4.3).
        drain: TimeDelta = 200.0, 10.0 => 5_000.0;
        /// Interval after which the additive increase begins again (section 4.2).
        restart: TimeDelta = 5_000.0, 100.0 => 600_000.0;
        /// Greatest growth in one increase, as a share of the bitrate (xi); the paper has no bound.
        greatest_increase: f64 = 1.0, 0.0 => 100.0;
        /// Greatest step A of the additive increase, as a share of the bitrate; the paper has a bound without a value.
        greatest_step: f64 = 0.25, 0.0 => 100.0;
        /// Most bytes of probe packets, as a share of the frame before them.
        probe_share: f64 = 0.05, 0.0 => 1.0;
        /// Time without a report after which the bitrate is halved. Zero for never.
        feedback_timeout: TimeDelta = 500.0, 0.0 => 60_000.0;
    }
}
