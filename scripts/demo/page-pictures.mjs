// Makes the pictures of docs/page.md from the real page: a hub with four servers, of which one is broken, and two clients
// that call them. Run it with `npm run pictures`.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { launchBrowser } from '../chromium.mjs';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const IMAGES = fileURLToPath(new URL('../../docs/images/', import.meta.url));
const SIZE = { width: 1120, height: 560 };
/** Time in which the lines of calls and memory get some points, one a minute, and the broken server has failed five times. */
const WARM_UP_MS = 8 * 60_000;
/** Longest pause between two rounds of calls. The pauses grow and shrink, so that the line of calls is not flat. */
const PAUSE_MS = 6_000;

const home = realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-pictures-')));
const env = { HOME: home, PATH: process.env.PATH };
const config = join(home, 'trunkline.yaml');
const server = (name) => createRequire(import.meta.url).resolve(`@modelcontextprotocol/server-${name}/dist/index.js`);
writeFileSync(join(home, 'notes.txt'), 'Water the garden.\n');
writeFileSync(
  config,
  JSON.stringify({
    servers: {
      files: {
        command: 'node',
        args: [server('filesystem'), home],
        tools: { deny: ['write_*', 'edit_file', 'move_file'] },
      },
      memory: { command: 'node', args: [server('memory')], env: { MEMORY_FILE_PATH: join(home, 'memory.jsonl') } },
      everything: { command: 'node', args: [server('everything')] },
      github: { command: 'node', args: ['-e', 'console.error("Error: GITHUB_TOKEN is not set"); process.exit(1)'] },
    },
  }),
);
mkdirSync(IMAGES, { recursive: true });
const browser = await launchBrowser();
const clients = await Promise.all([connect('claude-ai', '0.1.0'), connect('cursor-vscode', '2.4.1')]);
const web = spawn(process.execPath, [CLI, 'web', '--no-open', '--config', config], {
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const page = await browser.newPage({ viewport: SIZE, deviceScaleFactor: 1 });
  await page.goto(await urlOf(web));
  let isCalling = true;
  const calling = (async () => {
    while (isCalling) {
      await callTools();
      await sleep(500 + PAUSE_MS * Math.sin(performance.now() / 80_000) ** 2);
    }
  })();
  await page.getByRole('link', { name: /^Calls/ }).click();
  await sleep(WARM_UP_MS);
  for (const part of ['Calls', 'Needs you', 'Servers', 'Tools']) {
    await page.getByRole('link', { name: new RegExp(`^${part}`) }).click();
    await page.getByRole('heading', { name: part, level: 1 }).waitFor();
    await sleep(1_500);
    await page.screenshot({ path: join(IMAGES, `page-${part.toLowerCase().replace(' ', '-')}.png`) });
  }
  isCalling = false;
  await calling;
} finally {
  web.kill();
  await browser.close();
  for (const client of clients) await client.close();
  await run('hub', 'stop', '--config', config);
  rmSync(home, { recursive: true, force: true });
}

async function connect(name, version) {
  const client = new Client({ name, version });
  const args = [CLI, '--config', config];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env, stderr: 'ignore' }));
  await client.listTools();
  return client;
}

async function callTools() {
  const [one, other] = clients;
  const call = (client, name, args) => client.callTool({ name, arguments: args }).catch(() => {});
  await call(one, 'files__read_text_file', { path: join(home, 'notes.txt') });
  await call(other, 'memory__search_nodes', { query: 'garden' });
  await call(other, 'everything__get-sum', { a: 2, b: 3 });
  await call(one, 'files__read_text_file', { path: join(home, 'plan.txt') });
}

async function urlOf({ stdout }) {
  let text = '';
  for await (const chunk of stdout.setEncoding('utf8')) {
    text += chunk;
    const [url] = /http:\S+/.exec(text) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error('trunkline web ended without a URL');
}

function run(...args) {
  return new Promise((done) => spawn(process.execPath, [CLI, ...args], { env, stdio: 'ignore' }).once('close', done));
}
