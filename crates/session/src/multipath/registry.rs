//! The schedulers by name: list and dispatch.

use super::characterisation::PathReport;
use super::scheduler::{Named, PathSet, PathView, Scheduled, Scheduler, SchedulerSpec};
use weir_units::{DataRate, PathId};

macro_rules! schedulers {
    ($($variant:ident($scheduler:ty)),* $(,)?) => {
        /// A scheduler of the list.
        #[derive(Clone, Debug)]
        pub enum AnyScheduler {
            $(#[doc = concat!("`", stringify!($scheduler), "`")] $variant(Box<$scheduler>),)*
        }

        /// All schedulers.
        pub const SCHEDULERS: &[SchedulerSpec] = &[$(<$scheduler as Named>::SPEC,)*];

        impl AnyScheduler {
            /// The scheduler of a name; `None` if [`SCHEDULERS`] lacks it.
            pub fn named(name: &str) -> Option<Self> {
                $(if name == <$scheduler as Named>::SPEC.name {
                    return Some(Self::$variant(Box::default()));
                })*
                None
            }
        }

        impl Scheduler for AnyScheduler {
            fn choose(&mut self, packet: &Scheduled, paths: &[PathView]) -> PathSet {
                match self { $(Self::$variant(s) => s.choose(packet, paths),)* }
            }
            fn media_rate(&self, paths: &[PathView]) -> DataRate {
                match self { $(Self::$variant(s) => s.media_rate(paths),)* }
            }
            fn on_report(&mut self, path: PathId, report: &PathReport) {
                match self { $(Self::$variant(s) => s.on_report(path, report),)* }
            }
        }
    };
}

impl Default for AnyScheduler {
    /// `earliest`.
    fn default() -> Self {
        Self::Earliest(Box::default())
    }
}

schedulers! {
    BestPath(super::best_path::BestPath),
    Earliest(super::earliest::Earliest),
    FecAware(super::fec_aware::FecAware),
    FrameAligned(super::frame_aligned::FrameAligned),
    Redundant(super::redundant::Redundant),
    RoundRobin(super::round_robin::RoundRobin),
    Thesis(super::thesis::Thesis),
}
