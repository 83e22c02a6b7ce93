import { expect, it } from 'vitest';
import { remarksOnOpenings } from '../../../../src/cli/commands/config/sandbox.js';
import type { ServerConfig } from '../../../../src/config/resolve/config.js';

const FILES = '@modelcontextprotocol/server-filesystem';
const PROGRAM = `/home/ada/store/${FILES}/dist/index.js`;

it.each([
  ['in the store', { program: PROGRAM }, [PROGRAM, '/home/ada/notes'], '[/home/ada/notes]'],
  ['that is not installed yet', undefined, ['/home/ada/notes'], '[/home/ada/notes]'],
])(
  'the suggestion of `trunkline sandbox` for a package %s opens its folders, and not its program',
  (_, found, args, write) => {
    const server = {
      key: 'files',
      package: { request: { name: FILES }, found },
      spec: { kind: 'program', args, env: {} },
    };
    const [suggested] = remarksOnOpenings(server as unknown as ServerConfig, {
      proposed: [],
      distrusted: [],
      network: [],
    });
    expect(suggested).toMatch(/Suggested: `sandbox: .*`\.$/);
    expect(suggested).toContain(`write: ${write}`);
  },
);
