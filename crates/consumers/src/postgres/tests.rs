//! Tests of DSNs, literals and statements of the outbox.
//! In: texts → out: texts.
//! Uses values only. Never: a database, which tests/it has.
//! A parameter of pgx is a line here.

use super::dsn::Dsn;
use super::*;

#[test]
fn parameters_of_pgx_leave_the_dsn() {
    let url = "postgres://u:p@h:5/d?pool_max_conns=7&sslmode=verify-full&connect_timeout=3&pool_max_conn_lifetime=1h";
    let dsn = Dsn::split(url);
    assert_eq!(dsn.rest, "postgres://u:p@h:5/d?connect_timeout=3");
    assert_eq!((dsn.connections_max, &*dsn.sslmode), (Some(7), "verify-full"));
    assert_eq!(Dsn::split("postgresql://h/d?sslmode=disable").rest, "postgresql://h/d");
    assert_eq!(Dsn::split("postgres://h/d").rest, "postgres://h/d");
    let words =
        Dsn::split("host=h user=u sslrootcert=/ca.pem pool_max_conns=2 statement_cache_capacity=0");
    assert_eq!(words.rest, "host=h user=u");
    assert_eq!((words.connections_max, &*words.sslrootcert), (Some(2), "/ca.pem"));
}

#[test]
fn a_dsn_that_cannot_be_read_is_named_without_its_password() {
    for wrong in
        ["postgres://u:secret@h:x/d", "postgres://u:secret@h/d?sslmode=y", "host=h secret=1 z=2"]
    {
        let error = PgServer::new(wrong, &Default::default(), "dsn").err().expect("it is wrong");
        assert!(error.key == "dsn" && !error.reason.contains("secret@"), "{error:?}");
    }
}

#[test]
fn the_lock_has_the_name_that_centrifugo_gives_it() {
    let options =
        OutboxOptions { outbox_table_name: "app.outbox".to_owned(), ..OutboxOptions::default() };
    let sql = select(&options, "my_outbox", 3, &columns_of(false, false));
    assert!(
        sql.contains("pg_advisory_xact_lock(hashtext('centrifugo_partition_lock_my_outbox3'))")
    );
    assert!(sql.ends_with(" 0 FROM app.outbox AS t WHERE t.partition = 3"), "{sql}");
}

#[test]
fn ids_of_any_type_are_elements_of_an_array() {
    let ids = ["1", "a'b", r#"c"d\e"#].map(str::to_owned);
    assert_eq!(array(&ids), r#"'{"1","a''b","c\"d\\e"}'"#);
}
