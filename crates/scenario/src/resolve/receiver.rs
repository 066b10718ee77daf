//! How a flow is received and repaired: the model of its receiver, clocks, feedback, error resilience, playout.

use crate::checks::{positive, probability};
use crate::clock::{self, Clocks};
use crate::error::InputError;
use crate::raw::*;
use crate::resolve::flow::Flows;
use crate::spanned::At;
use crate::suggest;
use weir_cc::{FeedbackPlan, Spec, Transport};
use weir_fec::Scheme;
use weir_media::resilience::joint::Joint;
use weir_media::resilience::{Choice, Mechanisms};
use weir_session::{FrameRepair, Hairpin, ReceiverModel, RepairChoice, SenderModel, Tambur};

impl Flows<'_> {
    pub(super) fn receiver(&self, spec: &Spec, f: &RawRtp) -> Result<ReceiverModel, InputError> {
        let Some(raw) = &f.receiver else { return Ok(ReceiverModel::default()) };
        let Some(model) = ReceiverModel::named(&raw.value) else {
            return Err(self.unnamed("receiver", raw, &ReceiverModel::ALL.map(|(name, _)| name)));
        };
        if model != ReceiverModel::Weir {
            self.is_for_browsers("receiver", raw, spec, f)?;
        }
        Ok(model)
    }

    pub(super) fn sender(&self, spec: &Spec, f: &RawRtp) -> Result<SenderModel, InputError> {
        let Some(raw) = &f.sender else { return Ok(SenderModel::default()) };
        let Some(model) = SenderModel::named(&raw.value) else {
            return Err(self.unnamed("sender", raw, &SenderModel::ALL.map(|(name, _)| name)));
        };
        if model != SenderModel::Weir {
            self.is_for_browsers("sender", raw, spec, f)?;
        }
        Ok(model)
    }

    fn unnamed(&self, end: &str, raw: &At<String>, known: &[&str]) -> InputError {
        let message = format!("no {end} is named `{}`", raw.value);
        self.text.error(raw.span.clone(), message).help(suggest::help(&raw.value, known))
    }

    /// Browsers have one path, and UDP.
    fn is_for_browsers(&self, end: &str, raw: &At<String>, spec: &Spec, f: &RawRtp) -> Result<(), InputError> {
        let error = |message: String| self.text.error(raw.span.clone(), message);
        if spec.transport != Transport::Udp {
            let message = format!("the controller `{}` runs over DCCP, which browsers do not have", spec.name);
            return Err(error(message).help(format!("leave `{end}` and `ends` out, or take a controller over UDP")));
        }
        if f.multipath.is_some() {
            return Err(error(format!("a browser's {end} has one path"))
                .help(format!("leave `multipath`, or `{end}` and `ends`, out")));
        }
        Ok(())
    }

    pub(super) fn clocks(&self, spec: &Spec, f: &RawRtp) -> Result<Clocks, InputError> {
        let Some(raw) = &f.clock else { return Ok(Clocks::default()) };
        if spec.transport != Transport::Udp {
            let message =
                format!("the controller `{}` runs over DCCP, whose ends have no clocks of their own", spec.name);
            return Err(self
                .text
                .error(raw.span.clone(), message)
                .help("leave `clock` out, or take a controller over UDP"));
        }
        clock::clocks(self.text, &raw.value)
    }

    pub(super) fn resilience(&self, raw: Option<&At<Vec<RawResilience>>>) -> Result<Option<Choice>, InputError> {
        let Some(raw) = raw else { return Ok(None) };
        let mut all = Mechanisms::NONE;
        for m in &raw.value {
            all = all
                | match m {
                    RawResilience::Auto if raw.value.len() == 1 => return Ok(Some(Choice::Auto)),
                    RawResilience::Auto => {
                        let message = "expected \"auto\" alone, or the mechanisms that are to be on";
                        return Err(self.text.error(raw.span.clone(), message));
                    }
                    RawResilience::Nack => Mechanisms::NACK,
                    RawResilience::Ssa => Mechanisms::SLICES,
                    RawResilience::Rps => Mechanisms::REFERENCES,
                    RawResilience::Uep => Mechanisms::PROTECTION,
                };
        }
        Ok((all != Mechanisms::NONE).then_some(Choice::Pinned(all)))
    }

    pub(super) fn repair(&self, raw: Option<&At<RawRepair>>) -> Result<RepairChoice, InputError> {
        let Some(raw) = raw else { return Ok(RepairChoice::Controller) };
        let error = |message: &str| self.text.error(raw.span.clone(), message);
        let RawRepair { code, sources, repairs, window, columns, .. } = raw.value;
        if let Some(by_frames) = self.repair_by_frames(raw)? {
            return Ok(RepairChoice::ByFrames(by_frames));
        }
        if window.is_some() != (code == RawRepairCode::Rlc) {
            return Err(error("`window` is of the code \"rlc\", which needs it"));
        }
        if columns.is_some() && code != RawRepairCode::Parity || repairs.is_some() && code == RawRepairCode::Parity {
            return Err(error("`columns` is of the code \"parity\", and `repairs` of the others"));
        }
        let scheme = match (code, sources, repairs.unwrap_or(1)) {
            (RawRepairCode::Rlc, None, _) if repairs.is_none() => {
                return Ok(RepairChoice::Sliding { window: window.unwrap_or_default() });
            }
            (_, None, _) => return Err(error("`sources` is missing: the media packets for `repairs` repair packets")),
            (RawRepairCode::Parity, Some(rows), _) => match columns {
                Some(columns) => Scheme::interleaved(columns, rows),
                None => Scheme::parity(rows),
            },
            (RawRepairCode::ReedSolomon, Some(sources), repairs) => match sources.checked_add(repairs) {
                Some(n) => Scheme::reed_solomon(n, repairs),
                None => return Err(error("a block has 255 packets at most, `sources` and `repairs` together")),
            },
            (_, Some(sources), repairs) => Scheme::rlc(window.unwrap_or_default(), sources, repairs),
        };
        scheme.map(|s| RepairChoice::Fixed(s.into())).map_err(|e| error(&e.to_string()))
    }

    /// The bounds of a joint plan, if the flow has one.
    pub(super) fn joint(&self, f: &RawRtp, requests: bool) -> Result<Option<Joint>, InputError> {
        let Some(raw) = f.repair.as_ref() else { return Ok(None) };
        let RawRepair { code, sources, repairs, window, columns, deadline, cost, delay, earliest } = &raw.value;
        let error = |message: &str| Err(self.text.error(raw.span.clone(), message));
        if *code != RawRepairCode::Joint {
            return if earliest.is_some() { error("`earliest` is of the code \"joint\"") } else { Ok(None) };
        }
        let others = [sources, repairs, window, columns].iter().any(|n| n.is_some());
        if others || deadline.is_some() || cost.is_some() || delay.is_some() {
            return error("of the code \"joint\" is `earliest` alone: it chooses all other numbers");
        }
        let Some(latest) = &f.playout_deadline else {
            return error("a joint plan ends at a `playout_deadline`: give the flow one, such as \"300 ms\"");
        };
        if f.multipath.is_some() || f.adaptive_playout.as_ref().is_some_and(|a| a.value) {
            return error("a joint plan decides on playout, on one path: leave `adaptive_playout` and `multipath` out");
        }
        let latest = positive(self.text, latest)?;
        let earliest = earliest.as_ref().map_or(Ok(latest), |t| positive(self.text, t))?;
        if earliest > latest {
            return error("`earliest` is after `playout_deadline`: give an earlier one");
        }
        Ok(Some(Joint { earliest, latest, requests }))
    }

    /// The policy of frames, if it is one.
    fn repair_by_frames(&self, raw: &At<RawRepair>) -> Result<Option<FrameRepair>, InputError> {
        let RawRepair { code, sources, repairs, window, columns, deadline, cost, delay, .. } = &raw.value;
        let error = |message: &str| Err(self.text.error(raw.span.clone(), message));
        let by_frames = matches!(code, RawRepairCode::Hairpin | RawRepairCode::Tambur | RawRepairCode::Libwebrtc);
        if by_frames && [sources, repairs, window, columns].iter().any(|n| n.is_some()) {
            return error("`sources`, `repairs`, `window` and `columns` are of codes without frames");
        }
        if (deadline.is_some() || cost.is_some()) && *code != RawRepairCode::Hairpin {
            return error("`deadline` and `cost` are of the code \"hairpin\"");
        }
        if delay.is_some() && *code != RawRepairCode::Tambur {
            return error("`delay` is of the code \"tambur\"");
        }
        Ok(match code {
            RawRepairCode::Hairpin => {
                let mut hairpin = Hairpin::default();
                if let Some(deadline) = deadline {
                    hairpin.deadline = positive(self.text, deadline)?;
                }
                if let Some(cost) = cost {
                    hairpin.cost = (probability(self.text, cost)? * f64::from(Hairpin::MAX_COST)).round() as u32;
                }
                Some(FrameRepair::Hairpin(hairpin))
            }
            RawRepairCode::Tambur => {
                let mut tambur = Tambur::default();
                if let Some(delay) = delay {
                    if !(1..=Tambur::MAX_DELAY).contains(&delay.value) {
                        return Err(self.text.error(delay.span.clone(), "expected 1 to 16 frames"));
                    }
                    tambur.delay = delay.value;
                }
                Some(FrameRepair::Tambur(tambur))
            }
            RawRepairCode::Libwebrtc => Some(FrameRepair::Libwebrtc),
            _ => None,
        })
    }

    pub(super) fn count_retransmissions(
        &self,
        raw: Option<&At<bool>>,
        choice: Option<Choice>,
    ) -> Result<bool, InputError> {
        let Some(raw) = raw.filter(|r| r.value) else { return Ok(false) };
        match choice {
            Some(Choice::Auto) => Ok(true),
            Some(Choice::Pinned(all)) if all.contains(Mechanisms::NACK) => Ok(true),
            _ => Err(self
                .text
                .error(raw.span.clone(), "nothing is sent again on this flow")
                .help("say error_resilience = [\"nack\"]")),
        }
    }

    pub(super) fn feedback(&self, mut plan: FeedbackPlan, raw: &RawFeedback) -> Result<FeedbackPlan, InputError> {
        if let Some(t) = &raw.interval {
            if let Some(other) = raw.min_interval.as_ref().or(raw.max_interval.as_ref()) {
                let message = "`interval` sets both bounds: leave it or `min_interval` and `max_interval` out";
                return Err(self.text.error(other.span.clone(), message));
            }
            plan.min_interval = positive(self.text, t)?;
            plan.max_interval = plan.min_interval;
        }
        if let Some(t) = &raw.min_interval {
            plan.min_interval = positive(self.text, t)?;
            plan.max_interval = plan.max_interval.max(plan.min_interval);
        }
        if let Some(t) = &raw.max_interval {
            plan.max_interval = positive(self.text, t)?;
            if plan.max_interval < plan.min_interval {
                let message = format!("expected at least the minimum interval, {}", plan.min_interval);
                return Err(self.text.error(t.span.clone(), message));
            }
        }
        if let Some(share) = &raw.bandwidth_share {
            plan.bandwidth_share = probability(self.text, share)?;
        }
        Ok(plan)
    }

    pub(super) fn adaptive_playout(&self, f: &RawRtp) -> Result<bool, InputError> {
        let Some(raw) = f.adaptive_playout.as_ref().filter(|a| a.value) else { return Ok(false) };
        let error = |message| Err(self.text.error(raw.span.clone(), message));
        if f.playout_deadline.is_none() {
            return error("an adaptive delay ends at a `playout_deadline`: give the flow one, such as \"400 ms\"");
        }
        if f.multipath.is_some() {
            return error("playout over several paths follows their skew: leave `adaptive_playout` or `multipath` out");
        }
        Ok(true)
    }
}
