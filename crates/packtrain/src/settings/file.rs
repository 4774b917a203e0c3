//! A line's configuration file: TOML in, [`Settings`] out, and every mistake with its line and key.

use std::path::Path;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use packtrain_proto::class::{Class, ClassName, Match};
use packtrain_proto::config::LinkSettings;
use packtrain_proto::wire::hello::VLAN_IDS;

use super::classes::{ClassPathPolicy, ClassSettings, NOT_YET};
use super::compress::CompressPolicy;
use super::dfap::{DfapSettings, ModePolicy, check_ether_type, parse_tick};
use super::dictionary;
use super::flows::{FlowSettings, parse_elephant_bytes, parse_flow_queue};
use super::links::{MemberLink, check_tier, check_weight, parse_rate};
use super::liveness::{parse_detection, parse_hold_time};
use super::packing::PackPolicy;
use super::repair::{ClassRepair, parse_repair};
use super::sand::parse_sand_delay;
use super::size::SizePolicy;
use super::values::{
    BalancePolicy, InterfaceName, LogLevel, PathPolicy, check_mtu, parse_address, parse_mac,
};
use super::{Contradiction, Settings};
use crate::linux::netlink::IpPrefix;
use crate::stay;
use crate::toml_reader::{Errors, Table, boolean, integer, parse_scalar, parse_str, read, string};
pub use crate::toml_reader::{FileError, FileErrors};

/// Reads settings out of `text`; `path` is for the errors alone.
pub fn parse(path: &Path, text: &str) -> Result<Settings, FileErrors> {
    read(path, text, read_line)
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
    table.optional("direct_vlan", errors, &mut settings.direct_vlan, vlan);
    table.optional("balance", errors, &mut settings.balance, |v| {
        parse_str::<BalancePolicy>(v)
    });
    let liveness = &mut settings.liveness;
    table.optional("liveness", errors, &mut liveness.detection, |v| {
        parse_detection(string(v)?).map_err(|e| e.to_string())
    });
    table.optional("hold_time", errors, &mut liveness.hold_time, |v| {
        parse_hold_time(string(v)?).map_err(|e| e.to_string())
    });
    table.optional("repair", errors, &mut settings.repair, |v| {
        parse_repair(string(v)?).map_err(|e| e.to_string())
    });
    table.optional(
        "max_sand_delay",
        errors,
        &mut settings.max_sand_delay,
        |v| parse_sand_delay(string(v)?).map_err(|e| e.to_string()),
    );
    table.optional(
        "size",
        errors,
        &mut settings.size,
        parse_scalar::<SizePolicy>,
    );
    table.optional("tier_spill", errors, &mut settings.tier_spill, boolean);
    read_flows(table, &mut settings.flows, errors);
    table.optional("mode", errors, &mut settings.mode, |v| {
        parse_str::<ModePolicy>(v)
    });
    table.optional("pack", errors, &mut settings.pack, |v| {
        parse_str::<PackPolicy>(v).map(Some)
    });
    table.optional("compress", errors, &mut settings.compress, |v| {
        parse_str::<CompressPolicy>(v)
    });
    table.optional("coded_trains", errors, &mut settings.coded_trains, boolean);
    table.optional("dictionary", errors, &mut settings.dictionary, |v| {
        dictionary::parse(string(v)?).map(Some)
    });
    read_dfap(table, &mut settings.dfap, errors);
    settings.classes = read_classes(table, settings.classes, errors);
    table.optional("stay", errors, &mut settings.stay, stay);
    table.optional("wait_links", errors, &mut settings.wait_links, boolean);
    table.optional("log_level", errors, &mut settings.log_level, |v| {
        parse_str::<LogLevel>(v)
    });
    table.refuse_the_rest(errors);

    if errors.is_empty()
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

fn read_flows(table: &mut Table<'_>, flows: &mut FlowSettings, errors: &mut Errors<'_>) {
    table.optional("elephant_bytes", errors, &mut flows.elephant_bytes, |v| {
        parse_elephant_bytes(string(v)?).map_err(|e| e.to_string())
    });
    table.optional("flow_queue", errors, &mut flows.queue, |v| {
        parse_flow_queue(string(v)?).map_err(|e| e.to_string())
    });
    table.optional("short_flows_first", errors, &mut flows.short_first, boolean);
    table.optional("ecn", errors, &mut flows.ecn, boolean);
}

/// How aggregates are made and known.
fn read_dfap(table: &mut Table<'_>, dfap: &mut DfapSettings, errors: &mut Errors<'_>) {
    table.optional("dfap_ether_type", errors, &mut dfap.ether_type, |v| {
        check_ether_type(integer(v)?).map_err(|e| e.to_string())
    });
    dfap.stations = table.list("dfap_stations", errors, |value, errors| {
        let parsed = string(value.get_ref())
            .and_then(|text| parse_mac(text).map_err(|error| error.to_string()));
        errors.take(value.span(), "dfap_stations", parsed)
    });
    table.optional("dfap_strict", errors, &mut dfap.strict, boolean);
    table.optional("dfap_tick", errors, &mut dfap.tick, |v| {
        parse_tick(string(v)?).map_err(|e| e.to_string())
    });
}

fn read_link<'a>(value: &'a Spanned<DeValue<'a>>, errors: &mut Errors<'_>) -> Option<MemberLink> {
    let mut table = Table::of(value, "link", "[[link]]", errors)?;
    let name = table.required("name", errors, parse_str::<InterfaceName>);
    let mut used = LinkSettings::default();
    table.optional("tier", errors, &mut used.tier, |v| {
        check_tier(integer(v)?.into()).map_err(|e| e.to_string())
    });
    table.optional("weight", errors, &mut used.weight, |v| {
        check_weight(integer(v)?.into()).map_err(|e| e.to_string())
    });
    table.optional("rate", errors, &mut used.rate_max_bps, |v| {
        let rate = parse_rate(string(v)?).map_err(|e| e.to_string())?;
        Ok(Some(rate))
    });
    table.optional("lag", errors, &mut used.in_lag, boolean);
    table.refuse_the_rest(errors);
    Some(MemberLink { name: name?, used })
}

/// The file's own classes, before the defaults unless the file does without these.
fn read_classes(
    table: &mut Table<'_>,
    defaults: Vec<Class>,
    errors: &mut Errors<'_>,
) -> Vec<Class> {
    let mut with_defaults = true;
    table.optional("default_classes", errors, &mut with_defaults, boolean);
    let mut classes = if with_defaults { defaults } else { Vec::new() };
    table.list("class", errors, |value, errors| {
        let class = read_class(value, errors)?;
        let inserted = class.insert(&mut classes, None).map_err(|e| e.to_string());
        errors.take(value.span(), "class", inserted)
    });
    classes
}

fn read_class<'a>(
    value: &'a Spanned<DeValue<'a>>,
    errors: &mut Errors<'_>,
) -> Option<ClassSettings> {
    let mut table = Table::of(value, "class", "[[class]]", errors)?;
    let mut name = None;
    table.optional("name", errors, &mut name, |value| {
        parse_str::<ClassName>(value).map(Some)
    });
    let matches = table.required("match", errors, parse_str::<Match>);
    let (mut pack, mut path) = (PackPolicy::default(), ClassPathPolicy::default());
    let (mut loss_ok, mut duplicate) = (false, false);
    let mut repair = ClassRepair::default();
    let mut compress = CompressPolicy::default();
    let links = table.list("links", errors, |value, errors| {
        let parsed = parse_str::<InterfaceName>(value.get_ref());
        errors.take(value.span(), "links", parsed)
    });
    table.optional("pack", errors, &mut pack, parse_str::<PackPolicy>);
    table.optional("path", errors, &mut path, parse_str::<ClassPathPolicy>);
    table.optional("loss_ok", errors, &mut loss_ok, boolean);
    table.optional("duplicate", errors, &mut duplicate, boolean);
    table.optional("repair", errors, &mut repair, parse_str::<ClassRepair>);
    table.optional(
        "compress",
        errors,
        &mut compress,
        parse_str::<CompressPolicy>,
    );
    for (key, instead) in NOT_YET {
        if table.get(key).is_some() {
            table.refuse(Some(key), format!("not possible yet: {instead}"), errors);
        }
    }
    table.refuse_the_rest(errors);
    Some(ClassSettings {
        name,
        matches: matches?,
        pack,
        path,
        loss_ok,
        compress,
        duplicate,
        links,
        repair,
    })
}

/// A yes or no, or how many seconds.
fn vlan(value: &DeValue<'_>) -> Result<Option<u16>, String> {
    let id: u32 = integer(value)?;
    let is_one = |id: &u16| VLAN_IDS.contains(id);
    match u16::try_from(id).ok().filter(is_one) {
        Some(id) => Ok(Some(id)),
        None => Err(format!("{id} is no VLAN: 1 to 4094")),
    }
}

fn stay(value: &DeValue<'_>) -> Result<Option<Duration>, String> {
    if let DeValue::Boolean(stays) = value {
        return Ok(stays.then_some(stay::DEFAULT));
    }
    let seconds = u64::from(integer(value)?);
    match (stay::SECONDS_MIN..=stay::SECONDS_MAX).contains(&seconds) {
        true => Ok(Some(Duration::from_secs(seconds))),
        false => Err(format!(
            "{seconds} is no time to stay: true, or {} to {} seconds",
            stay::SECONDS_MIN,
            stay::SECONDS_MAX
        )),
    }
}

fn address(value: &DeValue<'_>) -> Result<IpPrefix, String> {
    parse_address(string(value)?).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::flows::FlowQueue;
    use crate::settings::liveness::{Detection, LivenessSettings};
    use crate::settings::repair::RepairPolicy;
    use crate::settings::sand::SandDelay;
    use packtrain_proto::class::{Action, ClassPath, Compress, Pack, Repairs};
    use packtrain_proto::config::SizeLaw;
    use packtrain_proto::time::Duration;

    fn errors(text: &str) -> String {
        parse(Path::new("line.toml"), text).unwrap_err().to_string()
    }

    const WAIT: Duration = Duration::from_micros(500);

    fn class(name: &str, matches: &str, pack: Pack, path: ClassPath) -> Class {
        Class {
            name: name.parse().unwrap(),
            matches: matches.parse().unwrap(),
            links: Vec::new(),
            action: Action {
                pack,
                path,
                ..Action::default()
            },
        }
    }

    #[test]
    fn wrong_classes_are_named_with_their_lines() {
        assert_eq!(
            errors(
                "name = 'pt0'\n[[link]]\nname = 'e'\n[[class]]\nname = 'arp'\nmatch = 'udp'\n\
                 [[class]]\nmatch = 'upd'\npack = 'soon'\nweight = 3\n[[class]]\npath = 'x'\ncompress = 'lz4'\nto = 1"
            ),
            "line.toml:4: class: there is a class arp already\n\
             line.toml:8: class.match: \"upd\" begins no condition: arp, ip, ip6, tcp, udp, icmp, icmp6, \
             ethertype, proto, dscp, port, sport, dport, host, src, dst, size, vlan, mark, empty, any\n\
             line.toml:9: class.pack: \"soon\" does not say when frames leave: queued, now, how long \
             they may wait, as in 500us, scaled 2ms, auto, dfap-random or dfap-straight\n\
             line.toml:10: class.weight: not possible yet: all flows get the same share\n\
             line.toml:11: class.match: is missing\n\
             line.toml:12: class.path: \"x\" is no path: auto, engine or direct\n\
             line.toml:13: class.compress: \"lz4\" does not say what is compressed: auto, headers or off\n\
             line.toml:14: class.to: unknown key (known here: compress, duplicate, links, loss_ok, \
             match, name, pack, path, repair, weight)"
        );
    }

    #[test]
    fn links_of_a_class_are_links_of_the_line() {
        let of = |class: &str| {
            let text = format!("name = 'pt0'\n[[link]]\nname = 'e'\n[[class]]\nmatch = {class}");
            errors(&text)
        };
        assert_eq!(
            of("'udp'\nlinks = ['e', 'f']"),
            "line.toml:4: class: class class1 names f, which is no link of the line"
        );
        assert_eq!(
            of("'mark 7'\nlinks = ['e']"),
            "line.toml:4: class: links are for all frames of a flow: a class that names them matches by no size, mark, code \
             point or \"tcp empty\""
        );
        assert_eq!(
            of("'udp'\nlinks = ['e']\npath = 'direct'"),
            "line.toml:4: class: its frames cannot both go past the engine and by some links alone: only the engine chooses \
             among links"
        );
    }

    #[test]
    fn own_classes_stand_before_the_defaults() {
        let text = "name = 'pt0'\n[[link]]\nname = 'e'\n[[class]]\nname = 'a'\nmatch = 'udp'";
        let settings = parse(Path::new("line.toml"), text).unwrap();
        assert_eq!(settings.classes[0].name.as_str(), "a");
        assert_eq!(settings.classes[1..], packtrain_proto::class::defaults());
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
            direct_vlan = 100
            balance = "active-backup"
            liveness = "off"
            hold_time = "2s"
            repair = "off"
            max_sand_delay = "1ms"
            size = "lemma"
            tier_spill = true
            elephant_bytes = "100kb"
            ecn = false
            flow_queue = "none"
            short_flows_first = true
            mode = "dfap"
            pack = "scaled 2ms on-backlog"
            compress = "headers"
            coded_trains = false
            dfap_ether_type = 0xaaaa
            dfap_stations = ["02:00:00:00:00:07"]
            dfap_strict = true
            dfap_tick = "1ms"
            default_classes = false
            stay = 90
            wait_links = true
            log_level = "debug"
            [[link]]
            name = "eth1"
            [[link]]
            name = "eth2"
            tier = 2
            weight = 3
            rate = "20mbit"
            [[class]]
            name = "voice"
            match = "udp dport 5060"
            pack = "now"
            path = "engine"
            [[class]]
            match = "tcp"
            pack = "500us"
            [[class]]
            match = "udp"
            compress = "off"
            links = ["eth2", "eth1"]
            repair = "20ms"
        "#;
        let settings = parse(Path::new("line.toml"), text).unwrap();
        assert_eq!(
            settings,
            Settings {
                name: "pt1".parse().unwrap(),
                links: vec![
                    "eth1".parse().unwrap(),
                    "eth2,tier=2,weight=3,rate=20mbit".parse().unwrap()
                ],
                addresses: vec![
                    "10.9.0.1/24".parse().unwrap(),
                    "fd00::1/64".parse().unwrap()
                ],
                mtu: 9000,
                mac: Some("02:00:00:00:00:01".parse().unwrap()),
                line_id: 16,
                marked_frames: false,
                path: PathPolicy::Engine,
                direct_vlan: Some(100),
                balance: BalancePolicy::ActiveBackup,
                liveness: LivenessSettings {
                    detection: Detection(None),
                    hold_time: Duration::from_secs(2),
                },
                repair: RepairPolicy(None),
                max_sand_delay: SandDelay(Some(Duration::from_millis(1))),
                size: SizePolicy(SizeLaw::Lemma),
                tier_spill: true,
                flows: FlowSettings {
                    elephant_bytes: 102_400,
                    ecn: false,
                    queue: FlowQueue(None),
                    short_first: true,
                },
                mode: ModePolicy::Dfap,
                pack: Some("scaled 2ms on-backlog".parse().unwrap()),
                compress: CompressPolicy::Headers,
                coded_trains: false,
                dictionary: None,
                dfap: DfapSettings {
                    ether_type: 0xaaaa,
                    stations: vec!["02:00:00:00:00:07".parse().unwrap()],
                    strict: true,
                    tick: Duration::from_millis(1),
                },
                classes: vec![
                    class("voice", "udp dport 5060", Pack::Now, ClassPath::Engine),
                    class("class1", "tcp", Pack::Within(WAIT), ClassPath::Auto),
                    Class {
                        action: Action {
                            compress: Compress::Off,
                            repairs: Repairs::Within(Duration::from_millis(20)),
                            ..Action::default()
                        },
                        links: vec!["eth1".into(), "eth2".into()],
                        ..class("class2", "udp", Pack::Queued, ClassPath::Auto)
                    },
                ],
                stay: Some(Duration::from_secs(90)),
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
            errors("name = 'pt0'\nmtuu = 3\n[[link]]\nname = 'eth1'\nspeed = 3\n"),
            "line.toml:2: mtuu: unknown key (known here: addresses, balance, class, coded_trains, compress, default_classes, \
             dfap_ether_type, dfap_stations, dfap_strict, dfap_tick, dictionary, direct_vlan, ecn, elephant_bytes, flow_queue, hold_time, line_id, link, liveness, log_level, \
             mac, marked_frames, max_sand_delay, mode, mtu, name, pack, path, repair, short_flows_first, size, stay, tier_spill, wait_links)\n\
             line.toml:5: link.speed: unknown key (known here: lag, name, rate, tier, weight)"
        );
    }

    #[test]
    fn aggregates_are_set_within_what_they_can_be() {
        assert_eq!(
            errors(
                "name = 'pt0'\nmode = 'packets'\npack = 'later'\ndfap_ether_type = 0x800\n\
                 dfap_stations = [\n'02:00:00:00:00:01',\n'ff:ff:ff:ff:ff:ff']\ndfap_tick = '1us'\n\
                 [[link]]\nname = 'e'"
            ),
            "line.toml:2: mode: \"packets\" is no mode: trains or dfap\n\
             line.toml:3: pack: \"later\" does not say when frames leave: queued, now, how long they may \
             wait, as in 500us, scaled 2ms, auto, dfap-random or dfap-straight\n\
             line.toml:4: dfap_ether_type: \"0x800\" is no type of aggregates: 0xbbbb, as in the paper's \
             figure, or 0xaaaa\n\
             line.toml:7: dfap_stations: ff:ff:ff:ff:ff:ff is a group address: an interface has one of its \
             own (the first byte even)\n\
             line.toml:8: dfap_tick: \"1us\" is no tick: 50us to 100ms"
        );
        let twice = "name = 'pt0'\ndfap_stations = ['02:00:00:00:00:01', '02:00:00:00:00:01']\n[[link]]\nname = 'e'";
        assert_eq!(
            errors(twice),
            "line.toml:2: dfap_stations: station 02:00:00:00:00:01 is named twice"
        );
    }

    #[test]
    fn what_a_link_is_used_for_is_within_what_it_can_be() {
        assert_eq!(
            errors(
                "name = 'pt0'\n[[link]]\nname = 'a'\ntier = 0\nweight = 101\nrate = 'fast'\n\
                 [[link]]\nname = 'b'\ntier = 10\nweight = '3'\nrate = 3"
            ),
            "line.toml:4: link.tier: \"0\" is no tier: 1 to 9, where 1 is used first\n\
             line.toml:5: link.weight: \"101\" is no weight: 1 to 100\n\
             line.toml:6: link.rate: \"fast\" is no rate: write it as in 100mbit, 64kbit or 1.5gbit\n\
             line.toml:9: link.tier: \"10\" is no tier: 1 to 9, where 1 is used first\n\
             line.toml:10: link.weight: expected an integer, found a string\n\
             line.toml:11: link.rate: expected a string, found an integer"
        );
        assert_eq!(
            errors("name = 'pt0'\nbalance = 'hash-ip'\ntier_spill = true\n[[link]]\nname = 'a'"),
            "line.toml:3: tier_spill: with balance hash-ip each flow keeps to its link, and none can spill \
             to another tier"
        );
    }

    #[test]
    fn a_vlan_that_is_none_is_refused() {
        let vlan = |value: &str| {
            let text = format!("name = 'pt0'\ndirect_vlan = {value}\n[[link]]\nname = 'e'");
            parse(Path::new("line.toml"), &text).map(|settings| settings.direct_vlan)
        };
        assert_eq!(vlan("4094").unwrap(), Some(4094));
        for wrong in ["0", "4095", "70000"] {
            let error = vlan(wrong).unwrap_err().to_string();
            let expected = format!("line.toml:2: direct_vlan: {wrong} is no VLAN: 1 to 4094");
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn it_stays_as_long_as_is_said_and_not_for_ever() {
        let stay = |value: &str| {
            let text = format!("name = 'pt0'\nstay = {value}\n[[link]]\nname = 'e'");
            let settings = parse(Path::new("line.toml"), &text);
            settings.map(|settings| settings.stay.map(|time| time.as_secs()))
        };
        assert_eq!(stay("false").unwrap(), None);
        assert_eq!(stay("true").unwrap(), Some(60));
        assert_eq!(stay("3600").unwrap(), Some(3600));
        for (wrong, why) in [
            ("0", "0 is no time to stay: true, or 1 to 3600 seconds"),
            (
                "3601",
                "3601 is no time to stay: true, or 1 to 3600 seconds",
            ),
            ("'long'", "expected an integer, found a string"),
        ] {
            let error = stay(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("line.toml:2: stay: {why}"));
        }
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
             line.toml:7: balance: \"lacp\" is no way to choose a link: earliest-finish, round-robin, \
             active-backup, weighted, duplicate, hash-mac, hash-ip or hash-port\n\
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
