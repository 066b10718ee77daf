//! The parameters of draft-alvestrand-rtcweb-congestion-03.

use weir_units::{DataRate, TimeDelta};

crate::tunables! {
    /// Configuration of both halves. Section numbers are draft-alvestrand-rtcweb-congestion-03's.
    pub struct Config {
        /// RTP clock rate in ticks a second (video: 90,000).
        clock_rate: f64 = 90_000.0, 1_000.0 => 1_000_000.0;
        /// First element of diag(Q), variance of 1 / C in (ms/byte)^2 a frame at 30 frames a second (section 3.3: 10^-10).
        slope_noise: f64 = 1e-10, 0.0 => 1.0;
        /// Second element of diag(Q), variance of m in ms^2 a frame at 30 frames per second (section 3.3: 10^-2).
        offset_noise: f64 = 0.01, 0.0 => 10.0;
        /// Initial 1 / C in ms per byte (not in the draft; libwebrtc: 8 / 512, which is 512 kbit/s).
        initial_slope: f64 = 0.015625, 0.0 => 1.0;
        /// Initial variance of 1 / C (not in the draft; libwebrtc: 100).
        initial_slope_error: f64 = 100.0, 0.000001 => 1_000.0;
        /// Initial variance of m in ms^2 (not in the draft; libwebrtc: 0.1).
        initial_offset_error: f64 = 0.1, 0.000001 => 1_000.0;
        /// alpha, coefficient of the measured noise (section 3.3: 0.001 to 0.1; libwebrtc: 0.01, later 0.002).
        noise_alpha: f64 = 0.01, 0.0001 => 0.5;
        /// Initial noise variance in ms^2 (not in the draft; libwebrtc: 50).
        initial_noise: f64 = 50.0, 1.0 => 10_000.0;
        /// Upper bound of the number of frames by which m(i) is multiplied before it is compared with the threshold
        /// (libwebrtc: 60; the draft compares m(i) itself, which is 1).
        offset_gain: f64 = 60.0, 1.0 => 1_000.0;
        /// gamma_1, threshold of m(i) (section 3.4 gives no number; libwebrtc: 25). It does not adapt.
        threshold: TimeDelta = 25.0, 0.1 => 1_000.0;
        /// Factor of the threshold near the known maximum (the draft: 1; libwebrtc: 0.5).
        near_threshold: f64 = 1.0, 0.01 => 1.0;
        /// gamma_2, time that over-use must last (section 3.4 gives no number; libwebrtc: 100 ms).
        overuse_time: TimeDelta = 100.0, 0.0 => 5_000.0;
        /// gamma_3, frames that over-use must last (section 3.4 gives no number; libwebrtc: 2).
        overuse_frames: u32 = 2.0, 1.0 => 1_000.0;
        /// T, window of the incoming rate (section 3.5 gives no number; libwebrtc: 500 ms).
        rate_window: TimeDelta = 500.0, 100.0 => 5_000.0;
        /// alpha, share of the incoming rate kept on over-use (section 3.5: 0.8 to 0.95; libwebrtc: 0.9).
        beta: f64 = 0.9, 0.5 => 0.99;
        /// alpha near the known maximum (libwebrtc: 0.95).
        near_beta: f64 = 0.95, 0.5 => 0.99;
        /// Relative increase of the estimate per second at long response times (section 3.5: 0.001; libwebrtc: 0.005).
        least_increase: f64 = 0.005, 0.0 => 1.0;
        /// B, the further increase at short response times (section 3.5 gives no number; libwebrtc: 0.0407).
        fast_increase: f64 = 0.0407, 0.0 => 1.0;
        /// Multiple of the increase before the maximum is known (the draft: 1; libwebrtc: 3).
        unknown_increase: f64 = 1.0, 0.1 => 10.0;
        /// Multiple of the increase near the known maximum (the draft: 1; libwebrtc: 0.5).
        near_increase: f64 = 1.0, 0.1 => 10.0;
        /// Additive increase per second (libwebrtc: 1 kbit/s with each update; the draft: none).
        increase_step: DataRate = 1.0, 0.0 => 1_000.0;
        /// Bound of the estimate as a multiple of the incoming rate (section 3.5: 1.5). It stops the increase but does
        /// not lower the estimate, as in libwebrtc.
        incoming_bound: f64 = 1.5, 1.0 => 100.0;
        /// Incoming rate up to which that bound does not apply (libwebrtc: 100 kbit/s; the draft: 0), ...
        unbound_incoming: DataRate = 0.0, 0.0 => 100_000.0;
        /// ... if the estimate is no more than this (libwebrtc: 150 kbit/s; the draft: 0).
        unbound_estimate: DataRate = 0.0, 0.0 => 100_000.0;
        /// Interval of TMMBR messages (1 s, as described by Nagy et al., MMSys 2014, section 2; libwebrtc: 1 s).
        interval: TimeDelta = 1_000.0, 50.0 => 10_000.0;
        /// Whether a decrease is reported at once instead of at the next interval (libwebrtc's REMB: 1).
        early: bool = 0.0, 0.0 => 1.0;
        /// Loss below which the sender's estimate rises (section 4: 0.02).
        low_loss: f64 = 0.02, 0.0 => 1.0;
        /// Loss above which the sender's estimate falls (section 4: 0.1).
        high_loss: f64 = 0.1, 0.0 => 1.0;
        /// Increase with each report of little loss, after 1 kbit/s has been added (section 4: 1.05; libwebrtc: 1.08).
        loss_increase: f64 = 1.05, 1.0 => 2.0;
        /// Whether the TFRC rate bounds the decrease from below (section 4: 1).
        tfrc_bound: bool = 1.0, 0.0 => 1.0;
        /// Packet size in TFRC's equation, in bytes (libwebrtc: 1,000); 0 for the mean packet sent.
        tfrc_packet: u32 = 0.0, 0.0 => 65_535.0;
        /// Whether a report of high loss may raise the estimate to the TFRC rate (libwebrtc: 1).
        tfrc_raises: bool = 0.0, 0.0 => 1.0;
        /// Time without reports that counts as a report of complete loss (section 4 leaves it open; libwebrtc has no such
        /// rule); 0 disables it.
        feedback_timeout: TimeDelta = 5_000.0, 0.0 => 120_000.0;
        /// Pacing rate as a multiple of the media rate (not in the draft; 2.5 as in [`GccRemb`](crate::papers::GccRemb)).
        pacing_factor: f64 = 2.5, 1.0 => 100.0;
    }
}
