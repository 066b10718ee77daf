//! Constructs both ends of a call from an RTP flow of a scenario.

use super::video::Viewer;
use super::{RunError, paths, streams, video};
use crate::scenario::{self as sc, Flow, RtpFlow, StreamSource};
use weir_cc::{Limits, Registry, Setup};
use weir_media::resilience::Choice;
use weir_media::{
    Capabilities, CappedSource, FrameTraces, PerfectCodec, ReadAhead, ScenesSource, Source, StatisticalConfig,
    StatisticalSource, TraceSource,
};
use weir_session::{
    CallPlan, Control, EndConfig, EndName, Endpoint, FrameRepair, IncomingConfig, NackConfig, OutgoingId,
    OutgoingOptions, RepairChoice, ResilienceConfig,
};
use weir_sim::mix;
use weir_units::{TimeDelta, Timestamp};

/// The seed of flow number `index` of a run.
pub fn flow_seed(seed: u64, index: usize) -> u64 {
    mix(seed, 1_000 + index as u64)
}

/// The synchronisation sources of a flow's ends and of the base stations that report to them.
pub(super) struct Ssrcs {
    pub sender: u32,
    pub receiver: u32,
    /// At the sender and at the receiver.
    pub stations: [u32; 2],
}

impl Ssrcs {
    /// Of the flow with this seed.
    pub(super) fn of(seed: u64) -> Self {
        let [sender, receiver, at_sender, at_receiver] = [1, 2, 6, 7].map(|k| mix(seed, k) as u32);
        Self { sender, receiver, stations: [at_sender, at_receiver] }
    }
}

/// Both ends of a call.
pub struct Call {
    /// Sends media.
    pub sender: Endpoint,
    /// Receives it.
    pub receiver: Endpoint,
    /// Decodes and rates what the receiver gets, if the media has content.
    pub viewer: Option<Box<Viewer>>,
}

/// Both ends of an RTP flow, for the simulator and for real sockets alike: times count from the beginning of the run.
pub fn call(flow: &Flow, rtp: &RtpFlow, seed: u64, registry: &Registry) -> Result<Call, RunError> {
    let stream_error = |message| RunError::Traffic { flow: flow.name.clone(), message };
    let controller_error = |e| RunError::Controller { flow: flow.name.clone(), source: Box::new(e) };
    let now = Timestamp::ZERO + flow.start;
    let limits = Limits { floor: rtp.floor, ceiling: rtp.ceiling };
    let setup = Setup { limits, start_rate: rtp.start_rate, now, seed, params: rtp.params.clone() };
    let control = Control::new(registry, &rtp.controller, &setup).map_err(controller_error)?;
    let control = Control { feedback: rtp.feedback, reports: rtp.reports, ..control };
    let Ssrcs { sender: ssrc, receiver: remote_ssrc, stations } = Ssrcs::of(seed);
    let config = EndConfig {
        ssrc,
        remote_ssrc,
        station_ssrc: Some(stations[0]),
        cname: format!("{}@sender.weir", flow.name),
        seed: mix(seed, 3),
        session_bandwidth: rtp.session_bandwidth,
        synchronised_clocks: rtp.clocks == sc::Clocks::default(),
        header_overhead: rtp.header_overhead.as_bytes() as u32,
        t_rr_interval: rtp.rtcp_interval,
        capacity_vectors: rtp.forecast.as_ref().is_some_and(|f| f.in_band),
        ..EndConfig::default()
    };
    let first = rtp.streams.first();
    let (source, mut viewer) = match first {
        Some(stream) if stream.source != StreamSource::Pictures => (
            streams::source(stream, rtp.sending.sender, now, mix(seed, 5)).map_err(|e| stream_error(e.to_string()))?,
            None,
        ),
        _ => source(flow, rtp, mix(seed, 5))?,
    };
    let resilience = rtp.resilience.map(|choice| resilience(rtp, choice));
    let receiver = EndName { cname: format!("{}@receiver.weir", flow.name), seed: mix(seed, 4) };
    let identity = match first {
        Some(stream) => streams::identity(ssrc, stream, 0),
        None => streams::numbered(ssrc),
    };
    let mut plan = CallPlan::new(control, config, receiver);
    plan.receiver.station_ssrc = Some(stations[1]);
    plan.receiver.params.receiver = rtp.receiver;
    for path in &mut plan.sending {
        path.circuit_breaker = rtp.circuit_breaker.map(sc::CircuitBreaker::config);
        path.ecn = rtp.ecn;
    }
    let demand = first.map_or_else(Default::default, |s| s.demand);
    let picture = video::picture_feedback(rtp);
    let (outgoing, incoming) = plan.add_stream(identity, source, demand);
    let own = streams::resilience_of(rtp, demand.media, resilience);
    outgoing.options = OutgoingOptions { resilience: own, picture, ..streams::sending(rtp, demand.media) };
    let deadline = first.map_or(rtp.playout_deadline, |s| streams::deadline(rtp, s));
    *incoming = IncomingConfig {
        playout_deadline: deadline,
        adaptive_playout: streams::adaptive_playout(rtp, deadline),
        joint: match rtp.sending.repair {
            // With one time of playout there is nothing to choose.
            RepairChoice::ByFrames(FrameRepair::Joint(joint)) if joint.earliest < joint.latest => Some(joint),
            _ => None,
        },
        resilience: own,
        nack: rtp.count_retransmissions.then(|| NackConfig { count_retransmissions: true, ..NackConfig::default() }),
        content: viewer.is_some(),
        picture,
        ..incoming.clone()
    };
    streams::add(&mut plan, rtp, resilience, seed, now).map_err(|e| stream_error(e.to_string()))?;
    if let Some(m) = &rtp.multipath {
        paths::add(&mut plan, m, rtp, registry, &setup).map_err(controller_error)?;
    }
    let (mut sender, receiver) = plan.into_ends(now).map_err(|e| stream_error(e.to_string()))?;
    if let Some((viewer, stream)) = viewer.as_mut().zip(sender.outgoing(OutgoingId::FIRST)) {
        viewer.set_offset(stream.rtp_timestamp_offset());
    }
    Ok(Call { sender, receiver, viewer })
}

/// The source of a flow, and the viewer of its pictures if it has content.
fn source(flow: &Flow, rtp: &RtpFlow, seed: u64) -> Result<(Source, Option<Box<Viewer>>), RunError> {
    let (source, viewer) = uncapped(flow, rtp, seed)?;
    let source = match rtp.read_ahead {
        // The content ends with the flow: what would be played later is not sent.
        Some(most) => {
            let end = Timestamp::ZERO + flow.stop - rtp.playout_deadline.unwrap_or_default();
            ReadAhead::new(source, rtp.start_rate, most).until(end).into()
        }
        None => source,
    };
    Ok(match &rtp.demand {
        Some(caps) => (CappedSource::new(source, caps.clone(), Timestamp::ZERO + flow.start).into(), viewer),
        None => (source, viewer),
    })
}

/// The same without the application's demand.
fn uncapped(flow: &Flow, rtp: &RtpFlow, seed: u64) -> Result<(Source, Option<Box<Viewer>>), RunError> {
    let start = Timestamp::ZERO + flow.start;
    let error = |message| RunError::Traffic { flow: flow.name.clone(), message };
    let source = match &rtp.source {
        sc::Source::PerfectPackets => PerfectCodec::packets(rtp.payload(), start).into(),
        sc::Source::PerfectFrames { fps, rise } => {
            let frames = PerfectCodec::frames(TimeDelta::from_secs_f64(1.0 / fps.max(0.01)), start).rising_in(*rise);
            streams::frames_of(frames, *fps, None, (rtp.sending.sender, seed), start)
                .map_err(|e| error(e.to_string()))?
        }
        sc::Source::Statistical(m) => {
            let config = StatisticalConfig {
                frame_interval: TimeDelta::from_secs_f64(1.0 / m.fps.max(0.01)),
                reaction: m.reaction,
                burst_frames: m.burst_frames,
                burst_size: m.burst_size,
                interval_scale: m.interval_scale,
                size_scale: m.size_scale,
                min_rate: rtp.floor,
                max_rate: rtp.ceiling,
                key_interval: m.key_interval,
                ..StatisticalConfig::default()
            };
            StatisticalSource::new(config, start, seed).map_err(|e| error(e.to_string()))?.into()
        }
        sc::Source::Trace { fps, file, sizes } => {
            // One column: its rate is that of the recording itself.
            let total: u64 = sizes.iter().map(|s| s.as_bits()).sum();
            let rate = (total as f64 * fps / sizes.len().max(1) as f64).max(1.0) as u64;
            let rows = sizes.iter().map(|s| s.as_bytes().to_string());
            let text: Vec<String> = std::iter::once(rate.to_string()).chain(rows).collect();
            let traces = FrameTraces::parse(&text.join("\n"), file).map_err(|e| error(e.to_string()))?;
            TraceSource::new(traces, TimeDelta::from_secs_f64(1.0 / fps.max(0.01)), start).into()
        }
        sc::Source::Scenes(config) => {
            ScenesSource::new(**config, start, seed).map_err(|e| error(e.to_string()))?.into()
        }
        sc::Source::Encoder(v) => {
            let (source, viewer) = video::source(flow, rtp, v, start)?;
            return Ok((source, Some(viewer)));
        }
    };
    Ok((source, None))
}

/// Error resilience of a flow. Models have neither slices nor references; an encoder that lacks them reports it when
/// asked.
fn resilience(rtp: &RtpFlow, choice: Choice) -> ResilienceConfig {
    let default = ResilienceConfig::default();
    let is_encoder = matches!(rtp.source, sc::Source::Encoder(_));
    let capabilities = Capabilities { slices: is_encoder, reference_selection: is_encoder };
    let delay_max = rtp.playout_deadline.unwrap_or(default.delay_max);
    let frame_rate = rtp.source.frame_rate().unwrap_or(default.frame_rate);
    ResilienceConfig { choice, capabilities, delay_max, frame_rate, ..default }
}
