use std::process::ExitCode;

fn main() -> ExitCode {
    packtrain::cli::main()
}
