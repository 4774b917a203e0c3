//! Files over a network: ONC RPC (RFC 5531) over TCP with the procedures of NFS version 3 (RFC 1813) that working in a
//! tree of small files asks for: attributes, names, reading, writing.

use super::draws::Draws;
use super::words::{word, words};
use crate::lab::bench_aggregation::conversations::Exchange;

const FILES: usize = 80;
/// Of a READ or a WRITE, most.
const DATA_MAX: usize = 500;
const PROGRAM: u32 = 100_003;
const VERSION: u32 = 3;
const AUTH_UNIX: u32 = 1;
/// A record of one fragment, over TCP (RFC 5531, section 11).
const LAST_FRAGMENT: u32 = 1 << 31;
const NOT_FOUND: u32 = 2;
const BEGIN_S: u32 = 1_770_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Procedure {
    GetAttributes = 1,
    Lookup = 3,
    Access = 4,
    Read = 6,
    Write = 7,
}

/// As often as each is here.
const ASKED: [Procedure; 9] = [
    Procedure::GetAttributes,
    Procedure::GetAttributes,
    Procedure::GetAttributes,
    Procedure::Lookup,
    Procedure::Lookup,
    Procedure::Read,
    Procedure::Read,
    Procedure::Write,
    Procedure::Access,
];

#[derive(Debug)]
struct File {
    name: String,
    number: u32,
    generation: u32,
    /// Seconds and nanoseconds of its last change.
    changed: [u32; 2],
    text: Vec<u8>,
}

#[derive(Debug)]
struct Server {
    file_system: u32,
    root: [u8; 12],
    files: Vec<File>,
}

/// What XDR makes of it (RFC 4506).
#[derive(Debug, Default)]
struct Xdr(Vec<u8>);

impl Xdr {
    fn put(&mut self, values: &[u32]) {
        for value in values {
            self.0.extend_from_slice(&value.to_be_bytes());
        }
    }

    /// With its length, and in whole words.
    fn put_opaque(&mut self, bytes: &[u8]) {
        self.put(&[bytes.len() as u32]);
        self.0.extend_from_slice(bytes);
        let len = self.0.len().next_multiple_of(4);
        self.0.resize(len, 0);
    }

    fn into_record(self) -> Vec<u8> {
        let mut record = (LAST_FRAGMENT | self.0.len() as u32).to_be_bytes().to_vec();
        record.extend_from_slice(&self.0);
        record
    }
}

impl Server {
    fn new(draws: &mut Draws) -> Server {
        let file = |draws: &mut Draws| File {
            name: format!(
                "{}{}",
                word(draws),
                *draws.pick(&[&".txt", &".conf", &".c", &".h", &".py", &".json", &""])
            ),
            number: draws.below(4_000_000) as u32,
            generation: draws.word() as u32,
            changed: [
                BEGIN_S - draws.below(1 << 22) as u32,
                draws.below(1_000_000_000) as u32,
            ],
            text: text(draws),
        };
        Server {
            file_system: draws.word() as u32,
            root: draws.bytes(),
            files: (0..FILES).map(|_| file(draws)).collect(),
        }
    }

    /// 32 bytes, as Linux's server makes them.
    fn handle(&self, file: &File) -> Vec<u8> {
        let mut handle = vec![1, 0, 7, 1];
        handle.extend_from_slice(&self.root);
        for value in [self.file_system, file.number, file.generation, 0] {
            handle.extend_from_slice(&value.to_le_bytes());
        }
        handle
    }

    /// fattr3.
    fn put_attributes(&self, xdr: &mut Xdr, file: &File, read: [u32; 2]) {
        let (regular, mode, owner) = (1, 0o644, 1000);
        let len = file.text.len() as u32;
        xdr.put(&[regular, mode, 1, owner, owner, 0, len, 0, 4096, 0, 0]);
        xdr.put(&[0, self.file_system, 0, file.number]);
        for time in [read, file.changed, file.changed] {
            xdr.put(&time);
        }
    }
}

/// A source, a list, or a letter.
fn text(draws: &mut Draws) -> Vec<u8> {
    let used = words(draws, 12);
    let shape = draws.below(3);
    let mut text = String::new();
    for at in 0..5 + draws.index(70) {
        let word = used[draws.index(used.len())];
        text += &match (shape, at % 8) {
            (0, _) => format!("{word}={}\n", draws.below(100)),
            (1, _) => format!("    self.{word} = {word}\n"),
            (_, 7) => format!("{word}.\n"),
            _ => format!("{word} "),
        };
    }
    text.truncate(DATA_MAX);
    text.into_bytes()
}

/// What a client asks of a server over one connection, and what is answered.
pub fn exchanges(connection: usize, seed: u64, count: usize) -> Vec<Exchange> {
    let server = Server::new(&mut Draws::new(seed));
    let mut draws = Draws::new(seed << 16 | 1 << 15 | connection as u64);
    let client = format!("{}-{connection}", word(&mut draws));
    let first = draws.word() as u32;
    let exchange = |at: usize| {
        let file = &server.files[draws.favoured(FILES)];
        let call = Call {
            server: &server,
            client: &client,
            id: first.wrapping_add(at as u32),
            procedure: ASKED[draws.index(ASKED.len())],
            file,
            directory: &server.files[draws.favoured(5)],
        };
        let now = [BEGIN_S + at as u32 / 50, draws.below(1_000_000_000) as u32];
        Exchange {
            question: call.question(),
            answer: call.answer(now, draws.is(0.2)),
        }
    };
    (0..count).map(exchange).collect()
}

struct Call<'a> {
    server: &'a Server,
    client: &'a str,
    id: u32,
    procedure: Procedure,
    file: &'a File,
    directory: &'a File,
}

impl Call<'_> {
    fn question(&self) -> Vec<u8> {
        let (call, rpc) = (0, 2);
        let mut xdr = Xdr::default();
        xdr.put(&[self.id, call, rpc, PROGRAM, VERSION, self.procedure as u32]);
        let mut who = Xdr::default();
        who.put(&[BEGIN_S / 1000]);
        who.put_opaque(self.client.as_bytes());
        who.put(&[1000, 1000, 1, 1000]);
        xdr.put(&[AUTH_UNIX]);
        xdr.put_opaque(&who.0);
        xdr.put(&[0, 0]);
        let asked = match self.procedure {
            Procedure::Lookup => self.directory,
            _ => self.file,
        };
        xdr.put_opaque(&self.server.handle(asked));
        let len = self.file.text.len() as u32;
        match self.procedure {
            Procedure::GetAttributes => {}
            Procedure::Lookup => xdr.put_opaque(self.file.name.as_bytes()),
            Procedure::Access => xdr.put(&[0x1f]),
            Procedure::Read => xdr.put(&[0, 0, 32_768]),
            Procedure::Write => {
                let stable = 2;
                xdr.put(&[0, 0, len, stable]);
                xdr.put_opaque(&self.file.text);
            }
        }
        xdr.into_record()
    }

    fn answer(&self, now: [u32; 2], is_missing: bool) -> Vec<u8> {
        let (reply, file) = (1, self.file);
        let mut xdr = Xdr::default();
        xdr.put(&[self.id, reply, 0, 0, 0, 0]);
        if self.procedure == Procedure::Lookup && is_missing {
            xdr.put(&[NOT_FOUND, 0]);
            return xdr.into_record();
        }
        xdr.put(&[0]);
        let len = file.text.len() as u32;
        match self.procedure {
            Procedure::GetAttributes => self.server.put_attributes(&mut xdr, file, now),
            Procedure::Lookup => {
                xdr.put_opaque(&self.server.handle(file));
                xdr.put(&[1]);
                self.server.put_attributes(&mut xdr, file, now);
                xdr.put(&[0]);
            }
            Procedure::Access => {
                xdr.put(&[1]);
                self.server.put_attributes(&mut xdr, file, now);
                xdr.put(&[0x0d]);
            }
            Procedure::Read => {
                xdr.put(&[1]);
                self.server.put_attributes(&mut xdr, file, now);
                xdr.put(&[len, 1]);
                xdr.put_opaque(&file.text);
            }
            Procedure::Write => {
                xdr.put(&[1, 0, len]);
                xdr.put(&file.changed);
                xdr.put(&file.changed);
                xdr.put(&[1]);
                self.server.put_attributes(&mut xdr, file, now);
                xdr.put(&[len, 2, self.server.file_system ^ 0x5555, BEGIN_S]);
            }
        }
        xdr.into_record()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::bench_compression::coded::interleaved_share_saved;

    #[test]
    fn records_are_as_long_as_they_say_in_whole_words_and_answers_name_their_questions() {
        for exchange in exchanges(3, 1, 500) {
            for record in [&exchange.question, &exchange.answer] {
                let said = u32::from_be_bytes(*record.first_chunk().unwrap());
                assert_eq!((said ^ LAST_FRAGMENT) as usize, record.len() - 4);
                assert_eq!(record.len() % 4, 0);
            }
            assert_eq!(exchange.question[4..8], exchange.answer[4..8]);
        }
    }

    #[test]
    fn attributes_are_84_bytes_and_a_call_about_as_long_as_on_a_wire() {
        let all = exchanges(0, 1, 500);
        // Record, header of an accepted reply, status, fattr3.
        assert!(all.iter().any(|e| e.answer.len() == 4 + 24 + 4 + 84));
        let mean = |of: fn(&Exchange) -> usize| all.iter().map(of).sum::<usize>() / all.len();
        assert!((120..280).contains(&mean(|e| e.question.len())));
        assert!((130..300).contains(&mean(|e| e.answer.len())));
    }

    #[test]
    fn compressing_saves_about_half_of_it_and_the_same_again_of_a_seed() {
        assert!(exchanges(1, 1, 9).iter().eq(exchanges(1, 1, 9).iter()));
        assert!(exchanges(1, 1, 9).iter().ne(exchanges(2, 1, 9).iter()));
        let of = |part: fn(Exchange) -> Vec<u8>| -> f64 {
            let all: Vec<Vec<Vec<u8>>> = (0..8)
                .map(|connection| {
                    exchanges(connection, 1, 100)
                        .into_iter()
                        .map(part)
                        .collect()
                })
                .collect();
            interleaved_share_saved(&all)
        };
        let (asked, answered) = (of(|e| e.question), of(|e| e.answer));
        eprintln!("saved: {asked:.3} {answered:.3}");
        assert!((0.35..0.8).contains(&asked), "{asked}");
        assert!((0.3..0.75).contains(&answered), "{answered}");
    }
}
