use super::*;
use proptest::prelude::*;

/// The entry of a node by its children.
fn has_count(places: &Places, node: u32) -> Option<(u16, u32)> {
    places.by_children.iter().find(|(_, n)| *n == node).copied()
}

/// Checks every invariant of the trees.
fn check(forest: &Forest) -> Result<(), TestCaseError> {
    for (&node, m) in &forest.members {
        for tree in 0..forest.trees() {
            // Up from every node each tree ends, at the root or at a node without a parent.
            let (mut at, mut hops) = (node, 0);
            while let Some(parent) = forest.parent(at, tree) {
                prop_assert!(forest.children(parent, tree).any(|c| c == at), "{parent} knows its child {at}");
                prop_assert!(parent == ROOT || forest.forwards(parent) == Some(tree), "{parent} forwards in {tree}");
                (at, hops) = (parent, hops + 1);
                prop_assert!(hops <= forest.len(), "a cycle in tree {tree} above {node}");
            }
            let connected = at == ROOT;
            prop_assert_eq!(forest.depth(node, tree), connected.then_some(hops as u16), "{} in {}", node, tree);

            let count = forest.children(node, tree).count();
            let inner = node == ROOT || m.forwards == Some(tree);
            prop_assert!(inner || count == 0, "{node} forwards in one tree");
            for c in forest.children(node, tree) {
                prop_assert_eq!(forest.parent(c, tree), Some(node));
            }
            if !inner {
                continue;
            }
            let open = m.depth.filter(|_| !m.closed);
            let places = &forest.trees[usize::from(tree)];
            let has = |set: &BTreeSet<(u16, u32)>| set.iter().filter(|(_, n)| *n == node).copied().collect::<Vec<_>>();
            let room = open.filter(|_| count < usize::from(m.degree)).map(|d| (d, node));
            prop_assert_eq!(has(&places.free), room.into_iter().collect::<Vec<_>>());
            let leaves = forest.children(node, tree).any(|c| forest.forwards(c) != Some(tree));
            let room = open.filter(|_| leaves).map(|d| (d, node));
            prop_assert_eq!(has(&places.with_leaves), room.into_iter().collect::<Vec<_>>());
            let by_children = Some((count as u16, node)).filter(|_| node != ROOT && !m.closed);
            prop_assert_eq!(has_count(places, node), by_children);
        }
    }
    for tree in 0..forest.trees() {
        let inner = forest.members.values().filter(|m| m.forwards == Some(tree));
        let capacity: u64 = inner.map(|m| u64::from(m.degree)).sum();
        prop_assert_eq!(forest.capacity(tree), capacity + u64::from(forest.root_share()));
    }
    Ok(())
}

/// Adds a node and places it in all trees.
fn join(forest: &mut Forest, node: u32, degree: u16) -> usize {
    forest.add(node, degree);
    (0..forest.trees()).filter(|t| forest.place(node, *t, None, &mut vec![]).is_some()).count()
}

#[test]
fn a_thousand_nodes_of_the_source_s_rate_form_shallow_trees() {
    // Each node can feed as many children as there are trees: it sends what it receives.
    let mut forest = Forest::new(5, 25);
    for node in 1..=1_000 {
        assert_eq!(join(&mut forest, node, 6), 5);
    }
    check(&forest).unwrap();
    for tree in 0..5 {
        let depths: Vec<u16> = forest.nodes().map(|n| forest.depth(n, tree).expect("connected")).collect();
        // 5 + 30 + 180 + 1,080 places at distances 1 to 4.
        assert_eq!(depths.iter().max(), Some(&4));
        assert_eq!(depths.iter().filter(|d| **d == 1).count(), 5);
        assert!(depths.iter().filter(|d| **d <= 3).count() >= 205, "the upper levels are full");
    }
}

#[test]
fn a_node_that_forwards_takes_the_place_of_a_leaf_near_the_root() {
    let mut forest = Forest::new(1, 2);
    assert_eq!(join(&mut forest, 1, 0), 1);
    assert_eq!(join(&mut forest, 2, 0), 1);
    forest.add(3, 2);
    let placed = forest.place(3, 0, None, &mut vec![]);
    assert_eq!(placed, Some(Placed { parent: ROOT, displaced: Some(1), switched: None }));
    assert_eq!((forest.parent(1, 0), forest.depth(1, 0)), (Some(3), Some(2)));
    // A leaf waits if there is no place.
    assert_eq!(join(&mut forest, 4, 0), 1);
    forest.add(5, 0);
    assert_eq!(forest.place(5, 0, None, &mut vec![]), None);
    check(&forest).unwrap();
}

#[test]
fn a_node_with_children_but_without_room_evicts_a_leaf() {
    let mut forest = Forest::new(1, 2);
    join(&mut forest, 1, 1);
    join(&mut forest, 2, 0);
    join(&mut forest, 3, 0);
    assert_eq!((forest.parent(2, 0), forest.parent(3, 0)), (Some(ROOT), Some(1)));
    // 1 loses its place; a leaf takes it.
    forest.detach(1, 0);
    assert_eq!(forest.depth(3, 0), None);
    assert_eq!(join(&mut forest, 4, 0), 1);
    let mut orphans = vec![];
    let placed = forest.place(1, 0, None, &mut orphans).expect("there are leaves");
    assert_eq!((placed.parent, placed.displaced, &orphans[..]), (ROOT, Some(2), &[(2, 0)][..]));
    assert_eq!((forest.parent(2, 0), forest.depth(3, 0)), (None, Some(2)));
    check(&forest).unwrap();
}

#[test]
fn nodes_switch_to_a_tree_that_has_lost_its_relays() {
    let mut forest = Forest::new(4, 16);
    (1..=40).for_each(|n| {
        join(&mut forest, n, 8);
    });
    let relays: Vec<u32> = forest.nodes().filter(|n| forest.forwards(*n) == Some(2)).collect();
    let mut waiting = vec![];
    relays.iter().for_each(|n| forest.remove(*n, &mut waiting));
    waiting.retain(|(n, _)| !relays.contains(n));
    let mut switched = 0;
    while let Some((node, tree)) = waiting.pop() {
        let placed = forest.place(node, tree, None, &mut waiting).expect("there is a place");
        switched += u32::from(placed.switched.is_some());
    }
    check(&forest).unwrap();
    assert_eq!(forest.nodes().count(), 30);
    // Four places are the root's; three relays have too few of the others, four have 32.
    assert_eq!(switched, 4);
    assert!((0..4).all(|t| forest.nodes().all(|n| forest.depth(n, t).is_some())));
}

#[test]
fn a_parent_is_avoided_and_a_closed_node_gets_no_children() {
    let mut forest = Forest::new(1, 1);
    join(&mut forest, 1, 2);
    forest.add(2, 0);
    assert_eq!(forest.place(2, 0, Some(1), &mut vec![]), None);
    forest.set_closed(1, true);
    assert_eq!(forest.place(2, 0, None, &mut vec![]), None);
    forest.set_closed(1, false);
    assert_eq!(forest.place(2, 0, None, &mut vec![]).map(|p| p.parent), Some(1));
    forest.reduce_degree(1);
    forest.add(3, 0);
    assert_eq!(forest.place(3, 0, None, &mut vec![]), None, "its degree is 1 now");
    check(&forest).unwrap();
}

#[derive(Clone, Debug)]
enum Op {
    Join(u16),
    Remove(usize),
    Detach(usize, u8),
    Place(usize, u8, Option<usize>),
    Close(usize, bool),
    Reduce(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u16..7).prop_map(Op::Join),
        1 => any::<usize>().prop_map(Op::Remove),
        2 => (any::<usize>(), 0u8..6).prop_map(|(n, t)| Op::Detach(n, t)),
        3 => (any::<usize>(), 0u8..6, any::<Option<usize>>()).prop_map(|(n, t, a)| Op::Place(n, t, a)),
        1 => any::<(usize, bool)>().prop_map(|(n, c)| Op::Close(n, c)),
        1 => any::<usize>().prop_map(Op::Reduce),
    ]
}

proptest! {
    #[test]
    fn no_tree_has_a_cycle_and_nodes_forward_in_one_tree(
        trees in 1u8..6, root in 0u16..20, ops in proptest::collection::vec(op(), 1..120),
    ) {
        let mut forest = Forest::new(trees, root);
        let mut next = 1;
        let mut orphans = vec![];
        for op in ops {
            // Numbers of nodes that have left, and of none, are used too.
            let node = |n: usize| (n % (next as usize + 1)) as u32;
            match op {
                Op::Join(degree) => {
                    join(&mut forest, next, degree);
                    next += 1;
                }
                Op::Remove(n) => forest.remove(node(n), &mut orphans),
                Op::Detach(n, t) => { forest.detach(node(n), t); }
                Op::Place(n, t, avoid) => {
                    let (n, avoid) = (node(n), avoid.map(node));
                    if let Some(placed) = forest.place(n, t, avoid, &mut orphans) {
                        prop_assert_ne!(Some(placed.parent), avoid);
                        prop_assert_eq!(forest.parent(n, t), Some(placed.parent));
                        prop_assert!(forest.depth(n, t).is_some());
                    }
                }
                Op::Close(n, closed) => forest.set_closed(node(n), closed),
                Op::Reduce(n) => forest.reduce_degree(node(n)),
            }
            check(&forest)?;
        }
    }

    #[test]
    fn after_a_fifth_has_left_all_others_are_placed(seed: u64, degree in 7u16..12) {
        let mut forest = Forest::new(5, 25);
        (1..=200).for_each(|n| { join(&mut forest, n, degree); });
        let mut orphans = vec![];
        let leaving: Vec<u32> = (1..=200).filter(|n| (seed ^ u64::from(*n)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61 == 0).take(40).collect();
        leaving.iter().for_each(|n| forest.remove(*n, &mut orphans));
        orphans.retain(|(n, _)| !leaving.contains(n));
        // Those that forward are taken first, from the end.
        orphans.sort_by_key(|&(n, t)| (forest.forwards(n) == Some(t), n, t));
        let mut waiting = orphans;
        while let Some((n, t)) = waiting.pop() {
            let placed = forest.place(n, t, None, &mut waiting);
            prop_assert!(placed.is_some(), "{n} in {t}");
        }
        check(&forest)?;
        for node in forest.nodes() {
            prop_assert!((0..5).all(|t| forest.depth(node, t).is_some_and(|d| d <= 8)));
        }
    }
}
