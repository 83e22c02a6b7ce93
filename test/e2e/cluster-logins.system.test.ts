import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { startProtected } from '../fixtures/servers/protected.mjs';
import { GatewayProcess } from '../support/gateway-process.js';
import { RedisPlace } from '../support/redis-place.js';

const BROWSER = fileURLToPath(new URL('../fixtures/cli/browser.mjs', import.meta.url));

/** A user, and gateways on other machines: each has its own place of the configuration, and its own data folder. */
async function open(lifetimeSeconds = 3_600) {
  const [server, servers] = [await startProtected({ lifetimeSeconds }), new RedisPlace()];
  const redis = await servers.start();
  const commands = new Workplace();
  const sealKeyFile = join(commands.folder, 'seal-key');
  writeFileSync(sealKeyFile, randomBytes(32).toString('base64'), { mode: 0o600 });
  const data = mkdtempSync('/tmp/tlc-');
  const gateway = { sealKeyFile, cluster: { store: redis.url, advertise: '127.0.0.1:7412' } };
  const files = { url: server.url };
  commands.configure({ files }, { gateway });
  const env = { PATH: dirname(process.execPath), XDG_DATA_HOME: data, TRUNKLINE_HUB: 'off' };
  Object.assign(commands.env, { ...env, BROWSER: `"${process.execPath}" "${BROWSER}"` });
  const gateways: GatewayProcess[] = [];
  const serve = async (...args: string[]) => {
    const machine = {
      servers: { files },
      gateway,
      args,
      env: { ...env, XDG_DATA_HOME: join(data, `${gateways.length}`) },
    };
    const started = await GatewayProcess.start(machine);
    gateways.push(started);
    return started;
  };
  onTestFinished(async () => {
    for (const one of gateways) await one.end();
    commands.dispose();
    rmSync(data, { recursive: true, force: true });
    await Promise.all([server.close(), servers.end()]);
  });
  return { server, redis, commands, data, sealKeyFile, serve };
}

const textOf = ({ message }: Awaited<ReturnType<GatewayProcess['call']>>) => message.result.content[0].text as string;
const refreshes = ({ to }: { to: (path: string) => { form: string }[] }) =>
  to('/token').filter(({ form }) => form.includes('grant_type=refresh_token')).length;

describe('a login of a cluster', () => {
  it('at any machine reaches every gateway, is renewed once for all, and ends for all', async () => {
    const { server, commands, data, sealKeyFile, serve } = await open();
    chmodSync(sealKeyFile, 0o644);
    const refused = await commands.run(['login', 'files']);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot use the file') });
    // The person is not sent to the browser in vain.
    expect([refused.stdout, server.asked]).toEqual(['', []]);
    chmodSync(sealKeyFile, 0o600);
    const first = await serve();
    const gateways = [first, await serve(), await serve()];
    for (const gateway of gateways) await gateway.untilState('files', 'blocked');
    const login = await commands.run(['login', 'files']);
    expect(login).toMatchObject({ code: 0, stderr: expect.stringContaining('Logged in at files') });
    for (const gateway of gateways) await gateway.untilState('files', 'ready');
    for (const secret of [...server.secrets]) server.refused.add(secret);
    const calls = gateways.flatMap((gateway) => Array.from({ length: 10 }, () => gateway.call('files__read')));
    expect(new Set((await Promise.all(calls)).map(textOf))).toEqual(new Set(['read done']));
    expect([refreshes(server), server.reused]).toEqual([1, 0]);

    const status = JSON.parse((await commands.run(['auth', 'status', '--json'])).stdout);
    expect(status.logins).toEqual([expect.objectContaining({ state: 'logged_in', storedIn: 'store' })]);
    expect((await commands.run(['auth', 'status'])).stderr).toContain('encrypted in the store of the cluster');
    expect(await commands.run(['logout', 'files', '--revoke'])).toMatchObject({ code: 0 });
    for (const gateway of gateways) await gateway.untilState('files', 'blocked');
    expect(textOf(await first.call('files__read'))).toContain('`trunkline login files --config');
    expect(readdirSync(data, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('auth'))).toEqual(
      [],
    );
  });

  it('F353: is used while the store is away, and not renewed: calls and commands say why, and without a secret', async () => {
    const { server, redis, commands, sealKeyFile, serve } = await open();
    await commands.run(['login', 'files', '-vv']);
    const gateway = await serve('-vv');
    await gateway.untilState('files', 'ready');
    const content = await redis.ask('--raw', 'get', (await redis.ask('keys', '*record:login*')).trim());
    await redis.kill();
    expect(textOf(await gateway.call('files__read'))).toBe('read done');
    for (const secret of [...server.secrets]) server.refused.add(secret);
    const refused = textOf(await gateway.call('files__read'));
    expect(refused).toContain('the login cannot be read or changed, because the store of the cluster is not reachable');
    expect(refused).not.toContain('trunkline login');
    const shown = [content, refused];
    for (const args of [
      ['login', 'files'],
      ['logout', 'files'],
      ['auth', 'status'],
    ]) {
      const { code, stdout, stderr } = await commands.run([...args, '-vv']);
      expect([args, code, stdout, stderr]).toEqual([
        ...[args, 1, ''],
        expect.stringContaining('because the store of the cluster is not reachable: connect ECONNREFUSED'),
      ]);
      shown.push(stderr);
    }
    expect(refreshes(server)).toBe(0);

    await redis.restart();
    await gateway.untilState('files', 'ready');
    expect(textOf(await gateway.call('files__read'))).toBe('read done');
    expect(refreshes(server)).toBe(1);
    shown.push(gateway.stderr, ...gateway.received.map(({ raw }) => raw));
    const key = readFileSync(sealKeyFile, 'utf8');
    expect([...server.secrets, key].filter((secret) => shown.join('\n').includes(secret))).toEqual([]);
  });
});
