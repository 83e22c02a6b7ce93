import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundle } from '../bench/inside-bundle.mjs';
import { target } from './load.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CLIENTS = join(ROOT, 'test/fixtures/initialize-params.json');
const PROGRAM = fileURLToPath(new URL('ids-program.mjs', import.meta.url));

export const idCosts = {
  name: 'C16',
  about: 'ids of sessions are sealed and opened',
  run: async ({ isShort }) => {
    const folder = mkdtempSync(join(tmpdir(), 'trunkline-ids-'));
    try {
      const { measure } = await import(pathToFileURL(await bundle(ROOT, folder, PROGRAM)));
      const { sealUs, openUs, refuseUs, lengths } = measure(CLIENTS);
      const sum = sealUs + openUs;
      const longest = Math.max(...Object.values(lengths));
      return {
        figures: {
          'seal, open, refuse, µs of processor time': [sealUs, openUs, refuseUs].map((us) => us.toFixed(1)).join(', '),
          ...Object.fromEntries(
            Object.entries(lengths).map(([client, length]) => [`id of ${client}`, `${length} characters`]),
          ),
        },
        targets: [
          // A busy machine makes processor time longer, too.
          target('seal and open ≤ 20 µs', `${sum.toFixed(1)} µs`, isShort ? undefined : sum <= 20),
          target('ids ≤ 1 KiB', `${longest} characters`, longest <= 1_024),
        ],
      };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
