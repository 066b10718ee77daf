//! SRTP and SRTCP (RFC 3711, RFC 7714) by rtc-srtp, with keys that the ends exchange in SDP (RFC 4568).
//!
//! Of the libraries examined, this one is maintained, needs only a Rust and C toolchain, and reaches the speed that
//! `weir bench live` measures. There is no DTLS-SRTP here: keys are sent by the signalling channel, which has to be
//! secure.
//!
//! SRTP's keys are in SDP (RFC 4568); there is no DTLS-SRTP.

mod cycles;
mod replay;

use cycles::{Source, Suspects};
use replay::ReplayLists;
use rtc_crypto::default_provider;
use rtc_rtp::Header;
use rtc_srtp::context::Context;
use rtc_srtp::option::{srtcp_replay_protection, srtp_replay_protection};
use rtc_srtp::protection_profile::ProtectionProfile;
use weir_session::multipath::MAX_PATHS;
use weir_units::PathId;
use weir_wire::rtp::PacketView;
use weir_wire::rtp::mprtp::SubflowNumber;
use weir_wire::{DatagramKind, kind_of};

/// Reordered packets within this window are distinguished from replays (RFC 3711, section 3.3.2, requires at least 64).
const REPLAY_WINDOW: usize = 2_048;
/// Maximum sources of a call: media, repair and retransmission, and those of restarted peers.
const MAX_SOURCES: usize = 64;
/// Unknown sources tried unsuccessfully before the library's state for them is dropped.
const MAX_TRIALS: usize = 64;

/// A cipher suite of SDES.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Suite {
    /// AES-GCM with 128-bit keys (RFC 7714).
    #[default]
    AeadAes128Gcm,
    /// AES-GCM with 256-bit keys (RFC 7714).
    AeadAes256Gcm,
    /// AES counter mode with HMAC-SHA1, 80-bit tags (RFC 3711; RFC 4568, section 6.2.1).
    AesCm128HmacSha1_80,
    /// The same with 32-bit tags (RFC 4568, section 6.2.2).
    AesCm128HmacSha1_32,
}

impl Suite {
    /// All of them, in the order of offers: the fastest first.
    pub const ALL: [Self; 4] =
        [Self::AeadAes128Gcm, Self::AesCm128HmacSha1_80, Self::AeadAes256Gcm, Self::AesCm128HmacSha1_32];

    /// Its name in SDP (RFC 4568, section 6.2; RFC 7714, section 14.2).
    pub const fn name(self) -> &'static str {
        match self {
            Self::AeadAes128Gcm => "AEAD_AES_128_GCM",
            Self::AeadAes256Gcm => "AEAD_AES_256_GCM",
            Self::AesCm128HmacSha1_80 => "AES_CM_128_HMAC_SHA1_80",
            Self::AesCm128HmacSha1_32 => "AES_CM_128_HMAC_SHA1_32",
        }
    }
    /// The suite of a name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }
    const fn profile(self) -> ProtectionProfile {
        match self {
            Self::AeadAes128Gcm => ProtectionProfile::AeadAes128Gcm,
            Self::AeadAes256Gcm => ProtectionProfile::AeadAes256Gcm,
            Self::AesCm128HmacSha1_80 => ProtectionProfile::Aes128CmHmacSha1_80,
            Self::AesCm128HmacSha1_32 => ProtectionProfile::Aes128CmHmacSha1_32,
        }
    }
    /// Bytes of master key and master salt together.
    pub fn key_len(self) -> usize {
        self.profile().key_len() + self.profile().salt_len()
    }
    /// Bytes that protection adds to an RTP packet.
    pub fn rtp_overhead(self) -> usize {
        self.profile().rtp_auth_tag_len() + self.profile().aead_auth_tag_len()
    }
}

/// A suite with master key and salt of one direction.
#[derive(Clone, PartialEq, Eq)]
pub struct SrtpKey {
    suite: Suite,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for SrtpKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SrtpKey({}, secret)", self.suite.name())
    }
}

/// Why packets cannot be protected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SrtpError {
    /// Key and salt do not have the suite's length.
    #[error("SRTP key for {suite} has {found} bytes: expected {expected} of key and salt")]
    KeyLength {
        /// The suite.
        suite: &'static str,
        /// Bytes found.
        found: usize,
        /// Bytes expected.
        expected: usize,
    },
    /// The system provides no random numbers.
    #[error("the system gives no random numbers for an SRTP key: {0}")]
    Random(String),
    /// The library refuses.
    #[error("SRTP: {0}")]
    Library(String),
}

impl SrtpKey {
    /// A suite with these bytes of master key, then master salt.
    ///
    /// # Errors
    /// Their length is not [`Suite::key_len`].
    pub fn new(suite: Suite, bytes: Vec<u8>) -> Result<Self, SrtpError> {
        let (found, expected) = (bytes.len(), suite.key_len());
        if found != expected {
            return Err(SrtpError::KeyLength { suite: suite.name(), found, expected });
        }
        Ok(Self { suite, bytes })
    }
    /// A new key from the system's randomness.
    ///
    /// # Errors
    /// The system provides none.
    pub fn random(suite: Suite) -> Result<Self, SrtpError> {
        let mut bytes = vec![0; suite.key_len()];
        getrandom::fill(&mut bytes).map_err(|e| SrtpError::Random(e.to_string()))?;
        Self::new(suite, bytes)
    }
    /// The suite.
    pub fn suite(&self) -> Suite {
        self.suite
    }
    /// Master key, then master salt.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn context(&self) -> Result<Context, SrtpError> {
        self.context_with(true)
    }

    /// A context with or without the library's replay protection of RTP.
    fn context_with(&self, lists_rtp: bool) -> Result<Context, SrtpError> {
        let library = |e: &dyn std::fmt::Display| SrtpError::Library(e.to_string());
        let provider = default_provider().map_err(|e| library(&e))?;
        let (key, salt) = self.bytes.split_at(self.suite.profile().key_len());
        let replay = (srtp_replay_protection(REPLAY_WINDOW), srtcp_replay_protection(REPLAY_WINDOW));
        let rtp = lists_rtp.then_some(replay.0);
        Context::new(key, salt, self.suite.profile(), rtp, Some(replay.1), provider.crypto()).map_err(|e| library(&e))
    }
}

/// Counters of protected packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SrtpCounters {
    /// Packets that were authenticated.
    pub accepted: u64,
    /// Packets that were forged, damaged, replayed, or not protected.
    pub refused: u64,
    /// Wraps of a source's sequence numbers found by trying, since they were not seen: by packets refused until then.
    pub wraps_found: u64,
}

/// A call's protection: one key per direction.
pub struct SrtpSession {
    outgoing: Context,
    incoming: Context,
    key: SrtpKey,
    /// Sources of authenticated packets: RTP in the lower half, RTCP with bit 32 set.
    authenticated: Vec<Source>,
    suspects: Suspects,
    /// Tries unknown sources, since the library keeps state for each, authentic or not.
    trial: Context,
    trials: usize,
    header: Header,
    /// With several paths: the header extension that names a packet's path, and what was received on each.
    by_path: Option<(u8, ReplayLists)>,
    counters: SrtpCounters,
}

impl std::fmt::Debug for SrtpSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SrtpSession").field("key", &self.key).field("counters", &self.counters).finish_non_exhaustive()
    }
}

/// Marks a source of RTCP.
const RTCP: u64 = 1 << 32;

impl SrtpSession {
    /// Protection with this end's key for packets sent and the other's for packets received.
    ///
    /// # Errors
    /// The library refuses a key.
    pub fn new(outgoing: &SrtpKey, incoming: &SrtpKey) -> Result<Self, SrtpError> {
        Ok(Self {
            outgoing: outgoing.context()?,
            incoming: incoming.context()?,
            trial: incoming.context()?,
            key: incoming.clone(),
            authenticated: Vec::with_capacity(8),
            suspects: Suspects::default(),
            trials: 0,
            header: Header { version: 2, ..Header::default() },
            by_path: None,
            counters: SrtpCounters::default(),
        })
    }

    /// Accepts a copy of each packet on every path of a call with several, whose number is in the header extension with
    /// this identifier. Before any packet is received.
    ///
    /// # Errors
    /// The library refuses a key.
    pub fn accept_copies(&mut self, subflow_id: u8) -> Result<(), SrtpError> {
        self.incoming = self.key.context_with(false)?;
        self.by_path = Some((subflow_id, ReplayLists::default()));
        Ok(())
    }

    /// Counters of the packets received.
    pub fn counters(&self) -> SrtpCounters {
        self.counters
    }

    /// The library needs its own header type only for the payload's offset, sequence number and SSRC. Its parser of
    /// extensions would lose padding between them, and with it the payload's offset.
    fn header_of(&mut self, view: &PacketView<'_>) {
        let h = &mut self.header;
        h.sequence_number = view.sequence();
        h.ssrc = view.ssrc();
        h.extension = view.header_len() > 12;
        h.extensions_padding = view.header_len().saturating_sub(16);
    }

    /// Protects an RTP or RTCP datagram of this end; returns the datagram to send.
    ///
    /// # Errors
    /// It is neither, or the key is exhausted (2^48 packets).
    pub fn protect(&mut self, datagram: &[u8]) -> Result<impl std::ops::Deref<Target = [u8]> + use<>, SrtpError> {
        let library = |e: &dyn std::fmt::Display| SrtpError::Library(e.to_string());
        if kind_of(datagram) == Some(DatagramKind::Rtcp) {
            return self.outgoing.encrypt_rtcp(datagram).map_err(|e| library(&e));
        }
        let view = PacketView::parse_header(datagram).map_err(|e| library(&e))?;
        self.header_of(&view);
        self.outgoing.encrypt_rtp_with_header(datagram, &self.header).map_err(|e| library(&e))
    }

    /// The datagram inside a protected one; `None` if it is not authentic, which is counted.
    pub fn open(&mut self, datagram: &[u8]) -> Option<impl std::ops::Deref<Target = [u8]> + use<>> {
        let opened = self.try_open(datagram);
        match opened {
            Some(_) => self.counters.accepted += 1,
            None => self.counters.refused += 1,
        }
        opened
    }

    fn try_open(&mut self, datagram: &[u8]) -> Option<bytes::BytesMut> {
        if kind_of(datagram)? == DatagramKind::Rtcp {
            // Unencrypted SRTCP is never negotiated here (RFC 4568, section 6.3.2), and the library would not
            // authenticate it.
            let flag = datagram.len().checked_sub(self.key.suite.profile().rtcp_auth_tag_len() + 4)?;
            if datagram.get(flag)? & 0x80 == 0 {
                return None;
            }
            let ssrc = datagram.get(4..8)?;
            let ssrc = u32::from_be_bytes(ssrc.try_into().ok()?);
            if self.source(RTCP | u64::from(ssrc)).is_none() {
                self.begin_trial()?;
                self.trial.decrypt_rtcp(datagram).ok()?;
                self.accept(RTCP | u64::from(ssrc))?;
            }
            return self.incoming.decrypt_rtcp(datagram).ok();
        }
        let view = PacketView::parse_header(datagram).ok()?;
        self.header_of(&view);
        let source = u64::from(view.ssrc());
        let named =
            |id| SubflowNumber::from_data(view.extension(id)?).map(|n| u8::try_from(n.subflow).unwrap_or(u8::MAX));
        let path = self.by_path.as_ref().map(|(id, _)| PathId::new(named(*id).unwrap_or(0)));
        let (ssrc, sequence) = (view.ssrc(), view.sequence());
        if let (Some((_, lists)), Some(path)) = (&self.by_path, path)
            && (path.index() >= MAX_PATHS || !lists.is_new(path, ssrc, sequence))
        {
            return None;
        }
        let opened = match self.open_rtp(datagram, source) {
            Some(opened) => {
                self.source(source)?.on_opened(sequence);
                opened
            }
            None => self.open_in_another_cycle(datagram, ssrc, sequence)?,
        };
        if let (Some((_, lists)), Some(path)) = (&mut self.by_path, path) {
            lists.insert(path, ssrc, sequence);
        }
        Some(opened)
    }

    fn source(&mut self, id: u64) -> Option<&mut Source> {
        self.authenticated.iter_mut().find(|s| s.id == id)
    }

    /// Opens an RTP packet in the cycle of sequence numbers that the library guesses.
    fn open_rtp(&mut self, datagram: &[u8], source: u64) -> Option<bytes::BytesMut> {
        let context = match self.authenticated.iter_mut().find(|s| s.id == source) {
            Some(known) => known.own.as_deref_mut(),
            None => {
                self.begin_trial()?;
                self.trial.decrypt_rtp_with_header(datagram, &self.header).ok()?;
                self.accept(source)?;
                None
            }
        };
        context.unwrap_or(&mut self.incoming).decrypt_rtp_with_header(datagram, &self.header).ok()
    }

    /// A packet was refused. If all of its source are, tries it in another cycle.
    #[cold]
    fn open_in_another_cycle(&mut self, datagram: &[u8], ssrc: u32, sequence: u16) -> Option<bytes::BytesMut> {
        let id = u64::from(ssrc);
        let (index, (context, opened)) = match self.source(id) {
            Some(source) => {
                let mut others = source.on_refused(sequence)?;
                others.find_map(|index| Some((index, self.open_at(datagram, index)?)))?
            }
            None => {
                let index = self.suspects.on_refused(ssrc, sequence)?;
                let opened = self.open_at(datagram, index)?;
                self.suspects.forget(ssrc);
                self.accept(id)?;
                (index, opened)
            }
        };
        self.counters.wraps_found += 1;
        self.source(id)?.go_on_at(index, context);
        Some(opened)
    }

    /// Opens a packet whose index is this one, in a context of its own.
    fn open_at(&self, datagram: &[u8], index: u64) -> Option<(Context, bytes::BytesMut)> {
        let mut context = self.key.context_with(self.by_path.is_none()).ok()?;
        cycles::advance(&mut context, &self.header, index)?;
        let opened = context.decrypt_rtp_with_header(datagram, &self.header).ok()?;
        Some((context, opened))
    }

    fn begin_trial(&mut self) -> Option<()> {
        self.trials += 1;
        if self.trials > MAX_TRIALS {
            self.trial = self.key.context().ok()?;
            self.trials = 0;
        }
        Some(())
    }

    fn accept(&mut self, source: u64) -> Option<()> {
        if self.authenticated.len() >= MAX_SOURCES {
            // A peer that constantly uses new sources: the state of all of them is dropped.
            self.incoming = self.key.context_with(self.by_path.is_none()).ok()?;
            self.authenticated.clear();
            if let Some((_, lists)) = &mut self.by_path {
                lists.clear();
            }
        }
        self.authenticated.push(Source::new(source));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtp::Header as RtpHeader;
    use weir_wire::rtp::extension::Element;

    fn hex(s: &str) -> Vec<u8> {
        (0..s.len() / 2).map(|i| u8::from_str_radix(&s[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    fn rtp(sequence: u16, ssrc: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        RtpHeader { payload_type: 96, sequence, timestamp: 7, ssrc, ..RtpHeader::default() }.write_into(&mut out);
        out.extend_from_slice(payload);
        out
    }

    /// A receiver report of a source without blocks.
    fn rr(ssrc: u32) -> Vec<u8> {
        [&[0x80, 201, 0, 1][..], &ssrc.to_be_bytes()].concat()
    }

    fn ends(suite: Suite) -> (SrtpSession, SrtpSession) {
        let (a, b) = (SrtpKey::random(suite).unwrap(), SrtpKey::random(suite).unwrap());
        (SrtpSession::new(&a, &b).unwrap(), SrtpSession::new(&b, &a).unwrap())
    }

    #[test]
    fn both_directions_of_every_suite_come_back_as_they_went() {
        for suite in Suite::ALL {
            let (mut a, mut b) = ends(suite);
            for n in 0..70_000u32 {
                // Past the wrap of the sequence numbers, in steps so that it takes no time.
                if n % 97 == 0 {
                    let clear = rtp(n as u16, 5, &[n as u8; 50]);
                    let sent = a.protect(&clear).unwrap();
                    assert_eq!(sent.len(), clear.len() + suite.rtp_overhead());
                    assert_eq!((&sent[..12], sent[12..] == clear[12..]), (&clear[..12], false));
                    assert_eq!(&b.open(&sent).unwrap()[..], &clear[..]);
                }
            }
            let report = rr(9);
            let sent = b.protect(&report).unwrap();
            assert_eq!(&a.open(&sent).unwrap()[..], &report[..]);
            assert_eq!(a.counters(), SrtpCounters { accepted: 1, ..SrtpCounters::default() });
        }
    }

    /// RFC 7714, section 16.1.1: an RTP packet under AEAD_AES_128_GCM. The RFC gives session key and salt, for which no
    /// master key is known, so this checks the rest: lengths and the unencrypted header.
    #[test]
    fn names_lengths_and_overheads_are_those_of_the_rfcs() {
        let found: Vec<_> = Suite::ALL.iter().map(|s| (s.name(), s.key_len(), s.rtp_overhead())).collect();
        let expected = [
            ("AEAD_AES_128_GCM", 28, 16),
            ("AES_CM_128_HMAC_SHA1_80", 30, 10),
            ("AEAD_AES_256_GCM", 44, 16),
            ("AES_CM_128_HMAC_SHA1_32", 30, 4),
        ];
        assert_eq!(found, expected);
        for suite in Suite::ALL {
            assert_eq!(Suite::by_name(suite.name()), Some(suite));
        }
        let short = SrtpKey::new(Suite::AeadAes128Gcm, vec![0; 30]).unwrap_err().to_string();
        assert!(short.contains("30") && short.contains("28"), "{short}");
        let key = SrtpKey::random(Suite::AeadAes128Gcm).unwrap();
        assert!(!format!("{key:?}").contains(&format!("{:?}", key.bytes())));
    }

    /// The packet of libsrtp's test driver (srtp_validate): master key and salt from RFC 3711, appendix B.3.
    #[test]
    fn a_known_packet_is_protected_as_libsrtp_does() {
        let key = hex("e1f97a0d3e018be0d64fa32c06de41390ec675ad498afeebb6960b3aabe6");
        let key = SrtpKey::new(Suite::AesCm128HmacSha1_80, key).unwrap();
        let clear = hex("800f1234decafbadcafebabeabababababababababababababababab");
        let expected = hex("800f1234decafbadcafebabe4e55dc4ce79978d88ca4d215949d2402b78d6acc99ea179b8dbb");
        let mut s = SrtpSession::new(&key, &key).unwrap();
        assert_eq!(s.protect(&clear).unwrap()[..], expected[..]);
        assert_eq!(s.open(&expected).unwrap()[..], clear[..]);
    }

    #[test]
    fn header_extensions_with_padding_between_them_are_no_obstacle() {
        let (mut a, mut b) = ends(Suite::AeadAes128Gcm);
        let mut clear = Vec::new();
        let element = Element::new(3, &[1, 2]);
        RtpHeader { elements: element.as_slice(), sequence: 9, ssrc: 1, ..RtpHeader::default() }.write_into(&mut clear);
        // Two words of extension of which the first four bytes are padding, and one contributing source.
        let mut odd =
            vec![0x91, 96, 0, 10, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 77, 0xbe, 0xde, 0, 2, 0, 0, 0, 0, 0x31, 1, 2, 0];
        odd.extend([5; 30]);
        clear.extend([6; 30]);
        for packet in [clear, odd] {
            let sent = a.protect(&packet).unwrap();
            let at = PacketView::parse_header(&packet).unwrap().header_len();
            assert_eq!(sent[..at], packet[..at]);
            assert_eq!(&b.open(&sent).unwrap()[..], &packet[..]);
        }
    }

    /// Packets whose numbers go on beyond 16 bits.
    fn packets(numbers: std::ops::Range<u32>) -> impl Iterator<Item = Vec<u8>> {
        numbers.map(|n| rtp(n as u16, 5, &[n as u8; 50]))
    }

    #[test]
    fn a_wrap_that_nobody_saw_costs_four_packets() {
        for suite in Suite::ALL {
            let (mut a, mut b) = ends(suite);
            // The first 20 are lost, among them the six before the wrap.
            let sent: Vec<_> = packets(65_530..65_800).map(|p| a.protect(&p).unwrap().to_vec()).collect();
            let opened: Vec<_> = sent[20..].iter().map(|p| b.open(p).is_some()).collect();
            assert_eq!(opened.iter().position(|o| *o), Some(3), "{}", suite.name());
            assert!(opened[3..].iter().all(|o| *o));
            assert_eq!(b.counters(), SrtpCounters { accepted: 247, refused: 3, wraps_found: 1 });
            assert!(b.open(&sent[100]).is_none(), "a replay stays one");
            // And on over the next wraps.
            for (n, packet) in packets(65_800..300_000).enumerate().filter(|(n, _)| n % 997 == 0) {
                let sent = a.protect(&packet).unwrap();
                assert!(b.open(&sent).is_some(), "{n}");
            }
        }
    }

    #[test]
    fn after_a_gap_of_more_than_half_a_cycle_the_next_is_tried() {
        for (first, gap) in
            [(1_000, 40_000), (40_000, 40_000), (60_000, 33_000), (60_000, 65_000), (70_000, 40_000), (130_000, 50_000)]
        {
            let (mut a, mut b) = ends(Suite::AeadAes128Gcm);
            let mut lost = false;
            let (mut opened, mut refused) = (0, 0);
            for (n, packet) in (0u32..).zip(packets(0..first + gap + 200)) {
                let sent = a.protect(&packet).unwrap();
                lost = (first..first + gap).contains(&n);
                if !lost && (n % 500 == 0 || n + 100 > first) {
                    *(if b.open(&sent).is_some() { &mut opened } else { &mut refused }) += 1;
                }
            }
            assert!(!lost && opened > 250 && refused <= 3, "{first} {gap}: {opened}, {refused}");
        }
    }

    #[test]
    fn forgeries_move_no_cycle_and_cost_little() {
        let (mut a, mut b) = ends(Suite::AesCm128HmacSha1_80);
        let mut sent = packets(0..2_000).map(|p| a.protect(&p).unwrap().to_vec());
        for n in 0..1_000u32 {
            let next = sent.next().unwrap();
            assert!(b.open(&next).is_some());
            for k in 0..20 {
                assert!(b.open(&rtp((n * 31 + k * 3_000) as u16, 5, &[k as u8; 60])).is_none());
                assert!(b.open(&rtp(k as u16, 1_000_000 + n * 20 + k, &[n as u8; 60])).is_none());
            }
        }
        assert_eq!(b.counters(), SrtpCounters { accepted: 1_000, refused: 40_000, wraps_found: 0 });
        assert_eq!(b.authenticated.len(), 1);
    }

    #[test]
    fn replays_forgeries_and_garbage_are_refused_in_bounded_memory() {
        let (mut a, mut b) = ends(Suite::AesCm128HmacSha1_80);
        let sent = a.protect(&rtp(1, 5, &[1; 100])).unwrap();
        assert!(b.open(&sent).is_some());
        assert!(b.open(&sent).is_none(), "a replay");
        let mut damaged = a.protect(&rtp(2, 5, &[1; 100])).unwrap().to_vec();
        damaged[40] ^= 1;
        assert!(b.open(&damaged).is_none());
        assert!(b.open(&rtp(3, 5, &[1; 100])).is_none(), "not protected");
        for n in 0..2_000u32 {
            assert!(b.open(&rtp(4, 1_000 + n, &[n as u8; 60])).is_none());
            assert!(b.open(&rr(n)).is_none());
        }
        let unencrypted = [&rr(5)[..], &[0, 0, 0, 9], &[0; 10]].concat();
        assert!(b.open(&unencrypted).is_none(), "RTCP without encryption has no authentication");
        for length in 0..40 {
            assert!(b.open(&vec![0x80; length]).is_none());
            assert!(b.open(&[&[0x81, 200][..], &vec![0; length]].concat()).is_none());
        }
        assert_eq!(b.authenticated.len(), 1);
        assert!(b.trials <= MAX_TRIALS);
        // Authentic packets of ever new sources are accepted, and bounded too.
        for n in 0..300u32 {
            let sent = a.protect(&rtp(9, n + 100, &[2; 20])).unwrap();
            assert!(b.open(&sent).is_some(), "{n}");
        }
        assert!(b.authenticated.len() <= MAX_SOURCES);
        assert_eq!(b.counters().accepted, 301);
    }
}
