//! Which box stands in which column: switches in the middle, hosts outside, and a wire never
//! between two of the same column.

use std::collections::{BTreeSet, VecDeque};

use super::super::Topology;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vertex {
    Host(usize),
    Node(usize),
    /// Where a wire crosses a column without an end there.
    Passing,
}

/// A piece of a wire between two neighbouring columns.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub wire: usize,
    /// Places in `Layers::vertices`; the first stands left.
    pub ends: [usize; 2],
    /// Of several pieces, the one with the label.
    pub is_first: bool,
    /// Whether the wire's first end stands right.
    pub is_reversed: bool,
}

/// Boxes and pieces of wire of all that is connected.
#[derive(Debug)]
pub(super) struct Layers {
    pub vertices: Vec<Vertex>,
    /// Places in `vertices`, column by column, from top to bottom.
    pub columns: Vec<Vec<usize>>,
    pub pieces: Vec<Piece>,
}

/// Each part of the topology that is connected, in the order of its hosts.
pub(super) fn parts(topology: &Topology) -> Vec<Layers> {
    let graph = Graph::new(topology);
    let mut left: BTreeSet<usize> = (0..graph.len()).collect();
    let mut parts = Vec::new();
    while let Some(&start) = left.first() {
        let members: BTreeSet<usize> = graph.distances(start, |_| true).map(|(v, _)| v).collect();
        left.retain(|v| !members.contains(v));
        parts.push(graph.layers(&members));
    }
    parts
}

/// Hosts first, then nodes, by their place in the topology.
struct Graph<'a> {
    topology: &'a Topology,
    /// Of each wire.
    ends: Vec<[usize; 2]>,
}

impl<'a> Graph<'a> {
    fn new(topology: &'a Topology) -> Graph<'a> {
        let hosts = topology.hosts.iter().map(|host| &host.name);
        let names: Vec<_> = hosts
            .chain(topology.nodes.iter().map(|node| &node.name))
            .collect();
        let place = |name| names.iter().position(|other| *other == name);
        let wires = topology.wires.iter();
        let ends = wires.map(|wire| {
            let ends = wire.ends.each_ref();
            ends.map(|end| place(&end.node).expect("a topology that was checked"))
        });
        Graph {
            topology,
            ends: ends.collect(),
        }
    }

    fn len(&self) -> usize {
        self.topology.hosts.len() + self.topology.nodes.len()
    }

    fn is_host(&self, vertex: usize) -> bool {
        vertex < self.topology.hosts.len()
    }

    fn neighbours(&self, vertex: usize) -> impl Iterator<Item = usize> {
        self.ends.iter().filter_map(move |&[a, b]| match vertex {
            v if v == a => Some(b),
            v if v == b => Some(a),
            _ => None,
        })
    }

    /// From `start` over the vertices that `may` be used, nearest first.
    fn distances(
        &self,
        start: usize,
        may: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = (usize, usize)> {
        let mut found = vec![(start, 0)];
        let mut seen = BTreeSet::from([start]);
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((vertex, distance)) = queue.pop_front() {
            for next in self.neighbours(vertex) {
                if may(next) && seen.insert(next) {
                    queue.push_back((next, distance + 1));
                    found.push((next, distance + 1));
                }
            }
        }
        found.into_iter()
    }

    /// Switches and hubs by their distance from the end of the longest way among them, from 1.
    fn place_nodes(&self, members: &BTreeSet<usize>, column: &mut [Option<usize>]) {
        let is_node = |v: usize| !self.is_host(v);
        for &node in members.iter().filter(|&&v| is_node(v)) {
            if column[node].is_some() {
                continue;
            }
            let farthest = |start| {
                let distances = self.distances(start, is_node);
                // The first of the farthest, so that what is named first stands first.
                distances.fold(
                    (start, 0),
                    |far, next| if next.1 > far.1 { next } else { far },
                )
            };
            let (one, _) = farthest(node);
            let (other, _) = farthest(one);
            for (vertex, distance) in self.distances(one.min(other), is_node) {
                column[vertex] = Some(distance + 1);
            }
        }
    }

    /// Hosts of one kind stand on one side: c1 to c7 left, the server right. The kinds take the
    /// sides in turns of half.
    fn stands_right(&self, members: &BTreeSet<usize>, host: usize) -> bool {
        let kind = |v: usize| {
            let name = self.topology.hosts[v].name.as_str();
            name.trim_end_matches(|c: char| c.is_ascii_digit())
        };
        let mut kinds: Vec<&str> = Vec::new();
        for &v in members.iter().filter(|&&v| self.is_host(v)) {
            if !kinds.contains(&kind(v)) {
                kinds.push(kind(v));
            }
        }
        let place = kinds.iter().position(|other| *other == kind(host));
        place.is_some_and(|place| place >= kinds.len().div_ceil(2))
    }

    fn place_hosts(&self, members: &BTreeSet<usize>, column: &mut [Option<usize>]) {
        let nodes: Vec<usize> = members.iter().filter_map(|&v| column[v]).collect();
        let last = nodes.iter().copied().max().unwrap_or(0);
        let first = *members.first().expect("a part has members");
        for (host, _) in self
            .distances(first, |_| true)
            .filter(|&(v, _)| self.is_host(v))
        {
            let at: Vec<usize> = self.neighbours(host).filter_map(|v| column[v]).collect();
            let node = self.neighbours(host).filter(|&v| !self.is_host(v));
            let wanted = match node.filter_map(|v| column[v]).max() {
                Some(_) if nodes.len() == 1 => 2 * usize::from(self.stands_right(members, host)),
                Some(1) => 0,
                Some(node) => node + 1,
                None => at.iter().max().map_or(0, |column| column + 1),
            };
            let free = (0..=last + at.len() + 2).filter(|column| !at.contains(column));
            // Where it is wanted, or else where its wires are shortest.
            let cost = |to: usize| -> usize { at.iter().map(|from| from.abs_diff(to)).sum() };
            column[host] = free.min_by_key(|&to| (to != wanted, cost(to)));
        }
    }

    fn layers(&self, members: &BTreeSet<usize>) -> Layers {
        let mut column = vec![None; self.len()];
        self.place_nodes(members, &mut column);
        self.place_hosts(members, &mut column);
        let used: BTreeSet<usize> = members.iter().filter_map(|&v| column[v]).collect();
        let used: Vec<usize> = used.into_iter().collect();

        let mut layers = Layers {
            vertices: Vec::new(),
            columns: vec![Vec::new(); used.len()],
            pieces: Vec::new(),
        };
        let mut place = vec![(0, 0); self.len()];
        for &v in members {
            let at = column[v].expect("each has a column");
            let at = used.binary_search(&at).expect("one that is used");
            place[v] = (at, layers.vertices.len());
            layers.columns[at].push(layers.vertices.len());
            layers.vertices.push(if self.is_host(v) {
                Vertex::Host(v)
            } else {
                Vertex::Node(v - self.topology.hosts.len())
            });
        }
        for (wire, ends) in self.ends.iter().enumerate() {
            if members.contains(&ends[0]) {
                layers.add_wire(wire, ends.map(|v| place[v]));
            }
        }
        layers.untangle();
        layers
    }
}

impl Layers {
    /// Ends by column and vertex.
    fn add_wire(&mut self, wire: usize, ends: [(usize, usize); 2]) {
        let is_reversed = ends[0].0 > ends[1].0;
        let [mut from, to] = if is_reversed {
            [ends[1], ends[0]]
        } else {
            ends
        };
        let mut is_first = true;
        while from.0 < to.0 {
            let mut next = to;
            if from.0 + 1 < to.0 {
                next = (from.0 + 1, self.vertices.len());
                self.vertices.push(Vertex::Passing);
                self.columns[next.0].push(next.1);
            }
            self.pieces.push(Piece {
                wire,
                ends: [from.1, next.1],
                is_first,
                is_reversed,
            });
            is_first = false;
            from = next;
        }
    }

    /// Each column in the order of what its boxes are joined to: there, back, and there again.
    fn untangle(&mut self) {
        let count = self.columns.len();
        let there = 1..count;
        let back = (0..count.saturating_sub(1)).rev();
        for (at, side) in there
            .clone()
            .map(|at| (at, 1))
            .chain(back.map(|at| (at, 0)))
            .chain(there.map(|at| (at, 1)))
        {
            let beside = if side == 1 { at - 1 } else { at + 1 };
            let mean = |vertex: usize| {
                let pieces = self
                    .pieces
                    .iter()
                    .filter(|piece| piece.ends[side] == vertex);
                let places = pieces.filter_map(|piece| {
                    let other = piece.ends[1 - side];
                    self.columns[beside].iter().position(|v| *v == other)
                });
                let places: Vec<usize> = places.collect();
                (!places.is_empty()).then(|| places.iter().sum::<usize>() * 1000 / places.len())
            };
            let mut order: Vec<(Option<usize>, usize)> =
                self.columns[at].iter().map(|&v| (mean(v), v)).collect();
            order.sort_by_key(|(mean, _)| *mean);
            self.columns[at] = order.into_iter().map(|(_, vertex)| vertex).collect();
        }
    }
}
