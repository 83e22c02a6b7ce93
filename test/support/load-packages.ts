import { loadBreaker } from '../../src/bridge/breaker.js';
import { loadCallQueue } from '../../src/bridge/call-queue.js';

// As it is done before the first server is started.
await Promise.all([loadBreaker(), loadCallQueue()]);
