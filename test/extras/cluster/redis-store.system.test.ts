import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRedisStore, type RedisStoreOptions } from '../../../src/extras/cluster/redis-store.js';
import { type ClusterStore, StoreUnavailable } from '../../../src/extras/cluster/store.js';
import { createCertificate } from '../../support/certificate.js';
import { until } from '../../support/processes.js';
import { RedisPlace, type RedisProcess } from '../../support/redis-place.js';

let place: RedisPlace;
const stores: ClusterStore[] = [];

beforeEach(() => {
  place = new RedisPlace();
});

afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  await place.end();
});

describe('RedisStore', () => {
  it('lets one of many writers at once claim a name, and tells the others the holder', async () => {
    const [one, other] = await bothAt(await place.start());
    const names = Array.from({ length: 50 }, (_, at) => `user ${at}`);
    const held = await Promise.all(
      names.map((name) => Promise.all([one.claim(name, 'one', LONG), other.claim(name, 'other', LONG)])),
    );
    expect(held.filter(([a, b]) => a !== b)).toEqual([]);
    expect(await one.holderOf('user 0')).toBe(held[0]?.[0]);
  });

  it('gives a claim to the next holder when its time is over, when it is released, and instead of a dead holder', async () => {
    const [one, other] = await bothAt(await place.start());
    await one.claim('short', 'one', 1);
    await expect.poll(() => other.claim('short', 'other', LONG)).toBe('other');

    await one.claim('mine', 'one', LONG);
    await other.release(['mine'], 'other');
    expect(await other.claim('mine', 'other', LONG)).toBe('one');
    await one.release(['mine'], 'one');
    expect(await other.claim('mine', 'other', LONG)).toBe('other');

    expect(await one.claim('mine', 'one', LONG, 'third')).toBe('other');
    expect(await one.claim('mine', 'one', LONG, 'other')).toBe('one');
  });

  it('renews claims, makes lost ones again, and names those that others hold', async () => {
    const [one, other] = await bothAt(await place.start());
    const names = Array.from({ length: 1_100 }, (_, at) => `name ${at}`);
    await other.claim('name 7', 'other', LONG);
    await other.claim('name 1003', 'other', LONG);
    expect(await one.renew(names, 'one', LONG)).toEqual(['name 7', 'name 1003']);
    expect(await other.holderOf('name 1099')).toBe('one');
    await one.release(names, 'one');
    expect(await other.holderOf('name 1099')).toBeUndefined();
    expect(await other.holderOf('name 7')).toBe('other');
  });

  it('lists the members until their time is over or they leave', async () => {
    const [one, other] = await bothAt(await place.start());
    await one.beat('a', 'text of a', LONG);
    await one.beat('gone', 'text', 1);
    await expect
      .poll(() => other.beat('b', 'text\nof b', LONG))
      .toEqual(members({ a: 'text of a', b: 'text\nof b', other: '' }));
    await one.leave('a');
    expect(await other.beat('b', 'new', LONG)).toEqual(members({ b: 'new', other: '' }));
  });

  it('stores bytes as they are, and replaces only the content that was read', async () => {
    const [one, other] = await bothAt(await place.start());
    const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
    await one.write('all bytes', bytes);
    expect(await read(other, 'all bytes')).toEqual([...bytes]);
    expect(await other.read('absent')).toBeUndefined();

    const [first, second] = [Uint8Array.of(0, 255), Uint8Array.of()];
    expect(await one.replace('record', second, first)).toBe(false);
    expect(await one.replace('record', undefined, first)).toBe(true);
    expect(await other.replace('record', undefined, second)).toBe(false);
    expect(await other.replace('record', first, second)).toBe(true);
    expect(await read(one, 'record')).toEqual([]);
    await one.remove('record');
    expect(await one.read('record')).toBeUndefined();

    await one.write('brief', bytes, 1);
    await expect.poll(() => one.read('brief')).toBeUndefined();
  });

  it('keeps clusters with different names apart', async () => {
    const { port } = await place.start();
    const [one, other] = [await opened(port), await opened(port, { name: 'other' })];
    await one.claim('name', 'one', LONG);
    await one.write('name', Uint8Array.of(1));
    expect(await other.holderOf('name')).toBeUndefined();
    expect(await other.read('name')).toBeUndefined();
  });

  it('refuses commands at once while a stopped store is away, and uses it again when it answers a beat', async () => {
    const server = await place.start();
    const store = await openRedisStore(optionsOf(server.port, { commandMs: 250 }));
    stores.push(store);
    await comesBack(store);
    server.signal('SIGSTOP');
    const inFlight = [store.read('a'), store.claim('b', 'one', LONG), store.renew(['c'], 'one', LONG)];
    const refused = { status: 'rejected', reason: expect.any(StoreUnavailable) };
    expect(await Promise.allSettled(inFlight)).toEqual([refused, refused, refused]);
    expect(store.isUp).toBe(false);
    // Nothing was sent, so the refusal waits for nothing.
    await expect(Promise.race([store.read('a'), nextTurn()])).rejects.toThrow(StoreUnavailable);
    await expect(store.beat('one', '', LONG)).rejects.toThrow('the store of the cluster is not reachable');

    server.signal('SIGCONT');
    await comesBack(store);
    await expect.poll(() => readOrNoAnswer(store, 'a')).toBeUndefined();
  });

  it('uses a store that was killed and comes back empty, without a restart', async () => {
    const server = await place.start();
    const store = await opened(server.port);
    await store.claim('name', 'one', LONG);
    await server.kill();
    await until('the connection is known to be lost', () => !store.isUp);
    await expect(store.claim('name', 'one', LONG)).rejects.toThrow(StoreUnavailable);
    await expect(store.beat('one', '', LONG)).rejects.toThrow(`ECONNREFUSED 127.0.0.1:${server.port}`);
    await server.restart();
    await comesBack(store);
    expect(await store.renew(['name'], 'one', LONG)).toEqual([]);
    expect(await store.holderOf('name')).toBe('one');
  });

  it('opens although the store is away', async () => {
    const server = await place.start();
    await server.kill();
    const store = await openRedisStore(optionsOf(server.port));
    stores.push(store);
    expect(store.isUp).toBe(false);
    await expect(store.read('name')).rejects.toThrow(StoreUnavailable);
    await server.restart();
    await comesBack(store);
  });

  it('names the setting to correct when the store refuses or wants a password, and never the password', async () => {
    const [wanted, open] = await Promise.all([place.start(['requirepass right']), place.start()]);
    const wrong = secretFile('wrong', 'tellnoone');
    const refusals = await Promise.all([
      refusalOf(wanted.port, { passwordFile: wrong }),
      refusalOf(wanted.port, {}),
      refusalOf(open.port, { passwordFile: wrong }),
    ]);
    expect(refusals).toEqual([
      'the store of the cluster refuses the password of gateway.cluster.storePasswordFile, or the user of gateway.cluster.storeUser',
      'the store of the cluster wants a password; write it to a file, and set gateway.cluster.storePasswordFile to its path',
      'the store of the cluster has no password; remove gateway.cluster.storePasswordFile',
    ]);
  });

  it('reads the password again with each connection', async () => {
    const server = await place.start(['requirepass right']);
    const passwordFile = secretFile('password', 'wrong');
    const store = await openRedisStore(optionsOf(server.port, { passwordFile }));
    stores.push(store);
    await expect(store.beat('one', '', LONG)).rejects.toThrow('refuses the password');
    rmSync(passwordFile);
    await expect(store.beat('one', '', LONG)).rejects.toThrow(
      'of gateway.cluster.storePasswordFile: it does not exist',
    );
    secretFile('password', 'right\n');
    await store.beat('one', '', LONG);
    expect(store.isUp).toBe(true);
  });

  it('needs only the commands that the documentation lists, as a user with a password', async () => {
    const commands = COMMANDS.map((name) => `+${name}`).join(' ');
    const server = await place.start([
      'user default off',
      `user gateway on >right ~{trunkline}:* ${commands}`,
      'user reader on >right ~{trunkline}:* +get +hget',
    ]);
    const passwordFile = secretFile('password', 'right');
    const store = await opened(server.port, { user: 'gateway', passwordFile });
    await store.claim('name', 'one', LONG);
    await store.renew(['name'], 'one', LONG);
    await store.release(['name'], 'one');
    await store.write('record', Uint8Array.of(1), LONG);
    await store.replace('record', Uint8Array.of(1), Uint8Array.of(2));
    await store.remove('record');
    await store.leave('one');
    expect(store.isUp).toBe(true);
    expect(await refusalOf(server.port, { user: 'reader', passwordFile })).toBe(
      'the store of the cluster does not permit a command to the user of gateway.cluster.storeUser; docs/configuration.md lists the commands',
    );
  });

  it('speaks TLS, and trusts only the authority of its file', async () => {
    const { certFile, keyFile } = createCertificate(place.folder);
    const server = await place.start([
      'tls-port PORT',
      `tls-cert-file ${certFile}`,
      `tls-key-file ${keyFile}`,
      'tls-auth-clients no',
    ]);
    const location = { addresses: [{ host: 'localhost', port: server.port }], isTls: true, database: 0 } as const;
    const store = await opened(server.port, { location, caFile: certFile });
    expect(await store.claim('name', 'one', LONG)).toBe('one');
    expect(await refusalOf(server.port, { location })).toMatch(
      /is not reachable: self-signed certificate; set gateway\.cluster\.storeCaFile to the certificate of its authority$/,
    );
    // The certificate is for `localhost`.
    const elsewhere = { ...location, addresses: [{ host: '127.0.0.1', port: server.port }] } as const;
    expect(await refusalOf(server.port, { location: elsewhere, caFile: certFile })).toContain('altnames');
  });

  it('follows the Sentinels to the next server, with their passwords', async () => {
    const password = ['requirepass right', 'masterauth right'];
    const first = await place.start(password);
    const second = await place.start([...password, `replicaof 127.0.0.1 ${first.port}`]);
    const sentinel = (lines: readonly string[]) =>
      place.start(
        [
          `sentinel monitor mymaster 127.0.0.1 ${first.port} 1`,
          'sentinel auth-pass mymaster right',
          'sentinel down-after-milliseconds mymaster 1000',
          'sentinel failover-timeout mymaster 3000',
          ...lines,
        ],
        { sentinel: true },
      );
    const known = await sentinel(['requirepass right']);
    const location = {
      addresses: [
        // Not a Sentinel: the others are asked, too.
        { host: '127.0.0.1', port: second.port },
        { host: '127.0.0.1', port: known.port },
      ],
      sentinelMaster: 'mymaster',
      isTls: false,
      database: 0,
    } as const;
    const passwordFile = secretFile('password', 'right');
    const store = await opened(first.port, { location, passwordFile });
    await store.claim('name', 'one', LONG);
    // Before the Sentinel knows the replica, there is no server to fail over to.
    await expect
      .poll(() => known.ask('-a', 'right', 'SENTINEL', 'REPLICAS', 'mymaster'))
      .toContain(String(second.port));
    await first.kill();
    await until('the connection is known to be lost', () => !store.isUp);
    await expect
      .poll(() =>
        store.beat('one', '', LONG).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    expect(await store.claim('other name', 'one', LONG)).toBe('one');
    expect(await refusalOf(first.port, { location: { ...location, sentinelMaster: 'yours' }, passwordFile })).toBe(
      'the store of the cluster is not reachable: no Sentinel knows a server with the name yours',
    );
  });

  it('follows the node of a Redis Cluster to the one that has the keys, also when they have moved', async () => {
    const lines = ['cluster-enabled yes', 'cluster-require-full-coverage no', 'cluster-config-file nodes-PORT.conf'];
    const [first, second, third] = [await place.start(lines), await place.start(lines), await place.start(lines)];
    const [key, servers] = ['{trunkline}:key', [first, second, third]];
    const slot = (await second.ask('CLUSTER', 'KEYSLOT', key)).trim();
    await second.ask('CLUSTER', 'ADDSLOTS', slot);
    for (const { port } of [second, third]) await first.ask('CLUSTER', 'MEET', '127.0.0.1', String(port));
    // All nodes name the one that has the keys, and that one serves them.
    const areAt = async (owner: RedisProcess, before = async () => {}) => {
      const answers = async () => {
        await before();
        return await Promise.all(servers.map(async (server) => (await server.ask('GET', key)).trim()));
      };
      const named = servers.map((server) => (server === owner ? '' : `MOVED ${slot} 127.0.0.1:${owner.port}`));
      await expect.poll(answers, { interval: 200 }).toEqual(named);
    };
    await areAt(second);
    const store = await opened(first.port);
    expect(await store.claim('name', 'one', LONG)).toBe('one');

    await second.ask('FLUSHALL');
    const next = (await third.ask('CLUSTER', 'MYID')).trim();
    // A message of a node that has not heard of it yet can undo the move.
    await areAt(third, async () => {
      for (const server of [third, second, first]) await server.ask('CLUSTER', 'SETSLOT', slot, 'NODE', next);
      await third.ask('CLUSTER', 'BUMPEPOCH');
    });
    await expect(store.read('name')).rejects.toThrow(StoreUnavailable);
    await store.beat('one', '', LONG);
    expect(await store.claim('name', 'other', LONG)).toBe('other');
  });

  it('refuses files that it cannot use, before it connects', async () => {
    const absent = join(place.folder, 'absent');
    const exposed = secretFile('exposed', 'right');
    chmodSync(exposed, 0o644);
    const open = (files: Partial<RedisStoreOptions>) => openRedisStore({ ...optionsOf(1), ...files });
    await expect(open({ passwordFile: absent })).rejects.toThrow(
      `cannot use the file ${absent} of gateway.cluster.storePasswordFile: it does not exist`,
    );
    await expect(open({ passwordFile: exposed })).rejects.toThrow('other users can read or change it');
    await expect(open({ passwordFile: secretFile('empty', '\n') })).rejects.toThrow('it is empty');
    await expect(open({ caFile: exposed })).rejects.toThrow('it has no certificate in PEM');
  });

  it('rejects what is in flight when it is closed, and all that follows', async () => {
    const server = await place.start();
    const store = await opened(server.port);
    server.signal('SIGSTOP');
    const inFlight = store.read('name');
    await store.close();
    await expect(inFlight).rejects.toThrow(StoreUnavailable);
    await expect(store.beat('one', '', LONG)).rejects.toThrow('the store of the cluster was closed');
    expect(store.isUp).toBe(false);
  });
});

const LONG = 60_000;
/** As docs/configuration.md lists them. */
const COMMANDS = ['eval', 'get', 'set', 'del', 'hset', 'hgetall', 'hdel', 'pexpireat', 'time'];

/** A busy machine can stop the server for a while, so only tests of that limit have it. */
function optionsOf(port: number, more: Partial<RedisStoreOptions> = {}): RedisStoreOptions {
  const location = { addresses: [{ host: '127.0.0.1', port }], isTls: false, database: 0 } as const;
  return { location, name: 'trunkline', commandMs: 20_000, ...more };
}

/** A store that has answered a beat. */
async function opened(port: number, more: Partial<RedisStoreOptions> = {}, member = 'one'): Promise<ClusterStore> {
  const store = await openRedisStore(optionsOf(port, more));
  stores.push(store);
  await store.beat(member, '', LONG);
  return store;
}

async function bothAt({ port }: RedisProcess): Promise<[ClusterStore, ClusterStore]> {
  const [one, other] = [await opened(port), await opened(port, {}, 'other')];
  await one.leave('one');
  return [one, other];
}

async function refusalOf(port: number, more: Partial<RedisStoreOptions>): Promise<string> {
  const store = await openRedisStore(optionsOf(port, more));
  stores.push(store);
  return await store.beat('one', '', LONG).then(
    () => 'no refusal',
    (error: StoreUnavailable) => error.message,
  );
}

async function comesBack(store: ClusterStore): Promise<void> {
  const beat = () =>
    store.beat('one', '', LONG).then(
      () => store.isUp,
      () => false,
    );
  await expect.poll(beat).toBe(true);
}

function secretFile(name: string, text: string): string {
  const file = join(place.folder, name);
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

function members(texts: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(texts));
}

/** Under load, the server may not answer within the limit. */
async function readOrNoAnswer(store: ClusterStore, name: string): Promise<Uint8Array | string | undefined> {
  if (!store.isUp) await store.connect().catch(() => {});
  return await store.read(name).catch(() => 'no answer');
}

async function read(store: ClusterStore, name: string): Promise<number[]> {
  return [...((await store.read(name)) ?? [])];
}
