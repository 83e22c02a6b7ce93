import { spawnSync } from 'node:child_process';

/** Whether this system has bubblewrap, without which servers cannot be confined. `.ci/run` installs it. */
export const CAN_CONFINE = process.platform === 'linux' && spawnSync('bwrap', ['--version']).status === 0;
