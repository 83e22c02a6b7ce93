// What Trunkline's log of one run says about the start.
const TOOLS_LISTED = /^(?<count>\d+) tools are listed\./;

/**
 * Returns one sentence. `log` is the text of the log, `startedAt` the time at which the client was started, and
 * `expected` the keys of the servers that are able to start.
 */
export function describeLog(log, { startedAt, expected }) {
  const records = log
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
  const end = records.findIndex(({ msg }) => msg === 'shutting down' || msg === 'client left');
  const served = end === -1 ? records : records.slice(0, end);
  const after = ({ time }) => `${((Date.parse(time) - startedAt) / 1000).toFixed(1)} s`;

  const connected = served.find(({ msg }) => msg === 'client connected');
  if (connected === undefined) return 'nothing of a client: it left at once';
  const listings = served.flatMap((record) => {
    const { count } = TOOLS_LISTED.exec(record.msg)?.groups ?? {};
    return count === undefined ? [] : [`${count} tools after ${after(record)}`];
  });
  const ready = new Set(served.filter(({ msg }) => msg === 'server ready').map(({ server }) => server));
  const readyCount = expected.filter((key) => ready.has(key)).length;
  return [
    `client connected after ${after(connected)}`,
    listings.length === 0 ? 'no long list' : `lists of ${listings.join(', of ')}`,
    `${readyCount} of ${expected.length} servers ready ${end === -1 ? 'at the end' : `when it left after ${after(records[end])}`}`,
  ].join('; ');
}
