import { describe, expect, it } from 'vitest';
import { editToolPage } from '../../../src/gateway/catalog/exposed-list.js';
import type { ApprovalFacts, ApprovalVerdict } from '../../../src/gateway/catalog/tool-approval.js';
import { splice } from '../../../src/json/splice.js';
import { responseOf } from '../../support/wire.js';

const FACTS: ApprovalFacts = { tools: 0, isFirstUse: false, fault: undefined, advice: '' };

/** A person has approved the tools of these definitions. */
function approving(approved: Readonly<Record<string, string>>) {
  return {
    facts: FACTS,
    judge: (definitions: ReadonlyMap<string, string>) =>
      new Map(
        [...definitions].map(([name, definition]): [string, ApprovalVerdict] => [
          name,
          definition.includes(approved[name] ?? 'nothing') ? 'approved' : 'changed',
        ]),
      ),
  };
}

function relayed(result: string, rules: Partial<Parameters<typeof editToolPage>[1]> = {}): string {
  const response = responseOf(`{"jsonrpc":"2.0","id":1,"result":${result}}`);
  const edits = editToolPage(response, { policy: (name) => name !== 'hidden', ...rules }, {});
  const text = Buffer.from(splice({ bytes: response.bytes, span: response.span, edits })).toString();
  return text.slice('{"jsonrpc":"2.0","id":1,"result":'.length, -1);
}

describe('a page of tools for a client of one server', () => {
  it.each(['{ "tools" : [ {"name":"a"} , 7,{"name":8}, null ],"nextCursor":"" }', '{"tools":[]}', '{"x":1}'])(
    'stays as it is without hidden tools: %s',
    (page) => {
      expect(relayed(page)).toBe(page);
    },
  );

  it('loses the tools whose present definition nobody has approved, and those without a name', () => {
    const approvals = approving({ a: 'good', b: 'good' });
    const page = '{"tools":[{"name":"a","description":"good"},{"name":"b","description":"bad"},{"name":"c"},{"x":1}]}';
    expect(relayed(page, { approvals })).toBe('{"tools":[{"name":"a","description":"good"}]}');
  });
});
