use super::*;

fn spec(character: Character, width: u32, height: u32) -> ClipSpec {
    ClipSpec::new(character, width, height, FrameRate::new(30, 1).unwrap())
}

fn pictures(spec: ClipSpec, numbers: &[u64]) -> Vec<Picture> {
    let mut clip = Clip::new(spec).unwrap();
    let mut p = Picture::new(1, 1).unwrap();
    numbers
        .iter()
        .map(|&n| {
            clip.draw(n, &mut p);
            p.clone()
        })
        .collect()
}

#[test]
fn a_picture_is_a_function_of_its_number() {
    for character in Character::ALL {
        let numbers = [0, 1, 200, u64::from(u32::MAX) * 40];
        let forth = pictures(spec(character, 176, 144), &numbers);
        let back = pictures(spec(character, 176, 144), &[numbers[3], numbers[2], numbers[1], numbers[0]]);
        assert!(forth.iter().eq(back.iter().rev()), "{character}");
        assert!(forth[0] != forth[1] && forth[1] != forth[2]);
        let other = pictures(ClipSpec { seed: 2, ..spec(character, 176, 144) }, &numbers[..1]);
        assert!(other[0] != forth[0]);
    }
}

#[test]
fn sizes_may_be_odd_narrow_and_tiny() {
    for character in Character::ALL {
        for (w, h) in [(1, 1), (2, 1), (1, 7), (17, 3), (33, 47), (101, 301), (321, 181)] {
            let all = pictures(spec(character, w, h), &[0, 195, 212]);
            assert!(all.iter().all(|p| (p.width(), p.height()) == (w, h)), "{character} {w}x{h}");
        }
    }
    let wide = Clip::new(spec(Character::Sports, MAX_CLIP_SIDE + 1, 10)).unwrap_err().to_string();
    assert!(wide.contains("4096"), "{wide}");
}

#[test]
fn clips_end_where_they_shall_and_begin_again() {
    let mut clip = Clip::new(ClipSpec { pictures: Some(3), ..spec(Character::TalkingHead, 64, 48) }).unwrap();
    let mut p = Picture::new(1, 1).unwrap();
    let mut read = |clip: &mut Clip| {
        let mut out = vec![];
        while clip.next_picture(&mut p).unwrap() {
            out.push(p.clone());
        }
        out
    };
    let first = read(&mut clip);
    assert_eq!((first.len(), clip.size()), (3, (64, 48)));
    assert!(clip.rewind().unwrap());
    assert_eq!(read(&mut clip), first);
}

#[test]
fn specifications_are_read_from_text() {
    let read = |t: &str| t.parse::<ClipSpec>();
    assert_eq!(read("talking-head").unwrap(), spec(Character::TalkingHead, 640, 480));
    let s = read("sports:1280x720@29.97").unwrap();
    assert_eq!((s.character, s.width, s.height, s.rate.fraction()), (Character::Sports, 1_280, 720, (30_000, 1_001)));
    assert_eq!(read("hand-held@15").unwrap().rate.fraction(), (15, 1));
    for (text, part) in [
        ("foo", "talking-head, hand-held, sports"),
        ("sports:12", "640x480"),
        ("sports@x", "frame rate"),
        ("sports:0x4", "width"),
    ] {
        assert!(read(text).unwrap_err().to_string().contains(part), "{text}");
    }
}

#[test]
fn a_movie_has_cuts_and_titles_and_little_else_changes_at_once() {
    // Mean change of luma between pictures over 30 s: a few steps within scenes, many across cuts.
    let mut clip =
        Clip::new(ClipSpec { rate: FrameRate::new(25, 1).unwrap(), ..spec(Character::Movie, 96, 54) }).unwrap();
    let (mut p, mut changes, mut black) = (Picture::new(1, 1).unwrap(), vec![], 0);
    let mut before: Vec<u8> = vec![];
    for n in 0..25 * 120 {
        clip.draw(n, &mut p);
        let luma = p.plane(crate::Plane::Y);
        let sum: u32 = before.iter().zip(luma).map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
        changes.push(f64::from(sum) / luma.len() as f64);
        black += usize::from(luma.iter().filter(|&&v| v == 16).count() > luma.len() / 2);
        before = luma.to_vec();
    }
    let cuts = changes.iter().filter(|&&c| c > 24.0).count();
    // 33 cuts in 120 s, some between similar scenes, and a flash every 1.3 s in a fifth of the scenes.
    assert!((25..80).contains(&cuts), "{cuts}");
    let calm = changes.iter().filter(|&&c| c < 12.0).count();
    assert!(calm * 10 > changes.len() * 6, "{calm}");
    assert!((25..25 * 30).contains(&black), "{black}");
}

#[test]
fn half_the_rate_is_every_other_picture_without_grain() {
    let clean = ClipSpec { grain: false, ..spec(Character::HandHeld, 176, 144) };
    let slow = ClipSpec { rate: FrameRate::new(15, 1).unwrap(), ..clean };
    let (half, whole) = (pictures(slow, &[7]), pictures(clean, &[14]));
    assert_eq!(half[0].as_i420(), whole[0].as_i420());
    assert_ne!(whole[0].as_i420(), pictures(spec(Character::HandHeld, 176, 144), &[14])[0].as_i420());
}

#[test]
fn half_the_rate_is_every_other_picture_but_for_the_grain() {
    let fast = pictures(spec(Character::HandHeld, 176, 144), &[20]);
    let slow = ClipSpec { rate: FrameRate::new(15, 1).unwrap(), ..spec(Character::HandHeld, 176, 144) };
    let slow = pictures(slow, &[10]);
    // Two independent grains of 2.3 differ by a variance of 10.6, plus rounding: 37.8 dB.
    let psnr = crate::quality::PlaneErrors::between(&fast[0], &slow[0]).unwrap().psnr().y;
    assert!((36.5..39.5).contains(&psnr), "{psnr}");
}

#[test]
fn the_bytes_are_the_same_on_every_machine() {
    // FNV-1a over two pictures. Any change of the drawing changes these numbers, and all results measured with the
    // clips.
    let checksum = |character| {
        let all = pictures(spec(character, 352, 288), &[7, 207]);
        let bytes = all.iter().flat_map(|p| p.as_i420());
        bytes.fold(0xcbf2_9ce4_8422_2325u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
    };
    let expected = [0x740b_9c69_8d12_6ad9, 0x36d1_28fd_db52_1123, 0x2c01_ece5_7216_a734, 0xa6b2_8e68_4e64_f221];
    assert_eq!(Character::ALL.map(checksum), expected);
}
