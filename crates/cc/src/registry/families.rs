//! Entries of a registry that are made when they are asked for.

use std::sync::OnceLock;

/// Entries by name, to which others can be added while references to some are held: shared by a registry's clones.
pub(crate) struct Found<E> {
    first: OnceLock<Box<Node<E>>>,
}

struct Node<E> {
    name: String,
    entry: E,
    next: OnceLock<Box<Self>>,
}

impl<E> Found<E> {
    pub(crate) const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// All entries with their names, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &E)> {
        let nodes = std::iter::successors(self.first.get(), |node| node.next.get());
        nodes.map(|node| (node.name.as_str(), &node.entry))
    }

    /// Adds an entry; of several of one name the first is found.
    pub(crate) fn add(&self, name: &str, entry: E) {
        let mut node = Box::new(Node { name: name.into(), entry, next: OnceLock::new() });
        let mut place = &self.first;
        // Where another thread has filled the place, the next one is tried.
        while let Err(refused) = place.set(node) {
            node = refused;
            match place.get() {
                Some(taken) => place = &taken.next,
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_added_while_others_are_held_and_by_several_threads() {
        let found = Found::new();
        found.add("a", 1);
        let get = |name: &str| found.iter().find(|(known, _)| *known == name).map(|(_, entry)| entry);
        let held = get("a");
        found.add("a", 2);
        std::thread::scope(|threads| {
            for n in 0..4 {
                let found = &found;
                threads.spawn(move || (0..50).for_each(|i| found.add(&format!("{n}-{i}"), i)));
            }
        });
        assert_eq!(held, Some(&1));
        assert_eq!(found.iter().count(), 202);
        for n in 0..4 {
            assert_eq!(get(&format!("{n}-49")), Some(&49));
        }
        assert_eq!(get("b"), None);
    }
}
