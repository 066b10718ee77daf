//! Live video and audio: sources of frames, packetisation, and playout.
//!
//! A [`Source`] makes [`Frame`]s that follow a target rate, exactly or as encoders do; a [`Packetiser`] splits them.
//! Frames of models have a size and no content; those of a [`VideoEncoder`] have both. Time enters only as an argument.
//!
//! ```
//! use weir_media::{Packetiser, PerfectCodec, Source};
//! use weir_units::{DataRate, DataSize, Timestamp};
//! let mut source = Source::from(PerfectCodec::packets(DataSize::from_bytes(1_000), Timestamp::ZERO));
//! source.on_target(DataRate::from_mbps(2), Timestamp::ZERO);
//! let at = source.next_frame_at().expect("a rate is set");
//! let frame = source.poll_frame(at).expect("due");
//! // 1,000 bytes at 2 Mbit/s come every 4 ms.
//! assert_eq!(source.next_frame_at(), Some(at + weir_units::TimeDelta::from_millis(4)));
//! let packets: Vec<_> = Packetiser::default().split(frame.size).collect();
//! assert_eq!((packets.len(), packets[0].marker), (1, true));
//! ```

mod adjusted;
pub mod audio;
mod capped;
pub mod clip;
mod codec;
mod content;
mod encoded;
mod error;
mod forwarded;
mod frame;
mod frame_rate;
mod frame_source;
mod laplace;
mod layer_selection;
mod layered;
mod layers;
mod model_codec;
mod packetiser;
mod payload_format;
mod perfect;
mod picture;
mod playout;
pub mod quality;
mod rate_meter;
mod read_ahead;
pub mod resilience;
mod scale;
mod scenes;
mod shape;
mod shaped;
mod simulcast;
mod source;
mod statistical;
#[cfg(test)]
mod toy;
mod trace;
pub mod utility;
mod video;
mod video_receiver;
mod vp8_buffer;
mod vp8_picture;
pub mod y4m;

pub use adjusted::AdjustedSource;
pub use capped::{CappedSource, Caps};
pub use codec::{Codec, ParamError, ParamValue};
pub use content::{Payloads, ReceivedFrame, ReceivedPayload, SourceFeedback};
pub use encoded::{Captured, EncodedSource, EncodedStats, FramePusher, Originals, PushedSource, Tap};
pub use error::MediaError;
pub use frame::{AUDIO_CLOCK_HZ, Frame, FrameKind, MediaKind, RTP_CLOCK_HZ};
pub use frame_rate::FrameRate;
pub use frame_source::FrameSource;
pub use layer_selection::{LayerSelection, useful_rates};
pub use layered::{LayeredConfig, LayeredSource};
pub use layers::{LayerId, LayerInfo, LayerRates, Layering, MAX_SPATIAL_LAYERS, MAX_TEMPORAL_LAYERS, TemporalStep};
pub use model_codec::ModelCodec;
pub use packetiser::{Packetiser, Payload, Split};
pub use payload_format::{
    Depacketiser, DepacketiserStats, LEAST_MAX_PAYLOAD, PayloadFormat, PictureId, Unpacked, begins_vp8_frame,
    h264_profile_level_id, profile_level_id_of,
};
pub use perfect::PerfectCodec;
pub use picture::{MAX_SIDE, Picture, PictureSource, Plane};
pub use playout::{AdaptivePlayout, DelayStats, MediaPacket, Playout, PlayoutEvent, PlayoutStats, Verdict};
pub use read_ahead::ReadAhead;
pub use scale::{displayed, scale};
pub use scenes::{Material, MaterialConfig, RateControl, ScenesConfig, ScenesSource};
pub use shaped::{MakeEncoder, ShapedEncoder};
pub use simulcast::{SimulcastCamera, SimulcastView};
pub use source::Source;
pub use statistical::{StatisticalConfig, StatisticalSource};
pub use trace::{FrameTraces, TraceSource};
pub use video::{
    Capabilities, CodedFrame, Decoded, EncoderConfig, RateChange, VideoCodec, VideoDecoder, VideoEncoder, VideoError,
};
pub use video_receiver::{FrameOutcome, OnDamage, Shown, VideoReceiver, VideoReceiverStats};

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
