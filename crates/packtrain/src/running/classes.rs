//! Classes that come and go while the line works.

use packtrain_proto::class::{Class, ClassName, ClassPath};
use packtrain_proto::trunk::via::LinkSet;
use serde_json::Value;

use super::RunningLine;
use super::member::Member;
use crate::cli::error::CliError;
use crate::settings::classes::{self, ClassError, ClassPathPolicy, ClassSettings};
use crate::settings::compress::CompressPolicy;
use crate::settings::packing::PackPolicy;
use crate::settings::repair::ClassRepair;
use crate::settings::values::InterfaceName;

/// A class as it was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewClass<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) matches: &'a str,
    pub(super) pack: &'a str,
    pub(super) path: &'a str,
    pub(super) loss_ok: bool,
    pub(super) compress: &'a str,
    pub(super) duplicate: bool,
    pub(super) links: &'a [String],
    pub(super) repair: &'a str,
    /// Before the class of this name.
    pub(super) before: Option<&'a str>,
}

impl RunningLine {
    /// Adds a class, and gives it as in the status document.
    pub(super) fn add_class(&mut self, text: &NewClass<'_>) -> Result<Value, CliError> {
        let before = text.before.map(parse::<ClassName>).transpose()?;
        let class = ClassSettings {
            name: text.name.map(parse).transpose()?,
            matches: parse(text.matches)?,
            pack: parse::<PackPolicy>(text.pack)?,
            path: parse::<ClassPathPolicy>(text.path)?,
            loss_ok: text.loss_ok,
            compress: parse::<CompressPolicy>(text.compress)?,
            duplicate: text.duplicate,
            links: self.links_of_line(text.links)?,
            repair: parse::<ClassRepair>(text.repair)?,
        };
        let mut classes = self.line.classes();
        let at = class.insert(&mut classes, before.as_ref())?;
        self.refuse_what_needs_the_kernel(&classes[at])?;
        self.use_classes(classes)?;
        self.class_document(at)
    }

    /// Removes a class, and gives it as it was.
    pub(super) fn remove_class(&mut self, name: &str) -> Result<Value, CliError> {
        let name = parse::<ClassName>(name)?;
        let mut classes = self.line.classes();
        let at = classes.iter().position(|class| class.name == name);
        classes::remove(&mut classes, &name)?;
        let last = self.class_document(at.expect("it was there"))?;
        self.use_classes(classes)?;
        Ok(last)
    }

    /// The classes that the line was started with.
    pub(super) fn begin_with_classes(&mut self) -> Result<(), CliError> {
        let classes = self.site.settings.classes.clone();
        for class in &classes {
            self.refuse_what_needs_the_kernel(class)?;
        }
        self.use_classes(classes)
    }

    fn links_of_line(&self, names: &[String]) -> Result<Vec<InterfaceName>, CliError> {
        let link = |name: &String| {
            let name = parse::<InterfaceName>(name)?;
            self.member_of(&name)?;
            Ok(name)
        };
        names.iter().map(link).collect()
    }

    /// The line has other links: those that classes name may be among them, or not any more.
    pub(super) fn follow_links_of_classes(&mut self) {
        let classes = self.line.classes();
        if classes.iter().any(|class| !class.links.is_empty())
            && let Err(error) = self.use_classes(classes)
        {
            tracing::warn!("{error}");
        }
    }

    /// The numbers of the links that a class names.
    fn numbers_of(&self, class: &Class) -> LinkSet {
        let is_named =
            |member: &&Member| class.links.iter().any(|name| name == member.name.as_str());
        let named = self.members.iter().filter(is_named);
        named.map(|member| member.id).collect()
    }

    fn use_classes(&mut self, mut classes: Vec<Class>) -> Result<(), CliError> {
        for class in &mut classes {
            class.action.links = self.numbers_of(class);
        }
        let before = self.line.classes();
        // First who reads marks: one that nobody reads would be taken for an address.
        self.line.set_classes(classes.clone());
        if let Some(direct) = &mut self.direct
            && let Err(error) = direct.set_classes(&classes, self.clock.now())
        {
            self.line.set_classes(before);
            return Err(CliError::failed("the classes' paths", error));
        }
        Ok(())
    }

    /// Without the program before `pt0` there is one path, and nobody sees marks.
    fn refuse_what_needs_the_kernel(&self, class: &Class) -> Result<(), CliError> {
        let what = match class {
            _ if self.direct.is_some() => return Ok(()),
            class if class.matches.asks_for_marks() => "frames show no mark",
            class if class.action.path == ClassPath::Direct => "no frame goes direct",
            _ => return Ok(()),
        };
        let name = &self.site.settings.name;
        let lacks = "this kernel lacks what that needs (Linux 6.6)";
        let because = self.site.settings.engine_because().unwrap_or(lacks);
        Err(CliError::Usage(format!(
            "class {}: {what} on {name}, because {because}",
            class.name
        )))
    }

    fn class_document(&mut self, at: usize) -> Result<Value, CliError> {
        let class = self.status_document().classes.into_iter().nth(at);
        serde_json::to_value(class).map_err(|e| CliError::failed("the status document", e))
    }
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, CliError> {
    text.parse()
        .map_err(|error: T::Err| CliError::Usage(error.to_string()))
}

impl From<ClassError> for CliError {
    fn from(error: ClassError) -> CliError {
        match error {
            ClassError::Unknown { name, classes } => CliError::NoSuchClass {
                class: name.to_string(),
                classes: classes.iter().map(ToString::to_string).collect(),
            },
            other => CliError::Usage(other.to_string()),
        }
    }
}
