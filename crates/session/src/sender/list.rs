//! Changes of the list of outgoing streams during a call: adding, pausing, changing and removing.

use super::{FirstNumbers, OutgoingStream, Sender};
use crate::allocation::{Demand, Share};
use crate::config::OutgoingConfig;
use crate::ids::OutgoingId;
use weir_media::Source;
use weir_units::{DataRate, Timestamp};

impl OutgoingStream {
    /// Applies a share of the target: sets the source's rate; a stream switched on again begins with a key frame.
    pub(super) fn follow_share(&mut self, share: Share, now: Timestamp) {
        let before = core::mem::replace(&mut self.share, share);
        if share.is_on && !before.is_on {
            self.want_key_frame(now);
        }
        if !share.is_on && before.is_on {
            self.discard_all();
        }
        // A stream that has nothing left in a dip of the target keeps its rate: its queue carries it, and a source without a rate would
        // begin again with a key frame.
        let is_carried = share.is_short() && share.rate == DataRate::ZERO;
        if share.rate != before.rate && self.held.is_none() && !is_carried {
            self.set_rate(share.rate, now);
        }
    }

    /// Whether frames of the source are discarded: the application has paused it, or it has no share.
    pub(super) fn is_silent(&self) -> bool {
        self.is_paused || !self.share.is_on
    }
}

impl Sender {
    pub(crate) fn index_of(&self, id: OutgoingId) -> Option<usize> {
        self.streams.iter().position(|s| s.id == id)
    }

    /// Adds a stream on the same path. From here on streams have numbers of their own besides the path's.
    pub(crate) fn add(&mut self, id: OutgoingId, config: OutgoingConfig, first: FirstNumbers, now: Timestamp) {
        for s in &mut self.streams {
            s.media.keep();
        }
        let target = *self.target();
        let mut stream = OutgoingStream::new(id, config, first, true, now);
        // It is switched on at once if it fits.
        stream.share = Share::new();
        stream.follow_plan(target.repair, now);
        stream.follow_resilience(now);
        self.streams.push(stream);
        self.share_out(now);
    }

    /// Removes a stream; its queued packets are not sent.
    pub(crate) fn remove(&mut self, index: usize, now: Timestamp) -> OutgoingStream {
        let stream = self.streams.remove(index);
        self.share_out(now);
        stream
    }

    pub(crate) fn set_demand(&mut self, index: usize, demand: Demand, now: Timestamp) {
        self.streams[index].demand = demand;
        self.share_out(now);
    }

    pub(crate) fn set_stream_paused(&mut self, index: usize, is_paused: bool, now: Timestamp) {
        let s = &mut self.streams[index];
        if core::mem::replace(&mut s.is_paused, is_paused) == is_paused {
            return;
        }
        if is_paused {
            s.discard_all();
        } else {
            s.want_key_frame(now);
        }
        self.share_out(now);
    }

    pub(crate) fn set_source(&mut self, index: usize, source: Source, now: Timestamp) {
        let single = self.streams.len() == 1;
        let target = self.path().payload_rate();
        let s = &mut self.streams[index];
        let rate = if single && s.demand == Demand::default() { target } else { s.rate() };
        s.set_source(source, rate, now);
    }
}
