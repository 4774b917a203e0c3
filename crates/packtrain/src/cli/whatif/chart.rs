//! Bars beside each other, as SVG within a page.

use std::fmt::Write as _;

use super::html::escaped;

const WIDTH: f64 = 800.0;
const NAMES: f64 = 190.0;
/// Room behind the longest bar for its number.
const NUMBERS: f64 = 110.0;
const BAR: f64 = 18.0;
const GAP: f64 = 4.0;

pub(super) struct Bar {
    name: String,
    value: f64,
    text: String,
    style: &'static str,
}

impl Bar {
    pub fn plain(value: f64, text: String) -> Bar {
        Bar {
            name: "without packtrain".into(),
            value,
            text,
            style: "plain",
        }
    }

    pub fn with(name: &str, value: f64, text: String) -> Bar {
        Bar {
            name: name.into(),
            value,
            text,
            style: "with",
        }
    }
}

/// Each pair one below the other, all to the same scale.
pub(super) fn bars(pairs: &[[Bar; 2]]) -> String {
    let all = || pairs.iter().flatten();
    let longest = all().map(|bar| bar.value).fold(0.0, f64::max);
    let mut y = 0.0;
    let mut out = String::new();
    for pair in pairs {
        for bar in pair {
            let share = if longest > 0.0 {
                bar.value.max(0.0) / longest
            } else {
                0.0
            };
            let len = share * (WIDTH - NAMES - NUMBERS);
            let middle = y + BAR - 4.0;
            let _ = writeln!(
                out,
                "<text x=\"0\" y=\"{middle:.0}\">{}</text>\
                 <rect class=\"{}\" x=\"{NAMES}\" y=\"{y:.0}\" width=\"{len:.1}\" height=\"{BAR}\"/>\
                 <text x=\"{:.1}\" y=\"{middle:.0}\">{}</text>",
                escaped(&bar.name),
                bar.style,
                NAMES + len + 6.0,
                escaped(&bar.text),
            );
            y += BAR + GAP;
        }
        y += 2.0 * GAP;
    }
    format!("<svg viewBox=\"0 0 {WIDTH} {y:.0}\" role=\"img\">\n{out}</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_has_all_the_room_and_the_others_their_part_of_it() {
        let chart = bars(&[[
            Bar::plain(200.0, "200".into()),
            Bar::with("queued", 50.0, "50".into()),
        ]]);
        assert!(
            chart.contains("class=\"plain\" x=\"190\" y=\"0\" width=\"500.0\""),
            "{chart}"
        );
        assert!(
            chart.contains("class=\"with\" x=\"190\" y=\"22\" width=\"125.0\""),
            "{chart}"
        );
        // Nothing at all is no division by zero.
        assert!(
            bars(&[[Bar::plain(0.0, "0".into()), Bar::plain(0.0, "0".into())]])
                .contains("width=\"0.0\"")
        );
    }
}
