//! A file of prefixes: one a line, `#` and what follows it is a comment.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::filter::rules::SET_PREFIXES_MAX;

use crate::toml_reader::FileError;

/// Largest file: as many prefixes as there can be have a third of it.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Lines that are told of one by one, where more are wrong.
const WRONG_LINES_MAX: usize = 10;

#[derive(Debug)]
pub(super) enum SetFileError {
    Unread(io::Error),
    Lines(Vec<FileError>),
}

pub(super) fn read(path: &Path) -> Result<Vec<Prefix>, SetFileError> {
    let bytes = read_bounded(path, FILE_BYTES_MAX).map_err(SetFileError::Unread)?;
    parse(path, &bytes).map_err(SetFileError::Lines)
}

/// Not more than so much: a file may be a device that never ends.
pub(super) fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(bytes_max + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= bytes_max {
        true => Ok(bytes),
        false => Err(io::Error::other(format!(
            "it is longer than {} MiB, and {SET_PREFIXES_MAX} prefixes are possible",
            bytes_max >> 20
        ))),
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<Prefix>, Vec<FileError>> {
    let mut prefixes = Vec::new();
    let mut wrong = Vec::new();
    let mut wrong_lines = 0;
    for (at, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let (column, read) = parse_line(line);
        match read {
            Ok(prefix) => prefixes.extend(prefix),
            Err(message) => {
                wrong_lines += 1;
                if wrong_lines <= WRONG_LINES_MAX {
                    wrong.push(error(path, at + 1, Some(column), message));
                }
            }
        }
        if wrong_lines == WRONG_LINES_MAX + 1 {
            let message = "and more lines that are wrong; a set's file has a prefix a line".into();
            wrong.push(error(path, at + 1, None, message));
            break;
        }
    }
    match wrong.is_empty() {
        true => Ok(prefixes),
        false => Err(wrong),
    }
}

/// The column where it begins, and the prefix if there is one.
fn parse_line(line: &[u8]) -> (usize, Result<Option<Prefix>, String>) {
    let code = line.split(|&byte| byte == b'#').next().unwrap_or(line);
    let column = code
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count()
        + 1;
    let text = code.trim_ascii();
    if text.is_empty() {
        return (column, Ok(None));
    }
    let Ok(text) = std::str::from_utf8(text) else {
        return (column, Err("this is no text in UTF-8".into()));
    };
    let read = text.parse::<Prefix>();
    let read = read.map(Some).map_err(|error| error.to_string());
    (column, read)
}

fn error(path: &Path, line: usize, column: Option<usize>, message: String) -> FileError {
    FileError {
        file: path.display().to_string(),
        line,
        column,
        key: None,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &[u8]) -> Result<Vec<String>, Vec<String>> {
        match parse(Path::new("blocked.txt"), text) {
            Ok(prefixes) => Ok(prefixes.iter().map(Prefix::to_string).collect()),
            Err(errors) => Err(errors.iter().map(FileError::to_string).collect()),
        }
    }

    #[test]
    fn a_prefix_a_line_and_comments() {
        let text = b"# of today\n10.0.0.0/8\n\n  2001:db8::/32  # a network\r\n192.0.2.1";
        assert_eq!(
            read_text(text).unwrap(),
            ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"]
        );
        assert_eq!(read_text(b"").unwrap(), [""; 0]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_column() {
        assert_eq!(
            read_text(b"10.0.0.0/8\n  10.0.0.1/8\n10.0.0.0/8 ; a note\n\xff\n").unwrap_err(),
            [
                "blocked.txt:2:3: 10.0.0.1/8 has bits behind its prefix: write it as 10.0.0.0/8",
                "blocked.txt:3:1: \"8 ; a note\" is no prefix length: a number from 0 to 32",
                "blocked.txt:4:1: this is no text in UTF-8",
            ]
        );
        let many = read_text("x\n".repeat(99).as_bytes()).unwrap_err();
        assert_eq!(many.len(), 11);
        assert_eq!(
            many[10],
            "blocked.txt:11: and more lines that are wrong; a set's file has a prefix a line"
        );
    }

    #[test]
    fn a_file_that_never_ends_is_read_to_its_bound() {
        let error = read_bounded(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it is longer than 1 MiB, and 131072 prefixes are possible"
        );
    }
}
