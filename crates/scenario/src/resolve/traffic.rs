//! Traffic of TCP and UDP flows.

use crate::capacity;
use crate::checks::positive;
use crate::choice::*;
use crate::error::InputError;
use crate::model::*;
use crate::raw::*;
use crate::resolve::flow::{DEFAULT_PAYLOAD, Flows};
use crate::spanned::At;
use crate::traces::Traces;
use std::ops::Range;
use weir_path::Capacity;
use weir_sim::tcp::EcnFeedback;
use weir_units::{DataSize, TimeDelta};

/// An Ethernet frame's 1,500 bytes less IP and TCP headers with timestamps.
const DEFAULT_SEGMENT: DataSize = DataSize::from_bytes(1_448);
/// Maximum short flows per second.
const MAX_ARRIVALS: f64 = 1e6;

impl Flows<'_> {
    pub(crate) fn tcp(&self, f: &RawTcp, span: &Range<usize>) -> Result<TcpFlow, InputError> {
        let traffic = self.tcp_traffic(f, span)?;
        let segments = |raw: &Option<At<u32>>, most: u32| match raw {
            Some(n) if !(1..=most).contains(&n.value) => {
                let message = format!("expected 1 to {most} segments, found {}", n.value);
                Err(self.text.error(n.span.clone(), message))
            }
            other => Ok(other.as_ref().map(|n| n.value)),
        };
        let min_rto = match &f.min_rto {
            Some(t) if t.value.0 > TimeDelta::from_secs(60) => {
                return Err(self.text.error(t.span.clone(), "expected at most 60 s, the greatest timeout there is"));
            }
            Some(t) => positive(self.text, t)?,
            None => TimeDelta::from_secs(1),
        };
        let algorithm = match f.algorithm {
            RawTcpAlgorithm::NewReno => TcpAlgorithm::NewReno,
            RawTcpAlgorithm::Cubic => TcpAlgorithm::Cubic,
            RawTcpAlgorithm::Vegas => TcpAlgorithm::Vegas,
            RawTcpAlgorithm::HighSpeed => TcpAlgorithm::HighSpeed,
            RawTcpAlgorithm::Scalable => TcpAlgorithm::Scalable,
            RawTcpAlgorithm::Dctcp => TcpAlgorithm::Dctcp,
            RawTcpAlgorithm::Prague => TcpAlgorithm::Prague,
            RawTcpAlgorithm::Bbr1 => TcpAlgorithm::Bbr1,
            RawTcpAlgorithm::Bbr => TcpAlgorithm::Bbr,
        };
        let sack = f.sack.unwrap_or(true);
        let refuse = |span: &Range<usize>, message: &str| Err(self.text.error(span.clone(), message.to_string()));
        let uses_ecn = algorithm.ecn() != EcnFeedback::Off;
        match &f.ecn {
            Some(e) if e.value && algorithm.models_path() => {
                return refuse(&e.span, "this algorithm does not respond to ECN: leave `ecn` out");
            }
            Some(e) if !e.value && uses_ecn => {
                return refuse(&e.span, "this algorithm needs ECN: leave `ecn` out");
            }
            _ => {}
        }
        if !sack && algorithm.models_path() {
            return refuse(
                span,
                "this algorithm counts what was delivered, which needs selective acknowledgements: leave `sack` out",
            );
        }
        if let Some(p) = f.prr.as_ref().filter(|p| p.value && !sack) {
            return refuse(
                &p.span,
                "`prr` counts what was delivered, which needs selective acknowledgements: leave `sack` out",
            );
        }
        let loss_detection = match f.loss_detection.as_ref().map(|l| (l.value, &l.span)) {
            None | Some((RawTcpLossDetection::DupAck, _)) => TcpLossDetection::DupAck,
            Some((RawTcpLossDetection::Rack, _)) if sack => TcpLossDetection::Rack,
            Some((RawTcpLossDetection::Rack, span)) => {
                return refuse(span, "`rack` needs selective acknowledgements: leave `sack` out");
            }
        };
        Ok(TcpFlow {
            algorithm,
            ecn: uses_ecn || f.ecn.as_ref().is_some_and(|e| e.value),
            hystart: f.hystart.unwrap_or(false),
            prr: f.prr.as_ref().is_some_and(|p| p.value),
            loss_detection,
            traffic,
            segment: self.payload(f.segment.as_ref(), DEFAULT_SEGMENT)?,
            delayed_acks: f.delayed_acks.unwrap_or(true),
            initial_window: segments(&f.initial_window, 1_000)?.unwrap_or(10),
            // A gibibyte of the largest segments.
            max_window: segments(&f.max_window, 16_000)?,
            sack,
            timestamps: f.timestamps.unwrap_or(true),
            handshake: f.handshake.unwrap_or(true),
            min_rto,
        })
    }

    fn tcp_traffic(&self, f: &RawTcp, span: &Range<usize>) -> Result<TcpTraffic, InputError> {
        // Fields of one kind of traffic only.
        let on_off = f.size.is_some() && f.idle.is_some();
        for (name, at) in [("starts_on", &f.starts_on), ("persistent", &f.persistent)] {
            if let (Some(at), false) = (at, on_off) {
                let message = format!("`{name}` belongs to on-off flows with `size` and `idle`");
                return Err(self.text.error(at.span.clone(), message));
            }
        }
        let is_on = |b: &Option<At<bool>>, default| b.as_ref().map_or(default, |b| b.value);
        match (&f.size, &f.idle, &f.arrivals, &f.rate) {
            (None, None, None, None) => Ok(TcpTraffic::Bulk),
            (None, None, None, Some(rate)) => match rate.value.0 {
                r if r.as_bps() > 0 => Ok(TcpTraffic::Stream { rate: r }),
                _ => Err(self.text.error(rate.span.clone(), "expected a rate above zero")),
            },
            (Some(size), Some(idle), None, None) => Ok(TcpTraffic::OnOff {
                size: self.distribution(size)?,
                idle: self.distribution(idle)?,
                starts_on: is_on(&f.starts_on, true),
                persistent: is_on(&f.persistent, false),
            }),
            (Some(size), None, Some(arrivals), None) => {
                if !(arrivals.value > 0.0 && arrivals.value <= MAX_ARRIVALS) {
                    let message =
                        format!("expected flows a second above 0 and up to {MAX_ARRIVALS}, found {}", arrivals.value);
                    return Err(self.text.error(arrivals.span.clone(), message));
                }
                Ok(TcpTraffic::Short { arrivals: arrivals.value, size: self.distribution(size)? })
            }
            (_, _, _, Some(rate)) => Err(self
                .text
                .error(rate.span.clone(), "a live source's `rate` excludes `size`, `idle` and `arrivals`")
                .help("leave `rate` out, or the others")),
            (_, Some(_), Some(arrivals), _) => Err(self
                .text
                .error(arrivals.span.clone(), "`idle` is for one source's objects, `arrivals` for short flows")
                .help("leave one of them out")),
            (None, _, Some(arrivals), _) => Err(self
                .text
                .error(arrivals.span.clone(), "flows that arrive need a `size`")
                .help("for example size = { pareto = { mean = \"260 kB\", shape = 1.5 } }")),
            _ => Err(self
                .text
                .error(span.clone(), "an on-off flow needs both `size` and `idle`")
                .help("short flows have `size` and `arrivals`")),
        }
    }

    pub(crate) fn udp(&self, f: &RawUdp, span: &Range<usize>, traces: &mut Traces) -> Result<UdpFlow, InputError> {
        let capacity::Resolved { capacity: rate, trace } = capacity::resolve(self.text, &f.rate, traces)?;
        if rate == Capacity::Unlimited || trace.is_some() {
            return Err(self.text.error(f.rate.span.clone(), "a UDP flow needs a rate such as \"2 Mbps\", or `steps`"));
        }
        let on_off = match (&f.on, &f.off) {
            (None, None) => None,
            (Some(on), Some(off)) => Some((self.distribution(on)?, self.distribution(off)?)),
            _ => return Err(self.text.error(span.clone(), "an on-off flow needs both `on` and `off`")),
        };
        let on_off = match &f.hurst {
            Some(hurst) => Some(self.self_similar(hurst, on_off)?),
            None => on_off,
        };
        Ok(UdpFlow { rate, payload: self.payload(f.payload.as_ref(), DEFAULT_PAYLOAD)?, on_off })
    }

    /// On and off times of one of many flows whose sum has this Hurst parameter.
    fn self_similar(
        &self,
        hurst: &At<f64>,
        means: Option<(Distribution, Distribution)>,
    ) -> Result<(Distribution, Distribution), InputError> {
        if !(0.51..=0.99).contains(&hurst.value) {
            return Err(self.text.error(hurst.span.clone(), "expected a Hurst parameter between 0.51 and 0.99"));
        }
        let Some((Distribution::Constant(on), Distribution::Constant(off))) = means else {
            let message = "`hurst` makes the times' distributions: it needs `on` and `off` as times, their means";
            return Err(self.text.error(hurst.span.clone(), message));
        };
        let pareto = |mean| Distribution::Pareto { mean, shape: 3.0 - 2.0 * hurst.value };
        Ok((pareto(on), pareto(off)))
    }

    fn distribution<T: Quantity>(&self, raw: &At<RawDistribution<T>>) -> Result<Distribution, InputError> {
        let bad = |why: &str| Err(self.text.error(raw.span.clone(), why));
        let d = match &raw.value {
            RawDistribution::Constant(c) => Distribution::Constant(c.number()),
            RawDistribution::Table(RawDistributionTable { uniform: Some([a, b]), exponential: None, pareto: None }) => {
                if a.number() > b.number() {
                    return bad("expected the lesser value first");
                }
                Distribution::Uniform { min: a.number(), max: b.number() }
            }
            RawDistribution::Table(RawDistributionTable { uniform: None, exponential: Some(m), pareto: None }) => {
                Distribution::Exponential { mean: m.number() }
            }
            RawDistribution::Table(RawDistributionTable { uniform: None, exponential: None, pareto: Some(p) }) => {
                if !(1.01..=100.0).contains(&p.shape.value) {
                    return Err(self.text.error(p.shape.span.clone(), "expected a shape between 1.01 and 100"));
                }
                Distribution::Pareto { mean: p.mean.number(), shape: p.shape.value }
            }
            RawDistribution::Table(_) => return bad("expected exactly one of `uniform`, `exponential` and `pareto`"),
        };
        let largest = match d {
            Distribution::Constant(n) | Distribution::Uniform { max: n, .. } => n,
            Distribution::Exponential { mean } | Distribution::Pareto { mean, .. } => mean,
        };
        if largest > 0.0 { Ok(d) } else { bad("expected something above zero") }
    }
}
