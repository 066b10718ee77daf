//! The encoder.

use super::account::Account;
use super::handle::Handle;
use super::long_term::LongTerm;
use super::slice::SliceReader;
use super::{CHECK, LIBRARY};
use crate::dips::{Depth, Dips};
use crate::h264::{self, Encoding, SLICE_SIZES};
use weir_media::{
    Capabilities, CodedFrame, EncoderConfig, LayerId, LayerInfo, Layering, Picture, RateChange, VideoCodec,
    VideoEncoder, VideoError,
};
use weir_units::{DataRate, DataSize};

/// Least side supported by the library.
const MIN_SIDE: u32 = 16;
/// Frame rates supported by the library (its MIN_FRAME_RATE and MAX_FRAME_RATE).
const FRAME_RATES: core::ops::RangeInclusive<f64> = 1.0..=60.0;

/// The library's simulcast is not used: encodings of several sizes are separate encoders.
fn most_layers() -> Layering {
    Layering::new(1, weir_media::MAX_TEMPORAL_LAYERS).unwrap_or_default()
}

fn check(config: &EncoderConfig) -> Result<(), VideoError> {
    CHECK.common(config, FRAME_RATES)?;
    h264::check_size(CHECK, config, MIN_SIDE)?;
    CHECK.layering(config, most_layers())?;
    // The library requires whole periods of its layers between key frames.
    let period = 1 << (config.layering.temporal() - 1);
    if let Some(interval) = config.key_interval.filter(|n| !n.is_multiple_of(period)) {
        return Err(CHECK.refusal(
            "key_interval",
            interval,
            format!("a multiple of {period}, with {}", config.layering),
        ));
    }
    CHECK.slice_size(config.slice_size, SLICE_SIZES)
}

/// Whether the library's rate is set with each picture, not at once.
fn follows(config: &EncoderConfig) -> bool {
    config.rate_change == RateChange::Seamless
}

/// Encodes H.264.
pub(crate) struct Encoder {
    handle: Handle,
    state: Encoding,
    long_term: LongTerm,
    slices: SliceReader,
    dips: Dips,
    account: Account,
    /// The library's rate.
    applied: DataRate,
    /// Whether the next picture settles the account.
    settles: bool,
    /// Whether the library may leave the next picture out.
    drops: bool,
    /// Pictures coded since the last key frame.
    since_key: u32,
}

impl Encoder {
    pub(crate) fn new(config: &EncoderConfig) -> Result<Self, VideoError> {
        check(config)?;
        Ok(Self {
            handle: Handle::open(config)?,
            state: Encoding::new(CHECK, config, false),
            long_term: LongTerm::default(),
            slices: SliceReader::default(),
            dips: Dips::new(Depth::TENTH),
            account: Account::new(config.frame_rate, config.layering.temporal()),
            applied: config.bit_rate,
            settles: false,
            drops: config.may_drop,
            since_key: 0,
        })
    }

    /// Sets the library's rate for the picture at `ticks`; `None` if the picture is skipped.
    fn follow_target(&mut self, ticks: u64) -> Result<Option<DataRate>, VideoError> {
        let config = &self.state.config;
        self.account.pass(config.bit_rate, ticks);
        let rate = self.dips.next(config, ticks);
        if let Some(rate) = rate.filter(|_| follows(config)) {
            // A key frame at such a rate would be as coarse as can be. Those of an interval come after so many coded pictures.
            let key = self.state.key_frame || config.key_interval.is_some_and(|n| self.since_key + 1 >= n);
            let settles = !key && self.account.settles(rate);
            self.settles = settles;
            // The library compares what its buffer holds with the size for the rate of the last picture: after one at the settling rate it would
            // leave out all that follow.
            let drops = config.may_drop && !settles && !self.account.is_settling();
            if drops != self.drops {
                self.handle.set_may_drop(drops)?;
                self.drops = drops;
            }
            self.set_library_rate(if settles { self.account.settling_rate() } else { rate })?;
        }
        Ok(rate)
    }

    fn set_library_rate(&mut self, rate: DataRate) -> Result<(), VideoError> {
        if rate == self.applied {
            return Ok(());
        }
        if self.settles {
            self.handle.set_least_bit_rate(rate)?
        } else {
            self.handle.set_bit_rate(rate)?
        }
        self.applied = rate;
        Ok(())
    }
}

impl VideoEncoder for Encoder {
    fn codec(&self) -> VideoCodec {
        VideoCodec::H264
    }
    fn library(&self) -> &'static str {
        LIBRARY
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { slices: true, reference_selection: true }
    }
    fn config(&self) -> &EncoderConfig {
        &self.state.config
    }

    fn set_bit_rate(&mut self, rate: DataRate) -> Result<(), VideoError> {
        self.state.set_bit_rate(rate, |config| match follows(config) {
            // With the next picture.
            true => Ok(()),
            false => self.handle.set_bit_rate(config.bit_rate),
        })
    }

    fn set_slice_size(&mut self, size: Option<DataSize>) -> Result<(), VideoError> {
        if size != self.state.config.slice_size {
            let config = EncoderConfig { slice_size: size, ..self.state.config };
            check(&config)?;
            // The library fixes it on opening.
            self.state.config = config;
            self.state.reopen = true;
        }
        Ok(())
    }

    fn request_key_frame(&mut self) {
        self.state.key_frame = true;
    }

    fn acknowledge(&mut self, picture_id: u64) {
        if !self.state.reopen
            && let Some(word) = self.long_term.acknowledge(picture_id)
        {
            // If the call fails the mark stays unconfirmed, which only loses that picture as a reference.
            let _ = self.handle.report(word);
        }
    }

    fn select_reference(&mut self, picture_id: u64) -> bool {
        if self.state.reopen {
            return false;
        }
        let accepted = self.long_term.select(picture_id).is_some_and(|word| self.handle.report(word).is_ok());
        self.state.selected |= accepted;
        accepted
    }

    fn encode(&mut self, picture: &Picture, ticks: u64, out: &mut CodedFrame) -> Result<(), VideoError> {
        self.state.begin(picture, out)?;
        if core::mem::take(&mut self.state.reopen) {
            self.handle = Handle::open(&self.state.config)?;
            self.applied = self.state.config.bit_rate;
            self.dips = Dips::new(Depth::TENTH);
            let config = &self.state.config;
            (self.account, self.settles) = (Account::new(config.frame_rate, config.layering.temporal()), false);
            self.drops = self.state.config.may_drop;
            self.since_key = 0;
            self.long_term = LongTerm::default();
        }
        (out.key, out.layer, out.more_layers) = (false, None, false);
        let Some(rate) = self.follow_target(ticks)? else {
            self.state.describe(out);
            return Ok(());
        };
        if self.state.key_frame {
            self.handle.force_key_frame();
        }
        let temporal;
        (out.key, temporal) = self.handle.encode(self.state.even.of(picture), ticks, &mut out.data)?;
        self.dips.coded(rate, out.data.len());
        self.account.coded(self.applied, out.key, out.data.len());
        // The bits do not signal that nothing refers to a picture of the top layer.
        let layer = LayerInfo { id: LayerId::new(0, temporal), ..LayerInfo::default() };
        (out.layer, out.more_layers) = ((!self.state.config.layering.is_single()).then_some(layer), false);
        if self.state.describe(out) {
            self.since_key = if out.key { 0 } else { self.since_key + 1 };
            self.state.key_frame &= !out.key;
            if self.state.config.reference_selection
                && let Some(slice) = self.slices.read(&out.data)
            {
                out.from_selected = core::mem::take(&mut self.state.selected) && slice.from_long_term;
                if let Some(word) = self.long_term.coded(self.state.next_id, slice) {
                    self.handle.report(word)?;
                }
            }
            self.state.next_id += 1;
        }
        Ok(())
    }

    fn most_layers(&self) -> Layering {
        most_layers()
    }
}
