//! Profiles of the running server, at the paths of Go's net/http/pprof and so of Centrifugo.
//! In: requests for a CPU or heap profile → out: gzipped files for `go tool pprof` and Pyroscope, or a text with the reason.
//! Uses axum, and threads for blocking work. Never: runs anything between two requests.
//! Changed here: parameters and responses. How samples are taken lives in `cpu` and `heap`.

use std::time::Duration;

use axum::{
    Router,
    extract::{Query, rejection::QueryRejection},
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde::Deserialize;
use tokio::task::spawn_blocking;

use crate::cpu::{CpuProfileError, Recording};
use crate::heap;

/// The routes below a prefix.
pub fn routes(prefix: &str) -> Router {
    let prefix = prefix.trim_end_matches('/');
    let index = get(|| async { Html(INDEX) });
    let router = Router::new()
        .route(&format!("{prefix}/"), index.clone())
        .route(&format!("{prefix}/profile"), get(cpu_profile))
        .route(&format!("{prefix}/heap"), get(heap_profile));
    if prefix.is_empty() { router } else { router.route(prefix, index) }
}

#[derive(Deserialize)]
struct CpuQuery {
    seconds: Option<u64>,
}

/// Records for `seconds`. If the client leaves, the recording ends.
async fn cpu_profile(query: Result<Query<CpuQuery>, QueryRejection>) -> Response {
    let seconds = match query {
        Ok(Query(CpuQuery { seconds })) => seconds.unwrap_or(SECONDS),
        Err(_) => 0,
    };
    if !(1..=SECONDS_MAX).contains(&seconds) {
        let reason = format!("seconds is not a whole number from 1 to {SECONDS_MAX}\n");
        return (StatusCode::BAD_REQUEST, reason).into_response();
    }
    match spawn_blocking(Recording::start).await {
        Ok(Ok(recording)) => {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            match spawn_blocking(|| recording.finish()).await {
                Ok(profile) => file("profile", profile),
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        }
        Ok(Err(error @ CpuProfileError::Busy)) => {
            (StatusCode::CONFLICT, format!("{error}\n")).into_response()
        }
        Ok(Err(error)) => (StatusCode::NOT_IMPLEMENTED, format!("{error}\n")).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn heap_profile() -> Response {
    match spawn_blocking(heap::profile).await {
        Ok(Some(profile)) => file("heap", profile),
        Ok(None) => {
            let reason = "this build takes no samples of its allocations\n";
            (StatusCode::NOT_IMPLEMENTED, reason).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn file(name: &str, profile: Vec<u8>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    (headers, profile).into_response()
}

/// Length of a CPU profile if the request gives none, as in Go.
const SECONDS: u64 = 30;

/// The longest CPU profile.
const SECONDS_MAX: u64 = 300;

const INDEX: &str = "<!doctype html>
<title>Profiles</title>
<ul>
<li><a href=\"profile?seconds=30\">profile</a>: CPU time of the next 30 seconds
<li><a href=\"heap\">heap</a>: memory in use
</ul>
";
