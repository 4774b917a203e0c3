//! From settings to a line that stands. Whatever fails on the way, what was made goes again.

use std::fs;
use std::io;
use std::time::Duration;

use packtrain_proto::config::{Config, NodeId};
use packtrain_proto::wire::ethernet::MacAddr;

use super::address::{self, Seed};
use super::answer::Host;
use super::carriers::Carriers;
use super::direct::Direct;
use super::member::{Member, Site};
use super::mixing_time;
use super::precedence::Precedence;
use super::shaper::DirectShaper;
use super::stay::{Inheritance, Stay};
use super::{CONTROL, MONITOR, RunningLine, SIGNALS, Signals};
use crate::cli::error::CliError;
use crate::cli::patience::{GOING_WAIT_MAX, Patience};
use crate::clock::Clock;
use crate::control::ControlServer;
use crate::daemon::Line;
use crate::instance;
use crate::linux::direct::DirectPath;
use crate::linux::guard::Attachment;
use crate::linux::host_state::{HostState, HostStateError, Recovery};
use crate::linux::intake::Intake;
use crate::linux::netlink::{Monitor, Netlink};
use crate::linux::tap::Tap;
use crate::settings::Settings;
use crate::stay::Heir;

mod inherit;

/// Where senders are held back, a queue that stands has to be let drain before CoDel may say that it
/// does not: a drop costs a segment sent again, for nothing.
const CODEL_INTERVAL_BEHIND_INTAKE: Duration = Duration::from_millis(300);

impl RunningLine {
    /// Returns when `pt0` exists, is up and has its addresses, and every link that exists has
    /// joined.
    pub fn start(
        settings: &Settings,
        control: ControlServer,
        signals: Signals,
        heir: Option<Heir>,
        note: &mut dyn FnMut(&str),
    ) -> Result<RunningLine, CliError> {
        let precedence = Precedence::begin();
        let clock = Clock::start();
        let mut netlink = Netlink::open()?;
        // Before anything is read, so that no change falls between.
        let failed = |what| move |e: io::Error| CliError::failed(what, e);
        let monitor = Monitor::open().map_err(failed("following the host's links"))?;

        let attachment = Attachment::best().map_err(|e| CliError::Failed(e.to_string()))?;
        let address = match settings.mac {
            Some(mac) => mac,
            None => default_address(settings, &mut netlink, note)?,
        };
        let mut heir = inherit::accept(heir, address, &mut netlink, note)?;
        let journal = match &heir {
            Some(_) => inherit::journal(settings, note)?,
            None => create_journal(settings, note)?,
        };
        let tap = match &mut heir {
            Some(heir) => inherit::tap(heir)?,
            None => create_tap(settings, address)?,
        };
        // Before the interface goes up, because its queueing discipline is replaced; one that is up has it.
        let intake = attach_intake(&tap, settings, heir.is_some(), note);
        let direct = attach_direct(&tap, settings, address, attachment, intake.is_some(), note);
        if heir.is_some() {
            inherit::addresses(&tap, settings, &mut netlink)?;
        }
        configure_tap(&tap, settings, &mut netlink, note)?;
        let stay = stay(settings, direct.is_some(), note);

        let mut config = config(settings, address)?;
        config.direct_frames = direct.is_some();
        config.direct_vlan = settings.direct_vlan;
        if config.coded_trains {
            config.mixing_ns = mixing_time::measured(clock);
        }
        if intake.is_some() {
            config.limits.codel_interval = CODEL_INTERVAL_BEHIND_INTAKE;
        }
        let names = settings.links.iter().map(|link| link.name.to_string());
        let mut line =
            Line::new(config, tap, names, clock).map_err(failed("the line's event loop"))?;
        if let Some(direct) = &direct {
            let tally = direct.tally();
            line.set_tally(tally.map_err(|e| CliError::failed("the direct path", e))?);
        }
        if let Some(intake) = &intake {
            add_ring(&mut line, intake, heir.is_some());
        }
        line.watch(signals.fd(), SIGNALS)
            .map_err(failed("watching signals"))?;
        line.watch(monitor.fd(), MONITOR)
            .map_err(failed("watching links"))?;
        line.watch(control.fd(), CONTROL)
            .map_err(failed("watching the control socket"))?;

        let members = line.links().zip(&settings.links);
        let members = members.map(|((id, _), link)| Member::new(id, link.clone()));
        let members = members.collect();
        let mut running = RunningLine {
            clock,
            precedence,
            line,
            members,
            leaving: Vec::new(),
            clearing: None,
            announcement: None,
            carriers: Carriers::new(clock.now()),
            site: Site {
                settings: settings.clone(),
                address,
                attachment,
                netlink,
                journal,
            },
            host: Host {
                mtu: settings.mtu,
                address,
                ..Host::default()
            },
            intake,
            direct,
            shaper: DirectShaper::new(),
            stay,
            inheritance: heir.map(|heir| Inheritance::new(heir, clock.now())),
            monitor,
            signals,
            control,
            at_clean_end: None,
        };
        let begun = running
            .begin_with_classes()
            .and_then(|()| running.read_all());
        if let Err(error) = begun.and_then(|()| running.refuse_trouble()) {
            // What a former daemon has left stays for the next attempt.
            running.inheritance = None;
            running.stop();
            return Err(error);
        }
        // From here on the line outlives its daemon.
        running.tell_keeper();
        Ok(running)
    }

    /// At the start a person is there to be told; later the line goes on without the link.
    fn refuse_trouble(&self) -> Result<(), CliError> {
        let troubled = self
            .members
            .iter()
            .find(|member| member.ifindex().is_none());
        match troubled.and_then(Member::warning) {
            Some(trouble) => Err(CliError::Failed(trouble)),
            None => Ok(()),
        }
    }
}

/// Undoes what an earlier life of this line left behind, and begins anew.
fn create_journal(settings: &Settings, note: &mut dyn FnMut(&str)) -> Result<HostState, CliError> {
    let dir = instance::state_dir().map_err(|e| CliError::failed("/proc/thread-self/ns/net", e))?;
    let failed = |e: HostStateError| CliError::Failed(e.to_string());
    let name = settings.name.as_str();
    let mut patience = Patience::of(GOING_WAIT_MAX);
    loop {
        match HostState::recover(&dir, name).map_err(failed)? {
            Recovery::Undone { changes } => instance::undone(&changes).iter().for_each(|c| note(c)),
            // It was killed: its name is free already, and it is not quite gone.
            Recovery::Running { .. } if patience.wait() => continue,
            // One that stays is refused below, by its process number.
            Recovery::Running { .. } | Recovery::Nothing | Recovery::Stale { .. } => {}
        }
        break;
    }
    HostState::create(&dir, name).map_err(failed)
}

fn config(settings: &Settings, address: MacAddr) -> Result<Config, CliError> {
    let mut config = Config::new(NodeId(random_id()?), address);
    config.line_id = settings.line_id;
    config.mtu = settings.mtu;
    config.marked_frames = settings.marked_frames;
    config.balance = settings.balance.into();
    config.detection_time = settings.liveness.detection.0;
    config.hold_time = settings.liveness.hold_time;
    config.limits.repair_within = settings.repair.0;
    config.limits.sand_delay_max = settings.max_sand_delay.0;
    config.size = settings.size.0;
    config.tier_spill = settings.tier_spill;
    config.elephant_bytes = settings.flows.elephant_bytes;
    config.ecn = settings.flows.ecn;
    config.short_flows_first = settings.flows.short_first;
    config.limits.flow_queue_bytes_max = settings.flows.queue.0;
    config.mode = settings.mode.into();
    config.dfap = (&settings.dfap).into();
    config.rest = settings.rest();
    config.coded_trains = settings.coded_trains;
    config.dictionary = (settings.dictionary.as_ref()).map(|file| file.dictionary.clone());
    config.software = concat!("packtrain ", env!("CARGO_PKG_VERSION")).into();
    config.seed = random_id()?;
    Ok(config)
}

/// 64 random bits, not all zero. From the kernel: trains are told from those of an earlier life
/// by it, and flows are hashed with it.
fn random_id() -> Result<u64, CliError> {
    loop {
        let mut bytes = [0; 8];
        let len = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(|e| CliError::failed("getrandom", e))?;
        let id = u64::from_ne_bytes(bytes);
        if len == bytes.len() && id != 0 {
            return Ok(id);
        }
    }
}

fn default_address(
    settings: &Settings,
    netlink: &mut Netlink,
    note: &mut dyn FnMut(&str),
) -> Result<MacAddr, CliError> {
    let first = &settings.links[0].name;
    let name = settings.name.as_str();
    let seed = match netlink.link_by_name(first.as_str())? {
        Some(link) => Seed::Link(link.address),
        None => {
            let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
            let machine = machine.trim();
            let seed = if machine.is_empty() {
                Seed::Random(random_id()?)
            } else {
                Seed::Machine(machine.into())
            };
            let source = match seed {
                Seed::Random(_) => "random, and another at each start",
                _ => "derived from /etc/machine-id",
            };
            note(&format!(
                "{first} does not exist, so the MAC address of {name} is {source}, not the one \
                 that goes with {first}; --mac sets it"
            ));
            seed
        }
    };
    Ok(address::derive(&seed, name))
}

fn create_tap(settings: &Settings, address: MacAddr) -> Result<Tap, CliError> {
    let name = settings.name.as_str();
    Tap::create(name, address).map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => CliError::NameTaken {
            name: name.into(),
            kind: String::new(),
        },
        io::ErrorKind::NotFound => {
            CliError::Failed("this host has no TUN driver (/dev/net/tun): modprobe tun".into())
        }
        _ => CliError::failed(&format!("creating {name}"), error),
    })
}

/// Without it a line works, and its senders are not slowed down.
fn attach_intake(
    tap: &Tap,
    settings: &Settings,
    is_there: bool,
    note: &mut dyn FnMut(&str),
) -> Option<Intake> {
    let attached = match is_there {
        true => Intake::adopt(tap.ifindex()),
        false => Intake::attach(tap.ifindex()),
    };
    match attached {
        Ok(intake) => Some(intake),
        Err(error) => {
            let name = &settings.name;
            note(&format!(
                "{error}; so programs do not feel it when {name} is full"
            ));
            None
        }
    }
}

/// Without it a line works, and reads each frame from the TAP. `waits_before`: frames may wait there from before.
fn add_ring(line: &mut Line, intake: &Intake, waits_before: bool) {
    match intake.open_ring() {
        Ok(ring) => line.set_ring(ring, waits_before),
        Err(error) => tracing::debug!("{error}; so all frames are read from the TAP"),
    }
}

/// Without it a line works, and all frames pay for passing through the engine.
fn attach_direct(
    tap: &Tap,
    settings: &Settings,
    address: MacAddr,
    attachment: Attachment,
    has_intake: bool,
    note: &mut dyn FnMut(&str),
) -> Option<Direct> {
    settings.engine_because().is_none().then_some(())?;
    let name = &settings.name;
    // It would be left behind on the links by a daemon that is killed.
    if attachment != Attachment::Tcx {
        note(&format!(
            "this kernel has no tcx (Linux 6.6), so all frames of {name} go by the engine"
        ));
        return None;
    }
    match DirectPath::attach(tap.ifindex(), address, has_intake) {
        Ok(path) => Some(Direct::new(path)),
        Err(error) => {
            note(&format!(
                "{error}; so all frames of {name} go by the engine"
            ));
            None
        }
    }
}

/// Only direct frames stay: where there are none, nothing is kept.
fn stay(settings: &Settings, has_direct: bool, note: &mut dyn FnMut(&str)) -> Option<Stay> {
    let time = settings.stay?;
    if !has_direct {
        let name = &settings.name;
        note(&format!(
            "all frames of {name} go by the engine, so nothing of it stays when its daemon ends"
        ));
        return None;
    }
    Some(Stay::new(time))
}

fn configure_tap(
    tap: &Tap,
    settings: &Settings,
    netlink: &mut Netlink,
    note: &mut dyn FnMut(&str),
) -> Result<(), CliError> {
    let name = &settings.name;
    // Answer ARP for pt0's own addresses only: a host answers for all of its addresses on every
    // interface otherwise, and a plain host would send to pt0 what belongs to a link.
    let arp_ignore = format!("/proc/sys/net/ipv4/conf/{name}/arp_ignore");
    if let Err(error) = fs::write(&arp_ignore, "1") {
        note(&format!(
            "{arp_ignore}: {error}; {name} answers ARP for other interfaces' addresses too"
        ));
    }
    netlink.set_mtu(tap.ifindex(), settings.mtu.into())?;
    let known = netlink.addresses(tap.ifindex())?;
    for prefix in &settings.addresses {
        if !known.iter().any(|address| address.prefix == *prefix) {
            netlink.add_address(tap.ifindex(), *prefix)?;
        }
    }
    netlink.set_up(tap.ifindex(), true)?;
    Ok(())
}
