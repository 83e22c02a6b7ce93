import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { GatewayProcess } from '../support/gateway-process.js';
import { FAULTY } from '../support/in-process-gateway.js';
import { dataFolderIn } from '../support/platform.js';
import { until } from '../support/processes.js';

/** Part of every secret below; none of them has the shape of a well-known token. */
const CANARY = 'kanarienvogel';
const secret = (name: string) => `${CANARY}-${name}`;

/** The text in hexadecimal, and its middle in Base64 for each position at which it can begin. */
function base64And(text: string): string[] {
  const offsets = [0, 1, 2].map((offset) =>
    Buffer.from('x'.repeat(offset) + text)
      .toString('base64')
      .slice(4, -4),
  );
  return [...offsets, Buffer.from(text).toString('hex')];
}

/** Answers `initialize` with an error that tells what it was given, and dies. */
const TELLTALE = `
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id } = JSON.parse(line);
    const proxy = new URL(process.env.HTTPS_PROXY).password;
    const message = 'bad key ' + process.env.API_KEY + ' for ' + process.argv.join(' ') + ' at proxy ' + proxy;
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message } }) + '\\n');
  });`;

let gateway: GatewayProcess | undefined;
afterEach(async () => {
  await gateway?.dispose();
  gateway = undefined;
});

describe('secrets', () => {
  it('F55: in the environment, arguments, headers, stderr, failures and errors of servers are shown nowhere', async () => {
    const env = { API_KEY: secret('env'), SETTINGS_SECRET: secret('quoted "in" \\json') };
    gateway = await GatewayProcess.start({
      servers: {
        f: {
          program: FAULTY,
          args: ['reveal', '--token', secret('arg'), `--api-key=${secret('flag')}`, `\${PARENT_TOKEN}`],
          env: { ...env, DB_PASSWORD: `\${PARENT_PASSWORD}` },
        },
        telltale: {
          command: 'node',
          args: ['-e', TELLTALE, '--', `--secret=${secret('error')}`],
          env: { API_KEY: secret('init') },
          restart: { budget: 1 },
        },
        missing: { command: `\${PARENT_TOKEN}/no-such-program --password ${secret('line')}`, restart: { budget: 1 } },
      },
      env: {
        PARENT_TOKEN: secret('parent'),
        PARENT_PASSWORD: secret('expanded'),
        UNUSED_SECRET: secret('unused'),
        HTTPS_PROXY: `http://ada:${secret('proxy')}@127.0.0.1:1`,
      },
      args: ['-vv', '--log-file', 'RUN/logs/x.log'],
    });
    const { folder } = gateway;
    await Promise.all(['telltale', 'missing'].map((key) => gateway?.untilState(key, 'parked')));
    await gateway.untilState('f', 'ready');
    const escaped = JSON.stringify(JSON.stringify({ api_key: secret('nested'), cookie: `a=${secret('cookie')}; b=c` }));
    const known = Buffer.from(`user:${env.API_KEY}:x`);
    const forms = [known.toString('base64'), known.toString('base64url'), known.toString('hex')];
    const headers = `Authorization: Bearer ${secret('header')}\nCookie: a=b; sid=${secret('cookie')}`;
    await gateway.call('f__stderr', { text: [headers, escaped, ...forms, 'that is all'].join('\n') });
    await gateway.call('f__rpc_error');
    const log = () => readFileSync(join(folder, 'logs', 'x.log'), 'utf8');
    await until('the log has what the server wrote', () => log().includes('that is all'));

    const runFolder = join(dataFolderIn(join(folder, 'data')), 'run');
    const runFiles = () => readdirSync(runFolder);
    await until('the run file is there', () => runFiles().length > 0);
    const run = runFiles().map((name) => readFileSync(join(runFolder, name), 'utf8'));
    const failed = await gateway.call('missing__anything');
    const all = await gateway.call('trunkline__status');
    const each = await Promise.all(
      ['f', 'telltale', 'missing'].map((server) => gateway?.call('trunkline__status', { server })),
    );
    const texts = { log: log(), stderr: gateway.stderr, run: run.join(), failed: failed.raw, status: all.raw };
    for (const [where, written] of Object.entries({ ...texts, each: each.map((one) => one?.raw).join() })) {
      expect(written, where).not.toContain(CANARY);
      for (const form of base64And(CANARY)) expect(written, where).not.toContain(form);
    }
    // It was there to be found.
    expect(texts.log).toContain('[redacted]');
    expect(each.map((one) => one?.raw).join()).toContain('bad key [redacted]');
    expect(each.map((one) => one?.raw).join()).toContain('at proxy [redacted]');
    expect(texts.status).toContain('Cannot start');
  });

  it('F55: in the configuration are in no message about its mistakes, nor in the report of `check` on a failed server', async () => {
    const place = new Workplace();
    try {
      const bad = {
        command: 'node',
        args: [secret('arg'), 7],
        env: { API_KEY: { [secret('key')]: secret('value') } },
        timeuot: 1,
      };
      place.write('broken.yaml', JSON.stringify({ servers: { bad } }));
      place.write('torn.yaml', `servers:\n  a:\n    env: { API_KEY: "${secret('torn')}\n`);
      place.configure({
        gone: { command: `no-such-program --token ${secret('line')}`, env: { API_KEY: secret('env') } },
      });
      const runs = await Promise.all([
        place.run(['check', '--config', 'broken.yaml']),
        place.run(['--config', 'broken.yaml', '-vv'], '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'),
        place.run(['check', '--config', 'torn.yaml']),
        place.run(['check', '-vv']),
        place.run(['call', 'gone__x', '-vv']),
      ]);
      for (const { stdout, stderr } of runs) expect(stdout + stderr).not.toContain(CANARY);
      expect(runs.map(({ code }) => code)).toEqual([2, 0, 2, 1, 8]);
    } finally {
      place.dispose();
    }
  });

  it('E1: a server gets only the listed variables of the environment, and those that its entry declares', async () => {
    const place = new Workplace();
    try {
      const file = join(place.folder, 'environment.json');
      const program = `require('node:fs').writeFileSync(${JSON.stringify(file)}, JSON.stringify(process.env))`;
      place.configure({ s: { command: 'node', args: ['-e', program], env: { DECLARED: 'yes' }, era: 'legacy' } });
      const before = { ...process.env };
      const network = { SSL_CERT_FILE: '/no/such/ca.pem', https_proxy: 'http://proxy.example', NO_PROXY: '*' };
      Object.assign(place.env, network, { npm_config_registry: 'http://registry.example' });
      Object.assign(process.env, { AWS_SECRET_ACCESS_KEY: secret('aws'), NODE_OPTIONS: '--no-warnings', LC_ALL: 'C' });
      try {
        await place.run(['check']);
      } finally {
        for (const name of ['AWS_SECRET_ACCESS_KEY', 'NODE_OPTIONS', 'LC_ALL']) delete process.env[name];
        Object.assign(process.env, before);
      }
      const seen = JSON.parse(readFileSync(file, 'utf8'));
      const allowed =
        /^(HOME|LOGNAME|PATH|SHELL|TERM|USER|LANG|TMPDIR|TZ|LC_\w+|NODE_EXTRA_CA_CERTS|NODE_USE_(SYSTEM_CA|ENV_PROXY)|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|(?:https?|all|no)_proxy|(?:HTTPS?|ALL|NO)_PROXY|DECLARED|TRUNKLINE_FAMILY_[0-9a-f]{32})$/;
      expect(Object.keys(seen).filter((name) => !allowed.test(name))).toEqual([]);
      expect(seen).toMatchObject({ DECLARED: 'yes', LC_ALL: 'C', HOME: place.folder, ...network });
    } finally {
      place.dispose();
    }
  });
});
