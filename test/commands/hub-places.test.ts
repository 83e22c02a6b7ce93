// A hub where the machine does not cooperate: full disks, folders that cannot be written, and everything that can happen
// between the moment at which a client finds no hub and the one at which the next hub serves it.
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hubNumbers } from '../../src/hub/hub-folder.js';
import { proofOf } from '../../src/hub/proof.js';
import { WIRE } from '../../src/hub/wire.js';
import type { GatewayProcess, Message } from '../support/gateway-process.js';
import { type HubPlace, sharedPlace } from '../support/hub-place.js';
import { copyInto } from '../support/own-copy.js';
import { fixture, until } from '../support/processes.js';
import { repetitions } from '../support/repetitions.js';

const LAB = { servers: { lab: { sharing: 'profile' } } };

async function textOf(client: GatewayProcess, marker: string): Promise<string> {
  return (await client.call('lab__wait', { delayMs: 0, marker })).message.result.content[0].text;
}

/** The text of the status, which says how the client is served. */
async function service(client: GatewayProcess): Promise<string> {
  const { message } = await client.call('trunkline__status');
  return message.result.content[0].text;
}

/** Starts the program with files of at most so many blocks of 512 bytes: every longer write fails, as on a full disk. */
const withFilesOf = (blocks: number) => ['/bin/sh', '-c', `ulimit -f ${blocks}; exec "$@"`, 'sh'];

describe('on a full disk', () => {
  it('F138: a client that would start a hub serves itself and says why, and nothing of the attempt is left', async () => {
    const place = sharedPlace(LAB);
    const client = await place.client({ via: withFilesOf(0) });
    expect(await textOf(client, 'alone')).toBe('alone');
    expect(await service(client)).toContain('the hub cannot be started (EFBIG');
    expect([place.hubPids, readdirSync(place.hubFolder)]).toEqual([[], []]);
  });

  it('F139: a hub that can write neither its log nor a cache serves its clients, and so does the next one', async () => {
    const place = sharedPlace(LAB);
    const via = withFilesOf(1);
    const [one, other] = [await place.client({ via, args: ['-v'] }), await place.client({ via })];
    for (const client of [one, other]) expect(await textOf(client, 'shared')).toBe('shared');
    const killed = place.hubPid;
    process.kill(killed, 'SIGKILL');
    await other.listTools();
    for (const client of [one, other]) expect(await textOf(client, 'again')).toBe('again');
    expect(place.serverPids('lab.mjs')).toHaveLength(1);
    expect(place.hubPid).not.toBe(killed);
  });
});

describe('in folders that cannot be written, or of another user', () => {
  it('F140: a client serves itself and says which folder it is', async () => {
    const place = sharedPlace(LAB);
    // Root could write everywhere, so another user runs it, who can read the configuration.
    const via = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
    const data = join(place.folder, 'data');
    mkdirSync(data);
    for (const [folder, mode] of [
      [place.folder, 0o755],
      [data, 0o555],
      [place.hubs, 0o555],
    ] as const)
      chmodSync(folder, mode);
    const hubs = join(place.hubs, 'hubs');
    const client = await place.client({ via, env: { TRUNKLINE_HUB_DIR: hubs } });
    expect(await textOf(client, 'alone')).toBe('alone');
    expect(await service(client)).toContain(`the folder ${hubs} cannot be created: this user may not do that (EACCES)`);
    const inOthers = await place.client({ via, env: { TRUNKLINE_HUB_DIR: '/' } });
    expect(await textOf(inOthers, 'alone')).toBe('alone');
    expect(await service(inOthers)).toContain('the folder / belongs to another user');
    chmodSync(place.hubs, 0o700);
  });
});

/** Runs the program without the right to open Unix sockets, as sandboxes do. Needs no rights. */
const WITHOUT_SOCKETS = ['perl', fixture('without-sockets.pl')];

describe('in a sandbox that forbids sockets', () => {
  it('F240: a client serves itself and says why, and nothing of the attempt is left', async () => {
    const place = sharedPlace(LAB);
    const client = await place.client({ via: WITHOUT_SOCKETS });
    expect(await textOf(client, 'alone')).toBe('alone');
    expect(await service(client)).toContain('the hub cannot be started (listen EPERM');
    expect([place.hubPids, readdirSync(place.hubFolder)]).toEqual([[], []]);
  });

  it('F240: a client that may not connect to the hub that runs serves itself and says why', async () => {
    const place = sharedPlace(LAB);
    const outside = await place.client();
    expect(await textOf(outside, 'shared')).toBe('shared');
    const client = await place.client({ via: WITHOUT_SOCKETS });
    expect(await textOf(client, 'alone')).toBe('alone');
    expect(await service(client)).toContain('the hub cannot be reached (connect EPERM');
    expect(await service(outside)).toContain('Served by the hub');
  });
});

describe('a client that comes', () => {
  it('F141: at the moment at which the idle hub ends gets a hub, round after round', async () => {
    const place = sharedPlace({ ...LAB, gateway: { hubIdle: '1ms' } });
    let last = await place.client();
    for (let round = 1; round <= repetitions({ full: 40, short: 3 }); round += 1) {
      // Both at once: the hub ends while the next client looks for it, starts, or says hello.
      const [next] = await Promise.all([place.client(), last.end()]);
      expect(await textOf(next, `${round}`)).toBe(`${round}`);
      expect(await service(next)).toContain('Served by the hub');
      last = next;
    }
    await until('one hub', () => place.hubPids.length === 1);
  });

  it('F142: before the hub has read its configuration is not refused for the number of those that came with it', async () => {
    const place = sharedPlace(LAB);
    const gate = join(place.folder, 'gate');
    const waits = `while [ ! -e ${gate} ]; do sleep 0.02; done; echo secret`;
    const reference = ['$', '{secret:name}'].join('');
    const config = { secretCommand: { name: ['/bin/sh', '-c', waits] } };
    const first = await place.client({ servers: { lab: { env: { SECRET: reference } } }, config });
    const others = await Promise.all(Array.from({ length: 80 }, () => hello(place)));
    writeFileSync(gate, '');
    expect(await textOf(first, 'served')).toBe('served');
    expect(others.map(({ answer }) => answer.ok)).toEqual(Array(80).fill(true));
    for (const { socket } of others) socket.destroy();
  });

  it('F143: with another wire protocol is refused, and the hub goes on', async () => {
    const place = sharedPlace(LAB);
    const client = await place.client();
    for (const wire of [1, 3]) {
      const { answer, socket } = await hello(place, { wire });
      expect(answer).toEqual({ ok: false, because: 'malformed' });
      socket.destroy();
    }
    expect(await textOf(client, 'here')).toBe('here');
  });

  it.each(['client', 'control'])('F200: without the token of the hub is refused, as a %s', async (role) => {
    const place = sharedPlace(LAB);
    const client = await place.client();
    const token = readFileSync(join(place.hubFolder, '1', 'token'), 'latin1');
    const others = ['', 'x'.repeat(token.length), token.slice(1), `${token}x`];
    const asked = await Promise.all(others.map((other) => hello(place, { role }, other)));
    expect(asked.map(({ answer }) => answer)).toEqual(Array(4).fill({ ok: false, because: 'token' }));
    for (const { socket } of asked) socket.destroy();
    expect(await textOf(client, 'here')).toBe('here');
  });
});

/** Connects to the hub as an attach process does. */
async function hello(
  place: HubPlace,
  more: Message = {},
  known?: string,
): Promise<{ answer: Message; socket: Socket }> {
  const folder = join(place.hubFolder, '1');
  const token = known ?? readFileSync(join(folder, 'token'), 'latin1');
  const socket = connect(join(folder, 's'));
  const ask = async (message: Message): Promise<Message> => {
    socket.write(`${JSON.stringify(message)}\n`);
    const [data] = await once(socket, 'data');
    return JSON.parse(String(data));
  };
  const own = { wire: WIRE, ...more };
  const answer = await ask({ ...own, nonce: 'n' });
  if (!('nonce' in answer)) return { answer, socket };
  const proof = proofOf('client', token, { client: 'n', hub: answer.nonce });
  const about = { proof, role: 'client', version: '0.0.0', pid: 1, folder: '/', environment: {}, resumed: 0 };
  return { answer: await ask({ ...about, ...own }), socket };
}

describe('a client whose hub dies', () => {
  it('F144: within a line goes on with that line at the next hub', async () => {
    const place = sharedPlace(LAB);
    const client = await place.client();
    await client.listTools();
    client.forget();
    client.write('{"jsonrpc":"2.0","id":700,"method":"tools/call","params":{"name":"lab__wa');
    process.kill(place.hubPid, 'SIGKILL');
    await until('the next hub', () => client.notifications('notifications/tools/list_changed').length > 0);
    client.write('it","arguments":{"delayMs":0,"marker":"whole"}}}\n');
    const answers = () => client.received.filter(({ message }) => message.id === 700);
    await until('the answer', () => answers().length > 0);
    expect(answers().map(({ message }) => message.result.content[0].text)).toEqual(['whole']);
    expect(hubNumbers(place.hubFolder)).toEqual([1, 2]);
  });

  it('F144: within an answer gets that line broken off, and a whole answer that says so', async () => {
    const place = sharedPlace(LAB);
    const client = await place.client({ mayBreak: true });
    await client.listTools();
    client.pauseReading();
    const answer = client.call('lab__big', { bytes: 10 * 1024 * 1024 });
    await until('a part of the answer', () => client.unreadBytes > 0);
    process.kill(place.hubPid, 'SIGKILL');
    client.resumeReading();
    expect((await answer).message.result._meta['trunkline/failure']).toMatchObject({ reason: 'hub_exited' });
    // Servers differ in which member of an answer comes first.
    expect(client.broken.map((line) => line.slice(0, 24))).toEqual([
      expect.stringMatching(/^\{"(?:jsonrpc|result|id)":/),
    ]);
    expect(await textOf(client, 'on')).toBe('on');
  });
});

describe('a hub whose program is gone, as after an update', () => {
  it('F145: serves on: clients come and leave, a server restarts, and a changed configuration is applied or refused', async () => {
    const place = sharedPlace(LAB);
    const installed = mkdtempSync(join(place.folder, 'installed-'));
    const program = copyInto(installed);
    const via = ['/bin/sh', '-c', `node=$1; shift 2; exec "$node" '${program}' "$@"`, 'sh'];
    const client = await place.client({ via });
    await client.listTools();
    const pid = place.hubPid;
    client.configure({ lab: {}, more: {} });
    await until('the changed configuration is applied', () => place.serverPids('lab.mjs').length === 2);
    rmSync(installed, { recursive: true });

    const other = await place.client({ servers: { lab: {}, more: {} } });
    const answer = other.call('lab__wait', { delayMs: 50, marker: 'drained' });
    const code = other.end();
    expect((await answer).message.result.content[0].text).toBe('drained');
    expect(await code).toBe(0);
    const [server = 0] = place.serverPids('lab.mjs');
    process.kill(server, 'SIGKILL');
    await until('the killed server runs again', () => {
      const pids = place.serverPids('lab.mjs');
      return pids.length === 2 && !pids.includes(server);
    });
    client.writeConfig('servers: {lab: &lab {command: x}}');
    const log = join(place.hubFolder, 'hub.log');
    await until('the change is refused', () => readFileSync(log, 'utf8').includes('the previous one stays active'));
    expect(await textOf(client, 'on')).toBe('on');
    expect(place.hubPid).toBe(pid);

    process.kill(pid, 'SIGKILL');
    expect(await client.exited).toBe(1);
    expect(client.stderr).toContain(`${program} cannot be loaded any more, as after an update; start the client again`);
  });
});

describe('a client whose Node is gone, as after an update', () => {
  it('F199: serves itself when the hub ends, says why, and keeps no other client from starting a hub', async () => {
    const place = sharedPlace(LAB);
    const node = join(mkdtempSync(join(place.folder, 'node-')), 'node');
    copyFileSync(process.execPath, node);
    const client = await place.client({ via: ['/bin/sh', '-c', `shift; exec '${node}' "$@"`, 'sh'] });
    await client.listTools();
    rmSync(node);
    process.kill(place.hubPid, 'SIGKILL');
    await client.listTools();
    expect(await service(client)).toContain(`because the hub cannot be started (${node} cannot be run)`);
    expect(await textOf(client, 'alone')).toBe('alone');
    const other = await place.client();
    expect(await service(other)).toContain('Served by the hub');
    expect(await textOf(other, 'shared')).toBe('shared');
  });
});

describe('a process that starts the hub', () => {
  it('F146: and dies after any of its steps leaves the way free for the next client', async () => {
    const preload = fixture('die-at.cjs');
    const all = ['number', 'process', 'token', 'draft', 'socket', 'log', 'pid'];
    const steps = all.slice(0, repetitions({ full: all.length, short: 3 }));
    await Promise.all(
      steps.map(async (step) => {
        const place = sharedPlace(LAB);
        const env = { NODE_OPTIONS: `--require ${JSON.stringify(preload)}`, DIE_AT: step };
        const dead = await place.client({ env }, { handshake: false });
        await dead.exited;
        const client = await place.client();
        expect(await textOf(client, step)).toBe(step);
        expect(await service(client), step).toContain('Served by the hub');
        expect(place.hubPids, step).toHaveLength(1);
      }),
    );
  });
});
