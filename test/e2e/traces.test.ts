import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GatewayProcess, type Received } from '../support/gateway-process.js';
import { Place } from '../support/http-place.js';
import { HubPlace } from '../support/hub-place.js';
import { type CollectedSpan, TraceCollector } from '../support/trace-collector.js';

const CONTINUING = fileURLToPath(new URL('../fixtures/servers/continuing.mjs', import.meta.url));
const SERVER = 2;
const CLIENT = 3;
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;
let collector: TraceCollector;
beforeEach(async () => {
  collector = await TraceCollector.start();
});
afterEach(() => collector.close());

const toCollector = () => ({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '50' });

/** The params that the server got, as text. */
function receivedBy({ message }: Received): string {
  return message.result.content[0].text;
}

/** Parameters of a call of `github__merge` with these members of `_meta`. */
const merge = (meta: string) => `{"_meta":{${meta}},"arguments":{"n":1.0},"name":"github__merge"}`;

/** Checks that the two spans join client, gateway and server. */
function expectJoined(front: CollectedSpan, attempt: CollectedSpan, params: string): void {
  expect(front).toMatchObject({ traceId: TRACE, parentSpanId: '00f067aa0ba902b7', kind: SERVER });
  expect(attempt).toMatchObject({ traceId: TRACE, parentSpanId: front.spanId, kind: CLIENT });
  expect(params).toContain(`"traceparent":"00-${TRACE}-${attempt.spanId}-01"`);
  const [outer, inner] = [front, attempt].map((span) => [span.startTimeUnixNano, span.endTimeUnixNano].map(BigInt));
  expect(outer?.[0]).toBeLessThanOrEqual(inner?.[0] ?? 0n);
  expect(outer?.[1]).toBeGreaterThanOrEqual(inner?.[1] ?? 0n);
}

async function withGateway(
  options: Parameters<typeof GatewayProcess.start>[0],
  use: (gateway: GatewayProcess) => Promise<void>,
): Promise<void> {
  const gateway = await GatewayProcess.start(options);
  try {
    await use(gateway);
  } finally {
    await gateway.dispose();
  }
}

const servers = { github: { program: CONTINUING } };

describe('traces of a gateway on stdio', () => {
  it('join the client, both legs of the gateway, and the server', async () => {
    await withGateway({ servers, env: toCollector() }, async (gateway) => {
      const meta = `"a":1.0, "traceparent" : "${PARENT}","tracestate":"x=1","baggage":"k=v"`;
      const answer = await gateway.request('tools/call', merge(meta));
      const [front, attempt] = await collector.spansNamed('tools/call github__merge', 'tools/call merge');
      expectJoined(front, attempt, receivedBy(answer).replace(/ : /, ':'));
      // Nothing but the id of the span and the name of the tool differs.
      const expected = merge(meta).replace('00f067aa0ba902b7', attempt.spanId).replace('github__merge', 'merge');
      expect(receivedBy(answer)).toBe(expected);
      expect(front.attributes).toMatchObject({
        'mcp.method.name': 'tools/call',
        'gen_ai.tool.name': 'github__merge',
        'gen_ai.operation.name': 'execute_tool',
        'mcp.protocol.version': '2025-11-25',
        'network.transport': 'pipe',
        'trunkline.server.key': 'github',
        'trunkline.outcome': 'ok',
      });
      expect(attempt.attributes).toMatchObject({ 'gen_ai.tool.name': 'merge', 'trunkline.generation': 1 });
      expect(front.resource).toMatchObject({ 'service.name': 'trunkline' });
    });
  });

  it('go to the collector of the configuration with its headers and no others, the last ones at the end', async () => {
    const gateway = {
      tracing: { endpoint: collector.url, headers: { 'X-Key': '${' + 'OTEL_KEY}' }, insert: true, content: true },
    };
    const env = {
      OTEL_KEY: 'own-credential-1',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-other=other-credential-2',
    };
    await withGateway({ servers, gateway, env, args: ['-v'] }, async (process) => {
      const answer = await process.call('github__merge', { token: 'own-credential-1', q: 'x' });
      const { message } = await process.call('trunkline__status');
      expect(message.result.structuredContent.tracing).toMatchObject({ isOn: true, from: 'gateway.tracing' });
      await process.end();
      const [front, attempt] = await collector.spansNamed('tools/call github__merge', 'tools/call merge');
      expect(JSON.parse(receivedBy(answer))._meta).toEqual({ traceparent: `00-${front.traceId}-${attempt.spanId}-01` });
      expect(collector.requests[0]).toMatchObject({ 'x-key': 'own-credential-1', path: '/v1/traces' });
      expect(collector.requests[0]).not.toHaveProperty('x-other');
      expect(front.attributes['gen_ai.tool.call.arguments']).toContain('"q":"x"');
      expect(JSON.stringify(collector.spans) + process.stderr).not.toMatch(/credential-/);
    });
  });

  it('cost no call if the collector is down, and tell of it once until it is back', async () => {
    const { port } = collector;
    const env = { ...toCollector(), OTEL_EXPORTER_OTLP_TIMEOUT: '100' };
    await collector.close();
    await withGateway({ servers, env, args: ['-v'] }, async (gateway) => {
      for (let call = 0; call < 3; call += 1) {
        const answer = await gateway.call('github__merge');
        expect(answer.message.result.isError).toBe(false);
        const lost = (call + 1) * 2;
        await gateway.untilStatus(
          'spans are lost',
          ({ tracing }) => tracing?.dropped >= lost && tracing.fault !== null,
        );
      }
      const { message } = await gateway.call('trunkline__status');
      expect(message.result.content[0].text).toMatch(/The collector has taken no spans for \d+ s \(ECONNREFUSED\)/);
      expect(gateway.stderr.match(/the collector takes no spans/g)).toHaveLength(1);
      collector = await TraceCollector.start(port);
      await gateway.call('github__merge');
      await collector.spansNamed('tools/call merge');
      const { tracing } = await gateway.untilStatus('spans are sent', (status) => status.tracing?.fault === null);
      expect(tracing.dropped).toBeGreaterThanOrEqual(6);
      expect(gateway.stderr).toContain('the collector takes spans again');
    });
  });
});

describe('traces of a hub', () => {
  it('go where the environment of the client that started the hub says, even if the configuration names its variables', async () => {
    const github = { program: CONTINUING, env: { TO: '${' + 'OTEL_EXPORTER_OTLP_ENDPOINT:-nowhere}' } };
    const place = new HubPlace({ servers: { github } });
    try {
      const first = await place.client({ env: toCollector() });
      const second = await place.client();
      const answer = await second.request('tools/call', merge(`"traceparent":"${PARENT}"`));
      const [front, attempt] = await collector.spansNamed('tools/call github__merge', 'tools/call merge');
      expectJoined(front, attempt, receivedBy(answer));
      const { message } = await second.call('trunkline__status');
      expect(message.result.content[0].text).toContain('(OTEL_EXPORTER_OTLP_ENDPOINT in the environment of the hub)');
      await first.call('github__merge');
    } finally {
      await place.dispose();
    }
  });
});

describe('traces over HTTP', () => {
  it('link the header, of which `_meta` has the precedence as the parent', async () => {
    const place = new Place();
    Object.assign(place.environment, toCollector());
    try {
      const running = await place.serve({ servers: { github: place.server(CONTINUING) } });
      const session = await place.initialize(running);
      const header = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
      const call = (params: string, id: number) =>
        place.post(
          running,
          { jsonrpc: '2.0', id, method: 'tools/call', params: JSON.parse(params) },
          {
            ...session,
            traceparent: header,
          },
        );
      const response = await call(merge(`"traceparent":"${PARENT}"`), 1);
      expect(response.status).toBe(200);
      const [front, attempt] = await collector.spansNamed('tools/call github__merge', 'tools/call merge');
      const { result } = (await response.json()) as { result: { content: [{ text: string }] } };
      expectJoined(front, attempt, result.content[0].text);
      expect(front.links).toMatchObject([{ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }]);
      expect(front.attributes).toMatchObject({ 'network.transport': 'tcp', 'client.address': '127.0.0.1' });
      await call('{"name":"github__complain"}', 2);
      const [alone] = await collector.spansNamed('tools/call github__complain');
      expect(alone).toMatchObject({ traceId: 'a'.repeat(32), parentSpanId: 'b'.repeat(16) });
    } finally {
      await place.dispose();
    }
  });
});
