use super::*;
use crate::vary::points;

#[test]
fn every_scenario_is_read_without_a_mistake_at_every_point_of_its_sweep() {
    for (name, _) in ALL {
        let scenario = match read(name).unwrap() {
            Ok(scenario) => scenario,
            Err(errors) => panic!("{errors}"),
        };
        assert_eq!(scenario.name, name);
        for quick in [false, true] {
            let settings = scenario.settings(quick, &[]).unwrap();
            let varied = scenario.varied(quick, &[]).unwrap();
            assert!(!varied.is_empty(), "{name} has a sweep");
            for point in points(&settings, &varied).unwrap() {
                if let Err(errors) = scenario.prepare(&point) {
                    panic!("{name}, quick {quick}, {point:?}:\n{errors}");
                }
            }
        }
    }
}

#[test]
fn every_scenario_says_what_it_shows_what_is_reported_and_what_is_expected() {
    for (name, _) in ALL {
        let scenario = read(name).unwrap().unwrap();
        assert!(
            !scenario.shows.is_empty() && !scenario.expects.is_empty(),
            "{name}"
        );
        assert!(
            scenario
                .parameters
                .0
                .iter()
                .all(|parameter| !parameter.says.is_empty()),
            "{name}"
        );
        assert!(
            scenario.values.iter().all(|value| !value.says.is_empty()),
            "{name}"
        );
        // What is expected of a sweep is something that the sweep varies.
        let expects = scenario
            .expects
            .iter()
            .filter_map(|expect| expect.over.as_ref());
        for over in expects {
            for quick in [false, true] {
                let varied = scenario.varied(quick, &[]).unwrap();
                assert!(
                    varied.iter().any(|vary| vary.name == *over),
                    "{name}: {over}"
                );
            }
        }
    }
    assert!(names().is_sorted());
    assert!(read("nothing").is_none());
    assert_eq!(near("xlf-processng"), "near it: xlf-processing");
}
