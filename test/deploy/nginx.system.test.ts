// The whole files of nginx in `deploy`: nginx accepts them, and a client gets its answers through the one with TLS.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { freePort } from '../support/free-port.js';
import { INITIALIZE, Place } from '../support/http-place.js';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const read = (file: string) => readFileSync(join(DEPLOY, file), 'utf8');
/** The directives, each on one line and without indentation and comments. */
const lines = (text: string) => text.split('\n').flatMap((line) => /^\s*([^#\s].*?)\s*$/.exec(line)?.[1] ?? []);

/** A folder for nginx with the file, whose paths, names and ports are those of the test. Returns the arguments of nginx. */
function prepare(text: string, replace: Readonly<Record<string, string>> = {}): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-nginx-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  mkdirSync(join(folder, 'log'));
  const { certFile, keyFile } = createCertificate(folder);
  const temporary = kinds.map((kind) => `${kind}_temp_path ${join(folder, kind)};`).join(' ');
  const changes = {
    'http {': `pid ${join(folder, 'pid')}; daemon off; http { ${temporary}`,
    '/etc/ssl/gateway.example.pem': certFile,
    '/etc/ssl/gateway.example.key': keyFile,
    '/var/log/nginx/': join(folder, 'log/'),
    // nginx cannot open a pipe of Node again.
    '/dev/stdout': join(folder, 'log/stdout'),
    // The processes of an nginx of root run as another user, who could not use the folder.
    'user www-data;': process.getuid?.() === 0 ? 'user root;' : '',
    ...replace,
  };
  const own = Object.entries(changes).reduce((before, [from, to]) => before.replaceAll(from, to), text);
  writeFileSync(join(folder, 'nginx.conf'), own);
  return ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')];
}

describe('a whole file of nginx', () => {
  it.each([
    ['nginx/nginx.conf', {}],
    // The names of the gateways are those of Docker.
    ['compose/nginx.conf', { 'gateway-1:': '127.0.0.1:', 'gateway-2:': '127.0.0.2:', 'gateway-3:': '127.0.0.3:' }],
  ])('is accepted by nginx: %s', (file, replace) => {
    const { status, stderr } = spawnSync('nginx', [...prepare(read(file), replace), '-t'], { encoding: 'utf8' });
    expect([status, stderr.replace(/^nginx: (?:the configuration|configuration) file .*\n/gm, '')]).toEqual([0, '']);
  });

  it('has the lines that docs/remote.md explains', () => {
    const page = readFileSync(join(DEPLOY, '../docs/remote.md'), 'utf8');
    const [, shown = ''] = /```nginx\n([\s\S]*?)```/.exec(page) ?? [];
    expect(lines(shown).length).toBeGreaterThan(10);
    expect(lines(read('nginx/nginx.conf'))).toEqual(expect.arrayContaining(lines(shown)));
  });

  it('leads clients to the gateway with TLS, and from http to https', async () => {
    const place = new Place();
    onTestFinished(() => place.dispose());
    const [port, plain] = [await freePort(), await freePort()];
    const publicUrl = `https://localhost:${port}`;
    const gateway = await place.serve({ gateway: { http: { publicUrl } } });
    const args = prepare(read('nginx/nginx.conf'), {
      '127.0.0.1:7411': new URL(gateway.url).host,
      'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
      'listen 80': `listen 127.0.0.1:${plain}`,
    });
    const nginx = spawn('nginx', args, { stdio: 'ignore' });
    const ended = new Promise((resolve) => nginx.once('exit', resolve));
    onTestFinished(async () => {
      nginx.kill('SIGTERM');
      await ended;
    });
    const url = `${publicUrl}/mcp`;
    await expect.poll(() => statusOf(url).catch(() => 0)).toBe(401);
    expect(await statusOf(url, { authorization: `Bearer ${place.token}` })).toBe(200);
    const moved = await fetch(`http://localhost:${plain}/mcp`, { method: 'POST', redirect: 'manual' });
    expect([moved.status, moved.headers.get('location')]).toEqual([308, 'https://localhost/mcp']);
  });
});

/** The status of the answer to `initialize`. The certificate is one of the test. */
function statusOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<number | undefined> {
  const types = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method: 'POST', agent: false, rejectUnauthorized: false, headers: { ...types, ...headers } },
      (response) => {
        response.resume().once('end', () => resolve(response.statusCode));
      },
    );
    sent.once('error', reject);
    sent.end(JSON.stringify(INITIALIZE));
  });
}
