//! The decoder.

use super::header::{self, Header};
use super::{Context, LIBRARY, sys};
use core::ffi::c_int;
use core::ptr;
use weir_media::{Decoded, Picture, Plane, VideoCodec, VideoDecoder, VideoError};

/// Greatest size of a frame in bytes.
const MAX_BYTES: usize = 16 << 20;

impl Context {
    /// Decodes one frame; returns whether the library accepted it.
    fn decode(&mut self, data: &[u8]) -> bool {
        // SAFETY: the context is valid, the bytes are only read, and the limit on frames keeps lengths in range.
        let answer =
            unsafe { sys::vpx_codec_decode(&mut *self.raw, data.as_ptr(), data.len() as u32, ptr::null_mut(), 0) };
        answer == sys::VPX_CODEC_OK
    }

    /// Whether the last decoded frame, or one of its references, was damaged.
    fn corrupted(&mut self) -> bool {
        let mut corrupted: c_int = 0;
        // SAFETY: the context is valid, and this control writes an `int`.
        let answer = unsafe {
            let control = sys::vp8_dec_control_id::VP8D_GET_FRAME_CORRUPTED as c_int;
            sys::vpx_codec_control_(&mut *self.raw, control, &raw mut corrupted)
        };
        answer != sys::VPX_CODEC_OK || corrupted != 0
    }

    /// Copies the last output picture.
    fn picture(&mut self, picture: &mut Picture) -> bool {
        let (mut iterator, mut got) = (ptr::null(), false);
        loop {
            // SAFETY: the context is valid; the image is valid until the next decoding call.
            let Some(image) = (unsafe { sys::vpx_codec_get_frame(&mut *self.raw, &mut iterator).as_ref() }) else {
                return got;
            };
            got |= copy(image, picture);
        }
    }
}

fn copy(image: &sys::vpx_image_t, picture: &mut Picture) -> bool {
    if image.fmt != sys::vpx_img_fmt::VPX_IMG_FMT_I420 || image.planes[..3].iter().any(|p| p.is_null()) {
        return false;
    }
    if (picture.width(), picture.height()) != (image.d_w, image.d_h) {
        let Ok(new) = Picture::new(image.d_w, image.d_h) else { return false };
        *picture = new;
    }
    for (n, plane) in Plane::ALL.into_iter().enumerate() {
        let (width, _) = picture.size_of(plane);
        let (from, Ok(stride)) = (image.planes[n], usize::try_from(image.stride[n])) else { return false };
        if stride < width {
            return false;
        }
        for (y, to) in picture.plane_mut(plane).chunks_exact_mut(width).enumerate() {
            // SAFETY: a 4:2:0 image has planes of `d_h` rows, or half as many rounded up, at intervals of `stride`
            // bytes and at least `width` wide.
            to.copy_from_slice(unsafe { core::slice::from_raw_parts(from.add(y * stride), width) });
        }
    }
    true
}

/// Decodes VP8 or VP9.
///
/// Incomplete VP8 frames are decoded if their first partition is present: missing parts are taken from the previous
/// picture with motion compensation. Incomplete VP9 frames are not, since after a failure the library rejects
/// everything up to the next key frame.
pub(crate) struct Decoder {
    codec: VideoCodec,
    context: Context,
    /// One VP9 frame as passed to the library.
    single: Vec<u8>,
}

impl Decoder {
    pub(crate) fn new(codec: VideoCodec) -> Result<Self, VideoError> {
        Ok(Self { codec, context: Context::decoder(codec)?, single: Vec::new() })
    }

    /// Decodes a frame or a superframe. Returns whether the library accepted all of it, and whether there is a picture.
    fn try_decode(&mut self, data: &[u8], picture: &mut Picture) -> (bool, bool) {
        if self.codec == VideoCodec::Vp8 {
            let taken = self.context.decode(data);
            return (taken, self.context.picture(picture));
        }
        let (mut taken, mut got) = (true, false);
        for frame in header::vp9_frames(data) {
            if !Header::parse(self.codec, frame).is_some_and(Header::fits) {
                return (false, got);
            }
            header::vp9_single(frame, &mut self.single);
            taken &= self.context.decode(&self.single);
            got |= self.context.picture(picture);
        }
        (taken, got)
    }
}

impl VideoDecoder for Decoder {
    fn codec(&self) -> VideoCodec {
        self.codec
    }
    fn library(&self) -> &'static str {
        LIBRARY
    }

    fn decode(&mut self, data: &[u8], whole: bool, picture: &mut Picture) -> Decoded {
        if data.is_empty() || data.len() > MAX_BYTES {
            return Decoded::Nothing;
        }
        let Some(header) = Header::parse(self.codec, data).filter(|h| h.fits()) else { return Decoded::Nothing };
        if !whole && !header.is_of_use(data) {
            return Decoded::Nothing;
        }
        let (mut taken, mut got) = self.try_decode(data, picture);
        if whole && header.key && (!taken || !got) {
            // A key frame needs none of the library's state from earlier damage.
            let Ok(context) = Context::decoder(self.codec) else { return Decoded::Nothing };
            self.context = context;
            (taken, got) = self.try_decode(data, picture);
        }
        match (got, whole && taken && !self.context.corrupted()) {
            (false, _) => Decoded::Nothing,
            (true, true) => Decoded::Intact,
            (true, false) => Decoded::Concealed,
        }
    }
}
