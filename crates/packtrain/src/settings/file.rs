//! A line's configuration file: TOML in, [`Settings`] out, and every mistake with its line and key.
//!
//! Read by hand, not by a derived deserializer: all mistakes are told at once, and each in the
//! words of the value's own error.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::values::{
    BalancePolicy, InterfaceName, LogLevel, PathPolicy, check_mtu, parse_address, parse_mac,
};
use super::{Contradiction, Settings};
use crate::linux::netlink::IpPrefix;

/// Everything that is wrong with a file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileErrors(pub Vec<FileError>);

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    pub file: String,
    /// From 1.
    pub line: usize,
    /// As in `link.name`; `None` where the file is no TOML.
    pub key: Option<String>,
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for FileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for FileErrors {}

/// Reads settings out of `text`; `path` is for the errors alone.
pub fn parse(path: &Path, text: &str) -> Result<Settings, FileErrors> {
    let mut errors = Errors {
        file: path.display().to_string(),
        text,
        list: Vec::new(),
    };
    let root = match DeTable::parse(text) {
        Ok(root) => root,
        Err(error) => {
            errors.add(
                error.span().unwrap_or(0..0),
                None,
                error.message().to_owned(),
            );
            return Err(errors.into_result());
        }
    };
    let settings = read_line(
        &mut Table::new(root.get_ref(), root.span(), ""),
        &mut errors,
    );
    match settings {
        Some(settings) if errors.list.is_empty() => Ok(settings),
        _ => Err(errors.into_result()),
    }
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

    if errors.list.is_empty()
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

fn read_link(value: &Spanned<DeValue<'_>>, errors: &mut Errors<'_>) -> Option<InterfaceName> {
    let Some(table) = value.get_ref().as_table() else {
        let message = wrong_type("a table, as in [[link]]", value.get_ref());
        errors.add(value.span(), Some("link".into()), message);
        return None;
    };
    let mut table = Table::new(table, value.span(), "link.");
    let name = table.required("name", errors, parse_str::<InterfaceName>);
    table.refuse_the_rest(errors);
    name
}

/// A table, and which of its keys were asked for: what is left over is unknown.
struct Table<'a> {
    table: &'a DeTable<'a>,
    span: Range<usize>,
    /// Before each key in errors.
    prefix: &'static str,
    known: BTreeSet<&'static str>,
}

impl<'a> Table<'a> {
    fn new(table: &'a DeTable<'a>, span: Range<usize>, prefix: &'static str) -> Table<'a> {
        Table {
            table,
            span,
            prefix,
            known: BTreeSet::new(),
        }
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.insert(key);
        self.table
            .iter()
            .find(|(k, _)| k.get_ref() == key)
            .map(|(_, value)| value)
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    fn span_of(&self, key: &str) -> Range<usize> {
        let entry = self.table.iter().find(|(k, _)| k.get_ref() == key);
        entry.map_or(self.span.clone(), |(k, _)| k.span())
    }

    fn required<T>(
        &mut self,
        key: &'static str,
        errors: &mut Errors<'_>,
        read: impl Fn(&DeValue<'_>) -> Result<T, String>,
    ) -> Option<T> {
        let Some(value) = self.get(key) else {
            errors.add(self.span.clone(), Some(self.key(key)), "is missing".into());
            return None;
        };
        errors.take(value.span(), &self.key(key), read(value.get_ref()))
    }

    fn optional<T>(
        &mut self,
        key: &'static str,
        errors: &mut Errors<'_>,
        into: &mut T,
        read: impl Fn(&DeValue<'_>) -> Result<T, String>,
    ) {
        if let Some(value) = self.get(key)
            && let Some(read) = errors.take(value.span(), &self.key(key), read(value.get_ref()))
        {
            *into = read;
        }
    }

    fn list<T>(
        &mut self,
        key: &'static str,
        errors: &mut Errors<'_>,
        read: impl Fn(&Spanned<DeValue<'_>>, &mut Errors<'_>) -> Option<T>,
    ) -> Vec<T> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let Some(array) = value.get_ref().as_array() else {
            let message = wrong_type("an array", value.get_ref());
            errors.add(value.span(), Some(self.key(key)), message);
            return Vec::new();
        };
        array.iter().filter_map(|item| read(item, errors)).collect()
    }

    fn refuse_the_rest(&self, errors: &mut Errors<'_>) {
        for (key, _) in self
            .table
            .iter()
            .filter(|(k, _)| !self.known.contains(k.get_ref().as_ref()))
        {
            let known: Vec<&str> = self.known.iter().copied().collect();
            let message = format!("unknown key (known here: {})", known.join(", "));
            errors.add(key.span(), Some(self.key(key.get_ref())), message);
        }
    }
}

struct Errors<'a> {
    file: String,
    text: &'a str,
    list: Vec<FileError>,
}

impl Errors<'_> {
    fn add(&mut self, span: Range<usize>, key: Option<String>, message: String) {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        self.list.push(FileError {
            file: self.file.clone(),
            line,
            key,
            message,
        });
    }

    fn take<T>(&mut self, span: Range<usize>, key: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|message| self.add(span, Some(key.into()), message))
            .ok()
    }

    fn into_result(mut self) -> FileErrors {
        self.list.sort_by_key(|e| e.line);
        FileErrors(self.list)
    }
}

fn wrong_type(expected: &str, found: &DeValue<'_>) -> String {
    let found = found.type_str();
    let article = if found.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    };
    format!("expected {expected}, found {article} {found}")
}

fn string<'a>(value: &'a DeValue<'_>) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| wrong_type("a string", value))
}

fn boolean(value: &DeValue<'_>) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| wrong_type("true or false", value))
}

fn integer(value: &DeValue<'_>) -> Result<u32, String> {
    let integer = value
        .as_integer()
        .ok_or_else(|| wrong_type("an integer", value))?;
    u32::from_str_radix(integer.as_str(), integer.radix())
        .map_err(|_| format!("{integer} is not within 0 to {}", u32::MAX))
}

fn address(value: &DeValue<'_>) -> Result<IpPrefix, String> {
    parse_address(string(value)?).map_err(|e| e.to_string())
}

fn parse_str<T: std::str::FromStr<Err: fmt::Display>>(value: &DeValue<'_>) -> Result<T, String> {
    string(value)?.parse().map_err(|e: T::Err| e.to_string())
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
