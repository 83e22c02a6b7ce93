import { defineConfig } from 'vitest/config';

// Tests start many Node processes. Some machines set this variable, and Node 20 reads the certificates at every start; no
// test needs them.
delete process.env.NODE_EXTRA_CA_CERTS;
// A test that is not about the hub has servers of its own, which end with it.
process.env.TRUNKLINE_HUB = 'off';

// Five projects: unit tests, tests of the HTTP transport, tests with real processes, tests of commands, and tests of the page in a
// browser. Each test of the last three
// marks its processes with the name of its own folder, so that it finds what is left of them while other tests run.
// Five files run at once on two processors, since most files wait for processes most of the time.
// The files of unit tests share the workers and their modules, because a new process takes longer than most of these
// files. So a test has to restore what it replaces in its process, and a shared module must not register hooks when it is
// loaded, which happens once in a worker. The files of the other projects have processes of their own.
/** Tests that run the program dozens of times: for its commands, or with clients and servers of both eras. `npm test` has three minutes, so they run on their own. */
const COMMANDS = [
  'approve',
  'change-lock',
  'cli',
  'cli-serve',
  'clients',
  'cluster-status',
  'completion',
  'packages',
  'tasks-sdk',
  'doctor',
  'eras',
  'edit-commands',
  'examples',
  'hub-commands',
  'hub-places',
  'init',
  'logins',
  'package-commands',
  'page-source',
  'recording',
  'sandbox',
  'sandbox-escapes',
  'sole-servers',
  'users',
].map((name) => `test/e2e/${name}.test.ts`);

/** The default of 1 s is too short on a busy machine. */
const expect = { poll: { timeout: 15_000, interval: 20 } };

export default defineConfig({
  test: {
    maxWorkers: 5,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          isolate: false,
          exclude: ['downstream/http', 'cluster', 'process', 'e2e', 'faults', 'browser'].map(
            (name) => `test/${name}/**`,
          ),
          // Property tests need this on a busy machine.
          expect,
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'http',
          include: ['test/downstream/http/**/*.test.ts'],
          expect,
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'process',
          include: ['cluster', 'process', 'e2e', 'faults'].map((name) => `test/${name}/**/*.test.ts`),
          exclude: COMMANDS,
          expect,
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'commands',
          include: COMMANDS,
          expect,
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          expect,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
