import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { until } from '../support/processes.js';

const BROWSER = fileURLToPath(new URL('../fixtures/cli/browser.mjs', import.meta.url));

let place: Workplace;
let ends: (() => Promise<unknown>)[];
beforeEach(() => {
  place = new Workplace();
  place.configure({});
  place.env.BROWSER_LOG = join(place.folder, 'opened');
  Object.assign(place.env, {
    TRUNKLINE_HUB_DIR: join(place.folder, 'hub'),
    BROWSER: `"${process.execPath}" "${BROWSER}"`,
  });
  ends = [];
});
afterEach(async () => {
  for (const end of ends) await end();
  place.dispose();
});

/** Starts the command. `lines` are the URLs that it prints. */
async function web(...args: string[]) {
  const running = place.start(['web', ...args]);
  ends.push(() => {
    running.process.kill('SIGKILL');
    return running.finished;
  });
  const lines = createInterface({ input: running.process.stdout })[Symbol.asyncIterator]();
  const url = async () => {
    const { value, done } = await lines.next();
    if (done === true) expect(await running.finished).toMatchObject({ stdout: expect.stringContaining('http') });
    return new URL(value);
  };
  return { ...running, url, first: await url() };
}

async function open({ origin }: URL, code: string) {
  const headers = { Origin: origin, 'Content-Type': 'application/json' };
  return await fetch(`${origin}/session`, { method: 'POST', headers, body: JSON.stringify({ code }) });
}

describe('trunkline web', () => {
  it('prints nothing but a URL on stdout, which opens the page and one session, also without a hub', async () => {
    const { first, process: command, finished } = await web('--no-open', '-vv');
    expect(first.href).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#[\w-]{43}$/);
    const page = await (await fetch(first.origin)).text();
    const [, script = ''] = /src="(\/page-[\w-]+\.js)"/.exec(page) ?? [];
    expect((await fetch(first.origin + script)).status).toBe(200);
    const opened = await open(first, first.hash.slice(1));
    const key = await opened.text();
    const [cookie = ''] = opened.headers.getSetCookie()[0]?.split(';') ?? [];
    const own = { Origin: first.origin, Cookie: cookie, 'X-Trunkline-Key': key };
    const stream = await fetch(`${first.origin}/stream`, { headers: own });
    let text = '';
    for await (const piece of stream.body ?? []) {
      text += Buffer.from(piece).toString();
      if (text.includes('"kind":"state"')) break;
    }
    expect(text).toMatch(/^data: \{"kind":"hello",.*\n\n(?:.*\n)*data: \{"kind":"state",.*"kind":"none"/);
    command.kill('SIGTERM');
    const { stdout, stderr } = await finished;
    expect(stdout).toBe(`${first.href}\n`);
    for (const secret of [first.hash.slice(1), key, cookie.split('=')[1] ?? '']) expect(stderr).not.toContain(secret);
    expect(existsSync(join(place.folder, 'opened'))).toBe(false);
  });

  it('opens the browser with a file that only the user can read, and removes it when the page is open', async () => {
    const log = join(place.folder, 'opened');
    const { first } = await web();
    const opened = () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : []);
    await until('the browser has the page', () => opened().length === 2);
    const [argument = '', page = ''] = opened();
    const code = first.hash.slice(1);
    expect([argument, page]).toEqual([expect.stringMatching(/^file:/), expect.stringContaining(`#${code}`)]);
    expect(argument).not.toContain(code);
    const file = fileURLToPath(argument);
    expect([file, dirname(file)].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o700]);
    expect((await open(first, code)).status).toBe(200);
    expect(existsSync(dirname(file))).toBe(false);
  });

  it('removes the file also when a signal ends the command before the page is open', async () => {
    const log = join(place.folder, 'opened');
    const { process: command, finished } = await web();
    await until('the browser has the file', () => existsSync(log) && readFileSync(log, 'utf8').includes('\n'));
    const [file = ''] = readFileSync(log, 'utf8').split('\n');
    command.kill('SIGINT');
    await finished;
    expect([command.signalCode, existsSync(dirname(fileURLToPath(file)))]).toEqual(['SIGINT', false]);
  });

  it('prints another URL after six wrong codes, with the reason', async () => {
    const { first, url, process: command, finished } = await web('--no-open');
    for (let at = 0; at < 6; at += 1) expect((await open(first, 'wrong')).status).toBe(401);
    const second = await url();
    expect((await open(first, first.hash.slice(1))).status).toBe(401);
    expect((await open(second, second.hash.slice(1))).status).toBe(200);
    command.kill('SIGTERM');
    const { stderr } = await finished;
    expect(stderr).toContain('six wrong codes');
  });

  it('says that no gateway runs, and how one starts', async () => {
    const { process: command } = await web('--no-open');
    let told = '';
    command.stderr.on('data', (bytes) => {
      told += bytes;
    });
    await until('it says so', () => told.includes('without a reload.\n'));
    expect(told).toMatch(/No gateway runs for .*trunkline\.yaml\. The next client that connects starts one;/);
  });

  it('uses the port that it is told, and says so if it cannot', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    const refused = await place.run(['web', '--no-open', '--port', String(port)]);
    expect(refused).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(`port ${port}: another program`),
    });
    taken.close();
    await once(taken, 'close');
    expect((await web('--no-open', '--port', String(port))).first.port).toBe(String(port));
    expect(await place.run(['web', '--no-open', '--port=65536'])).toMatchObject({ code: 2, stdout: '' });
  });

  it('refuses actions with --read-only', async () => {
    const { first } = await web('--no-open', '--read-only');
    const opened = await open(first, first.hash.slice(1));
    const [Cookie = ''] = opened.headers.getSetCookie()[0]?.split(';') ?? [];
    const headers = { Origin: first.origin, Cookie, 'X-Trunkline-Key': await opened.text() };
    const json = { ...headers, 'Content-Type': 'application/json' };
    const refused = await fetch(`${first.origin}/restart`, { method: 'POST', headers: json, body: '{"server":"a"}' });
    expect(refused.status).toBe(403);
  });
});
