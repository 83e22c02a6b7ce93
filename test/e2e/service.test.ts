import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { CLI } from '../cli/cli-run.js';
import { Place, RawHttpClient } from '../support/http-place.js';
import { dataIn } from '../support/platform.js';

const SYSTEMD = join(import.meta.dirname, '../../deploy/systemd');
const STATE = '/var/lib/trunkline';

it('the service of systemd serves a token that root has added, and writes below its state folder only', async () => {
  const place = new Place();
  onTestFinished(() => place.dispose());
  // The folders of the system are those of the test.
  const here = (text: string) => text.replaceAll(/\/(?=(?:etc|var|run)\/)/g, `${place.folder}/`);
  const put = (path: string, text: string) => {
    mkdirSync(dirname(here(path)), { recursive: true });
    writeFileSync(here(path), text, { mode: 0o600 });
  };
  const unit = readFileSync(join(SYSTEMD, 'trunkline.service'), 'utf8');
  const [, exec = ''] = /^ExecStart=trunkline (.*)$/m.exec(unit) ?? [];
  const variables = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = '']) => here(line).split(' '));
  const env = Object.fromEntries(variables.map((each) => each.split('=') as [string, string]));
  put(
    '/etc/trunkline/trunkline.yaml',
    here(readFileSync(join(SYSTEMD, 'trunkline.yaml'), 'utf8')).replace('everything:', '$&\n    disabled: true'),
  );
  put('/run/credentials/trunkline.service/seal-key', 'k'.repeat(44));
  mkdirSync(here(STATE), { recursive: true });
  // In the home folder of the account, as without the variable.
  const hubs = here(`${STATE}/.local/state/trunkline/run`);
  const run = async (words: string) => {
    const running = place.start(words.split(' '), CLI, { ...env, ...dataIn(place.file('root')) });
    running.process.stdin.end();
    return await running.finished;
  };
  const added = await run(`--config ${env.TRUNKLINE_CONFIG} token add ada`);
  expect(added).toMatchObject({ code: 0 });

  const before = filesIn(place.folder);
  const gateway = place.start(exec.replace(':7411', ':0').split(' '), CLI, { ...env, TRUNKLINE_HUB_DIR: hubs });
  await gateway.untilListening();
  const client = new RawHttpClient(gateway.url, added.stdout.trim());
  await client.initialize();
  expect((await client.request('tools/list')).result.tools).toHaveLength(1);
  await client.end();
  gateway.process.kill('SIGTERM');
  expect((await gateway.finished).code).toBe(0);
  const written = filesIn(place.folder).filter((file) => !before.includes(file));
  expect(written.length).toBeGreaterThan(0);
  expect(written.filter((file) => !file.startsWith(here(STATE)))).toEqual([]);
});

/** The files below a folder, each with the time of its last change. */
function filesIn(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
  return names.flatMap((file) => {
    const stats = statSync(file, { throwIfNoEntry: false });
    return stats?.isFile() ? [`${file} ${stats.mtimeMs}`] : [];
  });
}
