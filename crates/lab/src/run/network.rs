//! From a scenario to a simulator with its links and agents.

use super::agent::{Agent, CallEnd};
use super::call::{call, flow_seed};
use super::clock::EndClock;
use super::ends::Ends;
use super::forecast::{ForecastFeed, ForecastFeeds};
use super::observer::FlowObserver;
use super::recovery_delay::RecoveryDelay;
use super::station::{LinkStation, StationAgent};
use super::traffic::UdpSource;
use super::{RunError, dccp, traffic};
use crate::scenario::{Clock, Flow, FlowKind, RtpFlow, Scenario};
use std::borrow::Cow;
use weir_cc::Registry;
use weir_path as path;
use weir_sim::{AgentId, LinkId, Simulator, mix, udp};
use weir_units::{DataRate, PathId, TimeDelta, Timestamp};

/// A scenario's simulator and the ids of its parts.
pub(crate) struct Network<O> {
    pub sim: Simulator<Agent, O>,
    pub links: Vec<LinkId>,
    pub flows: Vec<Ends<AgentId>>,
    /// By flow: of those whose recovery is watched.
    pub recovery: Vec<Option<RecoveryDelay>>,
    pub stations: Vec<StationAt>,
}

/// A base station's agent.
#[derive(Clone, Copy)]
pub(crate) struct StationAt {
    pub agent: AgentId,
    /// Index of its link in the scenario.
    pub link: usize,
}

/// Builds a scenario's network. Errors: a link, a controller or a flow's traffic cannot be constructed.
pub(crate) fn network<O: FlowObserver>(
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
    let (mut flows, mut recovery) = (Vec::new(), Vec::new());
    for (i, flow) in s.flows.iter().enumerate() {
        let (ends, delays) = agents(s, flow, flow_seed(seed, i), registry)?;
        recovery.push(delays);
        flows.push(add_flow(&mut sim, &links, i, flow, ends)?);
    }
    let stations = add_stations(&mut sim, s, &flows, seed)?;
    Ok(Network { sim, links, flows, recovery, stations })
}

/// A flow's own access link, one per direction, by name; none if it adds nothing.
pub fn access_link(flow: &Flow) -> Option<(String, path::LinkConfig)> {
    if flow.access_delay <= TimeDelta::ZERO && flow.access_rate.is_none() {
        return None;
    }
    let mut access = path::LinkConfig::constant(DataRate::ZERO, flow.access_delay);
    access.capacity = flow.access_rate.map_or(path::Capacity::Unlimited, path::Capacity::Constant);
    Some((format!("access of {}", flow.name), access))
}

fn add_flow<O: FlowObserver>(
    sim: &mut Simulator<Agent, O>,
    links: &[LinkId],
    index: usize,
    flow: &Flow,
    ends: Ends<Agent>,
) -> Result<Ends<AgentId>, RunError> {
    let mut route = |ids: &[usize]| -> Result<Vec<LinkId>, RunError> {
        let mut all = Vec::new();
        if let Some((link, access)) = access_link(flow) {
            all.push(sim.add_link(&access).map_err(|source| RunError::Link { link, source })?);
        }
        all.extend(ids.iter().map(|&i| links[i]));
        Ok(all)
    };
    let (forward, reverse) = (route(&flow.forward)?, route(&flow.reverse)?);
    let start = Timestamp::ZERO + flow.start;
    let (sender, receiver) = (sim.add_agent(ends.sender, start), sim.add_agent(ends.receiver, start));
    sim.observer_mut().add_agent(index, true);
    sim.observer_mut().add_agent(index, false);
    sim.stop_agent(sender, Timestamp::ZERO + flow.stop);
    sim.set_route(sender, &forward, receiver);
    sim.set_route(receiver, &reverse, sender);
    let further = flow.rtp().and_then(|r| r.multipath.as_ref()).map_or(&[][..], |m| &m.paths);
    for (path, n) in further.iter().zip(0..).skip(1) {
        let route = |ids: &[usize]| -> Vec<LinkId> { ids.iter().map(|&i| links[i]).collect() };
        sim.set_path_route(sender, PathId::new(n), &route(&path.forward), receiver);
        sim.set_path_route(receiver, PathId::new(n), &route(&path.reverse), sender);
    }
    Ok(Ends { sender, receiver })
}

/// The forecasts of a flow that gets any, for each of its paths: of the bottleneck, or of the path's first link if it does not
/// cross that.
fn forecasts(s: &Scenario, flow: &Flow, rtp: &RtpFlow, seed: u64) -> Option<ForecastFeeds> {
    let forecast = rtp.forecast.as_deref()?;
    let span = (Timestamp::ZERO + flow.start, Timestamp::ZERO + flow.stop);
    let feed = |(links, n): (&[usize], u64)| {
        let link = links.iter().find(|l| **l == s.bottleneck).or(links.first())?;
        // The first path has the draws of a flow of one path.
        let seed = mix(seed, if n == 0 { 8 } else { 9_500 + n });
        Some(ForecastFeed::new(forecast, &s.links[*link].config.sustained(), seed, span))
    };
    let paths: Vec<&[usize]> = match &rtp.multipath {
        Some(m) => m.paths.iter().map(|p| &p.forward[..]).collect(),
        None => vec![&flow.forward],
    };
    ForecastFeeds::new(paths.into_iter().zip(0..).map(feed).collect::<Option<_>>()?)
}

/// A call with the forecasts of its ends.
pub struct Foresight<'a> {
    /// The call; the forecast may allow a start rate of its own.
    pub rtp: Cow<'a, RtpFlow>,
    /// The forecasts that each end gets.
    pub ends: Ends<Option<ForecastFeeds>>,
}

/// A call of a flow whose seed is `seed`, with the forecasts of its ends.
pub fn foresight<'a>(s: &Scenario, flow: &Flow, rtp: &'a RtpFlow, seed: u64) -> Foresight<'a> {
    let mut all = forecasts(s, flow, rtp, seed);
    if let Some(f) = rtp.forecast.as_ref().filter(|f| f.in_band) {
        let receiver = all.map(|all| all.announced(f.look_ahead));
        return Foresight { rtp: Cow::Borrowed(rtp), ends: Ends { sender: None, receiver } };
    }
    let first = all.as_mut().map(|f| f.first(Timestamp::ZERO + flow.start));
    Foresight { rtp: rtp.started_by(first), ends: Ends { sender: all.clone(), receiver: all } }
}

/// Both agents of a flow, and the delays of recovered packets if they are watched.
fn agents(
    s: &Scenario,
    flow: &Flow,
    seed: u64,
    registry: &Registry,
) -> Result<(Ends<Agent>, Option<RecoveryDelay>), RunError> {
    let mut recovery = None;
    let ends = match &flow.kind {
        FlowKind::Rtp(rtp) => {
            let Foresight { rtp, ends } = foresight(s, flow, rtp, seed);
            let rtp = &*rtp;
            let mut call = call(flow, rtp, seed, registry)?;
            if let Some(d) = &rtp.dccp {
                let ends = dccp::calls(flow, rtp, d, call, seed)?.map(|end| Agent::CallOverDccp(Box::new(end)));
                return Ok((ends, None));
            }
            recovery = RecoveryDelay::watch(rtp, &mut call);
            let end = |e, viewer, forecast, clock: &Option<Clock>| {
                let end = CallEnd::new(e, rtp.header_overhead, viewer).with_forecast(forecast);
                let clock = clock.as_ref().map(|c| EndClock::new(c, Timestamp::ZERO + flow.start));
                Agent::Call(Box::new(end.with_clock(clock)))
            };
            Ends {
                sender: end(call.sender, None, ends.sender, &rtp.clocks.sender),
                receiver: end(call.receiver, call.viewer, ends.receiver, &rtp.clocks.receiver),
            }
        }
        FlowKind::Tcp(t) => traffic::tcp_ends(flow, t, seed)?.map(|end| Agent::Traffic(Box::new(end))),
        FlowKind::Dccp(d) => dccp::ends(flow, d, seed)?.map(|end| Agent::Dccp(Box::new(end))),
        FlowKind::Udp(u) => {
            let sink = weir_sim::Endpoint::UdpSink(udp::Sink::default());
            let sender = match traffic::udp_source(flow, u, seed)? {
                UdpSource::Constant(source) => Agent::Traffic(Box::new(weir_sim::Endpoint::UdpSource(source))),
                UdpSource::Stepped(source) => Agent::Stepped(Box::new(source)),
            };
            Ends { sender, receiver: Agent::Traffic(Box::new(sink)) }
        }
    };
    Ok((ends, recovery))
}

/// Adds an agent for each end to which a base station reports.
fn add_stations<O: FlowObserver>(
    sim: &mut Simulator<Agent, O>,
    s: &Scenario,
    flows: &[Ends<AgentId>],
    seed: u64,
) -> Result<Vec<StationAt>, RunError> {
    let mut stations = Vec::new();
    for plan in LinkStation::all(s, seed) {
        let (flow, ends) = (&s.flows[plan.flow], &flows[plan.flow]);
        let way = path::LinkConfig {
            capacity: path::Capacity::Unlimited,
            ..path::LinkConfig::constant(DataRate::ZERO, plan.delay)
        };
        let link = format!("notices of {}", s.links[plan.link].name);
        let way = sim.add_link(&way).map_err(|source| RunError::Link { link, source })?;
        let (link, to) = (plan.link, if plan.to_receiver { ends.receiver } else { ends.sender });
        let (of, to_receiver) = (plan.flow, plan.to_receiver);
        let id = sim.add_agent(Agent::Station(Box::new(StationAgent::new(plan))), Timestamp::ZERO + flow.start);
        sim.observer_mut().add_agent(of, to_receiver);
        sim.stop_agent(id, Timestamp::ZERO + flow.stop);
        sim.set_route(id, &[way], to);
        stations.push(StationAt { agent: id, link });
    }
    Ok(stations)
}
