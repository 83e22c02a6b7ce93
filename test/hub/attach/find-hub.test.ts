import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FoundHub, findHub } from '../../../src/hub/attach/find-hub.js';
import { addressIn, type EndpointForm, passClaim } from '../../../src/hub/endpoint.js';
import { type Claim, claimSuccessor, hubFiles, hubNumbers } from '../../../src/hub/hub-folder.js';
import { SHORT_TMP } from '../../support/platform.js';
import { formsIn, listening, playHub } from '../forms.js';

const HELLO = {
  role: 'client',
  version: '1.0.0',
  pid: 1,
  folder: '/',
  environment: { SECRET: 'canary' },
  resumed: 0,
} as const;

let folder = '';
const hubs: Server[] = [];
const sockets: Socket[][] = [];

beforeEach(() => {
  // The path of a socket is short.
  folder = mkdtempSync(join(SHORT_TMP, 'tlf-'));
});

afterEach(async () => {
  await endAll();
  rmSync(folder, { recursive: true, force: true });
});

/** The processes of all hubs end. */
async function endAll(): Promise<void> {
  for (const socket of sockets.splice(0).flat()) socket.destroy();
  for (const hub of hubs.splice(0)) await closed(hub);
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

/** A pid that no process has any more. */
const GONE = 2 ** 22 + 4;
const WELCOME = '{"ok":true,"version":"1.0.0","pid":1}';

describe.each(formsIn(() => folder))('a client that looks for a hub, with %s,', (_form, form: EndpointForm) => {
  /** The process of this hub listens, and answers the hello of each client so. */
  async function begin(claim: Claim, line: string | undefined): Promise<Server> {
    const hub = await listening(claim, folder);
    hubs.push(hub);
    sockets.push(playHub(hub, hubFiles(folder, claim.number), line));
    return hub;
  }

  /** The hub that runs answers so. */
  async function running(line: string | undefined): Promise<Server> {
    const claim = await claimSuccessor(folder, hubNumbers(folder).at(-1) ?? 0, form);
    if (claim === undefined) throw new Error('Another hub runs');
    return await begin(claim, line);
  }

  /** Looks for a hub; those that are started welcome the client, after `lateMs` if they listen themselves. Says how many were started. */
  async function find(lateMs = 0): Promise<{ found: FoundHub; started: number }> {
    let started = 0;
    const start = (claim: Claim) => {
      started += 1;
      if (claim.listener === undefined) void setTimeout(lateMs).then(() => begin(claim, WELCOME));
      else void begin(claim, WELCOME);
    };
    return { found: await findHub({ folder, hello: HELLO, start, form }), started };
  }

  /** The process of a hub ends without a word. */
  async function die(number: number): Promise<void> {
    await endAll();
    const { folder: own } = hubFiles(folder, number);
    if (addressIn(own) !== hubFiles(folder, number).socket) passClaim(own, GONE);
  }

  it('starts one if there is none, or if the latest is dead, whatever process has its id now', async () => {
    expect(await find()).toMatchObject({ found: { kind: 'attached', connection: { number: 1 } }, started: 1 });
    await die(1);
    // The process id of the dead hub belongs to somebody else by now, who was started after the file was written.
    writeFileSync(hubFiles(folder, 1).pid, String(process.pid));
    utimesSync(hubFiles(folder, 1).pid, 1, 1);
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

  it('F103: starts none, and says why, after three that served nobody', async () => {
    for (const number of [1, 2, 3]) {
      await running(WELCOME);
      await die(number);
    }
    const { found, started } = await find();
    expect(found).toMatchObject({
      kind: 'none',
      because: expect.stringContaining('three hubs failed within a minute'),
    });
    expect(started).toBe(0);
    writeFileSync(hubFiles(folder, 2).ended, '');
    expect(await find()).toMatchObject({ found: { kind: 'attached' }, started: 1 });
  });

  it('waits for a hub that needs a while before it answers', async () => {
    expect(await find(300)).toMatchObject({ found: { kind: 'attached', connection: { number: 1 } }, started: 1 });
  });

  it('tells its variables to nothing that listens in place of a dead hub, and starts another one', async () => {
    await running(WELCOME);
    await die(1);
    const told: string[] = [];
    const stranger = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (text) => {
        told.push(String(text));
        socket.write('{"nonce":"n","proof":"guessed"}\n');
      });
    });
    rmSync(addressIn(hubFiles(folder, 1).folder), { force: true });
    await new Promise<void>((resolve) => stranger.listen(addressIn(hubFiles(folder, 1).folder), resolve));
    expect(await find()).toMatchObject({ found: { kind: 'attached', connection: { number: 2 } }, started: 1 });
    expect(told).toEqual([expect.stringMatching(/^\{"wire":2,"nonce":"[\w-]+"\}\n$/)]);
    await closed(stranger);
  });
});
