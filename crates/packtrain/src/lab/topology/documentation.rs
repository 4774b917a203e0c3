//! That the pages about the lab say what is so.

use std::path::Path;

use super::graph::{svg, text};
use super::{file, ready};

fn page(name: &str) -> String {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let path = Path::new(docs).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_ready_topology_is_drawn_on_the_page_as_the_command_draws_it() {
    let page = page("lab.md");
    for name in ready::names() {
        let topology = ready::find(name).unwrap();
        let drawing = text::draw(&topology, None);
        let shown = format!("```\n{drawing}```\n");
        assert!(
            page.contains(&shown),
            "docs/lab.md lacks the drawing of {name}:\n{drawing}"
        );
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/lab.md does not name {name}"
        );
    }
}

#[test]
fn the_pictures_beside_the_page_are_those_that_the_command_draws() {
    let page = page("lab.md");
    let mut pictures = 0;
    for name in ready::names() {
        if page.contains(&format!("(lab/{name}.svg)")) {
            pictures += 1;
            let drawn = svg::draw(&ready::find(name).unwrap(), None);
            let kept = self::page(&format!("lab/{name}.svg"));
            assert_eq!(
                kept, drawn,
                "packtrain lab graph {name} --svg > docs/lab/{name}.svg"
            );
        }
    }
    assert!(pictures >= 2, "{pictures}");
}

#[test]
fn every_key_of_a_file_is_in_the_table_of_the_reference() {
    let page = page("lab-reference.md");
    let tables = ["host", "switch", "hub", "wire"];
    let wrong = tables.map(|table| format!("[[{table}]]\nwrong = 0\n"));
    let wrong = format!("wrong = 0\n{}[wire.from.a]\nwrong = 0\n", wrong.concat());
    let wrong = wrong.replace("[[wire]]\n", "[[wire]]\nends = ['a', 'b']\n");
    let errors = file::parse(Path::new("wrong.toml"), &wrong).unwrap_err().0;
    let mut keys = 0;
    for error in errors {
        let known = error.message.strip_prefix("unknown key (known here: ");
        let Some(known) = known.and_then(|known| known.strip_suffix(')')) else {
            continue;
        };
        let of = error.key.unwrap();
        let table = of.strip_suffix("wrong").unwrap().trim_end_matches('.');
        for key in known.split(", ") {
            if table.is_empty() && tables.contains(&key) {
                continue; // it is a table, and is there with its own keys
            }
            keys += 1;
            let own = format!("| `[[{table}]]` `{key}` |");
            let plain = format!("| `{key}` |");
            let may_be_plain = table.is_empty() || table.starts_with("wire");
            assert!(
                page.contains(&own) || may_be_plain && page.contains(&plain),
                "docs/lab-reference.md lacks {key} of {table:?}"
            );
        }
    }
    // Two of the file, four of a host, one of a switch, two of a hub, four of a wire and thirteen
    // settings, these again in one direction.
    assert_eq!(keys, 2 + 4 + 1 + 2 + 4 + 13 + 13);
}

#[test]
fn the_example_of_the_reference_is_a_right_one() {
    let page = page("lab-reference.md");
    let (_, rest) = page.split_once("```toml\n").expect("there is an example");
    let (example, _) = rest.split_once("```").unwrap();
    let topology = file::parse(Path::new("my.toml"), example).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(topology.hosts.len(), 5);
    assert_eq!(topology.wires.len(), 6);
    assert!(topology.wire("c3-s.0").is_some());
}
