//! A command as a person types it.

/// With quotes around what a shell would read otherwise.
pub fn command<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(word).collect();
    words.join(" ")
}

fn word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        assert_eq!(
            command(["sim", "run", "a b.toml", "--set", "F=1..3", "", "it's"]),
            "sim run 'a b.toml' --set F=1..3 '' 'it'\\''s'"
        );
    }
}
