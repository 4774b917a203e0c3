//! An API over HTTP/1.1 with JSON: a site, and what one client after the other asks of it over a connection that
//! stays. Names, sessions and formats are the site's and stay; numbers, identities and times change.

use std::fmt::Write;

use super::draws::Draws;
use super::words::{word, words};
use crate::lab::bench_aggregation::conversations::Exchange;

const BROWSERS: [&str; 6] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:129.0) Gecko/20100101 Firefox/129.0",
    "okhttp/4.12.0",
    "python-requests/2.31.0",
    "Go-http-client/1.1",
    "curl/8.5.0",
];
const SERVERS: [&str; 4] = ["nginx", "envoy", "gunicorn", "Apache/2.4.58 (Ubuntu)"];
const TOKEN: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const CLIENTS: usize = 12;
/// Of the hour that the site is asked in.
const DAY: u64 = 14;

#[derive(Clone, Copy, Debug)]
enum Value {
    Number,
    Choice,
    Flag,
    Time,
    Identity,
    Amount,
    Person,
    Nothing,
}

const VALUES: [Value; 8] = [
    Value::Number,
    Value::Choice,
    Value::Flag,
    Value::Time,
    Value::Identity,
    Value::Amount,
    Value::Person,
    Value::Nothing,
];

/// What objects of a kind have.
#[derive(Debug)]
struct Kind {
    name: &'static str,
    fields: Vec<(String, Value)>,
}

#[derive(Debug)]
struct Site {
    host: String,
    server: &'static str,
    kinds: Vec<Kind>,
    choices: Vec<&'static str>,
    people: Vec<&'static str>,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    browser: &'static str,
    token: String,
}

impl Site {
    fn new(draws: &mut Draws) -> Site {
        let kind = |draws: &mut Draws| {
            let count = 4 + draws.index(9);
            let field = |draws: &mut Draws| {
                let value = VALUES[draws.index(VALUES.len())];
                (format!("{}_{}", word(draws), word(draws)), value)
            };
            Kind {
                name: word(draws),
                fields: (0..count).map(|_| field(draws)).collect(),
            }
        };
        let head = draws.letters(TOKEN, 36);
        let client = |draws: &mut Draws| Client {
            browser: draws.pick(&BROWSERS),
            token: format!("{head}.{}", draws.letters(TOKEN, 43)),
        };
        Site {
            host: format!("api.{}-{}.example", word(draws), word(draws)),
            server: draws.pick(&SERVERS),
            kinds: (0..8).map(|_| kind(draws)).collect(),
            choices: words(draws, 20),
            people: words(draws, 200),
            clients: (0..CLIENTS).map(|_| client(draws)).collect(),
        }
    }

    fn value(&self, value: Value, seconds: u64, draws: &mut Draws) -> String {
        match value {
            Value::Number => draws.below(10_000).to_string(),
            Value::Choice => format!("\"{}\"", self.choices[draws.favoured(self.choices.len())]),
            Value::Flag => draws.is(0.5).to_string(),
            Value::Time => format!(
                "\"2026-02-{:02}T{:02}:{:02}:{:02}.{:03}Z\"",
                1 + draws.below(28),
                seconds / 3600 % 24,
                seconds / 60 % 60,
                draws.below(60),
                draws.below(1000)
            ),
            Value::Identity => format!("\"{}\"", identity(draws)),
            Value::Amount => format!("{:.2}", draws.unit() * 1000.0),
            Value::Person => {
                let mut name = || self.people[draws.favoured(self.people.len())];
                format!("\"{} {}\"", name(), name())
            }
            Value::Nothing => "null".to_owned(),
        }
    }

    fn object(&self, kind: &Kind, id: u64, seconds: u64, draws: &mut Draws) -> String {
        let mut text = format!("{{\"id\":{id}");
        for (name, value) in &kind.fields {
            let value = self.value(*value, seconds, draws);
            write!(text, ",\"{name}\":{value}").expect("a text takes all");
        }
        text + "}"
    }
}

fn identity(draws: &mut Draws) -> String {
    let parts = [8, 4, 4, 4, 12].map(|len| draws.hex(len));
    parts.join("-")
}

/// What is asked over one of the connections to a site, and what is answered.
pub fn exchanges(connection: usize, seed: u64, count: usize) -> Vec<Exchange> {
    let site = Site::new(&mut Draws::new(seed));
    let mut draws = Draws::new(seed << 16 | 1 << 15 | connection as u64);
    let client = &site.clients[connection % CLIENTS];
    let mut seconds = DAY * 3600 + draws.below(3600);
    let mut id = 100_000 + draws.below(900_000);
    let exchange = |_| {
        seconds += draws.below(2);
        id += draws.below(5);
        exchange(&site, client, (id, seconds), &mut draws)
    };
    (0..count).map(exchange).collect()
}

fn exchange(
    site: &Site,
    client: &Client,
    (id, seconds): (u64, u64),
    draws: &mut Draws,
) -> Exchange {
    let kind = &site.kinds[draws.favoured(site.kinds.len())];
    let method = *draws.pick(&[&"GET", &"GET", &"GET", &"POST", &"PUT", &"DELETE"]);
    let name = kind.name;
    let one = id - draws.below(1000);
    let path = match (method, draws.below(3)) {
        ("POST", _) => format!("/v1/{name}"),
        ("GET", 0) => format!(
            "/v1/{name}?limit={}&offset={}",
            10 * (1 + draws.below(5)),
            10 * draws.below(20)
        ),
        _ => format!("/v1/{name}/{one}"),
    };
    let sent = matches!(method, "POST" | "PUT");
    let sent = sent.then(|| site.object(kind, id, seconds, draws));
    let mut question = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: application/json\r\n\
         Accept-Encoding: gzip, deflate, br\r\nConnection: keep-alive\r\nAuthorization: Bearer {}\r\n\
         X-Request-ID: {}\r\n",
        site.host,
        client.browser,
        client.token,
        identity(draws)
    );
    if let Some(sent) = &sent {
        let len = sent.len();
        question += &format!("Content-Type: application/json\r\nContent-Length: {len}\r\n");
    }
    question += "\r\n";
    question += sent.as_deref().unwrap_or_default();
    Exchange {
        question: question.into_bytes(),
        answer: answer(site, kind, method, (id, seconds), draws).into_bytes(),
    }
}

fn answer(
    site: &Site,
    kind: &Kind,
    method: &str,
    (id, seconds): (u64, u64),
    draws: &mut Draws,
) -> String {
    let is_missing = draws.is(0.06);
    let status = match method {
        _ if is_missing => "404 Not Found",
        "DELETE" => "204 No Content",
        "POST" => "201 Created",
        _ => "200 OK",
    };
    let body = match method {
        _ if is_missing => format!(
            "{{\"error\":{{\"code\":404,\"message\":\"{} not found\",\"trace\":\"{}\"}}}}",
            kind.name,
            draws.hex(16)
        ),
        "DELETE" => String::new(),
        "GET" if draws.is(0.3) => {
            let count = 1 + draws.below(3);
            let item = |at| site.object(kind, id + at, seconds, draws);
            let items: Vec<String> = (0..count).map(item).collect();
            format!(
                "{{\"items\":[{}],\"total\":{}}}",
                items.join(","),
                draws.below(500)
            )
        }
        _ => site.object(kind, id, seconds, draws),
    };
    let mut head = format!(
        "HTTP/1.1 {status}\r\nDate: Tue, 17 Feb 2026 {:02}:{:02}:{:02} GMT\r\n",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    );
    if !body.is_empty() {
        let len = body.len();
        head +=
            &format!("Content-Type: application/json; charset=utf-8\r\nContent-Length: {len}\r\n");
    }
    head += &format!(
        "Connection: keep-alive\r\nServer: {}\r\nX-RateLimit-Remaining: {}\r\n\
         Strict-Transport-Security: max-age=31536000; includeSubDomains\r\n\r\n",
        site.server,
        draws.below(1000)
    );
    head + &body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::bench_compression::coded::interleaved_share_saved;

    #[test]
    fn a_connection_says_the_same_again_of_its_seed_and_others_say_something_else() {
        let texts = |connection, seed| -> Vec<Vec<u8>> {
            let exchanges = exchanges(connection, seed, 50);
            exchanges
                .into_iter()
                .map(|exchange| exchange.question)
                .collect()
        };
        assert_eq!(texts(1, 1), texts(1, 1));
        assert_ne!(texts(1, 1), texts(2, 1));
        assert_ne!(texts(1, 1), texts(1, 2));
    }

    #[test]
    fn bodies_are_as_long_as_they_say_and_all_is_as_long_as_such_things_are() {
        let exchanges = exchanges(0, 1, 500);
        for text in exchanges.iter().flat_map(|e| [&e.question, &e.answer]) {
            let text = std::str::from_utf8(text).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            let said = head.split_once("Content-Length: ");
            let said = said.map_or("0", |(_, rest)| rest.lines().next().unwrap());
            assert_eq!(said, body.len().to_string());
            if !body.is_empty() {
                serde_json::from_str::<serde_json::Value>(body).unwrap();
            }
        }
        let mean =
            |of: fn(&Exchange) -> usize| exchanges.iter().map(of).sum::<usize>() / exchanges.len();
        assert!((300..600).contains(&mean(|e| e.question.len())));
        assert!((350..900).contains(&mean(|e| e.answer.len())));
    }

    #[test]
    fn compressing_saves_more_than_half_of_it_and_not_nearly_all() {
        let of = |part: fn(Exchange) -> Vec<u8>| -> f64 {
            let all: Vec<Vec<Vec<u8>>> = (0..8)
                .map(|connection| exchanges(connection, 1, 60).into_iter().map(part).collect())
                .collect();
            // As TCP would cut it.
            let cut = |text: &Vec<u8>| text[..text.len().min(1400)].to_vec();
            let all: Vec<Vec<Vec<u8>>> =
                all.iter().map(|of| of.iter().map(cut).collect()).collect();
            interleaved_share_saved(&all)
        };
        let (asked, answered) = (of(|e| e.question), of(|e| e.answer));
        eprintln!("saved: {asked:.3} {answered:.3}");
        assert!((0.4..0.85).contains(&asked), "{asked}");
        assert!((0.3..0.8).contains(&answered), "{answered}");
    }
}
