//! The measures of a run.

use serde::Serialize;
use weir_lab::results::{FlowSummary, RunResult, StreamSummary};

/// Pictures a second of the scenario's camera.
const FPS: f64 = 30.0;
/// Model of a picture's quality: PSNR at 100 kbit/s, its rise by each doubling of the rate, and that of a picture that is not shown
/// (guesses within what codecs do at CIF: 30 dB, 3 dB and 20 dB).
const BASE_DB: f64 = 30.0;
const BASE_BPS: f64 = 100e3;
const DOUBLING_DB: f64 = 3.0;
const MISSING_DB: f64 = 20.0;

/// A measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "CueMeasure"))]
pub enum Measure {
    /// Pictures of the lowest layer shown in time, as a share of those that a camera makes in the run.
    OnTime,
    /// Mean quality of pictures by the model, dB.
    Psnr,
    /// Speech that was not concealed, as a share.
    Speech,
    /// Mean opinion score of the conversation by the E-model, 1 to 4.5, which counts the delay to playout beside concealment.
    Mos,
    /// Time for which the lowest layer stood still, s.
    Frozen,
    /// 95th percentile of the time from capture to completion of pictures, ms.
    Delay,
    /// Rate of the highest layer that was on, bit/s.
    Shown,
}

impl Measure {
    /// All; the first three decide whether a cue earns its place.
    pub const ALL: [Self; 7] =
        [Self::OnTime, Self::Psnr, Self::Speech, Self::Mos, Self::Frozen, Self::Delay, Self::Shown];
    /// Those that decide: each is the better the higher it is.
    pub const DECIDING: [Self; 3] = [Self::OnTime, Self::Psnr, Self::Speech];
}

/// The measures of a run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CueMeasures"))]
pub struct Measures {
    /// See [`Measure::OnTime`].
    pub on_time: f64,
    /// See [`Measure::Psnr`].
    pub psnr_db: f64,
    /// See [`Measure::Speech`].
    pub speech: f64,
    /// See [`Measure::Mos`]; 1, the least, without speech.
    pub mos: f64,
    /// See [`Measure::Frozen`].
    pub frozen_s: f64,
    /// See [`Measure::Delay`]; zero if no picture was complete.
    pub delay_p95_ms: f64,
    /// See [`Measure::Shown`].
    pub shown_bps: f64,
}

impl Measures {
    /// Those of the first flow of a run; `None` if it has no video.
    pub fn of(run: &RunResult) -> Option<Self> {
        let flow: &FlowSummary = run.flows.first()?;
        let seconds = flow.stop_s - flow.start_s;
        let mut layers = flow.streams.iter().filter(|s| s.media == "video");
        let (lowest, upper) = (layers.next()?, layers.next());
        let frames = lowest.frames.as_ref()?;
        let on_time = (frames.played as f64 / (FPS * seconds).max(1.0)).min(1.0);
        let shown_bps = shown(lowest, upper);
        let coded = BASE_DB + DOUBLING_DB * libm::log2((shown_bps / BASE_BPS).max(0.01));
        // Silence at the end, after a circuit breaker, has nothing to conceal.
        let active = flow.tripped.as_ref().map_or(1.0, |(at, _)| (at - flow.start_s) / seconds.max(1e-9));
        let concealed = flow.streams.iter().find_map(|s| s.concealed);
        Some(Self {
            on_time,
            psnr_db: on_time * coded.max(MISSING_DB) + (1.0 - on_time) * MISSING_DB,
            speech: active * (1.0 - concealed.unwrap_or(1.0)),
            mos: flow.streams.iter().find_map(|s| s.mos).unwrap_or(1.0),
            frozen_s: frames.stalled_s + (1.0 - active) * seconds,
            delay_p95_ms: flow.frames.as_ref().and_then(|f| f.delay_ms).map_or(0.0, |d| d.p95),
            shown_bps,
        })
    }

    /// One of them.
    pub fn get(&self, measure: Measure) -> f64 {
        match measure {
            Measure::OnTime => self.on_time,
            Measure::Psnr => self.psnr_db,
            Measure::Speech => self.speech,
            Measure::Mos => self.mos,
            Measure::Frozen => self.frozen_s,
            Measure::Delay => self.delay_p95_ms,
            Measure::Shown => self.shown_bps,
        }
    }
}

/// The rate of the layer shown: the upper one while it is on.
fn shown(lowest: &StreamSummary, upper: Option<&StreamSummary>) -> f64 {
    // `sent_bps` is a mean over the run: of the upper layer, the time in which it was off included.
    upper.map_or(lowest.sent_bps, |u| u.sent_bps + (1.0 - u.on) * lowest.sent_bps)
}
