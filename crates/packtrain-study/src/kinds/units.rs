//! How many data units carry flows in packets alone, and with elephants in XLFrames (`packtrain_sim::data_units`).

use packtrain_settings::toml_reader::{Errors, Table, parse_str};
use packtrain_sim::data_units::{self, Amount, DataUnitsConfig, Drawing};

use super::read::{count, plain_bytes, word};
use super::unnamed;
use crate::model::{Model, Outcome, Progress};

/// Each is drawn.
const FLOWS_MAX: u64 = 1_000_000_000;
const BYTES_MAX: u64 = 1 << 50;
const PACKET_BYTES_MAX: u64 = 65_535;
const F_MAX: u64 = 1000;
const CONTROL_PACKETS_MAX: u64 = 1000;

const FACTS: [&str; 13] = [
    "flows",
    "bytes",
    "elephants",
    "share_of_elephants",
    "units_packets",
    "units_xl",
    "xlframes",
    "control",
    "ratio",
    "closed_form_ratio",
    "closed_form_share",
    "look_ups_saved",
    "flow_bytes",
];

pub fn read(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Box<dyn Model>> {
    let config = section(table, errors)?;
    Some(Box::new(Units { config }))
}

fn section(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<DataUnitsConfig> {
    let mut table = unnamed::section(table, "units", errors)?;
    let mut config = DataUnitsConfig::default();
    let sizes = table.required("sizes", errors, parse_str);
    let amount = amount(&mut table, errors);
    let drawings = word([
        ("independent", Drawing::Independent),
        ("strata", Drawing::Strata),
    ]);
    table.optional("drawing", errors, &mut config.drawing, drawings);
    let packet = plain_bytes(1, PACKET_BYTES_MAX);
    table.optional("packet", errors, &mut config.packet_bytes, packet);
    let f = &mut config.packets_per_xlframe;
    table.optional("F", errors, f, count(1, F_MAX));
    let above = &mut config.elephants_above_bytes;
    table.optional("elephants_above", errors, above, plain_bytes(0, BYTES_MAX));
    let headers = plain_bytes(0, PACKET_BYTES_MAX);
    table.optional("header_bytes", errors, &mut config.header_bytes, headers);
    let control = count(0, CONTROL_PACKETS_MAX);
    table.optional(
        "control_packets",
        errors,
        &mut config.control_packets,
        control,
    );
    table.refuse_the_rest(errors);
    if config.header_bytes >= config.packet_bytes {
        let message = format!(
            "{} bytes of headers leave nothing of a packet of {}",
            config.header_bytes, config.packet_bytes
        );
        table.refuse(Some("header_bytes"), message, errors);
        return None;
    }
    Some(DataUnitsConfig {
        sizes: sizes?,
        amount: amount?,
        ..config
    })
}

/// So many flows, or as many as it takes for so many bytes.
fn amount(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Amount> {
    let said = ["flows", "bytes"].map(|key| table.get(key).is_some());
    match said {
        [true, false] => {
            let flows = table.required("flows", errors, count(1, FLOWS_MAX));
            flows.map(Amount::Flows)
        }
        [false, true] => {
            let bytes = table.required("bytes", errors, plain_bytes(1, BYTES_MAX));
            bytes.map(Amount::Bytes)
        }
        _ => {
            let message = "one of flows and bytes says how much is carried".to_owned();
            table.refuse(said[1].then_some("bytes"), message, errors);
            None
        }
    }
}

struct Units {
    config: DataUnitsConfig,
}

impl Model for Units {
    fn run(&self, seed: u64, progress: &dyn Progress) -> Outcome {
        let result = data_units::run(&DataUnitsConfig {
            seed,
            ..self.config.clone()
        });
        progress.at(1.0);
        let facts: [(&str, f64); FACTS.len()] = [
            ("flows", result.flows),
            ("bytes", result.bytes),
            ("flow_bytes", result.bytes / result.flows),
            ("elephants", result.elephants),
            ("share_of_elephants", result.share_of_bytes_in_elephants()),
            ("units_packets", result.packets_only.total()),
            ("units_xl", result.with_xlframes.total()),
            ("xlframes", result.with_xlframes.xlframes),
            ("control", result.with_xlframes.control),
            ("ratio", result.ratio()),
            ("look_ups_saved", result.look_ups_saved()),
            ("closed_form_ratio", result.closed_form.ratio),
            (
                "closed_form_share",
                result.closed_form.share_of_bytes_in_elephants,
            ),
        ];
        unnamed::outcome(&facts, result.flows as u64)
    }

    fn knows_fact(&self, fact: &str, of: &[&str]) -> Result<(), String> {
        unnamed::knows_fact(&FACTS, fact, of)
    }

    fn fact_names(&self) -> Vec<String> {
        FACTS.map(str::to_owned).into()
    }

    fn knows_series(&self, name: &str) -> Result<(), String> {
        unnamed::no_series(name)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use packtrain_settings::toml_reader;
    use packtrain_sim::workload::Sizes;

    use super::*;

    const WHOLE: &str = r#"
[units]
sizes = "lomax:1.2,100kB"
bytes = 20e9
drawing = "independent"
packet = 1000
F = "5"
elephants_above = 30000
header_bytes = "40b"
control_packets = 7
"#;

    fn config(text: &str) -> Result<DataUnitsConfig, String> {
        let read = toml_reader::read(Path::new("u.toml"), text, |table, errors| {
            let config = section(table, errors);
            table.refuse_the_rest(errors);
            config
        });
        read.map_err(|errors| errors.to_string())
    }

    #[test]
    fn everything_that_the_file_says_is_in_the_settings() {
        let expected = DataUnitsConfig {
            sizes: Sizes::Lomax {
                alpha: 1.2,
                mean_bytes: 100_000,
            },
            amount: Amount::Bytes(20_000_000_000),
            drawing: Drawing::Independent,
            packet_bytes: 1000,
            packets_per_xlframe: 5,
            elephants_above_bytes: 30_000,
            header_bytes: 40,
            control_packets: 7,
            seed: 1,
        };
        assert_eq!(config(WHOLE), Ok(expected));
        let short = config("[units]\nsizes = \"fixed:1MB\"\nflows = 10\n").unwrap();
        assert_eq!(short.amount, Amount::Flows(10));
        assert_eq!((short.packet_bytes, short.packets_per_xlframe), (1500, 13));
    }

    #[test]
    fn each_mistake_is_told_with_its_line_its_key_and_what_is_allowed() {
        for (from, to, error) in [
            (
                "bytes = 20e9",
                "",
                "u.toml:2: units: one of flows and bytes",
            ),
            (
                "bytes = 20e9",
                "bytes = 20e9\nflows = 5",
                "u.toml:4: units.bytes: one of flows and bytes",
            ),
            (
                "bytes = 20e9",
                "flows = 0",
                "u.toml:4: units.flows: \"0\" is not a whole number from 1 to 1000000000",
            ),
            (
                "\"independent\"",
                "\"random\"",
                "u.toml:5: units.drawing: \"random\" is none of independent, strata",
            ),
            (
                "packet = 1000",
                "packet = 70000",
                "u.toml:6: units.packet: \"70000\" is not a whole number from 1 to 65535",
            ),
            ("F = \"5\"", "F = 0", "u.toml:7: units.F: \"0\" is not"),
            (
                "\"40b\"",
                "1000",
                "u.toml:9: units.header_bytes: 1000 bytes of headers leave nothing of a packet of 1000",
            ),
            (
                "F =",
                "f =",
                "u.toml:7: units.f: unknown key (known here: F,",
            ),
            ("sizes =", "size =", "u.toml:2: units.sizes: is missing"),
            (
                "[units]",
                "[unit]",
                "u.toml:1: units: is missing: [units] says",
            ),
        ] {
            assert!(WHOLE.contains(from), "{from}");
            let errors = config(&WHOLE.replacen(from, to, 1)).unwrap_err();
            assert!(errors.contains(error), "{to}: {errors}");
        }
    }

    #[test]
    fn a_run_knows_the_facts_that_it_says_it_does() {
        let text = "[units]\nsizes = \"fixed:39000\"\nflows = 3\nelephants_above = 1000\n\
                    control_packets = 2\n";
        let units = Units {
            config: config(text).unwrap(),
        };
        let outcome = units.run(1, &());
        for fact in FACTS {
            assert!(outcome.facts.get(fact, &[]).is_ok(), "{fact}");
            assert_eq!(units.knows_fact(fact, &[]), Ok(()));
        }
        assert_eq!(outcome.facts.names().len(), FACTS.len());
        let fact = |name| outcome.facts.get(name, &[]).unwrap();
        // 26 packets or two XLFrames each, and two more.
        assert_eq!((fact("units_packets"), fact("units_xl")), (84.0, 12.0));
        assert_eq!((fact("xlframes"), fact("look_ups_saved")), (6.0, 72.0));
        assert_eq!(fact("share_of_elephants"), 1.0);
        assert!(units.knows_series("cwnd(xl)").is_err());
    }

    #[test]
    fn fewer_bytes_than_a_flow_has_are_those_of_one() {
        for drawing in ["strata", "independent"] {
            let text =
                format!("[units]\nsizes = \"fixed:1MB\"\nbytes = 1000\ndrawing = \"{drawing}\"\n");
            let units = Units {
                config: config(&text).unwrap(),
            };
            let facts = units.run(1, &()).facts;
            assert_eq!(facts.get("flows", &[]), Ok(1.0), "{drawing}");
        }
    }
}
