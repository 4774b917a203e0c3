//! All that a view waits for, one after the other: keys, sizes, signals, and answers to what it has asked.
//!
//! A thread reads the terminal and one hears signals; who asks for documents has a [`Sender`] of its own. The view alone
//! draws. It sleeps until one of them has something to say, or a time is over.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
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

/// What follows from a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Nothing,
    Draw,
    Quit,
    /// All of it: the terminal shows something else.
    DrawAnew,
    /// Until the shell lets us go on.
    Stop,
}

impl Then {
    /// Of a key with Ctrl, which means the same in every view.
    pub fn of_control(key: &KeyEvent) -> Option<Then> {
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        has_control.then_some(match key.code {
            KeyCode::Char('c') => Then::Quit,
            KeyCode::Char('z') => Then::Stop,
            KeyCode::Char('l') => Then::DrawAnew,
            _ => Then::Nothing,
        })
    }
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
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGCONT])?;
        let told = sender.clone();
        thread::spawn(move || tell_signals(signals, &told));
        Ok(Inputs { sender, receiver })
    }

    /// Keys are read from now on: the terminal has to be taken.
    pub fn read_keys(&self) {
        let told = self.sender.clone();
        thread::spawn(move || {
            tell_keys(&told);
            let _ = told.send(Input::End);
        });
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

/// Until there is no terminal any more.
///
/// Where one is gone crossterm tries to read from it again and again; that is for as long as it takes the kernel's SIGHUP to
/// end us, or the next drawing, which fails then.
fn tell_keys<A>(told: &Sender<A>) {
    while let Ok(event) = event::read() {
        let input = match event {
            // Terminals that tell of keys that are let go tell of each twice.
            Event::Key(key) if key.kind != KeyEventKind::Release => Input::Key(key),
            Event::Resize(..) => Input::Size,
            _ => continue,
        };
        if told.send(input).is_err() {
            return;
        }
    }
}
