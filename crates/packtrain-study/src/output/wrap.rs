//! Text in lines.

/// Broken between words: the first line has so many letters at most, those after it so many. A longer word has a line of its own.
pub fn wrapped(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let most = if lines.len() == 1 { first } else { rest };
        let line = lines.last_mut().expect("there is one");
        match line.is_empty() {
            true => line.push_str(word),
            false if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            false => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_long_as_may_be_and_no_word_is_lost_or_broken() {
        let text = "µs of a  line\nthat unconditionally has words";
        assert_eq!(
            wrapped(text, 9, 7),
            ["µs of a", "line", "that", "unconditionally", "has", "words"]
        );
        assert_eq!(wrapped("as it is", 8, 0), ["as it is"]);
        assert_eq!(wrapped("", 5, 5), [""]);
    }
}
