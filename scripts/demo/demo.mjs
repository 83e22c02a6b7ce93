// A tour of Trunkline with default settings: two clients of the official SDK share three real MCP servers.
// Checks every step and exits with code 0 only if all checks pass. Run it with `npm run demo`.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const COLUMNS = 100;
const COLORS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 };
const isColored = Boolean(process.env.FORCE_COLOR) || (process.stdout.isTTY === true && !process.env.NO_COLOR);

const root = fileURLToPath(new URL('../..', import.meta.url));
const startedAt = performance.now();
const seenPids = new Set();

const execute = promisify(execFile);
const program = [`${root}dist/cli.js`, '--config', `${root}config/demo.yaml`];
// The background process of the demo is apart from that of another clone.
const hubs = mkdtempSync(join(tmpdir(), 'tl-'));
const env = { ...getDefaultEnvironment(), TRUNKLINE_HUB_DIR: hubs };
const clients = [];

try {
  const client = await connect();
  const connected = since(startedAt);
  const { tools } = await client.listTools();
  heading(`Connected in ${connected}. Trunkline lists ${tools.length} tools of all servers as one set:`);
  const byServer = groupBy(tools, owner);
  for (const [server, owned] of byServer) {
    const title = `  ${color('cyan', server.padEnd(10))} ${String(owned.length).padStart(2)}  `;
    print(`${title}${shorten(owned.map(shortName).join(', '), COLUMNS - 16)}`);
  }
  check(
    ['everything', 'files', 'memory', 'trunkline'].every((server) => byServer.has(server)),
    'every server has tools',
  );

  heading('One call to each server:');
  await show('everything__get-sum', { a: 20, b: 22 }, '42');
  await show('files__read_text_file', { path: 'hello.txt' }, 'Hello');
  await show('memory__read_graph', {}, 'entities');

  heading('A second client uses the same servers:');
  const second = await connect();
  await second.listTools();
  const { hub } = JSON.parse(await trunkline('ps', '--json'));
  seenPids.add(hub.pid);
  // A server that keeps state between calls would start a process of its own for the second client, at its first call.
  const running = hub.servers.filter(({ pid }) => pid !== null);
  print(`  trunkline ps: hub ${hub.pid}, ${hub.clients.length} clients, ${running.length} processes of servers`);
  check(hub.clients.length === 2 && running.length === 3, 'two clients share the processes of three servers');

  heading('A long call reports its progress:');
  let steps = 0;
  await call('everything__trigger-long-running-operation', { duration: 2, steps: 4 }, ({ progress, total }) => {
    process.stdout.write(`${steps === 0 ? '  ' : color('green', ' ━━━━━━ ')}${progress} of ${total}`);
    steps += 1;
  });
  print('');
  // The SDK's client drops a progress notification that arrives in the same read as the result.
  check(steps >= 3, 'progress arrived during the call');

  heading('The process of "everything" is killed with SIGKILL during a call:');
  const before = await serverStatus('everything');
  // The first progress notification shows that the server has started to work on the call.
  let lost;
  await new Promise((resolve) => {
    lost = call('everything__trigger-long-running-operation', { duration: 60, steps: 600 }, resolve);
  });
  const killedAt = performance.now();
  process.kill(before.pid, 'SIGKILL');
  const answer = await lost;
  printWrapped(`${color('red', 'tool error')} after ${since(killedAt)}: ${answer.content[0].text}`, '  ');
  check(
    answer.isError === true && answer._meta['trunkline/failure'].outcome === 'unknown',
    'the interrupted call returns a tool error with an unknown outcome',
  );
  await show('everything__echo', { message: 'back again' }, 'back again');
  for (const line of (await trunkline('logs')).trim().split('\n')) showLog(line);
  const after = await serverStatus('everything');
  print(`  Trunkline restarted it: pid ${before.pid} → pid ${after.pid}, ${since(killedAt)} after the kill`);
  check(after.pid !== before.pid && after.generation === before.generation + 1, 'a new process replaced the old one');

  heading('The tool trunkline__status reports:');
  const status = await call('trunkline__status', {});
  for (const line of status.content[0].text.split('\n')) {
    const [indentation] = /^ */.exec(line);
    printWrapped(highlight(line.trimStart()), `  ${indentation}`);
  }
  check(status.content[0].text.includes('3 servers, all up'), 'all servers are up again');
  for (const { server } of status.structuredContent.servers) await serverStatus(server);
} catch (error) {
  check(false, error instanceof Error ? error.message : String(error));
} finally {
  await Promise.all(clients.map((each) => each.close()));
  heading('The clients have left. The hub waits ten minutes for the next one, or until `trunkline stop`:');
  const stoppedAt = performance.now();
  await trunkline('stop').catch((error) => check(false, error.message));
  rmSync(hubs, { recursive: true, force: true });
  const left = [...seenPids].filter(isAlive);
  print(`  stopped in ${since(stoppedAt)}, ${left.length} of ${seenPids.size} processes are still running`);
  check(left.length === 0, `all processes have ended (still running: ${left.join(', ')})`);
}
if (process.exitCode) print(color('red', 'The demo FAILED.'));
else print(color('green', `All checks passed in ${since(startedAt)}.`));

/** Connects one more client, which starts Trunkline as it is registered with clients. */
async function connect() {
  const transport = new StdioClientTransport({ command: process.execPath, args: program, env, stderr: 'inherit' });
  const connecting = new Client({ name: 'trunkline-demo', version: '1.0.0' });
  clients.push(connecting);
  await connecting.connect(transport);
  seenPids.add(transport.pid);
  return connecting;
}

/** Runs a command of Trunkline. Returns what it prints. */
async function trunkline(...args) {
  return (await execute(process.execPath, [...program, ...args], { env })).stdout;
}

async function call(name, args, onprogress) {
  const [client] = clients;
  return await client.callTool({ name, arguments: args }, undefined, onprogress ? { onprogress } : undefined);
}

async function show(name, args, expected) {
  const result = await call(name, args);
  const text = result.content.map((block) => block.text ?? block.type).join(' ');
  print(`  ${color('cyan', name.padEnd(21))} → ${shorten(text.replaceAll(/\s+/g, ' ').trim(), COLUMNS - 26)}`);
  check(!result.isError && text.includes(expected), `${name} returns ${expected}`);
}

async function serverStatus(server) {
  const { structuredContent } = await call('trunkline__status', { server });
  seenPids.add(structuredContent.servers[0].pid);
  return structuredContent.servers[0];
}

function check(isTrue, what) {
  if (isTrue) return;
  print(color('red', `  CHECK FAILED: ${what}`));
  process.exitCode = 1;
}

/** Prints a line of the log of the hub, which is JSON, in a short form. */
function showLog(line) {
  try {
    const { msg, server, pid, signal } = JSON.parse(line);
    const facts = [server, pid && `pid ${pid}`, signal].filter(Boolean);
    print(color('dim', `  log: ${msg}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}`));
  } catch {
    // Not a log line: an error from Node, for example.
    print(line);
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    // An ended process stays a zombie until the first process of the machine or the container asks for its exit code.
    return process.platform !== 'linux' || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    // The process does not exist.
    return false;
  }
}

function owner({ name }) {
  return name.slice(0, name.indexOf('__'));
}

function shortName({ name }) {
  return name.slice(name.indexOf('__') + 2);
}

function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

function heading(text) {
  print(`\n${color('bold', text)}`);
}

/** Prints a text in lines of at most 100 columns, broken at spaces. Indents continuation lines by two more. */
function printWrapped(text, indentation) {
  let line = indentation;
  for (const word of text.split(' ')) {
    if (stripVTControlCharacters(`${line}${word}`).length > COLUMNS) {
      print(line.trimEnd());
      line = `${indentation}  `;
    }
    line += `${word} `;
  }
  print(line.trimEnd());
}

function print(line) {
  console.log(line);
}

/** Colors the states in a line of the status report. */
function highlight(line) {
  return line
    .replace(/^- (\w+):/, (_, server) => `- ${color('cyan', server)}:`)
    .replace(/\ball up\b|^Up\b/, (state) => color('green', state))
    .replace(/^(?:restarted|failed calls)\b/, (label) => color('yellow', label));
}

function color(name, text) {
  return isColored ? `\u001b[${COLORS[name]}m${text}\u001b[0m` : text;
}

/** Cuts a text that is too long after a whole word. */
function shorten(text, length) {
  return text.length <= length ? text : `${text.slice(0, text.lastIndexOf(' ', length - 2))} …`;
}

function since(at) {
  return `${((performance.now() - at) / 1000).toFixed(2)} s`;
}
