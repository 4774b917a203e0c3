//! What the sender's pacer says of itself after a connection. No figure comes from it: it tells why one is as it is.

use serde::Serialize;

use crate::lab::host::Host;
use crate::lab::{Error, Result};
use crate::pace::tcp::document::{CountersDocument, TcpDocument};

const COMMAND: [&str; 4] = ["pace", "tcp", "status", "--json"];

/// After a connection, of all since the pacer came.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Told {
    /// What it remembers that the path carries: bits of segments without their headers; null: nothing.
    pub remembered_bps: Option<u64>,
    #[serde(flatten)]
    pub counters: CountersDocument,
}

impl Told {
    pub fn by(host: &Host) -> Result<Told> {
        let text = host.packtrain(&COMMAND)?;
        let document: TcpDocument =
            serde_json::from_str(&text).map_err(|error| Error::Unexpected {
                program: format!("packtrain {}", COMMAND.join(" ")),
                text: error.to_string(),
            })?;
        Ok(Told {
            remembered_bps: document.paths.first().and_then(|path| path.rate_bps),
            counters: document.counters,
        })
    }
}
