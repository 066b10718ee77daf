//! Reed-Solomon repair (RFC 6865).

use super::{Buffer, Out, guarded, slice};
use crate::failure::Status;
use crate::fec::{Decoder, Encoder};
use crate::table::{self, Handle, Object};

/// Makes an encoder of blocks with `sources` source and `repairs` repair packets, 255 together: as many losses in a block
/// as it has repair packets can be repaired.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_fec_encoder_new(sources: u32, repairs: u32, encoder: *mut Handle) -> Status {
    guarded(|| {
        // SAFETY: as the caller grants.
        let out = unsafe { Out::new(encoder, "encoder") }?;
        out.set(0);
        out.set(table::keep(Object::FecEncoder(Box::new(Encoder::new(sources, repairs)?)))?);
        Ok(Status::Ok)
    })
}

/// Changes the number of source and repair packets from the next block on.
#[unsafe(no_mangle)]
pub extern "C" fn weir_fec_encoder_set(encoder: Handle, sources: u32, repairs: u32) -> Status {
    guarded(|| table::with(encoder, |e: &mut Encoder| e.set(sources, repairs).map(|()| Status::Ok)))
}

/// Protects a packet of `length` bytes. Writes the source packet, which is sent in its place and is 6 bytes longer, to a
/// buffer of `capacity` bytes; `source_length` is set to its length. The buffers may overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_fec_encoder_source(
    encoder: Handle,
    packet: *const u8,
    length: usize,
    source: *mut u8,
    capacity: usize,
    source_length: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller grants.
        let (packet, buffer) =
            unsafe { (slice(packet, length, "packet")?, Buffer::new(source, capacity, source_length)?) };
        table::with(encoder, |e: &mut Encoder| {
            buffer.reserve(Encoder::source_len(packet.len())?)?;
            let source = e.source(packet)?;
            buffer.write(&source).map(|()| Status::Ok)
        })
    })
}

/// Takes the next repair packet, to be sent as a datagram or RTP payload of its own; WEIR_STATUS_NONE if there is none.
/// The last source packet of a block makes all of its repair packets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_fec_encoder_repair(
    encoder: Handle,
    repair: *mut u8,
    capacity: usize,
    repair_length: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller grants.
        let buffer = unsafe { Buffer::new(repair, capacity, repair_length) }?;
        table::with(encoder, |e: &mut Encoder| {
            let Some(repair) = e.repair() else { return Ok(Status::None) };
            buffer.write(repair)?;
            e.taken();
            Ok(Status::Ok)
        })
    })
}

/// Makes a decoder of blocks of up to `sources` source packets, 1 to 254. It keeps packets for `age_ns`: longer than a block
/// takes to send, shorter than playout waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_fec_decoder_new(sources: u32, age_ns: i64, decoder: *mut Handle) -> Status {
    guarded(|| {
        // SAFETY: as the caller grants.
        let out = unsafe { Out::new(decoder, "decoder") }?;
        out.set(0);
        out.set(table::keep(Object::FecDecoder(Box::new(Decoder::new(sources, age_ns)?)))?);
        Ok(Status::Ok)
    })
}

/// A source packet was received. `packet_length` is set to the length of the packet that was protected: the first bytes
/// of `source`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_fec_decoder_source(
    decoder: Handle,
    now_ns: i64,
    source: *const u8,
    length: usize,
    packet_length: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller grants.
        let (source, out) = unsafe { (slice(source, length, "source")?, Out::new(packet_length, "packet_length")?) };
        table::with(decoder, |d: &mut Decoder| {
            out.set(d.source(now_ns, source)?.len());
            Ok(Status::Ok)
        })
    })
}

/// A repair packet was received.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_fec_decoder_repair(
    decoder: Handle,
    now_ns: i64,
    repair: *const u8,
    length: usize,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller grants.
        let repair = unsafe { slice(repair, length, "repair") }?;
        table::with(decoder, |d: &mut Decoder| d.repair(now_ns, repair).map(|()| Status::Ok))
    })
}

/// Takes the next recovered packet; WEIR_STATUS_NONE if there is none. A packet that arrived is never recovered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_fec_decoder_recovered(
    decoder: Handle,
    packet: *mut u8,
    capacity: usize,
    packet_length: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller grants.
        let buffer = unsafe { Buffer::new(packet, capacity, packet_length) }?;
        table::with(decoder, |d: &mut Decoder| {
            let Some(packet) = d.recovered() else { return Ok(Status::None) };
            buffer.write(packet)?;
            d.taken();
            Ok(Status::Ok)
        })
    })
}
