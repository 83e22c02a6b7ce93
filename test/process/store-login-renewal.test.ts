import { beforeEach, expect, it } from 'vitest';
import { StoreVault } from '../../src/extras/cluster/store-vault.js';
import { MemoryServer, MemoryStore } from '../extras/cluster/memory-store.js';
import { describeRenewals, loggedIn } from './renewals.js';

let server: MemoryServer;
beforeEach(() => {
  server = new MemoryServer(() => performance.now());
});

async function inStore(): Promise<StoreVault> {
  const store = new MemoryStore(server);
  await store.connect();
  return new StoreVault({ open: async () => store, readKeys: async () => [Buffer.alloc(32, 7)] });
}

describeRenewals('a login in a store', inStore);

it('a token serves at once while the store does not answer the question whether it has changed', async () => {
  const { access, first } = await loggedIn(inStore);
  const own = await access();
  expect(await own.token()).toBe(first);
  server.stop();
  const order: unknown[] = [];
  const rereading = own.reread().then((isChanged) => order.push(isChanged));
  await own.token().then((token) => order.push(token));
  await rereading;
  expect(order).toEqual([first, false]);
});
