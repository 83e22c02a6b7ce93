import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { unwrapCall } from '../../../src/gateway/search/search-mode.js';
import { toBytes } from '../../../src/wire/json/json-text.js';
import { splice } from '../../../src/wire/json/splice.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { bytesOf, scan } from '../../support/wire.js';

/** The request that is sent to a server under the id 7, for a call with these raw params. */
function unwrapped(params: string, method = 'tools/call'): string | undefined {
  const envelope = scan(bytesOf(`{"jsonrpc":"2.0","id":"a","method":"${method}","params":${params}}`));
  if (envelope.kind !== 'request') throw new Error('not a request');
  const request = unwrapCall(new EnvelopeRequest(envelope));
  return (
    request && Buffer.from(splice(request.message({ text: toBytes('7'), part: { start: 0, end: 1 } }, []))).toString()
  );
}

function direct(params: string): string {
  return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params}}`;
}

const OWN = '"name":"trunkline__call_tool"';

describe('a call through trunkline__call_tool', () => {
  it.each([
    [`{${OWN},"arguments":{"name":"a__b","arguments":{"x": 1.0 }}}`, '{"name":"a__b","arguments":{"x": 1.0 }}'],
    [`{"arguments":{"arguments":{},"name":"\\u0061"} , ${OWN}}`, '{"arguments":{} , "name":"\\u0061"}'],
    [`{${OWN},"arguments":{"name":"a"}}`, '{"name":"a"}'],
    [`{${OWN},"arguments":{"name":"a"},"_meta":{"k":[]}}`, '{"name":"a","_meta":{"k":[]}}'],
    [
      `{${OWN},"arguments":{"name":"a","arguments":null},"task":{"ttl":5}}`,
      '{"name":"a","arguments":null,"task":{"ttl":5}}',
    ],
  ])('%s becomes the call of the tool, with all other bytes', (params, expected) => {
    expect(unwrapped(params)).toBe(direct(expected));
  });

  it('takes arguments that a model has written as a string of JSON', () => {
    expect(unwrapped(`{${OWN},"arguments":{"name":"a","arguments":"{\\"x\\":[1,\\"\u00e9\\"]}"}}`)).toBe(
      direct('{"name":"a","arguments":{"x":[1,"\u00e9"]}}'),
    );
    expect(unwrapped(`{${OWN},"arguments":{"name":"a","arguments":"text"}}`)).toBe(
      direct('{"name":"a","arguments":"text"}'),
    );
  });

  it('has the progress token of the new id', () => {
    expect(unwrapped(`{${OWN},"arguments":{"name":"a"},"_meta":{"progressToken":"mine"}}`)).toBe(
      direct('{"name":"a","_meta":{"progressToken":7}}'),
    );
  });

  it.each([
    `{${OWN}}`,
    `{${OWN},"arguments":null}`,
    `{${OWN},"arguments":{"name":5}}`,
    `{${OWN},"arguments":{"name":"a","name":"b"}}`,
    `{${OWN},"arguments":{"name":"a","arguments":{},"arguments":{}}}`,
    `{${OWN},"arguments":{"name":"trunkline__call_tool","arguments":{"name":"a"}}}`,
    '{"name":"a__b","arguments":{"name":"c"}}',
  ])('stays as it is with the params %s', (params) => {
    expect(unwrapped(params)).toBeUndefined();
  });

  it('stays as it is with another method', () => {
    expect(unwrapped(`{${OWN},"arguments":{"name":"a"}}`, 'prompts/get')).toBeUndefined();
  });

  it('reaches the server with the bytes of a direct call, whatever the arguments are', () => {
    fc.assert(
      fc.property(fc.string(), fc.json(), fc.jsonValue(), (name, args, meta) => {
        fc.pre(name !== 'trunkline__call_tool' && !args.startsWith('"'));
        const others = `"_meta":{"x":${JSON.stringify(meta)}}`;
        const own = `{"name":${JSON.stringify(name)},"arguments":${args}}`;
        expect(unwrapped(`{${others},${OWN},"arguments":${own}}`)).toBe(
          direct(`{${others},"name":${JSON.stringify(name)},"arguments":${args}}`),
        );
      }),
    );
  });
});
