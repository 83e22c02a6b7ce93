// To be loaded with `--import`: writes to $STRUCTURE_LOG which functions have run, for certain answers on stdout.
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';

const file = process.env.STRUCTURE_LOG;
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

const taken = {};
const write = process.stdout.write;
process.stdout.write = function (...parameters) {
  const text = Buffer.from(parameters[0]).toString('latin1');
  for (const [, id] of text.matchAll(/"id":"(list|before|call|after)"/g)) {
    taken[id] = take();
    if (id === 'after') writeFileSync(file, JSON.stringify(taken));
  }
  return write.apply(this, parameters);
};

/** Functions that have run since the last look, by the URL of their file. */
function take() {
  const functions = {};
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error) throw error;
    for (const { url, functions: all } of result) {
      const ran = all.filter(({ ranges }) => ranges[0].count > 0);
      if (ran.length === 0) continue;
      functions[url] = ran.map(({ functionName, ranges: [{ startOffset, endOffset }] }) => ({
        from: startOffset,
        to: endOffset,
        isModule: functionName === '' && startOffset === 0,
      }));
    }
  });
  return functions;
}
