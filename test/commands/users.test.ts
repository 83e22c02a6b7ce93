import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { CLI, Workplace } from '../cli/cli-run.js';
import { startIssuer, startProvider } from '../fixtures/servers/protected.mjs';
import { freePort } from '../support/free-port.js';
import { INITIALIZE, Place, RawHttpClient, type Running } from '../support/http-place.js';
import { sha256 } from '../support/sha256.js';

const ORIGIN = fileURLToPath(new URL('../fixtures/servers/origin.mjs', import.meta.url));
const BROWSER = fileURLToPath(new URL('../fixtures/cli/browser.mjs', import.meta.url));
const _LOOPBACK = ['--http', '127.0.0.1:0'];
const LOOPBACK = ['--http', '127.0.0.1:0'];

const tokenOf = (name: string) => `a-token-for-the-machine-${name}-that-is-long-enough`;
const secretOf = (name: string) => `value-of-${name}-4711`;

/** Writes the tokens and the variables of machines, and a configuration for them. Returns the file. */
function configure(place: Place, names: readonly string[]): string {
  writeFileSync(place.file('machines'), names.map((name) => `${name} ${sha256(tokenOf(name))} ${name}s\n`).join(''));
  mkdirSync(place.file('variables/users/ann'), { recursive: true });
  writeFileSync(place.file('variables/users/ann/KEY'), secretOf('ann'));
  for (const name of names.filter((each) => each !== 'eve')) {
    mkdirSync(place.file(`variables/machines/${name}`), { recursive: true });
    writeFileSync(place.file(`variables/machines/${name}/KEY`), `${secretOf(name)}\n`);
  }
  const server = place.server(ORIGIN);
  const config = {
    servers: {
      own: { ...server, env: { SECRET_KEY: `\${user:KEY}` } },
      common: { ...server, sharing: 'all', env: { SECRET_KEY: `\${user:KEY:-none}` } },
      plain: { ...server, sharing: 'all' },
    },
    views: { anns: { groups: ['anns'], servers: ['own', 'common', 'plain'] }, others: { servers: ['own'] } },
    gateway: {
      callLog: 'metadata',
      record: 'recording.jsonl',
      http: { auth: { tokens: 'machines', variables: 'variables' } },
    },
  };
  const file = place.file('trunkline.yaml');
  writeFileSync(file, JSON.stringify(config));
  return file;
}

async function connect(running: Running, name: string): Promise<RawHttpClient> {
  const client = new RawHttpClient(running.url, tokenOf(name));
  await client.initialize();
  return client;
}

const where = async (client: RawHttpClient, server: string) => JSON.parse(await client.call(`${server}__where`));

describe('two machines with tokens and variables of their own', () => {
  let place: Place;
  let running: Running;
  let ann: RawHttpClient;
  let bob: RawHttpClient;

  beforeAll(async () => {
    place = new Place();
    running = await place.serve({ config: configure(place, ['ann', 'bob', 'eve']), args: ['-vv'] });
    [ann, bob] = [await connect(running, 'ann'), await connect(running, 'bob')];
  });

  afterAll(async () => {
    await Promise.all([ann.end(), bob.end()]);
    await place.dispose();
  });

  it('have each a process with the own values', async () => {
    const [hers, his] = [await where(ann, 'own'), await where(bob, 'own')];
    expect([hers.env.SECRET_KEY, his.env.SECRET_KEY]).toEqual([secretOf('ann'), secretOf('bob')]);
    expect(hers.pid).not.toBe(his.pid);
  });

  it('do not see processes, output and files of each other in the status', async () => {
    await where(ann, 'plain');
    const statusOf = async (client: RawHttpClient, server: string) => {
      const { result } = await client.request('tools/call', { name: 'trunkline__status', arguments: { server } });
      return { text: JSON.stringify(result), report: result.structuredContent };
    };
    const { report, text } = await statusOf(bob, 'own');
    expect(report.servers[0].instances.map(({ isYours }: { isYours: boolean }) => isYours)).toEqual([true]);
    expect(report.configFile).toBeNull();
    expect(text).not.toContain(place.folder);
    // The process writes a line of output when it starts.
    expect((await statusOf(ann, 'plain')).report.servers[0].log).toEqual([]);
    expect((await statusOf(ann, 'own')).report.servers[0].log).not.toEqual([]);
  });

  it('leave no value and no token in logs and recordings', async () => {
    await Promise.all([where(ann, 'own'), where(bob, 'own')]);
    const texts = [running.stderr, readFileSync(place.file('recording.jsonl'), 'utf8')];
    for (const text of texts)
      for (const secret of ['ann', 'bob'].flatMap((name) => [secretOf(name), tokenOf(name), sha256(tokenOf(name))]))
        expect(text).not.toContain(secret);
    expect(texts[1]).toContain('SECRET_KEY');
  });

  it('are named in the call log', async () => {
    await where(bob, 'own');
    const log = join(dirname(place.tokenFile), 'calls.jsonl');
    await expect.poll(() => readFileSync(log, 'utf8')).toContain('"machine":"bob"');
    const lines = readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.every(({ machine, outcome }) => ['ann', 'bob'].includes(machine) && outcome === 'ok')).toBe(true);
    const { stdout } = await place.run(['activity']);
    expect(stdout).toContain('machine bob with test/1');
  });

  it('are not served with the token of `trunkline token`', async () => {
    const { stdout, stderr } = await place.run(['token', '--config', place.file('trunkline.yaml')]);
    expect(stderr).toContain('refuses this token, because it has users. `trunkline token add NAME` makes one');
    const authorization = `Bearer ${stdout.trim()}`;
    expect(await place.statusOf(running, { authorization })).toBe(401);
  });

  it('of which one lacks a variable are told so, and have no process', async () => {
    const eve = await connect(running, 'eve');
    const { result } = await eve.request('tools/call', { name: 'trunkline__status', arguments: {} });
    expect(result.content[0].text).toContain('the variable KEY of the machine eve is not set');
    // Every command says the same about the server, which runs for the others.
    const config = ['--config', place.file('trunkline.yaml')];
    for (const command of ['status', 'ps', 'tools']) {
      const { stdout, stderr } = await place.run([command, ...config]);
      expect(stdout + stderr, command).toContain('the variable KEY of the machine eve is not set');
      expect(stdout + stderr, command).toContain('`trunkline user set eve KEY --machine`');
    }
    const called = await place.run(['call', 'own__where', ...config]);
    expect(called.stderr).toContain('the variable KEY of the user is not set; run `trunkline user set USER KEY`');
    await eve.end();
    const [line = ''] = running.stderr.split('\n').filter((each) => each.includes('"user":"eve"'));
    expect(line).toContain('the variable KEY of the machine eve is not set');
  });

  it.each([
    { args: [], code: 0, says: /^own +per user .*trunkline check --user NAME.*`trunkline user list`/ms },
    { args: ['--user', 'ann'], code: 0, says: /^own +ready/m },
    { args: ['--user', 'bob', '--machine'], code: 0, says: /^own +ready/m },
    { args: ['--user', 'eve', '--machine'], code: 1, says: /set eve KEY --machine/ },
    {
      args: ['--user', 'bob'],
      code: 1,
      says: /^own +misconfigured .*the user bob is not set.*The user bob is unknown.*: add `--machine`\.$/ms,
    },
  ])('have servers that `check $args` tries', async ({ args, code, says }) => {
    const tried = await place.run(['check', 'own', ...args, '--config', place.file('trunkline.yaml')]);
    expect([tried.code, tried.stdout + tried.stderr]).toEqual([code, expect.stringMatching(says)]);
  });

  it('have servers that `list` shows as the gateway does', async () => {
    const { stdout } = await place.run(['list', '--config', place.file('trunkline.yaml')]);
    expect(stdout).toMatch(/^own +ready/m);
  });
});

describe('the example of docs/users.md', () => {
  it('starts as it is typed, and admits the machine whose token it has made', async () => {
    const place = new Place();
    onTestFinished(() => place.dispose());
    const page = readFileSync(fileURLToPath(new URL('../../docs/users.md', import.meta.url)), 'utf8');
    const [, example = '', commands = ''] =
      /## A complete example\n[\s\S]*?```yaml\n([\s\S]*?)```[\s\S]*?```sh\n([\s\S]*?)```/.exec(page) ?? [];
    // The folders of the system are those of the test, and the port is a free one.
    const here = (text: string) => text.replaceAll(/\/(?=(?:etc|var|srv)\/)/g, `${place.folder}/`);
    const [named = '', ...lines] = here(commands.replace(':7411', ':0')).trim().split('\n');
    const file = named.replace('export TRUNKLINE_CONFIG=', '');
    mkdirSync(dirname(file), { recursive: true });
    // A test installs no package and reaches no server of the internet.
    const off = here(example).replaceAll(/^ {2}(?:github|notes|files):$/gm, '$&\n    disabled: true');
    expect(off.match(/disabled/g)).toHaveLength(3);
    writeFileSync(file, off);
    const argsOf = (line: string) => line.split(' ').slice(1);
    const [add = '', set = '', serve = ''] = lines;
    const env = { TRUNKLINE_CONFIG: file };
    const run = async (line: string, input = '') => {
      const running = place.start(argsOf(line), CLI, env);
      running.process.stdin.end(input);
      return await running.finished;
    };
    const { code, stdout } = await run(add);
    expect(code).toBe(0);
    expect(await run(set, 'the value of ann\n')).toMatchObject({ code: 0, stdout: '' });
    const value = readFileSync(
      join(place.folder, 'var/lib/trunkline/variables/users/ann@example.com/GITHUB_TOKEN'),
      'utf8',
    );
    expect(value).toBe('the value of ann');
    const running = place.start(argsOf(serve), CLI, env);
    await running.untilListening();
    expect(running.stderr).toMatch(
      /with the configuration \S*trunkline\.yaml; users log in at https:\/\/idp\.example\.com\/realms\/team/,
    );
    const client = new RawHttpClient(running.url, stdout.trim());
    await client.initialize();
    const { tools } = (await client.request('tools/list')).result;
    expect(tools.map(({ name }: { name: string }) => name)).toEqual(['trunkline__status']);
    await client.end();
    for (const secret of [stdout.trim(), 'the value of ann']) expect(running.stderr).not.toContain(secret);
  });
});

describe('a machine whose token `trunkline token add` makes', () => {
  it('is admitted by a gateway that runs, with the groups and the variables that commands give it', async () => {
    const place = new Place();
    onTestFinished(() => place.dispose());
    const config = configure(place, ['ann']);
    const running = await place.serve({ config });
    const run = async (words: string, input = '') => {
      const started = place.start([...words.split(' '), '--config', config]);
      started.process.stdin.end(input);
      return await started.finished;
    };
    const added = await run('token add new --group anns');
    expect(added).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[\w-]{43}\n$/) });
    const token = added.stdout.trim();
    expect(readFileSync(place.file('machines'), 'utf8')).toContain(`new ${sha256(token)} anns\n`);
    expect(added.stderr).not.toContain(token);
    const set = await run('user set new KEY --machine', 'value of new\n');
    expect(set).toMatchObject({ code: 0, stdout: '', stderr: expect.not.stringContaining('value of new') });
    expect(statSync(place.file('variables/machines/new/KEY')).mode & 0o777).toBe(0o600);
    await expect.poll(() => place.statusOf(running, { authorization: `Bearer ${token}` })).toBe(200);
    const client = new RawHttpClient(running.url, token);
    await client.initialize();
    expect((await where(client, 'own')).env.SECRET_KEY).toBe('value of new');
    await client.end();
    expect((await run('token list')).stdout).toMatch(/^NAME +GROUPS\nann +anns?\n?.*^new +anns$/ms);
    expect((await run('user list')).stdout).toMatch(/^ann +user +KEY +-\n.*^new +machine +KEY +-$/ms);
    expect((await run('user remove new KEY --machine')).stderr).toContain('Removed KEY of the machine new.');
    expect(existsSync(place.file('variables/machines/new'))).toBe(false);
    expect((await run('user list new')).stdout).toMatch(/^new +machine +- +KEY$/m);
    expect((await run('token remove new')).stderr).toContain('Removed 1 token of new.');
    expect(readFileSync(place.file('machines'), 'utf8')).not.toContain(sha256(token));
    await expect.poll(() => place.statusOf(running, { authorization: `Bearer ${token}` })).toBe(401);
    expect(await place.statusOf(running, { authorization: `Bearer ${tokenOf('ann')}` })).toBe(200);
  });

  it.each([
    ['token add new', {}, 'has no `gateway.http.auth.tokens`; add it'],
    ['user set ann KEY', { tokens: 'machines' }, 'has no `gateway.http.auth.variables`; add it'],
    ['token add New', { tokens: 'machines' }, '`New` cannot be written into'],
    ['token remove new', { tokens: 'machines' }, 'has no token of new; `trunkline token list` shows the names'],
    ['user remove ann', { tokens: 'machines', variables: 'v' }, 'the user ann has no variable; `trunkline user list`'],
    ['user set ann a-b', { tokens: 'machines', variables: 'v' }, '`a-b` is not a name of a variable'],
    ['user set ann KEY', { tokens: 'machines', variables: 'v' }, 'the value is empty, so nothing was stored'],
  ])('is not made by a wrong command: %s, with %j', async (words, auth, message) => {
    const place = new Place();
    onTestFinished(() => place.dispose());
    const http = Object.keys(auth).length === 0 ? {} : { auth };
    const before = [...place.configure({ a: place.lab() }, { http })];
    const { code, stdout, stderr } = await place.run([...words.split(' '), ...before]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect(['machines', 'v'].filter((name) => existsSync(place.file(name)))).toEqual([]);
  });
});

describe('without users', () => {
  it('nothing that checks tokens is loaded with the HTTP server', () => {
    const built = readFileSync(join(dirname(CLI), 'serve-http.js'), 'utf8');
    const eager = [...built.matchAll(/^\w+ [\w$]+ = require\("\.\/([\w-]+)\.js"\)/gm)].map(([, name]) => name);
    expect(eager).toContain('mcp-endpoint');
    for (const late of ['user-check', 'user-variables']) {
      expect(eager).not.toContain(late);
      expect(built).toContain(`require("./${late}.js")`);
    }
  });
});

describe('the gateway does not start', () => {
  it.each([
    [
      'without the file of tokens',
      { auth: { tokens: 'none' } },
      [],
      'of `auth.tokens` does not exist; `trunkline token add NAME` makes it',
    ],
    ['with `--no-auth` for users', { auth: { tokens: 'machines' } }, ['--no-auth'], 'Users have to log in'],
  ])('%s', async (_, http, args, message) => {
    const place = new Place();
    onTestFinished(() => place.dispose());
    configure(place, ['ann']);
    const { code, stderr } = await place.run([...place.configure({ a: place.lab() }, { http }), ...LOOPBACK, ...args]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe('users of an identity provider', () => {
  it('log in with a client that only knows the URL, and get the view of their group', async () => {
    const place = new Place();
    onTestFinished(() => place.dispose());
    const port = await freePort();
    const publicUrl = `http://127.0.0.1:${port}`;
    const { issuer, close } = await startIssuer(`${publicUrl}/mcp`, { alice: ['eng'], bob: ['ops'] });
    onTestFinished(close);
    const config = place.file('trunkline.yaml');
    const scopes = ['mcp:read'];
    writeFileSync(
      config,
      JSON.stringify({
        servers: { one: place.server(ORIGIN), two: place.server(ORIGIN) },
        views: { dev: { groups: ['eng'], servers: ['one'] }, run: { groups: ['ops'], servers: ['two'] } },
        gateway: { http: { publicUrl, auth: { jwt: { issuer, audience: [`${publicUrl}/mcp`], scopes } } } },
      }),
    );
    const running = await place.serve({ config, address: ['--http', `127.0.0.1:${port}`] });
    expect(running.stderr).toContain(`; users log in at ${issuer}`);

    for (const [name, tool] of [
      ['alice', 'one__where'],
      ['bob', 'two__where'],
    ] as const) {
      const client = new Workplace();
      const data = mkdtempSync('/tmp/tlu-');
      onTestFinished(() => {
        client.dispose();
        rmSync(data, { recursive: true, force: true });
      });
      client.configure({ team: { url: `${publicUrl}/mcp` } });
      const path = dirname(process.execPath);
      Object.assign(client.env, {
        ...{ PATH: path, XDG_DATA_HOME: data, TRUNKLINE_HUB: 'off', LOGIN_NAME: name },
        BROWSER: `"${process.execPath}" "${BROWSER}"`,
      });
      expect(await client.run(['login', 'team'])).toMatchObject({ code: 0 });
      const { stdout } = await client.run(['tools', '--json']);
      const names = JSON.parse(stdout).tools.map((each: { name: string }) => each.name);
      expect(names).toEqual([`team__${tool}`, 'team__trunkline__status', 'trunkline__status']);
    }

    const challenge = await fetch(`${publicUrl}/mcp`, { method: 'POST', body: JSON.stringify(INITIALIZE) });
    expect([challenge.status, challenge.headers.get('www-authenticate')]).toEqual([
      401,
      `Bearer scope="mcp:read", resource_metadata="${publicUrl}/.well-known/oauth-protected-resource/mcp"`,
    ]);
  });
});

describe('users of an identity provider that registers no clients', () => {
  it('log in through the gateway, whose log has no token and no code', async () => {
    const place = new Place();
    onTestFinished(() => place.dispose());
    const port = await freePort();
    const publicUrl = `http://127.0.0.1:${port}`;
    const resource = `${publicUrl}/mcp`;
    const clientId = 'trunkline-at-the-provider';
    const callback = `${publicUrl}/authorize/callback`;
    const provider = await startProvider({ resource, callback, clientId, isStrict: true, rotates: true });
    onTestFinished(() => provider.close());
    const { issuer, secrets } = provider;
    // A token that ends soon is renewed at the next start of a client.
    provider.lifetimeSeconds = 5;
    const config = place.file('trunkline.yaml');
    const auth = { jwt: { issuer, audience: [resource], scopes: ['mcp:read'] }, front: { clientId } };
    writeFileSync(
      config,
      JSON.stringify({ servers: { one: place.server(ORIGIN) }, gateway: { http: { publicUrl, auth } } }),
    );
    const running = await place.serve({ config, address: ['--http', `127.0.0.1:${port}`], args: ['-vv'] });
    expect(running.stderr).toContain(`; users log in at ${issuer}, through this gateway`);

    const client = new Workplace();
    const data = mkdtempSync('/tmp/tlu-');
    onTestFinished(() => {
      client.dispose();
      rmSync(data, { recursive: true, force: true });
    });
    client.configure({ team: { url: resource } });
    const path = dirname(process.execPath);
    Object.assign(client.env, {
      ...{ PATH: path, XDG_DATA_HOME: data, TRUNKLINE_HUB: 'off', LOGIN_NAME: 'alice' },
      BROWSER: `"${process.execPath}" "${BROWSER}"`,
    });
    expect(await client.run(['login', 'team'])).toMatchObject({ code: 0 });
    const called = await client.run(['call', 'team__one__where', '--json']);
    expect(called).toMatchObject({ code: 0 });
    const renewals = () => provider.to('/token').filter(({ params }) => params.get('grant_type') === 'refresh_token');
    await expect
      .poll(async () => {
        expect((await client.run(['call', 'team__one__where', '--json'])).code).toBe(0);
        return renewals().length;
      })
      .toBeGreaterThan(0);
    expect(provider.reused).toBe(0);
    expect(secrets.size).toBeGreaterThan(4);
    for (const secret of secrets) expect(running.stderr).not.toContain(secret);

    const doctor = await place.run(['doctor', '--config', config]);
    expect(doctor.stdout).toContain(`The public client ${clientId} needs the redirect URI ${callback} there.`);
  });
});
