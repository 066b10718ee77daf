use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// How fast a link transmits.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Capacity {
    /// Packets leave at once and never wait.
    Unlimited,
    /// One rate; zero holds every packet for ever.
    Constant(DataRate),
}

/// When the packet at the head of the queue begins and ends its transmission.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    Unlimited,
    Constant(ConstantServer),
}

#[derive(Clone, Debug)]
pub(crate) struct ConstantServer {
    rate: DataRate,
    free_at: Timestamp,
    // Most packets are as long as the one before: this saves the division.
    last_bytes: u32,
    last_time: TimeDelta,
}

impl Server {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        match capacity {
            Capacity::Unlimited => Self::Unlimited,
            &Capacity::Constant(rate) => Self::Constant(ConstantServer {
                rate,
                free_at: Timestamp::ZERO,
                last_bytes: 0,
                last_time: TimeDelta::ZERO,
            }),
        }
    }

    /// When a packet that came at `arrived` and is at the head begins its transmission.
    #[inline]
    pub(crate) fn next_start(&self, arrived: Timestamp) -> Timestamp {
        match self {
            Self::Unlimited => arrived,
            Self::Constant(c) => c.free_at.max(arrived),
        }
    }

    /// Transmits the packet at the head: the beginning and the end.
    #[inline]
    pub(crate) fn serve(&mut self, arrived: Timestamp, bytes: u32) -> (Timestamp, Timestamp) {
        match self {
            Self::Unlimited => (arrived, arrived),
            Self::Constant(c) => {
                if bytes != c.last_bytes {
                    c.last_bytes = bytes;
                    let size = DataSize::from_bytes(u64::from(bytes));
                    c.last_time = c.rate.time_for(size).unwrap_or(TimeDelta::MAX);
                }
                let start = c.free_at.max(arrived);
                c.free_at = start + c.last_time;
                (start, c.free_at)
            }
        }
    }

    /// When a packet that comes at `now` behind `bytes` waiting would begin its transmission; `Timestamp::MAX` for never.
    pub(crate) fn start_behind(&self, now: Timestamp, bytes: u64) -> Timestamp {
        match self {
            Self::Unlimited => now,
            Self::Constant(c) => {
                let wait = c.rate.time_for(DataSize::from_bytes(bytes)).unwrap_or(TimeDelta::MAX);
                c.free_at.max(now) + if bytes == 0 { TimeDelta::ZERO } else { wait }
            }
        }
    }

    /// The rate at `at`; an unlimited link has the highest that can be written.
    pub(crate) fn rate_at(&self, _at: Timestamp) -> DataRate {
        match self {
            Self::Unlimited => DataRate::from_bps(u64::MAX),
            Self::Constant(c) => c.rate,
        }
    }
}
