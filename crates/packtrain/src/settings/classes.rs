//! Classes as people write them, on the command line and in a file: in the same words.

use std::fmt;
use std::str::FromStr;

use packtrain_proto::class::{
    Action, CLASSES_MAX, Class, ClassName, ClassPath, Match, Repairs, VALUES_MAX, defaults,
};

use packtrain_proto::trunk::lane::LANES_MAX;
use packtrain_proto::trunk::via::LinkSet;

use super::compress::CompressPolicy;
use super::packing::PackPolicy;
use super::repair::ClassRepair;
use super::values::InterfaceName;

/// What a class may say once packtrain can do it, and what it does until then.
pub const NOT_YET: [(&str, &str); 1] = [("weight", "all flows get the same share")];

/// Ways of their own that the classes of a line have: sets of links, and what becomes of what is lost.
pub const WAYS_MAX: usize = LANES_MAX - 1;

/// A class, but for its name, which may be left to the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSettings {
    pub name: Option<ClassName>,
    pub matches: Match,
    pub pack: PackPolicy,
    pub path: ClassPathPolicy,
    pub loss_ok: bool,
    pub compress: CompressPolicy,
    pub duplicate: bool,
    /// By which its frames go; none: by whichever.
    pub links: Vec<InterfaceName>,
    pub repair: ClassRepair,
}

/// Why a list does not take a class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassError {
    #[error("there is a class {0} already")]
    Taken(ClassName),
    #[error("{CLASSES_MAX} classes are there already, and there cannot be more")]
    TooMany,
    #[error("the classes have more than {VALUES_MAX} values to compare with")]
    TooManyValues,
    #[error(
        "its frames cannot both go past the engine and be sent by two links: only the engine does that"
    )]
    DirectAndTwice,
    #[error(
        "its frames cannot both go past the engine and by some links alone: only the engine chooses among links"
    )]
    DirectAndLinks,
    #[error(
        "its frames cannot both go past the engine and go again where they are lost: only the engine keeps them"
    )]
    DirectAndRepair,
    #[error("its frames cannot both be lost with a link and go again where they are lost")]
    LossOkAndRepair,
    #[error(
        "links are for all frames of a flow: a class that names them matches by no size, mark, code point or \"tcp empty\""
    )]
    LinksOfSomeFrames,
    #[error(
        "what is lost goes again for all frames of a flow, or for none: a class that says so matches by no size, mark, code point or \"tcp empty\""
    )]
    RepairOfSomeFrames,
    #[error(
        "{WAYS_MAX} different sets of links, and repairs, are asked for by classes already, and there cannot be more"
    )]
    TooManyWays,
    #[error("there is no class {name}")]
    Unknown {
        name: ClassName,
        classes: Vec<ClassName>,
    },
}

impl ClassSettings {
    /// Puts the class into the list: before that of the name `before`, else behind people's own and before
    /// the defaults. Returns its place.
    pub fn insert(
        self,
        classes: &mut Vec<Class>,
        before: Option<&ClassName>,
    ) -> Result<usize, ClassError> {
        if classes.len() >= CLASSES_MAX {
            return Err(ClassError::TooMany);
        }
        if self.duplicate && self.path == ClassPathPolicy::Direct {
            return Err(ClassError::DirectAndTwice);
        }
        if !self.links.is_empty() && self.path == ClassPathPolicy::Direct {
            return Err(ClassError::DirectAndLinks);
        }
        if !self.links.is_empty() && !self.matches.is_fixed() {
            return Err(ClassError::LinksOfSomeFrames);
        }
        let repairs = self.repair.0;
        if repairs.are_asked_for() && self.path == ClassPathPolicy::Direct {
            return Err(ClassError::DirectAndRepair);
        }
        if repairs.are_asked_for() && self.loss_ok {
            return Err(ClassError::LossOkAndRepair);
        }
        if repairs != Repairs::Line && !self.matches.is_fixed() {
            return Err(ClassError::RepairOfSomeFrames);
        }
        let mut links: Vec<String> = self.links.iter().map(ToString::to_string).collect();
        links.sort();
        links.dedup();
        if ways_of(classes, (&links, repairs)) > WAYS_MAX {
            return Err(ClassError::TooManyWays);
        }
        let name = match self.name {
            Some(name) if classes.iter().any(|class| class.name == name) => {
                return Err(ClassError::Taken(name));
            }
            Some(name) => name,
            None => unused_name(classes),
        };
        let at = match before {
            Some(before) => place_of(classes, before)?,
            None => {
                let defaults = defaults();
                let first = classes.iter().position(|class| defaults.contains(class));
                first.unwrap_or(classes.len())
            }
        };
        let class = Class {
            name,
            matches: self.matches,
            links,
            action: Action {
                pack: self.pack.pack,
                on_backlog: self.pack.on_backlog,
                path: self.path.into(),
                loss_ok: self.loss_ok,
                compress: self.compress.into(),
                duplicate: self.duplicate,
                // Who has the links knows their numbers.
                links: LinkSet::default(),
                repairs,
            },
        };
        let values = classes.iter().chain([&class]).map(|c| c.matches.values());
        if values.sum::<usize>() > VALUES_MAX {
            return Err(ClassError::TooManyValues);
        }
        classes.insert(at, class);
        Ok(at)
    }
}

/// In how many ways of their own frames of these classes go, and of one more.
fn ways_of(classes: &[Class], more: (&[String], Repairs)) -> usize {
    let of_class = |class| -> (&[String], Repairs) {
        let Class { links, action, .. }: &Class = class;
        (links, action.repairs)
    };
    let mut ways: Vec<_> = classes.iter().map(of_class).chain([more]).collect();
    ways.retain(|way| *way != (&[], Repairs::Line));
    let same_before = |at: usize| ways[..at].contains(&ways[at]);
    (0..ways.len()).filter(|&at| !same_before(at)).count()
}

/// Takes a class out of the list.
pub fn remove(classes: &mut Vec<Class>, name: &ClassName) -> Result<Class, ClassError> {
    let at = place_of(classes, name)?;
    Ok(classes.remove(at))
}

fn place_of(classes: &[Class], name: &ClassName) -> Result<usize, ClassError> {
    let at = classes.iter().position(|class| class.name == *name);
    at.ok_or_else(|| ClassError::Unknown {
        name: name.clone(),
        classes: classes.iter().map(|class| class.name.clone()).collect(),
    })
}

fn unused_name(classes: &[Class]) -> ClassName {
    let mut names = (1..).map(|n| format!("class{n}"));
    let taken = |name: &String| classes.iter().any(|class| class.name.as_str() == name);
    let name = names.find(|name| !taken(name)).expect("they go on");
    name.parse().expect("a right name")
}

/// Which way the frames of a class take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ClassPathPolicy {
    /// Past the engine while that has nothing to gain by them.
    #[default]
    Auto,
    /// Always by the engine.
    Engine,
    /// Past the engine wherever there is a way, also while others are better off in it.
    Direct,
}

impl ClassPathPolicy {
    pub fn as_str(self) -> &'static str {
        match self {
            ClassPathPolicy::Auto => "auto",
            ClassPathPolicy::Engine => "engine",
            ClassPathPolicy::Direct => "direct",
        }
    }
}

impl fmt::Display for ClassPathPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a text is no path of a class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no path: auto, engine or direct")]
pub struct ClassPathPolicyError(String);

impl FromStr for ClassPathPolicy {
    type Err = ClassPathPolicyError;

    fn from_str(text: &str) -> Result<ClassPathPolicy, ClassPathPolicyError> {
        use ClassPathPolicy::{Auto, Direct, Engine};
        [Auto, Engine, Direct]
            .into_iter()
            .find(|policy| policy.as_str() == text)
            .ok_or_else(|| ClassPathPolicyError(text.into()))
    }
}

impl From<ClassPathPolicy> for ClassPath {
    fn from(policy: ClassPathPolicy) -> ClassPath {
        match policy {
            ClassPathPolicy::Auto => ClassPath::Auto,
            ClassPathPolicy::Engine => ClassPath::Engine,
            ClassPathPolicy::Direct => ClassPath::Direct,
        }
    }
}

impl From<ClassPath> for ClassPathPolicy {
    fn from(path: ClassPath) -> ClassPathPolicy {
        match path {
            ClassPath::Auto => ClassPathPolicy::Auto,
            ClassPath::Engine => ClassPathPolicy::Engine,
            ClassPath::Direct => ClassPathPolicy::Direct,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(name: Option<&str>, matches: &str) -> ClassSettings {
        ClassSettings {
            name: name.map(|name| name.parse().unwrap()),
            matches: matches.parse().unwrap(),
            pack: PackPolicy::default(),
            path: ClassPathPolicy::default(),
            loss_ok: false,
            compress: CompressPolicy::default(),
            duplicate: false,
            links: Vec::new(),
            repair: ClassRepair::default(),
        }
    }

    fn names(classes: &[Class]) -> Vec<&str> {
        classes.iter().map(|class| class.name.as_str()).collect()
    }

    #[test]
    fn own_classes_stand_before_the_defaults_in_the_order_in_which_they_came() {
        let mut classes = defaults();
        let first_default = classes[0].name.to_string();
        assert_eq!(settings(Some("a"), "udp").insert(&mut classes, None), Ok(0));
        assert_eq!(settings(None, "tcp").insert(&mut classes, None), Ok(1));
        assert_eq!(settings(None, "tcp").insert(&mut classes, None), Ok(2));
        let before = "class1".parse().unwrap();
        assert_eq!(
            settings(Some("b"), "tcp").insert(&mut classes, Some(&before)),
            Ok(1)
        );
        assert_eq!(
            names(&classes)[..5],
            ["a", "b", "class1", "class2", &first_default]
        );
        remove(&mut classes, &before).unwrap();
        assert_eq!(names(&classes)[..3], ["a", "b", "class2"]);
    }

    #[test]
    fn what_a_list_does_not_take_is_told() {
        let mut classes = vec![];
        settings(Some("a"), "udp")
            .insert(&mut classes, None)
            .unwrap();
        let error = settings(Some("a"), "udp")
            .insert(&mut classes, None)
            .unwrap_err();
        assert_eq!(error.to_string(), "there is a class a already");
        let error = remove(&mut classes, &"b".parse().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "there is no class b");
        let direct = ClassSettings {
            path: ClassPathPolicy::Direct,
            duplicate: true,
            ..settings(None, "udp")
        };
        let error = direct.insert(&mut classes, None).unwrap_err();
        assert_eq!(error, ClassError::DirectAndTwice);
        let links = |names: &[&str]| -> Vec<InterfaceName> {
            names.iter().map(|name| name.parse().unwrap()).collect()
        };
        let direct = ClassSettings {
            path: ClassPathPolicy::Direct,
            links: links(&["eth1"]),
            ..settings(None, "udp")
        };
        let error = direct.insert(&mut classes, None).unwrap_err();
        assert_eq!(error, ClassError::DirectAndLinks);
        for matches in ["udp size -200", "mark 7", "tcp empty", "dscp ef"] {
            let some = ClassSettings {
                links: links(&["eth1"]),
                ..settings(None, matches)
            };
            let error = some.insert(&mut classes, None).unwrap_err();
            assert_eq!(error, ClassError::LinksOfSomeFrames, "{matches}");
        }
        let by = |names: &[&str], classes: &mut Vec<Class>| {
            let class = ClassSettings {
                links: links(names),
                ..settings(None, "udp")
            };
            class.insert(classes, None)
        };
        let at = by(&["eth2", "eth1", "eth2"], &mut classes).unwrap();
        assert_eq!(classes[at].links, ["eth1", "eth2"]);
        let repaired = |repair: &str, matches: &str| ClassSettings {
            repair: repair.parse().unwrap(),
            ..settings(None, matches)
        };
        let direct = ClassSettings {
            path: ClassPathPolicy::Direct,
            ..repaired("lossless", "udp")
        };
        let error = direct.insert(&mut classes, None).unwrap_err();
        assert_eq!(error, ClassError::DirectAndRepair);
        let lost = ClassSettings {
            loss_ok: true,
            ..repaired("20ms", "udp")
        };
        let error = lost.insert(&mut classes, None).unwrap_err();
        assert_eq!(error, ClassError::LossOkAndRepair);
        for repair in ["lossless", "off", "20ms"] {
            let some = repaired(repair, "udp size -200");
            let error = some.insert(&mut classes, None).unwrap_err();
            assert_eq!(error, ClassError::RepairOfSomeFrames, "{repair}");
        }
        repaired("line", "udp size -200")
            .insert(&mut classes, None)
            .unwrap();
        for _ in 0..2 {
            let lossless = repaired("lossless", "udp");
            lossless.insert(&mut classes, None).unwrap();
        }
        for n in 2..WAYS_MAX {
            by(&[&format!("eth{n}")], &mut classes).unwrap();
        }
        by(&["eth1", "eth2"], &mut classes).unwrap();
        for more in [
            by(&["eth9"], &mut classes),
            repaired("off", "udp").insert(&mut classes, None),
        ] {
            assert_eq!(more, Err(ClassError::TooManyWays));
        }
        let unknown = "b".parse().unwrap();
        assert!(
            settings(None, "udp")
                .insert(&mut classes, Some(&unknown))
                .is_err()
        );
        while classes.len() < CLASSES_MAX {
            settings(None, "udp").insert(&mut classes, None).unwrap();
        }
        assert_eq!(
            settings(None, "udp").insert(&mut classes, None),
            Err(ClassError::TooMany)
        );
    }

    #[test]
    fn a_path_of_a_class_has_one_name_everywhere() {
        for text in ["auto", "engine", "direct"] {
            let policy: ClassPathPolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
            assert_eq!(ClassPathPolicy::from(ClassPath::from(policy)), policy);
        }
        assert_eq!(
            "kernel".parse::<ClassPathPolicy>().unwrap_err().to_string(),
            "\"kernel\" is no path: auto, engine or direct"
        );
    }
}
