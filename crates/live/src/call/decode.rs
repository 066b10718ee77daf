//! The receiving end's video: the decoder on its own thread.

use crate::call::originals::Captures;
use crate::call::recording::{Recorder, Recording};
use crate::call::stats::{TimeSeries, Times, thread_time};
use crate::call::{CallError, CallObserver};
use crate::clock::Clock;
use crate::udp::Waker;
use serde::Serialize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;
use weir_media::quality::PlaneErrors;
use weir_media::{FrameOutcome, OnDamage, Picture, ReceivedFrame, VideoDecoder, VideoReceiver, displayed};
use weir_session::{Endpoint, IncomingId};
use weir_units::{TimeDelta, Timestamp};

/// Maximum frames waiting for the decoder; further ones are skipped.
const MAX_WAITING: usize = 16;

/// Handling of a call's received video.
pub struct VideoReceive {
    /// For the received codec.
    pub decoder: Box<dyn VideoDecoder>,
    /// Treatment of damaged pictures.
    pub on_damage: OnDamage,
    /// Where displayed pictures are written.
    pub record: Option<Recording>,
    /// Whether pictures are compared with the originals, if the sending end is in this process.
    pub quality: bool,
}

impl std::fmt::Debug for VideoReceive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VideoReceive").field("codec", &self.decoder.codec()).finish_non_exhaustive()
    }
}

/// Statistics of the decoder.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecodeSummary {
    /// The codec.
    pub codec: String,
    /// The decoder's library.
    pub library: String,
    /// Width and height of the last picture.
    pub size: Option<(u32, u32)>,
    /// Frames shown as they were coded.
    pub intact: u64,
    /// Frames shown with parts guessed or from damaged pictures.
    pub concealed: u64,
    /// Frames withheld because of damage.
    pub frozen: u64,
    /// Frames that could not be decoded.
    pub undecodable: u64,
    /// Frames of which nothing was received in time.
    pub missed: u64,
    /// Frames skipped because the decoder was too slow.
    pub overrun: u64,
    /// Key frames decoded.
    pub key_frames: u64,
    /// Pictures shown a second.
    pub shown_rate: f64,
    /// From capture to display, if the sending end is in this process.
    pub glass_to_glass: Option<Times>,
    /// From a frame's time of playout to the picture on the screen.
    pub decoding: Option<Times>,
    /// Mean over the displayed pictures of the PSNR of luma in dB against the originals.
    pub psnr_y_db: Option<f64>,
    /// PSNR of all pictures together by their mean squared error, all planes.
    pub psnr_db: Option<f64>,
    /// Pictures compared.
    pub compared: u64,
    /// Pictures written.
    pub recorded: u64,
    /// Why writing ended early.
    pub record_error: Option<String>,
    /// Share of one core, without comparison and writing.
    pub cpu: f64,
}

/// The decoder's report on a frame to the session; the frame's buffers are returned with it.
struct Verdict {
    frame: ReceivedFrame,
    intact: bool,
    wants_key_frame: bool,
}

/// The decoder while it runs.
pub struct ReceivingVideo {
    /// The stream whose frames it decodes.
    stream: IncomingId,
    frames: Option<SyncSender<ReceivedFrame>>,
    verdicts: Receiver<Verdict>,
    spare: Vec<ReceivedFrame>,
    thread: Option<JoinHandle<DecodeSummary>>,
    /// Whether there has been a picture as it was coded.
    begun: bool,
    /// Frames decoded as they were coded, and others.
    decoded: (u64, u64),
    missed: u64,
    overrun: u64,
    captures: Captures,
    /// Whether capture times are those of the other end's sender reports.
    by_reports: bool,
}

struct Work {
    receiver: VideoReceiver,
    library: &'static str,
    record: Option<Recording>,
    captures: Captures,
    quality: bool,
    clock: Clock,
    waker: Arc<Waker>,
    frames: Receiver<ReceivedFrame>,
    verdicts: Sender<Verdict>,
}

impl ReceivingVideo {
    /// Starts the decoder for an end that keeps content; `waker` is the end's.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(video: VideoReceive, clock: Clock, waker: Arc<Waker>) -> Result<Self, CallError> {
        Self::start_beside(video, clock, waker, None)
    }

    /// Likewise, beside a sending end in this process.
    pub(crate) fn start_beside(
        video: VideoReceive,
        clock: Clock,
        waker: Arc<Waker>,
        captures: Option<Captures>,
    ) -> Result<Self, CallError> {
        let captures = captures.unwrap_or_default();
        let (frames, to_decode) = sync_channel(MAX_WAITING);
        let (verdict_sender, verdicts) = channel();
        let work = Work {
            library: video.decoder.library(),
            receiver: VideoReceiver::new(video.decoder, video.on_damage),
            record: video.record,
            captures: captures.clone(),
            quality: video.quality,
            clock,
            waker,
            frames: to_decode,
            verdicts: verdict_sender,
        };
        let thread = std::thread::Builder::new().name("decoder".into()).spawn(move || work.run());
        let thread = Some(thread.map_err(CallError::socket("starting the decoder's thread"))?);
        let (stream, spare) = (IncomingId::FIRST, Vec::new());
        let (frames, begun, decoded, missed, overrun, by_reports) = (Some(frames), false, (0, 0), 0, 0, false);
        Ok(Self { stream, frames, verdicts, spare, thread, begun, decoded, missed, overrun, captures, by_reports })
    }

    /// Takes capture times from the other end's sender reports, for delays from capture to display: both ends' clocks
    /// are synchronised, and the stream is not the only one.
    pub(crate) fn with_sender_clock(self) -> Self {
        self.captures.set_offset(0);
        Self { by_reports: true, ..self }
    }

    /// Decodes this stream instead of the first.
    pub(crate) fn with_stream(self, stream: IncomingId) -> Self {
        Self { stream, ..self }
    }

    /// Frames decoded so far: as they were coded, and damaged ones.
    pub fn decoded(&self) -> (u64, u64) {
        self.decoded
    }

    /// Ends the decoder and returns its statistics.
    ///
    /// # Errors
    /// Its thread has failed.
    pub fn finish(mut self) -> Result<DecodeSummary, CallError> {
        self.frames = None;
        let thread = self.thread.take().ok_or_else(|| CallError::Thread("decoder".into()))?;
        let done = thread.join().map_err(|_| CallError::Thread("decoder".into()))?;
        Ok(DecodeSummary { missed: self.missed, overrun: self.overrun, ..done })
    }
}

impl CallObserver for ReceivingVideo {
    fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let Some(mut stream) = endpoint.incoming(self.stream) else { return };
        for v in self.verdicts.try_iter() {
            stream.on_decoded(v.frame.rtp_timestamp, v.intact);
            self.begun |= v.intact;
            if v.intact {
                self.decoded.0 += 1
            } else {
                self.decoded.1 += 1
            }
            if v.wants_key_frame {
                stream.request_key_frame(now);
            }
            self.spare.push(v.frame);
        }
        while let Some(event) = stream.poll_playout(now) {
            let mut frame = self.spare.pop().unwrap_or_default();
            if !stream.take_frame(&event, &mut frame) {
                self.missed += 1;
                // The decoder has no answer: it has decoded nothing yet.
                if !self.begun {
                    stream.request_key_frame(now);
                }
                self.spare.push(frame);
                continue;
            }
            if let Some(lag) = stream.playout_lag().filter(|_| self.by_reports) {
                self.captures.note(event.rtp_timestamp, event.at - lag, None);
            }
            let Some(decoder) = &self.frames else { continue };
            match decoder.try_send(frame) {
                Ok(()) => {}
                Err(TrySendError::Full(frame) | TrySendError::Disconnected(frame)) => {
                    self.overrun += 1;
                    self.spare.push(frame);
                }
            }
        }
    }
}

impl Work {
    fn run(mut self) -> DecodeSummary {
        let started = self.clock.now();
        let mut s = DecodeSummary {
            codec: self.receiver.codec().to_string(),
            library: self.library.into(),
            ..DecodeSummary::default()
        };
        let mut recorder = self.record.take().map(Recorder::new);
        let (mut delays, mut decoding) = (TimeSeries::default(), TimeSeries::default());
        let mut errors = PlaneErrors::default();
        let (mut luma, mut cpu) = (0.0, std::time::Duration::ZERO);
        let mut enlarged = None;
        while let Ok(frame) = self.frames.recv() {
            let begin = thread_time();
            let shown = self.receiver.on_frame(&frame);
            let on_screen = self.clock.now();
            cpu += thread_time().saturating_sub(begin);
            let outcome = shown.outcome;
            let is_new = matches!(outcome, FrameOutcome::Intact | FrameOutcome::Concealed);
            s.size = shown.picture.map(|p| (p.width(), p.height()));
            decoding.push(on_screen - shown.at);
            let original = Some(&self.captures).filter(|_| is_new).and_then(|c| c.find(shown.rtp_timestamp));
            if let Some(o) = &original {
                delays.push(on_screen - o.captured);
            }
            if let Some(picture) = shown.picture {
                if let Some(recorder) = &mut recorder {
                    recorder.write(shown.at, picture);
                }
                let reference = original.and_then(|o| o.picture).filter(|_| self.quality);
                let compare =
                    |r: &Picture| PlaneErrors::between(r, displayed(picture, (r.width(), r.height()), &mut enlarged));
                if let Some(Ok(e)) = reference.as_deref().map(compare) {
                    errors.add(&e);
                    luma += e.psnr().y;
                    s.compared += 1;
                }
            }
            let wants_key_frame = self.receiver.wants_key_frame();
            let verdict = Verdict { frame, intact: outcome == FrameOutcome::Intact, wants_key_frame };
            // The session has ended and reads no more reports.
            let _ = self.verdicts.send(verdict);
            self.waker.wake();
        }
        let time: TimeDelta = self.clock.now() - started;
        let stats = self.receiver.stats();
        (s.intact, s.concealed) = (stats.intact, stats.concealed);
        (s.frozen, s.undecodable, s.key_frames) = (stats.frozen, stats.undecodable, stats.key_frames);
        s.shown_rate = (s.intact + s.concealed) as f64 / time.as_secs_f64().max(1e-9);
        (s.glass_to_glass, s.decoding) = (delays.summary(), decoding.summary());
        if s.compared > 0 {
            s.psnr_y_db = Some(luma / s.compared as f64);
            s.psnr_db = Some(errors.psnr().average);
        }
        if let Some(recorder) = recorder {
            (s.recorded, s.record_error) = recorder.finish();
        }
        s.cpu = cpu.as_secs_f64() / time.as_secs_f64().max(1e-9);
        s
    }
}
