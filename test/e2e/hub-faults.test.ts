import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CLI, type Message } from '../support/gateway-process.js';
import { sharedPlace, WITH_HUB } from '../support/hub-place.js';
import { copyInto } from '../support/own-copy.js';
import { dataIn } from '../support/platform.js';
import { leadsSession, until, variablesOf } from '../support/processes.js';

const LAB = { servers: { lab: { sharing: 'profile' } } };

async function textOf(answer: Promise<{ message: Message }>): Promise<string> {
  return (await answer).message.result.content[0].text;
}

function toolsCall(id: number, name: string, args: Message = {}): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } });
}

describe('a hub that is killed', () => {
  it('F99: leaves its clients to the next one, which takes no late answer for its own', async () => {
    const place = sharedPlace(LAB);
    const [one, other] = [await place.client({}, { handshake: false }), await place.client()];
    await one.initialize('2025-11-25', { roots: {} });
    await one.listTools();
    const killed = place.hubPid;
    void one.call('lab__ask', { method: 'roots/list' });
    const lost = one.call('lab__wait', { delayMs: 600_000 });
    const asked = (count: number) => until('a server request', () => one.notifications('roots/list').length === count);
    await asked(1);
    process.kill(killed, 'SIGKILL');
    expect((await lost).message.result).toMatchObject({
      isError: true,
      _meta: { 'trunkline/failure': { reason: 'hub_exited', outcome: 'unknown' } },
    });
    // The next hub says so when it has taken over.
    await until('the next hub', () => other.notifications('notifications/tools/list_changed').length > 0);
    expect(await textOf(other.call('lab__wait', { delayMs: 0, marker: 'again' }))).toBe('again');
    expect(place.hubPid).not.toBe(killed);

    const answer = one.call('lab__ask', { method: 'roots/list' });
    await asked(2);
    const [first, second] = one.notifications('roots/list').map(({ message }) => message.id);
    one.send(JSON.stringify({ jsonrpc: '2.0', id: first, result: { roots: ['late'] } }));
    one.send(JSON.stringify({ jsonrpc: '2.0', id: second, result: { roots: ['right'] } }));
    expect(await textOf(answer)).toContain('right');
    expect(readdirSync(place.hubFolder).filter((name) => /^\d+$/.test(name))).toEqual(['1', '2']);
  });
});

describe('a hub that ends by SIGTERM', () => {
  it('F100: is replaced when a client needs one, and calls in flight are answered', async () => {
    const place = sharedPlace(LAB);
    const client = await place.client();
    await client.listTools();
    const ended = place.hubPid;
    const lost = client.call('lab__wait', { delayMs: 600_000 });
    // An answer to a later message shows that the hub has the call.
    await client.call('lab__wait', { delayMs: 0, marker: 'sent' });
    process.kill(ended, 'SIGTERM');
    expect((await lost).message.result).toMatchObject({ isError: true });
    expect(await textOf(client.call('lab__wait', { delayMs: 0, marker: 'again' }))).toBe('again');
    await until('the first hub ends', () => !place.hubPids.includes(ended));
    expect(place.hubPid).not.toBe(ended);
  });
});

describe('a hub that is stopped by SIGSTOP', () => {
  it('F101: keeps its clients, while a new client is served alone and no second hub is started', async () => {
    const place = sharedPlace(LAB);
    const before = await place.client();
    await before.listTools();
    process.kill(place.hubPid, 'SIGSTOP');
    const waiting = before.call('lab__wait', { delayMs: 0, marker: 'late' });
    const alone = await place.client();
    expect(await textOf(alone.call('lab__wait', { delayMs: 0, marker: 'alone' }))).toBe('alone');
    expect(place.hubPids).toHaveLength(1);
    process.kill(place.hubPid, 'SIGCONT');
    expect(await textOf(waiting)).toBe('late');
  });
});

describe('a client of a later version', () => {
  it('F112: starts a hub of its version, to which the other clients move with their sessions', async () => {
    const place = sharedPlace(LAB);
    const older = await place.client();
    await older.listTools();
    const before = place.hubPid;
    const later = mkdtempSync(join(place.folder, 'later-'));
    const program = copyInto(later, '999.0.0');
    const via = ['/bin/sh', '-c', `node=$1; shift 2; exec "$node" '${program}' "$@"`, 'sh'];
    const newer = await place.client({ via });
    await until('the older hub ends', () => !place.hubPids.includes(before));
    expect(place.hubPids).toHaveLength(1);
    for (const client of [older, newer])
      expect(await textOf(client.call('lab__wait', { delayMs: 0, marker: 'moved' }))).toBe('moved');
    expect(place.serverPids('lab.mjs')).toHaveLength(1);
  });
});

describe('a client of a hub', () => {
  it('F104: that reads nothing delays no other, loses no answer without a word, and goes on when it reads again', async () => {
    const place = sharedPlace(LAB);
    const silent = await place.client({ mayBreak: true });
    const others = await Promise.all(Array.from({ length: 3 }, () => place.client()));
    await silent.listTools();
    silent.pauseReading();
    const answers = Array.from({ length: 8 }, () => silent.call('lab__big', { bytes: 10 * 1024 * 1024 }));
    for (let count = 0; count < 10; count += 1) {
      const markers = others.map((_, index) => `${index}-${count}`);
      const asked = others.map((other, index) =>
        textOf(other.call('lab__wait', { delayMs: 0, marker: markers[index] })),
      );
      expect(await Promise.all(asked)).toEqual(markers);
    }
    silent.resumeReading();
    const texts = await Promise.all(answers.map((answer) => textOf(answer)));
    const whole = 'x'.repeat(10 * 1024 * 1024);
    const lost = 'The hub ended unexpectedly while this call was in flight';
    expect(texts.filter((text) => text !== whole && !text.startsWith(lost))).toEqual([]);
    expect(await textOf(silent.call('lab__wait', { delayMs: 0, marker: 'on' }))).toBe('on');
  });
});

describe('the process of a hub', () => {
  it('F106: has the way to its data, no marks of an outer Trunkline and a session of its own, and ignores SIGHUP', async () => {
    const args = [`\${HOME}`, `\${XDG_DATA_HOME}`, `\${OF_CLIENT}`];
    const place = sharedPlace({ servers: { lab: { args, sharing: 'profile' } } });
    const client = await place.client({ env: { TRUNKLINE_FAMILY_outer: '1', OF_CLIENT: 'one' } });
    await client.listTools();
    const pid = place.hubPid;
    const variables = variablesOf(pid);
    const { XDG_DATA_HOME, HOME = process.env.HOME } = dataIn(join(place.folder, 'data'));
    expect(variables).toEqual(expect.arrayContaining([`HOME=${HOME}`, `XDG_DATA_HOME=${XDG_DATA_HOME}`]));
    expect(variables.filter((variable) => /^TRUNKLINE_FAMILY|^OF_CLIENT/.test(variable))).toEqual([]);
    expect(leadsSession(pid)).toBe(true);
    process.kill(pid, 'SIGHUP');
    expect(await textOf(client.call('lab__wait', { delayMs: 0, marker: 'here' }))).toBe('here');
    expect(place.hubPid).toBe(pid);
  });

  it('F216: sends a variable that the configuration names again, although the file did not name it when the client came', async () => {
    const program = fileURLToPath(new URL('../fixtures/servers/origin.mjs', import.meta.url));
    const named = { lab: {}, origin: { program, args: [`--key=\${OF_CLIENT}`] } };
    const place = sharedPlace({ servers: named });
    const one = await place.client({ env: { OF_CLIENT: 'one' } });
    await one.untilState('origin', 'ready');
    one.configure({ lab: {} });
    await one.untilStatus('the server is removed', ({ servers }) => servers.length === 1);
    const two = await place.client({ servers: { lab: {} }, env: { OF_CLIENT: 'two' } });
    await two.listTools();
    two.configure(named);
    await one.untilStatus('the server is there again', ({ servers }) => servers.length === 2);
    await one.untilState('origin', 'ready');
    await two.untilState('origin', 'ready');
    for (const [client, value] of [
      [one, 'one'],
      [two, 'two'],
    ] as const) {
      const { args } = JSON.parse(await textOf(client.call('origin__where')));
      expect(args).toContain(`--key=${value}`);
    }
  });

  it('F217: that a client became serves it on with a variable that the configuration names later', async () => {
    const program = fileURLToPath(new URL('../fixtures/servers/origin.mjs', import.meta.url));
    const place = sharedPlace(LAB);
    const client = await place.client({ env: { OF_CLIENT: 'own' } });
    await client.listTools();
    // As if later hubs had failed.
    for (const number of ['2', '3', '4']) mkdirSync(join(place.hubFolder, number));
    process.kill(place.hubPid, 'SIGKILL');
    await until('it serves itself', () => client.notifications('notifications/tools/list_changed').length > 0);
    await client.untilState('lab', 'ready');
    expect(place.hubPids).toEqual([]);
    client.configure({ lab: {}, origin: { program, args: [`--key=\${OF_CLIENT}`] } });
    await client.untilStatus('the server is there', ({ servers }) => servers.length === 2);
    await client.untilState('origin', 'ready');
    expect(JSON.parse(await textOf(client.call('origin__where'))).args).toContain('--key=own');
  });

  it('F215: serves clients while the configuration has mistakes, and shares the servers when they are corrected', async () => {
    const wrong = { ...LAB, gateway: { hubb: 1 } };
    const place = sharedPlace(wrong);
    const clients = [await place.client(), await place.client()] as const;
    for (const client of clients) {
      const answer = await client.call('trunkline__status');
      const { hub, aloneBecause, configFault } = answer.message.result.structuredContent;
      expect({ hub, aloneBecause, configFault }).toEqual({
        hub: expect.objectContaining({ pid: place.hubPid }),
        aloneBecause: undefined,
        configFault: expect.stringContaining('hubb'),
      });
    }
    clients[0].configure(LAB.servers);
    for (const client of clients) {
      await client.untilStatus('the mistake is corrected', ({ configFault }) => configFault === undefined);
      await client.untilState('lab', 'ready');
    }
    expect(place.serverPids('lab.mjs')).toHaveLength(1);
  });

  it('ends when the mistakes are corrected, if the configuration wants no hub then', async () => {
    const wrong = { ...LAB, gateway: { hubb: 1 } };
    const place = sharedPlace(wrong);
    const client = await place.client();
    await client.untilStatus('the hub serves it', ({ hub }) => hub !== undefined);
    client.configure({ lab: { args: [`\${HOME}`] } }, { hub: 'off' });
    await until('the hub has ended', () => place.hubPids.length === 0);
    await until('the next one', () => client.notifications('notifications/tools/list_changed').length > 0);
    const { aloneBecause } = await client.untilStatus('it serves itself', ({ servers }) => servers.length === 1);
    expect(aloneBecause).toBe('the hub is off in the configuration');
  });

  it('answers a client that is a shell pipe', async () => {
    const place = sharedPlace(LAB);
    const first = await place.client();
    await first.listTools();
    const lines = [
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}',
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      toolsCall(2, 'lab__wait', { delayMs: 50, marker: 'piped' }),
    ];
    const env = { ...process.env, ...WITH_HUB, TRUNKLINE_HUB_DIR: place.hubs };
    const data = dataIn(join(place.folder, 'data'));
    const child = spawn(process.execPath, [CLI, '--config', first.file], { env: { ...env, ...data } });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.stdin.end(`${lines.join('\n')}\n`);
    expect(await ended).toBe(0);
    expect(output).toContain('"text":"piped"');
    expect(place.serverPids('lab.mjs')).toHaveLength(1);
  });
});
