//! A file of rules and sets: TOML in, [`RuleSet`] out, and every mistake with its line, column and key.
//!
//! ```toml
//! policy = "host"                    # and ports, mode, dry_run, watchdog: as the options of `filter on`
//!
//! [sets]
//! office = ["10.0.0.0/8", "2001:db8::/32"]
//! blocked = { file = "blocked.txt" } # a prefix a line, beside this file
//!
//! [[rule]]
//! name = "ssh"                       # rule1, rule2 and so on otherwise
//! verdict = "allow"                  # or "deny", or instead of it: limit = "20/s burst 5 per source"
//! match = "tcp dport 22 src @office"
//! ```

mod options;
mod set_file;
#[cfg(test)]
mod tests;
mod write;

use std::ops::Range;
use std::path::Path;

use packtrain_proto::filter::rules::{
    Image, ImageError, Limit, NamedSet, Rule, RuleMatch, RuleName, RuleSet, RuleSetError, SetName,
    Verdict,
};
use toml::Spanned;
use toml::de::DeValue;

use crate::cli::error::CliError;
use crate::toml_reader::{Errors, FileErrors, Table, parse_str, read_with_columns, string};

pub use options::{FileOptions, parse_watchdog};
pub use write::text_of;

/// Largest file of rules, with all prefixes that there can be in it.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What a file says, and that a filter can ask it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesFile {
    pub options: FileOptions,
    pub rules: RuleSet,
    pub image: Image,
}

/// Reads a file, and those that it names.
pub fn read_file(path: &Path) -> Result<RulesFile, CliError> {
    let unread = |source| CliError::FileUnread {
        path: path.into(),
        source,
    };
    let text = set_file::read_bounded(path, FILE_BYTES_MAX).map_err(unread)?;
    let text = String::from_utf8(text)
        .map_err(|_| unread(std::io::Error::other("it is no text in UTF-8")))?;
    Ok(parse(path, &text)?)
}

/// `path` is for the errors, and beside it are the files of sets.
pub fn parse(path: &Path, text: &str) -> Result<RulesFile, FileErrors> {
    read_with_columns(path, text, |table, errors| read_rules(path, table, errors))
}

/// A rule, and where it stands: all of it, its name and its match.
struct Placed {
    rule: Rule,
    span: Range<usize>,
    match_span: Range<usize>,
}

fn read_rules(path: &Path, table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<RulesFile> {
    let options = options::read(table, errors);
    let sets_span = table.span_of("sets");
    let sets = read_sets(path, table, errors);
    let mut read = Vec::new();
    table.list("rule", errors, |value, errors| {
        read.push((read_rule(value, errors)?, value.span()));
        Some(())
    });
    table.refuse_the_rest(errors);
    let rules = with_names(read, errors);
    check_sets_are_there(&rules, &sets, errors);
    if !errors.is_empty() {
        return None;
    }
    let spans: Vec<Range<usize>> = rules.iter().map(|placed| placed.span.clone()).collect();
    let names: Vec<RuleName> = rules
        .iter()
        .map(|placed| placed.rule.name.clone())
        .collect();
    let rules = rules.into_iter().map(|placed| placed.rule).collect();
    let last_rule = || spans.last().cloned().unwrap_or(0..0);
    let rules = match RuleSet::new(rules, sets) {
        Ok(rules) => rules,
        Err(error) => {
            let (span, key) = match &error {
                RuleSetError::Prefixes(_) => (sets_span, "sets"),
                _ => (last_rule(), "rule"),
            };
            errors.add(span, Some(key.into()), error.to_string());
            return None;
        }
    };
    match Image::compile(&rules) {
        Ok(image) => Some(RulesFile {
            options,
            rules,
            image,
        }),
        Err(error) => {
            let span = match &error {
                ImageError::Entries(rule) => {
                    let place = names.iter().position(|name| name == rule);
                    place.map_or_else(last_rule, |place| spans[place].clone())
                }
                ImageError::Rows | ImageError::Words(_) => last_rule(),
            };
            errors.add(span, Some("rule".into()), error.to_string());
            None
        }
    }
}

/// All but the name, which others may have; and where the match stands.
type Read = (
    Option<(RuleName, Range<usize>)>,
    Verdict,
    RuleMatch,
    Range<usize>,
);

fn read_rule<'a>(value: &'a Spanned<DeValue<'a>>, errors: &mut Errors<'_>) -> Option<Read> {
    let mut table = Table::of(value, "rule", "[[rule]]", errors)?;
    let mut name = None;
    table.optional("name", errors, &mut name, |value| {
        parse_str::<RuleName>(value).map(Some)
    });
    let name = name.map(|name| (name, table.span_of("name")));
    let matches = table.required("match", errors, parse_str::<RuleMatch>);
    let mut verdict = None;
    let says_verdict = table.get("verdict").is_some();
    let says_limit = table.get("limit").is_some();
    table.optional("verdict", errors, &mut verdict, |value| {
        match string(value)? {
            "allow" => Ok(Some(Verdict::Allow)),
            "deny" => Ok(Some(Verdict::Deny)),
            other => Err(format!(
                "{other:?} is no verdict: allow or deny; for a limit write limit = \"1000/s\" instead"
            )),
        }
    });
    table.optional("limit", errors, &mut verdict, |value| {
        parse_str::<Limit>(value).map(|limit| Some(Verdict::Limit(limit)))
    });
    match (says_verdict, says_limit) {
        (false, false) => {
            let message = "says nothing: verdict = \"allow\" or \"deny\", or limit = \"1000/s\"";
            table.refuse(None, message.into(), errors);
        }
        (true, true) => {
            let message = "there is a verdict already: a rule has one, or a limit";
            table.refuse(Some("limit"), message.into(), errors);
        }
        _ => {}
    }
    table.refuse_the_rest(errors);
    let match_span = table.span_of("match");
    Some((name, verdict?, matches?, match_span))
}

/// Those without a name get one that nobody has.
fn with_names(read: Vec<(Read, Range<usize>)>, errors: &mut Errors<'_>) -> Vec<Placed> {
    let mut taken: Vec<RuleName> = Vec::new();
    for ((name, ..), _) in &read {
        let Some((name, span)) = name else { continue };
        match taken.contains(name) {
            true => {
                let message = format!("there is a rule {name} already");
                errors.add(span.clone(), Some("rule.name".into()), message);
            }
            false => taken.push(name.clone()),
        }
    }
    let mut placed = Vec::new();
    for ((name, verdict, matches, match_span), span) in read {
        let name = match name {
            Some((name, _)) => name,
            None => {
                let name = super::rules::free_name(|name| taken.contains(name));
                taken.push(name.clone());
                name
            }
        };
        placed.push(Placed {
            rule: Rule {
                name,
                verdict,
                matches,
            },
            span,
            match_span,
        });
    }
    placed
}

fn read_sets(path: &Path, table: &mut Table<'_>, errors: &mut Errors<'_>) -> Vec<NamedSet> {
    const LIKE: &str = "[sets] office = [\"10.0.0.0/8\"]";
    let Some(value) = table.get("sets") else {
        return Vec::new();
    };
    let Some(sets) = Table::of(value, "sets", LIKE, errors) else {
        return Vec::new();
    };
    let mut read = Vec::new();
    for (key, span, value) in sets.entries() {
        let name = key.parse::<SetName>().map_err(|error| error.to_string());
        let name = errors.take(span, &sets.key(key), name);
        let prefixes = read_set(path, &sets.key(key), value, errors);
        if let (Some(name), Some(prefixes)) = (name, prefixes) {
            read.push(NamedSet { name, prefixes });
        }
    }
    read
}

fn read_set<'a>(
    path: &Path,
    key: &str,
    value: &'a Spanned<DeValue<'a>>,
    errors: &mut Errors<'_>,
) -> Option<Vec<packtrain_proto::class::prefix::Prefix>> {
    if let Some(array) = value.get_ref().as_array() {
        let prefixes = array
            .iter()
            .map(|item| errors.take(item.span(), key, parse_str(item.get_ref())));
        // All of them are looked at, whatever is wrong with some.
        let prefixes: Vec<Option<_>> = prefixes.collect();
        return prefixes.into_iter().collect();
    }
    const LIKE: &str = "an array of prefixes, or { file = \"blocked.txt\" }";
    if value.get_ref().as_table().is_none() {
        let message = crate::toml_reader::wrong_type(LIKE, value.get_ref());
        errors.add(value.span(), Some(key.into()), message);
        return None;
    }
    let mut table = Table::of(value, key, LIKE, errors)?;
    let file = table.required("file", errors, |value| string(value).map(String::from));
    table.refuse_the_rest(errors);
    let file = path.parent().unwrap_or(Path::new("")).join(file?);
    match set_file::read(&file) {
        Ok(prefixes) => Some(prefixes),
        Err(set_file::SetFileError::Unread(error)) => {
            let message = format!("{}: {error}", file.display());
            table.refuse(Some("file"), message, errors);
            None
        }
        Err(set_file::SetFileError::Lines(wrong)) => {
            wrong
                .into_iter()
                .for_each(|error| errors.add_of_another(error));
            None
        }
    }
}

fn check_sets_are_there(rules: &[Placed], sets: &[NamedSet], errors: &mut Errors<'_>) {
    // What is wrong with a set was told already, and is no reason to say that there is none.
    if !errors.is_empty() {
        return;
    }
    for placed in rules {
        for name in placed.rule.matches.sets() {
            if sets.iter().any(|set| set.name == *name) {
                continue;
            }
            let known: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
            let known = match known.is_empty() {
                true => "the file has none".into(),
                false => format!("the file has: {}", known.join(", ")),
            };
            let message = format!("there is no set @{name} in [sets] ({known})");
            errors.add(
                placed.match_span.clone(),
                Some("rule.match".into()),
                message,
            );
        }
    }
}
