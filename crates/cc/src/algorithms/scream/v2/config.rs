//! The constants of draft-ietf-ccwg-rfc8298bis, with those of the authors' program.
//!
//! Defaults are those of the program, EricssonResearch/scream at commit c8f84c3 (version 2), since that is what runs.
//! Where the draft (editors' copy of 10 August 2026) differs, the text gives its value, which a scenario can set.

use super::super::base_delay::MAX_HISTORY;
use weir_units::{DataRate, DataSize, TimeDelta};

crate::tunables! {
    /// Configuration of SCReAM version 2, with the draft's names where it has them.
    pub struct Config {
        /// QDELAY_TARGET_LO: target queue delay; congestion is signalled from half of it (draft, section 4.2.2: 60).
        qdelay_target: TimeDelta = 100.0, 1.0 => 1_000.0;
        /// QDELAY_AVG_G: averaging factor of the queue delay while it rises (draft, section 4.2.1.4).
        qdelay_avg_g: f64 = 0.25, 0.001 => 1.0;
        /// REDUCE_JITTER: whether variation of the queue delay slows the reference window's growth (draft,
        /// section 4.2.1.4: 0).
        reduce_jitter: bool = 1, 0 => 1;
        /// QDELAY_MIN_MAX_AVG_G: averaging factor of the least and greatest queue delay (draft, section 4.2.1.4).
        qdelay_min_max_avg_g: f64 = 0.0625, 0.001 => 1.0;
        /// QDELAY_DEV_AVG_G: averaging factor of the variation (draft, section 4.2.1.4).
        qdelay_dev_avg_g: f64 = 0.03125, 0.001 => 1.0;
        /// QDELAY_DEV_THRESHOLD: variation at which growth is slowest (draft, section 4.2.1.4).
        qdelay_dev_threshold: TimeDelta = 10.0, 0.1 => 1_000.0;
        /// IS_L4S: whether a CE mark counts as L4S's, in proportion to the share marked, rather than as a classic one
        /// (draft, section 4.2.2: 0 until L4S is negotiated).
        is_l4s: bool = 1, 0 => 1;
        /// L4S_AVG_G_UP: averaging factor of l4s_alpha while it rises (draft, section 4.2.1.3).
        l4s_avg_g_up: f64 = 0.125, 0.001 => 1.0;
        /// L4S_AVG_G_DOWN: averaging factor of l4s_alpha while it falls (draft, section 4.2.1.3).
        l4s_avg_g_down: f64 = 0.007_812_5, 0.000_1 => 1.0;
        /// l4s_alpha at the start (draft, section 4.2.1.3: 0).
        l4s_alpha: f64 = 0.1, 0.0 => 1.0;
        /// VIRTUAL_RTT: flows of a shorter round trip grow as if theirs had this length (draft, section 4.2.2).
        virtual_rtt: TimeDelta = 25.0, 1.0 => 1_000.0;
        /// Least time between two reductions for marks or delay, where the round trip is longer (draft, section 4.2.2:
        /// VIRTUAL_RTT).
        reduction_interval: TimeDelta = 30.0, 1.0 => 1_000.0;
        /// How often a reduction for delay is divided by the round trip over `reduction_interval`, since several fall
        /// into a round trip (draft, section 4.2.2.1: 1).
        delay_reduction_divisions: u32 = 2, 0 => 2;
        /// BETA_LOSS: reference window factor on a loss event (draft, section 4.2.2).
        beta_loss: f64 = 0.7, 0.1 => 1.0;
        /// BETA_ECN: reference window factor on a classic ECN event (draft, section 4.2.2: 0.8).
        beta_ecn: f64 = 0.9, 0.1 => 1.0;
        /// LOSS_RATE_THRESHOLD: average loss rate above which a loss without queue delay is congestion (draft,
        /// section 4.5.2; 0 makes every loss an event, as without that section).
        loss_rate_threshold: f64 = 0.01, 0.0 => 1.0;
        /// Initial reordering window; it then adapts to observed reordering (draft, section 4.2.1.1, has no value; C++:
        /// fixed, in send time).
        reordering_window: TimeDelta = 30.0, 0.0 => 1_000.0;
        /// ACKED_BITRATE_MARGIN: share of the acknowledged rate below which a target makes reductions smaller (draft,
        /// section 4.5.3).
        acked_bitrate_margin: f64 = 0.8, 0.0 => 1.0;
        /// BACKOFF_SCALE_LOW_TARGET_RATE: factor of the reduction then (draft, section 4.5.3).
        backoff_scale_low_target_rate: f64 = 0.25, 0.0 => 1.0;
        /// POST_CONGESTION_DELAY_RTTS: round trips after a congestion event until multiplicative increase is back
        /// (draft, section 4.2.2: 100).
        post_congestion_delay_rtts: f64 = 200.0, 0.0 => 10_000.0;
        /// MUL_INCREASE_FACTOR: greatest multiplicative increase a round trip, as a share of the reference window
        /// (draft, section 4.2.2: 0.02).
        mul_increase_factor: f64 = 0.05, 0.0 => 1.0;
        /// BYTES_IN_FLIGHT_HEAD_ROOM: greatest ratio of the reference window to the bytes in flight (draft,
        /// section 4.2.2: 1.5).
        bytes_in_flight_head_room: f64 = 2.0, 1.0 => 10.0;
        /// Slot over which the greatest number of bytes in flight is taken; the present and the previous one count
        /// (draft, section 4.1.1: a round trip).
        flight_interval: TimeDelta = 50.0, 1.0 => 10_000.0;
        /// MIN_REF_WND: least reference window, at least two packets (draft, section 4.2.2: 3,000).
        min_ref_wnd: DataSize = 200, 1 => 1_000_000;
        /// Initial reference window (draft, section 4.2.2: MIN_REF_WND).
        initial_ref_wnd: DataSize = 200, 1 => 10_000_000;
        /// Smoothed round-trip time before the first sample (draft, section 4.2.1.4: 0).
        initial_rtt: TimeDelta = 50.0, 1.0 => 10_000.0;
        /// REF_WND_OVERHEAD_MIN: bytes in flight allowed over the reference window where the queue delay varies (draft,
        /// section 4.3.1).
        ref_wnd_overhead_min: f64 = 1.5, 1.0 => 10.0;
        /// REF_WND_OVERHEAD_MAX: the same where it does not (draft, section 4.3.1).
        ref_wnd_overhead_max: f64 = 3.0, 1.0 => 10.0;
        /// Divisor of reference window over round trip that gives the target bit rate (draft, section 4.4: 1.2).
        target_rate_margin: f64 = 1.1, 1.0 => 10.0;
        /// Longest round-trip time by which the reference window is divided for the target bit rate (draft,
        /// section 4.4: no bound).
        target_rate_max_rtt: TimeDelta = 200.0, 1.0 => 60_000.0;
        /// RATE_ADJUST_GAIN: gain of the reduction for a long media queue, a frame (draft, section 4.4: 0.0625).
        rate_adjust_gain: f64 = 0.025, 0.0 => 1.0;
        /// Media queue delay, as a share of the frame period, above which that reduction grows (draft, section 4.4:
        /// 0.25).
        rate_adjust_delay: f64 = 0.5, 0.0 => 10.0;
        /// RATE_PACE_MIN: least pacing rate (draft, section 4.3.2).
        rate_pace_min: DataRate = 50.0, 1.0 => 1_000_000.0;
        /// PACKET_PACING_HEADROOM: pacing rate as a multiple of the target bit rate (draft, section 4.3.2).
        packet_pacing_headroom: f64 = 1.5, 1.0 => 100.0;
        /// Greatest additional factor of the pacing rate while a frame is larger than the mean (draft, section 4.3.2:
        /// 1, none).
        frame_pacing_factor: f64 = 1.5, 1.0 => 10.0;
        /// MAX_RELAXED_PACING_FACTOR: factor of the pacing rate as the target reaches its upper bound (draft,
        /// section 4.3.2: 4).
        max_relaxed_pacing_factor: f64 = 1.0, 1.0 => 10.0;
        /// RELAXED_PACING_LIMIT_LOW: share of the upper bound from which pacing is relaxed (draft, section 4.3.2).
        relaxed_pacing_limit_low: f64 = 0.8, 0.0 => 0.99;
        /// Age at which the RTP queue is discarded, 0 for never (draft, section 3.3, leaves it open).
        max_queue_age: TimeDelta = 100.0, 0.0 => 60_000.0;
        /// Silence after which a full window lets a few more packets out (draft, section 8: a minimum send rate).
        stall_timeout: TimeDelta = 500.0, 10.0 => 60_000.0;
        /// Interval of the base delay history (RFC 6817, section 3.4.2: 60,000).
        base_delay_interval: TimeDelta = 10_000.0, 100.0 => 3_600_000.0;
        /// 1: a receiver's clock that runs fast or is set, and a path that becomes longer and stays so, are told from a queue
        /// and taken off the delay; 0: the base delay history alone (RFC 6817), which takes its whole length to follow.
        follows_path: bool = 1.0, 0.0 => 1.0;
        /// Intervals in the base delay history (RFC 6817, section 2.5: BASE_HISTORY, 10).
        base_delay_history: u32 = 50, 1 => MAX_HISTORY as u32;
        /// Share of the queue delay target above which the least queue delay of 100 round trips makes the base delay
        /// be measured again at half the rate; 0 turns this off (draft, section 4.5.1: 0.25, averaged by 1/256 a round
        /// trip).
        standing_queue_share: f64 = 0.125, 0.0 => 10.0;
        /// Least time between two such measurements (draft, section 4.5.1: none).
        standing_queue_interval: TimeDelta = 60_000.0, 0.0 => 3_600_000.0;
    }
}
