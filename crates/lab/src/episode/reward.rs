//! Rewards of a step.

use weir_cc::intervals::Interval;

/// Ends of the scale of OpenNetLab's rates, in Mbit/s.
const OPENNETLAB_MBPS: (f64, f64) = (0.01, 8.0);

/// A reward by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reward {
    /// That of OpenNetLab's example for AlphaRTC's gym (OpenNetLab/gym-example, `rtc_env.py` at 96df419): rate received on a
    /// logarithmic scale from 10 kbit/s (0) to 8 Mbit/s (1), minus the mean delay relative to the first packet's in s (at
    /// most 1), minus the share lost. Rates here count RTP headers.
    OpenNetLab,
    /// 0.6 ln(4 R + 1) - D - 10 L, with R the rate received in Mbit/s, D the mean round-trip time in s and L the share lost: the
    /// form that others cite as R3Net's (Fang et al., 2019, arXiv 1912.02222). The paper itself was not read; the units of
    /// R and D are those by which its citations can be understood.
    R3NetAsCited,
    /// Always zero, for a caller that has a reward of its own.
    Zero,
}

/// The rewards by name.
pub const REWARDS: [(&str, Reward); 3] =
    [("opennetlab", Reward::OpenNetLab), ("r3net-as-cited", Reward::R3NetAsCited), ("zero", Reward::Zero)];

impl Reward {
    /// The reward of this name.
    pub fn named(name: &str) -> Option<Self> {
        REWARDS.into_iter().find(|(n, _)| *n == name).map(|(_, reward)| reward)
    }

    /// The reward of an interval. Delays without a sample count as zero.
    pub fn of(self, i: &Interval) -> f64 {
        let received_mbps = i.receive_rate() / 1e6;
        match self {
            Self::OpenNetLab => {
                let (low, high) = OPENNETLAB_MBPS;
                let rate = libm::log(received_mbps.clamp(low, high) / low) / libm::log(high / low);
                rate - (i.delay_ms().unwrap_or(0.0) / 1e3).min(1.0) - i.loss()
            }
            Self::R3NetAsCited => {
                0.6 * libm::log(4.0 * received_mbps + 1.0) - i.rtt_ms().unwrap_or(0.0) / 1e3 - 10.0 * i.loss()
            }
            Self::Zero => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{DataSize, TimeDelta};

    #[test]
    fn rewards_by_hand() {
        let i = Interval {
            covered: TimeDelta::from_millis(60),
            received: DataSize::from_bytes(7_500),
            received_packets: 9,
            lost: 1,
            delay_sum_ms: 90.0,
            rtts: 1,
            rtt_sum_ms: 80.0,
            ..Interval::default()
        };
        // 1 Mbit/s, 10 ms more than the first packet, a tenth lost.
        let opennetlab = (100.0_f64).ln() / (800.0_f64).ln() - 0.01 - 0.1;
        assert!((Reward::OpenNetLab.of(&i) - opennetlab).abs() < 1e-12);
        assert!((Reward::R3NetAsCited.of(&i) - (0.6 * 5.0_f64.ln() - 0.08 - 1.0)).abs() < 1e-12);
        assert_eq!(Reward::Zero.of(&i), 0.0);
        assert!((Reward::OpenNetLab.of(&Interval::default())).abs() < 1e-12);
        assert_eq!(Reward::named("opennetlab"), Some(Reward::OpenNetLab));
        assert_eq!(Reward::named("mmsys2024"), None);
    }
}
