//! Opening (RFC 4340, section 8.1).

use super::outgoing::{Due, Sending};
use super::sequence::{Seen, Sequences};
use super::timers::Timers;
use super::timing::Timing;
use super::{Config, Connection, Counters, Datagram, Role, State};
use super::{RESETS_PER_SECOND, SYNC_ACKS_PER_SECOND, SYNCS_PER_SECOND};
use crate::connection::{ccids::Halves, dropped::Dropped, limit::RateLimit, mtu::PathMtu, receive_queue::ReceiveQueue};
use crate::feature::Negotiation;
use crate::packet::{PacketError, PacketType, parse};
use crate::queue::SendQueue;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_cc::tunable::{ParamInfo, SetupError};
use weir_units::{Seq48, TimeDelta, Timestamp};

/// First interval to the next Request, and the maximum (RFC 4340, section 8.1.1).
const REQUEST_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// First interval to the next Ack in PARTOPEN (section 8.1.5).
const PARTOPEN_INTERVAL: TimeDelta = TimeDelta::from_millis(200);

/// Why a server's end could not be created.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The configuration is not one.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The datagram is no packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The packet is no Request.
    #[error("a connection begins with a DCCP-Request, not with a {0}")]
    NotARequest(PacketType),
}

impl Connection {
    /// A client's end, which sends a Request.
    ///
    /// # Errors
    /// A CCID that the registry does not have, an invalid parameter of it, or a number of the configuration outside its
    /// range.
    pub fn connect(config: Config, now: Timestamp) -> Result<Self, SetupError> {
        let mut connection = Self::new(config, Role::Client, State::Request, None, now)?;
        connection.due.request = true;
        connection.timers.retransmit.start(now, REQUEST_INTERVAL);
        connection.timers.give_up = Some(now + connection.config.give_up_after);
        Ok(connection)
    }

    /// A server's end, created from a Request that a listener has accepted: the listener checks ports and service code.
    /// [`Self::poll_transmit`] returns the Response.
    ///
    /// `iss` is the initial sequence number, for listeners whose Init Cookies contain it; `None` draws one. Such a
    /// listener creates the connection again from the same Request and number when the cookie returns, and drops the
    /// Response.
    ///
    /// # Errors
    /// See [`AcceptError`].
    pub fn accept(
        config: Config,
        now: Timestamp,
        request: &Datagram<'_>,
        iss: Option<Seq48>,
    ) -> Result<Self, AcceptError> {
        let packet = parse(request.bytes, request.payload)?;
        if packet.header.packet_type != PacketType::Request {
            return Err(AcceptError::NotARequest(packet.header.packet_type));
        }
        // Step 3: a new socket in RESPOND, its numbers from the packet.
        let mut connection = Self::new(config, Role::Server, State::Respond, iss, now)?;
        connection.config.remote_port = packet.header.source_port;
        connection.config.local_port = packet.header.destination_port;
        connection.sequences.begin(packet.header.sequence.extend(Seq48::default()));
        // Section 8.1.3: not less than 4 MSL.
        let wait = connection.config.give_up_after.max(connection.config.time_wait * 2);
        connection.timers.give_up = Some(now + wait);
        connection.handle_datagram(now, request);
        Ok(connection)
    }

    /// Init Cookies to be carried by the Response; the client returns them (section 8.1.4).
    pub fn set_init_cookies(&mut self, cookies: &[&[u8]]) {
        self.cookies.clear();
        cookies.iter().for_each(|c| self.push_cookie(c));
    }

    pub(super) fn push_cookie(&mut self, cookie: &[u8]) {
        // Longer ones do not fit an option; a header holds at most four.
        if cookie.len() <= 253 && self.cookies.len() + cookie.len() < 1_020 {
            self.cookies.push(cookie.len() as u8);
            self.cookies.extend_from_slice(cookie);
        }
    }

    fn new(config: Config, role: Role, state: State, iss: Option<Seq48>, now: Timestamp) -> Result<Self, SetupError> {
        check(&config)?;
        Halves::check(&config, now)?;
        // Section 7.2: the number cannot be guessed without the seed.
        let mut random = Pcg64Mcg::seed_from_u64(config.seed);
        let iss = iss.unwrap_or_else(|| Seq48::new(random.random()));
        let most = config.max_mtu.max(config.initial_mtu).as_bytes() as usize;
        Ok(Self {
            role,
            state,
            end: None,
            sequences: Sequences::new(iss),
            seen: Seen::new(),
            features: Negotiation::new(&config, role == Role::Server),
            halves: Halves::default(),
            queue: SendQueue::new(config.queue),
            received: ReceiveQueue::new(config.receive_capacity, config.receive_capacity.saturating_mul(most)),
            dropped: Dropped::default(),
            timing: Timing::default(),
            timers: Timers::default(),
            mtu: PathMtu::new(&config),
            due: Due::default(),
            sending: Sending::default(),
            cookies: Vec::new(),
            cookies_of_this_response: false,
            syncs: RateLimit::new(SYNCS_PER_SECOND),
            sync_acks: RateLimit::new(SYNC_ACKS_PER_SECOND),
            resets: RateLimit::new(RESETS_PER_SECOND),
            deaf: false,
            peer_deaf: false,
            reset_text: Box::default(),
            slow_receiver: false,
            peer_slow_at: None,
            counters: Counters::default(),
            config,
        })
    }

    /// REQUEST to PARTOPEN (step 10).
    pub(super) fn enter_partopen(&mut self, now: Timestamp) {
        self.state = State::PartOpen;
        self.due.request = false;
        self.timers.retransmit.start(now, PARTOPEN_INTERVAL);
        // Section 8.1.5: 4 MSL.
        self.timers.give_up = Some(now + self.config.give_up_after.max(self.config.time_wait * 2));
    }

    /// RESPOND or PARTOPEN to OPEN (steps 11 and 12).
    pub(super) fn enter_open(&mut self, now: Timestamp, sequence: Seq48) {
        self.sequences.osr = Some(sequence);
        self.state = State::Open;
        self.due.response = false;
        self.cookies = Vec::new();
        self.sending.too_long_for_partopen = false;
        self.timers.retransmit.stop();
        self.timers.give_up = if self.halves.numbers.is_some() { None } else { Some(now + self.config.give_up_after) };
        self.timers.heard(now, &self.config);
        self.mtu.start(now);
    }
}

fn check(config: &Config) -> Result<(), SetupError> {
    let within = |name, value: f64, min: f64, max: f64| {
        if (min..=max).contains(&value) {
            return Ok(());
        }
        let doc = "see the configuration of a connection";
        let param = ParamInfo { name, doc, unit: "1", default: min, min, max };
        Err(SetupError::OutOfRange { controller: "dccp".into(), param, value })
    };
    within("checksum_coverage", config.checksum_coverage.into(), 0.0, 15.0)?;
    within("minimum_checksum_coverage", config.minimum_checksum_coverage.into(), 0.0, 15.0)?;
    within("sequence_window", config.sequence_window as f64, 32.0, ((1u64 << 46) - 1) as f64)?;
    // The maximum of a list in feature negotiation.
    within("ccids.send", config.ccids.send.len() as f64, 1.0, 16.0)?;
    within("ccids.receive", config.ccids.receive.len() as f64, 1.0, 16.0)?;
    within("receive_capacity", config.receive_capacity as f64, 1.0, 1e6)?;
    let overhead = config.header_overhead.as_bytes() as f64;
    within("initial_mtu", config.initial_mtu.as_bytes() as f64, overhead + 200.0, 65_535.0)?;
    within("max_mtu", config.max_mtu.as_bytes() as f64, config.initial_mtu.as_bytes() as f64, 65_535.0)
}
