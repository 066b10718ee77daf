//! A call of one video stream with another process.

use crate::call::CallError;
use crate::call::config::CallConfig;
use crate::call::decode::{DecodeSummary, ReceivingVideo, VideoReceive};
use crate::call::encode::{EncodeSummary, SendingVideo, VideoSend};
use crate::call::end::RunUntil;
use crate::call::joined::{Joined, PlannedSource};
use crate::call::observer::{CallObserver, EndSummary};
use crate::clock::Clock;
use crate::udp::Waker;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_media::Source;
use weir_session::allocation::Demand;
use weir_units::TimeDelta;

/// The pictures of a call with another process.
#[derive(Debug, Default)]
pub struct VideoCall {
    /// The video sent, if this end sends.
    pub send: Option<VideoSend>,
    /// Handling of received video, if this end receives.
    pub receive: Option<VideoReceive>,
}

/// An end's report on a call with another process.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartySummary {
    /// Packets.
    pub end: EndSummary,
    /// Pictures sent.
    pub sent: Option<EncodeSummary>,
    /// Pictures received.
    pub received: Option<DecodeSummary>,
}

/// Runs an agreed call until the time is over, the flag is raised, the camera ends, or the other end sends a BYE.
///
/// # Errors
/// The end cannot be constructed or its socket fails.
pub fn run_party<O: CallObserver>(
    joined: Joined,
    config: &CallConfig,
    registry: &Registry,
    video: VideoCall,
    duration: Option<TimeDelta>,
    stop: &AtomicBool,
    observer: &mut O,
) -> Result<PartySummary, CallError> {
    let clock = Clock::of_day();
    let waker = Waker::new().map(Arc::new).map_err(CallError::socket("making a descriptor to wake a thread by"))?;
    let (mut sources, mut sending) = (Vec::new(), None);
    if let Some(send) = video.send.filter(|_| joined.agreement.sends()) {
        let (pushed, started) = SendingVideo::start(send, clock, waker.clone(), false)?;
        sources.push(PlannedSource { source: Source::Custom(Box::new(pushed)), demand: Demand::default() });
        sending = Some(started);
    }
    let mut end = joined.into_end(config, registry, &clock, sources)?.end;
    end.set_waker(Some(waker.clone()));
    end.meter_cpu();
    let mut receiving = match video.receive {
        Some(receive) => Some(ReceivingVideo::start(receive, clock, waker)?),
        None => None,
    };
    let ended = sending.as_ref().map(SendingVideo::ended);
    let at = duration.map(|d| clock.now() + d);
    let until = RunUntil { at, stop, ended: ended.as_deref(), bye: true, silence: config.silence };
    let done = end.run(&clock, &until, &mut (observer, &mut receiving));
    let summary = end.summary(clock.now());
    let sent = sending.map(SendingVideo::finish).transpose()?;
    let received = receiving.map(ReceivingVideo::finish).transpose()?;
    done.map(|()| PartySummary { end: summary, sent, received })
}
