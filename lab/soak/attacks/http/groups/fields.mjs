// Header fields: RFC 9110, section 5, and RFC 9112, section 5.
const BAD = [400, 'closed'];

/** Lines of a head, beside those of a right request. */
function lines(...added) {
  return () => ({ lines: added });
}

export const fields = {
  name: 'header fields',
  attacks: [
    { name: 'a folded line', request: lines('x-folded: a', ' b'), expect: [200, 400, 'closed'] },
    { name: 'a fold with a tab', request: lines('x-folded: a', '\tb'), expect: [200, 400, 'closed'] },
    {
      name: 'Host folded',
      request: ({ host }) => ({ headers: { host: undefined }, lines: ['host:', ` ${host}`] }),
      expect: [200, 400, 403, 'closed'],
    },
    { name: 'a blank before the colon', request: lines('x-blank : a'), expect: BAD },
    { name: 'a tab before the colon', request: lines('x-tab\t: a'), expect: BAD },
    {
      name: 'a blank before the colon of Host',
      request: ({ host }) => ({ headers: { host: undefined }, lines: [`host : ${host}`] }),
      expect: BAD,
    },
    { name: 'no colon', request: lines('x-no-colon'), expect: BAD },
    { name: 'no name', request: lines(': a'), expect: BAD },
    { name: 'a blank in the name', request: lines('x blank: a'), expect: BAD },
    { name: 'brackets in the name', request: lines('x(y): a'), expect: BAD },
    { name: 'letters beyond ASCII in the name', request: lines('x-\xe9: a'), expect: BAD },
    { name: 'NUL in the name', request: lines('x\0y: a'), expect: BAD },
    { name: 'NUL in the value', request: lines('x-nul: a\0b'), expect: BAD },
    { name: 'a bare CR in the value', request: lines('x-cr: a\rb'), expect: BAD },
    {
      name: 'a bare CR that hides a header',
      request: ({ gateway }) => ({
        headers: { authorization: undefined },
        lines: [`x: a\rauthorization: Bearer ${gateway.token}`],
      }),
      expect: [400, 401, 'closed'],
    },
    {
      name: 'a bare LF that hides a header',
      request: ({ gateway }) => ({
        headers: { authorization: undefined },
        lines: [`x: a\nauthorization: Bearer ${gateway.token}`],
      }),
      expect: [200, 400, 401, 'closed'],
    },
    { name: 'DEL in the value', request: lines('x-del: a\x7fb'), expect: BAD },
    { name: 'a bell in the value', request: lines('x-bell: a\x07b'), expect: BAD },
    { name: 'bytes beyond ASCII in the value', request: lines('x-latin: \xe9\xff'), expect: [200, 400, 'closed'] },
    { name: 'an escape sequence in the value', request: lines('user-agent: \x1b[31m'), expect: BAD },
    {
      name: 'a first header that begins with a blank',
      raw: ({ right, request }) => [request(right).replace('\r\n', '\r\n ')],
      expect: BAD,
    },
    { name: '15 KiB of headers', request: lines(`x: ${'a'.repeat(15_000)}`), expect: 200 },
    { name: '17 KiB of headers', request: lines(`x: ${'a'.repeat(17_000)}`), expect: 431 },
    { name: '1 MiB of headers', request: lines(`x: ${'a'.repeat(1_048_576)}`), expect: [431, 'closed'] },
    {
      name: '3,000 headers',
      request: lines(...Array.from({ length: 3_000 }, (_, i) => `x${i}: a`)),
      expect: [431, 'closed'],
    },
    {
      name: '1,900 headers of one letter',
      request: lines(...Array.from({ length: 1_900 }, () => 'x:')),
      expect: [200, 400, 431, 'closed'],
    },
    {
      name: 'empty headers that hide Host beyond what is read',
      raw: ({ right, request }) => [
        request({
          ...right,
          headers: {},
          lines: [
            ...Array.from({ length: 1_900 }, () => 'x:'),
            ...Object.entries(right.headers).map(([name, value]) => `${name}: ${value}`),
          ],
        }),
      ],
      expect: [200, 400, 403, 431, 'closed'],
    },
    { name: '__proto__ as a header', request: lines('__proto__: a', 'constructor: b', 'toString: c'), expect: 200 },
    { name: 'Connection: close', request: lines('connection: close'), expect: 200 },
    { name: 'Connection names the token header', request: lines('connection: authorization'), expect: 200 },
    { name: 'Connection names Host', request: lines('connection: host, content-length'), expect: 200 },
    {
      name: 'X-Forwarded-Host of this machine, Host of another',
      request: ({ host }) => ({
        headers: { host: 'evil.example', 'x-forwarded-host': host, forwarded: `host=${host}` },
      }),
      expect: 403,
    },
    {
      name: 'X-HTTP-Method-Override: DELETE',
      request: lines('x-http-method-override: DELETE', 'x-method-override: DELETE'),
      expect: 200,
    },
    { name: 'X-Original-URL', request: lines('x-original-url: /mcp/other', 'x-rewrite-url: /mcp/other'), expect: 200 },
    {
      name: 'two Content-Types, the first one right',
      request: lines('content-type: text/plain'),
      expect: [200, 400, 415],
    },
    {
      name: 'two Content-Types, the second one right',
      request: () => ({
        headers: { 'content-type': undefined },
        lines: ['content-type: text/plain', 'content-type: application/json'],
      }),
      expect: [400, 415],
    },
    {
      name: 'two Accepts',
      request: () => ({ headers: { accept: 'application/json' }, lines: ['accept: text/event-stream'] }),
      expect: 200,
    },
    { name: 'no Accept', request: () => ({ headers: { accept: undefined } }), expect: [200, 406] },
    { name: 'Accept without event streams', request: () => ({ headers: { accept: 'application/json' } }), expect: 406 },
    { name: 'Accept of text/html', request: () => ({ headers: { accept: 'text/html' } }), expect: 406 },
    {
      name: 'Accept with quality 0',
      request: () => ({ headers: { accept: 'application/json;q=0, text/event-stream;q=0' } }),
      expect: 406,
    },
    {
      name: 'Accept of 10,000 types',
      request: () => ({ headers: { accept: 'a/b,'.repeat(3_000) } }),
      expect: [406, 431],
    },
    {
      name: 'an unknown protocol version',
      request: () => ({ headers: { 'mcp-protocol-version': '1999-01-01' } }),
      expect: 400,
    },
    {
      name: 'an empty protocol version',
      request: () => ({ headers: { 'mcp-protocol-version': '' } }),
      expect: [200, 400],
    },
    {
      name: 'two protocol versions',
      request: lines('mcp-protocol-version: 2025-11-25', 'mcp-protocol-version: 2025-06-18'),
      expect: 400,
    },
    {
      name: 'a protocol version of 15 KiB',
      request: () => ({ headers: { 'mcp-protocol-version': '2'.repeat(14_000) } }),
      expect: 400,
    },
    {
      name: 'a protocol version that is __proto__',
      request: () => ({ headers: { 'mcp-protocol-version': '__proto__' } }),
      expect: 400,
    },
  ],
};
