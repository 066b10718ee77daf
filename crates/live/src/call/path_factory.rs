//! The configurations of a call's paths, each with a controller of its own: those that it begins with, and those added by
//! ICE.

use crate::call::CallError;
use crate::call::config::CallConfig;
use crate::call::ice_state::NewPath;
use crate::call::paths::of_path;
use crate::sdp::{Agreement, Extension, Feedback};
use weir_cc::{FeedbackFormat, Registry, Setup, Transport};
use weir_session::{Control, HeaderExtensions, PathConfig, ReceivingPath, SendingPath};
use weir_units::{Ecn, Timestamp};

/// Makes them.
pub(super) struct PathFactory {
    pub(super) agreement: Agreement,
    pub(super) config: CallConfig,
    pub(super) registry: Registry,
    pub(super) seed: u64,
    /// Whether this end sends media, and whether it receives any.
    pub(super) sends: bool,
    pub(super) receives: bool,
}

/// Per-packet feedback that a controller needs and the other end does not send.
fn unfit(controller: &str, wants: &str) -> CallError {
    CallError::Unfit { controller: controller.into(), wants: wants.into() }
}

impl PathFactory {
    /// The configuration of a path by its number. Header extensions that its controller needs are switched on.
    ///
    /// # Errors
    /// The controller needs feedback that the other end does not send, or cannot be constructed.
    pub(super) fn path(
        &self,
        path: usize,
        now: Timestamp,
        extensions: &mut HeaderExtensions,
    ) -> Result<PathConfig, CallError> {
        let sending = self.sends.then(|| self.sending(path, now, extensions)).transpose()?;
        Ok(PathConfig { sending, receiving: self.receives.then(|| self.receiving(path, now)), number: None })
    }

    /// For paths in mid-call, whose controllers need no more than those before.
    pub(super) fn into_new_path(self) -> NewPath {
        Box::new(move |path, now| self.path(path, now, &mut HeaderExtensions::default()).ok())
    }

    fn setup(&self, params: Vec<(String, f64)>, now: Timestamp) -> Setup {
        let (limits, start_rate) = (self.config.limits, self.config.start_rate);
        Setup { limits, start_rate, now, seed: self.seed, params }
    }

    fn sending(
        &self,
        path: usize,
        now: Timestamp,
        extensions: &mut HeaderExtensions,
    ) -> Result<SendingPath, CallError> {
        let (a, config, name) = (&self.agreement, &self.config, &self.config.controller);
        if config.transport(&self.registry) != Transport::Udp && a.dccp.is_none() {
            return Err(CallError::OnlyOverDccp { controller: name.clone() });
        }
        let setup = self.setup(config.params.clone(), now);
        let control = Control::new(&self.registry, name, &of_path(&setup, path))?;
        match control.feedback.map(|f| f.format) {
            Some(FeedbackFormat::TransportWide) if !a.has(Feedback::TransportWide) => {
                return Err(unfit(name, "transport-wide feedback (a=rtcp-fb: transport-cc)"));
            }
            Some(FeedbackFormat::TransportWide) if a.extension(Extension::TransportSequence).is_none() => {
                return Err(unfit(name, "transport-wide sequence numbers (a=extmap)"));
            }
            Some(FeedbackFormat::CongestionControl) if !a.has(Feedback::CongestionControl) => {
                return Err(unfit(name, "RFC 8888 feedback (a=rtcp-fb: ack ccfb)"));
            }
            _ => {}
        }
        control.configure(extensions);
        extensions.abs_send_time &= a.extension(Extension::AbsSendTime).is_some();
        Ok(SendingPath {
            circuit_breaker: config.circuit_breaker,
            feedback_guard: config.guard(&self.registry),
            ecn: if config.ecn { control.ecn } else { Ecn::NotEct },
            policy: config.paths.policies.get(path).copied().unwrap_or_default(),
            ..control.into_directions().0
        })
    }

    /// The receiving direction. If the other end is Weir, its controller's receiver half runs here; otherwise the agreed
    /// feedback is sent.
    fn receiving(&self, path: usize, now: Timestamp) -> ReceivingPath {
        let (a, registry) = (&self.agreement, &self.registry);
        let theirs = a.remote_controller.as_deref().and_then(|name| registry.get(name));
        let standard = || {
            let has = |f: FeedbackFormat| match f {
                FeedbackFormat::TransportWide => a.has(Feedback::TransportWide),
                FeedbackFormat::CongestionControl => a.has(Feedback::CongestionControl),
            };
            registry.specs().filter_map(|s| s.feedback).find(|f| has(f.format))
        };
        let setup = self.setup(Vec::new(), now);
        ReceivingPath {
            feedback: theirs.map_or_else(standard, |s| s.feedback),
            reports: theirs.and_then(|s| s.reports),
            controller: theirs
                .and_then(|s| registry.make(&s.name, &of_path(&setup, path)).ok())
                .and_then(|p| p.receiver),
        }
    }
}
