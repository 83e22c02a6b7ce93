// The code that `restarts.mjs` measures.
export { spawnChild } from '../../src/process/spawn-child.js';
