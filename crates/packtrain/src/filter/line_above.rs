//! The line that an interface is a member link of.

use crate::control::{self, Request, Response};
use crate::linux::netlink::Netlink;
use crate::settings::values::InterfaceName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineAbove {
    pub name: String,
    pub ifindex: u32,
}

/// Asks the lines that run in this namespace. One that does not answer is as good as none: then what its sockets and
/// programs on the interface take passes as any capture's does.
pub fn find(interface: &InterfaceName, running: &[InterfaceName]) -> Option<LineAbove> {
    let name = running.iter().find(|line| has_link(line, interface))?;
    let link = Netlink::open().ok()?.link_by_name(name.as_str()).ok()??;
    Some(LineAbove {
        name: name.to_string(),
        ifindex: link.ifindex,
    })
}

fn has_link(line: &InterfaceName, interface: &InterfaceName) -> bool {
    let Ok(Response::Status(document)) = control::request(line.as_str(), Request::Status {}) else {
        return false;
    };
    let links = document["links"].as_array();
    links.is_some_and(|links| links.iter().any(|link| link["name"] == interface.as_str()))
}
