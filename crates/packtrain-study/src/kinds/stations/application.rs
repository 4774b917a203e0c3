//! What stations do, in a scenario's file: `[[application]]`.

use core::fmt;
use core::str::FromStr;

use packtrain_proto::time::Duration;
use packtrain_settings::toml_reader::{Errors, Table, parse_scalar, parse_str, string, wrong_type};
use packtrain_settings::units::Bytes;
use packtrain_settings::wire::Rate;
use packtrain_sim::stations::{
    DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN, Disks, Step, TransactionKind, With,
};
use toml::de::DeValue;

use super::file::take_name;
use super::{ApplicationKind, ApplicationSettings, ClassIndex, Over, StationSettings, Ways};
use crate::expression::near;
use crate::kinds::network::tcp::{self, time};
use crate::kinds::read::{bytes, packet_bytes, tables, truth, whole, word};

/// Hosts with packtrain have met by then.
const STARTS: Duration = Duration::from_millis(100);
/// NFS's first one.
const TIMEOUT: Duration = Duration::from_millis(700);
const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// What fits into the packets of every station.
const MSS_MAX: u32 = 1460;
const CONNECTIONS_MAX: u32 = 1000;

/// Who may do something.
#[derive(Debug)]
pub struct Applications<'a> {
    pub stations: &'a [StationSettings],
    /// Some could not be read: what is said of names would be wrong.
    pub incomplete: bool,
    pub taken: &'a mut Vec<String>,
}

#[derive(Clone, Copy)]
enum Kind {
    Bulk,
    Flood,
    PingPong,
    Transactions,
    Copies,
}

const KINDS: [(&str, Kind); 5] = [
    ("bulk", Kind::Bulk),
    ("flood", Kind::Flood),
    ("ping-pong", Kind::PingPong),
    ("transactions", Kind::Transactions),
    ("copies", Kind::Copies),
];

pub fn read(
    applications: &mut Applications<'_>,
    table: &mut Table<'_>,
    errors: &mut Errors<'_>,
) -> Option<ApplicationSettings> {
    let name = take_name(applications.taken, table, errors);
    let mut starts = STARTS;
    table.optional("starts", errors, &mut starts, time(0.0, 3600.0));
    let tcp = tcp::read(table, errors);
    if tcp.mss.is_some_and(|mss| mss > MSS_MAX) {
        let key = if table.get("mss").is_some() {
            "mss"
        } else {
            "size"
        };
        let message = format!("stations' packets have 1500 bytes at most: an mss of {MSS_MAX}");
        table.refuse(Some(key), message, errors);
    }
    let Some(kind) = table.required("kind", errors, word(KINDS)) else {
        KEYS.iter().for_each(|key| {
            table.get(key);
        });
        return None;
    };
    let kind = match kind {
        Kind::Bulk => applications.ways(table, errors).map(ApplicationKind::Bulk),
        Kind::Flood => applications.flood(table, errors),
        Kind::PingPong => applications.ping_pong(table, errors),
        Kind::Transactions => applications.transactions(table, errors),
        Kind::Copies => applications.copies(table, errors),
    };
    Some(ApplicationSettings {
        name: name?,
        kind: kind?,
        starts,
        tcp,
    })
}

/// Of any kind: of one that is none, they are no mistakes of their own.
const KEYS: [&str; 23] = [
    "from",
    "to",
    "count",
    "bytes",
    "under_way",
    "turnaround",
    "server",
    "clients",
    "at_once",
    "over",
    "file",
    "service",
    "think",
    "transaction",
    "reader",
    "disk_rate",
    "disk_seek",
    "copies",
    "remote",
    "together",
    "chunk",
    "socket",
    "timeout",
];

impl Applications<'_> {
    fn ways(&self, table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Ways> {
        let from = table.required("from", errors, |v| self.classes(v));
        let to = table.required("to", errors, |v| self.classes(v));
        let mut count = 1;
        table.optional("count", errors, &mut count, whole(0, CONNECTIONS_MAX));
        if let (Some(from), Some(to)) = (&from, &to) {
            self.meet("to", from, to, table, errors);
        }
        Some(Ways {
            from: from?,
            to: to?,
            count,
        })
    }

    fn flood(&self, table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<ApplicationKind> {
        let ways = self.ways(table, errors);
        let (least, most) = (DATAGRAM_BYTES_MIN as u32, DATAGRAM_BYTES_MAX as u32);
        let bytes = table.required("bytes", errors, packet_bytes(least, most));
        let mut under_way = 16;
        table.optional("under_way", errors, &mut under_way, whole(1, 10_000));
        Some(ApplicationKind::Flood {
            ways: ways?,
            bytes: bytes?,
            under_way,
        })
    }

    fn ping_pong(&self, table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<ApplicationKind> {
        let ways = self.ways(table, errors);
        let bytes = table.required("bytes", errors, bytes(1, BLOCK_BYTES_MAX));
        let mut turnaround = Duration::ZERO;
        table.optional("turnaround", errors, &mut turnaround, time(0.0, 60.0));
        Some(ApplicationKind::PingPong {
            ways: ways?,
            bytes: bytes?,
            turnaround,
        })
    }

    fn transactions(
        &self,
        table: &mut Table<'_>,
        errors: &mut Errors<'_>,
    ) -> Option<ApplicationKind> {
        let server = table.required("server", errors, |v| self.one(v));
        let clients = table.required("clients", errors, |v| self.classes(v));
        if let (Some(server), Some(clients)) = (server, &clients) {
            if clients.contains(&server) && !self.incomplete {
                let message = "the server is none of its clients".to_owned();
                table.refuse(Some("clients"), message, errors);
            }
            self.meet("clients", &[server], clients, table, errors);
        }
        let mut at_once = 1;
        table.optional("at_once", errors, &mut at_once, whole(1, 1000));
        let mut is_tcp = false;
        table.optional(
            "over",
            errors,
            &mut is_tcp,
            word([("udp", false), ("tcp", true)]),
        );
        let mut timeout = TIMEOUT;
        table.optional("timeout", errors, &mut timeout, time(1e-3, 60.0));
        let mut file = FileBytes(0, 0);
        table.optional("file", errors, &mut file, parse_str::<FileBytes>);
        let mut kinds = tables(table, "transaction", errors, transaction);
        if kinds.is_empty() {
            kinds = TransactionKind::postmark();
        }
        let (mut service, mut think) = (Duration::ZERO, Duration::ZERO);
        table.optional("service", errors, &mut service, time(0.0, 60.0));
        table.optional("think", errors, &mut think, time(0.0, 60.0));
        let longest = kinds.iter().flat_map(|kind| &kind.steps).map(|step| {
            let with = |with| if step.file == Some(with) { file.1 } else { 0 };
            let request = step.request_bytes + with(With::Request);
            request.max(step.reply_bytes + with(With::Reply))
        });
        let longest = longest.max().unwrap_or(0);
        if !is_tcp && longest > DATAGRAM_BYTES_MAX {
            let message = format!(
                "with a file there are datagrams of {longest} bytes, and {DATAGRAM_BYTES_MAX} fit into a packet: \
                 less, or over = \"tcp\""
            );
            table.refuse(Some("file"), message, errors);
        }
        Some(ApplicationKind::Transactions {
            server: server?,
            clients: clients?,
            at_once,
            over: match is_tcp {
                true => Over::Tcp,
                false => Over::Udp { timeout },
            },
            kinds,
            file_bytes: (file.0, file.1),
            service,
            think,
        })
    }

    fn copies(&self, table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<ApplicationKind> {
        let server = table.required("server", errors, |v| self.one(v));
        let reader = table.required("reader", errors, |v| self.one(v));
        let mut name = |key| {
            let value = table.get(key)?;
            value.get_ref().as_str().map(str::to_owned)
        };
        if server.is_some() && reader.is_some() && name("server") == name("reader") {
            let message = "the other host is another one than the server".to_owned();
            table.refuse(Some("reader"), message, errors);
        }
        if let (Some(server), Some(reader)) = (server, reader) {
            self.meet("reader", &[server], &[reader], table, errors);
        }
        let disk_rate = table.required("disk_rate", errors, parse_scalar::<Rate>);
        let mut seek = Duration::ZERO;
        table.optional("disk_seek", errors, &mut seek, time(0.0, 1.0));
        let file = table.required("file", errors, bytes(1, BLOCK_BYTES_MAX));
        let copies = table.required("copies", errors, whole(1, CONNECTIONS_MAX));
        let mut remote = 0;
        let most = copies.unwrap_or(CONNECTIONS_MAX);
        table.optional("remote", errors, &mut remote, whole(0, most));
        let mut together = false;
        table.optional("together", errors, &mut together, truth);
        let (mut chunk, mut socket) = (64 << 10, 64 << 10);
        table.optional("chunk", errors, &mut chunk, bytes(1, 1 << 30));
        table.optional("socket", errors, &mut socket, bytes(1, 1 << 30));
        Some(ApplicationKind::Copies {
            server: server?,
            reader: reader?,
            disks: Disks {
                bytes_per_s: (disk_rate?.bps / 8).max(1),
                seek,
            },
            file_bytes: file?,
            copies: copies?,
            remote,
            together,
            chunk_bytes: chunk,
            socket_bytes: socket,
        })
    }

    /// Nobody passes on what is for others: who sends to somebody is plugged in where he is.
    fn meet(
        &self,
        key: &str,
        from: &[ClassIndex],
        to: &[ClassIndex],
        table: &Table<'_>,
        errors: &mut Errors<'_>,
    ) {
        let links = |class: ClassIndex| self.stations[class].links.iter().map(|link| link.on);
        let apart = |from, to| links(from).all(|on| links(to).all(|other| other != on));
        let mut pairs = from
            .iter()
            .flat_map(|&from| to.iter().map(move |&to| (from, to)));
        let found = pairs.find(|&(from, to)| !self.incomplete && apart(from, to));
        if let Some((from, to)) = found {
            let [from, to] = [from, to].map(|class| &self.stations[class].name);
            let message = format!("{from} and {to} have no segment in common");
            table.refuse(Some(key), message, errors);
        }
    }

    /// A name, or a list of them.
    fn classes(&self, value: &DeValue<'_>) -> Result<Vec<ClassIndex>, String> {
        let like = || wrong_type("names of stations, as in [\"clients\"]", value);
        let names = match value {
            DeValue::String(name) => vec![name.as_ref()],
            DeValue::Array(names) => {
                let names = names.iter().map(|name| name.get_ref().as_str());
                names.collect::<Option<Vec<_>>>().ok_or_else(like)?
            }
            _ => return Err(like()),
        };
        let known: Vec<String> = self.stations.iter().map(|s| s.name.clone()).collect();
        let mut classes = Vec::new();
        for name in names {
            match known.iter().position(|station| station == name) {
                Some(index) => classes.push(index),
                // It may be one that could not be read.
                None if self.incomplete => {}
                None => {
                    return Err(format!(
                        "there is no station {name} ({})",
                        near(name, &known)
                    ));
                }
            }
        }
        Ok(classes)
    }

    fn one(&self, value: &DeValue<'_>) -> Result<ClassIndex, String> {
        let name = string(value)?;
        match self.classes(value)?[..] {
            [class] if self.stations[class].count == 1 => Ok(class),
            [class] => Err(format!(
                "{name} are {}: it is one alone",
                self.stations[class].count
            )),
            _ => Ok(0), // one that could not be read, which is told already
        }
    }
}

/// As in `10b..500b`: any from and to as likely as any other.
struct FileBytes(u64, u64);

/// What is no size of files and no step.
#[derive(Debug)]
pub struct NotRead(String);

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn size(text: &str) -> Option<u64> {
    text.trim().parse::<Bytes>().ok().map(|bytes| bytes.0)
}

impl FromStr for FileBytes {
    type Err = NotRead;

    fn from_str(text: &str) -> Result<FileBytes, NotRead> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        match (size(least), size(most)) {
            (Some(least), Some(most)) if least <= most => Ok(FileBytes(least, most)),
            _ => Err(NotRead(format!(
                "{text:?} is no size of files: write it as in 500b or, drawn for each, 10b..500b"
            ))),
        }
    }
}

/// One kind of transactions: how often, and its requests with their answers.
fn transaction(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<TransactionKind> {
    let name = table.required("name", errors, |v| string(v).map(str::to_owned));
    let mut weight = 1;
    table.optional("weight", errors, &mut weight, whole(1, 1_000_000));
    let steps = table.list("steps", errors, |value, errors| {
        let step = parse_str::<Requested>(value.get_ref());
        errors.take(value.span(), "transaction.steps", step)
    });
    if steps.is_empty() {
        let message = "there is at least one, as in steps = [\"120b > 120b+file\"]".to_owned();
        table.refuse(Some("steps"), message, errors);
    }
    Some(TransactionKind {
        name: name?,
        weight: weight.into(),
        steps: steps.into_iter().map(|step| step.0).collect(),
    })
}

/// As in `120b+file > 120b`.
struct Requested(Step);

impl FromStr for Requested {
    type Err = NotRead;

    fn from_str(text: &str) -> Result<Requested, NotRead> {
        let wrong = || {
            NotRead(format!(
                "{text:?} is no request with its answer: write it as in 120b > 120b, with +file behind what the \
                 file goes with"
            ))
        };
        let side = |side: &str| {
            let (bytes, file) = match side.split_once('+') {
                None => (side, false),
                Some((bytes, file)) if file.trim() == "file" => (bytes, true),
                Some(_) => return Err(wrong()),
            };
            Ok((size(bytes).ok_or_else(wrong)?, file))
        };
        let (request, reply) = text.split_once('>').ok_or_else(wrong)?;
        let ((request_bytes, there), (reply_bytes, back)) = (side(request)?, side(reply)?);
        let file = match (there, back) {
            (false, false) => None,
            (true, false) => Some(With::Request),
            (false, true) => Some(With::Reply),
            (true, true) => return Err(wrong()),
        };
        Ok(Requested(Step {
            request_bytes,
            reply_bytes,
            file,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_request_and_its_answer_and_the_file_goes_with_one_of_them() {
        let step = |text: &str| text.parse::<Requested>().map(|step| step.0);
        let expected = Step {
            request_bytes: 120,
            reply_bytes: 1024,
            file: Some(With::Reply),
        };
        assert_eq!(step("120b > 1kb + file").unwrap(), expected);
        assert_eq!(step("120b+file>120b").unwrap().file, Some(With::Request));
        for wrong in ["120b", "120b > ", "1b+file > 1b+file", "1b+name > 1b"] {
            let error = step(wrong).unwrap_err().0;
            let begin = format!("{wrong:?} is no request with its answer: ");
            assert!(error.starts_with(&begin), "{error}");
        }
    }

    #[test]
    fn files_have_one_size_or_any_between_two() {
        let read = |text: &str| text.parse::<FileBytes>().map(|file| (file.0, file.1));
        assert_eq!(read("10b..500b").unwrap(), (10, 500));
        assert_eq!(read("1kb").unwrap(), (1024, 1024));
        assert_eq!(
            read("500b..10b").unwrap_err().0,
            "\"500b..10b\" is no size of files: write it as in 500b or, drawn for each, 10b..500b"
        );
    }
}
