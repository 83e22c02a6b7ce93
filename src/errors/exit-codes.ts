/** Exit codes of all commands. Documented in `--help` and in the README. */
export const EXIT = { ok: 0, failed: 1, usage: 2, noHub: 3, internal: 70 } as const;
