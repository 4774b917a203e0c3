use super::*;
use crate::output::tests::check_xml;

fn chart(points: Vec<Mark>, log: bool) -> Chart {
    Chart {
        title: "T".into(),
        note: None,
        x_label: "x".into(),
        x_ticks: Labels::Numbers,
        log_x: log,
        log_y: log,
        panels: vec![Panel {
            y_label: "m".into(),
            lines: vec![Line {
                name: "a".into(),
                points,
                marked: true,
                reported: false,
            }],
        }],
    }
}

fn mark(x: f64, y: f64, half: Option<f64>) -> Mark {
    Mark { x, y, half }
}

#[test]
fn a_point_stands_where_its_axes_say() {
    // From 0 to 10 both: the middle of the panel is at half of its width and height.
    let svg = chart(
        vec![
            mark(0.0, 0.0, None),
            mark(5.0, 5.0, None),
            mark(10.0, 10.0, None),
        ],
        false,
    )
    .svg();
    check_xml(&svg);
    let (x, y) = ((LEFT + WIDTH - RIGHT) / 2.0, HEAD + PANEL / 2.0);
    assert!(
        svg.contains(&format!("cx=\"{x:.1}\" cy=\"{y:.1}\"")),
        "{svg}"
    );
    assert!(svg.contains(&format!("cx=\"{LEFT:.1}\" cy=\"{:.1}\"", HEAD + PANEL)));
}

#[test]
fn an_interval_is_drawn_within_the_panel() {
    let bars = |svg: &str| svg.matches("class=\"bar").count();
    let points = vec![
        mark(1.0, 5.0, Some(2.0)),
        mark(2.0, 6.0, Some(0.0)),
        mark(3.0, 7.0, None),
    ];
    assert_eq!(bars(&chart(points, false).svg()), 1);
    // On a logarithmic axis one that reaches below zero ends at the panel's end.
    let svg = chart(
        vec![mark(1.0, 5.0, Some(9.0)), mark(10.0, 50.0, None)],
        true,
    )
    .svg();
    check_xml(&svg);
    assert!(svg.contains(&format!(" {:.1}V", HEAD + PANEL)), "{svg}");
}

#[test]
fn what_has_no_place_breaks_the_line_and_nothing_else() {
    let points = vec![
        mark(1.0, 5.0, None),
        mark(2.0, f64::NAN, None),
        mark(3.0, 0.0, Some(f64::NAN)),
        mark(4.0, 7.0, Some(f64::INFINITY)),
    ];
    let svg = chart(points, true).svg();
    check_xml(&svg);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert_eq!(
        svg.matches("<circle").count(),
        2 + 1,
        "two points, and the legend"
    );
    assert!(!chart(vec![mark(1.0, f64::NAN, None)], false).has_points());
    assert!(!chart(vec![mark(1.0, 0.0, None)], true).has_points());
}

#[test]
fn of_many_points_the_highest_and_the_lowest_stay() {
    let mut points: Vec<Option<(f64, f64)>> =
        (0..100_000).map(|i| Some((f64::from(i), 1.0))).collect();
    points[12_345] = Some((12_345.0, 99.0));
    points[54_321] = Some((54_321.0, -99.0));
    points[60_000] = None;
    let thin = thinned(&points);
    assert!(thin.len() <= 4 * COLUMNS_MAX, "{}", thin.len());
    assert!(thin.contains(&points[12_345]) && thin.contains(&points[54_321]));
    assert_eq!((thin[0], thin[thin.len() - 1]), (points[0], points[99_999]));
    assert!(
        thin.iter().flatten().is_sorted_by(|a, b| a.0 <= b.0),
        "in their order"
    );
    assert_eq!(thinned(&points[..100]), points[..100]);
}

#[test]
fn what_is_reported_is_hollow_and_has_the_colour_and_the_shape_of_ours() {
    let mut chart = chart(vec![mark(1.0, 5.0, None), mark(2.0, 6.0, None)], false);
    let line = |name: &str, reported| Line {
        name: name.into(),
        reported,
        ..chart.panels[0].lines[0].clone()
    };
    let more = [line("a, as the paper has it", true), line("b", false)];
    chart.panels[0].lines.extend(more);
    let svg = chart.svg();
    check_xml(&svg);
    // Two points each, and one in the legend.
    assert_eq!(svg.matches("<circle class=\"mark m0\"").count(), 3);
    assert_eq!(svg.matches("<circle class=\"hollow m0\"").count(), 3);
    assert_eq!(svg.matches("<rect class=\"mark m1\"").count(), 3);
    assert_eq!(
        svg.matches("class=\"path s0\"").count(),
        2,
        "none between theirs"
    );
}

#[test]
fn twelve_lines_look_different_and_a_point_alone_is_seen() {
    let mut looks = std::collections::BTreeSet::new();
    for style in 0..STYLES {
        let mut out = String::new();
        draw_mark(&mut out, 1.0, 1.0, style, false);
        looks.insert(out);
    }
    assert_eq!(looks.len(), STYLES);
    let at = |x: f64| Some((x, 2.0));
    assert_eq!(
        path(&[at(1.0), None, at(3.0), at(4.0), None]),
        "M1.0 2.0h0M3.0 2.0L4.0 2.0"
    );
}

#[test]
fn a_long_note_is_wrapped_at_words_within_the_width_and_none_is_lost() {
    let note = "Beside it: ".to_owned() + &"gigabit 9.07 to 120 (middle 11.6), ".repeat(6);
    let lines = wrapped(&note, LETTERS, LETTERS);
    assert_eq!(lines.len(), 3, "{lines:?}");
    let letters = (WIDTH - LEFT - RIGHT) / LETTER;
    assert!(
        lines
            .iter()
            .all(|line| line.chars().count() as f64 <= letters)
    );
    assert_eq!(lines.join(" "), note.trim_end());
    let svg = Chart {
        note: Some(note),
        ..chart(vec![mark(1.0, 5.0, None)], false)
    }
    .svg();
    check_xml(&svg);
    for line in lines {
        assert!(svg.contains(&format!(">{line}</text>")), "{line}");
    }
}
