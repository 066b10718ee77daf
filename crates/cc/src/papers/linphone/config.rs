//! The parameters of linphone's rate control and of its use over DCCP.

use crate::tunable::ParamInfo;
use weir_units::{DataRate, TimeDelta};

crate::tunables! {
    /// Configuration. Sources are sections of S. Jero, 2013. Where the text and the code in appendix A.2 disagree, the
    /// code is followed, since the experiments ran it.
    pub struct Config {
        /// Loss from which a report is bad (section 2.2.2; A.2, `unacceptable_loss_rate`).
        loss_threshold: f64 = 0.1, 0.0 => 1.0;
        /// Jitter from which such loss is congestion rather than caused by the packet rate (A.2, `big_jitter`).
        jitter_threshold: TimeDelta = 10.0, 0.0 => 1_000.0;
        /// Greatest decrease on loss (A.2).
        max_loss_decrease: f64 = 0.5, 0.0 => 0.99;
        /// Ratio of the round-trip times of consecutive reports that is congestion (section 2.2.2).
        rtt_factor: f64 = 2.0, 1.0 => 100.0;
        /// Least round-trip time that counts as congestion (A.2, `significant_delay`).
        significant_rtt: TimeDelta = 200.0, 0.0 => 10_000.0;
        /// Decrease on such a rise of the round-trip time (section 2.2.2).
        rtt_decrease: f64 = 0.2, 0.0 => 0.99;
        /// Decrease of video on loss without jitter: audio then sends fewer packets, and video is reduced with it
        /// (A.2).
        packet_rate_decrease: f64 = 0.2, 0.0 => 0.99;
        /// Decrease after the transport's queue refused packets (A.2: 30 %; section 3.2.2 says 10 %).
        reject_decrease: f64 = 0.3, 0.0 => 0.99;
        /// Consecutive good reports before the rate is raised (A.2, `probing_up_interval`).
        stable_reports: u32 = 10.0, 1.0 => 1_000.0;
        /// Step of an increase (A.2: 10 % each; section 2.2.2 says 20 % over four reports).
        increase: f64 = 0.1, 0.0 => 10.0;
        /// Good reports between two increases (A.2).
        probing_reports: u32 = 2.0, 1.0 => 1_000.0;
        /// Least rate (A.2, `min_video_bitrate`; section 4.3 says 128 kbit/s). A higher floor of the application takes
        /// precedence.
        min_rate: DataRate = 64.0, 0.0 => 1_000_000.0;
        /// Highest rate (section 4.1.1: 100 Mbit/s, the user's setting). A lower ceiling of the application takes
        /// precedence.
        max_rate: DataRate = 100_000.0, 1.0 => 10_000_000.0;
        /// Whether to start at the highest rate (section 4.1.1) rather than at the application's start rate.
        start_at_max: bool = 1.0, 0.0 => 1.0;
        /// Largest ratio between the requested and the actual encoder rate before the request is reset (section 4.3).
        sanity_factor: f64 = 10.0, 1.0 => 1_000.0;
        /// Ratio to the actual rate at which it is reset (section 4.3: half or twice).
        sanity_reset: f64 = 2.0, 1.0 => 1_000.0;
        /// Window over which the actual encoder rate is measured; section 4.3 has "recent". Chosen here.
        encoder_window: TimeDelta = 1_000.0, 10.0 => 60_000.0;
        /// Least time between two changes, in which feedback is ignored (section 4.3: 3,000 ms over CCID 2, 1,000 ms
        /// over CCID 3, none over UDP; 0 to 40 ms is none at 25 frames per second). Over DCCP it also separates
        /// rejections.
        update_interval: TimeDelta = 0.0, 0.0 => 60_000.0;
        /// Least time between two changes in round trips, beyond some frames' time (`interval`; section 5.2 asks for such a rule). 0: it
        /// is the update interval; else that is the least. Section 4.3's optima at 178 ms, 3,000 and 1,000 ms, make it 30 over CCID 2 and
        /// 10 over CCID 3.
        interval_round_trips: f64 = 0.0, 0.0 => 100.0;
        /// Mean deviations of the round-trip time that are added to it (RFC 6298, section 2.3: K).
        interval_deviations: f64 = 4.0, 0.0 => 100.0;
        /// Frames whose time is taken from it. Section 4.3.2: a loaded round trip of about 50 ms, 1.25 frames, needs no interval; chosen
        /// here so that its deviation is covered.
        interval_frames: f64 = 2.0, 0.0 => 100.0;
        /// Whether to follow the transport's rate (section 3.2.2: over CCID 3; over CCID 2 that was future work,
        /// section 5.2).
        follow_rate: bool = 0.0, 0.0 => 1.0;
        /// Whether to follow the smoothed one (section 5.1; the experiments did not).
        follow_smoothed: bool = 0.0, 0.0 => 1.0;
        /// Interval at which that rate is sampled (A.1, `BW_SAMPLE_PERIOD_MSEC`). It equals the update interval over
        /// CCID 3; the thesis does not say whether it followed that interval in the sweep of section 4.3.
        sample_interval: TimeDelta = 1_000.0, 0.0 => 60_000.0;
        /// Share of that rate used for video (A.2).
        rate_share: f64 = 0.9, 0.01 => 2.0;
        /// Fall of that rate that has an effect, as a share of the current rate (section 3.2.2).
        rate_decrease: f64 = 0.1, 0.0 => 1.0;
        /// Rise of that rate that has an effect (section 3.2.2).
        rate_increase: f64 = 0.2, 0.0 => 10.0;
        /// Samples ignored after a change (section 3.2.2: four; A.2, `set_hold`).
        rate_hold: u32 = 4.0, 0.0 => 1_000.0;
    }
}

/// The transport of the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// UDP: only RTCP reports are used.
    Udp,
    /// DCCP whose queue refuses packets and whose rate is not used.
    Window,
    /// DCCP that reports its rate.
    Rate,
}

impl Config {
    /// The defaults for this transport.
    pub fn over(over: Over) -> Self {
        let ms = TimeDelta::from_millis;
        let (update_interval, follow_rate) = match over {
            Over::Udp => (TimeDelta::ZERO, false),
            Over::Window => (ms(3_000), false),
            Over::Rate => (ms(1_000), true),
        };
        Self { update_interval, follow_rate, ..Self::default() }
    }
    /// The parameters, with these defaults.
    pub(super) fn params_over(over: Over) -> Vec<ParamInfo> {
        let own = Self::over(over);
        let mut params = Self::params();
        for p in &mut params {
            match p.name {
                "update_interval" => p.default = own.update_interval.as_millis_f64(),
                "follow_rate" => p.default = f64::from(u8::from(own.follow_rate)),
                _ => {}
            }
        }
        params
    }
}
