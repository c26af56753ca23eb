//! The admin page and what it calls: login, and methods of the server API.
//! In: the configuration, the API → out: routes below `admin.handler_prefix`, as Centrifugo has them.
//! Uses axum and `login`. Never: a method of its own.
//! Changed here: paths and headers. The page is in `assets/admin`, passwords and tokens in `login`.

mod login;

use std::collections::HashMap;
use std::future::ready;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::{
    Form, Json, Router,
    body::Bytes,
    extract::{ConnectInfo, DefaultBodyLimit, FromRequest, Multipart, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use fanwire_api::http::HttpApi;
use fanwire_config::AdminOptions;
use fanwire_edge::is_own_origin;
use fanwire_telemetry::LogThrottle;
use serde_json::json;

use self::login::{LoginError, Logins, Role};

pub(super) struct Admin {
    http_api: HttpApi,
    logins: Logins,
    is_insecure: bool,
    /// Files of another page.
    folder: Option<PathBuf>,
    log_throttle: LogThrottle,
}

pub(super) fn routes(options: &AdminOptions, http_api: HttpApi) -> Router {
    let prefix = match options.handler_prefix.trim_matches('/') {
        "" => String::new(),
        prefix => format!("/{prefix}"),
    };
    let folder = (!options.web_path.is_empty()).then(|| PathBuf::from(&options.web_path));
    if let Some(folder) = folder.as_ref().filter(|folder| !folder.join("index.html").is_file()) {
        tracing::error!("admin.web_path: there is no {}", folder.join("index.html").display());
    }
    let files = match folder {
        Some(_) => Router::new()
            .route(&format!("{prefix}/"), get(file_of_folder))
            .route(&format!("{prefix}/{{*path}}"), get(file_of_folder)),
        None => FILES.iter().fold(Router::new(), |router, (name, kind, content)| {
            let answer = move || async move { page(kind, Bytes::from_static(content)) };
            router.route(&format!("{prefix}/{name}"), get(answer))
        }),
    };
    let files = match prefix.rsplit_once('/') {
        None => files,
        // Relative, because a proxy in front may have added more to the path.
        Some((_, last)) => {
            let page = format!("{last}/");
            files.route(&prefix, get(move || ready(Redirect::temporary(&page))))
        }
    };
    let admin = Admin {
        http_api,
        logins: Logins::new(options),
        is_insecure: options.insecure,
        folder,
        log_throttle: LogThrottle::default(),
    };
    let [form, commands] = [FORM_BYTES_MAX, BODY_BYTES_MAX].map(DefaultBodyLimit::max);
    files
        .route(&format!("{prefix}/admin/init"), get(init))
        .route(&format!("{prefix}/admin/auth"), post(auth).layer(form))
        .route(&format!("{prefix}/admin/api"), post(call).layer(commands))
        .with_state(Arc::new(admin))
}

impl Admin {
    /// Returns the role that the token of a request has.
    fn role(&self, headers: &HeaderMap) -> Option<Role> {
        if self.is_insecure {
            return Some(Role::Everything);
        }
        let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        let is_token = scheme.eq_ignore_ascii_case("token");
        self.logins.role(token.trim(), unix_now()).filter(|_| is_token)
    }
}

async fn init(State(admin): State<Arc<Admin>>, headers: HeaderMap) -> impl IntoResponse {
    let role = admin.role(&headers);
    Json(json!({
        "insecure": admin.is_insecure,
        "edition": "oss",
        "authenticated": role.is_some(),
        "read_only": role == Some(Role::Reading),
    }))
}

/// Takes the password of a form, `multipart/form-data` or urlencoded, and answers with a token.
async fn auth(
    State(admin): State<Arc<Admin>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    if let Err(refusal) = check_site(request.headers()) {
        return refusal.into_response();
    }
    let Some(password) = password(request).await else {
        return (StatusCode::BAD_REQUEST, "expected a form with a field password").into_response();
    };
    match admin.logins.log_in(&password, peer.ip(), unix_now()) {
        Ok(token) => Json(json!({ "token": token })).into_response(),
        Err(LoginError::WrongPassword) => {
            if let Some(repeats) = admin.log_throttle.record("password", Instant::now()) {
                tracing::warn!("a wrong password for the admin page, from {}{repeats}", peer.ip());
            }
            (StatusCode::BAD_REQUEST, "Bad Request").into_response()
        }
        Err(LoginError::TryLater(seconds)) => {
            let headers = [(header::RETRY_AFTER, seconds.to_string())];
            let text = "too many wrong passwords, try again later";
            (StatusCode::TOO_MANY_REQUESTS, headers, text).into_response()
        }
    }
}

/// Refuses what a page of another site sends (W3C Fetch Metadata §2.4): it could guess, or act, with the address of its reader. Over
/// plain HTTP browsers say so by `Origin` alone.
fn check_site(headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
    let is_foreign = match (headers.get("sec-fetch-site"), headers.get(header::ORIGIN)) {
        (Some(site), _) => site != "same-origin" && site != "none",
        (None, Some(origin)) => !is_own_origin(origin.to_str().ok(), headers),
        (None, None) => false,
    };
    if is_foreign { Err((StatusCode::FORBIDDEN, FOREIGN)) } else { Ok(()) }
}

async fn password(request: Request) -> Option<String> {
    let kind = request.headers().get(header::CONTENT_TYPE)?.to_str().ok()?.to_owned();
    if kind.starts_with("multipart/form-data") {
        let mut form = Multipart::from_request(request, &()).await.ok()?;
        while let Some(field) = form.next_field().await.ok()? {
            if field.name() == Some("password") {
                return field.text().await.ok();
            }
        }
        return None;
    }
    let Form(mut fields) =
        Form::<HashMap<String, String>>::from_request(request, &()).await.ok()?;
    fields.remove("password")
}

/// Runs commands in the form of the API's old path.
async fn call(
    State(admin): State<Arc<Admin>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    if let Err(refusal) = check_site(request.headers()) {
        return refusal.into_response();
    }
    let Some(role) = admin.role(request.headers()) else {
        return (StatusCode::UNAUTHORIZED, "Unauthorized: log in again").into_response();
    };
    let body = match Bytes::from_request(request, &()).await {
        Ok(body) => body,
        Err(refused) => return refused.into_response(),
    };
    let answer = admin.http_api.answer_admin(&body, peer, role == Role::Reading).await;
    answer.map(Into::into)
}

/// A file of `admin.web_path`; for another path its index, because pages have routes of their own.
async fn file_of_folder(State(admin): State<Arc<Admin>>, request: Request) -> Response {
    let folder = admin.folder.as_deref().unwrap_or(Path::new(""));
    let path = Path::new(request.uri().path().trim_start_matches('/'));
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    // The prefix may have any number of parts.
    let mut parts = if is_plain { path } else { Path::new("") };
    let file = loop {
        let file = folder.join(parts);
        if file.is_file() {
            break file;
        }
        let mut rest = parts.components();
        if rest.next().is_none() {
            break folder.join("index.html");
        }
        parts = rest.as_path();
    };
    let kind = kind_of(&file);
    match tokio::task::spawn_blocking(move || std::fs::read(file)).await {
        Ok(Ok(content)) => page(kind, content.into()),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn page(kind: &'static str, content: Bytes) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, content).into_response()
}

fn kind_of(file: &Path) -> &'static str {
    match file.extension().and_then(|name| name.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// No content of others, no frame, no script in the page; Centrifugo's page has styles in its elements.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
const FOREIGN: &str =
    "the request comes from a page of another site; a proxy in front must leave Host as it is";
const BODY_BYTES_MAX: usize = 1 << 20;
/// Most bytes of a form with a password.
const FORM_BYTES_MAX: usize = 16 << 10;

/// Name, content type and content of the files of the page.
const FILES: &[(&str, &str, &[u8])] = &[
    ("", "text/html; charset=utf-8", include_bytes!("../../assets/admin/index.html")),
    ("app.js", "text/javascript; charset=utf-8", include_bytes!("../../assets/admin/app.js")),
    ("style.css", "text/css; charset=utf-8", include_bytes!("../../assets/admin/style.css")),
];
