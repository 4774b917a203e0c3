//! Settings of a wire as a person gives them: those of a wire that is described, and those that
//! change on one that runs. What is not said stays as it is.

use std::fmt;
use std::str::FromStr;

use super::direction::{
    Counts, Direction, Discipline, Jitter, Loss, PORT_QUEUE_PACKETS_DEFAULT, PacketRate, Port,
    QueueLimit, Rate, Reorder,
};
use super::{Name, Topology};
use crate::units::{BitRate, ErrorRate, Packets, Share, Time};

/// A setting that can be taken away: the value, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrNone<T>(pub Option<T>);

impl<T: FromStr> FromStr for OrNone<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<OrNone<T>, T::Err> {
        match text {
            "none" => Ok(OrNone(None)),
            text => text.parse().map(|value| OrNone(Some(value))),
        }
    }
}

impl<T: fmt::Display> fmt::Display for OrNone<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.pad("none"),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct Change {
    /// Rate of the wire and of the host's port into it; with `:ip`, of the wire alone and of IP
    /// packets [none: unlimited].
    #[arg(long, value_name = "RATE")]
    pub rate: Option<OrNone<Rate>>,

    /// Rate of the host's own port, where it is another.
    #[arg(long, value_name = "RATE")]
    pub port_rate: Option<OrNone<BitRate>>,

    /// Packets that the host's own port queues.
    #[arg(long, value_name = "PACKETS")]
    pub port_queue: Option<Packets>,

    /// What the wire queues, in bytes (256kb) or packets (100p).
    #[arg(long, value_name = "SIZE")]
    pub queue: Option<QueueLimit>,

    /// What becomes of the wire's queue: drop-tail, codel[:TARGET,INTERVAL], fq-codel[:QUANTUM[,TARGET,INTERVAL]],
    /// red:LEAST,MOST,SHARE, each of these three also with `,ecn`, drr[:QUANTUM[,LIMIT]], short-first[:SIZE] or ecn:SIZE.
    #[arg(long, value_name = "HOW")]
    pub queue_discipline: Option<Discipline>,

    /// At most so many packets a second: N or N:BURST, or none.
    #[arg(long, value_name = "N")]
    pub packets_per_second: Option<OrNone<PacketRate>>,

    /// How long a frame travels.
    #[arg(long, value_name = "TIME")]
    pub delay: Option<Time>,

    /// What is added to the delay, differently for each frame: TIME, normal:TIME or pareto:TIME,
    /// with `,unordered` if frames may overtake; or none.
    #[arg(long, value_name = "TIME")]
    pub jitter: Option<OrNone<Jitter>>,

    /// Frames that vanish: SHARE, gilbert:P,R,GOOD,BAD, every:N or frames:N,N; or none.
    #[arg(long, value_name = "SHARE")]
    pub loss: Option<OrNone<Loss>>,

    /// Share of bits that flip: a frame with one is lost, so long frames are lost more often.
    #[arg(long, value_name = "SHARE")]
    pub bit_errors: Option<OrNone<ErrorRate>>,

    /// Frames that arrive twice.
    #[arg(long, value_name = "SHARE")]
    pub duplicate: Option<OrNone<Share>>,

    /// Frames that are held back so that others overtake them: SHARE:TIME, or none.
    #[arg(long, value_name = "SHARE:TIME")]
    pub reorder: Option<OrNone<Reorder>>,

    /// Frames that arrive with changed bytes that no check of Ethernet finds.
    #[arg(long, value_name = "SHARE")]
    pub corrupt: Option<OrNone<Share>>,
}

fn set<T: Clone, U>(into: &mut Option<U>, from: &Option<OrNone<T>>, convert: impl Fn(T) -> U) {
    if let Some(OrNone(value)) = from {
        *into = value.clone().map(convert);
    }
}

impl Change {
    pub fn is_empty(&self) -> bool {
        *self == Change::default()
    }

    /// Of a direction that a host sends; what a switch sends has no port, see
    /// [`Topology::change`].
    pub fn apply(&self, direction: &mut Direction) {
        let Direction { port, wire } = direction;
        if let Some(OrNone(rate)) = self.rate {
            wire.rate = rate;
            // A rate of IP packets is that of a line further on, and no NIC's.
            let of_ethernet = rate.filter(|rate| rate.counts == Counts::Ethernet);
            port.rate_bps = of_ethernet.map(|rate| rate.bps);
        }
        set(&mut port.rate_bps, &self.port_rate, |rate| rate.0);
        if let Some(Packets(packets)) = self.port_queue {
            port.queue_packets = Some(packets as u32);
        }
        *port = port.completed(None);
        wire.queue.limit = self.queue.unwrap_or(wire.queue.limit);
        wire.queue.discipline = self.queue_discipline.unwrap_or(wire.queue.discipline);
        set(
            &mut wire.packets_per_second,
            &self.packets_per_second,
            |n| n,
        );
        wire.delay_ns = self.delay.map_or(wire.delay_ns, |delay| delay.0);
        set(&mut wire.jitter, &self.jitter, |jitter| jitter);
        set(&mut wire.loss, &self.loss, |loss| loss);
        set(&mut wire.bit_error_rate, &self.bit_errors, |rate| rate.0);
        set(&mut wire.duplicate, &self.duplicate, |share| share.0);
        set(&mut wire.reorder, &self.reorder, |reorder| reorder);
        set(&mut wire.corrupt, &self.corrupt, |share| share.0);
    }

    /// Whether it speaks of the host's port alone.
    fn names_port(&self) -> bool {
        self.port_rate.is_some() || self.port_queue.is_some()
    }
}

impl Port {
    /// A port that has a rate has a queue.
    pub(super) fn completed(self, hub_rate_bps: Option<u64>) -> Port {
        let rate_bps = self.rate_bps.or(hub_rate_bps);
        let queue_packets = self
            .queue_packets
            .or(rate_bps.map(|_| PORT_QUEUE_PACKETS_DEFAULT));
        Port {
            rate_bps,
            queue_packets,
        }
    }
}

/// Why settings of a wire cannot be changed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("there is no wire {name}; there are {}", known.join(", "))]
    NoWire { name: String, known: Vec<String> },
    #[error("{node} is no end of {wire}; its ends are {} and {}", ends[0], ends[1])]
    NoEnd {
        wire: String,
        node: String,
        ends: [Name; 2],
    },
    #[error("{node} is no host, so it has no port of its own: set the wire's rate and queue")]
    NoPort { node: Name },
    #[error("{wire} ends at a hub, which has one rate for all")]
    HubRate { wire: String },
}

impl Topology {
    /// The place of a wire, and of the direction in which one of its ends sends, if one is named.
    pub fn direction(
        &self,
        wire: &str,
        from: Option<&str>,
    ) -> Result<(usize, Option<usize>), ChangeError> {
        let Some(index) = self.wires.iter().position(|w| w.name == wire) else {
            return Err(ChangeError::NoWire {
                name: wire.into(),
                known: self.wires.iter().map(|wire| wire.name.clone()).collect(),
            });
        };
        let Some(node) = from else {
            return Ok((index, None));
        };
        let ends = &self.wires[index].ends;
        match ends.iter().position(|end| end.node == *node) {
            Some(end) => Ok((index, Some(end))),
            None => Err(ChangeError::NoEnd {
                wire: wire.into(),
                node: node.into(),
                ends: ends.each_ref().map(|end| end.node.clone()),
            }),
        }
    }

    /// Changes one direction of a wire, or both: nothing, when it returns an error.
    pub fn change(
        &mut self,
        wire: &str,
        from: Option<&str>,
        change: &Change,
    ) -> Result<(), ChangeError> {
        let (index, end) = self.direction(wire, from)?;
        let ends = self.wires[index].ends.clone().map(|end| end.node);
        let at_hub = self.hub_rate_bps(ends.each_ref()).is_some();
        if at_hub && (change.rate.is_some() || change.port_rate.is_some()) {
            return Err(ChangeError::HubRate { wire: wire.into() });
        }
        let mut meant = ends.iter().enumerate();
        let has_port =
            meant.any(|(i, node)| end.is_none_or(|e| e == i) && self.host(node).is_some());
        if change.names_port() && !has_port {
            let node = ends[end.unwrap_or(0)].clone();
            return Err(ChangeError::NoPort { node });
        }
        for (i, node) in ends.iter().enumerate() {
            if end.is_none_or(|end| end == i) {
                let is_host = self.host(node).is_some();
                let direction = &mut self.wires[index].directions[i];
                change.apply(direction);
                if !is_host {
                    direction.port = Port::default();
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::ready;
    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        change: Change,
    }

    fn change(words: &str) -> Change {
        let words = std::iter::once("set").chain(words.split_whitespace());
        Line::try_parse_from(words).unwrap().change
    }

    #[test]
    fn what_is_said_changes_and_the_rest_stays() {
        let mut direction = Direction::default();
        change(
            "--rate 100mbit --queue 50p --queue-discipline codel --packets-per-second 5000 \
             --delay 5ms --jitter 1ms --loss 1% --bit-errors 1e-6 --duplicate 2% \
             --reorder 3%:1ms --corrupt 4%",
        )
        .apply(&mut direction);
        let before = direction.clone();
        assert_eq!(
            before.port,
            Port {
                rate_bps: Some(100_000_000),
                queue_packets: Some(1000)
            }
        );
        assert_eq!(before.wire.bit_error_rate, Some(1e-6));
        assert_eq!(before.wire.duplicate, Some(0.02));
        assert_eq!(before.wire.corrupt, Some(0.04));

        change("").apply(&mut direction);
        assert_eq!(direction, before);
        change("--delay 6ms").apply(&mut direction);
        assert_eq!(direction.wire.delay_ns, 6_000_000);
        direction.wire.delay_ns = 5_000_000;
        assert_eq!(direction, before);
    }

    #[test]
    fn none_takes_a_setting_away() {
        let mut direction = Direction::default();
        change("--rate 1mbit --loss 1% --jitter 1ms --port-queue 7").apply(&mut direction);
        change("--rate none --loss none --jitter none").apply(&mut direction);
        direction.port.queue_packets = None;
        assert_eq!(direction, Direction::default());
        assert_eq!(OrNone::<Time>(None).to_string(), "none");
        assert_eq!(OrNone(Some(Time(5_000))).to_string(), "5us");
    }

    #[test]
    fn a_rate_of_ip_packets_is_no_ports() {
        let mut direction = Direction::default();
        change("--rate 599mbit:ip").apply(&mut direction);
        assert_eq!(direction.port, Port::default());
        change("--rate 599mbit:ip --port-rate 1gbit").apply(&mut direction);
        assert_eq!(direction.port.rate_bps, Some(1_000_000_000));
        assert_eq!(direction.wire.rate.unwrap().to_string(), "599mbit:ip");
    }

    #[test]
    fn one_direction_changes_alone() {
        let mut topology = ready::find("pair").unwrap();
        let before = topology.clone();
        topology
            .change("a-b.0", Some("b"), &change("--delay 3ms"))
            .unwrap();
        let [there, back] = &topology.wires[0].directions;
        assert_eq!(*there, before.wires[0].directions[0]);
        assert_eq!(back.wire.delay_ns, 3_000_000);
    }

    #[test]
    fn a_switch_keeps_no_port_when_its_wire_changes() {
        let mut topology = ready::find("mixed").unwrap();
        let before = topology.wires[0].clone();
        topology
            .change("a-s.0", None, &change("--rate 1mbit"))
            .unwrap();
        let [from_host, from_switch] = &topology.wires[0].directions;
        assert_eq!(from_host.port.rate_bps, Some(1_000_000));
        assert_eq!(from_switch.port, before.directions[1].port);
        assert_eq!(from_switch.wire.rate, from_host.wire.rate);
    }

    #[test]
    fn what_cannot_be_changed_is_told() {
        let mut topology = ready::find("pair").unwrap();
        let mut error = |wire, from, words| {
            let error = topology.change(wire, from, &change(words)).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            error("a-c.0", None, "--delay 1ms"),
            "there is no wire a-c.0; there are a-b.0"
        );
        assert_eq!(
            error("a-b.0", Some("c"), "--delay 1ms"),
            "c is no end of a-b.0; its ends are a and b"
        );
        let mut mixed = ready::find("mixed").unwrap();
        assert_eq!(
            mixed
                .change("a-s.0", Some("s"), &change("--port-queue 5"))
                .unwrap_err()
                .to_string(),
            "s is no host, so it has no port of its own: set the wire's rate and queue"
        );
        let mut dumbbell = ready::find("dumbbell").unwrap();
        assert_eq!(
            dumbbell
                .change("l-r.0", None, &change("--port-rate 1mbit"))
                .unwrap_err()
                .to_string(),
            "l is no host, so it has no port of its own: set the wire's rate and queue"
        );
        let mut hub = ready::find("hub").unwrap();
        assert_eq!(
            hub.change("a-h.0", None, &change("--rate 1mbit"))
                .unwrap_err()
                .to_string(),
            "a-h.0 ends at a hub, which has one rate for all"
        );
    }
}
