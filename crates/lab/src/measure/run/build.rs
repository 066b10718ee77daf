//! From a scenario to a simulator with its agents, and to a recorder that knows what it measures.

use super::agent::{Agent, CallEnd, SteppedUdp, UDP_OVERHEAD};
use super::station::{Sources, add_stations};
use super::video::Viewer;
use super::watch::Watching;
use super::{Network, RunError, video};
use crate::measure::metrics::{self, FlowInfo, LinkInfo, RecorderConfig};
use crate::measure::results;
use crate::measure::scenario::{self as sc, Flow, FlowKind, RtpFlow, Scenario};
use weir_cc::{FeedbackFormat, Limits, Registry, Setup};
use weir_media::resilience::Choice;
use weir_media::{
    Capabilities, FrameTraces, Packetiser, PerfectCodec, ScenesSource, Source, StatisticalConfig, StatisticalSource,
    TraceSource,
};
use weir_path as path;
use weir_session::{Endpoint, EndpointConfig, NackConfig, ReceiveConfig, ResilienceConfig, SendConfig};
use weir_sim::{AgentId, LinkId, Simulator, mix, tcp, udp};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

pub(super) fn at(t: TimeDelta) -> Timestamp {
    Timestamp::ZERO + t
}

/// The capacity as the metrics know it: exact for steps, in rows of 100 ms for recorded traces.
fn measured_capacity(link: &sc::Link, duration: TimeDelta) -> metrics::Capacity {
    match &link.config.capacity {
        path::Capacity::Unlimited => metrics::Capacity::constant(DataRate::ZERO),
        path::Capacity::Constant(rate) => metrics::Capacity::constant(*rate),
        path::Capacity::Schedule(schedule) if link.trace.is_none() => {
            let mut all = Vec::new();
            let mut epoch = TimeDelta::ZERO;
            while epoch < duration {
                all.extend(schedule.steps().iter().map(|s| (at(epoch + s.at), s.rate)));
                match schedule.period() {
                    Some(period) => epoch += period,
                    None => break,
                }
            }
            metrics::Capacity::steps(all)
        }
        recorded => metrics::Capacity::sampled(duration, TimeDelta::from_millis(100), |t| recorded.rate_at(t)),
    }
}

/// What the recorder of a scenario's run measures.
pub fn recorder_config(s: &Scenario, seed: u64, series: bool) -> RecorderConfig {
    let flow = |f: &Flow| FlowInfo {
        name: f.name.clone(),
        controller: match &f.kind {
            FlowKind::Rtp(r) => r.controller.clone(),
            FlowKind::Tcp(t) => variant(t.algorithm).name().into(),
            FlowKind::Udp(_) => "none".into(),
            FlowKind::Dccp(d) => format!("ccid{}", d.connection.ccid),
        },
        kind: match &f.kind {
            FlowKind::Rtp(_) => results::FlowKind::Rtp,
            FlowKind::Tcp(_) => results::FlowKind::Tcp,
            FlowKind::Udp(_) => results::FlowKind::Udp,
            FlowKind::Dccp(_) => results::FlowKind::Dccp,
        },
        adapts: match &f.kind {
            FlowKind::Rtp(r) => r.adapts,
            FlowKind::Tcp(_) | FlowKind::Dccp(_) => true,
            FlowKind::Udp(_) => false,
        },
        start: at(f.start),
        stop: (f.stop < s.duration).then(|| at(f.stop)),
        playout_deadline: f.rtp().and_then(|r| r.playout_deadline),
        bottleneck: f.forward.iter().copied().find(|&l| l == s.bottleneck).or(f.forward.first().copied()).unwrap_or(0),
    };
    let link = |l: &sc::Link| LinkInfo { name: l.name.clone(), capacity: measured_capacity(l, s.duration) };
    RecorderConfig {
        scenario: s.name.clone(),
        condition: s.variant.clone().unwrap_or_default(),
        controller: s.controller.clone().unwrap_or_else(|| controllers(s)),
        seed,
        flows: s.flows.iter().map(flow).collect(),
        links: s.links.iter().map(link).collect(),
        bottleneck: s.bottleneck,
        sampling: s.sample_interval,
        series,
        duration: s.duration,
        windows: (s.windows.iter())
            .map(|w| metrics::Window { label: w.name.clone(), start: at(w.from), end: at(w.to) })
            .collect(),
    }
}

/// The controllers of a scenario without a placeholder, each once, joined by "+".
fn controllers(s: &Scenario) -> String {
    let mut names: Vec<&str> = s.flows.iter().filter_map(|f| f.rtp().map(|r| &r.controller[..])).collect();
    names.dedup();
    names.join("+")
}

pub(crate) fn network<O: Watching>(
    s: &Scenario,
    seed: u64,
    registry: &Registry,
    observer: O,
) -> Result<Network<O>, RunError> {
    let mut sim = Simulator::with_observer(seed, observer);
    let mut links = Vec::new();
    for link in &s.links {
        links.push(sim.add_link(&link.config).map_err(|source| RunError::Link { link: link.name.clone(), source })?);
    }
    let mut flows = Vec::new();
    for (i, flow) in s.flows.iter().enumerate() {
        flows.push(add_flow(&mut sim, &links, (i, flow), mix(seed, 1_000 + i as u64), registry)?);
    }
    let stations = add_stations(&mut sim, s, &flows, seed)?;
    Ok(Network { sim, links, flows, stations })
}

/// A flow's own access link, one for each direction, by name; none where it adds nothing.
pub fn access_link(flow: &Flow) -> Option<(String, path::LinkConfig)> {
    if flow.access_delay <= TimeDelta::ZERO && flow.access_rate.is_none() {
        return None;
    }
    let mut access = path::LinkConfig::constant(DataRate::ZERO, flow.access_delay);
    access.capacity = flow.access_rate.map_or(path::Capacity::Unlimited, path::Capacity::Constant);
    Some((format!("access of {}", flow.name), access))
}

fn add_flow<O: Watching>(
    sim: &mut Simulator<Agent, O>,
    links: &[LinkId],
    (index, flow): (usize, &Flow),
    seed: u64,
    registry: &Registry,
) -> Result<(AgentId, AgentId), RunError> {
    let mut route = |ids: &[usize]| -> Result<Vec<LinkId>, RunError> {
        let mut all = Vec::new();
        if let Some((link, access)) = access_link(flow) {
            all.push(sim.add_link(&access).map_err(|source| RunError::Link { link, source })?);
        }
        all.extend(ids.iter().map(|&i| links[i]));
        Ok(all)
    };
    let (forward, reverse) = (route(&flow.forward)?, route(&flow.reverse)?);
    let (a, b) = agents(flow, seed, registry)?;
    let start = at(flow.start);
    let (a, b) = (sim.add_agent(a, start), sim.add_agent(b, start));
    sim.observer_mut().add_agent(index, true);
    sim.observer_mut().add_agent(index, false);
    sim.stop_agent(a, at(flow.stop));
    sim.set_route(a, &forward, b);
    sim.set_route(b, &reverse, a);
    Ok((a, b))
}

pub(crate) fn agents(flow: &Flow, seed: u64, registry: &Registry) -> Result<(Agent, Agent), RunError> {
    let traffic_error = |message: String| RunError::Traffic { flow: flow.name.clone(), message };
    match &flow.kind {
        FlowKind::Rtp(rtp) => {
            if let Some(d) = &rtp.dccp {
                let (a, b) = super::dccp::calls(flow, rtp, d, call(flow, rtp, seed, registry)?, seed)?;
                return Ok((Agent::CallOverDccp(Box::new(a)), Agent::CallOverDccp(Box::new(b))));
            }
            let (a, b, viewer) = call(flow, rtp, seed, registry)?;
            let end = |e, viewer| Agent::Call(Box::new(CallEnd::new(e, rtp.header_overhead, viewer)));
            Ok((end(a, None), end(b, viewer)))
        }
        FlowKind::Tcp(t) => {
            let mss = u32::try_from(t.segment.as_bytes()).unwrap_or(u32::MAX);
            let defaults = tcp::TcpConfig::default();
            let config = tcp::TcpConfig {
                variant: variant(t.algorithm),
                mss,
                ack_every: if t.delayed_acks { 2 } else { 1 },
                initial_window: t.initial_window,
                sack: t.sack,
                timestamps: t.timestamps,
                handshake: t.handshake,
                min_rto: t.min_rto,
                receive_window: (t.max_window)
                    .map_or(defaults.receive_window, |n| DataSize::from_bytes(u64::from(n) * u64::from(mss))),
                ..defaults
            };
            let agent = |e| Agent::Traffic(Box::new(e));
            if let sc::TcpTraffic::Short { arrivals, size } = t.traffic {
                let size = distribution(size).map_err(traffic_error)?;
                let flows = tcp::ShortFlows { arrivals_per_s: arrivals, size, seed };
                let sender = tcp::ShortSender::new(config, flows).map_err(|e| traffic_error(e.to_string()))?;
                let receiver = tcp::ShortReceiver::new(config).map_err(|e| traffic_error(e.to_string()))?;
                return Ok((
                    agent(weir_sim::Endpoint::ShortSender(Box::new(sender))),
                    agent(weir_sim::Endpoint::ShortReceiver(Box::new(receiver))),
                ));
            }
            let workload = match t.traffic {
                sc::TcpTraffic::Bulk | sc::TcpTraffic::Short { .. } => tcp::Workload::Bulk,
                sc::TcpTraffic::Stream { rate } => tcp::Workload::Stream { rate },
                sc::TcpTraffic::OnOff { size, idle, starts_on, persistent } => tcp::Workload::OnOff {
                    size: distribution(size).map_err(traffic_error)?,
                    off: distribution(idle).map_err(traffic_error)?,
                    starts_on,
                    persistent,
                    seed,
                },
            };
            let sender = tcp::Sender::new(config, workload).map_err(|e| traffic_error(e.to_string()))?;
            let receiver = tcp::Receiver::new(config).map_err(|e| traffic_error(e.to_string()))?;
            Ok((
                agent(weir_sim::Endpoint::TcpSender(Box::new(sender))),
                agent(weir_sim::Endpoint::TcpReceiver(receiver)),
            ))
        }
        FlowKind::Dccp(d) => {
            let (a, b) = super::dccp::ends(flow, d, seed)?;
            Ok((Agent::Dccp(Box::new(a)), Agent::Dccp(Box::new(b))))
        }
        FlowKind::Udp(u) => {
            let size = u.payload + DataSize::from_bytes(UDP_OVERHEAD);
            let sink = Agent::Traffic(Box::new(weir_sim::Endpoint::UdpSink(udp::Sink::default())));
            let source = |rate| match &u.on_off {
                None => Ok(udp::Source::constant(rate, size)),
                Some((on, off)) => {
                    let (on, off) = (distribution(*on), distribution(*off));
                    let on_off = udp::OnOff { on: on.map_err(traffic_error)?, off: off.map_err(traffic_error)?, seed };
                    udp::Source::on_off(rate, size, on_off).map_err(|e| traffic_error(e.to_string()))
                }
            };
            let source = match &u.rate {
                path::Capacity::Constant(rate) => {
                    Agent::Traffic(Box::new(weir_sim::Endpoint::UdpSource(source(*rate)?)))
                }
                path::Capacity::Schedule(schedule) => {
                    let steps = schedule.steps().iter().map(|s| Ok((at(flow.start + s.at), source(s.rate)?)));
                    Agent::Stepped(Box::new(SteppedUdp::new(steps.collect::<Result<_, RunError>>()?)))
                }
                _ => return Err(traffic_error("a UDP flow has a constant rate or steps".into())),
            };
            Ok((source, sink))
        }
    }
}

/// The source of a UDP flow. Errors: its traffic cannot be made.
pub fn udp_source(flow: &Flow, seed: u64, registry: &Registry) -> Result<Box<dyn weir_sim::Agent + Send>, RunError> {
    Ok(Box::new(agents(flow, seed, registry)?.0))
}

/// RTP payload types of repair packets, parity, Reed-Solomon and retransmission; the media's is 96.
pub const REPAIR_PAYLOAD_TYPES: [u8; 3] = [97, 98, 99];

fn variant(a: sc::TcpAlgorithm) -> tcp::Variant {
    match a {
        sc::TcpAlgorithm::NewReno => tcp::Variant::NewReno,
        sc::TcpAlgorithm::Cubic => tcp::Variant::Cubic,
        sc::TcpAlgorithm::Vegas => tcp::Variant::Vegas,
        sc::TcpAlgorithm::HighSpeed => tcp::Variant::HighSpeed,
        sc::TcpAlgorithm::Scalable => tcp::Variant::Scalable,
    }
}

/// A scenario's distribution as the simulator draws from it. Errors: parameters that make none, in words.
pub fn distribution(d: sc::Distribution) -> Result<weir_sim::Distribution, String> {
    Ok(match d {
        sc::Distribution::Constant(value) => weir_sim::Distribution::Constant { value },
        sc::Distribution::Uniform { min, max } => weir_sim::Distribution::Uniform { low: min, high: max },
        sc::Distribution::Exponential { mean } => weir_sim::Distribution::Exponential { mean },
        sc::Distribution::Pareto { mean, shape } => {
            weir_sim::Distribution::pareto_with_mean(mean, shape).map_err(|e| e.to_string())?
        }
    })
}

/// The source of a flow, and who watches it at the other end where there is something to see.
fn source(flow: &Flow, rtp: &RtpFlow, seed: u64) -> Result<(Source, Option<Box<Viewer>>), RunError> {
    let start = at(flow.start);
    let error = |message| RunError::Traffic { flow: flow.name.clone(), message };
    let source = match &rtp.source {
        sc::Source::PerfectPackets => PerfectCodec::packets(rtp.payload, start).into(),
        sc::Source::PerfectFrames { fps } => {
            PerfectCodec::frames(TimeDelta::from_secs_f64(1.0 / fps.max(0.01)), start).into()
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

/// Error resilience of a flow. Models have neither slices nor references; an encoder that lacks them says so as it is asked.
fn resilience(rtp: &RtpFlow, choice: Choice) -> ResilienceConfig {
    let default = ResilienceConfig::default();
    let is_encoder = matches!(rtp.source, sc::Source::Encoder(_));
    let capabilities = Capabilities { slices: is_encoder, reference_selection: is_encoder };
    let delay_max = rtp.playout_deadline.unwrap_or(default.delay_max);
    let frame_rate = rtp.source.frame_rate().unwrap_or(default.frame_rate);
    ResilienceConfig { choice, capabilities, delay_max, frame_rate, ..default }
}

/// Both ends of a call, and who watches the second.
pub type Call = (Endpoint, Endpoint, Option<Box<Viewer>>);

/// Both ends of an RTP flow, for the simulator and for real sockets alike: times count from the beginning of the run.
pub fn call(flow: &Flow, rtp: &RtpFlow, seed: u64, registry: &Registry) -> Result<Call, RunError> {
    let stream_error = |message| RunError::Traffic { flow: flow.name.clone(), message };
    let controller_error = |e| RunError::Controller { flow: flow.name.clone(), source: Box::new(e) };
    let now = at(flow.start);
    let limits = Limits { floor: rtp.floor, ceiling: rtp.ceiling };
    let setup = Setup { limits, start_rate: rtp.start_rate, now, seed, params: rtp.params.clone() };
    let pair = registry.make(&rtp.controller, &setup).map_err(controller_error)?;
    let Sources { sender: ssrc, receiver: remote_ssrc, stations } = Sources::of(seed);
    let config = EndpointConfig {
        ssrc,
        remote_ssrc,
        station_ssrc: Some(stations[0]),
        cname: format!("{}@sender.weir", flow.name),
        seed: mix(seed, 3),
        session_bandwidth: rtp.session_bandwidth,
        abs_send_time: pair.receiver.is_some(),
        transport_sequence: rtp.feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide),
        ecn: rtp.ecn,
        synchronised_clocks: true,
        header_overhead: rtp.header_overhead.as_bytes() as u32,
        t_rr_interval: rtp.rtcp_interval,
        parity_payload_type: REPAIR_PAYLOAD_TYPES[0],
        reed_solomon_payload_type: REPAIR_PAYLOAD_TYPES[1],
        retransmission_payload_type: REPAIR_PAYLOAD_TYPES[2],
        picture: video::picture_feedback(rtp),
        ..EndpointConfig::default()
    };
    let mut config = config;
    super::streams::configure(&mut config, rtp);
    let receiver_config = EndpointConfig {
        ssrc: remote_ssrc,
        remote_ssrc: ssrc,
        station_ssrc: Some(stations[1]),
        cname: format!("{}@receiver.weir", flow.name),
        seed: mix(seed, 4),
        ..config.clone()
    };
    let first = rtp.streams.first();
    let (source, mut viewer) = match first {
        Some(stream) => {
            (super::streams::source(stream, now, mix(seed, 5)).map_err(|e| stream_error(e.to_string()))?, None)
        }
        None => source(flow, rtp, mix(seed, 5))?,
    };
    let resilience = rtp.resilience.map(|choice| resilience(rtp, choice));
    let send = SendConfig {
        packetiser: Packetiser { max_payload: rtp.payload, ..Packetiser::default() },
        per_packet_feedback: rtp.feedback.is_some(),
        reports: rtp.reports,
        circuit_breaker: rtp.circuit_breaker.map(sc::CircuitBreaker::config),
        resilience,
        demand: first.map_or_else(Default::default, |s| s.demand),
        ..SendConfig::new(source, pair.sender, limits)
    };
    let receive = ReceiveConfig {
        feedback: rtp.feedback,
        reports: rtp.reports,
        controller: pair.receiver,
        playout_deadline: first.map_or(rtp.playout_deadline, |s| super::streams::deadline(rtp, s)),
        media: first.map_or_else(Default::default, |s| s.demand.media),
        resilience,
        nack: rtp.count_retransmissions.then(|| NackConfig { count_retransmissions: true, ..NackConfig::default() }),
        content: viewer.is_some(),
        ..ReceiveConfig::default()
    };
    let own = config.clone();
    let mut sender = Endpoint::new(config, Some(send), None, now);
    if let Some((viewer, offset)) = viewer.as_mut().zip(sender.rtp_timestamp_offset()) {
        viewer.set_offset(offset);
    }
    let mut receiver = Endpoint::new(receiver_config, None, Some(receive), now);
    super::streams::add((&mut sender, &mut receiver), &own, rtp, seed, now).map_err(stream_error)?;
    Ok((sender, receiver, viewer))
}
