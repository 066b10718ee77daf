//! The calls of a service.

use super::ServerConfig;
use super::problem::Problem;
use crate::call::{Call, Plan, Settings, Snapshot, StartError};
use crate::dtls::Identity;
use crate::sdp::{Codecs, Wanted, negotiate};
use axum::http::StatusCode;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subtle::ConstantTimeEq;
use weir_cc::Registry;
use weir_live::call::Camera;
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::{FrameRate, MediaError};

/// What is shown to those who call: a built-in clip.
#[derive(Clone, Copy, Debug)]
pub struct ClipConfig {
    /// Its kind.
    pub character: Character,
    /// Width and height.
    pub size: (u32, u32),
    /// Pictures a second.
    pub rate: FrameRate,
}

/// The clip in memory.
pub(super) fn reel(config: &ClipConfig) -> Result<Camera, MediaError> {
    let (width, height) = config.size;
    let mut clip = Clip::new(ClipSpec::new(config.character, width, height, config.rate))?;
    Camera::reel(&mut clip, config.rate)
}

struct Entry {
    id: String,
    call: Arc<Call>,
}

/// Calls, and what is needed to make further ones.
pub(super) struct Sessions {
    pub(super) config: ServerConfig,
    pub(super) registry: Arc<Registry>,
    pub(super) codecs: Codecs,
    identity: Identity,
    reel: Mutex<Camera>,
    token: String,
    calls: Mutex<VecDeque<Entry>>,
}

impl Sessions {
    pub(super) fn new(
        config: ServerConfig,
        registry: Arc<Registry>,
        identity: Identity,
        reel: Camera,
        token: String,
    ) -> Self {
        let codecs = Codecs::built_in();
        Self { config, registry, codecs, identity, reel: Mutex::new(reel), token, calls: Mutex::default() }
    }
    fn calls(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether this is the token, in a time that does not depend on where it differs.
    pub(super) fn admits(&self, token: &str) -> bool {
        self.token.as_bytes().ct_eq(token.as_bytes()).into()
    }

    /// Accepts an offer; returns the call's name and the answer.
    pub(super) fn accept(&self, offer: &str, wanted: Wanted, settings: Settings) -> Result<(String, String), Problem> {
        // A place is taken before there is work.
        let full = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "there are as many calls as this service allows");
        if self.running() >= self.config.limits.calls {
            return Err(full());
        }
        let negotiated = negotiate(offer, wanted)
            .map_err(|e| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("the offer is not acceptable: {e}")))?;
        let camera = self.reel.lock().unwrap_or_else(PoisonError::into_inner).again();
        let failed = |e: &dyn std::fmt::Display| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string());
        let camera = camera.ok_or_else(|| failed(&"the clip is gone"))?;
        let id = super::random_token().map_err(|e| failed(&e))?;
        let address = self.config.media.unwrap_or(self.config.listen.ip());
        let start_rate = settings.limits.clamp(self.config.start_rate);
        let identity = &self.identity;
        let link = self.config.link.clone();
        let plan = Plan { negotiated, settings, start_rate, camera, identity, address, link };
        let (call, answer) = Call::start(plan, Arc::clone(&self.registry)).map_err(|e| match e {
            StartError::Controller(e) => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, e.to_string()),
            e => failed(&e),
        })?;
        let mut calls = self.calls();
        if calls.iter().filter(|e| !e.call.has_ended()).count() >= self.config.limits.calls {
            return Err(full());
        }
        while calls.iter().filter(|e| e.call.has_ended()).count() > self.config.limits.ended {
            let oldest = calls.iter().position(|e| e.call.has_ended());
            oldest.and_then(|n| calls.remove(n));
        }
        calls.push_back(Entry { id: id.clone(), call: Arc::new(call) });
        Ok((id, answer))
    }

    fn running(&self) -> usize {
        self.calls().iter().filter(|e| !e.call.has_ended()).count()
    }
    /// A call by name.
    pub(super) fn get(&self, id: &str) -> Result<Arc<Call>, Problem> {
        let call = self.calls().iter().find(|e| e.id == id).map(|e| Arc::clone(&e.call));
        call.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such call"))
    }
    pub(super) fn snapshots(&self) -> Vec<(String, Snapshot)> {
        self.calls().iter().map(|e| (e.id.clone(), e.call.snapshot(0))).collect()
    }
    /// Ends all calls.
    pub(super) fn finish(&self) -> Vec<(String, Snapshot)> {
        let calls = std::mem::take(&mut *self.calls());
        calls.iter().for_each(|e| e.call.stop());
        let end = |e: Entry| {
            let last = match Arc::try_unwrap(e.call) {
                Ok(call) => call.finish(),
                Err(call) => call.snapshot(u64::MAX),
            };
            (e.id, last)
        };
        calls.into_iter().map(end).collect()
    }
}
