//! Checks of an encoder's configuration.

use core::ops::RangeInclusive;
use weir_media::{EncoderConfig, Layering, Picture, VideoCodec, VideoError};
use weir_units::DataRate;
#[cfg(any(feature = "openh264", feature = "x264"))]
use weir_units::DataSize;

/// The encoder, for error messages.
#[derive(Clone, Copy)]
pub(crate) struct Check {
    pub(crate) codec: VideoCodec,
    pub(crate) library: &'static str,
}

impl Check {
    pub(crate) fn refusal(self, field: &'static str, value: impl ToString, expected: impl ToString) -> VideoError {
        let (value, expected) = (value.to_string(), expected.to_string());
        VideoError::Config { codec: self.codec, library: self.library, field, value, expected }
    }

    pub(crate) fn failure(self, what: &'static str, message: impl ToString) -> VideoError {
        VideoError::Library { codec: self.codec, library: self.library, what, message: message.to_string() }
    }

    /// Checks the fields common to all codecs.
    pub(crate) fn common(self, config: &EncoderConfig, frame_rates: RangeInclusive<f64>) -> Result<(), VideoError> {
        if !frame_rates.contains(&config.frame_rate) {
            let expected = format!("{} to {}", frame_rates.start(), frame_rates.end());
            return Err(self.refusal("frame_rate", config.frame_rate, expected));
        }
        if !(1..=MAX_THREADS).contains(&config.threads) {
            return Err(self.refusal("threads", config.threads, format!("1 to {MAX_THREADS}")));
        }
        self.bit_rate(config.bit_rate)
    }

    /// Checks layers, of which the codec supports at most this many; references cannot be selected together with
    /// layers.
    pub(crate) fn layering(self, config: &EncoderConfig, most: Layering) -> Result<(), VideoError> {
        let asked = config.layering;
        if asked.spatial() > most.spatial() || asked.temporal() > most.temporal() {
            return Err(self.refusal("layering", asked, format!("{most} at most")));
        }
        if config.reference_selection && !asked.is_single() {
            return Err(self.refusal("layering", asked, "L1T1 with reference selection"));
        }
        Ok(())
    }

    pub(crate) fn bit_rate(self, rate: DataRate) -> Result<(), VideoError> {
        if rate.as_bps() == 0 { Err(self.refusal("bit_rate", 0, "more than 0 bit/s")) } else { Ok(()) }
    }

    #[cfg(any(feature = "openh264", feature = "x264"))]
    pub(crate) fn slice_size(self, size: Option<DataSize>, sizes: RangeInclusive<u64>) -> Result<(), VideoError> {
        match size.map(DataSize::as_bytes).filter(|s| !sizes.contains(s)) {
            Some(size) => Err(self.refusal("slice_size", size, format!("{} to {} bytes", sizes.start(), sizes.end()))),
            None => Ok(()),
        }
    }

    pub(crate) fn size(self, config: &EncoderConfig, expected: impl ToString) -> VideoError {
        self.refusal("size", format!("{}x{}", config.width, config.height), expected)
    }

    /// Checks a picture to be encoded.
    pub(crate) fn picture(self, picture: &Picture, config: &EncoderConfig) -> Result<(), VideoError> {
        if (picture.width(), picture.height()) == (config.width, config.height) {
            return Ok(());
        }
        let expected = format!("{}x{}, as configured", config.width, config.height);
        Err(self.refusal("picture", format!("{}x{}", picture.width(), picture.height()), expected))
    }
}

/// Most threads of an encoder: the limit of all libraries, and more would not help.
const MAX_THREADS: u32 = 16;
