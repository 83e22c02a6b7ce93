import { describe, expect, it } from 'vitest';
import { checkFile } from '../../../src/config/file/check-file.js';
import { ConfigError } from '../../../src/config/file/config-error.js';
import { resolveConfig } from '../../../src/config/resolve/resolve-config.js';

const HEAD = 'servers:\n  a:\n    command: node\n    rules:\n';

function reportOf(rules: string): string {
  try {
    checkFile(`${HEAD}${rules}`, 'f.yaml');
  } catch (error) {
    if (error instanceof ConfigError) return error.report;
    throw error;
  }
  return '';
}

describe('a rule with a mistake', () => {
  it.each([
    [
      '      - { tools: [x] }',
      'f.yaml:5:9: servers.a.rules[0]: found no `then`; add `then: allow`, `then: ask` or `then: deny`',
    ],
    [
      '      - { tools: [x], then: never }',
      'f.yaml:5:29: servers.a.rules[0].then: found the string "never"; expected allow, ask or deny',
    ],
    ['      - { then: deny }', 'f.yaml:5:9: servers.a.rules[0]: found nothing that the rule is about'],
    [
      '      - { tools: [x], uris: [y], then: deny }',
      'f.yaml:5:23: servers.a.rules[0].uris: found both `tools` and `uris`',
    ],
    [
      '      - { uris: [y], args: { a: [b] }, then: deny }',
      'f.yaml:5:22: servers.a.rules[0].args: found `args` with `uris`',
    ],
    [
      '      - { tools: [], then: deny }',
      'f.yaml:5:18: servers.a.rules[0].tools: found a list; expected a list with at least one name',
    ],
    [
      '      - { tools: [x], args: { a: b }, then: deny }',
      'f.yaml:5:34: servers.a.rules[0].args.a: found a string; expected a list of values',
    ],
    [
      '      - { tools: [x], args: { a: [] }, then: deny }',
      'f.yaml:5:34: servers.a.rules[0].args.a: found a list; expected a list with at least one value',
    ],
    [
      '      - { tools: [x], args: { a..b: [c] }, then: deny }',
      'f.yaml:5:31: servers.a.rules[0].args.a..b: this is not the path of an argument',
    ],
    [
      '      - { tools: [x], args: { a: [[c]] }, then: deny }',
      'servers.a.rules[0].args.a[0]: found a list; expected a text in which',
    ],
    ['      - { tool: [x], then: deny }', 'servers.a.rules[0]: unknown key `tool`\n  did you mean `tools`?'],
    ['      tools: [x]', 'f.yaml:5:7: servers.a.rules: found a map; expected a list of rules'],
  ])('closes the file, and is named with line and column: %s', (rules, report) => {
    expect(reportOf(rules)).toContain(report);
  });

  it('that has a variable without a value closes its server alone, and is named where it stands', () => {
    const text = `servers:
  a: { command: node, rules: [{ tools: [x], then: allow }] }
  b: { command: node }
defaults:
  rules:
    - { tools: [x], args: { path: ["\${HOME}/x", "\${UNSET_ONE}"] }, then: deny }
`;
    const env = { HOME: '/home/me' };
    const { servers } = resolveConfig('/f.yaml', checkFile(text, '/f.yaml'), { env, nodePath: 'node', ownFolder: '/' });
    expect(servers.map(({ spec }) => spec)).toEqual([undefined, undefined]);
    expect(servers[0]?.problem).toMatchObject({
      message: 'defaults.rules[0].args.path[1]: the environment variable UNSET_ONE is not set',
      line: 6,
      column: 49,
    });
  });
});

describe('the rules of a server', () => {
  it('come before those of `defaults`, with the values of variables', () => {
    const text = `${HEAD}      - { tools: [x], args: { path: ["\${HOME}/x", 7, null] }, then: deny }
defaults:
  rules: [{ tools: ["*"], then: allow, say: s }]
views:
  v: { rules: [{ prompts: [p], then: deny }] }
`;
    const env = { HOME: '/home/me' };
    const options = { env, nodePath: 'node', ownFolder: '/' };
    const { servers, gateway } = resolveConfig('/f.yaml', checkFile(text, '/f.yaml'), options);
    expect(servers[0]?.rules).toEqual([
      { tools: ['x'], args: { path: ['/home/me/x', 7, null] }, verdict: 'deny', at: 'servers.a.rules[0]' },
      { tools: ['*'], verdict: 'allow', say: 's', at: 'defaults.rules[0]' },
    ]);
    expect(gateway.views[0]?.rules).toEqual([{ prompts: ['p'], verdict: 'deny', at: 'views.v.rules[0]' }]);
  });
});
