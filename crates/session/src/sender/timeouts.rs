//! The sender's deadlines: frames, controllers, limits of the media, and packets that wait.

use super::{OutgoingStream, Sender};
use crate::timers::earliest;
use weir_cc::Controller;
use weir_cc::cue::QueueState;
use weir_units::cold_path;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Most frames generated at one time, which stops a source that never ends.
const MAX_FRAMES_AT_ONCE: u32 = 1_000;

impl Sender {
    /// Bytes of media in all queues, and the age of the oldest.
    fn queued(&self, now: Timestamp) -> (DataSize, TimeDelta) {
        if let [only] = &self.streams[..] {
            return (only.queue.size(), only.queue.oldest_age(now));
        }
        let sum = (DataSize::ZERO, TimeDelta::ZERO);
        self.streams.iter().fold(sum, |(size, age), s| (size + s.queue.size(), age.max(s.queue.oldest_age(now))))
    }

    #[inline]
    fn run_source(&mut self, index: usize, is_silent: bool, now: Timestamp) {
        for _ in 0..MAX_FRAMES_AT_ONCE {
            let s = &mut self.streams[index];
            // Most timeouts are the pacer's, and a frame is followed by none at the same time.
            if s.source.next_frame_at().is_none_or(|at| at > now) {
                return;
            }
            if s.shape.is_some() {
                cold_path();
                s.follow_shape(now);
            }
            if s.skip_picture(now) {
                continue;
            }
            match s.source.poll_frame(now) {
                Some(_) if is_silent || s.is_silent() => {}
                Some(frame) => {
                    self.paths[0].breaker.on_frame(now);
                    let added = s.enqueue(&frame, now);
                    let (queued, oldest_age) = self.queued(now);
                    let state = QueueState { now, added, queued, oldest_age };
                    if self.multipath.is_some() {
                        self.on_queue_of_paths(&state);
                    } else {
                        let path = &mut self.paths[0];
                        if path.controller.on_queue(&state) || path.breaker.is_on() {
                            self.follow_controller(0, now);
                        }
                    }
                }
                None => break,
            }
        }
    }

    /// Handles what is due. Frames of a paused source are generated and discarded, so that it stays in step with time.
    pub(crate) fn on_timeout(&mut self, now: Timestamp, is_paused: bool) {
        let is_silent = is_paused || self.paths.iter().all(|p| p.breaker.tripped().is_some());
        for i in 0..self.streams.len() {
            self.run_source(i, is_silent, now);
        }
        let single = self.streams.len() == 1;
        for s in self.streams.iter_mut().filter(|s| s.room.is_some()) {
            cold_path();
            let least = s.repair.share();
            if s.room.as_mut().is_some_and(|room| room.update(now, least)) {
                let rate = if single { s.share.rate } else { s.rate() };
                s.set_rate(rate, now);
            }
        }
        if self.share_again.is_some_and(|at| at <= now) {
            cold_path();
            self.share_out(now);
        }
        for path in 0..self.paths.len() {
            let p = &mut self.paths[path];
            p.give_up(now);
            let is_held = p.breaker.is_on() && self.run_breaker(path, now);
            if self.paths[path].run_controller(now) || is_held {
                self.follow_controller(path, now);
            }
        }
        let limit = self.target().max_queue_age;
        for s in &mut self.streams {
            s.discard_old(limit, now);
            s.run_picture(now);
        }
    }

    /// Runs a path's circuit breaker and its cap without feedback; returns whether the cap may have changed.
    #[inline(never)]
    fn run_breaker(&mut self, path: usize, now: Timestamp) -> bool {
        let breaker = &mut self.paths[path].breaker;
        let trips = breaker.on_timeout(now);
        let changed = breaker.run_guard(now);
        if trips && self.paths.iter().all(|p| p.breaker.tripped().is_some()) {
            self.cease();
        }
        changed
    }

    /// The earliest deadline; [`Timestamp::MAX`] for none.
    #[inline]
    pub(crate) fn poll_timeout(&mut self, now: Timestamp) -> Timestamp {
        let mut at = self.share_again.unwrap_or(Timestamp::MAX);
        for s in &self.streams {
            earliest(&mut at, s.source.next_frame_at());
        }
        let (paths, streams, multipath) = (&mut self.paths, &self.streams, self.multipath.as_deref());
        for p in paths {
            let id = p.id;
            earliest(&mut at, p.controller.poll_timeout().map(|(at, _)| at));
            earliest(&mut at, p.breaker.poll_timeout());
            if p.breaker.tripped().is_none() && multipath.is_none_or(|m| m.usable().contains(id)) {
                let is_queued = || match multipath {
                    Some(m) => m.is_chosen(id),
                    None => streams.iter().any(OutgoingStream::has_queued),
                };
                earliest(&mut at, p.next_departure(now, is_queued));
            }
        }
        at
    }
}
