//! A flow's paths, looked up and checked.

use super::error::InputError;
use super::paths::{FlowPath, Multipath};
use super::raw::RawRtp;
use super::resolve_flow::Flows;
use super::suggest;
use weir_cc::{Spec, Transport};
use weir_session::multipath::{Coupling, MAX_PATHS, SCHEDULERS};

/// The scheduler and the coupling of flows that name none.
const DEFAULT_SCHEDULER: &str = "earliest";
const DEFAULT_COUPLING: &str = "none";

impl Flows<'_> {
    /// The paths of a flow; `None` if the file has none, or one.
    pub(super) fn multipath(&self, f: &RawRtp, spec: &Spec) -> Result<Option<Multipath>, InputError> {
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
        Ok(Some(Multipath { scheduler, coupling, skew_playout: raw.value.skew_playout, paths }))
    }
}
