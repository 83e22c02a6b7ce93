import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { openRedisStore } from '../../src/extras/cluster/redis-store.js';
import { StoreVault } from '../../src/extras/cluster/store-vault.js';
import { RedisPlace, type RedisProcess } from '../support/redis-place.js';
import { describeRenewals, loggedIn } from './renewals.js';

const servers = new RedisPlace();
let redis: RedisProcess;
beforeAll(async () => {
  redis = await servers.start();
});
afterAll(() => servers.end());

async function inStore(name: string): Promise<StoreVault> {
  const location = { addresses: [{ host: '127.0.0.1', port: redis.port }], isTls: false, database: 0 } as const;
  const opened = await openRedisStore({ location, name });
  onTestFinished(() => opened.close());
  await opened.connect();
  return new StoreVault({ open: async () => opened, readKeys: async () => [Buffer.alloc(32, 7)] });
}

describeRenewals('a login in a store', inStore);

it('a token serves at once while the store does not answer the question whether it has changed', async () => {
  const { access, first } = await loggedIn(inStore);
  const own = await access();
  expect(await own.token()).toBe(first);
  redis.signal('SIGSTOP');
  onTestFinished(() => redis.signal('SIGCONT'));
  const order: unknown[] = [];
  const rereading = own.reread().then((isChanged) => order.push(isChanged));
  await own.token().then((token) => order.push(token));
  await rereading;
  expect(order).toEqual([first, false]);
});
