//! The places, and the rule by which they are given up.

use crate::Source;
use std::collections::BTreeMap;
use weir_units::{TimeDelta, Timestamp};

/// Bounds on places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Places of those who have proved nothing. It decides how long a stranger has at least while strangers without end
    /// come from as many addresses: at 1,000 a second, this many milliseconds.
    pub strangers: usize,
    /// Strangers of one source that count as one: programs that open several connections at a time, such as browsers, do
    /// not give way to sources that have fewer.
    pub usual: usize,
    /// Places of those who have proved something.
    pub proven: usize,
    /// Of these, the most of one source.
    pub per_source: usize,
    /// Of these, the places of one source that nobody else gets while they are in use.
    pub kept: usize,
    /// A proven place without progress for this long is no longer in use.
    pub quiet: TimeDelta,
}

/// A place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ticket(u64);

/// The outcome of a proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof<T> {
    /// It has a proven place; the other, if any, has lost its own for it and is to be closed.
    Admitted(Option<T>),
    /// All proven places are in use: it stays among the strangers, and may try again.
    Waits,
}

#[derive(Debug)]
struct Place<T> {
    source: Source,
    is_proven: bool,
    /// Last progress.
    moved: Timestamp,
    item: T,
}

/// Places of one source.
#[derive(Clone, Copy, Default, Debug)]
struct Held {
    strangers: usize,
    proven: usize,
}

/// The places of a listener, each with what the caller keeps for it.
#[derive(Debug)]
pub struct Doors<T> {
    limits: Limits,
    places: BTreeMap<Ticket, Place<T>>,
    held: BTreeMap<Source, Held>,
    proven: usize,
    next: u64,
}

impl<T> Doors<T> {
    /// Nobody is there. A bound of 0 counts as 1.
    pub fn new(limits: Limits) -> Self {
        let Limits { strangers, proven, per_source, .. } = limits;
        let limits =
            Limits { strangers: strangers.max(1), proven: proven.max(1), per_source: per_source.max(1), ..limits };
        Self { limits, places: BTreeMap::new(), held: BTreeMap::new(), proven: 0, next: 0 }
    }

    /// Gives a newcomer a place among the strangers. Second is what gave way for it, to be closed: of the source with most
    /// strangers, this one counted, the one longest without progress.
    pub fn enter(&mut self, now: Timestamp, source: Source, item: T) -> (Ticket, Option<T>) {
        let gone = if self.strangers() >= self.limits.strangers { self.make_room(Some(source)) } else { None };
        let ticket = Ticket(self.next);
        self.next += 1;
        self.held.entry(source).or_default().strangers += 1;
        self.places.insert(ticket, Place { source, is_proven: false, moved: now, item });
        (ticket, gone)
    }

    /// Takes a place from the stranger that is the next to give way, for a shortage that no count foresees: of descriptors,
    /// or of memory.
    pub fn shed(&mut self) -> Option<T> {
        self.make_room(None)
    }

    fn make_room(&mut self, newcomer: Option<Source>) -> Option<T> {
        let usual = self.limits.usual;
        // The newcomer's own source counts it: a source that replaces its places takes none of another.
        let count = |p: &Place<T>, held: Held| held.strangers + usize::from(newcomer == Some(p.source));
        let first = self.last_of(|p, held| (!p.is_proven).then(|| count(p, held).max(usual)));
        first.and_then(|ticket| self.leave(ticket))
    }

    /// It has proved something. Progress as well.
    pub fn prove(&mut self, now: Timestamp, ticket: Ticket) -> Proof<T> {
        self.progress(now, ticket);
        let Some(place) = self.places.get(&ticket).filter(|p| !p.is_proven) else { return Proof::Admitted(None) };
        let source = place.source;
        let mine = self.held(source).proven;
        let Limits { proven, per_source, kept, quiet, .. } = self.limits;
        let is_quiet = |p: &Place<T>| now.saturating_since(p.moved) >= quiet;
        let gone = if mine >= per_source {
            let own = self.last_of(|p, _| (p.is_proven && p.source == source && is_quiet(p)).then_some(0));
            let Some(own) = own else { return Proof::Waits };
            self.leave(own)
        } else if self.proven >= proven {
            // Quiet ones first. One in use gives way only to a source that then has fewer than its own still has.
            let quiet = self.last_of(|p, held| (p.is_proven && is_quiet(p)).then_some(held.proven));
            let over = || self.last_of(|p, h| (p.is_proven && h.proven > kept.max(mine + 1)).then_some(h.proven));
            let Some(other) = quiet.or_else(over) else { return Proof::Waits };
            self.leave(other)
        } else {
            None
        };
        if let Some(place) = self.places.get_mut(&ticket) {
            place.is_proven = true;
            self.proven += 1;
            let held = self.held.entry(source).or_default();
            (held.strangers, held.proven) = (held.strangers.saturating_sub(1), held.proven + 1);
        }
        Proof::Admitted(gone)
    }

    /// It has got on: a request or a handshake is complete, data have arrived. A byte now and then is no progress.
    pub fn progress(&mut self, now: Timestamp, ticket: Ticket) {
        if let Some(place) = self.places.get_mut(&ticket) {
            place.moved = place.moved.max(now);
        }
    }

    /// Gives up a place; returns what was kept for it, unless it was given up before.
    pub fn leave(&mut self, ticket: Ticket) -> Option<T> {
        let place = self.places.remove(&ticket)?;
        let held = self.held.entry(place.source).or_default();
        if place.is_proven {
            held.proven -= 1;
            self.proven -= 1;
        } else {
            held.strangers -= 1;
        }
        if (held.strangers, held.proven) == (0, 0) {
            self.held.remove(&place.source);
        }
        Some(place.item)
    }

    /// The caller's part of a place.
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.places.get_mut(&ticket).map(|p| &mut p.item)
    }

    /// The places in the order in which they were taken.
    pub fn iter(&self) -> impl Iterator<Item = (Ticket, &T)> {
        self.places.iter().map(|(ticket, place)| (*ticket, &place.item))
    }

    /// Places of strangers.
    pub fn strangers(&self) -> usize {
        self.places.len() - self.proven
    }

    /// Places of those who have proved something.
    pub fn proven(&self) -> usize {
        self.proven
    }

    /// Whether a place is one of a stranger.
    pub fn is_stranger(&self, ticket: Ticket) -> bool {
        self.places.get(&ticket).is_some_and(|p| !p.is_proven)
    }

    fn held(&self, source: Source) -> Held {
        self.held.get(&source).copied().unwrap_or_default()
    }

    /// Of the places with the highest rank, the one longest without progress; `rank` returns `None` for those that stay.
    fn last_of(&self, rank: impl Fn(&Place<T>, Held) -> Option<usize>) -> Option<Ticket> {
        let ranked =
            self.places.iter().filter_map(|(ticket, p)| Some((rank(p, self.held(p.source))?, p.moved, *ticket)));
        ranked
            .max_by_key(|(rank, moved, ticket)| (*rank, std::cmp::Reverse((*moved, *ticket))))
            .map(|(.., ticket)| ticket)
    }
}
