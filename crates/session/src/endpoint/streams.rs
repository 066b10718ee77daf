//! Streams of an endpoint by their identifiers: added, changed and removed while a call runs.

use super::Endpoint;
use crate::allocation::Demand;
use crate::config::{IncomingConfig, OutgoingConfig};
use crate::content::ContentCounters;
use crate::frames::RecoveryStats;
use crate::identity::StreamIdentity;
use crate::ids::{IncomingId, OutgoingId};
use crate::receiver::{IncomingStream, ReceiveCounters, Receiver, Shared};
use crate::sender::{OutgoingStream, SendCounters, Sender};
use core::fmt;
use weir_media::audio::{AudioPlayoutStats, AudioSlot};
use weir_media::{Codec, PlayoutEvent, PlayoutStats, ReceivedFrame, Source};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Most streams in each direction: report blocks of all fit a datagram, and a share-out stays cheap.
pub const MAX_STREAMS: usize = 32;

/// Why a stream was not added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamError {
    /// The endpoint has no path in this direction: it was made without one.
    NoPath,
    /// There are [`MAX_STREAMS`] already, or more have been added in all than there are identifiers.
    TooMany,
    /// One of its sources is that of another stream.
    SourceInUse(u32),
    /// The last stream of a direction cannot be removed: pause it.
    LastStream,
    /// No stream has this identifier: it has been removed.
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

/// An outgoing stream at an instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OutgoingStats {
    /// The rate that its source is to follow; zero while the target has none for it.
    pub rate: DataRate,
    /// Whether the target has a share for it.
    pub is_on: bool,
    /// What has been sent.
    pub counters: SendCounters,
}

/// An incoming stream at an instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IncomingStats {
    /// Packets expected by their sequence numbers (RFC 3550, appendix A.3).
    pub expected: u64,
    /// Packets received, duplicates included.
    pub received: u64,
    /// What has been received.
    pub counters: ReceiveCounters,
    /// What playout of audio has seen, where the stream is audio and has a deadline.
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
    /// The identifiers of the outgoing streams, in the order in which they were added.
    pub fn outgoing_ids(&self) -> impl Iterator<Item = OutgoingId> + use<'_> {
        self.sender.iter().flat_map(|s| s.streams.iter().map(|s| s.id))
    }
    /// The identifiers of the incoming streams, in the order in which they were added.
    pub fn incoming_ids(&self) -> impl Iterator<Item = IncomingId> + use<'_> {
        self.receiver.iter().flat_map(|r| r.streams.iter().map(|s| s.id))
    }
    /// An outgoing stream; `None` where it has been removed.
    pub fn outgoing(&mut self, id: OutgoingId) -> Option<Outgoing<'_>> {
        let sender = self.sender.as_mut()?;
        let index = sender.index_of(id)?;
        Some(Outgoing { sender, index })
    }
    /// An incoming stream; `None` where it has been removed.
    pub fn incoming(&mut self, id: IncomingId) -> Option<Incoming<'_>> {
        let has_feedback = self.has_feedback();
        let receiver = self.receiver.as_mut()?;
        let index = receiver.index_of(id)?;
        Some(Incoming { receiver, index, has_feedback })
    }

    /// What an outgoing stream has of the target and has sent; `None` where it has been removed.
    pub fn outgoing_stats(&self, id: OutgoingId) -> Option<OutgoingStats> {
        let s = self.sender.as_ref()?.streams.iter().find(|s| s.id == id)?;
        Some(OutgoingStats { rate: s.rate(), is_on: s.share.is_on, counters: s.counters() })
    }
    /// What an incoming stream has received and played; `None` where it has been removed.
    pub fn incoming_stats(&self, id: IncomingId) -> Option<IncomingStats> {
        let s = self.receiver.as_ref()?.streams.iter().find(|s| s.id == id)?;
        Some(IncomingStats {
            expected: s.stats.expected(),
            received: s.stats.received(),
            counters: s.counters,
            audio: s.audio.as_ref().map(|a| *a.stats()),
        })
    }

    /// Adds an outgoing stream, which shares the path's target with the others from now on.
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
    /// Removes an outgoing stream: what waits of it does not leave, and the next compound says goodbye for its sources.
    ///
    /// # Errors
    /// [`StreamError::Unknown`] and [`StreamError::LastStream`].
    pub fn remove_outgoing(&mut self, id: OutgoingId, now: Timestamp) -> Result<(), StreamError> {
        let index = self.sender.as_ref().and_then(|s| s.index_of(id)).ok_or(StreamError::Unknown)?;
        let Some(sender) = self.sender.as_mut().filter(|s| s.streams.len() > 1) else {
            return Err(StreamError::LastStream);
        };
        let stream = sender.remove(index, now);
        // The end's own source goes on reporting.
        let reports = self.config.ssrc;
        self.goodbyes.extend(super::used_sources(&stream).into_iter().flatten().filter(|s| *s != reports));
        self.follow_streams();
        Ok(())
    }
    /// Adds an incoming stream.
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
    /// Removes an incoming stream: its packets are of an unknown source from now on.
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

    /// How it appears in RTP now: as configured, or with other sources after a collision.
    pub fn identity(&self) -> StreamIdentity {
        self.stream().identity
    }
    /// What the source adds to its RTP timestamps: a random number (RFC 3550, section 5.1).
    pub fn rtp_timestamp_offset(&self) -> u32 {
        self.stream().rtp_offset()
    }
    /// The rate that its source is to follow; zero while the target has none for it.
    pub fn rate(&self) -> DataRate {
        self.stream().rate()
    }
    /// Whether the target has a share for it. An encoding of a simulcast goes on and off by that.
    pub fn is_on(&self) -> bool {
        self.stream().share.is_on
    }
    /// What it asks for of the target.
    pub fn demand(&self) -> Demand {
        self.stream().demand
    }
    /// Asks for something else of the target.
    pub fn set_demand(&mut self, demand: Demand, now: Timestamp) {
        self.sender.set_demand(self.index, demand, now);
    }
    /// Stops its source, or lets it go on, with a key frame. Its share goes to the others meanwhile.
    pub fn set_paused(&mut self, is_paused: bool, now: Timestamp) {
        self.sender.set_stream_paused(self.index, is_paused, now);
    }
    /// Asks its source for a key frame.
    pub fn request_key_frame(&mut self, now: Timestamp) {
        self.sender.streams[self.index].source_mut().request_key_frame(now);
    }
    /// Another source of frames. What waits in the queue still leaves.
    pub fn set_source(&mut self, source: Source, now: Timestamp) {
        self.sender.set_source(self.index, source, now);
    }
    /// Asks its source for this rate whatever its share is, or leaves it to the share again.
    pub fn hold_rate(&mut self, rate: Option<DataRate>, now: Timestamp) {
        self.sender.hold_media_rate(self.index, rate, now);
    }
    /// The codec, where the source is one.
    pub fn codec(&self) -> Option<&(dyn Codec + Send)> {
        self.stream().source().codec()
    }
    /// What has been sent.
    pub fn counters(&self) -> SendCounters {
        self.stream().counters()
    }
    /// Media bytes that wait in its RTP queue, the age of the oldest, and packets dropped there.
    pub fn queue(&self, now: Timestamp) -> (DataSize, TimeDelta, u64) {
        let queue = self.stream().queue();
        (queue.size(), queue.oldest_age(now), queue.dropped())
    }
}

impl Incoming<'_> {
    fn stream(&self) -> &IncomingStream {
        &self.receiver.streams[self.index]
    }

    /// How it appears in RTP. Its source is 0 until it is known.
    pub fn identity(&self) -> StreamIdentity {
        self.stream().identity
    }
    /// What has been received.
    pub fn counters(&self) -> ReceiveCounters {
        self.stream().counters
    }
    /// What became of media packets and frames in the end.
    pub fn recovery_stats(&self) -> RecoveryStats {
        self.stream().recovery()
    }
    /// What playout has seen, where there is a deadline.
    pub fn playout_stats(&self) -> Option<PlayoutStats> {
        Some(self.stream().playout.as_ref()?.stats())
    }
    /// What became of the content that has arrived, and its bytes that are kept now.
    pub fn content_counters(&self) -> (ContentCounters, DataSize) {
        self.stream().content.as_ref().map_or_else(Default::default, |c| (c.counters, c.size()))
    }
    /// The next frame whose playout deadline has come; ask until there is none.
    pub fn poll_playout(&mut self, now: Timestamp) -> Option<PlayoutEvent> {
        let (stream, path) = self.receiver.with_path(self.index);
        stream.poll_playout(path, now)
    }
    /// The next slot of audio that is due, with its payload where [`IncomingConfig::content`] has it kept; ask until there is
    /// none.
    pub fn poll_audio(&mut self, now: Timestamp) -> Option<AudioSlot> {
        self.receiver.streams[self.index].poll_audio(now)
    }
    /// How late the frame or slot that was played last came out after its capture, by the other end's clock as its sender
    /// reports show it: right but for what the two ends' clocks differ by. The difference of two streams' is how far sound and
    /// pictures are apart.
    pub fn playout_lag(&self) -> Option<TimeDelta> {
        self.stream().clock.played_lag()
    }
    /// Moves what has arrived of the frame of this event into `frame`; see [`Endpoint::take_frame`].
    pub fn take_frame(&mut self, event: &PlayoutEvent, frame: &mut ReceivedFrame) -> bool {
        self.receiver.streams[self.index].take_frame(event, frame)
    }
    /// Asks the other end for a key frame; see [`Endpoint::request_key_frame_from_peer`].
    pub fn request_key_frame(&mut self, now: Timestamp) -> bool {
        if self.has_feedback {
            self.receiver.streams[self.index].picture.want_key_frame(now);
        }
        self.has_feedback
    }
    /// A picture was decoded; see [`Endpoint::on_decoded`].
    pub fn on_decoded(&mut self, rtp_timestamp: u32, intact: bool) {
        if self.has_feedback {
            self.receiver.streams[self.index].picture.on_decoded(rtp_timestamp, intact);
        }
    }
    /// Pictures are damaged; see [`Endpoint::on_damaged`].
    pub fn on_damaged(&mut self, last_decoded_rtp_timestamp: u32, now: Timestamp) -> bool {
        if self.has_feedback {
            self.receiver.streams[self.index].on_damaged(last_decoded_rtp_timestamp, now);
        }
        self.has_feedback
    }
}
