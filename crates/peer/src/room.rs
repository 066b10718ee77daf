//! Rooms: what each member sends goes to the others, without being decoded (a selective forwarding unit, RFC 7667, section 3.7).
//!
//! Each member's call has a thread and a session of its own. There its packets become frames again (`assembly`), which are passed to the other
//! members' threads. Each of those chooses one of a member's encodings by the target of its own controller (`layers`), and sends the frames
//! as a stream of its own: sources, numbers, timestamps, retransmission and pacing are those of its session (`places`).
//!
//! A room forwards frames, not packets. A member's packets become whole frames again (`peer::room`), and each other
//! member's session sends them as frames of its own stream: its numbers, pacing, retransmission and queue bounds are
//! those that it has anyway, and a change of encodings leaves no trace in them. The price is that a packet waits for
//! its frame. Encodings are chosen by `session::allocation`, as a sender allocates to a simulcast.

mod assembly;
mod feed;
mod layers;
mod member_call;
mod places;
mod uplink;

pub(crate) use member_call::{MemberCall, MemberCallPlan, Session};

use feed::Coded;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_live::udp::Waker;
use weir_media::VideoCodec;
use weir_units::DataRate;

/// Most members of a room.
pub const MAX_MEMBERS: usize = 10;
/// Frames that wait for a member's thread, at most: a second of nine members' video and audio.
const MAX_WAITING: usize = 1_024;
/// And their bytes.
const MAX_WAITING_SIZE: usize = 4 << 20;

/// An encoding that a member sends.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Encoding {
    /// Its rate over the last two seconds, in bit/s of payload; zero while it is not sent.
    pub rate_bps: f64,
    /// Width and height of its last key frame, if the codec shows them.
    pub size: Option<(u16, u16)>,
}

/// A member of a room, as the others' threads see it.
pub(crate) struct Member {
    id: u64,
    name: String,
    waker: Arc<Waker>,
    /// Whether its keys are there.
    is_present: AtomicBool,
    /// Whether it is not heard at present.
    is_silent: AtomicBool,
    inbox: Mutex<Inbox>,
    encodings: Mutex<Vec<Encoding>>,
    audio_bps: AtomicU64,
    /// Encodings of which others want a key frame.
    key_wanted: AtomicU64,
}

/// Frames for a member, of others.
#[derive(Default)]
struct Inbox {
    frames: VecDeque<(u64, Arc<Coded>)>,
    size: usize,
    /// Whether frames were dropped since the last look.
    overflowed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of a lock holder leaves no partial change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Member {
    /// Passes it a frame of another member.
    fn give(&self, from: u64, frame: &Arc<Coded>) {
        let mut inbox = lock(&self.inbox);
        if inbox.frames.len() >= MAX_WAITING || inbox.size + frame.data.len() > MAX_WAITING_SIZE {
            inbox.overflowed = true;
            return;
        }
        inbox.size += frame.data.len();
        inbox.frames.push_back((from, Arc::clone(frame)));
        drop(inbox);
        self.waker.wake();
    }
    /// Moves what waits for it into `out`; returns whether something was dropped.
    fn take(&self, out: &mut VecDeque<(u64, Arc<Coded>)>) -> bool {
        let mut inbox = lock(&self.inbox);
        inbox.size = 0;
        std::mem::swap(&mut inbox.frames, out);
        std::mem::take(&mut inbox.overflowed)
    }
    fn want_key_frame(&self, encoding: usize) {
        if self.key_wanted.fetch_or(1 << encoding, Ordering::Relaxed) & (1 << encoding) == 0 {
            self.waker.wake();
        }
    }
    fn encodings(&self) -> Vec<Encoding> {
        lock(&self.encodings).clone()
    }
    fn audio_rate(&self) -> DataRate {
        DataRate::from_bps(self.audio_bps.load(Ordering::Relaxed))
    }
}

/// A room.
pub(crate) struct Room {
    codec: VideoCodec,
    members: Mutex<Vec<Arc<Member>>>,
    /// Counts changes of who is present.
    changes: AtomicU64,
    next: AtomicU64,
}

impl Room {
    /// An empty room for video of this codec.
    pub(crate) fn new(codec: VideoCodec) -> Self {
        Self { codec, members: Mutex::default(), changes: AtomicU64::new(0), next: AtomicU64::new(1) }
    }
    pub(crate) fn codec(&self) -> VideoCodec {
        self.codec
    }
    pub(crate) fn len(&self) -> usize {
        lock(&self.members).len()
    }
    /// Members that are heard, or about to connect.
    pub(crate) fn heard(&self) -> usize {
        lock(&self.members).iter().filter(|m| !m.is_silent.load(Ordering::Relaxed)).count()
    }
    /// A place in the room; `None` if it has as many members as it may. A name that another member has gets a number.
    pub(crate) fn join(self: &Arc<Self>, name: &str, limit: usize, waker: &Arc<Waker>) -> Option<Membership> {
        let mut members = lock(&self.members);
        if members.len() >= limit.min(MAX_MEMBERS) {
            return None;
        }
        let is_free = |name: &String| members.iter().all(|m| m.name != *name);
        let numbered = (2..=MAX_MEMBERS + 1).map(|n| format!("{name} ({n})"));
        let name = std::iter::once(name.to_owned()).chain(numbered).find(is_free)?;
        let member = Arc::new(Member {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            name,
            waker: Arc::clone(waker),
            is_present: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            inbox: Mutex::default(),
            encodings: Mutex::default(),
            audio_bps: AtomicU64::new(0),
            key_wanted: AtomicU64::new(0),
        });
        members.push(Arc::clone(&member));
        Some(Membership { room: Arc::clone(self), member })
    }
}

/// A member's place in a room, until it is dropped.
pub(crate) struct Membership {
    room: Arc<Room>,
    member: Arc<Member>,
}

impl Membership {
    /// The keys are there: the others see it from now on.
    fn enter(&self) {
        self.member.is_present.store(true, Ordering::Relaxed);
        self.announce(&lock(&self.room.members));
    }
    /// The others no longer see it while it is not heard. Its place stays its own.
    fn set_silent(&self, is_silent: bool) {
        if self.member.is_silent.swap(is_silent, Ordering::Relaxed) != is_silent {
            self.announce(&lock(&self.room.members));
        }
    }
    fn announce(&self, members: &[Arc<Member>]) {
        self.room.changes.fetch_add(1, Ordering::Release);
        members.iter().for_each(|m| m.waker.wake());
    }
    fn changes(&self) -> u64 {
        self.room.changes.load(Ordering::Acquire)
    }
    /// The others that are present, in the order in which they came.
    fn others(&self) -> Vec<Arc<Member>> {
        let is_heard = |m: &Member| m.is_present.load(Ordering::Relaxed) && !m.is_silent.load(Ordering::Relaxed);
        let is_other = |m: &&Arc<Member>| m.id != self.member.id && is_heard(m);
        lock(&self.room.members).iter().filter(is_other).cloned().collect()
    }
    fn publish(&self, others: &[Arc<Member>], frame: Coded) {
        let frame = Arc::new(frame);
        others.iter().for_each(|m| m.give(self.member.id, &frame));
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut members = lock(&self.room.members);
        members.retain(|m| m.id != self.member.id);
        self.announce(&members);
    }
}

/// Media that a member gets of another one.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlaceView {
    /// MID of the video section.
    pub mid: Option<String>,
    /// MID of the audio section.
    pub audio_mid: Option<String>,
    /// The member's name: that of its call, cut short.
    pub member: String,
    /// The encoding forwarded, from the lowest on; `None` while its video is stopped, or has not begun.
    pub encoding: Option<usize>,
    /// That which the target has room for.
    pub wanted: Option<usize>,
    /// The share of the target for its video, bit/s.
    pub share_bps: f64,
    /// The encodings that it sends.
    pub encodings: Vec<Encoding>,
    /// Changes of the encoding forwarded, stops included.
    pub switches: u64,
    /// Frames of video forwarded.
    pub frames: u64,
    /// Packets of audio forwarded.
    pub audio_packets: u64,
}

/// A call in a room.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoomView {
    /// This member's name.
    pub member: String,
    /// Members present, this one included.
    pub members: usize,
    /// The encodings that this member sends.
    pub encodings: Vec<Encoding>,
    /// Packets of audio that it has sent.
    pub audio_packets: u64,
    /// Frames of video that were never complete.
    pub frames_lost: u64,
    /// Times that frames for this member were dropped, since its thread was late.
    pub overflows: u64,
    /// Requests for key frames passed on to this member.
    pub key_frames_requested: u64,
    /// Media that it gets.
    pub places: Vec<PlaceView>,
}
