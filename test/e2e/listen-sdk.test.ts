import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI } from '../support/gateway-process.js';
import { until } from '../support/processes.js';

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/servers/${name}`, import.meta.url));
const RESOURCE = 'ui://app/main.html';

describe('the official client of revision 2026-07-28, with servers of an older one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
  const client = new Client(
    { name: 'official', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  /** What the client was notified of. */
  const changes: string[] = [];
  const updates: string[] = [];

  beforeAll(async () => {
    const file = join(folder, 'trunkline.yaml');
    const servers = {
      lab: { command: 'node', args: [fixture('lab.mjs')] },
      app: { command: 'node', args: [fixture('app.mjs'), 'hello'] },
    };
    writeFileSync(file, JSON.stringify({ servers }));
    client.setNotificationHandler('notifications/tools/list_changed', async () => {
      const { tools } = await client.listTools();
      changes.push(...tools.map(({ name }) => name));
    });
    client.setNotificationHandler('notifications/resources/updated', async ({ params }) => {
      updates.push(params.uri);
    });
    const env = { ...getDefaultEnvironment(), XDG_DATA_HOME: folder };
    const args = [CLI, '--no-hub', '--config', file];
    await client.connect(new StdioClientTransport({ command: process.execPath, args, env, stderr: 'ignore' }));
    await client.listTools();
  });

  afterAll(async () => {
    await client.close();
    rmSync(folder, { recursive: true });
  });

  it('learns of changed tools and of updated resources from one subscription, until it closes it', async () => {
    const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [RESOURCE] });
    expect(subscription.honoredFilter).toEqual({ toolsListChanged: true, resourceSubscriptions: [RESOURCE] });
    await client.callTool({ name: 'lab__change', arguments: {} });
    await until('the new tool is listed', () => changes.includes('lab__added1'));
    await client.callTool({ name: 'app__show', arguments: {} });
    await until('the update arrives', () => updates.length > 0);
    expect(updates).toEqual([RESOURCE]);

    await subscription.close();
    expect(await subscription.closed).toBe('local');
    await client.callTool({ name: 'app__show', arguments: {} });
    expect(updates).toEqual([RESOURCE]);
  });
});
