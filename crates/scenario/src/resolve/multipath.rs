//! A flow's paths, looked up and checked.

use crate::error::InputError;
use crate::paths::{FlowPath, Multipath};
use crate::raw::RawRtp;
use crate::raw::multipath::{RawMultipath, RawPathPolicy};
use crate::resolve::flow::Flows;
use crate::spanned::At;
use crate::suggest;
use weir_cc::{Spec, Transport};
use weir_session::multipath::{Coupling, MAX_PATHS, PathClass, PathPolicy, SCHEDULERS};

/// The scheduler and the coupling of flows that name none.
const DEFAULT_SCHEDULER: &str = "earliest";
const DEFAULT_COUPLING: &str = "none";

impl Flows<'_> {
    /// The paths of a flow; `None` if the file has none, or one.
    pub(crate) fn multipath(&self, f: &RawRtp, spec: &Spec) -> Result<Option<Multipath>, InputError> {
        let Some(raw) = &f.multipath else { return Ok(None) };
        if matches!(spec.transport, Transport::Dccp { .. }) {
            let message = format!("the controller `{}` runs over DCCP, which has one path here", spec.name);
            return Err(self
                .text
                .error(raw.span.clone(), message)
                .help("leave `multipath` out, or take another controller"));
        }
        if !self.is_network() {
            let message = "only flows of a network have several paths";
            return Err(self.text.error(raw.span.clone(), message).help("use topology = \"network\""));
        }
        let given = &raw.value.paths;
        if !(1..=MAX_PATHS).contains(&given.len()) {
            let message = format!("expected one to {MAX_PATHS} paths, found {}", given.len());
            return Err(self.text.error(raw.span.clone(), message));
        }
        let (scheduler, coupling) = (raw.value.scheduler.as_ref(), raw.value.coupling.as_ref());
        let schedulers: Vec<&str> = SCHEDULERS.iter().map(|s| s.name).collect();
        let couplings: Vec<&str> = Coupling::NAMES.iter().map(|(name, _)| *name).collect();
        for (kind, given, known) in [("scheduler", scheduler, &schedulers), ("coupling", coupling, &couplings)] {
            if let Some(wrong) = given.filter(|s| !known.contains(&s.value.as_str())) {
                let message = format!("no {kind} is named `{}`", wrong.value);
                return Err(self.text.error(wrong.span.clone(), message).help(suggest::help(&wrong.value, known)));
            }
        }
        let mut paths: Vec<FlowPath> = Vec::new();
        for path in given {
            let (forward, reverse) = self.route(Some(path), f.direction)?;
            let names = || path.value.iter().map(|n| &n.value);
            let is_shared =
                |name: &&String| given.iter().filter(|other| other.value.iter().any(|n| n.value == **name)).count() > 1;
            let own = names().find(|n| !is_shared(n)).or(names().next());
            let name = own.map_or_else(String::new, Clone::clone);
            let name = if paths.iter().any(|p| p.name == name) { format!("{name}-{}", paths.len() + 1) } else { name };
            paths.push(FlowPath { name, forward, reverse });
        }
        let scheduler = scheduler.map_or(DEFAULT_SCHEDULER, |s| &s.value).to_owned();
        if paths.len() == 1 {
            return Ok(None);
        }
        let coupling = coupling.map_or(DEFAULT_COUPLING, |s| &s.value).to_owned();
        let (skew_playout, policies) = (raw.value.skew_playout, self.policies(raw)?);
        let sufficient_rate = raw.value.sufficient_rate.as_ref().map(|r| r.value.0);
        let priorities = self.priorities(raw)?;
        Ok(Some(Multipath { scheduler, coupling, skew_playout, policies, sufficient_rate, priorities, paths }))
    }

    fn priorities(&self, raw: &At<RawMultipath>) -> Result<Vec<f64>, InputError> {
        let RawMultipath { priorities, paths, .. } = &raw.value;
        if let Some(beyond) = priorities.get(paths.len()) {
            let message = format!("a priority for path {}, but there are {} paths", paths.len() + 1, paths.len());
            return Err(self.text.error(beyond.span.clone(), message));
        }
        let checked = |p: &At<f64>| {
            let wrong =
                || self.text.error(p.span.clone(), format!("expected a priority from 0.01 to 100, found {}", p.value));
            (0.01..=100.0).contains(&p.value).then_some(p.value).ok_or_else(wrong)
        };
        priorities.iter().map(checked).collect()
    }

    fn policies(&self, raw: &At<RawMultipath>) -> Result<Vec<PathPolicy>, InputError> {
        let RawMultipath { policies, paths, .. } = &raw.value;
        if let Some(beyond) = policies.get(paths.len()) {
            let message = format!("a policy for path {}, but there are {} paths", paths.len() + 1, paths.len());
            return Err(self.text.error(beyond.span.clone(), message));
        }
        policies.iter().map(|p| self.policy(&p.value)).collect()
    }

    fn policy(&self, raw: &RawPathPolicy) -> Result<PathPolicy, InputError> {
        let names = PathClass::NAMES.map(|n| n.0);
        let class = raw.class.as_ref().map_or(Ok(PathClass::default()), |c| {
            let unknown = || self.text.error(c.span.clone(), format!("no class of paths is named `{}`", c.value));
            PathClass::named(&c.value).ok_or_else(|| unknown().help(suggest::help(&c.value, &names)))
        })?;
        let share = raw.share.as_ref().map_or(Ok(1.0), |s| {
            let wrong =
                || self.text.error(s.span.clone(), format!("expected a share from 0.01 to 1, found {}", s.value));
            (0.01..=1.0).contains(&s.value).then_some(s.value).ok_or_else(wrong)
        })?;
        Ok(PathPolicy { class, share, budget: raw.budget.as_ref().map(|b| b.value.0) })
    }
}
