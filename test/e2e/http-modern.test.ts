import { chmodSync, writeFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Place, type Running } from '../support/http-place.js';

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** Prints more tools than fit on one page of a merged list. */
const MANY_TOOLS = `
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const tools = Array.from({ length: 600 }, (_, at) => ({ name: 'tool-' + at, inputSchema: { type: 'object' } }));
  const serverInfo = { name: 'many', version: '1' };
  const hello = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
  const result = method === 'initialize' ? hello : { tools };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
});`;

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.dispose());

async function listTools(running: Running, cursor?: string) {
  const method = 'tools/list';
  const params = { _meta: META, ...(cursor !== undefined && { cursor }) };
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method };
  const response = await place.post(running, { jsonrpc: '2.0', id: 1, method, params }, headers);
  return (await response.json()) as { result?: { tools: object[]; nextCursor?: string }; error?: { code: number } };
}

describe('clients of revision 2026-07-28', () => {
  it('list and call tools without a session, and cancel a call by closing its response', async () => {
    const running = await place.serve();
    const client = new Client({ name: 'official', version: '2' }, { versionNegotiation: { mode: 'auto' } });
    const transport = new StreamableHTTPClientTransport(new URL(running.url), {
      requestInit: { headers: { authorization: `Bearer ${place.token}` } },
    });
    await client.connect(transport);
    expect([client.getNegotiatedProtocolVersion(), transport.sessionId]).toEqual(['2026-07-28', undefined]);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('lab__echo');
    const steps: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void steps.push(progress);
    await client.callTool({ name: 'lab__progress', arguments: {} }, { onprogress });
    expect(steps.length).toBeGreaterThan(0);

    const abort = new AbortController();
    const waiting = client.callTool({ name: 'lab__wait', arguments: { delayMs: 60_000 } }, { signal: abort.signal });
    const refused = expect(waiting).rejects.toThrow();
    const inFlight = async () => {
      const status = await client.callTool({ name: 'trunkline__status', arguments: { server: 'lab' } });
      return (status.structuredContent as { servers: { inFlight: number }[] }).servers[0]?.inFlight;
    };
    await expect.poll(inFlight).toBe(1);
    abort.abort();
    await refused;
    await expect.poll(inFlight).toBe(0);
    await client.close();
  });

  it('continue a list at another gateway that has the same key', async () => {
    const key = place.file('key');
    writeFileSync(key, `${'k'.repeat(44)}\n`, { mode: 0o600 });
    const many = { command: 'node', args: ['-e', MANY_TOOLS] };
    const options = { servers: { one: many, two: many }, gateway: { sealKeyFile: 'key' } };
    const [first, second] = [await place.serve(options), await place.serve(options)];
    const { result } = await listTools(first);
    expect(result?.tools).toHaveLength(1_000);
    expect((await listTools(second)).result?.nextCursor).toBe(result?.nextCursor);
    expect((await listTools(second, result?.nextCursor)).result?.tools.length).toBeGreaterThanOrEqual(200);
    expect((await listTools(second, `${result?.nextCursor}x`)).error?.code).toBe(-32602);
  });

  it('F161: are not served if others can read that key', async () => {
    const key = place.file('key');
    writeFileSync(key, `${'k'.repeat(44)}\n`);
    chmodSync(key, 0o644);
    const { code, stderr } = await place.run([
      ...place.configure({ lab: place.lab() }, { sealKeyFile: 'key' }),
      ...['--http', '127.0.0.1:0'],
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain(`cannot use the file ${key} of gateway.sealKeyFile`);
  });
});
