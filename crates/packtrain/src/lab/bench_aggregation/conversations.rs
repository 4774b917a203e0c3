//! Requests and answers: TCP connections over which one end asks and the other answers, each question as soon as
//! that before it was answered.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::lab::measure::RoundTrips;
use crate::lab::namespaces::Namespace;
use crate::lab::stream::{self, Protocol};
use crate::lab::{Error, Result, now};
use crate::linux::epoll::{Epoll, Interest};
use crate::linux::scheduling::stay_on;

/// Without a word for so long a connection is taken for broken.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Connections of one host to another. All stand, and nothing is said.
#[derive(Debug)]
pub struct Conversations {
    at: SocketAddr,
    clients: Vec<TcpStream>,
    servers: Vec<TcpStream>,
    /// What is said over each connection, one exchange after the other, and then again from the first.
    said: Vec<Vec<Exchange>>,
    /// Which is the next question of each.
    next: Vec<AtomicUsize>,
}

/// A question, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub question: Vec<u8>,
    pub answer: Vec<u8>,
}

/// How much is asked.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    Questions(u64),
    Time(Duration),
}

/// How much of it at once, at most: each question by a connection of its own.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub amount: Amount,
    pub at_once: usize,
}

/// What was answered, and how soon.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    pub times: RoundTrips,
    pub seconds: f64,
}

impl Answered {
    pub fn per_second(&self) -> f64 {
        self.times.received as f64 / self.seconds
    }
}

impl Conversations {
    /// Each question, and each answer, so many bytes of nothing.
    pub fn open(
        hosts: (&Namespace, &Namespace),
        at: SocketAddr,
        connections: usize,
        bytes: usize,
    ) -> Result<Conversations> {
        Conversations::open_saying(
            hosts,
            at,
            vec![vec![Exchange::of_zeros(bytes)]; connections],
        )
    }

    /// A connection for each of these, over which this is said.
    pub fn open_saying(
        (from, to): (&Namespace, &Namespace),
        at: SocketAddr,
        said: Vec<Vec<Exchange>>,
    ) -> Result<Conversations> {
        let failed = |what: &str, source| failed(at, what, source);
        let listener = to
            .in_namespace(|| stream::listen(at, Protocol::Tcp))?
            .map_err(|error| failed("listen", error))?;
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for _ in &said {
            let client = from
                .in_namespace(|| stream::connect(at, Protocol::Tcp))?
                .map_err(|error| failed("connect", error))?;
            let (server, _) = listener.accept().map_err(|error| failed("accept", error))?;
            for end in [&client, &server] {
                end.set_nodelay(true)
                    .map_err(|error| failed("no delay", error))?;
            }
            clients.push(client);
            servers.push(server);
        }
        Ok(Conversations::over(at, clients, servers, said))
    }

    fn over(
        at: SocketAddr,
        clients: Vec<TcpStream>,
        servers: Vec<TcpStream>,
        said: Vec<Vec<Exchange>>,
    ) -> Conversations {
        Conversations {
            at,
            next: clients.iter().map(|_| AtomicUsize::new(0)).collect(),
            clients,
            servers,
            said,
        }
    }

    fn exchange(&self, which: usize, number: usize) -> &Exchange {
        &self.said[which][number % self.said[which].len()]
    }

    /// Of all that is said.
    fn answer_bytes_max(&self) -> usize {
        let all = self.said.iter().flatten();
        all.map(|exchange| exchange.answer.len()).max().unwrap_or(0)
    }

    /// Asks. Somebody has to answer meanwhile: [`while_answered`].
    pub fn ask(&self, load: Load) -> Result<Answered> {
        self.try_ask(load)
            .map_err(|error| failed(self.at, "questions", error))
    }

    fn try_ask(&self, load: Load) -> io::Result<Answered> {
        let mut watched = Watched::new(&self.clients)?;
        let mut times = Histogram::<u64>::new_with_max(60_000_000_000, 3).expect("bounds in order");
        let mut buffer = vec![0; self.answer_bytes_max()];
        let mut idle: VecDeque<usize> = (0..self.clients.len()).collect();
        // When each was asked, and how much of its answer is still to come.
        let mut asked = vec![(now(), 0); self.clients.len()];
        let (begin, mut sent) = (now(), 0);
        loop {
            let on_the_way = self.clients.len() - idle.len();
            let more = match load.amount {
                Amount::Questions(all) => all - sent,
                Amount::Time(time) if begin.elapsed() < time => u64::MAX,
                Amount::Time(_) => 0,
            };
            let now_asked = load.at_once.saturating_sub(on_the_way).min(idle.len());
            let now_asked = more.min(now_asked as u64) as usize;
            if on_the_way + now_asked == 0 {
                break;
            }
            for which in idle.drain(..now_asked) {
                let number = self.next[which].fetch_add(1, Ordering::Relaxed);
                let exchange = self.exchange(which, number);
                asked[which] = (now(), exchange.answer.len());
                (&self.clients[which]).write_all(&exchange.question)?;
                sent += 1;
            }
            for which in watched.ready()? {
                let (since, missing) = &mut asked[which];
                let len = read_some(&self.clients[which], &mut buffer[..*missing])?;
                *missing -= len;
                if len == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if *missing == 0 {
                    times.saturating_record(since.elapsed().as_nanos() as u64);
                    idle.push_back(which);
                }
            }
        }
        Ok(Answered {
            times: RoundTrips::of(&times, sent),
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    /// Answers until the other end of each connection is closed.
    fn answer(&self, cpu: Option<usize>) -> io::Result<()> {
        cpu.map_or(Ok(()), stay_on)?;
        let mut watched = Watched::new(&self.servers)?;
        let mut buffer = vec![0; 1 << 16];
        // Of each: which question is heard, and how much of it was.
        let mut heard = vec![(0, 0); self.servers.len()];
        let mut open = self.servers.len();
        while open > 0 {
            for which in watched.ready()? {
                let len = read_some(&self.servers[which], &mut buffer)?;
                if len == 0 {
                    watched.0.remove(&self.servers[which])?;
                    open -= 1;
                }
                let (number, bytes) = &mut heard[which];
                *bytes += len;
                while *bytes >= self.exchange(which, *number).question.len() {
                    let exchange = self.exchange(which, *number);
                    *number += 1;
                    *bytes -= exchange.question.len();
                    (&self.servers[which]).write_all(&exchange.answer)?;
                }
            }
        }
        Ok(())
    }

    fn close(&self) {
        for client in &self.clients {
            // One that broke is closed.
            let _ = client.shutdown(Shutdown::Write);
        }
    }
}

impl Exchange {
    fn of_zeros(bytes: usize) -> Exchange {
        Exchange {
            question: vec![0; bytes],
            answer: vec![0; bytes],
        }
    }
}

/// Runs `ask` while all of these are answered, a thread for each; the other ends on a processor, if one is named. Nothing
/// can be asked by them after.
pub fn while_answered<T: Send>(
    of: &[Conversations],
    cpu: Option<usize>,
    ask: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    std::thread::scope(|scope| {
        let answering: Vec<_> = of
            .iter()
            .map(|conversations| scope.spawn(move || conversations.answer(cpu)))
            .collect();
        // On a thread of its own: whoever starts this is not to stay on the processor.
        let asking = scope.spawn(|| {
            let stays = cpu.map_or(Ok(()), stay_on);
            stays.map_err(|error| failed(of[0].at, "questions", error))?;
            ask()
        });
        let result = asking.join().expect("who asks has no reason to panic");
        for (conversations, answering) in of.iter().zip(answering) {
            conversations.close();
            let answered = answering.join().expect("who answers has no reason either");
            // Who asked knows best what went wrong.
            if result.is_ok() {
                answered.map_err(|error| failed(conversations.at, "answers", error))?;
            }
        }
        result
    })
}

fn failed(at: SocketAddr, what: &str, source: io::Error) -> Error {
    Error::Start {
        command: format!("requests to {at}: {what}"),
        source,
    }
}

fn read_some(mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Which of many connections have something to read.
struct Watched(Epoll);

impl Watched {
    fn new(streams: &[TcpStream]) -> io::Result<Watched> {
        let epoll = Epoll::new()?;
        for (which, stream) in streams.iter().enumerate() {
            epoll.add(stream, which as u64, Interest::ReadWhileReady)?;
        }
        Ok(Watched(epoll))
    }

    /// Waits until there are some.
    fn ready(&mut self) -> io::Result<Vec<usize>> {
        let begin = now();
        while begin.elapsed() < SILENCE_MAX {
            let ready = self.0.wait(Some(SILENCE_MAX))?;
            let ready: Vec<usize> = ready.map(|ready| ready.token as usize).collect();
            // None: it was interrupted.
            if !ready.is_empty() {
                return Ok(ready);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversations(connections: usize, bytes: usize) -> Conversations {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let clients = (0..connections).map(|_| TcpStream::connect(at).unwrap());
        let clients: Vec<TcpStream> = clients.collect();
        let servers = (0..connections).map(|_| listener.accept().unwrap().0);
        let said = vec![vec![Exchange::of_zeros(bytes)]; connections];
        Conversations::over(at, clients, servers.collect(), said)
    }

    #[test]
    fn each_connection_says_what_it_is_to_say_one_after_the_other_and_again() {
        let mut of = [conversations(2, 1)];
        let exchange = |question, answer| Exchange {
            question: vec![1; question],
            answer: vec![2; answer],
        };
        of[0].said = vec![
            vec![exchange(1, 5000), exchange(300, 1), exchange(20, 20)],
            vec![exchange(7, 3)],
        ];
        let load = Load {
            amount: Amount::Questions(20),
            at_once: 2,
        };
        let ask = || of[0].ask(load).and_then(|_| of[0].ask(load));
        let answered = while_answered(&of, None, ask).unwrap();
        assert_eq!(answered.times.received, 20);
        let asked = of[0].next.iter().map(|next| next.load(Ordering::Relaxed));
        assert_eq!(asked.sum::<usize>(), 40);
    }

    #[test]
    fn as_much_is_answered_as_is_asked_however_many_ask_at_once() {
        for (connections, at_once, bytes) in [(1, 1, 1), (8, 8, 500), (8, 1, 1), (8, 100, 70_000)] {
            let of = [conversations(connections, bytes)];
            let load = Load {
                amount: Amount::Questions(100),
                at_once,
            };
            // Twice over the same connections.
            let ask = || of[0].ask(load).and_then(|_| of[0].ask(load));
            let answered = while_answered(&of, None, ask).unwrap();
            assert_eq!((answered.times.sent, answered.times.received), (100, 100));
            assert!(answered.times.p50_us > 0.0 && answered.per_second() > 0.0);
        }
    }

    #[test]
    fn who_asks_for_a_time_stops_then_and_waits_for_what_is_asked() {
        let of = [conversations(3, 10)];
        let load = Load {
            amount: Amount::Time(Duration::from_millis(30)),
            at_once: 3,
        };
        let answered = while_answered(&of, None, || of[0].ask(load)).unwrap();
        assert!(answered.seconds >= 0.03);
        assert_eq!(answered.times.sent, answered.times.received);
    }

    #[test]
    fn a_connection_that_ends_is_an_error_and_nobody_waits_for_it() {
        let of = [conversations(2, 10)];
        of[0].servers[1].shutdown(Shutdown::Both).unwrap();
        let load = Load {
            amount: Amount::Questions(10),
            at_once: 2,
        };
        assert!(while_answered(&of, None, || of[0].ask(load)).is_err());
    }
}
