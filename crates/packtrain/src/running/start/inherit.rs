//! What a start takes over of a line that stayed when its former daemon ended.

use packtrain_proto::wire::ethernet::MacAddr;

use super::create_journal;
use crate::cli::error::CliError;
use crate::instance;
use crate::linux::host_state::HostState;
use crate::linux::netlink::Netlink;
use crate::linux::tap::Tap;
use crate::settings::Settings;
use crate::stay::Heir;

/// What was handed over, where it fits what is to be made; otherwise it is undone.
pub(super) fn accept(
    heir: Option<Heir>,
    address: MacAddr,
    netlink: &mut Netlink,
    note: &mut dyn FnMut(&str),
) -> Result<Option<Heir>, CliError> {
    let Some(heir) = heir else {
        return Ok(None);
    };
    let why_not = match netlink.link(heir.ifindex)? {
        Some(pt0) if pt0.address == address => return Ok(Some(heir)),
        Some(pt0) => format!(
            "it has the MAC address {}, and is to have {address}",
            pt0.address
        ),
        None => "it was deleted".into(),
    };
    note(&format!(
        "what stayed of the former daemon cannot be carried on: {why_not}"
    ));
    heir.refuse().map_err(|e| CliError::Failed(e.to_string()))?;
    Ok(None)
}

/// The former daemon's, whose changes stand.
pub(super) fn journal(
    settings: &Settings,
    note: &mut dyn FnMut(&str),
) -> Result<HostState, CliError> {
    let dir = instance::state_dir().map_err(|e| CliError::failed("/proc/thread-self/ns/net", e))?;
    let adopted = HostState::adopt(&dir, settings.name.as_str());
    match adopted.map_err(|e| CliError::Failed(e.to_string()))? {
        Some(journal) => Ok(journal),
        None => create_journal(settings, note),
    }
}

pub(super) fn tap(heir: &Heir) -> Result<Tap, CliError> {
    let descriptor = heir.tap.try_clone();
    let descriptor = descriptor.map_err(|e| CliError::failed("pt0's descriptor", e))?;
    Ok(Tap::adopt(descriptor, heir.ifindex))
}

/// Those that it is not to have any more go. The kernel's own stay.
pub(super) fn addresses(
    tap: &Tap,
    settings: &Settings,
    netlink: &mut Netlink,
) -> Result<(), CliError> {
    let known = netlink.addresses(tap.ifindex())?;
    for address in known.iter().filter(|address| !address.link_scope) {
        if !settings.addresses.contains(&address.prefix) {
            netlink.delete_address(tap.ifindex(), address.prefix)?;
        }
    }
    Ok(())
}
