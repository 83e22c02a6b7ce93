import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Claim, claimSuccessor, isHubFailing } from '../../src/hub/claim.js';
import { hubFiles, hubNumbers, latestHub } from '../../src/hub/hub-folder.js';
import { removeLeftovers } from '../../src/hub/server/hub-listener.js';

let folder = '';
const claims: Claim[] = [];

beforeEach(() => {
  // The path of a socket is short.
  folder = mkdtempSync('/tmp/tlc-');
});

afterEach(async () => {
  for (const { listener } of claims.splice(0)) if (listener.listening) await ended({ listener });
  rmSync(folder, { recursive: true, force: true });
});

async function claim(latest: number): Promise<Claim | undefined> {
  const claimed = await claimSuccessor(folder, latest);
  // A connection that nobody reads would keep the socket from closing.
  claimed?.listener.on('connection', (socket) => socket.destroy());
  if (claimed !== undefined) claims.push(claimed);
  return claimed;
}

/** The process of the hub dies: its socket stays, and refuses. */
function ended({ listener }: Pick<Claim, 'listener'>): Promise<void> {
  return new Promise((resolve) => {
    listener.close(() => resolve());
  });
}

/** Connects to the hub's socket; resolves with the outcome. */
function knock(number: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(hubFiles(folder, number).socket);
    socket.once('connect', () => {
      socket.destroy();
      resolve('connected');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
  });
}

const drafts = () => readdirSync(folder).filter((name) => name.startsWith('.'));

describe('the right to start a hub', () => {
  it('F107: goes to one of fifty that claim it at once, round after round, and the others leave nothing', async () => {
    for (let round = 1; round <= 5; round += 1) {
      const latest = latestHub(folder);
      const all = await Promise.all(Array.from({ length: 50 }, () => claim(latest)));
      const winners = all.filter((claimed) => claimed !== undefined);
      expect(winners.map(({ number }) => number)).toEqual([round]);
      expect([hubNumbers(folder).length, drafts()]).toEqual([round, []]);
      expect(await knock(round)).toBe('connected');
      // Every second hub dies, and every other one has ended in order.
      if (round % 2 === 0) writeFileSync(hubFiles(folder, round).ended, '');
      for (const winner of winners) await ended(winner);
      expect(await knock(round)).toBe('ECONNREFUSED');
    }
  });

  it('is never had for a number before the latest: whoever was too slow withdraws', async () => {
    mkdirSync(join(folder, '7'));
    expect(await claim(3)).toBeUndefined();
    expect([hubNumbers(folder), drafts()]).toEqual([[7], []]);
    expect((await claim(7))?.number).toBe(8);
  });

  it('can be had although a folder of that number is empty, as after a full disk', async () => {
    mkdirSync(join(folder, '1'));
    expect((await claim(0))?.number).toBe(1);
    expect(await knock(1)).toBe('connected');
  });

  it('fails if the folder is gone', async () => {
    rmSync(folder, { recursive: true });
    await expect(claim(0)).rejects.toThrow('ENOENT');
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
