import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../support/free-port.js';
import { type Finished, Place, type Running } from '../support/http-place.js';
import { RedisPlace, type RedisProcess } from '../support/redis-place.js';

const KEY = 'k'.repeat(43);

describe('trunkline cluster status', () => {
  const [place, stores] = [new Place(), new RedisPlace()];
  let redis: RedisProcess;
  let ports: number[];
  const gateways: Running[] = [];

  beforeAll(async () => {
    redis = await stores.start(['requirepass of-the-store']);
    ports = [await freePort(), await freePort()];
    writeFileSync(place.file('key'), KEY, { mode: 0o600 });
    writeFileSync(place.file('password'), 'of-the-store\n', { mode: 0o600 });
    for (const port of ports) gateways.push(await place.serve({ config: configOf(port) }));
  });

  afterAll(async () => {
    await place.dispose();
    await stores.end();
  });

  /** Writes the configuration of the gateway whose peer port is `port`. */
  function configOf(port: number, key = 'key'): string {
    const file = place.file(`${key}-${port}.yaml`);
    const cluster = { store: redis.url, storePasswordFile: 'password', advertise: `127.0.0.1:${port}` };
    const gateway = { sealKeyFile: key, drain: '0s', cluster };
    const more = port === ports[1] ? { more: { ...place.lab(), start: 'lazy' } } : {};
    writeFileSync(file, JSON.stringify({ servers: { lab: place.lab(), ...more }, gateway }));
    return file;
  }

  const statusOf = (config: string, ...options: string[]): Promise<Finished> =>
    place.run(['cluster', 'status', '--config', config, ...options]);
  const membersAt = async (port: number) => JSON.parse((await statusOf(configOf(port), '--json')).stdout).members;

  it('lists the same gateways at each of them', async () => {
    const [first = 0, second = 0] = ports;
    await expect.poll(async () => (await membersAt(first)).length).toBe(2);
    const members = await membersAt(first);
    expect(await membersAt(second)).toEqual(members);
    const instance = expect.stringMatching(/^[a-z2-7]{10}$/);
    const version = expect.stringMatching(/^\d+\.\d+\.\d+/);
    expect(members).toHaveLength(2);
    for (const port of ports)
      expect(members).toContainEqual({ instance, address: `127.0.0.1:${port}`, state: 'ready', version, load: 0 });
    expect(Object.keys(members[0])).toEqual(['instance', 'address', 'state', 'version', 'load']);
  });

  it('shows them as a table, with the one that was asked, and says that their servers differ', async () => {
    const { code, stdout } = await statusOf(configOf(ports[0] ?? 0));
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^The cluster has 2 gateways\. The store answers\.\n\nINSTANCE +ADDRESS +STATE +VERSION +LOAD\n/,
    );
    const [asked, other] = ports.map((port) => stdout.split('\n').find((line) => line.includes(`127.0.0.1:${port}`)));
    expect(asked).toMatch(/^[a-z2-7]{10} \(here\) +127\.0\.0\.1:\d+ +ready /);
    expect(other).not.toContain('(here)');
    expect(stdout).toContain('\n\nOne gateway of the cluster has other servers than the one on this machine: ');
  });

  it('says that another key file belongs to another cluster', async () => {
    writeFileSync(place.file('other'), 'o'.repeat(43), { mode: 0o600 });
    const { code, stderr } = await statusOf(configOf(ports[0] ?? 0, 'other'));
    expect(code).toBe(1);
    expect(stderr).toBe(
      `The gateway at 127.0.0.1:${ports[0]} does not accept the key of ${place.file('other')}. Restart the gateway if the file has changed since its start, or use the configuration of the gateway.\n`,
    );
  });

  it('says that no gateway of the configuration runs here', async () => {
    const port = await freePort();
    const { code, stderr, stdout } = await statusOf(configOf(port), '--json');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(
      `No gateway of the cluster runs on this machine: nothing listens at 127.0.0.1:${port}. Start it with \`trunkline serve --http\`, or restart it if its key file or \`gateway.cluster\` has changed.\n`,
    );
  });

  it('says that the gateway does not answer while its process is stopped', async () => {
    const [gateway] = gateways;
    gateway?.process.kill('SIGSTOP');
    const { code, stderr } = await statusOf(configOf(ports[0] ?? 0));
    gateway?.process.kill('SIGCONT');
    expect(code).toBe(1);
    expect(stderr).toContain('does not answer: no answer within 3 s');
    await expect.poll(async () => (await membersAt(ports[0] ?? 0)).length).toBe(2);
  });

  it('says that the configuration has no cluster, or lacks a variable of the gateway', async () => {
    const [config = ''] = [place.file('alone.yaml')];
    const servers = { lab: place.lab() };
    writeFileSync(config, JSON.stringify({ servers }));
    const alone = await statusOf(config);
    expect(alone.code).toBe(2);
    expect(alone.stderr).toContain(`${config} has no \`gateway.cluster\`, so a gateway of this configuration knows no`);
    const cluster = { store: redis.url, advertise: `\${POD_IP_OF_TEST}:7412` };
    writeFileSync(config, JSON.stringify({ servers, gateway: { sealKeyFile: 'key', cluster } }));
    const unset = await statusOf(config);
    expect(unset.code).toBe(2);
    expect(unset.stderr).toContain('gateway.cluster.advertise: the environment variable POD_IP_OF_TEST is not set');
  });

  it('still lists them while the store is away, and says what that means', async () => {
    const [port = 0] = ports;
    await redis.kill();
    const away = async () => (await statusOf(configOf(port))).stdout;
    await expect.poll(away).toContain('The store does not answer.');
    expect(await away()).toMatch(
      /\n\nThe store of the cluster is not reachable: .*ECONNREFUSED.*\. Start the store, or correct `gateway\.cluster`\. The gateways use it again by themselves\.\n/,
    );
    expect(await membersAt(port)).toHaveLength(2);
    const doctor = await place.run(['doctor', '--config', configOf(port), '--json', '--no-start']);
    const codes = JSON.parse(doctor.stdout).findings.map(({ code }: { code: string }) => code);
    expect(codes).toContain('TL-CLUSTER-STORE-AWAY');
    const [gateway] = gateways;
    const client = gateway && (await place.handshake(gateway));
    expect(await client?.call('trunkline__status')).toContain(
      'The store of the cluster does not answer. Sessions go on',
    );
    await client?.end();
  });
});
