import type { Approvals } from '../approvals/approvals.js';
import type { ServerConfig } from '../config/config.js';
import { createToolPolicy } from '../gateway/catalog/tool-policy.js';
import type { BackendRules } from '../gateway/registry/backend-options.js';

/** The rules for the backends of a server, as the configuration states them. */
export function rulesOf(server: ServerConfig, configFile: string, approvals: Approvals): BackendRules {
  const { key, prefix, tools, methods, trusted, calls, idleStopMs, approval } = server;
  return {
    prefix,
    limits: calls,
    policy: createToolPolicy(tools),
    answers: createToolPolicy({ allow: methods, deny: [] }),
    isTrusted: trusted,
    idleStopMs,
    approvals: approval === 'off' ? undefined : approvals.of(key, configFile),
  };
}
