//! Configuration of a call with a controller and a model of an encoder.

use crate::call::CallError;
use crate::call::paths::PathUse;
use crate::clock::Clock;
use crate::srtp::Suite;
use crate::udp::UdpConfig;
use weir_cc::{DEFAULT_CONTROLLER, Limits, Registry, Setup, Transport, circuit_breaker, feedback_guard};
use weir_media::utility::Utility;
use weir_media::{AdaptivePlayout, MediaKind, PerfectCodec, Source, StatisticalConfig, StatisticalSource};
use weir_session::allocation::Demand;
use weir_session::{CallPlan, Control, EndConfig, EndName, Endpoint, StreamIdentity};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// A model of an encoder: frames have sizes and no content.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FrameModel {
    /// Follows its target exactly.
    Perfect,
    /// Varies randomly (RFC 8593, section 5).
    Statistical,
}

/// A call with modelled media.
#[derive(Clone, PartialEq, Debug)]
pub struct CallConfig {
    /// The controller's name in the registry.
    pub controller: String,
    /// The name that is sent to the other end of a call between processes instead: see [`announced`].
    pub announced: Option<String>,
    /// Its parameters.
    pub params: Vec<(String, f64)>,
    /// Bounds on the media rate.
    pub limits: Limits,
    /// Media rate at the beginning.
    pub start_rate: DataRate,
    /// The model of the encoder.
    pub model: FrameModel,
    /// Frames a second.
    pub frame_rate: f64,
    /// Maximum RTP payload in bytes.
    pub payload: DataSize,
    /// Longest time from capture to playout.
    pub playout_deadline: TimeDelta,
    /// Whether frames are played as soon as their jitter allows, rather than all at the deadline.
    pub adaptive_playout: bool,
    /// Whether RTP is sent as ECN-capable, with the controller's codepoint (`Spec::ecn`).
    pub ecn: bool,
    /// The cipher suite; `None` sends unencrypted.
    pub srtp: Option<Suite>,
    /// Sockets.
    pub udp: UdpConfig,
    /// The carrier of the packets; `None` chooses the controller's for loopback, and plain datagrams or the offered
    /// carrier between processes. There is no SRTP over DCCP: loopback calls go without it, processes have to allow
    /// that explicitly.
    pub transport: Option<Transport>,
    /// How a call over several paths uses them.
    pub paths: PathUse,
    /// IPv6 rather than IPv4, if a call chooses its addresses itself.
    pub v6: bool,
    /// The call ends if nothing of it is received for this time; `None` for no limit.
    pub silence: Option<TimeDelta>,
    /// Stops media that congests the path for long or is not reported on (RFC 8083); `None` for no circuit breaker.
    pub circuit_breaker: Option<circuit_breaker::Config>,
    /// Whether capacity vectors are exchanged (`docs/wire/capacity-vector.md`): an end between processes offers them, or
    /// accepts them of a peer that does, if the call is protected or stays on this machine.
    pub capacity_vectors: bool,
    /// The last that the call gives up where its rate is short: decides on the shape of the pictures of its first stream of video, whose
    /// encoder has to follow it ([`weir_media::ShapedEncoder`]), and on the share of its sound; `None` leaves the sound its demand. In
    /// calls within this process.
    pub utility: Option<Utility>,
    /// Whether the rate decreases while no feedback is received, under controllers that adapt: to half after 2 s, to
    /// the minimum rate after 5 s.
    pub feedback_guard: bool,
}

impl Default for CallConfig {
    fn default() -> Self {
        Self {
            controller: DEFAULT_CONTROLLER.into(),
            announced: None,
            params: Vec::new(),
            limits: Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_mbps(5) },
            start_rate: DataRate::from_kbps(500),
            model: FrameModel::Perfect,
            frame_rate: 30.0,
            payload: DataSize::from_bytes(1_200),
            playout_deadline: TimeDelta::from_millis(400),
            adaptive_playout: true,
            ecn: false,
            srtp: Some(Suite::default()),
            udp: UdpConfig::default(),
            transport: None,
            paths: PathUse::default(),
            v6: false,
            // Longer than a handover between networks takes, and half of what WebRTC waits before it gives up a path.
            silence: Some(TimeDelta::from_secs(15)),
            circuit_breaker: Some(circuit_breaker::Config::default()),
            capacity_vectors: false,
            utility: None,
            feedback_guard: true,
        }
    }
}

impl CallConfig {
    /// How the rate falls without feedback, under its controller.
    pub(crate) fn guard(&self, registry: &Registry) -> Option<feedback_guard::Config> {
        let adapts = registry.get(&self.controller).is_some_and(|s| s.adapts);
        (adapts && self.feedback_guard).then(|| feedback_guard::Config::to_floor(self.limits.floor))
    }

    /// The carrier of its packets.
    pub fn transport(&self, registry: &Registry) -> Transport {
        let own = || registry.get(&self.controller).map(|s| s.transport);
        self.transport.or_else(own).unwrap_or_default()
    }
}

/// The name that is sent to the other end of a call, so that it sends the reports that a controller needs; `None` if no
/// built-in controller needs similar ones.
///
/// It is the controller's own if it is listed. Names that a family gave an entry for, such as those of files, mean nothing
/// there and are nobody else's business: of the built-in controllers that need the same kind of reports, the name of the one with the
/// nearest intervals takes their place.
pub fn announced(registry: &Registry, controller: &str) -> Option<String> {
    let wrapped = registry.probing_specs().chain(registry.guided_specs()).chain(registry.filled_specs());
    let mut listed = registry.specs().chain(wrapped);
    if listed.any(|s| s.name == controller) {
        return Some(controller.into());
    }
    let spec = registry.get(controller)?;
    let wanted = spec.feedback?;
    let apart = |a: TimeDelta, b: TimeDelta| a.as_nanos().abs_diff(b.as_nanos());
    let built_in = Registry::builtin();
    let like = built_in.specs().filter(|s| (s.transport, s.reports) == (spec.transport, spec.reports));
    let like = like.filter_map(|s| Some((s, s.feedback.filter(|f| f.format == wanted.format)?)));
    let nearest = like.min_by_key(|(_, f)| {
        apart(f.min_interval, wanted.min_interval).saturating_add(apart(f.max_interval, wanted.max_interval))
    });
    nearest.map(|(s, _)| s.name.clone())
}

/// How playout adapts to jitter, if it does. Packets that are never retransmitted are waited for half as long: a key
/// frame may take that long to send, and each loss pauses the picture for it.
pub(crate) fn adaptive(config: &CallConfig, loses: bool) -> Option<AdaptivePlayout> {
    let max = config.playout_deadline;
    let patience = loses.then_some(max / 2);
    config.adaptive_playout.then_some(AdaptivePlayout { patience, ..AdaptivePlayout::up_to(max) })
}

/// A stream of a call.
pub(crate) struct StreamPlan {
    pub(crate) identity: StreamIdentity,
    pub(crate) source: Source,
    pub(crate) demand: Demand,
    /// Whether the receiver keeps received content.
    pub(crate) content: bool,
}

/// The model of a configuration as a source.
fn model(config: &CallConfig, now: Timestamp, seed: u64) -> Source {
    let interval = TimeDelta::from_secs_f64(1.0 / config.frame_rate.clamp(0.1, 1_000.0));
    let perfect = || PerfectCodec::frames(interval, now).into();
    match config.model {
        FrameModel::Perfect => perfect(),
        FrameModel::Statistical => {
            let model = StatisticalConfig {
                frame_interval: interval,
                min_rate: config.limits.floor,
                max_rate: config.limits.ceiling,
                ..StatisticalConfig::default()
            };
            // Its own values are valid; the rate is clamped above.
            StatisticalSource::new(model, now, seed).map_or_else(|_| perfect(), Into::into)
        }
    }
}

/// Both ends of a call, the sending one first. `seed` determines sources, initial numbers and RTCP's timing.
///
/// # Errors
/// An unknown controller, or invalid parameters.
pub fn endpoints(
    config: &CallConfig,
    registry: &Registry,
    clock: &Clock,
    seed: u64,
) -> Result<(Endpoint, Endpoint), CallError> {
    endpoints_of(config, registry, clock, seed, None)
}

/// Likewise, with frames that have content if a source of them is given.
pub(crate) fn endpoints_of(
    config: &CallConfig,
    registry: &Registry,
    clock: &Clock,
    seed: u64,
    source: Option<Source>,
) -> Result<(Endpoint, Endpoint), CallError> {
    let content = source.is_some();
    let source = source.unwrap_or_else(|| model(config, clock.now(), seed));
    let identity = StreamIdentity { clock_rate: source.media().clock_hz(), ..StreamIdentity::of(seed as u32) };
    let stream = StreamPlan { identity, source, demand: Demand::default(), content };
    endpoints_with(config, registry, clock, seed, vec![stream])
}

/// Likewise, with these streams, at least one; the ends report by the source of the first.
pub(crate) fn endpoints_with(
    config: &CallConfig,
    registry: &Registry,
    clock: &Clock,
    seed: u64,
    streams: Vec<StreamPlan>,
) -> Result<(Endpoint, Endpoint), CallError> {
    let now = clock.now();
    let setup =
        Setup { limits: config.limits, start_rate: config.start_rate, now, seed, params: config.params.clone() };
    let control = Control::new(registry, &config.controller, &setup)?;
    let first = streams.first().ok_or(CallError::NoStreams)?;
    let sender = EndConfig {
        ssrc: first.identity.ssrc,
        // Two halves of a mixed seed, never equal.
        remote_ssrc: !(seed as u32),
        cname: format!("{:016x}@weir", seed),
        seed,
        session_bandwidth: config.limits.ceiling,
        ntp_epoch: clock.ntp_epoch(),
        synchronised_clocks: true,
        lip_synchronisation: true,
        capacity_vectors: config.capacity_vectors,
        header_overhead: if config.v6 { 48 } else { 28 },
        ..EndConfig::default()
    };
    let receiver = EndName { cname: format!("{:016x}@weir", !seed), seed: !seed };
    let mut plan = CallPlan::new(control, sender, receiver);
    for path in &mut plan.sending {
        path.circuit_breaker = config.circuit_breaker;
        path.feedback_guard = config.guard(registry);
        path.ecn = registry.get(&config.controller).map_or(Ecn::NotEct, |s| s.ecn_where(config.ecn));
    }
    let mut utility = config.utility;
    for stream in streams {
        let is_video = stream.source.media() == MediaKind::Video;
        let (outgoing, incoming) = plan.add_stream(stream.identity, stream.source, stream.demand);
        outgoing.options.packetiser.max_payload = config.payload;
        // Older packets would be discarded at the other end.
        outgoing.options.max_queue_age = stream.content.then_some(config.playout_deadline);
        if stream.content && is_video {
            outgoing.options.utility = utility.take();
        }
        incoming.playout_deadline = Some(config.playout_deadline);
        incoming.adaptive_playout = adaptive(config, false);
        incoming.content = stream.content;
    }
    plan.into_ends(now).map_err(CallError::Streams)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_cc::{Entry, FeedbackFormat, FeedbackPlan, Pair, Sender, Spec};

    #[test]
    fn names_of_files_stay_here_and_reports_of_their_kind_are_asked_for() {
        let mut registry = Registry::builtin();
        registry.add_family("file:", |name| {
            let format =
                if name.contains("wide") { FeedbackFormat::TransportWide } else { FeedbackFormat::CongestionControl };
            let every = TimeDelta::from_millis(30);
            let plan = FeedbackPlan { format, min_interval: every, max_interval: every, bandwidth_share: 1.0 };
            let spec = Spec { feedback: Some(plan), ..Spec::new(name, "of a file", "none") };
            Ok(Entry::new(spec, |_, setup| {
                let fixed = Registry::builtin().make("fixed", setup)?.sender;
                Ok(Pair::alone(Sender::Custom(Box::new(fixed))))
            }))
        });
        for name in ["file:/home/me/wide", "file:/home/me/policy", "file:/home/me/policy+fec"] {
            registry.find(name).expect("found");
        }
        let told = |name| announced(&registry, name);
        for listed in ["gcc-remb", "scream+fec", "ccid3"] {
            assert_eq!(told(listed).as_deref(), Some(listed));
        }
        assert_eq!(told("file:/home/me/wide").as_deref(), Some("pudica"));
        assert_eq!(told("file:/home/me/policy").as_deref(), Some("scream2"));
        assert_eq!(told("file:/home/me/policy+fec").as_deref(), Some("scream2"));
        assert_eq!(told("file:/home/me/never-found"), None);
    }
}
