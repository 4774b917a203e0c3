//! Plots as SVG: light or dark as the reader has it, and readable where they are printed without colours.

mod axis;
mod chart;

pub use axis::Labels;
pub use chart::{Chart, Line, Mark, Panel, STYLE};

use super::Study;
use crate::expression::Value;
use crate::parameters::Kind;
use crate::run::by_size;
use crate::scenario::{Plot, X};
use crate::sweep::{Point, words_at};
use crate::vary::Vary;

/// A plot, and what its file is called.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    pub file: String,
    pub chart: Chart,
}

/// Those of which there is something to see.
pub fn plots(study: &Study<'_>) -> Vec<Drawn> {
    let plots = study.scenario.plots.iter().enumerate();
    let drawn = plots.filter_map(|(number, plot)| {
        let panels = match &plot.x {
            X::Time => of_one_run(study, plot, str::to_owned),
            X::Size => of_one_run(study, plot, by_size),
            X::Parameter(name) => over_parameter(study, plot, name),
        };
        let chart = Chart {
            title: plot.title.clone(),
            note: plot
                .paper
                .as_ref()
                .map(|paper| format!("Beside it: {paper}")),
            x_label: match &plot.x {
                X::Time => "time [s]".into(),
                X::Size => "size of a data unit [bytes]".into(),
                X::Parameter(name) => x_label(study, name),
            },
            x_ticks: match &plot.x {
                X::Time | X::Size => Labels::Numbers,
                X::Parameter(name) => x_ticks(study, name),
            },
            // Words have no logarithm.
            log_x: plot.log_x && !words_of(study, plot),
            log_y: plot.log_y,
            panels,
        };
        chart.has_points().then(|| Drawn {
            file: format!("{}-{}.svg", study.scenario.name, number + 1),
            chart,
        })
    });
    drawn.collect()
}

fn x_label(study: &Study<'_>, name: &str) -> String {
    let parameter = study.scenario.parameters.get(name);
    let says = parameter
        .map(|parameter| parameter.says.as_str())
        .unwrap_or_default();
    match says.is_empty() || says.chars().count() > 60 {
        true => name.to_owned(),
        false => format!("{name}: {says}"),
    }
}

fn x_ticks(study: &Study<'_>, name: &str) -> Labels {
    match study.scenario.parameters.get(name).map(|of| &of.kind) {
        Ok(Kind::Number(range)) => Labels::Of(range.dimension),
        Ok(Kind::Choice(_)) => Labels::Words(
            study
                .varied(name)
                .map(|vary| vary.values.iter().map(ToString::to_string).collect())
                .unwrap_or_default(),
        ),
        Err(_) => Labels::Numbers,
    }
}

fn words_of(study: &Study<'_>, plot: &Plot) -> bool {
    match &plot.x {
        X::Parameter(name) => matches!(x_ticks(study, name), Labels::Words(_)),
        _ => false,
    }
}

/// `called`: the series of what is plotted.
fn of_one_run(study: &Study<'_>, plot: &Plot, called: fn(&str) -> String) -> Vec<Panel> {
    let mut panels: Vec<Panel> = Vec::new();
    for name in &plot.y {
        let Some(series) = study
            .results
            .series
            .iter()
            .find(|series| series.name == called(name))
        else {
            continue;
        };
        let points = series
            .points
            .iter()
            .map(|&(x, y)| Mark { x, y, half: None });
        add(
            &mut panels,
            &series.unit,
            Line {
                name: name.clone(),
                points: points.collect(),
                marked: plot.x == X::Size,
                reported: false,
            },
        );
    }
    panels
}

/// A line a value, for each combination of what else is varied; nothing where the parameter itself is not.
fn over_parameter(study: &Study<'_>, plot: &Plot, name: &str) -> Vec<Panel> {
    let (scenario, results) = (study.scenario, study.results);
    let Some(over) = study.varied(name) else {
        return Vec::new();
    };
    let others: Vec<Vary> = results
        .plan
        .varied
        .iter()
        .filter(|vary| vary.name != *name)
        .cloned()
        .collect();
    let mut panels: Vec<Panel> = Vec::new();
    for y in &plot.y {
        let Some(index) = scenario.values.iter().position(|value| value.name == *y) else {
            continue;
        };
        let unit = &scenario.values[index].unit;
        let mut lines: Vec<Line> = Vec::new();
        for point in &results.points {
            let x = match point.settings.get(name) {
                Some(Value::Number(x)) => *x,
                // Its place among the words.
                Some(word) => match over.values.iter().position(|value| value == word) {
                    Some(place) => place as f64,
                    None => continue,
                },
                None => continue,
            };
            let name = match others.is_empty() {
                true => y.clone(),
                false => format!("{y}, {}", words_at(scenario, &others, &point.settings)),
            };
            let mark = mark(point, index, x);
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(mark),
                None => lines.push(Line {
                    name,
                    points: vec![mark],
                    marked: true,
                    reported: false,
                }),
            }
        }
        for mut line in lines {
            line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
            add(&mut panels, unit, line);
        }
        for reported in scenario
            .reported
            .iter()
            .filter(|reported| reported.value == *y)
        {
            let points = reported
                .points
                .iter()
                .map(|&(x, y)| Mark { x, y, half: None });
            add(
                &mut panels,
                unit,
                Line {
                    name: format!("{y}, as the paper has it"),
                    points: points.collect(),
                    marked: true,
                    reported: true,
                },
            );
        }
    }
    panels
}

fn mark(point: &Point, value: usize, x: f64) -> Mark {
    let mean = point.means[value];
    Mark {
        x,
        y: mean.mean,
        half: mean.half_width,
    }
}

/// What has the same unit stands in one panel.
fn add(panels: &mut Vec<Panel>, unit: &str, line: Line) {
    match panels.iter_mut().find(|panel| panel.y_label == unit) {
        Some(panel) => panel.lines.push(line),
        None => panels.push(Panel {
            y_label: unit.to_owned(),
            lines: vec![line],
        }),
    }
}
