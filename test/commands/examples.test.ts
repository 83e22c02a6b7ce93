import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Finished, Place, type Running } from '../support/http-place.js';
import { linkOwnPackages } from '../support/own-packages.js';
import { until } from '../support/processes.js';
import { RecordingProxy } from '../support/recording-proxy.js';

const CLI_CLIENT = fileURLToPath(new URL('../../docs/examples/cli-client.mjs', import.meta.url));
const AGENT = fileURLToPath(new URL('../../docs/examples/agent.mjs', import.meta.url));
const HTTP_BOT = fileURLToPath(new URL('../../docs/examples/http-bot.mjs', import.meta.url));

const LONG = 'everything__trigger-long-running-operation';
const FORM = 'everything__trigger-elicitation-request';

/** Entries of real servers. Each has the folder in its command line, so that what is left of it can be found. */
function realServers(place: Place): Record<'everything' | 'memory' | 'files', object> {
  linkOwnPackages(place.file('.'));
  const folder = place.file('.');
  const env = { MEMORY_FILE_PATH: place.file('memory.jsonl') };
  return {
    // The first two take no notice of an argument that only names the run.
    everything: { package: '@modelcontextprotocol/server-everything', args: ['stdio', folder] },
    memory: { package: '@modelcontextprotocol/server-memory', args: [folder], env },
    files: { package: '@modelcontextprotocol/server-filesystem', args: [folder] },
  };
}

describe('the command-line client', () => {
  let place: Place;
  let config: string[];
  /** Configures one server alone, or all of them. */
  const configure = (only?: keyof ReturnType<typeof realServers>) => {
    const servers = realServers(place);
    config = place.configure(only === undefined ? servers : { [only]: servers[only] });
  };
  beforeEach(() => {
    place = new Place();
  });
  afterEach(() => place.dispose());

  /** Runs it to its end. */
  async function cliClient(args: readonly string[] = [], input = ''): Promise<Finished> {
    const running = place.start([...config, ...args], CLI_CLIENT);
    running.process.stdin.end(input);
    return await running.finished;
  }

  it('lists what all servers offer, and leaves no process behind', async () => {
    configure();
    const { code, stdout } = await cliClient();
    expect(code).toBe(0);
    expect(place.leftovers()).toEqual([]);
    const [tools = '', prompts = '', resources = ''] = stdout.split(/^\w+:\n/m).slice(1);
    expect(tools).toContain('  everything__echo  Echoes back the input string\n');
    expect(tools).toContain('  files__read_text_file  ');
    expect(tools).toContain('  memory__read_graph  ');
    expect(prompts).toContain('  everything__simple-prompt  ');
    expect(resources).toContain('  demo://resource/static/document/');
  });

  it('calls a tool, writes nothing but the answer to stdout, and exits with 1 when that is an error', async () => {
    configure('files');
    const note = place.file('note.txt');
    writeFileSync(note, 'a note');
    const called = await cliClient(['files__read_text_file', JSON.stringify({ path: note })]);
    expect(called).toEqual({ code: 0, stdout: 'a note\n', stderr: '' });
    const { code, stdout } = await cliClient(['files__read_text_file', '{"path":"/etc/passwd"}']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining('Access denied') });
  });

  it.each([
    [['--config', 'x', 'tool', '{}', 'more'], 'wrong usage'],
    [['--config', 'x', 'tool', '{not json'], 'JSON'],
    [['--confg', 'x'], '--confg'],
  ])('refuses %j with exit code 2 and its usage', async (args, reason) => {
    const { code, stdout, stderr } = await place.start(args, CLI_CLIENT).finished;
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(reason);
    expect(stderr).toContain('Usage: cli-client.mjs --config FILE');
  });

  it('lets the person at the terminal fill in a form of a server, and asks again for invalid values', async () => {
    configure('everything');
    // Stdin stays open: the client has to end by itself.
    const running = place.start([...config, FORM], CLI_CLIENT);
    const typed = 'yes,,Ada,y,,ada@site.example,,,seven,7,,Joe,Joey'.split(',');
    running.process.stdin.write(`${[...typed, 'Drums, Bass'].join('\n')}\n\n\n\n\n`);
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
  });

  it('ends everything at a signal in the middle of a call', async () => {
    configure('everything');
    const running = place.start([...config, LONG, '{"duration":60,"steps":600}'], CLI_CLIENT);
    await until('the call has begun', () => running.stderr.includes('1 of 600'));
    // The client, the gateway and the server.
    expect(place.leftovers()).toHaveLength(3);
    running.process.kill('SIGINT');
    const { code, stdout, stderr } = await running.finished;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('Connection closed');
    expect(place.leftovers()).toEqual([]);
  });
});

/** The part of a request to a model that the stand-in reads. */
interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly tools: readonly { readonly function: { readonly name: string } }[];
}

/** A model that adds two numbers with a tool, and answers with the tool's words. Returns its URL, and what it was asked. */
async function standInModel() {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const conversation = JSON.parse(Buffer.concat(chunks).toString()) as Asked;
    asked.push(conversation);
    const { role, content = '' } = conversation.messages.at(-1) ?? {};
    const sum = { name: 'everything__get-sum', arguments: '{"a":20,"b":22}' };
    const unknown = { name: 'everything__get-sun', arguments: '{}' };
    const calls = [sum, unknown].map((each, at) => ({ id: `call-${at}`, type: 'function', function: each }));
    const message = role === 'user' ? { role: 'assistant', content: null, tool_calls: calls } : { role, content };
    response.end(JSON.stringify({ choices: [{ message }] }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { asked, url: `http://127.0.0.1:${port}/v1`, close: () => server.close() };
}

describe('the agent', () => {
  it('lets the model call tools in its own process, tells it of failures, and leaves no process behind', async () => {
    const place = new Place();
    const model = await standInModel();
    try {
      const { everything } = realServers(place);
      const [, file = ''] = place.configure({ everything });
      const env = { MODEL_URL: model.url, MODEL: 'stand-in' };
      const { code, stderr } = await place.start([file, 'What is 20 plus 22?'], AGENT, env).finished;
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(place.leftovers()).toEqual([]);
      const [first, second] = model.asked;
      expect(first?.tools.map((tool) => tool.function.name)).toContain('everything__get-sum');
      const answers = second?.messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
      expect(answers).toEqual(['The sum of 20 and 22 is 42.', expect.stringContaining('Tool get-sun not found')]);
    } finally {
      model.close();
      await place.dispose();
    }
  });
});

describe('the bot', () => {
  const NAMES = ['ada', 'bob', 'cyd'];
  /** One gateway for all tests: the sessions of each bot end with it. */
  const place = new Place();
  const proxy = new RecordingProxy();
  let gateway: Running | undefined;
  /** Starts Trunkline; ends the one that runs first. `isForgetful` removes the key that opens the ids of its sessions. */
  const restart = async ({ isForgetful = false } = {}) => {
    gateway?.process.kill('SIGTERM');
    await gateway?.finished;
    if (isForgetful) rmSync(join(dirname(place.tokenFile), 'seal'));
    gateway = await place.serve({ servers: { everything } });
    proxy.target = new URL(gateway.url);
  };
  const { everything } = realServers(place);
  beforeAll(async () => {
    await restart();
    await proxy.listen();
  });
  beforeEach(() => {
    proxy.seen.length = 0;
  });
  afterAll(async () => {
    await place.dispose();
    await proxy.close();
  });

  /** A bot with a proxy between it and Trunkline that records what they send. */
  function startBot(env: Record<string, string> = {}) {
    const running = place.start([proxy.url], HTTP_BOT, env);
    /** A line in the chat. */
    const say = (name: string, tool: string, args: object) =>
      running.process.stdin.write(`${name} ${tool} ${JSON.stringify(args)}\n`);
    const echo = (name: string, message: string) => say(name, 'everything__echo', { message });
    /** The chat is over. */
    const finish = async (): Promise<Finished> => {
      running.process.stdin.end();
      return await running.finished;
    };
    return { running, say, echo, finish };
  }

  const deletions = () => proxy.seen.filter(({ method }) => method === 'DELETE');
  const statuses = (method: string) =>
    proxy.seen
      .filter(({ body }) => body?.method === method)
      .map(({ status }) => status)
      .sort();

  it('answers each of its users in a session of their own, and ends each with DELETE', async () => {
    const { echo, finish } = startBot();
    const asked = NAMES.map((name) => Array.from({ length: 10 }, (_, call) => `${name}, ${call}, ${randomUUID()}`));
    for (let call = 0; call < 10; call += 1)
      for (const [index, name] of NAMES.entries()) echo(name, asked[index]?.[call] ?? '');
    const { code, stdout, stderr } = await finish();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(30);
    for (const [index, name] of NAMES.entries()) {
      const received = lines.filter((line) => line.startsWith(`${name}: `));
      expect(received).toEqual(asked[index]?.map((input) => `${name}: Echo: ${input}`));
    }
    const calls = proxy.seen.filter(({ body }) => body?.method === 'tools/call');
    const sessions = NAMES.map((name) => {
      const own = calls.filter(({ body }) => body?.params.arguments.message.startsWith(name));
      const [id, ...others] = new Set(own.map(({ session }) => session));
      expect([own.length, others]).toEqual([10, []]);
      return id;
    });
    expect(new Set(sessions).size).toBe(3);
    const ended = deletions().map(({ session, status }) => [session, status]);
    expect(ended.sort()).toEqual(sessions.map((id) => [id, 204]).sort());
    const tokens = new Set(proxy.seen.map(({ authorization }) => authorization));
    expect(tokens).toEqual(new Set([`Bearer ${place.token}`]));
  });

  it('begins a new session when Trunkline does not know the old one, and repeats the call', async () => {
    const { running, echo, finish } = startBot();
    for (const name of NAMES) echo(name, 'before');
    await until('all answers', () => running.stdout.split('\n').length > 3);
    await restart({ isForgetful: true });
    echo('ada', 'after');
    echo('ada', 'and after that');
    echo('bob', 'after');
    const { code, stdout, stderr } = await finish();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n').slice(3).sort()).toEqual(
      ['', 'ada: Echo: after', 'ada: Echo: and after that', 'bob: Echo: after'].sort(),
    );
    // Once for each of the two who asked again.
    expect(statuses('tools/call')).toEqual([200, 200, 200, 200, 200, 200, 404, 404]);
    expect(statuses('initialize')).toEqual([200, 200, 200, 200, 200]);
    // Two new ones, and the one of cyd, who has not asked since.
    expect(
      deletions()
        .map(({ status }) => status)
        .sort(),
    ).toEqual([204, 204, 404]);
  });

  it('tells a user what did not work, and goes on', async () => {
    const { running, say, echo, finish } = startBot();
    say('ada', 'everything__nothing', {});
    running.process.stdin.write('ada everything__echo {bad\n\nada\n');
    echo('ada', 'fine');
    const { code, stdout } = await finish();
    expect(code).toBe(0);
    expect(stdout.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^ada: .*nothing not found/),
      expect.stringMatching(/^ada: that did not work: .*JSON/),
      'ada: Echo: fine',
    ]);
  });
});
