//! Layers over multicast groups, chosen by each receiver (receiver-driven layered multicast, RLM: S. McCanne, V. Jacobson and
//! M. Vetterli, "Receiver-driven Layered Multicast", SIGCOMM 1996).
//!
//! A source sends its stream in layers, each to a multicast group. A receiver joins groups from the lowest on until packets are
//! lost, and leaves the highest then. So each receiver behind any link finds the layers that its link carries, and the source
//! need not know of any. That is the other answer to many unlike receivers than a rate for all of them, which S. Jero, 2013,
//! sections 2.2.1 and 2.2.2, describes (a poor receiver should join a group of lower quality; two loss thresholds over the
//! reports of all).
//!
//! Joining is an experiment that hurts whoever shares the link if it fails. Two rules make it rare: an experiment with a layer
//! that failed is repeated after twice the time, and receivers *learn together*: each announces its experiment, and whoever loses
//! packets while one goes on takes that layer to be too much without trying it.
//!
//! [`LayeredReceiver`] has the paper's four states. *Steady*: a loss during an experiment ends it; another loss begins
//! *hysteresis*, which waits until what was lost is over, then *measurement*, in which a loss above the threshold drops the layer.
//! After a drop, *dropped* ignores losses for as long as the drop takes to have its effect. Times follow the measured delay
//! from an experiment to its loss. Numbers: [`LayeredConfig`].
//!
//! Own: `patience`. An experiment is put off while another receiver tries this layer or a lower one. With a thousand receivers some
//! low one always does, and whoever sends announcements without end would stop all: after some times in succession it is
//! made nevertheless.

mod config;
mod groups;
mod timers;

pub use config::{LayeredConfig, MAX_LAYERS};

use groups::Groups;
use timers::Timers;
use weir_units::{TimeDelta, Timestamp};

/// A thing that a receiver wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayerAction {
    /// Join the group of this layer, from 1 on.
    Join(u8),
    /// Leave it.
    Leave(u8),
    /// Announce to the others that it was joined.
    Announce(u8),
}

/// Counts of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LayeredCounters {
    /// Packets of joined layers received.
    pub received: u64,
    /// Packets of joined layers missing.
    pub lost: u64,
    /// Layers joined after the first.
    pub experiments: u64,
    /// Layers dropped.
    pub drops: u64,
    /// Announcements heard.
    pub heard: u64,
    /// Layers that were backed off because of another's experiment.
    pub learned: u64,
    /// Announcements and packets of layers that do not exist or are not joined, and packets with numbers of the past.
    pub ignored: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Steady,
    Hysteresis,
    Measurement,
    Dropped,
}

/// One receiver, sans-IO. It holds a few numbers a layer, whatever it is sent.
#[derive(Clone, Debug)]
pub struct LayeredReceiver {
    config: LayeredConfig,
    state: State,
    groups: Groups,
    timers: Timers,
    /// Received and lost when measurement began.
    measured_from: (u64, u64),
    /// Experiments put off in succession.
    put_off: u32,
    /// At most a join and an announcement, or a leave.
    actions: [Option<LayerAction>; 3],
    counters: LayeredCounters,
}

impl LayeredReceiver {
    /// A receiver that joins the first layer at once.
    pub fn new(config: LayeredConfig, now: Timestamp) -> Self {
        let mut receiver = Self {
            state: State::Steady,
            groups: Groups::new(&config),
            timers: Timers::new(&config),
            measured_from: (0, 0),
            put_off: 0,
            actions: [None; 3],
            counters: LayeredCounters::default(),
            config,
        };
        receiver.groups.join(now);
        receiver.act(LayerAction::Join(1));
        receiver.restart_join(now);
        receiver
    }

    /// The highest layer joined, from 1 on.
    pub fn level(&self) -> u8 {
        self.groups.level()
    }
    /// Its counts.
    pub fn counters(&self) -> LayeredCounters {
        self.counters
    }
    /// The next thing to be done; to be asked after each call until there is none.
    pub fn poll_action(&mut self) -> Option<LayerAction> {
        self.actions.iter_mut().find_map(Option::take)
    }
    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// A packet of a layer has arrived; each layer has its own sequence numbers.
    pub fn on_packet(&mut self, layer: u8, sequence: u16, now: Timestamp) {
        let Some(lost) = self.groups.on_packet(layer, sequence) else {
            self.counters.ignored += 1;
            return;
        };
        self.counters.received += 1;
        self.counters.lost += lost;
        if lost > 0 {
            self.on_loss(now);
        }
    }

    /// Another receiver has joined this layer as an experiment.
    pub fn on_announcement(&mut self, layer: u8, now: Timestamp) {
        if !self.config.learns || !self.groups.on_announcement(layer, now) {
            self.counters.ignored += 1;
            return;
        }
        self.counters.heard += 1;
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if self.timers.take_detection(now) {
            self.on_detection(now);
        }
        if self.timers.take_join(now) {
            self.try_layer(now);
            self.restart_join(now);
        }
    }

    fn act(&mut self, action: LayerAction) {
        if let Some(free) = self.actions.iter_mut().find(|a| a.is_none()) {
            *free = Some(action);
        }
    }
    fn restart_join(&mut self, now: Timestamp) {
        match self.groups.join_interval() {
            Some(interval) => self.timers.start_join(interval, now),
            None => self.timers.stop_join(),
        }
    }
    /// The time for which an experiment may still have an effect.
    fn recent(&self) -> TimeDelta {
        self.timers.detection(2.0)
    }

    fn try_layer(&mut self, now: Timestamp) {
        if self.state != State::Steady || !self.groups.receives_highest() {
            return;
        }
        if self.groups.is_tried_up_to_own(now, self.recent()) && self.put_off < self.config.patience {
            self.put_off += 1;
            return;
        }
        self.put_off = 0;
        if let Some(layer) = self.groups.join(now) {
            self.counters.experiments += 1;
            self.act(LayerAction::Join(layer));
            if self.config.learns {
                self.act(LayerAction::Announce(layer));
            }
        }
    }

    fn on_loss(&mut self, now: Timestamp) {
        match self.state {
            State::Hysteresis | State::Dropped => {}
            State::Measurement => {
                let (received, lost) =
                    (self.counters.received - self.measured_from.0, self.counters.lost - self.measured_from.1);
                let share = lost as f64 / (received + lost).max(1) as f64;
                if received >= self.config.least_packets && share > self.config.loss_threshold {
                    self.drop_layer(now);
                }
            }
            State::Steady => self.on_steady_loss(now),
        }
    }
    fn on_steady_loss(&mut self, now: Timestamp) {
        self.timers.stop_detection();
        if let Some((layer, since)) = self.groups.highest_tried(now, self.recent()) {
            self.groups.back_off(layer);
            if layer == self.level() {
                self.timers.on_detected(now.saturating_since(since));
                self.drop_layer(now);
                return;
            }
            self.counters.learned += 1;
            if layer == self.level() + 1 {
                // The other's experiment was as good as an own one.
                self.restart_join(now);
            }
        }
        if self.groups.is_joined_since(now, self.recent()) {
            self.measure(now);
        } else {
            self.state = State::Hysteresis;
            self.timers.start_detection(1.5, now);
        }
    }
    fn measure(&mut self, now: Timestamp) {
        self.state = State::Measurement;
        self.measured_from = (self.counters.received, self.counters.lost);
        let deviations = f64::from(self.level()) / 2.0 + 1.5;
        self.timers.start_detection(deviations, now);
    }
    fn drop_layer(&mut self, now: Timestamp) {
        if let Some(layer) = self.groups.leave() {
            self.counters.drops += 1;
            self.act(LayerAction::Leave(layer));
        }
        self.state = State::Dropped;
        self.timers.start_detection(1.5, now);
        self.restart_join(now);
    }
    fn on_detection(&mut self, now: Timestamp) {
        match self.state {
            State::Hysteresis => self.measure(now),
            State::Measurement | State::Dropped => {
                self.state = State::Steady;
                self.timers.start_detection(1.5, now);
            }
            State::Steady => {
                self.groups.relax();
                self.timers.start_detection(1.5, now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
