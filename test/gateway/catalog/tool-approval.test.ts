import { describe, expect, it } from 'vitest';
import { editPage } from '../../../src/gateway/catalog/exposed-list.js';
import type { ApprovalVerdict } from '../../../src/spec/tool-approvals.js';
import { splice } from '../../../src/wire/json/splice.js';
import { exposing } from '../../support/exposing.js';
import { toolOf } from '../../support/scripted-gateway.js';
import { responseOf } from '../../support/wire.js';

const FACTS = { tools: 0, isFirstUse: false, fault: undefined, advice: '' };

function expose(tools: readonly string[], verdicts: Readonly<Record<string, ApprovalVerdict>>, deny: string[] = []) {
  const judged: string[] = [];
  const approvals = {
    judge: (definitions: ReadonlyMap<string, string>) => {
      judged.push(...definitions.values());
      return new Map(Object.entries(verdicts));
    },
    facts: FACTS,
  };
  return { judged, list: exposing(tools, { deny, approvals }) };
}

describe('a list of tools that have to be approved', () => {
  it('withholds those that are not, whatever else they say of themselves, and keeps their names taken', () => {
    const hints = { annotations: { readOnlyHint: true }, execution: { taskSupport: 'required' } };
    const tools = [toolOf('old'), toolOf('x', hints), toolOf('y', hints)];
    const { list } = expose(tools, { old: 'approved', x: 'changed', y: 'new' });
    expect(list.entries.map(({ exposed, entry }) => [exposed, entry !== undefined])).toEqual([
      ['k__old', true],
      ['k__x', false],
      ['k__y', false],
    ]);
    expect(list.withheld).toEqual([
      { name: 'x', reason: 'changed since it was approved' },
      { name: 'y', reason: 'new, not approved yet' },
    ]);
    expect([list.repeatable.size, list.taskOnly.size]).toEqual([0, 0]);
  });

  it('judges what the configuration lets through, of a name that comes twice the first, and unsound ones too', () => {
    const unsound = '{"name":"unsound","inputSchema":1}';
    const tools = [toolOf('x', { title: '1' }), toolOf('x', { title: '2' }), toolOf('denied'), unsound, '5', '{}'];
    const { judged, list } = expose(tools, { x: 'approved', unsound: 'approved' }, ['denied']);
    expect(judged).toEqual([
      '{"inputSchema":{"type":"object"},"name":"x","title":"1"}',
      '{"inputSchema":1,"name":"unsound"}',
    ]);
    expect(list.withheld.map(({ name }) => name)).toEqual(['x', 'unsound', '#5', '#6']);
    expect(list.denied).toEqual(['denied']);
  });
});

describe('a page of tools for a client of one server', () => {
  it('loses the tools whose present definition is not approved, and those without a name', () => {
    const page = '{"tools":[{"name":"a" }, {"name":"b"},{"name":"unlisted"},{"x":1}],"nextCursor":""}';
    const response = responseOf(`{"jsonrpc":"2.0","id":1,"result":${page}}`);
    const approvals = { judge: () => new Map([['a', 'approved'] as const, ['b', 'changed'] as const]), facts: FACTS };
    const edits = editPage('tools', response, { policy: () => true, approvals }, {});
    const text = Buffer.from(splice({ bytes: response.bytes, span: response.span, edits })).toString();
    expect(text).toContain('"result":{"tools":[{"name":"a" }],"nextCursor":""}}');
  });
});
