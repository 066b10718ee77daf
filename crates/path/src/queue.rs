//! Queue disciplines: which packets a link's queue accepts, marks and drops, each with a name and a file.
//!
//! [`Queue`] is a discipline's behaviour, [`Definition`] its name and parameters. A link runs the [`Discipline`] in its
//! configuration without knowing which ones exist. A new one needs a file with a `Config` and a queue, and a line in
//! the list below; scenario files, their schema and the command line find it there with its parameters.
//!
//! ```
//! use weir_path::queue::{Discipline, Value};
//! use weir_units::TimeDelta;
//! let mut codel = Discipline::by_name("codel").expect("a discipline");
//! codel.set("target", Value::Time(TimeDelta::from_millis(10)))?;
//! assert_eq!(codel.get("interval"), Some(Value::Time(TimeDelta::from_millis(100))));
//! assert!(codel.set("target", Value::Switch(true)).is_err());
//! # Ok::<(), weir_path::ConfigError>(())
//! ```
//!
//! A queue discipline owns its packets, and accounts for them. `path::queue::Ledger` is the only means to drop or
//! mark, and counts it. Disciplines are an enum generated from one list: trait objects would slow the hot path.
//! Counters (`path::Action`, `DropReason`) are matched without a catch-all, so that the compiler reports each place
//! for a new reason.

mod classes;
pub mod codel;
mod discipline;
pub mod drop_tail;
pub mod dualpi2;
mod fifo;
pub mod fq_codel;
mod parameter;
pub mod pie;
mod queued;
pub mod red;
mod stations;
pub mod strict_priority;
pub mod weighted_round_robin;
pub mod wred;

pub use discipline::{Definition, Queue, Setup};
pub use fifo::{Backlog, Fifo, Room};
pub use parameter::{Parameter, Parameters, Setting, Value};
pub(crate) use queued::Discarded;
pub use queued::{Ledger, Queued};
pub(crate) use stations::Stations;

use crate::error::ConfigError;
use crate::stats::DropReason;
use weir_units::Timestamp;
use weir_units::cold_path;

/// An operation on a queue of any discipline, compiled for each.
pub(crate) trait Visit<P> {
    type Output;
    fn visit<Q: Queue<P>>(self, queue: &mut Q) -> Self::Output;
    /// The same on the queues of a radio link, which serves them otherwise.
    fn visit_stations(self, stations: &mut Stations<P>) -> Self::Output;
}

macro_rules! disciplines {
    ($($variant:ident($module:ident),)+) => {
        /// A queue discipline and its parameters.
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[expect(missing_docs, reason = "each is described by its module")]
        #[non_exhaustive]
        pub enum Discipline {
            $($variant($module::Config),)+
        }

        impl Discipline {
            /// All disciplines with their default parameters.
            pub fn all() -> Vec<Self> {
                vec![$(Self::$variant($module::Config::default()),)+]
            }
            /// The name in scenario files and on the command line.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$module::Config as Definition>::NAME,)+ }
            }
            /// Its description, in one line.
            pub const fn summary(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$module::Config as Definition>::SUMMARY,)+ }
            }
            /// Its specification.
            pub const fn source(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$module::Config as Definition>::SOURCE,)+ }
            }
            /// Its parameters.
            pub fn parameters(&self) -> Vec<Parameter> {
                match self { $(Self::$variant(_) => <$module::Config as Parameters>::parameters(),)+ }
            }
            /// The value of a parameter.
            pub fn get(&self, name: &str) -> Option<Value> {
                match self { $(Self::$variant(c) => c.get(name),)+ }
            }
            /// Sets a parameter. Errors: an unknown name, or a value of another kind or out of range.
            pub fn set(&mut self, name: &str, value: Value) -> Result<(), ConfigError> {
                match self { $(Self::$variant(c) => c.set(name, value),)+ }
            }
            pub(crate) fn check(&self) -> Result<(), ConfigError> {
                match self { $(Self::$variant(c) => c.check(),)+ }
            }
            pub(crate) fn queue<P>(&self, setup: Setup) -> AnyQueue<P> {
                match self { $(Self::$variant(c) => AnyQueue::$variant(c.queue(setup)),)+ }
            }
        }

        /// A queue of any discipline, without a trait object, so that branch prediction can learn which one a link has.
        #[derive(Clone, Debug)]
        pub(crate) enum AnyQueue<P> {
            $($variant($module::Queue<P>),)+
            /// Those of a radio link's stations. Boxed, so that other links are not larger.
            Stations(Box<Stations<P>>),
        }

        impl<P> AnyQueue<P> {
            /// Runs an operation with the queue's type.
            // A branch and not a call for the common discipline.
            #[inline(always)]
            pub(crate) fn visit<V: Visit<P>>(&mut self, visit: V) -> V::Output {
                match self {
                    $(Self::$variant(q) => visit.visit(q),)+
                    Self::Stations(stations) => {
                        cold_path();
                        visit.visit_stations(stations)
                    }
                }
            }
        }

        impl<P> Queue<P> for AnyQueue<P> {
            #[inline]
            fn admit(
                &mut self,
                now: Timestamp,
                packet: &mut Queued<P>,
                ledger: &mut Ledger<P>,
            ) -> Result<(), DropReason> {
                match self {
                    $(Self::$variant(q) => q.admit(now, packet, ledger),)+
                    Self::Stations(q) => q.admit(now, packet, ledger),
                }
            }
            #[inline]
            fn put(&mut self, packet: Queued<P>) {
                match self {
                    $(Self::$variant(q) => q.put(packet),)+
                    Self::Stations(q) => q.put(packet),
                }
            }
            fn may_be_passed_by(&self) -> bool {
                match self {
                    $(Self::$variant(q) => q.may_be_passed_by(),)+
                    Self::Stations(q) => q.may_be_passed_by(),
                }
            }
            #[inline]
            fn dequeue(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
                match self {
                    $(Self::$variant(q) => q.dequeue(now, ledger),)+
                    Self::Stations(q) => q.dequeue(now, ledger),
                }
            }
            #[inline]
            fn head_arrival(&self) -> Option<Timestamp> {
                match self {
                    $(Self::$variant(q) => q.head_arrival(),)+
                    Self::Stations(q) => {
                        cold_path();
                        q.head_arrival()
                    }
                }
            }
            #[inline]
            fn packets(&self) -> usize {
                match self {
                    $(Self::$variant(q) => q.packets(),)+
                    Self::Stations(q) => {
                        cold_path();
                        q.packets()
                    }
                }
            }
            #[inline]
            fn bytes(&self) -> u64 {
                match self {
                    $(Self::$variant(q) => q.bytes(),)+
                    Self::Stations(q) => {
                        cold_path();
                        q.bytes()
                    }
                }
            }
            #[inline]
            fn next_drop(&self) -> Option<Timestamp> {
                match self {
                    $(Self::$variant(q) => q.next_drop(),)+
                    Self::Stations(q) => q.next_drop(),
                }
            }
        }
    };
}

// One line per discipline.
disciplines! {
    DropTail(drop_tail),
    CoDel(codel),
    Pie(pie),
    DualPi2(dualpi2),
    FqCoDel(fq_codel),
    Red(red),
    StrictPriority(strict_priority),
    WeightedRoundRobin(weighted_round_robin),
    Wred(wred),
}

impl Default for Discipline {
    fn default() -> Self {
        Self::DropTail(drop_tail::Config::default())
    }
}

impl Discipline {
    /// Whether it distinguishes packets by their code points.
    pub const fn has_classes(&self) -> bool {
        matches!(self, Self::StrictPriority(_) | Self::WeightedRoundRobin(_) | Self::Wred(_))
    }

    /// The discipline of this name with its default parameters.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|d| d.name() == name)
    }
}

#[cfg(test)]
mod tests;
