// The hash that the composition root passes to the gateway.
import { createHash } from 'node:crypto';
import type { Sha256 } from '../../src/wire/mcp/exposed-name.js';

export const sha256: Sha256 = (text) => createHash('sha256').update(text).digest('hex');
