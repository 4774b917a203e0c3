//! A topology's file: TOML in, [`Topology`] out, and every mistake with its line and key.
//!
//! ```toml
//! about = "Two hosts and seven clients"    # seed = 1
//! [[host]]
//! name = "a"                               # packtrain = true, up = ["--balance", "round-robin"]
//! [[host]]
//! name = "c"
//! count = 7                                # c1 to c7; a wire to c is one to each
//! [[switch]]
//! name = "s"
//! [[hub]]
//! name = "h"
//! rate = "10mbit"
//! [[wire]]
//! ends = ["a", "s"]                        # count = 1, mtu = 1500, and the settings of `Change`
//! rate = "100mbit"
//! [wire.from.a]                            # what differs in that direction
//! loss = "1%"
//! ```

use std::path::Path;
use std::str::FromStr;

use toml::Spanned;
use toml::de::DeValue;

use super::change::Change;
use super::check::Part;
use super::direction::Direction;
use super::{HOSTS_MAX, Host, Name, Node, NodeKind, SEED_DEFAULT, Topology};
use crate::settings::values::check_mtu;
use crate::settings::{LINKS_MAX, MTU_DEFAULT};
use crate::toml_reader::{
    Errors, FileErrors, Table, boolean, integer, parse_scalar, parse_str, read, string, wrong_type,
};
use crate::units::BitRate;

/// Reads the topology out of `text`. `path` is for the errors, and its file is what the topology
/// is called.
pub fn parse(path: &Path, text: &str) -> Result<Topology, FileErrors> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    read(path, text, |table, errors| {
        Reader::new(&name).read(table, errors)
    })
}

/// The topology as far as it is read, and which table each of its parts comes from.
struct Reader<'a> {
    topology: Topology,
    groups: Vec<Group>,
    hosts: Vec<Table<'a>>,
    nodes: Vec<Table<'a>>,
    wires: Vec<Table<'a>>,
    /// By the place of a host, node or wire in the topology: the place of its table above.
    host_tables: Vec<usize>,
    node_tables: Vec<usize>,
    wire_tables: Vec<usize>,
    /// Something could not be read: what the whole says of it would be wrong.
    incomplete: bool,
}

/// Hosts that are described once: `name = "c"`, `count = 7` makes c1 to c7. A wire to c is one to
/// each.
struct Group {
    name: Name,
    members: Vec<Name>,
}

impl<'a> Reader<'a> {
    fn new(name: &str) -> Reader<'a> {
        Reader {
            topology: Topology::new(name),
            groups: Vec::new(),
            hosts: Vec::new(),
            nodes: Vec::new(),
            wires: Vec::new(),
            host_tables: Vec::new(),
            node_tables: Vec::new(),
            wire_tables: Vec::new(),
            incomplete: false,
        }
    }

    fn read(mut self, table: &mut Table<'a>, errors: &mut Errors<'_>) -> Option<Topology> {
        table.optional("about", errors, &mut self.topology.about, |v| {
            string(v).map(|about| Some(about.to_owned()))
        });
        let mut seed = SEED_DEFAULT as u32;
        table.optional("seed", errors, &mut seed, integer);
        self.topology.seed = seed.into();

        for mut host in tables(table, "host", errors) {
            self.read_host(&mut host, errors);
            self.hosts.push(host);
        }
        for kind in ["switch", "hub"] {
            for mut node in tables(table, kind, errors) {
                self.read_node(&mut node, kind, errors);
                self.nodes.push(node);
            }
        }
        self.check_groups(errors);
        for mut wire in tables(table, "wire", errors) {
            self.read_wire(&mut wire, errors);
            self.wires.push(wire);
        }
        table.refuse_the_rest(errors);
        if !self.incomplete {
            self.check(table, errors);
        }
        Some(self.topology)
    }

    fn read_host(&mut self, table: &mut Table<'a>, errors: &mut Errors<'_>) {
        let name = table.required("name", errors, parse_str::<Name>);
        let mut count = None;
        table.optional("count", errors, &mut count, |v| {
            within(v, HOSTS_MAX).map(Some)
        });
        let mut packtrain = true;
        table.optional("packtrain", errors, &mut packtrain, boolean);
        let up = table.list("up", errors, |value, errors| {
            let text = string(value.get_ref()).map(str::to_owned);
            errors.take(value.span(), "host.up", text)
        });
        table.refuse_the_rest(errors);
        let Some(name) = name else {
            self.incomplete = true;
            return;
        };
        let members = match count {
            None => vec![name],
            Some(count) => {
                let members: Result<Vec<Name>, _> =
                    (1..=count).map(|i| format!("{name}{i}").parse()).collect();
                match members {
                    Ok(members) => {
                        self.groups.push(Group {
                            name,
                            members: members.clone(),
                        });
                        members
                    }
                    Err(error) => {
                        self.incomplete = true;
                        return table.refuse(Some("count"), error.to_string(), errors);
                    }
                }
            }
        };
        for name in members {
            self.host_tables.push(self.hosts.len());
            self.topology.hosts.push(Host {
                name,
                packtrain,
                up: up.clone(),
            });
        }
    }

    fn read_node(&mut self, table: &mut Table<'a>, kind: &str, errors: &mut Errors<'_>) {
        let name = table.required("name", errors, parse_str::<Name>);
        let kind = match kind {
            "hub" => table
                .required("rate", errors, parse_scalar::<BitRate>)
                .map(|rate| NodeKind::Hub { rate_bps: rate.0 }),
            _ => Some(NodeKind::Switch),
        };
        table.refuse_the_rest(errors);
        match (name, kind) {
            (Some(name), Some(kind)) => {
                self.node_tables.push(self.nodes.len());
                self.topology.nodes.push(Node { name, kind });
            }
            _ => self.incomplete = true,
        }
    }

    fn check_groups(&self, errors: &mut Errors<'_>) {
        for group in &self.groups {
            let is_named = self.topology.host(&group.name).is_some()
                || self.topology.node(&group.name).is_some();
            let groups = self.groups.iter();
            if is_named || groups.filter(|other| other.name == group.name).count() > 1 {
                let first = self
                    .topology
                    .hosts
                    .iter()
                    .position(|host| group.members[0] == host.name);
                let table = &self.hosts[self.host_tables[first.expect("its members are hosts")]];
                table.refuse(
                    Some("name"),
                    format!("{} is the name of two", group.name),
                    errors,
                );
            }
        }
    }

    fn read_wire(&mut self, table: &mut Table<'a>, errors: &mut Errors<'_>) {
        let ends = table.required("ends", errors, two_names);
        let mut count = 1;
        table.optional("count", errors, &mut count, |v| within(v, LINKS_MAX));
        let mut mtu = MTU_DEFAULT;
        table.optional("mtu", errors, &mut mtu, |v| {
            check_mtu(integer(v)?).map_err(|e| e.to_string())
        });
        let change = read_change(table, errors);
        let from = table.get("from");
        table.refuse_the_rest(errors);
        let Some(ends) = ends else {
            self.incomplete = true;
            return;
        };
        let mut directions = [Direction::default(), Direction::default()];
        directions
            .iter_mut()
            .for_each(|direction| change.apply(direction));
        if let Some(from) = from {
            self.read_from(from, &ends, &mut directions, errors);
        }
        let [from, to] = ends.each_ref().map(|end| self.members(end));
        if from.len() > 1 && to.len() > 1 {
            self.incomplete = true;
            let message = format!(
                "{} and {} are several each: one end of a wire may be",
                ends[0], ends[1]
            );
            return table.refuse(Some("ends"), message, errors);
        }
        for a in &from {
            for b in &to {
                for _ in 0..count {
                    self.topology.connect(a, b, mtu, directions.clone());
                    self.wire_tables.push(self.wires.len());
                }
            }
        }
    }

    /// What differs in one direction: a table for each end, by its name.
    fn read_from(
        &self,
        value: &'a Spanned<DeValue<'a>>,
        ends: &[Name; 2],
        directions: &mut [Direction; 2],
        errors: &mut Errors<'_>,
    ) {
        let Some(table) = Table::of(value, "wire.from", "[wire.from.a]", errors) else {
            return;
        };
        for (name, span, value) in table.entries() {
            let key = format!("wire.from.{name}");
            let Some(end) = ends.iter().position(|end| end.as_str() == name) else {
                let message = format!("no end of this wire: it has {} and {}", ends[0], ends[1]);
                errors.add(span, Some(key), message);
                continue;
            };
            let Some(mut table) = Table::of(value, &key, "[wire.from.a]", errors) else {
                continue;
            };
            let change = read_change(&mut table, errors);
            table.refuse_the_rest(errors);
            change.apply(&mut directions[end]);
            if self.topology.node(&ends[end]).is_some() {
                let message = format!("{name} is no host, so it has no port of its own");
                for port_key in ["port_rate", "port_queue"] {
                    if table.entries().any(|(key, ..)| key == port_key) {
                        table.refuse(Some(port_key), message.clone(), errors);
                    }
                }
            }
        }
    }

    fn members(&self, end: &Name) -> Vec<Name> {
        let group = self.groups.iter().find(|group| group.name == *end);
        group.map_or_else(|| vec![end.clone()], |group| group.members.clone())
    }

    fn check(&self, root: &Table<'a>, errors: &mut Errors<'_>) {
        for (part, contradiction) in self.topology.check() {
            let message = contradiction.to_string();
            let (table, key) = match part {
                Part::Whole => (root, Some("host")),
                Part::Host(i) => (&self.hosts[self.host_tables[i]], contradiction.key()),
                Part::Node(i) => (&self.nodes[self.node_tables[i]], contradiction.key()),
                Part::Wire(i) => (&self.wires[self.wire_tables[i]], contradiction.key()),
            };
            table.refuse(key, message, errors);
        }
    }
}

fn tables<'a>(
    table: &mut Table<'a>,
    kind: &'static str,
    errors: &mut Errors<'_>,
) -> Vec<Table<'a>> {
    table.list(kind, errors, |value, errors| {
        Table::of(value, kind, &format!("[[{kind}]]"), errors)
    })
}

fn within(value: &DeValue<'_>, most: usize) -> Result<u32, String> {
    let number = integer(value)?;
    let right = (1..=most as u32).contains(&number);
    right
        .then_some(number)
        .ok_or_else(|| format!("{number} is not within 1 to {most}"))
}

fn two_names(value: &DeValue<'_>) -> Result<[Name; 2], String> {
    let expected = || wrong_type("two names, as in [\"a\", \"b\"]", value);
    let array = value.as_array().ok_or_else(expected)?;
    let names: Result<Vec<Name>, String> =
        array.iter().map(|name| parse_str(name.get_ref())).collect();
    names?
        .try_into()
        .map_err(|names: Vec<Name>| format!("a wire has two ends, this one has {}", names.len()))
}

/// The settings of a wire, by the names that they have on the command line.
fn read_change(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Change {
    let mut change = Change::default();
    value(table, "rate", errors, &mut change.rate);
    value(table, "port_rate", errors, &mut change.port_rate);
    value(table, "port_queue", errors, &mut change.port_queue);
    value(table, "queue", errors, &mut change.queue);
    value(
        table,
        "queue_discipline",
        errors,
        &mut change.queue_discipline,
    );
    value(
        table,
        "packets_per_second",
        errors,
        &mut change.packets_per_second,
    );
    value(table, "delay", errors, &mut change.delay);
    value(table, "jitter", errors, &mut change.jitter);
    value(table, "loss", errors, &mut change.loss);
    value(table, "bit_errors", errors, &mut change.bit_errors);
    value(table, "duplicate", errors, &mut change.duplicate);
    value(table, "reorder", errors, &mut change.reorder);
    value(table, "corrupt", errors, &mut change.corrupt);
    change
}

fn value<T: FromStr<Err: std::fmt::Display>>(
    table: &mut Table<'_>,
    key: &'static str,
    errors: &mut Errors<'_>,
    into: &mut Option<T>,
) {
    table.optional(key, errors, into, |v| parse_scalar(v).map(Some));
}

#[cfg(test)]
mod tests;
