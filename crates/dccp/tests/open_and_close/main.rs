//! A model check of opening and closing: a client and a server with its listener, and a network that drops, duplicates
//! and reorders. All sequences of events up to a depth are played, except from states seen before; then each continues
//! over a network without faults and has to end well.
//!
//! Invariants at every step:
//! - nothing panics, and no end sends endlessly;
//! - an end is in OPEN only after the other was opening: no end talks to one that never existed;
//! - no data is delivered that was not sent, and none twice;
//!
//! and at the end:
//! - if neither end has closed, both are in OPEN and none was reset;
//! - if either has closed or given up, both ends are gone.
//!
//! With the depths below that is 28,000 states and 21,000 sequences played to the end; `all_of_it_deeper` covers
//! 800,000 states and 600,000 sequences.

mod world;

use crate::support;
use std::collections::HashSet;
use weir_dccp::listener::Cookies;
use world::Side::{Client, Server};
use world::{Budget, EVENTS, Event, World};

struct Search {
    cookies: Cookies,
    budget: Budget,
    depth: usize,
    seen: HashSet<u64>,
    path: Vec<Event>,
    sequences: usize,
    ends: HashSet<String>,
}

impl Search {
    fn replay(&self) -> World {
        let mut world = World::new(self.cookies, self.budget);
        for event in &self.path {
            assert!(world.play(*event), "what could happen can happen again: {:?}", self.path);
        }
        world
    }

    fn search(&mut self) {
        let mut goes_on = false;
        if self.path.len() < self.depth {
            for event in EVENTS {
                self.path.push(event);
                let _trace = Trace(self.path.clone());
                self.path.pop();
                let mut world = self.replay();
                let happens = world.play(event);
                goes_on |= happens;
                if happens && self.seen.insert(world.fingerprint()) {
                    self.path.push(event);
                    self.search();
                    self.path.pop();
                }
            }
        }
        if !goes_on {
            self.run_on();
        }
    }

    /// Plays the sequence to its end.
    fn run_on(&mut self) {
        self.sequences += 1;
        let _trace = Trace(self.path.clone());
        let mut world = self.replay();
        world.run_on();
        world.has_ended_well();
        self.ends.insert(format!("{:?} {:?}", world.client.end(), world.server_ends));
    }
}

/// Prints a sequence of events when a test fails within it.
struct Trace(Vec<Event>);

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("after {:?}", self.0);
        }
    }
}

/// Searches from the state after `before`, to this depth; returns the number of states seen.
fn check(cookies: Cookies, budget: Budget, before: &[Event], depth: usize) -> usize {
    let mut search = Search {
        cookies,
        budget,
        depth: before.len() + depth,
        seen: HashSet::new(),
        path: before.to_vec(),
        sequences: 0,
        ends: HashSet::new(),
    };
    search.search();
    println!(
        "{cookies:?}, {budget:?}, {depth} events behind {}: {} states, {} sequences played to the end, {} ways to end",
        before.len(),
        search.seen.len(),
        search.sequences,
        search.ends.len()
    );
    search.seen.len()
}

const NONE: Budget = Budget { losses: 0, repeats: 0, reorderings: 0, sends: 0, closes: 0, aborts: 0, waits: 3 };
const BAD_NETWORK: Budget = Budget { losses: 2, repeats: 1, reorderings: 1, ..NONE };
/// The handshake; both ends are in OPEN.
const OPENING: [Event; 4] =
    [Event::Deliver(Client), Event::Deliver(Server), Event::Deliver(Client), Event::Deliver(Server)];

#[test]
fn opening_over_a_bad_network() {
    for cookies in [Cookies::Never, Cookies::Always] {
        assert!(check(cookies, Budget { sends: 1, ..BAD_NETWORK }, &[], 5) > 2_000);
    }
}

#[test]
fn closing_while_opening() {
    for cookies in [Cookies::Never, Cookies::Always] {
        assert!(check(cookies, Budget { losses: 1, closes: 2, ..NONE }, &[], 7) > 2_000);
    }
}

#[test]
fn closing_when_open() {
    assert!(check(Cookies::Never, Budget { closes: 2, sends: 1, ..BAD_NETWORK }, &OPENING, 5) > 4_000);
}

#[test]
fn ending_in_every_way() {
    let budget = Budget { losses: 1, closes: 1, aborts: 1, sends: 1, ..NONE };
    assert!(check(Cookies::Always, budget, &[], 5) > 500);
    assert!(check(Cookies::Never, budget, &OPENING, 5) > 2_000);
}

/// The same, deeper, which takes minutes: `WEIR_DEEP=1 cargo test --release -p weir-dccp --test all open_and_close --
/// --nocapture`.
#[test]
fn all_of_it_deeper() {
    if std::env::var_os("WEIR_DEEP").is_none() {
        println!("not searched deeper: set WEIR_DEEP=1 for that, it takes minutes");
        return;
    }
    for cookies in [Cookies::Never, Cookies::Always] {
        check(cookies, Budget { sends: 1, ..BAD_NETWORK }, &[], 7);
        check(cookies, Budget { losses: 1, closes: 2, ..NONE }, &[], 10);
        check(cookies, Budget { closes: 2, sends: 1, ..BAD_NETWORK }, &OPENING, 7);
        check(cookies, Budget { losses: 1, closes: 1, aborts: 1, sends: 1, ..NONE }, &[], 7);
    }
}
