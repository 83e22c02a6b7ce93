import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.js';
import { until } from '../support/processes.js';

let gateway: GatewayProcess | undefined;
afterEach(async () => {
  await gateway?.dispose();
  gateway = undefined;
});

describe('a configuration that becomes large while Trunkline runs', () => {
  it('F81: is applied up to 1 MiB and refused beyond it, while servers go on', async () => {
    const server = { lab: {} };
    gateway = await GatewayProcess.start({ servers: server, args: ['-v'] });
    const { pid } = await gateway.untilState('lab', 'ready');
    const small = readFileSync(gateway.file, 'utf8');
    gateway.writeConfig(
      small.padEnd(20_000).replace('"servers":{', '"servers":{"other":{"command":"node","disabled":false},'),
    );
    await until('the file is applied', () => gateway?.stderr.includes('applied the changed configuration') === true);
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
