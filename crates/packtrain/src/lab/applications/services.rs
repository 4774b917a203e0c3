//! Servers and their clients as people use them: names, files, the Web, calls. The peer serves, but where it is said.

use super::autoconfiguration::{DNSMASQ, dnsmasq};
use super::outcome::Outcome;
use super::stage::{HOST, ListensBy, PEER, PYTHON, SOON, Stage, serve, unexpected};
use super::{Application, Need};
use crate::lab::namespaces::run;
use crate::lab::stream::pattern;
use crate::lab::{Error, Result, wait_for};

pub(super) const ALL: &[Application] = &[
    Application::new("dns", "names by UDP, and one too long for it by TCP", dns)
        .needs(&[DNSMASQ, Need::Program("dig", "bind9-dnsutils")])
        .with_ports(),
    Application::new(
        "tftp",
        "a file by TFTP, which answers from another port",
        tftp,
    )
    .needs(&[DNSMASQ, CURL])
    .with_ports(),
    Application::new(
        "http",
        "three hundred short connections, each with a file",
        http,
    )
    .needs(&[CURL])
    .with_ports(),
    Application::new("ftp", "files by FTP, active and passive, both ways", ftp)
        .needs(&[Need::Module("pyftpdlib", "python3-pyftpdlib")])
        .with_ports(),
    Application::new("smb", "files by SMB, both ways", smb)
        .needs(&[Need::Module("impacket", "python3-impacket")])
        .with_ports(),
    Application::new(
        "nfs",
        "files by NFSv4, both ways, from a server in user space",
        nfs,
    )
    .needs(&[
        Need::Program("ganesha.nfsd", "nfs-ganesha-vfs"),
        Need::Program("nfs-cp", "libnfs-utils"),
    ])
    .with_ports(),
    Application::new("rsync", "a tree of files, there and back", rsync)
        .needs(&[Need::Program("rsync", "rsync")])
        .with_ports(),
    Application::new("ssh", "a file through a session of SSH, both ways", ssh)
        .needs(&[
            Need::Program("ssh", "openssh-client"),
            Need::Program("/usr/sbin/sshd", "openssh-server"),
        ])
        .with_ports(),
    Application::new("sip", "calls with speech, to the host and from it", sip)
        .needs(&[
            Need::Program("sipp", "sip-tester"),
            Need::Program(SPEECH, "sip-tester"),
        ])
        .with_ports(),
];

const CURL: Need = Need::Program("curl", "curl");
const SCRIPT: &str = include_str!("services.py");
const FILE_BYTES: usize = 1 << 20;

/// A file to be served, in a directory of its own.
fn shared(stage: &Stage, name: &str, bytes: usize) -> Result<String> {
    let directory = stage.path("shared");
    let file_error = |source| Error::File {
        path: directory.clone(),
        source,
    };
    std::fs::create_dir_all(&directory).map_err(file_error)?;
    stage.write(&format!("shared/{name}"), contents(bytes))?;
    Ok(directory)
}

fn contents(bytes: usize) -> Vec<u8> {
    let mut contents = vec![0; bytes];
    pattern(0, &mut contents);
    contents
}

fn is_right(stage: &Stage, name: &str, bytes: usize) -> Result<bool> {
    Ok(stage.read(name)? == contents(bytes))
}

fn dns(stage: &Stage) -> Result<Outcome> {
    const NAMES: u8 = 12;
    let long = "x".repeat(200);
    let mut records: Vec<String> = (1..=NAMES)
        .map(|n| format!("--host-record=host{n}.lab.test,192.0.2.{n},2001:db8::{n}"))
        .collect();
    // Four of these are too long for a datagram of 512 bytes.
    records.extend((0..4).map(|n| format!("--txt-record=long.lab.test,{n}{long}")));
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let mut outcome = Outcome::new();
    let ends = [
        (
            "of the peer",
            &stage.peer.namespace,
            &stage.host.namespace,
            PEER,
        ),
        (
            "of the host",
            &stage.host.namespace,
            &stage.peer.namespace,
            HOST,
        ),
    ];
    for (whose, server, client, address) in ends {
        let _server = dnsmasq(server, &records, ListensBy::Udp, 53)?;
        let at = format!("@{address}");
        let ask = |words: &[&str]| -> Result<Vec<String>> {
            let alone = ["dig", "+short", "+tries=1", "+time=2", &at];
            let said = client.exec([&alone[..], words].concat())?;
            Ok(said.lines().map(str::to_owned).collect())
        };
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for n in 1..=NAMES {
            v4.extend(ask(&[&format!("host{n}.lab.test"), "A"])?);
            v6.extend(ask(&[&format!("host{n}.lab.test"), "AAAA"])?);
        }
        let by_tcp = ask(&["+tcp", "host1.lab.test"])?;
        let texts = ask(&["+noedns", "long.lab.test", "TXT"])?;
        let right = v4.len() == usize::from(NAMES) && v6.len() == usize::from(NAMES);
        outcome = outcome
            .with(&format!("names {whose}"), v4.len() + v6.len())
            .wanted(&format!("{whose}, all"), right, true)
            .wanted(&format!("{whose}, by TCP"), by_tcp, vec!["192.0.2.1"])
            .with(
                &format!("{whose}, long"),
                texts.iter().map(String::len).sum::<usize>(),
            );
    }
    Ok(outcome)
}

fn tftp(stage: &Stage) -> Result<Outcome> {
    let directory = shared(stage, "file", FILE_BYTES)?;
    let root = format!("--tftp-root={directory}");
    let _server = dnsmasq(
        &stage.peer.namespace,
        &["--port=0", "--enable-tftp", &root],
        ListensBy::Udp,
        69,
    )?;
    let (from, to) = (format!("tftp://{PEER}/file"), stage.path("got"));
    let words = [
        "curl",
        "-sS",
        "-m",
        "20",
        "--tftp-blksize",
        "1428",
        "-o",
        &to,
        &from,
    ];
    stage.host.namespace.exec(words)?;
    Ok(Outcome::new()
        .wanted("bytes", stage.read("got")?.len(), FILE_BYTES)
        .wanted("right", is_right(stage, "got", FILE_BYTES)?, true))
}

fn http(stage: &Stage) -> Result<Outcome> {
    const CONNECTIONS: usize = 300;
    const BYTES: usize = 3000;
    let directory = shared(stage, "file", BYTES)?;
    let own = PEER.to_string();
    let words = [
        PYTHON,
        "-m",
        "http.server",
        "8000",
        "--bind",
        &own,
        "--directory",
        &directory,
    ];
    // It closes each connection, as HTTP/1.0 does.
    let _server = serve(&stage.peer.namespace, &words, ListensBy::Tcp, 8000)?;
    let (from, to) = (
        format!("http://{PEER}:8000/file?[1-{CONNECTIONS}]"),
        stage.path("got"),
    );
    let words = [
        "sh",
        "-c",
        &format!(
            "curl -sS -m 60 -w '%{{stderr}}%{{num_connects}} %{{http_code}}\\n' '{from}' >{to} 2>{to}-said"
        ),
    ];
    stage.host.namespace.exec(words)?;
    let said = stage.text("got-said");
    let connections = said.lines().filter(|&line| line == "1 200").count();
    let got = stage.read("got")?;
    let right =
        got.len() == CONNECTIONS * BYTES && got.chunks(BYTES).all(|chunk| chunk == contents(BYTES));
    Ok(Outcome::new()
        .wanted("connections", connections, CONNECTIONS)
        .with("bytes", got.len())
        .wanted("right", right, true))
}

/// A server and a client of the script, of one protocol.
fn by_script(stage: &Stage, protocol: &str, port: u16) -> Result<Outcome> {
    let directory = shared(stage, "file", FILE_BYTES)?;
    let own = PEER.to_string();
    let serving = format!("serve-{protocol}");
    let words = [PYTHON, "-c", SCRIPT, &serving, &own, &directory];
    let _server = serve(&stage.peer.namespace, &words, ListensBy::Tcp, port)?;
    let outcome = stage.python(&stage.host.namespace, SCRIPT, &[protocol, &own, "file"])?;
    let put = || is_right(stage, "shared/file-put", FILE_BYTES);
    // By FTP the client knows before the server has closed its file.
    let _ = wait_for("the file to be whole", SOON, || put().unwrap_or(false));
    Ok(outcome.wanted("put", put()?, true))
}

fn ftp(stage: &Stage) -> Result<Outcome> {
    by_script(stage, "ftp", 2121)
}

fn smb(stage: &Stage) -> Result<Outcome> {
    by_script(stage, "smb", 445)
}

fn nfs(stage: &Stage) -> Result<Outcome> {
    const FILES: usize = 12;
    /// Small ones: libnfs 4 cannot put larger ones where this server has them.
    const BYTES: usize = 1000;
    let directory = shared(stage, "file", FILE_BYTES)?;
    let made = std::fs::create_dir_all(stage.file("recovery"));
    made.map_err(|source| Error::File {
        path: stage.path("recovery"),
        source,
    })?;
    let configuration = format!(
        "NFS_CORE_PARAM {{
    Protocols = 4;
    Enable_NLM = false;
    Enable_RQUOTA = false;
}}
NFSv4 {{
    Graceless = true;
    RecoveryBackend = fs;
    RecoveryRoot = {recovery};
}}
EXPORT {{
    Export_Id = 1;
    Path = {directory};
    Pseudo = /files;
    Access_Type = RW;
    Squash = None;
    SecType = sys;
    Protocols = 4;
    Transports = TCP;
    FSAL {{
        Name = VFS;
    }}
}}
LOG {{
    Default_Log_Level = WARN;
}}
",
        recovery = stage.path("recovery")
    );
    let configuration = stage.write("configuration", configuration)?;
    let (log, pid) = (stage.path("log"), stage.path("pid"));
    let words = [
        "ganesha.nfsd",
        "-F",
        "-f",
        &configuration,
        "-L",
        &log,
        "-p",
        &pid,
    ];
    let _server = serve(&stage.peer.namespace, &words, ListensBy::Tcp, 2049)?;
    let host = &stage.host.namespace;
    let at = |name: &str| format!("nfs://{PEER}/files/{name}?version=4");
    let own = stage.write("own", contents(BYTES))?;
    let mut right = 0;
    for number in 0..FILES {
        let name = format!("small-{number}");
        host.exec(["timeout", "10", "nfs-cp", &own, &at(&name)])?;
        right += usize::from(is_right(stage, &format!("shared/{name}"), BYTES)?);
    }
    let got = stage.path("got");
    host.exec(["timeout", "30", "nfs-cp", &at("file"), &got])?;
    let listed = host.exec(["timeout", "10", "nfs-ls", &at("")])?;
    Ok(Outcome::new()
        .wanted("put", right, FILES)
        .wanted("got", is_right(stage, "got", FILE_BYTES)?, true)
        .wanted("listed", listed.lines().count(), FILES + 1))
}

fn rsync(stage: &Stage) -> Result<Outcome> {
    const FILES: usize = 60;
    let (there, back) = (stage.path("there"), stage.path("back"));
    for directory in ["own/deep", "there", "back"] {
        let made = std::fs::create_dir_all(stage.file(directory));
        made.map_err(|source| Error::File {
            path: stage.path(directory),
            source,
        })?;
    }
    for number in 0..FILES {
        let place = if number % 2 == 0 { "own" } else { "own/deep" };
        stage.write(&format!("{place}/{number}"), contents(number * 1000))?;
    }
    let configuration = format!(
        "port = 8730\naddress = {PEER}\nuse chroot = no\nuid = root\ngid = root\n\
         [files]\npath = {there}\nread only = no\n"
    );
    let configuration = stage.write("configuration", configuration)?;
    let file = format!("--config={configuration}");
    let words = ["rsync", "--daemon", "--no-detach", &file];
    let _server = serve(&stage.peer.namespace, &words, ListensBy::Tcp, 8730)?;
    let host = &stage.host.namespace;
    let (own, at) = (
        format!("{}/", stage.path("own")),
        format!("rsync://{PEER}:8730/files/"),
    );
    host.exec(["rsync", "-a", "--timeout=20", &own, &at])?;
    host.exec(["rsync", "-a", "--timeout=20", &at, &format!("{back}/")])?;
    let same = run("diff", ["-r", &stage.path("own"), &back]).is_ok();
    let came = run("find", [back.as_str(), "-type", "f"])?;
    Ok(Outcome::new()
        .wanted("files", came.lines().count(), FILES)
        .wanted("right", same, true))
}

fn ssh(stage: &Stage) -> Result<Outcome> {
    let (server_key, key) = (stage.path("server-key"), stage.path("key"));
    for key in [&server_key, &key] {
        run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key])?;
    }
    let public = stage.text("key.pub");
    let authorized = stage.write("authorized", public)?;
    let configuration = stage.write(
        "configuration",
        format!(
            "ListenAddress {PEER}:2222\nHostKey {server_key}\nAuthorizedKeysFile {authorized}\n\
             PidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n"
        ),
    )?;
    // The directory into which it gives up its rights; in a /run of its own.
    let start = format!(
        "mount -t tmpfs tmpfs /run && mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -f {configuration}"
    );
    let _server = serve(
        &stage.peer.namespace,
        &["sh", "-c", &start],
        ListensBy::Tcp,
        2222,
    )?;
    let own = stage.write("own", contents(FILE_BYTES))?;
    let (there, back) = (stage.path("there"), stage.path("back"));
    let session = |command: &str, redirected: &str| {
        stage.host.namespace.sh(&format!(
            "ssh -F none -i {key} -p 2222 -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
             -o LogLevel=ERROR -o ConnectTimeout=10 root@{PEER} '{command}' {redirected}"
        ))
    };
    session(&format!("cat >{there}"), &format!("<{own}"))?;
    session(&format!("cat {there}"), &format!("</dev/null >{back}"))?;
    Ok(Outcome::new()
        .wanted("there", is_right(stage, "there", FILE_BYTES)?, true)
        .wanted("back", is_right(stage, "back", FILE_BYTES)?, true))
}

/// Eight seconds of G.711, by RTP.
const SPEECH: &str = "/usr/share/sip-tester/g711a.pcap";

fn sip(stage: &Stage) -> Result<Outcome> {
    const CALLS: &str = "10";
    // The scenario plays what it finds beside it.
    let directory = stage.path("speech");
    run(
        "sh",
        [
            "-c",
            &format!(
                "mkdir -p {directory}/pcap && ln -s /usr/share/sip-tester/*.pcap {directory}/pcap/"
            ),
        ],
    )?;
    let ends = [
        (
            "to the peer",
            &stage.host.namespace,
            HOST,
            &stage.peer.namespace,
            PEER,
        ),
        (
            "to the host",
            &stage.peer.namespace,
            PEER,
            &stage.host.namespace,
            HOST,
        ),
    ];
    let mut servers = Vec::new();
    for (_, _, _, at, own) in ends {
        let line = format!("sipp -sn uas -i {own} -p 5060 -mp 6000 -rtp_echo -nostdin");
        let words: Vec<&str> = line.split(' ').collect();
        servers.push(serve(at, &words, ListensBy::Udp, 5060)?);
    }
    // Both at once, for speech lasts.
    let calls = std::thread::scope(|scope| {
        let callers = ends.map(|(_, from, own, _, to)| {
            let line = format!(
                "cd {directory} && exec sipp -sn uac_pcap -i {own} -p 5070 -mp 16000 -m {CALLS} -r 20 -d 100 \
                 -timeout 30 -nostdin {to}:5060"
            );
            scope.spawn(move || successful(&from.sh(&line)?))
        });
        callers.map(|caller| caller.join().expect("it has no reason to panic"))
    });
    let mut outcome = Outcome::new();
    for ((way, ..), calls) in ends.into_iter().zip(calls) {
        outcome = outcome.wanted(&format!("calls {way}"), calls?, CALLS);
    }
    Ok(outcome)
}

/// How many calls were, as sipp says at its end.
fn successful(said: &str) -> Result<String> {
    let line = said
        .lines()
        .rev()
        .find(|line| line.contains("Successful call"));
    let number = line.and_then(|line| line.split_whitespace().last());
    number
        .map(str::to_owned)
        .ok_or_else(|| unexpected("sipp", said))
}
