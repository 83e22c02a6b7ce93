import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TINY = node(import.meta.resolve('./tiny-server.mjs'));
const SILENT = node(import.meta.resolve('./silent-server.mjs'));
const RELAY = [...node(import.meta.resolve('./byte-relay.mjs')), ...TINY];
const TRUNKLINE = [...node(import.meta.resolve('../dist/cli.js')), '--config'];
const NAIVE = node(import.meta.resolve('./naive-gateway.mjs'));

/** The ways to the same tool that are compared, and what starts each. The gateways' configuration goes to `folder`. */
export function callPaths(folder) {
  const config = writeConfig(folder, 'calls.json', { tiny: TINY });
  return [
    { name: 'direct', command: TINY, tool: 'echo' },
    { name: 'byte relay', command: RELAY, tool: 'echo' },
    { name: 'Trunkline', command: [...TRUNKLINE, config], tool: 'tiny__echo' },
    { name: 'naive gateway', command: [...NAIVE, config], tool: 'tiny__echo' },
  ];
}

/** What is started to see how soon it answers `initialize`. */
export function startPaths(folder) {
  const one = writeConfig(folder, 'one.json', { tiny: TINY });
  const silent = writeConfig(folder, 'silent.json', { first: SILENT, second: SILENT, third: SILENT });
  return [
    { name: 'direct', command: TINY },
    { name: 'byte relay', command: RELAY },
    { name: 'Trunkline, one server', command: [...TRUNKLINE, one] },
    { name: 'Trunkline, three servers that never answer', command: [...TRUNKLINE, silent] },
  ];
}

/** JSON, which is YAML too, so that the naive gateway reads the same file. */
function writeConfig(folder, name, commands) {
  const servers = Object.fromEntries(
    Object.entries(commands).map(([key, [command, ...args]]) => [key, { command, args, concurrency: 64 }]),
  );
  const file = join(folder, name);
  writeFileSync(file, JSON.stringify({ servers }));
  return file;
}

function node(url) {
  return [process.execPath, fileURLToPath(url)];
}
