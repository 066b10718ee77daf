use super::{DccpOption, FIRST_LONG, FeatureNumber, MAX_DATA, MAX_NDP_COUNT};

/// The bytes of an elapsed time, in the smallest form (RFC 4340, sections 13.2 and 13.3).
fn elapsed(bytes: &[u8; 4]) -> &[u8] {
    if bytes[..2] == [0, 0] { &bytes[2..] } else { bytes }
}

fn long(out: &mut Vec<u8>, number: u8, first: &[u8], second: &[u8]) -> bool {
    let len = first.len() + second.len();
    if len > MAX_DATA {
        return false;
    }
    out.extend_from_slice(&[number, len as u8 + 2]);
    out.extend_from_slice(first);
    out.extend_from_slice(second);
    true
}

impl DccpOption<'_> {
    /// Appends it to a header; returns `false` without writing if its data exceeds [`MAX_DATA`].
    pub fn write_into(&self, out: &mut Vec<u8>) -> bool {
        let number = self.number();
        match *self {
            Self::Mandatory | Self::SlowReceiver => {
                out.push(number);
                true
            }
            Self::Unknown { number, .. } if number < FIRST_LONG => {
                out.push(number);
                true
            }
            Self::ChangeL(FeatureNumber(f), v)
            | Self::ConfirmL(FeatureNumber(f), v)
            | Self::ChangeR(FeatureNumber(f), v)
            | Self::ConfirmR(FeatureNumber(f), v) => long(out, number, &[f], v),
            Self::InitCookie(data)
            | Self::DataDropped(data)
            | Self::AckVector { runs: data, .. }
            | Self::Ccid { data, .. }
            | Self::Unknown { data, .. } => long(out, number, data, &[]),
            Self::NdpCount(n) => {
                // In the minimum number of bytes, at least one (RFC 4340, section 7.7).
                let bytes = n.min(MAX_NDP_COUNT).to_be_bytes();
                let zeros = bytes.iter().take(7).take_while(|&&b| b == 0).count();
                long(out, number, &bytes[zeros..], &[])
            }
            Self::Timestamp(t) | Self::DataChecksum(t) => long(out, number, &t.to_be_bytes(), &[]),
            Self::TimestampEcho { echo, elapsed: e } => {
                let e = e.to_be_bytes();
                long(out, number, &echo.to_be_bytes(), if e == [0; 4] { &[] } else { elapsed(&e) })
            }
            Self::ElapsedTime(t) => long(out, number, elapsed(&t.to_be_bytes()), &[]),
        }
    }
}
