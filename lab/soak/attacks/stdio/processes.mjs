// Processes that end, fork, stay, or close what they should keep open. What a server may do with the rights of its user,
// such as writing Trunkline's own files or killing Trunkline, cannot be prevented, and is no part of this list.
import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { MARK } from './mark.mjs';

const MIB = 1024 * 1024;
const STUBBORN =
  "process.on('SIGTERM',()=>{});process.on('SIGINT',()=>{});process.on('SIGHUP',()=>{});setInterval(()=>{},1e6)";
const helper = (how = {}) => spawn(process.execPath, ['-e', STUBBORN], { stdio: 'inherit', ...how });
const ignoreSignals = () => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});
};
const stay = { onEnd: () => setInterval(() => {}, 1e6) };
const exit = (code) => process.exit(code);
const die = () => process.kill(process.pid, 'SIGKILL');

export const processes = [
  { name: 'ends at once with 0', onStart: () => exit(0) },
  { name: 'ends at once with 1', onStart: () => exit(1) },
  { name: 'dies at once', onStart: die },
  { name: 'dies at initialize', onInitialize: die },
  {
    name: 'dies in the middle of the answer to initialize',
    onInitialize: (id, _, { raw }) => {
      raw(`{"jsonrpc":"2.0","id":${id},"result":{"protocolVersion":`);
      die();
    },
  },
  {
    name: 'dies right after the answer to initialize',
    onInitialize: (id, params, server) => {
      server.initialize(id, params);
      die();
    },
  },
  { name: 'dies at initialized', onInitialized: die },
  { name: 'dies at tools/list', onList: die },
  {
    name: 'dies in the middle of tools/list',
    onList: (id, _, { raw }) => {
      raw(`{"jsonrpc":"2.0","id":${id},"result":{"tools":[`);
      die();
    },
  },
  {
    name: 'dies right after tools/list',
    onList: (id, _, server) => {
      server.tools(id);
      die();
    },
  },
  { name: 'dies at each call', onCall: die, attackMs: 3_000 },
  {
    name: 'dies in the middle of each answer',
    onCall: (id, _, { raw }) => {
      raw(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"${MARK}`);
      die();
    },
  },
  {
    name: 'answers, and dies at once',
    onCall: (id, _, server) => {
      server.text(id, 'fine');
      die();
    },
  },
  {
    name: 'ends a loop of starts as fast as it may',
    settings: { restart: { firstDelay: '10ms', maxDelay: '10ms', budget: 1_000 } },
    onInitialized: () => exit(0),
    attackMs: 3_000,
  },
  {
    name: 'throws at each call',
    onCall: () => {
      throw new Error(`${MARK} ${'\u001b[31m'.repeat(100)}`);
    },
  },
  { name: 'closes stdout and lives on', onInitialized: () => closeSync(1), ...stay },
  { name: 'closes stdin and lives on', onInitialized: () => process.stdin.destroy() },
  { name: 'closes stderr and lives on', onStart: () => closeSync(2) },
  {
    name: 'closes all pipes before the handshake',
    onStart: () => {
      closeSync(1);
      closeSync(2);
      process.stdin.destroy();
      setInterval(() => {}, 1e6);
    },
  },
  { name: 'reads nothing', onInitialized: () => process.stdin.pause() },
  {
    name: 'never reads, from the start',
    onStart: () => {
      for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
    },
    attackMs: 4_000,
  },
  { name: 'stops itself', onCall: () => process.kill(process.pid, 'SIGSTOP'), attackMs: 4_000 },
  { name: 'ignores SIGTERM and the end of stdin', onStart: ignoreSignals, ...stay },
  {
    name: 'uses the whole processor',
    onInitialized: () => {
      for (;;);
    },
  },
  { name: 'a helper that ignores SIGTERM and keeps the pipes', onInitialized: () => helper() },
  {
    name: 'a helper that stays when the server dies',
    onCall: () => {
      helper();
      setTimeout(die, 50);
    },
    attackMs: 3_000,
  },
  {
    name: '20 helpers that stay',
    onInitialized: () => {
      for (let n = 0; n < 20; n += 1) spawn('sleep', ['1000'], { stdio: 'inherit' });
    },
  },
  {
    name: 'forks when it has to end',
    onStart: () => process.on('SIGTERM', () => spawn('sleep', ['1000'], { stdio: 'ignore' })),
    ...stay,
  },
  {
    name: 'a daemon that leaves the group',
    onInitialized: () => helper({ detached: true, stdio: 'ignore' }).unref(),
  },
  { name: 'a daemon that keeps the pipes', onInitialized: () => helper({ detached: true }).unref() },
  {
    name: 'a daemon that writes answers after the server has died',
    onCall: (id) => {
      const lines = `for(let i=0;i<3000;i++)process.stdout.write(JSON.stringify({jsonrpc:'2.0',id:i%${id + 50},result:{content:[{type:'text',text:'${MARK}'}]}})+'\\n')`;
      spawn(process.execPath, ['-e', `setTimeout(()=>{${lines}},300)`], { stdio: 'inherit', detached: true });
      setTimeout(die, 30);
    },
  },
  { name: 'signals its own group', onCall: () => process.kill(0, 'SIGTERM') },
  {
    name: '100 MiB of memory, and one more each 10 ms',
    onInitialized: () => {
      const held = [];
      setInterval(() => held.length < 300 && held.push(Buffer.alloc(MIB, 1)), 10);
    },
  },
  {
    name: 'stderr: binary',
    onInitialized: ({ stderr }) =>
      stderr(Buffer.from(Array.from({ length: MIB }, (_, i) => (i * 167 + (i >> 3)) % 256))),
  },
  {
    name: 'stderr: a line of 64 MiB',
    onInitialized: ({ stderr }) => stderr(Buffer.alloc(64 * MIB, 'e')),
    attackMs: 2_500,
  },
  {
    name: 'stderr: 500,000 lines',
    onInitialized: ({ stderr }) => stderr('Error: no\n'.repeat(500_000)),
    attackMs: 2_500,
  },
  {
    name: 'stderr: escapes and log lines of Trunkline',
    onInitialized: ({ stderr }) =>
      stderr('\u001b[2J\u001b]0;x\u0007\n{"level":60,"msg":"Trunkline ends"}\n'.repeat(500)),
  },
  {
    name: 'stderr: a message as on stdout',
    onInitialized: ({ stderr }) => {
      for (let id = 0; id < 500; id += 1)
        stderr(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"${MARK}"}]}}\n`);
    },
  },
  { name: 'five servers that die at each call', attackers: 5, onCall: die, attackMs: 3_000 },
  { name: 'five servers that never answer', attackers: 5, onCall: () => {}, attackMs: 3_000 },
];
