import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { checkFile } from '../../src/config/file/check-file.js';
import { checkInThread } from '../../src/config/file/check-in-thread.js';
import { folderWith } from '../config/files.js';
import { GatewayProcess } from '../support/gateway-process.js';
import { until } from '../support/processes.js';

const THREAD = pathToFileURL(join(import.meta.dirname, '../../dist/check-thread.js'));
const HOOKS = fileURLToPath(new URL('../fixtures/modules/log-modules.mjs', import.meta.url));

let gateway: GatewayProcess | undefined;
afterEach(async () => {
  await gateway?.dispose();
  gateway = undefined;
});

const servers = (count: number) =>
  JSON.stringify({
    servers: Object.fromEntries(Array.from({ length: count }, (_, at) => [`s${at}`, { command: 'a' }])),
  });

describe('the thread that checks a large configuration', () => {
  it('has the same result as a check without it, and leaves the event loop to others', async () => {
    const text = servers(200);
    let turns = 0;
    const count = () => {
      turns += 1;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    const checked = await checkInThread(text, 'f', THREAD);
    clearImmediate(timer);
    expect(turns).toBeGreaterThan(1);
    // What has no value is lost in both.
    expect(JSON.stringify(checked)).toBe(JSON.stringify(checkFile(text, 'f')));
  });

  it('reports mistakes as a check without it does', async () => {
    const text = '{"servers": {"a": {"comand": "a"}, "b": {}}}';
    const error = await checkInThread(text, 'f', THREAD).catch((reason: unknown) => reason);
    expect(() => checkFile(text, 'f')).toThrow(expect.objectContaining({ ...(error as object) }));
  });

  it('that cannot run is an error, and no wait without end', async () => {
    await expect(checkInThread('', 'f', new URL('missing.js', THREAD))).rejects.toThrow('missing.js');
  });
});

describe('a configuration that becomes large while Trunkline runs', () => {
  it('F81: is checked in a thread above 16 KiB and applied, and refused above 1 MiB, while servers go on', async () => {
    const server = { lab: {} };
    const log = join(folderWith(), 'modules.log');
    const env = { NODE_OPTIONS: `--import ${HOOKS}`, MODULE_LOG: log };
    gateway = await GatewayProcess.start({ servers: server, args: ['-v'], env });
    const { pid } = await gateway.untilState('lab', 'ready');
    const isThreadLoaded = () => readFileSync(log, 'utf8').includes('/dist/check-thread.js');
    expect(isThreadLoaded()).toBe(false);

    const small = readFileSync(gateway.file, 'utf8');
    gateway.writeConfig(
      small.padEnd(20_000).replace('"servers":{', '"servers":{"other":{"command":"node","disabled":false},'),
    );
    await until('the file is applied', () => gateway?.stderr.includes('applied the changed configuration') === true);
    expect(isThreadLoaded()).toBe(true);
    expect(await gateway.status('other')).toBeDefined();

    gateway.writeConfig(small.padEnd(1024 * 1024 + 1));
    await until('the file is refused', () => gateway?.stderr.includes('larger than 1 MiB') === true);
    expect((await gateway.call('lab__echo', { text: 'x' })).message.result.isError).not.toBe(true);
    expect(await gateway.status('lab')).toMatchObject({ state: 'ready', pid });
    const { configFault } = await gateway.untilStatus(
      'the fault is told',
      (status) => status.configFault !== undefined,
    );
    expect(configFault).toContain('the file is larger than 1 MiB');
  });
});
