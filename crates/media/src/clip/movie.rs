//! An action film: scenes of the other clips at other distances and speeds, by day and by night, with titles, flashes
//! and cuts.

use super::art::{Backdrop, hash, noise, unit, writing};
use super::draw;
use super::hand_held::Site;
use super::motion::wander;
use super::sports::Field;
use super::talking_head::{Studio, unit_of};
use crate::{Picture, Plane};

/// Number of scenes before it repeats.
const SCENES: usize = 60;
/// Length of the shortest scene, and the range above it, in seconds: 3.6 s on average, as in the frame-size model of a
/// movie.
const SHORTEST: f64 = 0.8;
const MORE: f64 = 8.4;
/// Magnification of some scenes relative to the clips.
const CLOSE: f64 = 1.5;
/// Interval of flashes in scenes that have them, and their duration.
const FLASH_SLOT: f64 = 1.3;
const FLASH_LENGTH: f64 = 0.32;

/// The subject of a scene.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Set {
    Titles,
    Talk,
    TalkClose,
    Site,
    SiteClose,
    Field,
    FieldClose,
}

/// Number of scenes of each kind in 40, the first never being titles.
const OFTEN: [(Set, u32); 7] = [
    (Set::Titles, 2),
    (Set::Talk, 4),
    (Set::TalkClose, 7),
    (Set::Site, 8),
    (Set::SiteClose, 6),
    (Set::Field, 6),
    (Set::FieldClose, 7),
];

#[derive(Clone, Copy, Debug)]
struct Shot {
    start: f64,
    set: Set,
    /// Start in the set's own time, and the speed of that time.
    offset: f64,
    speed: f64,
    /// Brightness in 1/256.
    light: u32,
    flashes: bool,
    seed: u32,
}

pub(super) struct Film {
    talk: (Studio, Studio),
    site: (Site, Site),
    field: (Field, Field),
    titles: Backdrop,
    /// A larger picture for close scenes, of which a part is used.
    wide: Picture,
    shots: Vec<Shot>,
    length: f64,
    unit: f64,
}

impl Film {
    pub(super) fn new(size: (u32, u32), seed: u32) -> Self {
        let closer = |side: u32| (f64::from(side) * CLOSE) as u32 + 16;
        let near = (closer(size.0), closer(size.1));
        let unit = unit_of(size);
        let (shots, length) = shots(seed);
        let k = 1.0 / unit as f32;
        let middle = size.0 as f32 / 2.0;
        let roll = (size.0 as usize + 2, size.1 as usize * 3 + 8);
        Self {
            talk: (Studio::new(size, seed), Studio::new(near, seed ^ 401)),
            site: (Site::new(size, seed), Site::new(near, seed ^ 402)),
            field: (Field::new(size, seed), Field::new(near, seed ^ 403)),
            titles: Backdrop::paint(roll, |x, y| titles((x - middle) * k, y * k, seed)),
            wide: Picture::new(near.0, near.1).expect("one and a half times a clip's greatest side is a picture's"),
            shots,
            length,
            unit,
        }
    }

    /// Draws a picture; `false` if it has no grain, as for titles.
    pub(super) fn draw(&mut self, t: f64, picture: &mut Picture) -> bool {
        let t = t - (t / self.length).floor() * self.length;
        let shot = self.shots[self.shots.partition_point(|s| s.start <= t).saturating_sub(1)];
        let own = (t - shot.start) * shot.speed + shot.offset;
        match shot.set {
            Set::Titles => {
                // Every other one scrolls.
                let speed = if shot.seed.is_multiple_of(2) { 0.11 } else { 0.0 };
                let room = self.titles.planes[0].1 as f64 - f64::from(picture.height()) - 2.0;
                let from = f64::from(unit(3, 1, shot.seed)) * room * 0.6;
                let down = from + (t - shot.start) * speed * self.unit;
                draw::backdrop(picture, &self.titles, (0.0, down.clamp(0.0, room.max(0.0)).floor()));
                return false;
            }
            Set::Talk => self.talk.0.draw(own, picture),
            Set::Site => self.site.0.draw(own, picture),
            Set::Field => self.field.0.draw(own, picture),
            Set::TalkClose => self.talk.1.draw(own, &mut self.wide),
            Set::SiteClose => self.site.1.draw(own, &mut self.wide),
            Set::FieldClose => self.field.1.draw(own, &mut self.wide),
        }
        if matches!(shot.set, Set::TalkClose | Set::SiteClose | Set::FieldClose) {
            self.crop(&shot, t, picture);
        }
        light(picture, shot.light, if shot.flashes { flash(t - shot.start, shot.seed) } else { 0 });
        true
    }

    /// Copies a part of the wide picture, over which the camera moves.
    fn crop(&self, shot: &Shot, t: f64, picture: &mut Picture) {
        let place = |room: u32, seed: u32| {
            let share = 0.5 + 0.4 * wander((t - shot.start) * 0.5, shot.seed ^ seed);
            (f64::from(room) * share / 2.0).max(0.0) as usize
        };
        let (x, y) =
            (place(self.wide.width() - picture.width(), 410), place(self.wide.height() - picture.height(), 411));
        for plane in Plane::ALL {
            let (w, _) = picture.size_of(plane);
            let (from_w, _) = self.wide.size_of(plane);
            let step = if plane == Plane::Y { 2 } else { 1 };
            let from = self.wide.plane(plane);
            for (j, row) in picture.plane_mut(plane).chunks_exact_mut(w).enumerate() {
                let start = (step * y + j) * from_w + step * x;
                row.copy_from_slice(&from[start..start + w]);
            }
        }
    }
}

/// The scenes in order, and their total length.
fn shots(seed: u32) -> (Vec<Shot>, f64) {
    let mut all = Vec::with_capacity(SCENES);
    let mut start = 0.0;
    for i in 0..SCENES {
        let own = |k: i32| f64::from(unit(i as i32, k, seed ^ 0x0f11_f11f));
        let mut set = set_of(hash(i as i32, 20, seed ^ 0x0f11_f11f));
        if i == 0 && set == Set::Titles {
            set = Set::FieldClose;
        }
        let is_fast = matches!(set, Set::Field | Set::FieldClose);
        let is_night = own(21) < 0.3;
        all.push(Shot {
            start,
            set,
            offset: 200.0 * own(22),
            speed: if is_fast { 0.7 + 1.1 * own(23) } else { 0.8 + 0.6 * own(23) },
            light: if is_night { 90 + (70.0 * own(24)) as u32 } else { 236 + (40.0 * own(24)) as u32 },
            flashes: own(25) < if is_fast { 0.4 } else { 0.12 },
            seed: hash(i as i32, 26, seed),
        });
        // Short scenes are more frequent than long ones: the mean of u^2 is a third.
        let u = own(27);
        start += SHORTEST + MORE * u * u;
    }
    (all, start)
}

fn set_of(h: u32) -> Set {
    let mut rest = h % 40;
    for (set, weight) in OFTEN {
        if rest < weight {
            return set;
        }
        rest -= weight;
    }
    Set::Site
}

/// The brightness added by a flash, from 0 to 120: full at once, then fading.
fn flash(t: f64, seed: u32) -> u32 {
    let slot = (t / FLASH_SLOT).floor();
    let start = slot * FLASH_SLOT + f64::from(unit(slot as i32, 28, seed)) * (FLASH_SLOT - FLASH_LENGTH);
    let f = (t - start) / FLASH_LENGTH;
    if (0.0..1.0).contains(&f) { (120.0 * (1.0 - f)) as u32 } else { 0 }
}

/// Dims or brightens all samples by `light` / 256 around black, colour by at most half of that, and adds a flash.
fn light(picture: &mut Picture, light: u32, flash: u32) {
    let luma: [u8; 256] = core::array::from_fn(|v| {
        let v = (v as u32).saturating_sub(16) * light / 256 + 16 + flash;
        v.min(235) as u8
    });
    let paler = light.min(256) / 2 + 128;
    let chroma: [u8; 256] = core::array::from_fn(|v| ((v as u32 * paler + 128 * (256 - paler)) / 256) as u8);
    for plane in Plane::ALL {
        let table = if plane == Plane::Y { &luma } else { &chroma };
        picture.plane_mut(plane).iter_mut().for_each(|v| *v = table[usize::from(*v)]);
    }
}

/// White text on black, lines a third of the height apart.
fn titles(x: f32, y: f32, seed: u32) -> [f32; 3] {
    let (line, wide) = ((y * 7.0).floor(), 0.35 + 0.15 * noise(0.0, (y * 7.0).floor() * 3.3, seed ^ 420));
    let inside = x.abs() < wide && line as i32 % 3 != 2;
    let stroke = if inside { writing(x * 26.0, (y * 7.0 - line) * 2.0 + 2.0 * line, seed ^ 421) } else { 0.0 };
    [16.0 + 200.0 * stroke, 128.0, 128.0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_are_as_long_and_as_many_kinds_as_said() {
        for seed in 1..20 {
            let (all, length) = shots(seed);
            let mean = length / SCENES as f64;
            // 0.8 + 8.4 / 3; the deviation of a scene is 8.4 sqrt(1/5 - 1/9) = 2.5 s, that of the mean of 60 scenes
            // 0.32 s.
            assert!((3.6 - 1.1..3.6 + 1.1).contains(&mean), "{mean} with seed {seed}");
            assert_ne!(all[0].set, Set::Titles);
            assert!(all.windows(2).all(|w| w[1].start - w[0].start >= SHORTEST));
        }
        let (all, _) = shots(1);
        for (set, weight) in OFTEN {
            let n = all.iter().filter(|s| s.set == set).count();
            assert!(n >= 1 && n <= weight as usize * 3 + 3, "{set:?}: {n}");
        }
        assert_eq!(OFTEN.iter().map(|o| o.1).sum::<u32>(), 40);
    }

    #[test]
    fn a_flash_is_at_once_there_and_fades() {
        let values: Vec<u32> = (0..2_600).map(|ms| flash(f64::from(ms) / 1_000.0, 5)).collect();
        let lit = values.iter().filter(|&&v| v > 0).count();
        // Twice 0.32 s, less the last millisecond or two of each, which round to zero.
        assert!((600..=640).contains(&lit), "{lit}");
        let rises = values.windows(2).filter(|w| w[1] > w[0]).count();
        assert_eq!(rises + usize::from(values[0] > 0), 2);
        assert!(*values.iter().max().unwrap() >= 118);
    }
}
