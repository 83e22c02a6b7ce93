// The code that `restarts.mjs` measures.
export { systemClock } from '../src/observe/system-clock.js';
export { spawnChild } from '../src/process/spawn-child.js';
export { SpawnHelper } from '../src/process/spawn-helper.js';
