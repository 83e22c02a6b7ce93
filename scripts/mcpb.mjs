// Builds `trunkline.mcpb`, the extension for Claude Desktop: a ZIP with a manifest and the built program. The tool of the
// format's authors validates and packs it. Then the packed extension is started as Desktop does, without a configuration: it
// has to show its status tool. Run it with `npm run mcpb`.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { manifestOf } from './manifest.mjs';
import { installPackage } from './packages.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BUNDLE = join(ROOT, 'trunkline.mcpb');
const TOOL = '2.1.2';

const run = promisify(execFile);
const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const tool = join(await installPackage('@anthropic-ai/mcpb', TOOL), 'dist', 'cli', 'cli.js');
const place = mkdtempSync(join(tmpdir(), 'trunkline-mcpb-'));
try {
  const folder = join(place, 'extension');
  await stage(folder);
  await run(process.execPath, [tool, 'validate', join(folder, 'manifest.json')]);
  await run(process.execPath, [tool, 'pack', folder, BUNDLE]);
  const unpacked = join(place, 'unpacked');
  await run(process.execPath, [tool, 'unpack', BUNDLE, unpacked]);
  const shown = await toolsOf(unpacked);
  if (!shown.includes('trunkline__status')) throw new Error(`The extension shows ${shown.join(', ') || 'no tools'}`);
} finally {
  rmSync(place, { recursive: true, force: true });
}
const content = readFileSync(BUNDLE);
say(
  `trunkline.mcpb ${own.version}: ${(content.length / 1e6).toFixed(1)} MB, valid, and it starts without a configuration.`,
);
say(`SHA-256: ${createHash('sha256').update(content).digest('hex')}`);

async function stage(folder) {
  mkdirSync(folder);
  for (const name of ['dist', 'LICENSE']) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  const { name, version, type, license, engines } = own;
  writeJson(join(folder, 'package.json'), { name, version, type, license, engines });
  writeJson(join(folder, 'manifest.json'), manifestOf(own));
}

/** The tools that the extension shows to a user who has no configuration, with the values that Desktop puts in. */
async function toolsOf(folder) {
  const { server, user_config: settings } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  const values = { __dirname: folder, 'user_config.config': settings.config.default };
  const args = server.mcp_config.args.map((arg) => arg.replaceAll(/\$\{([\w.]+)\}/g, (_, name) => values[name]));
  const home = join(place, 'home');
  mkdirSync(home);
  const env = { PATH: process.env.PATH, HOME: home, APPDATA: home, LOCALAPPDATA: home, XDG_DATA_HOME: home };
  const client = new Client({ name: 'trunkline-mcpb', version: '1' });
  try {
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args, env, cwd: home, stderr: 'ignore' }),
    );
    return (await client.listTools()).tools.map(({ name }) => name);
  } finally {
    await client.close();
  }
}

function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, undefined, 2)}\n`);
}

function say(line) {
  process.stdout.write(`${line}\n`);
}
