//! Configuration of a connection.

use crate::ccid::Registry;
use crate::packet::ServiceCode;
use crate::queue::QueueConfig;
use std::sync::Arc;
use weir_units::{DataSize, TimeDelta};

/// The congestion control of both directions.
#[derive(Clone, PartialEq, Debug)]
pub struct Ccids {
    /// CCIDs for the data that this end sends, in order of preference; at least one.
    pub send: Vec<u8>,
    /// Likewise for the data that it receives.
    pub receive: Vec<u8>,
    /// Parameters of these CCIDs by number and name, in the units of their [`ParamInfo`](weir_cc::tunable::ParamInfo).
    pub params: Vec<(u8, String, f64)>,
}

impl Ccids {
    /// One CCID both ways, with its defaults.
    pub fn both(number: u8) -> Self {
        Self { send: vec![number], receive: vec![number], params: Vec::new() }
    }
}

impl Default for Ccids {
    /// CCID 2 in both directions, the protocol's default (RFC 4340, section 10).
    fn default() -> Self {
        Self::both(2)
    }
}

/// Configuration of a connection; negotiated values are those that this end requests.
#[derive(Clone, Debug)]
pub struct Config {
    /// This end's DCCP port.
    pub local_port: u16,
    /// The other end's DCCP port.
    pub remote_port: u16,
    /// The service requested, or offered.
    pub service_code: ServiceCode,
    /// Congestion control by number.
    pub registry: Arc<Registry>,
    /// Their CCIDs.
    pub ccids: Ccids,
    /// Whether packets are sent as ECN-capable if the other end agrees (ECN Incapable, RFC 4340, section 12.1).
    pub ecn: bool,
    /// Whether data and acknowledgements may have 24-bit sequence numbers (Allow Short Sequence Numbers, section 7.6.1).
    pub short_sequence_numbers: bool,
    /// Sequence Window: the number of valid sequence numbers around the newest, 32 to 2^46 - 1 (section 7.5.2; its
    /// default is 100). It should be several times the packets in flight, and widens by itself if it is less than five
    /// times those of a round trip.
    pub sequence_window: u64,
    /// CsCov of outgoing data packets, 0 to 15 (section 9.2); UDP's checksum covers all data in any case (RFC 6773, 3.3.1).
    pub checksum_coverage: u8,
    /// Minimum CsCov accepted in received data, 0 to 15 (Minimum Checksum Coverage).
    pub minimum_checksum_coverage: u8,
    /// Whether data is sent with its own CRC-32c (Data Checksum, section 9.3); a received one is always verified.
    pub data_checksum: bool,
    /// Whether Timestamp options are sent with data once per round trip, for round-trip times at both ends
    /// (section 13.1).
    pub timestamps: bool,
    /// The send queue.
    pub queue: QueueConfig,
    /// Maximum received datagrams waiting for the application; more are dropped, which is reported to the other end
    /// (Data Dropped).
    pub receive_capacity: usize,
    /// Size in bytes of IP packets that the path is known to carry; probing may raise it to [`Self::max_mtu`].
    pub initial_mtu: DataSize,
    /// Maximum IP packet size to probe, in bytes; equal to [`Self::initial_mtu`] for no probing (section 14).
    pub max_mtu: DataSize,
    /// Bytes of IP and UDP headers around each packet: 28 for IPv4, 48 for IPv6.
    pub header_overhead: DataSize,
    /// How long a silent other end is waited for when opening or closing before this end gives up (section 8.1.1: at
    /// least 3 minutes for TCP; section 8.3: a back-off of 64 s).
    pub give_up_after: TimeDelta,
    /// Interval of Syncs that test a silent connection, which is given up after [`Self::give_up_after`]; `None` never
    /// tests.
    pub keep_alive: Option<TimeDelta>,
    /// Duration of TIMEWAIT: two maximum segment lifetimes (section 8.3: 4 minutes).
    pub time_wait: TimeDelta,
    /// Seed of the initial sequence number and all other random draws.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            local_port: 5_004,
            remote_port: 5_004,
            service_code: ServiceCode::UNSPECIFIED,
            registry: Arc::new(Registry::builtin()),
            ccids: Ccids::default(),
            ecn: true,
            short_sequence_numbers: false,
            sequence_window: 10_000,
            checksum_coverage: 0,
            minimum_checksum_coverage: 0,
            data_checksum: false,
            timestamps: false,
            queue: QueueConfig::default(),
            receive_capacity: 1_024,
            initial_mtu: DataSize::from_bytes(1_500),
            max_mtu: DataSize::from_bytes(1_500),
            header_overhead: DataSize::from_bytes(28),
            give_up_after: TimeDelta::from_secs(180),
            keep_alive: None,
            time_wait: TimeDelta::from_secs(240),
            seed: 1,
        }
    }
}
