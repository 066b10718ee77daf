//! Lines of a section of an offer.

use rtc_sdp::description::media::MediaDescription;

/// The value of a section's attribute.
pub(super) fn value<'a>(m: &'a MediaDescription, key: &str) -> Option<&'a str> {
    m.attribute(key).flatten()
}

/// Values of all attributes of this name.
pub(super) fn values<'a>(m: &'a MediaDescription, key: &'static str) -> impl Iterator<Item = &'a str> {
    m.attributes.iter().filter(move |a| a.key == key).filter_map(|a| a.value.as_deref())
}

/// Selects the text for this payload type of `PT text` lines.
pub(super) fn of_type<'a>(
    m: &'a MediaDescription,
    key: &'static str,
    payload_type: u8,
) -> impl Iterator<Item = &'a str> {
    values(m, key).filter_map(move |v| {
        let (number, rest) = v.split_once(' ')?;
        (number == "*" || number.parse() == Ok(payload_type)).then_some(rest.trim())
    })
}

/// Payload types in the order of preference.
pub(super) fn payload_types(m: &MediaDescription) -> impl Iterator<Item = u8> {
    // 64 to 95 would look like RTCP (RFC 5761, section 4).
    m.media_name.formats.iter().filter_map(|f| f.parse().ok()).filter(|n| (35..64).contains(n) || (96..128).contains(n))
}

pub(super) fn name_of(m: &MediaDescription, payload_type: u8) -> Option<&str> {
    of_type(m, "rtpmap", payload_type).next()
}

/// The payload type of retransmissions of another (RFC 4588).
pub(super) fn retransmission(m: &MediaDescription, of: u8) -> Option<u8> {
    payload_types(m).find(|&n| {
        let is_rtx = name_of(m, n).is_some_and(|name| name.eq_ignore_ascii_case("rtx/90000"));
        is_rtx
            && of_type(m, "fmtp", n)
                .any(|f| f.split(';').any(|p| p.trim().strip_prefix("apt=") == Some(&of.to_string())))
    })
}
