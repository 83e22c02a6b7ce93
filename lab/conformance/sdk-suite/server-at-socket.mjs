// The process that Trunkline starts as a server: it passes bytes on to the server that a test of the SDK's suite made,
// which listens at this socket.
import { connect } from 'node:net';

const socket = connect(process.argv[2]);
process.stdin.pipe(socket);
socket.pipe(process.stdout);
socket.on('close', () => process.exit());
socket.on('error', (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
