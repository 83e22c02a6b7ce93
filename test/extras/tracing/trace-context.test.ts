import { describe, expect, it } from 'vitest';
import {
  contextIn,
  formatTraceparent,
  parseTraceparent,
  replacing,
  withTraceparent,
} from '../../../src/extras/tracing/trace-context.js';
import { readText } from '../../../src/wire/json/json-text.js';
import { splice } from '../../../src/wire/json/splice.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { bytesOf, requestOf, scan } from '../../support/wire.js';

const ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const OURS = { traceId: ID, spanId: 'b'.repeat(16), traceFlags: 1 };

function received(params: string) {
  const envelope = requestOf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
  const request = new EnvelopeRequest(envelope);
  const textOf = ({ bytes, span, edits }: ReturnType<EnvelopeRequest['message']>) => {
    const text = new TextDecoder().decode(splice({ bytes, span, edits }));
    return text.slice(text.indexOf('"params":') + 9, -1);
  };
  const message = { text: bytesOf('9'), part: { start: 0, end: 1 } };
  return {
    request,
    replaced: () => {
      const found = contextIn(request);
      return found && textOf(request.message(message, [replacing(found.value, OURS)]));
    },
    extended: () => {
      const extended = withTraceparent(request, envelope.span, OURS, scan);
      return extended && textOf(extended.message(message, []));
    },
  };
}

describe('a traceparent', () => {
  it.each([`00-${ID}-${SPAN}-01`, `00-${ID}-${SPAN}-00`, `00-${ID}-${SPAN}-03`])('%s is read and written', (text) => {
    const context = parseTraceparent(text);
    expect(context).toMatchObject({ traceId: ID, spanId: SPAN });
    expect(context && formatTraceparent(context)).toBe(text);
  });

  it('of a later version may have more fields', () => {
    expect(parseTraceparent(`01-${ID}-${SPAN}-01-more`)).toMatchObject({ traceId: ID, spanId: SPAN, traceFlags: 1 });
  });

  it.each([
    ...['', 'x', `00-${ID}-${SPAN}`, `00-${ID}-${SPAN}-1`, `00-${ID}-${SPAN}-01-more`, ` 00-${ID}-${SPAN}-01`],
    ...[`ff-${ID}-${SPAN}-01`, `00-${'0'.repeat(32)}-${SPAN}-01`, `00-${ID}-${'0'.repeat(16)}-01`],
    ...[`00-${ID.toUpperCase()}-${SPAN}-01`, `00-${ID}-${SPAN}-0g`, `00-${ID}-${SPAN}-01\n`, `01-${ID}-${SPAN}-01more`],
  ])('%j is malformed', (text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });
});

describe('the traceparent of a request', () => {
  it('is replaced in its place', () => {
    const params = `{ "_meta" : {"baggage":"k=v", "trace\\u0070arent":\t"00-${ID}-${SPAN}-01" ,"n":1.0},"name":"x"}`;
    expect(received(params).replaced()).toBe(params.replace(SPAN, OURS.spanId));
  });

  it.each([
    ...['{}', '{"_meta":null}', '{"_meta":{}}', '{"_meta":{"traceparent":7}}', '{"_meta":{"traceparent":"x"}}'],
    ...[`{"_meta":{"traceparent":"00-${ID}-${SPAN}-01","traceparent":"00-${ID}-${SPAN}-01"}}`],
    ...[`{"traceparent":"00-${ID}-${SPAN}-01"}`, `{"_meta":{"a":{"traceparent":"00-${ID}-${SPAN}-01"}}}`],
  ])('is absent in %s', (params) => {
    expect(received(params).replaced()).toBeUndefined();
  });

  const member = `"traceparent":"${formatTraceparent(OURS)}"`;
  it.each([
    ['{"name":"x"}', `{"_meta":{${member}},"name":"x"}`],
    ['{}', `{"_meta":{${member}}}`],
    ['{ "_meta":{ } }', `{ "_meta":{${member} } }`],
    ['{"_meta":{"a":1.0},"name":"x"}', `{"_meta":{${member},"a":1.0},"name":"x"}`],
  ])('is added to %s', (params, expected) => {
    expect(received(params).extended()).toBe(expected);
  });

  it.each(['{"_meta":{"traceparent":"x"}}', '{"_meta":7}', '[]'])('is not added to %s', (params) => {
    expect(received(params).extended()).toBeUndefined();
  });

  it('that was added can be replaced like that of a client', () => {
    const { request } = received('{"name":"x"}');
    const envelope = requestOf('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}');
    const extended = withTraceparent(request, envelope.span, OURS, scan);
    const found = extended && contextIn(extended);
    expect(found && extended && readText(extended.bytes, found.value)).toBe(`"${formatTraceparent(OURS)}"`);
  });
});
