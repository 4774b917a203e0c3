//! A terminal that a view has for itself, and that is as before when the view ends, however that ends.
//!
//! Every way out leads through [`restore`]: the end of a [`Screen`], an error, a panic of any thread, a signal (which
//! [`super::inputs`] makes an input of), being stopped by Ctrl-Z. Only `kill -9` does not; `reset` helps then.

use std::io::{self, IsTerminal, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use rustix::process::{Signal, kill_current_process_group};

/// Of a terminal that does not say how large it is, such as a serial one.
const SIZE_UNKNOWN: Rect = Rect::new(0, 0, 80, 24);

/// Why standard output is no place for a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("standard output is no terminal")]
    NoTerminal,
    #[error("the terminal cannot place text (TERM is unset or dumb)")]
    Dumb,
}

/// Before anything is drawn.
pub fn check() -> Result<(), Unfit> {
    if !io::stdout().is_terminal() {
        return Err(Unfit::NoTerminal);
    }
    match std::env::var("TERM").as_deref() {
        Ok("" | "dumb") | Err(_) => Err(Unfit::Dumb),
        Ok(_) => Ok(()),
    }
}

/// The terminal is not as it was.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// Puts the terminal back, if it was taken; may be called by anybody at any time.
pub fn restore() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // The mode first: it is put back also where nobody reads what we write.
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = io::stdout().flush();
}

fn take() -> io::Result<()> {
    IS_TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)
}

/// Whichever thread it is: a view without one of its threads would stand still and look well.
fn end_at_panics() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let was_taken = IS_TAKEN.load(Ordering::SeqCst);
            restore();
            before(panic);
            if was_taken {
                // As a program ends whose main thread has panicked.
                std::process::exit(101);
            }
        }));
    });
}

/// The whole terminal.
#[derive(Debug)]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    pub fn take() -> io::Result<Screen> {
        end_at_panics();
        let taken = take().and_then(|()| Screen::whole());
        // There is no `Screen` yet whose end would do so.
        taken.inspect_err(|_| restore())
    }

    fn whole() -> io::Result<Screen> {
        let backend = CrosstermBackend::new(io::stdout());
        let size = ratatui::crossterm::terminal::size().unwrap_or_default();
        let viewport = match size {
            (0, _) | (_, 0) => Viewport::Fixed(SIZE_UNKNOWN),
            _ => Viewport::Fullscreen,
        };
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport })?;
        Ok(Screen { terminal })
    }

    /// Writes what differs from what was drawn last; a terminal that is larger or smaller by now is drawn as a whole.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Somebody else has written to it, or has set it up in another way: from the start.
    pub fn retake(&mut self) -> io::Result<()> {
        restore();
        take()?;
        self.terminal.clear()
    }

    /// As Ctrl-Z does: the shell has the terminal until it lets us go on.
    pub fn stop_for_a_while(&mut self) -> io::Result<()> {
        restore();
        // It is the main thread that calls and that the kernel stops: here, not where the terminal is ours again. Where
        // there is nobody to let us go on (no shell with jobs) it does not stop us.
        kill_current_process_group(Signal::TSTP)?;
        self.retake()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}
