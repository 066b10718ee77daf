//! Properties of every input, for the fuzz targets in `targets/`.

use weir_media::{CodedFrame, Depacketiser, PayloadFormat, Payloads, ReceivedFrame, ReceivedPayload, VideoCodec};
use weir_units::DataSize;
use weir_wire::fec::Octets;
use weir_wire::rtcp::{Packet, check_compound, mprtcp, raw_packets, xr};

/// Parses a datagram as RTCP. Parsed content must parse again unchanged and write the same bytes.
pub fn rtcp(datagram: &[u8]) {
    let _ = check_compound(datagram);
    for raw in raw_packets(datagram).flatten() {
        let Ok(packet) = Packet::parse(&raw) else { continue };
        walk(&packet);
        let mut written = Vec::new();
        packet.write_into(&mut written);
        let raw_again = raw_packets(&written).next().expect("a packet is written").expect("and framed well");
        assert_eq!(raw_again.as_bytes().len(), written.len());
        let again = Packet::parse(&raw_again).expect("what is written can be read");
        // Content that is not a whole number of words (by odd padding) is filled with zeros, and only then may differ: with them it can be
        // one that is read.
        let is_whole = raw.padding() % 4 == 0;
        if is_whole && !matches!(packet, Packet::Other(_)) {
            assert_eq!(again, packet);
        }
        let mut twice = Vec::new();
        again.write_into(&mut twice);
        if is_whole {
            assert_eq!(twice, written);
        }

        let mut padded = Vec::new();
        packet.write_padded_into(raw.padding(), &mut padded);
        let raw_padded = raw_packets(&padded).next().expect("a packet is written").expect("and framed well");
        assert_eq!(raw_padded.padding() == 0, raw.padding() == 0);
    }
}

/// Parses `data` as the content of a packet of one type; the count or FMT is `count`, or the first byte of `data`.
pub fn rtcp_of(packet_type: u8, count: Option<u8>, data: &[u8]) {
    let (&first, rest) = data.split_first().unwrap_or((&0, &[]));
    let count = count.unwrap_or(first) & 0x1f;
    let words = rest.len().div_ceil(4).min(65_535);
    let mut bytes = vec![0x80 | count | first & 0x20, packet_type];
    bytes.extend_from_slice(&(words as u16).to_be_bytes());
    bytes.extend_from_slice(&rest[..rest.len().min(words * 4)]);
    bytes.resize(4 + words * 4, 0);
    rtcp(&bytes);
}

/// Reads everything in a packet, and bounds its amount.
fn walk(packet: &Packet<'_>) {
    match packet {
        Packet::Twcc(f) => {
            assert_eq!(f.statuses().count(), usize::from(f.status_count));
            assert!(f.chunks().len() <= 2 * usize::from(f.status_count) + 65_536 * 2);
        }
        Packet::Ccfb(f) => assert!(f.streams().all(|s| s.packets().count() <= weir_wire::rtcp::ccfb::MAX_REPORTS)),
        Packet::Nack(n) => assert!(n.sequences().count() <= 17 * n.entries.len()),
        Packet::Sdes(s) => s.chunks.iter().for_each(|c| assert!(c.items.iter().all(|i| i.value.len() <= 255))),
        Packet::Remb(r) => {
            assert!(r.sources.len() <= 255 && r.rate.rate().as_bps() >= u64::from(r.rate.bits() & 0x3_ffff))
        }
        Packet::Nadu(n) => assert!(n.entries.iter().all(|e| e.next_unit < 32 && e.free_buffer.as_bytes() % 64 == 0)),
        Packet::Xr(x) => x.blocks.iter().for_each(|b| walk_block(&b)),
        Packet::Mprtcp(m) => m.blocks.iter().for_each(|b| walk_subflow(&b)),
        _ => {}
    }
    assert!(!format!("{packet:?}").is_empty());
}

fn walk_block(block: &xr::Block<'_>) {
    match block {
        xr::Block::LossRle(t) | xr::Block::DuplicateRle(t) | xr::Block::PostRepairLossRle(t) => walk_trace(t),
        xr::Block::DiscardRle { trace, .. } => walk_trace(trace),
        xr::Block::ReceiptTimes(t) => {
            assert_eq!(t.packets().count(), t.times.len().min(t.reported().into()));
            assert!(t.packets().all(|(s, _)| s % (1 << t.thinning) == 0));
        }
        xr::Block::Other(raw) => assert_eq!(raw.body.len() % 4, 0),
        _ => {}
    }
}

/// Reports are bounded by their length field and hold no reports on subflows; addresses are valid ones.
fn walk_subflow(block: &mprtcp::Block<'_>) {
    match block {
        mprtcp::Block::Reports(r) => {
            assert!(r.reports.len() % 4 == 0 && r.reports.len() <= mprtcp::MAX_REPORTS);
            for packet in r.packets().flatten() {
                assert!(!matches!(packet, Packet::Mprtcp(_)));
                walk(&packet);
            }
        }
        mprtcp::Block::Interface(i) => assert_eq!(mprtcp::Interface::new(i.port(), i.address()), Some(*i)),
        mprtcp::Block::Other(raw) => assert!(raw.block_type != mprtcp::SUBFLOW_REPORT && raw.body.len() % 4 == 2),
        _ => {}
    }
}

/// A trace has no more packets than its range, and when rebuilt has the same content in no more chunks.
fn walk_trace(trace: &xr::RleBlock<'_>) {
    let range = trace.end.wrapping_sub(trace.begin);
    let mut count = 0;
    for (sequence, _) in trace.packets() {
        assert!(sequence % (1 << trace.thinning) == 0 && sequence.wrapping_sub(trace.begin) < range);
        count += 1;
    }
    assert!(count <= trace.reported());
    // Short ones only, for speed.
    if trace.thinning == 0 && count <= 1_000 {
        let mut chunks = Vec::new();
        let bits = trace.packets().map(|(_, bit)| bit);
        let again = xr::RleBlock::encode(trace.ssrc, trace.begin, 0, bits, usize::MAX, &mut chunks);
        assert!(again.packets().eq(trace.packets()));
        assert!(again.chunks.len() <= trace.chunks.len());
    }
}

/// Octets, with the first two bytes of `data` as the number of zeros, up to 4,095; `None` if `data` is shorter.
pub fn octets(data: &[u8]) -> Option<Octets<'_>> {
    let (count, bytes) = data.split_first_chunk::<2>()?;
    Some(Octets { bytes, zeros: (u16::from_be_bytes(*count) & 0xfff).into() })
}

/// Parses `data` as packets of frames: two bytes and the payload each. The first byte has the step in sequence numbers
/// (3 bits), the marker, and whether a frame ends after it; the second the payload's length.
fn frames(mut data: &[u8]) -> Vec<ReceivedFrame> {
    let (mut frames, mut frame, mut sequence) = (vec![], ReceivedFrame::default(), 0);
    while let [flags, length, rest @ ..] = data {
        let (payload, behind) = rest.split_at((*length as usize).min(rest.len()));
        sequence += u64::from(flags & 7);
        let marker = flags & 8 != 0;
        frame.packets.push(ReceivedPayload { sequence, marker, repaired: false, bytes: payload.to_vec() });
        if flags & 16 != 0 {
            frame.whole = flags & 32 != 0;
            frames.push(std::mem::take(&mut frame));
        }
        data = behind;
    }
    frames.push(frame);
    frames
}

/// Assembles frames. The output is bounded by the input, and survives another round trip.
pub fn depacketise(codec: VideoCodec, data: &[u8]) {
    let (mut d, mut out) = (Depacketiser::new(codec), vec![]);
    let frames = frames(data);
    for frame in &frames {
        let came: usize = frame.packets.iter().map(|p| p.bytes.len()).sum();
        let unpacked = d.read(frame, &mut out);
        // A start code before a NAL unit of at least one byte.
        assert!(out.len() <= 5 * came);
        assert!(!unpacked.whole || !out.is_empty());
        let once = journey(codec, &out, 20 + data.len() as u64 % 50);
        if codec == VideoCodec::H264 {
            // Start codes inside NAL units have been split by now, and reserved units are gone.
            assert_eq!(journey(codec, &once, 1_200), once);
        } else {
            assert_eq!(once, out);
        }
    }
    let stats = d.stats();
    assert!(stats.frames == frames.len() as u64 && stats.whole <= stats.frames);
}

/// A frame as received after packetisation.
fn journey(codec: VideoCodec, data: &[u8], max: u64) -> Vec<u8> {
    let frame = CodedFrame { data: data.to_vec(), ..CodedFrame::default() };
    let mut payloads = Payloads::default();
    PayloadFormat::new(codec).packetise(&frame, DataSize::from_bytes(max), &mut payloads);
    assert!(payloads.iter().all(|(bytes, _)| bytes.len() as u64 <= max));
    let packets = payloads.iter().enumerate().map(|(i, (bytes, _))| ReceivedPayload {
        sequence: i as u64,
        marker: i + 1 == payloads.len(),
        repaired: false,
        bytes: bytes.to_vec(),
    });
    let frame = ReceivedFrame { packets: packets.collect(), whole: true, ..ReceivedFrame::default() };
    let mut out = vec![];
    Depacketiser::new(codec).read(&frame, &mut out);
    out
}

/// Parses `data` as an Opus packet, and as Opus packets for playout: three bytes and the payload each. The first byte
/// has the step in sequence numbers (3 bits) and whether it is silence, the second the step in timestamps in 2.5 ms,
/// the third the payload's length.
pub fn opus(data: &[u8]) {
    use weir_media::audio::{AudioDelay, AudioPacket, AudioPlayout, OpusPacket, OpusParams, packetise};
    use weir_units::{TimeDelta, Timestamp};
    if let Ok(packet) = OpusPacket::parse(data) {
        assert!(packet.samples() <= 5_760 && packet.frames().len() <= 48);
        assert!(packet.frames().map(<[u8]>::len).sum::<usize>() < data.len());
        assert!(packet.frames().all(|f| f.len() <= 1_275));
        let _ = (packet.has_fec(), packet.is_silence(), packet.toc().bandwidth());
        let mut out = Payloads::default();
        assert_eq!(packetise(data, DataSize::from_bytes(1_200), &mut out).is_ok(), data.len() <= 1_200);
    }
    for delay in [AudioDelay::fixed(TimeDelta::from_millis(60)), AudioDelay::up_to(TimeDelta::from_millis(200))] {
        let mut playout = AudioPlayout::new(delay);
        let (mut sequence, mut timestamp, mut now) = (100u64, 0u32, Timestamp::ZERO);
        let (mut slots, mut end) = (0u64, None);
        let mut rest = data;
        while let [steps, ticks, length, behind @ ..] = rest {
            let (payload, behind) = behind.split_at((*length as usize).min(behind.len()));
            sequence = (sequence + u64::from(steps & 7)).saturating_sub(1);
            timestamp = timestamp.wrapping_add((u32::from(*ticks) * 120).wrapping_sub(2_400));
            now += TimeDelta::from_millis(i64::from(steps >> 3));
            let packet = AudioPacket::opus(sequence, timestamp, payload).unwrap_or(AudioPacket::sized(
                sequence,
                timestamp,
                DataSize::from_bytes(payload.len() as u64),
            ));
            playout.on_packet(now, &packet);
            while let Some(slot) = playout.poll(now) {
                assert!(slot.at <= now && slot.samples > 0 && end.is_none_or(|e| slot.at >= e));
                end = Some(slot.at);
                slots += 1;
            }
            rest = behind;
        }
        // No slot is shorter than a sample.
        assert!(slots <= 48 * (now - Timestamp::ZERO).as_millis().unsigned_abs() + 1_000);
    }
    // SDP text too.
    if let Some((b'a', text)) = data.split_first()
        && let Some(params) = core::str::from_utf8(text).ok().and_then(|t| t.parse::<OpusParams>().ok())
    {
        let again: OpusParams = params.to_string().parse().expect("what is written can be read");
        assert_eq!(again.to_string(), params.to_string());
    }
}

/// Passes datagrams, each with its length in front, to an end of a call by ICE; those that could be STUN get its header. What
/// the end keeps and sends is bounded, and what it reads as a candidate it writes as one.
pub fn ice(data: &[u8]) {
    use weir_live::ice::{AgentConfig, Candidate, Credentials, IceConfig, IcePaths, Secret, stun};
    if let Ok(text) = core::str::from_utf8(data)
        && let Some(candidate) = Candidate::parse(text)
    {
        assert_eq!(Candidate::parse(&candidate.to_string()), Some(candidate));
    }
    let local = std::net::SocketAddr::from(([192, 0, 2, 1], 5_000));
    let server = std::net::SocketAddr::from(([198, 51, 100, 1], 3_478));
    let (secret, agent) = (Secret::new([7; 32]), AgentConfig::default());
    let mut end = IcePaths::new(IceConfig {
        secret,
        is_controlling: true,
        servers: vec![server],
        relays: Vec::new(),
        relay_only: false,
        agent,
    });
    let mut now = weir_units::Timestamp::ZERO;
    end.add_interface(local, now).expect("room");
    let other = Credentials::of(&mut Secret::new([8; 32]));
    let candidate = Candidate::parse("1 1 udp 2130706431 203.0.113.9 6000 typ host").expect("a candidate");
    end.set_remote(&other, &[candidate], now);
    let mut rest = data;
    let mut asked = [0; 12];
    while let Some((&length, after)) = rest.split_first() {
        let (body, next) = after.split_at(usize::from(length).min(after.len()));
        rest = next;
        now += weir_units::TimeDelta::from_millis(20);
        end.handle_timeout(now);
        let mut sent = 0;
        while let Some(t) = end.poll_transmit() {
            sent += 1;
            if let Some(id) = stun::transaction_of(&t.bytes) {
                asked = id;
            }
        }
        assert!(sent <= 64);
        let mut datagram = body.to_vec();
        if datagram.len() >= stun::HEADER {
            let whole = (datagram.len() - stun::HEADER) / 4 * 4;
            datagram.truncate(stun::HEADER + whole);
            datagram[0] &= 1;
            datagram[2..4].copy_from_slice(&(whole as u16).to_be_bytes());
            datagram[4..8].copy_from_slice(&stun::MAGIC);
            datagram[8..20].copy_from_slice(&asked);
        }
        let from = if length & 1 == 0 { server } else { candidate.address };
        let _ = end.handle_datagram(now, local, from, &datagram);
        while end.poll_event().is_some() {}
        assert!(end.path_count() <= 8 && end.measures(0).len() <= 32 && end.candidates().len() <= 16);
    }
}
