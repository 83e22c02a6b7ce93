import { describe, expect, it } from 'vitest';
import type { VisibleBackends } from '../../src/gateway/routing/own-tool.js';
import { reportStatus } from '../../src/status/status.js';
import type { StatusFacts } from '../../src/status/status-facts.js';
import { overviewOf, renderOneServer, renderStatus } from '../../src/status/status-text.js';
import { createRestartTool, createStatusTool } from '../../src/status/status-tools.js';
import { InMemoryExchange } from '../support/in-memory-client.js';
import { scriptGateway } from '../support/scripted-gateway.js';
import { given, NOTHING_SEEN } from './reporting.js';

const EXCHANGE = new InMemoryExchange();

describe('the tool trunkline__status', () => {
  it('takes up no more than 500 bytes of the list of tools, and has no output schema', async () => {
    const { make } = await given();
    const { entry } = createStatusTool(make);
    expect(entry.length).toBeLessThanOrEqual(500);
    expect(JSON.parse(Buffer.from(entry).toString())).not.toHaveProperty('outputSchema');
  });

  it('gives the overview of all servers as text and as data', async () => {
    const { make, report } = await given();
    const result = await createStatusTool(make).call(undefined, NOTHING_SEEN, EXCHANGE);
    expect(result.structuredContent).toEqual(overviewOf(report()));
    expect(result.content).toEqual([{ type: 'text', text: renderStatus(report()) }]);
    expect(result.isError).toBeUndefined();
  });

  it('gives the whole report about one server as text and as data', async () => {
    const { make } = await given();
    const result = await createStatusTool(make).call({ server: 'a' }, NOTHING_SEEN, EXCHANGE);
    const report = reportStatus(make(), 'a');
    expect(result.structuredContent).toEqual(report);
    expect(result.content).toEqual([{ type: 'text', text: renderOneServer(report) }]);
  });

  it('tells the revision of the client that asks in the report about one server', async () => {
    const { make } = await given();
    const facts = ({ revision }: VisibleBackends): StatusFacts => ({ ...make(), revision });
    const ask = createStatusTool(facts);
    const told = (revision: string) => ask.call({ server: 'a' }, { ...NOTHING_SEEN, revision }, EXCHANGE);
    const modern = await told('2026-07-28');
    expect(modern.structuredContent).toMatchObject({ clientRevision: '2026-07-28' });
    expect(JSON.stringify(modern.content)).toContain('This client speaks revision 2026-07-28 (modern era).');
    expect(JSON.stringify((await told('2025-11-25')).content)).toContain('revision 2025-11-25 (legacy era).');
  });

  it('reads what the processes use for the report about one server, and only for that', async () => {
    const { make } = await given();
    const readings: number[] = [];
    const usage = { memoryBytes: 1024 ** 2, processes: 2, cpuMs: 1_400, cpuShare: 0.126 };
    const facts = (): StatusFacts => ({ ...make(), usageOf: (pid) => (readings.includes(pid) ? usage : undefined) });
    const tool = createStatusTool(facts, { readUsage: async (pid) => void readings.push(pid) });
    await tool.call({}, NOTHING_SEEN, EXCHANGE);
    expect(readings).toEqual([]);
    const { structuredContent, content } = await tool.call({ server: 'a' }, NOTHING_SEEN, EXCHANGE);
    expect(structuredContent).toMatchObject({
      servers: [{ usage: { memoryBytes: 1024 ** 2, processes: 2, cpuSeconds: 1, cpuPercent: 13 } }],
    });
    expect(JSON.stringify(content)).toContain(
      'uses: 1 MiB of memory, 13 % of a processor, 1 s of processor time in all, 2 processes',
    );
  });

  it('tells how late the event loop was in the report about one server', async () => {
    const { make } = await given();
    const eventLoop = { p99Ms: 2, maxMs: 34 };
    const result = await createStatusTool(() => ({ ...make(), eventLoop })).call(
      { server: 'a' },
      NOTHING_SEEN,
      EXCHANGE,
    );
    expect(result.structuredContent).toMatchObject({ eventLoop });
    expect(JSON.stringify(result.content)).toContain(
      'Event loop: 99 % of the delays took up to 2 ms; the longest 34 ms.',
    );
  });

  it('gives whole numbers only', async () => {
    const { make, server, connect, clock } = await given();
    const client = connect().greet();
    client.call(1, 'a__read');
    clock.advance(12.34);
    server('a').child.answer(0);
    const facts = () => ({ ...make(), now: 100_123.4 });
    const { structuredContent } = await createStatusTool(facts).call({ server: 'a' }, NOTHING_SEEN, EXCHANGE);
    const figures = JSON.stringify(structuredContent).match(/-?\d+\.\d+(?=[,}\]])/g);
    expect(figures).toBeNull();
  });

  it.each([{}, { server: undefined }, { server: null }, null, 'a', []])('shows all servers for %j', async (args) => {
    const { make } = await given();
    const { structuredContent } = await createStatusTool(make).call(args, NOTHING_SEEN, EXCHANGE);
    expect((structuredContent as { servers: unknown[] }).servers).toHaveLength(2);
  });

  it.each(['c', '', '__proto__', 7])('says which servers there are when asked for %j', async (server) => {
    const { make } = await given();
    const result = await createStatusTool(make).call({ server }, NOTHING_SEEN, EXCHANGE);
    expect(result.isError).toBe(true);
    expect(JSON.stringify(result.content)).toContain('Configured servers: a, b.');
  });
});

describe('the tool trunkline__restart', () => {
  it('takes up no more than 400 bytes, and restarts the server that is named and no other', async () => {
    const { server, gateway } = scriptGateway({ servers: { a: {}, b: {} } });
    const backends = new Map(['a', 'b'].map((key) => [key, server(key).backend]));
    const restarted: string[] = [];
    const tool = createRestartTool(
      () => ['a', 'b'],
      (key) => restarted.push(key),
    );
    expect(tool.entry.length).toBeLessThanOrEqual(400);
    const results = [{ server: 'b' }, { server: 'c' }, {}, undefined].map((args) =>
      tool.call(args, { backends, catalogs: gateway.catalogs }, EXCHANGE),
    );
    expect((await Promise.all(results)).map(({ isError }) => isError)).toEqual([undefined, true, true, true]);
    expect(restarted).toEqual(['b']);
  });
});
