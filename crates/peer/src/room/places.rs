//! The places of a member's call: each carries what one other member sends.

use super::feed::{Coded, FeedPusher, Forwarded};
use super::layers::{Sends, Shares, allocate};
use super::{Member, PlaceView};
use std::sync::Arc;
use weir_session::{Endpoint, Label, OutgoingId};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Interval of allocations; one follows a change of the target at once.
const INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// Least interval of a place's requests for key frames.
const REQUESTS: TimeDelta = TimeDelta::from_secs(1);
/// Ticks of video's clock between two frames at least.
const LEAST_STEP: i64 = 90;

/// A stream of the session, and its source.
pub(super) struct Stream {
    pub(super) id: OutgoingId,
    pub(super) mid: Label,
    pub(super) feed: FeedPusher,
    /// Ticks a second.
    pub(super) clock: u32,
}

/// Numbers of a stream's timeline.
#[derive(Clone, Copy, Default)]
struct Timeline {
    /// Offset of the ticks of the encoding that is forwarded.
    shift: Option<i64>,
    last: Option<i64>,
}

/// A place.
pub(super) struct Place {
    video: Option<Stream>,
    audio: Option<Stream>,
    taken: Option<Taken>,
    picture_id: u64,
    tl0_pic_idx: u8,
    video_line: Timeline,
    audio_line: Timeline,
}

/// Its holder.
struct Taken {
    member: Arc<Member>,
    shares: Shares,
    current: Option<usize>,
    /// From that member's thread's clock to this one's.
    offset: Option<TimeDelta>,
    asked: Option<Timestamp>,
    switches: u64,
    frames: u64,
    audio_packets: u64,
}

impl Taken {
    fn new(member: Arc<Member>) -> Self {
        Self {
            member,
            shares: Shares::new(),
            current: None,
            offset: None,
            asked: None,
            switches: 0,
            frames: 0,
            audio_packets: 0,
        }
    }
}

impl Place {
    pub(super) fn new(video: Option<Stream>, audio: Option<Stream>) -> Self {
        let (video_line, audio_line) = (Timeline::default(), Timeline::default());
        Self { video, audio, taken: None, picture_id: 0, tl0_pic_idx: 0, video_line, audio_line }
    }

    fn set_paused(&self, endpoint: &mut Endpoint, is_paused: bool, now: Timestamp) {
        for stream in self.video.iter().chain(&self.audio) {
            if let Some(mut outgoing) = endpoint.outgoing(stream.id) {
                outgoing.set_paused(is_paused, now);
            }
        }
    }

    /// Forwards a frame of its member, or not.
    fn take(&mut self, frame: &Arc<Coded>, now: Timestamp) {
        let Some(taken) = &mut self.taken else { return };
        let (stream, line) = match frame.encoding {
            Some(n) => {
                let Some(stream) = &self.video else { return };
                // Another encoding can begin with a key frame alone.
                if taken.current != Some(n) {
                    if taken.shares.wanted != Some(n) || !frame.key {
                        return;
                    }
                    (taken.current, taken.asked) = (Some(n), None);
                    taken.switches += 1;
                    self.video_line.shift = None;
                }
                (stream, &mut self.video_line)
            }
            None => {
                let Some(stream) = &self.audio else { return };
                (stream, &mut self.audio_line)
            }
        };
        let ticks_now = ticks(now - Timestamp::ZERO, stream.clock);
        let offset =
            *taken.offset.get_or_insert_with(|| (now - Timestamp::ZERO) - time(frame.ticks + frame.lead, stream.clock));
        let shift = *line.shift.get_or_insert_with(|| {
            let shift = frame.lead + ticks(offset, stream.clock);
            // Time does not go back, nor far ahead of what this thread sees.
            let least = line.last.map_or(i64::MIN, |last| last + LEAST_STEP - frame.ticks);
            shift.min(ticks_now + i64::from(stream.clock) - frame.ticks).max(least)
        });
        let at = frame.ticks + shift;
        if line.last.is_some_and(|last| at <= last) {
            return;
        }
        line.last = Some(at);
        if frame.encoding.is_some() {
            self.picture_id += 1;
            taken.frames += 1;
            if frame.layer.is_some_and(|l| l.id.temporal == 0) {
                self.tl0_pic_idx = self.tl0_pic_idx.wrapping_add(1);
            }
        } else {
            taken.audio_packets += 1;
        }
        let (picture_id, tl0_pic_idx) = (self.picture_id, self.tl0_pic_idx);
        let (coded, rtp_timestamp) = (Arc::clone(frame), at as u32);
        if !stream.feed.push(Forwarded { coded, rtp_timestamp, captured: now, picture_id, tl0_pic_idx }) {
            taken.current = taken.current.filter(|_| frame.encoding.is_none());
        }
    }

    /// Asks for a key frame where one is needed.
    fn ask(&mut self, now: Timestamp) {
        let Some(taken) = &mut self.taken else { return };
        // The receiver, or the session's queue, lacks a frame: others are of no use to it until a key frame.
        if self.video.as_ref().is_some_and(|v| v.feed.take_key_wanted()) {
            taken.current = None;
        }
        let Some(encoding) = taken.shares.wanted.filter(|w| taken.current != Some(*w)) else { return };
        if taken.asked.is_none_or(|at| now.saturating_since(at) >= REQUESTS) {
            taken.asked = Some(now);
            taken.member.want_key_frame(encoding);
        }
    }

    fn view(&self) -> Option<PlaceView> {
        let taken = self.taken.as_ref()?;
        Some(PlaceView {
            mid: self.video.as_ref().map(|s| s.mid.to_string()),
            audio_mid: self.audio.as_ref().map(|s| s.mid.to_string()),
            member: taken.member.name.clone(),
            encoding: taken.current,
            wanted: taken.shares.wanted,
            share_bps: taken.shares.rate.as_bps_f64(),
            encodings: taken.member.encodings(),
            switches: taken.switches,
            frames: taken.frames,
            audio_packets: taken.audio_packets,
        })
    }
}

fn ticks(time: TimeDelta, clock: u32) -> i64 {
    (i128::from(time.as_nanos()) * i128::from(clock) / 1_000_000_000) as i64
}
fn time(ticks: i64, clock: u32) -> TimeDelta {
    TimeDelta::from_nanos((i128::from(ticks) * 1_000_000_000 / i128::from(clock)) as i64)
}

/// All places of a call.
pub(super) struct Places {
    places: Vec<Place>,
    target: DataRate,
    due: Timestamp,
}

impl Places {
    pub(super) fn new(places: Vec<Place>, endpoint: &mut Endpoint, now: Timestamp) -> Self {
        places.iter().for_each(|p| p.set_paused(endpoint, true, now));
        Self { places, target: DataRate::ZERO, due: now }
    }

    /// Gives places to those that have come, and takes them from those that have left.
    pub(super) fn assign(&mut self, others: &[Arc<Member>], endpoint: &mut Endpoint, now: Timestamp) {
        for place in &mut self.places {
            if place.taken.as_ref().is_some_and(|t| others.iter().all(|m| m.id != t.member.id)) {
                place.taken = None;
                place.set_paused(endpoint, true, now);
            }
        }
        for member in others {
            if self.places.iter().flat_map(|p| &p.taken).any(|t| t.member.id == member.id) {
                continue;
            }
            let Some(place) = self.places.iter_mut().find(|p| p.taken.is_none()) else { continue };
            place.taken = Some(Taken::new(Arc::clone(member)));
            (place.video_line.shift, place.audio_line.shift) = (None, None);
            place.set_paused(endpoint, false, now);
        }
        self.due = now;
    }

    /// Forwards a frame of a member.
    pub(super) fn take(&mut self, from: u64, frame: &Arc<Coded>, now: Timestamp) {
        let place = self.places.iter_mut().find(|p| p.taken.as_ref().is_some_and(|t| t.member.id == from));
        if let Some(place) = place {
            place.take(frame, now);
        }
    }

    /// Frames were dropped: video goes on with key frames.
    pub(super) fn on_overflow(&mut self) {
        self.places.iter_mut().flat_map(|p| &mut p.taken).for_each(|t| t.current = None);
    }

    /// Chooses encodings by the target.
    pub(super) fn on_turn(&mut self, endpoint: &mut Endpoint, now: Timestamp) {
        let target = endpoint.target().map_or(DataRate::ZERO, |t| t.media_rate);
        if now >= self.due || target < self.target {
            self.due = now + INTERVAL;
            let sends = |p: &Place, t: &Taken| Sends {
                audio: p.audio.as_ref().map(|_| t.member.audio_rate()),
                encodings: if p.video.is_some() { t.member.encodings() } else { Vec::new() },
            };
            let sends: Vec<Option<Sends>> = self.places.iter().map(|p| p.taken.as_ref().map(|t| sends(p, t))).collect();
            let takers = self.places.iter_mut().map(|p| p.taken.as_mut());
            let both = sends.iter().zip(takers).filter_map(|(s, t)| Some((s.as_ref()?, &mut t?.shares)));
            let next = allocate(target, both, now);
            endpoint.set_wanted_target(next.needed, now);
            for taken in self.places.iter_mut().flat_map(|p| &mut p.taken) {
                // Nothing fits: what is forwarded stops at once. Another encoding is held until the next has its key frame.
                if taken.shares.wanted.is_none() && taken.current.take().is_some() {
                    taken.switches += 1;
                }
            }
        }
        self.target = target;
        self.places.iter_mut().for_each(|p| p.ask(now));
    }

    pub(super) fn poll_timeout(&self) -> Timestamp {
        self.due
    }
    pub(super) fn views(&self) -> Vec<PlaceView> {
        self.places.iter().filter_map(Place::view).collect()
    }
}
