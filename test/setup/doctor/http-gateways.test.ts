import { describe, expect, it } from 'vitest';
import { checkHttpGateways } from '../../../src/setup/doctor/running-gateways.js';
import type { FoundGateway } from '../../../src/state/gateway-file.js';

const DAY_MS = 24 * 60 * 60 * 1_000;
const NOW = Date.parse('2026-11-23T12:00:00Z');
const FILE = '/c/trunkline.yaml';

function check(httpGateways: readonly Partial<FoundGateway>[], hub?: number) {
  const whole = httpGateways.map((found) => ({
    pid: 7,
    ...({ kind: 'http', folder: '/g/7-0' } as const),
    url: 'http://localhost:1',
    configFile: FILE,
    since: NOW - DAY_MS,
    isDraining: false,
    refused: [],
    ...found,
  }));
  return checkHttpGateways({ httpGateways: whole, configFile: FILE, hub, now: NOW });
}

describe('Trunkline over HTTP', () => {
  it('tells how many requests it refused for their names in the last day, and which option would allow them', () => {
    const host = { header: 'Host', count: 3, last: 'gateway.example:7411', at: NOW - 1_000 } as const;
    const origin = { header: 'Origin', count: 1, last: 'http://app.example', at: NOW - DAY_MS } as const;
    expect(check([{ refused: [host, origin] }])).toMatchObject([
      {
        level: 'warn',
        code: 'TL-HTTP-HOST-REFUSED',
        sentence: 'Trunkline 7 at http://localhost:1 refused 3 requests for the Host header',
        evidence: ['last: gateway.example:7411, at 2026-11-23T11:59:59.000Z'],
        remedy: expect.stringContaining('`--allowed-host NAME`'),
      },
      {
        code: 'TL-HTTP-ORIGIN-REFUSED',
        sentence: expect.stringMatching(/refused one request for the Origin header$/),
        remedy: expect.stringContaining('`--allowed-origin ORIGIN`'),
      },
    ]);
    expect(check([{ refused: [{ ...origin, at: NOW - DAY_MS - 1 }] }])).toEqual([]);
  });

  it('is one too many if another one, or the hub, runs the servers of the same configuration', () => {
    expect(check([{}])).toEqual([]);
    expect(check([{}, { configFile: '/other.yaml' }])).toEqual([]);
    expect(check([], 5)).toEqual([]);
    expect(check([{}, { pid: 8, url: 'http://localhost:2' }])).toMatchObject([
      {
        code: 'TL-RUN-TWICE',
        sentence:
          'Trunkline 7 at http://localhost:1 and Trunkline 8 at http://localhost:2 run the servers of the same configuration',
        evidence: [FILE],
      },
    ]);
    expect(check([{}], 5)).toMatchObject([{ code: 'TL-RUN-TWICE', sentence: expect.stringMatching(/^the hub 5 and/) }]);
  });
});
