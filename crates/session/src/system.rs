//! A whole adaptive system: application, codec and network behind one interface.
//!
//! The interface is that of M. Nagy et al., "Congestion Control using FEC for Conversational Multimedia Communication",
//! section 6 and table 6 (AMuSys), with Rust names:
//!
//! | table 6 | here |
//! |---|---|
//! | `setPreferences()` | [`AdaptiveSystem::set_preferences`] |
//! | `getParam()`, `setParam()` | [`AdaptiveSystem::param`], [`AdaptiveSystem::set_param`] |
//! | `getBitrate()`, `setBitrate()` | [`AdaptiveSystem::bit_rate`], [`AdaptiveSystem::set_bit_rate`] |
//! | `onReceivedRTPPacket()` and the other callbacks | [`Observer`] by [`AdaptiveSystem::set_observer`] |
//! | `enableFEC()`, `setFECScheme()` | [`AdaptiveSystem::enable_fec`], [`AdaptiveSystem::set_fec_scheme`] |
//! | `setSessionParams()` | [`AdaptiveSystem::set_session_params`], [`AdaptiveSystem::set_session_param`] |
//! | `sendEarlyRTCPReport()` | [`AdaptiveSystem::send_early_rtcp`] |
//!
//! A wrong name or value is an error and changes nothing; the call continues.

mod preferences;

pub use preferences::Preferences;

use crate::allocation::{Demand, MediaKind};
use crate::config::{EndConfig, IncomingConfig, OutgoingConfig, PathConfig, SendingPath};
use crate::endpoint::{Endpoint, Outgoing, StreamError};
use crate::identity::StreamIdentity;
use crate::ids::OutgoingId;
use crate::observer::Observer;
use crate::plan::{Control, EndPlan};
use crate::protection::RepairChoice;
use crate::session_params::SessionParams;
use weir_cc::circuit_breaker;
use weir_cc::tunable::SetupError;
use weir_cc::{Registry, Setup};
use weir_fec::{Protection, SchemeError};
use weir_media::{Codec, ModelCodec, ParamError, ParamValue, Source};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Why a request failed. Nothing has changed then.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SystemError {
    /// A name or value of a preference, codec parameter or session parameter.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The controller, or one of its parameters.
    #[error(transparent)]
    Controller(Box<SetupError>),
    /// The numbers of an FEC scheme.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// The end's two sources are the same.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// There is no codec: this end sends no media, or its source has no parameters.
    #[error("this end has no codec: it sends no media, or its source has no parameters")]
    NoCodec,
}

impl From<SetupError> for SystemError {
    fn from(e: SetupError) -> Self {
        Self::Controller(Box::new(e))
    }
}

/// Configuration of a system.
#[derive(Clone, PartialEq, Debug)]
pub struct SystemConfig {
    /// Sources, RTCP and so on. The header extensions required by the controller are enabled here.
    pub endpoint: EndConfig,
    /// The controller's name in the registry.
    pub controller: String,
    /// The controller's setup.
    pub setup: Setup,
    /// Media to send; `None` only receives.
    pub send: Option<Preferences>,
    /// Delay from capture to playout of received media; `None` only sends.
    pub receive: Option<TimeDelta>,
    /// Circuit breaker that stops sending (RFC 8083).
    pub circuit_breaker: Option<circuit_breaker::Config>,
}

/// An end of a call that an application controls by preferences, and can inspect and change during the call.
pub struct AdaptiveSystem {
    endpoint: Endpoint,
    preferences: Option<Preferences>,
    seed: u64,
    fec_enabled: bool,
    scheme: Option<Protection>,
}

impl AdaptiveSystem {
    /// A system that starts at the time in `config.setup`.
    ///
    /// # Errors
    /// An unknown controller or codec, or invalid parameters of one.
    pub fn new(config: SystemConfig, registry: &Registry) -> Result<Self, SystemError> {
        let SystemConfig { mut endpoint, controller, setup, send, receive, circuit_breaker } = config;
        let now = setup.now;
        let control = Control::new(registry, &controller, &setup)?;
        control.configure(&mut endpoint.extensions);
        endpoint.params.check()?;
        let seed = endpoint.seed;
        let (sending, receiving) = control.into_directions();
        let mut plan = EndPlan::new(endpoint);
        let mut path = PathConfig::default();
        if let Some(preferences) = &send {
            let source = source_of(preferences, now, seed)?;
            let identity = StreamIdentity::of(plan.end.ssrc);
            plan.outgoing.push(OutgoingConfig::new(identity, source, Demand::default()));
            path.sending = Some(SendingPath { circuit_breaker, ..sending });
        }
        if let Some(deadline) = receive {
            let incoming = IncomingConfig::new(StreamIdentity::of(plan.end.remote_ssrc), MediaKind::default());
            plan.incoming.push(IncomingConfig { playout_deadline: Some(deadline), ..incoming });
            path.receiving = Some(receiving);
        }
        let endpoint = plan.on(path).make(now)?;
        Ok(Self { endpoint, preferences: send, seed, fec_enabled: true, scheme: None })
    }

    /// The call's end, which handles datagrams and time.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
    /// The call's end, mutably.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// The application's preferences for codec and source.
    pub fn preferences(&self) -> Option<&Preferences> {
        self.preferences.as_ref()
    }
    /// Sets the application's preferences: another codec or source replaces the current one; a frame rate or resolution
    /// is applied to it.
    ///
    /// # Errors
    /// An unknown codec or source, values that it does not support, or an end that sends no media.
    pub fn set_preferences(&mut self, preferences: Preferences, now: Timestamp) -> Result<(), SystemError> {
        let before = self.preferences.as_ref().ok_or(SystemError::NoCodec)?;
        preferences.check()?;
        if (&preferences.codec, &preferences.source) != (&before.codec, &before.source) {
            let source = source_of(&preferences, now, self.seed)?;
            if let Some(mut stream) = self.stream() {
                stream.set_source(source, now);
            }
        } else if preferences.frame_rate != before.frame_rate {
            self.set_param("frame_rate", preferences.frame_rate.into(), now)?;
        }
        self.preferences = Some(preferences);
        Ok(())
    }

    fn stream(&mut self) -> Option<Outgoing<'_>> {
        self.endpoint.outgoing(OutgoingId::FIRST)
    }
    fn codec(&self) -> Result<&(dyn Codec + Send), SystemError> {
        self.endpoint.stats().codec().ok_or(SystemError::NoCodec)
    }
    /// The names of the codec's parameters.
    ///
    /// # Errors
    /// There is no codec.
    pub fn param_names(&self) -> Result<&[&'static str], SystemError> {
        Ok(self.codec()?.param_names())
    }
    /// The value of a codec's parameter.
    ///
    /// # Errors
    /// The codec has no parameter of this name, or there is no codec.
    pub fn param(&self, name: &str) -> Result<ParamValue, SystemError> {
        Ok(self.codec()?.param(name)?)
    }
    /// Sets a codec's parameter.
    ///
    /// # Errors
    /// The codec has no parameter of this name or does not accept this value, or there is no codec.
    pub fn set_param(&mut self, name: &str, value: ParamValue, now: Timestamp) -> Result<(), SystemError> {
        let mut stream = self.stream().ok_or(SystemError::NoCodec)?;
        Ok(stream.codec_mut().ok_or(SystemError::NoCodec)?.set_param(name, value, now)?)
    }
    /// The codec's actual rate and its requested rate.
    ///
    /// # Errors
    /// There is no codec.
    pub fn bit_rate(&self, now: Timestamp) -> Result<(DataRate, DataRate), SystemError> {
        let codec = self.codec()?;
        Ok((codec.bit_rate(now), codec.requested_bit_rate()))
    }
    /// Sets the codec's rate instead of the controller; `None` returns to the controller.
    pub fn set_bit_rate(&mut self, rate: Option<DataRate>, now: Timestamp) {
        if let Some(mut stream) = self.stream() {
            stream.hold_rate(rate, now);
        }
    }

    /// Sets the observer of RTP, RTCP and FEC packets; returns the previous one.
    pub fn set_observer(&mut self, observer: Option<Box<dyn Observer>>) -> Option<Box<dyn Observer>> {
        self.endpoint.set_observer(observer)
    }

    /// Switches FEC on, with the scheme that was set or else the controller's plan, or off.
    ///
    /// # Errors
    /// None for a scheme accepted by [`Self::set_fec_scheme`].
    pub fn enable_fec(&mut self, enabled: bool) -> Result<(), SystemError> {
        self.choose_fec(enabled, self.scheme)
    }
    /// Sets the scheme used while FEC is on; `None` leaves it to the controller.
    ///
    /// # Errors
    /// No code supports the scheme's numbers.
    pub fn set_fec_scheme(&mut self, scheme: Option<Protection>) -> Result<(), SystemError> {
        let checked = scheme.map(Protection::checked).transpose()?;
        self.choose_fec(self.fec_enabled, checked)
    }
    fn choose_fec(&mut self, enabled: bool, scheme: Option<Protection>) -> Result<(), SystemError> {
        self.endpoint.set_repair(match scheme {
            _ if !enabled => RepairChoice::Fixed(Protection::Off),
            Some(protection) => RepairChoice::Fixed(protection),
            None => RepairChoice::Controller,
        })?;
        (self.fec_enabled, self.scheme) = (enabled, scheme);
        Ok(())
    }

    /// The session's parameters.
    pub fn session_params(&self) -> &SessionParams {
        self.endpoint.stats().session_params()
    }
    /// Sets the session's parameters: profile, RTCP interval, extended reports, rapid synchronisation.
    ///
    /// # Errors
    /// As [`SessionParams::check`].
    pub fn set_session_params(&mut self, params: SessionParams) -> Result<(), SystemError> {
        Ok(self.endpoint.rtcp().set_params(params)?)
    }
    /// Sets one of them by name, as in [`SessionParams::set`].
    ///
    /// # Errors
    /// An unknown name, or an unsupported value.
    pub fn set_session_param(&mut self, name: &str, value: &str) -> Result<(), SystemError> {
        let mut params = *self.session_params();
        params.set(name, value)?;
        self.set_session_params(params)
    }
    /// Requests a report now; returns whether the rules of early feedback allow it before the next regular one.
    pub fn send_early_rtcp(&mut self, now: Timestamp) -> bool {
        self.endpoint.rtcp().send_early(now)
    }
}

/// The codec for these preferences. Each model has one source, in place of a camera.
fn source_of(preferences: &Preferences, now: Timestamp, seed: u64) -> Result<Source, SystemError> {
    preferences.check()?;
    let codec = ModelCodec::by_name(&preferences.codec, preferences.frame_rate, now, seed)?;
    Ok(codec.into_source())
}
