// The facts and actions behind the page, with the real hub of a client.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { createPageSource } from '../../src/cli/commands/web/hub-source.js';
import { folderOfHub } from '../../src/hub/attach/attach.js';
import { claimSuccessor, hubFiles } from '../../src/hub/hub-folder.js';
import type { Frame, HubState, Need } from '../../src/web/server/contract.js';
import type { PageSource } from '../../src/web/server/page-source.js';
import { startProtected } from '../fixtures/servers/protected.mjs';
import { listening, playHub } from '../hub/forms.js';
import { CLI, type GatewayProcess, LAB } from '../support/gateway-process.js';
import { HubPlace, WITH_HUB } from '../support/hub-place.js';
import { until } from '../support/processes.js';

const BROWSER = fileURLToPath(new URL('../fixtures/cli/browser.mjs', import.meta.url));

type State = Extract<Frame, { readonly kind: 'state' }>;

/** A place with a source, and the frames that one page gets. */
class Page {
  readonly place: HubPlace;
  readonly frames: Frame[] = [];
  source!: PageSource;
  close = () => {};

  constructor(place: HubPlace) {
    this.place = place;
  }

  static async open(servers: Record<string, Record<string, unknown>>): Promise<Page> {
    const page = new Page(new HubPlace({ servers }));
    const { place } = page;
    onTestFinished(async () => {
      page.close();
      await place.dispose();
    });
    // The client and this process have to find the same hub.
    Object.assign(process.env, WITH_HUB);
    Object.assign(process.env, { TRUNKLINE_HUB_DIR: place.hubs, XDG_DATA_HOME: join(place.folder, 'data') });
    writeFileSync(
      page.file,
      JSON.stringify({ servers: { one: { command: 'node', args: [LAB, `run=${place.folder}`] } } }),
    );
    page.source = await createPageSource({ config: page.file, verbosity: 0, logFile: undefined }, false);
    page.follow();
    return page;
  }

  get file(): string {
    return join(this.place.folder, 'trunkline.yaml');
  }

  follow(): void {
    this.close = this.source.follow((frame) => void this.frames.push(frame));
  }

  get state(): State | undefined {
    return this.frames.findLast((frame): frame is State => frame.kind === 'state');
  }

  async untilHub<Kind extends HubState['kind']>(
    kind: Kind,
    isIt: (hub: Extract<HubState, { kind: Kind }>) => boolean = () => true,
  ) {
    const found = () => {
      const hub = this.state?.hub;
      return hub?.kind === kind && isIt(hub as Extract<HubState, { kind: Kind }>) ? hub : undefined;
    };
    await until(`the hub is ${kind}: ${JSON.stringify(this.state)?.slice(0, 300)}`, () => found() !== undefined);
    return found() as Extract<HubState, { kind: Kind }>;
  }

  /** Runs a command for the configuration. */
  async run(args: readonly string[]): Promise<{ code: number; stdout: string }> {
    const child = spawn(process.execPath, [CLI, ...args, '--config', this.file], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const stdout = text(child.stdout);
    const [code] = await once(child, 'exit');
    return { code, stdout: await stdout };
  }

  async untilNeed(isIt: (need: Need) => boolean): Promise<Need> {
    await until(`a need: ${JSON.stringify(this.state?.needs)}`, () => this.state?.needs.some(isIt) === true);
    return this.state?.needs.find(isIt) as Need;
  }
}

const ONE = { one: { sharing: 'all' } };

async function withClient(servers: Record<string, Record<string, unknown>> = ONE): Promise<[Page, GatewayProcess]> {
  const page = await Page.open(servers);
  const client = await page.place.client();
  await page.untilHub('running', ({ report }) => report.servers.every(({ state }) => state === 'ready'));
  return [page, client];
}

it('F290: says that no hub runs and what starts one, and follows the hub when it starts, is killed, and starts again', async () => {
  const page = await Page.open(ONE);
  const none = await page.untilHub('none');
  expect(page.frames[0]).toMatchObject({ kind: 'hello', isReadOnly: false });
  expect(none).toMatchObject({
    because: 'No hub runs.',
    fault: null,
    servers: [{ server: 'one', runs: 'node', isDisabled: false }],
  });
  expect(none.remedy).toContain('The next client that connects starts one');
  const client = await page.place.client();
  const { hub, report } = await page.untilHub('running', ({ report }) => report.servers[0]?.state === 'ready');
  expect(hub).toMatchObject({ pid: page.place.hubPid, clients: [{ name: 'test', version: '1', view: null }] });
  expect(report.hub?.clients).toBe(1);
  process.kill(hub.pid, 'SIGKILL');
  const killed = `The hub (pid ${hub.pid}) was killed or has crashed`;
  // Its client may have started the next one already.
  const isNamed = (frame: Frame) =>
    frame.kind === 'state' && frame.hub.kind === 'none' && frame.hub.because.includes(killed);
  await until('the end is named', () => page.frames.some(isNamed));
  await client.call('one__echo');
  const { hub: next } = await page.untilHub(
    'running',
    ({ hub: { number }, report }) => number > hub.number && report.servers[0]?.state === 'ready',
  );
  expect(next.number).toBe(hub.number + 1);
});

it('F290: follows the hub when it moves, and shows the totals of `trunkline status`', async () => {
  const [page, client] = await withClient();
  await client.call('one__echo');
  const { hub } = await page.untilHub('running', ({ report }) => report.servers[0]?.calls === 1);
  const { code, stdout } = await page.run(['hub', 'restart', '--json']);
  expect({ code, result: JSON.parse(stdout).result }).toEqual({ code: 0, result: 'replaced' });
  const next = await page.untilHub(
    'running',
    ({ hub: { number }, report }) => number > hub.number && report.servers[0]?.state === 'ready',
  );
  expect(next.hub.pid).not.toBe(hub.pid);
  await client.call('one__echo');
  const { report } = await page.untilHub('running', ({ report: { servers } }) => servers[0]?.calls === 1);
  const status = JSON.parse((await page.run(['status', '--json'])).stdout);
  const { hub: described } = JSON.parse((await page.run(['ps', '--json'])).stdout);
  const states = (servers: readonly { server: string; state: string }[]) =>
    servers.map(({ server, state }) => [server, state]);
  expect([report.tools, states(report.servers)]).toEqual([status.tools, states(status.servers)]);
  expect(next.hub.clients.length).toBe(described.clients.length);
  expect(report.servers[0]?.calls).toBe(described.servers[0].calls);
  const stopped = await page.run(['stop']);
  expect(stopped.code).toBe(0);
  const { because } = await page.untilHub('none');
  expect(because).toBe(`No hub runs. The hub (pid ${next.hub.pid}) has ended.`);
});

it('streams calls, and shows the messages of both legs, and the output and the settings of a server', async () => {
  const [page, client] = await withClient();
  const rows = () => page.frames.flatMap((frame) => (frame.kind === 'calls' ? frame.calls : []));
  await until('calls are followed', () => page.frames.some(({ kind }) => kind === 'calls'));
  await client.call('one__echo', { a: 1 });
  await until('the call is there', () => rows().length > 0);
  const row = rows().at(-1);
  expect(row).toMatchObject({ server: 'one', name: 'one__echo', outcome: 'ok', client: 'test 1' });
  const detail = await page.source.answers['GET /call']({ id: String(row?.id) });
  expect(detail?.messages.map(({ leg }) => leg)).toEqual(['client', 'server', 'server', 'client']);
  expect((await page.source.answers['GET /output']({ server: 'one' }))[0]).toMatchObject({
    text: 'started',
    isStart: true,
  });
  const settings = await page.source.answers['GET /settings']({ server: 'one' });
  expect(settings).toContainEqual({ name: 'sharing', value: 'all', from: 'server', line: 1 });
  expect(settings).toContainEqual({ name: 'timeout', value: '60s', from: 'built in', line: null });
  const { views } = await page.source.answers['GET /tools']({});
  expect(views[0]?.clients).toEqual(['test']);
  page.close();
  const read = () => page.source.answers['GET /call']({ id: String(row?.id) });
  await expect.poll(read).toBeNull();
});

it('restarts a server, names a server that is down with its cause, and refuses an unknown one', async () => {
  const page = await Page.open({
    one: { sharing: 'all' },
    bad: { command: 'node', args: ['-e', 'console.error("no key"); process.exit(3)'], sharing: 'all' },
  });
  await page.place.client();
  const need = await page.untilNeed(({ server, cause }) => server === 'bad' && cause.includes('no key'));
  expect(need).toMatchObject({
    code: expect.stringMatching(/^TL-SERVER-(RESTARTING|PARKED)$/),
    ...{ server: 'bad', action: 'restart' },
  });
  expect(need.command).toBe(`trunkline restart bad --config ${page.file}`);
  const { report } = await page.untilHub('running');
  const pid = report.servers[0]?.pid;
  expect(await page.source.answers['POST /restart']({ server: 'one' })).toEqual({});
  await page.untilHub('running', ({ report: { servers } }) => servers[0]?.state === 'ready' && servers[0].pid !== pid);
  const { answers } = page.source;
  await expect(answers['POST /restart']({ server: 'none' })).rejects.toMatchObject({ status: 400 });
  // A name becomes part of the path of a file.
  const tool = { server: '../../../one', tool: 'read', hash: '' };
  for (const request of ['GET /settings', 'GET /review', 'POST /approve'] as const)
    await expect(answers[request](tool)).rejects.toMatchObject({ name: 'PageRefusal', status: 404 });
});

it('F291: changes the configuration only as it was shown, without secrets in the difference', async () => {
  const [page] = await withClient();
  const text = [
    'servers:',
    '  one:',
    `    command: node # runs it`,
    `    args: ["${LAB}", "run=${page.place.folder}"]`,
    '    env: { API_KEY: hunter2hunter2 }',
    '    sharing: all',
    '',
  ].join('\n');
  writeFileSync(page.file, text);
  const { answers } = page.source;
  const change = { changes: [{ server: 'one', deny: ['die'] }] };
  const shown = await answers['POST /configure'](change);
  expect(shown.lines.filter(({ sign }) => sign !== ' ')).toEqual([
    { sign: '+', text: '    tools:' },
    { sign: '+', text: '      deny: [die]' },
  ]);
  expect(JSON.stringify(shown)).not.toContain('hunter2');
  expect(readFileSync(page.file, 'utf8')).toBe(text);
  writeFileSync(page.file, `${text}# changed\n`);
  await expect(answers['POST /configure']({ ...change, hash: shown.hash })).rejects.toMatchObject({ status: 409 });
  const { hash } = await answers['POST /configure'](change);
  await answers['POST /configure']({ ...change, hash });
  expect(readFileSync(page.file, 'utf8')).toBe(`${text.trimEnd()}\n    tools:\n      deny: [die]\n# changed\n`);
  await page.untilHub('running', ({ report }) => report.servers[0]?.tools.denied.includes('die') === true);
  const { views, lists } = await page.source.answers['GET /tools']({});
  expect(lists).toEqual([{ server: 'one', deny: ['die'], allow: [] }]);
  expect(views[0]?.tools.find(({ original }) => original === 'die')?.state).toBe('denied');
  const off = await answers['POST /configure']({ changes: [{ server: 'one', isDisabled: true }] });
  expect(off.lines).toContainEqual({ sign: '+', text: '    disabled: true' });
  const settings = await page.source.answers['GET /settings']({ server: 'one' });
  expect(settings).toContainEqual({ name: 'env', value: 'API_KEY', from: 'server', line: 5 });
  expect(JSON.stringify(settings)).not.toContain('hunter2');
});

it('changes several servers at once, and takes that back byte for byte, unless the file has changed since', async () => {
  const page = await Page.open(ONE);
  const text = [
    'servers:',
    '  one: { command: node, args: [] } # on a line',
    '  two:',
    '    command: node',
    '    tools:',
    '      # The model must not delete anything.',
    '      deny: [ "delete_*" ]',
    '',
  ].join('\n');
  writeFileSync(page.file, text);
  const { answers } = page.source;
  const changes = [
    { server: 'one', deny: ['a'] },
    { server: 'two', deny: ['delete_*', 'b', 'c'] },
  ];
  const shown = await answers['POST /configure']({ changes });
  expect(shown.undo).toBeNull();
  const write = async () => (await answers['POST /configure']({ changes, hash: shown.hash })).undo ?? '';
  const undo = await write();
  const changed = readFileSync(page.file, 'utf8');
  expect(changed).toContain('delete_*');
  expect(await answers['GET /tools']({}).catch(({ status }) => status)).toBe(503);
  expect(changed).not.toBe(text);
  await answers['POST /undo']({ undo });
  expect(readFileSync(page.file, 'utf8')).toBe(text);
  // Once, and only what was written last.
  await expect(answers['POST /undo']({ undo })).rejects.toMatchObject({ status: 409 });
  const again = await write();
  writeFileSync(page.file, `${changed}# mine\n`);
  await expect(answers['POST /undo']({ undo: again })).rejects.toMatchObject({ status: 409 });
  expect(readFileSync(page.file, 'utf8')).toBe(`${changed}# mine\n`);
});

it('begins anew when it finds another configuration, and tells nothing of the hub of the one before', async () => {
  const [page, client] = await withClient();
  page.close();
  const other = join(page.place.folder, 'user', 'trunkline', 'trunkline.yaml');
  mkdirSync(dirname(other), { recursive: true });
  writeFileSync(other, JSON.stringify({ servers: { other: { command: 'node' } } }));
  // Without a name, the file in the working folder comes first, and then that of the user.
  const { XDG_CONFIG_HOME } = process.env;
  const folder = process.cwd();
  onTestFinished(() => {
    process.chdir(folder);
    Object.assign(process.env, { XDG_CONFIG_HOME });
    if (XDG_CONFIG_HOME === undefined) delete process.env.XDG_CONFIG_HOME;
  });
  process.env.XDG_CONFIG_HOME = join(page.place.folder, 'user');
  process.chdir(dirname(page.file));
  page.source = await createPageSource({ config: undefined, verbosity: 0, logFile: undefined }, false);
  page.frames.length = 0;
  page.follow();
  await page.untilHub('running');
  await client.call('one__echo');
  await until('the call is told', () => page.frames.some((frame) => frame.kind === 'calls' && frame.calls.length > 0));
  rmSync(page.file);
  await page.untilHub('none', ({ servers }) => servers.some(({ server }) => server === 'other'));
  const hellos = page.frames.filter((frame) => frame.kind === 'hello');
  expect(hellos.map(({ configFile }) => configFile)).toEqual([page.file, other]);
  const after = page.frames.slice(page.frames.lastIndexOf(hellos[1] as Frame));
  expect(after.filter((frame) => frame.kind === 'calls')).toEqual([]);
  // The page asks for nothing, so it is told again whether a recording runs.
  expect(after.filter((frame) => frame.kind === 'recording')).toEqual([{ kind: 'recording', recording: null }]);
});

it('F291: approves a tool only with the definition that was shown', async () => {
  const [page, client] = await withClient({ one: { sharing: 'all', approval: 'required' } });
  await client.call('one__change');
  const need = await page.untilNeed(({ action }) => action === 'review');
  expect(need).toMatchObject({ server: 'one', command: `trunkline approve one --config ${page.file}` });
  const tools = await page.source.answers['GET /review']({ server: 'one' });
  const [tool] = tools;
  expect(tools).toMatchObject([{ change: 'new', hash: expect.stringMatching(/^[0-9a-f]{64}$/) }]);
  const body = { server: 'one', tool: tool?.tool ?? '', hash: tool?.hash ?? '' };
  const { answers } = page.source;
  await expect(answers['POST /approve']({ ...body, hash: '0'.repeat(64) })).rejects.toMatchObject({ status: 409 });
  expect(await page.source.answers['GET /review']({ server: 'one' })).toEqual(tools);
  expect(await answers['POST /approve'](body)).toEqual({});
  await expect(answers['POST /approve'](body)).rejects.toMatchObject({ status: 409 });
  await until('nothing waits', () => page.state?.needs.every(({ action }) => action !== 'review') === true);
});

it('records the messages of the hub to a file that can be downloaded', async () => {
  const [page, client] = await withClient();
  const { answers } = page.source;
  const { file } = await answers['POST /record']({});
  await expect(answers['POST /record']({})).rejects.toMatchObject({ status: 409 });
  await client.call('one__echo', { text: 'recorded' });
  const stopped = await answers['POST /record/stop']({});
  expect(stopped).toMatchObject({ file, dropped: 0, fault: null });
  const recording = await page.source.openRecording(file);
  const text = (await recording.toArray()).join('');
  expect(text).toContain('recorded');
  expect(statSync(join(page.place.folder, 'data', 'trunkline', 'recordings', file)).mode & 0o777).toBe(0o600);
  for (const name of ['../trunkline.yaml', 'trunkline-20260101-000000.jsonl', ''])
    await expect(page.source.openRecording(name)).rejects.toMatchObject({ status: 404 });
});

it('F293: leaves no connection to the hub after the last page has closed', async () => {
  const [page, client] = await withClient();
  page.close();
  const { hubPid } = page.place;
  const isClosed = () => hubConnections(page.place.hubs) === 1;
  await until('only the client is connected', isClosed);
  page.follow();
  await until('calls are followed', () => page.frames.some(({ kind }) => kind === 'calls'));
  page.close();
  await until('only the client is connected', isClosed);
  const frames = page.frames.length;
  await client.call('one__echo');
  expect([page.frames.length, page.place.hubPid]).toEqual([frames, hubPid]);
});

/** Accepted connections of the sockets of hubs. */
function hubConnections(folder: string): number {
  // Only Linux lists them.
  if (process.platform !== 'linux') return 1;
  const lines = readFileSync('/proc/net/unix', 'latin1').split('\n');
  // Flags and state of a socket that is connected, in contrast to the one that listens.
  return lines.filter((line) => line.includes(folder) && line.split(/\s+/)[5] === '03').length;
}

it('logs in by a page that the user opens, shows the login, and logs out', async () => {
  const { PATH = '' } = process.env;
  // Without the program of a keychain, which is that of the user who runs the test.
  process.env.PATH = dirname(process.execPath);
  const server = await startProtected();
  onTestFinished(async () => {
    process.env.PATH = PATH;
    await server.close();
  });
  const page = await Page.open(ONE);
  writeFileSync(page.file, JSON.stringify({ servers: { files: { url: server.url }, one: { command: 'node' } } }));
  const { answers } = page.source;
  const login = async () => await answers['GET /logins']({});
  expect(await login()).toMatchObject([{ server: 'files', state: 'login_required', scopes: [], expiresAt: null }]);
  const { url } = await answers['POST /login']({ server: 'files' });
  expect(await answers['POST /login']({ server: 'files' })).toMatchObject({ url });
  expect((await login())[0]?.note).toContain('waits for you in the browser');
  await promisify(execFile)(process.execPath, [BROWSER, url ?? '']);
  expect(await login()).toMatchObject([
    { server: 'files', state: 'logged_in', issuer: expect.stringMatching(/^http/) },
  ]);
  expect(await answers['POST /logout']({ server: 'files' })).toEqual({ text: 'Logged out at files.' });
  expect(await login()).toMatchObject([{ state: 'login_required' }]);
  await expect(answers['POST /login']({ server: 'one' })).rejects.toMatchObject({ status: 400 });
});

it('shows the findings of the doctor, and names the version of a hub that knows no page', async () => {
  const page = await Page.open(ONE);
  await page.untilHub('none');
  const findings = await page.source.answers['GET /findings']({});
  expect(findings).toContainEqual(expect.objectContaining({ code: 'TL-CONFIG-OK', level: 'ok' }));
  const text = readFileSync(page.file, 'utf8');
  writeFileSync(page.file, 'servers: {}');
  const wrong = await page.source.answers['GET /findings']({});
  // The example in the remedy has lines of its own.
  expect(wrong.find(({ code }) => code === 'TL-CONFIG-INVALID')?.remedy).toMatch(/^For example:\nservers:\n {2}\w+: /);
  writeFileSync(page.file, text);
  // Older hubs refuse the command in these words.
  const folder = folderOfHub(page.file);
  const claim = await claimSuccessor(folder, 0);
  const refusal = 'this hub does not know the command "page"; it may be an older one';
  if (claim === undefined) throw new Error('Another process has claimed the number');
  const hub = await listening(claim, folder);
  playHub(hub, hubFiles(folder, claim.number), '{"ok":true,"version":"0.0.1","pid":4711}', (socket) =>
    socket.write(`${JSON.stringify({ id: 1, error: refusal })}\n`),
  );
  onTestFinished(() => void hub.close());
  const { because, remedy } = await page.untilHub('none', (hub) => hub.because.includes('0.0.1'));
  expect(because).toBe('The hub (pid 4711) has version 0.0.1, which does not tell its state to a page.');
  expect(remedy).toContain('`trunkline hub restart`');
  page.close();
});
