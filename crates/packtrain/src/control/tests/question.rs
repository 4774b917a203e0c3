//! Asking without waiting.

use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::task::Poll;

use super::*;
use crate::control::{ControlError, Question};

/// Reads on as it becomes readable, as a loop would.
fn answer_of(question: &mut Question) -> Result<Response, ControlError> {
    loop {
        if let Poll::Ready(answer) = question.read() {
            return answer;
        }
        let fd = question.as_fd();
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], None).unwrap();
    }
}

#[test]
fn an_answer_that_comes_in_pieces_is_put_together() {
    let name = unique_name();
    // More than a socket holds, and than is read at once.
    let text = "x".repeat(1 << 20);
    let long = Response::Status(serde_json::json!({ "name": text }));
    let answer = long.clone();
    let serving = Serving::start(&name, move |_| answer.clone());
    let mut question = Question::ask(&name, &Request::Status {}).unwrap();
    assert_eq!(answer_of(&mut question).unwrap(), long);
    assert_eq!(serving.stop(), 1);
}

#[test]
fn who_does_not_answer_holds_nobody_up() {
    let name = unique_name();
    assert!(matches!(
        Question::ask(&name, &Request::Status {}),
        Err(ControlError::NotRunning)
    ));
    // It listens, and takes nobody in, as a process that is stopped.
    let stopped = UnixListener::bind_addr(&socket_address(&name).unwrap()).unwrap();
    let mut questions = Vec::new();
    let full = loop {
        match Question::ask(&name, &Request::Status {}) {
            Ok(question) => questions.push(question),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, ControlError::Silent(_)), "{full}");
    assert!(matches!(questions[0].read(), Poll::Pending));
    drop(stopped);
    assert!(matches!(
        answer_of(&mut questions[0]),
        Err(ControlError::NotRunning)
    ));
}
