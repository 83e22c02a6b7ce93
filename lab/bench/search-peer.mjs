// Another gateway with a search for tools that runs from npm alone, on the same tools and questions.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { installPackage } from '../../scripts/packages.mjs';

const PACKAGE = '@standardbeagle/slop-mcp';
const VERSION = '0.15.0';
const SERVER = fileURLToPath(new URL('search/listed-tools.mjs', import.meta.url));
const READY_WITHIN_MS = 60_000;
const POLL_MS = 250;

export const PEER = `slop-mcp ${VERSION}`;

/** Starts the gateway with a server for each key of the tools. Returns its search, and `close`. */
export async function openPeer(tools, folder) {
  const place = mkdtempSync(join(folder, 'peer-'));
  const home = join(place, 'home');
  mkdirSync(home);
  const entries = [...new Set(tools.map(({ server }) => server))].map((key) => {
    const args = [SERVER, key, String(tools.length)].map((each) => JSON.stringify(each)).join(' ');
    return `mcp ${JSON.stringify(key)} {\n    command ${JSON.stringify(process.execPath)}\n    args ${args}\n}\n`;
  });
  writeFileSync(join(place, '.slop-mcp.kdl'), entries.join(''));
  const program = join(await installPackage(PACKAGE, VERSION), 'bin.js');
  const client = new Client({ name: 'bench', version: '1' });
  const env = { PATH: process.env.PATH, HOME: home };
  const command = { command: process.execPath, args: [program, 'serve'], cwd: place, env, stderr: 'ignore' };
  await client.connect(new StdioClientTransport(command));
  const search = async (query, limit) => {
    const { content } = await client.callTool({ name: 'search_tools', arguments: { query, limit } });
    return JSON.parse(content[0].text);
  };
  for (const deadline = performance.now() + READY_WITHIN_MS; (await search('', 1)).total !== tools.length; ) {
    if (performance.now() > deadline) throw new Error(`${PEER} does not list all tools`);
    await sleep(POLL_MS);
  }
  const find = async (ask, limit) => {
    const found = await search(ask, limit);
    return (found.tools ?? []).map(({ name, mcp_name: server }) => `${server}.${name}`);
  };
  return Object.assign(find, { close: () => client.close() });
}
