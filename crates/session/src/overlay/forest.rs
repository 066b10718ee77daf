//! The trees as the focus knows them: who is whose parent, and where a node is placed.
//!
//! All trees have the same root. A node forwards in one tree at most and is a leaf in the others, so that the loss of
//! one node interrupts one tree for those below it, and no node needs to send more than its degree allows (as in
//! SplitStream, Castro et al., SOSP 2003). A node is placed as near to the root as possible. One that forwards takes
//! the place of a leaf, which becomes its child, where there is no free place as near: otherwise leaves that joined early
//! would keep nodes with children at the bottom.
//!
//! Only nodes connected to the root are parents of others, so that no tree can have a cycle.

use std::collections::{BTreeMap, BTreeSet};

/// Most trees of an overlay.
pub const MAX_TREES: u8 = 16;
/// The root's number.
pub const ROOT: u32 = 0;

/// A child of a node, in one tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Child {
    tree: u8,
    node: u32,
}

/// A node's place, as known to the focus.
#[derive(Clone, Debug)]
struct Member {
    /// Most children.
    degree: u16,
    /// The tree in which it forwards; `None` for one without children, and for the root, which forwards in all.
    forwards: Option<u8>,
    /// Its parent in each tree.
    parents: Box<[Option<u32>]>,
    /// Its children in the trees in which it forwards.
    children: Vec<Child>,
    /// Hops from the root in the tree in which it forwards; `None` while it is not connected to the root there.
    depth: Option<u16>,
    /// Whether it gets no further children.
    closed: bool,
}

/// Changes made by placing a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Its parent.
    pub parent: u32,
    /// The leaf that it has displaced, if any, which has become the node's child if the node has room.
    pub displaced: Option<u32>,
    /// A node that forwards in this tree from now on instead of another.
    pub switched: Option<u32>,
}

/// Nodes of a tree that can take a child, by their distance from the root.
#[derive(Clone, Debug, Default)]
struct Places {
    /// Nodes with room for a further child.
    free: BTreeSet<(u16, u32)>,
    /// Nodes with a child that forwards nothing in this tree.
    with_leaves: BTreeSet<(u16, u32)>,
    /// Nodes that forward in this tree, by their number of children.
    by_children: BTreeSet<(u16, u32)>,
    /// Children that all nodes which forward in this tree can have.
    capacity: u64,
}

/// All trees.
#[derive(Clone, Debug)]
pub struct Forest {
    members: BTreeMap<u32, Member>,
    trees: Vec<Places>,
    root_share: u16,
}

impl Forest {
    /// Trees with only a root, which can have `root_degree` children in all trees together, at least one in each.
    ///
    /// The number of trees is limited to 1 to [`MAX_TREES`].
    pub fn new(trees: u8, root_degree: u16) -> Self {
        let trees = trees.clamp(1, MAX_TREES);
        let root_share = (root_degree / u16::from(trees)).max(1);
        let root = Member {
            degree: root_share,
            forwards: None,
            parents: vec![None; trees.into()].into(),
            children: Vec::new(),
            depth: Some(0),
            closed: false,
        };
        let places = Places { capacity: root_share.into(), ..Places::default() };
        let mut forest =
            Self { members: BTreeMap::from([(ROOT, root)]), trees: vec![places; trees.into()], root_share };
        (0..trees).for_each(|t| forest.list(ROOT, t));
        forest
    }

    /// Number of trees.
    pub fn trees(&self) -> u8 {
        self.trees.len() as u8
    }
    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.members.len()
    }
    /// Whether there is only the root.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }
    /// All nodes but the root, in order.
    pub fn nodes(&self) -> impl Iterator<Item = u32> {
        self.members.keys().copied().filter(|n| *n != ROOT)
    }
    /// A node's parent in a tree.
    pub fn parent(&self, node: u32, tree: u8) -> Option<u32> {
        *self.members.get(&node)?.parents.get(usize::from(tree))?
    }
    /// A node's children in a tree.
    pub fn children(&self, node: u32, tree: u8) -> impl Iterator<Item = u32> {
        let children = self.members.get(&node).map_or(&[][..], |m| &m.children);
        children.iter().filter(move |c| c.tree == tree).map(|c| c.node)
    }
    /// The tree in which a node forwards.
    pub fn forwards(&self, node: u32) -> Option<u8> {
        self.members.get(&node)?.forwards
    }
    /// Most children of a node; of the root, in each tree.
    pub fn degree(&self, node: u32) -> u16 {
        self.members.get(&node).map_or(0, |m| m.degree)
    }
    /// Hops from the root to a node in a tree; `None` if it is not connected to the root there.
    pub fn depth(&self, node: u32, tree: u8) -> Option<u16> {
        let m = self.members.get(&node)?;
        if node == ROOT || m.forwards == Some(tree) {
            return m.depth;
        }
        self.depth_below((*m.parents.get(usize::from(tree))?)?, tree)
    }
    /// The depth of a child of a node that forwards in the tree.
    fn depth_below(&self, parent: u32, tree: u8) -> Option<u16> {
        let m = self.members.get(&parent)?;
        let forwards = parent == ROOT || m.forwards == Some(tree);
        m.depth.filter(|_| forwards).map(|d| d.saturating_add(1))
    }

    /// Adds a node with room for this many children. It forwards in the tree with the least capacity. It has no parents
    /// yet. A node that is there already stays as it is.
    pub fn add(&mut self, node: u32, degree: u16) {
        if self.members.contains_key(&node) {
            return;
        }
        let least = (0..self.trees()).min_by_key(|t| self.trees[usize::from(*t)].capacity);
        let forwards = least.filter(|_| degree > 0);
        let parents = vec![None; self.trees.len()].into();
        let member = Member { degree, forwards, parents, children: Vec::new(), depth: None, closed: false };
        self.members.insert(node, member);
        if let Some(t) = forwards {
            let places = &mut self.trees[usize::from(t)];
            places.capacity += u64::from(degree);
            places.by_children.insert((0, node));
        }
    }

    /// Whether a node gets further children. The root always does.
    pub fn set_closed(&mut self, node: u32, closed: bool) {
        if node == ROOT || self.members.get(&node).is_none_or(|m| m.closed == closed) {
            return;
        }
        self.change(node, |m| m.closed = closed);
    }

    /// Reduces the number of children that a node may have; those that it has it keeps.
    pub fn reduce_degree(&mut self, node: u32) {
        let Some(forwards) = self.forwards(node).filter(|_| self.degree(node) > 1) else { return };
        self.trees[usize::from(forwards)].capacity -= 1;
        self.change(node, |m| m.degree -= 1);
    }

    /// Changes what decides on a node's further children.
    fn change(&mut self, node: u32, change: impl FnMut(&mut Member)) {
        let Some(tree) = self.forwards(node) else {
            return self.members.get_mut(&node).into_iter().for_each(change);
        };
        self.unlist(node, tree);
        self.members.get_mut(&node).into_iter().for_each(change);
        self.list(node, tree);
    }

    /// Enters a node into the lists of its tree, as its present state requires.
    fn list(&mut self, node: u32, tree: u8) {
        let Some(m) = self.members.get(&node) else { return };
        let count = m.children.iter().filter(|c| c.tree == tree).count();
        let leaves = m.children.iter().filter(|c| c.tree == tree).any(|c| self.forwards(c.node) != Some(tree));
        let places = &mut self.trees[usize::from(tree)];
        if let Some(depth) = m.depth.filter(|_| !m.closed) {
            if count < usize::from(m.degree) {
                places.free.insert((depth, node));
            }
            if leaves {
                places.with_leaves.insert((depth, node));
            }
        }
        if node != ROOT && !m.closed {
            places.by_children.insert((count as u16, node));
        }
    }

    /// Removes a node from the lists of its tree, before a change.
    fn unlist(&mut self, node: u32, tree: u8) {
        let Some(m) = self.members.get(&node) else { return };
        let count = m.children.iter().filter(|c| c.tree == tree).count();
        let places = &mut self.trees[usize::from(tree)];
        if let Some(depth) = m.depth {
            places.free.remove(&(depth, node));
            places.with_leaves.remove(&(depth, node));
        }
        places.by_children.remove(&(count as u16, node));
    }

    /// Places a node that has no parent in this tree, not below `avoid`; `None` if there is no place for it now. Appends
    /// the nodes that have lost a parent by it, with the tree.
    pub fn place(&mut self, node: u32, tree: u8, avoid: Option<u32>, orphans: &mut Vec<(u32, u8)>) -> Option<Placed> {
        self.place_as_is(node, tree, avoid, orphans).or_else(|| {
            let switched = Some(self.switch_to(tree, node, avoid, orphans)?);
            self.place_as_is(node, tree, avoid, orphans).map(|placed| Placed { switched, ..placed })
        })
    }

    /// Places a node without changing what others forward.
    fn place_as_is(&mut self, node: u32, tree: u8, avoid: Option<u32>, orphans: &mut Vec<(u32, u8)>) -> Option<Placed> {
        let m = self.members.get(&node)?;
        if node == ROOT || m.parents.get(usize::from(tree)).is_none_or(Option::is_some) {
            return None;
        }
        let (forwards, children) = (m.forwards == Some(tree), m.children.len());
        let has_room = children < usize::from(m.degree) && !m.closed;
        let first = |set: &BTreeSet<(u16, u32)>| set.iter().copied().find(|(_, n)| Some(*n) != avoid && *n != node);
        let free = first(&self.trees[usize::from(tree)].free);
        let with_leaf = first(&self.trees[usize::from(tree)].with_leaves).filter(|_| forwards);
        // A node that can feed the leaf takes its place if that is nearer to the root; one that has children takes it
        // also if nothing is free, since more nodes depend on it.
        let takes = match (free, with_leaf) {
            (Some((near, _)), Some((depth, _))) => depth < near && has_room,
            (None, Some(_)) => has_room || children > 0,
            _ => false,
        };
        if let Some((_, parent)) = with_leaf.filter(|_| takes) {
            let leaf = self.children(parent, tree).filter(|c| self.forwards(*c) != Some(tree)).min()?;
            self.detach(leaf, tree);
            self.attach(node, tree, parent);
            if has_room {
                self.attach(leaf, tree, node);
            } else {
                orphans.push((leaf, tree));
            }
            return Some(Placed { parent, displaced: Some(leaf), switched: None });
        }
        let (_, parent) = free?;
        self.attach(node, tree, parent);
        Some(Placed { parent, displaced: None, switched: None })
    }

    /// Makes a node forward in `tree`, whose nodes cannot have as many children as there are nodes, instead of in a tree
    /// whose nodes can have more: one with few children, which lose their parent. It is connected there, or is the node
    /// `placed` itself, which then takes the place of a leaf.
    fn switch_to(&mut self, tree: u8, placed: u32, avoid: Option<u32>, orphans: &mut Vec<(u32, u8)>) -> Option<u32> {
        let needed = self.members.len() as u64 - 1;
        let lacks_parent = |m: &&Member| m.parents.get(usize::from(tree)) == Some(&None);
        self.members.get(&placed).filter(lacks_parent).filter(|_| placed != ROOT)?;
        let places = self.trees.get(usize::from(tree)).filter(|places| places.capacity < needed)?;
        let has_leaf = places.with_leaves.iter().any(|(_, n)| Some(*n) != avoid);
        let mut others: Vec<u8> = (0..self.trees()).filter(|t| *t != tree).collect();
        others.sort_by_key(|t| core::cmp::Reverse(self.capacity(*t)));
        let (from, node) = others.into_iter().find_map(|from| {
            let suits = |n: &u32| {
                let left = self.capacity(from) - u64::from(self.degree(*n));
                let is_there = if *n == placed { has_leaf } else { self.depth(*n, tree).is_some() };
                Some(*n) != avoid && left >= needed && is_there
            };
            let nodes = self.trees[usize::from(from)].by_children.iter().map(|(_, n)| *n);
            nodes.into_iter().find(suits).map(|n| (from, n))
        })?;
        let children: Vec<u32> = self.children(node, from).collect();
        for child in children {
            self.detach(child, from);
            orphans.push((child, from));
        }
        self.unlist(node, from);
        let (parent, depth) = (self.parent(node, tree), self.depth(node, tree));
        let parents = [parent.map(|p| (p, tree)), self.parent(node, from).map(|p| (p, from))];
        // To its parent in the one tree it is no leaf any more, to that in the other it is one now.
        parents.into_iter().flatten().for_each(|(p, t)| self.unlist(p, t));
        if let Some(m) = self.members.get_mut(&node) {
            (m.forwards, m.depth) = (Some(tree), depth);
        }
        parents.into_iter().flatten().for_each(|(p, t)| self.list(p, t));
        let degree = u64::from(self.degree(node));
        self.trees[usize::from(from)].capacity -= degree;
        self.trees[usize::from(tree)].capacity += degree;
        self.list(node, tree);
        Some(node)
    }

    fn attach(&mut self, node: u32, tree: u8, parent: u32) {
        self.unlist(parent, tree);
        if let Some(p) = self.members.get_mut(&parent) {
            p.children.push(Child { tree, node });
        }
        if let Some(m) = self.members.get_mut(&node) {
            m.parents[usize::from(tree)] = Some(parent);
        }
        self.list(parent, tree);
        self.set_depths(node, tree, self.depth_below(parent, tree));
    }

    /// Removes the hop from a node's parent to it; returns the parent. What is below the node stays below it.
    pub fn detach(&mut self, node: u32, tree: u8) -> Option<u32> {
        let parent = self.members.get_mut(&node)?.parents.get_mut(usize::from(tree))?.take()?;
        self.unlist(parent, tree);
        if let Some(p) = self.members.get_mut(&parent) {
            p.children.retain(|c| *c != Child { tree, node });
        }
        self.list(parent, tree);
        self.set_depths(node, tree, None);
        Some(parent)
    }

    /// Sets the depth of a node that forwards in the tree, and of those below it.
    fn set_depths(&mut self, node: u32, tree: u8, depth: Option<u16>) {
        let mut next = vec![(node, depth)];
        while let Some((node, depth)) = next.pop() {
            if self.forwards(node) != Some(tree) {
                continue;
            }
            self.unlist(node, tree);
            if let Some(m) = self.members.get_mut(&node) {
                m.depth = depth;
            }
            self.list(node, tree);
            let below = depth.map(|d| d.saturating_add(1));
            next.extend(self.children(node, tree).map(|c| (c, below)));
        }
    }

    /// Removes a node, and appends those that have lost a parent by it, with the tree.
    pub fn remove(&mut self, node: u32, orphans: &mut Vec<(u32, u8)>) {
        if node == ROOT {
            return;
        }
        for tree in 0..self.trees() {
            self.detach(node, tree);
        }
        let children = self.members.get(&node).map(|m| m.children.clone()).unwrap_or_default();
        for c in children {
            self.detach(c.node, c.tree);
            orphans.push((c.node, c.tree));
        }
        if let Some(tree) = self.forwards(node) {
            self.unlist(node, tree);
            self.trees[usize::from(tree)].capacity -= u64::from(self.degree(node));
        }
        self.members.remove(&node);
    }

    /// Children that the nodes of a tree can have.
    pub fn capacity(&self, tree: u8) -> u64 {
        self.trees.get(usize::from(tree)).map_or(0, |t| t.capacity)
    }
    /// Children of the root in each tree.
    pub fn root_share(&self) -> u16 {
        self.root_share
    }
}

#[cfg(test)]
mod tests;
