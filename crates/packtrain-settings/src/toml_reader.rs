//! TOML files read by hand, not by a derived deserializer: all mistakes are told at once, each with
//! its line and key, and in the words of the value's own error.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Everything that is wrong with a file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileErrors(pub Vec<FileError>);

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters; of files that say it.
    pub column: Option<usize>,
    /// As in `link.name`; `None` where the file is no TOML.
    pub key: Option<String>,
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.file, self.line)?;
        if let Some(column) = self.column {
            write!(f, "{column}:")?;
        }
        f.write_str(" ")?;
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

/// Reads `text` with `read`, which is given the whole document; `path` is for the errors alone.
pub fn read<T>(
    path: &Path,
    text: &str,
    read: impl FnOnce(&mut Table<'_>, &mut Errors<'_>) -> Option<T>,
) -> Result<T, FileErrors> {
    read_into(Errors::new(path, text, false), |_, _| (), read)
}

/// As [`read`], and `change` has the document before: what it fills in has the place of what stood there.
pub fn read_changed<T>(
    path: &Path,
    text: &str,
    change: impl FnOnce(&mut DeTable<'_>, &mut Errors<'_>),
    read: impl FnOnce(&mut Table<'_>, &mut Errors<'_>) -> Option<T>,
) -> Result<T, FileErrors> {
    read_into(Errors::new(path, text, false), change, read)
}

/// As [`read`], and errors have columns too.
pub fn read_with_columns<T>(
    path: &Path,
    text: &str,
    read: impl FnOnce(&mut Table<'_>, &mut Errors<'_>) -> Option<T>,
) -> Result<T, FileErrors> {
    read_into(Errors::new(path, text, true), |_, _| (), read)
}

fn read_into<T>(
    mut errors: Errors<'_>,
    change: impl FnOnce(&mut DeTable<'_>, &mut Errors<'_>),
    read: impl FnOnce(&mut Table<'_>, &mut Errors<'_>) -> Option<T>,
) -> Result<T, FileErrors> {
    let text = errors.text;
    let mut root = match DeTable::parse(text) {
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
    change(root.get_mut(), &mut errors);
    match read(
        &mut Table::new(root.get_ref(), root.span(), ""),
        &mut errors,
    ) {
        Some(value) if errors.is_empty() => Ok(value),
        _ => Err(errors.into_result()),
    }
}

/// A table, and which of its keys were asked for: what is left over is unknown.
#[derive(Debug)]
pub struct Table<'a> {
    table: &'a DeTable<'a>,
    span: Range<usize>,
    /// Before each key in errors.
    prefix: String,
    known: BTreeSet<&'static str>,
}

impl<'a> Table<'a> {
    pub fn new(table: &'a DeTable<'a>, span: Range<usize>, prefix: &str) -> Table<'a> {
        Table {
            table,
            span,
            prefix: prefix.to_owned(),
            known: BTreeSet::new(),
        }
    }

    /// The table that a value is; `key.` stands before its keys in errors, `like` shows how one is
    /// written.
    pub fn of(
        value: &'a Spanned<DeValue<'a>>,
        key: &str,
        like: &str,
        errors: &mut Errors<'_>,
    ) -> Option<Table<'a>> {
        let Some(table) = value.get_ref().as_table() else {
            let message = wrong_type(&format!("a table, as in {like}"), value.get_ref());
            errors.add(value.span(), Some(key.into()), message);
            return None;
        };
        Some(Table::new(table, value.span(), &format!("{key}.")))
    }

    /// One error about a key of the table, or about all of it.
    pub fn refuse(&self, key: Option<&str>, message: String, errors: &mut Errors<'_>) {
        let (span, key) = match key {
            Some(key) => (self.span_of(key), self.key(key)),
            None => (self.span.clone(), self.prefix.trim_end_matches('.').into()),
        };
        errors.add(span, Some(key), message);
    }

    /// All that is in the table, for one whose keys are names.
    pub fn entries(
        &self,
    ) -> impl Iterator<Item = (&'a str, Range<usize>, &'a Spanned<DeValue<'a>>)> {
        let entries = self.table.iter();
        entries.map(|(key, value)| (key.get_ref().as_ref(), key.span(), value))
    }

    pub fn get(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.insert(key);
        self.table
            .iter()
            .find(|(k, _)| k.get_ref() == key)
            .map(|(_, value)| value)
    }

    pub fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    pub fn span_of(&self, key: &str) -> Range<usize> {
        let entry = self.table.iter().find(|(k, _)| k.get_ref() == key);
        entry.map_or(self.span.clone(), |(k, _)| k.span())
    }

    pub fn required<T>(
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

    pub fn optional<T>(
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

    pub fn list<T>(
        &mut self,
        key: &'static str,
        errors: &mut Errors<'_>,
        mut read: impl FnMut(&'a Spanned<DeValue<'a>>, &mut Errors<'_>) -> Option<T>,
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

    pub fn refuse_the_rest(&self, errors: &mut Errors<'_>) {
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

#[derive(Debug)]
pub struct Errors<'a> {
    file: String,
    text: &'a str,
    with_columns: bool,
    list: Vec<FileError>,
}

impl<'a> Errors<'a> {
    fn new(path: &Path, text: &'a str, with_columns: bool) -> Errors<'a> {
        Errors {
            file: path.display().to_string(),
            text,
            with_columns,
            list: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// From 1.
    pub fn line_of(&self, span: &Range<usize>) -> usize {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        before.iter().filter(|&&b| b == b'\n').count() + 1
    }

    pub fn add(&mut self, span: Range<usize>, key: Option<String>, message: String) {
        let line = self.line_of(&span);
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let of_line = before.rsplit(|&b| b == b'\n').next().unwrap_or(before);
        let column = String::from_utf8_lossy(of_line).chars().count() + 1;
        self.list.push(FileError {
            file: self.file.clone(),
            line,
            column: self.with_columns.then_some(column),
            key,
            message,
        });
    }

    /// Of a file that this one names.
    pub fn add_of_another(&mut self, error: FileError) {
        self.list.push(error);
    }

    pub fn take<T>(&mut self, span: Range<usize>, key: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|message| self.add(span, Some(key.into()), message))
            .ok()
    }

    fn into_result(mut self) -> FileErrors {
        // Those of other files stay as they came, behind our own.
        let own = &self.file;
        self.list.sort_by_key(|e| match e.file == *own {
            true => (e.line, e.column),
            false => (usize::MAX, None),
        });
        FileErrors(self.list)
    }
}

pub fn wrong_type(expected: &str, found: &DeValue<'_>) -> String {
    let found = found.type_str();
    let article = if found.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    };
    format!("expected {expected}, found {article} {found}")
}

pub fn string<'a>(value: &'a DeValue<'_>) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| wrong_type("a string", value))
}

pub fn boolean(value: &DeValue<'_>) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| wrong_type("true or false", value))
}

pub fn integer(value: &DeValue<'_>) -> Result<u32, String> {
    let integer = value
        .as_integer()
        .ok_or_else(|| wrong_type("an integer", value))?;
    u32::from_str_radix(integer.as_str(), integer.radix())
        .map_err(|_| format!("{integer} is not within 0 to {}", u32::MAX))
}

pub fn parse_str<T: std::str::FromStr<Err: fmt::Display>>(
    value: &DeValue<'_>,
) -> Result<T, String> {
    string(value)?.parse().map_err(|e: T::Err| e.to_string())
}

/// As [`parse_str`], and a number may stand without quotes.
pub fn parse_scalar<T: std::str::FromStr<Err: fmt::Display>>(
    value: &DeValue<'_>,
) -> Result<T, String> {
    let text = match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Float(float) => float.as_str().to_owned(),
        // In decimal, however the file writes it; what does not fit is the value's own error.
        DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix())
            .map_or_else(|_| integer.to_string(), |integer| integer.to_string()),
        other => return Err(wrong_type("a string or a number", other)),
    };
    text.parse().map_err(|e: T::Err| e.to_string())
}
