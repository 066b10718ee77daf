//! The parameters of RFC 8698, table 2, with their names in lower case where those are clear. RMIN and RMAX are the
//! application's limits.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of both variants of NADA. Table and section numbers are RFC 8698's.
    pub struct Config {
        /// PRIO, weight of the flow relative to others (table 2: 1; section 4.3, equation 5).
        prio: f64 = 1.0, 0.01 => 100.0;
        /// XREF, reference congestion level (table 2: 10 ms; equation 5).
        xref: TimeDelta = 10.0, 0.1 => 1_000.0;
        /// KAPPA, speed of the gradual update (table 2: 0.5; equation 7).
        kappa: f64 = 0.5, 0.001 => 10.0;
        /// ETA, weight of the signal's change relative to its offset (table 2: 2; equation 7).
        eta: f64 = 2.0, 0.0 => 100.0;
        /// TAU, upper bound of the round-trip time in the gradual update (table 2: 500 ms; equation 7).
        tau: TimeDelta = 500.0, 10.0 => 10_000.0;
        /// DELTA, target interval of feedback (table 2 and section 6.3: 100 ms).
        delta: TimeDelta = 100.0, 10.0 => 1_000.0;
        /// LOGWIN, window of packet statistics (table 2: 500 ms).
        logwin: TimeDelta = 500.0, 100.0 => 5_000.0;
        /// QEPS, queuing delay that ends the accelerated ramp-up (table 2: 10 ms; section 4.2).
        qeps: TimeDelta = 10.0, 0.1 => 1_000.0;
        /// 1: ECN marks within LOGWIN end the accelerated ramp-up as losses do, by section 4 ("a non-zero aggregate
        /// congestion signal"); 0: they do not, by the criteria of section 4.2, which omit them.
        marks_end_ramp_up: bool = 1.0, 0.0 => 1.0;
        /// DFILT, bound on filtering delay assumed by the ramp-up (table 2: 120 ms; equation 3).
        dfilt: TimeDelta = 120.0, 0.0 => 5_000.0;
        /// GAMMA_MAX, upper bound on the increase in ramp-up (table 2: 0.5; equation 3).
        gamma_max: f64 = 0.5, 0.0 => 10.0;
        /// QBOUND, upper bound on self-inflicted delay in ramp-up (table 2: 50 ms; equation 3).
        qbound: TimeDelta = 50.0, 0.1 => 5_000.0;
        /// MULTILOSS, average loss intervals after which the last loss expires (table 2: 7).
        multiloss: f64 = 7.0, 0.0 => 1_000.0;
        /// QTH, queuing delay from which delay is warped while there are losses (table 2: 50 ms; equation 1).
        qth: TimeDelta = 50.0, 1.0 => 5_000.0;
        /// QTH is at least this multiple of the delay at which the rate stands still, PRIO XREF RMAX / rate (equation 5); 0, as in the RFC: QTH
        /// alone, which is below that delay at less than a fifth of RMAX. 1.5 keeps a slow link free of losses, and leaves more of other links to
        /// flows that fill queues (section 4.2 leaves the tuning of QTH open).
        qth_headroom: f64 = 0.0, 0.0 => 100.0;
        /// LAMBDA, exponent of the warping (table 2: 0.5; equation 1).
        lambda: f64 = 0.5, 0.0 => 100.0;
        /// PLRREF, reference packet loss ratio (table 2: 0.01; equation 2).
        plrref: f64 = 0.01, 0.0001 => 1.0;
        /// PMRREF, reference packet marking ratio (table 2: 0.01; equation 2).
        pmrref: f64 = 0.01, 0.0001 => 1.0;
        /// DLOSS, delay penalty at PLRREF (table 2: 10 ms; equation 2).
        dloss: TimeDelta = 10.0, 0.0 => 1_000.0;
        /// DMARK, delay penalty at PMRREF (table 2: 2 ms; equation 2). ns3-rmcat does not support marks: 0.
        dmark: TimeDelta = 2.0, 0.0 => 1_000.0;
        /// FPS, reference frame rate of the rate-shaping buffer (table 2: 30; equations 11 and 12).
        fps: f64 = 30.0, 1.0 => 1_000.0;
        /// BETA_S, effect of the rate-shaping buffer on the sending rate (table 2: 0.1; equation 12).
        beta_s: f64 = 0.1, 0.0 => 10.0;
        /// BETA_V, effect of the rate-shaping buffer on the encoder's rate (table 2: 0.1; equation 11).
        beta_v: f64 = 0.1, 0.0 => 10.0;
        /// ALPHA, smoothing of the loss and marking ratios (table 2: 0.1; equation 10).
        alpha: f64 = 0.1, 0.001 => 1.0;
        /// XMAX, upper bound of the aggregated signal. The RFC has no bound but its field of 15 bits of 100 us, 3,276.7 ms
        /// (section 5.3), with which heavy loss makes the rate swing between its bounds; draft -05 and ns3-rmcat have
        /// 500 ms and are followed.
        xmax: TimeDelta = 500.0, 10.0 => 3_276.7;
        /// Length of the minimum filter of the queuing delay in packets (section 5.1.1 and ns3-rmcat: 15).
        filter_taps: u32 = 15.0, 1.0 => 16_384.0;
        /// Upper bound of the minimum filter's duration, 0 for none. The RFC bounds it in packets only, though
        /// equation 3 assumes DFILT = 120 ms, which 15 packets exceed below 125 packets per second.
        filter_span: TimeDelta = 0.0, 0.0 => 5_000.0;
        /// Age at which a minimum one-way delay may expire; it does at twice this age (section 5.1.1: tens of minutes;
        /// ns3-rmcat: never).
        base_window: TimeDelta = 600_000.0, 1_000.0 => 86_400_000.0;
        /// 1: a receiver's clock that runs fast or is set, and a path that becomes longer and stays so, are told from a queue
        /// and taken off the delay; 0: the minimum of section 5.1.1 alone, which takes one to two `base_window`s to follow.
        follows_path: bool = 1.0, 0.0 => 1.0;
        /// 1: losses within a round-trip time of the first are one loss event (RFC 5348, section 5.2); 0: each gap is
        /// one, as in ns3-rmcat.
        merge_losses: bool = 1.0, 0.0 => 1.0;
        /// 1: the average loss interval includes the open interval if that makes it longer (RFC 5348, section 5.4, as
        /// RFC 8698 requires; ns3-rmcat too). A loss then never expires, since MULTILOSS exceeds 6, the sum of the
        /// weights. 0: closed intervals only, so that losses expire.
        open_loss_interval: bool = 1.0, 0.0 => 1.0;
        /// Time without feedback, beyond the round-trip time, after which the rate is halved; 0 disables it, as in the
        /// RFC, which leaves this open (RFC 8083, section 4.1, has a circuit breaker instead).
        feedback_timeout: TimeDelta = 1_000.0, 0.0 => 60_000.0;
        /// Age at which the RTP queue is discarded, 0 for never (the RFC leaves it open; ns3-rmcat: never). The default is
        /// chosen here, as old as the worst congestion signal.
        max_queue_age: TimeDelta = 500.0, 0.0 => 60_000.0;
        /// Pacing rate as a multiple of r_send (equation 14 alone: 1).
        pacing_factor: f64 = 1.0, 1.0 => 100.0;
    }
}
