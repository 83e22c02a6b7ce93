// `byte-relay.mjs` for two servers in one process, each with a pipe of its own: `two-relays.mjs COMMAND [ARG…] --
// COMMAND [ARG…]`. The first server's pipe is stdin and stdout, the second's is descriptor 3, both ways.
import { spawn } from 'node:child_process';
import { Socket } from 'node:net';

const words = process.argv.slice(2);
const between = words.indexOf('--');
const second = new Socket({ fd: 3, readable: true, writable: true, allowHalfOpen: true });
relay(words.slice(0, between), process.stdin, process.stdout);
relay(words.slice(between + 1), second, second);

function relay([command, ...args], input, output) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  input.pipe(child.stdin);
  child.stdout.pipe(output);
}
