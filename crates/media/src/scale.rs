//! Downscaling of pictures.

use crate::{Picture, Plane};

/// Writes `from` at the size of `to`: each sample is the mean of the samples that it covers, or the nearest one if `to`
/// is larger. If the sizes do not divide, weights vary slightly.
pub fn scale(from: &Picture, to: &mut Picture) {
    for plane in Plane::ALL {
        let ((sw, sh), (dw, dh)) = (from.size_of(plane), to.size_of(plane));
        let source = from.plane(plane);
        // First source sample of each column.
        let column = |x: usize| x * sw / dw;
        for (y, row) in to.plane_mut(plane).chunks_exact_mut(dw).enumerate() {
            let top = y * sh / dh;
            let bottom = ((y + 1) * sh / dh).max(top + 1);
            for (x, sample) in row.iter_mut().enumerate() {
                let left = column(x);
                let right = column(x + 1).max(left + 1);
                let rows = source[top * sw..bottom * sw].chunks_exact(sw);
                let sum: u32 = rows.flat_map(|r| &r[left..right]).map(|&s| u32::from(s)).sum();
                let count = ((bottom - top) * (right - left)) as u32;
                *sample = ((sum + count / 2) / count) as u8;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn halves_are_means_of_four() {
        let mut from = Picture::new(4, 2).unwrap();
        from.plane_mut(Plane::Y).copy_from_slice(&[0, 10, 20, 30, 2, 12, 200, 250]);
        from.plane_mut(Plane::U).copy_from_slice(&[90, 100]);
        let mut to = Picture::new(2, 1).unwrap();
        scale(&from, &mut to);
        assert_eq!((to.plane(Plane::Y), to.plane(Plane::U)), (&[6, 125][..], &[95][..]));
        let mut back = Picture::new(4, 2).unwrap();
        scale(&to, &mut back);
        assert_eq!(back.plane(Plane::Y), [6, 6, 125, 125, 6, 6, 125, 125]);
    }

    proptest! {
        #[test]
        fn any_size_to_any_other(a in (1u32..40, 1u32..40), b in (1u32..40, 1u32..40), value: u8) {
            let mut from = Picture::new(a.0, a.1).unwrap();
            from.as_i420_mut().fill(value);
            let mut to = Picture::new(b.0, b.1).unwrap();
            scale(&from, &mut to);
            prop_assert!(to.as_i420().iter().all(|s| *s == value));
        }
    }
}
