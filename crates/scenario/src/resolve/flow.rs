//! The flows of a scenario: paths, controllers with their settings, sources and traffic.

use crate::checks::{check_name, positive};
use crate::error::InputError;
use crate::media::Source;
use crate::members;
use crate::model::*;
use crate::pause;
use crate::quantity::{Rate, Size, Time};
use crate::raw::*;
use crate::request::Request;
use crate::spanned::At;
use crate::suggest;
use crate::traces::Traces;
use crate::tree::Text;
use std::collections::BTreeSet;
use std::ops::Range;
use weir_cc::{Limits, Setup};
use weir_media::Packetiser;
use weir_media::resilience::{Choice, Mechanisms};
use weir_path::Dscp;
use weir_session::{FrameRepair, OutgoingOptions, RepairChoice};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Represents every controller in `compare`.
pub(crate) const PLACEHOLDER: &str = "$controller";
/// RFC 8867, section 4.3: bit rate range and start-up rate.
const DEFAULT_FLOOR: DataRate = DataRate::from_kbps(150);
const DEFAULT_CEILING: DataRate = DataRate::from_kbps(1_500);
/// libwebrtc's for video.
const DEFAULT_RTCP_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// UDP and IPv4 headers.
pub(crate) const DEFAULT_HEADER_OVERHEAD: DataSize = DataSize::from_bytes(28);
pub(crate) const DEFAULT_PAYLOAD: DataSize = DataSize::from_bytes(1_000);
const MIN_PAYLOAD: u64 = 16;
const MAX_PAYLOAD: u64 = 65_000;
const MAX_FLOWS: u32 = 100_000;

/// Names of links.
type RawPath = At<Vec<At<String>>>;
/// Indices of the links that a flow's packets cross, and those that its feedback crosses.
pub(crate) type Route = (Vec<usize>, Vec<usize>);

/// A hop's name and the indices of its two directions.
pub(crate) struct Hop {
    pub(crate) name: String,
    pub(crate) forward: usize,
    pub(crate) reverse: usize,
}

pub(crate) struct Flows<'a> {
    pub(crate) text: &'a Text,
    pub(crate) raw: &'a RawScenario,
    pub(crate) request: &'a Request<'a>,
    pub(crate) duration: TimeDelta,
    pub(crate) hops: &'a [Hop],
}

/// The fields that every kind of flow has.
struct Common<'a> {
    start: &'a Option<At<Time>>,
    stop: &'a Option<At<Time>>,
    count: &'a Option<At<u32>>,
    stagger: Option<Time>,
    direction: RawDirection,
    path: Option<&'a RawPath>,
    dscp: &'a Option<At<String>>,
    access_delay: Option<Time>,
    access_rate: &'a Option<At<Rate>>,
}

macro_rules! common {
    ($f:expr) => {
        Common {
            start: &$f.start,
            stop: &$f.stop,
            count: &$f.count,
            stagger: $f.stagger,
            direction: $f.direction,
            path: $f.path.as_ref(),
            dscp: &$f.dscp,
            access_delay: $f.access_delay,
            access_rate: &$f.access_rate,
        }
    };
}

impl Flows<'_> {
    pub(crate) fn resolve(&self, traces: &mut Traces) -> Result<Vec<Flow>, InputError> {
        let mut placed: Vec<(usize, Vec<Flow>)> = Vec::new();
        for (name, f) in self.raw.rtp.iter() {
            let kind = FlowKind::Rtp(self.rtp(&f.value, &f.span, traces)?);
            let paths = f.value.multipath.as_ref().map(|m| &m.value.paths);
            if let Some((path, _)) = f.value.path.as_ref().zip(paths) {
                let message = "a flow with `multipath` has no `path`";
                return Err(self.text.error(path.span.clone(), message).help("make it the first of `multipath.paths`"));
            }
            let first = paths.and_then(|p| p.first()).or(f.value.path.as_ref());
            let common = Common { path: first, ..common!(f.value) };
            placed.push((name.span.start, self.spread(name, &common, kind)?));
        }
        for (name, f) in self.raw.tcp.iter() {
            let kind = FlowKind::Tcp(self.tcp(&f.value, &f.span)?);
            placed.push((name.span.start, self.spread(name, &common!(f.value), kind)?));
        }
        for (name, f) in self.raw.udp.iter() {
            let kind = FlowKind::Udp(self.udp(&f.value, &f.span, traces)?);
            placed.push((name.span.start, self.spread(name, &common!(f.value), kind)?));
        }
        for (name, f) in self.raw.dccp.iter() {
            let kind = FlowKind::Dccp(self.dccp(&f.value)?);
            placed.push((name.span.start, self.spread(name, &common!(f.value), kind)?));
        }
        placed.sort_by_key(|p| p.0);
        let flows: Vec<Flow> = placed.into_iter().flat_map(|p| p.1).collect();
        let whole = |message: String| InputError::whole(&self.text.file, message);
        if flows.is_empty() {
            return Err(whole("a scenario needs at least one flow".into())
                .help("for example: [rtp.video] with controller = \"$controller\""));
        }
        if flows.len() > MAX_FLOWS as usize {
            return Err(whole(format!("more than {MAX_FLOWS} flows")));
        }
        let mut seen = BTreeSet::new();
        match flows.iter().find(|f| !seen.insert(&f.name)) {
            Some(twice) => Err(whole(format!("two flows are named `{}`", twice.name))
                .help("RTP, TCP, UDP and DCCP flows share their names, and a `count` adds `-1`, `-2` and so on")),
            None => Ok(flows),
        }
    }

    /// One flow, or as many as `count` states.
    fn spread(&self, name: &At<String>, c: &Common<'_>, kind: FlowKind) -> Result<Vec<Flow>, InputError> {
        check_name(self.text, name)?;
        let start = c.start.as_ref().map_or(TimeDelta::ZERO, |t| t.value.0);
        let stop = c.stop.as_ref().map_or(self.duration, |t| t.value.0).min(self.duration);
        let count = c.count.as_ref().map_or(1, |n| n.value);
        if count > MAX_FLOWS {
            let at = c.count.as_ref().map_or(name.span.clone(), |n| n.span.clone());
            return Err(self.text.error(at, format!("expected no more than {MAX_FLOWS} flows")));
        }
        let stagger = c.stagger.map_or(TimeDelta::ZERO, |t| t.0);
        let last = start + stagger * i64::from(count.saturating_sub(1));
        if last >= stop {
            let at = c.start.as_ref().or(c.stop.as_ref()).map_or(name.span.clone(), |t| t.span.clone());
            return Err(self.text.error(at, format!("the flow would start at {last} but stop at {stop}")));
        }
        let (forward, reverse) = self.route(c.path, c.direction)?;
        let access = self.raw.access.as_ref();
        let dumbbell = self.raw.topology == RawTopology::Dumbbell;
        let own = c.access_delay.is_some() || c.access_rate.is_some();
        if own && !dumbbell {
            let at = c.access_rate.as_ref().map_or(name.span.clone(), |r| r.span.clone());
            return Err(self
                .text
                .error(at, "only flows of a dumbbell have access links")
                .help("use topology = \"dumbbell\""));
        }
        let access_rate = c.access_rate.as_ref().or(access.and_then(|a| a.rate.as_ref()));
        if let Some(zero) = access_rate.filter(|r| r.value.0.as_bps() == 0) {
            return Err(self.text.error(zero.span.clone(), "a constant rate must be above zero"));
        }
        let dscp = c.dscp.as_ref().map_or(Ok(Dscp::DF), |d| members::dscp(self.text, d))?;
        let flow = |i: u32| Flow {
            name: if c.count.is_some() { format!("{}-{}", name.value, i + 1) } else { name.value.clone() },
            forward: forward.clone(),
            reverse: reverse.clone(),
            reversed: c.direction == RawDirection::Reverse,
            dscp,
            access_delay: c.access_delay.or(access.and_then(|a| a.delay)).map_or(TimeDelta::ZERO, |t| t.0),
            access_rate: access_rate.map(|r| r.value.0),
            start: start + stagger * i64::from(i),
            stop,
            kind: kind.clone(),
        };
        Ok((0..count).map(flow).collect())
    }

    pub(crate) fn is_network(&self) -> bool {
        self.raw.topology == RawTopology::Network
    }

    /// The links of a path in both directions; all links without one.
    pub(crate) fn route(&self, path: Option<&RawPath>, direction: RawDirection) -> Result<Route, InputError> {
        let mut hops: Vec<usize> = (0..self.hops.len()).collect();
        if let Some(path) = path {
            hops.clear();
            for name in &path.value {
                let hop = self.hops.iter().position(|h| h.name == name.value).ok_or_else(|| {
                    let known: Vec<&str> = self.hops.iter().map(|h| h.name.as_str()).collect();
                    self.text
                        .error(name.span.clone(), format!("no link is named `{}`", name.value))
                        .help(suggest::help(&name.value, &known))
                })?;
                let network = self.is_network();
                if network && hops.contains(&hop) {
                    return Err(self.text.error(name.span.clone(), "a path crosses each link once"));
                }
                if !network && hops.last().is_some_and(|last| last + 1 != hop) {
                    return Err(self
                        .text
                        .error(name.span.clone(), "a path names neighbouring links in the order of the file")
                        .help("for the other direction use direction = \"reverse\""));
                }
                hops.push(hop);
            }
            if hops.is_empty() {
                return Err(self.text.error(path.span.clone(), "a path needs at least one link"));
            }
        }
        let there: Vec<usize> = hops.iter().map(|h| self.hops[*h].forward).collect();
        let back: Vec<usize> = hops.iter().rev().map(|h| self.hops[*h].reverse).collect();
        Ok(match direction {
            RawDirection::Forward => (there, back),
            RawDirection::Reverse => (back, there),
        })
    }

    fn rtp(&self, f: &RawRtp, span: &Range<usize>, traces: &mut Traces) -> Result<RtpFlow, InputError> {
        let of_program = self.with_ends(f)?;
        let f = of_program.as_ref().unwrap_or(f);
        let placeholder = f.controller.value == PLACEHOLDER;
        let name = if placeholder { self.request.controller.unwrap_or(PLACEHOLDER) } else { &f.controller.value };
        let registry = self.request.registry;
        let spec = registry.find(name).map_err(|e| {
            let error = self.text.error(f.controller.span.clone(), e.to_string());
            suggest::controller(error, &e, registry, &[PLACEHOLDER])
        })?;
        let none = RawController::default();
        let c = self.raw.controllers.get(name).unwrap_or(&none);
        // The bounds of a flow for all controllers give way to those of the one that is named.
        let pick = |own: &Option<At<Rate>>, shared: &Option<At<Rate>>, default| {
            let (first, second) = if placeholder { (shared, own) } else { (own, shared) };
            first.as_ref().or(second.as_ref()).map_or(default, |r| r.value.0)
        };
        let has_default_ceiling = f.ceiling.is_none() && c.ceiling.is_none();
        let floor = pick(&f.floor, &c.floor, DEFAULT_FLOOR);
        let ceiling = pick(&f.ceiling, &c.ceiling, DEFAULT_CEILING);
        let start_rate = pick(&f.start_rate, &c.start_rate, floor);
        if floor > ceiling || floor.as_bps() == 0 {
            let at = f.floor.as_ref().or(f.ceiling.as_ref()).or(c.floor.as_ref()).or(c.ceiling.as_ref());
            let at = at.map_or(span.clone(), |r| r.span.clone());
            let message = format!("expected a floor above zero and no higher than the ceiling: {floor} and {ceiling}");
            return Err(self.text.error(at, message));
        }
        if start_rate > ceiling {
            let at = f.start_rate.as_ref().or(c.start_rate.as_ref()).map_or(span.clone(), |r| r.span.clone());
            let message = format!("`start_rate` is {start_rate}, above the ceiling of {ceiling}");
            let help = if has_default_ceiling {
                "lower `start_rate`, or give a `ceiling`"
            } else {
                "lower `start_rate` or raise `ceiling`"
            };
            return Err(self.text.error(at, message).help(help));
        }
        let mut params = self.params(spec, &c.params)?;
        for (name, value) in self.params(spec, &f.params)? {
            params.retain(|p| p.0 != name);
            params.push((name, value));
        }
        let (receiver, sender) = (self.receiver(spec, f)?, self.sender(spec, f)?);
        let feedback = match spec.feedback {
            None => None,
            Some(plan) => Some(self.feedback(self.feedback(receiver.feedback(plan), &c.feedback)?, &f.feedback)?),
        };
        let setup = Setup {
            limits: Limits { floor, ceiling },
            start_rate,
            now: Timestamp::ZERO,
            seed: 0,
            params: params.clone(),
        };
        if let Err(e) = registry.make(name, &setup) {
            return Err(self.text.error(f.controller.span.clone(), e.to_string()));
        }
        let source = self.source(f.source.as_ref(), traces)?;
        if let (Source::Encoder(_), Some(raw), None) = (&source, &f.source, &f.playout_deadline) {
            let message = "pictures are shown at a `playout_deadline`: give the flow one, such as \"400 ms\"";
            return Err(self.text.error(raw.span.clone(), message));
        }
        let resilience = self.resilience(f.error_resilience.as_ref())?;
        let requests = matches!(resilience, Some(Choice::Pinned(all)) if all.contains(Mechanisms::NACK));
        let joint = self.joint(f, requests)?;
        let repair = match joint {
            Some(joint) => RepairChoice::ByFrames(FrameRepair::Joint(joint)),
            None => self.repair(f.repair.as_ref())?,
        };
        let headers = self.header_overhead(f.header_overhead.as_ref())?;
        let (utility, preferred) = self.preferred(f, &source, ceiling, headers)?;
        let streams = self.streams(&f.streams, ceiling, headers)?;
        let apart = f.source.as_ref().map(|s| &s.span).or(f.dccp.as_ref().map(|d| &d.span));
        if let Some(at) = apart.filter(|_| !streams.is_empty()) {
            let message = "a flow of several `streams` has no `source` of its own and does not go over DCCP";
            return Err(self.text.error(at.clone(), message).help("leave `source` and `dccp` out, or the streams"));
        }
        Ok(RtpFlow {
            controller: name.into(),
            params,
            floor,
            ceiling,
            has_default_ceiling,
            start_rate,
            pauses: pause::pauses(self.text, &f.pauses, &source)?,
            read_ahead: self.read_ahead(f.source.as_ref())?,
            demand: self.demand(f.source.as_ref())?,
            source,
            streams: if f.prefer.is_some() { preferred } else { streams },
            multipath: self.multipath(f, spec)?,
            sending: OutgoingOptions {
                packetiser: Packetiser {
                    max_payload: self.payload(f.payload.as_ref(), DEFAULT_PAYLOAD)?,
                    ..Packetiser::default()
                },
                max_queue_age: f.max_queue_age.as_ref().map(|t| positive(self.text, t)).transpose()?,
                repair,
                repair_within_rate: f.repair.is_some(),
                sender,
                utility,
                ..OutgoingOptions::default()
            },
            playout_deadline: f.playout_deadline.as_ref().map(|t| positive(self.text, t)).transpose()?,
            adaptive_playout: self.adaptive_playout(f)?,
            feedback,
            receiver,
            reports: spec.reports,
            rtcp_interval: f
                .rtcp_interval
                .as_ref()
                .map(|t| positive(self.text, t))
                .transpose()?
                .unwrap_or(DEFAULT_RTCP_INTERVAL),
            circuit_breaker: f.circuit_breaker.map(|c| match c {
                RawCircuitBreaker::Rfc8083 => CircuitBreaker::Rfc8083,
                RawCircuitBreaker::Thesis2013 => CircuitBreaker::Thesis2013,
                RawCircuitBreaker::Thesis2013Full => CircuitBreaker::Thesis2013Full,
            }),
            resilience,
            count_retransmissions: self.count_retransmissions(f.count_retransmissions.as_ref(), resilience)?,
            header_overhead: self.header_overhead(f.header_overhead.as_ref())?,
            reported_headers: match &f.reported_headers {
                None => DataSize::ZERO,
                given => self.header_overhead(given.as_ref())?,
            },
            session_bandwidth: f.session_bandwidth.as_ref().map_or(ceiling, |r| r.value.0),
            ecn: spec.ecn_where(f.ecn),
            adapts: spec.adapts,
            dccp: self.rtp_over_dccp(spec, f)?,
            clocks: self.clocks(spec, f)?,
            forecast: self.forecast(f, spec, traces)?.map(Box::new),
            needs_marker: f.decodes_with.as_ref().is_some_and(|d| d.value == RawDecodesWith::FirstAndLast),
        })
    }

    pub(crate) fn header_overhead(&self, raw: Option<&At<Size>>) -> Result<DataSize, InputError> {
        match raw {
            None => Ok(DEFAULT_HEADER_OVERHEAD),
            Some(size) if size.value.0.as_bytes() <= 1_000 => Ok(size.value.0),
            Some(size) => Err(self.text.error(size.span.clone(), "expected at most 1,000 B of headers")),
        }
    }

    pub(crate) fn payload(
        &self,
        raw: Option<&At<crate::quantity::Size>>,
        default: DataSize,
    ) -> Result<DataSize, InputError> {
        match raw {
            Some(s) if !(MIN_PAYLOAD..=MAX_PAYLOAD).contains(&s.value.0.as_bytes()) => Err(self
                .text
                .error(s.span.clone(), format!("expected between {MIN_PAYLOAD} and {MAX_PAYLOAD} bytes in a packet"))),
            Some(s) => Ok(s.value.0),
            None => Ok(default),
        }
    }
}
