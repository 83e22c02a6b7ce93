import { describe, expect, it } from 'vitest';
import type { ServerConfig } from '../../../src/config/resolve/config.js';
import type { CallRule } from '../../../src/config/rules/rule.js';
import { checkRules, type RuledTool } from '../../../src/setup/doctor/idle-rules.js';

const TOOLS: readonly RuledTool[] = [
  { server: 'a', original: 'read', params: ['path'] },
  { server: 'a', original: 'push', params: ['repo', 'force'] },
];

function ruled(...rules: readonly Omit<CallRule, 'at'>[]): CallRule[] {
  return rules.map((rule, index) => ({ ...rule, at: `servers.a.rules[${index}]` }));
}

function idle(rules: readonly CallRule[], ofView: readonly CallRule[] = [], listed = TOOLS) {
  const servers = [{ key: 'a', rules }] as unknown as readonly ServerConfig[];
  const gateway = { views: [{ name: 'v', rules: ofView }] } as unknown as Parameters<typeof checkRules>[0]['gateway'];
  return checkRules({ servers, gateway }, listed).map(({ code, sentence, evidence }) => {
    expect(code).toBe('TL-RULE-IDLE');
    return [sentence.split(' ')[2], ...evidence].join(': ');
  });
}

describe('the doctor', () => {
  it.each<[about: string, rules: readonly CallRule[], found: readonly string[]]>([
    ['rules that all match', ruled({ tools: ['read'], verdict: 'allow' }, { tools: ['*'], verdict: 'deny' }), []],
    [
      'a rule behind one about all tools',
      ruled({ tools: ['*'], verdict: 'deny' }, { tools: ['read'], args: { path: ['/a'] }, verdict: 'allow' }),
      ['servers.a.rules[1]: servers.a.rules[0] decides first about all that it matches'],
    ],
    [
      'a rule behind one with other arguments',
      ruled({ tools: ['*'], args: { path: ['/b'] }, verdict: 'deny' }, { tools: ['read'], verdict: 'allow' }),
      [],
    ],
    [
      'a name that no tool has',
      ruled({ tools: ['raed'], verdict: 'deny' }),
      ['servers.a.rules[0]: no listed tool has a name that it matches'],
    ],
    [
      'an argument that no tool has',
      ruled({ tools: ['*'], args: { 'paths[].x': ['/etc/**'] }, verdict: 'deny' }),
      ['servers.a.rules[0]: no tool that it matches has the argument paths[].x'],
    ],
    ['a missing argument that is listed', ruled({ tools: ['read'], args: { mode: [null] }, verdict: 'deny' }), []],
    ['a rule about resources', ruled({ uris: ['file:///x'], verdict: 'deny' }), []],
  ])('reports that they can never match: %s', (_, rules, found) => {
    expect(idle(rules)).toEqual(found);
  });

  it('knows the tools of a view by KEY__TOOL, and says nothing of names before a server has listed its tools', () => {
    const ofView = [
      { tools: ['a__read'], verdict: 'deny' as const, at: 'views.v.rules[0]' },
      { tools: ['read'], verdict: 'deny' as const, at: 'views.v.rules[1]' },
    ];
    expect(idle([], ofView)).toEqual(['views.v.rules[1]: no listed tool has a name that it matches']);
    expect(idle([], ofView, [])).toEqual([]);
  });
});
