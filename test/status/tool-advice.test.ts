import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { adviseOnTools } from '../../src/status/tool-advice.js';
import type { ToolRow } from '../../src/status/tool-report.js';

function row(name: string, more: Partial<ToolRow> = {}): ToolRow {
  const [server = '', original = ''] = name.split('__');
  const texts = { title: '', sentence: `${name}.`, descriptionBytes: 10, changes: [] };
  return { server, name, original, ...texts, tokens: 100, because: '', state: 'shown', ...more };
}

/** A log that is old enough, with calls of these tools. */
function calls(...names: string[]) {
  return { isLongEnough: true, wasCalled: ({ name }: { readonly name: string }) => names.includes(name) };
}

describe('the advice on tools', () => {
  it('hides the tools of a server that were not called, the most expensive server first', () => {
    const rows = [row('a__x'), row('a__w'), row('b__z', { tokens: 300 }), row('b__on')];
    expect(adviseOnTools(rows, calls('a__x'))).toEqual([
      {
        kind: 'unused',
        text: 'In 30 days, no tool of b was called: about 400 tokens.',
        server: 'b',
        yaml: 'disabled: true',
      },
      {
        ...{ kind: 'unused', text: 'In 30 days, 1 tool of a was not called: about 100 tokens.', server: 'a' },
        yaml: 'tools: { deny: [w] }',
      },
    ]);
  });

  it('says nothing about calls without a log, or with one that is too short', () => {
    expect(adviseOnTools([row('a__x')], undefined)).toEqual([]);
    expect(adviseOnTools([row('a__x')], { ...calls(), isLongEnough: false })).toEqual([]);
  });

  it('hides the second of two tools that say the same, and renames one that only has the same name', () => {
    const rows = [
      row('a__read_file'),
      row('b__readFile'),
      row('a__fetch', { sentence: 'x' }),
      row('c__fetch', { sentence: 'x' }),
    ];
    expect(adviseOnTools(rows, undefined)).toMatchObject([
      {
        text: 'a and c both have fetch, and say that they do the same.',
        server: 'c',
        yaml: 'tools: { deny: [fetch] }',
      },
      {
        text: 'a and b both have readFile.',
        ...{ server: 'b', yaml: 'tools: { rename: { readFile: readFile_b } }' },
      },
    ]);
  });

  it('shortens the five longest descriptions to their first sentences', () => {
    const long = [1_000, 999, 4_000, 3_000, 2_000, 1_500, 1_200].map((descriptionBytes, at) =>
      row(`a__t${at}`, { descriptionBytes }),
    );
    const advice = adviseOnTools(long, undefined);
    expect(advice.map(({ yaml }) => yaml)).toEqual(
      [2, 3, 4, 5, 6].map((at) => `tools: { describe: { t${at}: "a__t${at}." } }`),
    );
    expect(advice[0]?.text).toBe('The description of a__t2 has 4000 bytes.');
  });

  it('is about shown tools of servers only', () => {
    const rows = [row('trunkline__status', { descriptionBytes: 5_000 }), row('a__x', { state: 'denied' }), row('b__x')];
    expect(adviseOnTools(rows, calls('b__x'))).toEqual([]);
  });

  it('is valid YAML, whatever a tool is called and says', () => {
    const original = 'on: {"x"}';
    const rows = [row('a__', { original, descriptionBytes: 2_000, sentence: 'Says: "yes" # no' })];
    const [unused, long] = adviseOnTools([...rows, row('a__used')], calls('a__used')).map(({ yaml }) => parse(yaml));
    expect(unused).toEqual({ tools: { deny: [original] } });
    expect(long).toEqual({ tools: { describe: { [original]: 'Says: "yes" # no' } } });
  });
});
