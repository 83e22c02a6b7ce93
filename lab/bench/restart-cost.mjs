// The processor time of one restart of a server, on Linux: in the gateway with all its threads, in the guardian, and in the
// new process until it is the server, without the server itself. Time on a clock says little on a machine that does other things.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const WARM_UP = 40;
const RESTARTS = 100;
const RESTART = { firstDelay: '50ms', maxDelay: '50ms', stableAfter: '1ms', budget: 1000 };
const NS_PER_MS = 1e6;
const TICK_MS = 10;
/** A server as a shell script, which needs little itself. It ends when it is called. */
const SERVER = `
while read -r line; do
  id=\${line#*'"id":'}
  id=\${id%%,*}
  id=\${id%\\}}
  case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"end","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) exit 1 ;;
    *) continue ;;
  esac
  echo "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":$id,\\"result\\":$result}"
done
`;

/** Rows of what and milliseconds for one restart. */
export async function costOfRestarts(folder) {
  const script = join(folder, 'server.sh');
  writeFileSync(script, SERVER);
  const command = { command: '/bin/sh', args: [script] };
  const server = await costOfServer(command);
  const config = join(folder, 'trunkline.json');
  writeFileSync(config, JSON.stringify({ servers: { s: { ...command, restart: RESTART } } }));
  const gateway = spawn(process.execPath, [CLI, '--config', config], {
    env: { ...process.env, XDG_DATA_HOME: join(folder, 'data') },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ask = asking(gateway);
  await ask('initialize', INITIALIZE);
  await ask('tools/list', {});
  const restart = async (times) => {
    for (let time = 0; time < times; time += 1) await ask('tools/call', { name: 's__end', arguments: {} });
  };
  await restart(WARM_UP);
  const guardian = childOf(gateway.pid, 'trunkline-guardian');
  const read = () => ({
    gateway: threadsMs(gateway.pid),
    guardian: threadsMs(guardian),
    servers: childrenMs(gateway.pid),
  });
  const before = read();
  await restart(RESTARTS);
  const after = read();
  gateway.stdin.end();
  await once(gateway, 'exit');
  const each = (what) => (after[what] - before[what]) / RESTARTS;
  const started = each('servers') - server;
  return [
    ['the gateway, with all its threads', each('gateway')],
    ['the guardian', each('guardian')],
    ['the new process until it is the server', started],
    ['together', each('gateway') + each('guardian') + started],
    ['the server itself, not in the sum', server],
  ];
}

const INITIALIZE = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };

/** What the server takes when this process starts it and speaks with it as the gateway does. */
async function costOfServer({ command, args }) {
  const before = childrenMs(process.pid);
  for (let time = 0; time < RESTARTS; time += 1) {
    const server = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] });
    const exit = once(server, 'exit');
    const ask = asking(server);
    await ask('initialize', INITIALIZE);
    await ask('tools/list', {});
    void ask('tools/call', {});
    await exit;
  }
  return (childrenMs(process.pid) - before) / RESTARTS;
}

function asking({ stdin, stdout }) {
  const waiting = new Map();
  let id = 0;
  createInterface({ input: stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  });
  return (method, params) => {
    id += 1;
    const answer = new Promise((resolve) => waiting.set(id, resolve));
    stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    if (method === 'initialize') stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    return answer;
  };
}

function childOf(parent, mark) {
  return readdirSync('/proc').find((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return Number(statOf(pid)[1]) === parent && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(mark);
    } catch {
      return false;
    }
  });
}

/** Fields after the name. */
function statOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function threadsMs(pid) {
  const threads = readdirSync(`/proc/${pid}/task`);
  const times = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]);
  return times.reduce((sum, time) => sum + Number(time), 0) / NS_PER_MS;
}

/** Of children that have ended and were waited for. */
function childrenMs(pid) {
  const fields = statOf(pid);
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS;
}
