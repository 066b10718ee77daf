//! The sending end's video: camera and encoder on their own thread.

use crate::call::camera::Camera;
use crate::call::originals::Captures;
use crate::call::stats::{TimeSeries, Times, thread_time};
use crate::call::{CallError, CallObserver, LivePacket};
use crate::clock::Clock;
use crate::udp::Waker;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_media::{CodedFrame, Frame, FramePusher, PushedSource, VideoEncoder};
use weir_units::{DataRate, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

/// The video sent by a call.
pub struct VideoSend {
    /// Pictures.
    pub camera: Camera,
    /// Of the camera's size and rate.
    pub encoder: Box<dyn VideoEncoder>,
}

impl std::fmt::Debug for VideoSend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VideoSend").field("camera", &self.camera).field("codec", &self.encoder.codec()).finish()
    }
}

/// Statistics of camera and encoder.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EncodeSummary {
    /// The codec.
    pub codec: String,
    /// The encoder's library.
    pub library: String,
    /// Width and height.
    pub size: (u32, u32),
    /// Pictures captured.
    pub pictures: u64,
    /// Pictures skipped because they were due while the encoder was busy.
    pub skipped: u64,
    /// Pictures dropped by the encoder to keep its rate.
    pub dropped: u64,
    /// Failures of the encoder.
    pub errors: u64,
    /// The last of them.
    pub last_error: Option<String>,
    /// Layer frames omitted because the stream's share was too small for their layers.
    pub left_out: u64,
    /// Coded frames sent.
    pub frames: u64,
    /// Those of them that are key frames.
    pub key_frames: u64,
    /// Mean bit rate of the coded frames.
    pub rate_bps: f64,
    /// Mean width of the coded pictures, if the encoder may code smaller ones.
    pub width: Option<f64>,
    /// Times that another size or number of pictures was coded.
    pub shape_changes: u64,
    /// Time from capture to the coded frame.
    pub encoding: Option<Times>,
    /// Share of one core.
    pub cpu: f64,
}

/// Camera and encoder while they run.
pub struct SendingVideo {
    captures: Captures,
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<EncodeSummary>>,
    has_sent: bool,
}

struct Work {
    video: VideoSend,
    pusher: FramePusher,
    captures: Captures,
    /// Whether pictures are kept for comparison.
    keeps: bool,
    clock: Clock,
    waker: Arc<Waker>,
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl SendingVideo {
    /// Starts camera and encoder; the returned source is for the session. With `keeps`, pictures are kept for
    /// comparison.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(
        video: VideoSend,
        clock: Clock,
        waker: Arc<Waker>,
        keeps: bool,
    ) -> Result<(PushedSource, Self), CallError> {
        let (source, pusher) = PushedSource::new(video.encoder.codec());
        let (captures, stop, ended) = (Captures::default(), Arc::default(), Arc::default());
        let work = Work {
            video,
            pusher,
            captures: captures.clone(),
            keeps,
            clock,
            waker,
            stop: Arc::clone(&stop),
            ended: Arc::clone(&ended),
        };
        let thread = std::thread::Builder::new().name("encoder".into()).spawn(move || work.run());
        let thread = Some(thread.map_err(CallError::socket("starting the encoder's thread"))?);
        Ok((source, Self { captures, stop, ended, thread, has_sent: false }))
    }

    /// The captured pictures.
    pub(crate) fn captures(&self) -> &Captures {
        &self.captures
    }
    /// Raised when the camera has ended.
    pub fn ended(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ended)
    }

    /// Stops camera and encoder, and returns their statistics.
    ///
    /// # Errors
    /// Their thread has failed.
    pub fn finish(mut self) -> Result<EncodeSummary, CallError> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or_else(|| CallError::Thread("encoder".into()))?;
        thread.join().map_err(|_| CallError::Thread("encoder".into()))
    }
}

impl Drop for SendingVideo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl CallObserver for SendingVideo {
    fn on_packet(&mut self, packet: &LivePacket<'_>) {
        if packet.sent && packet.is_rtp && !self.has_sent {
            self.has_sent = true;
            if let Ok(view) = PacketView::parse_header(packet.bytes) {
                self.captures.on_first_packet(view.timestamp());
            }
        }
    }
}

impl Work {
    fn run(mut self) -> EncodeSummary {
        let begin = thread_time();
        let started = self.clock.now();
        let mut s = EncodeSummary {
            codec: self.video.encoder.codec().to_string(),
            library: self.video.encoder.library().into(),
            size: self.video.camera.size(),
            ..EncodeSummary::default()
        };
        let mut times = TimeSeries::default();
        let (mut bytes, mut width) = (0, 0);
        if let Err(e) = self.capture(&mut s, &mut times, (&mut bytes, &mut width)) {
            (s.errors, s.last_error) = (s.errors + 1, Some(e.to_string()));
        }
        let time = self.clock.now() - started;
        s.encoding = times.summary();
        s.width = (s.frames > 0 && width > 0).then(|| width as f64 / s.frames as f64);
        s.left_out = self.pusher.left_out();
        s.rate_bps =
            DataRate::from_size_over(weir_units::DataSize::from_bytes(bytes), time).map_or(0.0, DataRate::as_bps_f64);
        s.cpu = (thread_time().saturating_sub(begin)).as_secs_f64() / time.as_secs_f64().max(1e-9);
        self.ended.store(true, Ordering::Relaxed);
        self.waker.wake();
        s
    }

    /// Until the camera ends or is stopped.
    fn capture(
        &mut self,
        s: &mut EncodeSummary,
        times: &mut TimeSeries,
        (bytes, width): (&mut u64, &mut u64),
    ) -> Result<(), weir_media::MediaError> {
        let rate = self.video.camera.rate();
        let start = self.clock.now();
        let mut slot = 0;
        let mut shape = self.video.encoder.shape();
        while !self.stop.load(Ordering::Relaxed) {
            // Read in advance, so that reading adds nothing to the delay.
            let Some(picture) = self.video.camera.next_picture()? else { break };
            let captured = if self.video.camera.is_live() {
                self.clock.now()
            } else {
                // Pictures due while the encoder is busy are skipped.
                while start + rate.time_of(slot + 1) <= self.clock.now() {
                    slot += 1;
                    s.skipped += 1;
                }
                let captured = start + rate.time_of(slot);
                slot += 1;
                self.sleep_until(captured);
                captured
            };
            s.pictures += 1;
            if let Err(e) = self.pusher.apply(&mut *self.video.encoder, captured) {
                (s.errors, s.last_error) = (s.errors + 1, Some(e.to_string()));
            }
            // No rate yet, or a pause.
            if self.pusher.target() == DataRate::ZERO {
                continue;
            }
            let ticks = (i128::from(captured.as_nanos()) * 90_000 / 1_000_000_000).max(0) as u64;
            let mut coded = CodedFrame::default();
            match self.video.encoder.encode(&picture, ticks, &mut coded) {
                Err(e) => {
                    (s.errors, s.last_error) = (s.errors + 1, Some(e.to_string()));
                    self.video.encoder.request_key_frame();
                }
                Ok(()) if coded.data.is_empty() => s.dropped += 1,
                Ok(()) => {
                    times.push(self.clock.now() - captured);
                    let now = self.video.encoder.shape();
                    s.shape_changes += u64::from(std::mem::replace(&mut shape, now) != now);
                    *width += now.map_or(0, |s| u64::from(s.width));
                    let key = coded.key;
                    if let Some(frame) = self.hand_over(captured, coded, bytes) {
                        s.frames += 1;
                        s.key_frames += u64::from(key);
                        self.captures.note(frame.rtp_timestamp, captured, self.keeps.then_some(&picture));
                    }
                    self.waker.wake();
                }
            }
        }
        Ok(())
    }

    /// Submits all layer frames of a picture; the lowest one as it is sent.
    fn hand_over(&mut self, captured: Timestamp, mut coded: CodedFrame, bytes: &mut u64) -> Option<Frame> {
        let mut lowest = None;
        loop {
            let (size, more) = (coded.data.len() as u64, coded.more_layers);
            if let Some(frame) = self.pusher.push(captured, coded) {
                *bytes += size;
                lowest = lowest.or(Some(frame));
            }
            coded = CodedFrame::default();
            if !more || !self.video.encoder.next_layer(&mut coded) {
                return lowest;
            }
        }
    }

    fn sleep_until(&self, at: Timestamp) {
        let wait = at.saturating_since(self.clock.now());
        if wait > TimeDelta::ZERO {
            std::thread::sleep(Duration::from_nanos(u64::try_from(wait.as_nanos()).unwrap_or(0)));
        }
    }
}
