//! Numbers that have limits, and how they are read from a run.

use weir_lab::results::{FlowSummary, FrameSummary, QualitySummary, RunResult, StreamSummary, WindowSummary};

/// A number of a run's first flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Mean goodput in the window with this label, in kbit/s.
    WindowGoodput(&'static str),
    /// Mean queueing delay of the first link in the window with this label, in ms; 0 if nothing waited.
    WindowQueue(&'static str),
    /// Mean goodput, in kbit/s.
    Goodput,
    /// Mean goodput over the tail of the run, in kbit/s.
    TailGoodput,
    /// Goodput over capacity.
    Utilisation,
    /// Sum of the goodput in each second, in kbit.
    SecondsOfGoodput,
    /// Goodput over the rate sent.
    GoodputOfSent,
    /// Mean rate sent, in kbit/s.
    Sent,
    /// Mean rate that arrived, in kbit/s.
    Received,
    /// Packets that arrived.
    PacketsReceived,
    /// Packets that arrived over those sent.
    PacketsReceivedOfSent,
    /// Packets lost, in per cent.
    Loss,
    /// Median from capture to completion of a frame, in ms.
    FrameDelay,
    /// 95th percentile from capture to completion of a frame, in ms.
    FrameDelayP95,
    /// Frames that were complete after their playout time.
    FramesLate,
    /// Frames played.
    FramesPlayed,
    /// Longest time without sound of a stream, in s.
    Silence(&'static str),
    /// Share of a stream's sound that was concealed.
    Concealed(&'static str),
    /// Longest time without a frame of a stream, in s.
    Stall(&'static str),
    /// Frames of a stream that were played.
    StreamPlayed(&'static str),
    /// Share of the time in which a stream had a part of the target.
    On(&'static str),
    /// Most times that one of the streams went on or off.
    Switches,
    /// Padding over all that was sent.
    Padding,
    /// Key frames coded in a minute.
    KeyFrames,
    /// Time in freezes, in s.
    Frozen,
    /// Pictures shown.
    PicturesShown,
}

impl Quantity {
    /// Its name.
    pub fn label(self) -> String {
        match self {
            Self::WindowGoodput(window) => format!("goodput, {window}"),
            Self::WindowQueue(window) => format!("queue, {window}"),
            Self::Silence(stream) => format!("longest silence, {stream}"),
            Self::Concealed(stream) => format!("concealed, {stream}"),
            Self::Stall(stream) => format!("longest stall, {stream}"),
            Self::StreamPlayed(stream) => format!("frames played, {stream}"),
            Self::On(stream) => format!("time on, {stream}"),
            other => other.name().into(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Goodput | Self::WindowGoodput(_) => "goodput",
            Self::WindowQueue(_) => "queue",
            Self::TailGoodput => "goodput of the tail",
            Self::Utilisation => "goodput over capacity",
            Self::SecondsOfGoodput => "goodput by seconds, summed",
            Self::GoodputOfSent => "goodput over sent",
            Self::Sent => "sent",
            Self::Received => "received",
            Self::PacketsReceived => "packets received",
            Self::PacketsReceivedOfSent => "packets received over sent",
            Self::Loss => "packets lost",
            Self::FrameDelay => "frame delay, median",
            Self::FrameDelayP95 => "frame delay, p95",
            Self::FramesLate => "frames late",
            Self::FramesPlayed | Self::StreamPlayed(_) => "frames played",
            Self::Silence(_) => "longest silence",
            Self::Concealed(_) => "concealed",
            Self::Stall(_) => "longest stall",
            Self::On(_) => "time on",
            Self::Switches => "most switches of a stream",
            Self::Padding => "padding over sent",
            Self::KeyFrames => "key frames a minute",
            Self::Frozen => "frozen",
            Self::PicturesShown => "pictures shown",
        }
    }

    /// Its unit; none for counts and shares.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::WindowGoodput(_) | Self::Goodput | Self::TailGoodput | Self::Sent | Self::Received => "kbit/s",
            Self::SecondsOfGoodput => "kbit",
            Self::WindowQueue(_) | Self::FrameDelay | Self::FrameDelayP95 => "ms",
            Self::Silence(_) | Self::Stall(_) | Self::Frozen => "s",
            Self::Loss => "%",
            _ => "",
        }
    }

    /// Its value in a run; `None` if the run does not have it.
    pub fn read(self, run: &RunResult) -> Option<f64> {
        let flow = run.flows.first()?;
        Some(match self {
            Self::WindowGoodput(label) => window(run, label)?.flows.first()?.goodput_bps / 1e3,
            Self::WindowQueue(label) => window(run, label)?.queue_delay_ms.first()?.unwrap_or(0.0),
            Self::Goodput => flow.rates.goodput_bps / 1e3,
            Self::TailGoodput => flow.tail_goodput_bps / 1e3,
            Self::Utilisation => flow.utilisation_goodput?,
            Self::SecondsOfGoodput => {
                run.rates_over_time.media_bps.iter().flatten().map(|&bps| f64::from(bps)).sum::<f64>() / 1e3
            }
            Self::GoodputOfSent => flow.rates.goodput_bps / flow.rates.sent_bps,
            Self::Sent => flow.rates.sent_bps / 1e3,
            Self::Received => flow.rates.received_bps / 1e3,
            Self::PacketsReceived => flow.packets.received as f64,
            Self::PacketsReceivedOfSent => flow.packets.received as f64 / flow.packets.sent as f64,
            Self::Loss => 100.0 * flow.loss,
            Self::FrameDelay => frames(flow)?.delay_ms?.p50,
            Self::FrameDelayP95 => frames(flow)?.delay_ms?.p95,
            Self::FramesLate => frames(flow)?.late as f64,
            Self::FramesPlayed => frames(flow)?.played as f64,
            Self::Silence(name) => stream(flow, name)?.longest_silence_s?,
            Self::Concealed(name) => stream(flow, name)?.concealed?,
            Self::Stall(name) => stream(flow, name)?.frames.as_ref()?.longest_stall_s,
            Self::StreamPlayed(name) => stream(flow, name)?.frames.as_ref()?.played as f64,
            Self::On(name) => stream(flow, name)?.on,
            Self::Switches => f64::from(flow.streams.iter().map(|s| s.switches).max()?),
            Self::Padding => {
                let sent: f64 = flow.streams.iter().map(|s| s.sent_bps).sum();
                flow.streams.iter().map(|s| s.sent_bps * s.padding).sum::<f64>() / sent
            }
            Self::KeyFrames => flow.coded.as_ref()?.key as f64 / run.duration_s * 60.0,
            Self::Frozen => quality(flow)?.frozen_s,
            Self::PicturesShown => quality(flow)?.shown as f64,
        })
    }
}

fn window<'a>(run: &'a RunResult, label: &str) -> Option<&'a WindowSummary> {
    run.window(label)
}

const fn frames(flow: &FlowSummary) -> Option<&FrameSummary> {
    flow.frames.as_ref()
}

const fn quality(flow: &FlowSummary) -> Option<&QualitySummary> {
    flow.quality.as_ref()
}

fn stream<'a>(flow: &'a FlowSummary, name: &str) -> Option<&'a StreamSummary> {
    flow.streams.iter().find(|s| s.name == name)
}
