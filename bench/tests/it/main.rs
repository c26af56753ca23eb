//! The program as it is called: the bare loop and a comparison of it with itself.
//! In: command lines → out: exit codes, and frames on sockets.
//! Uses the built binary; asserts no speeds.
//! What needs a Fanwire server is a scenario, not a test.
#![forbid(unsafe_code)]

use fanwire_bench::awake::Awake;
use fanwire_bench::bare::trigger;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn the_bare_loop_sends_each_publication_to_every_subscriber() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_fanwire-bench"));
    let mut bare = program.arg("bare").stdout(Stdio::piped()).spawn().expect("the built program");
    let mut address = String::new();
    let stdout = bare.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut address).expect("its address");

    let connect = || TcpStream::connect(address.trim()).expect("it listens");
    let mut control = connect();
    let mut subscribers = [connect(), connect(), connect()];
    control.write_all(&[trigger(200), trigger(3)].concat()).expect("open");
    for subscriber in &mut subscribers {
        let mut bytes = [0; 204 + 5];
        subscriber.read_exact(&mut bytes).expect("two frames");
        assert_eq!(bytes[..5], [0x81, 126, 0, 200, b'x']);
        assert_eq!(bytes[204..], [0x81, 3, b'x', b'x', b'x']);
    }
    drop(control);
    assert!(bare.wait().expect("it runs").success(), "it ends with its control connection");
}

#[test]
fn a_bar_that_is_missed_is_an_exit_code() {
    let run = |bar: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_fanwire-bench"));
        program.args("fanout --noise --subscribers 5 --rounds 1 --seconds 0.1".split(' '));
        program.args(["--generator-core", "0", "--bar", bar]);
        program.output().expect("the built program")
    };
    let met = run("0");
    assert!(met.status.success(), "{}", String::from_utf8_lossy(&met.stderr));
    let missed = run("1000");
    assert!(String::from_utf8_lossy(&missed.stdout).contains("MISSED"));
    assert!(!missed.status.success());
}

#[test]
fn a_core_is_kept_awake_by_a_child_of_the_idle_class_that_ends_with_the_value() {
    let program = Path::new(env!("CARGO_BIN_EXE_fanwire-bench"));
    let awake = Awake::keep(program, &[0, 0]).expect("chrt, taskset and a core 0");
    let pids: Vec<u32> = awake.pids().collect();
    let [pid] = pids[..] else { panic!("one for one core: {pids:?}") };
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // Fields of proc_pid_stat(5) behind the name, from the third: 39 is the core, 41 the class, of which 5 is idle.
    let stat = state().expect("it spins");
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    assert_eq!([fields[39 - 3], fields[41 - 3]], ["0", "5"], "{stat}");
    drop(awake);
    assert!(state().is_err(), "it is gone");
}

#[test]
fn a_spinner_whose_parent_is_gone_does_not_spin() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_fanwire-bench"));
    let status = program.args(["spin", "--parent", "1"]).status().expect("the built program");
    assert!(!status.success());
}
