import { describe, expect, it } from 'vitest';
import { metadataHeaders } from '../../../src/upstream/http/request-headers.js';
import { notificationOf, requestOf } from '../../support/wire.js';

const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };

function headersOf(method: string, params: object, meta: object | undefined = _meta) {
  const paramsOf = () => [
    { header: 'Region', path: ['region'] },
    { header: 'Deep', path: ['a', 'b'] },
  ];
  return metadataHeaders(requestOf({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }), paramsOf);
}

describe('the headers of a request', () => {
  it('repeat the revision, the method and the name', () => {
    expect(headersOf('tools/call', { name: 'read' })).toEqual({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'read',
    });
    expect(headersOf('resources/read', { uri: 'file:///a' })).toMatchObject({ 'mcp-name': 'file:///a' });
    expect(headersOf('tools/list', {})).not.toHaveProperty('mcp-name');
  });

  it('repeat nothing of a request with a handshake', () => {
    expect(headersOf('tools/call', { name: 'read' }, {})).toEqual({});
  });

  it('repeat the method of a notification that does not say its revision, on a connection that has one', () => {
    const notice = notificationOf({ jsonrpc: '2.0', method: 'notifications/x' });
    expect(metadataHeaders(notice, () => [], true)).toEqual({ 'mcp-method': 'notifications/x' });
  });

  it.each([
    ['plain text', 'plain text'],
    ['', '=?base64??='],
    [' space', '=?base64?IHNwYWNl?='],
    ['Grüße', '=?base64?R3LDvMOfZQ==?='],
    ['two\nlines', '=?base64?dHdvCmxpbmVz?='],
    ['=?base64?eA==?=', '=?base64?PT9iYXNlNjQ/ZUE9PT89?='],
  ])('have %j as %s', (name, value) => {
    expect(headersOf('tools/call', { name })['mcp-name']).toBe(value);
  });

  it.each([
    [
      { region: 'eu', a: { b: 7 } },
      { 'mcp-param-region': 'eu', 'mcp-param-deep': '7' },
    ],
    [
      { region: true, a: { b: 'ä' } },
      { 'mcp-param-region': 'true', 'mcp-param-deep': '=?base64?w6Q=?=' },
    ],
    [{ region: null, a: { b: {} } }, {}],
    [{ a: { b: 1e21 } }, { 'mcp-param-deep': '1e+21' }],
    [{}, {}],
  ])('repeat the parameters of a tool that it wants: %j', (given, expected) => {
    const headers = Object.entries(headersOf('tools/call', { name: 't', arguments: given }));
    expect(Object.fromEntries(headers.filter(([name]) => name.startsWith('mcp-param-')))).toEqual(expected);
  });
});
