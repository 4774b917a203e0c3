//! `packtrain class add` and `packtrain class remove`, on a line that runs; `packtrain class test`.

use packtrain_proto::class::ClassName;

use super::error::CliError;
use super::{link, output, show};
use crate::control::{Request, Response};
use crate::settings::classes::NOT_YET;
use crate::settings::values::InterfaceName;

mod arguments;
mod test;

use arguments::{ClassAddArguments, ClassTestArguments};
pub use arguments::{ClassArguments, ClassCommand};

pub fn add(arguments: &ClassAddArguments) -> Result<(), CliError> {
    refuse_what_is_not_yet(arguments)?;
    let line = show::only_line(arguments.name.as_ref())?;
    let request = Request::ClassAdd {
        name: arguments.class.as_ref().map(ToString::to_string),
        matches: arguments.matches.to_string(),
        pack: arguments.pack.to_string(),
        path: arguments.path.to_string(),
        loss_ok: arguments.loss_ok,
        compress: arguments.compress.to_string(),
        duplicate: arguments.duplicate,
        links: arguments.links.iter().map(ToString::to_string).collect(),
        repair: arguments.repair.to_string(),
        before: arguments.before.as_ref().map(ToString::to_string),
    };
    let answer = link::ask(&line, request)?;
    let Response::ClassAdded(class) = answer else {
        return Err(link::unexpected(&line, &answer));
    };
    if arguments.json {
        return show::print_json(&class);
    }
    let name = class["name"].as_str().unwrap_or("a class");
    output::text(&format!("{line} has class {name}: {}\n", arguments.matches))
}

/// Asked for today and ignored, it would do something else once it is possible.
fn refuse_what_is_not_yet(arguments: &ClassAddArguments) -> Result<(), CliError> {
    let asked = |key: &str| match key {
        "weight" => arguments.weight.is_some(),
        key => unreachable!("{key} is no option"),
    };
    match NOT_YET.iter().find(|(key, _)| asked(key)) {
        None => Ok(()),
        Some((key, instead)) => {
            let option = key.replace('_', "-");
            Err(CliError::Usage(format!(
                "--{option} is not possible yet: {instead}"
            )))
        }
    }
}

pub fn remove(line: &InterfaceName, class: &ClassName, json: bool) -> Result<(), CliError> {
    let request = Request::ClassRemove {
        name: class.to_string(),
    };
    let answer = link::ask(line, request)?;
    let Response::ClassRemoved(last) = answer else {
        return Err(link::unexpected(line, &answer));
    };
    match json {
        true => show::print_json(&last),
        false => output::text(&format!("{line} has no class {class} any more\n")),
    }
}

pub fn test(arguments: &ClassTestArguments) -> Result<(), CliError> {
    test::run(arguments)
}
