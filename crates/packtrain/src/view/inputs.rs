//! All that a view waits for, one after the other: keys, sizes, signals, and answers to what it has asked.
//!
//! A thread reads the terminal and one hears signals; who asks for documents has a [`Sender`] of its own. The view alone
//! draws. It sleeps until one of them has something to say, or a time is over.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{QueueSelector, isatty, tcflush};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

use super::terminal;

/// Who has more to say than the view can take waits.
const INPUTS_MAX: usize = 64;

#[derive(Debug)]
pub enum Input<A> {
    Key(KeyEvent),
    /// The terminal has another size.
    Size,
    /// Somebody goes on whom Ctrl-Z or a signal had stopped: the terminal is the shell's.
    GoesOn,
    /// A signal, or the terminal is gone.
    End,
    Answer(A),
}

pub type Sender<A> = SyncSender<Input<A>>;

#[derive(Debug)]
pub struct Inputs<A> {
    sender: Sender<A>,
    receiver: Receiver<Input<A>>,
}

impl<A: Send + 'static> Inputs<A> {
    /// Signals are heard from now on. To be called before the terminal is taken.
    pub fn start() -> io::Result<Inputs<A>> {
        let (sender, receiver) = sync_channel(INPUTS_MAX);
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT])?;
        let told = sender.clone();
        thread::spawn(move || tell_signals(signals, &told));
        Ok(Inputs { sender, receiver })
    }

    /// Keys are read from now on: the terminal has to be taken.
    pub fn read_keys(&self) -> io::Result<()> {
        let terminal = keyboard()?;
        let told = self.sender.clone();
        thread::spawn(move || {
            tell_keys(&terminal, &told);
            let _ = told.send(Input::End);
        });
        Ok(())
    }

    pub fn sender(&self) -> Sender<A> {
        self.sender.clone()
    }

    /// `None`: nothing has come for so long.
    pub fn next(&self, at_most: Duration) -> Option<Input<A>> {
        match self.receiver.recv_timeout(at_most) {
            Ok(input) => Some(input),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("we have a sender ourselves"),
        }
    }

    /// What has come already.
    pub fn next_at_once(&self) -> Option<Input<A>> {
        self.receiver.try_recv().ok()
    }
}

fn tell_signals<A>(mut signals: Signals, told: &Sender<A>) {
    let mut has_to_end = false;
    for signal in signals.forever() {
        let input = match signal {
            SIGWINCH => Input::Size,
            SIGCONT => Input::GoesOn,
            // It was asked to end and has not: who writes to a terminal that takes nothing (Ctrl-S) cannot.
            _ if has_to_end => {
                terminal::restore();
                std::process::exit(128 + signal);
            }
            _ => {
                has_to_end = true;
                Input::End
            }
        };
        // Full: the view does not come to it, and is to be ended by the next signal all the same.
        let _ = told.try_send(input);
    }
}

/// The one that crossterm reads keys from.
fn keyboard() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    match isatty(&stdin) {
        true => stdin.as_fd().try_clone_to_owned(),
        false => Ok(File::open("/dev/tty")?.into()),
    }
}

/// Until there is no terminal any more.
fn tell_keys<A>(terminal: &OwnedFd, told: &Sender<A>) {
    loop {
        // Not crossterm's own waiting: where a terminal is gone, it tries to read from it again and again.
        let mut fds = [PollFd::new(terminal, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        }
        let events = fds[0].revents();
        if events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return;
        }
        let mut has_read = false;
        while matches!(event::poll(Duration::ZERO), Ok(true)) {
            has_read = true;
            match event::read() {
                // Terminals that tell of keys that are let go tell of each twice.
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    if told.send(Input::Key(key)).is_err() {
                        return;
                    }
                }
                // The signal has told of sizes.
                Ok(_) => {}
                Err(_) => return,
            }
        }
        if !has_read {
            // crossterm reads a kilobyte at a time and hears of what is left with the next key only; nobody types so
            // much, and what is left would wake us for ever.
            let _ = tcflush(terminal, QueueSelector::IFlush);
        }
    }
}
