#!/usr/bin/env node
// The program, which must start even on a Node that is too old, and say so there in one line. Other modules use newer syntax and newer
// functions of Node, so nothing is imported before the check, and this file uses only old syntax.

const running = process.versions.node;

if (isSupported(running)) {
  import('./main.js').then(({ main }) => main());
} else {
  process.exitCode = 2;
  process.stderr.write(
    `trunkline: Trunkline needs Node.js 20.19+ or 22.3+, but this is ${running} (${process.execPath}); install a newer Node.js, or start Trunkline with the full path of a newer one\n`,
  );
}

/** The rule of `engines` in package.json. */
function isSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 3) || (major === 20 && minor >= 19);
}
