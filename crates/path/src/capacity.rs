use crate::opportunities::{Opportunities, Place};
use crate::schedule::{Cursor, Schedule};
use crate::token_bucket::{Bucket, TokenBucket};
use weir_units::cold_path;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// A link's transmission rate.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Capacity {
    /// Packets are transmitted at once and never wait.
    Unlimited,
    /// One rate; zero holds every packet for ever.
    Constant(DataRate),
    /// A rate that changes in steps.
    Schedule(Schedule),
    /// Recorded delivery opportunities.
    Opportunities(Opportunities),
}

impl Capacity {
    /// The rate at a time; recorded opportunities are counted over 100 ms, and an unlimited capacity returns the
    /// maximum rate.
    pub fn rate_at(&self, at: Timestamp) -> DataRate {
        match self {
            Self::Unlimited => DataRate::from_bps(u64::MAX),
            Self::Constant(rate) => *rate,
            Self::Schedule(s) => s.rate_at(at),
            Self::Opportunities(o) => o.rates().rate_at(at),
        }
    }

    /// The rate at a time, or in an outage the last one above zero.
    pub(crate) fn above_zero_at(&self, at: Timestamp) -> DataRate {
        match self {
            Self::Schedule(s) => s.above_zero_at(at),
            Self::Opportunities(o) => o.rates().above_zero_at(at),
            _ => self.rate_at(at),
        }
    }
}

/// When the packet at the head of the queue begins and ends its transmission.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    Unlimited,
    Constant {
        rate: DataRate,
        free_at: Timestamp,
        // Most packets have the size of the one before: this saves the division.
        last_bytes: u32,
        last_time: TimeDelta,
    },
    Schedule {
        schedule: Schedule,
        free_at: Timestamp,
        cursor: Cursor,
    },
    Opportunities {
        trace: Opportunities,
        place: Place,
    },
    Shaped(Box<Shaped>),
}

/// A transmitter behind a token bucket: a packet waits until the bucket is not below zero and then takes its tokens, even
/// if it has fewer. A burst may thus be larger than the bucket by less than a packet, and the time of a transmission
/// does not depend on which packet the queue selects.
#[derive(Clone, Debug)]
pub(crate) struct Shaped {
    line: Server,
    bucket: Bucket,
    /// When the bucket is not below zero.
    ready_at: Timestamp,
}

impl Server {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        match capacity {
            Capacity::Unlimited => Self::Unlimited,
            &Capacity::Constant(rate) => {
                Self::Constant { rate, free_at: Timestamp::ZERO, last_bytes: 0, last_time: TimeDelta::ZERO }
            }
            Capacity::Schedule(s) => {
                Self::Schedule { schedule: s.clone(), free_at: Timestamp::ZERO, cursor: Cursor::default() }
            }
            Capacity::Opportunities(o) => Self::Opportunities { trace: o.clone(), place: Place::default() },
        }
    }

    /// This transmitter behind a token bucket.
    pub(crate) fn shaped(self, bucket: &TokenBucket) -> Self {
        Self::Shaped(Box::new(Shaped { line: self, bucket: Bucket::new(bucket), ready_at: Timestamp::ZERO }))
    }

    /// Begins no transmission before `start`: the medium of a radio link has it then. Such a link has rates.
    pub(crate) fn hold_until(&mut self, start: Timestamp) {
        match self {
            Self::Constant { free_at, .. } | Self::Schedule { free_at, .. } => *free_at = start,
            Self::Unlimited | Self::Opportunities { .. } | Self::Shaped(_) => {}
        }
    }

    /// When a packet that arrived at `arrived` and is at the head begins its transmission.
    #[inline]
    pub(crate) fn next_start(&mut self, arrived: Timestamp) -> Timestamp {
        match self {
            Self::Unlimited => arrived,
            Self::Constant { free_at, .. } | Self::Schedule { free_at, .. } => arrived.max(*free_at),
            Self::Opportunities { trace, place } => {
                cold_path();
                trace.next_start(place, arrived)
            }
            Self::Shaped(shaped) => {
                cold_path();
                shaped.next_start(arrived)
            }
        }
    }

    /// Transmits the packet at the head: returns the beginning and the end, `Timestamp::MAX` for never.
    // Not a call, so that neither is returned in memory.
    #[inline(always)]
    pub(crate) fn serve(&mut self, arrived: Timestamp, bytes: u32) -> (Timestamp, Timestamp) {
        let size = DataSize::from_bytes(u64::from(bytes));
        match self {
            Self::Unlimited => (arrived, arrived),
            Self::Constant { rate, free_at, last_bytes, last_time } => {
                if bytes != *last_bytes {
                    (*last_bytes, *last_time) = (bytes, rate.time_for(size).unwrap_or(TimeDelta::MAX));
                }
                let start = arrived.max(*free_at);
                *free_at = start + *last_time;
                (start, *free_at)
            }
            Self::Schedule { schedule, free_at, cursor } => {
                let start = arrived.max(*free_at);
                *free_at = schedule.finish(cursor, start, size);
                (start, *free_at)
            }
            Self::Opportunities { trace, place } => {
                cold_path();
                trace.serve(place, arrived, u64::from(bytes))
            }
            Self::Shaped(shaped) => {
                cold_path();
                shaped.serve(arrived, bytes)
            }
        }
    }

    /// Whether packets take no time to transmit.
    pub(crate) fn is_unlimited(&self) -> bool {
        matches!(self, Self::Unlimited)
    }

    /// Whether a packet that arrives at `now` would be transmitted at once; `false` also where that takes a longer look.
    #[inline]
    pub(crate) fn is_surely_free(&self, now: Timestamp) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Constant { free_at, .. } | Self::Schedule { free_at, .. } => *free_at <= now,
            Self::Opportunities { .. } | Self::Shaped(_) => false,
        }
    }

    /// When a packet that arrives at `now` behind `size` of queued bytes would begin its transmission; `Timestamp::MAX`
    /// for never.
    pub(crate) fn start_behind(&self, now: Timestamp, size: DataSize) -> Timestamp {
        match self {
            Self::Unlimited => now,
            Self::Constant { free_at, .. } | Self::Schedule { free_at, .. } if size.is_zero() => now.max(*free_at),
            Self::Constant { rate, free_at, .. } => now.max(*free_at) + rate.time_for(size).unwrap_or(TimeDelta::MAX),
            Self::Schedule { schedule, free_at, cursor } => {
                schedule.finish(&mut cursor.clone(), now.max(*free_at), size)
            }
            Self::Opportunities { trace, place } => {
                let mut place = *place;
                if !size.is_zero() {
                    trace.serve(&mut place, now, size.as_bytes());
                }
                trace.next_start(&mut place, now)
            }
            Self::Shaped(shaped) => {
                let mut bucket = shaped.bucket.clone();
                bucket.charge(now, size.as_bytes());
                shaped.line.start_behind(now, size).max(bucket.settled_at())
            }
        }
    }
}

// Out of line, so that it does not burden links without a shaper.
impl Shaped {
    #[inline(never)]
    fn next_start(&mut self, arrived: Timestamp) -> Timestamp {
        self.line.next_start(arrived.max(self.ready_at))
    }

    #[inline(never)]
    fn serve(&mut self, arrived: Timestamp, bytes: u32) -> (Timestamp, Timestamp) {
        let (start, end) = self.line.serve(arrived.max(self.ready_at), bytes);
        self.bucket.charge(start, bytes.into());
        self.ready_at = self.bucket.settled_at();
        (start, end)
    }
}
