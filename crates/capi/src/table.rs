//! Handles: numbers that name a slot, its generation and the kind of object in it.

use crate::controller::Flow;
use crate::failure::{Failure, Status};
use crate::fec::{Decoder, Encoder};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// An object's name: 0 is none. From the top: 8 bits for the kind, 32 for the slot's generation, 24 for the slot.
pub type Handle = u64;

/// Slots of a chunk, and chunks: at most 65,536 objects.
const CHUNK: usize = 256;
const CHUNKS: usize = 256;

/// A kind of object that a handle names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Controller = 1,
    FecEncoder = 2,
    FecDecoder = 3,
    Text = 4,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Controller, Self::FecEncoder, Self::FecDecoder, Self::Text];

    fn of(handle: Handle) -> Option<Self> {
        Self::ALL.into_iter().find(|k| *k as u64 == handle >> 56)
    }
    const fn name(self) -> &'static str {
        match self {
            Self::Controller => "a controller",
            Self::FecEncoder => "a FEC encoder",
            Self::FecDecoder => "a FEC decoder",
            Self::Text => "a text",
        }
    }
}

/// Content of a slot.
pub(crate) enum Object {
    Controller(Box<Flow>),
    FecEncoder(Box<Encoder>),
    FecDecoder(Box<Decoder>),
    Text(String),
}

/// A kind of object by its type.
pub(crate) trait StoredObject: Sized {
    const KIND: Kind;
    fn of(object: &mut Object) -> Option<&mut Self>;
}

macro_rules! stored {
    ($($ty:ty => $kind:ident),*) => {$(
        impl StoredObject for $ty {
            const KIND: Kind = Kind::$kind;
            fn of(object: &mut Object) -> Option<&mut Self> {
                if let Object::$kind(inner) = object { Some(inner) } else { None }
            }
        }
    )*};
}
stored!(Flow => Controller, Encoder => FecEncoder, Decoder => FecDecoder, String => Text);

impl Object {
    const fn kind(&self) -> Kind {
        match self {
            Self::Controller(_) => Kind::Controller,
            Self::FecEncoder(_) => Kind::FecEncoder,
            Self::FecDecoder(_) => Kind::FecDecoder,
            Self::Text(_) => Kind::Text,
        }
    }
}

/// A cache line of its own for each object's lock.
#[repr(align(64))]
#[derive(Default)]
struct Slot(Mutex<Content>);

#[derive(Default)]
struct Content {
    generation: u32,
    object: Option<Object>,
}

type Chunk = Box<[Slot]>;

/// Chunks are made when first needed and never freed, so that a lookup takes no lock but the object's own.
static SLOTS: [OnceLock<Chunk>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
static FREE: Mutex<Free> = Mutex::new(Free { slots: Vec::new(), unused: 0 });

/// Slots without an object.
struct Free {
    /// Those freed.
    slots: Vec<u32>,
    /// The first that has never been used.
    unused: u32,
}

fn slot(index: usize) -> Option<&'static Slot> {
    SLOTS.get(index / CHUNK)?.get()?.get(index % CHUNK)
}

fn free_slots() -> MutexGuard<'static, Free> {
    // Every state of the list is valid.
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps an object and returns its handle.
pub(crate) fn keep(object: Object) -> Result<Handle, Failure> {
    let index = {
        let mut free = free_slots();
        match free.slots.pop() {
            Some(index) => index,
            None if (free.unused as usize) < CHUNK * CHUNKS => {
                free.unused += 1;
                free.unused - 1
            }
            None => {
                let most = CHUNK * CHUNKS;
                return Err(Failure::new(Status::TooMany, format!("{most} objects exist: free some with weir_free")));
            }
        }
    };
    let chunk = SLOTS[index as usize / CHUNK].get_or_init(|| (0..CHUNK).map(|_| Slot::default()).collect());
    let mut content = chunk[index as usize % CHUNK].0.lock().unwrap_or_else(PoisonError::into_inner);
    let handle = (object.kind() as u64) << 56 | u64::from(content.generation) << 24 | u64::from(index);
    content.object = Some(object);
    Ok(handle)
}

fn stale(handle: Handle, kind: Kind) -> Failure {
    Failure::new(Status::BadHandle, format!("handle {handle:#x} names {} that was freed, or none", kind.name()))
}

fn kind_of(handle: Handle) -> Result<Kind, Failure> {
    let expected = "one returned by this library";
    Kind::of(handle).ok_or_else(|| match handle {
        0 => {
            Failure::new(Status::BadHandle, format!("handle is 0: expected {expected}; look at the status of its _new"))
        }
        _ => Failure::new(Status::BadHandle, format!("handle is {handle:#x}: expected {expected}")),
    })
}

/// The slot of a handle, locked, if it still holds the object; and whether a call on it has panicked.
fn locked(handle: Handle, kind: Kind) -> Result<(MutexGuard<'static, Content>, bool), Failure> {
    let slot = slot((handle & 0xff_ffff) as usize).ok_or_else(|| stale(handle, kind))?;
    let (content, broken) = match slot.0.lock() {
        Ok(content) => (content, false),
        Err(poisoned) => (poisoned.into_inner(), true),
    };
    let current = content.generation == (handle >> 24) as u32;
    let here = content.object.as_ref().is_some_and(|o| o.kind() == kind);
    if current && here { Ok((content, broken)) } else { Err(stale(handle, kind)) }
}

/// Calls `f` with the object of a handle. Other calls on it wait.
pub(crate) fn with<T: StoredObject, R>(
    handle: Handle,
    f: impl FnOnce(&mut T) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let kind = kind_of(handle)?;
    if kind != T::KIND {
        let (given, expected) = (kind.name(), T::KIND.name());
        return Err(Failure::new(Status::WrongKind, format!("handle {handle:#x} names {given}: expected {expected}")));
    }
    let (mut content, broken) = locked(handle, kind)?;
    if broken {
        let text = format!("{} failed inside in an earlier call: free it and make another", kind.name());
        return Err(Failure::new(Status::Internal, text));
    }
    let object = content.object.as_mut().and_then(T::of).ok_or_else(|| stale(handle, kind))?;
    f(object)
}

/// Frees an object of any kind.
pub(crate) fn free(handle: Handle) -> Result<(), Failure> {
    let kind = kind_of(handle)?;
    let index = (handle & 0xff_ffff) as u32;
    let (mut content, broken) = locked(handle, kind)?;
    let object = content.object.take();
    // A slot whose generations are used up stays empty, so that no handle comes back.
    let again = content.generation.checked_add(1);
    content.generation = again.unwrap_or(u32::MAX);
    if broken && let Some(slot) = slot(index as usize) {
        slot.0.clear_poison();
    }
    drop(content);
    if again.is_some() {
        free_slots().slots.push(index);
    }
    drop(object);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: &str) -> Handle {
        keep(Object::Text(of.into())).expect("room")
    }
    fn read(handle: Handle) -> Result<String, Failure> {
        with(handle, |t: &mut String| Ok(t.clone()))
    }

    #[test]
    fn a_handle_names_one_object_until_it_is_freed() {
        let first = text("first");
        assert_eq!(read(first).as_deref(), Ok("first"));
        free(first).expect("there");
        assert_eq!(read(first).expect_err("freed").status, Status::BadHandle);
        assert_eq!(free(first).expect_err("freed twice").status, Status::BadHandle);
        // The slot is used again, by another generation. (Other tests take slots too.)
        let next: Vec<Handle> = (0..64).map(|i| text(&i.to_string())).collect();
        assert!(next.iter().all(|&h| h != first) && read(first).is_err());
        for (i, h) in next.into_iter().enumerate() {
            assert_eq!(read(h), Ok(i.to_string()));
            free(h).expect("there");
        }
    }

    #[test]
    fn forged_handles_and_other_kinds_are_refused() {
        let handle = text("kept");
        for forged in [0, 7, u64::MAX, handle ^ 1 << 24, handle | 0xff_ffff, 4 << 56 | 0xff_fffe, 9 << 56] {
            assert_eq!(read(forged).expect_err("forged").status, Status::BadHandle, "{forged:#x}");
        }
        let wrong = with(handle, |_: &mut Flow| Ok(())).expect_err("a text");
        assert_eq!(
            (wrong.status, wrong.text.contains("names a text: expected a controller")),
            (Status::WrongKind, true)
        );
        // The kind's bits alone do not make a text a controller.
        let renamed = handle & !(0xff << 56) | 1 << 56;
        assert_eq!(with(renamed, |_: &mut Flow| Ok(())).expect_err("a text").status, Status::BadHandle);
        free(handle).expect("there");
    }

    #[test]
    fn an_object_whose_call_panicked_can_only_be_freed() {
        let handle = text("broken");
        let call = || with(handle, |_: &mut String| -> Result<(), Failure> { panic!("a fault") });
        assert!(std::panic::catch_unwind(call).is_err());
        assert_eq!(read(handle).expect_err("broken").status, Status::Internal);
        free(handle).expect("there");
        assert_eq!(read(handle).expect_err("freed").status, Status::BadHandle);
    }
}
