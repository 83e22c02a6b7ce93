// The commands that the documents show for containers, run as they stand in a shell, with Docker, kubectl and the clients replaced by
// programs that write down their arguments. Then what the commands have made is used.

import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { readCompose, readImage } from '../../lab/cluster/stack.mjs';
import { readServing, readTransports } from '../../src/cli/commands/serve/serve-options.js';
import { checkFile } from '../../src/config/file/check-file.js';
import { MachineTokens } from '../../src/downstream/users/machine-tokens.js';
import { readSealKeys } from '../../src/state/seal.js';
import { IS_WINDOWS } from '../support/platform.js';
import { sha256 } from '../support/sha256.js';

const ROOT = join(import.meta.dirname, '../..');
/** Files that the group can change are usual on Ubuntu. */
const UMASK = 'umask 002';

/** What `openssl rand -hex 32` does, because not every machine has it. */
const RANDOM = 'console.log(require("node:crypto").randomBytes(+process.argv[2]).toString(process.argv[1]))';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-commands-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin/openssl'), `#!/bin/sh\nexec node -e '${RANDOM}' "\${2#-}" "$3"\n`, { mode: 0o755 });
  for (const program of ['docker', 'kubectl', 'claude'])
    writeFileSync(
      join(folder, 'bin', program),
      `#!/bin/sh\n(echo ${program}; printf '%s\\n' "$@"; echo) >> ${folder}/ran\n`,
      {
        mode: 0o755,
      },
    );
});

/** Runs the block of commands of a page that begins with this line, in a folder. Returns the words of each replaced program. */
function runBlock(page: string, first: string, within: string): string[][] {
  const text = readFileSync(join(ROOT, 'docs', page), 'utf8');
  const blocks = [...text.matchAll(/^( *)```sh\n([\s\S]*?)^ *```$/gm)];
  const [, indent = '', block = ''] = blocks.find(([, , lines = '']) => lines.trimStart().startsWith(first)) ?? [];
  expect(block).not.toBe('');
  const commands = block.replaceAll(new RegExp(`^${indent}`, 'gm'), '');
  const env = { ...process.env, HOME: folder, PATH: `${join(folder, 'bin')}:${process.env.PATH}` };
  execFileSync('sh', ['-euc', `${UMASK}\n${commands}`], { cwd: within, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ran = readFileSync(join(folder, 'ran'), 'utf8');
  return ran
    .trimEnd()
    .split('\n\n')
    .map((words) => words.split('\n'));
}

function machineOf(file: string, token: string) {
  return new MachineTokens({ file, onFault: () => {} }).find(sha256(token), 0);
}

describe.skipIf(IS_WINDOWS)('the commands of docs/cluster.md', () => {
  it('make a token for Compose that the gateways accept, also in a clone whose files the group can change', () => {
    const compose = join(folder, 'compose');
    cpSync(join(ROOT, 'deploy/compose'), compose, { recursive: true });
    chmodSync(join(compose, 'config/tokens'), 0o664);
    const ran = runBlock('cluster.md', 'docker compose build', compose);
    expect(ran.slice(0, 2)).toEqual([
      ['docker', 'compose', 'build'],
      ['docker', 'compose', 'up', '-d', '--wait'],
    ]);
    const [, token = ''] = /Bearer (\S+)$/.exec(ran.at(-1)?.at(-1) ?? '') ?? [];
    expect(machineOf(join(compose, 'config/tokens'), token)).toMatchObject({ name: 'ada' });
    expect(ran.at(-1)).toContain(
      `${checkFile(readFileSync(join(compose, 'config/trunkline.yaml'), 'utf8'), '').gateway.http.publicUrl}/mcp`,
    );
    // `--wait` waits for the end of a service only if another one needs it.
    const services: Record<string, { restart?: string; depends_on?: object }> = readCompose();
    const once = Object.keys(services).filter((name) => services[name]?.restart === 'no');
    const needed = JSON.stringify(Object.values(services).map(({ depends_on }) => depends_on));
    for (const name of once) expect(needed).toContain(`"${name}":{"condition":"service_completed_successfully"}`);
  });

  it('make a key and a token for Kubernetes that the gateways accept', async () => {
    const ran = runBlock('cluster.md', '(umask 077; openssl rand -base64 32 > seal-key)', folder);
    expect(ran).toEqual([
      ['kubectl', 'apply', '-f', '../base/namespace.yaml'],
      [
        'kubectl',
        '-n',
        'trunkline',
        'create',
        'secret',
        'generic',
        'trunkline-keys',
        '--from-file=seal-key',
        '--from-file=tokens',
      ],
      ['kubectl', 'apply', '-k', 'mine'],
    ]);
    expect(await readSealKeys(join(folder, 'seal-key'))).toHaveLength(1);
    // The volume has other modes.
    chmodSync(join(folder, 'tokens'), 0o440);
    expect(readFileSync(join(folder, 'tokens'), 'utf8')).toMatch(/^ada [0-9a-f]{64}\n$/);
  });
});

describe.skipIf(IS_WINDOWS)('the commands of docs/http.md for a container', () => {
  it('start one gateway with the paths, the port and the times of the image and of the gateway', () => {
    symlinkSync(join(ROOT, 'deploy'), join(folder, 'deploy'));
    const [build, run = [], exec] = runBlock('http.md', 'docker build', folder);
    expect(build).toEqual(['docker', 'build', '-f', 'deploy/Dockerfile', '-t', 'trunkline', '.']);
    expect(exec).toEqual(['docker', 'exec', 'trunkline', 'trunkline', 'token']);
    const image = run.indexOf('trunkline', run.indexOf('--name') + 2);
    const options = run.slice(2, image);
    const valuesOf = (name: string) => options.flatMap((each, at) => (each === name ? [options[at + 1] ?? ''] : []));

    const { env, links } = readImage();
    const config = links.find(({ link }) => link === env.TRUNKLINE_CONFIG)?.target ?? '';
    const [[from = '', ...mounted] = [], data] = valuesOf('-v').map((each) => each.split(':'));
    expect([mounted, data]).toEqual([
      [dirname(config), 'ro'],
      ['trunkline-data', env.XDG_DATA_HOME],
    ]);
    const { servers, gateway } = checkFile(readFileSync(join(from, 'trunkline.yaml'), 'utf8'), 'trunkline.yaml');
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'deploy/servers/package.json'), 'utf8'));
    expect(servers.map(({ package: used }) => used)).toEqual(
      Object.entries(dependencies)
        .filter(([name]) => name.endsWith('everything'))
        .map(([name, version]) => `${name}@${version}`),
    );
    expect(Number(valuesOf('--stop-timeout')[0])).toBeGreaterThanOrEqual(gateway.drainMs / 1_000 + 10);

    const line = readServing(run.slice(image + 1));
    const { http } = readTransports(line?.values ?? {});
    const [published = ''] = valuesOf('-p');
    expect(published).toBe(`127.0.0.1:${http?.port}:${http?.port}`);
    expect(http).toMatchObject({ host: '0.0.0.0', noAuth: false, allowedHosts: [`localhost:${http?.port}`] });
  });
});
