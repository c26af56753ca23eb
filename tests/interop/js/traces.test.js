// Traces by OpenTelemetry: an API call, the broker and the deliveries arrive at a collector, and proxies continue a trace.
// In: a small collector that decodes OTLP with npm protobufjs, a backend of proxies, a Redis stream → out: spans, headers, figures of the server.
// May use fetch and npm centrifuge; never the server's inside.
// Sampling and the header are tested in `telemetry/src/trace/tests.rs`, variables in `fanwire/src/traces/options.rs`.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { test } from 'node:test';

import protobuf from 'protobufjs';

import { startRedis } from '../redis.js';
import { API_KEY, eventually, run, start } from '../server.js';
import { ENCODINGS, connect, sdk, subscribe } from './clients.js';

/** The part of OTLP that is looked at (opentelemetry-proto, trace.proto). */
const { root } = protobuf.parse(`syntax = "proto3";
message Request { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
message Resource { repeated KeyValue attributes = 1; }
message ScopeSpans { repeated Span spans = 2; }
message Span { bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
  fixed64 start = 7; fixed64 end = 8; repeated KeyValue attributes = 9; Status status = 15; }
message Status { string message = 2; int32 code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { string string_value = 1; int64 int_value = 3; }`);
const RequestMessage = root.lookupType('Request');
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const hex = (bytes) => Buffer.from(bytes).toString('hex');
const values = (attributes) => Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue || Number(value.intValue)]));

async function listen(t, handler) {
  const server = createServer(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}`;
}

/** A collector: `spans` has what arrived. */
async function collector(t) {
  const found = { spans: [], resource: {}, headers: {} };
  found.url = await listen(t, async (request, response) => {
    const parts = await request.toArray();
    assert.deepEqual([request.method, request.url], ['POST', '/v1/traces']);
    found.headers = request.headers;
    for (const { resource, scopeSpans } of RequestMessage.decode(Buffer.concat(parts)).resourceSpans) {
      found.resource = values(resource.attributes);
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
        found.spans.push({ ...span, trace: hex(span.traceId), id: hex(span.spanId), parent: hex(span.parentSpanId), about: values(span.attributes) });
      }
    }
    response.writeHead(200, { 'Content-Type': 'application/x-protobuf' }).end();
  });
  return found;
}

async function traced(t, url, settings = {}, environment = {}) {
  const otel = { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_SERVICE_NAME: 'chat', ...environment };
  const server = await start({ prometheus: { enabled: true }, opentelemetry: { enabled: true, api: true }, ...settings }, otel);
  t.after(() => server.stop());
  return server;
}

const publish = (server, channel, headers = {}) => fetch(`${server.http}/api/publish`, {
  method: 'POST', headers: { 'X-API-Key': API_KEY, ...headers }, body: JSON.stringify({ channel, data: 1 }) });

test('a call, the broker and the deliveries are one trace, which continues that of the backend', async (t) => {
  const found = await collector(t);
  const server = await traced(t, found.url, { client: { insecure: true } }, { OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20b' });
  for (const encoding of ENCODINGS.slice(0, 2)) {
    const client = sdk(t, server, encoding);
    await connect(client);
    await subscribe(client, 'news');
  }
  await publish(server, 'news', { traceparent: `00-${TRACE}-${PARENT}-01` });
  await publish(server, 'none:x', { traceparent: 'garbage' });
  const span = (name, trace = TRACE) => found.spans.find((one) => one.name === name && one.trace === trace);
  await eventually(() => span('deliver'), 'the span of the deliveries');
  const call = span('/api/publish');
  assert.deepEqual([call.parent, call.kind, call.about], [PARENT, 2, { 'centrifugo.channel': 'news' }]);
  assert.deepEqual([span('broker publish').parent, span('deliver').parent], [call.id, call.id]);
  assert.deepEqual(span('deliver').about, { 'centrifugo.channel': 'news', subscribers: 2, at_once: 2, waited: 0, replaced: 0, dropped: 0, late: 0 });
  assert.ok(BigInt(call.end.toString()) > BigInt(call.start.toString()));
  const failed = found.spans.find(({ name, trace }) => name === '/api/publish' && trace !== TRACE);
  assert.deepEqual([failed.parent, failed.status.code, failed.about.code], ['', 2, 102]);
  const lines = ['a', 'none:x'].map((channel) => JSON.stringify({ publish: { channel, data: 1 } })).join('\n');
  await fetch(`${server.http}/api/stream`, { method: 'POST', headers: { 'X-API-Key': API_KEY }, body: lines });
  const commands = () => found.spans.filter(({ name }) => name === '/api/stream publish');
  await eventually(() => commands().length === 2, 'spans of the commands of a stream');
  const [first, second] = commands();
  assert.ok(first.trace !== second.trace && first.parent === '');
  assert.deepEqual(commands().map(({ about }) => about.code ?? 0), [0, 102]);
  assert.deepEqual([found.resource['service.name'], found.headers['x-tenant']], ['chat', 'a b']);
});

test('the message of a queue continues the trace of the program that sent it', async (t) => {
  const found = await collector(t);
  const redis = await startRedis();
  t.after(() => redis.stop());
  const consumer = { name: 'work', enabled: true, type: 'redis_stream', redis_stream: { address: redis.address, streams: ['work'], consumer_group: 'fanwire' } };
  await traced(t, found.url, { opentelemetry: { enabled: true, consuming: true }, consumers: [consumer] });
  const add = (channel, ...fields) => redis.ask(['XADD work * method publish payload', JSON.stringify({ channel, data: 1 }), ...fields].join(' '));
  await add('news', `traceparent 00-${TRACE}-${PARENT}-01`);
  await add('none:x', 'traceparent garbage');
  const consumed = await eventually(() => {
    const spans = found.spans.filter(({ name }) => name === 'consume publish');
    return spans.length === 2 && spans;
  }, 'the spans of two messages');
  const [first, refused] = consumed;
  assert.deepEqual([first.trace, first.parent, first.kind, first.about], [TRACE, PARENT, 5, { 'centrifugo.channel': 'news' }]);
  assert.deepEqual([refused.parent, refused.status.code, refused.about.code], ['', 2, 102]);
  const broker = found.spans.find(({ name, trace }) => name === 'broker publish' && trace === TRACE);
  assert.equal(broker.parent, first.id);
});

test('a backend of event proxies gets the trace of its call', async (t) => {
  const found = await collector(t);
  const seen = [];
  const backend = await listen(t, async (request, response) => {
    await request.toArray();
    seen.push(request.headers.traceparent);
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"result":{"user":"42"}}');
  });
  const server = await traced(t, found.url, { client: { proxy: { connect: { enabled: true, endpoint: backend } } } });
  await connect(sdk(t, server, ENCODINGS[0]));
  const span = await eventually(() => found.spans.find(({ name }) => name === 'proxy connect'), 'the span of the proxy');
  assert.deepEqual([seen[0], span.kind], [`00-${span.trace}-${span.id}-01`, 3]);
});

for (const [problem, answer] of [
  ['is down', undefined],
  ['answers HTML', (request, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<h1>hello</h1>')],
  ['never answers', () => {}],
]) {
  test(`a collector that ${problem} costs neither memory nor time`, async (t) => {
    const url = answer ? await listen(t, answer) : 'http://127.0.0.1:9';
    const server = await traced(t, url);
    const metric = async (name) => Number((await (await fetch(`${server.http}/metrics`)).text()).match(new RegExp(`^${name} (\\S+)$`, 'm'))?.[1]);
    const commands = Array.from({ length: 600 }, () => ({ publish: { channel: 'news', data: 1 } }));
    for (let number = 0; number < 5; number += 1) await server.api('batch', { commands });
    // A span for each batch and each of 3,000 publications: more than the queue of 2,048.
    const seconds = await metric('fanwire_api_command_duration_seconds_sum{protocol="http",method="batch"}');
    assert.ok(seconds < 5, `five calls took ${seconds} s: they waited for the collector`);
    await eventually(async () => (await metric('fanwire_opentelemetry_spans_dropped_total')) > 400, 'dropped spans');
    if (problem !== 'never answers') {
      await eventually(() => server.lines.some((line) => line.includes('spans are dropped')), 'a line of the log');
    }
    assert.ok(server.lines.filter((line) => line.includes('spans are dropped')).length <= 1, 'one line in a while');
  });
}

test('a share of the traces is recorded, and a wrong variable ends the start', async (t) => {
  const found = await collector(t);
  const server = await traced(t, found.url, {}, { OTEL_TRACES_SAMPLER: 'parentbased_always_off' });
  await publish(server, 'a');
  await publish(server, 'b', { traceparent: `00-${TRACE}-${PARENT}-01` });
  await eventually(() => found.spans.length >= 3, 'the spans of the sampled call');
  assert.deepEqual([...new Set(found.spans.map(({ trace }) => trace))], [TRACE]);
  const settings = { opentelemetry: { enabled: true }, http_server: { address: '127.0.0.1', port: 0 }, client: { token: { hmac_secret_key: 'a-secret-of-32-bytes-or-a-few-more' } }, http_api: { key: API_KEY } };
  const { code, text } = await run(['serve', '--config', 'config.json'], settings, {}, { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' });
  assert.equal(code, 1);
  assert.match(text, /OTEL_EXPORTER_OTLP_PROTOCOL is "grpc", expected http\/protobuf/);
});
