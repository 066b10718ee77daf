//! A whole adaptive system: application, codec and network under one roof.
//!
//! The interfaces are those of M. Nagy et al., "Congestion Control using FEC for Conversational Multimedia
//! Communication", section 6 and table 6 (AMuSys), in the names of this language:
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
//! A wrong name or value is an error that changes nothing; the call goes on.

mod preferences;

pub use preferences::Preferences;

use crate::config::{EndpointConfig, ReceiveConfig, SendConfig};
use crate::control::Control;
use crate::endpoint::Endpoint;
use crate::observer::Observer;
use crate::protection::RepairChoice;
use crate::session_params::SessionParams;
use weir_cc::circuit_breaker;
use weir_cc::tunable::SetupError;
use weir_cc::{Registry, Setup};
use weir_fec::{Protection, SchemeError};
use weir_media::{Codec, ModelCodec, ParamError, ParamValue, Source};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// What a system cannot do as it is asked. Nothing has changed then.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SystemError {
    /// A name or value of a preference, codec parameter or session parameter.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The controller, or a parameter of it.
    #[error(transparent)]
    Controller(Box<SetupError>),
    /// The numbers of an FEC scheme.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// There is no codec: this end sends no media, or its source has no parameters.
    #[error("this end has no codec: it sends no media, or its source has no parameters")]
    NoCodec,
}

impl From<SetupError> for SystemError {
    fn from(e: SetupError) -> Self {
        Self::Controller(Box::new(e))
    }
}

/// What a system is made from.
#[derive(Clone, PartialEq, Debug)]
pub struct SystemConfig {
    /// Sources, payload types and the like. What header extensions the controller needs is switched on here.
    pub endpoint: EndpointConfig,
    /// The controller's name in the registry.
    pub controller: String,
    /// What the controller is made from.
    pub setup: Setup,
    /// What is sent; `None` to receive only.
    pub send: Option<Preferences>,
    /// Time from capture to playout of what is received; `None` to send only.
    pub receive: Option<TimeDelta>,
    /// Rules by which sending ceases (RFC 8083).
    pub circuit_breaker: Option<circuit_breaker::Config>,
}

/// An end of a call that an application drives by preferences, and that can be looked into and changed while it runs.
pub struct AdaptiveSystem {
    endpoint: Endpoint,
    preferences: Option<Preferences>,
    seed: u64,
    fec_enabled: bool,
    scheme: Option<Protection>,
}

impl AdaptiveSystem {
    /// A system that begins at the time in `config.setup`.
    ///
    /// # Errors
    /// Where there is no such controller or codec, or one of them cannot have its parameters.
    pub fn new(config: SystemConfig, registry: &Registry) -> Result<Self, SystemError> {
        let SystemConfig { mut endpoint, controller, setup, send, receive, circuit_breaker } = config;
        let now = setup.now;
        let control = Control::new(registry, &controller, &setup)?;
        control.configure(&mut endpoint);
        endpoint.params.check()?;
        let seed = endpoint.seed;
        let (sending, receiving) = match &send {
            Some(preferences) => {
                let (sending, receiving) = control.into_directions(source_of(preferences, now, seed)?);
                (Some(SendConfig { circuit_breaker, ..sending }), receiving)
            }
            None => (None, control.into_receive()),
        };
        let receiving = receive.map(|deadline| ReceiveConfig { playout_deadline: Some(deadline), ..receiving });
        let endpoint = Endpoint::new(endpoint, sending, receiving, now);
        Ok(Self { endpoint, preferences: send, seed, fec_enabled: true, scheme: None })
    }

    /// The end of the call: datagrams and time go through it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
    /// The end of the call, to be driven.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// What the application wants of codec and source.
    pub fn preferences(&self) -> Option<&Preferences> {
        self.preferences.as_ref()
    }
    /// Takes the application's wishes: another codec or source replaces the one that runs, another frame rate or
    /// resolution is set on it.
    ///
    /// # Errors
    /// Where there is no such codec or source, it cannot have the values, or this end sends no media.
    pub fn set_preferences(&mut self, preferences: Preferences, now: Timestamp) -> Result<(), SystemError> {
        let before = self.preferences.as_ref().ok_or(SystemError::NoCodec)?;
        preferences.check()?;
        if (&preferences.codec, &preferences.source) != (&before.codec, &before.source) {
            let source = source_of(&preferences, now, self.seed)?;
            self.endpoint.set_source(source, now);
        } else if preferences.frame_rate != before.frame_rate {
            self.set_param("frame_rate", preferences.frame_rate.into(), now)?;
        }
        self.preferences = Some(preferences);
        Ok(())
    }

    fn codec(&self) -> Result<&(dyn Codec + Send), SystemError> {
        self.endpoint.codec().ok_or(SystemError::NoCodec)
    }
    /// The names of the codec's parameters.
    ///
    /// # Errors
    /// Where there is no codec.
    pub fn param_names(&self) -> Result<&[&'static str], SystemError> {
        Ok(self.codec()?.param_names())
    }
    /// The value of a codec's parameter.
    ///
    /// # Errors
    /// Where the codec has none of this name, or there is no codec.
    pub fn param(&self, name: &str) -> Result<ParamValue, SystemError> {
        Ok(self.codec()?.param(name)?)
    }
    /// Sets a codec's parameter.
    ///
    /// # Errors
    /// Where the codec has none of this name or it cannot have this value, or there is no codec.
    pub fn set_param(&mut self, name: &str, value: ParamValue, now: Timestamp) -> Result<(), SystemError> {
        Ok(self.endpoint.codec_mut().ok_or(SystemError::NoCodec)?.set_param(name, value, now)?)
    }
    /// The rate that the codec really gives, beside the one that it is asked for.
    ///
    /// # Errors
    /// Where there is no codec.
    pub fn bit_rate(&self, now: Timestamp) -> Result<(DataRate, DataRate), SystemError> {
        let codec = self.codec()?;
        Ok((codec.bit_rate(now), codec.requested_bit_rate()))
    }
    /// Asks the codec for a rate instead of the controller, or leaves it to the controller again.
    pub fn set_bit_rate(&mut self, rate: Option<DataRate>, now: Timestamp) {
        self.endpoint.hold_media_rate(rate, now);
    }

    /// Who sees RTP, RTCP and FEC packets pass; gives back who did until now.
    pub fn set_observer(&mut self, observer: Option<Box<dyn Observer>>) -> Option<Box<dyn Observer>> {
        self.endpoint.set_observer(observer)
    }

    /// Switches FEC on, by the scheme that was set or else as the controller plans it, or off altogether.
    ///
    /// # Errors
    /// None that can come of a scheme that [`Self::set_fec_scheme`] has taken.
    pub fn enable_fec(&mut self, enabled: bool) -> Result<(), SystemError> {
        self.choose_fec(enabled, self.scheme)
    }
    /// Chooses a scheme for whenever FEC is on; `None` leaves it to the controller.
    ///
    /// # Errors
    /// Where no code has the scheme's numbers.
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

    /// The parameters of the session.
    pub fn session_params(&self) -> &SessionParams {
        self.endpoint.session_params()
    }
    /// New parameters of the session: profile, RTCP interval, extended reports, rapid synchronisation.
    ///
    /// # Errors
    /// As [`SessionParams::check`].
    pub fn set_session_params(&mut self, params: SessionParams) -> Result<(), SystemError> {
        Ok(self.endpoint.set_session_params(params)?)
    }
    /// One of them by its name, as [`SessionParams::set`] has them.
    ///
    /// # Errors
    /// Where there is none of this name, or it cannot have the value.
    pub fn set_session_param(&mut self, name: &str, value: &str) -> Result<(), SystemError> {
        let mut params = *self.session_params();
        params.set(name, value)?;
        self.set_session_params(params)
    }
    /// Wants a report now; whether the rules of early feedback let it leave before the next regular one.
    pub fn send_early_rtcp(&mut self, now: Timestamp) -> bool {
        self.endpoint.send_early_rtcp(now)
    }
}

/// The codec of some preferences. Models have one source each, which stands in for a camera.
fn source_of(preferences: &Preferences, now: Timestamp, seed: u64) -> Result<Source, SystemError> {
    preferences.check()?;
    let codec = ModelCodec::by_name(&preferences.codec, preferences.frame_rate, now, seed)?;
    Ok(codec.into_source())
}
