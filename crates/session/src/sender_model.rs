//! Sending ends of other programs: how packets leave, and how much is retransmitted.
//!
//! [`SenderModel::Chromium`] follows libwebrtc (as of October 2025, 3fc0730, and captures of Chromium 156). Its sources, by file:
//!
//! - `modules/pacing/pacing_controller.cc`: packets leave in bursts of 40 ms, so that a frame leaves at once if it is no larger than that; and
//!   above the pacing rate as soon as the queue would take more than 2 s. In captures the packets of a frame leave within 0.5 ms,
//!   and after a fall of the capacity bursts each 45 ms, at twice the target.
//!   Sound leaves at once, and is no part of what is paced (`pace_audio_`, `account_for_audio_`).
//! - `call/rtp_transport_controller_send.cc` and `rtc_base/rate_limiter.cc`: retransmissions that are queued in 500 ms have at most the
//!   target's rate (`kRetransmitWindowSizeMs`). Those that are queued are not forgotten meanwhile.
//!
//! Difference from libwebrtc: the mean time in the queue is that of media and retransmissions, without repair packets.

use crate::retransmission::RetransmissionConfig;
use weir_cc::Bursts;
use weir_units::{DataSize, TimeDelta};

/// `PacingController::kDefaultBurstInterval` and `kMaxExpectedQueueLength`. In captures of 22 calls frames of some ten packets leave within 0.5 to 0.7 ms.
const BURSTS: Bursts = Bursts {
    interval: TimeDelta::from_millis(40),
    queue_limit: TimeDelta::from_secs(2),
    spacing: TimeDelta::from_micros(60),
};
/// Packets are kept for three times a second (`kMinPacketDuration`, `kPacketCullingDelayFactor` in `rtp_packet_history.cc`), at most 600 of them
/// (`kMinSendSidePacketHistorySize`) of 1,170 bytes.
const KEPT: TimeDelta = TimeDelta::from_secs(3);
const MOST_KEPT: DataSize = DataSize::from_bytes(700_000);
/// `kRetransmitWindowSizeMs`.
const RETRANSMIT_WINDOW: TimeDelta = TimeDelta::from_millis(500);

/// The program whose sending end a stream is sent as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SenderModel {
    /// Weir's own.
    #[default]
    Weir,
    /// Chromium's.
    Chromium,
}

impl SenderModel {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 2] = [("weir", Self::Weir), ("chromium", Self::Chromium)];

    /// The model of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, model)| *model)
    }

    /// The bursts in which its pacer sends; `None` if it spaces packets evenly.
    pub(crate) fn bursts(self) -> Option<Bursts> {
        (self == Self::Chromium).then_some(BURSTS)
    }

    /// How it retransmits, if it does and nothing else is said.
    pub(crate) fn retransmission(self) -> RetransmissionConfig {
        match self {
            Self::Weir => RetransmissionConfig::default(),
            Self::Chromium => {
                RetransmissionConfig { kept: KEPT, max_size: MOST_KEPT, max_share: 1.0, burst: RETRANSMIT_WINDOW }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        for (name, model) in SenderModel::ALL {
            assert_eq!(SenderModel::named(name), Some(model));
        }
        assert_eq!(SenderModel::named("firefox"), None);
    }

    #[test]
    fn weirs_own_end_stays_as_it_is() {
        assert_eq!(SenderModel::Weir.bursts(), None);
        assert_eq!(SenderModel::Weir.retransmission(), RetransmissionConfig::default());
        let c = SenderModel::Chromium.retransmission();
        assert_eq!((c.max_share, c.burst.as_millis()), (1.0, 500));
    }
}
