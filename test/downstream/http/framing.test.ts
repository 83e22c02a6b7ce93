import { describe, expect, it } from 'vitest';
import { initializeRequest, readToEnd, type Serving, serving, TOKEN } from './serving.js';

const INITIALIZE = JSON.stringify(initializeRequest('2025-11-25'));
const CHUNKED = `${INITIALIZE.length.toString(16)}\r\n${INITIALIZE}\r\n0\r\n\r\n`;

/** Sends a POST with these header lines before the usual ones. Resolves with all bytes until the end. */
async function answerTo(
  http: Serving,
  lines: readonly string[],
  { version = '1.1', body = INITIALIZE, path = '/mcp' },
) {
  const socket = await http.connect();
  const usual = Object.entries(http.headers()).map(([name, value]) => `${name}: ${value}`);
  const isChunked = lines.some((line) => /^transfer-encoding/i.test(line));
  const length = isChunked ? [] : [`content-length: ${body.length}`];
  socket.write(`POST ${path} HTTP/${version}\r\n${[...lines, ...usual, ...length].join('\r\n')}\r\n\r\n${body}`);
  return readToEnd(socket);
}

describe('a transfer coding', () => {
  it.each(['gzip, chunked', 'gzip', 'identity, chunked', 'deflate,chunked'])(
    'F75: of the form %s is refused, and the connection is closed',
    async (coding) => {
      const http = await serving();
      const answer = await answerTo(http, [`Transfer-Encoding: ${coding}`], { body: CHUNKED });
      expect(answer).toMatch(/^HTTP\/1\.1 501 /);
      expect(answer.toLowerCase()).toContain('\r\nconnection: close\r\n');
      expect(http.core.endpoints).toEqual([]);
    },
  );

  it('is refused on two lines as on one, and on every path', async () => {
    const http = await serving();
    const lines = ['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'];
    for (const path of ['/mcp', '/mcp/files', '/healthz', '/nowhere']) {
      expect(await answerTo(http, lines, { body: CHUNKED, path })).toMatch(/^HTTP\/1\.1 501 /);
    }
  });

  it('is refused in HTTP/1.0, which has none', async () => {
    const http = await serving();
    const answer = await answerTo(http, ['Transfer-Encoding: chunked'], { version: '1.0', body: CHUNKED });
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(http.core.endpoints).toEqual([]);
  });

  it.each(['chunked', 'Chunked'])('of the form %s is served', async (coding) => {
    const http = await serving();
    const lines = [`Transfer-Encoding: ${coding}`, 'Connection: close'];
    expect(await answerTo(http, lines, { body: CHUNKED })).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('a version of HTTP', () => {
  it.each(['2.0', '0.9'])('of %s in a request line is refused on every path', async (version) => {
    const http = await serving();
    for (const path of ['/mcp', '/mcp/files', '/healthz', '/nowhere']) {
      const answer = await answerTo(http, [], { version, path });
      expect(answer).toMatch(/^HTTP\/1\.1 505 /);
      expect(answer.toLowerCase()).toContain('\r\nconnection: close\r\n');
    }
    expect(http.core.endpoints).toEqual([]);
  });

  it('of 1.0 is served', async () => {
    const http = await serving();
    expect(await answerTo(http, [], { version: '1.0' })).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('a header that has one value', () => {
  it.each([
    ['Host', 'evil.example'],
    ['Authorization', 'Bearer wrong'],
    ['Authorization', `Bearer ${TOKEN}`],
    ['Origin', 'null'],
    ['Content-Type', 'text/plain'],
    ['Content-Length', String(INITIALIZE.length)],
    ['Mcp-Session-Id', 'x'],
    ['MCP-Protocol-Version', '2025-11-25'],
    ['Last-Event-ID', '1-1'],
  ])('F75: is refused when it is repeated: %s, with %s before it', async (name, value) => {
    const http = await serving();
    const again = {
      origin: `Origin: http://127.0.0.1:${http.front.port}`,
      'mcp-session-id': 'Mcp-Session-Id: y',
      'mcp-protocol-version': 'MCP-Protocol-Version: 2025-06-18',
      'last-event-id': 'Last-Event-ID: 1-2',
    }[name.toLowerCase()];
    const lines = [`${name}: ${value}`, ...(again === undefined ? [] : [again]), 'Connection: close'];
    expect(await answerTo(http, lines, {})).toMatch(/^HTTP\/1\.1 400 /);
    expect(http.core.endpoints).toEqual([]);
  });

  it('may be repeated nowhere: Host is checked for health checks and unknown paths as well', async () => {
    const http = await serving();
    for (const path of ['/healthz', '/readyz', '/nowhere']) {
      const answer = await answerTo(http, ['Host: other.example', 'Connection: close'], { path });
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    }
  });

  it('is not one that is a list: a repeated Accept counts as a whole, and unknown headers do not matter', async () => {
    const http = await serving();
    const lines = ['Accept: text/html', 'X-Trace: 1', 'X-Trace: 2', 'Connection: close'];
    expect(await answerTo(http, lines, {})).toMatch(/^HTTP\/1\.1 200 /);
  });
});
