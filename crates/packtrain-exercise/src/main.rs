//! The engine put to work without a kernel. `./x bench whatif` and `./x build --guided` run it.
#![forbid(unsafe_code)]

mod captures;
mod traffic;
mod training;

use std::process::ExitCode;

const USAGE: &str = "usage: packtrain-exercise whatif [WORD]
       packtrain-exercise training

whatif    replay two million frames of each kind, and print how many a second each thread of `packtrain whatif`
          takes; with a WORD, only of kinds whose name has it
training  do a little of all that the engine does, for a compiler that counts what is done most
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["whatif"] | ["whatif", _] => {
            let word = words.get(1).copied().unwrap_or_default();
            if captures::print_all(word) == 0 {
                eprintln!(
                    "no kind has {word:?} in its name; there are: {}",
                    captures::names()
                );
                return ExitCode::from(2);
            }
        }
        ["training"] => training::run_all(),
        ["-h" | "--help"] => print!("{USAGE}"),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
