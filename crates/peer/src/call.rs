//! A call: its settings, its thread, and what can be seen of it meanwhile.

mod browser;
mod control;
mod ends;
mod link;
mod packets;
mod record;
mod run;
mod sampler;
mod samples;
mod sound;

pub use browser::{BadNumber, BrowserNumbers, BrowserSample};
pub use control::{ControllerError, Settings, controller, suits};
pub use link::{LinkChange, LinkPlan, LinkSample};
pub use packets::{KeptPacket, MAX_BYTES, PAYLOAD_KEPT, Packets};
pub use record::{Record, Terms};
pub use samples::{Change, Sample, Snapshot, Totals};

use crate::dtls::Identity;
use crate::ice::Credentials;
use crate::room::{MemberCallPlan, Room};
use crate::sdp::{Answer, Negotiated, OfferError, fragment_name, write, write_fragment};
use crate::transport::{Transport, TransportError};
use control::{REMB, by_estimate};
use samples::Log;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use weir_cc::{Registry, Sender as Controller};
use weir_live::call::{CallError, Camera, random};
use weir_live::clock::Clock;
use weir_live::udp::{UdpConfig, UdpPort, Waker};
use weir_session::Label;
use weir_units::{DataRate, Timestamp};

/// Changes that wait for the call's thread.
const MAX_COMMANDS: usize = 16;

/// Why a call could not be made.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The controller, or that it needs more than per-packet feedback.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// Socket, threads or randomness.
    #[error(transparent)]
    Call(#[from] CallError),
    /// ICE or DTLS.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The system provides no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// The room has as many members as it may.
    #[error("the room has {0} members, as many as it may")]
    Full(usize),
    /// The emulated link.
    #[error("the link: {0}")]
    Link(#[from] weir_path::ConfigError),
    /// The encoder or decoder.
    #[error(transparent)]
    Codec(#[from] weir_media::VideoError),
    /// The encoder or decoder of audio.
    #[error(transparent)]
    AudioCodec(#[from] weir_media::audio::AudioError),
    /// The source of audio.
    #[error("{0}")]
    Sound(String),
}

/// Media for the other end.
pub enum Shows {
    /// These pictures, and its own are decoded.
    Camera(Camera),
    /// Media that the others in a room send, at most so many, under the name given; they get what it sends.
    Room(RoomPlace),
}

/// A place in a room.
pub struct RoomPlace {
    pub(crate) room: Arc<Room>,
    /// The member's name.
    pub(crate) name: String,
    /// Most members.
    pub(crate) limit: usize,
}

/// Configuration of a call.
pub struct Plan<'a> {
    /// Agreement of both ends.
    pub negotiated: Negotiated,
    /// At the beginning.
    pub settings: Settings,
    /// The first media rate.
    pub start_rate: DataRate,
    /// Media for the other end, or the room that it joins.
    pub shows: Shows,
    /// This end's certificate.
    pub identity: &'a Identity,
    /// This end's address, without port.
    pub address: IpAddr,
    /// An emulated link between this end and the browser, from the moment when they are connected.
    pub link: Option<LinkPlan>,
}

/// A change for the call's thread.
enum Command {
    Change(Settings, Controller),
    /// Other links between the ends.
    Link(Option<LinkPlan>),
    /// ICE starts again with these credentials, and this name of the other end.
    Restart(Credentials, String),
}

/// Parts of ICE that both ends have agreed on.
struct Agreed {
    /// This end's name, by which the agreement is known.
    own: String,
    remote: String,
    mid: Label,
    local: SocketAddr,
}

/// Effect of a fragment from the other end (RFC 9725, section 4.3).
#[derive(Debug)]
pub enum Fragment {
    /// Candidates, which are not needed.
    Candidates,
    /// A restart of ICE: this end's fragment, and the tag of what is agreed on now.
    Restart(String, String),
}

/// Why a fragment was refused.
#[derive(Debug, thiserror::Error)]
pub enum FragmentError {
    /// It is none.
    #[error(transparent)]
    Fragment(#[from] OfferError),
    /// It belongs to another agreement.
    #[error("If-Match names another session of ICE than the one in force")]
    Stale,
    /// The call has ended, or fragments come faster than they take effect.
    #[error("the call takes no restart now")]
    Busy,
    /// The system provides no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// State that a call's thread shares with others.
struct Shared {
    stop: AtomicBool,
    waker: Arc<Waker>,
    log: Mutex<Log>,
    packets: Mutex<Packets>,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn packets(&self) -> MutexGuard<'_, Packets> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call on a thread of its own.
pub struct Call {
    shared: Arc<Shared>,
    commands: SyncSender<Command>,
    registry: Arc<Registry>,
    clock: Clock,
    /// Whether the other end has its estimate alone.
    remb: bool,
    agreed: Mutex<Agreed>,
    terms: Terms,
    thread: Option<JoinHandle<()>>,
}

impl Call {
    /// Begins a call; returns it with the answer.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(plan: Plan<'_>, registry: Arc<Registry>) -> Result<(Self, String), StartError> {
        let Plan { negotiated, mut settings, start_rate, shows, identity, address, link } = plan;
        let mut negotiated = negotiated;
        if matches!(shows, Shows::Camera(_)) && !sound::is_built_in() {
            negotiated.further.clear();
        }
        if negotiated.remb && matches!(shows, Shows::Room(_)) {
            // Forwarded media need a controller's own share-out.
            return Err(ControllerError::Remb(settings.controller).into());
        }
        let clock = Clock::of_day();
        let (controller, estimator) = if negotiated.remb {
            // Whatever was chosen: nothing else is possible.
            REMB.clone_into(&mut settings.controller);
            by_estimate(&registry, &settings, start_rate, clock.now())?
        } else {
            (controller(&registry, &settings, start_rate, clock.now())?, None)
        };
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source| CallError::Socket { what, source }
        };
        let socket = UdpSocket::bind((address, 0)).map_err(failed("opening a call's UDP socket"))?;
        let port = UdpPort::new(socket, UdpConfig::default()).map_err(failed("preparing a call's UDP socket"))?;
        let local: SocketAddr = port.local_addr().map_err(failed("reading the address of a socket"))?;
        let waker = Arc::new(Waker::new().map_err(failed("making a descriptor to wake a thread by"))?);
        let credentials = Credentials::random().map_err(StartError::Random)?;
        let names = ends::Names::random()?;
        let answer = Answer {
            session: random()?,
            credentials: &credentials,
            fingerprint: identity.fingerprint(),
            address: local,
            ssrc: (names.ssrc, names.rtx_ssrc),
            cname: &names.cname,
        };
        let answer = write(&negotiated, &answer);
        let (mid, remote) = (negotiated.mid, negotiated.ice_name.clone());
        let agreed = Mutex::new(Agreed { own: credentials.name.clone(), remote, mid, local });
        let (zero, now) = run::instant(&clock);
        let transport = Transport::new(identity, credentials, &negotiated.ice_name, negotiated.fingerprint, zero, now)?;
        let in_room = matches!(shows, Shows::Room(_));
        let terms = Terms {
            formats: Terms::formats(&negotiated),
            repairs: negotiated.nack && negotiated.rtx.is_some(),
            feedback: negotiated.reports,
            start_rate,
            link: link.clone(),
            in_room,
            began: clock.unix(now),
        };
        let media = match shows {
            Shows::Camera(camera) => ends::Media::new(&negotiated, camera, start_rate)?,
            Shows::Room(place) => {
                let membership =
                    place.room.join(&place.name, place.limit, &waker).ok_or(StartError::Full(place.limit))?;
                ends::Media::of_room(MemberCallPlan { membership })
            }
        };
        let log = Log::new(&negotiated, &settings, local, now);
        let packets = Mutex::new(Packets::up_to(if in_room { packets::MAX_BYTES_IN_ROOM } else { MAX_BYTES }));
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), waker, log: Mutex::new(log), packets });
        let (commands, queue): (_, Receiver<Command>) = sync_channel(MAX_COMMANDS);
        let remb = negotiated.remb;
        let start = ends::CallStart { negotiated, settings, names, controller, estimator, media, link };
        let work = run::Work::new(port, transport, clock, Arc::clone(&shared), queue, registry.clone(), start);
        let thread = std::thread::Builder::new().name("call".into()).spawn(move || work.run());
        let thread = Some(thread.map_err(failed("starting a call's thread"))?);
        Ok((Self { shared, commands, registry, clock, remb, agreed, terms, thread }, answer))
    }

    /// Changes controller and limits; the rate goes on from the current one.
    ///
    /// # Errors
    /// There is no such controller for browsers. Nothing changes then.
    pub fn change(&self, settings: Settings) -> Result<(), ControllerError> {
        let rate = self.shared.log().target().unwrap_or(settings.limits.floor);
        let (rate, now) = (settings.limits.clamp(rate), self.clock.now());
        let controller = if self.remb {
            by_estimate(&self.registry, &settings, rate, now)?.0
        } else {
            controller(&self.registry, &settings, rate, now)?
        };
        // A full queue means that changes come faster than they take effect: the next one does.
        let _ = self.commands.try_send(Command::Change(settings, controller));
        self.shared.waker.wake();
        Ok(())
    }

    /// Changes what lies between the ends. The link's time goes on; what is inside is lost.
    pub fn change_link(&self, change: LinkChange) {
        let plan = LinkPlan::changed(self.terms.link.as_ref(), change);
        self.shared.log().note_link(change, self.clock.now());
        let _ = self.commands.try_send(Command::Link(plan));
        self.shared.waker.wake();
    }
    /// The link between the ends.
    pub fn link(&self) -> LinkChange {
        self.shared.log().link()
    }

    /// The tag of what of ICE is agreed on.
    pub fn ice_tag(&self) -> String {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner).own.clone()
    }
    /// Takes a fragment of the other end's description, which belongs to the agreement with this tag; `None` stands for any.
    ///
    /// # Errors
    /// See [`FragmentError`].
    pub fn take_fragment(&self, text: &str, tag: Option<&str>) -> Result<Fragment, FragmentError> {
        let name = fragment_name(text)?;
        let mut agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner);
        if tag.is_some_and(|tag| tag != agreed.own) {
            return Err(FragmentError::Stale);
        }
        if name == agreed.remote {
            return Ok(Fragment::Candidates);
        }
        let own = Credentials::random().map_err(FragmentError::Random)?;
        let fragment = write_fragment(agreed.mid, &own, agreed.local);
        let tag = own.name.clone();
        let restart = Command::Restart(own, name.to_owned());
        self.commands.try_send(restart).map_err(|_| FragmentError::Busy)?;
        self.shared.waker.wake();
        (agreed.own, agreed.remote) = (tag.clone(), name.to_owned());
        Ok(Fragment::Restart(fragment, tag))
    }

    /// The settings in force, or about to be.
    pub fn settings(&self) -> Settings {
        self.shared.log().settings().clone()
    }
    /// Returns the statistics of the call, with this end's samples from the `from`-th on, and those of the browser likewise.
    pub fn snapshot(&self, from: u64, browser_from: u64) -> Snapshot {
        self.shared.log().snapshot(from, browser_from)
    }
    /// All that is kept of it.
    pub fn record(&self) -> Record {
        let log = self.shared.log();
        let (snapshot, browser) = log.whole();
        let limits = log.settings().limits;
        Record { snapshot, browser, limits, changes: log.changes().to_vec(), terms: self.terms.clone() }
    }
    /// Its last packets.
    pub fn packets(&self) -> Packets {
        self.shared.packets().clone()
    }
    /// The time of day of an instant of its clock, since 1970.
    pub fn time_of_day(&self, at: Timestamp) -> std::time::Duration {
        self.clock.unix(at)
    }
    /// Takes the browser's own numbers.
    ///
    /// # Errors
    /// One is outside its range; none is taken then.
    pub fn note_browser(&self, numbers: BrowserNumbers) -> Result<(), BadNumber> {
        numbers.check()?;
        self.shared.log().note_browser(numbers, self.clock.now());
        Ok(())
    }
    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.shared.log().ended()
    }
    /// Ends it soon.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.waker.wake();
    }
    /// Ends it now; returns what is kept of it.
    pub fn finish(mut self) -> Record {
        self.join();
        self.record()
    }
    fn join(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has no more to say.
            let _ = thread.join();
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.join();
    }
}
