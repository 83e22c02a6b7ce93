import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CLI, type Message } from '../support/gateway-process.js';
import { linkOwnPackages } from '../support/own-packages.js';
import { killAll, type ProcessEntry, processesWith, until } from '../support/processes.js';
import { RecordingProxy } from '../support/recording-proxy.js';

const CLI_CLIENT = fileURLToPath(new URL('../../docs/examples/cli-client.mjs', import.meta.url));
const HTTP_BOT = fileURLToPath(new URL('../../docs/examples/http-bot.mjs', import.meta.url));

const LONG = 'everything__trigger-long-running-operation';
const FORM = 'everything__trigger-elicitation-request';

/** How long to wait until every process has ended: Trunkline takes 3 seconds at most, a busy machine longer. */
const END_WITHIN_MS = 10_000;

describe('the command-line client', () => {
  let place: Place;
  beforeEach(() => {
    place = new Place();
  });
  afterEach(() => place.dispose());

  it('lists what all servers offer, and leaves no process behind', async () => {
    const { code, stdout } = await place.cliClient();
    expect(code).toBe(0);
    expect(place.leftovers()).toEqual([]);
    const [tools = '', prompts = '', resources = ''] = stdout.split(/^\w+:\n/m).slice(1);
    expect(tools).toContain('  everything__echo  Echoes back the input string\n');
    expect(tools).toContain('  files__read_text_file  ');
    expect(tools).toContain('  memory__read_graph  ');
    expect(prompts).toContain('  everything__simple-prompt  ');
    expect(resources).toContain('  demo://resource/static/document/');
  });

  it('calls a tool with arguments in JSON, and writes nothing but the answer to stdout', async () => {
    place.configure('files');
    const note = place.write('note.txt', 'a note');
    const { code, stdout, stderr } = await place.cliClient(['files__read_text_file', JSON.stringify({ path: note })]);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'a note\n', stderr: '' });
    expect(place.leftovers()).toEqual([]);
  });

  it('shows progress while the call is in flight', async () => {
    place.configure('everything');
    const { code, stdout, stderr } = await place.cliClient([LONG, '{"duration":1,"steps":4}']);
    expect(code).toBe(0);
    expect(stdout).toContain('Long running operation completed');
    // The SDK drops a report that it reads together with the answer.
    expect(stderr).toMatch(/^1 of 4\n2 of 4\n3 of 4\n/);
  });

  it('exits with 1 when a tool answers with an error', async () => {
    place.configure('files');
    const { code, stdout } = await place.cliClient(['files__read_text_file', '{"path":"/etc/passwd"}']);
    expect(code).toBe(1);
    expect(stdout).toContain('Access denied');
  });

  it.each([
    [[], 'wrong usage'],
    [['--config', 'x', 'tool', '{}', 'more'], 'wrong usage'],
    [['--config', 'x', 'tool', '{not json'], 'JSON'],
    [['--confg', 'x'], '--confg'],
  ])('refuses %j with exit code 2 and its usage', async (args, reason) => {
    const { code, stdout, stderr } = await place.start(CLI_CLIENT, args).finished;
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(reason);
    expect(stderr).toContain('Usage: cli-client.mjs --config FILE');
  });

  it('lets the person at the terminal fill in a form of a server, and asks again for invalid values', async () => {
    place.configure('everything');
    // Stdin stays open: the client has to end by itself.
    const running = place.start(CLI_CLIENT, ['--config', place.config, FORM]);
    const typed = [
      'yes',
      '',
      'Ada',
      'y',
      '',
      'ada@site.example',
      '',
      '',
      'seven',
      '7',
      '',
      'Joe',
      'Joey',
      'Drums, Bass',
    ];
    running.process.stdin.write(`${typed.join('\n')}\n\n\n\n\n`);
    const { code, stdout } = await running.finished;
    expect(code).toBe(0);
    expect(JSON.parse(stdout.slice(stdout.indexOf('{')))).toEqual({
      action: 'accept',
      content: {
        name: 'Ada',
        check: true,
        firstLine: 'It was a dark and stormy night.',
        email: 'ada@site.example',
        integer: 7,
        number: 3.14,
        untitledSingleSelectEnum: 'Joey',
        untitledMultipleSelectEnum: ['Drums', 'Bass'],
        titledSingleSelectEnum: 'hero-1',
        titledMultipleSelectEnum: ['fish-1'],
        legacyTitledEnum: 'pet-1',
      },
    });
    expect(place.leftovers()).toEqual([]);
  });

  it.each([
    ['declines when the person does not want to answer', 'n\n', 'decline'],
    ['cancels when nobody is there', '', 'cancel'],
    ['cancels when the person leaves in the middle', 'y\nAda\n', 'cancel'],
  ])('%s', async (_, input, action) => {
    place.configure('everything');
    const { code, stdout } = await place.cliClient([FORM], input);
    expect(code).toBe(0);
    expect(stdout).toContain(`"action": "${action}"`);
  });

  it('tells servers the folders that they may work in, if it was given any', async () => {
    place.configure('everything');
    const folder = place.folderFor('project');
    const roots = await place.cliClient(['--root', folder, 'everything__get-roots-list']);
    expect(roots).toMatchObject({ code: 0, stderr: '' });
    expect(roots.stdout).toContain(`1. project\n   URI: ${pathToFileURL(folder)}\n`);
    // The server offers this to clients with roots only.
    expect((await place.cliClient(['everything__get-roots-list'])).code).toBe(1);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('ends everything on %s in the middle of a call', async (signal) => {
    place.configure('everything');
    const running = place.start(CLI_CLIENT, ['--config', place.config, LONG, '{"duration":60,"steps":600}']);
    await until('the call has begun', () => running.stderr.includes('1 of 600'));
    // The client, the gateway and the server.
    expect(place.leftovers()).toHaveLength(3);
    running.process.kill(signal);
    const { code, stdout, stderr } = await running.finished;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('Connection closed');
    expect(place.leftovers()).toEqual([]);
  });
});

describe('the bot', () => {
  const NAMES = ['ada', 'bob', 'cyd'];
  /** One gateway for all tests: the sessions of each bot end with it. */
  const place = new Place();
  beforeAll(async () => {
    place.configure('everything');
    await place.restart();
    await place.proxy.listen();
  });
  beforeEach(() => {
    place.proxy.seen.length = 0;
  });
  afterAll(() => place.dispose());

  it('answers each of its users, and none with the answer to another one', async () => {
    const bot = place.bot();
    const serverRequests = NAMES.map((name) =>
      Array.from({ length: 10 }, (_, call) => `${name}, ${call}, ${randomUUID()}`),
    );
    for (const call of serverRequests[0]?.keys() ?? []) {
      for (const [index, name] of NAMES.entries())
        bot.say(name, 'everything__echo', { message: serverRequests[index]?.[call] });
    }
    const { code, stdout, stderr } = await bot.finish();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    for (const [index, name] of NAMES.entries()) {
      const received = lines.filter((line) => line.startsWith(`${name}: `));
      expect(received).toEqual(serverRequests[index]?.map((input) => `${name}: Echo: ${input}`));
    }
    expect(lines).toHaveLength(30);
  });

  it('has a session for each user, with the token, and ends each with DELETE', async () => {
    const bot = place.bot();
    for (const message of ['one', 'two']) {
      for (const name of NAMES) bot.say(name, 'everything__echo', { message: `${name} ${message}` });
    }
    await bot.finish();
    const calls = place.proxy.seen.filter(({ body }) => body?.method === 'tools/call');
    const sessions = NAMES.map((name) => {
      const own = calls.filter(({ body }) => body?.params.arguments.message.startsWith(name));
      expect(own).toHaveLength(2);
      const [id, ...others] = new Set(own.map(({ session }) => session));
      expect(others).toEqual([]);
      return id;
    });
    expect(new Set(sessions).size).toBe(3);
    const ended = place.proxy.seen.filter(({ method }) => method === 'DELETE');
    expect(ended.map(({ session, status }) => [session, status]).sort()).toEqual(
      sessions.map((id) => [id, 204]).sort(),
    );
    expect(new Set(place.proxy.seen.map(({ authorization }) => authorization))).toEqual(
      new Set([`Bearer ${place.token()}`]),
    );
  });

  it("lets no user wait for another user's call", async () => {
    const bot = place.bot();
    bot.say('ada', LONG, { duration: 60, steps: 600 });
    await until('the call has begun', () => bot.stdout.includes('ada: 1 of 600 …'));
    bot.say('bob', 'everything__get-sum', { a: 20, b: 22 });
    await until("bob's answer", () => bot.stdout.includes('bob: The sum of 20 and 22 is 42.'));
    // What ada is still waiting for is cancelled.
    bot.process.kill('SIGINT');
    const { code, stdout } = await bot.finished;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ada: that did not work: .*stopped by SIGINT$/m);
    const deleted = place.proxy.seen.filter(({ method }) => method === 'DELETE');
    expect(deleted.map(({ status }) => status)).toEqual([204, 204]);
  });

  it('begins a new session when Trunkline does not know the old one, and repeats the call', async () => {
    const bot = place.bot();
    for (const name of NAMES) bot.say(name, 'everything__echo', { message: 'before' });
    await until('all answers', () => bot.stdout.split('\n').length > 3);
    await place.restart();
    bot.say('ada', 'everything__echo', { message: 'after' });
    bot.say('ada', 'everything__echo', { message: 'and after that' });
    bot.say('bob', 'everything__echo', { message: 'after' });
    const { code, stdout, stderr } = await bot.finish();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n').slice(3).sort()).toEqual(
      ['', 'ada: Echo: after', 'ada: Echo: and after that', 'bob: Echo: after'].sort(),
    );
    const statuses = (method: string) =>
      place.proxy.seen
        .filter(({ body }) => body?.method === method)
        .map(({ status }) => status)
        .sort();
    // Once for each of the two who asked again.
    expect(statuses('tools/call')).toEqual([200, 200, 200, 200, 200, 200, 404, 404]);
    expect(statuses('initialize')).toEqual([200, 200, 200, 200, 200]);
    // Two new ones, and the one of cyd, who has not asked since.
    const deleted = place.proxy.seen.filter(({ method }) => method === 'DELETE');
    expect(deleted.map(({ status }) => status).sort()).toEqual([204, 204, 404]);
  });

  it('tells a user what did not work, and goes on', async () => {
    const bot = place.bot();
    bot.say('ada', 'everything__nothing', {});
    bot.process.stdin.write('ada everything__echo {bad\n\nada\n');
    bot.say('ada', 'everything__echo', { message: 'fine' });
    const { code, stdout } = await bot.finish();
    expect(code).toBe(0);
    expect(stdout.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^ada: .*nothing not found/),
      expect.stringMatching(/^ada: that did not work: .*JSON/),
      'ada: Echo: fine',
    ]);
  });

  it('does not repeat a call that a server answers with error 404', async () => {
    const calls = place.addServerThatAnswers404();
    await place.restart();
    const bot = place.bot();
    bot.say('ada', 'lost__find', {});
    expect((await bot.finish()).stdout).toMatch(/^ada: that did not work: .*no such page\n$/);
    expect(readFileSync(calls, 'utf8')).toBe('called\n');
  });

  it('takes its token from a variable if that is set', async () => {
    // Of another user, whose `trunkline token` would print another one.
    const elsewhere = { XDG_DATA_HOME: place.folderFor('elsewhere') };
    const refused = place.bot(elsewhere);
    refused.say('ada', 'everything__echo', { message: 'hi' });
    expect((await refused.finish()).stdout).toMatch(/^ada: that did not work: .*A bearer token is required/);

    const bot = place.bot({ ...elsewhere, TRUNKLINE_TOKEN: place.token() });
    bot.say('ada', 'everything__echo', { message: 'hi' });
    expect((await bot.finish()).stdout).toBe('ada: Echo: hi\n');
  });
});

interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string>>;

/** A folder with a configuration of up to three real servers, and everything that runs in it. */
class Place {
  readonly proxy = new RecordingProxy();
  /** Part of every command line, so that what is left of a run can be found. */
  readonly #folder = mkdtempSync(join(tmpdir(), `trunkline-${randomUUID()}-`));
  readonly config: string;
  #servers: Record<string, object>;
  readonly #environment: Environment;
  readonly #running: Running[] = [];
  #gateway: Running | undefined;

  constructor() {
    const { TRUNKLINE_TOKEN: _, ...inherited } = process.env;
    this.#environment = { ...inherited, HOME: this.#folder, XDG_DATA_HOME: this.folderFor('data') } as Environment;
    this.#servers = {
      // The first two take no notice of an argument that only names the run.
      everything: { package: '@modelcontextprotocol/server-everything', args: ['stdio', this.#folder] },
      memory: {
        package: '@modelcontextprotocol/server-memory',
        args: [this.#folder],
        env: { MEMORY_FILE_PATH: join(this.#folder, 'memory.jsonl') },
      },
      files: { package: '@modelcontextprotocol/server-filesystem', args: [this.#folder] },
    };
    linkOwnPackages(this.#folder);
    this.config = this.#configure();
  }

  /** Configures one server alone, for tests that need no other. */
  configure(only: string): void {
    this.#servers = { [only]: this.#servers[only] ?? {} };
    this.#configure();
  }

  write(name: string, text: string): string {
    const file = join(this.#folder, name);
    writeFileSync(file, text);
    return file;
  }

  folderFor(name: string): string {
    const folder = join(this.#folder, name);
    mkdirSync(folder);
    return folder;
  }

  /** Returns the file in which the server notes each call. */
  addServerThatAnswers404(): string {
    const calls = join(this.#folder, 'calls');
    const program = `import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const answer = (members) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...members }) + '\\n');
  if (method === 'initialize') {
    const { protocolVersion } = params;
    answer({ result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'lost', version: '1' } } });
  } else if (method === 'tools/list') {
    answer({ result: { tools: [{ name: 'find', inputSchema: { type: 'object' } }] } });
  } else if (method === 'tools/call') {
    appendFileSync(${JSON.stringify(calls)}, 'called\\n');
    answer({ error: { code: 404, message: 'no such page' } });
  } else if (id !== undefined) answer({ error: { code: -32601, message: 'no' } });
}
`;
    this.#servers.lost = { command: 'node', args: [this.write('lost.mjs', program)] };
    this.#configure();
    return calls;
  }

  /** Runs the command-line client to its end. */
  async cliClient(args: readonly string[] = [], input = ''): Promise<Finished> {
    const running = this.start(CLI_CLIENT, ['--config', this.config, ...args]);
    running.process.stdin.end(input);
    return await running.finished;
  }

  /** Starts the bot, with a proxy between it and Trunkline that records what they send. */
  bot(environment: Environment = {}): Running {
    return this.start(HTTP_BOT, [this.proxy.url], environment);
  }

  /** Starts Trunkline; ends the one that runs first. */
  async restart(): Promise<void> {
    this.#gateway?.process.kill('SIGTERM');
    await this.#gateway?.finished;
    const running = this.start(CLI, ['--config', this.config, '--http', '127.0.0.1:0']);
    this.#gateway = running;
    const url = () => /^Trunkline serves (\S+);/m.exec(running.stderr)?.[1];
    await until('Trunkline listens', () => url() !== undefined);
    this.proxy.target = new URL(url() ?? '');
  }

  token(): string {
    return execFileSync(process.execPath, [CLI, 'token'], { env: this.#environment, encoding: 'utf8' }).trim();
  }

  start(program: string, args: readonly string[], environment: Environment = {}): Running {
    const env = { ...this.#environment, ...environment };
    const running = new Running(spawn(process.execPath, [program, ...args], { env }));
    this.#running.push(running);
    return running;
  }

  #configure(): string {
    return this.write('trunkline.yaml', JSON.stringify({ servers: this.#servers }));
  }

  /** The running processes of this place. */
  leftovers(): ProcessEntry[] {
    return processesWith(this.#folder);
  }

  /** Ends everything, and fails when something did not end in an orderly way. */
  async dispose(): Promise<void> {
    try {
      for (const { process: running } of this.#running) running.kill('SIGTERM');
      await until('every process is gone', () => this.leftovers().length === 0, END_WITHIN_MS);
    } finally {
      killAll(this.#folder);
      for (const { process: running } of this.#running) running.kill('SIGKILL');
      await Promise.all(this.#running.map(({ finished }) => finished));
      await this.proxy.close();
      rmSync(this.#folder, { recursive: true, force: true });
    }
  }
}

/** A program while it runs. */
class Running {
  readonly process: ChildProcessWithoutNullStreams;
  readonly finished: Promise<Finished>;
  stdout = '';
  stderr = '';

  constructor(child: ChildProcessWithoutNullStreams) {
    this.process = child;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    child.stdin.on('error', () => {});
    this.finished = new Promise((resolve) => {
      child.once('close', (code) => resolve({ code, stdout: this.stdout, stderr: this.stderr }));
    });
  }

  /** A line in the chat. */
  say(name: string, tool: string, args: Message): void {
    this.process.stdin.write(`${name} ${tool} ${JSON.stringify(args)}\n`);
  }

  /** The chat is over. */
  async finish(): Promise<Finished> {
    this.process.stdin.end();
    return await this.finished;
  }
}
