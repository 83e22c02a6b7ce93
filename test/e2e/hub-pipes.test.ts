// A hub as it is on Windows: its process listens itself, under a name that is in its folder. Elsewhere, a socket stands for the pipe, and the
// test starts the hub, because clients there hand over a socket.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { passClaim, pipes } from '../../src/hub/endpoint.js';
import { claimSuccessor, hubFiles, hubNumbers, latestHub } from '../../src/hub/hub-folder.js';
import { CLI, type GatewayProcess } from '../support/gateway-process.js';
import { type HubPlace, sharedPlace, WITH_HUB } from '../support/hub-place.js';
import { dataIn } from '../support/platform.js';
import { until } from '../support/processes.js';

const LAB = { servers: { lab: { sharing: 'profile' } } };

async function textOf(client: GatewayProcess, marker: string): Promise<string> {
  return (await client.call('lab__wait', { delayMs: 0, marker })).message.result.content[0].text;
}

/** Claims the next number for a hub that listens itself. */
async function claimPipe(place: HubPlace): Promise<number> {
  const folder = place.hubFolder;
  const form = pipes(() => join(place.hubs, `pipe-${hubNumbers(folder).length}`));
  const claim = await claimSuccessor(folder, hubNumbers(folder).at(-1) ?? 0, form);
  if (claim === undefined) throw new Error('Another process has claimed the number');
  return claim.number;
}

/** Starts the process of the hub, as the process that has claimed the number does. */
function startHub(place: HubPlace, { file }: GatewayProcess, number: number): void {
  const { folder, pid } = hubFiles(place.hubFolder, number);
  const data = dataIn(join(place.folder, 'data'));
  const env = { ...process.env, ...WITH_HUB, ...data, TRUNKLINE_HUB_DIR: place.hubs };
  const args = [CLI, 'hub', 'serve', '--place', folder, '--config', file];
  const child = spawn(process.execPath, args, { env, detached: true, stdio: 'ignore' });
  child.unref();
  passClaim(folder, child.pid ?? 0);
  writeFileSync(pid, String(child.pid));
}

describe('a hub that listens itself', () => {
  it('serves clients that came before it listened, hands over those of an earlier hub, and is replaced when it is killed', async () => {
    const place = sharedPlace(LAB);
    const first = await place.client();
    const number = await claimPipe(place);
    const attaching = place.client();
    // Nothing listens yet, and the client waits.
    await setTimeout(300);
    startHub(place, first, number);
    const second = await attaching;
    expect(await textOf(second, 'waited')).toBe('waited');
    await until('the end of the earlier hub', () => place.hubPids.length === 1);
    expect(await textOf(first, 'moved')).toBe('moved');

    process.kill(place.hubPid, 'SIGKILL');
    await until('the next hub', () => second.notifications('notifications/tools/list_changed').length > 0);
    expect([await textOf(first, 'again'), await textOf(second, 'again')]).toEqual(['again', 'again']);
    expect(latestHub(place.hubFolder)).toBe(3);
  });

  it('costs no client its tools if its process has ended before it listened', async () => {
    const place = sharedPlace(LAB);
    const first = await place.client();
    const number = await claimPipe(place);
    passClaim(hubFiles(place.hubFolder, number).folder, 2 ** 22 + 4);
    const second = await place.client();
    expect([await textOf(first, 'one'), await textOf(second, 'two')]).toEqual(['one', 'two']);
    expect(latestHub(place.hubFolder)).toBe(3);
  });
});
