import { describe, expect, it } from 'vitest';
import { reportStatus } from '../../../src/gateway/status/status.js';
import { overviewOf } from '../../../src/gateway/status/status-overview.js';
import { renderOneServer, renderStatus } from '../../../src/gateway/status/status-text.js';
import { createStatusTool } from '../../../src/gateway/status/status-tool.js';
import { given, NOTHING_SEEN } from './reporting.js';

describe('the tool trunkline__status', () => {
  it('takes up no more than 500 bytes of the list of tools, and has no output schema', async () => {
    const { make } = await given();
    const { entry } = createStatusTool(make);
    expect(entry.length).toBeLessThanOrEqual(500);
    expect(JSON.parse(Buffer.from(entry).toString())).not.toHaveProperty('outputSchema');
  });

  it('gives the overview of all servers as text and as data', async () => {
    const { make, report } = await given();
    const result = await createStatusTool(make).call(undefined, NOTHING_SEEN);
    expect(result.structuredContent).toEqual(overviewOf(report()));
    expect(result.content).toEqual([{ type: 'text', text: renderStatus(report()) }]);
    expect(result.isError).toBeUndefined();
  });

  it('gives the whole report about one server as text and as data', async () => {
    const { make } = await given();
    const result = await createStatusTool(make).call({ server: 'a' }, NOTHING_SEEN);
    const report = reportStatus(make(), 'a');
    expect(result.structuredContent).toEqual(report);
    expect(result.content).toEqual([{ type: 'text', text: renderOneServer(report) }]);
  });

  it('gives whole numbers only', async () => {
    const { make, server, connect, clock } = await given();
    const client = connect();
    client.initialize();
    client.call(1, 'a__read');
    clock.advance(12.34);
    server('a').child.answer(0);
    const facts = () => ({ ...make(), now: 100_123.4 });
    const { structuredContent } = await createStatusTool(facts).call({ server: 'a' }, NOTHING_SEEN);
    const figures = JSON.stringify(structuredContent).match(/-?\d+\.\d+(?=[,}\]])/g);
    expect(figures).toBeNull();
  });

  it.each([{}, { server: undefined }, { server: null }, null, 'a', []])('shows all servers for %j', async (args) => {
    const { make } = await given();
    const { structuredContent } = await createStatusTool(make).call(args, NOTHING_SEEN);
    expect((structuredContent as { servers: unknown[] }).servers).toHaveLength(2);
  });

  it.each(['c', '', '__proto__', 7])('says which servers there are when asked for %j', async (server) => {
    const { make } = await given();
    const result = await createStatusTool(make).call({ server }, NOTHING_SEEN);
    expect(result.isError).toBe(true);
    expect(JSON.stringify(result.content)).toContain('Configured servers: a, b.');
  });
});
