//! Methods that a source around another one leaves to it.

/// Methods of [`FrameSource`](crate::FrameSource) that concern neither rates nor the times of frames, each passed to this field, so that none is
/// forgotten where the trait grows.
macro_rules! forwarded {
    ($source:ident) => {
        fn request_key_frame(&mut self, now: weir_units::Timestamp) {
            self.$source.request_key_frame(now);
        }
        fn take_payloads(&mut self, max: weir_units::DataSize, out: &mut crate::Payloads) -> bool {
            self.$source.take_payloads(max, out)
        }
        fn on_feedback(&mut self, feedback: crate::SourceFeedback, now: weir_units::Timestamp) -> bool {
            self.$source.on_feedback(feedback, now)
        }
        fn limit_key_frames(&mut self, most: weir_units::DataSize) -> bool {
            self.$source.limit_key_frames(most)
        }
        fn pixels(&self) -> Option<u32> {
            self.$source.pixels()
        }
        fn media(&self) -> crate::MediaKind {
            self.$source.media()
        }
        fn set_packet_overhead(&mut self, overhead: weir_units::DataSize, now: weir_units::Timestamp) {
            self.$source.set_packet_overhead(overhead, now);
        }
    };
}

pub(crate) use forwarded;
