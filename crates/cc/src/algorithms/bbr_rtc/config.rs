//! Parameters, with the defaults of libwebrtc's `BbrNetworkController`.

use weir_units::{DataSize, TimeDelta};

crate::tunables! {
    /// Configuration of BBR for media. Defaults without another source are those of libwebrtc's
    /// `modules/congestion_controller/bbr` ([`BbrRtc`](crate::algorithms::BbrRtc)); names in brackets are its constants or the keys of its
    /// field trial `WebRTC-BweBbrConfig`.
    pub struct Config {
        /// Round trips over which the greatest bandwidth counts (`kBandwidthWindowSize`: the cycle's 8 and 2).
        bandwidth_window: u32 = 10.0, 4.0 => 1_000.0;
        /// Round-trip time before the first sample (`kInitialRttMs`).
        initial_rtt: TimeDelta = 100.0, 1.0 => 10_000.0;
        /// Window before the first estimate: 32 packets of 1,460 bytes (`initial_cwin`).
        initial_window: DataSize = 46_720.0, 1_000.0 => 10e6;
        /// Least window: 4 packets of 1,460 bytes (`min_cwin`).
        min_window: DataSize = 5_840.0, 1_000.0 => 10e6;
        /// Greatest window: 2,000 packets of 1,460 bytes (`max_cwin`).
        max_window: DataSize = 2_920_000.0, 1_000.0 => 1e9;
        /// Pacing and window gain in STARTUP, 2 / ln 2 (`kHighGain`); DRAIN paces at its inverse.
        startup_gain: f64 = 2.885, 1.1 => 10.0;
        /// Growth of the bandwidth in a round trip below which STARTUP counts as full (`kStartupGrowthTarget`).
        startup_growth: f64 = 1.25, 1.0 => 10.0;
        /// Round trips without that growth that end STARTUP (`num_startup_rtts`); 0 starts in PROBE_BW.
        startup_rounds: u32 = 3.0, 0.0 => 100.0;
        /// Whether one round trip without that growth ends STARTUP during recovery (`exit_startup_on_loss`).
        startup_exit_on_loss: bool = 1.0, 0.0 => 1.0;
        /// Rise of the round-trip time above the least one that ends STARTUP; 0 for none, as in libwebrtc, where it is
        /// infinite (`exit_startup_rtt_threshold`).
        startup_rtt_rise: TimeDelta = 0.0, 0.0 => 10_000.0;
        /// Whether STARTUP paces at 1.5 times the bandwidth after a loss (`slower_startup`).
        startup_slower_after_loss: bool = 0.0, 0.0 => 1.0;
        /// Whether the recovery window is off in STARTUP (`rate_based_startup`).
        startup_rate_based: bool = 0.0, 0.0 => 1.0;
        /// Amount by which the pacing gain of PROBE_BW is above 1 in a cycle's first phase, and below 1 in its second
        /// (`probe_bw_pacing_gain_offset`).
        probe_gain: f64 = 0.25, 0.0 => 0.9;
        /// Whether the second phase lasts until the flight is down to the bandwidth-delay product
        /// (`fully_drain_queue`).
        fully_drain: bool = 0.0, 0.0 => 1.0;
        /// Window in PROBE_BW as a multiple of the bandwidth-delay product (`kProbeBWCongestionWindowGain`).
        window_gain: f64 = 2.0, 1.0 => 10.0;
        /// Age at which the least round-trip time is measured again (`kMinRttExpirySeconds`).
        min_rtt_expiry: TimeDelta = 10_000.0, 1_000.0 => 600_000.0;
        /// Least duration of PROBE_RTT at its window (`kProbeRttTimeMs`).
        probe_rtt_time: TimeDelta = 200.0, 10.0 => 10_000.0;
        /// Whether the window of PROBE_RTT is a share of the bandwidth-delay product rather than the least window
        /// (`probe_rtt_based_on_bdp`).
        probe_rtt_by_bdp: bool = 0.0, 0.0 => 1.0;
        /// That share (`probe_rtt_cwin_gain`).
        probe_rtt_window_gain: f64 = 0.75, 0.1 => 2.0;
        /// Share of the bandwidth that the media gets (`encoder_rate_gain`).
        encoder_gain: f64 = 1.0, 0.1 => 1.0;
        /// The same in PROBE_RTT (`encoder_rate_gain_in_probe_rtt`).
        encoder_gain_probe_rtt: f64 = 1.0, 0.1 => 1.0;
        /// Whether these are shares of the pacing rate instead (`pacing_rate_as_target`).
        pacing_as_target: bool = 0.0, 0.0 => 1.0;
        /// Whether there is no recovery window, and STARTUP paces by the third-best bandwidth during recovery
        /// (`rate_based_recovery`).
        rate_based_recovery: bool = 0.0, 0.0 => 1.0;
        /// State in which a loss in STARTUP begins recovery (`initial_conservation`): 0 none, 1 conservation, 2 medium
        /// growth, 3 growth. In the other modes it is conservation.
        startup_recovery: u32 = 1.0, 0.0 => 3.0;
        /// Multiple of the most bytes acknowledged beyond the bandwidth that widens the window while the queue is not
        /// drained (`max_aggregation_bytes_multiplier`, which libwebrtc reads and does not apply); 0 adds these bytes
        /// once, always.
        aggregation_gain: f64 = 0.0, 0.0 => 10.0;
        /// Time in which the queue between encoder and pacer is to be sent: the pacing rate rises for it, and the media
        /// rate is the least while the queue is longer at the pacing rate (`kMaxExpectedQueueLength` of libwebrtc's pacer,
        /// which does this itself); 0 for no bound.
        queue_limit: TimeDelta = 2_000.0, 0.0 => 60_000.0;
        /// Time after the last packet at which a full window lets another out, so that lost feedback does not stop the
        /// call (`kCongestedPacketInterval` of libwebrtc's pacer, which then sends padding).
        keepalive: TimeDelta = 500.0, 10.0 => 60_000.0;
    }
}
