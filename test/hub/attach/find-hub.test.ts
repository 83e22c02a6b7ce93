import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FoundHub, findHub } from '../../../src/hub/attach/find-hub.js';
import { claimSuccessor, hubFiles, hubNumbers } from '../../../src/hub/hub-folder.js';

const HELLO = { role: 'client', version: '1.0.0', pid: 1, folder: '/', environment: {}, resumed: 0 } as const;

let folder = '';
const hubs: Server[] = [];
const sockets: Socket[] = [];

beforeEach(() => {
  // The path of a socket is short.
  folder = mkdtempSync('/tmp/tlf-');
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const hub of hubs.splice(0)) await closed(hub);
  rmSync(folder, { recursive: true, force: true });
});

/** A hub that the test plays: it answers each hello with this line, or ends the connection. */
function answering(listener: Server, line: string | undefined): void {
  hubs.push(listener);
  listener.on('connection', (socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.once('data', () => {
      if (line === undefined) socket.destroy();
      else socket.write(`${line}\n`);
    });
  });
}

/** The hub that runs answers so. */
async function running(line: string | undefined): Promise<Server> {
  const claim = await claimSuccessor(folder, hubNumbers(folder).at(-1) ?? 0);
  if (claim === undefined) throw new Error('Another hub runs');
  answering(claim.listener, line);
  return claim.listener;
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

/** Looks for a hub; those that are started welcome the client. Says how many were started. */
async function find(): Promise<{ found: FoundHub; started: number }> {
  let started = 0;
  const start = ({ listener }: { readonly listener: Server }) => {
    started += 1;
    answering(listener, WELCOME);
  };
  return { found: await findHub({ folder, hello: HELLO, start }), started };
}

const WELCOME = '{"ok":true,"version":"1.0.0","pid":1}';

describe('a client that looks for a hub', () => {
  it('starts one if there is none, or if the latest is dead, whatever process has its id now', async () => {
    expect(await find()).toMatchObject({ found: { kind: 'attached', connection: { number: 1 } }, started: 1 });
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const hub of hubs.splice(0)) await closed(hub);
    // The process id of the dead hub belongs to somebody else by now.
    writeFileSync(hubFiles(folder, 1).pid, String(process.pid));
    expect(await find()).toMatchObject({ found: { kind: 'attached', connection: { number: 2 } }, started: 1 });
  });

  it('starts another one if the latest is ending', async () => {
    await running('{"ok":false,"because":"ending"}');
    expect(await find()).toMatchObject({ found: { kind: 'attached', connection: { number: 2 } }, started: 1 });
  });

  it.each([
    ['full', 'it has as many clients as it may have'],
    ['malformed', 'it does not understand this version'],
    ['a reason of a later version', 'its version has a reason that this version does not know'],
  ])('starts none if the hub refuses it: %s', async (because, why) => {
    await running(JSON.stringify({ ok: false, because }));
    const { found, started } = await find();
    expect(found).toEqual({ kind: 'none', because: `the hub did not take the client, because ${why}` });
    expect(started).toBe(0);
  });

  it.each([
    ['no welcome', 'HTTP/1.1 400 Bad Request'],
    ['nothing', undefined],
  ])('starts none if what listens there answers with %s, and gives up', async (_, line) => {
    await running(line);
    const { found, started } = await find();
    expect(found).toEqual({
      kind: 'none',
      because: 'each hub ended before it served this client',
    });
    expect([started, hubNumbers(folder)]).toEqual([0, [1]]);
  });

  it('starts none, and says why, after three that served nobody', async () => {
    for (let count = 0; count < 3; count += 1) await closed(await running(WELCOME));
    hubs.length = 0;
    const { found, started } = await find();
    expect(found).toMatchObject({
      kind: 'none',
      because: expect.stringContaining('three hubs failed within a minute'),
    });
    expect(started).toBe(0);
    writeFileSync(hubFiles(folder, 2).ended, '');
    expect(await find()).toMatchObject({ found: { kind: 'attached' }, started: 1 });
  });
});
