//! Retransmission payload (RFC 4588, section 4): the original sequence number, then the original payload.

use crate::Error;
use crate::read::Reader;

/// Bytes of the original sequence number (OSN).
pub const OSN_SIZE: usize = 2;

/// Appends the original sequence number; the caller appends, or only counts, the original payload.
pub fn write_osn(sequence: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&sequence.to_be_bytes());
}

/// Parses the payload of a retransmission packet: the original sequence number, and the part of the original payload
/// present.
///
/// # Errors
/// If it is shorter than the number. A sender may use such packets as probes; they retransmit nothing.
pub fn read(payload: &[u8]) -> Result<(u16, &[u8]), Error> {
    let mut reader = Reader::new(payload, 0);
    let osn = reader.take("RTX original sequence number", OSN_SIZE)?;
    Ok((u16::from_be_bytes([osn[0], osn[1]]), &payload[OSN_SIZE..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_number_stands_first_in_network_order() {
        let mut out = vec![];
        write_osn(0xff01, &mut out);
        out.extend_from_slice(b"abc");
        assert_eq!(out, b"\xff\x01abc");
        assert_eq!(read(&out).unwrap(), (0xff01, &b"abc"[..]));
        assert!(read(&[7]).is_err() && read(&[]).is_err());
    }

    proptest! {
        #[test]
        fn anything_may_come(payload in proptest::collection::vec(any::<u8>(), 0..40)) {
            match read(&payload) {
                Ok((osn, rest)) => prop_assert_eq!((&osn.to_be_bytes()[..], rest), payload.split_at(2)),
                Err(_) => prop_assert!(payload.len() < 2),
            }
        }
    }
}
