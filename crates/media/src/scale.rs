//! Scaling of pictures.

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

/// Position of a sample between two of the smaller picture, in 1/256: centres stay where they are.
fn between(at: usize, small: usize, large: usize) -> (usize, usize, u32) {
    let centre = ((2 * at + 1) * small * 128 / large).saturating_sub(128).min((small - 1) * 256);
    let first = centre / 256;
    (first, (first + 1).min(small - 1), (centre % 256) as u32)
}

/// A picture as a display of this size shows it, which is kept in `enlarged` if the picture is smaller. Interpolated between four samples.
pub fn displayed<'a>(picture: &'a Picture, size: (u32, u32), enlarged: &'a mut Option<Picture>) -> &'a Picture {
    if (picture.width(), picture.height()) == size {
        return picture;
    }
    if enlarged.as_ref().is_none_or(|e| (e.width(), e.height()) != size) {
        *enlarged = Picture::new(size.0, size.1).ok();
    }
    let Some(large) = enlarged else { return picture };
    enlarge(picture, large);
    large
}

/// Writes `from` at the larger size of `to`.
fn enlarge(from: &Picture, to: &mut Picture) {
    for plane in Plane::ALL {
        let ((sw, sh), (dw, dh)) = (from.size_of(plane), to.size_of(plane));
        let source = from.plane(plane);
        let columns: Vec<_> = (0..dw).map(|x| between(x, sw, dw)).collect();
        for (y, row) in to.plane_mut(plane).chunks_exact_mut(dw).enumerate() {
            let (top, bottom, down) = between(y, sh, dh);
            let (top, bottom) = (&source[top * sw..(top + 1) * sw], &source[bottom * sw..(bottom + 1) * sw]);
            for (sample, &(left, right, across)) in row.iter_mut().zip(&columns) {
                let mix = |a: u8, b: u8| u32::from(a) * (256 - across) + u32::from(b) * across;
                let (upper, lower) = (mix(top[left], top[right]), mix(bottom[left], bottom[right]));
                *sample = ((upper * (256 - down) + lower * down + (1 << 15)) >> 16) as u8;
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

    #[test]
    fn between_two_samples_are_means_by_distance() {
        let mut from = Picture::new(2, 2).unwrap();
        from.plane_mut(Plane::Y).copy_from_slice(&[0, 100, 0, 100]);
        let mut to = Picture::new(4, 2).unwrap();
        enlarge(&from, &mut to);
        let mut kept = None;
        assert_eq!(displayed(&from, (4, 2), &mut kept).as_i420(), to.as_i420());
        assert_eq!(displayed(&from, (2, 2), &mut kept).plane(Plane::Y), [0, 100, 0, 100]);
        // Centres of the four are at 1/4, 3/4, 5/4 and 7/4 of a sample, those of the two at 1/2 and 3/2.
        assert_eq!(to.plane(Plane::Y), [0, 25, 75, 100, 0, 25, 75, 100]);
    }

    proptest! {
        #[test]
        fn any_size_to_any_other(a in (1u32..40, 1u32..40), b in (1u32..40, 1u32..40), value: u8) {
            let mut from = Picture::new(a.0, a.1).unwrap();
            from.as_i420_mut().fill(value);
            let mut to = Picture::new(b.0, b.1).unwrap();
            scale(&from, &mut to);
            prop_assert!(to.as_i420().iter().all(|s| *s == value));
            to.as_i420_mut().fill(!value);
            enlarge(&from, &mut to);
            prop_assert!(to.as_i420().iter().all(|s| *s == value));
        }
    }
}
