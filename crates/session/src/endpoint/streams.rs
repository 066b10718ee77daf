//! Streams of an endpoint by identifier: adding, changing and removing them during a call.

use super::Endpoint;
use crate::allocation::Demand;
use crate::config::{IncomingConfig, OutgoingConfig};
use crate::content::ContentCounters;
use crate::frames::RecoveryStats;
use crate::identity::StreamIdentity;
use crate::ids::{IncomingId, OutgoingId};
use crate::receiver::{IncomingStream, ReceiveCounters, Receiver, Shared};
use crate::retransmission::RetransmissionCounters;
use crate::sender::{OutgoingStream, SendCounters, Sender};
use core::fmt;
use weir_media::audio::{AudioPlayoutStats, AudioSlot};
use weir_media::utility::Shape;
use weir_media::{Codec, PlayoutEvent, PlayoutStats, ReceivedFrame, Source};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Most streams in each direction: report blocks of all fit into a datagram, and an allocation stays cheap.
pub const MAX_STREAMS: usize = 32;

/// Why a stream was not added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamError {
    /// The endpoint was made without this direction: without a stream or a path in it ([`EndPlan`](crate::EndPlan)).
    NoPath,
    /// There are [`MAX_STREAMS`] already, or all identifiers have been used up.
    TooMany,
    /// One of its sources belongs to another stream.
    SourceInUse(u32),
    /// The last stream of a direction cannot be removed, only paused.
    LastStream,
    /// No stream has this identifier, or it has been removed.
    Unknown,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPath => f.write_str("this endpoint was made without this direction"),
            Self::TooMany => write!(f, "there are {MAX_STREAMS} streams already"),
            Self::SourceInUse(ssrc) => write!(f, "SSRC {ssrc:#010x} is that of another stream; choose another"),
            Self::LastStream => f.write_str("the last stream cannot be removed; pause it instead"),
            Self::Unknown => f.write_str("no such stream: it has been removed"),
        }
    }
}

impl core::error::Error for StreamError {}

/// The state of an outgoing stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OutgoingStats {
    /// The rate for its source; zero while the target has no share for it.
    pub rate: DataRate,
    /// Whether the target has a share for it.
    pub is_on: bool,
    /// Counters of packets sent.
    pub counters: SendCounters,
    /// Counters of packets retransmitted, which the former leave out.
    pub retransmission: RetransmissionCounters,
    /// Size and number of its pictures, if the application has a preference.
    pub shape: Option<Shape>,
}

/// The state of an incoming stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IncomingStats {
    /// Packets expected by their sequence numbers (RFC 3550, appendix A.3).
    pub expected: u64,
    /// Packets received, duplicates included.
    pub received: u64,
    /// Counters of packets received.
    pub counters: ReceiveCounters,
    /// Playout statistics, if the stream is audio and has a deadline.
    pub audio: Option<AudioPlayoutStats>,
}

/// An outgoing stream of an [`Endpoint`].
pub struct Outgoing<'a> {
    sender: &'a mut Sender,
    index: usize,
}

/// An incoming stream of an [`Endpoint`].
pub struct Incoming<'a> {
    receiver: &'a mut Receiver,
    index: usize,
    /// Whether the profile has feedback messages.
    has_feedback: bool,
}

impl Endpoint {
    /// An outgoing stream; `None` if it has been removed.
    pub fn outgoing(&mut self, id: OutgoingId) -> Option<Outgoing<'_>> {
        let sender = self.sender.as_mut()?;
        let index = sender.index_of(id)?;
        Some(Outgoing { sender, index })
    }
    /// An incoming stream; `None` if it has been removed.
    pub fn incoming(&mut self, id: IncomingId) -> Option<Incoming<'_>> {
        let has_feedback = self.has_feedback();
        let receiver = self.receiver.as_mut()?;
        let index = receiver.index_of(id)?;
        Some(Incoming { receiver, index, has_feedback })
    }

    /// Adds an outgoing stream, which shares the target with the others from now on by its [`Demand`]. The other end has to
    /// have an incoming stream for it ([`Self::add_incoming`]) before its first packet. The example `growing_call` has both;
    /// [`EndStats`](super::EndStats) counts what each stream sends and receives.
    ///
    /// # Errors
    /// [`StreamError`]; nothing changes then.
    pub fn add_outgoing(&mut self, config: OutgoingConfig, now: Timestamp) -> Result<OutgoingId, StreamError> {
        self.check_sources(&config.identity)?;
        let first = self.first_numbers(self.next_outgoing);
        let sender = self.sender.as_mut().ok_or(StreamError::NoPath)?;
        if sender.streams.len() >= MAX_STREAMS || self.next_outgoing == u16::MAX {
            return Err(StreamError::TooMany);
        }
        let id = OutgoingId(self.next_outgoing);
        self.next_outgoing += 1;
        sender.add(id, config, first, now);
        self.follow_streams();
        self.set_packet_overheads(now);
        Ok(id)
    }
    /// Removes an outgoing stream: its queued packets are not sent, and the next compound has a BYE for its sources.
    ///
    /// # Errors
    /// [`StreamError::Unknown`] and [`StreamError::LastStream`].
    pub fn remove_outgoing(&mut self, id: OutgoingId, now: Timestamp) -> Result<(), StreamError> {
        let index = self.sender.as_ref().and_then(|s| s.index_of(id)).ok_or(StreamError::Unknown)?;
        let Some(sender) = self.sender.as_mut().filter(|s| s.streams.len() > 1) else {
            return Err(StreamError::LastStream);
        };
        let stream = sender.remove(index, now);
        // The end's own source continues to report.
        let reports = self.config.ssrc;
        self.goodbyes.extend(super::used_sources(&stream).into_iter().flatten().filter(|s| *s != reports));
        self.follow_streams();
        Ok(())
    }
    /// Adds an incoming stream. Packets of a source that no incoming stream has are refused.
    ///
    /// # Errors
    /// [`StreamError`]; nothing changes then.
    pub fn add_incoming(&mut self, config: IncomingConfig, now: Timestamp) -> Result<IncomingId, StreamError> {
        if config.identity.ssrc != 0 {
            self.check_sources(&config.identity)?;
        }
        let shared = Shared { params: &self.config.params, session_bandwidth: self.config.session_bandwidth };
        let receiver = self.receiver.as_mut().ok_or(StreamError::NoPath)?;
        if receiver.streams.len() >= MAX_STREAMS || self.next_incoming == u16::MAX {
            return Err(StreamError::TooMany);
        }
        let id = IncomingId(self.next_incoming);
        self.next_incoming += 1;
        receiver.add(id, config, shared, now);
        Ok(id)
    }
    /// Removes an incoming stream: its source is unknown from now on.
    ///
    /// # Errors
    /// [`StreamError::Unknown`] and [`StreamError::LastStream`].
    pub fn remove_incoming(&mut self, id: IncomingId) -> Result<(), StreamError> {
        let index = self.receiver.as_ref().and_then(|r| r.index_of(id)).ok_or(StreamError::Unknown)?;
        let receiver = self.receiver.as_mut().filter(|r| r.streams.len() > 1).ok_or(StreamError::LastStream)?;
        receiver.remove(index);
        Ok(())
    }

    fn check_sources(&self, identity: &StreamIdentity) -> Result<(), StreamError> {
        let own = self.sender.iter().flat_map(|s| s.streams.iter().map(|s| s.identity));
        let theirs = self.receiver.iter().flat_map(|r| r.streams.iter().map(|s| s.identity)).filter(|i| i.ssrc != 0);
        let taken: Vec<StreamIdentity> = own.chain(theirs).collect();
        match identity.sources().into_iter().find(|&ssrc| taken.iter().any(|t| t.has(ssrc))) {
            Some(ssrc) => Err(StreamError::SourceInUse(ssrc)),
            None => Ok(()),
        }
    }
}

impl Outgoing<'_> {
    fn stream(&self) -> &OutgoingStream {
        &self.sender.streams[self.index]
    }

    /// Its current identity in RTP: as configured, or with other sources after a collision.
    pub fn identity(&self) -> StreamIdentity {
        self.stream().identity
    }
    /// The source's offset in RTP timestamps: a random number (RFC 3550, section 5.1).
    pub fn rtp_timestamp_offset(&self) -> u32 {
        self.stream().rtp_offset()
    }
    /// The rate for its source; zero while the target has no share for it.
    pub fn rate(&self) -> DataRate {
        self.stream().rate()
    }
    /// Whether the target has a share for it. This switches an encoding of a simulcast.
    pub fn is_on(&self) -> bool {
        self.stream().share.is_on
    }
    /// Its demand on the target.
    pub fn demand(&self) -> Demand {
        self.stream().demand
    }
    /// Changes its demand on the target.
    pub fn set_demand(&mut self, demand: Demand, now: Timestamp) {
        self.sender.set_demand(self.index, demand, now);
    }
    /// Pauses its source, or resumes it with a key frame. Meanwhile its share goes to the others.
    pub fn set_paused(&mut self, is_paused: bool, now: Timestamp) {
        self.sender.set_stream_paused(self.index, is_paused, now);
    }
    /// Requests a key frame from its source.
    pub fn request_key_frame(&mut self, now: Timestamp) {
        self.sender.streams[self.index].source_mut().request_key_frame(now);
    }
    /// Replaces its source of frames. Queued packets are still sent.
    pub fn set_source(&mut self, source: Source, now: Timestamp) {
        self.sender.set_source(self.index, source, now);
    }
    /// Fixes its source's rate regardless of its share; `None` returns to the share.
    pub fn hold_rate(&mut self, rate: Option<DataRate>, now: Timestamp) {
        self.sender.hold_media_rate(self.index, rate, now);
    }
    /// The codec, if the source is one.
    pub fn codec(&self) -> Option<&(dyn Codec + Send)> {
        self.stream().source().codec()
    }
    /// The codec, mutably, if the source is one.
    pub fn codec_mut(&mut self) -> Option<&mut (dyn Codec + Send)> {
        self.sender.streams[self.index].source_mut().codec_mut()
    }
    /// Requests slices of at most this size from its source, or one slice per frame; `false` if it has no support.
    pub fn set_slice_size(&mut self, size: Option<DataSize>, now: Timestamp) -> bool {
        self.sender.streams[self.index].set_slice_size(size, now)
    }
    /// Returns the counters of packets sent.
    pub fn counters(&self) -> SendCounters {
        self.stream().counters()
    }
    /// Media bytes waiting in its RTP queue, the age of the oldest, and packets dropped there.
    pub fn queue(&self, now: Timestamp) -> (DataSize, TimeDelta, u64) {
        let queue = self.stream().queue();
        (queue.size(), queue.oldest_age(now), queue.dropped())
    }
}

impl Incoming<'_> {
    fn stream(&self) -> &IncomingStream {
        &self.receiver.streams[self.index]
    }

    /// Its identity in RTP. Its source is 0 until known.
    pub fn identity(&self) -> StreamIdentity {
        self.stream().identity
    }
    /// Returns the counters of packets received.
    pub fn counters(&self) -> ReceiveCounters {
        self.stream().counters
    }
    /// Final outcome of media packets and frames.
    pub fn recovery_stats(&self) -> RecoveryStats {
        self.stream().recovery()
    }
    /// Playout statistics, if there is a deadline.
    pub fn playout_stats(&self) -> Option<PlayoutStats> {
        Some(self.stream().playout.as_ref()?.stats())
    }
    /// Current delay from capture to playout, if there is playout of frames. Capture is by this end's clock, or by the
    /// arrival of packets: see [`Playout`](weir_media::Playout).
    pub fn playout_delay(&self) -> Option<TimeDelta> {
        Some(self.stream().playout.as_ref()?.delay())
    }
    /// Counters of received content, and the bytes kept now.
    pub fn content_counters(&self) -> (ContentCounters, DataSize) {
        self.stream().content.as_ref().map_or_else(Default::default, |c| (c.counters, c.size()))
    }
    /// The next frame whose playout deadline has passed; call it until it returns `None`.
    pub fn poll_playout(&mut self, now: Timestamp) -> Option<PlayoutEvent> {
        let (stream, path) = self.receiver.with_path(self.index);
        stream.poll_playout(path, now)
    }
    /// The next audio slot that is due, with its payload if [`IncomingConfig::content`] is set; call it until it
    /// returns `None`.
    pub fn poll_audio(&mut self, now: Timestamp) -> Option<AudioSlot> {
        self.receiver.streams[self.index].poll_audio(now)
    }
    /// Delay from capture to playout of the last frame or slot, by the other end's clock according to its sender
    /// reports. It is off by the difference of the two ends' clocks; the difference between two streams' lags is their
    /// audio-video skew.
    pub fn playout_lag(&self) -> Option<TimeDelta> {
        self.stream().clock.played_lag()
    }
    /// Moves the received content of this event's frame into `frame`; see [`Endpoint::take_frame`].
    pub fn take_frame(&mut self, event: &PlayoutEvent, frame: &mut ReceivedFrame) -> bool {
        self.receiver.streams[self.index].take_frame(event, frame)
    }
    /// Requests a key frame from the other end as soon as the rules of early feedback allow (RFC 4585, section 3.5),
    /// and repeats the request until a picture is decoded intact; the interval is a round trip plus the playout delay
    /// of a response. `false` if the profile has no feedback messages.
    pub fn request_key_frame(&mut self, now: Timestamp) -> bool {
        if self.has_feedback {
            self.receiver.streams[self.index].picture.want_key_frame(now);
        }
        self.has_feedback
    }
    /// Reports that the picture with this RTP timestamp, as in [`ReceivedFrame`], was decoded. `intact` means that it equals
    /// the encoder's: neither it nor anything that it is predicted from was missing. This ends pending requests, and is
    /// acknowledged if so configured.
    pub fn on_decoded(&mut self, rtp_timestamp: u32, intact: bool) {
        if self.has_feedback {
            self.receiver.streams[self.index].picture.on_decoded(rtp_timestamp, intact);
        }
    }
    /// Reports that pictures after the one with this RTP timestamp, which was decoded intact, are damaged: the other
    /// end is asked to refer to it again (RPSI), repeatedly until a later picture is decoded intact, and finally for a
    /// key frame. Call it with each damaged picture, or once. If a policy of error resilience disables references, a
    /// key frame is requested instead. `false` if the profile has no feedback messages.
    pub fn on_damaged(&mut self, last_decoded_rtp_timestamp: u32, now: Timestamp) -> bool {
        if self.has_feedback {
            self.receiver.streams[self.index].on_damaged(last_decoded_rtp_timestamp, now);
        }
        self.has_feedback
    }
}
