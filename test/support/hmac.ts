// The keyed hash that the composition root passes to the gateway, with a fixed key.
import { createHmac } from 'node:crypto';
import type { Hmac } from '../../src/wire/mcp/task-id.js';

export const hmac: Hmac = (text) => createHmac('sha256', 'key of the tests').update(text).digest('hex');
