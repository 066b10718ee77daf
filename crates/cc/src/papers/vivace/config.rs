//! Parameters.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of [`Vivace`](crate::papers::Vivace). "Program" is the authors' for the paper, PCC-Uspace at 98ac946.
    pub struct Config {
        /// Exponent of the rate in the utility (t of the paper).
        exponent: f64 = 0.9, 0.1 => 1.0;
        /// Weight of the delay's growth (b).
        latency_weight: f64 = 900.0, 0.0 => 1e6;
        /// Weight of loss (c): 11.35 tolerates 5 %.
        loss_weight: f64 = 11.35, 0.0 => 1e6;
        /// Share of the rate by which trials differ from it (program: `kDelta`).
        trial: f64 = 0.05, 0.005 => 0.5;
        /// Step in Mbit/s for a gradient of one unit of utility a Mbit/s (program: `factor`).
        step: f64 = 1.0, 0.001 => 100.0;
        /// Least step as a share of the rate. The program has 0.5 Mbit/s.
        least_step: f64 = 0.01, 0.0 => 0.5;
        /// Greatest step as a share of the rate (program: `initial_boundary`) ...
        boundary: f64 = 0.05, 0.001 => 1.0;
        /// ... and how much more after each step that it has cut (program: `boundary_increment`; the paper has 0.1).
        boundary_increment: f64 = 0.06, 0.0 => 1.0;
        /// Least duration of an interval. The program's is a round trip.
        least_interval: TimeDelta = 50.0, 5.0 => 5_000.0;
        /// Share of its rate that must be sent in an interval for it to decide anything. Weir's: sources of video vary.
        least_fill: f64 = 0.8, 0.0 => 1.0;
        /// Pacing as a multiple of the rate. Weir's: at 1 a frame's last packet leaves when the next frame comes.
        pacing: f64 = 1.2, 1.0 => 10.0;
    }
}
