//! The services of the listeners besides those of clients: the server API, and the pages of operators.
//! In: requests of a listener → out: responses.
//! Uses axum; never a socket.
//! Changed here: only the list of modules. `root_service` selects the service, `api_service` serves the API, `command_stream` its long
//! requests, `admin` the admin page, `routes` the other paths.

mod admin;
pub(crate) mod api_service;
pub(crate) mod command_stream;
mod plain_publish;
pub(crate) mod root_service;
pub(crate) mod routes;
