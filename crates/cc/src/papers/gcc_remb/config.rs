//! The parameters of draft-ietf-rmcat-gcc-02, table 1 and section 6.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of both halves. Section and table numbers are draft-ietf-rmcat-gcc-02's.
    pub struct Config {
        /// burst_time, span of departures in one group (section 5.2, table 1: 5 ms).
        burst_time: TimeDelta = 5.0, 0.1 => 100.0;
        /// q, variance of the state noise in ms^2 (section 5.3, table 1: 10^-3).
        state_noise: f64 = 0.001, 0.000000001 => 10.0;
        /// e(0), initial variance of the estimate in ms^2 (table 1: 0.1).
        initial_error: f64 = 0.1, 0.000001 => 1_000.0;
        /// chi, coefficient of the measured noise (section 5.3: 0.001 to 0.1; libwebrtc 0.01, later 0.002).
        chi: f64 = 0.01, 0.0001 => 0.5;
        /// var_v(0), initial noise variance in ms^2 (not in the draft; libwebrtc: 50).
        initial_noise: f64 = 50.0, 1.0 => 10_000.0;
        /// Upper bound of the number of groups by which m(i) is multiplied before it is compared with the threshold
        /// (libwebrtc: 60). The draft compares m(i) itself, a gain of 1: with groups of 5 ms each would have to wait
        /// 12.5 ms longer than the previous one, and a drop-tail queue fills long before.
        offset_gain: f64 = 60.0, 1.0 => 1_000.0;
        /// del_var_th(0), initial threshold (section 5.4, table 1: 12.5 ms).
        initial_threshold: TimeDelta = 12.5, 0.1 => 600.0;
        /// Least threshold (section 5.4: 6).
        min_threshold: TimeDelta = 6.0, 0.1 => 600.0;
        /// Upper bound of the threshold (section 5.4: 600).
        max_threshold: TimeDelta = 600.0, 0.1 => 10_000.0;
        /// K_u, speed at which the threshold rises, per ms (table 1: 0.01; libwebrtc: 0.0087).
        k_up: f64 = 0.01, 0.0 => 1.0;
        /// K_d, speed at which the threshold falls, per ms (table 1: 0.00018; libwebrtc: 0.039, against the draft's K_u
        /// > K_d).
        k_down: f64 = 0.00018, 0.0 => 1.0;
        /// Excess over the threshold above which the threshold does not adapt (section 5.4: 15).
        adapt_limit: TimeDelta = 15.0, 0.0 => 10_000.0;
        /// overuse_time_th, time that over-use must last (section 5.4, table 1: 10 ms).
        overuse_time: TimeDelta = 10.0, 0.0 => 1_000.0;
        /// T, window of the incoming rate (section 5.5: 0.5 to 1 s; libwebrtc: 1 s).
        rate_window: TimeDelta = 1_000.0, 100.0 => 5_000.0;
        /// beta, share of the incoming rate kept on over-use (section 5.5, table 1: 0.85).
        beta: f64 = 0.85, 0.5 => 0.99;
        /// eta, multiplicative increase per second (section 5.5: 1.08).
        increase: f64 = 1.08, 1.0 => 2.0;
        /// Bound of the estimate as a multiple of the incoming rate (section 5.5: 1.5). It stops the increase but does
        /// not lower the estimate, as in libwebrtc.
        incoming_bound: f64 = 1.5, 1.0 => 100.0;
        /// Interval of REMB messages without a decrease (section 3: at least once per second).
        remb_interval: TimeDelta = 1_000.0, 50.0 => 5_000.0;
        /// Decrease that is reported at once, as a share of the last reported rate (libwebrtc: 0.03).
        remb_decrease: f64 = 0.03, 0.0 => 1.0;
        /// Loss below which the sender's estimate rises (section 6: 0.02).
        low_loss: f64 = 0.02, 0.0 => 1.0;
        /// Loss above which the sender's estimate falls (section 6: 0.1).
        high_loss: f64 = 0.1, 0.0 => 1.0;
        /// Increase with each report of little loss (section 6: 1.05).
        loss_increase: f64 = 1.05, 1.0 => 2.0;
        /// Least time between two decreases on loss, beyond the round-trip time (libwebrtc: 300 ms); 0 decreases with
        /// every report, as in the draft.
        loss_decrease_interval: TimeDelta = 300.0, 0.0 => 5_000.0;
        /// Packets that reports must cover together before their loss is used (libwebrtc: 20; the draft: 1).
        loss_packets: u32 = 20.0, 1.0 => 10_000.0;
        /// Time without reports after which the rate falls by a fifth each second; 0 disables it (not in the draft;
        /// libwebrtc: 15 s).
        feedback_timeout: TimeDelta = 15_000.0, 0.0 => 120_000.0;
        /// Pacing rate as a multiple of the media rate (section 4: 1; libwebrtc: 2.5, so that a large frame does not wait).
        pacing_factor: f64 = 2.5, 1.0 => 100.0;
    }
}
