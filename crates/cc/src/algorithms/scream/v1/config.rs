//! The constants of RFC 8298, section 4.1.1.1, and those that the RFC leaves open.
//!
//! Defaults are the RFC's. Where the public C++ implementation (EricssonResearch/scream, as of 2018 to 2019) differs,
//! the text gives its value, which a scenario can set.

use super::super::base_delay::MAX_HISTORY;
use weir_units::{DataRate, DataSize, TimeDelta};

crate::tunables! {
    /// Configuration of SCReAM version 1, with the RFC's names where it has them.
    ///
    /// One default deviates from the RFC's letter: `follow_throughput`. The RFC's pseudocode adds the whole throughput
    /// to the target rate on each adjustment (`target_bitrate += delta_rate_t`), so that outside fast increase the rate
    /// rises at its ramp-up speed regardless of the trend, and with more than 1 Mbit/s a second diverges from the link.
    /// The RFC's text has an increased congestion level limit the rate, which requires `delta_rate_t` to be the
    /// difference between throughput and target, as in the C++. 0 follows the letter.
    pub struct Config {
        /// QDELAY_TARGET_LO: target queue delay without competing flows (RFC 8298, section 4.1.1.1).
        qdelay_target_lo: TimeDelta = 100.0, 1.0 => 1_000.0;
        /// QDELAY_TARGET_HI: highest target queue delay with competing flows (RFC 8298, section 4.1.1.1; C++: 300).
        qdelay_target_hi: TimeDelta = 400.0, 1.0 => 2_000.0;
        /// Whether the queue-delay target adapts to competing flows (RFC 8298, section 4.1.2.3, allows turning this
        /// off; C++: 0).
        adapt_qdelay_target: bool = 1, 0 => 1;
        /// QDELAY_WEIGHT: averaging factor of the queue-delay fraction, per feedback message (RFC 8298,
        /// section 4.1.1.1).
        qdelay_weight: f64 = 0.1, 0.001 => 1.0;
        /// QDELAY_TREND_TH: the trend above which fast increase ends (RFC 8298, section 4.1.1.1).
        qdelay_trend_th: f64 = 0.2, 0.0 => 1.0;
        /// QDELAY_TREND_LO: the trend below which fast increase may resume (RFC 8298, section 4.1.1.1).
        qdelay_trend_lo: f64 = 0.2, 0.0 => 1.0;
        /// T_RESUME_FAST_INCREASE: how long the trend must stay low before fast increase resumes (RFC 8298,
        /// section 4.1.1.1).
        resume_fast_increase: TimeDelta = 5_000.0, 0.0 => 1_000_000.0;
        /// MIN_CWND: least congestion window (RFC 8298, section 4.1.1.1; C++: twice the largest packet, which is a
        /// lower bound here too).
        min_cwnd: DataSize = 3_000, 1_000 => 1_000_000;
        /// Initial congestion window (RFC 8298, section 4.1.1.2: MIN_CWND; C++: configurable, with start rate times RTT
        /// recommended).
        initial_cwnd: DataSize = 3_000, 1_000 => 10_000_000;
        /// MAX_BYTES_IN_FLIGHT_HEAD_ROOM: ratio of the window to the maximum of bytes in flight over 5 s (RFC 8298,
        /// section 4.1.1.1).
        max_bytes_in_flight_head_room: f64 = 1.1, 1.0 => 10.0;
        /// Whether that bound holds in fast increase too (RFC 8298, section 4.1.2.2: no, 0; C++: 1).
        bound_fast_increase: bool = 0, 0 => 1;
        /// GAIN while the queue delay is below its target (RFC 8298, section 4.1.1.1).
        gain_up: f64 = 1.0, 0.01 => 10.0;
        /// GAIN while the queue delay is above its target (RFC 8298, section 4.1.1.1: the same GAIN, 1; C++: 2).
        gain_down: f64 = 1.0, 0.01 => 10.0;
        /// BETA_LOSS: window factor on a loss event (RFC 8298, section 4.1.1.1).
        beta_loss: f64 = 0.8, 0.1 => 1.0;
        /// BETA_ECN: window factor on an ECN event (RFC 8298, section 4.1.1.1).
        beta_ecn: f64 = 0.9, 0.1 => 1.0;
        /// BETA_R: media rate factor on a loss event (RFC 8298, section 4.1.1.1; C++: lossEventRateScale).
        beta_r: f64 = 0.9, 0.1 => 1.0;
        /// Media rate factor on an ECN event (RFC 8298, section 4.1.3: BETA_ECN, 0.9; C++: 0.95).
        beta_r_ecn: f64 = 0.9, 0.1 => 1.0;
        /// Ratio of the window to the bytes in flight, less what was just acknowledged, up to which it counts as used and grows
        /// outside fast increase (RFC 8298, section 4.1.2.2: 1.25; C++ of 2019: 1.2).
        used_window: f64 = 1.25, 1.0 => 10.0;
        /// MSS: largest RTP packet (RFC 8298, section 4.1.1.1); a larger packet sent replaces it.
        mss: DataSize = 1_000, 100 => 65_535;
        /// RATE_ADJUST_INTERVAL: time between media rate adjustments (RFC 8298, section 4.1.1.1).
        rate_adjust_interval: TimeDelta = 200.0, 10.0 => 10_000.0;
        /// RAMP_UP_SPEED: greatest increase of the media rate per second (RFC 8298, section 4.1.1.1, which names 1,000
        /// as a quick choice).
        ramp_up_speed: DataRate = 200.0, 1.0 => 1_000_000.0;
        /// The same bound as a share of the media rate (RFC 8298, section 4.1.3: a half; C++ of 2019, followed: 0.2).
        ramp_up_scale: f64 = 0.2, 0.01 => 10.0;
        /// Ratio of media rate to throughput above which the media rate does not grow, since the source is not limited
        /// by it (C++ of 2019; RFC 8298: no such bound).
        idle_ratio: f64 = 1.25, 1.0 => 1_000.0;
        /// Least time between two changes of the inflection point for delay; for losses and marks fifteen times this
        /// (C++ of 2019: 2,000 and 30,500; RFC 8298: 0). The first change may be made after this time.
        inflection_interval: TimeDelta = 2_000.0, 0.0 => 60_000.0;
        /// PRE_CONGESTION_GUARD: how strongly the queue-delay trend limits the media rate (RFC 8298, section 4.1.1.1;
        /// C++: queueDelayGuard).
        pre_congestion_guard: f64 = 0.1, 0.0 => 1.0;
        /// TX_QUEUE_SIZE_FACTOR: how strongly the RTP queue limits the media rate (RFC 8298, section 4.1.1.1; C++:
        /// 0.2).
        tx_queue_size_factor: f64 = 1.0, 0.0 => 2.0;
        /// Most of the RTP queue that limits the media rate, in time at that rate; what counts is then averaged with the adjustment
        /// before, and with more than 12,000 bits the rate does not grow (C++ of 2019: 20); 0 for all of it (RFC 8298).
        counted_queue: TimeDelta = 0.0, 0.0 => 10_000.0;
        /// RTP_QDELAY_TH: RTP queue delay above which the media rate is reduced (RFC 8298, section 4.1.1.1).
        rtp_qdelay_th: TimeDelta = 20.0, 0.0 => 10_000.0;
        /// TARGET_RATE_SCALE_RTP_QDELAY: factor of that reduction (RFC 8298, section 4.1.1.1; C++: none, 1).
        target_rate_scale_rtp_qdelay: f64 = 0.95, 0.1 => 1.0;
        /// RTP queue delay above which the media rate leaves fast increase (RFC 8298: no such bound; C++, followed: 100,
        /// without which a start rate far above the first window is kept while its queue is discarded).
        fast_increase_rtp_qdelay: TimeDelta = 100.0, 0.0 => 1_000_000.0;
        /// Whether the media rate moves towards the throughput less the queue, rather than adding it (RFC 8298,
        /// section 4.1.3: see `Config`; C++: 1).
        follow_throughput: bool = 1, 0 => 1;
        /// Whether the trend's memory limits the media rate to a share of the throughput (RFC 8298, section 4.1.3: 1; C++ of 2019: 0).
        bound_by_trend: bool = 1, 0 => 1;
        /// Adjustment intervals over which the rates of frames, sent and acknowledged bytes are averaged (RFC 8298, section 4.1.3: 1;
        /// C++ of 2019: eight times 50 ms, 2).
        rate_intervals: u32 = 1, 1 => 8;
        /// Whether the throughput is the smaller of the transmitted and the acknowledged rate (RFC 8298, section 4.1.3, and the
        /// C++: the greater, 0; the program of the comparison of 2018, screamTx.cc of rmcat-ns3: 1).
        follow_least: bool = 0, 0 => 1;
        /// Timer that sends one packet at most each time, so that packets are whole ticks apart; 0 for none (RFC 8298: none;
        /// screamsender.h of rmcat-ns3: 5).
        send_timer: TimeDelta = 0.0, 0.0 => 1_000.0;
        /// RATE_PACE_MIN: least pacing rate (RFC 8298, section 4.1.1.1).
        rate_pace_min: DataRate = 50.0, 1.0 => 1_000_000.0;
        /// Pacing rate as a multiple of window over RTT (RFC 8298, section 4.1.2.6: 1; C++: 1.5).
        pacing_head_room: f64 = 1.0, 1.0 => 100.0;
        /// Average fraction of the queue-delay target up to which packets are not paced (RFC 8298, section 4.1.2.6: always paced, 0;
        /// C++ of 2019: 0.02).
        pace_from: f64 = 0.0, 0.0 => 10.0;
        /// Age at which the RTP queue is discarded, 0 for never (RFC 8298, section 4.1.3, leaves it open; C++: 100).
        max_queue_age: TimeDelta = 100.0, 0.0 => 60_000.0;
        /// Initial reordering window; it then adapts to observed reordering (RFC 8298, section 4.1.2.4, has none; C++:
        /// 10, fixed, in send time).
        reordering_window: TimeDelta = 0.0, 0.0 => 1_000.0;
        /// Silence after which a full window lets a few more packets out (RFC 8298, section 8: a minimum send rate;
        /// C++: 500).
        stall_timeout: TimeDelta = 500.0, 10.0 => 60_000.0;
        /// Interval of the base delay history (RFC 6817, section 3.4.2: a minute; C++: 10,000).
        base_delay_interval: TimeDelta = 60_000.0, 100.0 => 3_600_000.0;
        /// Time after which a base delay that is a quarter of the target too low on average, by the least delays of 50 ms, is
        /// forgotten (C++ of 2019: 20,000); 0 for never (RFC 6817).
        base_delay_reset: TimeDelta = 0.0, 0.0 => 3_600_000.0;
        /// 1: a receiver's clock that runs fast or is set, and a path that becomes longer and stays so, are told from a queue
        /// and taken off the delay; 0: the base delay history alone (RFC 6817), which takes its whole length to follow.
        follows_path: bool = 1.0, 0.0 => 1.0;
        /// Intervals in the base delay history (RFC 6817, section 2.5: BASE_HISTORY, 10; C++: 50).
        base_delay_history: u32 = 10, 1 => MAX_HISTORY as u32;
    }
}
