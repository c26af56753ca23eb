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
fn parameters_of_the_server_are_settings_of_the_session() {
    for (dsn, rest, settings) in [
        (
            "postgres://u@h/d?search_path=app,public&statement_timeout=5s&TimeZone=Europe/Berlin",
            "postgres://u@h/d",
            " -c search_path=app,public -c statement_timeout=5s -c TimeZone=Europe/Berlin",
        ),
        (
            "postgres://h/d?sslmode=disable&search_path=a%20b%5C,%C3%BC&options=-c%20x.y%3D1",
            "postgres://h/d?options=-c%20x.y%3D1",
            r" -c search_path=a\ b\\,ü",
        ),
        ("host=h search_path='a, b' x='it\\'s'", "host=h", r" -c search_path=a,\ b -c x=it's"),
        ("host=h  lock_timeout=\nuser=u", "host=h  user=u", " -c lock_timeout="),
        ("host = h dbname='my db'", "host = h dbname='my db'", ""),
    ] {
        let split = Dsn::split(dsn);
        assert_eq!((split.rest.as_str(), split.settings.as_str()), (rest, settings), "{dsn}");
    }
    let dsn =
        "postgres://h/d?options=-c%20geqo%3Doff&search_path=app&keepalives_count=3&sslmode=disable";
    assert!(PgServer::new(dsn, &Default::default(), "dsn").is_ok());
}

#[test]
fn parameters_of_libpq_are_obeyed_left_out_or_refused() {
    let dsn = Dsn::split(
        "host=h database=d sslmode='verify-ca' sslcert=/c.pem sslkey=/k.pem keepalives_count=3 \
         fallback_application_name=f application_name=a gssencmode=disable client_encoding=UTF8",
    );
    let rest = "application_name=f host=h dbname=d keepalives_retries=3 application_name=a";
    assert_eq!((dsn.rest.as_str(), dsn.settings.as_str()), (rest, ""));
    assert_eq!((&*dsn.sslmode, &*dsn.sslcert, &*dsn.sslkey), ("verify-ca", "/c.pem", "/k.pem"));
    for unsafe_to_leave_out in ["passfile", "sslcrl", "require_auth", "service"] {
        let dsn = format!("host=h user=u {unsafe_to_leave_out}=x");
        let error = PgServer::new(&dsn, &Default::default(), "dsn").err().expect("it is refused");
        assert!(error.reason.contains(unsafe_to_leave_out), "{error:?}");
    }
}

#[test]
fn a_dsn_that_cannot_be_read_is_named_without_its_password() {
    for wrong in
        ["postgres://u:secret@h:x/d", "postgres://u:secret@h/d?sslmode=y", "host=h passfile=1 z=2"]
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
