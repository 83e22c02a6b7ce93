import { expect, it } from 'vitest';
import { describeUnwanted } from '../../../../src/cli/commands/clients/init.js';
import { planImport } from '../../../../src/setup/clients/import/plan.js';
import { command, DESKTOP, found, NOWHERE } from '../../../setup/clients/import/found.js';

const CURSOR = { ...DESKTOP, client: 'cursor', title: 'Cursor' };
const OFF = { isDisabled: true };
const [a, b] = [command('uvx a'), command('uvx b')];

const SAME = 'runs the same as a (Claude Desktop), so Trunkline has one server for both, a.';

it.each([
  ['equals one of another name', [found('a', a), found('c', a)], [`c (Claude Desktop): ${SAME}`]],
  [
    'equals another one and is disabled',
    [found('a', a), found('a', a, { ...OFF, place: CURSOR })],
    [`a (Cursor, disabled): ${SAME}`],
  ],
  ['is that of another client', [found('a', a), found('a', a, { place: CURSOR })], []],
  [
    'is disabled',
    [found('a', a), found('b', b, OFF)],
    [
      'b (Claude Desktop): disabled there, so it was not started, and is disabled in Trunkline. To use it: `trunkline enable b`.',
    ],
  ],
])('the summary of `trunkline init` on an entry that %s', (_, servers, lines) => {
  const plan = planImport({
    ...{ found: servers, present: {}, env: {}, takesRemote: true, names: [], isOurselves: () => false },
    secrets: { envFile: undefined, values: {}, put: (name) => name },
    ...{ system: { platform: 'linux', home: '/home/ada' }, readEnvFile: () => undefined, places: NOWHERE },
  });
  expect(describeUnwanted(plan)).toEqual(lines.map((line) => `\n${line}`));
});
