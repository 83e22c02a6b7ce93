import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { connect, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addressIn, type EndpointForm, isClaimHeld, passClaim } from '../../src/hub/endpoint.js';
import {
  claimSuccessor,
  hubFiles,
  hubFolder,
  hubNumbers,
  inspectHubFolder,
  isHubFailing,
  latestHub,
  numberOf,
} from '../../src/hub/hub-folder.js';
import { removeLeftovers } from '../../src/hub/server/hub-listener.js';
import { HAS_MODES, IS_WINDOWS, SHORT_TMP, shownMode } from '../support/platform.js';
import { formsIn, listening } from './forms.js';

let base = '';

beforeEach(() => {
  base = mkdtempSync(join(SHORT_TMP, 'tlp-'));
});

afterEach(() => rmSync(base, { recursive: true, force: true }));

const place = (hubsFolder: string, configFile = '/c.yaml', dataFolder = '/d') =>
  hubFolder({ configFile, dataFolder, hubsFolder });

/** What the work returns, or else the message of its error. */
function outcome(work: () => string): string {
  try {
    return work();
  } catch (error) {
    return (error as Error).message;
  }
}

describe('the folder of a hub', () => {
  it('is the same for the same configuration and data, and another one for others', () => {
    const hubs = join(base, 'hubs');
    const keys = [place(hubs), place(hubs), place(hubs, '/other.yaml'), place(hubs, '/c.yaml', '/other')];
    expect(new Set(keys).size).toBe(3);
    expect(keys[0]).toBe(keys[1]);
    expect(basename(keys[0] ?? '')).toMatch(/^[0-9a-f]{16}$/);
    for (const folder of [hubs, ...keys]) expect(statSync(folder).mode & 0o777).toBe(shownMode(0o700));
  });

  it('F109: is refused if others can enter it, or the folder that it is in', () => {
    const hubs = join(base, 'hubs');
    const own = place(hubs);
    // On Windows, the folder of the user keeps others out.
    const exposed = (folder: string) => (HAS_MODES ? `other users can enter the folder ${folder}` : own);
    chmodSync(own, 0o710);
    expect(outcome(() => place(hubs))).toBe(exposed(own));
    chmodSync(hubs, 0o701);
    expect(outcome(() => place(hubs))).toBe(exposed(hubs));
  });

  it('is found without being created, and with what is wrong with it', () => {
    const hubs = join(base, 'hubs');
    const options = { configFile: '/c.yaml', dataFolder: '/d', hubsFolder: hubs };
    expect(inspectHubFolder(options)).toEqual({ faults: [] });
    expect(existsSync(hubs)).toBe(false);
    const own = place(hubs);
    expect(inspectHubFolder(options)).toEqual({ folder: own, faults: [] });
    chmodSync(own, 0o710);
    const exposed = { faults: [`other users can enter the folder ${own}`] };
    expect(inspectHubFolder(options)).toEqual(HAS_MODES ? exposed : { folder: own, faults: [] });
  });

  it('is refused if it is a symbolic link', () => {
    mkdirSync(join(base, 'real'), { mode: 0o700 });
    symlinkSync(join(base, 'real'), join(base, 'link'));
    expect(() => place(join(base, 'link'))).toThrow('is a symbolic link');
  });

  it('is refused if it is a file', () => {
    writeFileSync(join(base, 'file'), '');
    expect(() => place(join(base, 'file'))).toThrow('is not a folder');
  });

  it.runIf(process.getuid?.() === 0)('is refused if it belongs to another user', () => {
    const hubs = join(base, 'hubs');
    mkdirSync(hubs, { mode: 0o700 });
    chownSync(hubs, 12_345, 12_345);
    expect(() => place(hubs)).toThrow(`the folder ${hubs} belongs to another user`);
  });

  it('is refused if its path is too long for a socket, since Node would cut it, but not on Windows, which has pipes', () => {
    const hubsFolder = join(base, 'x'.repeat(80));
    const faults = IS_WINDOWS ? [] : [`the path ${hubsFolder} is too long for a socket`];
    expect(inspectHubFolder({ configFile: '/c.yaml', dataFolder: '/d', hubsFolder })).toEqual({ faults });
    expect(outcome(() => dirname(place(hubsFolder)))).toBe(faults[0] ?? hubsFolder);
  });

  it('is refused with the reason if it cannot be created', () => {
    writeFileSync(join(base, 'file'), '');
    const hubs = join(base, 'file', 'hubs');
    expect(() => place(hubs)).toThrow(
      `the folder ${hubs} cannot be created: a part of its path is a file, not a folder (ENOTDIR)`,
    );
  });
});

describe('the numbers of hubs', () => {
  it('are those of the folders, by their value', () => {
    for (const name of ['10', '9', '.1-draft', '0', '01', 'x', '1234567890']) mkdirSync(join(base, name));
    expect([hubNumbers(base), latestHub(base)]).toEqual([[9, 10], 10]);
    expect(numberOf(hubFiles(base, 10).folder)).toBe(10);
  });
});

let folder = '';
const hubs: Server[] = [];

beforeEach(() => {
  // The path of a socket is short.
  folder = mkdtempSync(join(SHORT_TMP, 'tlc-'));
});

afterEach(async () => {
  for (const hub of hubs.splice(0)) if (hub.listening) await ended(hub);
  rmSync(folder, { recursive: true, force: true });
});

/** The process of the hub dies. */
function ended(hub: Server): Promise<void> {
  return new Promise((resolve) => {
    hub.close(() => resolve());
  });
}

/** Connects to the hub; resolves with the outcome. */
function knock(number: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(addressIn(hubFiles(folder, number).folder));
    socket.once('connect', () => {
      socket.destroy();
      resolve('connected');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
  });
}

const drafts = () => readdirSync(folder).filter((name) => name.startsWith('.'));

describe.each(formsIn(() => folder))('the right to start a hub, with %s', (_form, form: EndpointForm) => {
  /** Claims a number and begins to listen as its hub. Returns the number. */
  async function claim(latest: number): Promise<number | undefined> {
    const claimed = await claimSuccessor(folder, latest, form);
    if (claimed === undefined) return undefined;
    const hub = await listening(claimed, folder);
    // A connection that nobody reads would keep the hub from ending.
    hub.on('connection', (socket) => socket.destroy());
    hubs.push(hub);
    return claimed.number;
  }

  it('F107: goes to one of fifty that claim it at once, round after round, and the others leave nothing', async () => {
    for (let round = 1; round <= 5; round += 1) {
      const latest = latestHub(folder);
      const all = await Promise.all(Array.from({ length: 50 }, () => claim(latest)));
      expect(all.filter((number) => number !== undefined)).toEqual([round]);
      expect([hubNumbers(folder).length, drafts()]).toEqual([round, []]);
      expect(await knock(round)).toBe('connected');
      // Every second hub dies, and every other one has ended in order.
      if (round % 2 === 0) writeFileSync(hubFiles(folder, round).ended, '');
      for (const hub of hubs.splice(0)) await ended(hub);
      expect(await knock(round)).toMatch(/^(?:ECONNREFUSED|ENOENT)$/);
    }
  });

  it('is never had for a number before the latest: whoever was too slow withdraws', async () => {
    mkdirSync(join(folder, '7'));
    expect(await claim(3)).toBeUndefined();
    expect([hubNumbers(folder), drafts()]).toEqual([[7], []]);
    expect(await claim(7)).toBe(8);
  });

  it('can be had although a folder without content, as after a full disk, has the number', async () => {
    mkdirSync(join(folder, '1'));
    // Windows never replaces a folder, so there the claim goes to the next number.
    const number = (await claim(0)) ?? (await claim(1));
    expect(await knock(number ?? 0)).toBe('connected');
  });

  it('fails if the folder is gone', async () => {
    rmSync(folder, { recursive: true });
    await expect(claim(0)).rejects.toThrow('ENOENT');
  });
});

describe('the claim of a hub that listens itself', () => {
  const [, form] = formsIn(() => folder).at(-1) ?? [];
  const processes = (taken: readonly number[], startedAtMs: number | undefined) => ({
    isTaken: (pid: number) => taken.includes(pid),
    startedAtMs: async () => startedAtMs,
  });

  it('names the process that has made it, then the hub, and a new name each time', async () => {
    for (const latest of [0, 1]) await claimSuccessor(folder, latest, form);
    const [one, two] = [1, 2].map((number) => hubFiles(folder, number).folder) as [string, string];
    expect(addressIn(one)).not.toBe(addressIn(two));
    expect(await isClaimHeld(one, false, processes([process.pid], undefined))).toBe(true);
    passClaim(one, 4_711);
    expect(await isClaimHeld(one, false, processes([process.pid], undefined))).toBe(false);
    expect(await isClaimHeld(one, false, processes([4_711], undefined))).toBe(true);
  });

  it('is free once its process has ended, also if a later process has its pid', async () => {
    await claimSuccessor(folder, 0, form);
    const own = hubFiles(folder, 1).folder;
    passClaim(own, 4_711);
    const now = Date.now();
    const held = (startedAtMs: number | undefined, isSure = true) =>
      isClaimHeld(own, isSure, processes([4_711], startedAtMs));
    expect(await isClaimHeld(own, true, processes([], undefined))).toBe(false);
    expect([await held(now - 60_000), await held(now + 60_000), await held(undefined)]).toEqual([true, false, true]);
    // Asking the system takes long, so at first the pid is enough.
    expect(await held(now + 60_000, false)).toBe(true);
  });

  it('does not exist where a socket is handed over, nor in a folder that is gone', async () => {
    mkdirSync(join(folder, '1'));
    expect(await isClaimHeld(join(folder, '1'), true)).toBeUndefined();
    expect(await isClaimHeld(join(folder, '2'), true)).toBeUndefined();
  });
});

describe('a hub that fails at every start', () => {
  function hubAt(number: number, at: number, mark?: 'ready' | 'ended'): void {
    const files = hubFiles(folder, number);
    mkdirSync(files.folder);
    if (mark !== undefined) writeFileSync(files[mark], '');
    utimesSync(files.folder, at / 1_000, at / 1_000);
  }

  it('is noticed after three that served nobody within a minute', () => {
    const now = 1_000_000_000;
    hubAt(1, now - 50_000);
    hubAt(2, now - 40_000, 'ready');
    hubAt(3, now - 30_000, 'ended');
    hubAt(4, now - 20_000);
    expect(isHubFailing(folder, now)).toBe(false);
    hubAt(5, now - 10_000);
    expect(isHubFailing(folder, now)).toBe(true);
    expect(isHubFailing(folder, now + 11_000)).toBe(false);
  });

  it('leaves folders that a later hub removes, and drafts, but not what is new or its own', () => {
    const now = 1_000_000_000;
    const old = now - 6 * 60_000;
    hubAt(1, old);
    hubAt(2, now - 1_000, 'ended');
    hubAt(3, now - 1_000);
    hubAt(4, old);
    for (const [name, at] of [
      ['.1-abc', old],
      ['.2-abc', now],
      ['other', old],
    ] as const) {
      mkdirSync(join(folder, name));
      utimesSync(join(folder, name), at / 1_000, at / 1_000);
    }
    removeLeftovers(join(folder, '4'), new Set(), now);
    expect(readdirSync(folder).sort()).toEqual(['.2-abc', '3', '4', 'other']);
  });

  it('leaves folders that a later hub does not remove while the hub runs', () => {
    const now = 1_000_000_000;
    for (const number of [1, 2, 3]) hubAt(number, now - 6 * 60_000);
    removeLeftovers(join(folder, '3'), new Set([2]), now);
    expect(readdirSync(folder)).toEqual(['2', '3']);
  });
});
