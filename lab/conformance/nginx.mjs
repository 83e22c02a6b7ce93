// Runs the nginx of PATH in a folder of its own.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const SERVES_WITHIN_MS = 5_000;
const POLL_MS = 50;

/** `own` is the inside of its `http` block, with a server at `host`. Resolves when a gateway answers through it. */
export async function startNginx(host, own) {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-nginx-'));
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  for (const kind of kinds) mkdirSync(join(folder, kind));
  const places = kinds.map((kind) => `${kind}_temp_path ${join(folder, kind)};`).join('\n');
  // The processes of an nginx of root run as another user, who could not use the folder.
  const user = process.getuid?.() === 0 ? 'user root;\n' : '';
  const config = join(folder, 'nginx.conf');
  writeFileSync(
    config,
    `${user}daemon off;\npid ${join(folder, 'nginx.pid')};\nerror_log stderr;\nevents { worker_connections 16384; }\nhttp {\naccess_log off;\n${places}\n${own}}\n`,
  );
  // Its messages are about gateways that the caller has ended, or follow with the error below.
  const child = spawn('nginx', ['-p', folder, '-e', 'stderr', '-c', config], { stdio: ['ignore', 'ignore', 'pipe'] });
  const abandon = () => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', abandon);
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output = (output + text).slice(-4_000);
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const close = async () => {
    child.kill('SIGTERM');
    await exited;
    process.off('exit', abandon);
    rmSync(folder, { recursive: true, force: true });
  };
  const deadline = performance.now() + SERVES_WITHIN_MS;
  while (performance.now() < deadline) {
    const response = await fetch(`http://${host}/healthz`).catch(() => undefined);
    await response?.text();
    if (response?.ok) return { close };
    await sleep(POLL_MS);
  }
  await close();
  throw new Error(`nginx does not serve:\n${output}`);
}
