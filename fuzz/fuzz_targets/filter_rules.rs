//! Any text as rules of a receive filter, a line each; and behind a line of dashes any bytes as a frame. What is a rule is read again as it was
//! written, what is none is told why, and of those that go together an image says what they say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::filter::rules::{
    Image, Limit, NamedSet, Rule, RuleFacts, RuleMatch, RuleSet, Verdict,
};
use packtrain_proto::wire::ethernet::MacAddr;

/// More are no other than these.
const LINES_MAX: usize = 40;

/// A thing that people write.
fn round_trip<T>(text: &str) -> Option<T>
where
    T: std::str::FromStr<Err: std::fmt::Display> + std::fmt::Display + PartialEq + std::fmt::Debug,
{
    match text.parse::<T>() {
        Ok(value) => {
            let written = value.to_string();
            let again = written.parse::<T>();
            let again = again.unwrap_or_else(|error| panic!("{text:?}, {written:?}: {error}"));
            assert_eq!(again, value, "{text:?}, {written:?}");
            assert_eq!(again.to_string(), written);
            Some(value)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// `VERDICT: MATCH`.
fn rule(number: usize, line: &str) -> Option<Rule> {
    let (verdict, matches) = line.split_once(": ")?;
    Some(Rule {
        name: format!("r{number}").parse().expect("a name"),
        verdict: round_trip::<Verdict>(verdict)?,
        matches: round_trip::<RuleMatch>(matches)?,
    })
}

/// `NAME = PREFIX, PREFIX …`: a set.
fn set(line: &str) -> Option<NamedSet> {
    let (name, prefixes) = line.split_once(" = ")?;
    Some(NamedSet {
        name: round_trip(name)?,
        prefixes: prefixes
            .split(", ")
            .map(round_trip::<Prefix>)
            .collect::<Option<_>>()?,
    })
}

fn compare(rules: &RuleSet, frames: &[&[u8]]) {
    let image = match Image::compile(rules) {
        Ok(image) => image,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for frame in frames {
        for len in [frame.len(), frame.len() / 2, 14.min(frame.len())] {
            let facts = RuleFacts::of(&frame[..len]);
            assert!(
                image.matching(&facts).eq(rules.matching(&facts)),
                "{facts:?}"
            );
            let decided = rules.decide(&facts, |rule, _| rule % 2 == 0);
            assert_eq!(image.decide(&facts, |rule, _| rule % 2 == 0), decided);
        }
    }
}

/// Ordinary ones: UDP over IPv4, TCP over IPv6 behind two tags.
const FRAMES: [&[u8]; 2] = [
    b"\x52\x54\0\0\0\x01\x52\x54\0\x01\0\x14\x08\0\x45\0\0\x20\0\0\x40\0\x40\x11\0\0\x0a\x01\0\x14\x0a\x01\0\x01\
      \x23\x28\x1b\x58\0\x0c\0\0data",
    b"\x33\x33\0\0\0\xfb\x52\x54\0\x01\0\x14\x88\xa8\0\x07\x81\0\0\x64\x86\xdd\x6b\x80\0\0\0\x14\x06\x40\
      \xfd\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x14\xfd\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\
      \x23\x28\x1b\x58\0\0\0\0\0\0\0\0\x50\x02\x10\0\0\0\0\0",
];

fuzz_target!(|data: &[u8]| {
    const DASHES: &[u8] = b"\n---\n";
    let end = data.windows(DASHES.len()).position(|at| at == DASHES);
    let (text, frame) = match end {
        Some(end) => (&data[..end], &data[end + DASHES.len()..]),
        None => (data, &data[..0]),
    };
    let text = String::from_utf8_lossy(text);
    let (mut rules, mut sets) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().take(LINES_MAX).enumerate() {
        round_trip::<RuleMatch>(line);
        round_trip::<Limit>(line);
        round_trip::<MacAddr>(line);
        rules.extend(rule(number, line));
        sets.extend(set(line));
    }
    match RuleSet::new(rules, sets) {
        Ok(rules) => compare(&rules, &[frame, FRAMES[0], FRAMES[1]]),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
