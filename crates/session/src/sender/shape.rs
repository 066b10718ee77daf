//! Size and number of a stream's pictures, by the application's preference.

use super::stream::OutgoingStream;
use weir_media::SourceFeedback;
use weir_media::utility::{Shape, ShapeChoice};
use weir_units::{DataRate, Timestamp};

impl OutgoingStream {
    /// Size and number of the source's pictures; `None` if the application has no preference.
    pub(crate) fn shape(&self) -> Option<Shape> {
        self.shape.as_ref().map(|c| c.shape())
    }

    /// Sets the rate of the pictures, and passes a shape that follows from it to the source.
    pub(super) fn set_shape_rate(&mut self, rate: DataRate, now: Timestamp) {
        if let Some(choice) = &mut self.shape {
            choice.set_rate(rate);
            self.follow_shape(now);
        }
    }

    /// Passes another shape of the pictures to the source.
    #[inline(never)]
    pub(super) fn follow_shape(&mut self, now: Timestamp) {
        if let Some(choice) = &mut self.shape
            && choice.poll(now)
        {
            self.source.on_feedback(SourceFeedback::Shape(choice.shape()), now);
        }
    }

    /// Another source begins with all pictures at their size.
    pub(super) fn forget_shape(&mut self) {
        if let Some(choice) = &mut self.shape {
            **choice = ShapeChoice::new(*choice.utility());
        }
    }
}
