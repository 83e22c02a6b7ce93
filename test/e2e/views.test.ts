import { expect, it } from 'vitest';
import { GatewayProcess, type Received, type StartOptions } from '../support/gateway-process.js';

/** The client of the tests, which is called `test`, sees one of the two servers. Nothing starts before the gateway is loaded. */
const HALF: StartOptions = {
  servers: { lab: { start: 'lazy' }, unseen: { start: 'lazy' } },
  config: { views: { work: { servers: ['lab'] } }, clients: { test: 'work' } },
};

function textOf({ message }: Received): string {
  return message.result.content[0].text;
}

async function worksFor(client: GatewayProcess): Promise<void> {
  expect(textOf(await client.call('lab__wait', { delayMs: 0, marker: 'served' }))).toBe('served');
  const names = (await client.listTools()).map(({ name }): string => name);
  expect(names).toContain('lab__wait');
  expect(names.filter((name) => name.startsWith('unseen__'))).toEqual([]);
}

it('a client whose view leaves a server out is served in the first run, and in later ones, which have its lists', async () => {
  const first = await GatewayProcess.start(HALF);
  await worksFor(first);
  await first.end();
  const second = await GatewayProcess.start({ ...HALF, folder: first.folder });
  await worksFor(second);
  await second.dispose();
});
