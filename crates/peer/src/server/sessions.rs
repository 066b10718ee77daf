//! The calls of a service.

use super::ServerConfig;
use super::problem::Problem;
use crate::call::{Call, Plan, Record, RoomPlace, Settings, Shows, Snapshot, StartError};
use crate::dtls::Identity;
use crate::room::{MAX_MEMBERS, Room};
use crate::saved::Material;
use crate::sdp::{Codecs, Negotiated, OfferError, Wanted, negotiate, negotiate_room};
use axum::http::StatusCode;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subtle::ConstantTimeEq;
use weir_cc::Registry;
use weir_live::call::Camera;
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::{FrameRate, MediaError, VideoCodec};

/// The video for those who call: a built-in clip.
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
    /// Whether it is in a room.
    is_member: bool,
}

/// An offer that was accepted.
pub(super) struct Accepted {
    /// The call's name.
    pub(super) id: String,
    /// The answer.
    pub(super) answer: String,
    /// The tag of what of ICE is agreed on.
    pub(super) ice_tag: String,
}

/// An offer of a room's member.
pub(super) struct Joining {
    pub(super) room: String,
    /// The member's name; a part of the call's if absent.
    pub(super) name: Option<String>,
    /// The codec that it asks for.
    pub(super) codec: Option<VideoCodec>,
    pub(super) settings: Settings,
    /// Whether it is behind the emulated link, if there is one.
    pub(super) by_link: bool,
}

/// A room as others see it.
#[derive(Serialize)]
pub(super) struct ListedRoom {
    name: String,
    codec: String,
    members: usize,
}

fn full() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "there are as many calls as this service allows")
}
fn full_room(members: usize) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, format!("the room has {members} members, as many as it may"))
}
fn failed(e: &dyn std::fmt::Display) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string())
}
fn unacceptable(e: &OfferError) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("the offer is not acceptable: {e}"))
}
/// Calls outside rooms that have not ended.
fn running(calls: &VecDeque<Entry>) -> usize {
    calls.iter().filter(|e| !e.is_member && !e.call.has_ended()).count()
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
    rooms: Mutex<BTreeMap<String, Arc<Room>>>,
}

/// Characters of a room's name.
const MAX_NAME: usize = 40;
/// And of the name of a member without one: those of its call that show which it is.
const MEMBER_NAME: usize = 6;

impl Sessions {
    pub(super) fn new(
        config: ServerConfig,
        registry: Arc<Registry>,
        identity: Identity,
        reel: Camera,
        token: String,
    ) -> Self {
        let codecs = Codecs::built_in();
        let (calls, rooms) = (Mutex::default(), Mutex::default());
        Self { config, registry, codecs, identity, reel: Mutex::new(reel), token, calls, rooms }
    }
    fn calls(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether this is the token, in a time that does not depend on where it differs.
    pub(super) fn admits(&self, token: &str) -> bool {
        self.token.as_bytes().ct_eq(token.as_bytes()).into()
    }

    /// Accepts an offer; returns the answer.
    pub(super) fn accept(
        &self,
        offer: &str,
        wanted: Wanted,
        settings: Settings,
        by_link: bool,
    ) -> Result<Accepted, Problem> {
        // A place is taken before there is work.
        if self.running() >= self.config.limits.calls {
            return Err(full());
        }
        let negotiated = negotiate(offer, wanted).map_err(|e| unacceptable(&e))?;
        let camera = self.reel.lock().unwrap_or_else(PoisonError::into_inner).again();
        let camera = camera.ok_or_else(|| failed(&"the clip is gone"))?;
        let id = super::random_token().map_err(|e| failed(&e))?;
        self.start(id, negotiated, settings, Shows::Camera(camera), by_link)
    }

    /// Accepts a member of a room, which begins with its first; returns the answer.
    pub(super) fn join(&self, offer: &str, joining: Joining) -> Result<Accepted, Problem> {
        let Joining { room: name, name: member, codec, settings, by_link } = joining;
        let is_name = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_name) {
            let expected = format!("a room's name has 1 to {MAX_NAME} letters, digits, - and _");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, expected));
        }
        let member = member.map(|m| m.trim().to_owned());
        if member
            .as_ref()
            .is_some_and(|m| !(1..=MAX_NAME).contains(&m.chars().count()) || m.chars().any(char::is_control))
        {
            let expected = format!("name: a member's name has 1 to {MAX_NAME} characters");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, expected));
        }
        let limits = self.config.limits;
        let room = {
            let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
            // A caller that is about to join one holds it.
            rooms.retain(|_, room| room.len() > 0 || Arc::strong_count(room) > 1);
            if !rooms.contains_key(&name) && rooms.len() >= limits.rooms {
                let detail = "there are as many rooms as this service allows";
                return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
            }
            // No encoder or decoder of this program is needed.
            let new = || Arc::new(Room::new(codec.unwrap_or(VideoCodec::Vp8)));
            Arc::clone(rooms.entry(name).or_insert_with(new))
        };
        let members = limits.members.min(MAX_MEMBERS);
        if room.len() >= members {
            return Err(full_room(members));
        }
        if codec.is_some_and(|c| c != room.codec()) {
            let detail = format!("codec: this room has {}; join without naming another", room.codec());
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
        let negotiated = negotiate_room(offer, room.codec(), members - 1).map_err(|e| unacceptable(&e))?;
        let id = super::random_token().map_err(|e| failed(&e))?;
        let name = member.unwrap_or_else(|| id.chars().take(MEMBER_NAME).collect());
        let shows = Shows::Room(RoomPlace { room, name, limit: members });
        self.start(id, negotiated, settings, shows, by_link)
    }

    fn start(
        &self,
        id: String,
        negotiated: Negotiated,
        settings: Settings,
        shows: Shows,
        by_link: bool,
    ) -> Result<Accepted, Problem> {
        let address = self.config.media.unwrap_or(self.config.listen.ip());
        let start_rate = settings.limits.clamp(self.config.start_rate);
        let identity = &self.identity;
        let link = self.config.link.clone().filter(|_| by_link);
        let is_member = matches!(shows, Shows::Room(_));
        let plan = Plan { negotiated, settings, start_rate, shows, identity, address, link };
        let (call, answer) = Call::start(plan, Arc::clone(&self.registry)).map_err(|e| match e {
            StartError::Controller(e) => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, e.to_string()),
            StartError::Full(members) => full_room(members),
            e => failed(&e),
        })?;
        let ice_tag = call.ice_tag();
        let mut calls = self.calls();
        if !is_member && running(&calls) >= self.config.limits.calls {
            return Err(full());
        }
        while calls.iter().filter(|e| e.call.has_ended()).count() > self.config.limits.ended {
            let oldest = calls.iter().position(|e| e.call.has_ended());
            oldest.and_then(|n| calls.remove(n));
        }
        calls.push_back(Entry { id: id.clone(), call: Arc::new(call), is_member });
        Ok(Accepted { id, answer, ice_tag })
    }

    /// The rooms with members, by name.
    pub(super) fn rooms(&self) -> Vec<ListedRoom> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = |(name, room): (&String, &Arc<Room>)| ListedRoom {
            name: name.clone(),
            codec: room.codec().to_string(),
            members: room.heard(),
        };
        rooms.iter().map(listed).filter(|r| r.members > 0).collect()
    }

    fn running(&self) -> usize {
        running(&self.calls())
    }
    /// A call by name.
    pub(super) fn get(&self, id: &str) -> Result<Arc<Call>, Problem> {
        let call = self.calls().iter().find(|e| e.id == id).map(|e| Arc::clone(&e.call));
        call.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such call"))
    }
    pub(super) fn snapshots(&self) -> Vec<(String, Snapshot)> {
        self.calls().iter().map(|e| (e.id.clone(), e.call.snapshot(0, 0))).collect()
    }
    /// Ends all calls; returns what is kept of them.
    pub(super) fn finish(&self) -> Vec<(String, Record)> {
        let calls = std::mem::take(&mut *self.calls());
        calls.iter().for_each(|e| e.call.stop());
        let end = |e: Entry| {
            let last = match Arc::try_unwrap(e.call) {
                Ok(call) => call.finish(),
                Err(call) => call.record(),
            };
            (e.id, last)
        };
        calls.into_iter().map(end).collect()
    }

    /// The pictures that it sends.
    pub(super) fn material(&self) -> Material {
        let clip = &self.config.clip;
        Material { clip: clip.character.name(), size: clip.size, fps: clip.rate.as_f64() }
    }
}
