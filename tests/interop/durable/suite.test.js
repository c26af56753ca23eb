// The published conformance suite of Durable Streams, as vitest collects it.
// In: FANWIRE_STREAMS, the URL of a server that asks for no key → out: its tests, by groups.
// May use the suite only; run.js decides which groups run.
// What is tested is changed by the suite's version in package.json.

import { runConformanceTests } from '@durable-streams/server-conformance-tests';

runConformanceTests({ baseUrl: process.env.FANWIRE_STREAMS });
