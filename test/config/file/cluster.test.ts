import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { load, problemsOf } from '../loading.js';

const CLUSTER = { store: 'redis://store.example', advertise: '10.0.0.4:7412' };

/** A configuration with these settings of a cluster, as JSON on one line. */
const withCluster = (cluster: object, gateway: object = { sealKeyFile: 'key' }) =>
  JSON.stringify({ servers: { a: { command: 'x' } }, gateway: { ...gateway, cluster } });
const clusterOf = (cluster: object, env: Record<string, string> = {}) =>
  load(withCluster({ ...CLUSTER, ...cluster }), { env: { HOME: '/home/ada', ...env } }).gateway.cluster;
/** The problems without their positions. */
const faultsOf = (text: string) => problemsOf(text).map((problem) => problem.replace(/^\d+:\d+ /, ''));

describe('the cluster', () => {
  test('has a name, listens at all addresses, and is absent by default', () => {
    expect(clusterOf({})).toEqual({
      name: 'trunkline',
      store: { addresses: [{ host: 'store.example', port: 6379 }], isTls: false, database: 0 },
      advertise: '10.0.0.4:7412',
      listen: { host: '0.0.0.0', port: 7412 },
    });
    expect(load('servers: { a: { command: x } }').gateway).not.toHaveProperty('cluster');
  });

  test('has the variables of this process, and files near the file of the configuration', () => {
    const text = withCluster({
      ...{ store: `rediss://\${STORE:-store.example}:7000/3`, advertise: `\${POD_IP}:7412`, listen: '[::1]:1' },
      ...{ name: 'team', storeUser: 'gateway', storePasswordFile: 'sub/password', storeCaFile: '~/ca.pem' },
    });
    const { file, gateway } = load(text, { env: { HOME: '/home/ada', POD_IP: '10.0.0.7' } });
    expect(gateway.cluster).toEqual({
      store: { addresses: [{ host: 'store.example', port: 7000 }], isTls: true, database: 3 },
      ...{ advertise: '10.0.0.7:7412', listen: { host: '::1', port: 1 }, name: 'team', storeUser: 'gateway' },
      storePasswordFile: join(dirname(file), 'sub/password'),
      storeCaFile: resolve(tmpdir(), '/home/ada/ca.pem'),
    });
  });

  test('listens at all addresses of IPv6 if it is reached at one', () => {
    expect(clusterOf({ advertise: '[fd00::4]:7412' })).toMatchObject({
      advertise: '[fd00::4]:7412',
      listen: { host: '::', port: 7412 },
    });
  });

  test.each([
    ['valkey://[fd00::1]:7000', { addresses: [{ host: 'fd00::1', port: 7000 }], isTls: false, database: 0 }],
    ['valkeys://store', { addresses: [{ host: 'store', port: 6379 }], isTls: true, database: 0 }],
    [
      'rediss-sentinel://one,[fd00::2]:7000,10.0.0.3/mymaster',
      {
        addresses: [
          { host: 'one', port: 26379 },
          { host: 'fd00::2', port: 7000 },
          { host: '10.0.0.3', port: 26379 },
        ],
        ...{ isTls: true, database: 0, sentinelMaster: 'mymaster' },
      },
    ],
  ])('finds the store at %s', (store, location) => {
    expect(clusterOf({ store })).toHaveProperty('store', location);
  });

  test.each([
    [
      { advertise: `\${POD_IP}:7412` },
      {},
      'gateway.cluster.advertise: the environment variable POD_IP is not set; set',
    ],
    [{ advertise: `\${POD_IP}:7412` }, { POD_IP: 'fd00::4' }, 'gateway.cluster.advertise: found no address; expected'],
    [{ store: `\${STORE}` }, { STORE: 'redis://:tellnoone@h' }, 'gateway.cluster.store: found a URL with a password;'],
    [{ listen: `:\${PORT}` }, { PORT: '1' }, 'gateway.cluster.listen: found no address; expected'],
  ])('has a fault that serving over HTTP reports, with variables as in %j', (cluster, env, fault) => {
    const found = clusterOf({ ...cluster, storePasswordFile: '/password' }, env);
    expect(found).toEqual({ fault: expect.stringContaining(fault), storePasswordFile: resolve(tmpdir(), '/password') });
    expect(JSON.stringify(found)).not.toContain('tellnoone');
  });

  const FORM =
    'expected a URL such as redis://HOST:6379, rediss://HOST:6379, valkey://HOST:6379 or redis-sentinel://HOST:26379,HOST:26379/NAME';
  const PASSWORD = 'found a URL with a password; write the password to a file, and set `storePasswordFile` to its path';
  test.each([
    [{ store: 'redis://:tellnoone@store' }, `store: ${PASSWORD}`],
    [{ store: 'redis-sentinel://ada:tell@noone@one,two/mymaster' }, `store: ${PASSWORD}`],
    [{ store: 'redis://ada@store' }, 'store: found a URL with a user; set `storeUser` to its name'],
    [{ store: 'http://store' }, `store: found a string that is no URL of a store; ${FORM}`],
    [{ store: 'store:6379' }, `store: found a string that is no URL of a store; ${FORM}`],
    [{ store: 'redis://' }, `store: found a URL of a store without a valid host, or with several; ${FORM}`],
    [{ store: 'redis://one,two' }, `store: found a URL of a store without a valid host, or with several; ${FORM}`],
    [{ store: 'redis://[fd00::g]' }, `store: found a URL of a store without a valid host, or with several; ${FORM}`],
    [{ store: 'redis-sentinel://one,two:0/x' }, `store: found a Sentinel without a valid host; ${FORM}`],
    [
      { store: 'redis-sentinel://one' },
      'store: found Sentinels without the name of the server that they watch; append it, as in /mymaster',
    ],
    [
      { store: 'redis://one/mymaster' },
      'store: found a URL of a store with a path that is not the number of a database, such as /0',
    ],
    [
      { advertise: '0.0.0.0:7412' },
      'advertise: found an address that stands for all addresses of this machine; expected one that others can connect to',
    ],
    [
      { advertise: '10.0.0.4' },
      'advertise: found no address; expected HOST:PORT, such as 10.0.0.4:7412 or [fd00::4]:7412',
    ],
    [{ listen: 'h:70000' }, 'listen: found no address; expected HOST:PORT, such as 10.0.0.4:7412 or [fd00::4]:7412'],
    [{ store: undefined }, 'store: found no value; expected the URL of a store'],
    [{ name: 'a}b' }, 'name: found the string "a}b"; expected a name of up to 64 letters, digits, `_`, `.` and `-`'],
  ])('refuses %j', (cluster, fault) => {
    expect(faultsOf(withCluster({ ...CLUSTER, ...cluster }))).toEqual([`gateway.cluster.${fault}`]);
  });

  test('needs the key that its gateways share', () => {
    expect(faultsOf(withCluster(CLUSTER, {}))).toEqual([
      'gateway.cluster: found `cluster` without `sealKeyFile`, the key that its gateways share; add `sealKeyFile`',
    ]);
  });
});
