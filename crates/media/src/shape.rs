//! Size and number of the pictures that are coded.

/// How pictures are to be coded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Samples a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// One of this many pictures of the camera is coded, at least 1.
    pub stride: u32,
}
