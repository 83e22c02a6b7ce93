import { describe, expect, it } from 'vitest';
import { splice } from '../../src/json/splice.js';
import { withoutEraMembers, withoutResultMembers } from '../../src/mcp/modern-members.js';
import { EnvelopeRequest } from '../../src/mcp/relayed-request.js';
import { requestOf, responseOf } from '../support/wire.js';

const key = (name: string) => `"io.modelcontextprotocol/${name}"`;
const VERSION = `${key('protocolVersion')}:"2026-07-28"`;
const CLIENT = `${key('clientInfo')}:{"name":"a","version":"1"}`;
const CAPABILITIES = `${key('clientCapabilities')}:{"roots":{}}`;
const SERVER = `${key('serverInfo')}:{"name":"s","version":"1"}`;
const LEVEL = `${key('logLevel')}:"info"`;

describe('what a legacy server gets of the `_meta` of a modern client', () => {
  it.each([
    ['nothing of the client', `{${VERSION},${CLIENT},${CAPABILITIES},${LEVEL}}`, '{}'],
    ['its token behind', `{${VERSION},${CLIENT},${CAPABILITIES},"progressToken":1}`, '{"progressToken":1}'],
    ['its token before', `{"progressToken":1,${VERSION},${CAPABILITIES}}`, '{"progressToken":1}'],
    ['its token in between', `{${VERSION},"progressToken":1,${LEVEL}}`, '{"progressToken":1}'],
    ['the same in another order', `{"a":1,${CAPABILITIES},${VERSION},"b":2}`, '{"a":1,"b":2}'],
    ['the same with white space', `{ "a" : 1 , ${VERSION} , "b":2 }`, '{ "a" : 1 , "b":2 }'],
    ['the same with escapes', `{"a":1,${VERSION.replace('io.', '\\u0069o.')}}`, '{"a":1}'],
  ])('is %s', (_, meta, expected) => {
    const text = (of: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":${of}}}`;
    const request = requestOf(text(meta));
    const { bytes, span } = request;
    const edits = withoutEraMembers(new EnvelopeRequest(request));
    expect(Buffer.from(splice({ bytes, span, edits })).toString()).toBe(text(expected));
  });
});

describe('what a legacy client gets of the result of a modern server', () => {
  it.each([
    ['{"content":[],"resultType":"complete"}', '{"content":[]}'],
    ['{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}', '{"tools":[]}'],
    ['{"tools":[],"ttlMs":0,"x":1,"cacheScope":"private"}', '{"tools":[],"x":1}'],
    ['{"cacheScope":"private", "content":[], "resultType": "complete"}', '{"content":[]}'],
    [`{"content":[],"_meta":{${SERVER}}}`, '{"content":[]}'],
    [`{"_meta":{${SERVER}},"content":[]}`, '{"content":[]}'],
    [`{"resultType":"complete","_meta":{${SERVER}},"content":[]}`, '{"content":[]}'],
    [`{"_meta":{"a":1,${SERVER}},"content":[],"resultType":"complete"}`, '{"_meta":{"a":1},"content":[]}'],
    [`{"content":[],"_meta":{${SERVER},"b":{"c":2}},"ttlMs":1}`, '{"content":[],"_meta":{"b":{"c":2}}}'],
    ['{"_meta":{"a":1},"content":[]}', '{"_meta":{"a":1},"content":[]}'],
    ['{"_meta":{},"content":[]}', '{"_meta":{},"content":[]}'],
  ])('is %s without what it does not know', (result, expected) => {
    const text = (of: string) => `{"jsonrpc":"2.0","id":1,"result":${of}}`;
    const response = responseOf(text(result));
    const { bytes, span } = response;
    expect(Buffer.from(splice({ bytes, span, edits: withoutResultMembers(response) })).toString()).toBe(text(expected));
  });
});
