//! MPTCP over all wires: how it is told of them, and what the kernel says that it made of them.

use serde::Serialize;

use crate::lab::host::Host;
use crate::lab::namespaces::Namespace;
use crate::lab::table::{Table, grouped};
use crate::lab::{Result, wire};

/// More than there are wires.
const LIMITS: &str = "ip mptcp limits set subflow 8 add_addr_accepted 8; ip mptcp endpoint flush";

/// B offers these addresses of its interfaces, and A connects to them as well.
pub fn use_all(a: &Host, b: &Host, offered: &[(String, String)]) -> Result<()> {
    for host in [a, b] {
        host.namespace.sh(LIMITS)?;
    }
    for (interface, address) in offered {
        b.namespace.exec([
            "ip", "mptcp", "endpoint", "add", address, "dev", interface, "signal",
        ])?;
    }
    Ok(())
}

/// One of a connection, by what `ss` says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subflow {
    pub to: String,
    pub congestion: String,
    pub acknowledged_bytes: u64,
}

/// The subflows that a host has now to a port.
pub fn seen(host: &Namespace, port: u16) -> Result<Vec<Subflow>> {
    let filter = format!("dport = :{port}");
    let text = host.exec(["ss", "-tinOH", "state", "established", &filter])?;
    Ok(text.lines().filter_map(read).collect())
}

/// `0 0 10.100.0.1:40000 10.100.0.2:7000 … cubic wscale:7,7 … bytes_acked:1 …`
fn read(line: &str) -> Option<Subflow> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let to = words.get(3)?.rsplit_once(':')?.0;
    let acknowledged = words
        .iter()
        .find_map(|word| word.strip_prefix("bytes_acked:"));
    // The control's name stands right before how windows are scaled.
    let scale = words.iter().position(|word| word.starts_with("wscale:"));
    let congestion = scale.and_then(|at| words.get(at.checked_sub(1)?));
    Some(Subflow {
        to: to.to_owned(),
        congestion: congestion.copied().unwrap_or("?").to_owned(),
        acknowledged_bytes: acknowledged.and_then(|n| n.parse().ok()).unwrap_or(0),
    })
}

/// Joins that the host's kernel has counted so far.
pub fn joins(host: &Namespace) -> Result<u64> {
    wire::mptcp_counter(host, "MPJoinSynAckRx")
}

/// What MPTCP had of a wire in one part, all rounds together.
#[derive(Clone, Debug, Serialize)]
pub struct SubflowUse {
    pub part: String,
    pub to: String,
    /// In how many rounds there was one.
    pub rounds: usize,
    pub acknowledged_bytes: u64,
    pub congestion: String,
    /// Subflows beside the first that the kernel counted, of all wires and rounds.
    pub joins: u64,
}

impl SubflowUse {
    /// `rounds`: the subflows of each, and how many of them had joined.
    pub fn of(part: &str, rounds: &[(Vec<Subflow>, u64)]) -> Vec<SubflowUse> {
        let joins = rounds.iter().map(|(_, joins)| joins).sum();
        let mut uses: Vec<SubflowUse> = Vec::new();
        for subflow in rounds.iter().flat_map(|(subflows, _)| subflows) {
            let at = uses.iter().position(|of| of.to == subflow.to);
            let at = at.unwrap_or_else(|| {
                uses.push(SubflowUse {
                    part: part.to_owned(),
                    to: subflow.to.clone(),
                    rounds: 0,
                    acknowledged_bytes: 0,
                    congestion: subflow.congestion.clone(),
                    joins,
                });
                uses.len() - 1
            });
            let of = &mut uses[at];
            of.rounds += 1;
            of.acknowledged_bytes += subflow.acknowledged_bytes;
            if of.congestion != subflow.congestion {
                of.congestion = format!("{}, {}", of.congestion, subflow.congestion);
            }
        }
        uses.sort_by(|a, b| a.to.cmp(&b.to));
        uses
    }
}

pub fn subflows_table(uses: &[SubflowUse]) -> Table {
    let mut table = Table::new(&[
        "what MPTCP sent",
        "to",
        "congestion control",
        "in rounds",
        "acknowledged bytes",
        "share",
        "joins",
    ]);
    for of in uses {
        let of_part = uses.iter().filter(|other| other.part == of.part);
        let all: u64 = of_part.map(|other| other.acknowledged_bytes).sum();
        let share = 100.0 * of.acknowledged_bytes as f64 / all.max(1) as f64;
        table.row([
            of.part.clone(),
            of.to.clone(),
            of.congestion.clone(),
            of.rounds.to_string(),
            grouped(of.acknowledged_bytes as f64),
            format!("{share:.0} %"),
            of.joins.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(to: &str, control: &str, bytes: u64) -> String {
        format!(
            "0      1448 10.100.0.1:40000 {to}:7000 cubic-looking {control} wscale:7,7 rto:204 \
             rtt:0.1/0.05 mss:1448 cwnd:10 bytes_sent:9000 bytes_acked:{bytes} segs_out:7 tcp-ulp-mptcp flags:Mmec"
        )
    }

    #[test]
    fn what_ss_says_of_a_subflow_is_read() {
        let subflow = read(&line("10.100.1.2", "cubic", 4711)).unwrap();
        let expected = Subflow {
            to: "10.100.1.2".to_owned(),
            congestion: "cubic".to_owned(),
            acknowledged_bytes: 4711,
        };
        assert_eq!(subflow, expected);
        assert_eq!(read(""), None);
    }

    #[test]
    fn rounds_are_added_up_by_where_subflows_went_to() {
        let of = |to, control, bytes| read(&line(to, control, bytes)).unwrap();
        let rounds = [
            (
                vec![of("10.0.1.2", "cubic", 5), of("10.0.0.2", "cubic", 10)],
                1,
            ),
            (vec![of("10.0.0.2", "bbr", 20)], 0),
        ];
        let uses = SubflowUse::of("x", &rounds);
        let told: Vec<_> = uses
            .iter()
            .map(|of| (of.to.as_str(), of.rounds, of.acknowledged_bytes, of.joins))
            .collect();
        assert_eq!(told, [("10.0.0.2", 2, 30, 1), ("10.0.1.2", 1, 5, 1)]);
        assert_eq!(uses[0].congestion, "cubic, bbr");
    }
}
