import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { CLI, type Finished, Workplace } from '../cli/cli-run.js';
import { GatewayProcess } from '../support/gateway-process.js';
import { HubPlace } from '../support/hub-place.js';

const modules = fileURLToPath(new URL('../../node_modules/@modelcontextprotocol', import.meta.url));
const demoFolder = fileURLToPath(new URL('../../scripts/demo', import.meta.url));
const CANARY = 'canary-5b1f\\"q7';

let gateway: GatewayProcess | undefined;
let place: Workplace | undefined;
let hubPlace: HubPlace | undefined;
afterEach(async () => {
  await gateway?.dispose();
  gateway = undefined;
  place?.dispose();
  place = undefined;
  await hubPlace?.dispose();
  hubPlace = undefined;
});

/** The servers of the demo. */
const demo = {
  everything: { command: 'node', args: [`${modules}/server-everything/dist/index.js`], env: { API_KEY: CANARY } },
  files: { command: 'node', args: [`${modules}/server-filesystem/dist/index.js`, 'files'], cwd: demoFolder },
};

describe('a recorded session of the demo', () => {
  it('replays equal, with its servers and with stand-ins for them, and has none of the secrets', async () => {
    gateway = await GatewayProcess.start({ servers: demo, args: ['--record', 'RUN/r/session.jsonl'] });
    await gateway.request('tools/list');
    await gateway.call('everything__get-sum', { a: 20, b: 22 });
    await gateway.call('files__read_text_file', { path: 'hello.txt' });
    await gateway.call('everything__echo', { message: JSON.stringify({ key: CANARY }) });
    await gateway.request('tools/call', {
      ...{ name: 'everything__trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } },
      _meta: { progressToken: 'p' },
    });
    await gateway.end();
    place = new Workplace();
    const folder = join(gateway.folder, 'r');
    const file = join(folder, 'session.jsonl');
    expect(readdirSync(folder)).toEqual(['session.jsonl']);
    expect(readFileSync(file, 'utf8')).not.toContain('canary');

    const equal: Partial<Finished> = { code: 0, stdout: '6 answers compared, 0 different.\n' };
    place.write('trunkline.yaml', JSON.stringify({ servers: demo }));
    expect(await place.run(['replay', file, '--as-client'])).toMatchObject(equal);
    const standIn = (key: string) => ({ command: 'node', args: [CLI, 'replay', file, '--as-server', key] });
    const standIns = { everything: standIn('everything'), files: standIn('files') };
    place.write('trunkline.yaml', JSON.stringify({ servers: standIns }));
    const again = await place.run(['replay', file, '--as-client', '--json']);
    expect(JSON.parse(again.stdout)).toEqual({ compared: 6, skipped: 0, findings: [] });

    const calls = (text: string) => ['call', 'everything__echo', JSON.stringify({ message: text })];
    const { code, stderr } = await place.run(calls('never said'));
    // The stand-in refuses arguments that are not in the recording.
    expect(code).toBe(2);
    expect(stderr).toContain('The recording of "everything" has no answer to tools/call');
    const { stdout } = await place.run(['inspect', file, '--server', 'files']);
    expect(stdout).toMatch(/→ server files gen 1: tools\/call \d+ \{"name":"read_text_file"/);
    expect(stdout).not.toContain('get-sum');
    const asIs = await place.run(['inspect', file, '--json']);
    expect(asIs.stdout).toBe(readFileSync(file, 'utf8'));
  });
});

describe('the call log of a gateway without a setting', () => {
  it('has a line for each call, without its arguments and its result, which only the owner can read', async () => {
    gateway = await GatewayProcess.start({ servers: { lab: {} } });
    await gateway.call('lab__echo', { text: CANARY });
    await gateway.end();
    const file = join(gateway.folder, 'data', 'trunkline', 'calls.jsonl');
    const [line = '', ...others] = readFileSync(file, 'utf8').split('\n');
    expect(JSON.parse(line)).toMatchObject({ client: 'test/1', server: 'lab', tool: 'lab__echo', outcome: 'ok' });
    expect(Object.keys(JSON.parse(line))).not.toEqual(expect.arrayContaining(['arguments', 'result']));
    expect(line).not.toContain('canary');
    expect(others).toEqual(['']);
    if (process.platform !== 'win32') expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('does not keep a gateway from serving where nothing can be written, and says so once', async () => {
    // A folder below a file can be made by nobody, not even by root.
    gateway = await GatewayProcess.start({
      servers: { lab: {} },
      env: { XDG_DATA_HOME: fileURLToPath(import.meta.url) },
    });
    const answered = await gateway.call('lab__echo', { text: 'x' });
    expect(answered.message.result.isError).toBeUndefined();
    await gateway.call('lab__echo', { text: 'y' });
    await gateway.end();
    expect(gateway.stderr.match(/the call log cannot be written; calls are missing in it/g)).toHaveLength(1);
  });
});

describe('the running hub', () => {
  it('is recorded and watched from now on, until Ctrl-C, and its calls are in the log', async () => {
    hubPlace = new HubPlace({ servers: { lab: {} }, gateway: { callLog: 'full' } });
    const client = await hubPlace.client();
    await client.call('lab__echo', { before: 1 });
    place = new Workplace();
    Object.assign(place.env, {
      TRUNKLINE_HUB_DIR: hubPlace.hubs,
      TRUNKLINE_CONFIG: join(hubPlace.folder, 'trunkline.yaml'),
      XDG_DATA_HOME: join(hubPlace.folder, 'data'),
    });
    const options = ['--config', join(hubPlace.folder, 'trunkline.yaml')];
    const misspelled = await place.run(['inspect', '--server', 'labb', ...options]);
    expect(misspelled).toEqual({
      ...{ code: 1, stdout: '', stderr: 'trunkline: There is no server "labb". Did you mean "lab"?\n' },
    });
    const recording = place.start(['record', '-o', 'live.jsonl', '--json', ...options]);
    const watching = place.start(['inspect', '--server', 'lab', ...options]);
    await Promise.all([
      place.says(recording.process, 'Recording all messages'),
      place.says(watching.process, 'The messages of the hub (pid '),
    ]);
    const shown = new Promise<string>((resolve) => {
      let text = '';
      watching.process.stdout.on('data', (chunk: Buffer) => {
        text += chunk;
        if (text.includes('answer')) resolve(text);
      });
    });
    await client.call('lab__echo', { during: 1 });
    expect(await shown).toMatch(/→ server lab gen 1: tools\/call \d+ \{"name":"echo","arguments":\{"during":1\}\}/);
    watching.process.kill('SIGINT');
    recording.process.kill('SIGINT');
    const { stdout: counts } = await recording.finished;
    expect(JSON.parse(counts)).toEqual({
      ...{ file: join(place.folder, 'live.jsonl'), written: 4, dropped: 0, fault: null },
    });
    await watching.finished;
    const recorded = readFileSync(join(place.folder, 'live.jsonl'), 'utf8');
    expect(recorded.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).dir]))).toEqual([
      ...[undefined, 'c>g', 'g>s', 's>g', 'g>c'],
    ]);
    expect(recorded).not.toContain('before');
    const run = place.run.bind(place);
    const calls = async () => {
      const { stdout } = await run(['activity', '--json', '--server', 'lab', ...options]);
      return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    };
    // The lines of some calls are written together.
    await expect.poll(calls).toMatchObject([
      { tool: 'lab__echo', outcome: 'ok', client: 'test/1', arguments: '{"before":1}', gen: 1 },
      { tool: 'lab__echo', arguments: '{"during":1}' },
    ]);
  });
});
