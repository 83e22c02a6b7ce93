// A tour of Trunkline with three real servers, through the official SDK's client. Ends with 0 only if all of it
// happened: `npm run demo`.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const root = new URL('..', import.meta.url).pathname;
const startedAt = performance.now();
const seenPids = new Set();

const transport = new StdioClientTransport({
  command: process.execPath,
  args: [`${root}dist/cli.js`, '--config', `${root}config/demo.yaml`],
  stderr: 'inherit',
});
const client = new Client({ name: 'trunkline-demo', version: '1.0.0' });

try {
  await client.connect(transport);
  seenPids.add(transport.pid);
  heading(`Connected after ${since(startedAt)}. The merged toolset:`);
  const { tools } = await client.listTools();
  const byServer = groupBy(tools, owner);
  for (const [server, owned] of byServer)
    console.log(`  ${server} (${owned.length}): ${owned.map(shortName).join(', ')}`);
  check(
    ['everything', 'files', 'memory', 'trunkline'].every((server) => byServer.has(server)),
    'every server has tools',
  );

  heading('One call on each server:');
  await show('everything__get-sum', { a: 20, b: 22 }, '42');
  await show('files__read_text_file', { path: 'hello.txt' }, 'Hello');
  await show('memory__read_graph', {}, 'entities');

  heading('A call that reports progress:');
  let steps = 0;
  await call('everything__trigger-long-running-operation', { duration: 2, steps: 4 }, ({ progress, total }) => {
    steps += 1;
    console.log(`  ${'#'.repeat(progress * 8).padEnd(total * 8, '.')} ${progress} of ${total}`);
  });
  // The client itself drops a report that it reads together with the answer.
  check(steps >= 3, 'progress was reported as it came');

  heading('SIGKILL for "everything" with a call in flight:');
  const before = await serverStatus('everything');
  // Progress of the call tells that the server is at work on it.
  let lost;
  await new Promise((resolve) => {
    lost = call('everything__trigger-long-running-operation', { duration: 60, steps: 600 }, resolve);
  });
  const killedAt = performance.now();
  process.kill(before.pid, 'SIGKILL');
  const answer = await lost;
  console.log(`  answered after ${since(killedAt)}: ${answer.content[0].text}`);
  check(answer.isError === true && answer._meta['trunkline/failure'].outcome === 'unknown', 'the lost call says so');
  await show('everything__echo', { message: 'back again' }, 'back again');
  const after = await serverStatus('everything');
  console.log(`  pid ${before.pid} became ${after.pid}, ${since(killedAt)} after the kill`);
  check(after.pid !== before.pid && after.generation === before.generation + 1, 'a new process took over');

  heading('trunkline__status:');
  const status = await call('trunkline__status', {});
  console.log(status.content[0].text.replace(/^/gm, '  '));
  for (const { pid } of status.structuredContent.servers) seenPids.add(pid);
} catch (error) {
  check(false, error instanceof Error ? error.message : String(error));
} finally {
  const closingAt = performance.now();
  await client.close();
  const left = [...seenPids].filter(isAlive);
  heading(`Closed after ${since(closingAt)}; of ${seenPids.size} processes ${left.length} are left.`);
  check(left.length === 0, `no process is left (${left.join(', ')})`);
}
heading(process.exitCode ? 'The demo FAILED.' : `All went well, in ${since(startedAt)}.`);

async function call(name, args, onprogress) {
  return await client.callTool({ name, arguments: args }, undefined, onprogress ? { onprogress } : undefined);
}

async function show(name, args, expected) {
  const result = await call(name, args);
  const text = result.content.map((block) => block.text ?? block.type).join(' ');
  console.log(`  ${name} -> ${text.replaceAll('\n', ' ').slice(0, 80)}`);
  check(!result.isError && text.includes(expected), `${name} answers with ${expected}`);
}

async function serverStatus(server) {
  const { structuredContent } = await call('trunkline__status', { server });
  seenPids.add(structuredContent.servers[0].pid);
  return structuredContent.servers[0];
}

function check(isTrue, what) {
  if (isTrue) return;
  console.log(`  NOT TRUE: ${what}`);
  process.exitCode = 1;
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    // ESRCH: there is no such process.
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
  console.log(`\n${text}`);
}

function since(at) {
  return `${((performance.now() - at) / 1000).toFixed(2)} s`;
}
