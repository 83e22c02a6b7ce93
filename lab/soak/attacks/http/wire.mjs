// HTTP as bytes: sends what no HTTP client would, and reads what comes back.
import { connect } from 'node:net';

const GRACE_MS = 60;
const LINE_END = '\r\n';
const HEAD_END = '\r\n\r\n';
const BAD_BYTES = 'latin1';

/**
 * Sends `parts` over one connection: bytes, texts, and numbers that are pauses in ms. Resolves when the connection is
 * closed, or shortly after `responses` responses, or after `waitMs`. `abort` resets the connection after the parts;
 * `end` closes the sending half.
 */
export function exchange({ port, from, parts, responses = 1, waitMs = 1_500, abort = false, end = false, isHead }) {
  return new Promise((resolve) => {
    const startedAt = performance.now();
    const socket = connect({ host: '127.0.0.1', port, localAddress: from });
    let received = '';
    let timer = setTimeout(finish, waitMs);
    let isOver = false;
    function finish(isClosed = false) {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      socket.destroy();
      const ms = performance.now() - startedAt;
      resolve({ responses: parse(received, isHead), isClosed: isClosed === true, ms, raw: received });
    }
    socket.on('error', () => finish(true));
    socket.on('close', () => finish(true));
    socket.setEncoding(BAD_BYTES).on('data', (text) => {
      received += text;
      if (parse(received, isHead).filter(({ isWhole }) => isWhole).length < responses) return;
      // A response too many would follow at once, and so would the end of the connection.
      clearTimeout(timer);
      timer = setTimeout(finish, GRACE_MS);
    });
    socket.once('connect', async () => {
      for (const part of parts) {
        if (isOver) return;
        if (typeof part === 'number') await new Promise((next) => setTimeout(next, part));
        else socket.write(typeof part === 'string' ? Buffer.from(part, BAD_BYTES) : part);
      }
      if (abort) socket.resetAndDestroy();
      else if (end) socket.end();
    });
  });
}

/** A text as the bytes of its UTF-8, in a text of bytes. */
export function utf8(text) {
  return Buffer.from(text).toString(BAD_BYTES);
}

/** A request from what deviates from a right one. `headers` with the value `undefined` are left out. */
export function request({
  method = 'POST',
  target = '/mcp',
  version = 'HTTP/1.1',
  headers = {},
  lines = [],
  body = '',
  lineEnd = LINE_END,
}) {
  const named = Object.entries(headers).filter(([, value]) => value !== undefined);
  const head = [`${method} ${target} ${version}`, ...named.map(([name, value]) => `${name}: ${value}`), ...lines];
  return `${head.join(lineEnd)}${lineEnd}${lineEnd}${body}`;
}

function parse(text, isHead) {
  const responses = [];
  let rest = text;
  while (rest !== '') {
    const headEnd = rest.indexOf(HEAD_END);
    if (headEnd < 0) break;
    const [statusLine, ...lines] = rest.slice(0, headEnd).split(LINE_END);
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1]);
    const headers = new Map(lines.map((line) => [line.split(':')[0].toLowerCase(), line.replace(/^[^:]*: ?/, '')]));
    rest = rest.slice(headEnd + HEAD_END.length);
    if (status >= 100 && status < 200) continue;
    const { body, after, isWhole } = bodyOf(rest, headers, isHead || status === 204);
    responses.push({ status, headers, body, isWhole });
    rest = after;
  }
  return responses;
}

function bodyOf(rest, headers, hasNone) {
  if (hasNone) return { body: '', after: rest, isWhole: true };
  if (headers.has('content-length')) {
    const length = Number(headers.get('content-length'));
    return { body: rest.slice(0, length), after: rest.slice(length), isWhole: rest.length >= length };
  }
  if (headers.get('transfer-encoding') !== 'chunked') return { body: rest, after: '', isWhole: false };
  let body = '';
  let at = 0;
  for (;;) {
    const lineEnd = rest.indexOf(LINE_END, at);
    if (lineEnd < 0) return { body, after: '', isWhole: false };
    const size = Number.parseInt(rest.slice(at, lineEnd), 16);
    body += rest.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
    if (size === 0) return { body, after: rest.slice(at), isWhole: true };
    if (at > rest.length) return { body, after: '', isWhole: false };
  }
}
