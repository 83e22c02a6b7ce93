import { describe, expect, it } from 'vitest';
import { reportStatus } from '../../src/status/status.js';
import { findNetworkTrouble } from '../../src/status/status-advice.js';
import { renderStatus } from '../../src/status/status-text.js';
import { scriptGateway } from '../support/scripted-gateway.js';
import { given } from './reporting.js';

const RETRY = { retryAt: 102_500 };

describe('the advice', () => {
  it.each([
    ['parked', {}],
    ['backoff', {}],
    ['starting', { consecutiveFailures: 1 }],
  ] as const)('for a server that is %s names the certificate error in its log', async (state, lifecycle) => {
    const logLines = ['npm error code SELF_SIGNED_CERT_IN_CHAIN'];
    const { one } = await given({ lifecycle: { state, ...lifecycle }, logLines });
    expect(one()?.advice).toMatch(/ Its log shows a certificate error \(SELF_SIGNED_CERT_IN_CHAIN\): .*`defaults.env`/);
  });

  it.each([
    ['certificate', 'npm error code SELF_SIGNED_CERT_IN_CHAIN', 'SELF_SIGNED_CERT_IN_CHAIN', 'NODE_EXTRA_CA_CERTS'],
    ['certificate', 'SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED]', 'CERTIFICATE_VERIFY_FAILED', ''],
    ['certificate', 'x509: certificate signed by unknown authority', 'certificate signed by unknown authority', ''],
    ['certificate', 'error: invalid peer certificate: UnknownIssuer', 'UnknownIssuer', ''],
    ['certificate', 'fetch failed: ECONNRESET\nself-signed certificate', 'self-signed certificate', ''],
    ['network', 'HTTP/1.1 407 Proxy Authentication Required', '407 Proxy Authentication Required', 'HTTPS_PROXY'],
    ['network', 'curl: (6) Could not resolve host: registry.example', 'Could not resolve host', ''],
  ])('finds a %s error in a log: %s', (kind, line, sign, variable) => {
    expect(findNetworkTrouble(['starting', ...line.split('\n')])).toEqual({
      problem: `a ${kind} error (${sign})`,
      cure: expect.stringContaining(variable),
    });
  });

  it.each([[], ['API_KEY is not set'], ['code ENOTFOUND', ...Array(20).fill('fine')]])(
    'finds no such error in other lines, nor in lines of long ago: %s',
    (...lines) => {
      expect(findNetworkTrouble(lines)).toBeUndefined();
    },
  );

  it.each([
    ["Error: EROFS: read-only file system, open '/var/x/db.sqlite'", 'sandbox: { write: [/var/x] }'],
    ["OSError: [Errno 30] Read-only file system: '/var/x/log'", 'sandbox: { write: [/var/x] }'],
    ["Error: ENOENT: no such file or directory, open '/home/ann/key'", 'trunkline sandbox a'],
    ['getaddrinfo ENOTFOUND api.example.com', 'trunkline sandbox a --try'],
  ])('for a confined server names what may be closed: %s', async (line, advised) => {
    const lifecycle = { state: 'parked', consecutiveFailures: 5 } as const;
    const confined = await given({ lifecycle, logLines: [line], cause: [line], sandboxRemarks: [] });
    expect(confined.one()?.advice).toContain(advised);
    const unconfined = await given({ lifecycle, logLines: [line], cause: [line] });
    expect(unconfined.one()?.advice).not.toContain('sandbox');
  });

  it('for a server from which macOS keeps a folder names whose access it has', async () => {
    const cause = ["Error: EPERM: operation not permitted, scandir '/Users/ann/Documents'"];
    const lifecycle = { state: 'parked', consecutiveFailures: 5 } as const;
    const adviceWith = async (facts: object) => (await given({ lifecycle, cause, facts })).one()?.advice;
    const service = { kind: 'hub', pid: 1, since: 0, clients: 1 };
    expect(await adviceWith({ platform: 'darwin' })).toContain('System Settings');
    expect(await adviceWith({ platform: 'darwin', service })).toContain('`trunkline hub restart` in a terminal');
    expect(await adviceWith({ platform: 'linux' })).not.toContain('macOS');
  });

  it.each([
    [
      'its package could not be installed',
      '@a/b could not be installed: E404: the registry has no package',
      'EACCES: x',
    ],
    ['its registry could not be reached', 'b could not be installed: no network', 'getaddrinfo ENOTFOUND npm.example'],
    ['its command was not found', 'Cannot start "x": the command was not found (ENOENT)', 'ENOENT: no such file'],
  ])('for a confined server does not name the sandbox if %s', async (_, reason, line) => {
    const lifecycle = {
      state: 'parked',
      consecutiveFailures: 5,
      lastFailure: { code: null, signal: null, reason, at: 90_000 },
    } as const;
    const { one } = await given({ lifecycle, logLines: [line], cause: [line], sandboxRemarks: [] });
    expect(one()?.advice).not.toContain('onfined');
  });

  it('for a server that cannot be confined names the reason, in place of the failures', async () => {
    const failure = 'it must be confined, and bubblewrap is not installed; install it (TL-SANDBOX-MISSING)';
    const lifecycle = {
      state: 'parked',
      consecutiveFailures: 5,
      lastFailure: { code: null, signal: null, reason: failure, at: 90_000 },
    } as const;
    const { one } = await given({ lifecycle, sandboxRemarks: [] });
    expect(one()).toMatchObject({ code: 'TL-SANDBOX-MISSING', problem: expect.stringContaining('install it') });
    expect(one()?.advice).toContain('never starts the server unconfined');
  });

  it('does not name a network error in the log of a server that runs or starts for the first time', async () => {
    const logLines = ['connect ECONNREFUSED 127.0.0.1:5432'];
    for (const state of ['ready', 'starting', 'idle'] as const) {
      const { one } = await given({ lifecycle: { state }, logLines });
      expect(one()?.advice).not.toContain('ECONNREFUSED');
    }
  });

  it.each([
    [
      ...(['parked', { consecutiveFailures: 5 }, 'TL-SERVER-PARKED'] as const),
      'It is parked, because it failed 5 times in a row: its tool is not listed.',
      /^Fix the cause, then restart the client.* tries again in 3 s, and when one of its tools is called/,
    ],
    [
      ...(['parked', { missing: 'p@1' }, 'TL-SERVER-NOT-INSTALLED'] as const),
      'Its package could not be installed, so it does not run and its tools are not listed.',
      /^Fix the cause.* `trunkline install`.* tries again in 3 s\.$/,
    ],
    ['parked', { retryAt: 100_000 + 240_000 }, 'TL-SERVER-PARKED', /^It is parked/, /tries again in 4 min,/],
    ['parked', { retryAt: undefined }, 'TL-SERVER-PARKED', /^It is parked/, /tries again soon,/],
    [
      ...(['backoff', {}, 'TL-SERVER-RESTARTING'] as const),
      'It failed. Its tool stays listed, and calls wait until it is ready.',
      /^Trunkline restarts it automatically, in 3 s\. If it keeps failing, its log lines show why\.$/,
    ],
    [
      ...([
        'backoff',
        { lastFailure: { code: null, signal: null, reason: 'EMFILE', at: 0, fault: 'host' } },
        'TL-SERVER-RESOURCES',
      ] as const),
      /This machine lacks a resource that a new process needs, so the server is not at fault\.$/,
      /^Close other programs/,
    ],
    [
      ...(['starting', { consecutiveFailures: 1 }, 'TL-SERVER-RESTARTING'] as const),
      'It failed and is being started again. Its tool stays listed, and calls wait until it is ready.',
      /^If it keeps failing, its log lines show why\.$/,
    ],
    ['suspect', {}, 'TL-SERVER-UNRESPONSIVE', 'It has stopped answering, so new calls wait.', /probes it/],
    ['starting', {}, null, '', /still starting/],
    ['installing', {}, null, '', /may take a minute or more/],
    ['idle', {}, null, '', /A call of one of its tools starts it/],
    ['stopping', {}, null, '', /^$/],
    ['stopped', {}, null, '', /^$/],
    ['ready', {}, null, '', /^$/],
  ] as const)('for a server that is %s (%j) comes with %s: %s', async (state, lifecycle, code, problem, advice) => {
    const { one } = await given({ lifecycle: { state, ...RETRY, ...lifecycle } });
    expect(one()?.code).toBe(code);
    expect(one()?.problem).toEqual(typeof problem === 'string' ? problem : expect.stringMatching(problem));
    expect(one()?.advice).toMatch(advice);
  });

  it('names the tool that restarts, where there is one', async () => {
    const { one } = await given({ lifecycle: { state: 'parked' }, facts: { canRestart: true } });
    expect(one()?.advice).toContain('call trunkline__restart with server "a"');
  });

  it.each([
    ['of a hub', { kind: 'hub', pid: 1, since: 0, clients: 2 }, 'run `trunkline restart a --config c.yaml`'],
    [
      'over HTTP',
      { kind: 'http', refusedNames: [] },
      'then run `trunkline restart a --config c.yaml` where the gateway runs.',
    ],
    ['that runs alone', { kind: 'alone', because: 'of a reason' }, 'restart the client, which restarts Trunkline'],
  ] as const)('names what restarts a server %s', async (_, service, advice) => {
    const restartCommand = (server: string) => `trunkline restart ${server} --config c.yaml`;
    const { one } = await given({ lifecycle: { state: 'parked' }, facts: { service, restartCommand } });
    expect(one()?.advice).toContain(advice);
  });

  it('names no file of the machine to a user over HTTP', async () => {
    const service = { kind: 'http', refusedNames: [] } as const;
    const { one } = await given({ lifecycle: { state: 'parked' }, facts: { service } });
    expect(one()?.advice).toContain('then run `trunkline restart a` where the gateway runs.');
  });

  it.each([
    ['backoff', {}, /^It failed/, /^Trunkline connects again, in 3 s\./],
    ['starting', { consecutiveFailures: 1 }, /^It failed and is being connected again\./, /its log lines show why/],
    ['suspect', {}, /stopped answering/, /^Trunkline probes it, and connects again if/],
    ['idle', {}, /^$/, /^It is not connected, .* connects it\.$/],
    [
      'offline',
      {},
      /^It cannot be reached, .* stays listed\.$/,
      /every two seconds\. Check the network, `url` and `proxy`\.$/,
    ],
    [
      'offline',
      { lastFailure: { code: null, signal: null, reason: 'self-signed certificate', at: 0, fault: 'network' } },
      /^It cannot be reached/,
      /set its `caFile`/,
    ],
    [
      'offline',
      { lastFailure: { code: null, signal: null, reason: 'it answered HTTP 500', at: 0, fault: 'trouble' } },
      /^It can be reached, but it is overloaded or out of order, .* stays listed\.$/,
      /^Trunkline tries again in 3 s\. Nothing is to be done here/,
    ],
    ['blocked', {}, /^It needs a login or other credentials/, /^Log in with `trunkline login .*`\. .* then restart/],
  ] as const)(
    'speaks of a connection for a server behind a URL that is %s %j',
    async (state, lifecycle, problem, advice) => {
      const logLines = ['connect ECONNREFUSED 127.0.0.1:5432'];
      const { one } = await given({
        lifecycle: { pid: undefined, state, ...RETRY, ...lifecycle },
        isRemote: true,
        logLines,
      });
      expect(one()?.problem).toMatch(problem);
      expect(one()?.advice).toMatch(advice);
      expect(`${one()?.problem} ${one()?.advice}`).not.toMatch(/process|defaults\.env/);
    },
  );

  it('counts the tools that a failure took away', async () => {
    const { one } = await given({ lifecycle: { state: 'parked' }, script: { tools: ['read', 'write'] } });
    expect(one()?.problem).toContain('its 2 tools are not listed');
  });

  it('is how to correct the configuration, if that is wrong', async () => {
    const problem = { message: 'the variable KEY is not set', hint: 'set KEY, or give it a default' };
    const { one } = await given({ problem, isStarted: false });
    expect(one()).toMatchObject({
      state: 'misconfigured',
      code: 'TL-SERVER-MISCONFIGURED',
      problem: 'Its configuration is wrong: the variable KEY is not set. It cannot run, so its tools are not listed.',
      advice: 'To fix it, set KEY, or give it a default.',
    });
  });

  describe('about variables of users', () => {
    const lacking = (name: string) => ({
      message: `${name} has no KEY`,
      hint: `run set ${name}`,
      isOfUser: 'one' as const,
    });
    const ofNobody = { ...lacking('nobody'), isOfUser: 'any' as const };

    it('is no problem of a server that has no instance of a user', async () => {
      const { make } = await given({ problem: ofNobody, isStarted: false });
      const servers = make().servers.map((server, at) => ({ ...server, isPerUser: at === 0 }));
      const report = reportStatus({ ...make(), servers });
      expect(report.servers[0]).toMatchObject({ state: 'per user', code: null, problem: '' });
      expect(report.servers[0]?.advice).toContain('Run set nobody.');
      expect(renderStatus(report)).toMatch(/1 for users only\..*For users over HTTP only.*: a$/ms);
    });

    it('is the command for the user who asks', async () => {
      const { one } = await given({ problem: lacking('dan'), isStarted: false });
      expect(one()).toMatchObject({
        state: 'misconfigured',
        code: 'TL-VAR-USER',
        problem: 'It cannot run: dan has no KEY, so its tools are not listed.',
        advice: 'Run set dan.',
      });
    });

    it.each([
      ['ready', {}],
      ['per user', { isPerUser: true, problem: ofNobody }],
    ])('names each user who lacks one once, and three at most, beside a server that is %s', async (state, own) => {
      const { make } = await given();
      const backend = scriptGateway({ servers: { a: {} } }).server('a').backend;
      const instances = [...['ann', 'bob', 'ann', 'cat', 'dan'].map(lacking), ofNobody].map((problem) => ({
        ...{ backend, problem, lifecycle: undefined, isUnclaimed: false, isPerUser: problem === ofNobody },
      }));
      const servers = make().servers.map((server) => ({ ...server, ...own, instances }));
      const [report] = reportStatus({ ...make(), servers }).servers;
      expect(report).toMatchObject({
        state,
        code: 'TL-VAR-USER',
        problem: 'It cannot run for some users: ann has no KEY; bob has no KEY; cat has no KEY; and for 1 more.',
        advice: 'Run set ann. Run set bob. Run set cat.',
      });
      expect(report?.instances.map(({ state }) => state)).toEqual([...Array(5).fill('misconfigured'), 'per user']);
    });
  });
});
