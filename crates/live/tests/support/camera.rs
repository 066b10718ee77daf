//! The pictures of a party in tests.

use weir_live::call::{Camera, VideoCall, VideoReceive, VideoSend};
use weir_live::sdp::Direction;
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::{EncoderConfig, OnDamage, VideoCodec};

/// H.264 of 320x240 at 30 a second, in the directions of a party's media.
pub(crate) fn video(direction: Direction) -> VideoCall {
    let send = direction.sends().then(|| {
        let rate = "30".parse().expect("a rate");
        let mut clip = Clip::new(ClipSpec::new(Character::TalkingHead, 320, 240, rate)).expect("a clip");
        let encoder = weir_codecs::encoder(VideoCodec::H264, &EncoderConfig::live(320, 240)).expect("built in");
        VideoSend { camera: Camera::reel(&mut clip, rate).expect("pictures"), encoder }
    });
    let receive = direction.receives().then(|| VideoReceive {
        decoder: weir_codecs::decoder(VideoCodec::H264).expect("built in"),
        on_damage: OnDamage::Show,
        record: None,
        quality: false,
    });
    VideoCall { send, receive }
}
