import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import { CLI, type GatewayProcess, LAB } from '../support/gateway-process.js';
import { type HubPlace, sharedPlace } from '../support/hub-place.js';
import { dataIn } from '../support/platform.js';
import { until } from '../support/processes.js';

/** Writes the file of a project, whose servers offer one tool each. */
function project(place: HubPlace, folder: string, keys: readonly string[], tool = 'echo'): string {
  const at = join(place.folder, folder);
  mkdirSync(at, { recursive: true });
  const entry = { command: 'node', args: [LAB, `run=${place.folder}`, `of=${folder}`], tools: { allow: [tool] } };
  writeFileSync(
    join(at, 'trunkline.yaml'),
    JSON.stringify({ servers: Object.fromEntries(keys.map((key) => [key, entry])) }),
  );
  return at;
}

/** A client whose attach process runs in a folder. */
function clientIn(place: HubPlace, folder: string): Promise<GatewayProcess> {
  return place.client({ via: ['/bin/sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', folder] });
}

function trust(place: HubPlace, cwd: string, ...args: string[]): string {
  const env = { ...process.env, ...dataIn(join(place.folder, 'data')), TRUNKLINE_HUB_DIR: place.hubs };
  const { stdout } = spawnSync(
    process.execPath,
    [CLI, 'trust', ...args, '--config', join(place.folder, 'trunkline.yaml')],
    {
      cwd,
      env,
      encoding: 'utf8',
    },
  );
  return stdout;
}

const names = async (client: GatewayProcess) => (await client.listTools()).map(({ name }) => name as string);
const statusOf = async (client: GatewayProcess) =>
  (await client.call('trunkline__status')).message.result.content[0].text as string;

/** Resolves when the client lists these tools. Asks again after each announcement. */
async function untilNames(client: GatewayProcess, wanted: readonly string[]): Promise<void> {
  const announced = () => client.notifications('notifications/tools/list_changed').length;
  for (;;) {
    const before = announced();
    const listed = await names(client);
    if (isDeepStrictEqual(listed, wanted)) return;
    await until(`an announcement after ${listed}`, () => announced() > before);
  }
}

it('F384: clients of one hub see the servers of the trusted project in their folder, and the others go on', async () => {
  const place = sharedPlace({ servers: { docs: { sharing: 'profile', tools: { allow: ['echo', 'wait'] } } } });
  const shop = project(place, 'shop', ['docs', 'db']);
  mkdirSync(join(shop, 'sub'), { recursive: true });
  const other = join(place.folder, 'other');
  mkdirSync(other);
  const [inside, outside] = [await clientIn(place, join(shop, 'sub')), await clientIn(place, other)];
  const own = ['docs__echo', 'docs__wait', 'trunkline__status'];
  for (const client of [inside, outside]) expect(await names(client)).toEqual(own);
  expect(await statusOf(inside)).toContain('nobody has trusted it');
  expect(await statusOf(outside)).not.toContain('trust');
  const before = await outside.status('docs');

  trust(place, shop, '--yes');
  await untilNames(inside, ['docs__echo', 'db__echo', 'trunkline__status']);
  expect(await names(outside)).toEqual(own);
  expect((await outside.status('docs')).pid).toBe(before.pid);
  expect(await statusOf(inside)).toContain('docs@shop-');
  expect(await statusOf(outside)).not.toContain('shop');
  const foreign = await outside.call('db__echo');
  expect(foreign.message.error ?? foreign.message.result.isError).toBeTruthy();

  // A change does not run, and says so; the trust in it does.
  project(place, 'shop', ['docs', 'evil'], 'wait');
  await inside.untilStatus('the changed file', ({ advice }) =>
    String(advice).includes('has changed since it was trusted'),
  );
  expect(await names(inside)).toEqual(['docs__echo', 'db__echo', 'trunkline__status']);
  const late = await clientIn(place, shop);
  expect(await names(late)).toEqual(['docs__echo', 'db__echo', 'trunkline__status']);
  expect(place.serverPids('of=shop').length).toBeGreaterThan(0);
  trust(place, shop, '--yes');
  await untilNames(inside, ['docs__wait', 'evil__wait', 'trunkline__status']);
  expect(await names(outside)).toEqual(own);

  trust(place, shop, '--remove');
  await untilNames(inside, own);
  await until('the servers of the project to end', () => place.serverPids('of=shop').length === 0);
  expect((await outside.status('docs')).pid).toBe(before.pid);
});
