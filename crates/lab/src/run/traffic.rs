//! TCP and UDP of a scenario, as agents of the simulator.

use super::RunError;
use super::ends::Ends;
use super::stepped_udp::SteppedUdp;
use crate::scenario::{self as sc, Flow, TcpFlow, UdpFlow};
use weir_path as path;
use weir_sim::{Endpoint, tcp, udp};
use weir_units::{DataSize, Timestamp};

/// Bytes of IPv4 and UDP headers.
const UDP_OVERHEAD: u64 = 28;

/// Both ends of a TCP flow. Errors: its workload cannot be constructed.
pub(super) fn tcp_ends(flow: &Flow, t: &TcpFlow, seed: u64) -> Result<Ends<Endpoint>, RunError> {
    let traffic_error = |message: String| RunError::Traffic { flow: flow.name.clone(), message };
    let mss = u32::try_from(t.segment.as_bytes()).unwrap_or(u32::MAX);
    let defaults = tcp::TcpConfig::default();
    let config = tcp::TcpConfig {
        variant: t.algorithm,
        ecn: if t.ecn { t.algorithm.with_ecn() } else { tcp::EcnFeedback::Off },
        hystart: t.hystart,
        prr: t.prr,
        loss_detection: t.loss_detection,
        dsack: t.loss_detection == tcp::LossDetection::Rack,
        seed,
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
    if let sc::TcpTraffic::Short { arrivals, size } = t.traffic {
        let size = distribution(size).map_err(traffic_error)?;
        let flows = tcp::ShortFlows { arrivals_per_s: arrivals, size, seed };
        let sender = tcp::ShortSender::new(config, flows).map_err(|e| traffic_error(e.to_string()))?;
        let receiver = tcp::ShortReceiver::new(config).map_err(|e| traffic_error(e.to_string()))?;
        return Ok(Ends {
            sender: Endpoint::ShortSender(Box::new(sender)),
            receiver: Endpoint::ShortReceiver(Box::new(receiver)),
        });
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
    Ok(Ends { sender: Endpoint::TcpSender(Box::new(sender)), receiver: Endpoint::TcpReceiver(receiver) })
}

/// The source of a UDP flow.
pub(super) enum UdpSource {
    Constant(udp::Source),
    Stepped(SteppedUdp),
}

/// The source of a UDP flow. Errors: its traffic cannot be constructed.
pub(super) fn udp_source(flow: &Flow, u: &UdpFlow, seed: u64) -> Result<UdpSource, RunError> {
    let traffic_error = |message: String| RunError::Traffic { flow: flow.name.clone(), message };
    let size = u.payload + DataSize::from_bytes(UDP_OVERHEAD);
    let source = |rate| match &u.on_off {
        None => Ok(udp::Source::constant(rate, size)),
        Some((on, off)) => {
            let (on, off) = (distribution(*on), distribution(*off));
            let on_off = udp::OnOff { on: on.map_err(traffic_error)?, off: off.map_err(traffic_error)?, seed };
            udp::Source::on_off(rate, size, on_off).map_err(|e| traffic_error(e.to_string()))
        }
    };
    match &u.rate {
        path::Capacity::Constant(rate) => Ok(UdpSource::Constant(source(*rate)?)),
        path::Capacity::Schedule(schedule) => {
            let start = Timestamp::ZERO + flow.start;
            let steps = schedule.steps().iter().map(|s| Ok((start + s.at, source(s.rate)?)));
            Ok(UdpSource::Stepped(SteppedUdp::new(steps.collect::<Result<_, RunError>>()?)))
        }
        _ => Err(traffic_error("a UDP flow has a constant rate or steps".into())),
    }
}

/// The source of a UDP flow as its own agent. Errors: its traffic cannot be constructed.
pub fn udp_agent(flow: &Flow, u: &UdpFlow, seed: u64) -> Result<Box<dyn weir_sim::Agent + Send>, RunError> {
    Ok(match udp_source(flow, u, seed)? {
        UdpSource::Constant(source) => Box::new(source),
        UdpSource::Stepped(source) => Box::new(source),
    })
}

/// A scenario's distribution for the simulator. Errors: invalid parameters, as text.
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
