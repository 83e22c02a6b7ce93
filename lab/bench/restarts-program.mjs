// The code that `restarts.mjs` measures.
export { spawnChild } from '../../src/servers/process/spawn-child.js';
