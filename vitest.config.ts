import { defineConfig } from 'vitest/config';

// Two projects: pure tests run side by side; tests with real processes run one file at a time,
// so that each can assert that nothing of its own is left behind.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/process/**', 'test/e2e/**'],
          // For properties on a machine that is busy with other things.
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'process',
          include: ['test/process/**/*.test.ts', 'test/e2e/**/*.test.ts'],
          fileParallelism: false,
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
    ],
  },
});
