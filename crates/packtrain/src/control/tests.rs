//! Both ends against each other, in one process.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;
use crate::events::{Record, Stamp, What};

mod followers;
mod question;

/// Abstract names are shared by all of a namespace: each test takes its own.
fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(
        "test-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Serves `name` on a thread until dropped.
struct Serving {
    stop: std::sync::Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u32>>,
}

impl Serving {
    fn start(name: &str, answer: impl Fn(Request) -> Response + Send + 'static) -> Serving {
        let mut server = ControlServer::bind(name).unwrap();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut answered = 0;
            while !stopped.load(Ordering::Relaxed) {
                wait_readable(&server, 20);
                server.handle(&mut |request, _| {
                    answered += 1;
                    answer(request).into()
                });
            }
            answered
        });
        Serving {
            stop,
            thread: Some(thread),
        }
    }

    /// How many requests were answered.
    fn stop(mut self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn wait_readable(server: &ControlServer, wait_ms: i64) -> bool {
    let fd = server.fd();
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: wait_ms * 1_000_000,
    };
    assert!(
        wait_ms < 1000,
        "a timespec's nanoseconds are less than a second"
    );
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&wait)).unwrap() > 0
}

fn document() -> Response {
    Response::Status(serde_json::json!({ "name": "pt0", "a": [1, 2.5, null] }))
}

fn raw(name: &str) -> UnixStream {
    let stream = UnixStream::connect_addr(&socket_address(name).unwrap()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    stream
}

fn answer_to(name: &str, bytes: &[u8]) -> String {
    let mut stream = raw(name);
    stream.write_all(bytes).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn a_request_is_answered_and_the_answer_comes_whole() {
    let name = unique_name();
    let large = Response::Status(serde_json::json!({ "text": "x".repeat(3 << 20) }));
    let expected = large.clone();
    let serving = Serving::start(&name, move |_| large.clone());
    assert_eq!(request(&name, Request::Status {}).unwrap(), expected);
    assert_eq!(serving.stop(), 1);
}

#[test]
fn a_name_is_taken_once_and_free_again_after() {
    let name = unique_name();
    let first = ControlServer::bind(&name).unwrap();
    let error = ControlServer::bind(&name).unwrap_err();
    assert!(matches!(error, BindError::InUse(_)), "{error}");
    drop(first);
    ControlServer::bind(&name).unwrap();
}

#[test]
fn without_a_line_the_answer_is_not_running() {
    let error = request(&unique_name(), Request::Status {}).unwrap_err();
    assert!(matches!(error, ControlError::NotRunning), "{error}");
}

#[test]
fn what_is_no_request_is_told_so_and_never_reaches_the_line() {
    let name = unique_name();
    let serving = Serving::start(&name, |_| document());
    for (bytes, reason) in [
        (&b"hello\n"[..], "not understood"),
        (b"{\"request\":\"reboot\"}\n", "not understood"),
        (b"{\"request\":\"status\",\"more\":1}\n", "not understood"),
        (b"\xff\xfe\n", "not understood"),
        (b"\n", "not understood"),
        (&[b'x'; 9000], "at most 8192 bytes"),
    ] {
        let answer = answer_to(&name, bytes);
        assert!(
            answer.contains("error") && answer.contains(reason),
            "{answer}"
        );
    }
    assert_eq!(serving.stop(), 0);
}

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let name = unique_name();
    let serving = Serving::start(&name, |_| document());
    let mut stream = raw(&name);
    for byte in b"{\"request\":\"status\"}\n" {
        stream.write_all(&[*byte]).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(
        serde_json::from_str::<Response>(&answer).unwrap(),
        document()
    );
    assert_eq!(serving.stop(), 1);
}

#[test]
fn silent_clients_never_lock_others_out() {
    let name = unique_name();
    let serving = Serving::start(&name, |_| document());
    let silent: Vec<UnixStream> = (0..100).map(|_| raw(&name)).collect();
    assert_eq!(request(&name, Request::Status {}).unwrap(), document());
    drop(silent);
    assert_eq!(serving.stop(), 1);
}

#[test]
fn a_client_that_does_not_read_does_not_stop_the_line() {
    let name = unique_name();
    let large = Response::Status(serde_json::json!({ "text": "x".repeat(3 << 20) }));
    let expected = large.clone();
    let serving = Serving::start(&name, move |_| large.clone());
    let mut deaf = raw(&name);
    deaf.write_all(b"{\"request\":\"status\"}\n").unwrap();
    assert_eq!(request(&name, Request::Status {}).unwrap(), expected);
    drop(deaf);
    assert_eq!(serving.stop(), 2);
}

#[test]
fn who_asked_the_line_to_end_is_told_at_once_and_hears_the_end() {
    let name = unique_name();
    let serving = Serving::start(&name, |_| Response::Done);
    let mut connection = Connection::open(&name).unwrap();
    assert_eq!(connection.ask(Request::Down {}).unwrap(), Response::Done);
    let error = connection
        .wait_for_end(Duration::from_millis(100))
        .unwrap_err();
    assert!(matches!(error, ControlError::Silent(_)), "{error}");
    serving.stop();
    connection.wait_for_end(Duration::from_secs(5)).unwrap();
}

#[test]
fn an_idle_server_is_not_readable_and_burns_no_time() {
    let name = unique_name();
    let mut server = ControlServer::bind(&name).unwrap();
    assert!(!wait_readable(&server, 10));
    let mut stream = raw(&name);
    assert!(wait_readable(&server, 900));
    server.handle(&mut |_, _| Response::Done.into()); // accepts
    assert!(!wait_readable(&server, 10), "a silent client");
    stream.write_all(b"{\"request\":\"down\"}\n").unwrap();
    assert!(wait_readable(&server, 900));
    server.handle(&mut |_, _| Response::Done.into());
    assert!(!wait_readable(&server, 10), "a parked client");
    drop(stream);
    assert!(wait_readable(&server, 900), "it hung up");
    server.handle(&mut |_, _| Response::Done.into());
    assert!(!wait_readable(&server, 10));
}

#[test]
fn an_answer_may_come_later_and_who_hung_up_meanwhile_is_missed_by_nobody() {
    let name = unique_name();
    let mut server = ControlServer::bind(&name).unwrap();
    let request = b"{\"request\":\"link_remove\",\"name\":\"eth1\"}\n";
    let mut askers = Vec::new();
    let mut streams = [raw(&name), raw(&name)];
    for stream in &mut streams {
        stream.write_all(request).unwrap();
    }
    while askers.len() < 2 {
        assert!(wait_readable(&server, 900));
        server.handle(&mut |request, asker| {
            assert_eq!(
                request,
                Request::LinkRemove {
                    name: "eth1".into()
                }
            );
            askers.push(asker);
            Reply::Later
        });
    }
    assert!(!wait_readable(&server, 10), "both wait");
    let [mut first, second] = streams;
    drop(second);
    assert!(wait_readable(&server, 900), "it hung up");
    server.handle(&mut |_, _| unreachable!());

    for _ in 0..2 {
        for &asker in &askers {
            server.answer_later(asker, &Response::Done);
        }
    }
    let mut answer = String::new();
    first.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "\"done\"\n", "once, and the connection ends");
    assert!(!wait_readable(&server, 10));
}

#[test]
fn who_waits_for_an_answer_is_not_pushed_out_by_silent_clients() {
    let name = unique_name();
    let mut server = ControlServer::bind(&name).unwrap();
    let mut waiting = raw(&name);
    waiting
        .write_all(b"{\"request\":\"link_remove\",\"name\":\"eth1\"}\n")
        .unwrap();
    let mut asker = None;
    while asker.is_none() {
        assert!(wait_readable(&server, 900));
        server.handle(&mut |_, from| {
            asker = Some(from);
            Reply::Later
        });
    }
    let silent: Vec<UnixStream> = (0..40).map(|_| raw(&name)).collect();
    while wait_readable(&server, 50) {
        server.handle(&mut |_, _| unreachable!());
    }
    server.answer_later(asker.unwrap(), &document());
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert_eq!(
        serde_json::from_str::<Response>(&answer).unwrap(),
        document()
    );
    drop(silent);
}

#[test]
fn who_waits_long_is_told_so_once_and_gets_the_answer_all_the_same() {
    let name = unique_name();
    let mut server = ControlServer::bind(&name).unwrap();
    let asking = {
        let name = name.clone();
        std::thread::spawn(move || {
            let mut told = 0;
            let request = Request::LinkRemove {
                name: "eth1".into(),
            };
            let answer = Connection::open(&name).unwrap().ask_patiently(
                request,
                Duration::from_millis(20),
                &mut || told += 1,
            );
            (answer.unwrap(), told)
        })
    };
    let mut asker = None;
    while asker.is_none() {
        assert!(wait_readable(&server, 900));
        server.handle(&mut |_, from| {
            asker = Some(from);
            Reply::Later
        });
    }
    assert!(!wait_readable(&server, 100));
    server.answer_later(asker.unwrap(), &Response::Done);
    assert_eq!(asking.join().unwrap(), (Response::Done, 1));
}
