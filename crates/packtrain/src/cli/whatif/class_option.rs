//! A class on the command line: in the words of `packtrain class add`, its options without their dashes.

use std::str::FromStr;

use packtrain_proto::class::{Class, ClassName};

use crate::cli::error::CliError;
use crate::settings::classes::ClassSettings;

/// As in `udp dport 5060-5070; pack now; name calls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassOption {
    class: ClassSettings,
    before: Option<ClassName>,
}

const WORDS: &str = "name, pack, path, compress, loss-ok or before";

impl FromStr for ClassOption {
    type Err = String;

    fn from_str(text: &str) -> Result<ClassOption, String> {
        let mut parts = text.split(';').map(str::trim);
        let conditions = parts.next().unwrap_or_default();
        let mut option = ClassOption {
            class: ClassSettings {
                name: None,
                matches: read(conditions)?,
                pack: Default::default(),
                path: Default::default(),
                loss_ok: false,
                compress: Default::default(),
                duplicate: false,
                links: Vec::new(),
                repair: Default::default(),
            },
            before: None,
        };
        for part in parts.filter(|part| !part.is_empty()) {
            let (word, value) = part.split_once(' ').unwrap_or((part, ""));
            let (class, value) = (&mut option.class, value.trim());
            match word {
                "name" => class.name = Some(read(value)?),
                "pack" => class.pack = read(value)?,
                "path" => class.path = read(value)?,
                "compress" => class.compress = read(value)?,
                "before" => option.before = Some(read(value)?),
                "loss-ok" if value.is_empty() => class.loss_ok = true,
                _ => return Err(format!("{part:?} says nothing of a class: {WORDS}")),
            }
        }
        Ok(option)
    }
}

fn read<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// One after the other, as if each were added to a line.
pub fn insert(options: &[ClassOption], classes: &mut Vec<Class>) -> Result<(), CliError> {
    for ClassOption { class, before } in options {
        let class = class.clone();
        class
            .insert(classes, before.as_ref())
            .map_err(|error| CliError::Usage(error.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use packtrain_proto::class::{Pack, defaults};

    use super::*;

    #[test]
    fn a_class_is_written_as_it_is_added() {
        let option = |text: &str| text.parse::<ClassOption>();
        let calls = option("udp dport 5060-5070; pack now; name calls").unwrap();
        let rest = option("any;pack 2ms on-backlog; loss-ok;").unwrap();
        let mut classes = defaults();
        insert(&[calls.clone(), rest], &mut classes).unwrap();
        assert_eq!(classes[0].name.as_str(), "calls");
        assert_eq!(classes[0].action.pack, Pack::Now);
        assert!(classes[1].action.loss_ok && classes[1].action.on_backlog);
        let twice = insert(&[calls], &mut classes).unwrap_err().to_string();
        assert_eq!(twice, "there is a class calls already");
        for (wrong, text) in [
            ("upd", "\"upd\" begins no condition"),
            ("udp; pack soon", "does not say when frames leave"),
            (
                "udp; weight 3",
                "\"weight 3\" says nothing of a class: name, pack,",
            ),
            ("udp; loss-ok 3", "\"loss-ok 3\" says nothing of a class"),
        ] {
            let error = option(wrong).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
