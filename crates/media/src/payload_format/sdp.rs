//! SDP parameters of the payload formats (RFC 6184, section 8.2; RFC 7741, section 6.2; RFC 9628, section 6).

use super::{PayloadFormat, h264};
use crate::{EncoderConfig, RTP_CLOCK_HZ, VideoCodec};

/// `profile_idc` and the constraint flags of Constrained Baseline (RFC 6184, table 5), which every decoder supports.
const CONSTRAINED_BASELINE: [u8; 2] = [0x42, 0xe0];
const SPS: u8 = 7;

/// Level, maximum macroblocks a second and maximum macroblocks per frame (ITU-T H.264, table A-1).
const LEVELS: [(u8, u64, u64); 15] = [
    (10, 1_485, 99),
    (11, 3_000, 396),
    (12, 6_000, 396),
    (13, 11_880, 396),
    (21, 19_800, 792),
    (22, 20_250, 1_620),
    (30, 40_500, 1_620),
    (31, 108_000, 3_600),
    (32, 216_000, 5_120),
    (40, 245_760, 8_192),
    (42, 522_240, 8_704),
    (50, 589_824, 22_080),
    (51, 983_040, 36_864),
    (52, 2_073_600, 36_864),
    (62, 16_711_680, 139_264),
];

fn macroblocks(config: &EncoderConfig) -> u64 {
    u64::from(config.width.div_ceil(16)) * u64::from(config.height.div_ceil(16))
}

/// The `profile-level-id` of Constrained Baseline at the lowest level for this size and frame rate.
pub fn h264_profile_level_id(config: &EncoderConfig) -> [u8; 3] {
    let frame = macroblocks(config);
    let second = (frame as f64 * config.frame_rate.max(1.0)) as u64;
    let level = LEVELS.iter().find(|(_, rate, size)| second <= *rate && frame <= *size);
    let [profile, constraints] = CONSTRAINED_BASELINE;
    [profile, constraints, level.map_or(LEVELS[LEVELS.len() - 1].0, |l| l.0)]
}

/// The `profile-level-id` of a coded frame of H.264 with a sequence parameter set, from its first three bytes (RFC 6184,
/// section 8.1).
pub fn profile_level_id_of(access_unit: &[u8]) -> Option<[u8; 3]> {
    let sps = h264::nal_units(access_unit).find(|u| u[0] & 0x1f == SPS)?;
    sps.get(1..4)?.try_into().ok()
}

impl PayloadFormat {
    /// The value of `a=rtpmap` after the payload type.
    pub fn rtpmap(self) -> String {
        format!("{}/{RTP_CLOCK_HZ}", self.codec())
    }

    /// The value of `a=fmtp` after the payload type, for frames of this size and rate. H.264 names Constrained
    /// Baseline; an encoder with another profile signals it in its stream ([`profile_level_id_of`]).
    pub fn fmtp(self, config: &EncoderConfig) -> String {
        match self.codec() {
            VideoCodec::H264 => {
                let [profile, constraints, level] = h264_profile_level_id(config);
                let id = format!("{profile:02x}{constraints:02x}{level:02x}");
                format!("level-asymmetry-allowed=1;packetization-mode=1;profile-level-id={id}")
            }
            // Minimum capability of a receiver (RFC 7741, section 6.1).
            VideoCodec::Vp8 => {
                format!("max-fr={};max-fs={}", libm::ceil(config.frame_rate.max(1.0)) as u32, macroblocks(config))
            }
            VideoCodec::Vp9 => "profile-id=0".into(),
        }
    }
}
