import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  TaskStatusNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI } from '../support/gateway-process.js';
import { Place } from '../support/http-place.js';

const SERVER = fileURLToPath(new URL('../fixtures/servers/tasks-sdk.mjs', import.meta.url));

type Transport = Parameters<Client['connect']>[0];

/** Ends of all that a way to the server has started, in order. */
const running: (() => Promise<unknown>)[] = [];

/** The official client connected to the official server directly, and with Trunkline between them. */
const WAYS = {
  directly: async () => ({ prefix: '', transport: new StdioClientTransport({ command: 'node', args: [SERVER] }) }),
  'through Trunkline over stdio': async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
    const file = join(folder, 'trunkline.yaml');
    writeFileSync(file, JSON.stringify({ servers: { sdk: { command: 'node', args: [SERVER] } } }));
    const env = { ...getDefaultEnvironment(), XDG_DATA_HOME: folder, TRUNKLINE_HUB_DIR: join(folder, 'hubs') };
    running.push(async () => {
      execFileSync(process.execPath, [CLI, 'stop', '--config', file], { env, stdio: 'pipe' });
      rmSync(folder, { recursive: true });
    });
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [CLI, '--config', file],
      env,
    });
    return { prefix: 'sdk__', transport };
  },
  'through Trunkline over HTTP': async () => ({ prefix: 'sdk__', transport: await overHttp('') }),
  'through Trunkline over HTTP, to the server alone': async () => ({ prefix: '', transport: await overHttp('/sdk') }),
};

async function overHttp(path: string): Promise<StreamableHTTPClientTransport> {
  const place = new Place();
  running.push(() => place.dispose());
  const { url } = await place.serve({ servers: { sdk: place.server(SERVER) } });
  const requestInit = { headers: { authorization: `Bearer ${place.token}` } };
  return new StreamableHTTPClientTransport(new URL(`${url}${path}`), { requestInit });
}

describe.each(Object.keys(WAYS) as (keyof typeof WAYS)[])('the official client, %s', (way) => {
  /** One connection for all tests of this way. */
  let world: Awaited<ReturnType<typeof connected>>;
  beforeAll(async () => {
    world = await connected();
  });
  afterAll(async () => {
    for (const end of running.splice(0).reverse()) await end();
  });

  async function connected() {
    const { prefix, transport } = await WAYS[way]();
    const client = new Client(
      { name: 'test', version: '1' },
      {
        capabilities: {
          elicitation: { form: {} },
          sampling: {},
          tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} } } },
        },
        taskStore: new InMemoryTaskStore(),
      },
    );
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'me' } }));
    client.setRequestHandler(CreateMessageRequestSchema, async (_, { taskStore, taskRequestedTtl }) => {
      if (taskStore === undefined) throw new Error('No task was asked for');
      const task = await taskStore.createTask({ ttl: taskRequestedTtl ?? null, pollInterval: 20 });
      const content = { type: 'text' as const, text: 'of sheep' };
      setTimeout(() => {
        void taskStore.storeTaskResult(task.taskId, 'completed', { role: 'assistant', model: 'm', content });
      }, 30);
      return { task };
    });
    running.push(() => client.close());
    // Its `sessionId` lacks the `undefined` that our strictness asks for.
    await client.connect(transport as Transport);
    // Tells the client which tools are called as tasks.
    await client.listTools();
    return { client, tasks: client.experimental.tasks, nameOf: (tool: string) => `${prefix}${tool}` };
  }

  /** Calls the tool to its end; resolves with the kinds of what came, without repetition, and the last of it. */
  async function stream(
    name: string,
    { tasks }: Awaited<ReturnType<typeof connected>>,
    onprogress = (_: number) => {},
  ) {
    const kinds = new Set<string>();
    let last: unknown;
    const options = { onprogress: ({ progress }: { progress: number }) => onprogress(progress) };
    for await (const message of tasks.callToolStream({ name }, CallToolResultSchema, options)) {
      kinds.add(message.type);
      last = message.type === 'result' ? message.result.content : message;
    }
    return { kinds: [...kinds], last };
  }

  it('streams a call that becomes a task, with its progress and its status', async () => {
    const states: string[] = [];
    world.client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => {
      states.push(params.status);
    });
    const steps: number[] = [];
    const { kinds, last } = await stream(world.nameOf('count'), world, (step) => steps.push(step));
    expect(kinds).toEqual(['taskCreated', 'taskStatus', 'result']);
    expect(last).toEqual([{ type: 'text', text: 'counted' }]);
    // Over HTTP these come another way than the result, and may be later.
    await expect.poll(() => steps).toEqual([1, 2, 3]);
    await expect.poll(() => states).toEqual(['completed']);
  });

  it('answers a server request during a task', async () => {
    const { last } = await stream(world.nameOf('ask'), world);
    expect(last).toEqual([{ type: 'text', text: 'accept: me' }]);
  });

  it('creates a task for the server, which follows it to its end', async () => {
    const { last } = await stream(world.nameOf('dream'), world);
    expect(last).toEqual([{ type: 'text', text: 'taskCreated: of sheep' }]);
  });

  it('looks at its tasks, lists them, cancels one, and fetches the result of another', async () => {
    const { client, tasks, nameOf } = world;
    const tasksBefore = new Set((await tasks.listTasks()).tasks.map(({ taskId }) => taskId));
    const made = async (tool: string) => {
      for await (const message of tasks.callToolStream({ name: nameOf(tool) })) {
        if (message.type === 'taskCreated') return message.task.taskId;
      }
      throw new Error('No task');
    };
    const [waiting, counting] = [await made('wait'), await made('count')];
    expect((await tasks.getTask(waiting)).status).toBe('working');
    const listed = (await tasks.listTasks()).tasks.map(({ taskId }) => taskId);
    expect(listed.filter((id) => !tasksBefore.has(id)).sort()).toEqual([waiting, counting].sort());

    expect(await tasks.cancelTask(waiting)).toMatchObject({ taskId: waiting, status: 'cancelled' });
    await expect(tasks.cancelTask(waiting)).rejects.toMatchObject({ code: -32602 });
    await expect(tasks.getTask(`${waiting}0`)).rejects.toMatchObject({ code: -32602 });

    const result = await tasks.getTaskResult(counting, CallToolResultSchema);
    expect(result.content).toEqual([{ type: 'text', text: 'counted' }]);
    expect(result._meta).toEqual({ 'io.modelcontextprotocol/related-task': { taskId: counting } });
    expect((await tasks.getTask(counting)).status).toBe('completed');
    expect(client.getServerCapabilities()?.tasks).toEqual({ list: {}, cancel: {}, requests: { tools: { call: {} } } });
  });
});
