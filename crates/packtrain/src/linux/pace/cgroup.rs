//! Control groups of version 2, wherever they are mounted: also beside version 1, and where this process sees none.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

const MOUNTS: &str = "/proc/thread-self/mountinfo";

#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    #[error(
        "this kernel has no cgroup v2, by which connections are chosen (CONFIG_CGROUPS, CONFIG_CGROUP_BPF): {0}"
    )]
    None(io::Error),
    #[error("{path} is in no cgroup v2{mounted}")]
    NotInside { path: String, mounted: String },
    #[error("no such cgroup: {path}: {source}")]
    Missing { path: String, source: io::Error },
    #[error("cannot read {MOUNTS}: {0}")]
    Mounts(io::Error),
}

/// A group of processes, whose sockets are meant.
#[derive(Clone, Debug)]
pub struct Cgroup {
    /// Below the root.
    path: PathBuf,
    /// As the kernel has it: the inode of its directory.
    number: u64,
    directory: Arc<File>,
}

impl Cgroup {
    /// All processes'.
    pub fn root() -> Result<Cgroup, CgroupError> {
        Cgroup::below(&tree()?, Path::new(""))
    }

    /// By its whole path, or by the one below where version 2 is mounted, as /proc/PID/cgroup has it.
    pub fn find(path: &Path) -> Result<Cgroup, CgroupError> {
        let tree = tree()?;
        let mounted = tree.mounted.as_deref();
        if let Some(below) = mounted.and_then(|mounted| path.strip_prefix(mounted).ok()) {
            return Cgroup::below(&tree, below);
        }
        let below = path.strip_prefix("/").unwrap_or(path);
        match Cgroup::below(&tree, below) {
            Err(CgroupError::Missing { .. }) if path.is_absolute() && path.exists() => {
                Err(CgroupError::NotInside {
                    path: path.display().to_string(),
                    mounted: mounted
                        .map(|mounted| format!(" (it is mounted at {})", mounted.display()))
                        .unwrap_or_default(),
                })
            }
            found => found,
        }
    }

    fn below(tree: &Tree, below: &Path) -> Result<Cgroup, CgroupError> {
        let missing = |source: io::Error| CgroupError::Missing {
            path: Path::new("/").join(below).display().to_string(),
            source,
        };
        // Links and dots have no place among cgroups, and would lead out of them.
        let is_plain = |part| matches!(part, Component::Normal(_));
        if !below.components().all(is_plain) {
            return Err(missing(io::ErrorKind::InvalidInput.into()));
        }
        let name = match below.as_os_str().is_empty() {
            true => Path::new("."),
            false => below,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let directory = openat(&tree.root, name, flags, Mode::empty());
        let directory = File::from(directory.map_err(|error| missing(error.into()))?);
        Ok(Cgroup {
            path: below.to_owned(),
            number: directory.metadata().map_err(missing)?.ino(),
            directory: Arc::new(directory),
        })
    }

    /// From the root of all: `/` is that.
    pub fn path(&self) -> PathBuf {
        Path::new("/").join(&self.path)
    }

    pub fn is_root(&self) -> bool {
        self.level() == 0
    }

    pub(super) fn level(&self) -> u32 {
        self.path.components().count() as u32
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn directory(&self) -> &File {
        &self.directory
    }
}

impl PartialEq for Cgroup {
    fn eq(&self, other: &Cgroup) -> bool {
        self.number == other.number
    }
}

impl Eq for Cgroup {}

/// All cgroups.
struct Tree {
    root: OwnedFd,
    /// Where this process sees it.
    mounted: Option<PathBuf>,
}

fn tree() -> Result<Tree, CgroupError> {
    let mounts = fs::read_to_string(MOUNTS).map_err(CgroupError::Mounts)?;
    if let Some(mounted) = mount_point(&mounts)
        && let Ok(root) = File::open(&mounted)
    {
        return Ok(Tree {
            root: root.into(),
            mounted: Some(mounted),
        });
    }
    // `ip netns exec` and its like mount a /sys of their own, without cgroups. This one is nowhere but in a descriptor.
    Ok(Tree {
        root: mount_unseen().map_err(|error| CgroupError::None(error.into()))?,
        mounted: None,
    })
}

fn mount_unseen() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}

/// The first one, of the whole tree (proc_pid_mountinfo(5)).
fn mount_point(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, behind) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let kind = behind.split(' ').next()?;
        (kind == "cgroup2" && root == "/").then(|| PathBuf::from(unescaped(at)))
    })
}

/// The kernel writes spaces and their like as `\040`.
fn unescaped(field: &str) -> String {
    let mut text = Vec::new();
    let mut bytes = field.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        let digits = bytes.by_ref().take(3);
        text.push(digits.fold(0, |value: u8, digit| {
            value.wrapping_mul(8).wrapping_add(digit.wrapping_sub(b'0'))
        }));
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_is_found_beside_version_1_and_the_whole_tree_before_a_part() {
        let beside = "\
24 1 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
25 24 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
26 24 0:23 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
";
        assert_eq!(
            mount_point(beside).unwrap(),
            Path::new("/sys/fs/cgroup/unified")
        );
        let two = "\
26 24 0:23 /inner /elsewhere rw - cgroup2 cgroup2 rw
27 24 0:23 / /with\\040space rw - cgroup2 cgroup2 rw
";
        assert_eq!(mount_point(two).unwrap(), Path::new("/with space"));
        assert_eq!(
            mount_point("24 1 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"),
            None
        );
        assert_eq!(mount_point("no mount at all\n"), None);
    }

    #[test]
    fn a_cgroup_that_is_none_is_told_so() {
        let Ok(root) = Cgroup::root() else {
            return;
        };
        assert!(root.is_root());
        assert_eq!(root.path(), Path::new("/"));
        let missing = Cgroup::find(Path::new("no/such")).unwrap_err();
        assert!(
            missing.to_string().starts_with("no such cgroup: /no/such"),
            "{missing}"
        );
        let outside = Cgroup::find(Path::new("/proc")).unwrap_err();
        assert!(
            outside.to_string().contains("/proc is in no cgroup v2"),
            "{outside}"
        );
        let out = Cgroup::find(Path::new("../..")).unwrap_err();
        assert!(out.to_string().starts_with("no such cgroup"), "{out}");
    }

    #[test]
    fn where_no_cgroup_is_mounted_it_is_the_same_one() {
        let (Ok(seen), Ok(unseen)) = (tree(), mount_unseen()) else {
            return;
        };
        let number = |root: OwnedFd| File::from(root).metadata().unwrap().ino();
        assert_eq!(number(seen.root), number(unseen));
    }
}
