//! How fast the network simulator is, and whether its memory stays what it is: a fixed run, on its own queue of events and on a
//! binary heap, in turns, and the same in ns-3 beside it. `./x bench sim` builds and runs this.
//!
//! Each run is a process of its own, so that none has what another one left. Rates are by the processor's time: what else the
//! machine does meanwhile makes that less true, but not as untrue as the wall's.

mod fixed_run;
mod peers;
mod process;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use fixed_run::{Core, FixedRun};
use peers::{Figure, Ns3};

const USAGE: &str = "usage: ./x bench sim [--rounds N] [--seconds S] [--flows N] [--full] [--ns3-seconds S] [--no-ns3]
                   [--no-figure] [--json FILE]

A dumbbell of 100 TCP flows at 1 Gbit/s with a round trip of 100 ms, for 60 s of virtual time: on the timing wheel and on a
binary heap, in turns, N times (5). Beside it the same in ns-3, of which after 3 s of virtual time 2 s more are measured
(--ns3-seconds), or with --full all 60 s, which take eight minutes and more; and a sweep of `packtrain sim`, a full figure of a paper.

ns-3 is asked of the Python that PACKTRAIN_NS3_PYTHON names, or of python3.
";

/// What is asked of the simulator.
const EVENTS_PER_SECOND_MIN: f64 = 10e6;
const TIMES_NS3_MIN: f64 = 10.0;
/// From 10 s of virtual time to the end: less than a page for each flow.
const GROWTH_KIB_MAX: f64 = 400.0;

#[derive(Debug)]
struct Options {
    run: FixedRun,
    rounds: usize,
    ns3: Option<Ns3>,
    packtrain: Option<PathBuf>,
    json: Option<PathBuf>,
    /// This is a run, not who compares them.
    core: Option<Core>,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            run: FixedRun::default(),
            rounds: 5,
            ns3: Some(Ns3::default()),
            packtrain: None,
            json: None,
            core: None,
        };
        let mut wants_figure = true;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word}: a value is missing"));
            let number_from = |least: u64, text: String| match text.parse() {
                Ok(number) if number >= least => Ok::<u64, String>(number),
                _ => Err(format!("{word}: a number from {least}, not {text}")),
            };
            let number = |text| number_from(1, text);
            match word.as_str() {
                "--rounds" => options.rounds = number(value()?)? as usize,
                // What comes before is not looked at.
                "--seconds" => options.run.seconds = number_from(11, value()?)?,
                "--flows" => options.run.flows = number(value()?)? as u32,
                "--ns3-seconds" => options.ns3 = Some(Ns3::after_its_beginning(number(value()?)?)),
                "--full" => options.ns3 = Some(Ns3::whole()),
                "--no-ns3" => options.ns3 = None,
                "--no-figure" => wants_figure = false,
                "--packtrain" => options.packtrain = Some(value()?.into()),
                "--json" => options.json = Some(value()?.into()),
                "--core" => options.core = Some(Core::named(&value()?)?),
                // What cargo says to whoever it has do benchmarks.
                "--bench" => {}
                _ => return Err(format!("what is {word}?")),
            }
        }
        options.packtrain = options.packtrain.filter(|_| wants_figure);
        Ok(options)
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "-h" || word == "--help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::read(words.into_iter()) {
        Ok(options) => options,
        Err(error) => {
            eprint!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if let Some(core) = options.core {
        println!("{}", options.run.measure(core));
        return ExitCode::SUCCESS;
    }
    let document = compare(&options);
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&document).expect("a document");
        if let Err(error) = std::fs::write(path, text + "\n") {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    match document["holds"] == true {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn compare(options: &Options) -> Value {
    println!("{}\n", options.run);
    table::print_head();
    let mut runs = Vec::new();
    for _ in 0..options.rounds {
        for core in Core::ALL {
            let run = options.run.measure_apart(core);
            table::print_run(core.name(), &run);
            runs.push((core, run));
        }
    }
    println!();
    let mut middles = Vec::new();
    for core in Core::ALL {
        let of_it = runs.iter().filter(|(other, _)| *other == core);
        let middle = table::middle(of_it.map(|(_, run)| run));
        table::print_run(&format!("{}, middle", core.name()), &middle);
        middles.push(middle);
    }
    let wheel = &middles[0];
    let ns3 = options.ns3.as_ref().map(|ns3| ns3.run(&options.run));
    match &ns3 {
        Some(Ok(run)) => table::print_run(&format!("ns-3, {} s", run["virtual_s"]), run),
        Some(Err(why)) => println!("ns-3: {why}"),
        None => {}
    }
    let figure = options.packtrain.as_deref().map(Figure::run);
    match &figure {
        Some(Ok(figure)) => println!("\n{figure}"),
        Some(Err(why)) => println!("\na full figure of the paper: {why}"),
        None => {}
    }
    let number = |run: &Value, name: &str| run[name].as_f64().unwrap_or(f64::NAN);
    let events = number(wheel, "events_per_user_s");
    let growth = number(wheel, "rss_end_kib") - number(wheel, "rss_10s_kib");
    let mut verdicts = vec![
        (
            events >= EVENTS_PER_SECOND_MIN,
            format!("{:.1} M events a second; 10 are asked for", events / 1e6),
        ),
        (
            growth <= GROWTH_KIB_MAX,
            format!(
                "memory from 10 s of virtual time to {} s: {growth:+.0} KiB, {} allocations; flat is less than {GROWTH_KIB_MAX:.0} KiB",
                options.run.seconds, wheel["allocations_after_10s"]
            ),
        ),
    ];
    let hops = |run: &Value| number(run, "packet_hops_per_user_s");
    if let Some(Ok(ns3)) = &ns3 {
        let times = hops(wheel) / hops(ns3);
        verdicts.push((
            times >= TIMES_NS3_MIN,
            format!("{times:.0} times as many packet-hops a second as ns-3; 10 are asked for"),
        ));
    }
    let heap = hops(wheel) / hops(&middles[1]);
    println!("\nthe wheel: {heap:.2} times as many packet-hops a second as the binary heap");
    for (holds, text) in &verdicts {
        println!("{}: {text}", if *holds { "holds" } else { "DOES NOT HOLD" });
    }
    let runs: Vec<&Value> = runs.iter().map(|(_, run)| run).collect();
    let told =
        |result: Result<Value, String>| result.unwrap_or_else(|why| json!({ "missing": why }));
    json!({
        "fixed_run": options.run.document(),
        "runs": runs,
        "middle": middles,
        "ns3": ns3.map(told),
        "figure": figure.map(|figure| told(figure.map(|figure| figure.document()))),
        "verdicts": verdicts.iter().map(|(holds, text)| json!({ "holds": holds, "text": text })).collect::<Vec<_>>(),
        "holds": verdicts.iter().all(|(holds, _)| *holds),
    })
}
