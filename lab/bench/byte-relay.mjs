// The least that a process between client and server can do: `byte-relay.mjs COMMAND [ARG…]` copies bytes both ways.
// No gateway that is a process of its own, written for Node, can be faster.
import { spawn } from 'node:child_process';

const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });

process.stdin.pipe(child.stdin);
child.stdout.pipe(process.stdout);
child.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
