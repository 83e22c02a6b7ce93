// Request lines and the length of bodies: RFC 9112, sections 2, 3, 6, 7 and 11.2.
const BAD = [400, 'closed'];

/** A request whose head is written by hand. */
function lengths(...lines) {
  return ({ right, message, nonce, request }) => {
    const { 'content-length': _, ...headers } = right.headers;
    return [request({ headers, lines, body: message(nonce) })];
  };
}

/** A second request in what a confused server takes for the rest of the connection. */
function smuggled({ right, message, nonce, request }) {
  const body = message(`${nonce} smuggled`);
  return request({ headers: { ...right.headers, 'content-length': body.length }, body });
}

function chunked(write, headers = {}) {
  return (context) => {
    const { 'content-length': _, ...rest } = context.right.headers;
    const head = { ...rest, 'transfer-encoding': 'chunked', ...headers };
    const body = context.message(context.nonce);
    const bodySize = body.length.toString(16);
    return [context.request({ headers: head, body: write({ body, size: bodySize, ...context }) })];
  };
}

function line(make, how = {}) {
  return { raw: (context) => [make(context)], ...how };
}

const host = ({ right }) => `host: ${right.headers.host}\r\n\r\n`;

export const framing = {
  name: 'request lines and lengths',
  attacks: [
    { name: 'a right request', expect: 200 },
    {
      name: 'a right request in chunks',
      raw: chunked(({ body, size }) => `${size}\r\n${body}\r\n0\r\n\r\n`),
      expect: 200,
    },
    { name: 'HTTP/0.9', ...line(() => 'GET /mcp\r\n\r\n'), expect: [400, 403, 505, 'closed'] },
    { name: 'HTTP/1.0 with all headers', request: () => ({ version: 'HTTP/1.0' }), expect: [200, 400, 505] },
    {
      name: 'HTTP/1.0 without Host',
      request: () => ({ version: 'HTTP/1.0', headers: { host: undefined } }),
      expect: [400, 403],
    },
    { name: 'HTTP/1.2', request: () => ({ version: 'HTTP/1.2' }), expect: [200, 400, 505] },
    { name: 'HTTP/2.0', request: () => ({ version: 'HTTP/2.0' }), expect: [400, 505] },
    { name: 'HTTP/3', request: () => ({ version: 'HTTP/3' }), expect: [400, 505] },
    { name: 'http/1.1 in lower case', request: () => ({ version: 'http/1.1' }), expect: [400, 505] },
    { name: 'HTTP/1.1.1', request: () => ({ version: 'HTTP/1.1.1' }), expect: [400, 505] },
    { name: 'the preface of HTTP/2', ...line(() => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), expect: [400, 505, 'closed'] },
    {
      name: 'a TLS hello',
      ...line(() => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'),
      how: { end: true },
      expect: BAD,
    },
    { name: 'bytes that are nothing', ...line(() => '\x00\xff\x00\xff\r\n\r\n'), expect: BAD },
    { name: 'an SSH banner', ...line(() => 'SSH-2.0-OpenSSH_9.0\r\n\r\n'), expect: BAD },
    { name: 'no target', ...line((c) => `POST HTTP/1.1\r\n${host(c)}`), expect: BAD },
    {
      name: 'two blanks after the method',
      ...line((c) => `GET  /mcp HTTP/1.1\r\n${host(c)}`),
      expect: [400, 401, 'closed'],
    },
    { name: 'a tab after the method', ...line((c) => `GET\t/mcp HTTP/1.1\r\n${host(c)}`), expect: BAD },
    { name: 'a blank in the target', ...line((c) => `GET /mcp /x HTTP/1.1\r\n${host(c)}`), expect: BAD },
    { name: 'a blank before the method', ...line((c) => ` GET /mcp HTTP/1.1\r\n${host(c)}`), expect: BAD },
    { name: 'a bare CR after the request line', ...line((c) => `GET /mcp HTTP/1.1\r${host(c)}`), expect: BAD },
    { name: 'bare LF as line ends', request: () => ({ lineEnd: '\n' }), expect: [200, 400, 'closed'] },
    { name: 'NUL in the target', request: () => ({ target: '/mcp\0' }), expect: BAD },
    {
      name: 'a target of 64 KiB',
      request: () => ({ target: `/mcp?${'a'.repeat(65_536)}` }),
      expect: [414, 431, 'closed'],
    },
    { name: 'a method of 64 KiB', request: () => ({ method: 'P'.repeat(65_536) }), expect: [400, 431, 501, 'closed'] },
    {
      name: 'a target in absolute form',
      request: ({ host }) => ({ target: `http://${host}/mcp` }),
      expect: [200, 400, 404],
    },
    {
      name: 'an absolute target of another host',
      request: () => ({ target: 'http://evil.example/mcp' }),
      expect: [400, 403, 404],
    },
    {
      name: 'an absolute target of another scheme',
      request: () => ({ target: 'file:///mcp' }),
      expect: [400, 403, 404],
    },
    { name: 'an authority as target', request: ({ host }) => ({ target: host }), expect: [400, 404] },
    { name: 'an asterisk as target', request: () => ({ target: '*' }), expect: [400, 404] },
    {
      name: 'Content-Length and Transfer-Encoding',
      raw: (c) => lengths('content-length: 5', 'transfer-encoding: chunked')(c),
      expect: BAD,
    },
    {
      name: 'Content-Length and chunks, with a smuggled call (CL.TE)',
      raw: (c) => [
        c.request({
          headers: { ...c.right.headers, 'content-length': 5, 'transfer-encoding': 'chunked' },
          body: `0\r\n\r\n${smuggled(c)}`,
        }),
      ],
      expect: BAD,
    },
    {
      name: 'chunks and Content-Length, with a smuggled call (TE.CL)',
      raw: (c) => {
        const call = smuggled(c);
        const body = `${call.length.toString(16)}\r\n${call}\r\n0\r\n\r\n`;
        return [
          c.request({
            headers: { ...c.right.headers, 'content-length': 6 },
            lines: ['transfer-encoding: chunked'],
            body,
          }),
        ];
      },
      expect: BAD,
    },
    {
      name: 'a GET with a smuggled call as its body',
      raw: (c) => {
        const call = smuggled(c);
        return [
          c.request({
            method: 'GET',
            target: '/healthz',
            headers: { ...c.right.headers, 'content-length': call.length },
            body: call,
          }),
        ];
      },
      expect: [200, 400, 413, 415],
    },
    {
      name: 'two equal Content-Lengths',
      raw: (c) =>
        lengths(`content-length: ${c.message(c.nonce).length}`, `content-length: ${c.message(c.nonce).length}`)(c),
      expect: [200, 400, 'closed'],
    },
    {
      name: 'two different Content-Lengths',
      raw: (c) => lengths('content-length: 5', `content-length: ${c.message(c.nonce).length}`)(c),
      expect: BAD,
    },
    { name: 'a list of Content-Lengths', raw: lengths('content-length: 5, 6'), expect: BAD },
    { name: 'Content-Length +5', raw: lengths('content-length: +5'), expect: BAD },
    { name: 'Content-Length -1', raw: lengths('content-length: -1'), expect: BAD },
    { name: 'Content-Length 0x10', raw: lengths('content-length: 0x10'), expect: BAD },
    { name: 'Content-Length 1e2', raw: lengths('content-length: 1e2'), expect: BAD },
    { name: 'Content-Length with a blank inside', raw: lengths('content-length: 1 2'), expect: BAD },
    { name: 'an empty Content-Length', raw: lengths('content-length:'), expect: BAD },
    {
      name: 'Content-Length 2^64 + 5',
      raw: lengths('content-length: 18446744073709551621'),
      expect: [400, 413, 'closed'],
    },
    {
      name: 'Content-Length of 400 digits',
      raw: lengths(`content-length: ${'9'.repeat(400)}`),
      expect: [400, 413, 'closed'],
    },
    { name: 'Content-Length 4 TiB', raw: lengths('content-length: 4398046511104'), expect: 413 },
    { name: 'a blank before the colon of Content-Length', raw: lengths('content-length : 5'), expect: BAD },
    {
      name: 'a blank before the colon of Transfer-Encoding',
      raw: lengths('content-length: 5', 'transfer-encoding : chunked'),
      expect: BAD,
    },
    {
      name: 'Transfer-Encoding: gzip, chunked',
      raw: chunked(({ body, size }) => `${size}\r\n${body}\r\n0\r\n\r\n`, { 'transfer-encoding': 'gzip, chunked' }),
      expect: [400, 415, 501, 'closed'],
    },
    {
      name: 'Transfer-Encoding: chunked, gzip',
      raw: lengths('transfer-encoding: chunked, gzip'),
      expect: [400, 501, 'closed'],
    },
    { name: 'Transfer-Encoding: identity', raw: lengths('transfer-encoding: identity'), expect: [400, 501, 'closed'] },
    { name: 'Transfer-Encoding: xchunked', raw: lengths('transfer-encoding: xchunked'), expect: [400, 501, 'closed'] },
    {
      name: 'Transfer-Encoding: "chunked" in quotes',
      raw: lengths('transfer-encoding: "chunked"'),
      expect: [400, 501, 'closed'],
    },
    {
      name: 'Transfer-Encoding: chunked twice',
      raw: lengths('transfer-encoding: chunked', 'transfer-encoding: chunked'),
      expect: BAD,
    },
    {
      name: 'Transfer-Encoding with a vertical tab',
      raw: lengths('transfer-encoding: \x0bchunked'),
      expect: [400, 501, 'closed'],
    },
    { name: 'Transfer-Encoding folded over two lines', raw: lengths('transfer-encoding:', ' chunked'), expect: BAD },
    {
      name: 'chunks in HTTP/1.0',
      raw: (c) => [
        chunked(({ body, size }) => `${size}\r\n${body}\r\n0\r\n\r\n`)(c)[0].replace('HTTP/1.1', 'HTTP/1.0'),
      ],
      expect: [200, 400, 'closed'],
    },
    {
      name: 'a chunk size beyond 2^64',
      raw: chunked(({ body }) => `fffffffffffffffff\r\n${body}\r\n0\r\n\r\n`),
      expect: [400, 413, 'closed'],
    },
    { name: 'a negative chunk size', raw: chunked(({ body }) => `-1\r\n${body}\r\n0\r\n\r\n`), expect: BAD },
    { name: 'a chunk size 0x10', raw: chunked(({ body }) => `0x10\r\n${body}\r\n0\r\n\r\n`), expect: BAD },
    { name: 'no chunk size', raw: chunked(({ body }) => `\r\n${body}\r\n0\r\n\r\n`), expect: BAD },
    { name: 'a chunk longer than its size', raw: chunked(({ body }) => `5\r\n${body}\r\n0\r\n\r\n`), expect: BAD },
    { name: 'chunks ended by bare LF', raw: chunked(({ body, size }) => `${size}\n${body}\n0\n\n`), expect: BAD },
    {
      name: 'a chunk extension of 64 KiB',
      raw: chunked(({ body, size }) => `${size};x=${'y'.repeat(65_536)}\r\n${body}\r\n0\r\n\r\n`),
      expect: [400, 413, 431, 'closed'],
    },
    {
      name: 'a chunk extension with a bare LF',
      raw: chunked(({ body, size }) => `${size};x\n${body}\r\n0\r\n\r\n`),
      expect: BAD,
    },
    {
      name: 'no token but in the trailer',
      raw: chunked(
        ({ body, size, gateway }) => `${size}\r\n${body}\r\n0\r\nauthorization: Bearer ${gateway.token}\r\n\r\n`,
        { authorization: undefined },
      ),
      expect: 401,
    },
    {
      name: 'a trailer of 64 KiB',
      raw: chunked(({ body, size }) => `${size}\r\n${body}\r\n0\r\nx: ${'y'.repeat(65_536)}\r\n\r\n`),
      expect: [200, 400, 431, 'closed'],
    },
    {
      name: 'chunks of one byte',
      raw: chunked(({ body }) => `${[...body].map((byte) => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`),
      expect: 200,
    },
    {
      name: 'pipelined: three right requests',
      raw: (c) => [c.request(c.right).repeat(3)],
      how: { responses: 3 },
      most: 3,
      expect: 200,
    },
    {
      name: 'pipelined: a refused one, then a smuggled one without a token',
      raw: (c) => [
        c.request({ ...c.right, headers: { ...c.right.headers, host: 'evil.example' } }),
        smuggled(c).replace(/authorization: [^\r]*\r\n/, ''),
      ],
      how: { responses: 2 },
      most: 2,
      expect: 403,
    },
    {
      name: 'pipelined: 500 pings of the health check',
      raw: (c) => [`GET /healthz HTTP/1.1\r\n${host(c)}`.repeat(500)],
      how: { responses: 500, waitMs: 5_000 },
      most: 500,
      expect: 200,
    },
    { name: 'Expect: 100-continue', request: () => ({ headers: { expect: '100-continue' } }), expect: [200, 417] },
    { name: 'Expect: something else', request: () => ({ headers: { expect: 'a-miracle' } }), expect: [200, 417] },
    {
      name: 'Upgrade: h2c',
      request: () => ({
        headers: { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAAQAoAAA' },
      }),
      expect: [200, 400, 'closed'],
    },
    {
      name: 'Upgrade: websocket',
      request: () => ({
        method: 'GET',
        headers: {
          connection: 'Upgrade',
          upgrade: 'websocket',
          'sec-websocket-version': 13,
          'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
        },
      }),
      expect: [200, 400, 405, 406, 'closed'],
    },
  ],
};
