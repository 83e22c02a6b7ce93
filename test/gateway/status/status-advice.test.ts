import { describe, expect, it } from 'vitest';
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

  it('does not name a network error in the log of a server that runs or starts for the first time', async () => {
    const logLines = ['connect ECONNREFUSED 127.0.0.1:5432'];
    for (const state of ['ready', 'starting', 'idle'] as const) {
      const { one } = await given({ lifecycle: { state }, logLines });
      expect(one()?.advice).not.toContain('ECONNREFUSED');
    }
  });

  it.each([
    ['parked', { consecutiveFailures: 5 }, 'It is parked, because it failed 5 times in a row: its tool is not listed.'],
    [
      'parked',
      { missing: 'p@1' },
      'Its package could not be installed, so it does not run and its tools are not listed.',
    ],
    ['backoff', {}, 'It failed. Its tool stays listed, and calls wait until it is ready.'],
    [
      'starting',
      { consecutiveFailures: 1 },
      'It failed and is being started again. Its tool stays listed, and calls wait until it is ready.',
    ],
    ['suspect', {}, 'It has stopped answering, so new calls wait.'],
    ['installing', {}, ''],
    ['starting', {}, ''],
    ['idle', {}, ''],
    ['stopping', {}, ''],
    ['stopped', {}, ''],
    ['ready', {}, ''],
  ] as const)('for a server that is %s (%j) comes after the problem "%s"', async (state, lifecycle, problem) => {
    const { one } = await given({ lifecycle: { state, ...RETRY, ...lifecycle } });
    expect(one()?.problem).toBe(problem);
  });

  it.each([
    ['parked', {}, /^Fix the cause, then restart the client.* tries again in 3 s, and when one of its tools is called/],
    ['parked', { missing: 'p@1' }, /^Fix the cause.* `trunkline install`.* tries again in 3 s\.$/],
    ['parked', { retryAt: 100_000 + 240_000 }, /tries again in 4 min,/],
    ['parked', { retryAt: undefined }, /tries again soon,/],
    ['backoff', {}, /^Trunkline restarts it automatically, in 3 s\. If it keeps failing, its log lines show why\.$/],
    ['starting', { consecutiveFailures: 0 }, /still starting/],
    ['starting', { consecutiveFailures: 1 }, /^If it keeps failing, its log lines show why\.$/],
    ['installing', {}, /may take a minute or more/],
    ['idle', {}, /A call of one of its tools starts it/],
    ['stopping', {}, /^$/],
    ['stopped', {}, /^$/],
    ['ready', {}, /^$/],
  ] as const)('for a server that is %s (%j) is %s', async (state, lifecycle, advice) => {
    const { one } = await given({ lifecycle: { state, ...RETRY, ...lifecycle } });
    expect(one()?.advice).toMatch(advice);
  });

  it('names the tool that restarts, where there is one', async () => {
    const { one } = await given({ lifecycle: { state: 'parked' }, facts: { canRestart: true } });
    expect(one()?.advice).toContain('call trunkline__restart with server "a"');
  });

  it.each([
    ['of a hub', { kind: 'hub', pid: 1, since: 0, clients: 2 }, 'run `trunkline restart a --config c.yaml`'],
    ['over HTTP', { kind: 'http' }, 'then restart Trunkline.'],
    ['that runs alone', { kind: 'alone', because: 'of a reason' }, 'restart the client, which restarts Trunkline'],
  ] as const)('names what restarts a server %s', async (_, service, advice) => {
    const restartCommand = (server: string) => `trunkline restart ${server} --config c.yaml`;
    const { one } = await given({ lifecycle: { state: 'parked' }, facts: { service, restartCommand } });
    expect(one()?.advice).toContain(advice);
  });

  it('counts the tools that a failure took away', async () => {
    const { one } = await given({ lifecycle: { state: 'parked' }, script: { tools: ['read', 'write'] } });
    expect(one()?.problem).toContain('its 2 tools are not listed');
  });

  it.each([
    ['parked', {}, 'TL-SERVER-PARKED'],
    ['parked', { missing: 'p@1' }, 'TL-SERVER-NOT-INSTALLED'],
    ['backoff', {}, 'TL-SERVER-RESTARTING'],
    ['backoff', { lastFailure: { reason: 'EMFILE', at: 0, isHostFault: true } }, 'TL-SERVER-RESOURCES'],
    ['starting', { consecutiveFailures: 1 }, 'TL-SERVER-RESTARTING'],
    ['suspect', {}, 'TL-SERVER-UNRESPONSIVE'],
    ['starting', {}, null],
    ['ready', {}, null],
  ] as const)('comes with a stable code for a server that is %s (%j): %s', async (state, lifecycle, code) => {
    const { one } = await given({ lifecycle: { state, ...RETRY, ...lifecycle } });
    expect(one()?.code).toBe(code);
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
});
