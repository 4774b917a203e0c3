//! A host that a file describes.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::filter::{Host, Interface};
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_proto::wire::packet::IpVersion;
use toml::de::DeValue;

use super::groups::{ethernet_of, joined_with};
use crate::cli::error::CliError;
use crate::settings::values::parse_mac;
use crate::toml_reader::{Errors, FileErrors, Table, boolean, parse_str, read, string};

pub fn read_file(path: &Path) -> Result<Host, CliError> {
    let text = std::fs::read_to_string(path).map_err(|source| CliError::FileUnread {
        path: path.into(),
        source,
    })?;
    Ok(parse(path, &text)?)
}

/// `path` is for the errors alone.
fn parse(path: &Path, text: &str) -> Result<Host, FileErrors> {
    read(path, text, read_host)
}

fn read_host(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Host> {
    let macs = values(table, "mac", errors, mac);
    // An array whose values are wrong has been told of.
    let says_none = |value: &DeValue<'_>| value.as_array().is_some_and(|array| array.is_empty());
    match table.get("mac") {
        None => table.refuse(Some("mac"), "is missing".into(), errors),
        Some(value) if says_none(value.get_ref()) => {
            let message = "an interface has at least one address".into();
            table.refuse(Some("mac"), message, errors);
        }
        Some(_) => {}
    }
    let mut groups = values(table, "groups", errors, group);
    let addresses = values(table, "addresses", errors, address);
    let local = match table.get("local") {
        Some(_) => values(table, "local", errors, local),
        None => ipv4_of(&addresses),
    };
    let neighbours = values(table, "neighbours", errors, parse_str::<Ipv4Addr>);
    let mut is_promiscuous = false;
    table.optional("promiscuous", errors, &mut is_promiscuous, boolean);
    table.refuse_the_rest(errors);
    groups.extend(addresses.iter().copied().flat_map(joined_with));
    Some(Host {
        interface: Interface {
            unicast: macs,
            groups,
            addresses,
            neighbours,
            is_promiscuous,
            ..Interface::default()
        },
        local,
        ..Host::default()
    })
}

/// A list of what `one` reads.
fn values<T>(
    table: &mut Table<'_>,
    key: &'static str,
    errors: &mut Errors<'_>,
    one: impl Fn(&DeValue<'_>) -> Result<T, String>,
) -> Vec<T> {
    table.list(key, errors, |value, errors| {
        errors.take(value.span(), key, one(value.get_ref()))
    })
}

fn mac(value: &DeValue<'_>) -> Result<MacAddr, String> {
    parse_mac(string(value)?).map_err(|error| error.to_string())
}

fn group(value: &DeValue<'_>) -> Result<MacAddr, String> {
    let text = string(value)?;
    let group = match text.parse::<IpAddr>() {
        Ok(group) if group.is_multicast() => Some(ethernet_of(group)),
        Ok(_) => None,
        Err(_) => text.parse().ok().filter(|mac: &MacAddr| mac.is_group()),
    };
    group.ok_or_else(|| {
        format!("{text:?} is no group: write it as in 224.0.0.251, ff02::fb or 01:00:5e:00:00:fb")
    })
}

fn address(value: &DeValue<'_>) -> Result<IpAddr, String> {
    let text = string(value)?;
    let address: IpAddr = text
        .parse()
        .map_err(|_| format!("{text:?} is no IP address: write it as in 10.1.0.1 or fd00:1::1"))?;
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    if address.is_unspecified() || address.is_multicast() || is_broadcast {
        return Err(format!("{address} is no address that a host can have"));
    }
    Ok(address)
}

fn local(value: &DeValue<'_>) -> Result<Prefix, String> {
    let prefix: Prefix = parse_str(value)?;
    match prefix.version() {
        IpVersion::V4 => Ok(prefix),
        IpVersion::V6 => Err(format!("{prefix} is IPv6, for which nobody asks by ARP")),
    }
}

fn ipv4_of(addresses: &[IpAddr]) -> Vec<Prefix> {
    let ipv4 = addresses.iter().filter(|address| address.is_ipv4());
    ipv4.map(|address| address.to_string().parse().expect("an address is a prefix"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Result<Host, String> {
        parse(Path::new("h.toml"), text).map_err(|errors| errors.to_string())
    }

    fn shown(macs: &[MacAddr]) -> Vec<String> {
        macs.iter().map(MacAddr::to_string).collect()
    }

    #[test]
    fn a_host_is_what_its_file_says() {
        let host = host(
            "mac = ['52:54:00:00:00:01', '52:54:00:00:00:02']\n\
             groups = ['239.1.2.3', 'ff02::fb', '01:80:c2:00:00:0e']\n\
             addresses = ['10.1.0.1', 'fd00:1::1']\n\
             local = ['192.0.2.0/24']\n\
             neighbours = ['10.1.0.254']\n\
             promiscuous = true\n",
        )
        .unwrap();
        let interface = &host.interface;
        assert_eq!(
            shown(&interface.unicast),
            ["52:54:00:00:00:01", "52:54:00:00:00:02"]
        );
        assert_eq!(
            shown(&interface.groups),
            [
                "01:00:5e:01:02:03",
                "33:33:00:00:00:fb",
                "01:80:c2:00:00:0e",
                "01:00:5e:00:00:01",
                "33:33:00:00:00:01",
                "33:33:ff:00:00:01"
            ]
        );
        assert_eq!(host.local, ["192.0.2.0/24".parse().unwrap()]);
        assert_eq!(interface.neighbours, [Ipv4Addr::new(10, 1, 0, 254)]);
        assert!(interface.is_promiscuous);
    }

    #[test]
    fn a_host_answers_for_its_ipv4_addresses_unless_the_file_says_what_else() {
        let addresses = "mac = ['52:54:00:00:00:01']\naddresses = ['10.1.0.1', 'fd00:1::1']\n";
        let local = host(addresses).unwrap().local;
        assert_eq!(local, ["10.1.0.1".parse().unwrap()]);
        let none = host(&format!("{addresses}local = []\n")).unwrap().local;
        assert_eq!(none, []);
    }

    #[test]
    fn every_mistake_is_told_with_its_line_and_key() {
        let text = "mac = ['01:00:5e:00:00:01', 7]\n\
                    groups = [\n'10.0.0.1',\n'02:00:00:00:00:01', '224.0.0']\n\
                    addresses = ['10.1.0.1/24', '0.0.0.0']\n\
                    local = ['10.1.0.1/24', 'fd00::/8']\n\
                    neighbours = ['::1']\n\
                    promiscuous = 'no'\n\
                    port = 3\n";
        let group = "is no group: write it as in 224.0.0.251, ff02::fb or 01:00:5e:00:00:fb";
        assert_eq!(
            host(text).unwrap_err().lines().collect::<Vec<_>>(),
            [
                "h.toml:1: mac: 01:00:5e:00:00:01 is a group address: an interface has one of its own (the first byte even)",
                "h.toml:1: mac: expected a string, found an integer",
                &format!("h.toml:3: groups: \"10.0.0.1\" {group}"),
                &format!("h.toml:4: groups: \"02:00:00:00:00:01\" {group}"),
                &format!("h.toml:4: groups: \"224.0.0\" {group}"),
                "h.toml:5: addresses: \"10.1.0.1/24\" is no IP address: write it as in 10.1.0.1 or fd00:1::1",
                "h.toml:5: addresses: 0.0.0.0 is no address that a host can have",
                "h.toml:6: local: 10.1.0.1/24 has bits behind its prefix: write it as 10.1.0.0/24",
                "h.toml:6: local: fd00::/8 is IPv6, for which nobody asks by ARP",
                "h.toml:7: neighbours: invalid IPv4 address syntax",
                "h.toml:8: promiscuous: expected true or false, found a string",
                "h.toml:9: port: unknown key (known here: addresses, groups, local, mac, neighbours, promiscuous)",
            ]
        );
    }

    #[test]
    fn a_host_without_an_address_of_its_own_is_none() {
        assert_eq!(host("").unwrap_err(), "h.toml:1: mac: is missing");
        assert_eq!(
            host("mac = []").unwrap_err(),
            "h.toml:1: mac: an interface has at least one address"
        );
        assert_eq!(
            host("mac = '52:54:00:00:00:01'").unwrap_err(),
            "h.toml:1: mac: expected an array, found a string"
        );
        let broken = host("mac = [").unwrap_err();
        assert!(broken.starts_with("h.toml:1: "), "{broken}");
    }
}
