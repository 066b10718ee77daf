//! Real encoders in a run: what a flow codes, and what its receiver displays.

mod vmaf;

use super::{RunError, clips};
use crate::results::{Distribution, PictureQuantiles, QUANTILES, QualitySummary};
use crate::scenario::{self, Flow, RtpFlow, Video};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_media::quality::{self, Measures, MeterConfig, Outcome, QualityMeter};
use weir_media::resilience::{Choice, Mechanisms};
use weir_media::{
    Codec, Decoded, EncodedSource, EncoderConfig, FrameOutcome, MakeEncoder, OnDamage, ParamValue, Picture,
    PlayoutEvent, ReceivedFrame, ShapedEncoder, Source, VideoCodec, VideoEncoder, VideoReceiver, displayed,
};
use weir_session::{Endpoint, IncomingId, PictureFeedback, PictureName};
use weir_units::{DataRate, Timestamp};

/// The two ends of a flow share its meter: simulated on one thread, live on a thread each.
fn lock(meter: &Mutex<QualityMeter>) -> MutexGuard<'_, QualityMeter> {
    meter.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The encoder of a flow as a source, and the viewer of its pictures. Errors: no such codec is built in, or the clip
/// cannot be read.
pub(super) fn source(
    flow: &Flow,
    rtp: &RtpFlow,
    video: &Video,
    start: Timestamp,
) -> Result<(Source, Box<Viewer>), RunError> {
    let error = |message: String| RunError::Traffic { flow: flow.name.clone(), message };
    let clip = clips::open(flow, video)?;
    let (width, height) = clip.size();
    let config = EncoderConfig {
        frame_rate: video.fps,
        bit_rate: rtp.start_rate,
        key_interval: video.gop,
        slice_size: video.slice_size,
        rate_change: video.rate_change,
        reference_selection: selects_references(rtp),
        ..EncoderConfig::live(width, height)
    };
    let (codec, library) = (video.codec, video.library.clone());
    let mut make: MakeEncoder = Box::new(move |config| match &library {
        Some(library) => weir_codecs::encoder_of(library, codec, config),
        None => weir_codecs::encoder(codec, config),
    });
    let encoder = match rtp.sending.utility {
        Some(_) => ShapedEncoder::new(make, config).map(|e| Box::new(e) as Box<dyn VideoEncoder>),
        None => make(&config),
    };
    let encoder = encoder.map_err(|e| error(e.to_string()))?;
    let decoder = weir_codecs::decoder(video.codec).map_err(|e| error(e.to_string()))?;
    let mut source = EncodedSource::new(clip, encoder, start).map_err(|e| error(e.to_string()))?;
    let bps = |rate: DataRate| ParamValue::Number(rate.as_bps_f64());
    // Beside speech the pictures have less than the call.
    let least = rtp.streams.first().map_or(rtp.floor, |s| s.demand.least.max(LEAST_OF_PICTURES));
    for (name, rate) in [("max_bit_rate", rtp.ceiling), ("min_bit_rate", least)] {
        source.set_param(name, bps(rate), start).map_err(|e| error(e.to_string()))?;
    }
    // Decided at the latest when the next second's pictures wait too.
    let waiting = rtp.playout_deadline.map_or(0.0, |d| d.as_secs_f64() * video.fps);
    let ahead = rtp.read_ahead.map_or(0.0, |t| t.as_secs_f64() * video.fps);
    let pending = (waiting + ahead + video.fps).ceil() as usize + 1;
    let memory = 1.5 * f64::from(width) * f64::from(height) * pending as f64;
    if memory > MOST_MEMORY {
        return Err(error(format!(
            "{pending} pictures of {width}x{height} wait for their playout, {:.0} MB; at most {:.0} MB: shorten `read_ahead` or \
             `playout_deadline`, or take a smaller `picture`",
            memory / 1e6,
            MOST_MEMORY / 1e6
        )));
    }
    let config = MeterConfig { measures: Measures { ssim: true, gaussian: false }, pending, scores: 1 };
    let mut meter = QualityMeter::new(config);
    let vmaf = video.vmaf.then(|| vmaf::Scorer::of(&mut meter, width, height)).transpose();
    let vmaf = vmaf.map_err(|e| error(e.to_string()))?;
    let meter = Arc::new(Mutex::new(meter));
    let captured = meter.clone();
    source.set_tap(Box::new(move |c| lock(&captured).on_reference(c.rtp_timestamp, c.picture)));
    let receiver = VideoReceiver::new(decoder, OnDamage::Show);
    // With periodic key frames, damage is repaired without feedback, which is needed only if references may be
    // requested.
    let sends_feedback = video.gop.is_none() || selects_references(rtp);
    let viewer = Viewer {
        meter,
        receiver,
        offset: 0,
        frame: ReceivedFrame::default(),
        last_psnr: None,
        sends_feedback,
        size: (width, height),
        enlarged: None,
        detail: Detail::default(),
        vmaf,
    };
    Ok((source.into_source(), Box::new(viewer)))
}

/// Whether this build has the library of encoders with this name, such as "x264".
pub fn has_library(name: &str) -> bool {
    weir_codecs::list().iter().any(|l| l.name == name && l.built_in)
}

/// Whether the receiver may request a reference from the encoder.
fn selects_references(rtp: &RtpFlow) -> bool {
    rtp.resilience.is_some_and(|choice| match choice {
        Choice::Auto => true,
        Choice::Pinned(mechanisms) => mechanisms.contains(Mechanisms::REFERENCES),
    })
}

/// How pictures are named and acknowledged in a flow's feedback.
pub(super) fn picture_feedback(rtp: &RtpFlow) -> PictureFeedback {
    let name = match &rtp.source {
        scenario::Source::Encoder(v) if v.codec != VideoCodec::H264 => PictureName::PictureId(v.codec),
        _ => PictureName::RtpTimestamp,
    };
    // Encoders that keep a few references return only to acknowledged ones.
    PictureFeedback { name, acknowledge: selects_references(rtp), ..PictureFeedback::default() }
}

/// Least rate of the encoder of a call that also has speech: what it cannot keep to is sent as its frames require.
const LEAST_OF_PICTURES: DataRate = DataRate::from_kbps(2);

/// Most memory of pictures that wait for their playout, in bytes: a minute of 640 x 480 at 30 a second is 0.83 GB.
const MOST_MEMORY: f64 = 1e9;

/// Decodes received frames and compares each captured picture with the one displayed at its time.
pub struct Viewer {
    meter: Arc<Mutex<QualityMeter>>,
    receiver: VideoReceiver,
    /// The sender's timestamp offset.
    offset: u32,
    frame: ReceivedFrame,
    /// Of the picture compared last, in dB.
    last_psnr: Option<f64>,
    /// Whether it sends feedback about decoded and missing frames.
    sends_feedback: bool,
    /// Of the captured pictures, at which all are displayed.
    size: (u32, u32),
    /// A smaller picture at this size.
    enlarged: Option<Picture>,
    detail: Detail,
    vmaf: Option<vmaf::Scorer>,
}

/// Sums over the pictures that were shown, without those in whose place an earlier one stayed.
#[derive(Clone, Copy, Default, Debug)]
struct Detail {
    shown: u64,
    width: u64,
    scored: u64,
    psnr_db: f64,
    /// Width of the last one, and how often another followed.
    last: Option<u32>,
    changes: u64,
}

impl Detail {
    fn add(&mut self, width: u32) {
        self.shown += 1;
        self.width += u64::from(width);
        self.changes += u64::from(self.last.replace(width).is_some_and(|last| last != width));
    }
    fn mean(sum: f64, count: u64) -> Option<f64> {
        (count > 0).then(|| sum / count as f64)
    }
}

impl Viewer {
    /// The sender adds this to the timestamps of its source.
    pub(super) fn set_offset(&mut self, offset: u32) {
        self.offset = offset;
    }

    /// A frame's time has come: takes its received part, displays it, and requests missing data from the other end.
    pub fn on_playout(&mut self, endpoint: &mut Endpoint, event: &PlayoutEvent, now: Timestamp) {
        if !endpoint.take_frame(event, &mut self.frame) {
            return;
        }
        let shown = self.receiver.on_frame(&self.frame);
        let decoded = match shown.outcome {
            FrameOutcome::Intact => Decoded::Intact,
            FrameOutcome::Concealed => Decoded::Concealed,
            FrameOutcome::Frozen | FrameOutcome::Undecodable => Decoded::Nothing,
        };
        let mut meter = lock(&self.meter);
        // If no picture was ever decoded, there is nothing to compare with.
        if let Some(picture) = shown.picture {
            if decoded != Decoded::Nothing {
                self.detail.add(picture.width());
            }
            let picture = displayed(picture, self.size, &mut self.enlarged);
            meter.on_received(event.rtp_timestamp.wrapping_sub(self.offset), decoded, picture);
        }
        while let Some(score) = meter.poll_score() {
            let psnr = score.comparison.map(|c| c.errors.psnr().y);
            self.last_psnr = psnr.or(self.last_psnr);
            if let (Some(psnr), Outcome::Shown | Outcome::Concealed) = (psnr, score.outcome) {
                self.detail.scored += 1;
                self.detail.psnr_db += psnr;
            }
        }
        drop(meter);
        if self.sends_feedback {
            self.send_feedback(endpoint, event.rtp_timestamp, decoded, now);
        }
    }

    /// Acknowledges a decoded picture, and requests a repair if pictures are damaged.
    fn send_feedback(&self, endpoint: &mut Endpoint, rtp_timestamp: u32, decoded: Decoded, now: Timestamp) {
        let has_policy = endpoint.stats().resilience().1.is_some();
        let Some(mut stream) = endpoint.incoming(IncomingId::FIRST) else { return };
        if decoded != Decoded::Nothing {
            stream.on_decoded(rtp_timestamp, decoded == Decoded::Intact);
        }
        if !self.receiver.wants_key_frame() {
            return;
        }
        match self.receiver.last_decoded().filter(|_| has_policy) {
            Some(last) => stream.on_damaged(last, now),
            None => stream.request_key_frame(now),
        };
    }

    /// PSNR of the picture compared last, in dB.
    pub fn last_psnr(&self) -> Option<f64> {
        self.last_psnr
    }

    /// Quality over the whole run, which is over.
    pub fn summary(&self) -> (QualitySummary, PictureQuantiles) {
        let mut meter = lock(&self.meter);
        meter.finish();
        let r = meter.report();
        let summary = QualitySummary {
            pictures: r.references,
            shown: r.shown + r.concealed,
            concealed: r.concealed,
            undecodable: r.undecodable,
            frozen: r.frozen(),
            freezes: r.freezes,
            frozen_s: r.freeze_time.as_secs_f64(),
            key_frames: self.receiver.stats().key_frames,
            psnr_db: distribution(&r.psnr_y),
            ssim: distribution(&r.ssim_tiled),
            vmaf: self.vmaf.as_ref().and_then(|v| distribution(&v.scores()?)),
            below_20_db: r.psnr_y.share_below(20.0),
            shown_psnr_db: Detail::mean(self.detail.psnr_db, self.detail.scored),
            width: Detail::mean(self.detail.width as f64, self.detail.shown),
            size_changes: Some(self.detail.changes),
        };
        (summary, PictureQuantiles { psnr_db: spread(&r.psnr_y), ssim: spread(&r.ssim_tiled) })
    }
}

fn spread(d: &quality::Distribution) -> Vec<f64> {
    (0..QUANTILES).map_while(|i| d.quantile(i as f64 / (QUANTILES - 1) as f64)).collect()
}

fn distribution(d: &quality::Distribution) -> Option<Distribution> {
    let q = |share| d.quantile(share);
    Some(Distribution { mean: d.mean()?, p50: q(0.5)?, p95: q(0.95)?, p99: q(0.99)?, min: d.min()?, max: d.max()? })
}
