import { inRounds } from './measure.mjs';
import { table } from './page.mjs';
import { TEXT_KINDS, textOf } from './payload.mjs';
import { median, ratios, shownRatio } from './statistics.mjs';
import { OpenWay, RELAY, tinyServer } from './ways.mjs';

const MIB = 1024 * 1024;
/** What stands around the text: the official SDK reads no message of more than 10 MiB. */
const ENVELOPE_BYTES = 4096;
const WARM_UP_ROUNDS = 2;

const CASES = TEXT_KINDS.flatMap((kind) => [
  { name: `1 MiB result, ${kind}`, kind, mib: 1, calls: 10, tool: 'produce' },
  { name: `10 MiB result, ${kind}`, kind, mib: 10, calls: 3, tool: 'produce' },
  { name: `1 MiB argument, ${kind}`, kind, mib: 1, calls: 10, tool: 'consume' },
]);

/** Large messages, one at a time: the median of each round in milliseconds, by way and round. */
export async function measurePayloads(ways, folder, { rounds }) {
  const opened = [];
  try {
    for (const way of ways) opened.push(await OpenWay.open(way, folder, { tiny: tinyServer() }));
    return await inRounds(ways, rounds, WARM_UP_ROUNDS, async (_, index, isWarmUp) => {
      const ofRound = {};
      for (const each of CASES) ofRound[each.name] = await measureCase(opened[index], each, isWarmUp);
      return ofRound;
    });
  } finally {
    await Promise.all(opened.map((way) => way.close()));
  }
}

/** Every byte is looked at in the first rounds; later, the length of what came. */
async function measureCase(way, { kind, mib, calls, tool }, isWarmUp) {
  const target = way.to('tiny', tool);
  const bytes = mib * MIB - ENVELOPE_BYTES;
  const text = textOf(kind, bytes);
  const isWhole = ({ byteLength }) => byteLength > Buffer.byteLength(text);
  const isSame = (answer) => JSON.parse(answer.text()).result.content[0].text === text;
  const isCounted = ({ result }) => result.content[0].text === String(text.length);
  const isTaken = ({ result }) => result.content[0].text === '';
  const [args, check] =
    tool === 'produce'
      ? [{ kind, bytes }, isWarmUp ? isSame : isWhole]
      : [{ look: isWarmUp, text }, isWarmUp ? isCounted : isTaken];
  const { durations } = await target.client.call(target.tool, JSON.stringify(args), { count: calls, check });
  return median(durations);
}

export function payloadTables(results, { rounds }) {
  const names = [...results.keys()];
  const rows = CASES.map(({ name: measure }) => [
    measure,
    ...names.map((name) => {
      const middle = median(results.get(name).map((ofRound) => ofRound[measure])).toFixed(1);
      return name === RELAY ? middle : `${middle} · ${shownRatio(results, name, measure, RELAY)}`;
    }),
  ]);
  return [`Large messages, ms · ÷ relay; ${rounds} rounds of 3 to 10 calls:`, table(['', ...names], rows)];
}

/** The ratio to the byte relay in the worst case of those whose name begins so. */
export function worstPayloadRatio(results, way, beginning) {
  const measures = CASES.map(({ name }) => name).filter((name) => name.startsWith(beginning));
  return Math.max(...measures.map((measure) => median(ratios(results, way, measure, RELAY))));
}
