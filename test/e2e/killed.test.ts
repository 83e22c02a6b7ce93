import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.js';
import { guardiansOf, until } from '../support/processes.js';

const gateways: GatewayProcess[] = [];
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.dispose();
});

async function start(options: Parameters<typeof GatewayProcess.start>[0]): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.start(options);
  gateways.push(gateway);
  return gateway;
}

/** Servers that nothing but SIGKILL ends, two of them with a helper of the same kind that holds their stdout. */
const STUBBORN = {
  leader: { args: ['stubborn'] },
  family: { args: ['stubborn', 'grandchild'] },
  // Ends by itself with its stdin; its helper does not.
  helper: { args: ['grandchild'] },
};
const PROCESSES = 5;

function runFiles({ folder }: GatewayProcess): string[] {
  try {
    return readdirSync(join(folder, 'data', 'trunkline', 'run'));
  } catch {
    // Not there before the first group.
    return [];
  }
}

describe('a gateway killed with SIGKILL', () => {
  it('leaves no process behind for more than three seconds, whatever its servers ignore, and no guardian', async () => {
    for (let run = 0; run < 3; run += 1) {
      const gateway = await start({ servers: STUBBORN });
      await gateway.listTools();
      await until('all servers run', () => gateway.leftovers().length === PROCESSES + 1);
      for (const server of ['leader', 'family', 'helper']) void gateway.call(`${server}__wait`, { delayMs: 60_000 });
      expect(guardiansOf(gateway.pid)).toHaveLength(1);
      gateway.kill('SIGKILL');
      await until(
        'everything is gone',
        () => gateway.leftovers().length + guardiansOf(gateway.pid).length === 0,
        3_000,
      );
    }
  });
});
