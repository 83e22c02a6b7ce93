import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { StoreVault } from '../../../src/extras/cluster/store-vault.js';
import type { LoginId, LoginRecord } from '../../../src/upstream/auth/vault.js';
import { FakeClock } from '../../support/fake-clock.js';
import { MemoryServer, MemoryStore } from './memory-store.js';

let server: MemoryServer;
beforeEach(() => {
  server = new MemoryServer(() => performance.now());
});

const key = (fill: number) => Buffer.alloc(32, fill);

/** Opens the vault as a gateway of the cluster does. */
async function open(...keys: number[]): Promise<StoreVault & { store: MemoryStore }> {
  const store = new MemoryStore(server);
  await store.connect();
  const [first = key(1), ...others] = keys.map(key);
  const reopened = async () => {
    if (!store.isUp) await store.connect();
    return store;
  };
  return Object.assign(new StoreVault({ open: reopened, readKeys: async () => [first, ...others] }), {
    store,
  });
}

const ID: LoginId = { server: 'files', configFile: '/etc/one.yaml', url: 'https://mcp.example/' };
const recordOf = (refresh_token: string): LoginRecord => ({
  ...ID,
  ...{ state: 'logged_in', identity: 'i', issuer: 'https://as.example', requestedScopes: ['a'] },
  client: { client_id: 'client-1', client_secret: 'client-secret-1', isRegistered: true },
  tokens: { access_token: 'access-1', refresh_token, token_type: 'Bearer', obtainedAt: 1 },
});
const soon = () => AbortSignal.timeout(10_000);
const write = (vault: StoreVault, refresh: string, id = ID) =>
  vault.locked(id, soon(), (login) => login.write(recordOf(refresh)));
const refreshIn = async (vault: StoreVault, id = ID) => (await vault.read(id))?.tokens?.refresh_token;
const recordNames = () => [...server.entries.keys()].filter((name) => name.startsWith('record:'));

describe('the logins in the store', () => {
  it('are those of a server and its URL, wherever the configuration is', async () => {
    await write(await open(), 'r1');
    const other = await open();
    expect(await refreshIn(other, { ...ID, configFile: '/srv/other.yaml' })).toBe('r1');
    for (const change of [{ server: 'x' }, { url: 'https://mcp.example/x' }])
      expect(await refreshIn(other, { ...ID, ...change })).toBeUndefined();
  });

  it('are those of one user each, and of the machine, and none stands in the place of another', async () => {
    const vault = await open();
    const users = [undefined, '', 'ann', 'bob', 'ann","bob'];
    const ids = users.map((user) => ({ ...ID, ...(user !== undefined && { user }) }));
    for (const [at, id] of ids.entries()) await write(vault, `r${at}`, id);
    expect(await Promise.all(ids.map((id) => refreshIn(vault, id)))).toEqual(['r0', 'r1', 'r2', 'r3', 'r4']);
    const [one = '', other = ''] = recordNames();
    server.set(one, server.get(other) ?? Buffer.alloc(0));
    const read = await Promise.allSettled(ids.map(async (id) => refreshIn(await open(), id)));
    expect(read.filter(({ status }) => status === 'rejected')).toHaveLength(1);
  });

  it('say nothing without the key, and are read with any of the keys', async () => {
    await write(await open(1), 'r1');
    expect(
      recordNames()
        .map((name) => `${name} ${Buffer.from(server.get(name) ?? '')}`)
        .join(),
    ).not.toMatch(/files|example|client|access|refresh|Bearer|r1/);
    await expect((await open(2)).read(ID)).rejects.toThrow('is damaged, or was encrypted with another key');
    expect(await refreshIn(await open(2, 1))).toBe('r1');
  });

  it('F356: are not replaced by a gateway that lacks the key of another one, and knew an earlier login', async () => {
    const [one, other] = [await open(1), await open(2, 1)];
    await write(one, 'r1');
    await write(other, 'r2');
    await expect(one.read(ID)).rejects.toThrow('was encrypted with another key');
    await one.close();
    expect(await refreshIn(other)).toBe('r2');
    server.set(recordNames()[0] ?? '', Buffer.from('damaged'));
    await expect(other.read(ID)).rejects.toThrow('is damaged');
    await write(one, 'r3');
    expect(await refreshIn(other)).toBe('r3');
  });

  it('are encrypted again with the first key, so that the other one can be removed', async () => {
    await write(await open(1), 'r1');
    const restarted = await open(2, 1);
    expect(await refreshIn(restarted)).toBe('r1');
    await restarted.close();
    expect(await refreshIn(await open(2))).toBe('r1');
  });

  it('take no login in the place of another one', async () => {
    const vault = await open();
    await write(vault, 'r1');
    await write(vault, 'r2', { ...ID, server: 'other' });
    const [first = '', second = ''] = recordNames();
    server.set(second, server.get(first) ?? '');
    await expect((await open()).read({ ...ID, server: 'other' })).rejects.toThrow('is damaged');
  });

  it('are changed by one gateway at a time', async () => {
    const vaults = await Promise.all([open(), open(), open()]);
    await write(await open(), '0');
    const add = (vault: StoreVault) =>
      vault.locked(ID, soon(), async (login) => {
        const { refresh_token = '' } = (await login.read())?.tokens ?? {};
        await login.write(recordOf(String(Number(refresh_token) + 1)));
      });
    await Promise.all([...vaults, ...vaults, ...vaults].map(add));
    expect(await refreshIn(await open())).toBe('9');
  });

  it('F352: are free when the lease of a gateway that was killed is over', async () => {
    const vault = await open();
    await vault.store.claim(`login:${vault.nameOf(ID)}`, 'killed', 300);
    const abort = new AbortController();
    const waiting = vault.locked(ID, abort.signal, async () => 'held');
    abort.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    expect(await vault.locked(ID, soon(), async () => 'held')).toBe('held');
  });

  it('stay those of the gateway that came later when the lease of another one was over', async () => {
    const [slow, other] = [await open(), await open()];
    await write(slow, 'r1');
    const late = await slow.locked(ID, soon(), async (login) => {
      server.entries.delete(`claim:login:${slow.nameOf(ID)}`);
      await write(other, 'r2');
      await expect(login.check()).rejects.toThrow('another gateway has changed the login');
      return await login.write(recordOf('r3'));
    });
    expect(late?.tokens?.refresh_token).toBe('r2');
    expect([await refreshIn(slow), await refreshIn(other)]).toEqual(['r2', 'r2']);
  });

  it('that have ended stay so, also for gateways that knew them', async () => {
    const [one, other] = [await open(), await open()];
    await write(one, 'r1');
    expect(await refreshIn(other)).toBe('r1');
    await one.locked(ID, soon(), (login) => login.remove());
    expect([await one.read(ID), await other.read(ID), await (await open()).read(ID)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('are noticed on a timer, and no store is asked before', async () => {
    const vault = await open();
    const clock = new FakeClock();
    let changes = 0;
    let end = () => {};
    const onChange = () => {
      changes += 1;
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    };
    const unfollow = vault.follow([ID], { clock, onChange });
    clock.advance(4_999);
    expect(changes).toBe(0);
    clock.advance(1);
    expect(changes).toBe(1);
    // The next one waits for the end of this one.
    clock.advance(60_000);
    expect(changes).toBe(1);
    end();
    await expect.poll(() => clock.pending).toBe(1);
    clock.advance(5_000);
    expect(changes).toBe(2);
    unfollow();
    end();
    await nextTurn();
    expect(clock.pending).toBe(0);
  });
});

describe('a store that is away', () => {
  it('is no lease that another gateway has: nothing is changed, and the sentence names the store', async () => {
    const vault = await open();
    await write(vault, 'r1');
    server.kill();
    const away = {
      ...{ name: 'RequestError', sent: false },
      message: expect.stringContaining('because the store of the cluster does not answer'),
    };
    await Promise.all([
      expect(vault.read(ID)).rejects.toMatchObject(away),
      expect(vault.locked(ID, soon(), async () => expect.unreachable())).rejects.toMatchObject(away),
    ]);
  });

  it('F354: gets the login that was renewed meanwhile, before another gateway renews it', async () => {
    const [vault, other] = [await open(), await open()];
    await write(vault, 'r1');
    await vault.locked(ID, soon(), async (login) => {
      await login.check();
      server.stop();
      expect(await login.write(recordOf('r2'))).toEqual(recordOf('r2'));
    });
    server.restart();
    await other.store.connect();
    const seen = other.locked(ID, soon(), async (login) => (await login.read())?.tokens?.refresh_token);
    expect(await seen).toBe('r2');
    await vault.close();
  });

  it('F355: gets back what it has lost', async () => {
    const vault = await open();
    await write(vault, 'r1');
    server.kill();
    server.restart();
    // The first command may meet the connection that has ended.
    await vault.read(ID).catch(() => {});
    expect(await refreshIn(vault)).toBe('r1');
    await vault.close();
    expect(await refreshIn(await open())).toBe('r1');
  });

  it('makes the end of a process say that the login is lost', async () => {
    const vault = await open();
    await write(vault, 'r1');
    await vault.locked(ID, soon(), async (login) => {
      server.kill();
      await login.write(recordOf('r2'));
    });
    await expect(vault.close()).rejects.toThrow('is lost, because the store of the cluster does not answer');
  });
});
