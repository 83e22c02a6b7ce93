import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { GatewayProcess, type Message } from '../support/gateway-process.js';
import { until } from '../support/processes.js';
import { HttpGateway, type HttpGatewayOptions } from '../support/raw-http-client.js';

const TASKS = fileURLToPath(new URL('../fixtures/servers/tasks.mjs', import.meta.url));
const RELATED = 'io.modelcontextprotocol/related-task';
const EVERYTHING = {
  sampling: {},
  elicitation: {},
  tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
};

/** A client at the other end of either transport. */
interface Peer {
  request(method: string, params?: object): Promise<Message>;
  send(message: Message): Promise<void>;
  /** The first message of this method that was not taken yet. */
  next(method: string): Promise<Message>;
  readonly received: readonly Message[];
}

const running: { dispose(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of running.splice(0)) await each.dispose();
  await sharedHttp.endSessions();
});

/** One gateway of each kind, for the tests that need no settings of their own. */
let sharedHttp: HttpGateway;
let sharedStdio: GatewayProcess;
beforeAll(async () => {
  sharedHttp = await HttpGateway.start({ servers: { s: { program: TASKS } } });
  sharedStdio = await GatewayProcess.start(
    { servers: { s: { command: 'node', args: [TASKS] } } },
    { handshake: false },
  );
  await sharedStdio.initialize('2025-11-25', EVERYTHING);
});
afterAll(async () => {
  await sharedHttp.dispose();
  await sharedStdio.dispose();
});

async function http(options: Partial<HttpGatewayOptions> = {}): Promise<HttpGateway> {
  const gateway = await HttpGateway.start({ servers: { s: { program: TASKS } }, ...options });
  running.push(gateway);
  return gateway;
}

async function stdio(server: Record<string, unknown> = {}): Promise<GatewayProcess> {
  const servers = { s: { command: 'node', args: [TASKS], ...server } };
  const gateway = await GatewayProcess.start({ servers }, { handshake: false });
  running.push(gateway);
  return gateway;
}

function peerOf(gateway: GatewayProcess): Peer {
  const taken = new Set<Message>();
  const said = () => gateway.received.map(({ message }) => message).filter(({ method }) => method !== undefined);
  return {
    request: async (method, params) => (await gateway.request(method, params)).message,
    send: async (message) => gateway.send(JSON.stringify(message)),
    next: async (method) => {
      const find = () => said().find((message) => message.method === method && !taken.has(message));
      await until(`${method} comes`, () => find() !== undefined);
      const message = find() ?? {};
      taken.add(message);
      return message;
    },
    get received() {
      return said();
    },
  };
}

const CONNECT = {
  stdio: async () => {
    sharedStdio.forget();
    return peerOf(sharedStdio);
  },
  HTTP: async () => await sharedHttp.handshake({ capabilities: EVERYTHING }),
};

/** Makes a task with this tool; resolves with what the client knows it as, and with what its server does. */
async function make(peer: Peer, name: string, args: object = {}, members: object = {}) {
  const { result } = await peer.request('tools/call', { name, arguments: args, task: { ttl: 60_000 }, ...members });
  const id: string = result.task.taskId;
  return { id, original: id.split(':').at(-1) ?? '', result };
}

function textOf({ result, error }: Message): string {
  if (error !== undefined) throw new Error(JSON.stringify(error));
  return result.content[0].text;
}

describe.each(['stdio', 'HTTP'] as const)('over %s, a task', (transport) => {
  it('is created, read, listed and completed, and its result is fetched', async () => {
    const peer = await CONNECT[transport]();
    const { id, original, result } = await make(peer, 's__work', {}, { _meta: { progressToken: 'mine' } });
    expect(result.task).toMatchObject({ status: 'working', ttl: 60_000, pollInterval: 20 });
    expect(id).toMatch(/^s:[\w-]{22}:t-1$/);
    const other = await make(peer, 's__work');
    await make(peer, 's__work');

    expect((await peer.request('tasks/get', { taskId: id })).result).toEqual(result.task);
    const { result: list } = await peer.request('tasks/list');
    expect(list.tasks.map(({ taskId }: Message) => taskId).slice(0, 2)).toEqual([id, other.id]);
    expect(list.tasks).toHaveLength(3);

    const awaited = peer.request('tasks/result', { taskId: id });
    expect(textOf(await peer.request('tools/call', { name: 's__finish', arguments: { taskId: original } }))).toBe(
      'finished',
    );
    expect((await awaited).result).toEqual({
      content: [{ type: 'text', text: 'done' }],
      _meta: { [RELATED]: { taskId: id } },
    });
    expect((await peer.next('notifications/tasks/status')).params).toMatchObject({ taskId: id, status: 'completed' });
    // Two reports while the call was open or just after, one while it went on, and none from its end on. Over HTTP they
    // come along different streams.
    const reports = () => peer.received.filter(({ method }) => method === 'notifications/progress');
    await until('all reports are there', () => reports().length >= 3);
    expect(reports().sort((one, other) => one.params.progress - other.params.progress)).toEqual(
      [1, 2, 3].map((progress) => ({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 'mine', progress, _meta: { [RELATED]: { taskId: id } } },
      })),
    );
  });

  it('fails as its call would have', async () => {
    const peer = await CONNECT[transport]();
    const { id, original } = await make(peer, 's__must');
    await peer.request('tools/call', {
      name: 's__finish',
      arguments: { taskId: original, status: 'failed', text: 'no' },
    });
    expect((await peer.request('tasks/get', { taskId: id })).result.status).toBe('failed');
    expect((await peer.request('tasks/result', { taskId: id })).error).toEqual({ code: -32000, message: 'no' });
  });

  it('is cancelled once', async () => {
    const peer = await CONNECT[transport]();
    const { id } = await make(peer, 's__must');
    const awaited = peer.request('tasks/result', { taskId: id });
    expect((await peer.request('tasks/cancel', { taskId: id })).result).toMatchObject({
      taskId: id,
      status: 'cancelled',
    });
    expect((await awaited).error).toEqual({ code: -32000, message: 'cancelled' });
    expect((await peer.request('tasks/cancel', { taskId: id })).error).toEqual({ code: -32602, message: 'It is over' });
    expect((await peer.request('tasks/cancel', { taskId: `${id}0` })).error.message).toBe('Unknown task');
  });

  it('is refused by the server for a tool without tasks, and so is a plain call of a tool with nothing but tasks', async () => {
    const peer = await CONNECT[transport]();
    const { error } = await peer.request('tools/call', { name: 's__plain', task: {} });
    expect(error.code).toBe(-32601);
    expect((await peer.request('tools/call', { name: 's__must' })).error.code).toBe(-32601);
    expect(textOf(await peer.request('tools/call', { name: 's__work' }))).toBe('work at once');
  });

  it.each([
    ['at once', { now: true }],
    ['when the client waits for the result', {}],
  ])('asks the person %s', async (_, args) => {
    const peer = await CONNECT[transport]();
    const { id, original } = await make(peer, 's__confirm', args);
    expect((await peer.next('notifications/tasks/status')).params.status).toBe('input_required');
    const awaited = peer.request('tasks/result', { taskId: id });
    const input = await peer.next('elicitation/create');
    expect(input.params._meta).toEqual({ [RELATED]: { taskId: id } });
    await peer.send({
      jsonrpc: '2.0',
      id: input.id,
      result: { action: 'accept', _meta: { [RELATED]: { taskId: id } } },
    });
    const answer = JSON.parse(textOf(await awaited));
    expect(answer).toEqual({
      jsonrpc: '2.0',
      id: expect.stringMatching(/^ask-\d+$/),
      result: { action: 'accept', _meta: { [RELATED]: { taskId: original } } },
    });
  });

  it('that the client creates can be read by the server that caused it, and by no other', async () => {
    const peer = await CONNECT[transport]();
    const about = ['tasks/get', 'tasks/list', 'tasks/result', 'tasks/cancel'];
    const call = peer.request('tools/call', { name: 's__dream', arguments: { about } });
    const asked = await peer.next('sampling/createMessage');
    expect(asked.params.task).toEqual({ ttl: 60_000 });
    const { progressToken } = asked.params._meta;
    const task = { taskId: 'c-1', status: 'working', createdAt: '', lastUpdatedAt: '', ttl: 1 };
    await peer.send({ jsonrpc: '2.0', id: asked.id, result: { task } });
    const related = { _meta: { [RELATED]: { taskId: 'c-1' } } };
    await peer.send({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken, progress: 1, ...related },
    });
    await peer.send({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: task });
    const answers = {
      'tasks/get': task,
      'tasks/list': { tasks: [task, { ...task, taskId: 'of another server' }] },
      'tasks/result': { role: 'assistant', content: { type: 'text', text: 'a dream' }, model: 'm', ...related },
    };
    for (const [method, result] of Object.entries(answers)) {
      const { id, params } = await peer.next(method);
      expect(params).toEqual(method === 'tasks/list' ? {} : { taskId: 'c-1' });
      await peer.send({ jsonrpc: '2.0', id, result });
    }
    const { id } = await peer.next('tasks/cancel');
    await peer.send({ jsonrpc: '2.0', id, error: { code: -32602, message: 'too late' } });

    const { said, heard } = JSON.parse(textOf(await call));
    const [created, got, listed, result, cancelled] = said.map((line: string) => JSON.parse(line));
    const name: string = created.result.task.taskId;
    expect(name).toMatch(/^~\d+:[\w-]{22}:c-1$/);
    expect(got.result).toEqual({ ...task, taskId: name });
    expect(listed.result.tasks).toEqual([{ ...task, taskId: name }]);
    expect(result.result._meta).toEqual({ [RELATED]: { taskId: name } });
    expect(cancelled.error).toEqual({ code: -32602, message: 'too late' });
    const [, progress, status] = heard.map((line: string) => JSON.parse(line));
    expect(progress.params).toEqual({ progressToken: 'dream', progress: 1, _meta: { [RELATED]: { taskId: name } } });
    expect(status.params).toEqual({ ...task, taskId: name });

    const guess = { about: ['tasks/get'], taskId: `${name}0` };
    const refused = JSON.parse(textOf(await peer.request('tools/call', { name: 's__dream', arguments: guess })));
    expect(JSON.parse(refused.said[1]).error.code).toBe(-32602);
  });
});

describe('a tool that is called as a task only', () => {
  it('serves a client without support for tasks, when its server serves all clients', async () => {
    const gateway = await stdio({ sharing: 'all' });
    await gateway.initialize('2025-06-18', { elicitation: {} });
    const call = gateway.request('tools/call', { name: 's__must', _meta: { progressToken: 7 } });
    await until('its task goes on', () => gateway.notifications('notifications/progress').length === 2);
    await gateway.call('s__finish', { taskId: 't-1', text: 'all done' });
    expect(textOf((await call).message)).toBe('all done');
    expect(gateway.notifications('notifications/progress').map(({ message }) => message.params.progress)).toEqual([
      1, 2, 3,
    ]);
  });

  it('can ask such a client for input, and be cancelled by it', async () => {
    const gateway = await stdio({ sharing: 'all' });
    await gateway.initialize('2025-06-18', { elicitation: {} });
    const call = gateway.request('tools/call', { name: 's__confirm' });
    const input = await peerOf(gateway).next('elicitation/create');
    gateway.send(JSON.stringify({ jsonrpc: '2.0', id: input.id, result: { action: 'decline' } }));
    expect(textOf((await call).message)).toContain('decline');

    void gateway.request('tools/call', { name: 's__must', _meta: { progressToken: 7 } }, '"x"');
    await until('its task goes on', () => gateway.notifications('notifications/progress').length === 2);
    gateway.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}');
    await expect.poll(async () => (await gateway.status('s')).cancelled, { timeout: 5_000 }).toBe(1);
    expect((await gateway.status('s')).inFlight).toBe(0);
    expect(gateway.received.some(({ message }) => message.id === 'x')).toBe(false);
  });
});

describe('with several clients, a task', () => {
  it('asks its own client, even while another client has a call in flight', async () => {
    const gateway = await http({ servers: { s: { program: TASKS, sharing: 'all' } } });
    const [one, other] = [
      await gateway.handshake({ capabilities: EVERYTHING }),
      await gateway.handshake({ capabilities: EVERYTHING }),
    ];
    // Waits for an answer that the test gives at the end.
    const call = other.request('tools/call', { name: 's__dream', arguments: { about: [] } });
    const dream = await other.next('sampling/createMessage');
    const { id } = await make(one, 's__confirm', { now: true });
    const input = await one.next('elicitation/create');
    expect(input.params._meta[RELATED].taskId).toBe(id);
    await one.send({ jsonrpc: '2.0', id: input.id, result: { action: 'accept' } });
    expect(textOf(await one.request('tasks/result', { taskId: id }))).toContain('accept');
    await other.send({ jsonrpc: '2.0', id: dream.id, error: { code: -1, message: 'no' } });
    await call;
    const told = other.received.filter(({ method }) => method !== 'notifications/tools/list_changed');
    expect(told).toEqual([]);
  });

  it.each([
    ['at once', { now: true }],
    ['when the client waits for the result', {}],
  ])('asks a client whose only open stream is the wait for the result, when it asks %s', async (_, args) => {
    const client = await sharedHttp.handshake({ capabilities: EVERYTHING, listens: false });
    const { id } = await make(client, 's__confirm', args);
    expect((await client.request('tasks/get', { taskId: id })).result.status).toBe('input_required');
    expect(client.received).toEqual([]);
    const awaited = client.request('tasks/result', { taskId: id });
    const input = await client.next('elicitation/create');
    await client.send({ jsonrpc: '2.0', id: input.id, result: { action: 'accept' } });
    expect(textOf(await awaited)).toContain('accept');
  });

  it('reports progress on the wait for the result when that is the only open stream of the client', async () => {
    const client = await sharedHttp.handshake({ capabilities: EVERYTHING, listens: false });
    const { id, original } = await make(client, 's__work', {}, { _meta: { progressToken: 'mine' } });
    const awaited = client.request('tasks/result', { taskId: id });
    const inFlight = async () => {
      const { result } = await client.request('tools/call', { name: 'trunkline__status', arguments: { server: 's' } });
      return result.structuredContent.servers[0].inFlight;
    };
    await expect.poll(inFlight, { timeout: 5_000 }).toBe(1);
    await client.call('s__finish', { taskId: original });
    await awaited;
    const reports = client.received.filter(({ method }) => method === 'notifications/progress');
    // What is reported between the call and the wait has no stream to go along.
    const steps = reports.map(({ params }) => params.progress).filter((step) => step !== 2);
    expect(steps).toEqual([1, 3]);
  });

  it('can be reached through the endpoint of its server and through the endpoint of all servers', async () => {
    const alone = await sharedHttp.handshake({ capabilities: EVERYTHING }, 's');
    const { id } = await make(alone, 'work');
    expect((await alone.request('tasks/get', { taskId: id })).result.taskId).toBe(id);
    const all = await sharedHttp.handshake({ capabilities: EVERYTHING });
    expect((await all.request('tasks/get', { taskId: id })).result.taskId).toBe(id);
  });
});

describe('the id of a task', () => {
  it('is valid after a restart, so that the server itself answers that it does not know the task', async () => {
    const gateway = await http();
    const before = await gateway.handshake({ capabilities: EVERYTHING });
    const { id } = await make(before, 's__work');
    await until(
      'the secret is saved',
      () => statSync(gateway.dataFile('seal'), { throwIfNoEntry: false }) !== undefined,
    );
    expect(statSync(gateway.dataFile('seal')).mode & 0o777).toBe(0o600);
    await gateway.stop();
    await gateway.start();
    const client = await gateway.handshake({ capabilities: EVERYTHING });
    expect((await client.request('tasks/get', { taskId: id })).error.message).toBe('There is no task t-1');
    expect((await make(client, 's__work')).id).toBe(id);
    expect((await client.request('tasks/get', { taskId: id })).result.status).toBe('working');
  });

  it('is made with a secret that exists before the first task, readable by its user only', async () => {
    const gateway = await http();
    const client = await gateway.handshake();
    expect(await client.call('s__work')).toBe('work at once');
    await gateway.stop();
    expect(statSync(gateway.dataFile('seal')).mode & 0o777).toBe(0o600);
  });

  it('is valid until the gateway ends when the data folder cannot be used, which is logged', async () => {
    const gateway = await http({
      args: ['--no-auth'],
      dataHome: (folder) => {
        writeFileSync(join(folder, 'no-folder'), '');
        return join(folder, 'no-folder');
      },
    });
    const client = await gateway.handshake({ capabilities: EVERYTHING });
    const { id } = await make(client, 's__work');
    expect((await client.request('tasks/get', { taskId: id })).result.taskId).toBe(id);
    expect(gateway.stderr).toContain('task ids become invalid when Trunkline restarts');
  });
});
