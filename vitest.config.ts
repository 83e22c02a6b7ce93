import { defineConfig } from 'vitest/config';

// Two projects: pure tests, and tests with real processes. Each of the latter marks its processes with a folder of its
// own, so that it can tell what is left of them whatever else runs. Three files at once: most of the time is spent waiting.
export default defineConfig({
  test: {
    maxWorkers: 3,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          setupFiles: ['test/support/load-packages.ts'],
          exclude: ['test/process/**', 'test/e2e/**', 'test/faults/**'],
          // For properties on a machine that is busy with other things.
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
