//! Uncompressed pictures.

use crate::error::MediaError;
use core::fmt;
use weir_units::TimeDelta;

/// Greatest width and height, which bounds sizes read from files.
pub const MAX_SIDE: u32 = 16_384;

/// One of a picture's three planes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Plane {
    /// Luma.
    Y,
    /// Blue difference.
    U,
    /// Red difference.
    V,
}

impl Plane {
    /// All three, in memory order.
    pub const ALL: [Self; 3] = [Self::Y, Self::U, Self::V];
}

/// A picture of 8-bit samples, 4:2:0 (I420): luma, then the two chroma planes of half the size in each direction,
/// rounded up, without padding between rows.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    data: Vec<u8>,
}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Picture({}x{})", self.width, self.height)
    }
}

impl Picture {
    /// A black picture.
    ///
    /// # Errors
    /// A side is zero or above [`MAX_SIDE`].
    pub fn new(width: u32, height: u32) -> Result<Self, MediaError> {
        let luma = Self::luma_len(width, height)?;
        let mut data = vec![16; luma];
        data.resize(Self::len_of(width, height)?, 128);
        Ok(Self { width, height, data })
    }

    /// A picture from the samples of an I420 file's frame.
    ///
    /// # Errors
    /// A side is zero or above [`MAX_SIDE`], or the number of samples differs from [`Self::len_of`].
    pub fn from_i420(width: u32, height: u32, data: Vec<u8>) -> Result<Self, MediaError> {
        let expected = Self::len_of(width, height)?;
        if data.len() != expected {
            let expected = format!("{expected} for {width}x{height} in 4:2:0");
            return Err(MediaError::new("picture", "number of bytes", data.len(), expected));
        }
        Ok(Self { width, height, data })
    }

    fn luma_len(width: u32, height: u32) -> Result<usize, MediaError> {
        for (field, value) in [("width", width), ("height", height)] {
            if !(1..=MAX_SIDE).contains(&value) {
                return Err(MediaError::new("picture", field, value, format!("1 to {MAX_SIDE}")));
            }
        }
        Ok(width as usize * height as usize)
    }

    /// Size in bytes of a picture.
    ///
    /// # Errors
    /// A side is zero or above [`MAX_SIDE`].
    pub fn len_of(width: u32, height: u32) -> Result<usize, MediaError> {
        let chroma = width.div_ceil(2) as usize * height.div_ceil(2) as usize;
        Ok(Self::luma_len(width, height)? + 2 * chroma)
    }

    /// Samples a row of luma.
    pub const fn width(&self) -> u32 {
        self.width
    }
    /// Rows of luma.
    pub const fn height(&self) -> u32 {
        self.height
    }
    /// Width and height of a plane.
    pub const fn size_of(&self, plane: Plane) -> (usize, usize) {
        match plane {
            Plane::Y => (self.width as usize, self.height as usize),
            _ => (self.width.div_ceil(2) as usize, self.height.div_ceil(2) as usize),
        }
    }
    fn range(&self, plane: Plane) -> core::ops::Range<usize> {
        let (luma, (w, h)) = (self.width as usize * self.height as usize, self.size_of(Plane::U));
        match plane {
            Plane::Y => 0..luma,
            Plane::U => luma..luma + w * h,
            Plane::V => luma + w * h..luma + 2 * w * h,
        }
    }
    /// The samples of a plane, row by row; the stride is the width.
    pub fn plane(&self, plane: Plane) -> &[u8] {
        &self.data[self.range(plane)]
    }
    /// The same, mutably.
    pub fn plane_mut(&mut self, plane: Plane) -> &mut [u8] {
        let range = self.range(plane);
        &mut self.data[range]
    }
    /// All samples in the layout of an I420 file.
    pub fn as_i420(&self) -> &[u8] {
        &self.data
    }
    /// The same, mutably.
    pub fn as_i420_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }
}

/// Pictures in order at a constant rate: from a file, a camera, a drawing.
pub trait PictureSource {
    /// Width and height of every picture.
    fn size(&self) -> (u32, u32);
    /// Time between two pictures.
    fn interval(&self) -> TimeDelta;
    /// Writes the next picture into `picture`, which is replaced if its size differs; `false` at the end.
    ///
    /// # Errors
    /// The file or device fails, or has other contents.
    fn next_picture(&mut self, picture: &mut Picture) -> Result<bool, MediaError>;
    /// The same for sources that are read by time ([`SimulcastView`](crate::SimulcastView)): writes the picture of this
    /// number, counted from the source's start and never decreasing. Other sources return their next one.
    ///
    /// # Errors
    /// As for [`Self::next_picture`].
    fn next_picture_at(&mut self, number: u64, picture: &mut Picture) -> Result<bool, MediaError> {
        let _ = number;
        self.next_picture(picture)
    }
    /// Restarts with the first picture; `false` if that is impossible.
    ///
    /// # Errors
    /// The file or device fails.
    fn rewind(&mut self) -> Result<bool, MediaError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_lie_one_behind_the_other_and_odd_sides_round_up() {
        let mut p = Picture::new(5, 3).unwrap();
        assert_eq!(p.as_i420().len(), 15 + 2 * 6);
        assert_eq!((p.size_of(Plane::Y), p.size_of(Plane::V)), ((5, 3), (3, 2)));
        p.plane_mut(Plane::V)[5] = 9;
        assert_eq!((p.as_i420()[26], p.plane(Plane::U)), (9, &[128; 6][..]));
        assert_eq!(Picture::from_i420(5, 3, p.as_i420().to_vec()).unwrap(), p);
    }

    #[test]
    fn wrong_sizes_are_refused_with_the_right_ones() {
        let error_of = |r: Result<Picture, MediaError>| r.unwrap_err().to_string();
        assert!(error_of(Picture::new(0, 3)).contains("picture: width"));
        assert!(error_of(Picture::new(3, MAX_SIDE + 1)).contains("16384"));
        assert!(error_of(Picture::from_i420(4, 4, vec![0; 23])).contains("24 for 4x4"));
    }
}
