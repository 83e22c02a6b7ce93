import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// Tests start many Node processes. Some machines set this variable, and Node 20 reads the certificates at every start; no
// test needs them.
delete process.env.NODE_EXTRA_CA_CERTS;
// A test that is not about the hub has servers of its own, which end with it.
process.env.TRUNKLINE_HUB = 'off';
// Where a person keeps files, and what kind of terminal this is, must not change what a test sees.
for (const name of Object.keys(process.env))
  if (/^(?:XDG_.*|TERM|TRUNKLINE_CONFIG|NO_COLOR|FORCE_COLOR)$/.test(name)) delete process.env[name];
// Gateways without a hub have their sockets there. The default is in the home folder, whatever HOME says.
const hubs = mkdtempSync(join(process.platform === 'win32' ? tmpdir() : '/tmp', 'tlr-'));
process.env.TRUNKLINE_HUB_DIR = hubs;
process.once('exit', () => rmSync(hubs, { recursive: true, force: true }));

// The folder of a test says what it tests, and the ending of its name what it needs: `.system.test.ts` needs a program of the system
// that `scripts/system-programs.mjs` lists, such as Redis or a browser. All other tests need Node alone.
// Tests of the projects after `unit` start processes, and mark them with the name of their own folder, so that each finds what is left
// of its processes while other tests run.
// Five files run at once on two processors, since most files wait for processes most of the time.
// The files of the projects `unit` and `process` share the workers and their modules, because a new process takes longer than
// most of these files. So a test has to restore what it replaces in its process, and a shared module must not register hooks when
// it is loaded, which happens once in a worker. The files of the other projects have processes of their own.
const SYSTEM = 'test/**/*.system.test.ts';
const PROCESS = ['process', 'e2e', 'faults'].map((name) => `test/${name}/**/*.test.ts`);
/** The program run dozens of times, for its commands, or with clients and servers of both eras. */
const COMMANDS = ['test/commands/**/*.test.ts'];

/**
 * Bounds of tests that hang, in milliseconds. They are no budgets, because a busy machine takes twenty times as long as an idle one. No
 * test has a shorter one of its own. A wait ends before its test does, so that the failure says what did not come.
 */
const BOUNDS = {
  expect: { poll: { timeout: 60_000, interval: 20 } },
  ...{ testTimeout: 180_000, hookTimeout: 180_000 },
};

/** Keeps the files of a project together, because a worker that changes the project starts anew. Within one, vitest begins with the longest. */
class ByProject extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const nameOf = ({ project }: TestSpecification) => project.name;
    return (await super.sort(files)).sort((a, b) => nameOf(a).localeCompare(nameOf(b)));
  }
}

export default defineConfig({
  test: {
    maxWorkers: 5,
    // A second run does not compile the files again that are the same. The files are in `node_modules`.
    experimental: { fsModuleCache: true },
    sequence: { sequencer: ByProject },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [...PROCESS, ...COMMANDS, SYSTEM],
          isolate: false,
          ...BOUNDS,
        },
      },
      { test: { name: 'process', include: PROCESS, exclude: [SYSTEM], isolate: false, ...BOUNDS } },
      {
        test: {
          name: 'commands',
          include: COMMANDS,
          exclude: [SYSTEM],
          ...BOUNDS,
        },
      },
      { test: { name: 'system', include: [SYSTEM], ...BOUNDS } },
    ],
  },
});
