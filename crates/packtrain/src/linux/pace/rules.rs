//! `struct pace_rule`, `pace_rate` and `pace_rules` of bpf/pace.h: at which rates streams leave.

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use packtrain_proto::class::condition::{Match, Side, Test};
use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::wire::packet::IpVersion;

use super::settings::mapped;
use super::{TcpError, map_error, map_handle};

/// As in bpf/pace.h.
pub const RULES_MAX: usize = 16;
pub const ROWS_MAX: usize = 32;

const RULES_MAP: &str = "rules";
const RATES_MAP: &str = "rates";
const RULES_NOW_MAP: &str = ".data.rules_now";

const ROW_LEN: usize = 40;
/// `sizeof(struct pace_rule)`.
const RULE_LEN: usize = 8 + ROWS_MAX * ROW_LEN;

const ROW_PORT: u8 = 1;
const ROW_ADDRESS: u8 = 2;
const ROW_VERSION: u8 = 3;

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TCP: u32 = 6;
const UDP: u32 = 17;

/// Who has a rule's rate together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    EachStream,
    EachDestination,
    AllStreams,
}

/// What streams that match have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Not 0, and never another one's again.
    pub id: u32,
    pub rows: Rows,
    /// Bytes of IP packets a second; `None`: what the path carries.
    pub rate: Option<u64>,
    pub shared: Shared,
}

/// A match as the program compares it with a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows(Vec<[u8; ROW_LEN]>);

/// Why a match is not about connections.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    #[error(
        "UDP is paced where it leaves, and not at its sockets as TCP is: say by which interface, as in --link eth1"
    )]
    Udp,
    #[error("no TCP connection can match {0:?}")]
    NotTcp(String),
    #[error(
        "{0:?} cannot be asked of a connection, only of a frame: a rule asks for addresses (src, dst, host), ports (sport, \
         dport, port), ip or ip6"
    )]
    OfFrames(String),
    #[error("it compares {0} values, and at most {ROWS_MAX} are possible: write two rules")]
    TooMany(usize),
}

struct Row {
    what: u8,
    is_local: bool,
    first: u16,
    last: u16,
    prefix: (u128, u128),
}

impl Row {
    fn port(is_local: bool, (first, last): (u32, u32)) -> Row {
        Row {
            what: ROW_PORT,
            is_local,
            first: first as u16,
            last: last as u16,
            prefix: (0, 0),
        }
    }

    fn address(is_local: bool, prefix: &Prefix) -> Row {
        Row {
            what: ROW_ADDRESS,
            is_local,
            first: match prefix.version() {
                IpVersion::V4 => 4,
                IpVersion::V6 => 6,
            },
            last: 0,
            prefix: mapped(prefix),
        }
    }

    fn encode(&self, is_negated: bool, ends: bool) -> [u8; ROW_LEN] {
        let mut bytes = [0; ROW_LEN];
        bytes[0] = self.what;
        bytes[1] = u8::from(self.is_local);
        bytes[2] = u8::from(is_negated);
        bytes[3] = u8::from(ends);
        bytes[4..6].copy_from_slice(&self.first.to_ne_bytes());
        bytes[6..8].copy_from_slice(&self.last.to_ne_bytes());
        bytes[8..24].copy_from_slice(&self.prefix.0.to_be_bytes());
        bytes[24..40].copy_from_slice(&self.prefix.1.to_be_bytes());
        bytes
    }
}

/// This host's end is the source of what it sends.
fn ends_of(side: Side) -> &'static [bool] {
    match side {
        Side::Source => &[true],
        Side::Destination => &[false],
        Side::Either => &[true, false],
    }
}

impl Rows {
    pub fn of(matches: &Match) -> Result<Rows, RowsError> {
        let mut rows = Vec::new();
        for condition in matches.conditions() {
            let said = || Match::one(condition.clone()).to_string();
            let of_it: Vec<Row> = match &condition.test {
                Test::Protocol(protocols) => match protocols.contains(TCP) != condition.negated {
                    true => continue,
                    false if protocols.contains(UDP) && !condition.negated => {
                        return Err(RowsError::Udp);
                    }
                    false => return Err(RowsError::NotTcp(said())),
                },
                Test::EtherType(types) => {
                    let is = |version| types.contains(version) != condition.negated;
                    match (is(IPV4), is(IPV6)) {
                        (true, true) => continue,
                        (false, false) => return Err(RowsError::NotTcp(said())),
                        (v4, _) => {
                            let version = if v4 { 4 } else { 6 };
                            let row = Row {
                                what: ROW_VERSION,
                                ..Row::port(false, (version, version))
                            };
                            rows.push(row.encode(false, true));
                            continue;
                        }
                    }
                }
                Test::Address(side, prefixes) => ends_of(*side)
                    .iter()
                    .flat_map(|&local| prefixes.iter().map(move |it| Row::address(local, it)))
                    .collect(),
                Test::Port(side, ports) => ends_of(*side)
                    .iter()
                    .flat_map(|&local| ports.iter().map(move |it| Row::port(local, it)))
                    .collect(),
                _ => return Err(RowsError::OfFrames(said())),
            };
            let last = of_it.len() - 1;
            let of_it = of_it.iter().enumerate();
            rows.extend(of_it.map(|(place, row)| row.encode(condition.negated, place == last)));
        }
        match rows.len() {
            0..=ROWS_MAX => Ok(Rows(rows)),
            many => Err(RowsError::TooMany(many)),
        }
    }
}

impl Rule {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(RULE_LEN);
        bytes.extend(self.id.to_ne_bytes());
        bytes.extend((self.rows.0.len() as u32).to_ne_bytes());
        bytes.extend(self.rows.0.iter().flatten());
        bytes.resize(RULE_LEN, 0);
        bytes
    }

    fn encode_rate(&self) -> [u8; 16] {
        let shared: u32 = match self.shared {
            Shared::EachStream => 0,
            Shared::EachDestination => 1,
            Shared::AllStreams => 2,
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.rate.unwrap_or(0).to_ne_bytes());
        bytes[8..12].copy_from_slice(&shared.to_ne_bytes());
        bytes
    }
}

/// The rules that the program has.
#[derive(Debug)]
pub(super) struct Told {
    rules: MapHandle,
    rates: MapHandle,
    now: MapHandle,
    ids: Vec<u32>,
    /// Which half of the map is in use.
    half: u32,
}

impl Told {
    pub(super) fn open(object: &Object) -> libbpf_rs::Result<Told> {
        Ok(Told {
            rules: map_handle(object, RULES_MAP)?,
            rates: map_handle(object, RATES_MAP)?,
            now: map_handle(object, RULES_NOW_MAP)?,
            ids: Vec::new(),
            half: 0,
        })
    }

    /// Streams have to be settled after that, and [`Told::forget_others`] told.
    pub(super) fn tell(&mut self, rules: &[Rule], lease_until_ns: u64) -> Result<(), TcpError> {
        let half = 1 - self.half;
        for (place, rule) in (half * RULES_MAX as u32..).zip(rules) {
            let told =
                self.rates
                    .update(&rule.id.to_ne_bytes(), &rule.encode_rate(), MapFlags::ANY);
            told.map_err(map_error(RATES_MAP))?;
            let told = self
                .rules
                .update(&place.to_ne_bytes(), &rule.encode(), MapFlags::ANY);
            told.map_err(map_error(RULES_MAP))?;
            if !self.ids.contains(&rule.id) {
                self.ids.push(rule.id);
            }
        }
        self.put_now(half, rules.len() as u32, lease_until_ns)?;
        self.half = half;
        Ok(())
    }

    /// No stream has any but these any more.
    pub(super) fn forget_others(&mut self, rules: &[Rule]) -> Result<(), TcpError> {
        let mut gone = Ok(());
        self.ids.retain(|id| {
            let stays = rules.iter().any(|rule| rule.id == *id);
            if !stays && let Err(error) = self.rates.delete(&id.to_ne_bytes()) {
                gone = Err(error);
            }
            stays
        });
        gone.map_err(map_error(RATES_MAP))
    }

    /// They go on giving until then.
    pub(super) fn extend(&self, count: usize, lease_until_ns: u64) -> Result<(), TcpError> {
        self.put_now(self.half, count as u32, lease_until_ns)
    }

    fn put_now(&self, half: u32, count: u32, lease_until_ns: u64) -> Result<(), TcpError> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&lease_until_ns.to_ne_bytes());
        bytes[8..12].copy_from_slice(&(half * RULES_MAX as u32).to_ne_bytes());
        bytes[12..].copy_from_slice(&count.to_ne_bytes());
        let told = self.now.update(&[0; 4], &bytes, MapFlags::ANY);
        told.map_err(map_error(RULES_NOW_MAP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Rows, RowsError> {
        Rows::of(&text.parse().unwrap())
    }

    #[test]
    fn what_a_connection_can_be_asked_becomes_rows() {
        let whole = rows("tcp dst 192.0.2.0/24,2001:db8::/32 not sport 22,8000-8999 ip").unwrap();
        let whole = whole.0;
        assert_eq!(whole.len(), 5);
        // what, local end, negated, last of its condition
        let heads: Vec<[u8; 4]> = whole
            .iter()
            .map(|row| row[..4].try_into().unwrap())
            .collect();
        assert_eq!(
            heads,
            [
                [ROW_ADDRESS, 0, 0, 0],
                [ROW_ADDRESS, 0, 0, 1],
                [ROW_PORT, 1, 1, 0],
                [ROW_PORT, 1, 1, 1],
                [ROW_VERSION, 0, 0, 1],
            ]
        );
        assert_eq!(
            whole[3][4..8],
            [8000u16, 8999].map(u16::to_ne_bytes).concat()
        );
        assert_eq!(
            whole[0][8..24],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 0]
        );
        assert_eq!([whole[0][4], whole[1][4], whole[4][4]], [4, 6, 4], "of IP");
        assert_eq!(rows("any").unwrap().0.len(), 0);
        assert_eq!(rows("tcp not udp").unwrap().0.len(), 0);
        assert_eq!(rows("host 10.0.0.1").unwrap().0.len(), 2, "either end");
    }

    #[test]
    fn what_no_connection_can_be_asked_is_refused_with_the_reason() {
        assert_eq!(rows("udp dport 443"), Err(RowsError::Udp));
        assert_eq!(rows("not tcp"), Err(RowsError::NotTcp("not tcp".into())));
        assert_eq!(rows("arp"), Err(RowsError::NotTcp("arp".into())));
        assert_eq!(
            rows("tcp dscp ef"),
            Err(RowsError::OfFrames("dscp ef".into()))
        );
        let ports: Vec<String> = (1..=16).map(|port| (2 * port).to_string()).collect();
        let ports = ports.join(",");
        let text = format!("port {ports} dport {ports}");
        assert_eq!(rows(&text), Err(RowsError::TooMany(48)));
    }
}
