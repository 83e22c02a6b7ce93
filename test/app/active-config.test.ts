import { describe, expect, it } from 'vitest';
import { ActiveConfig } from '../../src/app/active-config.js';
import type { Config } from '../../src/config/resolve/config.js';
import { FakeClock } from '../support/fake-clock.js';

function configOf(gateway: object): Config {
  return {
    servers: [],
    gateway: { http: { maxSessions: 1 }, views: [], clientViews: [], ...gateway },
  } as unknown as Config;
}

describe('the active configuration', () => {
  it.each([
    ['a limit of HTTP', { http: { maxSessions: 2 } }, true, ['gateway.http']],
    ['a limit of HTTP that is not served', { http: { maxSessions: 2 } }, false, []],
    ['a cluster', { cluster: { fault: '' } }, true, ['gateway.cluster']],
    ['a cluster without HTTP', { cluster: { fault: '' } }, false, []],
    ['the key of several gateways', { sealKeyFile: '/other' }, false, ['gateway.sealKeyFile']],
    ['the folder of the key', { secretFolder: '/other' }, false, ['gateway.secretFolder']],
    ['nothing that waits', { watch: false }, true, []],
  ])('says what takes effect with a restart: %s', (_, changed, servesHttp, expected) => {
    const clock = new FakeClock();
    const unused = { approvals: { of: expect.fail }, logger: { warn: expect.fail } };
    const active = new ActiveConfig({ ...unused, clock, config: configOf({}), fault: undefined, servesHttp });
    expect(active.needsRestart).toEqual([]);
    active.accept(configOf(changed), true);
    expect(active.needsRestart).toEqual(expected);
  });
});
