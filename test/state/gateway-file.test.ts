import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostIdentity, identify } from '../../src/host/process/processes.js';
import {
  type FoundGateway,
  findGateways,
  type GatewayFacts,
  GatewayFile,
  removeEndedGateways,
} from '../../src/state/gateway-file.js';
import { FakeClock } from '../support/fake-clock.js';
import { flush } from '../support/wire.js';

let folder: string;
let clock: FakeClock;
let faults: unknown[];

beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'trunkline-found-')), 'gateways');
  clock = new FakeClock();
  faults = [];
});

afterEach(() => rm(join(folder, '..'), { recursive: true, force: true }));

const FACTS = {
  ...({ kind: 'http', url: 'http://127.0.0.1:1' } as const),
  ...{ configFile: '/c/trunkline.yaml', since: 1, isDraining: false, refused: [] },
};
const refused = (count: number) => ({
  ...FACTS,
  refused: [{ header: 'Host', count, last: 'evil.example', at: count } as const],
});

function open(): GatewayFile {
  return new GatewayFile({ folder: join(folder, 'mine'), clock, onFault: (fault) => faults.push(fault) });
}

function found(facts: GatewayFacts): FoundGateway {
  return { ...facts, pid: process.pid, folder: join(folder, 'mine') };
}

describe('the file of a gateway that is no hub', () => {
  it('has its latest facts, written once a second at most, and is removed with its folder at its end', async () => {
    const file = open();
    file.set(FACTS);
    clock.advance(0);
    await expect.poll(() => findGateways([folder])).toEqual([found(FACTS)]);
    await flush();
    for (let count = 1; count <= 100; count += 1) file.set(refused(count));
    clock.advance(999);
    await flush();
    expect(await findGateways([folder])).toEqual([found(FACTS)]);
    clock.advance(1);
    await expect.poll(() => findGateways([folder])).toEqual([found(refused(100))]);
    await file.close();
    expect([await readdir(folder), faults, clock.pending]).toEqual([[], [], 0]);
  });

  it('F194: of a gateway that was killed counts no longer, and the next one removes it', async () => {
    const file = open();
    file.set(FACTS);
    clock.advance(0);
    await expect.poll(() => findGateways([folder])).toHaveLength(1);
    const mine = JSON.parse(await readFile(join(folder, 'mine', 'gateway.json'), 'utf8'));
    const startTime = (await identify(process.pid))?.startTime;
    expect(mine).toMatchObject({ host: hostIdentity(), gateway: { pid: process.pid, startTime } });
    const others = {
      ended: JSON.stringify({ ...mine, gateway: { pid: process.pid, startTime: '1' } }),
      torn: '{',
      foreign: JSON.stringify({ ...mine, host: 'other' }),
    };
    for (const [name, text] of Object.entries(others)) {
      await mkdir(join(folder, name));
      await writeFile(join(folder, name, 'gateway.json'), text, { mode: 0o600 });
    }
    expect(await findGateways([folder])).toHaveLength(1);
    await removeEndedGateways(folder);
    expect((await readdir(folder)).toSorted()).toEqual(['foreign', 'mine', 'torn']);
    await file.close();
  });

  it('reports once that it cannot be written', async () => {
    await writeFile(folder, '');
    const file = open();
    for (let count = 0; count < 2; count += 1) {
      file.set(FACTS);
      clock.advance(1_000);
      await expect.poll(() => faults).toHaveLength(1);
      await flush();
    }
    await file.close();
    expect(faults).toHaveLength(1);
  });
});
