import { expect, it } from 'vitest';
import { describeLog } from '../../lab/conformance/gateway-log.mjs';

const START = Date.parse('2026-11-22T16:00:00.000Z');
const at = (ms: number, msg: string, more: object = {}) =>
  JSON.stringify({ time: new Date(START + ms).toISOString(), ...more, msg });

it('the log of a run tells when lists were made, and which servers were ready before the client left', () => {
  const log = [
    at(100, 'client connected', { name: 'some client' }),
    at(900, 'server ready', { server: 'a' }),
    at(1_200, '41 tools are listed. Some clients accept no more than 40.'),
    at(5_000, 'shutting down', { cause: 'SIGINT' }),
    at(5_050, 'server ready', { server: 'b' }),
  ].join('\n');
  expect(describeLog(log, { startedAt: START, expected: ['a', 'b'] })).toBe(
    'client connected after 0.1 s; lists of 41 tools after 1.2 s; 1 of 2 servers ready when it left after 5.0 s',
  );
});

it('the log of a run whose client left at once tells nothing of it', () => {
  expect(describeLog('', { startedAt: START, expected: [] })).toBe('nothing of a client: it left at once');
});
