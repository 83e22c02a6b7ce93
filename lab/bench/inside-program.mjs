// Put together with the code of one checkout by `inside-bundle.mjs`, and run in a process of its own: measures one part
// and sends its rows to whoever started it.
import { measureInsideCalls } from './inside-calls.mjs';
import { measureLines } from './inside-lines.mjs';
import { measurePlainScan, measureScan } from './inside-scan.mjs';

const MEASURES = {
  calls: measureInsideCalls,
  scan: measureScan,
  plainScan: measurePlainScan,
  lines: measureLines,
};

process.once('disconnect', () => process.exit());
const [part, size] = process.argv.slice(2);
process.send(await MEASURES[part](JSON.parse(size)), () => process.disconnect());
