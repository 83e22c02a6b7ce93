// Loads, before the unit tests, the packages that `src` loads with the first server.
import { loadQueue } from '../../src/gateway/dispatch/concurrency-limit.js';
import { loadBreaker } from '../../src/upstream/health/circuit-breaker.js';

// As it is done before the first server is started.
await Promise.all([loadBreaker(), loadQueue()]);
