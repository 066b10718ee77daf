//! DCCP flows, and the connections of RTP flows that use one.

use crate::checks::positive;
use crate::dccp::{DccpFlow, DccpSettings};
use crate::error::InputError;
use crate::raw::*;
use crate::resolve::flow::Flows;
use crate::suggest;
use weir_cc::{Spec, Transport};
use weir_dccp::ccid::Registry;
use weir_dccp::queue::{QueueConfig, QueuePolicy};
use weir_units::DataSize;

/// An Ethernet frame's 1,500 bytes less IP, UDP and DCCP headers and some options.
const DEFAULT_DATA: DataSize = DataSize::from_bytes(1_400);
const MAX_QUEUE: u32 = 100_000;

impl Flows<'_> {
    pub(crate) fn dccp(&self, f: &RawDccp) -> Result<DccpFlow, InputError> {
        let rate = match &f.rate {
            Some(r) if r.value.0.as_bps() == 0 => {
                return Err(self.text.error(r.span.clone(), "expected a rate above zero"));
            }
            other => other.as_ref().map(|r| r.value.0),
        };
        let settings = self.dccp_settings(f.ccid.value, &f.ccid.span, &f.connection)?;
        Ok(DccpFlow {
            rate,
            payload: self.payload(f.payload.as_ref(), DEFAULT_DATA)?,
            connection: DccpSettings { header_overhead: self.header_overhead(f.header_overhead.as_ref())?, ..settings },
        })
    }

    /// The connection of an RTP flow under this controller.
    pub(crate) fn rtp_over_dccp(&self, spec: &Spec, f: &RawRtp) -> Result<Option<DccpSettings>, InputError> {
        let shared = self.raw.controllers.get(&spec.name).and_then(|c| c.dccp.as_ref());
        let Transport::Dccp { ccid } = spec.transport else {
            // A flow's settings may be for other controllers of a comparison.
            let placeholder = f.controller.value == crate::resolve::flow::PLACEHOLDER;
            return match shared.or(f.dccp.as_ref().filter(|_| !placeholder)) {
                Some(raw) => Err(self
                    .text
                    .error(raw.span.clone(), format!("the controller `{}` runs over UDP", spec.name))
                    .help("over DCCP go those such as \"ccid2\" and \"ccid3\"")),
                None => Ok(None),
            };
        };
        let none = RawDccpSettings::default();
        let raw = f.dccp.as_ref().or(shared).map_or(&none, |d| &d.value);
        let settings = self.dccp_settings(ccid, &f.controller.span, raw)?;
        let ecn = settings.ecn || f.ecn;
        let header_overhead = self.header_overhead(f.header_overhead.as_ref())?;
        Ok(Some(DccpSettings { ecn, header_overhead, ..settings }))
    }

    fn dccp_settings(
        &self,
        ccid: u8,
        at: &std::ops::Range<usize>,
        raw: &RawDccpSettings,
    ) -> Result<DccpSettings, InputError> {
        let registry = Registry::builtin();
        let Some(spec) = registry.get(ccid) else {
            let mut numbers: Vec<u8> = registry.specs().iter().map(|s| s.number).collect();
            numbers.sort_unstable();
            let known: Vec<String> = numbers.iter().map(u8::to_string).collect();
            let message = format!("there is no CCID {ccid}");
            return Err(self.text.error(at.clone(), message).help(format!("there are {}", known.join(", "))));
        };
        let mut params = Vec::new();
        for (name, value) in raw.params.iter() {
            let Some(info) = spec.params.iter().find(|p| p.name == name.value) else {
                let known: Vec<&str> = spec.params.iter().map(|p| p.name).collect();
                let message = format!("CCID {ccid} has no parameter `{}`", name.value);
                return Err(self.text.error(name.span.clone(), message).help(suggest::help(&name.value, &known)));
            };
            params.push((name.value.clone(), self.param_in_range(info, value)?));
        }
        let sequence_window = match &raw.sequence_window {
            Some(w) if !(32..=1_000_000).contains(&w.value) => {
                return Err(self.text.error(w.span.clone(), "expected 32 to 1,000,000 sequence numbers"));
            }
            Some(w) => w.value,
            None => 10_000,
        };
        let capacity = match &raw.queue {
            Some(q) if !(1..=MAX_QUEUE).contains(&q.value) => {
                return Err(self.text.error(q.span.clone(), format!("expected 1 to {MAX_QUEUE} packets")));
            }
            Some(q) => q.value as usize,
            None => QueueConfig::default().capacity,
        };
        let policy = match raw.when_full {
            RawQueuePolicy::Refuse => QueuePolicy::Refuse,
            RawQueuePolicy::DropOldest => QueuePolicy::DropOldest,
        };
        Ok(DccpSettings {
            ccid,
            params,
            ecn: raw.ecn,
            short_sequence_numbers: raw.short_sequence_numbers,
            sequence_window,
            queue: QueueConfig { capacity, policy },
            sized_by_frames: raw.sized_by_frames.unwrap_or(true),
            max_wait: raw.max_wait.as_ref().map(|t| positive(self.text, t)).transpose()?,
            header_overhead: crate::resolve::flow::DEFAULT_HEADER_OVERHEAD,
        })
    }
}
