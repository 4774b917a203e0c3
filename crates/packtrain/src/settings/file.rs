//! A line's configuration file: TOML in, [`Settings`] out, and every mistake with its line and key.

use std::path::Path;

use toml::Spanned;
use toml::de::DeValue;

use super::values::{
    BalancePolicy, InterfaceName, LogLevel, PathPolicy, check_mtu, parse_address, parse_mac,
};
use super::{Contradiction, Settings};
use crate::linux::netlink::IpPrefix;
use crate::toml_reader::{Errors, Table, boolean, integer, parse_str, read, string};
pub use crate::toml_reader::{FileError, FileErrors};

/// Reads settings out of `text`; `path` is for the errors alone.
pub fn parse(path: &Path, text: &str) -> Result<Settings, FileErrors> {
    read(path, text, read_line)
}

fn read_line(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Settings> {
    let name = table.required("name", errors, parse_str::<InterfaceName>);
    let mut settings = Settings::new(name.unwrap_or_else(|| "pt0".parse().expect("a right name")));

    settings.links = table.list("link", errors, read_link);
    settings.addresses = table.list("addresses", errors, |value, errors| {
        errors.take(value.span(), "addresses", address(value.get_ref()))
    });
    let mtu = |v: &DeValue<'_>| check_mtu(integer(v)?).map_err(|e| e.to_string());
    table.optional("mtu", errors, &mut settings.mtu, mtu);
    table.optional("mac", errors, &mut settings.mac, |v| {
        parse_mac(string(v)?).map(Some).map_err(|e| e.to_string())
    });
    table.optional("line_id", errors, &mut settings.line_id, integer);
    table.optional(
        "marked_frames",
        errors,
        &mut settings.marked_frames,
        boolean,
    );
    table.optional("path", errors, &mut settings.path, |v| {
        parse_str::<PathPolicy>(v)
    });
    table.optional("balance", errors, &mut settings.balance, |v| {
        parse_str::<BalancePolicy>(v)
    });
    table.optional("wait_links", errors, &mut settings.wait_links, boolean);
    table.optional("log_level", errors, &mut settings.log_level, |v| {
        parse_str::<LogLevel>(v)
    });
    table.refuse_the_rest(errors);

    if errors.is_empty()
        && let Err(contradiction) = settings.check()
    {
        let span = table.span_of(contradiction.key());
        let missing = matches!(contradiction, Contradiction::NoLinks);
        let hint = if missing {
            ": add [[link]] with its name"
        } else {
            ""
        };
        errors.add(
            span,
            Some(contradiction.key().into()),
            format!("{contradiction}{hint}"),
        );
    }
    Some(settings)
}

fn read_link<'a>(
    value: &'a Spanned<DeValue<'a>>,
    errors: &mut Errors<'_>,
) -> Option<InterfaceName> {
    let mut table = Table::of(value, "link", "[[link]]", errors)?;
    let name = table.required("name", errors, parse_str::<InterfaceName>);
    table.refuse_the_rest(errors);
    name
}

fn address(value: &DeValue<'_>) -> Result<IpPrefix, String> {
    parse_address(string(value)?).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str) -> String {
        parse(Path::new("line.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn a_file_says_all_that_the_command_line_says() {
        let text = r#"
            name = "pt1"
            addresses = ["10.9.0.1/24", "fd00::1/64"]
            mtu = 9000
            mac = "02:00:00:00:00:01"
            line_id = 0x10
            marked_frames = false
            path = "engine"
            balance = "active-backup"
            wait_links = true
            log_level = "debug"
            [[link]]
            name = "eth1"
            [[link]]
            name = "eth2"
        "#;
        let settings = parse(Path::new("line.toml"), text).unwrap();
        assert_eq!(
            settings,
            Settings {
                name: "pt1".parse().unwrap(),
                links: vec!["eth1".parse().unwrap(), "eth2".parse().unwrap()],
                addresses: vec![
                    "10.9.0.1/24".parse().unwrap(),
                    "fd00::1/64".parse().unwrap()
                ],
                mtu: 9000,
                mac: Some("02:00:00:00:00:01".parse().unwrap()),
                line_id: 16,
                marked_frames: false,
                path: PathPolicy::Engine,
                balance: BalancePolicy::ActiveBackup,
                wait_links: true,
                log_level: LogLevel::Debug,
            }
        );
    }

    #[test]
    fn what_is_not_said_has_the_defaults_of_the_command_line() {
        let settings = parse(Path::new("f"), "name = 'pt0'\n[[link]]\nname = 'eth1'").unwrap();
        let mut expected = Settings::new("pt0".parse().unwrap());
        expected.links.push("eth1".parse().unwrap());
        assert_eq!(settings, expected);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_with_what_is_known() {
        assert_eq!(
            errors("name = 'pt0'\nmtuu = 3\n[[link]]\nname = 'eth1'\nrate = 3\n"),
            "line.toml:2: mtuu: unknown key (known here: addresses, balance, line_id, link, log_level, \
             mac, marked_frames, mtu, name, path, wait_links)\n\
             line.toml:5: link.rate: unknown key (known here: name)"
        );
    }

    #[test]
    fn a_wrong_type_is_named_with_its_line_and_key() {
        assert_eq!(
            errors(
                "name = 1\nmtu = '9000'\nmarked_frames = 0\naddresses = '10.9.0.1/24'\nlink = ['a']\npath = true"
            ),
            "line.toml:1: name: expected a string, found an integer\n\
             line.toml:2: mtu: expected an integer, found a string\n\
             line.toml:3: marked_frames: expected true or false, found an integer\n\
             line.toml:4: addresses: expected an array, found a string\n\
             line.toml:5: link: expected a table, as in [[link]], found a string\n\
             line.toml:6: path: expected a string, found a boolean"
        );
    }

    #[test]
    fn a_wrong_value_is_named_with_its_line_and_key() {
        assert_eq!(
            errors(
                "name = 'pt0'\nmtu = 50\nline_id = -1\nmac = '03:00:00:00:00:01'\nlog_level = 'loud'\n\
                 path = 'kernel'\nbalance = 'lacp'\naddresses = [\n '10.9.0.1/24',\n '10.9.0.2',\n]\n[[link]]\nname = 'a/b'\n[[link]]\n"
            ),
            "line.toml:2: mtu: an MTU of 50 bytes is too small: at least 68\n\
             line.toml:3: line_id: -1 is not within 0 to 4294967295\n\
             line.toml:4: mac: 03:00:00:00:00:01 is a group address: an interface has one of its own \
             (the first byte even)\n\
             line.toml:5: log_level: \"loud\" is no log level: error, warn, info, debug or trace\n\
             line.toml:6: path: \"kernel\" is no path: auto or engine\n\
             line.toml:7: balance: \"lacp\" is no way to choose a link: earliest-finish, round-robin or \
             active-backup\n\
             line.toml:10: addresses: \"10.9.0.2\" has no prefix length: write it as in 10.9.0.1/24 or \
             fd00::1/64\n\
             line.toml:13: link.name: an interface name has no '/'\n\
             line.toml:14: link.name: is missing"
        );
    }

    #[test]
    fn values_that_contradict_each_other_name_the_key_that_says_so() {
        assert_eq!(
            errors("name = 'pt0'\n"),
            "line.toml:1: link: a line needs at least one link: add [[link]] with its name"
        );
        assert_eq!(
            errors("name = 'pt0'\naddresses = ['fd00::1/64']\nmtu = 1000\n[[link]]\nname = 'e'"),
            "line.toml:3: mtu: MTU 1000 is too small for fd00::1/64: IPv6 needs at least 1280"
        );
    }

    #[test]
    fn what_is_no_toml_is_named_with_its_line() {
        let text = errors("name = 'pt0'\nmtu = = 3\n");
        assert!(text.starts_with("line.toml:2: "), "{text}");
        let text = errors("name = 'pt0'\nmtu = 1500\nmtu = 1400\n");
        assert!(
            text.starts_with("line.toml:3: ") && text.contains("duplicate key"),
            "{text}"
        );
    }
}
