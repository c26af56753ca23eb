//! The standard variables of OpenTelemetry for traces.
//! In: a function that reads a variable → out: options of the exporter, or the variable that is wrong.
//! Uses percent-decoding. Never: the environment itself, sockets.
//! Changed here: which variables are obeyed.

use fanwire_telemetry::Sampler;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;

/// Where traces go, and which.
#[derive(Clone, Debug)]
pub(crate) struct TraceOptions {
    pub(crate) endpoint: Uri,
    pub(crate) headers: HeaderMap,
    /// Authorities of the collector's certificate, a file; "" = those of the system.
    pub(crate) certificate: String,
    /// Names and values.
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) sampler: Sampler,
}

impl TraceOptions {
    /// Reads the variables.
    ///
    /// # Errors
    /// A text that names the variable and what it should be.
    pub(crate) fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let read = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let of_traces = |name: &str| {
            let specific = name.replacen("OTLP_", "OTLP_TRACES_", 1);
            read(&specific).or_else(|| read(name))
        };
        if let Some(protocol) = of_traces("OTEL_EXPORTER_OTLP_PROTOCOL")
            && protocol != "http/protobuf"
        {
            return Err(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL is {protocol:?}, expected http/protobuf, which collectors accept on port 4318"
            ));
        }
        let endpoint = match read("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
            Some(endpoint) => endpoint,
            None => {
                let base =
                    read("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_else(|| DEFAULT.to_owned());
                format!("{}/v1/traces", base.trim_end_matches('/'))
            }
        };
        let uri: Option<Uri> = endpoint.parse().ok();
        let is_http = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
        let uri = uri.filter(|uri| is_http(uri) && uri.host().is_some());
        let endpoint = uri.ok_or_else(|| {
            format!(
                "OTEL_EXPORTER_OTLP_ENDPOINT gives {endpoint:?}, expected a URL such as {DEFAULT}"
            )
        })?;
        let mut headers = HeaderMap::new();
        let name = "OTEL_EXPORTER_OTLP_HEADERS";
        for (key, value) in pairs(name, of_traces(name))? {
            let header = key.parse::<HeaderName>().ok().zip(HeaderValue::from_str(&value).ok());
            let (key, value) =
                header.ok_or_else(|| format!("{name} has no valid header {key:?}"))?;
            headers.insert(key, value);
        }
        let name = "OTEL_RESOURCE_ATTRIBUTES";
        let mut resource = pairs(name, read(name))?;
        let service = read("OTEL_SERVICE_NAME");
        if service.is_some() || !resource.iter().any(|(key, _)| key == SERVICE) {
            resource.retain(|(key, _)| key != SERVICE);
            resource.push((SERVICE.to_owned(), service.unwrap_or_else(|| "fanwire".to_owned())));
        }
        let certificate = of_traces("OTEL_EXPORTER_OTLP_CERTIFICATE").unwrap_or_default();
        let ratio = read("OTEL_TRACES_SAMPLER_ARG");
        let sampler = sampler(read("OTEL_TRACES_SAMPLER").as_deref(), ratio.as_deref())?;
        Ok(Self { endpoint, headers, certificate, resource, sampler })
    }
}

/// The sampler with this name.
fn sampler(name: Option<&str>, argument: Option<&str>) -> Result<Sampler, String> {
    let name = name.unwrap_or("parentbased_always_on");
    let (follows_parent, root) = match name.strip_prefix("parentbased_") {
        Some(root) => (true, root),
        None => (false, name),
    };
    let ratio = match root {
        "always_on" => 1.0,
        "always_off" => 0.0,
        "traceidratio" => {
            let ratio = argument.unwrap_or("1").parse::<f64>().ok();
            ratio.filter(|ratio| (0.0..=1.0).contains(ratio)).ok_or_else(|| {
                format!("OTEL_TRACES_SAMPLER_ARG is {argument:?}, expected a number from 0 to 1")
            })?
        }
        _ => {
            return Err(format!(
                "OTEL_TRACES_SAMPLER is {name:?}, expected always_on, always_off or traceidratio, or one of them after parentbased_"
            ));
        }
    };
    Ok(Sampler { follows_parent, ratio })
}

/// Parses `a=b,c=d`, values percent-encoded.
fn pairs(name: &str, text: Option<String>) -> Result<Vec<(String, String)>, String> {
    let text = text.unwrap_or_default();
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let key = key.trim();
        (!key.is_empty()).then(|| (key.to_owned(), value.into_owned()))
    };
    let wrong = |part: &str| format!("{name} has {part:?}, expected name=value, percent-encoded");
    parts.map(|part| pair(part).ok_or_else(|| wrong(part))).collect()
}

const DEFAULT: &str = "http://localhost:4318";
const SERVICE: &str = "service.name";

#[cfg(test)]
mod tests {
    use super::*;

    fn options(variables: &[(&str, &str)]) -> Result<TraceOptions, String> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        TraceOptions::of(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn variables_of_traces_win_over_those_of_all_signals() {
        let plain = options(&[]).expect("defaults");
        assert_eq!(plain.endpoint, "http://localhost:4318/v1/traces");
        assert_eq!(plain.resource, [(SERVICE.to_owned(), "fanwire".to_owned())]);
        assert_eq!(plain.sampler, Sampler { follows_parent: true, ratio: 1.0 });
        let all = options(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://all:1/base/"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=1%202, b=3"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=x,zone=%C3%BC"),
            ("OTEL_SERVICE_NAME", "chat"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ])
        .expect("valid");
        assert_eq!(all.endpoint, "https://all:1/base/v1/traces");
        assert_eq!(
            (&all.headers["a"], &all.headers["b"]),
            (&"1 2".parse().expect("a"), &"3".parse().expect("b"))
        );
        let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(all.resource, [text("zone", "ü"), text(SERVICE, "chat")]);
        assert_eq!(all.sampler, Sampler { follows_parent: false, ratio: 0.25 });
        let own = options(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own/x")]);
        assert_eq!(own.expect("valid").endpoint, "http://own/x");
    }

    #[test]
    fn a_wrong_variable_is_named() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "novalue"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=1"),
            ("OTEL_RESOURCE_ATTRIBUTES", "=x"),
            ("OTEL_TRACES_SAMPLER", "sometimes"),
        ] {
            let error = options(&[(name, value)]).expect_err(value);
            assert!(error.contains(name), "{error}");
        }
        let half = [("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "half")];
        assert!(options(&half).expect_err("half").contains("OTEL_TRACES_SAMPLER_ARG"));
    }
}
