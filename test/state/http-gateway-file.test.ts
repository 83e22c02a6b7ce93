import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostIdentity, identify } from '../../src/process/processes.js';
import { findHttpGateways, HttpGatewayFile, removeEndedHttpGateways } from '../../src/state/http-gateway-file.js';
import { FakeClock } from '../support/fake-clock.js';
import { flush } from '../support/wire.js';

let folder: string;
let clock: FakeClock;
let faults: unknown[];

beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'trunkline-found-')), 'http');
  clock = new FakeClock();
  faults = [];
});

afterEach(() => rm(join(folder, '..'), { recursive: true, force: true }));

const FACTS = { url: 'http://127.0.0.1:1', configFile: '/c/trunkline.yaml', isDraining: false, refused: [] };
const refused = (count: number) => ({
  ...FACTS,
  refused: [{ header: 'Host', count, last: 'evil.example', at: count } as const],
});

function open(): HttpGatewayFile {
  return new HttpGatewayFile({ folder, clock, onFault: (fault) => faults.push(fault) });
}

describe.skipIf(process.platform === 'win32')('the file of a gateway that serves HTTP', () => {
  it('has its latest facts, written once a second at most, and is removed at its end', async () => {
    const file = open();
    file.set(FACTS);
    clock.advance(0);
    await expect.poll(() => findHttpGateways(folder)).toEqual([{ ...FACTS, pid: process.pid }]);
    await flush();
    for (let count = 1; count <= 100; count += 1) file.set(refused(count));
    clock.advance(999);
    await flush();
    expect(await findHttpGateways(folder)).toEqual([{ ...FACTS, pid: process.pid }]);
    clock.advance(1);
    await expect.poll(() => findHttpGateways(folder)).toEqual([{ ...refused(100), pid: process.pid }]);
    await file.close();
    expect([await readdir(folder), faults, clock.pending]).toEqual([[], [], 0]);
  });

  it('F194: of a gateway that was killed counts no longer, and the next one removes it', async () => {
    const file = open();
    file.set(FACTS);
    clock.advance(0);
    await expect.poll(() => findHttpGateways(folder)).toHaveLength(1);
    const [name = ''] = await readdir(folder);
    const mine = JSON.parse(await readFile(join(folder, name), 'utf8'));
    const startTime = (await identify(process.pid))?.startTime;
    expect(mine).toMatchObject({ host: hostIdentity(), gateway: { pid: process.pid, startTime } });
    const ended = { ...mine, gateway: { pid: process.pid, startTime: '1' } };
    await writeFile(join(folder, 'ended.json'), JSON.stringify(ended), { mode: 0o600 });
    await writeFile(join(folder, 'torn.json'), '{', { mode: 0o600 });
    await writeFile(join(folder, 'foreign.json'), JSON.stringify({ ...mine, host: 'other' }), { mode: 0o600 });
    expect(await findHttpGateways(folder)).toHaveLength(1);
    await removeEndedHttpGateways(folder);
    expect((await readdir(folder)).toSorted()).toEqual([name, 'foreign.json', 'torn.json'].toSorted());
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
