//! A line that nobody watches: it reports to `up`, which has started it, until it stands.

use super::{log, start};
use crate::cli::detach;
use crate::cli::error::CliError;
use crate::settings::Settings;

pub fn run(settings: &Settings) -> Result<(), CliError> {
    detach::begin();
    log::start(settings.log_level);
    let started = start(settings, &mut |note| {
        tracing::warn!("{note}");
        detach::note(note);
    });
    let line = match started {
        Ok(line) => line,
        Err(error) => {
            detach::failed(&error);
            return Err(error);
        }
    };
    let log_path = detach::claim_log(settings.name.as_str());
    let log_path = log_path.map_err(|e| CliError::failed("the log", e))?;
    let mut line = line.at_clean_end(move || detach::remove_log(&log_path));
    // Whoever waited for the line may read the log at once.
    line.stands();
    if !detach::stands()? {
        line.stop();
        return Err(CliError::Interrupted);
    }
    line.run()
}
