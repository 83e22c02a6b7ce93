import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { STREAM_LIMITS } from '../../../src/web/server/page-streams.js';
import { SESSION_LIMITS } from '../../../src/web/server/sessions.js';
import { readToEnd } from '../../downstream/http/serving.js';
import { codeOf, type Headers, StreamReader, WebPlace } from './web-place.js';

const HOUR = 60 * 60_000;

describe('a request of another site', () => {
  const foreign: [string, (port: number) => Headers][] = [
    ['a foreign name', (port) => ({ Host: `evil.example:${port}` })],
    ['a name that begins with ours', (port) => ({ Host: `127.0.0.1.evil.example:${port}` })],
    ['another address of this machine', (port) => ({ Host: `127.0.0.2:${port}` })],
    ['all addresses', (port) => ({ Host: `0.0.0.0:${port}` })],
    ['a trailing dot', (port) => ({ Host: `localhost.:${port}` })],
    ['upper case', (port) => ({ Host: `LOCALHOST:${port}` })],
    ['another port', (port) => ({ Host: `127.0.0.1:${port + 1}` })],
    ['a longer port', (port) => ({ Host: `127.0.0.1:${port}0` })],
    ['a name behind the port', (port) => ({ Host: `127.0.0.1:${port}.evil.example` })],
    ['no port', () => ({ Host: '127.0.0.1' })],
    ['a user name', (port) => ({ Host: `me@127.0.0.1:${port}` })],
  ];
  it.each(foreign)('F300: is refused with %s as host, also for a file', async (_, host) => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const { port } = place;
    expect(await place.request('GET', '/tools', { ...headers, ...host(port) })).toMatchObject({ status: 403 });
    expect(await place.request('GET', '/', host(port))).toMatchObject({ status: 403 });
  });

  it('is refused without a host, and with two', async () => {
    const { port } = await WebPlace.open();
    const ours = `Host: 127.0.0.1:${port}\r\n`;
    expect(await raw(port, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 403 /);
    expect(await raw(port, `GET / HTTP/1.1\r\n${CLOSE}\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
    expect(await raw(port, `GET / HTTP/1.1\r\n${ours}Host: evil.example\r\n${CLOSE}\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
  });

  it.each([
    ['null', () => 'null'],
    ['another site', () => 'http://evil.example'],
    ['another port', (port: number) => `http://127.0.0.1:${port + 1}`],
    ['another scheme', (port: number) => `https://127.0.0.1:${port}`],
    ['another name of this machine', (port: number) => `http://localhost:${port}`],
    ['a path', (port: number) => `http://127.0.0.1:${port}/`],
  ])('is refused with %s as origin', async (_, origin) => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const Origin = origin(place.port);
    expect(await place.request('GET', '/tools', { ...headers, Origin })).toMatchObject({ status: 403 });
    expect(await place.request('GET', '/stream', { ...headers, Origin })).toMatchObject({ status: 403 });
    expect(await place.post('/restart', { server: 'one' }, { ...headers, Origin })).toMatchObject({ status: 403 });
    expect(await place.request('GET', '/', { Origin })).toMatchObject({ status: 403 });
    expect(place.scripted.asked).toEqual([]);
  });

  it.each(['cross-site', 'same-site', 'none'])('is refused with Sec-Fetch-Site: %s', async (site) => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const sent = { ...headers, 'Sec-Fetch-Site': site };
    expect(await place.request('GET', '/tools', sent)).toMatchObject({ status: 403 });
    expect(await place.post('/restart', { server: 'one' }, sent)).toMatchObject({ status: 403 });
    expect(await place.request('GET', '/page-abc.js', { 'Sec-Fetch-Site': site })).toMatchObject({ status: 403 });
    expect(place.scripted.asked).toEqual([]);
  });

  it('is refused if neither header says where a request comes from', async () => {
    const place = await WebPlace.open();
    const { cookie, key, headers } = await place.session();
    const unnamed = { Cookie: cookie, 'X-Trunkline-Key': key };
    expect(await place.request('GET', '/tools', unnamed)).toMatchObject({ status: 403 });
    const { Origin: _, ...siteOnly } = headers;
    expect(await place.request('DELETE', '/session', siteOnly)).toMatchObject({ status: 403 });
    const json = { ...siteOnly, 'Content-Type': 'application/json' };
    expect(await place.request('POST', '/restart', json, '{"server":"one"}')).toMatchObject({ status: 403 });
  });

  it('is answered without CORS headers, and its OPTIONS is refused', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const wanted = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'x-trunkline-key' };
    const refused = await place.request('OPTIONS', '/restart', { ...headers, ...wanted });
    expect(refused).toMatchObject({ status: 403 });
    const answers = [refused, await place.request('GET', '/tools', headers), await place.request('GET', '/')];
    const names = answers.flatMap((answer) => Object.keys(answer.headers));
    expect(names.filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  it('finds the page at the address that a person types, and nothing else there', async () => {
    const place = await WebPlace.open();
    expect(await place.request('GET', '/', { 'Sec-Fetch-Site': 'none' })).toMatchObject({ status: 200 });
    expect(await place.request('GET', '/?code=x', { 'Sec-Fetch-Site': 'none' })).toMatchObject({ status: 403 });
    const linked = await place.request('GET', '/', { 'Sec-Fetch-Site': 'cross-site' });
    expect(JSON.parse(linked.text).error).toMatch(/^Paste the address into the browser/);
  });

  it('finds the page from a local file, at a path that no site knows, and nothing else there', async () => {
    const place = await WebPlace.open();
    const url = place.server.newUrl();
    const { pathname, hash } = new URL(place.server.forFile(url));
    expect([pathname, hash]).toEqual([expect.stringMatching(/^\/[0-9a-f]{32}$/), new URL(url).hash]);
    const site = { 'Sec-Fetch-Site': 'cross-site' };
    expect(await place.request('GET', pathname, site)).toMatchObject({
      status: 200,
      text: expect.stringContaining('Trunkline'),
    });
    expect(await place.request('GET', pathname, { ...site, Origin: 'null' })).toMatchObject({ status: 403 });
    expect(await place.request('POST', pathname, site)).toMatchObject({ status: 403 });
    expect(await place.request('GET', `${pathname}0`, site)).toMatchObject({ status: 403 });
    expect(await (await WebPlace.open()).request('GET', pathname, site)).toMatchObject({ status: 403 });
  });
});

describe('a session', () => {
  it('F301: is opened by the code of a URL, and needs both the cookie and the key', async () => {
    const place = await WebPlace.open();
    const url = place.server.newUrl();
    expect(url).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:${place.port}/#[\\w-]{43}$`));
    const opened = await place.post('/session', { code: codeOf(url) });
    expect(opened).toMatchObject({ status: 200, text: expect.stringMatching(/^[\w-]{43}$/) });
    const [setCookie = ''] = opened.headers['set-cookie'] ?? [];
    expect(setCookie).toMatch(new RegExp(`^trunkline_${place.port}=[\\w-]{43}; HttpOnly; SameSite=Strict; Path=/$`));
    const Cookie = setCookie.slice(0, setCookie.indexOf(';'));
    const both = { ...place.own, Cookie, 'X-Trunkline-Key': opened.text };
    expect(await place.request('GET', '/tools', both)).toMatchObject({ status: 200 });
    for (const wrong of [
      { 'X-Trunkline-Key': '' },
      { 'X-Trunkline-Key': Cookie.split('=')[1] ?? '' },
      { Cookie: `trunkline_${place.port}=${opened.text}` },
      { Cookie: `trunkline_${place.port + 1}=${Cookie.split('=')[1]}` },
      { Cookie: '' },
    ])
      expect(await place.request('GET', '/tools', { ...both, ...wrong })).toMatchObject({ status: 401 });
    const { Cookie: _, ...keyOnly } = both;
    expect(await place.request('GET', '/stream', keyOnly)).toMatchObject({ status: 401 });
    // Other programs on this machine can set a cookie of the same name.
    const tossed = { Cookie: `trunkline_${place.port}=x; other=1; ${Cookie}` };
    expect(await place.request('GET', '/tools', { ...both, ...tossed })).toMatchObject({ status: 200 });
  });

  it('needs the key and the cookie of one session, not of two', async () => {
    const place = await WebPlace.open();
    const [one, two] = [await place.session(), await place.session()];
    const mixed = { ...one.headers, Cookie: two.cookie };
    expect(await place.request('GET', '/tools', mixed)).toMatchObject({ status: 401 });
    expect(await place.request('GET', '/tools', one.headers)).toMatchObject({ status: 200 });
  });

  it('is not opened by a code in the query, in a form, or as text', async () => {
    const place = await WebPlace.open();
    const code = codeOf(place.server.newUrl());
    expect(await place.post(`/session?code=${code}`, {})).toMatchObject({ status: 401 });
    const body = JSON.stringify({ code });
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data', undefined]) {
      const headers = { ...place.own, ...(type === undefined ? undefined : { 'Content-Type': type }) };
      expect(await place.request('POST', '/session', headers, body)).toMatchObject({ status: 415 });
    }
    expect(await place.request('GET', `/session?code=${code}`, place.own)).toMatchObject({ status: 401 });
    expect(await place.post('/session', { code })).toMatchObject({ status: 200 });
  });

  it('F301: ends when its code is used again, with its stream, and another URL is printed', async () => {
    const place = await WebPlace.open();
    const code = codeOf(place.server.newUrl());
    const { headers, text } = await place.post('/session', { code });
    const Cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    const own = { ...place.own, Cookie, 'X-Trunkline-Key': text };
    const stream = new StreamReader(await place.begin('GET', '/stream', own));
    expect(await stream.frame()).toMatchObject({ kind: 'hello' });
    expect(await place.post('/session', { code })).toMatchObject({ status: 401 });
    expect(await stream.next()).toBeUndefined();
    expect(await place.request('GET', '/tools', own)).toMatchObject({ status: 401 });
    expect(place.printed).toEqual([[expect.stringMatching(/#[\w-]{43}$/), 'used twice']]);
    expect(await place.post('/session', { code: codeOf(place.printed[0]?.[0] ?? '') })).toMatchObject({ status: 200 });
  });

  it('F301: that another program has opened and ended is reported when its code is used again', async () => {
    const place = await WebPlace.open();
    const code = codeOf(place.server.newUrl());
    const { headers, text } = await place.post('/session', { code });
    const Cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    await place.request('DELETE', '/session', { ...place.own, Cookie, 'X-Trunkline-Key': text });
    expect(await place.post('/session', { code })).toMatchObject({ status: 401 });
    expect(place.printed.map(([, reason]) => reason)).toEqual(['used twice']);
  });

  it('is not opened a minute after the URL was printed, and another URL is printed instead', async () => {
    const place = await WebPlace.open();
    const code = codeOf(place.server.newUrl());
    place.clock.advance(60_000);
    const late = await place.post('/session', { code });
    expect(late).toMatchObject({ status: 401, text: expect.stringContaining('expired') });
    expect(place.printed.map(([, reason]) => reason)).toEqual(['wanted']);
    expect(await place.post('/session', { code })).toMatchObject({ status: 401 });
  });

  it('F302: is not opened by any code after six wrong ones, and another URL is printed', async () => {
    const place = await WebPlace.open();
    const code = codeOf(place.server.newUrl());
    for (let at = 1; at <= 6; at += 1) {
      expect(place.printed).toEqual([]);
      expect(await place.post('/session', { code: `wrong-${at}` })).toMatchObject({ status: 401 });
    }
    expect(await place.post('/session', { code })).toMatchObject({ status: 401 });
    expect(place.printed.map(([, reason]) => reason)).toEqual(['guessed']);
    // A program that goes on guessing does not fill the terminal, nor does it void the new code at once.
    for (let at = 0; at < 20; at += 1) await place.post('/session', { code: 'wrong' });
    expect(place.printed).toHaveLength(1);
    expect(await place.post('/session', { code: codeOf(place.printed[0]?.[0] ?? '') })).toMatchObject({ status: 200 });
  });

  it('is offered another URL in the terminal if the last one cannot be used any more', async () => {
    const place = await WebPlace.open();
    place.server.newUrl();
    expect(await place.post('/session', {})).toMatchObject({ status: 401 });
    expect(place.printed).toEqual([]);
    await place.session();
    expect(await place.post('/session', {})).toMatchObject({ status: 401 });
    expect(await place.post('/session', {})).toMatchObject({ status: 401 });
    expect(place.printed.map(([, reason]) => reason)).toEqual(['wanted']);
  });

  it('ends with a logout', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const ended = await place.request('DELETE', '/session', headers);
    expect(ended).toMatchObject({ status: 204 });
    expect(ended.headers['set-cookie']).toEqual([expect.stringMatching(/^trunkline_\d+=; .*Max-Age=0$/)]);
    expect(await place.request('GET', '/tools', headers)).toMatchObject({ status: 401 });
  });

  it('ends after an hour without a request, and after twelve hours with requests', async () => {
    const place = await WebPlace.open();
    const unused = await place.session();
    const used = await place.session();
    for (let hours = 0.5; hours < 12; hours += 0.5) {
      place.clock.advance(0.5 * HOUR);
      expect(await place.request('GET', '/tools', used.headers)).toMatchObject({ status: 200 });
    }
    expect(await place.request('GET', '/tools', unused.headers)).toMatchObject({ status: 401 });
    place.clock.advance(0.5 * HOUR);
    expect(await place.request('GET', '/tools', used.headers)).toMatchObject({ status: 401 });
  });

  it('goes on while its stream is open, for twelve hours', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const stream = new StreamReader(await place.begin('GET', '/stream', headers));
    for (let hours = 0; hours < 11; hours += 1) {
      place.clock.advance(HOUR);
      // The stream has comments for all of the hour.
      for (let at = 0; at < 240; at += 1) expect(await stream.next()).toBeDefined();
    }
    expect(await place.request('GET', '/tools', headers)).toMatchObject({ status: 200 });
    place.clock.advance(HOUR);
    while ((await stream.next()) !== undefined);
    expect(await place.request('GET', '/tools', headers)).toMatchObject({ status: 401 });
    place.clock.advance(STREAM_LIMITS.reloadMs);
    expect(place.clock.pending).toBe(0);
  });

  it('ends for a ninth one if it was not used for the longest time', async () => {
    const place = await WebPlace.open();
    const sessions = [];
    for (let at = 0; at < SESSION_LIMITS.sessions; at += 1) sessions.push(await place.session());
    const [first, second] = sessions;
    await place.request('GET', '/tools', first?.headers);
    await place.session();
    expect(await place.request('GET', '/tools', first?.headers)).toMatchObject({ status: 200 });
    expect(await place.request('GET', '/tools', second?.headers)).toMatchObject({ status: 401 });
  });
});

describe('a path', () => {
  it.each([
    ...['/api', '/api//tools', '//tools', '/tools/', '/TOOLS', '/%74ools', '/tools%2f', '/x/../tools', '/..%2ftools'],
    ...['/%2e%2e/package.json', '/../package.json', '/page-abc.js.gz', '/page-abc.js/', '/index.html', '/__proto__'],
    ...['/session', '/favicon.ico', '/constructor', '/tools;x', '/tools#x', '*', 'http://127.0.0.1/tools'],
  ])('%s leads nowhere, and only a session learns that', async (path) => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    expect(await place.request('GET', path, place.own)).toMatchObject({ status: 401 });
    expect(await place.request('GET', path, headers)).toMatchObject({ status: 404 });
    expect(place.scripted.asked).toEqual([]);
  });

  it('is refused with members that it does not know, that are missing, or of another type', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    for (const path of [
      '/settings',
      '/settings?server=a&server=b',
      '/settings?server=a&x=1',
      '/tools?x=1',
      '/stream?x=1',
    ])
      expect(await place.request('GET', path, headers)).toMatchObject({ status: 400 });
    const bodies: [string, unknown][] = [
      ['/restart', {}],
      ['/restart', { server: 1 }],
      ['/restart', { server: 'a', extra: 1 }],
      ['/restart', JSON.parse('{"server":"a","__proto__":{}}')],
      ['/configure', { changes: [{ server: 'a', isDisabled: 'yes' }] }],
      ['/configure', { changes: [{ server: 'a', deny: [1] }] }],
      ['/configure', { changes: [{ server: 'a' }, { server: 'a', allow: null }] }],
      ['/configure', { changes: [{ server: 'a', extra: 1 }] }],
      ['/configure', { changes: ['a'] }],
      ['/configure', { server: 'a', deny: ['b'] }],
      ['/undo', {}],
      ['/approve', { server: 'a', tool: 'b' }],
      ['/restart', []],
      ['/restart', 'text'],
    ];
    for (const [path, body] of bodies) expect(await place.post(path, body, headers)).toMatchObject({ status: 400 });
    expect(place.scripted.asked).toEqual([]);
  });
});

describe('an action', () => {
  it('is done with a session, and answers what the source answers', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const body = { server: 'one', tool: 'read', hash: 'h' };
    const done = await place.post('/approve', body, headers);
    expect(JSON.parse(done.text)).toEqual({ request: 'POST /approve', values: body });
    const changed = await place.post('/configure', { changes: [{ server: 'one', allow: [], deny: ['a'] }] }, headers);
    expect(changed.status).toBe(200);
    const read = await place.request('GET', '/settings?server=a%20b', headers);
    expect(JSON.parse(read.text)).toEqual({ request: 'GET /settings', values: { server: 'a b' } });
  });

  it('needs a session', async () => {
    const place = await WebPlace.open();
    expect(await place.post('/restart', { server: 'one' })).toMatchObject({ status: 401 });
    expect(place.scripted.asked).toEqual([]);
  });

  it('needs a body of JSON in UTF-8, without compression', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const body = '{"server":"one"}';
    for (const sent of [
      { 'Content-Type': 'text/plain' },
      { 'Content-Type': 'application/x-www-form-urlencoded' },
      { 'Content-Type': 'application/json; charset=utf-16' },
      { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
    ])
      expect(await place.request('POST', '/restart', { ...headers, ...sent }, body)).toMatchObject({ status: 415 });
    const json = { ...headers, 'Content-Type': 'application/json' };
    expect(await place.request('POST', '/restart', json, '{"server":')).toMatchObject({ status: 400 });
    expect(await place.request('GET', '/restart', headers)).toMatchObject({ status: 404 });
    expect(await place.request('PUT', '/restart', json, body)).toMatchObject({ status: 404 });
    expect(place.scripted.asked).toEqual([]);
  });

  it('is refused with a body of more than 256 KiB, with and without its length', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const large = Buffer.alloc(256 * 1024 + 1, ' ');
    const json = { ...headers, 'Content-Type': 'application/json' };
    expect(await place.request('POST', '/restart', json, large)).toMatchObject({ status: 413 });
    const chunked = { ...json, 'Transfer-Encoding': 'chunked' };
    const lines = Object.entries({ ...chunked, Host: `127.0.0.1:${place.port}` }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    const body = `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`;
    const answer = await raw(place.port, `POST /restart HTTP/1.1\r\n${lines.join('\r\n')}\r\n${CLOSE}\r\n${body}`);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(place.scripted.asked).toEqual([]);
  });

  it('is refused in the server when the page is read-only', async () => {
    const place = await WebPlace.open({ isReadOnly: true });
    const { headers } = await place.session();
    for (const path of ['/restart', '/configure', '/undo', '/approve', '/login', '/logout', '/record', '/record/stop'])
      expect(await place.post(path, { server: 'one' }, headers)).toMatchObject({ status: 403 });
    expect(place.scripted.asked).toEqual([]);
    expect(await place.request('GET', '/tools', headers)).toMatchObject({ status: 200 });
    expect(await place.request('DELETE', '/session', headers)).toMatchObject({ status: 204 });
  });

  it('fails with the sentence of the source, and a bug without its text', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const refused = await place.post('/restart', { server: 'missing' }, headers);
    expect(refused).toMatchObject({ status: 404, text: '{"error":"There is no server \\"missing\\"."}' });
    const failed = await place.post('/restart', { server: 'broken' }, headers);
    expect(failed).toMatchObject({ status: 500, text: expect.not.stringContaining('hunter2') });
    expect(place.faults).toEqual([new Error('the token hunter2 is wrong')]);
  });
});

describe('an answer', () => {
  const CSP =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

  it('protects the page, and is not stored if it has data', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const protecting = {
      'content-security-policy': CSP,
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    };
    for (const path of ['/', '/page-abc.js', '/tools', '/nothing', '/recording?file=mine.jsonl'])
      expect((await place.request('GET', path, headers)).headers).toMatchObject(protecting);
    const stream = await place.begin('GET', '/stream', headers);
    expect(stream.headers).toMatchObject({ ...protecting, 'cache-control': 'no-store' });
    stream.destroy();
    for (const path of ['/tools', '/nothing', '/recording?file=mine.jsonl'])
      expect((await place.request('GET', path, headers)).headers['cache-control']).toBe('no-store');
  });

  it('with a file may be kept, compressed, and needs no session', async () => {
    const place = await WebPlace.open();
    const plain = await place.request('GET', '/page-abc.js');
    expect(plain).toMatchObject({ status: 200, text: 'export {};' });
    expect(plain.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
    });
    const packed = await place.request('GET', '/page-def.css', { 'Accept-Encoding': 'gzip, br' });
    expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
    expect((await place.request('GET', '/')).headers['cache-control']).toBe('no-cache');
  });

  it('with a recording has only one that the page made', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const recording = await place.request('GET', '/recording?file=mine.jsonl', headers);
    expect(recording).toMatchObject({ status: 200, text: '{"a":1}\n{"a":2}\n' });
    expect(recording.headers['content-disposition']).toBe('attachment');
    const other = await place.request('GET', '/recording?file=..%2Fsecrets', headers);
    expect(other).toMatchObject({ status: 404, text: '{"error":"There is no such recording."}' });
  });
});

describe('a connection', () => {
  it('is closed if its headers or its body come too slowly', async () => {
    const place = await WebPlace.open({ limits: { headersMs: 100, requestMs: 200, checkMs: 20 } });
    expect(await raw(place.port, 'GET / HTTP/1.1\r\nHost:')).toMatch(/^HTTP\/1\.1 408 /);
    const json = `Origin: http://127.0.0.1:${place.port}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n`;
    const slow = await raw(place.port, `POST /session HTTP/1.1\r\nHost: 127.0.0.1:${place.port}\r\n${json}\r\n{`);
    expect(slow).toMatch(/^HTTP\/1\.1 408 /);
    expect(place.faults).toEqual([]);
  });

  it('is closed beyond the limit, and headers that are too large are refused', async () => {
    const place = await WebPlace.open({ limits: { connections: 1 } });
    const large = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${place.port}\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`;
    expect(await raw(place.port, large)).toMatch(/^HTTP\/1\.1 431 /);
    const first = connect(place.port, '127.0.0.1');
    await once(first, 'connect');
    expect(await raw(place.port, '')).toBe('');
    first.destroy();
  });
});

const CLOSE = 'Connection: close\r\n';

/** Sends text on a connection of its own, and resolves with everything that comes back. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(text);
  return await readToEnd(socket);
}
