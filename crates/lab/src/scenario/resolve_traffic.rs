//! What TCP and UDP flows send.

use super::error::InputError;
use super::model::*;
use super::raw::*;
use super::raw_choice::*;
use super::resolve::capacity;
use super::resolve_flow::{DEFAULT_PAYLOAD, Flows};
use super::spanned::At;
use super::traces::Traces;
use std::ops::Range;
use weir_units::DataSize;

/// An Ethernet frame's 1,500 bytes less IP and TCP headers with timestamps.
const DEFAULT_SEGMENT: DataSize = DataSize::from_bytes(1_448);

impl Flows<'_> {
    pub(super) fn tcp(&self, f: &RawTcp, span: &Range<usize>) -> Result<TcpFlow, InputError> {
        let traffic = match (&f.size, &f.idle) {
            (None, None) => match &f.starts_on {
                Some(s) => {
                    return Err(self
                        .text
                        .error(s.span.clone(), "`starts_on` belongs to on-off flows with `size` and `idle`"));
                }
                None => TcpTraffic::Bulk,
            },
            (Some(size), Some(idle)) => TcpTraffic::OnOff {
                size: self.distribution(size)?,
                idle: self.distribution(idle)?,
                starts_on: f.starts_on.as_ref().is_none_or(|s| s.value),
            },
            _ => return Err(self.text.error(span.clone(), "an on-off flow needs both `size` and `idle`")),
        };
        Ok(TcpFlow {
            algorithm: match f.algorithm {
                RawTcpAlgorithm::NewReno => TcpAlgorithm::NewReno,
                RawTcpAlgorithm::Cubic => TcpAlgorithm::Cubic,
            },
            traffic,
            segment: self.payload(f.segment.as_ref(), DEFAULT_SEGMENT)?,
            delayed_acks: f.delayed_acks.unwrap_or(true),
        })
    }

    pub(super) fn udp(&self, f: &RawUdp, span: &Range<usize>, traces: &mut Traces) -> Result<UdpFlow, InputError> {
        let rate = capacity(self.text, &f.rate, traces)?;
        if matches!(rate, Capacity::Unlimited | Capacity::Trace(_)) {
            return Err(self.text.error(f.rate.span.clone(), "a UDP flow needs a rate such as \"2 Mbps\", or `steps`"));
        }
        let on_off = match (&f.on, &f.off) {
            (None, None) => None,
            (Some(on), Some(off)) => Some((self.distribution(on)?, self.distribution(off)?)),
            _ => return Err(self.text.error(span.clone(), "an on-off flow needs both `on` and `off`")),
        };
        Ok(UdpFlow { rate, payload: self.payload(f.payload.as_ref(), DEFAULT_PAYLOAD)?, on_off })
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
