// Loaded into each process of one run before its own code (`node --import`). An attach process waits until the gate opens,
// so that many of them go on in the same millisecond. `SOAK_CRASH` names what dies: the first hub, when it starts, or the
// first process that is about to start one.
import childProcess from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';

const { SOAK_GATE: gate, SOAK_CRASH: crash } = process.env;
const LOOK_EVERY_MS = 1;

if (process.argv[2] === 'hub') {
  if (crash === 'hub') crashOnce();
} else {
  writeFileSync(join(gate, String(process.pid)), '');
  const asleep = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(join(gate, 'open'))) Atomics.wait(asleep, 0, 0, LOOK_EVERY_MS);
  if (crash === 'starter') {
    const { spawn } = childProcess;
    childProcess.spawn = (...args) => {
      crashOnce();
      return spawn(...args);
    };
    syncBuiltinESMExports();
  }
}

function crashOnce() {
  try {
    writeFileSync(join(gate, 'crashed'), '', { flag: 'wx' });
  } catch {
    return;
  }
  process.kill(process.pid, 'SIGKILL');
}
