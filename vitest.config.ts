import { defineConfig } from 'vitest/config';

// Tests start very many processes of Node. Some machines add certificates to each of them, which Node 20 reads before it
// runs anything, and which no test needs.
delete process.env.NODE_EXTRA_CA_CERTS;

// Projects: pure tests, those of the fronts, and tests with real processes. Each of the last marks its processes with a
// folder of its own, so that it can tell what is left of them whatever else runs. Three files at once: most of the time
// is spent waiting.
// The files of pure tests share the workers and the modules in them, since a new process for each takes longer than
// most of them do: what a test replaces of its own process it has to put back, and a module that they share may not
// register hooks when it is loaded, which happens once in a worker. Where modules do, files have processes of their own.
export default defineConfig({
  test: {
    maxWorkers: 4,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          setupFiles: ['test/support/load-packages.ts'],
          isolate: false,
          exclude: ['test/downstream/http/**', 'test/process/**', 'test/e2e/**', 'test/faults/**'],
          // For properties on a machine that is busy with other things.
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'http',
          include: ['test/downstream/http/**/*.test.ts'],
          setupFiles: ['test/support/load-packages.ts'],
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'process',
          include: ['test/process/**/*.test.ts', 'test/e2e/**/*.test.ts', 'test/faults/**/*.test.ts'],
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
    ],
  },
});
