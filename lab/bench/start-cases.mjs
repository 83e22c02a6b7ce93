// What is measured of a start: each case runs in fresh data folders, and a second run has the data of the first.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DirectClient, msOfNodeAlone, StartClient } from './start-client.mjs';

const path = (file) => fileURLToPath(new URL(file, import.meta.url));
const TINY = path('tiny-server.mjs');
const SILENT = path('silent-server.mjs');
const SLOW = path('slow-server.mjs');

/** Of each server. */
const TOOLS = 4;
const MANY_TOOLS = 500;
export const SLOW_MS = 6_000;
/** As long as a client is looked at that does nothing after the start. */
const IDLE_MS = 5_000;

const tiny = (count) => Array.from({ length: count }, () => [TINY]);

/** Cases with a direct client beside: all servers answer at once. */
export const COUNTS = [1, 5, 20];

/** Cases in which not every server is there soon. `good` servers are, `late` ones become ready, the rest never does. */
export const PARTIAL = [
  { name: '30 servers, and one that never answers', good: 30, late: 0, servers: [...tiny(30), [SILENT]] },
  {
    name: `15 servers, and 5 that take ${SLOW_MS / 1_000} s`,
    good: 15,
    late: 5,
    servers: [...tiny(15), ...Array.from({ length: 5 }, () => [SLOW, String(SLOW_MS)])],
  },
];

export class StartCases {
  #folder;
  #start;
  #places = 0;

  /** `start` is the command of a build, without the configuration. */
  constructor(folder, start) {
    this.#folder = folder;
    this.#start = start;
  }

  /**
   * One client that lists and then calls, and one that calls at once: directly, in the first and in the second run. In place of a
   * direct `initialize` stands a Node that does nothing.
   */
  async compared(count) {
    const place = this.#place(tiny(count));
    const other = this.#place(tiny(count));
    const listing = (isFirst) =>
      this.#gateway(place, async (client) => {
        const initialize = await client.initialize();
        const { at: list, tools } = await client.list();
        if (tools !== count * TOOLS + 1) throw new Error(`${tools} tools are listed of ${count} servers`);
        const call = await client.call('s0__echo');
        // What the servers list is cached when they are ready.
        if (isFirst) await client.untilReady(count);
        return { initialize, list, call };
      });
    const calling = (at) =>
      this.#gateway(at, async (client) => {
        await client.initialize();
        return await client.call('s0__echo');
      });
    const initialize = await msOfNodeAlone();
    const direct = await this.#direct(count, (client) => client.listThenCall('echo'));
    const first = await listing(true);
    const directAtOnce = await this.#direct(count, (client) => client.callAtOnce('echo'));
    const firstAtOnce = await calling(other);
    const second = await listing(false);
    const secondAtOnce = await calling(place);
    this.#forget(place, other);
    return {
      direct: { ...direct, initialize, atOnce: directAtOnce },
      first: { ...first, atOnce: firstAtOnce },
      second: { ...second, atOnce: secondAtOnce },
    };
  }

  /** The first list of either run: when, and which share of the tools of all servers that ever become ready. */
  async partial({ good, late, servers }) {
    const place = this.#place(servers);
    const listed = () =>
      this.#gateway(place, async (client) => {
        await client.initialize();
        const { at, tools } = await client.list();
        await client.untilReady(good + late);
        return { list: at, share: (tools - 1) / ((good + late) * TOOLS) };
      });
    const [first, second] = [await listed(), await listed()];
    this.#forget(place);
    return { first, second };
  }

  /** The first list of 20 servers with 500 tools each, in the first run, and the memory that it took. */
  async manyTools() {
    const servers = Array.from({ length: 20 }, () => [TINY, '--tools', String(MANY_TOOLS - TOOLS)]);
    const place = this.#place(servers);
    const result = await this.#gateway(place, async (client) => {
      await client.initialize();
      const first = await client.list();
      let [{ next }, tools, all] = [first, first.tools, first.at];
      while (next !== undefined) {
        const page = await client.list(next);
        ({ next } = page);
        tools += page.tools;
        all = page.at;
      }
      if (tools !== servers.length * MANY_TOOLS + 1) throw new Error(`${tools} tools are listed`);
      return { list: first.at, all, peak: client.peakMiB };
    });
    this.#forget(place);
    return result;
  }

  /** The most memory in the first run of a client that lists five servers and then does nothing. */
  async idleMemory() {
    const place = this.#place(tiny(5));
    const peak = await this.#gateway(place, async (client) => {
      await client.initialize();
      await client.list();
      await client.untilReady(5);
      await wait(IDLE_MS);
      return client.peakMiB;
    });
    this.#forget(place);
    return { peak };
  }

  /** A configuration with nothing but these servers, and a data folder that is empty. */
  #place(servers) {
    this.#places += 1;
    const entries = servers.map((args, index) => [`s${index}`, { command: process.execPath, args }]);
    const config = join(this.#folder, `${this.#places}.yaml`);
    writeFileSync(config, JSON.stringify({ servers: Object.fromEntries(entries) }));
    return { config, data: join(this.#folder, `data-${this.#places}`) };
  }

  #forget(...places) {
    for (const { config, data } of places) for (const at of [config, data]) rmSync(at, { recursive: true });
  }

  #gateway({ config, data }, run) {
    const env = { XDG_DATA_HOME: data, LOCALAPPDATA: data };
    return closing(new StartClient([...this.#start.slice(1), config], { env }), run);
  }

  #direct(count, run) {
    return closing(new DirectClient(tiny(count)), run);
  }
}

async function closing(client, run) {
  try {
    return await run(client);
  } finally {
    await client.close();
  }
}
