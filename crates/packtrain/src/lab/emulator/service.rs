//! The process of an emulator: carries frames, and answers commands between two of them.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, Sender, channel};

use packtrain_proto::time::Instant;
use packtrain_sim::net::network::WireId;
use packtrain_sim::net::wire::WireCounters;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};

use super::capture::{Capture, Limits};
use super::counters::{LOOK_INTERVAL, Meter, WireStatus};
use super::plan::{self, Plan, PlannedWire};
use super::port::Port;
use super::protocol::{EmulatorStatus, Request, Response, WireChoice};
use super::{Emulator, Woken};
use crate::lab::topology::{Name, Topology};
use crate::lab::{Error, Result};
use crate::linux::scheduling::run_in_real_time;
use crate::pcapng::Interface;

/// What an emulator is told at its start, on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub topology: Topology,
    /// By host, their names in /run/netns.
    pub namespaces: BTreeMap<Name, String>,
    pub socket: PathBuf,
}

impl Spec {
    /// What it says on its standard output when its wires are there.
    pub const READY: &'static str = "ready\n";
}

/// What `packtrain lab emulate` does.
pub fn run() -> Result<()> {
    // It stays when the terminal goes.
    let _ = rustix::process::setsid();
    let spec: Spec = serde_json::from_reader(io::stdin()).map_err(|error| started(error.into()))?;
    let service = Service::new(spec.topology, |host| spec.namespaces[host].clone())?;
    service.run(&spec.socket, || {
        let mut stdout = io::stdout();
        // Who started it may be gone.
        let _ = stdout.write_all(Spec::READY.as_bytes());
        let _ = stdout.flush();
    })
}

/// What the threads beside the wires want of them.
enum Asked {
    /// A command, and where its answer goes.
    Command {
        request: Request,
        answer: Sender<Response>,
    },
    Capture {
        wires: Vec<WireChoice>,
        limits: Limits,
        answer: Sender<std::result::Result<Capture, String>>,
    },
    CaptureEnds {
        number: u64,
    },
}

/// Where they ask, and what wakes the emulator to hear it.
#[derive(Clone)]
struct Asker {
    asks: Sender<Asked>,
    bell: Arc<OwnedFd>,
}

impl Asker {
    fn ask(&self, asked: Asked) {
        // If the emulator has ended there is nobody to hear it, nor an answer.
        let _ = self.asks.send(asked);
        // A bell that cannot count further rings already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

/// The wires of a lab, with what a person knows of them.
#[derive(Debug)]
pub struct Service {
    emulator: Emulator,
    topology: Topology,
    wires: Vec<PlannedWire>,
    /// By wire and direction.
    meters: Vec<[Meter; 2]>,
    /// Whether a direction swallows what is sent.
    silent: Vec<[bool; 2]>,
    carrier: Vec<bool>,
    next_look: Instant,
    real_time: bool,
}

impl Service {
    /// Makes the hosts' interfaces, and the wires between them.
    pub fn new(topology: Topology, namespace_of: impl Fn(&Name) -> String) -> Result<Service> {
        let plan = Plan::of(&topology, namespace_of);
        let ports = plan.ports.iter().map(Port::create).collect::<Result<_>>()?;
        let emulator = Emulator::new(&plan, ports).map_err(started)?;
        let count = plan.wires.len();
        Ok(Service {
            next_look: emulator.now() + LOOK_INTERVAL,
            emulator,
            topology,
            wires: plan.wires,
            meters: vec![Default::default(); count],
            silent: vec![[false; 2]; count],
            carrier: vec![true; count],
            real_time: false,
        })
    }

    /// Carries frames and answers at `socket` until it is told to end. `ready` is called when commands
    /// can come.
    pub fn run(mut self, socket: &Path, ready: impl FnOnce()) -> Result<()> {
        // Before the thread below is started, which then is not of that class.
        let listener = UnixListener::bind(socket).map_err(|source| Error::File {
            path: socket.display().to_string(),
            source,
        })?;
        let bell = Arc::new(
            eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
                .map_err(|errno| started(errno.into()))?,
        );
        let (asks, asked) = channel();
        let asker = Asker {
            asks,
            bell: bell.clone(),
        };
        std::thread::spawn(move || listen(&listener, &asker));
        self.real_time = run_in_real_time().is_ok();
        self.emulator.watch(&*bell).map_err(started)?;
        ready();
        loop {
            let woken = self.emulator.turn().map_err(started)?;
            let now = self.emulator.now();
            if now >= self.next_look {
                self.look(now);
            }
            if woken == Woken::ByCommand && self.answer(&bell, &asked) {
                self.emulator.end_captures();
                return Ok(());
            }
        }
    }

    /// Answers what was asked; whether it is time to end.
    fn answer(&mut self, bell: &OwnedFd, asked: &Receiver<Asked>) -> bool {
        let _ = rustix::io::read(bell, &mut [0; 8]);
        while let Ok(asked) = asked.try_recv() {
            // Who does not wait for an answer any more misses nothing.
            match asked {
                Asked::Command { request, answer } => {
                    let ends = request == Request::Down {};
                    let response = self.handle(request);
                    let _ = answer.send(response);
                    if ends {
                        return true;
                    }
                }
                Asked::Capture {
                    wires,
                    limits,
                    answer,
                } => {
                    let capture = self.capture(&wires, limits);
                    if let Err(SendError(Ok(capture))) = answer.send(capture) {
                        self.emulator.end_capture(capture.number);
                    }
                }
                Asked::CaptureEnds { number } => self.emulator.end_capture(number),
            }
        }
        false
    }

    fn handle(&mut self, request: Request) -> Response {
        let result = match request {
            Request::Status {} => return Response::Status(Box::new(self.status())),
            Request::Lateness { reset } => {
                let summary = self.emulator.lateness.summary();
                if reset {
                    self.emulator.lateness.reset();
                }
                return Response::Lateness(summary);
            }
            Request::Down {} => Ok(()),
            Request::Set { wire, directions } => self.set(&wire, *directions),
            Request::Cut { of, silent } => self.cut(&of, silent),
            Request::Mend { of } => self.mend(&of),
            Request::Capture { .. } => unreachable!("it is asked for apart"),
        };
        result.map_or_else(Response::Refused, |()| Response::Done)
    }

    /// The wire, and which of its directions are meant.
    fn directions(&self, of: &WireChoice) -> std::result::Result<(usize, Vec<usize>), String> {
        let found = self.topology.direction(&of.wire, of.from.as_deref());
        let (wire, end) = found.map_err(|error| error.to_string())?;
        Ok((wire, end.map_or(vec![0, 1], |end| vec![end])))
    }

    fn set(
        &mut self,
        name: &str,
        directions: [crate::lab::topology::Direction; 2],
    ) -> std::result::Result<(), String> {
        let found = self.topology.direction(name, None);
        let (wire, _) = found.map_err(|error| error.to_string())?;
        let mtu = self.topology.wires[wire].mtu;
        for (end, direction) in self.wires[wire].ends.iter().zip(&directions) {
            if let Some(port) = end.port {
                let rate = plan::port_rate_of(direction, mtu);
                let port = &mut self.emulator.ports[port];
                port.set_rate(rate).map_err(|error| error.to_string())?;
            }
            let config = plan::config_of(direction);
            self.emulator.network.wire_mut(end.out).set(&config);
        }
        self.topology.wires[wire].directions = directions;
        Ok(())
    }

    fn cut(&mut self, of: &WireChoice, silent: bool) -> std::result::Result<(), String> {
        let (wire, directions) = self.directions(of)?;
        if of.from.is_some() && !silent {
            return Err(
                "a cable has one carrier: --from goes with --silent, which leaves it".to_owned(),
            );
        }
        let now = self.emulator.now();
        for direction in directions {
            let end = self.wires[wire].ends[direction];
            self.silent[wire][direction] = silent;
            self.emulator.network.cut(end.out, !silent, now);
        }
        if !silent {
            self.set_carrier(wire, false)?;
        }
        Ok(())
    }

    fn mend(&mut self, of: &WireChoice) -> std::result::Result<(), String> {
        let (wire, directions) = self.directions(of)?;
        if of.from.is_some() && !self.carrier[wire] {
            return Err(format!(
                "{} has lost its carrier, and a cable has one: mend it whole, without --from",
                of.wire
            ));
        }
        for direction in directions {
            let end = self.wires[wire].ends[direction];
            self.silent[wire][direction] = false;
            self.emulator.network.mend(end.out);
        }
        self.set_carrier(wire, true)
    }

    fn set_carrier(&mut self, wire: usize, up: bool) -> std::result::Result<(), String> {
        if self.carrier[wire] == up {
            return Ok(());
        }
        self.carrier[wire] = up;
        let now = self.emulator.now();
        for end in self.wires[wire].ends {
            self.emulator.network.set_carrier(end.place, up, now);
            if let Some(port) = end.port {
                let port = &self.emulator.ports[port];
                port.set_carrier(up).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    fn capture(
        &mut self,
        of: &[WireChoice],
        limits: Limits,
    ) -> std::result::Result<Capture, String> {
        let mut wires: Vec<(WireId, Interface)> = Vec::new();
        for of in of {
            let (wire, directions) = self.directions(of)?;
            let described = &self.topology.wires[wire];
            for i in directions {
                let out = self.wires[wire].ends[i].out;
                if wires.iter().any(|&(already, _)| already == out) {
                    continue;
                }
                let [from, to] = [i, 1 - i].map(|end| &described.ends[end].node);
                let rate = described.directions[i].wire.rate;
                let interface = Interface {
                    name: format!("{} {from}>{to}", described.name),
                    description: None,
                    speed_bps: rate.map(|rate| rate.bps),
                    snap_len: limits.snap_len,
                };
                wires.push((out, interface));
            }
        }
        if wires.is_empty() {
            return Err("no wire was named to capture on".to_owned());
        }
        Ok(self.emulator.begin_capture(wires, limits))
    }

    fn look(&mut self, now: Instant) {
        for wire in 0..self.wires.len() {
            for direction in [0, 1] {
                let counters = self.counters(wire, direction);
                self.meters[wire][direction].look(now, &counters);
            }
        }
        self.next_look = now + LOOK_INTERVAL;
    }

    fn status(&mut self) -> EmulatorStatus {
        // A lab without traffic has no turns.
        let now = self.emulator.now();
        if now >= self.next_look {
            self.look(now);
        }
        let wires = (0..self.wires.len())
            .map(|wire| self.status_of(wire))
            .collect();
        EmulatorStatus {
            wires,
            topology: self.topology.clone(),
            lateness: self.emulator.lateness.summary(),
            real_time: self.real_time,
        }
    }

    /// A wire into a hub has no rate of its own: it is busy as long as the medium is, whoever sends.
    fn counters(&self, wire: usize, direction: usize) -> WireCounters {
        let ends = &self.wires[wire].ends;
        let network = &self.emulator.network;
        let counters = network.wire(ends[direction].out).counters;
        match network.medium_counters(ends[1 - direction].place.segment) {
            Some(medium) if ends[1 - direction].port.is_none() => WireCounters {
                busy: medium.busy,
                ..counters
            },
            _ => counters,
        }
    }

    fn status_of(&mut self, wire: usize) -> WireStatus {
        let counters = [0, 1].map(|direction| self.counters(wire, direction));
        let described = &self.topology.wires[wire];
        let names = described.ends.each_ref().map(|end| end.node.to_string());
        let directions = [0, 1].map(|i| {
            let end = self.wires[wire].ends[i];
            let on_the_wire = self.emulator.network.wire(end.out);
            let queued = on_the_wire.queued_bytes();
            let mut status = self.meters[wire][i].status(&counters[i], queued);
            status.from = names[i].clone();
            status.to = names[1 - i].clone();
            status.silent = self.silent[wire][i];
            // Where a hub is at the other end, a frame waits there for its turn.
            let far = self.wires[wire].ends[1 - i];
            let station = self.emulator.network.station_counters(far.place);
            if let Some(station) = station.filter(|_| far.port.is_none()) {
                status.meets(station);
                let waiting = self.emulator.network.station_queued_bytes(far.place);
                status.queued_bytes += waiting.unwrap_or(0) as u64;
            }
            if let Some(port) = end.port {
                let dropped = self.emulator.ports[port].dropped();
                status.dropped.emulator_late = dropped.unwrap_or_default();
            }
            status
        });
        WireStatus {
            name: described.name.clone(),
            carrier: self.carrier[wire],
            directions,
        }
    }
}

fn started(source: io::Error) -> Error {
    Error::Start {
        command: "the emulator of the lab".to_owned(),
        source,
    }
}

/// Takes commands in, one after the other: each is answered within a turn of the emulator. What takes
/// longer, a capture, goes on in a thread of its own.
fn listen(listener: &UnixListener, asker: &Asker) {
    for stream in listener.incoming().flatten() {
        // Who goes away in the middle of it harms nobody.
        let _ = converse(stream, asker);
    }
}

fn converse(stream: UnixStream, asker: &Asker) -> io::Result<()> {
    stream.set_read_timeout(Some(std::time::Duration::from_secs(1)))?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    match serde_json::from_str(&line) {
        Err(error) => respond(
            &stream,
            &Response::Refused(format!("not understood: {error}")),
        ),
        Ok(Request::Capture {
            wires,
            frames_max,
            snap_len,
            held,
        }) => {
            let limits = Limits {
                frames: frames_max,
                snap_len,
                held,
            };
            begin_capture(stream, wires, limits, asker)
        }
        Ok(request) => {
            let (answer, answered) = channel();
            asker.ask(Asked::Command { request, answer });
            respond(&stream, &answered.recv().unwrap_or_else(|_| ended()))
        }
    }
}

fn respond(mut stream: &UnixStream, response: &Response) -> io::Result<()> {
    let mut line = serde_json::to_vec(response)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn ended() -> Response {
    Response::Refused("the emulator has ended".to_owned())
}

fn begin_capture(
    stream: UnixStream,
    wires: Vec<WireChoice>,
    limits: Limits,
    asker: &Asker,
) -> io::Result<()> {
    let (answer, answered) = channel();
    asker.ask(Asked::Capture {
        wires,
        limits,
        answer,
    });
    let capture = match answered.recv() {
        Ok(Ok(capture)) => capture,
        Ok(Err(why)) => return respond(&stream, &Response::Refused(why)),
        Err(_) => return respond(&stream, &ended()),
    };
    let number = capture.number;
    let asks = asker.clone();
    let thread = std::thread::Builder::new().name(format!("capture-{number}"));
    let started = thread.spawn(move || {
        let end = || asks.ask(Asked::CaptureEnds { number });
        let told = respond(&stream, &Response::Done);
        // Who closes the connection wants no more of it.
        let _ = told.and_then(|()| capture.stream(&stream, || has_gone(&stream), end));
        end();
    });
    if started.is_err() {
        asker.ask(Asked::CaptureEnds { number });
    }
    started.map(drop)
}

/// Whether the other end has closed the connection, or the half in which it speaks: it has nothing to
/// say but that.
fn has_gone(stream: &UnixStream) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::IN | PollFlags::RDHUP)];
    let at_once = Timespec::default();
    poll(&mut polled, Some(&at_once)).is_ok_and(|ready| ready > 0)
}
