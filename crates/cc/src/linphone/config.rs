//! The parameters of linphone's rate control and of its use over DCCP.

use crate::tunable::ParamInfo;
use weir_units::{DataRate, TimeDelta};

crate::tunables! {
    /// Configuration. Sources are sections of S. Jero, 2013; where his text and the code in his appendix A.2 disagree, the code
    /// is followed, for it is what ran.
    pub struct Config {
        /// Loss from which a report is bad (section 2.2.2; A.2, `unacceptable_loss_rate`).
        loss_threshold: f64 = 0.1, 0.0 => 1.0;
        /// Jitter from which such loss is congestion rather than the packet rate's fault (A.2, `big_jitter`).
        jitter_threshold: TimeDelta = 10.0, 0.0 => 1_000.0;
        /// Most that the rate falls by for loss (A.2).
        max_loss_decrease: f64 = 0.5, 0.0 => 0.99;
        /// Factor of the round trip from one report to the next that is congestion (section 2.2.2).
        rtt_factor: f64 = 2.0, 1.0 => 100.0;
        /// Least round trip that may be (A.2, `significant_delay`).
        significant_rtt: TimeDelta = 200.0, 0.0 => 10_000.0;
        /// Decrease where the round trip has risen so (section 2.2.2).
        rtt_decrease: f64 = 0.2, 0.0 => 0.99;
        /// Decrease of video where loss comes without jitter: audio sends fewer packets then, and video goes down with it (A.2).
        packet_rate_decrease: f64 = 0.2, 0.0 => 0.99;
        /// Decrease where the transport's queue refused packets (A.2: 30 %; section 3.2.2 says 10 %).
        reject_decrease: f64 = 0.3, 0.0 => 0.99;
        /// Good reports in a row before the rate is raised (A.2, `probing_up_interval`).
        stable_reports: u32 = 10.0, 1.0 => 1_000.0;
        /// A step up (A.2: 10 % each; section 2.2.2 says 20 % over four reports).
        increase: f64 = 0.1, 0.0 => 10.0;
        /// Good reports from one step up to the next (A.2).
        probing_reports: u32 = 2.0, 1.0 => 1_000.0;
        /// Least rate (A.2, `min_video_bitrate`; section 4.3 says 128 kbit/s). The application's floor holds where it is higher.
        min_rate: DataRate = 64.0, 0.0 => 1_000_000.0;
        /// Highest rate (section 4.1.1: 100 Mbit/s, the user's setting). The application's ceiling holds where it is lower.
        max_rate: DataRate = 100_000.0, 1.0 => 10_000_000.0;
        /// Whether the rate starts at the highest (section 4.1.1) rather than at the application's start rate.
        start_at_max: bool = 1.0, 0.0 => 1.0;
        /// How far the rate asked for may be from what the encoder makes before it is set near that (section 4.3).
        sanity_factor: f64 = 10.0, 1.0 => 1_000.0;
        /// How near it is set then (section 4.3: half or twice).
        sanity_reset: f64 = 2.0, 1.0 => 1_000.0;
        /// Time over which the encoder's actual rate is measured; section 4.3 has "recent". Chosen here.
        encoder_window: TimeDelta = 1_000.0, 10.0 => 60_000.0;
        /// Least time from one change to the next, in which feedback is not looked at (section 4.3: 3,000 ms over CCID 2, 1,000 ms
        /// over CCID 3, none over UDP; 0 to 40 ms is none at 25 frames a second). Over DCCP, rejections come no closer either.
        update_interval: TimeDelta = 0.0, 0.0 => 60_000.0;
        /// Whether the transport's rate is followed (section 3.2.2: over CCID 3; over CCID 2 that was future work, section 5.2).
        follow_rate: bool = 0.0, 0.0 => 1.0;
        /// Whether it is the smoothed one (section 5.1; the experiments had none).
        follow_smoothed: bool = 0.0, 0.0 => 1.0;
        /// How often that rate is looked at (A.1, `BW_SAMPLE_PERIOD_MSEC`). It equals the update interval over CCID 3; the thesis does
        /// not say whether it moved with that in the sweep of section 4.3.
        sample_interval: TimeDelta = 1_000.0, 0.0 => 60_000.0;
        /// Share of it that video takes (A.2).
        rate_share: f64 = 0.9, 0.01 => 2.0;
        /// Fall of it that is acted on, as a share of the rate now (section 3.2.2).
        rate_decrease: f64 = 0.1, 0.0 => 1.0;
        /// Rise of it that is acted on (section 3.2.2).
        rate_increase: f64 = 0.2, 0.0 => 10.0;
        /// Samples from one change to the next that are let pass (section 3.2.2: four; A.2, `set_hold`).
        rate_hold: u32 = 4.0, 0.0 => 1_000.0;
    }
}

/// What the application runs over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// RTCP reports are all that it hears.
    Udp,
    /// DCCP whose queue refuses packets, and which is not asked for its rate.
    Window,
    /// DCCP that tells its rate.
    Rate,
}

impl Config {
    /// The defaults over this transport.
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
