//! Asks the line for its links and peers while its frames are captured, on a thread of its own: an answer
//! that takes its time keeps no frame waiting.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::capture::View;
use crate::cli::error::CliError;
use crate::cli::show;
use crate::settings::values::InterfaceName;

const INTERVAL: Duration = Duration::from_secs(1);
/// Sooner than this nobody is asked again, whoever wants to know.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) enum News {
    View(View),
    /// The line is no more.
    Ended,
    /// It gave no answer, or none that is understood.
    Silent(String),
}

#[derive(Debug)]
pub(super) struct Watcher {
    ask: Sender<()>,
    news: Receiver<News>,
}

impl Watcher {
    /// `wake` is written to whenever there is news.
    pub(super) fn start(name: InterfaceName, mut wake: UnixStream) -> Watcher {
        let (ask, asked) = channel();
        let (tell, news) = channel();
        std::thread::spawn(move || {
            while !matches!(
                asked.recv_timeout(INTERVAL),
                Err(RecvTimeoutError::Disconnected)
            ) {
                while asked.try_recv().is_ok() {}
                let news = look(&name);
                let is_last = matches!(news, News::Ended);
                if tell.send(news).is_err() || wake.write_all(&[0]).is_err() || is_last {
                    return;
                }
                pause();
            }
        });
        Watcher { ask, news }
    }

    /// Somebody wants to know now.
    pub(super) fn ask(&self) {
        // Who has ended has said so.
        let _ = self.ask.send(());
    }

    pub(super) fn news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }
}

#[allow(clippy::disallowed_methods)] // a command beside the line, not the daemon
fn pause() {
    std::thread::sleep(PAUSE);
}

fn look(name: &InterfaceName) -> News {
    match view(name) {
        Ok(view) => News::View(view),
        Err(CliError::NotRunning { .. }) => News::Ended,
        Err(error) => News::Silent(error.to_string()),
    }
}

/// What the line says of itself now.
pub(super) fn view(name: &InterfaceName) -> Result<View, CliError> {
    let document = show::document(name)?;
    View::of(&document).map_err(|error| CliError::NoAnswer {
        name: name.to_string(),
        reason: format!("a status that is not understood: {error}"),
    })
}
