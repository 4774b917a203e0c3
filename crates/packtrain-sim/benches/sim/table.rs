//! Runs as lines of a table.

use serde_json::Value;

pub fn print_head() {
    println!(
        "{:14} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>7} {:>8} {:>8}",
        "",
        "wall",
        "user",
        "M events",
        "a wall",
        "a user",
        "M hops, a",
        "RSS MiB",
        "at the",
        "alloca-",
        "goodput",
        "lost"
    );
    println!(
        "{:14} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>7} {:>8} {:>8}",
        "", "s", "s", "", "second", "second", "user s", "at 10 s", "end", "tions", "Mbit/s", "%"
    );
}

/// What is not there is a dash.
pub fn print_run(name: &str, run: &Value) {
    let cell = |field: &str, unit: f64, decimals: usize| match run[field].as_f64() {
        Some(value) => format!("{:.*}", decimals, value / unit),
        None => "-".into(),
    };
    println!(
        "{:14} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>7} {:>8} {:>8}",
        name,
        cell("wall_s", 1.0, 2),
        cell("user_s", 1.0, 2),
        cell("events", 1e6, 2),
        cell("events_per_s", 1e6, 2),
        cell("events_per_user_s", 1e6, 2),
        cell("packet_hops_per_user_s", 1e6, 2),
        cell("rss_10s_kib", 1024.0, 1),
        cell("rss_end_kib", 1024.0, 1),
        cell("allocations_after_10s", 1.0, 0),
        cell("goodput_bps", 1e6, 1),
        cell("loss_rate", 0.01, 4),
    );
}

/// The run that was in the middle by the time that it took.
pub fn middle<'a>(runs: impl Iterator<Item = &'a Value>) -> Value {
    let mut runs: Vec<&Value> = runs.collect();
    let user = |run: &Value| run["user_s"].as_f64().unwrap_or_default();
    runs.sort_by(|a, b| user(a).total_cmp(&user(b)));
    runs[runs.len() / 2].clone()
}
